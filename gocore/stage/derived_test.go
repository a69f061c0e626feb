package stage

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"ovstage.dev/ovstage/gocore/column"
	"ovstage.dev/ovstage/gocore/memory"
	"ovstage.dev/ovstage/gocore/pathdict"
)

func TestDerivedAttributes(t *testing.T) {
	f := newFixture(t)
	f.write(f.query("/World/b", "/World", "/World/a", "/Other/c"), "p", 7, many(1, 2, 3, 4)...)
	q := f.query("/World", "/World/a", "/Other", "/World/b", "/Other/c", "/World/a")
	assert.Equal(t, []string{"0/World", "1/World/a", "3/World/b", "4/Other/c", "5/World/a"}, f.derivedRows(q, "usd-path"),
		"nothing is sealed, and nothing needs to be")
	assert.Equal(t, []string{"1/World", "3/World", "5/World"}, f.derivedRows(q, "usd-parent"))
	assert.Equal(t, []string{"0 [/World/b /World/a]"}, f.derivedRows(q, "usd-children"), "in the order of creation")
	assert.Nil(t, f.derivedRows(f.query("/Other", "/never"), "usd-path"))

	f.write(f.query("/"), "p", 8, one(5))
	root := f.query("/", "/World")
	assert.Equal(t, []string{"0/", "1/World"}, f.derivedRows(root, "usd-path"))
	assert.Nil(t, f.derivedRows(root, "usd-parent"), "the root is nobody's parent")
	assert.Equal(t, []string{"0 [/World]", "1 [/World/b /World/a]"}, f.derivedRows(root, "usd-children"))
}

func TestDerivedGroup(t *testing.T) {
	f := newFixture(t)
	q := f.query("/a", "/a/x", "/a/y", "/b")
	f.write(f.query("/a", "/a/x", "/a/y", "/b"), "p", 1, many(1, 2, 3, 4)...)
	f.seal(1)
	whole := f.group(q, "usd-path", column.Latest)
	assert.Equal(t, column.Latest, whole.Ordinal, "the ordinal that was asked for")
	assert.Equal(t, uint64(1), whole.Floor)
	assert.False(t, whole.Delete || whole.Array || whole.PrimMap.Valid())
	assert.Positive(t, whole.Generation)
	nested := f.group(q, "usd-parent", 2)
	assert.Equal(t, []uint32{1, 2}, []uint32{nested.PrimOffset, nested.PrimCount})
	assert.False(t, nested.PrimMap.Valid(), "neighbours need no list")

	f.write(q, "p", 2, many(5, 6, 7, 8)...)
	assert.Equal(t, whole.Generation, f.group(q, "usd-path", 2).Generation, "values do not matter")
	require.Nil(t, f.delete(f.query("/a/x"), 3))
	fewer := f.group(q, "usd-path", 3)
	assert.Greater(t, fewer.Generation, whole.Generation)
	assert.Equal(t, []uint32{0, 2, 3}, fewer.PrimMap.Uint32s(3))
	assert.Equal(t, 4, whole.Rows, "a group that is held stays as it was")
}

func TestDerivedAttributesHaveNoHistory(t *testing.T) {
	f := newFixture(t)
	q := f.query("/a", "/a/b")
	f.write(q, "p", 1, many(1, 2)...)
	f.seal(1)
	for _, name := range []string{"usd-path", "usd-parent", "usd-children"} {
		id, _, err := f.Read(q, []pathdict.Token{f.token(name)}, Range{Start: 1, End: 1, HasStart: true})
		require.Nil(t, err)
		g, err := f.FetchRead(id)
		require.Nil(t, err)
		assert.Nil(t, g)
	}
	for _, r := range []Range{{End: 1}, {Start: 1, End: 1, HasStart: true}} {
		_, _, err := f.Read(f.query(), []pathdict.Token{f.token("usd-active")}, r)
		require.NotNil(t, err)
		assert.Equal(t, NotSupported, CodeOf(err))
		assert.Contains(t, err.Error(), `"usd-active"`)
	}
}

// Groups of derived attributes are memory like any other: all of it comes back.
func TestDerivedGroupsAreGivenBack(t *testing.T) {
	before := memory.Counters().Blocks()
	f := newFixture(t)
	q := f.query("/a", "/never", "/a/b", "/a/b/c")
	f.write(f.query("/a", "/a/b", "/a/b/c"), "p", 1, many(1, 2, 3)...)
	for _, name := range []string{"usd-path", "usd-parent", "usd-children"} {
		id, _, err := f.Read(q, []pathdict.Token{f.token(name)}, Range{End: 1})
		require.Nil(t, err)
		g, err := f.FetchRead(id)
		require.Nil(t, err)
		g.Release(f.dict)
		_, _, err = f.Read(q, []pathdict.Token{f.token(name)}, Range{End: 1}) // never fetched
		require.Nil(t, err)
	}
	f.Stage.Close()
	f.dict.Close()
	assert.Equal(t, before, memory.Counters().Blocks())
}
