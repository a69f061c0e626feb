package column

import "ovstage/gocore/memory"

// Compose writes into dst, packed in the order of rows, the newest value of each row at or below ordinal, sealed or not;
// a row that has none, or was deleted, gets zeros. Rows may reach beyond those that exist.
//
// For an interval it costs one copy of what it covers plus the records above; for scattered rows with unsealed records it
// goes through a copy of the column.
func (c *Column) Compose(dst []byte, rows Rows, ordinal uint64) error {
	if start, ok := rows.Interval(); ok {
		c.compose(dst[:rows.Len()*c.width], start, rows.End(), ordinal)
		return nil
	}
	if len(c.upTo(ordinal)) == 0 && c.Sealed().Dense(rows.End()) {
		rows.Gather(dst, c.sealed.block.Bytes(), c.width)
		memory.Copied(rows.Len() * c.width)
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

// compose writes the values of rows [start, end) at ordinal into dst.
func (c *Column) compose(dst []byte, start, end int, ordinal uint64) {
	records := c.upTo(ordinal)
	first := 0
	for i := len(records) - 1; i >= 0; i-- {
		if from, ok := records[i].rows.Interval(); ok && !records[i].tombstone() && from <= start && records[i].rows.End() >= end {
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
	stop := max(start, min(end, c.sealed.extent))
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

// upTo returns the records at or below ordinal.
func (c *Column) upTo(ordinal uint64) []record {
	n := len(c.records)
	for n > 0 && c.records[n-1].ordinal > ordinal {
		n--
	}
	return c.records[:n]
}

// overlay writes those rows of r that fall into [start, end) over dst.
func overlay(dst []byte, start, end int, r record, width int) {
	if r.tombstone() {
		r.rows.each(func(row int) {
			if row >= start && row < end {
				clear(dst[(row-start)*width : (row-start+1)*width])
			}
		})
		return
	}
	src := r.block.Bytes()
	if from, ok := r.rows.Interval(); ok {
		lo, hi := max(from, start), min(r.rows.End(), end)
		if lo < hi {
			copy(dst[(lo-start)*width:(hi-start)*width], src[(lo-from)*width:])
			memory.Copied((hi - lo) * width)
		}
		return
	}
	for i, row := range r.rows.List() {
		if int(row) >= start && int(row) < end {
			copy(dst[(int(row)-start)*width:(int(row)-start+1)*width], src[i*width:])
		}
	}
}
