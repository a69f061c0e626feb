package stage

import (
	"ovstage.dev/ovstage/gocore/column"
	"ovstage.dev/ovstage/gocore/memory"
)

// UnmapGroup commits one group. With adopt the buffer becomes the column's as it is, and the caller promises that no thread
// writes to it any more; otherwise a buffer that views still point at gives its pages away and keeps its address.
func (s *Stage) UnmapGroup(id MapID, key uint64, adopt bool) (op uint64, err error) {
	if err := s.lock(); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	m, err := s.session(id)
	if err != nil {
		return 0, err
	}
	if at := key - m.firstKey; key < m.firstKey || at >= uint64(m.next) || !m.groups[at].block.Valid() {
		return 0, errorf(InvalidHandle, "map group: not a group of map %d that waits to be committed; it may have been unmapped before", id)
	}
	g := &m.groups[key-m.firstKey]
	failure := s.judgeCommit(m, g)
	if failure == nil {
		failure = s.commit(m, g, adopt)
	}
	if failure != nil {
		return s.fail(failure), nil
	}
	return s.succeed(), nil
}

// Unmap commits what is left of a session and ends it, also when the commit fails; nothing is written then. A group that was
// never fetched commits its initial contents; with Discard it commits nothing.
func (s *Stage) Unmap(id MapID, adopt bool) (op uint64, err error) {
	if err := s.lock(); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	m, err := s.session(id)
	if err != nil {
		return 0, err
	}
	failure := s.commitRest(m, adopt)
	delete(s.maps, id)
	m.close()
	if failure != nil {
		return s.fail(failure), nil
	}
	return s.succeed(), nil
}

// commitRest commits the groups that wait for it, all or none, unless memory runs out half-way.
func (s *Stage) commitRest(m *session, adopt bool) error {
	for _, step := range []func(g *mapped) error{
		func(g *mapped) error { return s.judgeCommit(m, g) },
		func(g *mapped) error { return s.commit(m, g, adopt) },
	} {
		for i := range m.groups {
			if g := &m.groups[i]; g.waiting(m.initial) {
				if err := step(g); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// judgeCommit refuses a commit that has become impossible while the session was open: its ordinal may be sealed, and the
// prims may have got another schema.
func (s *Stage) judgeCommit(m *session, g *mapped) error {
	a := s.attributes[m.name]
	if err := s.checkFloor(a, m.name, m.ordinal); err != nil {
		return errorf(CodeOf(err), "map: %s; nothing was written", err)
	}
	_, err := s.columnFor(a, g.prims, m.schema, m.ordinal)
	return err
}

// commit makes a group's buffer a record of the column, which may have come into being while the session was open.
func (s *Stage) commit(m *session, g *mapped, adopt bool) (err error) {
	w := judged{name: m.name, attribute: s.attributes[m.name], schema: m.schema, prims: g.prims}
	if w.column, err = s.columnFor(w.attribute, w.prims, w.schema, m.ordinal); err != nil {
		return err
	}
	if err := s.prepare(&w); err != nil {
		return err
	}
	copied, failure := g.surrender(&w, adopt)
	if failure != nil {
		w.growth.Drop()
		return wrap(failure, "attribute %q", s.quoted(w.name))
	}
	s.bind(&w)
	if !copied && w.column.Newest(w.rows, m.ordinal) {
		s.adopted++
	}
	s.record(&w, m.ordinal)
	return nil
}

// viewless is the number of references to a mapped buffer without views: one is the session's, one the fetched group's.
const viewless = 2

// surrender gives the group's buffer to the write that becomes a record. If views are alive and the caller has made no
// promise, the bytes move to another address, so that a late write through a view can't change what was committed; where
// pages can't be moved they are copied.
func (g *mapped) surrender(w *judged, adopt bool) (copied bool, err error) {
	block := g.block
	if !adopt && block.Refs() > viewless {
		moved, err := block.Detach()
		if err != nil {
			return false, err
		}
		copied = !block.Hollow()
		block.Release()
		block = moved
	}
	w.block = block
	if w.schema.Array {
		w.block, w.arena = g.spans, column.Arena{Block: block, Used: g.used}
	}
	g.block, g.spans = memory.Block{}, memory.Block{}
	return copied, nil
}
