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
}

// MapGroup is a mapped buffer: a Group whose bytes the client writes, and the key by which it is committed. Its reference
// of the block is released after the commit, not before: what remains beyond it and the session's are views.
type MapGroup struct {
	Group
	Key uint64
}

// session is an open map. Prims, rows and columns come into being when it commits: an abort leaves no trace.
type session struct {
	query   query.Query // holds a list handle of its own
	entry   entry
	ordinal uint64
	initial Initial
	group   *mapped // nil when the query lists no prims
	dict    *pathdict.Dictionary
}

// mapped is the buffer of a session, in the order of the query's list.
type mapped struct {
	key     uint64
	block   memory.Block // what the client writes to; invalid once committed
	spans   memory.Block // array columns: where in block each prim's values are,
	used    int          // and how many bytes they take
	fetched bool
}

// Map opens a session that lets the client write values in place. The buffer belongs to the session until it commits;
// other writers, readers and sessions go on meanwhile, and sessions take effect in the order in which they commit.
func (s *Stage) Map(id QueryID, desc MapDesc, ordinal uint64) (MapID, uint64, *Error) {
	if err := s.lock(); err != nil {
		return 0, 0, err
	}
	defer s.mu.Unlock()
	q, err := s.query(id)
	if err != nil {
		return 0, 0, err
	}
	e, err := s.judgeMap(q, desc, ordinal)
	if err != nil {
		return 0, 0, err
	}
	m := &session{entry: e, ordinal: ordinal, initial: desc.Initial, dict: s.dict}
	if q.Prims.Len() > 0 {
		g := &mapped{key: s.nextID()}
		var err error
		if e.schema.Array {
			g.spans, err = s.openArrays(&e, desc.ElementSizes, ordinal, desc.Initial)
			g.block, g.used = e.arena.Block, e.arena.Used
		} else {
			g.block, err = s.prefill(q, e, ordinal, desc.Initial)
		}
		if err != nil {
			return 0, 0, wrap(err, "attribute %q", s.quoted(desc.Attribute))
		}
		m.group = g
	}
	m.query = query.Query{Prims: q.Prims, Handle: s.dict.Mint(q.Prims)}
	mid := MapID(s.nextID())
	s.maps[mid] = m
	return mid, s.succeed(), nil
}

// judgeMap refuses what can't be mapped and finds the schema.
func (s *Stage) judgeMap(q query.Query, desc MapDesc, ordinal uint64) (entry, *Error) {
	desc.Attribute = s.stored(desc.Attribute)
	e := entry{name: desc.Attribute, prims: q.Prims}
	if err := s.checkTarget("mapped", desc.Attribute, ordinal); err != nil {
		return e, err
	}
	name := s.quoted(desc.Attribute)
	if desc.HasSizes && len(desc.ElementSizes) != q.Prims.Len() {
		return e, errorf(InvalidArgument, "attribute %q: element_sizes has %d entries, but the query lists %d prims; pass one per prim",
			name, len(desc.ElementSizes), q.Prims.Len())
	}
	if desc.Initial > Discard {
		return e, errorf(InvalidArgument, "attribute %q: initial is %d, expected 0 (current), 1 (zero) or 2 (discard)", name, int32(desc.Initial))
	}
	e.schema = column.Schema{DType: desc.DType, Array: desc.HasSizes, Semantic: desc.Semantic}
	if desc.DType == (tensor.DType{}) {
		dtype, err := s.existingDType(q, desc.Attribute, name)
		if err != nil {
			return e, err
		}
		e.schema.DType = dtype
	}
	if err := e.schema.DType.Check(); err != nil {
		return e, wrap(err, "attribute %q: dtype", name)
	}
	if err := desc.Semantic.Check(e.schema.DType, desc.HasSizes); err != nil {
		return e, wrap(err, "attribute %q", name)
	}
	if err := s.checkFixed(desc.Attribute, e.schema); err != nil {
		return e, err
	}
	if err := checkSizes(desc.ElementSizes, e.schema.DType, name); err != nil {
		return e, err
	}
	if desc.Mode == Update {
		return e, errorf(NotSupported, "attribute %q: prim_mode UPDATE is not supported for maps by this version; map the prims that exist", name)
	}
	if array, carried := s.kind(q, desc.Attribute); carried && array && !desc.HasSizes {
		return e, errorf(InvalidArgument, "attribute %q is an array column: pass element_sizes, one number of elements per prim", name)
	}
	var err *Error
	if e.column, err = s.columnFor(desc.Attribute, q.Prims, e.schema, ordinal); err != nil {
		return e, err
	}
	return e, s.checkMode(q.Prims, desc.Mode)
}

// checkSizes refuses a map of more bytes than memory can have.
func checkSizes(sizes []uint64, dtype tensor.DType, name string) *Error {
	const limit = 1 << 46
	total := uint64(0)
	for i, n := range sizes {
		if n > limit || total+n*uint64(dtype.Size()) > limit {
			return errorf(OutOfMemory, "attribute %q: element_sizes[%d] is %d, with which the map would exceed %d bytes", name, i, n, uint64(limit))
		}
		total += n * uint64(dtype.Size())
	}
	return nil
}

// kind tells whether the prims carry arrays under a name, and whether they carry it at all.
func (s *Stage) kind(q query.Query, name pathdict.Token) (array, carried bool) {
	if a := s.attributes[name]; a != nil {
		for _, c := range a.columns {
			if found, err := c.carried(q.Prims); err == nil && found {
				return c.Schema().Array, true
			}
		}
	}
	return false, false
}

// existingDType is the dtype on which the query's prims agree.
func (s *Stage) existingDType(q query.Query, attr pathdict.Token, name string) (tensor.DType, *Error) {
	a := s.attributes[attr]
	if a == nil || len(a.columns) == 0 {
		return tensor.DType{}, errorf(InvalidArgument, "attribute %q does not exist yet: pass the dtype of its values to create it", name)
	}
	if len(a.columns) == 1 {
		return a.columns[0].Schema().DType, nil
	}
	var found *bound
	for _, c := range a.columns {
		carried, err := c.carried(q.Prims)
		if err != nil {
			return tensor.DType{}, wrap(err, "attribute %q", name)
		}
		if !carried {
			continue
		}
		if found != nil {
			return tensor.DType{}, errorf(InvalidArgument, "attribute %q is %s on some of the prims and %s on others: map them apart",
				name, found.Schema(), c.Schema())
		}
		found = c
	}
	if found == nil {
		return tensor.DType{}, errorf(InvalidArgument, "attribute %q has %d schemas and none of the prims carries it: pass the dtype", name, len(a.columns))
	}
	return found.Schema().DType, nil
}

// prefill returns the session's buffer with its initial contents.
func (s *Stage) prefill(q query.Query, e entry, ordinal uint64, initial Initial) (memory.Block, error) {
	size := q.Prims.Len() * e.schema.DType.Size()
	if e.column == nil || initial == Zero {
		return memory.AllocZeroed(size, memory.Columns)
	}
	if initial == Discard {
		return e.column.Buffer(size, true)
	}
	b, err := e.column.bindings.Of(e.column.Column, q.Prims)
	if err != nil {
		return memory.Block{}, err
	}
	block, err := e.column.Buffer(size, false)
	if err != nil {
		return memory.Block{}, err
	}
	if err := b.Compose(e.column.Column, block.Bytes()[:size], ordinal); err != nil {
		block.Release()
		return memory.Block{}, err
	}
	return block, nil
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
	if m.group == nil || m.group.fetched {
		return nil, nil
	}
	m.group.fetched = true
	a := s.attributes[m.entry.name]
	generation := uint64(0)
	if a != nil {
		for _, c := range a.columns {
			generation += c.Sealed().Generation()
		}
	}
	n := m.query.Prims.Len()
	_ = s.dict.AddRef(m.query.Handle)
	return &MapGroup{Key: m.group.key, Group: Group{
		Attribute: m.entry.name, Ordinal: m.ordinal, Semantic: m.entry.schema.Semantic, List: m.query.Handle,
		PrimCount: uint32(n), Count: uint32(n), Data: m.group.block.Retain(), Spans: m.group.spans.Retain(), Rows: n,
		DType: m.entry.schema.DType, Array: m.entry.schema.Array,
		Floor: s.floorOf(a), Generation: generation,
	}}, nil
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
	if m.group == nil || m.group.key != key || !m.group.fetched || !m.group.block.Valid() {
		return 0, errorf(InvalidHandle, "map group: not a group of map %d that waits to be committed; it may have been unmapped before", id)
	}
	if failure := s.commit(m, adopt); failure != nil {
		return s.fail(failure), nil
	}
	return s.succeed(), nil
}

// Unmap commits what is left of a session and ends it, also when the commit fails. A group that was never fetched commits
// its initial contents; with Discard it commits nothing.
func (s *Stage) Unmap(id MapID, adopt bool) (op uint64, err *Error) {
	if err := s.lock(); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	m, err := s.session(id)
	if err != nil {
		return 0, err
	}
	var failure *Error
	if g := m.group; g != nil && g.block.Valid() && (g.fetched || m.initial != Discard) {
		failure = s.commit(m, adopt)
	}
	delete(s.maps, id)
	m.drop()
	if failure != nil {
		return s.fail(failure), nil
	}
	return s.succeed(), nil
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

// commit makes the session's buffer a record of the column. The column is found anew, since it may have come into being,
// or the prims may have got another schema, while the session was open.
func (s *Stage) commit(m *session, adopt bool) *Error {
	e := m.entry
	if err := s.checkFloor(e.name, m.ordinal); err != nil {
		err.Text = "map: " + err.Text + "; nothing was written"
		return err
	}
	var err *Error
	if e.column, err = s.columnFor(e.name, e.prims, e.schema, m.ordinal); err != nil {
		return err
	}
	block, failure := m.group.surrender(adopt)
	if failure != nil {
		return wrap(failure, "attribute %q", s.quoted(e.name))
	}
	e.block = block
	if e.schema.Array {
		e.block, e.arena = m.group.spans, column.Arena{Block: block, Used: m.group.used}
		m.group.spans = memory.Block{}
	}
	if err := s.bind(&e); err != nil {
		e.release()
		return err
	}
	s.adopted++
	s.record(e, m.ordinal)
	return nil
}

// viewless is the number of references to a mapped buffer that nobody looks at: the session's and the fetched group's.
const viewless = 2

// surrender gives up the session's buffer for the column. If views are alive and the caller has made no promise, the
// bytes move to another address, so that a late write through a view can't change what was committed.
func (g *mapped) surrender(adopt bool) (memory.Block, error) {
	block := g.block
	if !adopt && block.Refs() > viewless {
		moved, err := block.Detach()
		if err != nil {
			return memory.Block{}, err
		}
		block.Release()
		block = moved
	}
	g.block = memory.Block{}
	return block, nil
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
	if m.group != nil {
		m.group.block.Release()
		m.group.spans.Release()
		m.group.block, m.group.spans = memory.Block{}, memory.Block{}
	}
	m.query.Release(m.dict)
}
