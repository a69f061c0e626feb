//go:build !tiny

package query

// The cache of a column gives up its oldest bindings beyond these bounds: so many of them, or so many list positions, or eight
// times the column where that is more. What it costs to lose one is a lookup per position.
const (
	maxBindings  = 4096
	minPositions = 1 << 18
)
