package stage

import (
	"math"
	"slices"

	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/query"
)

// Snapshot holds everything that is sealed now, until ReleaseSnapshot or the end of the stage. It copies no values: it costs what
// there are columns, and a bit a row of those in which some prims have none. The first write of a few rows after it copies their
// column, once. On failure (memory for what the floor has passed) nothing is held.
func (s *Stage) Snapshot() (SnapshotID, uint64, error) {
	if err := s.lock(); err != nil {
		return 0, 0, err
	}
	defer s.mu.Unlock()
	for name, a := range s.inUse {
		for _, c := range a.columns {
			if err := c.Seal(s.floorOf(a)); err != nil {
				return 0, 0, wrap(err, "attribute %q", s.quoted(name))
			}
		}
	}
	snap := &frozen{floor: s.floor, attributes: make(map[pathdict.Token]frozenAttribute, len(s.attributes))}
	for name, a := range s.attributes {
		held := frozenAttribute{attribute: a, floor: s.floorOf(a), generation: a.generation(math.MaxUint64)}
		for _, c := range a.columns {
			if c.Sealed().Rows() > 0 {
				held.columns = append(held.columns, frozenColumn{c, c.Hold()})
			}
		}
		snap.attributes[name] = held
	}
	id := SnapshotID(s.nextID())
	s.snapshots[id] = snap
	return id, s.succeed(), nil
}

// ReleaseSnapshot ends a snapshot. Groups that were read of it stay valid.
func (s *Stage) ReleaseSnapshot(id SnapshotID) (op uint64, err error) {
	if err := s.lock(); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	snap, err := s.frozen(id)
	if err != nil {
		return 0, err
	}
	delete(s.snapshots, id)
	for _, a := range snap.attributes {
		for _, c := range a.columns {
			c.LetGo(c.state)
			if c.Spent() {
				s.spend(a.attribute, c.bound)
			}
		}
	}
	s.bury()
	return s.succeed(), nil
}

// SnapshotFloor is the effective floor of an attribute in the moment of a snapshot, of one that was not known then and for
// token 0 the global floor.
func (s *Stage) SnapshotFloor(id SnapshotID, name pathdict.Token) (uint64, error) {
	if err := s.lock(); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	snap, err := s.frozen(id)
	if err != nil {
		return 0, err
	}
	if name == 0 {
		return snap.floor, nil
	}
	if err := s.checkNames("attribute", []pathdict.Token{name}); err != nil {
		return 0, err
	}
	return snap.floorOf(s.stored(name)), nil
}

// ReadSnapshot is Read of the latest values in a snapshot. Prims that had none in its moment are left out. Derived attributes,
// which show the prims as they are now, are not in a snapshot.
func (s *Stage) ReadSnapshot(id SnapshotID, of QueryID, names []pathdict.Token) (ReadID, uint64, error) {
	if err := s.lock(); err != nil {
		return 0, 0, err
	}
	defer s.mu.Unlock()
	snap, err := s.frozen(id)
	if err != nil {
		return 0, 0, err
	}
	q, err := s.query(of)
	if err != nil {
		return 0, 0, err
	}
	if err := s.checkNames("attrs", names); err != nil {
		return 0, 0, err
	}
	to := &read{}
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			continue
		}
		if err := s.thaw(to, q, name, snap); err != nil {
			to.close(s.dict)
			return 0, 0, err
		}
	}
	rid := ReadID(s.nextID())
	s.reads[rid] = to
	return rid, s.succeed(), nil
}

func (s *Stage) frozen(id SnapshotID) (*frozen, error) {
	snap, ok := s.snapshots[id]
	if !ok {
		return nil, errorf(InvalidHandle, "snapshot handle %d is unknown or was released", id)
	}
	return snap, nil
}

func (f *frozen) floorOf(name pathdict.Token) uint64 {
	if a, known := f.attributes[name]; known {
		return a.floor
	}
	return f.floor
}

// thaw adds the groups of one attribute in a snapshot.
func (s *Stage) thaw(to *read, q query.Query, name pathdict.Token, snap *frozen) error {
	if s.isDerived(name) {
		return errorf(NotSupported, "attribute %q is derived from the prims that there are now and not in a snapshot; read it of the stage",
			s.quoted(name))
	}
	a, from := snap.attributes[s.stored(name)], len(to.groups)
	for _, c := range a.columns {
		if err := s.thawColumn(to, q, a, c); err != nil {
			return wrap(err, "attribute %q", s.quoted(name))
		}
	}
	for i := range to.groups[from:] {
		to.groups[from+i].Attribute = name
	}
	if len(to.groups) == from {
		to.missing = append(to.missing, absence{
			attribute: name, span: Range{End: math.MaxUint64}, floor: snap.floorOf(s.stored(name)),
			unlisted: q.Prims.Len() == 0, frozen: true,
		})
	}
	return nil
}

func (s *Stage) thawColumn(to *read, q query.Query, a frozenAttribute, c frozenColumn) error {
	binding, err := c.bindings.Of(c.Column, q.Prims)
	if err != nil {
		return err
	}
	p := part{
		query: q, attribute: a.attribute, column: c.bound, binding: binding,
		floor: a.floor, state: c.state, generation: a.generation,
	}
	plan, err := binding.PlanOf(c.state)
	if err != nil {
		return err
	}
	defer plan.Release()
	return s.serve(to, &p, plan, c.state.Ordinal())
}
