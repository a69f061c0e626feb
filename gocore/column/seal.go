package column

import (
	"slices"

	"ovstage/gocore/bitset"
	"ovstage/gocore/memory"
)

// Seal folds every record at or below floor into the sealed state, in order. The cost is the bytes that the records
// touch: none for the buffer of a covering record, which becomes the sealed buffer as it is. On failure (memory) nothing
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

// seal folds every record at or below floor into one new state.
func (c *Column) seal(floor uint64) error {
	n := 0
	for n < len(c.records) && c.records[n].ordinal <= floor {
		n++
	}
	folded := c.records[:n]
	kept := len(c.history)
	c.remember()
	target, adopt, extent, replaced, err := c.fold(folded)
	if err != nil {
		if len(c.history) > kept {
			c.history[kept].release()
			c.history = c.history[:kept]
		}
		return err
	}
	for _, r := range folded[adopt+1:] {
		if r.tombstone() {
			continue
		}
		r.rows.scatter(target.Bytes(), r.block.Bytes(), c.width)
		memory.Copied(r.rows.Len() * c.width)
	}
	c.publish(target, folded, replaced, extent)
	return nil
}

// fold finds the buffer for the new state and brings it to where the rows of the records after adopt can be scattered into
// it. On failure nothing has changed.
func (c *Column) fold(folded []record) (target memory.Block, adopt, extent int, replaced bool, err error) {
	// The last record that covers all rows before it makes every older byte obsolete.
	extent, adopt = c.sealed.extent, -1
	for i, r := range folded {
		if !r.tombstone() && r.rows.covers(extent) {
			adopt = i
		}
		extent = max(extent, r.rows.End())
	}
	replaced = adopt >= 0
	if target, err = c.target(folded, adopt, extent); err != nil {
		return target, adopt, extent, replaced, err
	}
	if c.schema.Array {
		moved, failure := c.foldArrays(target, folded, adopt, extent)
		if failure != nil {
			target.Release()
			return target, adopt, extent, replaced, failure
		}
		replaced = replaced || moved
	}
	return target, adopt, extent, replaced, nil
}

// foldArrays appends the values of the records to the sealed arena, or to that of the adopted record, and installs it. It
// reports whether every span was rewritten.
func (c *Column) foldArrays(target memory.Block, folded []record, adopt, extent int) (moved bool, err error) {
	arena, live := c.sealed.arena, c.Sealed().Live
	if adopt >= 0 {
		arena, live = folded[adopt].arena, func(row int) bool { return row < folded[adopt].rows.End() }
	}
	arena, moved, err = c.room(target, folded[adopt+1:], arena, live, extent)
	if err != nil {
		return false, err
	}
	arena.fold(folded[adopt+1:])
	c.sealed.arena.Block.Release()
	c.sealed.arena = arena
	return moved, nil
}

// target returns the buffer that will hold the new sealed state, already holding what precedes folded[adopt+1:], and
// owned by the column alone so that it may be written to. The caller owns one reference.
func (c *Column) target(folded []record, adopt, extent int) (memory.Block, error) {
	size := extent * c.width
	if adopt >= 0 {
		b := folded[adopt].block
		used := folded[adopt].rows.End() * c.width
		if !brings(folded[adopt+1:]) {
			return b.Retain(), nil // nothing will be scattered into it
		}
		if b.Refs() == 1 && !b.Foreign() && b.Capacity() >= size {
			clear(b.Writable().Bytes()[used:size])
			return b.Retain(), nil
		}
		return c.copied(b, used, size)
	}
	old, used := c.sealed.block, c.sealed.extent*c.width
	if !old.Valid() {
		return memory.AllocZeroed(size, memory.Columns)
	}
	if !brings(folded) {
		return old.Retain(), nil // only deletes: the bytes stay as they are
	}
	if old.Refs() == 1 && !old.Foreign() && old.Capacity() >= size {
		clear(old.Writable().Bytes()[used:size])
		return old.Retain(), nil
	}
	if c.tiled(folded, extent) {
		return c.Buffer(size, false) // nothing of the old bytes is left
	}
	if i := c.refresh(size); i >= 0 {
		return c.retired[i].block.Retain(), nil
	}
	return c.copied(old, used, size)
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

// tiled reports whether the records together replace every row, as the groups of a split map do.
func (c *Column) tiled(records []record, extent int) bool {
	total := 0
	for _, r := range records {
		if r.tombstone() || c.schema.Array { // the spans of arrays say where their values are, and are needed to move them
			return false
		}
		total += r.rows.Len()
	}
	if total < extent {
		return false
	}
	named := bitset.New(extent)
	for _, r := range records {
		r.rows.mark(named)
	}
	return named.Count() == extent
}

// brings reports whether any of the records brings bytes.
func brings(records []record) bool {
	return slices.ContainsFunc(records, func(r record) bool { return !r.tombstone() })
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

// publish installs target as the sealed buffer and brings the books up to date: which rows are live, which rows the
// reusable buffers are behind by, and which records are gone. It takes over the reference to target.
func (c *Column) publish(target memory.Block, folded []record, replaced bool, extent int) {
	held := c.sealed.extent
	if c.sealed.follow(folded) {
		c.sealed.generation++
	}
	c.sealed.ordinal = max(c.sealed.ordinal, folded[len(folded)-1].ordinal)

	previous := c.sealed.block
	c.sealed.block = target
	for i := len(c.retired) - 1; i >= 0; i-- {
		if c.retired[i].block == target {
			c.retired[i].block.Release()
			c.retired = slices.Delete(c.retired, i, i+1)
		}
	}
	switch {
	case previous == target: // changed in place; drop the second reference
		target.Release()
	case previous.Valid():
		c.retire(previous, held, false)
	}
	for i := range c.retired {
		for _, r := range folded {
			if !r.tombstone() {
				c.retired[i].fallBehind(r.rows, extent, replaced)
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
			c.dismiss(r)
		}
	}
	c.records = slices.Delete(c.records, 0, len(folded))
	c.reclaim()
}

// reclaim gives up rows that were deleted, so that prims that come and go do not grow the column. It waits until they
// are a quarter of it, because whatever was looked up before has to be looked up again, and until the deletes have left
// the log of changes, which names them by row. Snapshots do not care: they hold buffers and row numbers of their own.
func (c *Column) reclaim() {
	if c.sealed.lost < minReclaim || 4*c.sealed.lost <= c.sealed.extent {
		return
	}
	if c.changes.frontier == c.tried && len(c.history) >= c.triedHistory {
		return // what stood in the way still does
	}
	c.tried, c.triedHistory = c.changes.frontier, len(c.history)
	named := bitset.New(len(c.paths))
	for _, r := range c.records {
		r.rows.mark(named)
	}
	c.changes.names(named)
	for _, s := range c.history {
		if s.live == nil {
			named.AddRange(0, s.extent)
		}
		named.Or(s.live)
	}
	unnamed := slices.Clone(c.sealed.gone)
	unnamed.AndNot(named)
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
	c.giveUp(rows)
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

// fallBehind notes that rows changed in the sealed state. Once replaying would touch half of the column a plain copy is
// as good, and the list goes.
func (b *buffer) fallBehind(rows Rows, extent int, all bool) {
	if b.stale {
		return
	}
	if b.rows += rows.Len(); all || 2*b.rows > extent || len(b.behind) == maxBehind {
		b.forget()
		b.stale = true
		return
	}
	b.behind = append(b.behind, rows.Retain())
}

// forget drops the list of changed rows.
func (b *buffer) forget() {
	for _, rows := range b.behind {
		rows.Release()
	}
	b.behind, b.rows = nil, 0
}

// follow applies records to the sets of live and deleted rows, in order, and reports whether the live rows changed.
func (s *state) follow(records []record) bool {
	before, rows, extent := bitset.Set(nil), s.rows, s.extent
	extinct := slices.ContainsFunc(records, record.tombstone)
	if extinct {
		s.open(s.extent)
		before = slices.Clone(s.live)
	}
	for _, r := range records {
		if r.tombstone() {
			s.extinguish(r.rows)
		} else {
			s.enliven(r.rows)
		}
	}
	changed := s.rows != rows || extinct && !s.live.Equal(before)
	if changed || extinct || s.extent != extent {
		s.shape++
	}
	if s.rows == s.extent {
		s.live, s.gone, s.lost = nil, nil, 0
	}
	return changed
}

// enliven marks rows as holding a value and reaches up to them. Rows that follow the last one without a gap, and rows
// that hold one already, cost nothing each when they are consecutive.
func (s *state) enliven(rows Rows) {
	start, interval := rows.Interval()
	if s.live == nil {
		if rows.End() <= s.extent {
			return
		}
		if interval && start <= s.extent {
			s.extent, s.rows = rows.End(), rows.End()
			return
		}
	}
	s.open(rows.End())
	if interval {
		s.rows += rows.Len() - s.live.CountIn(start, rows.End())
		s.live.AddRange(start, rows.End())
		if s.gone.AnyIn(start, rows.End()) {
			rows.each(s.revive)
		}
		return
	}
	rows.each(func(row int) {
		if !s.live.Has(row) {
			s.live.Add(row)
			s.rows++
		}
		s.revive(row)
	})
}

func (s *state) revive(row int) {
	if s.gone.Has(row) {
		s.gone.Remove(row)
		s.lost--
	}
}

// extinguish marks rows as deleted.
func (s *state) extinguish(rows Rows) {
	s.open(rows.End())
	s.gone = s.gone.Grow(s.extent)
	rows.each(func(row int) {
		if s.live.Has(row) {
			s.live.Remove(row)
			s.rows--
		}
		if !s.gone.Has(row) {
			s.gone.Add(row)
			s.lost++
		}
	})
}

// open tells rows apart, one bit each, from now on, and reaches up to extent; new rows start as holes.
func (s *state) open(extent int) {
	reach := max(extent, s.extent)
	if s.live == nil {
		s.live = bitset.New(reach)
		s.live.AddRange(0, s.extent)
	}
	s.live, s.extent = s.live.Grow(reach), reach
}
