//go:build !tiny

package query

// The cache of a column gives up its oldest bindings beyond these bounds: so many of them, or so many list positions, or eight
// times the column where that is more. What it costs to lose one is a lookup per position.
const (
	maxBindings  = 4096
	minPositions = 1 << 18

	// A list of so many rows or more is inverted for a set that holds at most one row for so many that are listed.
	minInverse = 256
	perInverse = 32
)
