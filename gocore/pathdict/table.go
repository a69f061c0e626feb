package pathdict

// table is an open-addressing hash table from a 32-bit hash to the index of a record. A slot is hash<<32 | index+1 and
// 0 when empty. Keeping the hash in the slot means that a probe looks at a record only when it is nearly certain to
// be the right one, which saves a cache miss per collision. The home slot is given by the high bits of the hash, so growing
// walks both tables from front to back.
type table struct {
	slots []uint64
	shift uint8 // 32 - log2(len(slots))
	used  int
}

// home returns where a probe for hash begins, and the mask that wraps it.
func (t *table) home(hash uint32) (slot, mask int) {
	return int(hash>>t.shift)&^7 | int(hash&7), len(t.slots) - 1
}

// insert adds an entry that is known to be absent.
func (t *table) insert(hash, index uint32) {
	if t.used*2 >= len(t.slots) {
		t.grow()
	}
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

func (t *table) grow() {
	old := t.slots
	if old == nil {
		t.slots, t.shift = make([]uint64, 1024), 32-10
		return
	}
	t.slots, t.shift = make([]uint64, 2*len(old)), t.shift-1
	for _, slot := range old {
		if slot != 0 {
			t.put(slot)
		}
	}
}

func (t *table) bytes() int64 { return 8 * int64(len(t.slots)) }
