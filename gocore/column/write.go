package column

import "ovstage.dev/ovstage/gocore/memory"

// Write adds a record: block holds the packed bytes of rows. It takes over the caller's reference to block and adds its
// own to rows. It costs nothing per row. Earlier writes of its ordinal to the same rows can no longer be
// observed: they go at once where a short look finds them, else when there are too many (condense): a client that never seals does not
// fill the memory with values that no reader can see.
func (c *Column) Write(rows Rows, ordinal uint64, block memory.Block) {
	c.WriteArrays(rows, ordinal, block, Arena{})
}

// WriteArrays is Write for an array column: block holds the spans of rows in arena, which it takes over as well.
func (c *Column) WriteArrays(rows Rows, ordinal uint64, block memory.Block, arena Arena) {
	if rows.Len() == 0 {
		block.Release()
		arena.Block.Release()
		return
	}
	if c.rewritten.by(rows, ordinal) {
		c.dropRewritten(rows, ordinal)
	}
	at := c.enter(record{ordinal: ordinal, rows: rows.Retain(), block: block, arena: arena})
	if c.heavy(c.records[at]) {
		c.condense(at)
	}
}

// Delete adds a tombstone for rows, each of which holds a value at the ordinal. It adds a reference of its own to rows.
func (c *Column) Delete(rows Rows, ordinal uint64) {
	c.enter(record{ordinal: ordinal, rows: rows.Retain()})
	c.tombstones++
}

// Undelete takes back the last Delete at an ordinal, as long as nothing was recorded at it since.
func (c *Column) Undelete(ordinal uint64) { c.remove(len(c.upTo(ordinal)) - 1) }

// dropRewritten removes the records of an ordinal that a write of rows makes unobservable, as far as they lie near the end.
func (c *Column) dropRewritten(rows Rows, ordinal uint64) {
	const near = 64
	for i, kept := len(c.upTo(ordinal))-1, 0; i >= 0 && c.records[i].ordinal == ordinal && kept < near; i-- {
		if old := c.records[i]; old.rows.same(rows) || rows.covers(old.rows.End()) {
			c.remove(i)
		} else {
			kept++
		}
	}
}
