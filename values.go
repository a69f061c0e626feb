package ovstage

import (
	"fmt"
	"iter"
	"reflect"
	"runtime"
	"slices"
	"unsafe"

	"ovstage.dev/ovstage/gocore/column"
	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/stage"
	"ovstage.dev/ovstage/gocore/tensor"
)

// Option is more about a write or a map.
type Option func(*options)

type options struct {
	mode     stage.Mode
	semantic tensor.Semantic
	kind     string
	initial  stage.Initial
}

// InMode says what happens to prims that exist and to others: stage.Upsert, the default, stage.Insert, stage.Update
// or stage.Require.
func InMode(mode stage.Mode) Option { return func(o *options) { o.mode = mode } }

// WithRole says what the numbers mean, such as tensor.SemanticPoint.
func WithRole(role tensor.Semantic) Option { return func(o *options) { o.semantic = role } }

// WithType says what the values are called where they come from, such as the USD type "color3f". For writes.
func WithType(name string) Option { return func(o *options) { o.kind = name } }

// StartingWith says what the rows of a map hold at first: stage.Current, the default, stage.Zero or stage.Discard.
func StartingWith(initial stage.Initial) Option { return func(o *options) { o.initial = initial } }

func chosen(list []Option) (o options) {
	for _, option := range list {
		option(&o)
	}
	return o
}

// Write writes an attribute of the prims at an ordinal, a value for each: a number, or an array of some, [3]float32.
func Write[T any](p *Prims, attribute string, ordinal uint64, values []T, more ...Option) error {
	view, err := viewOf(values)
	if err != nil {
		return err
	}
	return p.write(attribute, ordinal, stage.Payload{Views: []tensor.View{view}}, more)
}

// WriteArrays writes an array for each prim, of any length.
func WriteArrays[T any](p *Prims, attribute string, ordinal uint64, arrays [][]T, more ...Option) error {
	payload := stage.Payload{Array: true}
	for _, values := range arrays {
		view, err := viewOf(values)
		if err != nil {
			return err
		}
		payload.Views = append(payload.Views, view)
	}
	return p.write(attribute, ordinal, payload, more)
}

func (p *Prims) write(attribute string, ordinal uint64, payload stage.Payload, more []Option) error {
	defer runtime.KeepAlive(p)
	o := chosen(more)
	name, err := p.stage.name(attribute)
	if err != nil {
		return err
	}
	payload.Semantic = o.semantic
	if o.kind != "" {
		if payload.Type, err = p.stage.name(o.kind); err != nil {
			return err
		}
	}
	return p.stage.finished(p.stage.engine.Write(p.query, []stage.Write{{Attribute: name, Payload: payload}}, ordinal, o.mode))
}

// Map lends the memory that becomes the attribute: fill gets a row for each of the prims, in their order, which starts with the
// current value. When fill returns nil the rows are committed at the ordinal; when it fails or panics nothing is written. The
// rows are lent for the length of the call. Where they do not lie in one column, or are of some of the prims, Map is refused, and
// MapParts does it.
func Map[T any](p *Prims, attribute string, ordinal uint64, fill func(rows []T) error, more ...Option) error {
	return mapGroups[T](p, attribute, ordinal, more, func(g *stage.Group, rows []T) error {
		if len(rows) != len(p.paths) {
			return &stage.Error{Code: stage.NotSupported, Text: fmt.Sprintf(
				"attribute %q: the prims are %d rows in several columns, or some of %d prims; map them by MapParts",
				attribute, len(rows), len(p.paths))}
		}
		return fill(rows)
	})
}

// MapParts is Map for prims whose values have several types, and so lie in several columns, or of which an option chooses some:
// fill is called for each column. Row i of its rows belongs to the prim with the index prims[i] in the list. All parts are
// committed together, or none.
func MapParts[T any](p *Prims, attribute string, ordinal uint64, fill func(prims []int, rows []T) error, more ...Option) error {
	return mapGroups[T](p, attribute, ordinal, more, func(g *stage.Group, rows []T) error {
		prims := make([]int, len(rows))
		for k := range prims {
			prims[k] = primIndex(g, k)
		}
		return fill(prims, rows)
	})
}

// mapGroups calls fill for each group of a map, and commits what it filled.
func mapGroups[T any](p *Prims, attribute string, ordinal uint64, more []Option, fill func(*stage.Group, []T) error) error {
	defer runtime.KeepAlive(p)
	dtype, err := typeOf[T]()
	if err != nil {
		return err
	}
	name, err := p.stage.name(attribute)
	if err != nil {
		return err
	}
	o := chosen(more)
	desc := stage.MapDesc{Attribute: name, DType: dtype, Semantic: o.semantic, Mode: o.mode, Initial: o.initial}
	id, _, err := p.stage.engine.Map(p.query, desc, ordinal)
	if err != nil {
		return err
	}
	defer func() { _ = p.stage.engine.Abort(id) }() // nothing is left to abort after the commit
	for {
		g, err := p.stage.engine.FetchMap(id)
		if err != nil {
			return err
		}
		if g == nil {
			return p.stage.finished(p.stage.engine.Unmap(id, true))
		}
		defer g.Release(p.stage.dict)
		if err := fill(&g.Group, rowsOf[T](&g.Group)); err != nil {
			return err
		}
	}
}

// Column is the sealed values of one attribute for a list of prims: a snapshot, which no write changes.
type Column[T any] struct {
	Ordinal uint64 // of the newest change in it

	held  *held
	paths []string       // of the prims that were asked about
	where map[string]row // of the prims that have a value, once At was asked
}

// held are the groups of a read. It is apart from the column, so that a cleanup can give them back.
type held struct {
	names  *names
	groups []*stage.Group
}

// row is where a value lies.
type row struct {
	group *stage.Group
	at    int
}

func (h *held) release() {
	for _, g := range h.groups {
		g.Release(h.names.dict)
	}
	h.groups = nil
}

// Read returns the newest sealed values of an attribute. Prims without one are not in it.
func Read[T any](p *Prims, attribute string) (*Column[T], error) {
	name, err := p.stage.name(attribute)
	if err != nil {
		return nil, err
	}
	end, err := p.stage.floor(name)
	if err != nil {
		return nil, err
	}
	return readRange[T](p, name, stage.Range{End: end})
}

// ReadAt is Read as of an ordinal; how far back that goes is the stage's history.
func ReadAt[T any](p *Prims, attribute string, ordinal uint64) (*Column[T], error) {
	name, err := p.stage.name(attribute)
	if err != nil {
		return nil, err
	}
	return readRange[T](p, name, stage.Range{End: ordinal})
}

// ReadChanges returns the values that changed from one ordinal to another, both included. Prims that lost theirs are not in it.
func ReadChanges[T any](p *Prims, attribute string, first, last uint64) (*Column[T], error) {
	name, err := p.stage.name(attribute)
	if err != nil {
		return nil, err
	}
	return readRange[T](p, name, stage.Range{Start: first, End: last, HasStart: true})
}

func readRange[T any](p *Prims, name pathdict.Token, r stage.Range) (*Column[T], error) {
	return read[T](p, func() (stage.ReadID, uint64, error) {
		return p.stage.engine.Read(p.query, []pathdict.Token{name}, r)
	}, name)
}

// read fetches the groups of a read of one attribute.
func read[T any](p *Prims, open func() (stage.ReadID, uint64, error), name pathdict.Token) (*Column[T], error) {
	defer runtime.KeepAlive(p)
	dtype, err := typeOf[T]()
	if err != nil {
		return nil, err
	}
	engine := p.stage.engine
	id, _, err := open()
	if err != nil {
		return nil, err
	}
	defer func() { _, _ = engine.ReleaseRead(id) }()
	c := &Column[T]{held: &held{names: p.stage.names}, paths: p.paths}
	runtime.AddCleanup(c, (*held).release, c.held)
	for {
		g, err := engine.FetchRead(id)
		if err != nil {
			return nil, err
		}
		if g == nil {
			return c, nil
		}
		if g.Delete {
			g.Release(p.stage.dict)
			continue
		}
		c.held.groups = append(c.held.groups, g)
		c.Ordinal = max(c.Ordinal, g.Ordinal)
		if g.Array || g.DType != dtype {
			text, _ := p.stage.dict.TokenString(name)
			have := column.Schema{DType: g.DType, Array: g.Array}
			return nil, &stage.Error{Code: stage.InvalidArgument, Text: fmt.Sprintf(
				"attribute %q: its values are %s, they can't be read as %s", text, have, dtype)}
		}
	}
}

// Len is how many prims have a value.
func (c *Column[T]) Len() (n int) {
	for _, g := range c.held.groups {
		n += int(g.Count)
	}
	return n
}

// each calls visit for the values, group by group, with the index of the prim in the list, until it returns false.
func (c *Column[T]) each(visit func(prim int, of row) bool) {
	defer runtime.KeepAlive(c)
	for _, g := range c.held.groups {
		for k := range int(g.Count) {
			at := k
			if g.DataMap.Valid() {
				at = int(g.DataMap.Uint32s(int(g.Count))[k])
			}
			if !visit(primIndex(g, k), row{g, at}) {
				return
			}
		}
	}
}

// primIndex is the index, in the list that was asked about, of the prim that a group names as its k-th.
func primIndex(g *stage.Group, k int) int {
	if g.PrimMap.Valid() {
		return int(g.PrimMap.Uint32s(int(g.PrimCount))[k])
	}
	return int(g.PrimOffset) + k
}

// At is the value of a prim, and whether it has one. The first call makes an index of the prims; it is not for several goroutines
// at once.
func (c *Column[T]) At(path string) (value T, ok bool) {
	defer runtime.KeepAlive(c)
	if c.where == nil {
		c.where = make(map[string]row, c.Len())
		c.each(func(prim int, of row) bool {
			c.where[c.paths[prim]] = of
			return true
		})
	}
	if of, ok := c.where[path]; ok {
		return rowsOf[T](of.group)[of.at], true
	}
	return value, false
}

// All are the prims with their values.
func (c *Column[T]) All() iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		c.each(func(prim int, of row) bool { return yield(c.paths[prim], rowsOf[T](of.group)[of.at]) })
	}
}

// Values is a copy of the values, in the order of the prims.
func (c *Column[T]) Values() []T {
	values := make([]T, 0, c.Len())
	for _, value := range c.All() {
		values = append(values, value)
	}
	return values
}

// View calls look for each run of rows that lie next to each other, without a copy; first counts the values before the run. The
// rows are shared with everything that reads them: they are to be looked at during the call, and not written to.
func (c *Column[T]) View(look func(first int, rows []T)) {
	defer runtime.KeepAlive(c)
	first := 0
	for _, g := range c.held.groups {
		rows, count := rowsOf[T](g), int(g.Count)
		if !g.DataMap.Valid() {
			look(first, rows[:count])
			first += count
			continue
		}
		list := g.DataMap.Uint32s(count)
		for from := 0; from < count; {
			to := from + 1
			for to < count && list[to] == list[to-1]+1 {
				to++
			}
			look(first, rows[list[from]:int(list[from])+to-from])
			first, from = first+to-from, to
		}
	}
}

// Release gives the memory of the snapshot back now instead of when the collector finds it. The column is empty from then on.
func (c *Column[T]) Release() {
	c.held.release()
	c.where = nil
}

// ReadArrays returns the newest sealed arrays of an attribute, by prim.
func ReadArrays[T any](p *Prims, attribute string) (map[string][]T, error) {
	defer runtime.KeepAlive(p)
	dtype, err := typeOf[T]()
	if err != nil {
		return nil, err
	}
	name, err := p.stage.name(attribute)
	if err != nil {
		return nil, err
	}
	end, err := p.stage.floor(name)
	if err != nil {
		return nil, err
	}
	id, _, err := p.stage.engine.Read(p.query, []pathdict.Token{name}, stage.Range{End: end})
	if err != nil {
		return nil, err
	}
	defer func() { _, _ = p.stage.engine.ReleaseRead(id) }()
	found := map[string][]T{}
	for {
		g, err := p.stage.engine.FetchRead(id)
		if err != nil {
			return nil, err
		}
		if g == nil {
			return found, nil
		}
		defer g.Release(p.stage.dict)
		if !g.Array || g.DType != dtype {
			return nil, &stage.Error{Code: stage.InvalidArgument, Text: fmt.Sprintf(
				"attribute %q: its values are %s, they can't be read as arrays of %s", attribute,
				column.Schema{DType: g.DType, Array: g.Array}, dtype)}
		}
		for k, span := range column.Spans(g.Spans, g.Rows) {
			rows := unsafe.Slice((*T)(unsafe.Add(g.Data.Pointer(), span.Offset)), int(span.Length)/dtype.Size())
			found[p.paths[primIndex(g, k)]] = slices.Clone(rows)
		}
	}
}

// ---- Types ----

var kinds = map[reflect.Kind]tensor.DType{
	reflect.Bool: {Code: tensor.Bool, Bits: 8},
	reflect.Int8: {Code: tensor.Int, Bits: 8}, reflect.Int16: {Code: tensor.Int, Bits: 16},
	reflect.Int32: {Code: tensor.Int, Bits: 32}, reflect.Int64: {Code: tensor.Int, Bits: 64},
	reflect.Uint8: {Code: tensor.UInt, Bits: 8}, reflect.Uint16: {Code: tensor.UInt, Bits: 16},
	reflect.Uint32: {Code: tensor.UInt, Bits: 32}, reflect.Uint64: {Code: tensor.UInt, Bits: 64},
	reflect.Float32: {Code: tensor.Float, Bits: 32}, reflect.Float64: {Code: tensor.Float, Bits: 64},
	reflect.Complex64: {Code: tensor.Complex, Bits: 64}, reflect.Complex128: {Code: tensor.Complex, Bits: 128},
}

// typeOf is the type of a column of T. Only the type is looked at, once a call; rows never are.
func typeOf[T any]() (tensor.DType, error) {
	of, lanes := reflect.TypeFor[T](), 1
	for of.Kind() == reflect.Array {
		lanes *= of.Len()
		of = of.Elem()
	}
	dtype, ok := kinds[of.Kind()]
	if !ok || lanes < 1 || lanes > tensor.MaxLanes {
		return dtype, &stage.Error{Code: stage.InvalidArgument, Text: fmt.Sprintf(
			"a column has no values of the Go type %s; use a number of a fixed size, a bool, or an array of 1 to %d of them",
			reflect.TypeFor[T](), tensor.MaxLanes)}
	}
	dtype.Lanes = uint16(lanes)
	return dtype, nil
}

func viewOf[T any](values []T) (tensor.View, error) {
	dtype, err := typeOf[T]()
	return tensor.View{
		Data: unsafe.Pointer(unsafe.SliceData(values)), Device: tensor.Device{Type: tensor.CPU}, DType: dtype,
		Shape: []int64{int64(len(values))},
	}, err
}

func rowsOf[T any](g *stage.Group) []T {
	return unsafe.Slice((*T)(unsafe.Add(g.Data.Pointer(), g.DataOffset)), g.Rows)
}

// name is the token of an attribute or a type.
func (s *Stage) name(text string) (pathdict.Token, error) {
	token, err := s.dict.Token(text)
	if err != nil {
		return 0, &stage.Error{Code: stage.CodeOf(err), Text: err.Error()}
	}
	return token, nil
}
