package column

import (
	"slices"

	"ovstage.dev/ovstage/gocore/memory"
	"ovstage.dev/ovstage/gocore/pathdict"
)

// table maps dense path indices to rows. A row keeps its number for as long as its prim has it.
//
// The hash table is open addressing over plain integers in a block, so that Go's heap does not grow with the rows. It is made
// by the first question that needs it, and without memory for it rows are searched one by one: an answer never fails.
type table struct {
	paths  []uint32 // row -> path index, pathdict.NoPath for a row that was given up
	shared bool     // paths belongs to a list as well: it is copied before it changes
	hash   memory.Block
	slots  []uint32 // in hash: hash slot -> row+1, 0 empty
	hashed int      // rows entered into slots; the rest waits for the first lookup that needs it
	free   []uint32 // vacant rows, ascending
	most   int      // no more vacant rows than this lie together
	epoch  uint64   // rises when rows are given up
	added  uint64   // rows that were ever given to paths
}

// row returns the row of a path, or -1.
func (t *table) row(path uint32) int {
	if t.catchUp() != nil {
		return slices.Index(t.paths, path)
	}
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

// vacate makes rows vacant.
func (t *table) vacate(rows []uint32) {
	if t.shared {
		t.paths, t.shared = slices.Clone(t.paths), false
	}
	for _, row := range rows {
		t.paths[row] = pathdict.NoPath
	}
	t.free = append(t.free, rows...)
	slices.Sort(t.free)
	t.most = len(t.free)
	t.close()
	t.epoch++
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

// catchUp enters the appended rows into the hash table. On failure (memory) the table stays behind.
func (t *table) catchUp() error {
	if t.hashed == len(t.paths) {
		return nil
	}
	if need := len(t.paths) + len(t.paths)/2; len(t.slots) < need {
		size := 16
		for size < need {
			size *= 2
		}
		hash, err := memory.AllocZeroed(4*size, memory.Indices)
		if err != nil {
			return err
		}
		t.close()
		t.hash, t.slots = hash, hash.Uint32s(size)
	}
	for ; t.hashed < len(t.paths); t.hashed++ {
		t.enter(t.hashed)
	}
	return nil
}

// close releases the hash table; the next question makes another.
func (t *table) close() {
	t.hash.Release()
	t.hash, t.slots, t.hashed = memory.Block{}, nil, 0
}

// enter puts one row into the hash table, which has room.
func (t *table) enter(row int) {
	if t.paths[row] == pathdict.NoPath {
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
