package prims

import (
	"strings"

	"ovstage.dev/ovstage/gocore/pathdict"
)

// Tree is the tree of the prims that exist and of the paths above them, which need not be prims. It answers what lies under a
// path without looking at other paths.
//
// It is kept up to date prim by prim. A path is in the tree while it is a prim or something below it is, so that a question
// costs what it finds, however many prims have come and gone; a prim that comes or goes costs the paths that it links.
type Tree struct {
	dict  *pathdict.Dictionary
	links []link
	names map[uint32]*names // by parent: of the paths with many children that were searched by name
}

// link is where a path is in the tree. Siblings are a chain in the order of linking. 0, the root, ends a chain, since the root
// has no siblings.
type link struct {
	child, next uint32
	prev        uint32 // the sibling before; of the first, the last; 0 while the path is not in the tree
	prims       uint32 // how many of the children are prims
}

func newTree(dict *pathdict.Dictionary) *Tree {
	return &Tree{dict: dict, links: make([]link, 1), names: map[uint32]*names{}}
}

// Prims is the number of a path's children that are prims.
func (t *Tree) Prims(path uint32) int {
	if !t.Has(path) {
		return 0
	}
	return int(t.links[path].prims)
}

// Has reports whether the tree has room for the path. Where it has none there is nothing at or below the path.
func (t *Tree) Has(path uint32) bool { return int(path) < len(t.links) }

// Children calls visit for each child of a path.
func (t *Tree) Children(path uint32, visit func(child uint32)) {
	if !t.Has(path) {
		return
	}
	for child := t.links[path].child; child != 0; child = t.links[child].next {
		visit(child)
	}
}

// Below calls visit for a path, for which the tree has room, and for everything of the tree under it.
func (t *Tree) Below(path uint32, visit func(path uint32)) {
	for at := path; ; {
		visit(at)
		if child := t.links[at].child; child != 0 {
			at = child
			continue
		}
		for at != path && t.links[at].next == 0 {
			at = t.dict.ParentAt(at)
		}
		if at == path {
			return
		}
		at = t.links[at].next
	}
}

// Named calls visit for the children of a path whose name begins with a prefix. It calls visit twice for some of them, and also
// for some that have left the tree: those are no prims and have nothing below them.
func (t *Tree) Named(path uint32, prefix string, visit func(child uint32)) {
	sorted := t.names[path]
	if sorted == nil && t.size(path) >= manyChildren {
		var children []uint32
		t.Children(path, func(child uint32) { children = append(children, child) })
		sorted = sortNames(t.dict, children)
		t.names[path] = sorted
	}
	if sorted != nil {
		sorted.search(t.dict, prefix, visit)
		return
	}
	t.Children(path, func(child uint32) {
		if strings.HasPrefix(t.dict.NameAt(child), prefix) {
			visit(child)
		}
	})
}

// manyChildren is the number of children from which they are sorted before they are searched by name.
const manyChildren = 4096

// size is the number of a path's children.
func (t *Tree) size(path uint32) (n int) {
	t.Children(path, func(uint32) { n++ })
	return n
}

// enter takes in a new prim.
func (t *Tree) enter(path uint32) {
	if missing := int(path) + 1 - len(t.links); missing > 0 {
		t.links = append(t.links, make([]link, missing)...)
	}
	if path != 0 {
		t.links[t.dict.ParentAt(path)].prims++
	}
	for path != 0 && t.links[path].prev == 0 {
		parent := t.dict.ParentAt(path)
		t.attach(path, parent)
		path = parent
	}
}

// leave removes a prim that exists no more, and the paths above it that are linked for it alone.
func (t *Tree) leave(path uint32, alive *kinds) {
	if path != 0 {
		t.links[t.dict.ParentAt(path)].prims--
	}
	for path != 0 && t.links[path].child == 0 && !alive.carries(path) {
		parent := t.dict.ParentAt(path)
		t.detach(path, parent)
		path = parent
	}
}

// attach makes a path the last child of its parent.
func (t *Tree) attach(path, parent uint32) {
	at := &t.links[path]
	if first := t.links[parent].child; first == 0 {
		t.links[parent].child, at.prev = path, path
	} else {
		last := t.links[first].prev
		t.links[last].next, at.prev, t.links[first].prev = path, last, path
	}
	if sorted := t.names[parent]; sorted != nil && !sorted.add(path) {
		delete(t.names, parent)
	}
}

// detach takes a path out of the chain of its parent's children.
func (t *Tree) detach(path, parent uint32) {
	at, first := t.links[path], t.links[parent].child
	if first == path {
		t.links[parent].child = at.next
	} else {
		t.links[at.prev].next = at.next
	}
	if at.next != 0 {
		t.links[at.next].prev = at.prev
	} else if first != path {
		t.links[first].prev = at.prev
	}
	t.links[path].prev, t.links[path].next = 0, 0
}
