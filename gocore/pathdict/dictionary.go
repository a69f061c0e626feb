// Package pathdict interns the names that a stage works with: tokens, prim paths and path lists.
//
// Equal strings get equal handles, and a handle is a small dense number in disguise, so that everything past the first call
// works with integers. A path is a node: the path above it and the token of its last component. Whatever route made a
// path (a string, a string in a batch, a sequence of tokens), it is the same node and the same handle.
//
// # Memory
//
// A scene has millions of paths, so nothing here is a Go object per path: tokens and nodes are records in pointer-free
// segments, the hash tables hold integers, and all of it, with the bytes of tokens, lies in C memory. The garbage collector
// finds nothing to trace, missing memory is an error of the call, and token text can be handed across the C ABI as it is: it
// is NUL terminated and never moves. Nothing is removed before Close, but for names that a refused call was the first to use
// (Try), and for what nothing names any more when a program asks for that (Compact).
//
// # Concurrency
//
// Every method but Close may be called from any goroutine at any time. Turning a handle into what it stands for takes no
// lock: records are written once and become visible through a length that is stored atomically. Turning text into a
// handle takes a read lock while everything asked for is known, and the write lock from the first new name on; long
// batches give it back now and then. Lists have a lock of their own, which may be taken while the first is held and never
// the other way round. Between two looks at the names a Compact may begin: a call that finds so starts anew.
package pathdict

import (
	"hash/maphash"
	"math"
	"sync"
	"sync/atomic"
)

// Token is the handle of an interned string. Token 0 is the empty string.
type Token uint64

// Path is the handle of an interned absolute path. Path 0 is no path.
type Path uint64

// ListHandle names one reference-counted path list. Handle 0 is no list.
type ListHandle uint64

// MaxDepth is the largest number of components in a path.
const MaxDepth = 65536

// MaxPath is the largest number of bytes of a path.
const MaxPath = 1 << 20

// NoPath is the dense index of no path: it stands where a prim or a row has none.
const NoPath uint32 = math.MaxUint32

// full is the most records that a vector may have.
const full = NoPath - 1

// Dictionary holds tokens, paths and path lists.
type Dictionary struct {
	base uint64 // see handle
	seed maphash.Seed

	// names guards the tables, the text, the links between nodes and the growing ends of the vectors. What identifies a
	// record below the visible length never changes and is read without it.
	names      sync.RWMutex
	tokens     vector[span]
	tokenAges  ages
	tokenPins  flags // tokens that stay although no path has them: they were interned by themselves, or their text was handed out
	tokenTable table
	text       text
	trials     map[uint32]int // tokens that go again unless a call keeps them -> by how many calls they are tried
	withdrawn  []uint32       // tokens that have gone
	paths      vector[node]
	pathAges   ages
	pathPins   flags     // paths that stay although nothing names them: they were interned by themselves
	vacant     vacancies // paths that have gone
	pathTable  table     // children of large families
	strangers  []uint32  // nodes that stand for paths that were never made
	closed     bool
	end        uint64 // what End answers once closed

	compacting sync.Mutex            // one Compact at a time
	named      atomic.Pointer[Named] // not nil while one is at work; changed under names
	age        atomic.Uint32         // how many have begun; changed under names

	shelf     shelf
	interners sync.Pool // *interner
}

// New returns a dictionary that knows the root path and nothing else. All its handles are larger than base: a dictionary
// that starts at the End of an earlier one can tell that the handles of that one are not its own.
func New(base uint64) *Dictionary {
	d := &Dictionary{base: base, seed: maphash.MakeSeed()}
	d.shelf.open(base)
	_ = d.pathPins.reach(root) // the first words need no memory
	d.paths.push(node{name: noName})
	d.paths.reveal()
	return d
}

// Close frees the memory of the tokens; from then on every handle is unknown and every interning call is refused. The caller
// makes sure that no other call is running and that no view of a token's text is still in use. Lists that were handed out
// can still be read.
func (d *Dictionary) Close() {
	end := d.End()
	d.names.Lock()
	defer d.names.Unlock()
	if d.closed {
		return
	}
	d.closed, d.end = true, end
	d.tokens.close()
	d.paths.close()
	d.tokenTable.close()
	d.pathTable.close()
	d.text.close()
	d.tokenAges.close()
	d.pathAges.close()
	d.tokenPins.close()
	d.pathPins.close()
	d.vacant = vacancies{}
	d.trials, d.withdrawn, d.strangers = nil, nil, nil
	d.shelf.close()
}

// End returns the first number that no handle of this dictionary has reached: the base for its successor.
func (d *Dictionary) End() uint64 {
	d.names.RLock()
	defer d.names.RUnlock()
	if d.closed {
		return d.end
	}
	return max(d.handle(max(d.tokens.length, d.paths.length), d.age.Load()), d.shelf.end())
}

// Stats counts what a dictionary holds.
type Stats struct {
	Tokens  int   // interned and not gone
	Paths   int   // interned and not gone, the root and the paths above others included
	Handles int   // live list handles
	Lists   int   // distinct list contents that are held or were released recently
	Bytes   int64 // memory of tokens, paths and their tables
}

// Stats returns the present counts.
func (d *Dictionary) Stats() Stats {
	d.names.RLock()
	defer d.names.RUnlock()
	handles, lists := d.shelf.counts()
	return Stats{
		Tokens:  int(d.tokens.length) - len(d.withdrawn),
		Paths:   int(d.paths.length) - d.vacant.count,
		Handles: handles,
		Lists:   lists,
		Bytes: d.tokens.bytes() + d.tokenAges.bytes() + d.tokenPins.bytes() + d.tokenTable.bytes() + d.text.bytes() +
			d.paths.bytes() + d.pathAges.bytes() + d.pathPins.bytes() + d.pathTable.bytes(),
	}
}

// A handle is the dense index of a token or a path, and the age of what has that index: an index is used again after a
// compaction, a handle never is.

func (d *Dictionary) handle(index, age uint32) uint64 {
	return d.base + 1 + uint64(age)<<32 + uint64(index)
}

// split is the inverse of handle. The handle may be any number: of an earlier dictionary, none are its own.
func (d *Dictionary) split(handle uint64) (index, age uint32, ours bool) {
	number := handle - d.base - 1
	return uint32(number), uint32(number >> 32), handle > d.base
}

func (d *Dictionary) tokenAt(index uint32) Token {
	return Token(d.handle(index, d.tokenAges.of(index)))
}

func (d *Dictionary) pathAt(index uint32) Path { return Path(d.handle(index, d.pathAges.of(index))) }

// tokenIndex finds a token that is there. It may go at any time, unless the caller knows that it is named or holds a lock.
func (d *Dictionary) tokenIndex(t Token) (index uint32, ok bool) {
	index, age, ok := d.split(uint64(t))
	return index, ok && age != noAge && d.tokens.has(uint64(index)) && d.tokenAges.of(index) == age
}
