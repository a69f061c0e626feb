// Package pathdict interns the names that a stage works with: tokens, prim paths and path lists.
//
// Equal strings get equal handles, and a handle is a small dense number in disguise, so that everything past the
// first call works with integers. A path is a node, its parent and the token of its last component; whatever route
// made a path (one string, a string in a batch, a sequence of tokens), it is the same node and the same handle.
//
// # Memory
//
// A scene has millions of paths, so nothing here exists once per path as a Go object: nodes and tokens are records in
// pointer-free segments, the hash tables hold integers, and the bytes of tokens lie in C memory. The garbage collector
// has nothing to trace, and views of token text can be handed across the C ABI: they are NUL terminated and never move.
// Nothing is ever removed; Close frees it all.
//
// # Concurrency
//
// Every method may be called from any goroutine. Turning a handle into what it stands for never takes a lock: records
// are written once and become visible through an atomic length. Turning text into a handle takes a read lock while
// everything asked for is known, and the write lock from the first new name on; a batch gives the lock back
// every few hundred entries. Lists have a lock of their own, which may be taken while the first is held, never the other
// way round.
package pathdict

import (
	"hash/maphash"
	"math"
	"sync"
)

// Token is the handle of an interned string. Token 0 is the empty string.
type Token uint64

// Path is the handle of an interned absolute path. Path 0 is no path.
type Path uint64

// ListHandle names one reference-counted path list. Handle 0 is no list.
type ListHandle uint64

// MaxDepth is the largest number of components in a path.
const MaxDepth = 65536

// full is the number of records at which a vector is full: an index and its successor must fit a table slot.
const full = math.MaxUint32 - 1

// Dictionary holds the tokens, paths and path lists of a process.
type Dictionary struct {
	base uint64 // handle = base + 1 + index, for all three kinds
	seed maphash.Seed

	// names guards the two tables, the text and the growing ends of the two vectors. Records below a vector's
	// published length never change and are read without it.
	names      sync.RWMutex
	tokens     vector[span]
	tokenTable table
	text       text
	paths      vector[node]
	pathTable  table
	closed     bool
	end        uint64 // what End answers once closed

	shelf   shelf
	scratch sync.Pool // *[]uint32: indices of a batch on their way into out or into a list
}

// New returns a dictionary that knows only the root path. Its handles are larger than base: a dictionary that starts
// at the End of an earlier one recognises the handles of that one as not its own.
func New(base uint64) *Dictionary {
	d := &Dictionary{base: base, seed: maphash.MakeSeed()}
	d.shelf.open(base)
	d.paths.push(node{name: noName})
	d.paths.publish()
	return d
}

// Close frees the text of the tokens. The caller makes sure that no call is running and that no view of a
// token string is in use any more. Lists that were handed out stay valid; every handle is unknown from now on.
func (d *Dictionary) Close() {
	end := d.End()
	d.names.Lock()
	defer d.names.Unlock()
	if d.closed {
		return
	}
	d.closed, d.end = true, end
	d.tokens.clear()
	d.paths.clear()
	d.tokenTable, d.pathTable = table{}, table{}
	d.text.free()
	d.shelf.close()
}

// End returns a number that no handle of this dictionary has reached: the base of its successor.
func (d *Dictionary) End() uint64 {
	d.names.RLock()
	defer d.names.RUnlock()
	if d.closed {
		return d.end
	}
	return max(d.base+1+uint64(max(d.tokens.length, d.paths.length)), d.shelf.end())
}

// Stats counts what a dictionary holds.
type Stats struct {
	Tokens, Paths int   // interned so far, the root included
	Handles       int   // live list handles
	Lists         int   // distinct list contents that are in use or were used recently
	Bytes         int64 // memory reserved for tokens, paths and their tables, lists excluded
}

// Stats returns the present counts.
func (d *Dictionary) Stats() Stats {
	d.names.RLock()
	s := Stats{
		Tokens: int(d.tokens.length),
		Paths:  int(d.paths.length),
		Bytes:  d.tokens.bytes() + d.paths.bytes() + d.tokenTable.bytes() + d.pathTable.bytes() + d.text.bytes(),
	}
	d.names.RUnlock()
	s.Handles, s.Lists = d.shelf.counts()
	return s
}

// borrow returns n scratch indices. They go back through giveBack.
func (d *Dictionary) borrow(n int) *[]uint32 {
	if b, ok := d.scratch.Get().(*[]uint32); ok && cap(*b) >= n {
		*b = (*b)[:n]
		return b
	}
	b := make([]uint32, n)
	return &b
}

func (d *Dictionary) giveBack(b *[]uint32) { d.scratch.Put(b) }
