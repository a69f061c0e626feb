package stage

import (
	"slices"
	"unsafe"

	"ovstage.dev/ovstage/gocore/column"
	"ovstage.dev/ovstage/gocore/memory"
	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/query"
	"ovstage.dev/ovstage/gocore/tensor"
)

// derive adds the group of a derived attribute to a read. It shows the prims as they are now, sealed or not: floors do not
// matter, there is no history, and a range of changes has nothing of it. The group is made for the read, a few ns for each
// prim of the query.
func (s *Stage) derive(to *read, q query.Query, name pathdict.Token, r Range) error {
	text := s.text(name)
	if text == "usd-active" {
		return errorf(NotSupported, "attribute %q can't be read; leave it out", text)
	}
	if r.HasStart {
		return nil
	}
	g := Group{
		Attribute: name, Ordinal: r.End, List: q.Handle, DType: tensor.DType{Code: tensor.UInt, Bits: 64, Lanes: 1},
		Floor: s.floorOf(s.attributes[name]), Generation: s.prims.Changes(),
	}
	covered, err := s.cover(&g, q, text)
	if err != nil {
		return wrap(err, "attribute %q", text)
	}
	if len(covered) == 0 {
		return nil
	}
	if text == "usd-children" {
		err = s.deriveChildren(&g, covered)
	} else {
		err = s.derivePaths(&g, covered, text == "usd-parent")
	}
	if err != nil {
		g.PrimMap.Release()
		return wrap(err, "attribute %q", text)
	}
	_ = s.dict.AddRef(q.Handle)
	to.groups = append(to.groups, g)
	return nil
}

// cover finds the prims of the query that have a value of the derived attribute. It notes in the group where the query lists
// them, and returns their path indices.
func (s *Stage) cover(g *Group, q query.Query, text string) ([]uint32, error) {
	has := s.prims.Exists
	switch text {
	case "usd-parent":
		has = func(path uint32) bool { return s.prims.Exists(path) && s.prims.Nested(path) }
	case "usd-children":
		tree := s.prims.Tree()
		has = func(path uint32) bool { return s.prims.Exists(path) && tree.Prims(path) > 0 }
	}
	listed := q.Prims.Indices()
	first := slices.IndexFunc(listed, has)
	if first < 0 {
		return nil, nil
	}
	n := 1
	for n < len(listed)-first && has(listed[first+n]) {
		n++
	}
	if !slices.ContainsFunc(listed[first+n:], has) { // the list has them in one run, mostly all of it
		g.PrimOffset, g.PrimCount = uint32(first), uint32(n)
		return listed[first : first+n], nil
	}
	block, err := memory.Alloc(4*len(listed), memory.Indices)
	if err != nil {
		return nil, err
	}
	positions, covered := block.Uint32s(len(listed)), make([]uint32, 0, len(listed))
	for position, path := range listed {
		if has(path) {
			positions[len(covered)] = uint32(position)
			covered = append(covered, path)
		}
	}
	g.PrimMap, g.PrimCount = block, uint32(len(covered))
	return covered, nil
}

// derivePaths fills the group with the path of each covered prim, or of its parent.
func (s *Stage) derivePaths(g *Group, covered []uint32, parents bool) error {
	block, err := memory.Alloc(8*len(covered), memory.Columns)
	if err != nil {
		return err
	}
	values := pathsIn(block, len(covered))
	for i, path := range covered {
		if parents {
			path = s.dict.ParentAt(path)
		}
		values[i] = s.dict.PathAt(path)
	}
	g.Data, g.Rows, g.Count = block, len(covered), g.PrimCount
	return nil
}

// deriveChildren fills the group with the paths of the children of each covered prim, in the order of their creation.
func (s *Stage) deriveChildren(g *Group, covered []uint32) error {
	tree, total := s.prims.Tree(), 0
	for _, path := range covered {
		total += tree.Prims(path)
	}
	spans, arena, err := newArrays(len(covered), 8*total, false)
	if err != nil {
		return err
	}
	values, row := pathsIn(arena.Block, total), column.Spans(spans, len(covered))
	var children []uint32
	at := 0
	for i, path := range covered {
		children = s.prims.Children(path, children[:0])
		row[i] = column.Span{Offset: uint64(8 * at), Length: uint64(8 * len(children))}
		for _, child := range children {
			values[at] = s.dict.PathAt(child)
			at++
		}
	}
	g.Array, g.Data, g.Used, g.Spans = true, arena.Block, 8*total, spans
	g.Rows, g.Count = len(covered), g.PrimCount
	return nil
}

// pathsIn looks at a block as path handles.
func pathsIn(block memory.Block, n int) []pathdict.Path {
	return unsafe.Slice((*pathdict.Path)(block.Pointer()), n)
}
