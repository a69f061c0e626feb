package pathdict

import (
	"bytes"
	"runtime"
	"slices"
	"sync"
	"weak"
)

const (
	recentLists = 64       // how many lists without handles are kept alive
	recentBytes = 64 << 20 // and what they may weigh together
)

// shelf holds the lists of a dictionary and their handles.
type shelf struct {
	lock   sync.RWMutex
	last   uint64 // the handle minted last: handles rise and are never used again
	held   map[ListHandle]holding
	closed bool

	// contents finds a list by the hash of its content. The pointers are weak, so that a list is found for as long as it lives,
	// what keeps it alive: a handle, a query, or recent. A hash whose lists are dead goes when the collector reports them.
	contents map[uint64][]weak.Pointer[List]

	// recent keeps lists alive that have no handle, the least recently used first: a client that makes an equal list every
	// tick, and releases it, finds everything that was worked out for it.
	recent []*List
	weight int // bytes of recent
}

// holding is what a handle stands for.
type holding struct {
	list *List
	refs int
}

func (s *shelf) open(base uint64) {
	s.last = base
	s.held = map[ListHandle]holding{}
	s.contents = map[uint64][]weak.Pointer[List]{}
}

func (s *shelf) close() {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.closed = true
	clear(s.held)
	clear(s.contents)
	s.recent, s.weight = nil, 0
}

// end returns the first handle that was not minted.
func (s *shelf) end() uint64 {
	s.lock.RLock()
	defer s.lock.RUnlock()
	return s.last + 1
}

func (s *shelf) counts() (handles, lists int) {
	s.lock.RLock()
	defer s.lock.RUnlock()
	for _, same := range s.contents {
		for _, pointer := range same {
			if pointer.Value() != nil {
				lists++
			}
		}
	}
	return len(s.held), lists
}

// intern finds the list with this content or makes it of a copy. The caller holds the lock.
func (s *shelf) intern(d *Dictionary, indices []uint32, hash uint64) *List {
	for _, pointer := range s.contents[hash] {
		if l := pointer.Value(); l != nil && bytes.Equal(bytesOf(l.indices), bytesOf(indices)) {
			return l
		}
	}
	if n := d.named.Load(); n != nil {
		n.Paths(indices)
	}
	l := &List{d: d, indices: slices.Clone(indices), hash: hash}
	known := weak.Make(l)
	s.contents[hash] = append(s.contents[hash], known)
	runtime.AddCleanup(l, s.forget, dead{known, hash})
	return l
}

// alive returns the lists that are held.
func (s *shelf) alive() (lists []*List) {
	s.lock.RLock()
	defer s.lock.RUnlock()
	for _, same := range s.contents {
		for _, pointer := range same {
			if l := pointer.Value(); l != nil {
				lists = append(lists, l)
			}
		}
	}
	return lists
}

// forgetRecent lets the lists go that have no handle.
func (s *shelf) forgetRecent() {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.recent, s.weight = nil, 0
}

// dead is a list that has gone, and the hash of its content.
type dead struct {
	list weak.Pointer[List]
	hash uint64
}

// forget drops a dead list. The runtime calls it on a goroutine of its own, where it must not look at other lists: they would
// live longer for that.
func (s *shelf) forget(d dead) {
	s.lock.Lock()
	defer s.lock.Unlock()
	others := slices.DeleteFunc(s.contents[d.hash], func(p weak.Pointer[List]) bool { return p == d.list })
	if len(others) > 0 {
		s.contents[d.hash] = others
	} else {
		delete(s.contents, d.hash)
	}
}

// mint makes one more handle for a list. The caller holds the lock.
func (s *shelf) mint(l *List) ListHandle {
	if l.handles == 0 {
		s.takeOut(l)
	}
	l.handles++
	s.last++
	h := ListHandle(s.last)
	s.held[h] = holding{l, 1}
	return h
}

// count changes the number of references of a handle and ends the handle when none is left.
func (s *shelf) count(h ListHandle, change int) error {
	if h == 0 {
		return nil
	}
	s.lock.Lock()
	defer s.lock.Unlock()
	held, ok := s.held[h]
	if !ok {
		return unknownList(h)
	}
	if held.refs += change; held.refs > 0 {
		s.held[h] = held
		return nil
	}
	delete(s.held, h)
	if held.list.handles--; held.list.handles == 0 {
		s.remember(held.list)
	}
	return nil
}

// remember puts a list without handles at the end of recent, and lets go of what is too much. The caller holds the lock.
func (s *shelf) remember(l *List) {
	s.takeOut(l)
	s.recent = append(s.recent, l)
	s.weight += l.weight()
	for len(s.recent) > recentLists || s.weight > recentBytes {
		s.takeOut(s.recent[0])
	}
}

func (s *shelf) takeOut(l *List) {
	if i := slices.Index(s.recent, l); i >= 0 {
		s.recent = slices.Delete(s.recent, i, i+1)
		s.weight -= l.weight()
	}
}

func (l *List) weight() int { return 4 * len(l.indices) }

func unknownList(h ListHandle) error {
	return refuse("Path list handle was not found (handle %d): it was released, or never created", h)
}
