package column

import (
	"math"
	"slices"
)

// A held state is the newest sealed state of some moment, with references of its own. Its rows keep their prims while it is
// held: reclaim leaves them alone. Later writes find its block shared, and leave that alone too; arrays are appended behind what
// it knows of its arena.

// Hold keeps the newest sealed state until LetGo. It costs nothing per row, but for a bit of each where some hold no value.
func (c *Column) Hold() Snapshot {
	held := c.sealed
	held.full, held.none, held.filled = nil, nil, 0 // the newest state's
	held.block, held.arena.Block = held.block.Retain(), held.arena.Block.Retain()
	held.live, held.gone = slices.Clone(held.live), slices.Clone(held.gone)
	c.holds = append(c.holds, &held)
	return Snapshot{&held}
}

// LetGo ends a hold.
func (c *Column) LetGo(s Snapshot) {
	c.holds = slices.DeleteFunc(c.holds, func(held *state) bool { return held == s.state })
	s.release()
	c.triedHistory = math.MaxInt // rows that it kept may be given up
}
