package stage

import (
	"fmt"
	"slices"

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
		e, err := s.judge(q, &writes[i], ordinal)
		if err != nil {
			return 0, err
		}
		if slices.ContainsFunc(entries, func(o entry) bool { return o.name == e.name }) {
			return 0, errorf(InvalidArgument, "attribute %q occurs twice in one batch; write each attribute once", s.text(e.name))
		}
		entries = append(entries, e)
	}
	if err := s.checkMode(q, mode); err != nil {
		return 0, err
	}
	if err := s.apply(q, entries, ordinal); err != nil {
		return 0, err
	}
	return s.succeed(), nil
}

// entry is one write of a batch, judged.
type entry struct {
	name   pathdict.Token
	view   tensor.View
	schema column.Schema
	column *bound // nil until it is created
	block  memory.Block
	rows   column.Rows
}

// judge refuses what can't be written and finds the column. It changes nothing.
func (s *Stage) judge(q query.Query, w *Write, ordinal uint64) (entry, *Error) {
	e := entry{name: w.Attribute}
	if err := s.checkTarget("written", w.Attribute, ordinal); err != nil {
		return e, err
	}
	p := &w.Payload
	name := s.text(w.Attribute)
	switch {
	case p.Array:
		return e, errorf(NotSupported, "attribute %q: array (ragged) columns are not supported by this version; is_array must be false", name)
	case p.IndexMap != nil || p.Mask != nil:
		return e, errorf(NotSupported, "attribute %q: index_map and mask are not supported by this version; write a dense payload", name)
	case len(p.Views) != 1:
		return e, errorf(InvalidArgument, "attribute %q: a fixed column takes exactly one tensor, got %d", name, len(p.Views))
	case p.Event != 0:
		return e, errorf(NotSupported, "attribute %q: cuda_sync.wait_event is %#x, but CUDA is not loaded; pass 0 for host data", name, p.Event)
	case p.Count != 0 && int(p.Count) != q.Prims.Len():
		return e, errorf(InvalidArgument, "attribute %q: count is %d, but the query lists %d prims; pass 0 to write all of them",
			name, p.Count, q.Prims.Len())
	}
	if q.Prims.Len() == 0 {
		return e, nil
	}
	return e, s.judgePayload(&e, q, name, p)
}

// judgePayload checks the tensor of a fixed column against the query and the column.
func (s *Stage) judgePayload(e *entry, q query.Query, name string, p *Payload) *Error {
	e.view = p.Views[0]
	if e.view.Device.Type != tensor.CPU {
		return errorf(NotSupported, "attribute %q: the tensor is on %s, which this build can't read; copy it to the host first",
			name, e.view.Device)
	}
	if err := e.view.CheckExtents(); err != nil {
		return wrap(err, "attribute %q", name)
	}
	rows, dtype, err := e.view.Fold()
	if err != nil {
		return wrap(err, "attribute %q", name)
	}
	if rows != q.Prims.Len() {
		return errorf(InvalidArgument, "attribute %q: the tensor (shape %v, %s) has %d rows, but the query lists %d prims%s",
			name, e.view.Shape, e.view.DType, rows, q.Prims.Len(), flatHint(e.view, rows, q.Prims.Len()))
	}
	e.schema = column.Schema{DType: dtype, Semantic: p.Semantic}
	if err := p.Semantic.Check(dtype, false); err != nil {
		return wrap(err, "attribute %q", name)
	}
	found, failure := s.columnFor(e.name, q, e.schema)
	e.column = found
	return failure
}

// flatHint explains the commonest mistake: components counted as rows.
func flatHint(v tensor.View, rows, prims int) string {
	if len(v.Shape) != 1 || prims == 0 || rows <= prims || rows%prims != 0 {
		return ""
	}
	return fmt.Sprintf("; a flat buffer is not cut into tuples: pass shape (%d, %d), or a dtype with %d lanes and shape (%d,)",
		prims, rows/prims, int(v.DType.Lanes)*rows/prims, prims)
}

// columnFor returns the column that takes values of a schema for the query's prims, or nil when a new one is needed. The
// schema of a prim's attribute never changes: another dtype, kind or role for a prim that has a value is refused.
func (s *Stage) columnFor(name pathdict.Token, q query.Query, schema column.Schema) (*bound, *Error) {
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
		b, err := c.bindings.Of(c.Column, q.Prims)
		if err != nil {
			return nil, wrap(err, "attribute %q", s.text(name))
		}
		if b.Rows().Len() > 0 {
			return nil, errorf(InvalidArgument, "attribute %q: %s does not match the existing %s; delete the attribute first to change its schema",
				s.text(name), schema, c.Schema())
		}
	}
	return fits, nil
}

// accepts reports whether values of schema may go into a column: same layout, and a role that does not contradict.
func accepts(have, schema column.Schema) bool {
	return have.DType == schema.DType && have.Array == schema.Array &&
		(have.Semantic == schema.Semantic || have.Semantic == 0 || schema.Semantic == 0)
}

// apply copies every payload, then makes all of them records.
func (s *Stage) apply(q query.Query, entries []entry, ordinal uint64) *Error {
	if q.Prims.Len() == 0 {
		return nil
	}
	for i := range entries {
		e := &entries[i]
		if err := e.copyIn(q.Prims.Len()); err != nil {
			for _, done := range entries[:i] {
				done.block.Release()
			}
			return wrap(err, "attribute %q", s.text(e.name))
		}
	}
	for i := range entries {
		if err := s.bind(q, &entries[i]); err != nil {
			for _, e := range entries {
				e.block.Release()
			}
			return err
		}
	}
	for _, e := range entries {
		s.record(e, ordinal)
	}
	return nil
}

// copyIn copies the payload into a block of its own: the one copy of a write.
func (e *entry) copyIn(prims int) (err error) {
	size := prims * e.schema.DType.Size()
	if e.column != nil {
		e.block, err = e.column.Buffer(size, false)
	} else {
		e.block, err = memory.Alloc(size, memory.Columns)
	}
	if err != nil {
		return err
	}
	tensor.CopyRows(e.block.Bytes()[:size], e.view)
	memory.Copied(size)
	return nil
}

// bind finds the rows of the query's prims and creates what is missing: the attribute, the column, the rows.
func (s *Stage) bind(q query.Query, e *entry) *Error {
	if e.column == nil {
		a := s.known(e.name)
		e.column = &bound{Column: column.New(e.schema), bindings: query.Bindings{Resolved: &s.resolved}}
		a.columns = append(a.columns, e.column)
	}
	b, err := e.column.bindings.Grow(e.column.Column, q.Prims, s.carry)
	if err != nil {
		return wrap(err, "attribute %q", s.text(e.name))
	}
	e.rows = b.Rows()
	return nil
}

// record hands the block over to the column.
func (s *Stage) record(e entry, ordinal uint64) {
	if e.column.Schema().Semantic == 0 {
		e.column.Stamp(e.schema.Semantic)
	}
	e.column.Write(e.rows, ordinal, e.block)
	if a := s.known(e.name); !a.queued {
		a.queued = true
		s.unsealed = append(s.unsealed, a)
	}
}

// carry counts one more attribute on each prim.
func (s *Stage) carry(paths []uint32) {
	if highest := int(slices.Max(paths)); highest >= len(s.prims) {
		s.prims = append(s.prims, make([]uint32, highest+1-len(s.prims))...)
	}
	for _, path := range paths {
		s.prims[path]++
	}
}

// exists reports whether a prim carries anything.
func (s *Stage) exists(path uint32) bool { return int(path) < len(s.prims) && s.prims[path] > 0 }

// checkMode refuses unknown modes, and an Insert that meets a prim.
func (s *Stage) checkMode(q query.Query, mode Mode) *Error {
	switch mode {
	case Upsert:
		return nil
	case Insert:
		for i, path := range q.Prims.Indices() {
			if s.exists(path) {
				return errorf(PrimNotFound, "prim_mode INSERT: prim %s already exists; nothing was written", s.path(q.Prims.At(i)))
			}
		}
		return nil
	}
	return errorf(InvalidArgument, "prim_mode %d is not one of UPSERT (0), INSERT (1)", mode)
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
