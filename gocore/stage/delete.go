package stage

import (
	"slices"

	"ovstage/gocore/column"
	"ovstage/gocore/pathdict"
)

// DeleteAttributes removes attributes from the prims of a query at an ordinal; without names it removes the prims, that is,
// every attribute that they carry. A prim that holds no value at the ordinal is left alone. A prim whose last attribute
// goes is gone. Afterwards the attribute may be written with another schema.
func (s *Stage) DeleteAttributes(id QueryID, names []pathdict.Token, ordinal uint64) (op uint64, err *Error) {
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
		if err := s.checkTarget("deleted", name, ordinal); err != nil {
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
		s.note(d.attribute, d.column, d.rows)
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
func (s *Stage) doom(prims *pathdict.List, names []pathdict.Token, ordinal uint64) (found []doomed, err *Error) {
	for name, a := range s.attributes {
		if len(names) > 0 && !slices.Contains(names, name) {
			continue
		}
		for _, c := range a.columns {
			rows, err := c.holding(prims, ordinal)
			if err != nil {
				return found, wrap(err, "attribute %q", s.quoted(name))
			}
			if rows.Len() == 0 {
				continue
			}
			found = append(found, doomed{a, c, rows})
			if err := s.checkFloor(name, ordinal); err != nil {
				return found, err
			}
		}
	}
	return found, nil
}

// holding returns the rows of those prims that hold a value at an ordinal. The caller owns the list.
func (c *bound) holding(prims *pathdict.List, ordinal uint64) (column.Rows, error) {
	rows, err := c.rowsOf(prims)
	if err != nil || rows.Len() == 0 {
		return column.Rows{}, err
	}
	return rows.Where(c.Alive(rows, ordinal))
}
