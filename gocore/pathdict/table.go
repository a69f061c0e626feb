package pathdict

import (
	"math/bits"
	"unsafe"

	"ovstage.dev/ovstage/gocore/memory"
)

// table is an open-addressing hash table from a 32-bit hash to the index of a record. A slot is hash<<32 | index+1, and 0
// when it is empty. With the hash in the slot, a probe looks at a record only when it is all but certain to be the
// right one. The table lies outside the Go heap, where large blocks get huge pages: a lookup in a large table that misses
// the cache misses the page tables too.
type table struct {
	block memory.Block
	slots []uint64 // in block; at most half of them are used
	shift uint8    // 32 - log2(len(slots))
	used  int
}

// tile is how many neighbouring slots, two cache lines of them, near spreads keys over.
const tile = 16

// near varies a hash by a small number. Keys with one hash and numbers that differ by little have their slots in one tile.
func near(hash, number uint32) uint32 { return hash ^ number%tile }

// home returns where a probe begins, and the mask that wraps it. The high bits of the hash choose the tile, so that growing
// walks the old and the new table from front to back; the lowest bits choose the slot in the tile.
func (t *table) home(hash uint32) (slot, mask int) {
	return int(hash>>t.shift)&^(tile-1) | int(hash%tile), len(t.slots) - 1
}

// find returns the record with that hash that is the same as what is looked for.
func (t *table) find(hash uint32, same func(index uint32) bool) (uint32, bool) {
	if len(t.slots) == 0 {
		return 0, false
	}
	for i, mask := t.home(hash); t.slots[i] != 0; i = (i + 1) & mask {
		if slot := t.slots[i]; uint32(slot>>32) == hash && same(uint32(slot)-1) {
			return uint32(slot) - 1, true
		}
	}
	return 0, false
}

// reserve makes room for n more entries.
func (t *table) reserve(n int) error {
	for 2*(t.used+n) > len(t.slots) {
		if err := t.grow(); err != nil {
			return err
		}
	}
	return nil
}

// insert adds an entry that is absent and has its room reserved.
func (t *table) insert(hash, index uint32) {
	t.put(uint64(hash)<<32 | uint64(index+1))
	t.used++
}

func (t *table) put(slot uint64) {
	i, mask := t.home(uint32(slot >> 32))
	for t.slots[i] != 0 {
		i = (i + 1) & mask
	}
	t.slots[i] = slot
}

// remove takes an entry out, and lets those behind it that were pushed on by it move up.
func (t *table) remove(hash, index uint32) {
	i, mask := t.home(hash)
	for t.slots[i] != uint64(hash)<<32|uint64(index+1) {
		i = (i + 1) & mask
	}
	t.used--
	for j := (i + 1) & mask; t.slots[j] != 0; j = (j + 1) & mask {
		if home, _ := t.home(uint32(t.slots[j] >> 32)); (j-home)&mask >= (j-i)&mask {
			t.slots[i], i = t.slots[j], j
		}
	}
	t.slots[i] = 0
}

func (t *table) grow() error {
	size := max(1024, 2*len(t.slots))
	block, err := memory.AllocZeroed(8*size, memory.Strings)
	if err != nil {
		return err
	}
	old := *t
	t.block, t.slots = block, unsafe.Slice((*uint64)(block.Pointer()), size)
	t.shift = uint8(33 - bits.Len(uint(size)))
	for _, slot := range old.slots {
		if slot != 0 {
			t.put(slot)
		}
	}
	old.block.Release()
	return nil
}

func (t *table) close() {
	t.block.Release()
	*t = table{}
}

func (t *table) bytes() int64 { return int64(t.block.Capacity()) }
