package stage

import (
	"slices"

	"ovstage.dev/ovstage/gocore/column"
	"ovstage.dev/ovstage/gocore/invariants"
	"ovstage.dev/ovstage/gocore/memory"
	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/query"
)

// part is a column of an attribute that a read looks at.
type part struct {
	query     query.Query
	attribute *attribute
	column    *bound
	binding   *query.Binding
	floor     uint64 // of the attribute

	// As of the end of the read: the column's newest sealed state, or, if it keeps history, an older one, and the generation
	// of the attribute's layout.
	state      column.Snapshot
	generation uint64
	packed     bool // few rows are asked for of an older state: they are gathered
}

// older reports whether the state is not the newest.
func (p *part) older() bool { return p.state != p.column.Sealed() }

// ask prepares for so many rows to be asked for. Many of an older state are looked for in a block that is made of it.
func (p *part) ask(rows int) (err error) {
	if !p.older() {
		return nil
	}
	if p.packed = column.Few(rows, p.state.Extent()); !p.packed {
		p.state, err = p.column.Make(p.state)
	}
	return err
}

// parts calls a function for each column of an attribute. What the floor has passed but could not be folded for want of
// memory is folded first.
func (s *Stage) parts(q query.Query, name pathdict.Token, end uint64, visit func(*part) error) error {
	a := s.attributes[name]
	if a == nil || q.Prims.Len() == 0 {
		return nil
	}
	p := part{query: q, attribute: a, floor: s.floorOf(a)}
	for _, c := range a.columns {
		if err := c.Seal(p.floor); err != nil {
			return wrap(err, "attribute %q", s.quoted(name))
		}
	}
	p.generation = a.generation(end)
	for _, c := range a.columns {
		p.column, p.state, p.packed = c, c.At(end), false
		b, err := c.bindings.Of(c.Column, q.Prims)
		if err == nil {
			p.binding = b
			err = visit(&p)
		}
		if err != nil {
			return wrap(err, "attribute %q", s.quoted(name))
		}
	}
	return nil
}

// snapshot adds the groups of one attribute.
func (s *Stage) snapshot(to *read, q query.Query, name pathdict.Token, r Range) error {
	return s.parts(q, name, r.End, func(p *part) error {
		plan, err := p.binding.Plan(p.column.Column)
		if err != nil {
			return err
		}
		if row, at, found := p.column.FirstUnsealed(p.attribute.unserved(p.column, plan.Pending), r.End); found {
			return errorf(WriteFloorViolation,
				"attribute %q of prim %s was written at ordinal %d but is not sealed, the write floor is %d; advance the floor first",
				s.quoted(name), s.path(s.dict.PathAt(p.column.Path(row))), at, p.floor)
		}
		if p.older() {
			if err = p.ask(p.binding.Rows().Len()); err != nil {
				return err
			}
			if plan, err = p.binding.PlanOf(p.state); err != nil {
				return err
			}
			defer plan.Release()
		}
		return s.serve(to, p, plan, p.state.Ordinal())
	})
}

// unserved returns the asked rows whose prims have no sealed state in another column of the attribute.
func (a *attribute) unserved(c *bound, asked []uint32) []uint32 {
	if len(asked) == 0 || len(a.columns) == 1 {
		return asked
	}
	return slices.DeleteFunc(slices.Clone(asked), func(row uint32) bool {
		return a.elsewhere(c, row, func(o *bound, other int) bool { return o.Sealed().Live(other) || o.Sealed().Gone(other) })
	})
}

// serve adds the group of what a plan covers, if it covers anything.
func (s *Stage) serve(to *read, p *part, plan *query.Plan, ordinal uint64) error {
	if plan.Count == 0 {
		return nil
	}
	var packed memory.Block // spans of arrays, values of few rows of an older state
	if array := p.column.Schema().Array; array || p.packed {
		purpose := memory.Columns
		if array {
			purpose = memory.Descriptors
		}
		var err error
		if packed, err = p.column.Pack(p.state, plan.Rows, purpose); err != nil {
			return err
		}
	}
	g := s.named(p, plan, ordinal)
	g.Count = g.PrimCount
	switch start, dense := plan.Rows.Run(); {
	case g.Array:
		arena := p.state.Arena()
		g.Data, g.Used, g.Spans, g.Rows = arena.Block.Retain(), arena.Used, packed, plan.Count
	case p.packed:
		g.Data, g.Rows = packed, plan.Count
	case dense:
		g.Data, g.DataOffset, g.Rows = p.state.Block().Retain(), start*p.column.Width(), plan.Count
	default:
		g.Data, g.Rows, g.DataMap = p.state.Block().Retain(), p.state.Extent(), plan.Rows.Index().Retain()
	}
	g.mustLie(p.column.Width())
	to.groups = append(to.groups, g)
	return nil
}

// mustLie states that the rows of a group of a fixed column lie in its block.
func (g *Group) mustLie(width int) {
	if !invariants.Enabled || g.Array {
		return
	}
	invariants.Check(g.DataOffset+g.Rows*width <= g.Data.Capacity(),
		"%d rows of %d bytes from %d in %d bytes", g.Rows, width, g.DataOffset, g.Data.Capacity())
	if g.DataMap.Valid() {
		for _, row := range g.DataMap.Uint32s(int(g.Count)) {
			invariants.Check(int(row) < g.Rows, "an index map names row %d of %d", row, g.Rows)
		}
	}
}

// named is a group that says which prims a plan covers, without data. It costs nothing per row.
func (s *Stage) named(p *part, plan *query.Plan, ordinal uint64) Group {
	_ = s.dict.AddRef(p.query.Handle)
	schema := p.column.Schema()
	return Group{
		Attribute: p.attribute.name, Ordinal: ordinal, Array: schema.Array, Semantic: schema.Semantic, DType: schema.DType,
		Type: pathdict.Token(schema.Type.Token),
		List: p.query.Handle, PrimOffset: uint32(plan.Offset), PrimCount: uint32(plan.Count), PrimMap: plan.Positions.Retain(),
		Floor: p.floor, Generation: p.generation,
	}
}
