package column

import (
	"slices"
	"sort"
)

// upTo returns the records at or below ordinal.
func (c *Column) upTo(ordinal uint64) []record {
	n := len(c.records)
	if n == 0 || c.records[n-1].ordinal <= ordinal {
		return c.records
	}
	return c.records[:sort.Search(n, func(i int) bool { return c.records[i].ordinal > ordinal })]
}

// enter puts a record behind the others of its ordinal and returns its index.
func (c *Column) enter(r record) (at int) {
	r.mustFit(len(c.paths), c.width)
	at = len(c.upTo(r.ordinal))
	if at > 0 && c.records[at-1].ordinal == r.ordinal {
		r.weight, r.condensed = c.records[at-1].weight, c.records[at-1].condensed
	}
	r.weight += r.size()
	c.records = slices.Insert(c.records, at, r)
	return at
}

// remove takes a record out and releases what it holds.
func (c *Column) remove(at int) {
	r := c.records[at]
	for i := at + 1; i < len(c.records) && c.records[i].ordinal == r.ordinal; i++ {
		c.records[i].weight -= r.size()
	}
	c.records = slices.Delete(c.records, at, at+1)
	c.releaseRecord(r)
}

// releaseRecord releases what a record holds. Its block may be used again.
func (c *Column) releaseRecord(r record) {
	r.rows.Release()
	if r.tombstone() {
		c.tombstones--
		return
	}
	r.arena.Block.Release()
	c.reuse(r.block, 0, true)
}
