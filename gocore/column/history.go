package column

import "slices"

// KeepHistory keeps the states as of the last n sealed ordinals readable: every N with floor-n < N <= floor. Each state
// costs a block of its own for as long as it is kept.
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
	return Snapshot{&c.history[i]}
}

// Kept reports whether the state as of an ordinal is readable, given the floor.
func (c *Column) Kept(ordinal, floor uint64) bool {
	return ordinal >= c.sealed.ordinal || c.keep > 0 && ordinal >= c.oldest(floor) && len(c.history) > 0 && c.history[0].ordinal <= ordinal
}

// Prune drops the states that the floor has left behind.
func (c *Column) Prune(floor uint64) {
	n := 0
	for n < len(c.history) && c.following(n) <= c.oldest(floor) {
		n++
	}
	c.releaseHistory(n)
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

// remember keeps the sealed state that is about to be replaced.
func (c *Column) remember() {
	if c.keep < 2 {
		return
	}
	s := c.sealed
	s.block, s.arena.Block = s.block.Retain(), s.arena.Block.Retain()
	s.live, s.gone = slices.Clone(s.live), slices.Clone(s.gone)
	c.history = append(c.history, s)
}

func (c *Column) releaseHistory(n int) {
	for i := range c.history[:n] {
		c.history[i].release()
	}
	c.history = slices.Delete(c.history, 0, n)
}
