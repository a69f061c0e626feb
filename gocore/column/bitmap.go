package column

import "math/bits"

// bitmap has one bit a row. A nil bitmap has no bit set.
type bitmap []uint64

func newBitmap(rows int) bitmap { return make(bitmap, (rows+63)/64) }

func (b bitmap) has(row int) bool { return row/64 < len(b) && b[row/64]>>(row%64)&1 == 1 }

func (b bitmap) set(row int) { b[row/64] |= 1 << (row % 64) }

func (b bitmap) clear(row int) { b[row/64] &^= 1 << (row % 64) }

// fill sets the bits of [from, to), whole words at a time.
func (b bitmap) fill(from, to int) {
	for from < to && from%64 != 0 {
		b.set(from)
		from++
	}
	for ; from+64 <= to; from += 64 {
		b[from/64] = ^uint64(0)
	}
	for ; from < to; from++ {
		b.set(from)
	}
}

// countIn counts the bits of [from, to), whole words at a time.
func (b bitmap) countIn(from, to int) (n int) {
	for ; from < min(to, 64*len(b)); from = (from/64 + 1) * 64 {
		word := b[from/64] >> (from % 64)
		if rest := to - from; rest < 64 {
			word &= 1<<rest - 1
		}
		n += bits.OnesCount64(word)
	}
	return n
}

// equal compares two sets; one may have room for more rows.
func (b bitmap) equal(o bitmap) bool {
	if len(b) < len(o) {
		b, o = o, b
	}
	for i, word := range b {
		if i < len(o) && word != o[i] || i >= len(o) && word != 0 {
			return false
		}
	}
	return true
}

// any reports whether a bit of [from, to) is set, whole words at a time.
func (b bitmap) any(from, to int) bool {
	for from = max(from, 0); from < min(to, 64*len(b)); from = (from/64 + 1) * 64 {
		word := b[from/64] >> (from % 64)
		if rest := to - from; rest < 64 {
			word &= 1<<rest - 1
		}
		if word != 0 {
			return true
		}
	}
	return false
}

func (b bitmap) count() (n int) {
	for _, word := range b {
		n += bits.OnesCount64(word)
	}
	return n
}

// reach returns a bitmap with room for rows.
func (b bitmap) reach(rows int) bitmap {
	for len(b) < (rows+63)/64 {
		b = append(b, 0)
	}
	return b
}

// Set is a set of rows.
type Set struct{ bits bitmap }

// Has reports whether the set holds a row.
func (s Set) Has(row int) bool { return s.bits.has(row) }

// Equal reports whether both hold the same rows.
func (s Set) Equal(o Set) bool { return s.bits.equal(o.bits) }

// Count is the number of rows.
func (s Set) Count() int { return s.bits.count() }

// CountIn counts the rows in [from, to).
func (s Set) CountIn(from, to int) int { return s.bits.countIn(from, to) }

// Each calls f for every row, ascending.
func (s Set) Each(f func(row int)) { s.EachIn(0, 64*len(s.bits), f) }

// EachIn calls f for every row in [from, to), ascending.
func (s Set) EachIn(from, to int, f func(row int)) {
	for ; from < min(to, 64*len(s.bits)); from = (from/64 + 1) * 64 {
		for word := s.bits[from/64] >> (from % 64); word != 0; word &= word - 1 {
			row := from + bits.TrailingZeros64(word)
			if row >= to {
				return
			}
			f(row)
		}
	}
}

// Without returns the rows of s that are not in o, ascending.
func (s Set) Without(o Set) []uint32 {
	var rows []uint32
	for i, word := range s.bits {
		if i < len(o.bits) {
			word &^= o.bits[i]
		}
		for ; word != 0; word &= word - 1 {
			rows = append(rows, uint32(64*i+bits.TrailingZeros64(word)))
		}
	}
	return rows
}
