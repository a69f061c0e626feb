package stage

import (
	"slices"

	"ovstage/gocore/memory"
)

// place finds the column of the last entry. One that no column takes as a whole is divided among those that take a part each.
func (s *Stage) place(entries []entry, ordinal uint64) ([]entry, *Error) {
	last := len(entries) - 1
	e := &entries[last]
	if e.prims.Len() == 0 {
		return entries, nil
	}
	var refused *Error
	if e.column, refused = s.columnFor(e.name, e.prims, e.schema, ordinal); refused == nil {
		return entries, nil
	}
	parts, err := s.divide(*e, ordinal)
	switch {
	case err != nil:
		return entries, err
	case len(parts) == 0:
		return entries, refused
	}
	return append(entries[:last], parts...), nil
}

// divide makes an entry a part for each column that its prims have and that takes it: values that say less about themselves
// than the columns do, such as those without a type name for a float3 and a color3f, go where each prim's others are. There
// are no parts where none of the prims has such a column.
func (s *Stage) divide(e entry, ordinal uint64) (parts []entry, err *Error) {
	a := s.attributes[e.name]
	homes, err := s.homes(a, &e, ordinal)
	if err != nil {
		return nil, err
	}
	for at, c := range a.columns {
		if !slices.Contains(homes, at) {
			continue
		}
		part := e
		part.keep(s.dict, func(position int) bool { return homes[position] == at })
		part.column = c
		if err := s.contradicted(a, c, part.prims, part.schema, ordinal); err != nil {
			return nil, err
		}
		parts = append(parts, part)
		e.scratch = memory.Block{} // the first part's
	}
	return parts, nil
}

// homeless stands for the home of a prim that has no value.
const homeless = -1

// homes finds for each prim of an entry which column of the attribute takes its values, by place among the columns: the one in
// which it has a value, or had one until a delete above the ordinal. Prims that have none go where most of the others do, of
// columns with equally many to the oldest.
func (s *Stage) homes(a *attribute, e *entry, ordinal uint64) ([]int, *Error) {
	homes := slices.Repeat([]int{homeless}, e.prims.Len())
	for at, c := range a.columns {
		takes, err := a.takes(c, e.prims, e.schema)
		if err != nil {
			return nil, wrap(err, "attribute %q", s.quoted(e.name))
		}
		if !takes {
			continue
		}
		b, err := c.bindings.Of(c.Column, e.prims)
		if err != nil {
			return nil, wrap(err, "attribute %q", s.quoted(e.name))
		}
		alive, deleted := c.AllAlive(latest), c.DeletedAbove(ordinal)
		b.Each(func(position int, row uint32) {
			if alive.Has(int(row)) || homes[position] == homeless && deleted.Has(int(row)) {
				homes[position] = at
			}
		})
	}
	house(homes, len(a.columns))
	return homes, nil
}

// house gives a home to those that have none, if others have one.
func house(homes []int, columns int) {
	prims := make([]int, columns)
	for _, at := range homes {
		if at != homeless {
			prims[at]++
		}
	}
	most := slices.Max(prims)
	if most == 0 {
		return
	}
	for position, at := range homes {
		if at == homeless {
			homes[position] = slices.Index(prims, most)
		}
	}
}
