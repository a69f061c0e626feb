package pathdict

import (
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLookupInternsNothing(t *testing.T) {
	d := New(100)
	defer d.Close()
	deep, err := d.Path("/World/Robot/arm")
	require.NoError(t, err)
	before := d.Stats()

	token, known := d.LookupToken("arm")
	assert.True(t, known)
	text, _ := d.TokenString(token)
	assert.Equal(t, "arm", text)
	_, known = d.LookupToken("leg")
	assert.False(t, known)
	token, known = d.LookupToken("")
	assert.True(t, known)
	assert.Zero(t, token)

	out := make([]Path, 5)
	require.NoError(t, d.LookupPaths([]string{"/World/Robot/arm", "/World/Robot/leg", "/Robot", "/arm/World", "/"}, out))
	assert.Equal(t, []Path{deep, 0, 0, 0, d.PathAt(root)}, out)
	assert.Equal(t, before, d.Stats())

	err = d.LookupPaths([]string{"/World", "World"}, out)
	assert.ErrorContains(t, err, `entry 1, "World"`)
	assert.Equal(t, deep, out[0], "a call that fails leaves out as it was")
	assert.ErrorContains(t, d.LookupPaths([]string{"/a", "/b"}, out[:1]), "2 entries")
}

// The children of a large family are found through the table.
func TestLookupInLargeFamily(t *testing.T) {
	d := New(0)
	defer d.Close()
	names := make([]string, 10*smallFamily)
	for i := range names {
		names[i] = "/World/p" + string(rune('A'+i))
	}
	made, found := make([]Path, len(names)), make([]Path, len(names))
	require.NoError(t, d.Paths(names, made))
	require.NoError(t, d.LookupPaths(names, found))
	assert.Equal(t, made, found)
}

func TestDenseIndices(t *testing.T) {
	d := New(7)
	defer d.Close()
	arm, err := d.Path("/World/arm")
	require.NoError(t, err)
	world, _ := d.Parent(arm)
	at, _ := d.Index(arm)
	above, _ := d.Index(world)
	assert.Equal(t, above, d.ParentAt(at))
	assert.Equal(t, uint32(root), d.ParentAt(root))
	assert.Equal(t, "arm", d.NameAt(at))
	assert.Empty(t, d.NameAt(root))

	list := d.ListAt([]uint32{at, above, at})
	assert.Equal(t, []Path{arm, world, arm}, []Path{list.At(0), list.At(1), list.At(2)})
	handle, err := d.NewList([]Path{arm, world, arm})
	require.NoError(t, err)
	same, err := d.List(handle)
	require.NoError(t, err)
	assert.Same(t, list, same, "a list is found by its content")
	assert.Zero(t, d.ListAt(nil).Len())
}

func TestLookupInAClosedDictionary(t *testing.T) {
	d := New(0)
	_, err := d.Path("/a")
	require.NoError(t, err)
	d.Close()
	_, known := d.LookupToken("a")
	assert.False(t, known)
	out := make([]Path, 2)
	require.NoError(t, d.LookupPaths([]string{"/", "/a"}, out))
	assert.Equal(t, []Path{0, 0}, out)
}

func TestListOfKnownInternsNoPath(t *testing.T) {
	d := New(100)
	defer d.Close()
	made, err := d.Path("/World/a")
	require.NoError(t, err)
	ask := func(paths ...string) (*List, int) {
		h, unknown, err := d.NewListOfKnown(paths)
		require.NoError(t, err)
		l, err := d.List(h)
		require.NoError(t, err)
		require.NoError(t, d.ReleaseRef(h))
		return l, unknown
	}
	l, unknown := ask("/World/a", "/World", "/")
	assert.Zero(t, unknown)
	assert.Equal(t, made, l.At(0))

	l, unknown = ask("/World/b", "/World/a", "/b", "/World/b")
	assert.Equal(t, 2, unknown)
	assert.Equal(t, made, l.At(1))
	assert.Equal(t, l.At(0), l.At(3), "equal texts have one stand-in")
	assert.NotEqual(t, l.At(0), l.At(2), "others have another")
	before := d.Stats()
	again, _ := ask("/World/c", "/World/a", "/c", "/World/c")
	assert.Same(t, l, again)
	assert.Equal(t, before, d.Stats())

	later, err := d.Path("/(unknown)")
	require.NoError(t, err)
	assert.NotContains(t, []Path{l.At(0), l.At(2)}, later, "no text finds a stand-in")
	_, _, err = d.NewListOfKnown([]string{"/a", "b"})
	assert.ErrorContains(t, err, `entry 1, "b"`)
}

func TestListsOfKnownFromManyThreads(t *testing.T) {
	d := New(0)
	defer d.Close()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for k := range 200 {
				name := "/" + strconv.Itoa(k)
				h, _, err := d.NewListOfKnown([]string{name, name + "/x", "/never"})
				assert.NoError(t, err)
				assert.NoError(t, d.ReleaseRef(h))
				path, err := d.Path(name)
				assert.NoError(t, err)
				h, unknown, err := d.NewListOfKnown([]string{name, "/never"})
				assert.NoError(t, err)
				assert.Equal(t, 1, unknown)
				l, err := d.List(h)
				assert.NoError(t, err)
				assert.Equal(t, path, l.At(0))
				assert.NoError(t, d.ReleaseRef(h))
			}
		})
	}
	all.Wait()
}
