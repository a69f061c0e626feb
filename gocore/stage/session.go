package stage

import (
	"ovstage.dev/ovstage/gocore/column"
	"ovstage.dev/ovstage/gocore/memory"
	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/query"
)

// Initial says what a mapped buffer holds before the client writes.
type Initial uint32

// The initial contents.
const (
	Current Initial = 0 // the newest value at or below the session's ordinal, zeros where there is none
	Zero    Initial = 1
	Discard Initial = 2 // unspecified: earlier bytes of this column or zeros
)

// session is an open map. Prims, rows and columns come into being when it commits: an abort leaves no trace.
type session struct {
	query     query.Query // holds a list handle of its own
	name      pathdict.Token
	schema    column.Schema
	prims     *pathdict.List // the prims of the query that the mode lets through
	shares    []share        // the prims again, by the column that takes them; mostly one share
	positions []uint32       // where the query lists the prims of the shares; nil: position k lists prim k
	ordinal   uint64
	initial   Initial
	groups    []mapped // each a part of the prims, in order; empty when there are none
	next      int      // the group to fetch next
	firstKey  uint64   // keys of the groups are consecutive
	dict      *pathdict.Dictionary
}

// share is the prims of a session that go to one column.
type share struct {
	prims  *pathdict.List
	column *bound // nil until it is created
}

// mapped is the buffer of one group, in the order of its prims.
type mapped struct {
	from    int // index of its first prim among the prims of the shares
	prims   *pathdict.List
	column  *bound       // the column of their share, when the session was opened
	block   memory.Block // what the client writes to; invalid once committed
	used    int          // bytes of block that the values take
	spans   memory.Block // array columns: where in block each prim's values are
	fetched bool
}

// waiting reports whether the end of the session commits the group.
func (g *mapped) waiting(initial Initial) bool {
	return g.block.Valid() && (g.fetched || initial != Discard)
}

// cut makes groups of so many prims of each share; the last one may have fewer.
func (m *session) cut(rows int) {
	from := 0
	for _, p := range m.shares {
		for at := 0; at < p.prims.Len(); at += rows {
			prims := m.dict.Part(p.prims, at, min(rows, p.prims.Len()-at))
			m.groups = append(m.groups, mapped{from: from + at, prims: prims, column: p.column})
		}
		from += p.prims.Len()
	}
}

// position is where the query lists a prim.
func (m *session) position(prim int) uint32 {
	if m.positions == nil {
		return uint32(prim)
	}
	return m.positions[prim]
}

// locate says where the query lists the prims of a group: from an offset on, or at positions.
func (m *session) locate(g *mapped) (offset uint32, positions memory.Block, err error) {
	if m.positions == nil {
		return uint32(g.from), positions, nil
	}
	listed := m.positions[g.from : g.from+g.prims.Len()]
	if int(listed[len(listed)-1]-listed[0]) == len(listed)-1 {
		return listed[0], positions, nil
	}
	if positions, err = memory.Alloc(4*len(listed), memory.Indices); err == nil {
		copy(positions.Uint32s(len(listed)), listed)
	}
	return 0, positions, err
}

// close ends the session: what was not committed is discarded.
func (m *session) close() {
	for i := range m.groups {
		g := &m.groups[i]
		g.block.Release()
		g.spans.Release()
		g.block, g.spans = memory.Block{}, memory.Block{}
	}
	m.query.Release(m.dict)
}
