package stage

import (
	"slices"

	"ovstage/gocore/column"
	"ovstage/gocore/memory"
	"ovstage/gocore/pathdict"
	"ovstage/gocore/query"
	"ovstage/gocore/tensor"
)

// Initial says what a mapped buffer holds before the client writes.
type Initial uint32

// The initial contents.
const (
	Current Initial = 0 // the newest value at or below the session's ordinal, zeros where there is none
	Zero    Initial = 1
	Discard Initial = 2 // unspecified: earlier bytes of this column or zeros
)

// MapDesc describes a map session.
type MapDesc struct {
	Attribute    pathdict.Token
	DType        tensor.DType // zero: that of the existing column
	Semantic     tensor.Semantic
	Mode         Mode
	Initial      Initial
	ElementSizes []uint64 // array columns: elements of each prim
	HasSizes     bool
	GroupRows    uint64 // prims of each group, the last one may have fewer; 0: one group of all
}

// MapGroup is a mapped buffer: a Group whose bytes the client writes, and the key by which it is committed. Its reference
// of the block is released after the commit, not before: what remains beyond it and the session's are views.
type MapGroup struct {
	Group
	Key uint64
}

// session is an open map. Prims, rows and columns come into being when it commits: an abort leaves no trace.
type session struct {
	query     query.Query // holds a list handle of its own
	name      pathdict.Token
	schema    column.Schema
	prims     *pathdict.List // those of the query that the mode lets through
	shares    []share        // of them, for the columns that take them; mostly one
	positions []uint32       // where the query lists the prims of the shares; nil: position k lists prim k
	ordinal   uint64
	initial   Initial
	groups    []mapped // each a part of the prims, in order; empty when there are none
	next      int      // the group to fetch next
	firstKey  uint64   // keys of the groups are consecutive
	dict      *pathdict.Dictionary
}

// share is the prims of a session that go to one column.
type share struct {
	prims  *pathdict.List
	column *bound // nil until it is created
}

// mapped is the buffer of one group, in the order of its prims.
type mapped struct {
	from    int // its first prim among those of the shares
	prims   *pathdict.List
	column  *bound       // that of their share, when the session was opened
	block   memory.Block // what the client writes to; invalid once committed
	spans   memory.Block // array columns: where in block each prim's values are,
	used    int          // and how many bytes they take
	fetched bool
}

// waiting reports whether the end of the session commits the group.
func (g *mapped) waiting(initial Initial) bool {
	return g.block.Valid() && (g.fetched || initial != Discard)
}

// Map opens a session that lets the client write values in place. The buffers belong to the session until they are
// committed; other writers, readers and sessions go on meanwhile, and sessions take effect in the order in which they
// commit.
func (s *Stage) Map(id QueryID, desc MapDesc, ordinal uint64) (MapID, uint64, *Error) {
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
		m.drop()
		return 0, 0, err
	}
	m.query = query.Query{Prims: q.Prims, Handle: s.dict.Mint(q.Prims)}
	mid := MapID(s.nextID())
	s.maps[mid] = m
	return mid, s.succeed(), nil
}

// FetchMap returns the next mapped group, or nil after the last.
func (s *Stage) FetchMap(id MapID) (*MapGroup, *Error) {
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
	typeName := m.schema.Type.Token
	if typeName == 0 && g.column != nil {
		typeName = g.column.Schema().Type.Token
	}
	n := g.prims.Len()
	_ = s.dict.AddRef(m.query.Handle)
	g.fetched = true
	m.next++
	return &MapGroup{Key: m.firstKey + uint64(m.next-1), Group: Group{
		Attribute: m.name, Ordinal: m.ordinal, Semantic: m.schema.Semantic, List: m.query.Handle,
		Type: pathdict.Token(typeName), PrimOffset: offset, PrimMap: positions, PrimCount: uint32(n), Count: uint32(n),
		Data: g.block.Retain(), Spans: g.spans.Retain(), Rows: n, DType: m.schema.DType, Array: m.schema.Array,
		Floor: s.floorOf(a), Generation: a.generation(latest),
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

// locate says where the query lists the prims of a group: from an offset on, or at positions.
func (m *session) locate(g *mapped) (offset uint32, positions memory.Block, err error) {
	if m.positions == nil {
		return uint32(g.from), positions, nil
	}
	listed := m.positions[g.from : g.from+g.prims.Len()]
	if int(listed[len(listed)-1]-listed[0]) == len(listed)-1 {
		return listed[0], positions, nil
	}
	if positions, err = memory.Alloc(4*len(listed), memory.Indices); err == nil {
		copy(positions.Uint32s(len(listed)), listed)
	}
	return 0, positions, err
}

// UnmapGroup commits one group. With adopt the buffer becomes the column's as it is, and the caller promises that nobody
// writes to it any more; otherwise a buffer that views still point at gives its pages away and keeps its address.
func (s *Stage) UnmapGroup(id MapID, key uint64, adopt bool) (op uint64, err *Error) {
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
func (s *Stage) Unmap(id MapID, adopt bool) (op uint64, err *Error) {
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
	m.drop()
	if failure != nil {
		return s.fail(failure), nil
	}
	return s.succeed(), nil
}

// commitRest commits the groups that wait for it, all or none, unless memory runs out half-way.
func (s *Stage) commitRest(m *session, adopt bool) *Error {
	for _, step := range []func(g *mapped) *Error{
		func(g *mapped) *Error { return s.judgeCommit(m, g) },
		func(g *mapped) *Error { return s.commit(m, g, adopt) },
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

// Abort ends a session and writes nothing of what is uncommitted. Aborting it once more does nothing; a session that was
// unmapped can't be aborted.
func (s *Stage) Abort(id MapID) *Error {
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
	m.drop()
	if s.aborted = append(s.aborted, id); len(s.aborted) > maxAborted {
		s.aborted = slices.Delete(s.aborted, 0, 1)
	}
	return nil
}

// maxAborted is how many aborted sessions are told from unknown ones.
const maxAborted = 1024

// judgeCommit refuses a commit that has become impossible while the session was open: its ordinal may be sealed, and the
// prims may have got another schema.
func (s *Stage) judgeCommit(m *session, g *mapped) *Error {
	if err := s.checkFloor(m.name, m.ordinal); err != nil {
		err.Text = "map: " + err.Text + "; nothing was written"
		return err
	}
	_, err := s.columnFor(m.name, g.prims, m.schema, m.ordinal)
	return err
}

// commit makes a group's buffer a record of the column, which may have come into being while the session was open.
func (s *Stage) commit(m *session, g *mapped, adopt bool) (err *Error) {
	w := pending{name: m.name, schema: m.schema, prims: g.prims}
	if w.column, err = s.columnFor(w.name, w.prims, w.schema, m.ordinal); err != nil {
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
	s.record(w, m.ordinal)
	return nil
}

// viewless is the number of references to a mapped buffer that nobody looks at: the session's and the fetched group's.
const viewless = 2

// surrender gives the group's buffer to the write that becomes a record. If views are alive and the caller has made no
// promise, the bytes move to another address, so that a late write through a view can't change what was committed; where
// pages can't be moved they are copied.
func (g *mapped) surrender(w *pending, adopt bool) (copied bool, err error) {
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

func (s *Stage) session(id MapID) (*session, *Error) {
	m, ok := s.maps[id]
	if !ok {
		return nil, errorf(InvalidHandle, "map handle %d is unknown or has been unmapped", id)
	}
	return m, nil
}

// drop gives back what the session holds.
func (m *session) drop() {
	for i := range m.groups {
		g := &m.groups[i]
		g.block.Release()
		g.spans.Release()
		g.block, g.spans = memory.Block{}, memory.Block{}
	}
	m.query.Release(m.dict)
}
