package bitset

import "sync/atomic"

// Word is 64 numbers of a set that several goroutines fill and ask at the same time, without a lock.
type Word uint64

// Has reports whether i%64 is in the word.
func (w *Word) Has(i uint32) bool { return atomic.LoadUint64((*uint64)(w))>>(i%64)&1 == 1 }

// Add puts i%64 into the word. Where it is in there already nothing is written, and no other core waits.
func (w *Word) Add(i uint32) {
	if !w.Has(i) {
		atomic.OrUint64((*uint64)(w), 1<<(i%64))
	}
}

// Shared is such a set: word i/64 has i.
type Shared []Word

// NewShared returns an empty set of numbers below n.
func NewShared(n int) Shared { return make(Shared, Words(n)) }

// Reaches reports whether there is space for i.
func (s Shared) Reaches(i uint32) bool { return int(i/64) < len(s) }

// Has reports whether i, which the set reaches, is in it.
func (s Shared) Has(i uint32) bool { return s[i/64].Has(i) }

// Add puts i, which the set reaches, into it.
func (s Shared) Add(i uint32) { s[i/64].Add(i) }
