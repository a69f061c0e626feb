package stage

import (
	"slices"
)

// Write copies payloads into columns at an ordinal above their floors, for the prims of a query. The batch is judged as a
// whole before anything changes, and applied as a whole. The payloads are no longer needed when the call returns.
func (s *Stage) Write(id QueryID, writes []Write, ordinal uint64, mode Mode) (op uint64, err error) {
	if err := s.lock(); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	q, err := s.query(id)
	if err != nil {
		return 0, err
	}
	var single [1]judged // the common batch needs no allocation
	batch := single[:0]
	defer func() {
		for i := range batch {
			batch[i].release()
		}
	}()
	empty := false // a write of the batch has no prims
	for i := range writes {
		before := len(batch)
		batch = append(batch, judged{})
		w := &batch[before]
		err := s.judge(w, q.Prims, &writes[i], ordinal, mode)
		name := w.name
		if err == nil && w.prims.Len() == 0 {
			empty = true
		} else if err == nil {
			batch, err = s.assign(batch, ordinal)
		}
		if err != nil {
			return 0, err
		}
		if before > 0 && slices.ContainsFunc(batch[:before], func(o judged) bool { return o.name == name }) {
			return 0, errorf(InvalidArgument, "attribute %q occurs twice in one batch, perhaps under an alias; write each attribute once",
				s.quoted(name))
		}
	}
	if empty {
		batch = slices.DeleteFunc(batch, func(w judged) bool { return w.prims.Len() == 0 })
	}
	if err := s.apply(batch, ordinal, mode); err != nil {
		return 0, err
	}
	return s.succeed(), nil
}

// apply copies every payload, then makes all of them records. When it fails nothing has been written.
func (s *Stage) apply(batch []judged, ordinal uint64, mode Mode) error {
	if err := s.copyIn(batch, ordinal, mode); err != nil {
		return err
	}
	if err := s.prepareAll(batch); err != nil {
		return err
	}
	s.recordAll(batch, ordinal)
	return nil
}

// copyIn makes the one copy of a write, into blocks that no column has yet. A long one lets other operations of the
// stage go on meanwhile; what was judged before is then judged again.
func (s *Stage) copyIn(batch []judged, ordinal uint64, mode Mode) error {
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

// judgeAgain refuses what has become impossible while the mutex was free.
func (s *Stage) judgeAgain(batch []judged, ordinal uint64, mode Mode) (err error) {
	if err := s.checkOpen(); err != nil {
		return err
	}
	for i := range batch {
		w := &batch[i]
		w.attribute = s.attributes[w.name]
		if err := s.checkFloor(w.attribute, w.name, ordinal); err != nil {
			return err
		}
		if err := s.checkMode(w.prims, mode); err != nil {
			return err
		}
		if w.column, err = s.columnFor(w.attribute, w.prims, w.schema, ordinal); err != nil {
			return err
		}
	}
	return nil
}
