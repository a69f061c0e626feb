package column

import (
	"slices"
	"sort"

	"ovstage/gocore/memory"
)

// record is one unsealed write: packed bytes for rows, in the order of rows. Without a block it is a delete.
type record struct {
	ordinal uint64
	rows    Rows
	block   memory.Block
	arena   Arena // array columns

	weight    int // bytes that this record and those of its ordinal before it keep alive
	condensed int // what of that was left when they were last condensed
}

func (r record) tombstone() bool { return !r.block.Valid() }

// size is the memory that a record keeps alive.
func (r record) size() int {
	return recordCost + 4*len(r.rows.List()) + r.block.Capacity() + r.arena.Block.Capacity()
}

// recordCost is what a record costs beside its bytes: itself, and the heads of its blocks.
const recordCost = 256

// Write adds a record: block holds the packed bytes of rows. It takes over the caller's reference to block and adds its
// own to rows. It costs nothing per row. What it makes unobservable, writes of the same ordinal to rows that it rewrites,
// goes at once where that is easily seen, else when it has become too much (condense): a client that never seals does not
// fill the memory with values that nobody can see.
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

// dropRewritten dismisses the records of an ordinal that a write of rows makes unobservable, as far as they lie near the end.
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

// recent knows which rows were written at one ordinal, the one written last, so that a write that repeats another finds
// out without a search.
type recent struct {
	ordinal uint64
	rows    map[Rows]struct{}
}

// maxRecent bounds what recent knows. Whoever repeats more is none the worse for it: records are condensed.
const maxRecent = 1024

// by notes a write and reports whether it may repeat an earlier one of its ordinal.
func (r *recent) by(rows Rows, ordinal uint64) bool {
	if r.rows == nil {
		r.rows = map[Rows]struct{}{}
	}
	unknown := r.ordinal != ordinal // others may have been written at it before this one was noted
	if unknown || len(r.rows) == maxRecent {
		clear(r.rows)
		r.ordinal = ordinal
	}
	_, again := r.rows[rows]
	r.rows[rows] = struct{}{}
	return unknown || again || rows.covers(1)
}

// Delete adds a tombstone for rows, each of which holds a value at the ordinal. It adds a reference of its own to rows.
func (c *Column) Delete(rows Rows, ordinal uint64) {
	c.enter(record{ordinal: ordinal, rows: rows.Retain()})
	c.tombstones++
}

// Undelete takes back the last Delete at an ordinal, as long as nothing was recorded at it since.
func (c *Column) Undelete(ordinal uint64) { c.remove(len(c.upTo(ordinal)) - 1) }

// enter puts a record behind those of its ordinal and returns its place.
func (c *Column) enter(r record) (at int) {
	at = len(c.upTo(r.ordinal))
	if at > 0 && c.records[at-1].ordinal == r.ordinal {
		r.weight, r.condensed = c.records[at-1].weight, c.records[at-1].condensed
	}
	r.weight += r.size()
	c.records = slices.Insert(c.records, at, r)
	return at
}

// remove takes a record out and dismisses it.
func (c *Column) remove(at int) {
	r := c.records[at]
	for i := at + 1; i < len(c.records) && c.records[i].ordinal == r.ordinal; i++ {
		c.records[i].weight -= r.size()
	}
	c.records = slices.Delete(c.records, at, at+1)
	c.dismiss(r)
}

// dismiss gives back what a record holds.
func (c *Column) dismiss(r record) {
	r.rows.Release()
	if r.tombstone() {
		c.tombstones--
		return
	}
	r.arena.Block.Release()
	c.retire(r.block, 0, true)
}

// upTo returns the records at or below ordinal.
func (c *Column) upTo(ordinal uint64) []record {
	n := len(c.records)
	if n == 0 || c.records[n-1].ordinal <= ordinal {
		return c.records
	}
	return c.records[:sort.Search(n, func(i int) bool { return c.records[i].ordinal > ordinal })]
}
