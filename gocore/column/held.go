package column

import (
	"ovstage.dev/ovstage/gocore/memory"
	"ovstage.dev/ovstage/gocore/pathdict"
)

// Paths calls visit for the path of every row that a prim has.
func (c *Column) Paths(visit func(path uint32)) {
	for _, path := range c.paths {
		if path != pathdict.NoPath {
			visit(path)
		}
	}
}

// Payloads calls visit with the bytes of all values that a state, sealed, kept, held or to come, shows. Others may lie between them.
func (c *Column) Payloads(visit func(bytes []byte)) {
	c.payload(c.sealed.block, c.sealed.extent, c.sealed.arena, visit)
	for _, s := range c.holds {
		c.payload(s.block, s.extent, s.arena, visit)
	}
	for _, s := range c.history {
		switch {
		case s.next == nil:
			c.payload(s.block, s.extent, s.arena, visit)
		case !c.schema.Array: // arrays lie in the arena of a state that followed
			c.payload(s.undo.block, s.undo.rows.Len(), Arena{}, visit)
		}
	}
	for _, r := range c.records {
		if !r.tombstone() {
			c.payload(r.block, r.rows.Len(), r.arena, visit)
		}
	}
}

func (c *Column) payload(block memory.Block, rows int, arena Arena, visit func(bytes []byte)) {
	if c.schema.Array {
		visit(arena.Block.Bytes()[:arena.Used])
	} else {
		visit(block.Bytes()[:min(rows*c.width, block.Capacity())])
	}
}
