package stage

import (
	"cmp"
	"encoding/binary"
	"slices"
	"sort"
	"strings"

	"ovstage/gocore/pathdict"
)

// family is the tree of the prims that exist and of the paths above them, which need not be prims. It answers what lies
// under a path without looking at other paths.
//
// It is kept up to date prim by prim. A path is in the tree while it is a prim or something below it is, so that asking
// costs what is found, however many prims have come and gone; entering and leaving pay once for each path that they link.
type family struct {
	dict  *pathdict.Dictionary
	links []link
	names map[uint32]*register // of the large families that were searched by name, by parent
}

// link is the place of a path in the tree. Siblings are a chain in the order of linking; 0, the root, ends it, since the
// root is nobody's sibling.
type link struct {
	child, next uint32
	prev        uint32 // the sibling before; of the first, the last; 0 while the path is not in the tree
	prims       uint32 // how many of the children are prims
}

func newFamily(dict *pathdict.Dictionary) *family {
	return &family{dict: dict, links: make([]link, 1), names: map[uint32]*register{}}
}

// above returns a path's parent. The root has none and is asked for no more.
func (f *family) above(path uint32) uint32 { return f.dict.ParentAt(path) }

// enter takes in a new prim.
func (f *family) enter(path uint32) {
	if missing := int(path) + 1 - len(f.links); missing > 0 {
		f.links = append(f.links, make([]link, missing)...)
	}
	if path != 0 {
		f.links[f.above(path)].prims++
	}
	for path != 0 && f.links[path].prev == 0 {
		parent := f.above(path)
		f.attach(path, parent)
		path = parent
	}
}

// leave lets a prim go that is no more.
func (f *family) leave(path uint32, alive *prims) {
	if path != 0 {
		f.links[f.above(path)].prims--
	}
	for path != 0 && f.links[path].child == 0 && !alive.exists(path) {
		parent := f.above(path)
		f.detach(path, parent)
		path = parent
	}
}

// attach makes a path the last child of its parent.
func (f *family) attach(path, parent uint32) {
	at := &f.links[path]
	if first := f.links[parent].child; first == 0 {
		f.links[parent].child, at.prev = path, path
	} else {
		last := f.links[first].prev
		f.links[last].next, at.prev, f.links[first].prev = path, last, path
	}
	if r := f.names[parent]; r != nil && !r.add(path) {
		delete(f.names, parent)
	}
}

func (f *family) detach(path, parent uint32) {
	at, first := f.links[path], f.links[parent].child
	if first == path {
		f.links[parent].child = at.next
	} else {
		f.links[at.prev].next = at.next
	}
	if at.next != 0 {
		f.links[at.next].prev = at.prev
	} else if first != path {
		f.links[first].prev = at.prev
	}
	f.links[path].prev, f.links[path].next = 0, 0
}

// has reports whether the tree knows the path: only then may one ask for its children.
func (f *family) has(path uint32) bool { return int(path) < len(f.links) }

// prims is the number of a path's children that are prims.
func (f *family) prims(path uint32) int {
	if !f.has(path) {
		return 0
	}
	return int(f.links[path].prims)
}

// children calls visit for each child of a path.
func (f *family) children(path uint32, visit func(child uint32)) {
	if !f.has(path) {
		return
	}
	for child := f.links[path].child; child != 0; child = f.links[child].next {
		visit(child)
	}
}

// below calls visit for a path of the tree and everything under it.
func (f *family) below(path uint32, visit func(path uint32)) {
	for at := path; ; {
		visit(at)
		if child := f.links[at].child; child != 0 {
			at = child
			continue
		}
		for at != path && f.links[at].next == 0 {
			at = f.above(at)
		}
		if at == path {
			return
		}
		at = f.links[at].next
	}
}

// named calls visit for the children of a path whose name begins with a prefix, for some of them twice, and perhaps for some
// who have left: those are no prims and have nothing below them.
func (f *family) named(path uint32, prefix string, visit func(child uint32)) {
	r := f.names[path]
	if r == nil {
		size := 0
		f.children(path, func(uint32) { size++ })
		if size >= largeFamily {
			r = f.register(path, size)
			f.names[path] = r
		}
	}
	if r != nil {
		r.search(f, prefix, visit)
		return
	}
	f.children(path, func(child uint32) {
		if strings.HasPrefix(f.dict.NameAt(child), prefix) {
			visit(child)
		}
	})
}

// largeFamily is the number of children from which they are sorted before they are searched by name.
const largeFamily = 4096

// register is a large family by name. Sorting a million children takes a few hundred milliseconds, once: children who come
// later wait in a short list that is searched one by one, and those who leave stay, until it is time to sort anew.
type register struct {
	sorted []uint32
	later  []uint32
}

func (f *family) register(path uint32, size int) *register {
	type entry struct {
		start uint64 // of the name, to compare most of them without looking at text
		child uint32
	}
	entries := make([]entry, 0, size)
	f.children(path, func(child uint32) {
		var start [8]byte
		copy(start[:], f.dict.NameAt(child))
		entries = append(entries, entry{binary.BigEndian.Uint64(start[:]), child})
	})
	slices.SortFunc(entries, func(a, b entry) int {
		if a.start != b.start {
			return cmp.Compare(a.start, b.start)
		}
		return strings.Compare(f.dict.NameAt(a.child), f.dict.NameAt(b.child))
	})
	r := &register{sorted: make([]uint32, len(entries))}
	for i, e := range entries {
		r.sorted[i] = e.child
	}
	return r
}

// add notes a child who has come. It is false when too many have.
func (r *register) add(child uint32) bool {
	r.later = append(r.later, child)
	return 8*len(r.later) <= len(r.sorted)
}

func (r *register) search(f *family, prefix string, visit func(child uint32)) {
	first := sort.Search(len(r.sorted), func(i int) bool { return f.dict.NameAt(r.sorted[i]) >= prefix })
	for _, child := range r.sorted[first:] {
		if !strings.HasPrefix(f.dict.NameAt(child), prefix) {
			break
		}
		visit(child)
	}
	for _, child := range r.later {
		if strings.HasPrefix(f.dict.NameAt(child), prefix) {
			visit(child)
		}
	}
}
