package stage

import (
	"ovstage.dev/ovstage/gocore/bitset"
	"ovstage.dev/ovstage/gocore/column"
	"ovstage.dev/ovstage/gocore/memory"
	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/query"
	"ovstage.dev/ovstage/gocore/tensor"
)

// MapDesc describes a map session.
type MapDesc struct {
	Attribute    pathdict.Token
	DType        tensor.DType // zero: that of the existing column
	Semantic     tensor.Semantic
	Mode         Mode
	Initial      Initial
	ElementSizes []uint64 // array columns: elements of each prim
	HasSizes     bool
	GroupRows    uint64 // prims of each group, the last one may have fewer; 0: one group of all
}

// judgeMap refuses what can't be mapped; it finds the schema, and the prims that the mode lets through. An Insert or Update
// is judged here, by the prims of now, and not again when it commits.
func (s *Stage) judgeMap(m *session, q query.Query, desc *MapDesc) error {
	stored, a, err := s.target("mapped", desc.Attribute, m.ordinal)
	if err != nil {
		return err
	}
	m.name = stored
	name := s.quoted(m.name)
	if desc.HasSizes && len(desc.ElementSizes) != q.Prims.Len() {
		return errorf(InvalidArgument, "attribute %q: element_sizes has %d entries, but the query lists %d prims; pass one per prim",
			name, len(desc.ElementSizes), q.Prims.Len())
	}
	desc.ElementSizes = s.take(desc.ElementSizes, len(desc.ElementSizes))
	if desc.Initial > Discard {
		return errorf(InvalidArgument, "attribute %q: initial is %d, expected 0 (current), 1 (zero) or 2 (discard)", name, int32(desc.Initial))
	}
	if err := s.checkMode(q.Prims, desc.Mode); err != nil {
		return err
	}
	m.prims = q.Prims
	sizes := desc.ElementSizes
	if desc.Mode == Update {
		s.keepExisting(m, desc)
	}
	if err := s.judgeSchema(m, a, *desc, name); err != nil {
		return err
	}
	if err := checkSizes(sizes, m.schema.DType, name); err != nil {
		return err
	}
	return s.share(m, a, desc)
}

// keepExisting narrows a map to the prims that exist, with their element sizes.
func (s *Stage) keepExisting(m *session, desc *MapDesc) {
	all := m.prims
	mask := bitset.New(all.Len())
	positions := make([]uint32, 0, all.Len())
	var sizes []uint64
	for i, path := range all.Indices() {
		if !s.exists(path) {
			continue
		}
		mask.Add(i)
		positions = append(positions, uint32(i))
		if desc.HasSizes {
			sizes = append(sizes, desc.ElementSizes[i])
		}
	}
	if len(positions) < all.Len() {
		m.prims, m.positions, desc.ElementSizes = s.dict.Sublist(all, all.Len(), mask), positions, sizes
	}
}

// judgeSchema finds out what a map's values are: what was asked for, as far as it was, and else what the prims have.
func (s *Stage) judgeSchema(m *session, a *attribute, desc MapDesc, name string) error {
	m.schema = column.Schema{DType: desc.DType, Array: desc.HasSizes, Semantic: desc.Semantic}
	if desc.DType == (tensor.DType{}) {
		dtype, err := s.existingDType(m.prims, a, name)
		if err != nil {
			return err
		}
		m.schema.DType = dtype
	}
	if err := m.schema.DType.Check(); err != nil {
		return wrap(err, "attribute %q", name)
	}
	if err := desc.Semantic.Check(m.schema.DType, desc.HasSizes); err != nil {
		return wrap(err, "attribute %q", name)
	}
	if err := s.checkFixed(a, m.name, m.schema); err != nil {
		return err
	}
	if array, carried := a.kind(m.prims); carried && array && !desc.HasSizes {
		return errorf(InvalidArgument, "attribute %q is an array column: pass element_sizes, one number of elements per prim", name)
	}
	return nil
}

// kind tells whether the prims carry arrays of the attribute, and whether they carry it at all.
func (a *attribute) kind(prims *pathdict.List) (array, carried bool) {
	if a == nil {
		return false, false
	}
	for _, c := range a.columns {
		if found, err := c.carried(prims); err == nil && found {
			return c.Schema().Array, true
		}
	}
	return false, false
}

// existingDType is the dtype on which the prims agree.
func (s *Stage) existingDType(prims *pathdict.List, a *attribute, name string) (tensor.DType, error) {
	if a == nil || len(a.columns) == 0 {
		return tensor.DType{}, errorf(InvalidArgument, "attribute %q does not exist yet: pass the dtype of its values to create it", name)
	}
	if len(a.columns) == 1 {
		return a.columns[0].Schema().DType, nil
	}
	var found *bound
	for _, c := range a.columns {
		carried, err := c.carried(prims)
		if err != nil {
			return tensor.DType{}, wrap(err, "attribute %q", name)
		}
		if !carried {
			continue
		}
		if found != nil && (found.Schema().DType != c.Schema().DType || found.Schema().Array != c.Schema().Array) {
			return tensor.DType{}, errorf(InvalidArgument, "attribute %q is %s on some of the prims and %s on others: map them apart",
				name, found.Schema(), c.Schema())
		}
		found = c
	}
	if found == nil {
		return tensor.DType{}, errorf(InvalidArgument, "attribute %q has %d schemas and none of the prims carries it: pass the dtype", name, len(a.columns))
	}
	return found.Schema().DType, nil
}

// checkSizes refuses a map of more bytes than memory can have.
func checkSizes(sizes []uint64, dtype tensor.DType, name string) error {
	total := uint64(0)
	for i, n := range sizes {
		if n > memory.Largest || total+n*uint64(dtype.Size()) > memory.Largest {
			return errorf(OutOfMemory, "attribute %q: element_sizes[%d] is %d, with which the map would exceed %d bytes", name, i, n, uint64(memory.Largest))
		}
		total += n * uint64(dtype.Size())
	}
	return nil
}

// share finds the column of a session's prims, or divides them among those that take a part each, as a write is.
func (s *Stage) share(m *session, a *attribute, desc *MapDesc) error {
	c, refused := s.columnFor(a, m.prims, m.schema, m.ordinal)
	if refused == nil {
		m.shares = []share{{m.prims, c}}
		return nil
	}
	homes, err := s.homes(a, m.prims, m.schema, m.ordinal)
	if err != nil {
		return err
	}
	positions, sizes := make([]uint32, 0, len(homes)), make([]uint64, 0, len(desc.ElementSizes))
	for at, c := range a.columns {
		var paths []uint32
		for k, path := range m.prims.Indices() {
			if homes[k] != at {
				continue
			}
			paths, positions = append(paths, path), append(positions, m.position(k))
			if desc.HasSizes {
				sizes = append(sizes, desc.ElementSizes[k])
			}
		}
		if len(paths) == 0 {
			continue
		}
		p := share{s.dict.ListAt(paths), c}
		if err := s.contradicted(a, c, p.prims, m.schema, m.ordinal); err != nil {
			return err
		}
		m.shares = append(m.shares, p)
	}
	if len(m.shares) == 0 {
		return refused
	}
	m.positions, desc.ElementSizes = positions, sizes
	return nil
}

// lend cuts a session's prims into groups and gives each its buffer. On failure the session holds what it got so far.
func (s *Stage) lend(m *session, desc MapDesc) error {
	count := m.prims.Len()
	if count == 0 {
		return nil
	}
	rows := count
	if desc.GroupRows > 0 {
		rows = int(min(desc.GroupRows, uint64(count)))
	}
	m.cut(rows)
	m.firstKey = s.nextIDs(len(m.groups))
	for i := range m.groups {
		g := &m.groups[i]
		var sizes []uint64
		if desc.HasSizes {
			sizes = desc.ElementSizes[g.from : g.from+g.prims.Len()]
		}
		if err := g.open(m, sizes); err != nil {
			return wrap(err, "attribute %q", s.quoted(m.name))
		}
	}
	return nil
}

// open takes the group's buffer, with its initial contents.
func (g *mapped) open(m *session, sizes []uint64) (err error) {
	size := g.prims.Len() * m.schema.DType.Size()
	g.used = size
	switch {
	case m.schema.Array:
		err = g.openArrays(m, sizes)
	case g.column == nil || m.initial == Zero:
		g.block, err = memory.AllocZeroed(size, memory.Columns)
	case m.initial == Discard:
		g.block, err = g.column.Buffer(size, true)
	default:
		var b *query.Binding
		if b, err = g.column.bindings.Of(g.column.Column, g.prims); err == nil {
			g.block, err = b.Draft(g.column.Column, m.ordinal)
		}
	}
	return err
}

// openArrays lays out the buffer for arrays of the asked numbers of elements, one per prim, and fills it as asked: a row
// whose length changes keeps what both lengths have in common, the rest are zeros.
func (g *mapped) openArrays(m *session, sizes []uint64) error {
	element := uint64(m.schema.DType.Size())
	total := uint64(0)
	for _, n := range sizes {
		total += n * element
	}
	block, arena, err := newArrays(len(sizes), int(total), true)
	if err != nil {
		return err
	}
	spans := column.Spans(block, len(sizes))
	for i, n := range sizes {
		spans[i] = column.Span{Offset: uint64(arena.Used), Length: n * element}
		arena.Used += int(n * element)
	}
	g.block, g.used, g.spans = arena.Block, arena.Used, block
	if g.column == nil || m.initial != Current {
		return nil
	}
	b, err := g.column.bindings.Of(g.column.Column, g.prims)
	if err != nil {
		return err
	}
	values := g.column.Values(b.Rows(), m.ordinal)
	b.Each(func(position int, _ uint32) {
		at := spans[position]
		memory.Copied(copy(arena.Block.Bytes()[at.Offset:at.Offset+at.Length], values[0]))
		values = values[1:]
	})
	return nil
}
