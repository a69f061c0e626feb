//go:build !tiny

package query

// The cache of a column gives up its oldest bindings beyond these bounds; what it costs to lose one is a lookup per position.
const (
	maxBindings  = 4096
	maxPositions = 1 << 24
)
