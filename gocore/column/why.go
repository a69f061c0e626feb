package column

import "ovstage/gocore/bitset"

// NewestUnsealed returns the highest ordinal of an unsealed write to any of rows; deletes are none.
func (c *Column) NewestUnsealed(rows Rows) (ordinal uint64, found bool) {
	if rows.Len() == 0 || len(c.records) == c.tombstones {
		return 0, false
	}
	wanted := c.named(rows)
	for i := len(c.records) - 1; i >= 0; i-- {
		if r := c.records[i]; !r.tombstone() && r.rows.Any(wanted) {
			return r.ordinal, true
		}
	}
	return 0, false
}

// LastDeleted returns when the last of those of rows that are deleted in the sealed state was, as far as the log of changes
// knows: 0 when it has forgotten.
func (c *Column) LastDeleted(rows Rows) (ordinal uint64, found bool) {
	if c.sealed.gone == nil || !rows.Any(c.sealed.gone) {
		return 0, false
	}
	gone := bitset.New(len(c.paths))
	rows.each(func(row int) {
		if c.sealed.gone.Has(row) {
			gone.Add(row)
		}
	})
	return c.changes.last(gone), true
}

func (c *Column) named(rows Rows) bitset.Set {
	set := bitset.New(len(c.paths))
	rows.mark(set)
	return set
}

// last is the highest ordinal of a change to one of rows, 0 when none is known.
func (c *changes) last(rows bitset.Set) (ordinal uint64) {
	for i := len(c.log) - 1; i >= 0; i-- {
		if c.log[i].rows.Any(rows) {
			return c.log[i].ordinal
		}
	}
	if c.latest == nil && rows.AnyIn(0, c.uniform) {
		return c.since
	}
	for row, at := range c.latest {
		if rows.Has(row) {
			ordinal = max(ordinal, at)
		}
	}
	return ordinal
}
