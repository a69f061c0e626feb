package column

import (
	"slices"

	"ovstage.dev/ovstage/gocore/bitset"
	"ovstage.dev/ovstage/gocore/memory"
)

// Seal folds every record at or below floor into the sealed state, in order. The cost is the bytes that the records
// touch: none for a covering record, whose block becomes the sealed block as it is. On failure (memory) nothing
// has changed and the call may be repeated.
//
// A column that keeps history folds the last ordinals one by one, so that each has a state.
func (c *Column) Seal(floor uint64) error {
	for len(c.records) > 0 && c.records[0].ordinal <= floor {
		to := floor
		if c.keep > 1 {
			to = max(c.records[0].ordinal, c.oldest(floor))
		}
		if err := c.seal(to); err != nil {
			return err
		}
	}
	c.Prune(floor)
	return nil
}

// Amend folds records whose ordinals are sealed already, as derived values have them: the new state replaces the state
// at the same ordinal, which then only the readers that hold it have. On failure (memory) the records wait for the next
// Seal.
func (c *Column) Amend(floor uint64) error {
	if err := c.Seal(floor); err != nil {
		return err
	}
	if last := len(c.history) - 1; last >= 0 && c.history[last].ordinal == c.sealed.ordinal {
		c.join()
	}
	return nil
}

// seal folds every record at or below floor into one new state.
func (c *Column) seal(floor uint64) error {
	n := 0
	for n < len(c.records) && c.records[n].ordinal <= floor {
		n++
	}
	folded := c.records[:n]
	f, err := c.fold(folded)
	if err != nil {
		return err
	}
	for _, r := range folded[f.adopt+1:] {
		if r.tombstone() {
			continue
		}
		r.rows.scatter(f.target.Bytes(), r.block.Bytes(), c.width)
		memory.Copied(r.rows.Len() * c.width)
	}
	c.forgetMade()
	if f.past != nil {
		c.enterHistory(f.past)
	}
	c.install(f.target, folded, f.replaced, f.extent)
	c.sealed.mustBeWhole(len(c.paths), c.width)
	return nil
}

// install makes target the sealed block and brings the books up to date: which rows are live, which rows the
// spare blocks are behind by, and which records are gone. It takes over the reference to target.
func (c *Column) install(target memory.Block, folded []record, replaced bool, extent int) {
	held := c.sealed.extent
	if c.sealed.follow(folded) {
		c.sealed.generation++
	}
	c.sealed.ordinal = max(c.sealed.ordinal, folded[len(folded)-1].ordinal)

	previous := c.sealed.block
	c.sealed.block = target
	for i := len(c.spares) - 1; i >= 0; i-- {
		if c.spares[i].block == target {
			c.spares[i].block.Release()
			c.spares = slices.Delete(c.spares, i, i+1)
		}
	}
	switch {
	case previous == target: // changed in place; drop the second reference
		target.Release()
	case previous.Valid():
		c.reuse(previous, held, false)
	}
	for i := range c.spares {
		for _, r := range folded {
			if !r.tombstone() {
				c.spares[i].fallBehind(r.rows, extent, replaced)
			}
		}
	}
	for _, r := range folded {
		c.changes.add(r.ordinal, r.rows, c.sealed.rows)
		if r.block == target {
			r.rows.Release()
			r.arena.Block.Release() // the column has references of its own
			r.block.Release()
		} else {
			c.releaseRecord(r)
		}
	}
	c.records = slices.Delete(c.records, 0, len(folded))
	c.reclaim()
}

// reclaim gives up rows that were deleted, so that prims that come and go do not grow the column. It waits until the
// deleted rows are a quarter of the column, because every row that was looked up has to be looked up again, and until the
// deletes have left the log of changes, which names them by row. Snapshots go on unchanged: they hold blocks and lists of rows of their own.
func (c *Column) reclaim() {
	if c.sealed.lost < minReclaim || 4*c.sealed.lost <= c.sealed.extent {
		return
	}
	kept := len(c.history) + len(c.holds)
	if c.changes.frontier == c.tried && kept >= c.triedHistory {
		return // what stood in the way still does
	}
	c.tried, c.triedHistory = c.changes.frontier, kept
	named := bitset.New(len(c.paths))
	for _, r := range c.records {
		r.rows.mark(named)
	}
	for _, s := range slices.Concat(c.history, c.holds) {
		switch {
		case s.next != nil:
			s.undo.rows.mark(named)
		case s.live == nil:
			named.AddRange(0, s.extent)
		default:
			named.Or(s.live)
		}
	}
	unnamed := slices.Clone(c.sealed.gone)
	unnamed.AndNot(named)
	var told bitset.Sparse
	told.Reset(len(c.paths))
	c.changes.names(&told)
	told.EachIn(0, 64*len(unnamed), unnamed.Remove)
	rows := unnamed.AppendTo(nil, len(c.paths))
	if len(rows) < minReclaim {
		return
	}
	for _, row := range rows {
		c.sealed.gone.Remove(int(row))
	}
	if c.sealed.lost -= len(rows); c.sealed.lost == 0 {
		c.sealed.gone = nil
	}
	c.sealed.shape++
	c.changes.forget(rows)
	c.vacate(rows)
}
