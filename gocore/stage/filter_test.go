package stage

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/query"
	"ovstage.dev/ovstage/gocore/tensor"
)

func (f *fixture) where(name string, op query.FilterOp, values ...string) Predicate {
	return Predicate{Attribute: f.token(name), Op: op, Values: values}
}

// every is the filter of prims that meet all of the predicates.
func every(predicates ...Predicate) Condition {
	filter := Condition{Match: query.All}
	for _, p := range predicates {
		filter.Conditions = append(filter.Conditions, query.Is(p))
	}
	return filter
}

func anyOf(conditions ...Condition) Condition {
	return Condition{Match: query.Any, Conditions: conditions}
}

func noneOf(conditions ...Condition) Condition {
	return Condition{Match: query.None, Conditions: conditions}
}

// matches are the prims that meet the predicates, in order.
func (f *fixture) matches(predicates ...Predicate) []string {
	f.Helper()
	return f.meeting(every(predicates...))
}

// meeting are the prims that meet a condition, in order.
func (f *fixture) meeting(filter Condition) []string {
	f.Helper()
	id, _, err := f.QueryFilter(filter, nil)
	require.Nil(f, err)
	return f.listed(id)
}

func ids(f *fixture, texts ...string) Payload {
	row := make([]pathdict.Token, len(texts))
	for i, text := range texts {
		row[i] = f.token(text)
	}
	return payload(idType, row)
}

func TestFiltersOnPaths(t *testing.T) {
	f := newFixture(t)
	scene := []string{"/World", "/World/Group", "/World/Group/Left", "/World/Group/Right", "/World/Anchor", "/Worldwide"}
	f.write(f.query(scene...), "p", 1, many(1, 2, 3, 4, 5, 6)...)
	assert.Equal(t, scene, f.matches(), "no seal is needed")
	assert.Equal(t, scene[1:4], f.matches(f.where("usd-path", query.Prefix, "/World/Group")))
	assert.Equal(t, scene, f.matches(f.where("usd-path", query.Prefix, "/World")))
	assert.Equal(t, scene[1:5], f.matches(f.where("usd-path", query.Prefix, "/World/")))
	assert.Equal(t, scene[5:], f.matches(f.where("usd-path", query.Prefix, "/Worldwide", "/Nowhere/", "relative")))
	assert.Equal(t, []string{"/World", "/World/Anchor"}, f.matches(f.where("usd-path", query.In, "/World/Anchor", "/World", "/Never")))
	assert.Equal(t, scene[2:4], f.matches(f.where("usd-parent", query.In, "/World/Group")))
	assert.Equal(t, []string{"/World", "/Worldwide"}, f.matches(f.where("usd-parent", query.In, "/")))
	assert.Equal(t, []string{"/World/Group"}, f.matches(f.where("usd-children", query.Contains, "/World/Group/Left", "/World/Group/Right")))
	assert.Equal(t, scene[1:5], f.matches(f.where("usd-parent", query.Has)))
	assert.Equal(t, scene[:2], f.matches(f.where("usd-children", query.Has)))
	assert.Equal(t, scene[1:2], f.matches(f.where("usd-children", query.Has), f.where("usd-parent", query.Has)), "all predicates hold")
	assert.Empty(t, f.matches(f.where("usd-children", query.Has), f.where("usd-path", query.In, "/Worldwide")))
}

// A child is selected by its path, whether its parent is a prim or not; a parent is selected only if it is one.
func TestFiltersWhereAncestorsAreNoPrims(t *testing.T) {
	f := newFixture(t)
	f.write(f.query("/a/b/c", "/a/d"), "p", 1, many(1, 2)...)
	assert.Equal(t, []string{"/a/d"}, f.matches(f.where("usd-parent", query.In, "/a")))
	assert.Equal(t, []string{"/a/b/c"}, f.matches(f.where("usd-parent", query.In, "/a/b")))
	assert.Empty(t, f.matches(f.where("usd-children", query.Contains, "/a/b/c")))
	assert.Empty(t, f.matches(f.where("usd-parent", query.Has)))
	assert.Equal(t, []string{"/a/b/c", "/a/d"}, f.matches(f.where("usd-path", query.Prefix, "/a")))
	f.write(f.query("/"), "p", 1, one(3))
	assert.Equal(t, []string{"/"}, f.matches(f.where("usd-path", query.In, "/")))
	assert.Empty(t, f.matches(f.where("usd-parent", query.In, "/")), "the root is not its own child")
	f.write(f.query("/a"), "p", 1, one(4))
	assert.Equal(t, []string{"/", "/a"}, f.matches(f.where("usd-children", query.Has)))
	assert.Equal(t, []string{"/a/d"}, f.matches(f.where("usd-parent", query.Has)), "the root is nobody's parent")
}

func TestFiltersOnTypesAndSchemas(t *testing.T) {
	f := newFixture(t)
	q := f.query("/a", "/b", "/c")
	require.Nil(t, f.tryWrite(q, "usd-prim-type", 1, ids(f, "Mesh", "Cube", "Mesh")))
	schemas := Payload{Array: true, Semantic: tensor.SemanticTokenID}
	for _, row := range []Payload{ids(f, "ShadowAPI", "LightAPI"), ids(f), ids(f, "LightAPI")} {
		schemas.Views = append(schemas.Views, row.Views[0])
	}
	require.Nil(t, f.tryWrite(q, "usd-schemas", 1, schemas))
	mesh, light := f.where("usd-prim-type", query.In, "Mesh"), f.where("usd-schemas", query.Contains, "LightAPI")
	assert.Equal(t, []string{"/a", "/c"}, f.matches(mesh))
	assert.Equal(t, []string{"/a", "/b", "/c"}, f.matches(f.where("usd-prim-type", query.In, "Cube", "Mesh", "Never")))
	assert.Equal(t, []string{"/a", "/c"}, f.matches(light))
	assert.Equal(t, []string{"/a"}, f.matches(light, f.where("usd-schemas", query.Contains, "ShadowAPI")))
	assert.Equal(t, []string{"/a", "/b", "/c"}, f.matches(f.where("usd-schemas", query.Has)), "an empty set is a value")

	require.Nil(t, f.tryWrite(f.query("/a"), "usd-prim-type", 2, ids(f, "Cube")))
	assert.Equal(t, []string{"/c"}, f.matches(mesh), "the newest state counts")
	require.Nil(t, f.tryWrite(f.query("/a"), "usd-prim-type", 1, ids(f, "Mesh")))
	assert.Equal(t, []string{"/c"}, f.matches(mesh), "which is the one with the largest ordinal")
	require.Nil(t, f.delete(f.query("/c"), 3, "usd-prim-type"))
	assert.Empty(t, f.matches(mesh))
	assert.Equal(t, []string{"/a", "/c"}, f.matches(light))
}

func TestFiltersOnValues(t *testing.T) {
	f := newFixture(t)
	q := f.query("/a", "/b", "/c")
	require.Nil(t, f.tryWrite(q, "mass", 1, scalars(1, 2, 3)))
	assert.Equal(t, []string{"/b", "/c"}, f.matches(f.where("mass", query.GT, "1")))
	assert.Equal(t, []string{"/b"}, f.matches(f.where("mass", query.GT, "1"), f.where("mass", query.LT, "2.5")))
	assert.Equal(t, []string{"/a", "/c"}, f.matches(f.where("mass", query.In, "1", "3")))
	require.Nil(t, f.delete(f.query("/b"), 2, "mass"))
	require.Nil(t, f.tryWrite(f.query("/b"), "mass", 3, payload(int32Type, []int32{2})))
	assert.Equal(t, []string{"/c", "/b"}, f.matches(f.where("mass", query.GE, "2")), "each schema is compared by itself")
	kind := ids(f, "group", "component", "group")
	kind.Semantic = tensor.SemanticTokenID
	require.Nil(t, f.tryWrite(q, "kind", 1, kind))
	assert.Equal(t, []string{"/a", "/c"}, f.matches(f.where("kind", query.In, "group", "1")))
	assert.Empty(t, f.matches(f.where("unknown", query.LT, "1")))
}

func TestFilterRefusals(t *testing.T) {
	f := newFixture(t)
	q := f.query("/a")
	f.write(q, "point", 1, one(1))
	require.Nil(t, f.tryWrite(q, "array", 1, ragged([]float32{1})))
	require.Nil(t, f.tryWrite(q, "mass", 1, scalars(1)))
	kind := ids(f, "group")
	kind.Semantic = tensor.SemanticTokenID
	require.Nil(t, f.tryWrite(q, "kind", 1, kind))
	refused := func(code Code, p Predicate, parts ...string) {
		t.Helper()
		_, op, err := f.QueryFilter(every(p), nil)
		require.NotNil(t, err)
		assert.Equal(t, code, CodeOf(err), err.Error())
		assert.Zero(t, op)
		for _, part := range parts {
			assert.Contains(t, err.Error(), part)
		}
	}
	for _, op := range []query.FilterOp{query.Has, query.In, query.Contains, query.Prefix, query.LT, 99} {
		refused(NotSupported, f.where("usd-active", op, "true"), `"usd-active"`, op.String(), "supported are HAS")
	}
	for name, ops := range map[string][]query.FilterOp{
		"usd-path":      {query.Contains, query.LT, 8},
		"usd-parent":    {query.Contains, query.Prefix, query.GE, 8},
		"usd-children":  {query.In, query.Prefix, query.LE, 8},
		"usd-prim-type": {query.Contains, query.Prefix, query.GT, 8},
		"usd-schemas":   {query.In, query.Prefix, query.LT, 8},
		"mass":          {query.Contains, query.Prefix, 8, 4711},
		"unknown":       {query.Contains, query.Prefix, 8},
	} {
		for _, op := range ops {
			refused(NotSupported, f.where(name, op, "/a"), fmt.Sprintf("%q", name), op.String(), "supported are HAS")
		}
	}
	refused(NotSupported, f.where("point", query.LT, "1"), `"point"`, "float32x3", "LT")
	refused(NotSupported, f.where("array", query.In, "1"), `"array"`, "float32[]", "IN")
	refused(NotSupported, f.where("kind", query.LE, "1"), `"kind"`, "TOKEN_ID", "LE")
	refused(InvalidArgument, f.where("mass", query.LT, "heavy"), `"mass"`, `"heavy" is not a number`)
	refused(InvalidArgument, f.where("mass", query.LT, "1", "2"), `"mass"`, "exactly one value, got 2")
	for name, op := range map[string]query.FilterOp{
		"usd-path": query.Prefix, "usd-parent": query.In, "usd-children": query.Contains, "usd-prim-type": query.In, "usd-schemas": query.Contains,
		"mass": query.In, "unknown": query.In,
	} {
		refused(InvalidArgument, f.where(name, op), fmt.Sprintf("%q", name), op.String()+" needs at least one value, got none")
	}
	refused(InvalidArgument, f.where("unknown", query.GT), `"unknown"`, "exactly one value, got 0")
	refused(InvalidArgument, f.where("usd-path", query.In, "/a", "World/Cube"), `"usd-path"`, "entry 1", `must start with "/"`)
	refused(InvalidArgument, f.where("usd-parent", query.In, "/a/"), `"usd-parent"`, "trailing slash")
	refused(InvalidArgument, Predicate{Attribute: 4711}, "4711", "not a token")

	_, _, err := f.QueryFilter(every(f.where("mass", query.Has), f.where("mass", query.Prefix, "x")), nil)
	require.NotNil(t, err)
	assert.Contains(t, err.Error(), "predicate 1: ")
	_, _, err = f.QueryFilter(every(), []pathdict.Token{4711})
	require.NotNil(t, err)
	assert.Contains(t, err.Error(), "attrs[0]")

	require.Nil(t, f.delete(q, 2, "array"))
	assert.Empty(t, f.matches(f.where("array", query.In, "1")), "a schema that no prim has any more is no obstacle")
}

func TestQueryResultOfAFilter(t *testing.T) {
	f := newFixture(t)
	f.write(f.query("/a", "/b"), "p", 1, many(1, 2)...)
	f.write(f.query("/c"), "q", 1, one(3))
	result := func(scope ...string) ([]string, int) {
		tokens := make([]pathdict.Token, len(scope))
		for i, name := range scope {
			tokens[i] = f.token(name)
		}
		id, op, err := f.QueryFilter(every(f.where("p", query.Has)), tokens)
		require.Nil(t, err)
		require.NotZero(t, op)
		attributes, total, err := f.QueryResult(id)
		require.Nil(t, err)
		names := []string{}
		for _, name := range attributes {
			names = append(names, f.text(name))
		}
		return names, total
	}
	names, total := result()
	assert.Equal(t, []string{"p"}, names, "nothing but what the matched prims carry")
	assert.Equal(t, 2, total)
	names, _ = result("q", "p", "p", "usd-path")
	assert.Equal(t, []string{"p"}, names)
	names, _ = result("q")
	assert.Empty(t, names)
}

// The matched set is that of the call, the values are those of the read.
func TestAFilterQueryIsAQuery(t *testing.T) {
	f := newFixture(t)
	f.write(f.query("/a", "/b"), "p", 1, many(1, 2)...)
	id, _, err := f.QueryFilter(every(f.where("p", query.Has)), nil)
	require.Nil(t, err)
	f.write(f.query("/c"), "p", 1, one(3))
	f.write(id, "p", 1, many(10, 20)...)
	f.seal(1)
	assert.Equal(t, many(10, 20), f.read(id, "p", 1))
	m := f.mapFloat3(id, "q", 2, Zero)
	assert.Len(t, m.values(), 2)
	require.Nil(t, m.unmap())
	require.Nil(t, f.delete(id, 2))
	assert.Equal(t, []string{"/c"}, f.matches())
	assert.Equal(t, []string{"/a", "/b"}, f.listed(id))
	_, total, err := f.QueryResult(id)
	require.Nil(t, err)
	assert.Equal(t, 2, total)
	_, err = f.ReleaseQuery(id)
	require.Nil(t, err)
	_, _, err = f.QueryResult(id)
	assert.Equal(t, InvalidHandle, CodeOf(err))
}

func TestAnEmptyStageHasNoPrims(t *testing.T) {
	f := newFixture(t)
	for _, p := range []Predicate{
		f.where("p", query.Has), f.where("usd-path", query.Has), f.where("usd-parent", query.Has), f.where("usd-children", query.Has),
		f.where("usd-path", query.Prefix, "/", "/a"), f.where("usd-path", query.In, "/"), f.where("usd-parent", query.In, "/"),
		f.where("usd-children", query.Contains, "/"), f.where("usd-prim-type", query.In, ""),
	} {
		assert.Empty(t, f.matches(p))
	}
	id, _, err := f.QueryFilter(every(), nil)
	require.Nil(t, err)
	attributes, total, err := f.QueryResult(id)
	require.Nil(t, err)
	assert.Empty(t, attributes)
	assert.Zero(t, total)
	assert.Empty(t, f.groups(id, "usd-path", 1))
}

func TestPrimsAreListedInTheOrderOfTheirCreation(t *testing.T) {
	f := newFixture(t)
	f.query("/z", "/y", "/x", "/w") // interned in another order
	f.write(f.query("/w", "/y"), "p", 1, many(1, 2)...)
	f.write(f.query("/z", "/y", "/x"), "p", 1, many(3, 4, 5)...)
	assert.Equal(t, []string{"/w", "/y", "/z", "/x"}, f.matches())
	f.write(f.query("/w"), "p", 2, one(6))
	assert.Equal(t, []string{"/w", "/y", "/z", "/x"}, f.matches(), "a write to a prim that exists creates nothing")
	require.Nil(t, f.delete(f.query("/y", "/w", "/x"), 3))
	assert.Equal(t, []string{"/z"}, f.matches())
	f.write(f.query("/x", "/w", "/x", "/y"), "p", 4, many(7, 8, 9, 10)...)
	assert.Equal(t, []string{"/z", "/x", "/w", "/y"}, f.matches(), "who comes back comes last, in the order of the write")
	m := f.mapFloat3(f.query("/v", "/u"), "p", 5, Zero)
	assert.Equal(t, []string{"/z", "/x", "/w", "/y"}, f.matches(), "a map creates prims when it commits")
	require.Nil(t, m.unmap())
	assert.Equal(t, []string{"/z", "/x", "/w", "/y", "/v", "/u"}, f.matches())
	require.Nil(t, f.delete(f.query("/u"), 6))
	f.write(f.query("/u"), "p", 5, one(1))
	assert.Equal(t, []string{"/z", "/x", "/w", "/y", "/v"}, f.matches(), "a write below a delete brings nobody back")
}

// Prims that come and go by the thousands leave no trace in the order, nor in the tree.
func TestChurnKeepsTheOrder(t *testing.T) {
	f := newFixture(t)
	random := rand.New(rand.NewPCG(7, 7))
	var order []string
	for ordinal := uint64(1); ordinal < 60; ordinal++ {
		fresh := make([]string, 300)
		for i := range fresh {
			fresh[i] = fmt.Sprintf("/World/e%d/p%d_%d", random.IntN(20), ordinal, i)
		}
		f.write(f.query(fresh...), "p", ordinal, make([]float3, len(fresh))...)
		order = append(order, fresh...)
		var doomed []string
		order = slices.DeleteFunc(order, func(path string) bool {
			if random.IntN(10) < 6 {
				doomed = append(doomed, path)
				return true
			}
			return false
		})
		require.Nil(t, f.delete(f.query(doomed...), ordinal))
		require.Equal(t, order, f.matches())
		prefix := fmt.Sprintf("/World/e%d", random.IntN(4))
		var under []string
		for _, path := range order {
			if strings.HasPrefix(path, prefix) {
				under = append(under, path)
			}
		}
		require.Equal(t, under, f.matches(f.where("usd-path", query.Prefix, prefix)))
	}
}

// A family that is large enough to be searched by name, whose members come, go and come back.
func TestPrefixInALargeFamily(t *testing.T) {
	f := newFixture(t)
	random := rand.New(rand.NewPCG(8, 8))
	alive := map[string]bool{}
	name := func() string {
		name := "/World/"
		for range 1 + random.IntN(12) {
			name += string("abé_"[random.IntN(2)])
		}
		return name + fmt.Sprint(random.IntN(9999))
	}
	ordinal := uint64(0)
	for size := range 12 {
		ordinal++
		fresh := make([]string, 2000)
		for i := range fresh {
			fresh[i] = name()
			alive[fresh[i]] = true
		}
		f.write(f.query(fresh...), "p", ordinal, make([]float3, len(fresh))...)
		f.write(f.query(fresh[0]+"/below"), "p", ordinal, one(1))
		alive[fresh[0]+"/below"] = true
		var doomed []string
		for path := range alive {
			if random.IntN(12) == 0 {
				doomed = append(doomed, path)
				delete(alive, path)
			}
		}
		require.Nil(t, f.delete(f.query(doomed...), ordinal))
		if size%3 == 1 { // some come back
			f.write(f.query(doomed[:20]...), "p", ordinal, make([]float3, 20)...)
			for _, path := range doomed[:20] {
				alive[path] = true
			}
		}
		for range 10 {
			prefix := name()
			prefix = prefix[:min(len(prefix), 8+random.IntN(6))]
			expected := []string(nil)
			for path := range alive {
				if strings.HasPrefix(path, prefix) {
					expected = append(expected, path)
				}
			}
			slices.Sort(expected)
			require.Equal(t, expected, slices.Sorted(slices.Values(f.matches(f.where("usd-path", query.Prefix, prefix)))))
		}
	}
}
