package stage

import (
	"slices"

	"ovstage.dev/ovstage/gocore/column"
	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/query"
)

// MapGroup is a mapped buffer: a Group whose bytes the client writes, and the key by which it is committed. Its reference
// of the block is released after the commit, not before: what remains beyond it and the session's are views.
type MapGroup struct {
	Group
	Key uint64
}

// Map opens a session that lets the client write values in place. The buffers belong to the session until they are
// committed; other writers, readers and sessions go on meanwhile, and sessions take effect in the order in which they
// commit.
func (s *Stage) Map(id QueryID, desc MapDesc, ordinal uint64) (MapID, uint64, error) {
	if err := s.lock(); err != nil {
		return 0, 0, err
	}
	defer s.mu.Unlock()
	q, err := s.query(id)
	if err != nil {
		return 0, 0, err
	}
	m := &session{ordinal: ordinal, initial: desc.Initial, dict: s.dict}
	if err := s.judgeMap(m, q, &desc); err != nil {
		return 0, 0, err
	}
	if err := s.lend(m, desc); err != nil {
		m.close()
		return 0, 0, err
	}
	m.query = query.Query{Prims: q.Prims, Handle: s.dict.Mint(q.Prims)}
	mid := MapID(s.nextID())
	s.maps[mid] = m
	return mid, s.succeed(), nil
}

// FetchMap returns the next mapped group, or nil after the last.
func (s *Stage) FetchMap(id MapID) (*MapGroup, error) {
	if err := s.lock(); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	m, err := s.session(id)
	if err != nil {
		return nil, err
	}
	for m.next < len(m.groups) && m.groups[m.next].fetched { // after a group was returned
		m.next++
	}
	if m.next == len(m.groups) {
		return nil, nil
	}
	g := &m.groups[m.next]
	offset, positions, failure := m.locate(g)
	if failure != nil {
		return nil, wrap(failure, "attribute %q", s.quoted(m.name))
	}
	a := s.attributes[m.name]
	typeName, role := m.schema.Type.Token, m.schema.Semantic
	if typeName == 0 && g.column != nil {
		typeName = g.column.Schema().Type.Token
	}
	if role == 0 && g.column != nil { // none is that of the column
		role = g.column.Schema().Semantic
	}
	n := g.prims.Len()
	_ = s.dict.AddRef(m.query.Handle)
	g.fetched = true
	m.next++
	return &MapGroup{Key: m.firstKey + uint64(m.next-1), Group: Group{
		Attribute: m.name, Ordinal: m.ordinal, Semantic: role, List: m.query.Handle,
		Type: pathdict.Token(typeName), PrimOffset: offset, PrimMap: positions, PrimCount: uint32(n), Count: uint32(n),
		Data: g.block.Retain(), Spans: g.spans.Retain(), Rows: n, DType: m.schema.DType, Array: m.schema.Array,
		Floor: s.floorOf(a), Generation: a.generation(column.Latest),
	}}, nil
}

// ReturnMap takes back a group that could not be handed on: the session serves it again.
func (s *Stage) ReturnMap(id MapID, g *MapGroup) {
	if s.lock() != nil {
		return
	}
	defer s.mu.Unlock()
	g.Release(s.dict)
	if m, err := s.session(id); err == nil {
		k := int(g.Key - m.firstKey)
		m.groups[k].fetched = false
		m.next = min(m.next, k)
	}
}

// Abort ends a session and writes nothing of what is uncommitted. Aborting it once more does nothing; a session that was
// unmapped can't be aborted.
func (s *Stage) Abort(id MapID) error {
	if err := s.lock(); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if slices.Contains(s.aborted, id) {
		return nil
	}
	m, err := s.session(id)
	if err != nil {
		return err
	}
	delete(s.maps, id)
	m.close()
	if s.aborted = append(s.aborted, id); len(s.aborted) > maxAborted {
		s.aborted = slices.Delete(s.aborted, 0, 1)
	}
	return nil
}

// maxAborted is how many aborted sessions are told from unknown ones.
const maxAborted = 1024

func (s *Stage) session(id MapID) (*session, error) {
	m, ok := s.maps[id]
	if !ok {
		return nil, errorf(InvalidHandle, "map handle %d is unknown or has been unmapped", id)
	}
	return m, nil
}
