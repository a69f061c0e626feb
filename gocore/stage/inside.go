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

// Inside is a stage during an operation of a room above. Whoever has it holds the stage's mutex.
type Inside struct{ s *Stage }

// Dictionary is the stage's dictionary.
func (in Inside) Dictionary() *pathdict.Dictionary { return in.s.dict }

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
	a := in.s.attributes[in.s.stored(name)]
	for _, c := range a.columns {
		if c.Column == of {
			in.enter(a, entry{name: a.name, schema: c.Schema(), column: c, rows: rows, block: block}, ordinal)
		}
	}
}

// Create is Rewrite for prims that need not have rows, in an attribute that need not exist: those without one get rows, next
// to each other and in order. Array columns bring the arena of their spans along. The blocks are taken over, also where it
// fails.
func (in Inside) Create(
	name pathdict.Token, schema column.Schema, prims []uint32, block memory.Block, arena column.Arena, ordinal uint64,
) *Error {
	e := entry{name: in.s.stored(name), prims: in.s.dict.ListAt(prims), schema: schema, block: block, arena: arena}
	err := in.s.checkFixed(e.name, schema)
	if err == nil {
		e.column, err = in.s.columnFor(e.name, e.prims, schema, ordinal)
	}
	if err == nil {
		if err = in.s.bind(&e); err != nil {
			err = in.s.strand([]entry{e}, err)
		}
	}
	if err != nil {
		e.release()
		return err
	}
	in.enter(in.s.attributes[e.name], e, ordinal)
	return nil
}

// enter records what was bound. What the floor has passed already is folded at once, or, for want of memory, by whoever
// reads next.
func (in Inside) enter(a *attribute, e entry, ordinal uint64) {
	in.s.record(e, ordinal)
	if floor := in.s.floorOf(a); ordinal <= floor {
		_ = e.column.Amend(floor)
		a.queued = slices.ContainsFunc(a.columns, func(c *bound) bool { return c.Unsealed() })
		if !a.queued {
			in.s.unsealed = slices.DeleteFunc(in.s.unsealed, func(o *attribute) bool { return o == a })
		}
	}
}
