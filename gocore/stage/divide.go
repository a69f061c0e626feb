package stage

import (
	"slices"

	"ovstage.dev/ovstage/gocore/memory"
)

// assign finds the column of the last write. A write that no column takes as a whole is divided among those that take a part
// each.
func (s *Stage) assign(writes []judged, ordinal uint64) ([]judged, error) {
	last := len(writes) - 1
	w := &writes[last]
	if w.prims.Len() == 0 {
		return writes, nil
	}
	var refused error
	if w.column, refused = s.columnFor(w.attribute, w.prims, w.schema, ordinal); refused == nil {
		return writes, nil
	}
	parts, err := s.divide(*w, ordinal)
	switch {
	case err != nil:
		return writes, err
	case len(parts) == 0:
		return writes, refused
	}
	return append(writes[:last], parts...), nil
}

// divide makes a part of a write for each column that its prims have and that takes it: values that say less about themselves
// than the columns do, such as those without a type name for a float3 and a color3f, go where each prim's others are. There
// are no parts where none of the prims has such a column.
func (s *Stage) divide(w judged, ordinal uint64) (parts []judged, err error) {
	a := w.attribute
	homes, err := s.homes(a, w.prims, w.schema, ordinal)
	if err != nil {
		return nil, err
	}
	for at, c := range a.columns {
		if !slices.Contains(homes, at) {
			continue
		}
		part := w
		part.keep(s.dict, func(position int) bool { return homes[position] == at })
		part.column = c
		if err := s.contradicted(a, c, part.prims, part.schema, ordinal); err != nil {
			return nil, err
		}
		parts = append(parts, part)
		w.scratch = memory.Block{} // the first part's
	}
	return parts, nil
}
