package pathdict

import (
	"hash/maphash"
	"ovstage.dev/ovstage/gocore/bitset"
	"slices"
	"sync/atomic"
	"unsafe"
)

// List is an immutable sequence of paths, duplicates included. There is one List for each content: lists of the same paths
// in the same order are the same pointer for as long as anything holds it, and for a while after. What is worked out for a
// list, such as the rows of its paths in a column, can therefore be kept by pointer. A List needs no handle to live.
type List struct {
	d       *Dictionary
	indices []uint32
	hash    uint64
	handles int           // how many there are, under the shelf's lock
	unique  atomic.Uint32 // 0 as long as it was not asked
}

const (
	withoutDuplicates = 1 + iota
	withDuplicates
)

// Len returns the number of paths.
func (l *List) Len() int { return len(l.indices) }

// At returns the path at position i.
func (l *List) At(i int) Path { return l.d.pathAt(l.indices[i]) }

// Indices returns the dense indices of the paths, in order. They are the list's own, and never written to.
func (l *List) Indices() []uint32 { return l.indices }

// Unique reports whether no path occurs twice. The answer is worked out once.
func (l *List) Unique() bool {
	known := l.unique.Load()
	if known == 0 {
		known = withoutDuplicates
		if hasDuplicate(l.indices) {
			known = withDuplicates
		}
		l.unique.Store(known) // others may have found out at the same time: all agree
	}
	return known == withoutDuplicates
}

// hasDuplicate tries the cheap ways first: most lists rise, and most others are close enough together for a bitmap.
func hasDuplicate(indices []uint32) bool {
	if len(indices) == 0 {
		return false
	}
	least, most, rising := indices[0], indices[0], true
	for i, index := range indices[1:] {
		rising = rising && indices[i] < index
		least, most = min(least, index), max(most, index)
	}
	if rising {
		return false
	}
	if span := int(most-least) + 1; bitset.Words(span) <= len(indices) {
		seen := bitset.New(span)
		for _, index := range indices {
			if seen.Has(int(index - least)) {
				return true
			}
			seen.Add(int(index - least))
		}
		return false
	}
	sorted := slices.Clone(indices)
	slices.Sort(sorted)
	return len(slices.Compact(sorted)) < len(indices)
}

// NewList returns a new handle, with one reference, of the list of these paths.
func (d *Dictionary) NewList(paths []Path) (ListHandle, error) {
	in := d.borrow(len(paths))
	defer d.giveBack(in)
	return in.list(func() error { return in.known(paths) })
}

// NewListFromStrings is NewList for paths that may have to be interned first. Failure is as for Paths, and makes no handle.
func (d *Dictionary) NewListFromStrings(strings []string) (ListHandle, error) {
	if err := checkPaths(strings); err != nil {
		return 0, err
	}
	in := d.borrow(len(strings))
	defer d.giveBack(in)
	return in.list(func() error { return in.paths(strings) })
}

// list makes a list of the paths that find has found.
func (in *interner) list(find func() error) (h ListHandle, err error) {
	for {
		if err = find(); err != nil {
			return 0, err
		}
		if h, err = in.d.newHandle(in.indices, in.age); err != errStale {
			return h, err
		}
	}
}

// newHandle fails when a compaction has begun since age, in which the paths were found: they may be gone.
func (d *Dictionary) newHandle(indices []uint32, age uint32) (ListHandle, error) {
	hash := maphash.Bytes(d.seed, bytesOf(indices))
	s := &d.shelf
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.closed {
		return 0, errClosed
	}
	if d.age.Load() != age {
		return 0, errStale
	}
	return s.mint(s.intern(d, indices, hash)), nil
}

// Mint returns a further handle of a list, with one reference. It is 0 when the list is not this dictionary's, or the
// dictionary is closed.
func (d *Dictionary) Mint(l *List) ListHandle {
	s := &d.shelf
	s.lock.Lock()
	defer s.lock.Unlock()
	if l == nil || l.d != d || s.closed {
		return 0
	}
	return s.mint(l)
}

// Sublist returns the list of the first n paths of l, or of those among them that are in mask, nil for all. It has no handle;
// asked for again, it is the same List like any other.
func (d *Dictionary) Sublist(l *List, n int, mask bitset.Set) *List {
	if mask == nil && n == l.Len() {
		return l
	}
	in := d.borrow(n)
	defer d.giveBack(in)
	if mask == nil {
		return d.shelve(append(in.indices[:0], l.indices[:n]...))
	}
	return d.shelve(mask.Pick(in.indices[:0], l.indices[:n]))
}

// Part returns the list of the n paths of l from position from on. It has no handle; asked for again, it is the same List
// like any other.
func (d *Dictionary) Part(l *List, from, n int) *List {
	if n == l.Len() {
		return l
	}
	return d.shelve(l.indices[from : from+n])
}

// shelve finds the list of these paths or makes it of a copy, and keeps it alive for a while.
func (d *Dictionary) shelve(indices []uint32) *List {
	hash := maphash.Bytes(d.seed, bytesOf(indices))
	s := &d.shelf
	s.lock.Lock()
	defer s.lock.Unlock()
	list := s.intern(d, indices, hash)
	if list.handles == 0 {
		s.remember(list)
	}
	return list
}

// List returns the list that a handle stands for.
func (d *Dictionary) List(h ListHandle) (*List, error) {
	s := &d.shelf
	s.lock.RLock()
	defer s.lock.RUnlock()
	held, ok := s.held[h]
	if !ok {
		return nil, unknownList(h)
	}
	return held.list, nil
}

// AddRef adds a reference to a handle. Handle 0 is accepted and nothing happens.
func (d *Dictionary) AddRef(h ListHandle) error { return d.shelf.count(h, +1) }

// ReleaseRef drops a reference of a handle. With the last one the handle is unknown, at once and for ever. Handle 0 is
// accepted and nothing happens.
func (d *Dictionary) ReleaseRef(h ListHandle) error { return d.shelf.count(h, -1) }

func bytesOf(indices []uint32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(indices))), 4*len(indices))
}
