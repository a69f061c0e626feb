package stage

import (
	"slices"

	"ovstage/gocore/column"
	"ovstage/gocore/memory"
	"ovstage/gocore/pathdict"
	"ovstage/gocore/query"
	"ovstage/gocore/tensor"
)

// Range asks for the latest state up to End, or, with HasStart, for what changed in [Start, End].
type Range struct {
	Start, End uint64
	HasStart   bool
}

// Group is a part of an attribute's column that a read serves: a block and what its rows mean. Whoever receives it owns
// one reference of each valid block and one of List.
type Group struct {
	Attribute  pathdict.Token
	Ordinal    uint64 // upper bound of the changes in it
	Delete     bool
	Array      bool
	Semantic   tensor.Semantic
	List       pathdict.ListHandle // prims are positions of this list:
	PrimOffset uint32              // PrimOffset, PrimOffset+1, ...
	PrimCount  uint32
	PrimMap    memory.Block // or, when valid, these PrimCount positions
	Data       memory.Block
	DataOffset int // bytes from the start of Data to row 0
	Rows       int // rows of DType from there on
	DType      tensor.DType
	Count      uint32       // = PrimCount
	DataMap    memory.Block // when valid, the row of each covered prim; else row k belongs to covered prim k
	Spans      memory.Block // array columns: where in Data the values of covered prim k are, a column.Span each
	Floor      uint64       // effective floor when the group was made
	Generation uint64       // rises when the attribute's sealed rows come or go
}

// read is a snapshot that waits to be fetched group by group.
type read struct {
	groups []Group
	next   int
}

// Read takes a snapshot of the sealed state of several attributes at once. Writers are not held up by it and can't
// change it. It fails when a prim of the query was written at or below r.End but nothing of it is sealed.
func (s *Stage) Read(id QueryID, names []pathdict.Token, r Range) (ReadID, uint64, *Error) {
	if err := s.lock(); err != nil {
		return 0, 0, err
	}
	defer s.mu.Unlock()
	q, err := s.query(id)
	if err != nil {
		return 0, 0, err
	}
	if r.HasStart && r.Start > r.End {
		return 0, 0, errorf(InvalidArgument, "range: start ordinal %d is above end ordinal %d", r.Start, r.End)
	}
	if err := s.checkNames("attrs", names); err != nil {
		return 0, 0, err
	}
	snapshot := &read{}
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			continue
		}
		collect := s.snapshot
		switch {
		case s.isDerived(name):
			collect = s.derive
		case r.HasStart:
			collect = s.changed
		}
		from := len(snapshot.groups)
		if err := collect(snapshot, q, s.stored(name), r); err != nil {
			snapshot.drop(s.dict)
			return 0, 0, err
		}
		for k := range snapshot.groups[from:] {
			snapshot.groups[from+k].Attribute = name
		}
	}
	rid := ReadID(s.nextID())
	s.reads[rid] = snapshot
	return rid, s.succeed(), nil
}

// snapshot adds the groups of one attribute.
func (s *Stage) snapshot(to *read, q query.Query, name pathdict.Token, r Range) *Error {
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
		plan, err := b.Plan(c.Column)
		if err != nil {
			return wrap(err, "attribute %q", s.quoted(name))
		}
		if row, at, found := c.FirstUnsealed(a.unserved(c, plan.Pending), r.End); found {
			return errorf(WriteFloorViolation,
				"attribute %q of prim %s was written at ordinal %d but is not sealed, the write floor is %d; advance the floor first",
				s.quoted(name), s.path(s.dict.PathAt(c.Path(row))), at, floor)
		}
		if err := s.serve(to, q, a, c, b, plan, r.End, floor, generation); err != nil {
			return wrap(err, "attribute %q", s.quoted(name))
		}
	}
	return nil
}

// serve adds the group of one column: from its newest sealed state, or, if the column keeps history and an older one is
// asked for, from that.
func (s *Stage) serve(to *read, q query.Query, a *attribute, c *bound, b *query.Binding, plan *query.Plan, end, floor, generation uint64) error {
	state := c.At(end)
	if state != c.Sealed() {
		older, err := b.PlanOf(state)
		if err != nil {
			return err
		}
		defer older.Release()
		plan, generation = older, generation-c.Sealed().Generation()+state.Generation()
	}
	if plan.Count == 0 {
		return nil
	}
	g, err := s.group(q, a, c, state, plan, floor, generation)
	if err != nil {
		return err
	}
	to.groups = append(to.groups, g)
	return nil
}

// settle folds what the floor has passed but could not be folded for want of memory, and returns the attribute's floor and
// the generation of its layout.
func (s *Stage) settle(a *attribute) (floor, generation uint64, err *Error) {
	floor = s.floorOf(a)
	for _, c := range a.columns {
		if err := c.Seal(floor); err != nil {
			return 0, 0, wrap(err, "attribute %q", s.quoted(a.name))
		}
		generation += c.Sealed().Generation()
	}
	return floor, generation, nil
}

// unserved returns those of the pending rows whose prims no other column of the attribute has sealed state for.
func (a *attribute) unserved(c *bound, pending []uint32) []uint32 {
	if len(pending) == 0 || len(a.columns) == 1 {
		return pending
	}
	return slices.DeleteFunc(slices.Clone(pending), func(row uint32) bool {
		return a.elsewhere(c, row, func(o *bound, other int) bool { return o.Sealed().Live(other) || o.Sealed().Gone(other) })
	})
}

// elsewhere reports whether another column of the attribute has a row for the same prim that satisfies a condition.
func (a *attribute) elsewhere(c *bound, row uint32, condition func(o *bound, other int) bool) bool {
	return slices.ContainsFunc(a.columns, func(o *bound) bool {
		if o == c {
			return false
		}
		other := o.Row(c.Path(int(row)))
		return other >= 0 && condition(o, other)
	})
}

// group describes what a plan covers. It costs nothing per row of a fixed column, and a span per row of an array column.
func (s *Stage) group(q query.Query, a *attribute, c *bound, state column.Snapshot, plan *query.Plan, floor, generation uint64) (Group, error) {
	schema := c.Schema()
	g := Group{
		Attribute: a.name, Ordinal: state.Ordinal(), Array: schema.Array, Semantic: schema.Semantic,
		List: q.Handle, PrimOffset: uint32(plan.Offset), PrimCount: uint32(plan.Count), Count: uint32(plan.Count),
		DType: schema.DType, Floor: floor, Generation: generation,
	}
	if schema.Array {
		spans, err := spansOf(state, plan.Rows)
		if err != nil {
			return Group{}, err
		}
		g.Data, g.Spans, g.Rows = state.Arena().Retain(), spans, plan.Count
	} else if start, dense := plan.Rows.Interval(); dense {
		g.Data, g.DataOffset, g.Rows = state.Block().Retain(), start*c.Width(), plan.Count
	} else {
		g.Data, g.Rows, g.DataMap = state.Block().Retain(), state.Extent(), plan.Rows.Index().Retain()
	}
	_ = s.dict.AddRef(q.Handle)
	if plan.Positions.Valid() {
		g.PrimMap = plan.Positions.Retain()
	}
	return g, nil
}

// FetchRead returns the next group, or nil after the last. Groups outlive their read.
func (s *Stage) FetchRead(id ReadID) (*Group, *Error) {
	if err := s.lock(); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	r, ok := s.reads[id]
	if !ok {
		return nil, errorf(InvalidHandle, "read handle %d is unknown or was released", id)
	}
	if r.next == len(r.groups) {
		return nil, nil
	}
	r.next++
	return &r.groups[r.next-1], nil
}

// ReleaseRead ends a read; groups that were not fetched go with it.
func (s *Stage) ReleaseRead(id ReadID) (op uint64, err *Error) {
	if err := s.lock(); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	r, ok := s.reads[id]
	if !ok {
		return 0, errorf(InvalidHandle, "read handle %d is unknown or was released", id)
	}
	delete(s.reads, id)
	r.drop(s.dict)
	return s.succeed(), nil
}

// drop gives back what was not fetched.
func (r *read) drop(dict *pathdict.Dictionary) {
	for i := r.next; i < len(r.groups); i++ {
		r.groups[i].Release(dict)
	}
	r.groups, r.next = nil, 0
}

// Release gives the group's references back.
func (g *Group) Release(dict *pathdict.Dictionary) {
	for _, b := range []memory.Block{g.PrimMap, g.Data, g.DataMap, g.Spans} {
		if b.Valid() {
			b.Release()
		}
	}
	_ = dict.ReleaseRef(g.List)
}
