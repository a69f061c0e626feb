package stage

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/query"
	"ovstage.dev/ovstage/gocore/tensor"
)

func TestFiltersOnManyTypes(t *testing.T) {
	f := newFixture(t)
	var paths, types []string
	for i := range 1000 {
		paths, types = append(paths, fmt.Sprintf("/p%d", i)), append(types, fmt.Sprintf("Type%d", i*7%300))
	}
	require.Nil(t, f.tryWrite(f.query(paths...), "usd-prim-type", 1, ids(f, types...)))
	assert.Equal(t, paths, f.matches(f.where("usd-prim-type", query.Has)))
	assert.Equal(t, paths, f.matches(f.where("usd-path", query.Prefix, "/p"), f.where("usd-prim-type", query.In, types...)))
	for i := range 300 {
		var expected []string
		for k, name := range types {
			if name == fmt.Sprintf("Type%d", i) {
				expected = append(expected, paths[k])
			}
		}
		require.Equal(t, expected, f.matches(f.where("usd-prim-type", query.In, fmt.Sprintf("Type%d", i))))
	}
}

// What a write touches is looked up anew, and nothing else.
func TestPostingsFollowWrites(t *testing.T) {
	f := newFixture(t)
	var paths, types []string
	for i := range 1000 {
		paths, types = append(paths, fmt.Sprintf("/p%d", i)), append(types, []string{"Mesh", "Cube"}[i%2])
	}
	q := f.query(paths...)
	retype := func(ordinal uint64, from, to int, name string) {
		t.Helper()
		for i := from; i < to; i++ {
			types[i] = name
		}
		require.Nil(t, f.tryWrite(f.query(paths[from:to]...), "usd-prim-type", ordinal, ids(f, types[from:to]...)))
	}
	agree := func() *postings {
		t.Helper()
		for _, name := range []string{"Mesh", "Cube", "Cone", "Never"} {
			expected := []string{}
			for i, path := range paths {
				if types[i] == name {
					expected = append(expected, path)
				}
			}
			found := f.matches(f.where("usd-prim-type", query.In, name))
			require.ElementsMatch(t, expected, found, name)
		}
		return f.attributes[f.token("usd-prim-type")].postings
	}
	require.Nil(t, f.tryWrite(q, "usd-prim-type", 1, ids(f, types...)))
	made := agree()
	assert.Empty(t, made.touched)

	retype(1, 10, 13, "Cone")
	retype(1, 12, 14, "Cube")
	assert.Same(t, made, agree(), "a few prims are no reason to begin anew")
	assert.Len(t, made.touched, 4)
	f.seal(1)
	assert.Same(t, made, agree())
	require.Nil(t, f.delete(f.query("/p11", "/p500"), 2, "usd-prim-type"))
	types[11], types[500] = "", ""
	assert.Same(t, made, agree())
	assert.Len(t, made.touched, 5)
	m := f.mapDesc(f.query("/p11", "/p2"), MapDesc{Attribute: f.token("usd-prim-type"), DType: idType, Initial: Zero}, 3)
	copy(tokensIn(m.Data.Bytes()), []pathdict.Token{f.token("Cone"), f.token("Mesh")})
	require.Same(t, made, agree(), "nothing is committed yet")
	require.Nil(t, m.unmap())
	types[11], types[2] = "Cone", "Mesh"
	assert.Same(t, made, agree())

	for i := range 60 { // beyond an eighth of all they become a part of it
		retype(4, 100+5*i, 105+5*i, []string{"Cone", "Mesh", "Cube"}[i%3])
		agree()
	}
	assert.Less(t, len(made.touched), 1000/8)
	assert.Same(t, made, agree())
	retype(5, 0, 400, "Cube")
	assert.NotSame(t, made, agree(), "so many are looked up together with the others")
}

// A role that is given later makes tokens of what were numbers.
func TestPostingsOfAColumnThatIsStamped(t *testing.T) {
	f := newFixture(t)
	require.Nil(t, f.tryWrite(f.query("/a", "/b"), "kind", 1, ids(f, "group", "component")))
	assert.Equal(t, []string{"/a"}, f.matches(f.where("kind", query.In, fmt.Sprint(uint64(f.token("group"))))), "a plain number")
	late := ids(f, "group")
	late.Semantic = tensor.SemanticTokenID
	require.Nil(t, f.tryWrite(f.query("/c"), "kind", 1, late))
	assert.Equal(t, []string{"/a", "/c"}, f.matches(f.where("kind", query.In, "group")))
}

// Arrays of tokens, sealed and not, dense and scattered, deleted and back.
func TestPostingsOfSchemas(t *testing.T) {
	f := newFixture(t)
	var paths []string
	for i := range 100 {
		paths = append(paths, fmt.Sprintf("/p%02d", i))
	}
	write := func(ordinal uint64, schemas []string, of ...string) {
		p := Payload{Array: true, Semantic: tensor.SemanticTokenID}
		for range of {
			p.Views = append(p.Views, ids(f, schemas...).Views[0])
		}
		require.Nil(t, f.tryWrite(f.query(of...), "usd-schemas", ordinal, p))
	}
	having := func(schema string) []string { return f.matches(f.where("usd-schemas", query.Contains, schema)) }
	write(1, []string{"A", "B"}, paths...)
	assert.Equal(t, paths, having("A"))
	write(2, []string{"C", "C"}, "/p07", "/p03")
	assert.Equal(t, []string{"/p03", "/p07"}, having("C"))
	assert.Len(t, having("A"), 98)
	write(1, []string{"D"}, "/p07") // below the newest
	assert.Empty(t, having("D"))
	f.seal(2)
	write(4, []string{"B"}, "/p03")
	require.Nil(t, f.delete(f.query("/p01", "/p07"), 5, "usd-schemas"))
	assert.Empty(t, having("C"))
	assert.Len(t, having("B"), 98)
	write(6, nil, "/p01", "/p02")
	assert.Len(t, having("B"), 97)
	assert.Len(t, f.matches(f.where("usd-schemas", query.Has)), 99)
}

// Prims that come and go while no filter asks are not listed for ever.
func TestPostingsOfPrimsThatComeAndGo(t *testing.T) {
	f := newFixture(t)
	require.Nil(t, f.tryWrite(f.query("/a"), "usd-prim-type", 1, ids(f, "Mesh")))
	assert.Equal(t, []string{"/a"}, f.matches(f.where("usd-prim-type", query.In, "Mesh")))
	a := f.attributes[f.token("usd-prim-type")]
	for i := range 1000 {
		require.Nil(t, f.tryWrite(f.query(fmt.Sprintf("/spawn%d", i)), "usd-prim-type", 1, ids(f, "Cube")))
		if a.postings != nil {
			require.LessOrEqual(t, len(a.postings.touched), minTouched)
		}
	}
	assert.Len(t, f.matches(f.where("usd-prim-type", query.In, "Cube")), 1000)
}
