package stage

import (
	"slices"

	"ovstage/gocore/column"
	"ovstage/gocore/memory"
	"ovstage/gocore/pathdict"
)

// Operate runs an operation of a room above, which sees the stage from inside, under its mutex and for the length of the
// call. What it returns is how the operation ended: it was accepted, and a failure is reported by its wait.
func (s *Stage) Operate(do func(in Inside) *Error) (op uint64, err *Error) {
	if err := s.lock(); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	if err := do(Inside{s}); err != nil {
		return s.fail(err), nil
	}
	return s.succeed(), nil
}

// Look is Operate for what is no operation, or not in every case: a failure is the call's own.
func (s *Stage) Look(do func(in Inside) *Error) *Error {
	if err := s.lock(); err != nil {
		return err
	}
	defer s.mu.Unlock()
	return do(Inside{s})
}

// Inside is a stage during an operation of a room above. Whoever has it holds the stage's mutex.
type Inside struct{ s *Stage }

// Dictionary is the stage's dictionary.
func (in Inside) Dictionary() *pathdict.Dictionary { return in.s.dict }

// Succeed numbers an operation that has run, inside a Look.
func (in Inside) Succeed() uint64 { return in.s.succeed() }

// NextHandle is the number of a new handle; none of another kind has it.
func (in Inside) NextHandle() uint64 { return in.s.nextID() }

// Exists reports whether a prim carries anything, in the newest executed state.
func (in Inside) Exists(path uint32) bool { return in.s.exists(path) }

// Children calls visit for the children of a path that are prims, in the order of their creation.
func (in Inside) Children(path uint32, visit func(child uint32)) {
	for _, child := range in.s.prims.Children(path, nil) {
		visit(child)
	}
}

// Below calls visit for the prims at and below a path.
func (in Inside) Below(path uint32, visit func(prim uint32)) {
	tree := in.s.prims.Tree()
	if !tree.Has(path) {
		return
	}
	tree.Below(path, func(at uint32) {
		if in.s.exists(at) {
			visit(at)
		}
	})
}

// Occupied finds a prim at or below a path.
func (in Inside) Occupied(path uint32) (prim uint32, found bool) {
	in.Below(path, func(at uint32) {
		if !found {
			prim, found = at, true
		}
	})
	return prim, found
}

// Attributes calls visit for every attribute, as Columns has it, that any of the prims holds as of any ordinal, by name
// token, until one fails. Those with deletes that are not sealed are among them, whoever was deleted.
func (in Inside) Attributes(prims []uint32, visit func(name pathdict.Token, columns []*column.Column, floor uint64) *Error) *Error {
	for _, a := range in.s.heldBy(prims) {
		columns, floor, err := in.Columns(a.name)
		if err != nil {
			return err
		}
		if err := visit(a.name, columns, floor); err != nil {
			return err
		}
	}
	return nil
}

// Path is a prim's path for error texts.
func (in Inside) Path(path uint32) string { return in.s.path(in.s.dict.PathAt(path)) }

// Columns returns the columns of an attribute, one for each schema in use, with everything sealed that its floor has passed,
// and that floor. The columns are the stage's.
func (in Inside) Columns(name pathdict.Token) (columns []*column.Column, floor uint64, err *Error) {
	name = in.s.stored(name)
	a := in.s.attributes[name]
	if a == nil {
		return nil, in.s.floor, nil
	}
	floor = in.s.floorOf(a)
	for _, c := range a.columns {
		if err := c.Seal(floor); err != nil {
			return nil, 0, wrap(err, "attribute %q", in.s.quoted(name))
		}
		columns = append(columns, c.Column)
	}
	return columns, floor, nil
}

// Rewrite makes a record of a block for rows of a column that exist. It takes the block over and adds its own reference to
// rows. The ordinal may be sealed: the record then makes a new version of the newest sealed state, whose ordinal must not be
// higher.
func (in Inside) Rewrite(name pathdict.Token, of *column.Column, rows column.Rows, block memory.Block, ordinal uint64) {
	a := in.s.find(name)
	for _, c := range a.columns {
		if c.Column == of {
			in.enter(a, pending{name: a.name, schema: c.Schema(), column: c, rows: rows, block: block}, ordinal)
		}
	}
}

// Creation is what Create makes in one attribute.
type Creation struct {
	Attribute pathdict.Token
	Schema    column.Schema
	Prims     []uint32     // each once
	Block     memory.Block // their values, or, in an array column, the spans of their values in Arena
	Arena     column.Arena
}

// Release gives up the blocks of a creation that nobody took over.
func (c *Creation) Release() {
	c.Block.Release()
	c.Arena.Block.Release()
}

// Create is Rewrite for prims that need not have rows, in attributes that need not exist: those without one get rows, next to
// each other and in order. All of it is made or nothing. The blocks are taken over, also where it fails.
func (in Inside) Create(ordinal uint64, batch ...Creation) *Error {
	writes := make([]pending, len(batch))
	for i, c := range batch {
		writes[i] = pending{
			name: in.s.stored(c.Attribute), prims: in.s.dict.ListAt(c.Prims), schema: c.Schema, block: c.Block, arena: c.Arena,
		}
	}
	if err := in.prepare(writes, ordinal); err != nil {
		for i := range writes {
			writes[i].release()
		}
		return err
	}
	for i := range writes { // from here on nothing fails
		w := &writes[i]
		in.s.bind(w)
		in.enter(in.s.attributes[w.name], *w, ordinal)
	}
	return nil
}

// prepare finds the columns of a batch and takes what their new rows need. It changes nothing.
func (in Inside) prepare(writes []pending, ordinal uint64) (err *Error) {
	for i := range writes {
		w := &writes[i]
		if err := in.s.checkFixed(w.name, w.schema); err != nil {
			return err
		}
		if w.column, err = in.s.columnFor(w.name, w.prims, w.schema, ordinal); err != nil {
			return err
		}
	}
	for i := range writes {
		if err := in.s.prepare(&writes[i]); err != nil {
			return err
		}
	}
	return nil
}

// enter records what was bound. What the floor has passed already is folded at once, or, for want of memory, by whoever
// reads next.
func (in Inside) enter(a *attribute, w pending, ordinal uint64) {
	in.s.record(w, ordinal)
	if floor := in.s.floorOf(a); ordinal <= floor {
		_ = w.column.Amend(floor)
		if in.s.fold(a); !a.queued {
			in.s.unsealed = slices.DeleteFunc(in.s.unsealed, func(o *attribute) bool { return o == a })
		}
	}
}
