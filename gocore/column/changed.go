package column

import "ovstage.dev/ovstage/gocore/bitset"

// Changed returns the rows that sealed writes and deletes changed in [start, end], and the highest ordinal of a change in the
// range. The set is the column's own: it is true until Changed is asked again.
func (c *Column) Changed(start, end uint64) (rows *bitset.Sparse, last uint64) {
	rows = &c.asked.changed
	rows.Reset(len(c.paths))
	return rows, c.changes.between(start, end, rows)
}

// ChangedAfter returns the rows that sealed writes and deletes changed after an ordinal. The set is the column's own: it is
// true until ChangedAfter is asked again.
func (c *Column) ChangedAfter(ordinal uint64) *bitset.Sparse {
	rows := &c.asked.after
	rows.Reset(0)
	if ordinal < c.sealed.ordinal {
		rows.Reset(len(c.paths))
		c.changes.between(ordinal+1, Latest, rows)
	}
	return rows
}

// Frontier is the ordinal from which Changed is exact.
func (c *Column) Frontier() uint64 { return c.changes.frontier }

// UnsealedIn returns the rows that unsealed writes and deletes in [start, end] name, and the lowest ordinal of one. The set is
// the column's own: it is true until UnsealedIn is asked again.
func (c *Column) UnsealedIn(start, end uint64) (rows *bitset.Sparse, first uint64) {
	rows = &c.asked.unsealed
	rows.Reset(0)
	var added Rows
	for _, r := range c.upTo(end) {
		if r.ordinal < start || r.rows.same(added) {
			continue
		}
		if rows.Count() == 0 {
			rows.Reset(len(c.paths))
			first = r.ordinal
		}
		r.rows.addTo(rows)
		added = r.rows
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
