package stage

import (
	"slices"

	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/query"
)

// Cursor is how far a consumer has followed one attribute, and how far a read took it.
type Cursor struct {
	Attribute pathdict.Token
	Since     uint64 // everything up to it is known to the consumer
	Until     uint64 // set by the read: everything up to it is known now; never below Since
	Limited   bool   // Until is given too: the read tells of nothing above it. Values as of then must be kept

	// Given, the consumer knows nothing, and Since is not looked at. Set by the read, what changed since is not known any more,
	// or never was: the groups are all values as of Until, and what has none of them has lost it.
	Resync bool
}

// ReadSince takes a snapshot of what changed since, of several attributes, each up to where it is sealed now: floors and changes are
// looked at in one step, so that no advance comes between. Groups are those of a range read, or of a latest read after a resync.
// Query 0 stands for all prims, those that are gone among them; it costs what changed. When nothing did, the read has no groups.
func (s *Stage) ReadSince(id QueryID, cursors []Cursor) (ReadID, uint64, error) {
	if err := s.lock(); err != nil {
		return 0, 0, err
	}
	defer s.mu.Unlock()
	q, err := query.Query{}, error(nil)
	if id != 0 {
		if q, err = s.query(id); err != nil {
			return 0, 0, err
		}
	}
	if err := s.checkCursors(cursors); err != nil {
		return 0, 0, err
	}
	snapshot := &read{}
	for k := range cursors {
		from := len(snapshot.groups)
		if err := s.follow(snapshot, q, id == 0, &cursors[k]); err != nil {
			snapshot.close(s.dict)
			return 0, 0, err
		}
		for g := range snapshot.groups[from:] {
			snapshot.groups[from+g].Attribute = cursors[k].Attribute
		}
	}
	rid := ReadID(s.nextID())
	s.reads[rid] = snapshot
	return rid, s.succeed(), nil
}

func (s *Stage) checkCursors(cursors []Cursor) error {
	for k, c := range cursors {
		if err := s.checkNames("attributes", []pathdict.Token{c.Attribute}); err != nil {
			return err
		}
		if s.isDerived(c.Attribute) {
			return errorf(NotSupported, "attribute %q follows from the paths of prims: it is no column whose changes are kept", s.quoted(c.Attribute))
		}
		if slices.ContainsFunc(cursors[:k], func(o Cursor) bool { return o.Attribute == c.Attribute }) {
			return errorf(InvalidArgument, "attribute %q is listed twice", s.quoted(c.Attribute))
		}
	}
	return nil
}

// follow adds the groups of one attribute and moves its cursor.
func (s *Stage) follow(to *read, q query.Query, everywhere bool, c *Cursor) error {
	name := s.stored(c.Attribute)
	a := s.attributes[name]
	if floor := s.floorOf(a); !c.Limited || c.Until > floor {
		c.Until = floor
	}
	c.Resync = c.Resync || s.forgot(a, c.Since)
	r := Range{End: c.Until}
	if !c.Resync {
		if c.Until <= c.Since {
			c.Until = c.Since
			return nil
		}
		r = Range{Start: c.Since + 1, End: c.Until, HasStart: true}
	}
	if a == nil {
		return nil
	}
	if everywhere {
		var err error
		if q, err = s.touched(a, r); err != nil {
			return err
		}
		defer q.Release(s.dict)
	}
	if c.Resync {
		if err := s.checkKept(a, r.End); err != nil {
			return err
		}
		return s.snapshot(to, q, name, r)
	}
	return s.changed(to, q, name, r)
}

// checkKept refuses an ordinal as of which some value of an attribute is no longer kept. A latest read would serve the oldest
// one that is: a consumer would take it for that of the ordinal.
func (s *Stage) checkKept(a *attribute, ordinal uint64) error {
	floor := s.floorOf(a)
	for _, c := range a.columns {
		if !c.Kept(ordinal, floor) && c.ChangedAfter(ordinal).Count() > 0 {
			return errorf(OutOfRange, "attribute %q changed after ordinal %d, and its earlier values are no longer kept; "+
				"begin at the write floor, %d", s.quoted(a.name), ordinal, floor)
		}
	}
	return nil
}

// forgot reports whether some of the changes since an ordinal are told of no more.
func (s *Stage) forgot(a *attribute, since uint64) bool {
	behind := func(frontier uint64) bool { return since < frontier && since+1 < frontier } // since may be the highest that there is
	return behind(s.frontier) || a != nil && slices.ContainsFunc(a.columns, func(c *bound) bool { return behind(c.Frontier()) })
}

// touched is a query of the prims that changed in a range, or, of a latest read, of those that may have a value as of its end.
func (s *Stage) touched(a *attribute, r Range) (query.Query, error) {
	var paths []uint32
	twice := len(a.columns) > 1 // a prim that changed its type has rows in two
	for _, c := range a.columns {
		if err := c.Seal(s.floorOf(a)); err != nil {
			return query.Query{}, wrap(err, "attribute %q", s.quoted(a.name))
		}
		list := func(row int) { paths = append(paths, c.Path(row)) }
		if r.HasStart {
			rows, _ := c.Changed(r.Start, r.End)
			rows.Each(list)
		} else {
			c.Sealed().AllLive().Each(list)
			if r.End < s.floorOf(a) { // what has lost its value since then had it
				c.ChangedAfter(r.End).Each(list)
				twice = true
			}
		}
	}
	if twice {
		slices.Sort(paths)
		paths = slices.Compact(paths)
	}
	q := query.Query{}
	q.Select(s.dict, paths)
	return q, nil
}
