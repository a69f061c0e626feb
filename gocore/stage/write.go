package stage

import (
	"slices"
	"unsafe"

	"ovstage/gocore/column"
	"ovstage/gocore/memory"
	"ovstage/gocore/pathdict"
	"ovstage/gocore/query"
	"ovstage/gocore/tensor"
)

// Mode says what a write does with prims that exist and with those that do not.
type Mode uint32

// The modes.
const (
	Upsert Mode = 0 // creates absent prims, updates present ones
	Insert Mode = 1 // creates prims; refused when any of them exists
	Update Mode = 2 // updates present prims, leaves absent ones alone
)

// Write is one attribute of a batch.
type Write struct {
	Attribute pathdict.Token
	Payload   Payload
}

// Write copies payloads into columns at an ordinal above their floors, for the prims of a query. The batch is judged as a
// whole before anything changes, and applied as a whole. The payloads are no longer needed when the call returns.
func (s *Stage) Write(id QueryID, writes []Write, ordinal uint64, mode Mode) (op uint64, err *Error) {
	if err := s.lock(); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	q, err := s.query(id)
	if err != nil {
		return 0, err
	}
	var single [1]entry // the common batch needs no allocation
	entries := single[:0]
	defer func() {
		for i := range entries {
			entries[i].release()
		}
	}()
	empty := false // is one of them
	for i := range writes {
		before := len(entries)
		e, err := s.judge(q, &writes[i], ordinal, mode)
		if entries = append(entries, e); err == nil {
			entries, err = s.place(entries, ordinal)
		}
		empty = empty || e.prims.Len() == 0
		if err != nil {
			return 0, err
		}
		if slices.ContainsFunc(entries[:before], func(o entry) bool { return o.name == e.name }) {
			return 0, errorf(InvalidArgument, "attribute %q occurs twice in one batch, perhaps under an alias; write each attribute once",
				s.quoted(e.name))
		}
	}
	if empty {
		entries = slices.DeleteFunc(entries, func(e entry) bool { return e.prims.Len() == 0 })
	}
	if err := s.apply(entries, ordinal, mode); err != nil {
		return 0, err
	}
	return s.succeed(), nil
}

// entry is one write of a batch, judged.
type entry struct {
	name   pathdict.Token
	prims  *pathdict.List // the prims that are written: all of the query, or those that count and mask select
	view   tensor.View
	source []uint32 // payload row of each written prim; nil = row k for prim k
	mask   []uint64 // which of the leading prims are written; while it is judged
	schema column.Schema
	column *bound // nil until it is created
	fresh  bool   // created for this entry, and not yet the attribute's
	growth query.Growth
	block  memory.Block
	rows   column.Rows
	added  []uint32 // path indices that got their first row
	owned  memory.Block

	arrays  []tensor.View // array columns: the values of each written prim, in place at the client's
	arena   column.Arena  // and where they are copied to
	scratch memory.Block  // a tensor that had to be packed before it could be cut
}

// typeName is the number of the name of the type that the values have, or that their column has.
func (e *entry) typeName() uint64 {
	if e.schema.Type.Token == 0 && e.column != nil {
		return e.column.Schema().Type.Token
	}
	return e.schema.Type.Token
}

// keep narrows a write to the prims at some positions.
func (e *entry) keep(dict *pathdict.Dictionary, wanted func(position int) bool) {
	n := e.prims.Len()
	mask, source, arrays := make([]uint64, (n+63)/64), make([]uint32, 0, n), e.arrays[:0:0]
	for i := range n {
		if !wanted(i) {
			continue
		}
		mask[i/64] |= 1 << (i % 64)
		switch {
		case e.schema.Array:
			arrays = append(arrays, e.arrays[i])
		case e.source != nil:
			source = append(source, e.source[i])
		default:
			source = append(source, uint32(i))
		}
	}
	if kept := dict.Sublist(e.prims, n, mask); kept != e.prims {
		e.prims, e.source, e.arrays = kept, source, arrays
	}
}

// release gives up what the entry still holds.
func (e *entry) release() {
	e.block.Release()
	e.arena.Block.Release()
	e.scratch.Release()
	e.growth.Drop()
}

// judge refuses what can't be written, whatever the stage holds for the prims. It changes nothing.
func (s *Stage) judge(q query.Query, w *Write, ordinal uint64, mode Mode) (entry, *Error) {
	e := entry{name: s.stored(w.Attribute), prims: q.Prims}
	if err := s.checkTarget("written", e.name, ordinal); err != nil {
		return e, err
	}
	p := &w.Payload
	name := s.quoted(w.Attribute)
	switch {
	case len(p.Views) == 0:
		return e, errorf(InvalidArgument, "attribute %q: tensor_count is 0; pass at least one tensor", name)
	case len(p.Views) != 1 && !p.Array:
		return e, errorf(InvalidArgument, "attribute %q: a fixed column takes exactly one tensor, got %d; set is_array for one array per prim",
			name, len(p.Views))
	case p.Event != 0:
		return e, errorf(NotSupported, "attribute %q: cuda_sync.wait_event is %#x, but CUDA is not loaded; pass 0 for host data", name, p.Event)
	}
	count, err := p.count(name, q.Prims.Len())
	if err != nil {
		return e, err
	}
	if q.Prims.Len() > 0 {
		e.mask = s.take(p.Mask, (count+63)/64)
		judgePayload := e.judgePayload
		if p.Array {
			judgePayload = e.judgeArrays
		}
		if err := judgePayload(name, p, count); err != nil {
			return e, err
		}
		e.schema.Type = s.typeOf(p.Type)
		if err := s.checkFixed(e.name, e.schema); err != nil {
			return e, err
		}
		e.prims = s.dict.Sublist(q.Prims, count, e.mask)
		if mode == Update {
			paths := e.prims.Indices()
			e.keep(s.dict, func(position int) bool { return s.exists(paths[position]) })
		}
		e.owned, e.mask = p.Owned, nil
	}
	if err := s.checkMode(e.prims, mode); err != nil {
		return e, err
	}
	if e.prims.Len() == 0 {
		e.release()
		e.scratch = memory.Block{}
	}
	return e, nil
}

// apply copies every payload, then makes all of them records. When it fails nothing has been written.
func (s *Stage) apply(entries []entry, ordinal uint64, mode Mode) *Error {
	if err := s.copyIn(entries, ordinal, mode); err != nil {
		return err
	}
	if err := s.prepareAll(entries); err != nil {
		return err
	}
	s.recordAll(entries, ordinal)
	return nil
}

func (s *Stage) prepareAll(entries []entry) *Error {
	for i := range entries {
		if err := s.prepare(&entries[i]); err != nil {
			return err
		}
	}
	return nil
}

// recordAll makes what was copied and prepared records. Nothing in it fails.
func (s *Stage) recordAll(entries []entry, ordinal uint64) {
	for i := range entries {
		e := &entries[i]
		s.bind(e)
		e.adopt(ordinal)
		s.record(*e, ordinal)
		e.block, e.arena = memory.Block{}, column.Arena{} // the column's now
	}
}

// unlockFrom is the number of bytes from which a copy is made without the stage's mutex: others would wait for longer than
// it takes to wake them.
const unlockFrom = 1 << 18

// copyIn makes the one copy of a write, into blocks that belong to nobody yet. A long one lets other operations of the
// stage go on meanwhile; what was judged before is then judged again.
func (s *Stage) copyIn(entries []entry, ordinal uint64, mode Mode) *Error {
	total, err := s.makeRoom(entries)
	if err != nil {
		return err
	}
	if total < unlockFrom || mode == Update { // an update has chosen its prims and can't choose again
		fill(entries)
		return nil
	}
	s.fillUnlocked(entries)
	return s.judgeAgain(entries, ordinal, mode)
}

// makeRoom takes the blocks into which payloads are copied, and returns how many bytes they are.
func (s *Stage) makeRoom(entries []entry) (total int, err *Error) {
	for i := range entries {
		e := &entries[i]
		if e.adoptable() {
			continue
		}
		if err := e.makeRoom(); err != nil {
			return 0, wrap(err, "attribute %q", s.quoted(e.name))
		}
		total += e.block.Size() + e.arena.Block.Size()
	}
	return total, nil
}

func (s *Stage) fillUnlocked(entries []entry) {
	s.mu.Unlock()
	defer s.mu.Lock()
	fill(entries)
}

func fill(entries []entry) {
	for i := range entries {
		entries[i].fill()
	}
}

// judgeAgain refuses what has become impossible while the mutex was free.
func (s *Stage) judgeAgain(entries []entry, ordinal uint64, mode Mode) (err *Error) {
	if err := s.checkOpen(); err != nil {
		return err
	}
	for i := range entries {
		e := &entries[i]
		if err := s.checkFloor(e.name, ordinal); err != nil {
			return err
		}
		if err := s.checkMode(e.prims, mode); err != nil {
			return err
		}
		if e.column, err = s.columnFor(e.name, e.prims, e.schema, ordinal); err != nil {
			return err
		}
	}
	return nil
}

// ownedAlignment is what storage that is taken over must have: a cache line, so that every consumer can read it in place.
const ownedAlignment = 64

// adoptable reports whether the tensor's own memory might become the column's, as far as the tensor decides it.
func (e *entry) adoptable() bool {
	if !e.owned.Valid() || e.schema.Array || e.source != nil || memory.Guarding() { // others' pages cannot be guarded
		return false
	}
	bytes, ok := e.view.Packed()
	return ok && len(bytes) > 0 && uintptr(unsafe.Pointer(&bytes[0]))%ownedAlignment == 0 && unsafe.Pointer(&bytes[0]) == e.owned.Pointer()
}

// adopt takes the tensor's memory over if it is all of the column's newest value; else it is copied after all. Where there is
// no memory for the copy the record keeps the tensor's own until it is sealed.
func (e *entry) adopt(ordinal uint64) {
	if e.block.Valid() {
		return
	}
	if e.column.Newest(e.rows, ordinal) || e.makeRoom() != nil {
		e.block = e.owned.Retain()
		return
	}
	e.fill()
}

// maxPayload is more than any machine has.
const maxPayload = 1 << 46

// makeRoom takes the blocks into which the payload is copied.
func (e *entry) makeRoom() (err error) {
	switch {
	case e.schema.Array:
		total := 0
		for _, values := range e.arrays {
			if total += values.Size(); total < 0 || total > maxPayload {
				return &memory.OutOfMemory{Size: total, Purpose: memory.Columns}
			}
		}
		e.block, e.arena, err = newArrays(len(e.arrays), total, false)
	case e.column != nil:
		e.block, err = e.column.Buffer(e.prims.Len()*e.schema.DType.Size(), false)
	default:
		e.block, err = memory.Alloc(e.prims.Len()*e.schema.DType.Size(), memory.Columns)
	}
	return err
}

// fill copies the payload. It touches nothing of the stage's.
func (e *entry) fill() {
	width := e.schema.DType.Size()
	switch {
	case !e.block.Valid(): // the payload's own memory may be taken over
		return
	case e.schema.Array:
		e.fillArrays()
		return
	case e.source != nil:
		e.gatherIn(width)
	default:
		tensor.CopyRows(e.block.Bytes(), e.view)
	}
	memory.Copied(e.prims.Len() * width)
}

// gatherIn copies the payload rows that the prims ask for, and only those.
func (e *entry) gatherIn(width int) {
	if packed, ok := e.view.Packed(); ok {
		tensor.GatherRows(e.block.Bytes(), packed, e.source, width)
		return
	}
	for i, row := range e.source {
		tensor.CopyRows(e.block.Bytes()[i*width:(i+1)*width], e.view.Row(int(row)))
	}
}

// prepare finds the rows of the prims and takes the memory that giving rows to the others needs. It changes nothing.
func (s *Stage) prepare(e *entry) *Error {
	if e.column == nil {
		e.column = s.newColumn(e.schema)
		e.fresh = true
	}
	var err error
	if e.growth, err = e.column.bindings.Prepare(e.column.Column, e.prims); err != nil {
		return wrap(err, "attribute %q", s.quoted(e.name))
	}
	return nil
}

// bind creates what is missing: the attribute, the column, the rows.
func (s *Stage) bind(e *entry) {
	if e.fresh {
		s.attach(s.known(e.name), e.column)
	}
	b, added := e.column.bindings.Grow(e.column.Column, e.growth)
	e.growth = query.Growth{}
	e.rows, e.added = b.Rows(), added
}

// record hands the block over to the column and counts the prims that carry the attribute from now on.
func (s *Stage) record(e entry, ordinal uint64) {
	a := s.known(e.name)
	a.stamp(e.column, e.schema)
	if e.column.Settled(e.rows) {
		e.column.WriteArrays(e.rows, ordinal, e.block, e.arena)
		s.count(a, e.added, +1)
	} else {
		e.column.WriteArrays(e.rows, ordinal, e.block, e.arena)
		s.appear(a, e.column, e.rows)
	}
	s.note(a, e.column, e.rows)
}

// latest is above every ordinal: the newest state, whatever its ordinal.
const latest = ^uint64(0)

// note takes down that rows of an attribute were written or deleted: filters are to look at them anew, and there is something
// to seal.
func (s *Stage) note(a *attribute, c *bound, rows column.Rows) {
	a.touched(c, rows)
	if !a.queued {
		a.queued = true
		s.unsealed = append(s.unsealed, a)
	}
}

// noteDelete is note for a delete.
func (s *Stage) noteDelete(a *attribute, c *bound, rows column.Rows) {
	s.note(a, c, rows)
	if !a.deleting {
		a.deleting = true
		s.deleting = append(s.deleting, a)
	}
}

// checkMode refuses unknown modes, and an Insert that meets a prim.
func (s *Stage) checkMode(prims *pathdict.List, mode Mode) *Error {
	switch mode {
	case Upsert, Update:
		return nil
	case Insert:
		for i, path := range prims.Indices() {
			if s.exists(path) {
				return errorf(PrimNotFound, "prim_mode INSERT: prim %s already exists; nothing was written", s.path(prims.At(i)))
			}
		}
		return nil
	}
	return errorf(InvalidArgument, "prim_mode %d is not one of UPSERT (0), INSERT (1), UPDATE (2)", int32(mode))
}

// checkTarget refuses names that can't be written and ordinals that are sealed.
func (s *Stage) checkTarget(verb string, name pathdict.Token, ordinal uint64) *Error {
	if s.isPlain(name) {
		return s.checkFloor(name, ordinal)
	}
	if err := s.checkNames("attribute", []pathdict.Token{name}); err != nil {
		return err
	}
	if text := s.text(name); slices.Contains(derived, text) {
		return errorf(NotSupported, "attribute %q is derived from the prims and can't be %s", text, verb)
	}
	return s.checkFloor(name, ordinal)
}

func (s *Stage) checkFloor(name pathdict.Token, ordinal uint64) *Error {
	if floor := s.floorOf(s.attributes[name]); ordinal <= floor {
		return errorf(WriteFloorViolation, "attribute %q: ordinal %d is sealed, the write floor is %d; use an ordinal above it",
			s.quoted(name), ordinal, floor)
	}
	return nil
}
