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
	return sorted(rows)
}

// sorted sorts rows for a search.
func sorted(rows Rows) lookup {
	p := make(lookup, rows.Len())
	rows.Each(func(i, row int) { p[i] = entry{uint32(row), uint32(i)} })
	if !rows.ascending() {
		slices.SortFunc(p, func(a, b entry) int { return cmp.Compare(a.row, b.row) })
	}
	return p
}

// without calls f for every entry whose row is the i-th of rows, which ascend, and keeps the others. It costs what the shorter of
// the two holds, and some steps of a search for each where one is much shorter.
func (p lookup) without(rows Rows, f func(at entry, i int)) lookup {
	rest, list := p[:0], rows.List()
	search := list == nil || 16*len(p) < len(list)
	i, found := 0, false
	for _, at := range p {
		if search {
			i, found = rows.find(int(at.row))
		} else {
			for i < len(list) && list[i] < at.row {
				i++
			}
			found = i < len(list) && list[i] == at.row
		}
		if found {
			f(at, i)
		} else {
			rest = append(rest, at)
		}
	}
	return rest
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
