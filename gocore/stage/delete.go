package stage

import (
	"ovstage.dev/ovstage/gocore/column"
	"ovstage.dev/ovstage/gocore/pathdict"
)

// DeleteAttributes removes attributes from the prims of a query at an ordinal; without names it removes the prims, that is,
// every attribute that they carry. A prim that holds no value at the ordinal is left alone. A prim whose last attribute
// goes is gone. Afterwards the attribute may be written with another schema.
func (s *Stage) DeleteAttributes(id QueryID, names []pathdict.Token, ordinal uint64) (op uint64, err error) {
	if err := s.lock(); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	q, err := s.query(id)
	if err != nil {
		return 0, err
	}
	names = s.storedAll(names)
	for _, name := range names {
		if _, _, err := s.target("deleted", name, ordinal); err != nil {
			return 0, err
		}
	}
	doomed, err := s.doom(q.Prims, names, ordinal)
	defer func() {
		for _, d := range doomed {
			d.rows.Release()
		}
	}()
	if err != nil {
		return 0, err
	}
	for _, d := range doomed {
		d.column.Delete(d.rows, ordinal)
		s.vanish(d.attribute, d.column, d.rows)
		s.noteDelete(d.attribute, d.column, d.rows)
	}
	return s.succeed(), nil
}

// doomed are the rows of one column that a delete removes.
type doomed struct {
	attribute *attribute
	column    *bound
	rows      column.Rows
}

// doom finds what a delete removes, and refuses it if any of that is sealed.
func (s *Stage) doom(prims *pathdict.List, names []pathdict.Token, ordinal uint64) (found []doomed, err error) {
	for _, a := range s.targets(prims, names) {
		for _, c := range a.columns {
			rows, err := c.holding(prims, ordinal)
			if err != nil {
				return found, wrap(err, "attribute %q", s.quoted(a.name))
			}
			if rows.Len() == 0 {
				continue
			}
			found = append(found, doomed{a, c, rows})
			if err := s.checkFloor(a, a.name, ordinal); err != nil {
				return found, err
			}
		}
	}
	return found, nil
}

// targets are the attributes that a delete looks at: those that it names, or all that the prims may hold.
func (s *Stage) targets(prims *pathdict.List, names []pathdict.Token) (found []*attribute) {
	if len(names) == 0 {
		return s.heldBy(prims.Indices())
	}
	for _, name := range names {
		if a := s.inUse[name]; a != nil {
			found = append(found, a)
		}
	}
	return sorted(found)
}

// heldBy returns the attributes that any of the prims holds as of any ordinal: what they carry now, and what was deleted and
// is not sealed.
func (s *Stage) heldBy(prims []uint32) []*attribute {
	var found []*attribute
	for _, name := range s.prims.Carried(prims) {
		found = append(found, s.attributes[name])
	}
	if len(s.deleting) == 0 {
		return found
	}
	return sorted(append(found, s.deleting...))
}
