package column

import (
	"slices"

	"ovstage.dev/ovstage/gocore/memory"
)

// Buffer returns a block of at least size bytes for a payload that may cover the column. It prefers a spare block that
// nothing else holds: its pages are warm, and its bytes, if private is asked for, are this column's own. A fresh private block
// is zeroed; any other holds unspecified bytes.
func (c *Column) Buffer(size int, private bool) (memory.Block, error) {
	for i := len(c.spares) - 1; i >= 0; i-- {
		b := c.spares[i]
		room := b.block.Capacity()
		if private {
			room = b.block.Size() // what lies beyond was never this column's
		}
		if b.block.Refs() == 1 && room >= size && b.block.Capacity() <= 2*size {
			b.releaseBehind()
			c.spares = slices.Delete(c.spares, i, i+1)
			return b.block.Writable(), nil
		}
	}
	if private {
		return memory.AllocZeroed(size, memory.Columns)
	}
	return memory.Alloc(size, memory.Columns)
}

// Spent reports whether no state, sealed, kept, held or to come, shows a row of the column. Its log of changes may still tell of
// deletes.
func (c *Column) Spent() bool {
	return len(c.records) == 0 && len(c.history) == 0 && len(c.holds) == 0 && c.sealed.rows == 0
}

// Trim releases the blocks of a spent column, which may be written to again.
func (c *Column) Trim() {
	c.sealed.release()
	c.sealed.block, c.sealed.arena = memory.Block{}, Arena{}
	for _, b := range c.spares {
		b.releaseBehind()
		b.block.Release()
	}
	c.spares = nil
}

// copied returns a block of the column's own that starts with the first used bytes of b. A block that grows gets space for
// half as much again, so that a column that grows row by row is not copied for every row.
func (c *Column) copied(b memory.Block, used, size int) (memory.Block, error) {
	if size > b.Capacity() {
		size += size / 2
	}
	target, err := c.Buffer(size, false)
	if err != nil {
		return memory.Block{}, err
	}
	copy(target.Bytes()[:used], b.Bytes()[:used])
	memory.Copied(used)
	clear(target.Bytes()[used:])
	return target, nil
}

// refresh looks for a spare block of at least size bytes that held an earlier sealed state, and brings it up to date with the
// rows that changed since. It returns its index among the spares, or -1.
func (c *Column) refresh(size int) int {
	for i := range c.spares {
		b := &c.spares[i]
		if b.stale || b.block.Refs() != 1 || b.block.Capacity() < size {
			continue
		}
		clear(b.block.Writable().Bytes()[b.extent*c.width : size]) // rows that were never written are in no list
		for _, rows := range b.behind {
			rows.transfer(b.block.Bytes(), c.sealed.block.Bytes(), c.width)
			memory.Copied(rows.Len() * c.width)
		}
		b.releaseBehind()
		return i
	}
	return -1
}

// reuse takes over a reference to a block and keeps it as a spare if it is as large as the column, else releases it. Two are
// kept, and one for each block of the history: a reader that always holds one snapshot and a writer that is one ahead then
// never need a fresh block. extent is the number of rows in the block; stale says that they are not an earlier sealed state.
func (c *Column) reuse(b memory.Block, extent int, stale bool) {
	if b.Foreign() || b.Capacity() < len(c.paths)*c.width {
		b.Release()
		return
	}
	c.spares = slices.Insert(c.spares, 0, spareBlock{block: b, extent: extent, stale: stale})
	for len(c.spares) > maxSpares+c.blocks {
		last := &c.spares[len(c.spares)-1]
		last.releaseBehind()
		last.block.Release()
		c.spares = c.spares[:len(c.spares)-1]
	}
}

// maxSpares is how many spare blocks a column without history keeps.
const maxSpares = 2
