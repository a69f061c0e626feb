//go:build tiny

package query

// With the tag tiny the bounds are reached in a test of a few dozen steps.
const (
	maxBindings  = 3
	minPositions = 64

	minInverse = 1
	perInverse = 1
)
