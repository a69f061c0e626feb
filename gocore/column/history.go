package column

import (
	"slices"

	"ovstage.dev/ovstage/gocore/memory"
)

// An earlier state is kept as the way back to it: for each sealed ordinal, what the rows that it changed held before, newest last.
// So a seal, and what it keeps alive, cost what was changed. Where a seal replaced everything, the state before it is kept by its
// block. A few rows of an earlier state are gathered; for many the whole state is made again.

// KeepHistory keeps the states as of the last n sealed ordinals readable: every N with floor-n < N <= floor.
func (c *Column) KeepHistory(n uint64, floor uint64) {
	c.keep = n
	c.Prune(floor)
}

// KeepsHistory reports whether earlier sealed states are kept.
func (c *Column) KeepsHistory() bool { return len(c.history) > 0 }

// At returns the state as of an ordinal, or the oldest that is kept.
func (c *Column) At(ordinal uint64) Snapshot {
	if ordinal >= c.sealed.ordinal || len(c.history) == 0 {
		return c.Sealed()
	}
	i := len(c.history) - 1
	for i > 0 && c.history[i].ordinal > ordinal {
		i--
	}
	return Snapshot{c.history[i]}
}

// Kept reports whether the state as of an ordinal is readable, given the floor.
func (c *Column) Kept(ordinal, floor uint64) bool {
	return ordinal >= c.sealed.ordinal || c.keep > 0 && ordinal >= c.oldest(floor) && len(c.history) > 0 && c.history[0].ordinal <= ordinal
}

// Few reports whether so many rows of an earlier state are gathered (Pack), rather than looked for in the whole (Make).
func Few(rows, extent int) bool { return rows <= extent/perFew }

// perFew says how few rows are few: one of so many that the column has, at most.
const perFew = 64

// Make returns an earlier state with a block of its rows. The column keeps what it made for the next question, until the
// floor passes on. The newest state is returned as it is. The error is an *memory.OutOfMemory.
func (c *Column) Make(s Snapshot) (Snapshot, error) {
	if s.next == nil {
		return s, nil
	}
	if c.made.of != s.state {
		made, err := c.build(s.state)
		if err != nil {
			return s, err
		}
		c.forgetMade()
		c.made = made
	}
	return Snapshot{&c.made.state}, nil
}

// Pack returns the bytes of rows of a state, in their order: of arrays their spans, which lie in its Arena. The caller owns
// it. It costs what it returns and a look at each seal since.
func (c *Column) Pack(s Snapshot, rows Rows, purpose memory.Purpose) (memory.Block, error) {
	block, err := memory.Alloc(rows.Len()*c.width, purpose)
	if err != nil {
		return block, err
	}
	if !c.schema.Array { // spans describe, they are no values
		memory.Copied(rows.Len() * c.width)
	}
	if s.next == nil {
		rows.Gather(block.Bytes(), s.block.Bytes(), c.width)
		return block, nil
	}
	take := func(at entry, from []byte, i int) {
		copy(block.Bytes()[int(at.index)*c.width:int(at.index+1)*c.width], from[i*c.width:])
	}
	left, base := sorted(rows), s.state
	for ; base.next != nil && len(left) > 0; base = base.next {
		if err := base.undo.sort(); err != nil {
			block.Release()
			return memory.Block{}, err
		}
		left = left.without(base.undo.rows, func(at entry, i int) { take(at, base.undo.block.Bytes(), i) })
	}
	for _, at := range left {
		take(at, base.block.Bytes(), int(at.row))
	}
	return block, nil
}

// build makes a state again: from the nearest one after it that has a block, back through what was changed since.
func (c *Column) build(s *state) (made, error) {
	var back []*state
	base := s
	for base.next != nil && base != c.made.of {
		back = append(back, base)
		base = base.next
	}
	if base == c.made.of {
		base = &c.made.state
	}
	size := base.extent * c.width
	block, err := memory.Alloc(size, memory.Columns)
	if err != nil {
		return made{}, err
	}
	if base.block.Valid() {
		copy(block.Bytes(), base.block.Bytes()[:size])
		memory.Copied(size)
	}
	for _, step := range slices.Backward(back) {
		step.undo.rows.scatter(block.Bytes(), step.undo.block.Bytes(), c.width)
	}
	m := made{state: *s, of: s}
	m.next, m.undo, m.block = nil, undo{}, block
	m.arena.Block = base.arena.Block.Retain()
	if s.rows < s.extent {
		m.mark(base, back)
	}
	m.mustBeWhole(len(c.paths), c.width)
	return m, nil
}

// mark finds out which rows held a value and which were deleted. Rows that were given up since are not asked about.
func (m *made) mark(base *state, back []*state) {
	m.live, m.gone = Snapshot{base}.AllLive().Grow(m.extent), slices.Clone(base.gone).Grow(m.extent)
	for _, step := range slices.Backward(back) {
		u := step.undo
		m.live, m.gone = m.live.Grow(u.rows.End()), m.gone.Grow(u.rows.End())
		u.rows.Each(func(i, row int) {
			m.live.Put(row, u.live == nil || u.live.Has(i))
			m.gone.Put(row, u.gone.Has(i))
		})
	}
	m.live, m.gone = m.live.Below(m.extent), m.gone.Below(m.extent)
	m.lost = m.gone.Count()
}

// forgetMade lets go of the state that was made last.
func (c *Column) forgetMade() {
	if c.made.of == nil {
		return
	}
	c.made.release()
	c.made = made{}
}

// Prune drops the states that the floor has left behind.
func (c *Column) Prune(floor uint64) {
	n := 0
	for n < len(c.history) && c.following(n) <= c.oldest(floor) {
		n++
	}
	c.dropHistory(0, n)
}

// oldest is the lowest ordinal whose state is kept.
func (c *Column) oldest(floor uint64) uint64 {
	if c.keep == 0 {
		return floor
	}
	return floor - min(floor, c.keep-1)
}

// following is the ordinal from which the state after history[i] holds.
func (c *Column) following(i int) uint64 {
	if i+1 < len(c.history) {
		return c.history[i+1].ordinal
	}
	return c.sealed.ordinal
}

// remember returns the sealed state for the history, as it is before records change it: by its block where nothing of that is
// overwritten, else by what they change.
func (c *Column) remember(folded []record, byBlock bool) (*state, error) {
	past := c.sealed
	past.full, past.none, past.filled = nil, nil, 0 // the newest state's
	if byBlock {
		past.block, past.arena.Block = past.block.Retain(), past.arena.Block.Retain()
		past.live, past.gone = slices.Clone(past.live), slices.Clone(past.gone)
		return &past, nil
	}
	rows, err := c.changing(folded)
	if err != nil {
		return nil, err
	}
	u := undo{rows: rows, width: c.width}
	if u.block, err = memory.Alloc(rows.Len()*c.width, memory.Columns); err != nil {
		rows.Release()
		return nil, err
	}
	rows.Gather(u.block.Bytes(), past.block.Bytes(), c.width)
	memory.Copied(rows.Len() * c.width)
	if past.live != nil {
		u.live, u.gone = past.live.Gather(rows.Len(), rows.at), past.gone.Gather(rows.Len(), rows.at)
	}
	past.block, past.arena.Block, past.live, past.gone = memory.Block{}, memory.Block{}, nil, nil
	past.next, past.undo = &c.sealed, u
	return &past, nil
}

// changing returns the rows of the sealed state that records name: those of a single write share its list.
func (c *Column) changing(folded []record) (Rows, error) {
	extent := c.sealed.extent
	if rows := folded[0].rows; len(folded) == 1 && rows.End() <= extent {
		return rows.Retain(), nil
	}
	named := &c.asked.undone
	named.Reset(len(c.paths))
	for _, r := range folded {
		r.rows.addTo(named)
	}
	n := named.CountIn(0, extent)
	index, err := memory.Alloc(4*n, memory.Indices)
	if err != nil {
		return Rows{}, err
	}
	list := index.Uint32s(n)[:0]
	named.EachIn(0, extent, func(row int) { list = append(list, uint32(row)) })
	return Indexed(index, n), nil
}

// enterHistory puts what remember returned behind the other states.
func (c *Column) enterHistory(past *state) {
	if last := len(c.history) - 1; last >= 0 && c.history[last].next != nil {
		c.history[last].next = past
	}
	c.history = append(c.history, past)
	if past.next == nil {
		c.blocks++
	}
}

// join takes the newest state out of the history, which no ordinal shows any more: the one before it now precedes the sealed
// state. Without memory for that it stays, as a step on the way back.
func (c *Column) join() {
	n := len(c.history)
	last := c.history[n-1]
	if n > 1 && c.history[n-2].next != nil {
		before := c.history[n-2]
		if last.next == nil {
			whole, err := c.build(before)
			if err != nil {
				return
			}
			before.release()
			*before = whole.state
			c.blocks++
		} else {
			both, err := before.undo.joined(&last.undo, before.extent)
			if err != nil {
				return
			}
			before.undo.release()
			before.undo, before.next = both, last.next
		}
	}
	c.dropHistory(n-1, n)
}

func (c *Column) dropHistory(from, to int) {
	for _, past := range c.history[from:to] {
		if past.next == nil {
			c.blocks--
		}
		if c.made.of == past {
			c.forgetMade()
		}
		past.release()
	}
	c.history = slices.Delete(c.history, from, to)
}
