package column

import (
	"slices"

	"ovstage.dev/ovstage/gocore/bitset"
	"ovstage.dev/ovstage/gocore/invariants"
	"ovstage.dev/ovstage/gocore/memory"
	"ovstage.dev/ovstage/gocore/tensor"
)

// Rows names rows of a column in the order in which a payload lists them: either the run [start, start+n) or an
// explicit list. The list lives off the Go heap because read groups hand the very same array to clients as an index
// map. A Rows value does not own its list by itself: Retain and Release keep it alive and let it go.
type Rows struct {
	start int
	n     int
	end   int // one past the highest row; 0 when empty
	index memory.Block

	order order
}

// order is what is known of a list. It is a whole word: Rows are keys of maps, which are slower where a struct has gaps.
type order int

const (
	anyOrder order = iota
	rising         // each row once, ascending
)

// Run returns the rows [start, start+n).
func Run(start, n int) Rows {
	if n == 0 {
		return Rows{}
	}
	return Rows{start: start, n: n, end: start + n}
}

// Indexed returns the rows that index lists and takes over the caller's reference to it. Rows that turn out to be
// consecutive become a run and the list is released.
func Indexed(index memory.Block, n int) Rows {
	list := index.Uint32s(n)
	end, consecutive, found := 0, true, rising
	for i, row := range list {
		consecutive = consecutive && int(row) == int(list[0])+i
		if int(row) < end {
			found = anyOrder
		}
		end = max(end, int(row)+1)
	}
	if consecutive {
		start := 0
		if n > 0 {
			start = int(list[0])
		}
		index.Release()
		return Run(start, n)
	}
	return Rows{n: n, end: end, index: index, order: found}
}

// Rising returns the rows that index lists, which are known to ascend and not to be consecutive. It looks at the last one only, and
// takes over the caller's reference.
func Rising(index memory.Block, n int) Rows {
	return Rows{n: n, end: int(index.Uint32s(n)[n-1]) + 1, index: index, order: rising}
}

// Len is the number of listed rows; a row that is listed twice counts twice.
func (r Rows) Len() int { return r.n }

// End is one past the highest listed row.
func (r Rows) End() int { return r.end }

// Run reports whether the rows are consecutive, and where they start.
func (r Rows) Run() (start int, ok bool) { return r.start, !r.index.Valid() }

// Index is the off-heap list, invalid for a run; it holds Len entries.
func (r Rows) Index() memory.Block { return r.index }

// List is the explicit list, nil for a run.
func (r Rows) List() []uint32 {
	if !r.index.Valid() {
		return nil
	}
	return r.index.Uint32s(r.n)
}

// Retain adds a reference to the list and returns r.
func (r Rows) Retain() Rows {
	if r.index.Valid() {
		r.index.Retain()
	}
	return r
}

// Release drops a reference to the list.
func (r Rows) Release() {
	if r.index.Valid() {
		r.index.Release()
	}
}

// Each calls f for every listed row, in order.
func (r Rows) Each(f func(i, row int)) {
	i := 0
	r.each(func(row int) {
		f(i, row)
		i++
	})
}

// Any reports whether any of the rows is in a set.
func (r Rows) Any(set bitset.Set) bool {
	if start, run := r.Run(); run {
		return set.AnyIn(start, r.end)
	}
	return slices.ContainsFunc(r.List(), func(row uint32) bool { return set.Has(int(row)) })
}

// Where returns the rows for which wanted, in their order, is true: as an explicit list off the heap or a run. The
// caller owns it.
func (r Rows) Where(wanted []bool) (Rows, error) {
	index, err := memory.Alloc(4*r.n, memory.Indices)
	if err != nil {
		return Rows{}, err
	}
	list, n, i := index.Uint32s(r.n), 0, 0
	r.each(func(row int) {
		if wanted[i] {
			list[n] = uint32(row)
			n++
		}
		i++
	})
	return Indexed(index, n), nil
}

// Gather packs the named rows of src into dst.
func (r Rows) Gather(dst, src []byte, width int) {
	r.mustLie(src, width)
	mustHold(dst, r.n, width)
	if r.index.Valid() {
		tensor.GatherRows(dst, src, r.List(), width)
		return
	}
	copy(dst, src[r.start*width:r.end*width])
}

// covers reports whether the rows are exactly 0, 1, 2, ... and reach at least n: a payload for them replaces everything
// that n rows held.
func (r Rows) covers(n int) bool {
	return !r.index.Valid() && r.start == 0 && r.n >= n
}

// same reports whether both name the same rows in the same order, judged without looking at lists: two payloads written
// through one binding share its list.
func (r Rows) same(o Rows) bool { return r == o }

// has reports whether a row is listed.
func (r Rows) has(row int) bool {
	if start, run := r.Run(); run {
		return row >= start && row < r.end
	}
	return slices.Contains(r.List(), uint32(row))
}

// ascending reports whether each row is named once, in ascending order.
func (r Rows) ascending() bool { return r.order == rising || !r.index.Valid() }

// find returns the index at which rows that are ascending name a row.
func (r Rows) find(row int) (i int, found bool) {
	if start, run := r.Run(); run {
		return row - start, row >= start && row < r.end
	}
	return slices.BinarySearch(r.List(), uint32(row))
}

// at is the i-th row.
func (r Rows) at(i int) int {
	if start, run := r.Run(); run {
		return start + i
	}
	return int(r.List()[i])
}

// mark adds the rows to a set, whole words at a time for a run.
func (r Rows) mark(set bitset.Set) {
	if start, run := r.Run(); run {
		set.AddRange(start, r.end)
		return
	}
	for _, row := range r.List() {
		set.Add(int(row))
	}
}

// addTo is mark for a set that costs what it holds.
func (r Rows) addTo(set *bitset.Sparse) {
	if start, run := r.Run(); run {
		set.AddRange(start, r.end)
		return
	}
	for _, row := range r.List() {
		set.Add(int(row))
	}
}

// each calls f for every listed row.
func (r Rows) each(f func(row int)) {
	if !r.index.Valid() {
		for row := r.start; row < r.end; row++ {
			f(row)
		}
		return
	}
	for _, row := range r.List() {
		f(int(row))
	}
}

// eachIn is Each for the rows in [start, end). Of a run it looks at no others.
func (r Rows) eachIn(start, end int, f func(i, row int)) {
	if from, run := r.Run(); run {
		for row := max(from, start); row < min(r.end, end); row++ {
			f(row-from, row)
		}
		return
	}
	for i, row := range r.List() {
		if int(row) >= start && int(row) < end {
			f(i, int(row))
		}
	}
}

// scatter writes the packed rows of src to their rows in dst. A row that is listed twice keeps its last value.
func (r Rows) scatter(dst, src []byte, width int) {
	r.mustLie(dst, width)
	mustHold(src, r.n, width)
	if r.index.Valid() {
		tensor.ScatterRows(dst, src, r.List(), width)
		return
	}
	copy(dst[r.start*width:r.end*width], src)
}

// transfer copies the named rows from src to the same rows of dst.
func (r Rows) transfer(dst, src []byte, width int) {
	r.mustLie(dst, width)
	r.mustLie(src, width)
	if r.index.Valid() {
		tensor.CopyRowsAt(dst, src, r.List(), width)
		return
	}
	copy(dst[r.start*width:r.end*width], src[r.start*width:r.end*width])
}

// mustLie states that every row lies in the bytes of a column, and that the list of rows is still held.
func (r Rows) mustLie(bytes []byte, width int) {
	if invariants.Enabled {
		mustHold(bytes, r.end, width)
		invariants.Check(!r.index.Valid() || r.index.Refs() > 0, "a list of %d rows was released", r.n)
		r.each(func(row int) { invariants.Check(row < r.end, "row %d is listed, the end is %d", row, r.end) })
	}
}

// mustHold states that bytes have space for rows.
func mustHold(bytes []byte, rows, width int) {
	if invariants.Enabled {
		invariants.Check(rows*width <= len(bytes), "%d rows of %d bytes in %d bytes", rows, width, len(bytes))
	}
}
