package prims

import (
	"cmp"
	"encoding/binary"
	"slices"
	"sort"
	"strings"

	"ovstage.dev/ovstage/gocore/pathdict"
)

// names are the children of one path, sorted by name. Sorting a million children takes a few hundred milliseconds, once:
// children that come later wait in a short list, which is searched one by one, and those that leave stay, until it is time to
// sort anew.
type names struct {
	sorted []uint32
	later  []uint32
}

// sortNames sorts children by name.
func sortNames(dict *pathdict.Dictionary, children []uint32) *names {
	type named struct {
		start uint64 // of the name, to compare most of them without looking at text
		child uint32
	}
	all := make([]named, len(children))
	for i, child := range children {
		var start [8]byte
		copy(start[:], dict.NameAt(child))
		all[i] = named{binary.BigEndian.Uint64(start[:]), child}
	}
	slices.SortFunc(all, func(a, b named) int {
		if a.start != b.start {
			return cmp.Compare(a.start, b.start)
		}
		return strings.Compare(dict.NameAt(a.child), dict.NameAt(b.child))
	})
	n := &names{sorted: children}
	for i, one := range all {
		n.sorted[i] = one.child
	}
	return n
}

// add notes a child that has come. It is false when too many have: then it is time to sort anew.
func (n *names) add(child uint32) bool {
	n.later = append(n.later, child)
	return 8*len(n.later) <= len(n.sorted)
}

// search calls visit for the children whose name begins with a prefix.
func (n *names) search(dict *pathdict.Dictionary, prefix string, visit func(child uint32)) {
	first := sort.Search(len(n.sorted), func(i int) bool { return dict.NameAt(n.sorted[i]) >= prefix })
	for _, child := range n.sorted[first:] {
		if !strings.HasPrefix(dict.NameAt(child), prefix) {
			break
		}
		visit(child)
	}
	for _, child := range n.later {
		if strings.HasPrefix(dict.NameAt(child), prefix) {
			visit(child)
		}
	}
}
