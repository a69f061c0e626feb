package column

import "ovstage/gocore/memory"

// Spent reports whether no state, sealed, kept or to come, shows a row of the column. Its log of changes may still tell of
// deletes.
func (c *Column) Spent() bool {
	return len(c.records) == 0 && len(c.history) == 0 && c.sealed.rows == 0
}

// Shed gives the buffers of a spent column back. It may be written to again.
func (c *Column) Shed() {
	c.sealed.release()
	c.sealed.block, c.sealed.arena = memory.Block{}, Arena{}
	for _, b := range c.retired {
		b.forget()
		b.block.Release()
	}
	c.retired = nil
}

// KeepsHistory reports whether earlier sealed states are kept.
func (c *Column) KeepsHistory() bool { return len(c.history) > 0 }
