package column

import (
	"ovstage.dev/ovstage/gocore/bitset"
	"ovstage.dev/ovstage/gocore/memory"
)

// folding is a new sealed state on its way.
type folding struct {
	target   memory.Block // where it will lie, with a reference
	fresh    bool         // target holds nothing of the old bytes
	adopt    int          // the record whose block target began as; -1 for none
	extent   int
	replaced bool   // every row is another than before
	past     *state // the state before, where history is kept
}

// fold finds the block for the new state and brings it to where the rows of the records after adopt can be scattered into
// it. On failure nothing has changed.
func (c *Column) fold(folded []record) (f folding, err error) {
	// The last record that covers all rows before it makes every older byte obsolete.
	f.extent, f.adopt = c.sealed.extent, -1
	for i, r := range folded {
		if !r.tombstone() && r.rows.covers(f.extent) {
			f.adopt = i
		}
		f.extent = max(f.extent, r.rows.End())
	}
	f.replaced = f.adopt >= 0
	if f.target, f.fresh, err = c.target(folded, f.adopt, f.extent); err != nil {
		return f, err
	}
	if c.keep > 1 {
		if err = c.foldHistory(&f, folded); err != nil {
			f.target.Release()
			return f, err
		}
	}
	if c.schema.Array {
		moved, failure := c.foldArrays(f.target, folded, f.adopt, f.extent)
		if failure != nil {
			f.target.Release()
			if f.past != nil {
				f.past.release()
			}
			return f, failure
		}
		f.replaced = f.replaced || moved
	}
	return f, nil
}

// foldHistory keeps the state before. Arrays that are about to move get new spans, each of them: the old ones are then kept by their
// block, or by a copy where that is the target.
func (c *Column) foldHistory(f *folding, folded []record) (err error) {
	byBlock := f.fresh || !c.sealed.block.Valid()
	if c.schema.Array && !byBlock && !c.sealed.arena.takes(folded) {
		byBlock = true
		if f.target == c.sealed.block {
			own, err := memory.Alloc(f.extent*c.width, memory.Columns)
			if err != nil {
				return err
			}
			copy(own.Bytes(), f.target.Bytes()[:f.extent*c.width])
			memory.Copied(f.extent * c.width)
			f.target.Release()
			f.target = own
		}
	}
	f.past, err = c.remember(folded, byBlock)
	return err
}

// target returns the block that will hold the new sealed state, already holding what precedes folded[adopt+1:], and
// owned by the column alone so that it may be written to. It tells whether it is fresh: without any of the old bytes. The caller
// owns one reference.
func (c *Column) target(folded []record, adopt, extent int) (target memory.Block, fresh bool, err error) {
	size := extent * c.width
	if adopt >= 0 {
		b := folded[adopt].block
		used := folded[adopt].rows.End() * c.width
		if !brings(folded[adopt+1:]) {
			return b.Retain(), true, nil // nothing will be scattered into it
		}
		if b.Refs() == 1 && !b.Foreign() && b.Capacity() >= size {
			clear(b.Writable().Bytes()[used:size])
			return b.Retain(), true, nil
		}
		target, err = c.copied(b, used, size)
		return target, true, err
	}
	old, used := c.sealed.block, c.sealed.extent*c.width
	if !old.Valid() {
		target, err = memory.AllocZeroed(size, memory.Columns)
		return target, true, err
	}
	if !brings(folded) {
		return old.Retain(), false, nil // only deletes: the bytes stay as they are
	}
	if old.Refs() == 1 && !old.Foreign() && old.Capacity() >= size {
		clear(old.Writable().Bytes()[used:size])
		return old.Retain(), false, nil
	}
	if c.tiled(folded, extent) {
		target, err = c.Buffer(size, false)
		return target, true, err
	}
	if i := c.refresh(size); i >= 0 {
		return c.spares[i].block.Retain(), false, nil
	}
	target, err = c.copied(old, used, size)
	return target, false, err
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
	need := needed(records)
	if arena.takes(records) {
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

// takes reports whether the values of records can be appended to the arena.
func (a Arena) takes(records []record) bool {
	need := needed(records)
	full := aligned(a.Used)+need > a.Block.Capacity() || a.Block.Guarded() && a.Block.Refs() > 1
	return a.Block.Valid() && (need == 0 || !full)
}

// needed is the bytes that the values of records take in an arena.
func needed(records []record) (total int) {
	for _, r := range records {
		total += aligned(r.arena.Used)
	}
	return total
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
