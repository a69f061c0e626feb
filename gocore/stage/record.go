package stage

import (
	"ovstage.dev/ovstage/gocore/column"
	"ovstage.dev/ovstage/gocore/memory"
	"ovstage.dev/ovstage/gocore/query"
)

// unlockFrom is the number of bytes from which a copy is made without the stage's mutex: others would wait for longer than
// it takes to wake them.
const unlockFrom = 1 << 18

// makeRoom takes the blocks into which payloads are copied, and returns how many bytes they are.
func (s *Stage) makeRoom(batch []judged) (total int, err error) {
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

func fill(batch []judged) {
	for i := range batch {
		batch[i].fill()
	}
}

func (s *Stage) fillUnlocked(batch []judged) {
	s.mu.Unlock()
	defer s.mu.Lock()
	fill(batch)
}

func (s *Stage) prepareAll(batch []judged) error {
	for i := range batch {
		if err := s.prepare(&batch[i]); err != nil {
			return err
		}
	}
	return nil
}

// prepare finds the rows of the prims and takes the memory that giving rows to the others needs. It changes nothing.
func (s *Stage) prepare(w *judged) error {
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
func (s *Stage) bind(w *judged) {
	if w.fresh {
		w.attribute = s.known(w.name)
		s.attach(w.attribute, w.column)
	}
	b, added := w.column.bindings.Grow(w.column.Column, w.growth)
	w.growth = query.Growth{}
	w.rows, w.added = b.Rows(), added
}

// record hands the block over to the column and counts the prims that carry the attribute from now on.
func (s *Stage) record(w *judged, ordinal uint64) {
	a := w.attribute
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

// recordAll makes what was copied and prepared records. Nothing in it fails.
func (s *Stage) recordAll(batch []judged, ordinal uint64) {
	for i := range batch {
		w := &batch[i]
		s.bind(w)
		w.adopt(ordinal)
		s.record(w, ordinal)
		w.block, w.arena = memory.Block{}, column.Arena{} // the column's now
	}
}
