package column

import (
	"cmp"
	"slices"
)

type entry struct{ row, index uint32 }

// lookup finds the indices at which scattered rows are listed. It is sorted by row.
type lookup []entry

// newLookup sorts rows for a search; without records nothing will be searched.
func newLookup(rows Rows, records []record) lookup {
	if len(records) == 0 {
		return nil
	}
	p := make(lookup, rows.Len())
	for i, row := range rows.List() {
		p[i] = entry{row, uint32(i)}
	}
	slices.SortFunc(p, func(a, b entry) int { return cmp.Compare(a.row, b.row) })
	return p
}

// each calls f for every entry whose row is the i-th of rows.
func (p lookup) each(rows Rows, f func(at entry, i int)) {
	if start, run := rows.Run(); run {
		for _, at := range p.from(start) {
			if int(at.row) >= rows.End() {
				break
			}
			f(at, int(at.row)-start)
		}
		return
	}
	for i, row := range rows.List() {
		for _, at := range p.from(int(row)) {
			if at.row != row {
				break
			}
			f(at, i)
		}
	}
}

// overlay writes what records hold of the rows over dst.
func (p lookup) overlay(dst []byte, records []record, width int) {
	put := func(at entry, r record, i int) {
		cell := dst[int(at.index)*width : (int(at.index)+1)*width]
		if r.tombstone() {
			clear(cell)
		} else {
			copy(cell, r.block.Bytes()[i*width:(i+1)*width])
		}
	}
	for _, r := range records {
		p.each(r.rows, func(at entry, i int) { put(at, r, i) })
	}
}

// from returns the entries of rows from row on.
func (p lookup) from(row int) lookup {
	i, _ := slices.BinarySearchFunc(p, uint32(row), func(a entry, row uint32) int { return cmp.Compare(a.row, row) })
	return p[i:]
}
