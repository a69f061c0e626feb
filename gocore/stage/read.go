package stage

import (
	"slices"

	"ovstage.dev/ovstage/gocore/pathdict"
)

// Read takes a snapshot of the sealed state of several attributes at once. Writers are not held up by it and can't
// change it. It fails when a prim of the query was written at or below r.End but nothing of it is sealed.
func (s *Stage) Read(id QueryID, names []pathdict.Token, r Range) (ReadID, uint64, error) {
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
			snapshot.close(s.dict)
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

// FetchRead returns the next group, or nil after the last. Groups outlive their read.
func (s *Stage) FetchRead(id ReadID) (*Group, error) {
	return s.HandRead(id, func(*Group) error { return nil })
}

// HandRead is FetchRead for a holder that names what its groups do (Name): hand takes the group over. There is no moment at
// which neither the stage nor the holder names it, so hand runs under the lock of the stage, and calls nothing of it. When hand
// fails, the read serves the group again.
func (s *Stage) HandRead(id ReadID, hand func(*Group) error) (*Group, error) {
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
	g := &r.groups[r.next]
	if err := hand(g); err != nil {
		return nil, err
	}
	r.next++
	return g, nil
}

// ReleaseRead ends a read; groups that were not fetched go with it.
func (s *Stage) ReleaseRead(id ReadID) (op uint64, err error) {
	if err := s.lock(); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	r, ok := s.reads[id]
	if !ok {
		return 0, errorf(InvalidHandle, "read handle %d is unknown or was released", id)
	}
	delete(s.reads, id)
	r.close(s.dict)
	return s.succeed(), nil
}
