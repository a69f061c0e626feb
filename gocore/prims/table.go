package prims

import (
	"cmp"
	"slices"

	"ovstage.dev/ovstage/gocore/bitset"
	"ovstage.dev/ovstage/gocore/pathdict"
)

// Table knows which prims exist: those that carry an attribute. Prims are dense path indices.
//
// Everything is flat and indexed by path, so that the garbage collector finds nothing to trace in a million prims. A prim that
// comes or goes costs a few nanoseconds; a write to prims that exist costs nothing.
type Table struct {
	dict    *pathdict.Dictionary
	kinds   kinds      // what each prim carries
	slots   []uint32   // path index -> slot in order, for prims that exist
	order   []uint32   // the prims in the order of their creation; vacant slots are those of prims that have gone
	gone    int        // how many slots are vacant
	holes   bitset.Set // which slots are
	changes uint64     // rises when a prim comes or goes
	tree    *Tree      // made by the first question that needs it
}

// New returns a table without prims.
func New(dict *pathdict.Dictionary) Table { return Table{dict: dict} }

// Exists reports whether a prim carries anything.
func (t *Table) Exists(path uint32) bool { return t.kinds.carries(path) }

// Nested reports whether the parent of a path is a prim. The root is no prim's parent.
func (t *Table) Nested(path uint32) bool {
	parent := t.dict.ParentAt(path)
	return parent != 0 && t.Exists(parent)
}

// Count is the number of prims.
func (t *Table) Count() int { return len(t.order) - t.gone }

// Changes rises when a prim comes or goes.
func (t *Table) Changes() uint64 { return t.changes }

// Carried returns the names of the attributes that any of the prims carries, ascending.
func (t *Table) Carried(prims []uint32) []pathdict.Token { return t.kinds.carried(prims) }

// Carry gives an attribute to prims, or takes it from them. A prim comes with its first attribute and goes with its last.
func (t *Table) Carry(name pathdict.Token, prims []uint32, carried bool) {
	t.kinds.change(name, prims, carried, func(paths []uint32, before, after uint32) {
		switch {
		case before == 0 && after != 0:
			t.born(paths)
		case before != 0 && after == 0:
			for _, path := range paths {
				t.died(path)
			}
		}
	})
}

func (t *Table) born(paths []uint32) {
	t.changes += uint64(len(paths))
	if missing := len(t.kinds.of) - len(t.slots); missing > 0 {
		t.slots = append(t.slots, make([]uint32, missing)...)
	}
	slot := uint32(len(t.order))
	t.order = append(t.order, paths...)
	for i, path := range paths {
		t.slots[path] = slot + uint32(i)
	}
	if t.tree != nil {
		for _, path := range paths {
			t.tree.enter(path)
		}
	}
}

func (t *Table) died(path uint32) {
	t.changes++
	t.order[t.slots[path]] = pathdict.NoPath
	t.holes = t.holes.Grow(int(t.slots[path]) + 1)
	t.holes.Add(int(t.slots[path]))
	t.gone++
	if t.tree != nil {
		t.tree.leave(path, &t.kinds)
	}
	if t.gone >= minGone && 2*t.gone > len(t.order) {
		t.closeGaps()
	}
}

// minGone is the number of vacant slots below which closing the gaps is not worth it.
const minGone = 1024

// closeGaps drops the vacant slots. Carry calls it when half of the slots are vacant, so that it costs little for each prim that
// has gone.
func (t *Table) closeGaps() {
	t.order = slices.DeleteFunc(t.order, func(path uint32) bool { return path == pathdict.NoPath })
	for slot, path := range t.order {
		t.slots[path] = uint32(slot)
	}
	t.gone, t.holes = 0, nil
}

// Name says which prims exist while their dictionary is compacted. What was known of names of prims that have gone is
// forgotten: their indices may become those of others.
func (t *Table) Name(n *pathdict.Named) {
	for _, path := range t.order {
		if path != pathdict.NoPath {
			n.Path(path)
		}
	}
	if t.tree != nil {
		clear(t.tree.names)
	}
}

// Tree returns the tree of the prims. The first question makes it, at some 50 ns a prim; from then on it follows.
func (t *Table) Tree() *Tree {
	if t.tree == nil {
		t.tree = newTree(t.dict)
		for _, path := range t.order {
			if path != pathdict.NoPath {
				t.tree.enter(path)
			}
		}
	}
	return t.tree
}

// Children appends the children of a path that are prims to a list, in the order of their creation.
func (t *Table) Children(path uint32, list []uint32) []uint32 {
	from := len(list)
	t.Tree().Children(path, func(child uint32) {
		if t.Exists(child) {
			list = append(list, child)
		}
	})
	t.sort(list[from:])
	return list
}

// sort puts prims into the order of their creation.
func (t *Table) sort(prims []uint32) {
	created := func(a, b uint32) int { return cmp.Compare(t.slots[a], t.slots[b]) }
	if !slices.IsSortedFunc(prims, created) {
		slices.SortFunc(prims, created)
	}
}

// None selects no prim. A selection is a set of slots in the order of creation: whatever found the prims in whatever order,
// they are listed in that order. It is good until a prim comes or goes.
func (t *Table) None() bitset.Set { return bitset.New(len(t.order)) }

// Add selects a path, if it is a prim.
func (t *Table) Add(to bitset.Set, path uint32) {
	if t.Exists(path) {
		to.Add(int(t.slots[path]))
	}
}

// AddEach selects paths, all of which are prims. Neighbours in the list are mostly neighbours in the order of creation, and are
// selected a word at a time.
func (t *Table) AddEach(to bitset.Set, prims []uint32) {
	adder := bitset.Adder{To: to}
	for _, path := range prims {
		adder.Add(t.slots[path])
	}
	adder.Flush()
}

// AddSet is AddEach for a set. A set that holds all prims, as most do, costs nothing for each of them.
func (t *Table) AddSet(to bitset.Set, prims Set) {
	if prims.Count() == t.Count() {
		t.AddAll(to)
		return
	}
	prims.Each(func(path uint32) { to.Add(int(t.slots[path])) })
}

// AddAll selects every prim.
func (t *Table) AddAll(to bitset.Set) {
	to.AddRange(0, len(t.order))
	to.AndNot(t.holes)
}

// AddWhere selects the prims that satisfy a condition.
func (t *Table) AddWhere(to bitset.Set, holds func(path uint32) bool) {
	for slot, path := range t.order {
		if path != pathdict.NoPath && holds(path) {
			to.Add(slot)
		}
	}
}

// List returns the selected prims in the order of their creation.
func (t *Table) List(of bitset.Set) []uint32 {
	return of.Pick(make([]uint32, 0, of.Count()), t.order)
}
