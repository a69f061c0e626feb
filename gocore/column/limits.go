//go:build !tiny

package column

const (
	// The log of changes folds its older half beyond these bounds: changes, and rows listed one by one, or four times the
	// column's live rows where that is more.
	maxChanges = 1024
	minListed  = 1 << 16

	// minReclaim is the number of deleted rows below which none is worth giving up.
	minReclaim = 256

	// maxBehind bounds the number of row sets that a spare block is brought up to date with.
	maxBehind = 256

	// minCondensed is the weight of records of one ordinal, in bytes, below which they are not condensed.
	minCondensed = 4 << 10
)
