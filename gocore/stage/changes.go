package stage

import (
	"ovstage/gocore/column"
	"ovstage/gocore/pathdict"
	"ovstage/gocore/query"
)

// changed adds the groups of one attribute that a range read serves: the prims that changed in the range, with their
// values as of its end, and a tombstone group for those that were deleted by then. A prim that changed again after the
// range can't be served unless the state as of its end is kept.
func (s *Stage) changed(to *read, q query.Query, name pathdict.Token, r Range) *Error {
	a := s.attributes[name]
	if a == nil || q.Prims.Len() == 0 {
		return nil
	}
	floor, generation, err := s.settle(a)
	if err != nil {
		return err
	}
	for _, c := range a.columns {
		b, err := c.bindings.Of(c.Column, q.Prims)
		if err != nil {
			return wrap(err, "attribute %q", s.quoted(name))
		}
		rows := b.Rows()
		if unsealed, first := c.UnsealedIn(r.Start, r.End); rows.Any(unsealed) {
			return errorf(WriteFloorViolation, "attribute %q changes at ordinal %d, which is not sealed, the write floor is %d; "+
				"end the range at the floor, or advance the floor first", s.quoted(name), first, floor)
		}
		in, after, last := c.Changed(r.Start, r.End)
		if !rows.Any(in) {
			continue
		}
		if !c.Kept(r.End, floor) {
			if err := s.overtaken(b, c, in, after, r); err != nil {
				return err
			}
		}
		if err := s.addChanged(to, q, a, c, b, in, r.End, last, floor, generation); err != nil {
			return wrap(err, "attribute %q", s.quoted(name))
		}
	}
	return nil
}

// overtaken refuses a range with a prim that changed in it and again later.
func (s *Stage) overtaken(b *query.Binding, c *bound, in, after column.Set, r Range) *Error {
	var failure *Error
	b.Each(func(position int, row uint32) {
		if failure == nil && in.Has(int(row)) && after.Has(int(row)) {
			failure = errorf(OutOfRange, "range [%d, %d]: prim %s changed in it and again later, and its earlier value is no longer kept; "+
				"end the range at the write floor", r.Start, r.End, s.path(s.dict.PathAt(c.Path(int(row)))))
		}
	})
	return failure
}

// addChanged adds the group of changed values and that of deleted prims.
func (s *Stage) addChanged(to *read, q query.Query, a *attribute, c *bound, b *query.Binding, in column.Set, end, last, floor, generation uint64) error {
	state := c.At(end)
	values, err := b.Select(func(row uint32) bool { return in.Has(int(row)) && state.Live(int(row)) })
	if err != nil {
		return err
	}
	defer values.Release()
	if values.Count > 0 {
		g, err := s.group(q, a, c, state, values, floor, generation)
		if err != nil {
			return err
		}
		g.Ordinal = last
		to.groups = append(to.groups, g)
	}
	deleted, err := b.Select(func(row uint32) bool {
		return in.Has(int(row)) && state.Gone(int(row)) && !a.elsewhere(c, row, func(o *bound, other int) bool { return o.At(end).Live(other) })
	})
	if err != nil {
		return err
	}
	defer deleted.Release()
	if deleted.Count > 0 {
		to.groups = append(to.groups, s.tombstones(q, a, c, deleted, last, floor, generation))
	}
	return nil
}

// tombstones names deleted prims; it has no data.
func (s *Stage) tombstones(q query.Query, a *attribute, c *bound, plan *query.Plan, last, floor, generation uint64) Group {
	_ = s.dict.AddRef(q.Handle)
	return Group{
		Attribute: a.name, Ordinal: last, Delete: true, Array: c.Schema().Array, Semantic: c.Schema().Semantic,
		List: q.Handle, PrimOffset: uint32(plan.Offset), PrimCount: uint32(plan.Count), PrimMap: plan.Positions.Retain(),
		DType: c.Schema().DType, Floor: floor, Generation: generation,
	}
}
