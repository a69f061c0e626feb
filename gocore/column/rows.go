package column

import (
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

// scatter writes the packed rows of src to their places in dst. A row that is listed twice keeps its last value.
func (r Rows) scatter(dst, src []byte, width int) {
	if r.index.Valid() {
		tensor.ScatterRows(dst, src, r.List(), width)
		return
	}
	copy(dst[r.start*width:r.end*width], src)
}

// gather packs the named rows of src into dst.
func (r Rows) gather(dst, src []byte, width int) {
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

// table maps dense path indices to rows. Rows are only ever appended, so that a row keeps its number for life. It is
// open-addressing over plain integers: the garbage collector never looks into it.
type table struct {
	paths  []uint32 // row -> path index
	slots  []uint32 // hash slot -> row+1, 0 empty
	hashed int      // rows entered into slots; the rest waits for the first lookup that needs it
}

// Row returns the row of a path, or -1.
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
	for i, path := range t.paths[start : start+len(paths)] {
		if path != paths[i] {
			return -1
		}
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
	mask := uint32(len(t.slots) - 1)
	for ; t.hashed < len(t.paths); t.hashed++ {
		i := spread(t.paths[t.hashed]) & mask
		for t.slots[i] != 0 {
			i = (i + 1) & mask
		}
		t.slots[i] = uint32(t.hashed) + 1
	}
}

// spread mixes the bits of a path index (Knuth's multiplicative hash, folded).
func spread(path uint32) uint32 {
	h := path * 2654435761
	return h ^ h>>15
}
