package stage

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"ovstage.dev/ovstage/gocore/column"
	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/query"
	"ovstage.dev/ovstage/gocore/tensor"
)

var (
	int32Type = tensor.DType{Code: tensor.Int, Bits: 32, Lanes: 1}
	idType    = tensor.DType{Code: tensor.UInt, Bits: 64, Lanes: 1}
)

// Random writes and deletes over a random tree of paths, and after each of them random filters and reads of derived
// attributes, compared with a model that looks at every path as text.
func TestFiltersAgainstModel(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			f := newForest(t, seed)
			for range 120 {
				f.step()
				for range 6 {
					f.askRandomly()
				}
				f.readDerived(f.some())
				f.readDerived(slices.Clone(f.order))
			}
		})
	}
}

// forest is the stage and its model: every write of every attribute of every path.
type forest struct {
	*fixture
	random *rand.Rand
	pool   []string
	writes map[string]map[string][]stated // by attribute and path
	order  []string                       // the prims in the order of their creation
	floor  uint64
	seq    int

	standing struct { // a query that was made earlier
		id    QueryID
		holds func(path string) bool
	}
}

type stated struct {
	ordinal uint64
	seq     int
	gone    bool
	number  float64
	tokens  []string
}

var forestAttributes = []string{"p", "q", "kind", "usd-prim-type", "usd-schemas"}

func newForest(t *testing.T, seed uint64) *forest {
	f := &forest{fixture: newFixture(t), random: rand.New(rand.NewPCG(seed, 2)), writes: map[string]map[string][]stated{}}
	for _, name := range forestAttributes {
		f.writes[name] = map[string][]stated{}
	}
	names := []string{"a", "b", "ab", "aab", "World", "Worldwide", "é", "."[:0] + "_x"}
	f.pool = []string{"/"}
	for len(f.pool) < 2+f.random.IntN(60) {
		parent := f.pool[f.random.IntN(len(f.pool))]
		for range 1 + f.random.IntN(2) { // the path between need not be a prim
			parent = strings.TrimSuffix(parent, "/") + "/" + names[f.random.IntN(len(names))]
		}
		if !slices.Contains(f.pool, parent) {
			f.pool = append(f.pool, parent)
		}
	}
	f.random.Shuffle(len(f.pool), func(i, j int) { f.pool[i], f.pool[j] = f.pool[j], f.pool[i] })
	id, _, err := f.QueryFilter(Condition{Match: query.All}, nil)
	require.Nil(t, err)
	f.standing.id, f.standing.holds = id, func(string) bool { return true }
	return f
}

// newest is the state with the largest ordinal.
func (f *forest) newest(name, path string, ordinal uint64) (best stated, ok bool) {
	for _, w := range f.writes[name][path] {
		if w.ordinal <= ordinal && (!ok || w.ordinal >= best.ordinal) {
			best, ok = w, true
		}
	}
	return best, ok && !best.gone
}

func (f *forest) carries(name, path string) bool {
	_, ok := f.newest(name, path, column.Latest)
	return ok
}

func (f *forest) lives(path string) bool { return slices.Contains(f.order, path) }

// settle brings the order of creation up to date after a write or delete of paths.
func (f *forest) settle(paths []string) {
	for _, path := range paths {
		carries := slices.ContainsFunc(forestAttributes, func(name string) bool { return f.carries(name, path) })
		at := slices.Index(f.order, path)
		if carries && at < 0 {
			f.order = append(f.order, path)
		} else if !carries && at >= 0 {
			f.order = slices.Delete(f.order, at, at+1)
		}
	}
}

func (f *forest) some() []string {
	list := make([]string, 1+f.random.IntN(len(f.pool)))
	for i := range list {
		list[i] = f.pool[f.random.IntN(len(f.pool))]
	}
	return list
}

func (f *forest) word(words ...string) string { return words[f.random.IntN(len(words))] }

func (f *forest) step() {
	paths, ordinal, name := f.some(), f.floor+1+f.random.Uint64N(4), forestAttributes[f.random.IntN(len(forestAttributes))]
	switch n := f.random.IntN(10); {
	case n < 6:
		f.writeSome(name, paths, ordinal)
	case n < 9:
		f.deleteSome(name, paths, ordinal)
	default:
		f.floor += f.random.Uint64N(3)
		f.seal(f.floor)
	}
}

func (f *forest) writeSome(name string, paths []string, ordinal uint64) {
	states := make([]stated, len(paths))
	for i, path := range paths {
		f.seq++
		states[i] = stated{ordinal: ordinal, seq: f.seq, number: float64(f.random.IntN(6))}
		switch name {
		case "kind":
			states[i].tokens = []string{f.word("component", "group", "")}
		case "usd-prim-type":
			states[i].tokens = []string{f.word("Mesh", "Xform", "Cube", "")}
		case "usd-schemas":
			for range f.random.IntN(4) {
				states[i].tokens = append(states[i].tokens, f.word("A", "B", "ShadowAPI"))
			}
		}
		f.writes[name][path] = append(f.writes[name][path], states[i])
	}
	require.Nil(f, f.tryWrite(f.query(paths...), name, ordinal, f.payload(name, states)))
	f.settle(paths)
}

func (f *forest) payload(name string, states []stated) Payload {
	var floats []float32
	var ints []int32
	var ids []uint64
	arrays := Payload{Array: true, Semantic: tensor.SemanticTokenID}
	for _, s := range states {
		floats, ints = append(floats, float32(s.number)), append(ints, int32(s.number))
		row := make([]uint64, len(s.tokens))
		for i, text := range s.tokens {
			if text != "" {
				row[i] = uint64(f.token(text))
			}
		}
		ids = append(ids, row...)
		arrays.Views = append(arrays.Views, view(idType, row))
	}
	switch name {
	case "p":
		return payload(float32Type, floats)
	case "q":
		return payload(int32Type, ints)
	case "usd-schemas":
		return arrays
	}
	tokens := payload(idType, ids)
	if name == "kind" {
		tokens.Semantic = tensor.SemanticTokenID
	}
	return tokens
}

func (f *forest) deleteSome(name string, paths []string, ordinal uint64) {
	names := []string{name}
	if f.random.IntN(3) == 0 {
		require.Nil(f, f.delete(f.query(paths...), ordinal))
		names = forestAttributes
	} else {
		require.Nil(f, f.delete(f.query(paths...), ordinal, name))
	}
	for _, name := range names {
		for _, path := range paths {
			if _, ok := f.newest(name, path, ordinal); ok {
				f.writes[name][path] = append(f.writes[name][path], stated{ordinal: ordinal, gone: true})
			}
		}
	}
	f.settle(paths)
}

func parentOf(path string) string {
	if path == "/" {
		return ""
	}
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		return path[:i]
	}
	return "/"
}

func (f *forest) childrenOf(path string) []string {
	children := []string{}
	for _, other := range f.order {
		if parentOf(other) == path {
			children = append(children, other)
		}
	}
	return children
}

func (f *forest) nested(path string) bool {
	parent := parentOf(path)
	return path != "/" && parent != "/" && f.lives(parent)
}

// condition is a predicate in its plainest form.
type condition struct {
	name   string
	op     query.FilterOp
	values []string
	holds  func(path string) bool
}

func someOf(values []string, holds func(value string) bool) bool {
	return slices.ContainsFunc(values, holds)
}

func (f *forest) condition() condition {
	c := condition{}
	pathValues := func() {
		for range 1 + f.random.IntN(4) {
			path := f.pool[f.random.IntN(len(f.pool))]
			switch f.random.IntN(5) {
			case 0:
				path = strings.TrimSuffix(path, "/") + "/never-interned"
			case 1:
				if path != "/" {
					path = parentOf(path)
				}
			}
			c.values = append(c.values, path)
		}
	}
	number := func() float64 {
		n := float64(f.random.IntN(14))/2 - 0.5
		c.values = []string{strconv.FormatFloat(n, 'g', -1, 64)}
		return n
	}
	switch f.random.IntN(12) {
	case 0:
		c.name = f.word(append(forestAttributes, "unknown")...)
		c.holds = func(path string) bool { return f.carries(c.name, path) }
	case 1:
		c.name, c.holds = "usd-path", func(string) bool { return true }
	case 2:
		c.name, c.holds = "usd-parent", f.nested
	case 3:
		c.name, c.holds = "usd-children", func(path string) bool { return len(f.childrenOf(path)) > 0 }
	case 4:
		c.name, c.op = "usd-path", query.In
		pathValues()
		c.holds = func(path string) bool { return slices.Contains(c.values, path) }
	case 5, 6:
		c.name, c.op = "usd-path", query.Prefix
		for range 1 + f.random.IntN(2) {
			path := f.pool[f.random.IntN(len(f.pool))]
			path = path[:f.random.IntN(len(path)+1)]
			c.values = append(c.values, path+f.word("", "", "/", "a", "//", "/./"))
		}
		c.holds = func(path string) bool {
			return someOf(c.values, func(prefix string) bool { return strings.HasPrefix(path, prefix) })
		}
	case 7:
		c.name, c.op = "usd-parent", query.In
		pathValues()
		c.holds = func(path string) bool { return slices.Contains(c.values, parentOf(path)) }
	case 8:
		c.name, c.op = "usd-children", query.Contains
		pathValues()
		c.holds = func(path string) bool {
			return someOf(c.values, func(child string) bool { return f.lives(child) && parentOf(child) == path })
		}
	case 9:
		c.name, c.op = f.word("usd-prim-type", "kind"), query.In
		c.values = []string{f.word("Mesh", "Xform", "group", "NeverInterned", ""), f.word("Cube", "component")}
		c.holds = func(path string) bool {
			state, ok := f.newest(c.name, path, column.Latest)
			return ok && slices.Contains(c.values, state.tokens[0])
		}
	case 10:
		c.name, c.op, c.values = "usd-schemas", query.Contains, []string{f.word("A", "ShadowAPI", "NeverInterned")}
		c.holds = func(path string) bool {
			state, ok := f.newest(c.name, path, column.Latest)
			return ok && slices.Contains(state.tokens, c.values[0])
		}
	default:
		c.name, c.op = f.word("p", "q"), []query.FilterOp{query.LT, query.LE, query.GT, query.GE, query.In}[f.random.IntN(5)]
		limit := number()
		c.holds = func(path string) bool {
			state, ok := f.newest(c.name, path, column.Latest)
			return ok && map[query.FilterOp]bool{
				query.LT: state.number < limit, query.LE: state.number <= limit, query.GT: state.number > limit,
				query.GE: state.number >= limit, query.In: state.number == limit,
			}[c.op]
		}
	}
	return c
}

// filter is a random tree of conditions, and the same as a function.
func (f *forest) filter(depth int) (Condition, func(path string) bool) {
	if depth == 0 || f.random.IntN(3) == 0 {
		c := f.condition()
		return query.Is(Predicate{Attribute: f.token(c.name), Op: c.op, Values: c.values}), c.holds
	}
	filter := Condition{Match: query.All + query.Match(f.random.IntN(3))}
	var below []func(string) bool
	for range 1 + f.random.IntN(3) {
		c, holds := f.filter(depth - 1)
		filter.Conditions, below = append(filter.Conditions, c), append(below, holds)
	}
	return filter, func(path string) bool {
		met := 0
		for _, holds := range below {
			if holds(path) {
				met++
			}
		}
		return map[query.Match]bool{query.All: met == len(below), query.Any: met > 0, query.None: met == 0}[filter.Match]
	}
}

func (f *forest) askRandomly() {
	filter, holds := Condition{Match: query.All}, func(string) bool { return true }
	if f.random.IntN(10) > 0 {
		filter, holds = f.filter(3)
	}
	expected := f.those(holds)
	var scope []string
	for range f.random.IntN(3) {
		scope = append(scope, f.word(append(forestAttributes, "usd-path", "unknown")...))
	}
	tokens := make([]pathdict.Token, len(scope))
	for i, name := range scope {
		tokens[i] = f.token(name)
	}
	before := f.dict.Stats()
	id, _, err := f.QueryFilter(filter, tokens)
	require.Nil(f, err, "%v", filter)
	after := f.dict.Stats()
	require.Equal(f, [2]int{before.Tokens, before.Paths}, [2]int{after.Tokens, after.Paths}, "a filter interns nothing")
	require.Equal(f, expected, f.listed(id), "%v", filter)

	attributes, total, err := f.QueryResult(id)
	require.Nil(f, err)
	require.Equal(f, len(expected), total)
	found := []string{}
	for _, name := range attributes {
		found = append(found, f.text(name))
	}
	carried := []string{}
	for _, name := range forestAttributes {
		if (len(scope) == 0 || slices.Contains(scope, name)) && someOf(expected, func(path string) bool { return f.carries(name, path) }) {
			carried = append(carried, name)
		}
	}
	require.ElementsMatch(f, carried, found)
	f.refresh()
	_, err = f.ReleaseQuery(f.standing.id)
	require.Nil(f, err)
	f.standing.id, f.standing.holds = id, holds
	if f.random.IntN(2) == 0 {
		f.refresh()
	}
}

// those are the prims for which a condition holds.
func (f *forest) those(holds func(path string) bool) []string {
	list := []string{}
	for _, path := range f.order {
		if holds(path) {
			list = append(list, path)
		}
	}
	return list
}

// refresh asks the query that stands since earlier anew.
func (f *forest) refresh() {
	_, err := f.RefreshQuery(f.standing.id)
	require.Nil(f, err)
	require.Equal(f, f.those(f.standing.holds), f.listed(f.standing.id))
}

// listed are the prims of a query, as text.
func (f *fixture) listed(id QueryID) []string {
	list := f.queries[id].Prims
	paths := make([]string, list.Len())
	for i := range paths {
		paths[i] = f.path(list.At(i))
	}
	return paths
}

// readDerived compares the three derived attributes of a list of prims with what follows from their paths.
func (f *forest) readDerived(paths []string) {
	q := f.query(paths...)
	var own, above, below []string
	for i, path := range paths {
		if !f.lives(path) {
			continue
		}
		own = append(own, fmt.Sprint(i, path))
		if f.nested(path) {
			above = append(above, fmt.Sprint(i, parentOf(path)))
		}
		if children := f.childrenOf(path); len(children) > 0 {
			below = append(below, fmt.Sprint(i, children))
		}
	}
	require.Equal(f, own, f.derivedRows(q, "usd-path"))
	require.Equal(f, above, f.derivedRows(q, "usd-parent"))
	require.Equal(f, below, f.derivedRows(q, "usd-children"))
	_, err := f.ReleaseQuery(q)
	require.Nil(f, err)
}

// derivedRows reads a derived attribute: position and value of each row.
func (f *fixture) derivedRows(q QueryID, name string) []string {
	id, _, err := f.Read(q, []pathdict.Token{f.token(name)}, Range{End: 3})
	require.Nil(f, err)
	g, err := f.FetchRead(id)
	require.Nil(f, err)
	if g == nil {
		return nil
	}
	defer g.Release(f.dict)
	require.Equal(f, uint64(3), g.Ordinal)
	require.Equal(f, g.PrimCount, g.Count)
	require.Equal(f, int(g.Count), g.Rows)
	require.Equal(f, idType, g.DType)
	require.False(f, g.DataMap.Valid())
	var list []string
	for k := range int(g.Count) {
		position := int(g.PrimOffset) + k
		if g.PrimMap.Valid() {
			position = int(g.PrimMap.Uint32s(int(g.PrimCount))[k])
		}
		value := any(nil)
		if g.Array {
			span := column.Spans(g.Spans, g.Rows)[k]
			children := []string{}
			for _, child := range unsafe.Slice((*pathdict.Path)(unsafe.Add(g.Data.Pointer(), span.Offset)), span.Length/8) {
				children = append(children, f.path(child))
			}
			value = children
		} else {
			value = f.path(pathsIn(g.Data, g.Rows)[k])
		}
		list = append(list, fmt.Sprint(position, value))
	}
	next, err := f.FetchRead(id)
	require.Nil(f, err)
	require.Nil(f, next, "a derived attribute is one group")
	_, err = f.ReleaseRead(id)
	require.Nil(f, err)
	return list
}
