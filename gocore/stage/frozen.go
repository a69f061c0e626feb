package stage

import (
	"ovstage.dev/ovstage/gocore/column"
	"ovstage.dev/ovstage/gocore/pathdict"
)

// frozen is what a snapshot holds: the floors of its moment, and what was sealed then. The columns own the states.
type frozen struct {
	floor      uint64 // the global floor
	attributes map[pathdict.Token]frozenAttribute
}

// frozenAttribute is an attribute that was known.
type frozenAttribute struct {
	*attribute
	floor      uint64 // effective
	generation uint64
	columns    []frozenColumn // those in which a prim had a value
}

type frozenColumn struct {
	*bound
	state column.Snapshot
}
