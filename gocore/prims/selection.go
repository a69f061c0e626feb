package prims

// Selection is a set of prims, one bit for each slot in the order of creation: whatever found them in whatever order, they are
// listed in that order. It is good until a prim comes or goes.
type Selection []uint64

// And keeps what the other selection has too.
func (s Selection) And(other Selection) {
	for i := range s {
		s[i] &= other[i]
	}
}

// Or adds what the other selection has.
func (s Selection) Or(other Selection) {
	for i := range s {
		s[i] |= other[i]
	}
}

// Without drops what the other selection has.
func (s Selection) Without(other Selection) {
	for i := range s {
		s[i] &^= other[i]
	}
}

// put selects the prim in a slot.
func (s Selection) put(slot uint32) { s[slot/64] |= 1 << (slot % 64) }

// extend makes room for a slot.
func (s *Selection) extend(slot uint32) {
	if missing := int(slot/64) + 1 - len(*s); missing > 0 {
		*s = append(*s, make([]uint64, missing)...)
	}
}
