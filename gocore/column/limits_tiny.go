//go:build tiny

package column

// With the tag tiny every bound is reached in a test of a few dozen steps.
const (
	maxChanges = 6
	minListed  = 8
	minReclaim = 1
	maxBehind  = 3

	minCondensed = 0
)
