package column

import (
	"slices"

	"ovstage.dev/ovstage/gocore/memory"
)

// Compose writes into dst, packed in the order of rows, the newest value of each row at or below ordinal, sealed or not;
// a row that has none, or was deleted, gets zeros. Rows may reach beyond those that exist.
//
// For a run it costs one copy of what it covers plus the records above; for scattered rows it costs what they hold, unless
// they are a large part of a column with unsealed records, which is then copied whole.
func (c *Column) Compose(dst []byte, rows Rows, ordinal uint64) error {
	if start, ok := rows.Run(); ok {
		c.compose(dst[:rows.Len()*c.width], start, rows.End(), ordinal)
		return nil
	}
	records := c.upTo(ordinal)
	if 8*rows.Len() < len(c.paths) || len(records) == 0 {
		c.pick(dst, rows)
		newLookup(rows, records).overlay(dst, records, c.width)
		return nil
	}
	whole, err := memory.Alloc(rows.End()*c.width, memory.Maps)
	if err != nil {
		return err
	}
	defer whole.Release()
	c.compose(whole.Bytes()[:rows.End()*c.width], 0, rows.End(), ordinal)
	rows.Gather(dst, whole.Bytes(), c.width)
	memory.Copied(rows.Len() * c.width)
	return nil
}

// Draft returns a block that starts with what Compose writes. Where the rows are the whole column, and a block that held an
// earlier sealed state is free, only what changed since is copied.
func (c *Column) Draft(rows Rows, ordinal uint64) (memory.Block, error) {
	size := rows.Len() * c.width
	if rows.covers(len(c.paths)) && c.sealed.live == nil && c.sealed.block.Valid() {
		if i := c.refresh(size); i >= 0 {
			block := c.spares[i].block
			c.spares = slices.Delete(c.spares, i, i+1)
			for _, r := range c.upTo(ordinal) {
				overlay(block.Bytes(), 0, rows.End(), r, c.width)
			}
			return block, nil
		}
	}
	block, err := c.Buffer(size, false)
	if err != nil {
		return block, err
	}
	if err := c.Compose(block.Bytes(), rows, ordinal); err != nil {
		block.Release()
		return memory.Block{}, err
	}
	return block, nil
}

// Values returns the values of rows, in their order, as of an ordinal: the newest at or below it, sealed or not. A row
// without one has nil. They are valid until the column changes.
func (c *Column) Values(rows Rows, ordinal uint64) [][]byte {
	values := make([][]byte, rows.Len())
	if c.sealed.block.Valid() {
		spans := Spans(c.sealed.block, c.sealed.extent)
		rows.Each(func(i, row int) {
			if c.Sealed().Live(row) {
				values[i] = spans[row].of(c.sealed.arena)
			}
		})
	}
	put := func(i int, r record, k int) {
		values[i] = nil
		if !r.tombstone() {
			values[i] = Spans(r.block, r.rows.Len())[k].of(r.arena)
		}
	}
	records := c.upTo(ordinal)
	start, run := rows.Run()
	p := lookup(nil)
	if !run {
		p = newLookup(rows, records)
	}
	for _, r := range records {
		if run {
			r.rows.eachIn(start, rows.End(), func(k, row int) { put(row-start, r, k) })
		} else {
			p.each(r.rows, func(at entry, k int) { put(int(at.index), r, k) })
		}
	}
	return values
}

// pick writes the sealed values of scattered rows, zeros where there are none.
func (c *Column) pick(dst []byte, rows Rows) {
	sealed := c.Sealed()
	memory.Copied(rows.Len() * c.width)
	if sealed.Dense(rows.End()) {
		rows.Gather(dst, sealed.block.Bytes(), c.width)
		return
	}
	for i, row := range rows.List() {
		cell := dst[i*c.width : (i+1)*c.width]
		if sealed.Live(int(row)) {
			copy(cell, sealed.block.Bytes()[int(row)*c.width:])
		} else {
			clear(cell)
		}
	}
}

// compose writes the values of rows [start, end) at ordinal into dst.
func (c *Column) compose(dst []byte, start, end int, ordinal uint64) {
	records := c.upTo(ordinal)
	first := 0
	for i := len(records) - 1; i >= 0; i-- {
		if from, ok := records[i].rows.Run(); ok && !records[i].tombstone() && from <= start && records[i].rows.End() >= end {
			copy(dst, records[i].block.Bytes()[(start-from)*c.width:])
			memory.Copied(len(dst))
			first = i + 1
			break
		}
	}
	if first == 0 {
		c.base(dst, start, end)
	}
	for _, r := range records[first:] {
		overlay(dst, start, end, r, c.width)
	}
}

// base writes the sealed values of rows [start, end), zeros where there are none.
func (c *Column) base(dst []byte, start, end int) {
	stop := start
	if c.sealed.block.Valid() {
		stop = max(start, min(end, c.sealed.extent))
	}
	if stop > start {
		copy(dst, c.sealed.block.Bytes()[start*c.width:stop*c.width])
		memory.Copied((stop - start) * c.width)
	}
	clear(dst[(stop-start)*c.width:])
	if c.sealed.live == nil {
		return
	}
	for row := start; row < stop; row++ {
		if !c.Sealed().Live(row) {
			clear(dst[(row-start)*c.width : (row-start+1)*c.width])
		}
	}
}
