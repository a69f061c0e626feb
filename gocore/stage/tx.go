package stage

import (
	"slices"

	"ovstage.dev/ovstage/gocore/column"
	"ovstage.dev/ovstage/gocore/memory"
	"ovstage.dev/ovstage/gocore/pathdict"
)

// Submit runs an operation of a package above this one. do works on the stage itself, through tx, for the length of the call
// and under the stage's mutex. The operation is accepted whatever do returns: an error of do is reported by the operation's wait.
func (s *Stage) Submit(do func(tx Tx) error) (op uint64, err error) {
	if err := s.lock(); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	if err := do(Tx{s}); err != nil {
		return s.fail(err), nil
	}
	return s.succeed(), nil
}

// View runs a call of a package above this one that is no operation, or decides itself whether it is one (Tx.Succeed). It is
// Submit otherwise, but an error of do is the call's own.
func (s *Stage) View(do func(tx Tx) error) error {
	if err := s.lock(); err != nil {
		return err
	}
	defer s.mu.Unlock()
	return do(Tx{s})
}

// Tx is a stage in the hands of Submit or View. It is valid during the call that it was made for, while the stage's mutex is
// held.
type Tx struct{ s *Stage }

// Dictionary is the stage's dictionary.
func (tx Tx) Dictionary() *pathdict.Dictionary { return tx.s.dict }

// Succeed makes a View an operation that has run, and returns its number.
func (tx Tx) Succeed() uint64 { return tx.s.succeed() }

// NextHandle is the number of a new handle. No other handle of the process has it, of whatever kind.
func (tx Tx) NextHandle() uint64 { return tx.s.nextID() }

// Exists reports whether a prim carries anything, in the newest executed state.
func (tx Tx) Exists(path uint32) bool { return tx.s.exists(path) }

// Children calls visit for the children of a path that are prims, in the order of their creation.
func (tx Tx) Children(path uint32, visit func(child uint32)) {
	for _, child := range tx.s.prims.Children(path, nil) {
		visit(child)
	}
}

// Below calls visit for the prims at and below a path.
func (tx Tx) Below(path uint32, visit func(prim uint32)) {
	tree := tx.s.prims.Tree()
	if !tree.Has(path) {
		return
	}
	tree.Below(path, func(at uint32) {
		if tx.s.exists(at) {
			visit(at)
		}
	})
}

// Occupied finds a prim at or below a path.
func (tx Tx) Occupied(path uint32) (prim uint32, found bool) {
	tx.Below(path, func(at uint32) {
		if !found {
			prim, found = at, true
		}
	})
	return prim, found
}

// Attributes calls visit, with what Columns returns, for every attribute that any of the prims holds as of any ordinal, in the
// order of the name tokens, until a visit fails. Attributes with deletes that are not sealed are among them, whichever prims
// were deleted.
func (tx Tx) Attributes(prims []uint32, visit func(name pathdict.Token, columns []*column.Column, floor uint64) error) error {
	for _, a := range tx.s.heldBy(prims) {
		columns, floor, err := tx.Columns(a.name)
		if err != nil {
			return err
		}
		if err := visit(a.name, columns, floor); err != nil {
			return err
		}
	}
	return nil
}

// Text is the text of a token, for error texts.
func (tx Tx) Text(name pathdict.Token) string { return tx.s.text(name) }

// Path is a prim's path, for error texts.
func (tx Tx) Path(path uint32) string { return tx.s.path(tx.s.dict.PathAt(path)) }

// Columns returns the columns of an attribute, one for each schema in use, with everything sealed that its floor has passed,
// and that floor. The columns are the stage's.
func (tx Tx) Columns(name pathdict.Token) (columns []*column.Column, floor uint64, err error) {
	name = tx.s.stored(name)
	a := tx.s.attributes[name]
	if a == nil {
		return nil, tx.s.floor, nil
	}
	floor = tx.s.floorOf(a)
	for _, c := range a.columns {
		if err := c.Seal(floor); err != nil {
			return nil, 0, wrap(err, "attribute %q", tx.s.quoted(name))
		}
		columns = append(columns, c.Column)
	}
	return columns, floor, nil
}

// Rewrite makes a block the record of rows that exist in a column. The column adopts the block and takes a reference of rows.
// The ordinal may be sealed, at or above that of the newest sealed state: then there is a new version of that state.
func (tx Tx) Rewrite(name pathdict.Token, of *column.Column, rows column.Rows, block memory.Block, ordinal uint64) {
	a := tx.s.find(name)
	for _, c := range a.columns {
		if c.Column == of {
			tx.enter(&judged{name: a.name, attribute: a, schema: c.Schema(), column: c, rows: rows, block: block}, ordinal)
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

// Release releases the blocks of a creation that never reached Create.
func (c *Creation) Release() {
	c.Block.Release()
	c.Arena.Block.Release()
}

// Create is Rewrite for prims that need not have rows, in attributes that need not exist. Prims without a row get rows that
// follow each other, in the order of the list. All of the batch is made or nothing. Create adopts the blocks even where it
// fails.
func (tx Tx) Create(ordinal uint64, batch ...Creation) error {
	writes := make([]judged, len(batch))
	for i, c := range batch {
		name := tx.s.stored(c.Attribute)
		writes[i] = judged{
			name: name, attribute: tx.s.attributes[name], prims: tx.s.dict.ListAt(c.Prims), schema: c.Schema, block: c.Block, arena: c.Arena,
		}
	}
	if err := tx.prepare(writes, ordinal); err != nil {
		for i := range writes {
			writes[i].release()
		}
		return err
	}
	for i := range writes { // from here on nothing fails
		w := &writes[i]
		tx.s.bind(w)
		tx.enter(w, ordinal)
	}
	return nil
}

// prepare finds the columns of a batch and takes what their new rows need. It changes nothing.
func (tx Tx) prepare(writes []judged, ordinal uint64) (err error) {
	for i := range writes {
		w := &writes[i]
		if err := tx.s.checkFixed(w.attribute, w.name, w.schema); err != nil {
			return err
		}
		if w.column, err = tx.s.columnFor(w.attribute, w.prims, w.schema, ordinal); err != nil {
			return err
		}
	}
	for i := range writes {
		if err := tx.s.prepare(&writes[i]); err != nil {
			return err
		}
	}
	return nil
}

// enter records what was bound. Where the floor has passed the ordinal, the record is folded at once; if memory is missing for
// that, the next read folds it.
func (tx Tx) enter(w *judged, ordinal uint64) {
	a := w.attribute
	tx.s.record(w, ordinal)
	if floor := tx.s.floorOf(a); ordinal <= floor {
		_ = w.column.Amend(floor)
		if tx.s.fold(a); !a.queued {
			tx.s.unsealed = slices.DeleteFunc(tx.s.unsealed, func(o *attribute) bool { return o == a })
		}
	}
}
