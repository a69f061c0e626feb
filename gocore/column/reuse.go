package column

import (
	"slices"

	"ovstage.dev/ovstage/gocore/memory"
)

// Buffer returns a block of at least size bytes for a payload that may cover the column. It prefers one that the column
// used before and that nobody holds: its pages are warm, and its contents, if private is asked for, are this column's
// own. Otherwise private buffers are zeroed and others hold unspecified bytes.
func (c *Column) Buffer(size int, private bool) (memory.Block, error) {
	for i := len(c.retired) - 1; i >= 0; i-- {
		b := c.retired[i]
		room := b.block.Capacity()
		if private {
			room = b.block.Size() // what lies beyond was never this column's
		}
		if b.block.Refs() == 1 && room >= size && b.block.Capacity() <= 2*size {
			b.forget()
			c.retired = slices.Delete(c.retired, i, i+1)
			return b.block.Writable(), nil
		}
	}
	if private {
		return memory.AllocZeroed(size, memory.Columns)
	}
	return memory.Alloc(size, memory.Columns)
}

// Spent reports whether no state, sealed, kept or to come, shows a row of the column. Its log of changes may still tell of
// deletes.
func (c *Column) Spent() bool {
	return len(c.records) == 0 && len(c.history) == 0 && c.sealed.rows == 0
}

// Shed gives the buffers of a spent column back. It may be written to again.
func (c *Column) Shed() {
	c.sealed.release()
	c.sealed.block, c.sealed.arena = memory.Block{}, Arena{}
	for _, b := range c.retired {
		b.forget()
		b.block.Release()
	}
	c.retired = nil
}

// copied returns a buffer of the column's own that starts with the first used bytes of b. Growing buffers get room for
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

// refresh looks for a reusable buffer of at least size bytes that held an earlier sealed state, and brings it up to date
// with the rows that changed since. It returns the buffer's place among the retired ones, or -1.
func (c *Column) refresh(size int) int {
	for i := range c.retired {
		b := &c.retired[i]
		if b.stale || b.block.Refs() != 1 || b.block.Capacity() < size {
			continue
		}
		clear(b.block.Writable().Bytes()[b.extent*c.width : size]) // rows that were never written are in no list
		for _, rows := range b.behind {
			rows.transfer(b.block.Bytes(), c.sealed.block.Bytes(), c.width)
			memory.Copied(rows.Len() * c.width)
		}
		b.forget()
		return i
	}
	return -1
}

// retire takes over a reference to a buffer and keeps it for reuse if it is as large as the column, else gives it back.
// Two are kept, and one for each state of the history: a reader that always holds one snapshot and a writer that is one
// ahead then never need a fresh buffer.
// extent is the number of rows that it holds; stale says that they are not an earlier sealed state.
func (c *Column) retire(b memory.Block, extent int, stale bool) {
	if b.Foreign() || b.Capacity() < len(c.paths)*c.width {
		b.Release()
		return
	}
	c.retired = slices.Insert(c.retired, 0, buffer{block: b, extent: extent, stale: stale})
	for len(c.retired) > spare+len(c.history) {
		last := &c.retired[len(c.retired)-1]
		last.forget()
		last.block.Release()
		c.retired = c.retired[:len(c.retired)-1]
	}
}

// spare is the number of reusable buffers of a column.
const spare = 2
