package stage

import (
	"fmt"
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

// Payload is what a write brings.
type Payload struct {
	Views    []tensor.View // one for a fixed column
	Array    bool          // declares one variable-length array per prim
	Count    uint32        // leading prims that are written; 0 = all
	IndexMap []uint32      // source row of each written prim
	Mask     []uint64      // which of the leading prims are written
	Stream   uintptr       // CUDA stream to wait for; ignored for host data
	Event    uintptr       // CUDA event to wait for
	Semantic tensor.Semantic

	// Owned is the memory of a fixed column's tensor when its owner hands it over: a foreign block whose first byte is that
	// of the tensor. It becomes the column's storage if the tensor is packed, aligned, covers the column and is its newest
	// value; the write then takes a reference of its own. Otherwise it is copied like any other.
	Owned memory.Block
}

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
	for i := range writes {
		e, err := s.judge(q, &writes[i], ordinal, mode)
		if err != nil {
			return 0, err
		}
		if slices.ContainsFunc(entries, func(o entry) bool { return o.name == e.name }) {
			return 0, errorf(InvalidArgument, "attribute %q occurs twice in one batch; write each attribute once", s.text(e.name))
		}
		entries = append(entries, e)
	}
	if err := s.apply(entries, ordinal); err != nil {
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
	schema column.Schema
	column *bound // nil until it is created
	block  memory.Block
	rows   column.Rows
	added  []uint32 // path indices that got their first row
	owned  memory.Block

	arrays [][]byte     // array columns: the values of each written prim, in place at the client's
	arena  column.Arena // and where they were copied to
}

// keep narrows a write to the prims that satisfy a condition.
func (e *entry) keep(dict *pathdict.Dictionary, wanted func(path uint32) bool) {
	n := e.prims.Len()
	mask, source, arrays := make([]uint64, (n+63)/64), make([]uint32, 0, n), e.arrays[:0:0]
	for i, path := range e.prims.Indices() {
		if !wanted(path) {
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

// release gives up what was copied in.
func (e *entry) release() {
	e.block.Release()
	e.arena.Block.Release()
}

// judge refuses what can't be written and finds the column. It changes nothing.
func (s *Stage) judge(q query.Query, w *Write, ordinal uint64, mode Mode) (entry, *Error) {
	e := entry{name: w.Attribute, prims: q.Prims}
	if err := s.checkTarget("written", w.Attribute, ordinal); err != nil {
		return e, err
	}
	p := &w.Payload
	name := s.text(w.Attribute)
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
		judgePayload := e.judgePayload
		if p.Array {
			judgePayload = e.judgeArrays
		}
		if err := judgePayload(name, p, count); err != nil {
			return e, err
		}
		e.prims = s.dict.Sublist(q.Prims, count, p.Mask)
		if mode == Update {
			e.keep(s.dict, s.exists)
		}
		e.owned = p.Owned
	}
	if err := s.checkMode(e.prims, mode); err != nil || e.prims.Len() == 0 {
		return e, err
	}
	e.column, err = s.columnFor(e.name, e.prims, e.schema, ordinal)
	return e, err
}

// count is the number of leading prims that the payload is about.
func (p *Payload) count(name string, prims int) (int, *Error) {
	switch count := int(p.Count); {
	case p.IndexMap != nil && p.Mask != nil:
		return 0, errorf(InvalidArgument, "attribute %q: index_map and mask are mutually exclusive; pass one of them", name)
	case count == 0 && (p.IndexMap != nil || p.Mask != nil):
		return 0, errorf(InvalidArgument, "attribute %q: count must be non-zero when index_map or mask is supplied", name)
	case p.IndexMap != nil && len(p.IndexMap) < count:
		return 0, errorf(InvalidArgument, "attribute %q: index_map has %d entries, but count is %d; pass one entry per written prim",
			name, len(p.IndexMap), count)
	case p.Mask != nil && 64*len(p.Mask) < count:
		return 0, errorf(InvalidArgument, "attribute %q: mask has %d words of 64 bits, but count is %d; pass a bit per prim",
			name, len(p.Mask), count)
	case count > prims:
		return 0, errorf(InvalidArgument, "attribute %q: count is %d, but the query lists %d prims; pass at most that many, or 0 for all",
			name, count, prims)
	case count == 0:
		return prims, nil
	default:
		return count, nil
	}
}

// judgePayload checks the tensor of a fixed column: that it can be read, and that it has a row for every prim.
func (e *entry) judgePayload(name string, p *Payload, count int) *Error {
	e.view = p.Views[0]
	if err := checkView(e.view, name); err != nil {
		return err
	}
	rows, dtype, err := e.view.Fold()
	if err != nil {
		return wrap(err, "attribute %q", name)
	}
	if err := p.Semantic.Check(dtype, false); err != nil {
		return wrap(err, "attribute %q", name)
	}
	e.schema = column.Schema{DType: dtype, Semantic: p.Semantic}
	if p.IndexMap != nil {
		e.source = p.IndexMap[:count]
		for i, row := range e.source {
			if int(row) >= rows {
				return errorf(InvalidArgument, "attribute %q: index_map[%d] is %d, which references a source row outside the transported row count %d",
					name, i, row, rows)
			}
		}
		return nil
	}
	if rows != count {
		return errorf(InvalidArgument, "attribute %q: the tensor (shape %v, %s) has %d rows, but %d prims are to be written%s",
			name, e.view.Shape, e.view.DType, rows, count, flatHint(e.view, rows, count))
	}
	if p.Mask != nil {
		e.source = selected(p.Mask, count)
	}
	return nil
}

// checkView refuses a tensor that this build can't read.
func checkView(v tensor.View, name string) *Error {
	if v.Device.Type != tensor.CPU {
		return errorf(NotSupported, "attribute %q: the tensor is on %s, which this build can't read; copy it to the host first", name, v.Device)
	}
	if err := v.CheckExtents(); err != nil {
		return wrap(err, "attribute %q", name)
	}
	return nil
}

// selected lists the positions below n whose bit is set.
func selected(mask []uint64, n int) []uint32 {
	list := []uint32{}
	for i := range n {
		if mask[i/64]>>(i%64)&1 == 1 {
			list = append(list, uint32(i))
		}
	}
	return list
}

// flatHint explains the commonest mistake: components counted as rows.
func flatHint(v tensor.View, rows, prims int) string {
	if len(v.Shape) != 1 || prims == 0 || rows <= prims || rows%prims != 0 {
		return ""
	}
	return fmt.Sprintf("; a flat buffer is not cut into tuples: pass shape (%d, %d), or a dtype with %d lanes and shape (%d,)",
		prims, rows/prims, int(v.DType.Lanes)*rows/prims, prims)
}

// columnFor returns the column that takes values of a schema for the prims, or nil when a new one is needed. The
// schema of a prim's attribute never changes: another dtype, kind or role for a prim that has a value is refused.
func (s *Stage) columnFor(name pathdict.Token, prims *pathdict.List, schema column.Schema, ordinal uint64) (*bound, *Error) {
	a := s.attributes[name]
	if a == nil {
		return nil, nil
	}
	var fits *bound
	for _, c := range a.columns {
		if accepts(c.Schema(), schema) {
			if len(a.columns) == 1 {
				return c, nil
			}
			if fits == nil {
				fits = c
			}
		}
	}
	for _, c := range a.columns {
		if c == fits {
			continue
		}
		carried, err := c.carried(prims)
		if err != nil {
			return nil, wrap(err, "attribute %q", s.text(name))
		}
		if carried {
			return nil, errorf(InvalidArgument, "attribute %q: %s does not match the existing %s; delete the attribute first to change its schema",
				s.text(name), schema, c.Schema())
		}
		if rows, err := c.rowsOf(prims); err != nil {
			return nil, wrap(err, "attribute %q", s.text(name))
		} else if c.Above(rows, ordinal) {
			return nil, errorf(InvalidArgument, "attribute %q: %s at ordinal %d lies below a delete of the %s; write it above the delete",
				s.text(name), schema, ordinal, c.Schema())
		}
	}
	return fits, nil
}

// carried reports whether any of the prims holds a value in the column, in its newest state.
func (c *bound) carried(prims *pathdict.List) (bool, error) {
	rows, err := c.rowsOf(prims)
	if err != nil || rows.Len() == 0 || !c.Deletes() {
		return rows.Len() > 0, err
	}
	return rows.Any(c.Alive(latest)), nil
}

// rowsOf returns the rows of those prims that have one.
func (c *bound) rowsOf(prims *pathdict.List) (column.Rows, error) {
	b, err := c.bindings.Of(c.Column, prims)
	if err != nil {
		return column.Rows{}, err
	}
	return b.Rows(), nil
}

// accepts reports whether values of schema may go into a column: same layout, and a role that does not contradict.
func accepts(have, schema column.Schema) bool {
	return have.DType == schema.DType && have.Array == schema.Array &&
		(have.Semantic == schema.Semantic || have.Semantic == 0 || schema.Semantic == 0)
}

// apply copies every payload, then makes all of them records.
func (s *Stage) apply(entries []entry, ordinal uint64) *Error {
	entries = slices.DeleteFunc(entries, func(e entry) bool { return e.prims.Len() == 0 })
	for i := range entries {
		e := &entries[i]
		if e.adoptable() {
			continue
		}
		if err := e.copyIn(); err != nil {
			for k := range entries[:i] {
				entries[k].release()
			}
			return wrap(err, "attribute %q", s.text(e.name))
		}
	}
	for i := range entries {
		if err := s.bind(&entries[i]); err != nil {
			for k := range entries {
				entries[k].release()
			}
			return err
		}
	}
	for i := range entries {
		if err := entries[i].adopt(ordinal); err != nil {
			for k := range entries {
				entries[k].release()
			}
			return wrap(err, "attribute %q", s.text(entries[i].name))
		}
	}
	for _, e := range entries {
		s.record(e, ordinal)
	}
	return nil
}

// ownedAlignment is what storage that is taken over must have: a cache line, so that every consumer can read it in place.
const ownedAlignment = 64

// adoptable reports whether the tensor's own memory might become the column's, as far as the tensor decides it.
func (e *entry) adoptable() bool {
	if !e.owned.Valid() || e.schema.Array || e.source != nil {
		return false
	}
	bytes, ok := e.view.Packed()
	return ok && len(bytes) > 0 && uintptr(unsafe.Pointer(&bytes[0]))%ownedAlignment == 0 && unsafe.Pointer(&bytes[0]) == e.owned.Pointer()
}

// adopt takes the tensor's memory over if it is all of the column's newest value; else it is copied after all.
func (e *entry) adopt(ordinal uint64) error {
	switch {
	case e.block.Valid():
		return nil
	case e.column.Newest(e.rows, ordinal):
		e.block = e.owned.Retain()
		return nil
	}
	return e.copyIn()
}

// copyIn copies the payload into a block of its own: the one copy of a write.
func (e *entry) copyIn() (err error) {
	if e.schema.Array {
		return e.copyArrays()
	}
	width := e.schema.DType.Size()
	size := e.prims.Len() * width
	if e.column != nil {
		e.block, err = e.column.Buffer(size, false)
	} else {
		e.block, err = memory.Alloc(size, memory.Columns)
	}
	if err != nil {
		return err
	}
	if e.source == nil {
		tensor.CopyRows(e.block.Bytes()[:size], e.view)
	} else if err = e.gatherIn(width); err != nil {
		e.block.Release()
		return err
	}
	memory.Copied(size)
	return nil
}

// gatherIn copies the payload rows that the prims ask for. A payload that is not packed is packed first.
func (e *entry) gatherIn(width int) error {
	packed, ok := e.view.Packed()
	if !ok {
		whole, err := memory.Alloc(e.view.Size(), memory.Maps)
		if err != nil {
			return err
		}
		defer whole.Release()
		packed = whole.Bytes()
		tensor.CopyRows(packed, e.view)
	}
	tensor.GatherRows(e.block.Bytes(), packed, e.source, width)
	return nil
}

// bind finds the rows of the prims and creates what is missing: the attribute, the column, the rows.
func (s *Stage) bind(e *entry) *Error {
	if e.column == nil {
		a := s.known(e.name)
		e.column = &bound{Column: column.New(e.schema), bindings: query.Bindings{Resolved: &s.resolved}}
		e.column.KeepHistory(s.history, s.floorOf(a))
		a.columns = append(a.columns, e.column)
	}
	b, added, err := e.column.bindings.Grow(e.column.Column, e.prims)
	if err != nil {
		return wrap(err, "attribute %q", s.text(e.name))
	}
	e.rows, e.added = b.Rows(), added
	return nil
}

// record hands the block over to the column and counts the prims that carry the attribute from now on.
func (s *Stage) record(e entry, ordinal uint64) {
	if e.column.Schema().Semantic == 0 {
		e.column.Stamp(e.schema.Semantic)
	}
	if e.column.Deletes() {
		before := e.column.Alive(latest)
		e.column.WriteArrays(e.rows, ordinal, e.block, e.arena)
		s.carry(e.column, e.column.Alive(latest).Without(before), +1)
	} else {
		e.column.WriteArrays(e.rows, ordinal, e.block, e.arena)
		s.count(e.added, +1)
	}
	s.queue(s.known(e.name))
}

// latest is above every ordinal: the newest state, whatever its ordinal.
const latest = ^uint64(0)

// queue notes that an attribute has something to seal.
func (s *Stage) queue(a *attribute) {
	if !a.queued {
		a.queued = true
		s.unsealed = append(s.unsealed, a)
	}
}

// carry counts an attribute on, or off, the prims of rows.
func (s *Stage) carry(c *bound, rows []uint32, change int) {
	for i, row := range rows {
		rows[i] = c.Path(int(row))
	}
	s.count(rows, change)
}

// count changes the number of attributes that each prim carries.
func (s *Stage) count(paths []uint32, change int) {
	if len(paths) == 0 {
		return
	}
	if highest := int(slices.Max(paths)); highest >= len(s.prims) {
		s.prims = append(s.prims, make([]uint32, highest+1-len(s.prims))...)
	}
	for _, path := range paths {
		s.prims[path] += uint32(change)
	}
}

// exists reports whether a prim carries anything.
func (s *Stage) exists(path uint32) bool { return int(path) < len(s.prims) && s.prims[path] > 0 }

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
	return errorf(InvalidArgument, "prim_mode %d is not one of UPSERT (0), INSERT (1), UPDATE (2)", mode)
}

// derived names the attributes that follow from the paths of prims and can't be written.
var derived = []string{"usd-path", "usd-parent", "usd-children", "usd-active"}

// checkTarget refuses names that can't be written and ordinals that are sealed.
func (s *Stage) checkTarget(verb string, name pathdict.Token, ordinal uint64) *Error {
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
			s.text(name), ordinal, floor)
	}
	return nil
}
