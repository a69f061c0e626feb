package stage

import (
	"slices"

	"ovstage.dev/ovstage/gocore/column"
	"ovstage.dev/ovstage/gocore/pathdict"
)

// Attribute is what a stage holds under one name with one schema.
type Attribute struct {
	Name   pathdict.Token
	Schema column.Schema
	Prims  int    // how many prims have a value of it, sealed or not; 0 where all deletes of what is sealed still wait for their seal
	Floor  uint64 // the write floor of the attribute
	Newest uint64 // the ordinal of its newest write or delete, sealed or not
	Bytes  int    // of its columns, with buffers that are kept for the next write
}

// Attributes lists what the stage holds, by the age of the names. What no prim has any more, and no sealed state shows that is
// kept, is left out, and so are the attributes that follow from the paths of prims.
func (s *Stage) Attributes() ([]Attribute, error) {
	if err := s.lock(); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var list []Attribute
	for name, a := range s.attributes {
		for _, c := range a.columns {
			if prims := c.AllAlive(column.Latest).Count(); prims > 0 || c.Sealed().Rows() > 0 || c.KeepsHistory() {
				list = append(list, Attribute{name, c.Schema(), prims, s.floorOf(a), c.LastOrdinal(), c.Bytes()})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b Attribute) int { return int(int64(a.Name) - int64(b.Name)) })
	return list, nil
}
