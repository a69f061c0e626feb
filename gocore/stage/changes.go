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
	return s.parts(q, name, r.End, func(p *part) error {
		rows := p.binding.Rows()
		if unsealed, first := p.column.UnsealedIn(r.Start, r.End); rows.Any(unsealed) {
			return errorf(WriteFloorViolation, "attribute %q changes at ordinal %d, which is not sealed, the write floor is %d; "+
				"end the range at the floor, or advance the floor first", s.quoted(name), first, p.floor)
		}
		in, after, last := p.column.Changed(r.Start, r.End)
		if !rows.Any(in) {
			return nil
		}
		if !p.column.Kept(r.End, p.floor) {
			if prim, overtaken := p.overtaken(in, after); overtaken {
				return errorf(OutOfRange, "range [%d, %d]: prim %s changed in it and again later, and its earlier value is no longer kept; "+
					"end the range at the write floor", r.Start, r.End, s.path(s.dict.PathAt(prim)))
			}
		}
		return s.addChanged(to, p, in, r.End, last)
	})
}

// overtaken looks for a prim, by path index, that changed in a range and again after it.
func (p *part) overtaken(in, after column.Set) (path uint32, found bool) {
	p.binding.EachIn(in, func(_ int, row uint32) {
		if !found && after.Has(int(row)) {
			path, found = p.column.Path(int(row)), true
		}
	})
	return path, found
}

// addChanged adds the group of changed values and that of deleted prims, which has no data.
func (s *Stage) addChanged(to *read, p *part, in column.Set, end, last uint64) error {
	if p.binding.All(in) && p.state.Dense(p.binding.Rows().End()) {
		plan, err := p.binding.PlanOf(p.state)
		if err != nil {
			return err
		}
		defer plan.Release()
		return s.serve(to, p, plan, last)
	}
	values, err := p.binding.Select(in, func(row uint32) bool { return p.state.Live(int(row)) })
	if err != nil {
		return err
	}
	defer values.Release()
	if err := s.serve(to, p, values, last); err != nil {
		return err
	}
	deleted, err := p.binding.Select(in, func(row uint32) bool {
		return p.state.Gone(int(row)) &&
			!p.attribute.elsewhere(p.column, row, func(o *bound, other int) bool { return o.At(end).Live(other) })
	})
	if err != nil {
		return err
	}
	defer deleted.Release()
	if deleted.Count > 0 {
		tombstones := s.named(p, deleted, last)
		tombstones.Delete = true
		to.groups = append(to.groups, tombstones)
	}
	return nil
}
