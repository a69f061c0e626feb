package stage

import (
	"ovstage.dev/ovstage/gocore/memory"
	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/tensor"
)

// Range asks for the latest state up to End, or, with HasStart, for what changed in [Start, End].
type Range struct {
	Start, End uint64
	HasStart   bool
}

// Group is a part of an attribute's column that a read serves: a block and what its rows mean. It holds one
// reference of each valid block and one of List; Release ends them.
type Group struct {
	Attribute  pathdict.Token
	Ordinal    uint64 // upper bound of the changes in it
	Delete     bool
	Array      bool
	Semantic   tensor.Semantic
	Type       pathdict.Token      // the name of the type of the values; 0: not known
	List       pathdict.ListHandle // prims are positions of this list:
	PrimOffset uint32              // PrimOffset, PrimOffset+1, ...
	PrimCount  uint32
	PrimMap    memory.Block // or, when valid, these PrimCount positions
	Data       memory.Block
	DataOffset int // bytes from the start of Data to row 0
	Rows       int // rows of DType from there on
	DType      tensor.DType
	Count      uint32       // = PrimCount
	DataMap    memory.Block // when valid, the row of each covered prim; else row k belongs to covered prim k
	Spans      memory.Block // array columns: where in Data the values of covered prim k are, a column.Span each
	Used       int          // array columns: bytes from the start of Data in which the values lie
	Floor      uint64       // effective floor when the group was made
	Generation uint64       // rises when the attribute's sealed rows come or go
}

// Release ends the group's references.
func (g *Group) Release(dict *pathdict.Dictionary) {
	for _, b := range []memory.Block{g.PrimMap, g.Data, g.DataMap, g.Spans} {
		if b.Valid() {
			b.Release()
		}
	}
	_ = dict.ReleaseRef(g.List)
}

// read is a snapshot that waits to be fetched group by group.
type read struct {
	groups  []Group
	next    int
	missing []absence // of what it serves nothing
}

// close ends the read: groups that were not fetched are released.
func (r *read) close(dict *pathdict.Dictionary) {
	for i := r.next; i < len(r.groups); i++ {
		r.groups[i].Release(dict)
	}
	r.groups, r.next = nil, 0
}

// absence is what is found out when a read serves nothing of an attribute. Words are made of it when a client asks.
type absence struct {
	attribute pathdict.Token
	span      Range
	floor     uint64
	newest    uint64 // the newest write that is not sealed, of those that the prims have
	deleted   uint64 // when the last of the prims lost it; 0 when that was forgotten

	frozen   bool // a snapshot was read
	unlisted bool // the query lists no prims
	absent   bool // none of those that it lists exists
	unknown  bool // nothing is stored under this name
	unsealed bool
	gone     bool
	carried  bool             // some of the prims have it, so that the range is to blame
	others   []pathdict.Token // what the first of the prims have instead
}
