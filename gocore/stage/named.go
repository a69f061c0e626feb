package stage

import (
	"unsafe"

	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/query"
	"ovstage.dev/ovstage/gocore/tensor"
)

// Forget drops what the stage has worked out for lists and can work out again: without that, lists that were used last would
// live on.
func (s *Stage) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.attributes {
		a.postings = nil
		for _, c := range a.columns {
			c.bindings.Close()
		}
	}
}

// Name says what the stage names, while its dictionary is compacted. Lists say for themselves what they hold, and name the prims
// of queries, maps and groups.
func (s *Stage) Name(n *pathdict.Named) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, a := range s.attributes {
		n.Token(name)
		for _, c := range a.columns {
			c.name(n)
		}
	}
	s.prims.Name(n)
	for _, q := range s.queries {
		nameQuery(n, q)
	}
	for _, r := range s.reads {
		for i := range r.groups[r.next:] {
			r.groups[r.next+i].name(n)
		}
		for _, m := range r.missing {
			n.Token(m.attribute)
		}
	}
	for _, m := range s.maps {
		m.nameValues(n)
	}
}

// name says what a column names: the paths of its rows, and what its values do.
func (c *bound) name(n *pathdict.Named) {
	c.Paths(n.Path)
	schema := c.Schema()
	n.Token(pathdict.Token(schema.Type.Token))
	if naming(schema.DType) {
		c.Payloads(func(bytes []byte) { NameValues(n, schema.Semantic, bytes) })
	}
}

func nameQuery(n *pathdict.Named, q query.Query) {
	for _, name := range q.Scope {
		n.Token(name)
	}
	if q.Filter != nil {
		nameCondition(n, q.Filter)
	}
}

func nameCondition(n *pathdict.Named, c *query.Condition) {
	n.Token(c.Predicate.Attribute)
	for i := range c.Conditions {
		nameCondition(n, &c.Conditions[i])
	}
}

func (g *Group) name(n *pathdict.Named) {
	n.Token(g.Attribute)
	n.Token(g.Type)
	NameValues(n, g.Semantic, g.Numbers())
}

// nameValues says what the values of an open map name: they may become those of its column.
func (m *session) nameValues(n *pathdict.Named) {
	n.Token(m.name)
	n.Token(pathdict.Token(m.schema.Type.Token))
	if !naming(m.schema.DType) {
		return
	}
	for i := range m.groups {
		if g := &m.groups[i]; g.block.Valid() {
			NameValues(n, m.schema.Semantic, g.block.Bytes()[:g.used])
		}
	}
}

// naming reports whether values of a type can be handles of paths or tokens.
func naming(dtype tensor.DType) bool { return dtype.Code == tensor.UInt && dtype.Bits == 64 }

// Numbers are the bytes in which a group's values lie, when they can be handles, else none. What a block holds beyond the size
// that was asked for counts too: columns and arenas grow in place.
func (g *Group) Numbers() []byte {
	switch {
	case !naming(g.DType) || !g.Data.Valid():
		return nil
	case g.Array:
		return g.Data.Bytes()[:g.Used]
	default:
		return g.Data.Bytes()[g.DataOffset : g.DataOffset+g.Rows*g.DType.Size()]
	}
}

// NameValues says what values name, of a type that can be handles: they are taken for what their role says, and for both where it
// says nothing.
func NameValues(n *pathdict.Named, role tensor.Semantic, bytes []byte) {
	for _, number := range unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(bytes))), len(bytes)/8) {
		switch role {
		case tensor.SemanticRelationshipPathID:
			n.Handle(pathdict.Path(number))
		case tensor.SemanticTokenID, tensor.SemanticAssetPathID, tensor.SemanticPathExpressionString:
			n.Token(pathdict.Token(number))
		default:
			n.Handle(pathdict.Path(number))
			n.Token(pathdict.Token(number))
		}
	}
}
