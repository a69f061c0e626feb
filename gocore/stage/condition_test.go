package stage

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/query"
)

func TestFiltersOfConditions(t *testing.T) {
	f := newFixture(t)
	f.write(f.query("/World", "/World/a", "/World/b", "/Lamp"), "p", 1, many(1, 2, 3, 4)...)
	require.Nil(t, f.tryWrite(f.query("/World/a", "/World/b"), "mass", 1, scalars(1, 2)))
	under := query.Is(f.where("usd-path", query.Prefix, "/World/"))
	lamp := query.Is(f.where("usd-path", query.In, "/Lamp"))
	heavy := query.Is(f.where("mass", query.GT, "1"))
	assert.Equal(t, []string{"/World/a", "/World/b", "/Lamp"}, f.meeting(anyOf(lamp, under)), "still in the order of creation")
	assert.Equal(t, []string{"/World", "/World/a", "/Lamp"}, f.meeting(noneOf(heavy)), "also those without a mass")
	assert.Equal(t, []string{"/World"}, f.meeting(noneOf(lamp, under)))
	assert.Equal(t, []string{"/World/b", "/Lamp"}, f.meeting(anyOf(lamp, Condition{Match: query.All, Conditions: []Condition{under, heavy}})))
	assert.Equal(t, []string{"/World/b"}, f.meeting(noneOf(noneOf(heavy))))
	assert.Equal(t, []string{"/World/b"}, f.meeting(heavy), "a predicate is a filter")
	assert.Len(t, f.meeting(Condition{Match: query.All}), 4)
	require.Nil(t, f.delete(f.query("/World/b"), 2))
	assert.Equal(t, []string{"/World", "/World/a", "/Lamp"}, f.meeting(noneOf(heavy)), "who is no prim meets nothing")

	for _, refused := range []struct {
		filter Condition
		text   string
	}{
		{Condition{Match: query.Any}, "ANY needs at least one condition"},
		{Condition{Match: query.None}, "NONE needs at least one condition"},
		{Condition{Match: 4}, "match 4 is not one of PREDICATE (0), ALL (1), ANY (2), NONE (3)"},
		{Condition{}, "not a token"},
		{anyOf(lamp, noneOf(under, query.Is(f.where("p", query.In, "1")))), `predicate 1.1: attribute "p" holds float32x3`},
		{anyOf(lamp, Condition{Match: query.Any}), "predicate 1: ANY needs"},
	} {
		_, op, err := f.QueryFilter(refused.filter, nil)
		require.NotNil(t, err, refused.text)
		assert.Zero(t, op)
		assert.Contains(t, err.Error(), refused.text)
	}
}

func TestRefresh(t *testing.T) {
	f := newFixture(t)
	f.write(f.query("/a", "/b"), "p", 1, many(1, 2)...)
	f.seal(1)
	scope := []pathdict.Token{f.token("p")}
	id, _, err := f.QueryFilter(every(f.where("p", query.Has)), scope)
	require.Nil(t, err)
	read, _, err := f.Read(id, scope, Range{End: 1})
	require.Nil(t, err)
	m := f.mapFloat3(id, "p", 2, Zero)
	handle := f.queries[id].Handle

	refresh := func() error {
		op, err := f.RefreshQuery(id)
		assert.Equal(t, err == nil, op > 0)
		return err
	}
	require.Nil(t, refresh())
	assert.Equal(t, handle, f.queries[id].Handle, "the list is known by the same handle while it is the same")

	f.write(f.query("/c"), "p", 1+1, one(3))
	require.Nil(t, f.delete(f.query("/a"), 2))
	assert.Equal(t, []string{"/a", "/b"}, f.listed(id))
	require.Nil(t, refresh())
	assert.Equal(t, []string{"/b", "/c"}, f.listed(id))
	attributes, total, err := f.QueryResult(id)
	require.Nil(t, err)
	assert.Equal(t, scope, attributes)
	assert.Equal(t, 2, total)

	g, err := f.FetchRead(read)
	require.Nil(t, err)
	assert.Equal(t, uint32(2), g.PrimCount, "the read goes on over its own prims")
	list, lerr := f.dict.List(g.List)
	require.NoError(t, lerr)
	assert.Equal(t, "/a", f.path(list.At(0)))
	g.Release(f.dict)
	assert.Len(t, m.values(), 2, "so does the map")
	require.Nil(t, m.unmap())

	require.Nil(t, f.delete(id, 3))
	require.Nil(t, refresh())
	assert.Equal(t, []string{"/a"}, f.listed(id), "the map's commit brought it back")
	_, err = f.ReleaseQuery(id)
	require.Nil(t, err)
	assert.Equal(t, InvalidHandle, CodeOf(refresh()))
}

// A filter that has become impossible leaves the query as it was; a list of paths has nothing to ask.
func TestRefreshThatChangesNothing(t *testing.T) {
	f := newFixture(t)
	require.Nil(t, f.tryWrite(f.query("/a"), "mass", 1, scalars(2)))
	id, _, err := f.QueryFilter(every(f.where("mass", query.GT, "1")), nil)
	require.Nil(t, err)
	require.Nil(t, f.tryWrite(f.query("/b"), "mass", 2, ragged([]float32{1})))
	_, err = f.RefreshQuery(id)
	require.NotNil(t, err)
	assert.Contains(t, err.Error(), "GT can't compare")
	assert.Equal(t, []string{"/a"}, f.listed(id))

	paths := f.query("/never")
	_, err = f.RefreshQuery(paths)
	require.Nil(t, err)
	assert.Equal(t, []string{"/never"}, f.listed(paths))
}

// A query keeps its filter, not the caller's memory.
func TestAQueryKeepsItsOwnTexts(t *testing.T) {
	f := newFixture(t)
	f.write(f.query("/a", "/b"), "p", 1, many(1, 2)...)
	text := []byte("/a")
	values := []string{unsafe.String(&text[0], len(text))}
	id, _, err := f.QueryFilter(noneOf(query.Is(Predicate{Attribute: f.token("usd-path"), Op: query.In, Values: values})), nil)
	require.Nil(t, err)
	text[1], values[0] = 'b', "/b"
	_, err = f.RefreshQuery(id)
	require.Nil(t, err)
	assert.Equal(t, []string{"/b"}, f.listed(id))
}
