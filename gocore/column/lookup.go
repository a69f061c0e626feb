package column

import (
	"cmp"
	"slices"
)

type place struct{ row, position uint32 }

// places finds the positions at which scattered rows are listed.
type places []place

// newPlaces sorts rows for a search; without records there will be none.
func newPlaces(rows Rows, records []record) places {
	if len(records) == 0 {
		return nil
	}
	p := make(places, rows.Len())
	for i, row := range rows.List() {
		p[i] = place{row, uint32(i)}
	}
	slices.SortFunc(p, func(a, b place) int { return cmp.Compare(a.row, b.row) })
	return p
}

// each calls f for every place of a row that is listed as the i-th of rows.
func (p places) each(rows Rows, f func(at place, i int)) {
	if start, interval := rows.Interval(); interval {
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
func (p places) overlay(dst []byte, records []record, width int) {
	put := func(at place, r record, i int) {
		cell := dst[int(at.position)*width : (int(at.position)+1)*width]
		if r.tombstone() {
			clear(cell)
		} else {
			copy(cell, r.block.Bytes()[i*width:(i+1)*width])
		}
	}
	for _, r := range records {
		p.each(r.rows, func(at place, i int) { put(at, r, i) })
	}
}

// from returns the places of rows from row on.
func (p places) from(row int) places {
	i, _ := slices.BinarySearchFunc(p, uint32(row), func(a place, row uint32) int { return cmp.Compare(a.row, row) })
	return p[i:]
}
