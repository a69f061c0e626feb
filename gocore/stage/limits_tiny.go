//go:build tiny

package stage

// With the tag tiny the bound is reached in a test of a few dozen steps.
const maxSpent = 0
