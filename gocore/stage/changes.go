package stage

import (
	"slices"

	"ovstage.dev/ovstage/gocore/bitset"
	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/query"
)

// changed adds the groups of one attribute that a range read serves: the prims that changed in the range, with their
// values as of its end, and a tombstone group for those that were deleted by then. A prim that changed again after the
// range can't be served unless the state as of its end is kept. A prim that changed its schema meanwhile has rows in several
// columns, and is reported once.
func (s *Stage) changed(to *read, q query.Query, name pathdict.Token, r Range) error {
	var turns []turn
	return s.parts(q, name, r.End, func(p *part) error {
		if unsealed, first := p.column.UnsealedIn(r.Start, r.End); p.binding.Any(unsealed) {
			return errorf(WriteFloorViolation, "attribute %q changes at ordinal %d, which is not sealed, the write floor is %d; "+
				"end the range at the floor, or advance the floor first", s.quoted(name), first, p.floor)
		}
		if turns == nil {
			turns = p.attribute.turns(r, p.floor)
		}
		if !p.binding.Any(turns[p.attribute.at(p.column)].in) {
			return nil
		}
		if prim, overtaken := p.overtaken(turns); overtaken {
			return errorf(OutOfRange, "range [%d, %d]: prim %s changed in it and again later, and its earlier value is no longer kept; "+
				"end the range at the write floor", r.Start, r.End, s.path(s.dict.PathAt(prim)))
		}
		if err := p.ask(turns[p.attribute.at(p.column)].in.Count()); err != nil {
			return err
		}
		return s.addChanged(to, p, turns, r.End)
	})
}

// turn is what happened to the rows of one column in a range and after it. The sets are the column's.
type turn struct {
	in    *bitset.Sparse
	last  uint64         // the highest ordinal of a change in the range
	kept  bool           // the state as of the end of the range is kept
	after *bitset.Sparse // where it is not
}

// turns are the turns of every column of the attribute.
func (a *attribute) turns(r Range, floor uint64) []turn {
	turns := make([]turn, len(a.columns))
	for i, c := range a.columns {
		t := &turns[i]
		t.in, t.last = c.Changed(r.Start, r.End)
		if t.kept = c.Kept(r.End, floor); !t.kept {
			t.after = c.ChangedAfter(r.End)
		}
	}
	return turns
}

// at is the index of a column among the columns of its attribute.
func (a *attribute) at(c *bound) int { return slices.Index(a.columns, c) }

// overtaken looks for a prim, by path index, that changed in a range and again after it, so that its value as of the end of the range is lost.
func (p *part) overtaken(turns []turn) (path uint32, found bool) {
	if !slices.ContainsFunc(turns, func(t turn) bool { return !t.kept }) {
		return 0, false
	}
	lost := func(c *bound, row int) bool {
		t := &turns[p.attribute.at(c)]
		return !t.kept && t.after.Has(row)
	}
	p.binding.EachIn(turns[p.attribute.at(p.column)].in, func(_ int, row uint32) {
		if !found && (lost(p.column, int(row)) || p.attribute.elsewhere(p.column, row, lost)) {
			path, found = p.column.Path(int(row)), true
		}
	})
	return path, found
}

// addChanged adds the group of changed values and that of deleted prims, which has no data.
func (s *Stage) addChanged(to *read, p *part, turns []turn, end uint64) error {
	at := p.attribute.at(p.column)
	in, last := turns[at].in, turns[at].last
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
	if p.state.Deleted() == 0 {
		return nil
	}
	// A prim that has its value in another column by now is not deleted; one that several columns lost is reported as deleted by
	// the column that changed last.
	reported := func(o *bound, other int) bool {
		i := p.attribute.at(o)
		later := turns[i].last > last || turns[i].last == last && i < at
		return o.At(end).Live(other) || later && turns[i].in.Has(other) && o.At(end).Gone(other)
	}
	deleted, err := p.binding.Select(in, func(row uint32) bool {
		return p.state.Gone(int(row)) && !p.attribute.elsewhere(p.column, row, reported)
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
