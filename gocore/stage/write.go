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
	var single [1]pending // the common batch needs no allocation
	batch := single[:0]
	defer func() {
		for i := range batch {
			batch[i].release()
		}
	}()
	empty := false // is one of them
	for i := range writes {
		before := len(batch)
		w, err := s.judge(q, &writes[i], ordinal, mode)
		if batch = append(batch, w); err == nil {
			batch, err = s.assign(batch, ordinal)
		}
		empty = empty || w.prims.Len() == 0
		if err != nil {
			return 0, err
		}
		if slices.ContainsFunc(batch[:before], func(o pending) bool { return o.name == w.name }) {
			return 0, errorf(InvalidArgument, "attribute %q occurs twice in one batch, perhaps under an alias; write each attribute once",
				s.quoted(w.name))
		}
	}
	if empty {
		batch = slices.DeleteFunc(batch, func(w pending) bool { return w.prims.Len() == 0 })
	}
	if err := s.apply(batch, ordinal, mode); err != nil {
		return 0, err
	}
	return s.succeed(), nil
}

// pending is a judged write: what a client asked for, once it was found that it can be done, on its way to become a record.
type pending struct {
	name   pathdict.Token // that of the attribute
	prims  *pathdict.List // the prims that are written: all of the query, or those that count and mask select
	view   tensor.View
	source []uint32 // payload row of each written prim; nil = row k for prim k
	mask   []uint64 // which of the leading prims are written; while it is judged
	schema column.Schema
	column *bound // nil until it is created
	fresh  bool   // created for this write, and not yet the attribute's
	growth query.Growth
	block  memory.Block
	rows   column.Rows
	added  []uint32 // path indices that got their first row
	owned  memory.Block

	arrays  []tensor.View // array columns: the values of each written prim, in place at the client's
	arena   column.Arena  // and where they are copied to
	scratch memory.Block  // a tensor that had to be packed before it could be cut
}

// keep narrows a write to the prims at some positions.
func (w *pending) keep(dict *pathdict.Dictionary, wanted func(position int) bool) {
	n := w.prims.Len()
	mask, source, arrays := make([]uint64, (n+63)/64), make([]uint32, 0, n), w.arrays[:0:0]
	for i := range n {
		if !wanted(i) {
			continue
		}
		mask[i/64] |= 1 << (i % 64)
		switch {
		case w.schema.Array:
			arrays = append(arrays, w.arrays[i])
		case w.source != nil:
			source = append(source, w.source[i])
		default:
			source = append(source, uint32(i))
		}
	}
	if kept := dict.Sublist(w.prims, n, mask); kept != w.prims {
		w.prims, w.source, w.arrays = kept, source, arrays
	}
}

// release gives up what the write still holds.
func (w *pending) release() {
	w.block.Release()
	w.arena.Block.Release()
	w.scratch.Release()
	w.growth.Drop()
}

// judge refuses what can't be written, whatever the stage holds for the prims. It changes nothing.
func (s *Stage) judge(q query.Query, asked *Write, ordinal uint64, mode Mode) (pending, *Error) {
	w := pending{name: s.stored(asked.Attribute), prims: q.Prims}
	if err := s.checkTarget("written", w.name, ordinal); err != nil {
		return w, err
	}
	p := &asked.Payload
	name := s.quoted(asked.Attribute)
	switch {
	case len(p.Views) == 0:
		return w, errorf(InvalidArgument, "attribute %q: tensor_count is 0; pass at least one tensor", name)
	case len(p.Views) != 1 && !p.Array:
		return w, errorf(InvalidArgument, "attribute %q: a fixed column takes exactly one tensor, got %d; set is_array for one array per prim",
			name, len(p.Views))
	case p.Event != 0:
		return w, errorf(NotSupported, "attribute %q: cuda_sync.wait_event is %#x, but CUDA is not loaded; pass 0 for host data", name, p.Event)
	}
	count, err := p.count(name, q.Prims.Len())
	if err != nil {
		return w, err
	}
	if q.Prims.Len() > 0 {
		w.mask = s.take(p.Mask, (count+63)/64)
		judgePayload := w.judgePayload
		if p.Array {
			judgePayload = w.judgeArrays
		}
		if err := judgePayload(name, p, count); err != nil {
			return w, err
		}
		w.schema.Type = s.typeOf(p.Type)
		if err := s.checkFixed(w.name, w.schema); err != nil {
			return w, err
		}
		w.prims = s.dict.Sublist(q.Prims, count, w.mask)
		if mode == Update {
			paths := w.prims.Indices()
			w.keep(s.dict, func(position int) bool { return s.exists(paths[position]) })
		}
		w.owned, w.mask = p.Owned, nil
	}
	if err := s.checkMode(w.prims, mode); err != nil {
		return w, err
	}
	if w.prims.Len() == 0 {
		w.release()
		w.scratch = memory.Block{}
	}
	return w, nil
}

// apply copies every payload, then makes all of them records. When it fails nothing has been written.
func (s *Stage) apply(batch []pending, ordinal uint64, mode Mode) *Error {
	if err := s.copyIn(batch, ordinal, mode); err != nil {
		return err
	}
	if err := s.prepareAll(batch); err != nil {
		return err
	}
	s.recordAll(batch, ordinal)
	return nil
}

func (s *Stage) prepareAll(batch []pending) *Error {
	for i := range batch {
		if err := s.prepare(&batch[i]); err != nil {
			return err
		}
	}
	return nil
}

// recordAll makes what was copied and prepared records. Nothing in it fails.
func (s *Stage) recordAll(batch []pending, ordinal uint64) {
	for i := range batch {
		w := &batch[i]
		s.bind(w)
		w.adopt(ordinal)
		s.record(*w, ordinal)
		w.block, w.arena = memory.Block{}, column.Arena{} // the column's now
	}
}

// unlockFrom is the number of bytes from which a copy is made without the stage's mutex: others would wait for longer than
// it takes to wake them.
const unlockFrom = 1 << 18

// copyIn makes the one copy of a write, into blocks that belong to nobody yet. A long one lets other operations of the
// stage go on meanwhile; what was judged before is then judged again.
func (s *Stage) copyIn(batch []pending, ordinal uint64, mode Mode) *Error {
	total, err := s.makeRoom(batch)
	if err != nil {
		return err
	}
	if total < unlockFrom || mode == Update { // an update has chosen its prims and can't choose again
		fill(batch)
		return nil
	}
	s.fillUnlocked(batch)
	return s.judgeAgain(batch, ordinal, mode)
}

// makeRoom takes the blocks into which payloads are copied, and returns how many bytes they are.
func (s *Stage) makeRoom(batch []pending) (total int, err *Error) {
	for i := range batch {
		w := &batch[i]
		if w.adoptable() {
			continue
		}
		if err := w.makeRoom(); err != nil {
			return 0, wrap(err, "attribute %q", s.quoted(w.name))
		}
		total += w.block.Size() + w.arena.Block.Size()
	}
	return total, nil
}

func (s *Stage) fillUnlocked(batch []pending) {
	s.mu.Unlock()
	defer s.mu.Lock()
	fill(batch)
}

func fill(batch []pending) {
	for i := range batch {
		batch[i].fill()
	}
}

// judgeAgain refuses what has become impossible while the mutex was free.
func (s *Stage) judgeAgain(batch []pending, ordinal uint64, mode Mode) (err *Error) {
	if err := s.checkOpen(); err != nil {
		return err
	}
	for i := range batch {
		w := &batch[i]
		if err := s.checkFloor(w.name, ordinal); err != nil {
			return err
		}
		if err := s.checkMode(w.prims, mode); err != nil {
			return err
		}
		if w.column, err = s.columnFor(w.name, w.prims, w.schema, ordinal); err != nil {
			return err
		}
	}
	return nil
}

// ownedAlignment is what storage that is taken over must have: a cache line, so that every consumer can read it in place.
const ownedAlignment = 64

// adoptable reports whether the tensor's own memory might become the column's, as far as the tensor decides it.
func (w *pending) adoptable() bool {
	if !w.owned.Valid() || w.schema.Array || w.source != nil || memory.Guarding() { // others' pages cannot be guarded
		return false
	}
	bytes, ok := w.view.Packed()
	return ok && len(bytes) > 0 && uintptr(unsafe.Pointer(&bytes[0]))%ownedAlignment == 0 && unsafe.Pointer(&bytes[0]) == w.owned.Pointer()
}

// adopt takes the tensor's memory over if it is all of the column's newest value; else it is copied after all. Where there is
// no memory for the copy the record keeps the tensor's own until it is sealed.
func (w *pending) adopt(ordinal uint64) {
	if w.block.Valid() {
		return
	}
	if w.column.Newest(w.rows, ordinal) || w.makeRoom() != nil {
		w.block = w.owned.Retain()
		return
	}
	w.fill()
}

// maxPayload is more than any machine has.
const maxPayload = 1 << 46

// makeRoom takes the blocks into which the payload is copied.
func (w *pending) makeRoom() (err error) {
	switch {
	case w.schema.Array:
		total := 0
		for _, values := range w.arrays {
			if total += values.Size(); total < 0 || total > maxPayload {
				return &memory.OutOfMemory{Size: total, Purpose: memory.Columns}
			}
		}
		w.block, w.arena, err = newArrays(len(w.arrays), total, false)
	case w.column != nil:
		w.block, err = w.column.Buffer(w.prims.Len()*w.schema.DType.Size(), false)
	default:
		w.block, err = memory.Alloc(w.prims.Len()*w.schema.DType.Size(), memory.Columns)
	}
	return err
}

// fill copies the payload. It touches nothing of the stage's.
func (w *pending) fill() {
	width := w.schema.DType.Size()
	switch {
	case !w.block.Valid(): // the payload's own memory may be taken over
		return
	case w.schema.Array:
		w.fillArrays()
		return
	case w.source != nil:
		w.gatherIn(width)
	default:
		tensor.CopyRows(w.block.Bytes(), w.view)
	}
	memory.Copied(w.prims.Len() * width)
}

// gatherIn copies the payload rows that the prims ask for, and only those.
func (w *pending) gatherIn(width int) {
	if packed, ok := w.view.Packed(); ok {
		tensor.GatherRows(w.block.Bytes(), packed, w.source, width)
		return
	}
	for i, row := range w.source {
		tensor.CopyRows(w.block.Bytes()[i*width:(i+1)*width], w.view.Row(int(row)))
	}
}

// prepare finds the rows of the prims and takes the memory that giving rows to the others needs. It changes nothing.
func (s *Stage) prepare(w *pending) *Error {
	if w.column == nil {
		w.column = s.newColumn(w.schema)
		w.fresh = true
	}
	var err error
	if w.growth, err = w.column.bindings.Prepare(w.column.Column, w.prims); err != nil {
		return wrap(err, "attribute %q", s.quoted(w.name))
	}
	return nil
}

// bind creates what is missing: the attribute, the column, the rows.
func (s *Stage) bind(w *pending) {
	if w.fresh {
		s.attach(s.known(w.name), w.column)
	}
	b, added := w.column.bindings.Grow(w.column.Column, w.growth)
	w.growth = query.Growth{}
	w.rows, w.added = b.Rows(), added
}

// record hands the block over to the column and counts the prims that carry the attribute from now on.
func (s *Stage) record(w pending, ordinal uint64) {
	a := s.known(w.name)
	a.stamp(w.column, w.schema)
	if w.column.Settled(w.rows) {
		w.column.WriteArrays(w.rows, ordinal, w.block, w.arena)
		s.count(a, w.added, +1)
	} else {
		w.column.WriteArrays(w.rows, ordinal, w.block, w.arena)
		s.appear(a, w.column, w.rows)
	}
	s.note(a, w.column, w.rows)
}

// latest is above every ordinal: the newest state, whatever its ordinal.
const latest = ^uint64(0)

// note takes down that rows of an attribute were written or deleted: filters are to look at them anew, and there is something
// to seal.
func (s *Stage) note(a *attribute, c *bound, rows column.Rows) {
	if a.postings != nil && !a.postings.touch(c.Column, rows) {
		a.postings = nil
	}
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
