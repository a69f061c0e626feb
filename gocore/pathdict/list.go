package pathdict

import (
	"hash/maphash"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"
	"weak"
)

const (
	recentLists = 64       // released contents that are kept for a while
	recentBytes = 64 << 20 // and what they may weigh together
)

// List is an ordered sequence of paths. It is immutable, and there is one List for each content: two lists with the same paths in the same
// order are the same pointer for as long as anyone holds it, and for a while after. What is derived from a list, such
// as the rows of a query, can therefore be cached by pointer.
type List struct {
	indices []uint32
	base    uint64
	hash    uint64
	handles int           // live handles, under the shelf's lock
	unique  atomic.Uint32 // 0: not known yet, 1: no duplicates, 2: duplicates
}

// Len returns the number of paths, duplicates included.
func (l *List) Len() int { return len(l.indices) }

// At returns the path at position i.
func (l *List) At(i int) Path { return Path(l.base + 1 + uint64(l.indices[i])) }

// Indices returns the dense indices of the paths, in order. The caller must not change them.
func (l *List) Indices() []uint32 { return l.indices }

// Unique reports whether no path occurs twice.
func (l *List) Unique() bool {
	known := l.unique.Load()
	if known == 0 {
		known = 1
		if hasDuplicate(l.indices) {
			known = 2
		}
		l.unique.Store(known) // two goroutines may both find out: they agree
	}
	return known == 1
}

func hasDuplicate(indices []uint32) bool {
	if len(indices) < 2 {
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
	if reach := uint64(most-least) + 1; reach <= 64*uint64(len(indices)) {
		seen := make([]uint64, (reach+63)/64)
		for _, index := range indices {
			at, bit := (index-least)/64, uint64(1)<<((index-least)%64)
			if seen[at]&bit != 0 {
				return true
			}
			seen[at] |= bit
		}
		return false
	}
	sorted := slices.Clone(indices)
	slices.Sort(sorted)
	return len(slices.Compact(sorted)) < len(indices)
}

// NewList makes a list of paths and returns a new handle with one reference.
func (d *Dictionary) NewList(paths []Path) (ListHandle, error) {
	scratch := d.borrow(len(paths))
	defer d.giveBack(scratch)
	known := uint64(d.paths.published.Load())
	for i, p := range paths {
		index := d.index(uint64(p))
		if index >= known {
			return 0, refuse("%s (entry %d, handle %d): intern the path first", ErrUnknownPath, i, p)
		}
		(*scratch)[i] = uint32(index)
	}
	return d.newList(*scratch), nil
}

// NewListFromStrings interns paths and makes a list of them, as NewList does.
func (d *Dictionary) NewListFromStrings(strings []string) (ListHandle, error) {
	scratch := d.borrow(len(strings))
	defer d.giveBack(scratch)
	if err := d.internPaths(strings, *scratch); err != nil {
		return 0, err
	}
	return d.newList(*scratch), nil
}

// Mint returns a further handle of a list, with one reference; 0 when the list is another dictionary's.
func (d *Dictionary) Mint(l *List) ListHandle {
	if l == nil || l.base != d.base {
		return 0
	}
	d.shelf.lock.Lock()
	defer d.shelf.lock.Unlock()
	return d.shelf.mint(l)
}

// List returns the list that a handle names.
func (d *Dictionary) List(h ListHandle) (*List, error) {
	d.shelf.lock.RLock()
	defer d.shelf.lock.RUnlock()
	holding, ok := d.shelf.holdings[h]
	if !ok {
		return nil, unknownList(h)
	}
	return holding.list, nil
}

// AddRef adds a reference to a handle. Handle 0 is accepted and has no effect.
func (d *Dictionary) AddRef(h ListHandle) error { return d.shelf.count(h, +1) }

// ReleaseRef drops a reference of a handle; with the last one the handle is unknown for ever. Handle 0 is accepted and has no effect.
func (d *Dictionary) ReleaseRef(h ListHandle) error { return d.shelf.count(h, -1) }

func unknownList(h ListHandle) error {
	return refuse("Path list handle was not found (handle %d): it was released or never created", h)
}

// newList finds the list with this content, or copies it into a new one.
func (d *Dictionary) newList(indices []uint32) ListHandle {
	hash := maphash.Bytes(d.seed, bytesOf(indices))
	s := &d.shelf
	s.lock.Lock()
	defer s.lock.Unlock()
	l := s.find(hash, indices)
	if l == nil {
		l = &List{indices: slices.Clone(indices), base: d.base, hash: hash}
		s.add(l)
	}
	return s.mint(l)
}

func bytesOf(indices []uint32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(indices))), 4*len(indices))
}

// shelf keeps the lists of a dictionary.
type shelf struct {
	lock     sync.RWMutex
	last     uint64 // the handle minted last
	holdings map[ListHandle]holding
	// contents finds every List there is by the hash of its content. The pointers are weak: a list lives while a handle, a
	// query or recent holds it, and leaves contents when the collector has found it dead.
	contents map[uint64][]weak.Pointer[List]
	recent   []*List // lists without handles, the one released last at the end
	weight   int     // bytes of recent
}

// holding is what a handle names, and its references.
type holding struct {
	list *List
	refs int
}

func (s *shelf) open(base uint64) {
	s.last = base
	s.holdings = map[ListHandle]holding{}
	s.contents = map[uint64][]weak.Pointer[List]{}
}

func (s *shelf) close() {
	s.lock.Lock()
	defer s.lock.Unlock()
	clear(s.holdings)
	clear(s.contents)
	s.recent, s.weight = nil, 0
}

func (s *shelf) end() uint64 {
	s.lock.RLock()
	defer s.lock.RUnlock()
	return s.last + 1
}

func (s *shelf) counts() (handles, lists int) {
	s.lock.RLock()
	defer s.lock.RUnlock()
	for _, same := range s.contents {
		lists += len(same)
	}
	return len(s.holdings), lists
}

func (s *shelf) find(hash uint64, indices []uint32) *List {
	for _, pointer := range s.contents[hash] {
		if l := pointer.Value(); l != nil && slices.Equal(l.indices, indices) {
			return l
		}
	}
	return nil
}

func (s *shelf) add(l *List) {
	s.contents[l.hash] = append(s.contents[l.hash], weak.Make(l))
	runtime.AddCleanup(l, s.forget, l.hash)
}

// forget drops the dead lists with this hash from contents. The runtime calls it some time after such a list died.
func (s *shelf) forget(hash uint64) {
	s.lock.Lock()
	defer s.lock.Unlock()
	alive := slices.DeleteFunc(s.contents[hash], func(p weak.Pointer[List]) bool { return p.Value() == nil })
	if len(alive) == 0 {
		delete(s.contents, hash)
		return
	}
	s.contents[hash] = alive
}

// mint gives a list one more handle. The caller holds the lock.
func (s *shelf) mint(l *List) ListHandle {
	s.last++
	s.holdings[ListHandle(s.last)] = holding{l, 1}
	if l.handles == 0 {
		if i := slices.Index(s.recent, l); i >= 0 {
			s.recent = slices.Delete(s.recent, i, i+1)
			s.weight -= 4 * len(l.indices)
		}
	}
	l.handles++
	return ListHandle(s.last)
}

// count changes the references of a handle and ends it when none is left.
func (s *shelf) count(h ListHandle, change int) error {
	if h == 0 {
		return nil
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	held, ok := s.holdings[h]
	if !ok {
		return unknownList(h)
	}
	if held.refs += change; held.refs > 0 {
		s.holdings[h] = held
		return nil
	}
	delete(s.holdings, h)
	if held.list.handles--; held.list.handles == 0 {
		s.remember(held.list)
	}
	return nil
}

// remember keeps a list whose last handle went, and lets go of those kept longest.
func (s *shelf) remember(l *List) {
	s.recent = append(s.recent, l)
	s.weight += 4 * len(l.indices)
	for len(s.recent) > recentLists || s.weight > recentBytes {
		s.weight -= 4 * len(s.recent[0].indices)
		s.recent = slices.Delete(s.recent, 0, 1)
	}
}
