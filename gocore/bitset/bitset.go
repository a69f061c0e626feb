// Package bitset is a set of small numbers, one bit for each: rows of a column, positions in a list, dense path indices.
//
// A Set is its words, least bit first, as masks of the C ABI are: bit i%64 of word i/64 stands for i. So a mask is a Set
// without a copy. The zero value is the empty set.
package bitset

import (
	"math/bits"
	"unsafe"
)

// Set is a set of the numbers below 64*len. Questions may go beyond that; Add and Remove must not.
type Set []uint64

// all is a word with every bit set.
const all = ^uint64(0)

// New returns an empty set of numbers below n.
func New(n int) Set { return make(Set, Words(n)) }

// Over is the set that a mask of n bits at an address is, without a copy.
func Over(mask *uint64, n int) Set { return unsafe.Slice(mask, Words(n)) }

// Words is the number of words that hold n bits.
func Words(n int) int { return (n + 63) / 64 }

// Grow returns the set with space for numbers below n.
func (s Set) Grow(n int) Set {
	if missing := Words(n) - len(s); missing > 0 {
		return append(s, make(Set, missing)...)
	}
	return s
}

// Has reports whether i is in the set.
func (s Set) Has(i int) bool {
	word := uint(i) / 64
	return word < uint(len(s)) && s[word]>>(uint(i)%64)&1 == 1
}

// Add puts i into the set.
func (s Set) Add(i int) { s[uint(i)/64] |= 1 << (uint(i) % 64) }

// Remove takes i out of the set.
func (s Set) Remove(i int) { s[uint(i)/64] &^= 1 << (uint(i) % 64) }

// Put puts i into the set, or takes it out.
func (s Set) Put(i int, in bool) {
	if in {
		s.Add(i)
	} else {
		s.Remove(i)
	}
}

// AddRange adds the numbers in [from, to), a word at a time.
func (s Set) AddRange(from, to int) {
	for ; from < to && from%64 != 0; from = next(from) {
		s[from/64] |= within(from, to)
	}
	for ; from+64 <= to; from += 64 {
		s[from/64] = all
	}
	if from < to {
		s[from/64] |= within(from, to)
	}
}

// Count is how many numbers are in the set.
func (s Set) Count() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// CountIn is how many numbers in [from, to) are in the set.
func (s Set) CountIn(from, to int) (n int) {
	for from, to = max(from, 0), s.end(to); from < to; from = next(from) {
		n += bits.OnesCount64(s[from/64] & within(from, to))
	}
	return n
}

// AnyIn reports whether a number in [from, to) is in the set.
func (s Set) AnyIn(from, to int) bool {
	for from, to = max(from, 0), s.end(to); from < to; from = next(from) {
		if s[from/64]&within(from, to) != 0 {
			return true
		}
	}
	return false
}

// Equal reports whether two sets hold the same numbers; one may have space for more.
func (s Set) Equal(o Set) bool {
	if len(s) < len(o) {
		s, o = o, s
	}
	for i, word := range s[:len(o)] {
		if word != o[i] {
			return false
		}
	}
	return !s[len(o):].AnyIn(0, 64*(len(s)-len(o)))
}

// Meets reports whether two sets have a number in common.
func (s Set) Meets(o Set) bool {
	for i, word := range s[:min(len(s), len(o))] {
		if word&o[i] != 0 {
			return true
		}
	}
	return false
}

// And keeps the numbers that o holds as well.
func (s Set) And(o Set) {
	shared := min(len(s), len(o))
	for i := range s[:shared] {
		s[i] &= o[i]
	}
	clear(s[shared:])
}

// Or adds the numbers of o, for which s must have space.
func (s Set) Or(o Set) {
	for i, word := range o {
		s[i] |= word
	}
}

// AndNot removes the numbers of o.
func (s Set) AndNot(o Set) {
	for i, word := range o[:min(len(s), len(o))] {
		s[i] &^= word
	}
}

// Each calls visit for every number in the set, ascending.
func (s Set) Each(visit func(i int)) {
	for at, word := range s {
		for ; word != 0; word &= word - 1 {
			visit(64*at + bits.TrailingZeros64(word))
		}
	}
}

// EachIn calls visit for every number in [from, to) that is in the set, ascending.
func (s Set) EachIn(from, to int, visit func(i int)) {
	for from, to = max(from, 0), s.end(to); from < to; from = next(from) {
		for word := s[from/64] & within(from, to); word != 0; word &= word - 1 {
			visit(from&^63 + bits.TrailingZeros64(word))
		}
	}
}

// First returns the first number from an index on that is in the set, or -1.
func (s Set) First(from int) int {
	for end := 64 * len(s); from < end; from = next(from) {
		if word := s[from/64] & within(from, end); word != 0 {
			return from&^63 + bits.TrailingZeros64(word)
		}
	}
	return -1
}

// AppendTo appends the numbers below n that are in the set to a list, ascending.
func (s Set) AppendTo(list []uint32, n int) []uint32 {
	for at, word := range s[:Words(s.end(n))] {
		if word == 0 {
			continue
		}
		for word = below(word, n-64*at); word != 0; word &= word - 1 {
			list = append(list, uint32(64*at+bits.TrailingZeros64(word)))
		}
	}
	return list
}

// Below returns the set without the numbers from n on. It is the set itself, shortened.
func (s Set) Below(n int) Set {
	s = s[:min(len(s), Words(n))]
	if len(s) > 0 {
		s[len(s)-1] = below(s[len(s)-1], n-64*(len(s)-1))
	}
	return s
}

// Gather returns the set of those i below n for which at(i) is in the set.
func (s Set) Gather(n int, at func(i int) int) Set {
	picked := New(n)
	for i := range n {
		if s.Has(at(i)) {
			picked.Add(i)
		}
	}
	return picked
}

// Missing appends the numbers in [from, to) that are not in the set to a list, ascending.
func (s Set) Missing(list []uint32, from, to int) []uint32 {
	for from = max(from, 0); from < to; from = next(from) {
		word := within(from, to)
		if from/64 < len(s) {
			word &^= s[from/64]
		}
		for ; word != 0; word &= word - 1 {
			list = append(list, uint32(from&^63+bits.TrailingZeros64(word)))
		}
	}
	return list
}

// Pick appends those of values whose index is in the set to a list, in order. Where every bit of a word is set its values are
// copied together.
func (s Set) Pick(list, values []uint32) []uint32 {
	for at, word := range s[:Words(s.end(len(values)))] {
		if word == 0 {
			continue
		}
		if word = below(word, len(values)-64*at); word == all {
			list = append(list, values[64*at:64*at+64]...)
			continue
		}
		for ; word != 0; word &= word - 1 {
			list = append(list, values[64*at+bits.TrailingZeros64(word)])
		}
	}
	return list
}

// below keeps the bits of a word that stand for its first n numbers.
func below(word uint64, n int) uint64 {
	if n < 64 {
		word &= 1<<uint(n) - 1
	}
	return word
}

// end is to, or the end of the words where that is nearer.
func (s Set) end(to int) int { return min(to, 64*len(s)) }

// next is the first number of the word after that of i.
func next(i int) int { return i&^63 + 64 }

// within is the bits of from's word that stand for numbers in [from, to).
func within(from, to int) uint64 {
	word := all << (uint(from) % 64)
	if to < next(from) {
		word &= 1<<(uint(to)%64) - 1
	}
	return word
}

// Adder adds numbers of which neighbours mostly follow each other, a word at a time. Flush adds the last ones.
type Adder struct {
	To   Set
	at   uint   // the word that is collected
	word uint64 // its bits so far
}

// Add puts i into the set, at the latest with the next Flush.
func (a *Adder) Add(i uint32) {
	if at := uint(i) / 64; at != a.at {
		a.turn(at)
	}
	a.word |= 1 << (i % 64)
}

func (a *Adder) turn(at uint) {
	a.Flush()
	a.at = at
}

// Flush adds what was collected.
func (a *Adder) Flush() {
	if a.word != 0 {
		a.To[a.at] |= a.word
	}
	a.word = 0
}
