package column

import (
	"ovstage.dev/ovstage/gocore/bitset"
	"ovstage.dev/ovstage/gocore/memory"
)

// fold finds the block for the new state and brings it to where the rows of the records after adopt can be scattered into
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

// target returns the block that will hold the new sealed state, already holding what precedes folded[adopt+1:], and
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
		return c.spares[i].block.Retain(), nil
	}
	return c.copied(old, used, size)
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

// foldArrays appends the values of the records to the sealed arena, or to the adopted record's arena, and installs it. It
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

// room returns the arena into which the records can be appended: the one that the spans of target point into, or, when it
// is full, a new one to which the live values have moved. It returns a reference of its own.
func (c *Column) room(target memory.Block, records []record, arena Arena, live func(row int) bool, extent int) (to Arena, moved bool, err error) {
	need := 0
	for _, r := range records {
		need += aligned(r.arena.Used)
	}
	full := aligned(arena.Used)+need > arena.Block.Capacity() || arena.Block.Guarded() && arena.Block.Refs() > 1
	if arena.Block.Valid() && (need == 0 || !full) {
		if need != 0 {
			_ = arena.Block.Writable()
		}
		arena.Block.Retain()
		return arena, false, nil
	}
	spans := Spans(target, extent)
	m := newMove(arena.Used, func(visit func(from Arena, span Span)) {
		for row, span := range spans {
			if live(row) {
				visit(arena, span)
			}
		}
	})
	to.Block, err = memory.Alloc((m.total+need)*3/2, memory.Columns)
	if err != nil {
		return Arena{}, false, err
	}
	for row := range spans {
		if live(row) {
			spans[row] = m.copy(&to, arena, spans[row])
		}
	}
	memory.Copied(to.Used)
	return to, true, nil
}

// fold appends the records' values to the arena and points the records' spans there.
func (a *Arena) fold(records []record) {
	for _, r := range records {
		if r.tombstone() || !r.arena.Block.Valid() {
			continue
		}
		base := uint64(a.append(r.arena))
		spans := Spans(r.block, r.rows.Len())
		for i := range spans {
			spans[i].Offset += base
		}
	}
}
