package column

import (
	"slices"

	"ovstage/gocore/bitset"
	"ovstage/gocore/memory"
	"ovstage/gocore/tensor"
)

// Rows names rows of a column in the order in which a payload lists them: either the interval [start, start+n) or an
// explicit list. The list lives off the Go heap because read groups hand the very same array to clients as an index
// map. A Rows value does not own its list by itself: Retain and Release say who keeps it alive.
type Rows struct {
	start int
	n     int
	end   int // one past the highest row; 0 when empty
	index memory.Block
}

// Interval returns the rows [start, start+n).
func Interval(start, n int) Rows {
	if n == 0 {
		return Rows{}
	}
	return Rows{start: start, n: n, end: start + n}
}

// Indexed returns the rows that index lists and takes over the caller's reference to it. Rows that turn out to be
// consecutive become an interval and the list is given back.
func Indexed(index memory.Block, n int) Rows {
	list := index.Uint32s(n)
	end, consecutive := 0, true
	for i, row := range list {
		consecutive = consecutive && int(row) == int(list[0])+i
		end = max(end, int(row)+1)
	}
	if consecutive {
		start := 0
		if n > 0 {
			start = int(list[0])
		}
		index.Release()
		return Interval(start, n)
	}
	return Rows{n: n, end: end, index: index}
}

// Len is the number of listed rows; a row that is listed twice counts twice.
func (r Rows) Len() int { return r.n }

// End is one past the highest listed row.
func (r Rows) End() int { return r.end }

// Interval reports whether the rows are consecutive, and where they start.
func (r Rows) Interval() (start int, ok bool) { return r.start, !r.index.Valid() }

// Index is the off-heap list, invalid for an interval; it holds Len entries.
func (r Rows) Index() memory.Block { return r.index }

// List is the explicit list, nil for an interval.
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

// covers reports whether the rows are exactly 0, 1, 2, ... and reach at least n: a payload for them replaces everything
// that n rows held.
func (r Rows) covers(n int) bool {
	return !r.index.Valid() && r.start == 0 && r.n >= n
}

// same reports whether both name the same rows in the same order, judged without looking at lists: two payloads written
// through one binding share its list.
func (r Rows) same(o Rows) bool { return r == o }

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

// mark adds the rows to a set, whole words at a time for an interval.
func (r Rows) mark(set bitset.Set) {
	if start, interval := r.Interval(); interval {
		set.AddRange(start, r.end)
		return
	}
	for _, row := range r.List() {
		set.Add(int(row))
	}
}

// has reports whether a row is listed.
func (r Rows) has(row int) bool {
	if start, interval := r.Interval(); interval {
		return row >= start && row < r.end
	}
	return slices.Contains(r.List(), uint32(row))
}

// Any reports whether any of the rows is in a set.
func (r Rows) Any(set bitset.Set) bool {
	if start, interval := r.Interval(); interval {
		return set.AnyIn(start, r.end)
	}
	return slices.ContainsFunc(r.List(), func(row uint32) bool { return set.Has(int(row)) })
}

// Where returns the rows for which wanted, in their order, is true: as an explicit list off the heap or an interval. The
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

// Each calls f for every listed row, in order.
func (r Rows) Each(f func(i, row int)) {
	i := 0
	r.each(func(row int) {
		f(i, row)
		i++
	})
}

// eachIn is Each for the rows in [start, end). Of an interval it looks at no others.
func (r Rows) eachIn(start, end int, f func(i, row int)) {
	if from, interval := r.Interval(); interval {
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

// scatter writes the packed rows of src to their places in dst. A row that is listed twice keeps its last value.
func (r Rows) scatter(dst, src []byte, width int) {
	if r.index.Valid() {
		tensor.ScatterRows(dst, src, r.List(), width)
		return
	}
	copy(dst[r.start*width:r.end*width], src)
}

// Gather packs the named rows of src into dst.
func (r Rows) Gather(dst, src []byte, width int) {
	if r.index.Valid() {
		tensor.GatherRows(dst, src, r.List(), width)
		return
	}
	copy(dst, src[r.start*width:r.end*width])
}

// transfer copies the named rows from src to the same rows of dst.
func (r Rows) transfer(dst, src []byte, width int) {
	if r.index.Valid() {
		tensor.CopyRowsAt(dst, src, r.List(), width)
		return
	}
	copy(dst[r.start*width:r.end*width], src[r.start*width:r.end*width])
}

// table maps dense path indices to rows. A row keeps its number for as long as its prim has it. It is open-addressing over
// plain integers: the garbage collector never looks into it.
type table struct {
	paths  []uint32 // row -> path index, vacant for a row that was given up
	shared bool     // paths is somebody else's: it is copied before it changes
	slots  []uint32 // hash slot -> row+1, 0 empty
	hashed int      // rows entered into slots; the rest waits for the first lookup that needs it
	free   []uint32 // vacant rows, ascending
	most   int      // no more vacant rows than this lie together
	epoch  uint64   // rises when rows are given up
	added  uint64   // rows that were ever given to paths
}

// vacant stands for the path of a row that no prim has.
const vacant = ^uint32(0)

// add gives consecutive rows to paths and returns the first. The caller does not change paths afterwards: columns whose rows
// all came with one list share it, and cost Go's heap nothing.
func (t *table) add(paths []uint32) int {
	t.added += uint64(len(paths))
	if start, ok := t.take(len(paths)); ok {
		copy(t.paths[start:], paths)
		for row := start; row < min(start+len(paths), t.hashed); row++ {
			t.enter(row)
		}
		return start
	}
	if len(t.paths) == 0 {
		t.paths, t.shared = slices.Clip(paths), true
		return 0
	}
	t.paths, t.shared = append(t.paths, paths...), t.shared && len(paths) == 0
	return len(t.paths) - len(paths)
}

// take finds n vacant rows that lie together. It looks from the end, where taking them out is cheapest.
func (t *table) take(n int) (start int, ok bool) {
	if n == 0 || n > t.most {
		return 0, false
	}
	run, most := 0, 0
	for i := len(t.free) - 1; i >= 0; i-- {
		if run > 0 && t.free[i]+1 == t.free[i+1] {
			run++
		} else {
			run = 1
		}
		if run == n {
			start = int(t.free[i])
			t.free = slices.Delete(t.free, i, i+n)
			return start, true
		}
		most = max(most, run)
	}
	t.most = most // found by a search in vain, which the next one is spared
	return 0, false
}

// giveUp makes rows vacant.
func (t *table) giveUp(rows []uint32) {
	if t.shared {
		t.paths, t.shared = slices.Clone(t.paths), false
	}
	for _, row := range rows {
		t.paths[row] = vacant
	}
	t.free = append(t.free, rows...)
	slices.Sort(t.free)
	t.most = len(t.free)
	t.slots, t.hashed = nil, 0
	t.epoch++
}

// row returns the row of a path, or -1.
func (t *table) row(path uint32) int {
	t.catchUp()
	if len(t.slots) == 0 {
		return -1
	}
	mask := uint32(len(t.slots) - 1)
	for i := spread(path) & mask; ; i = (i + 1) & mask {
		switch slot := t.slots[i]; {
		case slot == 0:
			return -1
		case t.paths[slot-1] == path:
			return int(slot - 1)
		}
	}
}

// run returns the row at which the paths stand one after another, or -1. It compares memory and needs no hashing, which
// makes the common case, a client that writes through its own list, as fast as a comparison.
func (t *table) run(paths []uint32) int {
	if len(paths) == 0 || len(paths) > len(t.paths) {
		return -1
	}
	start := 0
	if t.paths[0] != paths[0] {
		if start = t.row(paths[0]); start < 0 || start+len(paths) > len(t.paths) {
			return -1
		}
	}
	if !slices.Equal(t.paths[start:start+len(paths)], paths) {
		return -1
	}
	return start
}

// catchUp enters the appended rows into the hash table.
func (t *table) catchUp() {
	if t.hashed == len(t.paths) {
		return
	}
	if need := len(t.paths) + len(t.paths)/2; len(t.slots) < need {
		size := 16
		for size < need {
			size *= 2
		}
		t.slots, t.hashed = make([]uint32, size), 0
	}
	for ; t.hashed < len(t.paths); t.hashed++ {
		t.enter(t.hashed)
	}
}

// enter puts one row into the hash table, which has room.
func (t *table) enter(row int) {
	if t.paths[row] == vacant {
		return
	}
	mask := uint32(len(t.slots) - 1)
	i := spread(t.paths[row]) & mask
	for t.slots[i] != 0 {
		i = (i + 1) & mask
	}
	t.slots[i] = uint32(row) + 1
}

// spread mixes the bits of a path index (Knuth's multiplicative hash, folded).
func spread(path uint32) uint32 {
	h := path * 2654435761
	return h ^ h>>15
}
