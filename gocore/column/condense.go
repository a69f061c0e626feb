package column

import (
	"slices"

	"ovstage.dev/ovstage/gocore/bitset"
	"ovstage.dev/ovstage/gocore/memory"
)

// Of many records of one ordinal only the last state of each row can be seen: by readers once the ordinal is sealed, before
// by maps, clones and passes that start from it. So when they weigh more than a few times the column, they become two: the
// values, and the deletes. Other ordinals keep theirs. The rows that condensing copies are paid for by the writes since
// the last time, about once more each.

// heavy reports whether the records of an ordinal up to one of them are worth condensing.
func (c *Column) heavy(last record) bool {
	return last.weight > minCondensed+2*max(len(c.paths)*(c.width+4), last.condensed)
}

// condense makes two records of those of an ordinal, of which last is the index of the last. Where there is no memory for two
// more the records stay as they are.
func (c *Column) condense(last int) {
	first, ordinal := last, c.records[last].ordinal
	for first > 0 && c.records[first-1].ordinal == ordinal {
		first--
	}
	if first == last {
		return
	}
	made, err := c.condensed(c.records[first : last+1])
	if err != nil {
		c.records[last].condensed = c.records[last].weight // not again at the next write
		return
	}
	weight := 0
	for i := range made {
		made[i].ordinal = ordinal
		if made[i].tombstone() {
			c.tombstones++
		}
		weight += made[i].size()
		made[i].weight, made[i].condensed = weight, weight
	}
	old := slices.Clone(c.records[first : last+1])
	c.records = slices.Replace(c.records, first, last+1, made...)
	for _, r := range old {
		if r.block.Valid() && r.block == made[0].block {
			r.block.Release() // it has taken in the others
			r.rows.Release()
		} else {
			c.releaseRecord(r)
		}
	}
	clear(c.rewritten.rows)
}

// condensed returns what the records of one ordinal come to. It may write later values into an earlier record, which
// no reader can see.
func (c *Column) condensed(run []record) (made []record, err error) {
	defer func() {
		for _, r := range made {
			if err != nil {
				r.rows.Release()
				r.block.Release()
				r.arena.Block.Release()
			}
		}
	}()
	extent := 0
	for _, r := range run {
		extent = max(extent, r.rows.End())
	}
	written, deleted := bitset.New(extent), bitset.New(extent)
	for _, r := range run {
		if r.tombstone() {
			r.rows.mark(deleted)
			r.rows.each(written.Remove)
		} else {
			r.rows.mark(written)
			r.rows.each(deleted.Remove)
		}
	}
	if written.AnyIn(0, extent) {
		values := record{}
		if values.rows, err = listed(written); err != nil {
			return made, err
		}
		if c.schema.Array {
			values.block, values.arena, err = c.lastArrays(run, values.rows)
		} else {
			values.block, err = c.lastValues(run, values.rows)
		}
		made = append(made, values)
		if err != nil {
			return made, err
		}
	}
	if deleted.AnyIn(0, extent) {
		deletes := record{}
		deletes.rows, err = listed(deleted)
		made = append(made, deletes)
	}
	return made, err
}

// listed returns the rows of a set. The caller owns the list.
func listed(set bitset.Set) (Rows, error) {
	n := set.Count()
	index, err := memory.Alloc(4*n, memory.Indices)
	if err != nil {
		return Rows{}, err
	}
	set.AppendTo(index.Uint32s(n)[:0], 64*len(set))
	return Indexed(index, n), nil
}

// lastValues packs the last value of each of rows. A record that covers all of them and whose block nothing else holds takes
// in what comes after it.
func (c *Column) lastValues(run []record, rows Rows) (memory.Block, error) {
	end, from := 0, 0
	for i, r := range run {
		end = max(end, r.rows.End())
		if !r.tombstone() && r.rows.covers(end) {
			from = i
		}
	}
	first := run[from]
	var whole memory.Block
	if !first.tombstone() && first.rows.covers(end) && first.block.Refs() == 1 && !first.block.Foreign() {
		whole = first.block.Retain()
		from++
	} else {
		var err error
		if whole, err = c.Buffer(end*c.width, false); err != nil {
			return whole, err
		}
	}
	for _, r := range run[from:] {
		if !r.tombstone() {
			r.rows.scatter(whole.Bytes(), r.block.Bytes(), c.width)
			memory.Copied(r.rows.Len() * c.width)
		}
	}
	if rows.covers(rows.End()) {
		return whole, nil
	}
	defer whole.Release()
	packed, err := memory.Alloc(rows.Len()*c.width, memory.Columns)
	if err == nil {
		rows.Gather(packed.Bytes(), whole.Bytes(), c.width)
		memory.Copied(rows.Len() * c.width)
	}
	return packed, err
}

// lastArrays packs the last array of each of rows, and their spans.
func (c *Column) lastArrays(run []record, rows Rows) (block memory.Block, arena Arena, err error) {
	source, last := make([]uint32, rows.End()), make([]Span, rows.End())
	used := 0
	for k, r := range run {
		if r.tombstone() {
			continue
		}
		used += r.arena.Used
		spans := Spans(r.block, r.rows.Len())
		r.rows.eachIn(0, rows.End(), func(i, row int) { source[row], last[row] = uint32(k), spans[i] })
	}
	if block, err = memory.Alloc(rows.Len()*SpanSize, memory.Columns); err != nil {
		return block, arena, err
	}
	spans, m := Spans(block, rows.Len()), newMove(used, func(visit func(from Arena, span Span)) {
		rows.each(func(row int) { visit(run[source[row]].arena, last[row]) })
	})
	if arena.Block, err = memory.Alloc(m.total, memory.Columns); err != nil {
		return block, arena, err
	}
	rows.Each(func(i, row int) { spans[i] = m.copy(&arena, run[source[row]].arena, last[row]) })
	memory.Copied(arena.Used)
	return block, arena, nil
}
