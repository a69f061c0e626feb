//go:build !tiny

package stage

// maxSpent is how many columns without a value are kept for their logs of deletes.
const maxSpent = 1024
