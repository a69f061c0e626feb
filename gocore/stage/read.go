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
	Type       pathdict.Token      // the name of the type of the values; 0: nobody has said
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
	groups  []Group
	next    int
	missing []absence // of what it serves nothing
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
		if len(snapshot.groups) == from {
			snapshot.missing = append(snapshot.missing, s.absent(q, s.stored(name), r))
			snapshot.missing[len(snapshot.missing)-1].attribute = name
		}
		for k := range snapshot.groups[from:] {
			snapshot.groups[from+k].Attribute = name
		}
	}
	rid := ReadID(s.nextID())
	s.reads[rid] = snapshot
	return rid, s.succeed(), nil
}

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
}

// parts calls a function for each column of an attribute. What the floor has passed but could not be folded for want of
// memory is folded first.
func (s *Stage) parts(q query.Query, name pathdict.Token, end uint64, visit func(*part) error) *Error {
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
		p.column, p.state = c, c.At(end)
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
func (s *Stage) snapshot(to *read, q query.Query, name pathdict.Token, r Range) *Error {
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
		if p.state != p.column.Sealed() {
			if plan, err = p.binding.PlanOf(p.state); err != nil {
				return err
			}
			defer plan.Release()
		}
		return s.serve(to, p, plan, p.state.Ordinal())
	})
}

// serve adds the group of what a plan covers, if it covers anything.
func (s *Stage) serve(to *read, p *part, plan *query.Plan, ordinal uint64) error {
	if plan.Count == 0 {
		return nil
	}
	var spans memory.Block
	if p.column.Schema().Array {
		var err error
		if spans, err = spansOf(p.state, plan.Rows); err != nil {
			return err
		}
	}
	g := s.named(p, plan, ordinal)
	g.Count = g.PrimCount
	switch start, dense := plan.Rows.Interval(); {
	case g.Array:
		g.Data, g.Spans, g.Rows = p.state.Arena().Retain(), spans, plan.Count
	case dense:
		g.Data, g.DataOffset, g.Rows = p.state.Block().Retain(), start*p.column.Width(), plan.Count
	default:
		g.Data, g.Rows, g.DataMap = p.state.Block().Retain(), p.state.Extent(), plan.Rows.Index().Retain()
	}
	to.groups = append(to.groups, g)
	return nil
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

// ReturnRead takes back a group that could not be handed on: the read serves it again.
func (s *Stage) ReturnRead(id ReadID, g *Group) {
	if s.lock() != nil {
		return
	}
	defer s.mu.Unlock()
	switch r, ok := s.reads[id]; {
	case !ok:
		g.Release(s.dict)
	case g == &r.groups[r.next-1]:
		r.next--
	default: // another thread has fetched the next one meanwhile
		r.groups = append(r.groups, *g)
	}
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
