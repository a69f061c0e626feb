package column

import "ovstage.dev/ovstage/gocore/bitset"

// Changed returns the rows that sealed writes and deletes changed in [start, end], those that were changed again after
// end, and the highest ordinal of a change in the range.
func (c *Column) Changed(start, end uint64) (in, after bitset.Set, last uint64) {
	in = bitset.New(len(c.paths))
	last = c.changes.between(start, end, in)
	if end < c.sealed.ordinal {
		after = bitset.New(len(c.paths))
		c.changes.between(end+1, Latest, after)
	}
	return in, after, last
}

// Frontier is the ordinal from which Changed is exact.
func (c *Column) Frontier() uint64 { return c.changes.frontier }

// UnsealedIn returns the rows that unsealed writes and deletes in [start, end] name, and the lowest ordinal of one.
func (c *Column) UnsealedIn(start, end uint64) (rows bitset.Set, first uint64) {
	for _, r := range c.upTo(end) {
		if r.ordinal < start {
			continue
		}
		if rows == nil {
			rows, first = bitset.New(len(c.paths)), r.ordinal
		}
		r.rows.mark(rows)
	}
	return rows, first
}

// FirstUnsealed looks for an unsealed write at or below ordinal to one of rows, none of which has sealed state.
func (c *Column) FirstUnsealed(rows []uint32, ordinal uint64) (row int, at uint64, found bool) {
	if len(rows) == 0 {
		return 0, 0, false
	}
	wanted := bitset.New(len(c.paths))
	for _, row := range rows {
		wanted.Add(int(row))
	}
	for _, r := range c.upTo(ordinal) {
		if !r.rows.Any(wanted) {
			continue
		}
		for row = range len(c.paths) {
			if wanted.Has(row) && r.rows.has(row) {
				return row, r.ordinal, true
			}
		}
	}
	return 0, 0, false
}

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

// Newest reports whether a payload for rows at an ordinal would replace everything and be the last to do so.
func (c *Column) Newest(rows Rows, ordinal uint64) bool {
	return rows.covers(len(c.paths)) && (len(c.records) == 0 || c.records[len(c.records)-1].ordinal <= ordinal)
}

// Above reports whether an unsealed write or delete above an ordinal names any of rows.
func (c *Column) Above(rows Rows, ordinal uint64) bool {
	above := c.records[len(c.upTo(ordinal)):]
	if rows.Len() == 0 || len(above) == 0 {
		return false
	}
	named := bitset.New(len(c.paths))
	for _, r := range above {
		r.rows.mark(named)
	}
	return rows.Any(named)
}

func (c *Column) named(rows Rows) bitset.Set {
	set := bitset.New(len(c.paths))
	rows.mark(set)
	return set
}
