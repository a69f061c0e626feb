package scene

import (
	"cmp"
	"slices"

	"ovstage.dev/ovstage/gocore/bitset"
	"ovstage.dev/ovstage/gocore/column"
	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/stage"
)

// tree is the prims that have a transform, parents before their children, and where their values are. Passes use it as long
// as the same rows are alive, and then look nothing up.
type tree struct {
	locals, resets []part
	world          part
	nodes          []node
	slots          []int32 // of each node, during a pass

	// The sealed world transforms were made of everything that these floors had passed.
	settled bool
	floors  map[pathdict.Token]uint64
}

// part is a column that the tree was made of.
type part struct {
	column *column.Column
	epoch  uint64
	added  uint64
	alive  bitset.Set
}

// node is a prim with a transform.
type node struct {
	path   uint32
	parent int32 // the nearest ancestor with a transform, -1 without
	local  cell
	reset  cell
	world  int32 // row, -1 without
}

// cell is a row of one of several columns; row is -1 for none.
type cell struct{ input, row int32 }

var nowhere = cell{-1, -1}

// partsOf describes columns.
func partsOf(inputs []input) []part {
	var parts []part
	for _, in := range inputs {
		parts = append(parts, part{in.column, in.column.Epoch(), 0, in.alive})
	}
	return parts
}

// partOf describes the column of world transforms, of which it only matters which prims have a row.
func partOf(c *column.Column) part {
	if c == nil {
		return part{}
	}
	return part{column: c, epoch: c.Epoch(), added: c.Added()}
}

func (p part) same(o part) bool {
	return p.column == o.column && p.epoch == o.epoch && p.added == o.added && p.alive.Equal(o.alive)
}

// fits reports whether the tree was made of these columns, as they are.
func (t *tree) fits(locals, resets []input, world *column.Column) bool {
	return t != nil && slices.EqualFunc(t.locals, partsOf(locals), part.same) &&
		slices.EqualFunc(t.resets, partsOf(resets), part.same) && t.world.same(partOf(world))
}

// compare finds which rows of a column may hold another value than in the last pass over the tree.
func (t *tree) compare(in *input, name pathdict.Token) {
	if t == nil || !t.settled || !in.newest {
		return
	}
	in.all = false
	changed, _ := in.column.Changed(t.floors[name]+1, column.Latest)
	in.sealed = changed.Set()
}

// grow makes the tree of columns. Dense path indices rise from parent to child, so that sorting by them is all it takes.
func grow(tx stage.Tx, locals, resets []input, world *column.Column) *tree {
	t := &tree{locals: partsOf(locals), resets: partsOf(resets), world: partOf(world), floors: map[pathdict.Token]uint64{}}
	for i := range locals {
		locals[i].alive.Each(func(row int) {
			t.nodes = append(t.nodes, node{path: locals[i].column.Path(row), local: cell{int32(i), int32(row)}, reset: nowhere, world: -1})
		})
	}
	byPath := func(a, b node) int { return cmp.Compare(a.path, b.path) }
	if !slices.IsSortedFunc(t.nodes, byPath) {
		slices.SortFunc(t.nodes, byPath)
	}
	t.slots = make([]int32, len(t.nodes))
	t.link(tx.Dictionary())
	for i := range t.nodes {
		n := &t.nodes[i]
		for k := range resets {
			if row := resets[k].column.Row(n.path); row >= 0 && resets[k].alive.Has(row) {
				n.reset = cell{int32(k), int32(row)}
			}
		}
		if world != nil {
			n.world = int32(world.Row(n.path))
		}
	}
	return t
}

// link finds the parents. nearest knows, for each path that was met, the node at it or above it.
func (t *tree) link(dict *pathdict.Dictionary) {
	if len(t.nodes) == 0 {
		return
	}
	const unknown, none = -2, -1
	nearest := make([]int32, t.nodes[len(t.nodes)-1].path+1)
	for i := range nearest {
		nearest[i] = unknown
	}
	nearest[0] = none // the root is no prim's parent
	var climbed []uint32
	for i := range t.nodes {
		n := &t.nodes[i]
		at := dict.ParentAt(n.path)
		for climbed = climbed[:0]; nearest[at] == unknown; at = dict.ParentAt(at) {
			climbed = append(climbed, at)
		}
		n.parent = nearest[at]
		for _, path := range climbed {
			nearest[path] = n.parent
		}
		if n.path != 0 {
			nearest[n.path] = int32(i)
		}
	}
}
