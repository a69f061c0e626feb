package column

import "ovstage.dev/ovstage/gocore/bitset"

// Alive tells which of rows hold a value at an ordinal: whose newest state at or below it, sealed or not, is not a delete.
// The answer is in the order of rows.
func (c *Column) Alive(rows Rows, ordinal uint64) []bool {
	alive := make([]bool, 0, rows.Len())
	sealed := c.Sealed()
	rows.each(func(row int) { alive = append(alive, sealed.Live(row)) })
	records := c.upTo(ordinal)
	if start, run := rows.Run(); run {
		for _, r := range records {
			r.rows.eachIn(start, rows.End(), func(_, row int) { alive[row-start] = !r.tombstone() })
		}
		return alive
	}
	p := newLookup(rows, records)
	for _, r := range records {
		p.each(r.rows, func(at entry, _ int) { alive[at.index] = !r.tombstone() })
	}
	return alive
}

// AllAlive is Alive for every row of the column, as a set.
func (c *Column) AllAlive(ordinal uint64) bitset.Set {
	alive := bitset.New(len(c.paths))
	alive.AddRange(0, c.sealed.extent)
	if c.sealed.live != nil {
		copy(alive, c.sealed.live)
	}
	for _, r := range c.upTo(ordinal) {
		if r.tombstone() {
			r.rows.each(alive.Remove)
		} else {
			r.rows.mark(alive)
		}
	}
	return alive
}

// Deletes reports whether any row is deleted, sealed or not. Without deletes every row holds a value.
func (c *Column) Deletes() bool { return c.tombstones > 0 || c.sealed.gone != nil }

// Deleting reports whether deletes wait for the floor.
func (c *Column) Deleting() bool { return c.tombstones > 0 }

// DeletedAbove returns the rows that unsealed deletes above an ordinal name.
func (c *Column) DeletedAbove(ordinal uint64) bitset.Set {
	var rows bitset.Set
	for _, r := range c.records[len(c.upTo(ordinal)):] {
		if r.tombstone() {
			rows = rows.Grow(r.rows.End())
			r.rows.mark(rows)
		}
	}
	return rows
}

// LastDeleted looks at those of rows that are deleted in the sealed state, and returns the ordinal of the newest of these deletes:
// 0 when the log of changes has forgotten it. found is false where none is deleted.
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

// Settled reports whether a write to rows can't bring any of them back from a delete. It costs nothing per row as long as
// nothing is deleted.
func (c *Column) Settled(rows Rows) bool {
	return !c.Deletes() || c.tombstones == 0 && !rows.Any(c.sealed.gone)
}
