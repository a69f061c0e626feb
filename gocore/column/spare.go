package column

import "ovstage.dev/ovstage/gocore/memory"

// spareBlock is a block that held an earlier sealed state of this column. behind lists the rows that changed since; once
// they are too many to be worth replaying the block is merely memory of the right size (stale).
type spareBlock struct {
	block  memory.Block
	extent int // rows that it held
	behind []Rows
	rows   int
	stale  bool
}

// fallBehind notes that rows changed in the sealed state. Once replaying would touch half of the column a plain copy is
// as good, and the lists are released.
func (b *spareBlock) fallBehind(rows Rows, extent int, all bool) {
	if b.stale {
		return
	}
	if b.rows += rows.Len(); all || 2*b.rows > extent || len(b.behind) == maxBehind {
		b.releaseBehind()
		b.stale = true
		return
	}
	b.behind = append(b.behind, rows.Retain())
}

// releaseBehind releases the lists of changed rows.
func (b *spareBlock) releaseBehind() {
	for _, rows := range b.behind {
		rows.Release()
	}
	b.behind, b.rows = nil, 0
}
