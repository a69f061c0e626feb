package column

import (
	"slices"

	"ovstage.dev/ovstage/gocore/bitset"
)

// changes remembers which rows changed at which sealed ordinal. Recent changes are kept one by one, as the row sets that
// the writes named; older ones are folded into the latest change of each row, so that memory and time stay flat however
// long a stage runs. Membership is exact from frontier on: below it, a change that a later one followed is forgotten.
type changes struct {
	log      []change // ascending by ordinal
	listed   int      // rows that log lists
	frontier uint64   // highest folded ordinal; 0 when nothing was folded

	// The latest folded change of each row: since for rows [0, uniform), or, where latest has rows, what it says.
	since   uint64
	uniform int
	latest  latest
}

type change struct {
	ordinal uint64
	rows    Rows
}

// add notes a sealed change. live is the number of live rows.
func (c *changes) add(ordinal uint64, rows Rows, live int) {
	c.log = append(c.log, change{ordinal, rows.Retain()})
	c.listed += c.log[len(c.log)-1].weight()
	if len(c.log) > maxChanges || c.listed > max(minListed, 4*live) {
		c.fold(len(c.log) / 2)
	}
}

// between adds to set the rows that changed in [start, end], as far as is known, and returns the highest ordinal of such a
// change.
func (c *changes) between(start, end uint64, set *bitset.Sparse) (last uint64) {
	switch {
	case c.frontier < start || start > end:
	case c.latest.rows != nil:
		c.latest.between(max(start, 1), end, func(row int, ordinal uint64) {
			set.Add(row)
			last = max(last, ordinal)
		})
	case c.since >= start && c.since <= end && c.uniform > 0:
		set.AddRange(0, c.uniform)
		last = c.since
	}
	first, _ := slices.BinarySearchFunc(c.log, start, func(ch change, start uint64) int {
		if ch.ordinal < start {
			return -1
		}
		return 1
	})
	var added Rows
	for _, ch := range c.log[first:] {
		if ch.ordinal > end {
			break
		}
		if !ch.rows.same(added) { // the steady frame writes the same rows again
			ch.rows.addTo(set)
			added = ch.rows
		}
		last = ch.ordinal
	}
	return last
}

// names reports, by row, the changes that a range from the frontier on must tell.
func (c *changes) names(set *bitset.Sparse) {
	for _, ch := range c.log {
		ch.rows.addTo(set)
	}
	c.between(c.frontier, Latest, set)
}

// last is the highest ordinal of a change to one of rows, 0 when none is known.
func (c *changes) last(rows bitset.Set) (ordinal uint64) {
	for i := len(c.log) - 1; i >= 0; i-- {
		if c.log[i].rows.Any(rows) {
			return c.log[i].ordinal
		}
	}
	if c.latest.rows == nil && rows.AnyIn(0, c.uniform) {
		return c.since
	}
	rows.EachIn(0, len(c.latest.rows), func(row int) { ordinal = max(ordinal, c.latest.rows[row]) })
	return ordinal
}

// forget drops what is known of rows that are given up.
func (c *changes) forget(rows []uint32) {
	if len(rows) == 0 || c.uniform == 0 && c.latest.rows == nil {
		return
	}
	c.spread(int(slices.Max(rows)) + 1)
	for _, row := range rows {
		c.latest.forget(int(row))
	}
}

func (c *changes) close() {
	for _, ch := range c.log {
		ch.rows.Release()
	}
	*c = changes{}
}

// weight is what a change costs to keep: a run costs next to nothing.
func (c change) weight() int {
	if _, run := c.rows.Run(); run {
		return 1
	}
	return c.rows.Len()
}

// fold forgets the n oldest changes but for the latest of each row. Of changes to the same rows, the common case, only the
// last one counts.
func (c *changes) fold(n int) {
	last := make(map[Rows]int, n)
	for i, ch := range c.log[:n] {
		last[ch.rows] = i
	}
	for i, ch := range c.log[:n] {
		switch {
		case last[ch.rows] != i:
		case ch.rows.covers(max(c.uniform, len(c.latest.rows))):
			c.since, c.uniform, c.latest = ch.ordinal, ch.rows.End(), latest{}
		default:
			c.spread(ch.rows.End())
			ch.rows.each(func(row int) { c.latest.set(row, ch.ordinal) })
		}
		c.frontier = ch.ordinal
		c.listed -= ch.weight()
	}
	for _, ch := range c.log[:n] {
		ch.rows.Release()
	}
	c.log = slices.Delete(c.log, 0, n)
}

// spread tells the rows' latest changes apart and makes room for rows.
func (c *changes) spread(rows int) {
	apart := c.latest.rows != nil
	c.latest.grow(max(rows, c.uniform))
	for row := 0; !apart && row < c.uniform; row++ {
		c.latest.set(row, c.since)
	}
}
