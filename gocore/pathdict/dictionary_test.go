package pathdict

import (
	"fmt"
	"math/rand"
	"reflect"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"ovstage.dev/ovstage/gocore/memory"
)

// open returns a dictionary that is closed with the test.
func open(t testing.TB) *Dictionary {
	d := New(0)
	t.Cleanup(d.Close)
	return d
}

func mustPath(t testing.TB, d *Dictionary, s string) Path {
	p, err := d.Path(s)
	require.NoError(t, err)
	return p
}

func mustToken(t testing.TB, d *Dictionary, s string) Token {
	token, err := d.Token(s)
	require.NoError(t, err)
	return token
}

func TestHandlesOfAnEarlierDictionaryAreUnknown(t *testing.T) {
	first := New(0)
	token, path := mustToken(t, first, "radius"), mustPath(t, first, "/World/Cube")
	list, err := first.NewList([]Path{path})
	require.NoError(t, err)
	contents, err := first.List(list)
	require.NoError(t, err)
	first.Close()

	second := New(first.End())
	defer second.Close()
	mustPath(t, second, "/A/B/C/D/E/F/G")
	empty, err := second.NewList(nil)
	require.NoError(t, err)
	_, known := second.TokenString(token)
	assert.False(t, known)
	_, err = second.PathString(path)
	assert.EqualError(t, err, "Prim path handle was not found in this dictionary")
	_, err = second.List(list)
	assert.ErrorContains(t, err, "Path list handle was not found")
	_, err = second.NewList([]Path{path})
	assert.ErrorContains(t, err, "Prim path handle was not found in this dictionary (entry 0, handle 3)")
	assert.Zero(t, second.Mint(contents))
	assert.Greater(t, empty, list)
	assert.Greater(t, mustPath(t, second, "/"), path)
	assert.Greater(t, mustToken(t, second, "radius"), token)
}

func TestEndIsBeyondEveryHandle(t *testing.T) {
	d := New(1000)
	assert.EqualValues(t, 1002, d.End(), "the root has a handle")
	for i := range 10 {
		token := mustToken(t, d, fmt.Sprint("token_", i))
		assert.Greater(t, d.End(), uint64(token))
	}
	for range 100 {
		h, err := d.NewList(nil)
		require.NoError(t, err)
		assert.Greater(t, d.End(), uint64(h))
	}
	end := d.End()
	d.Close()
	d.Close()
	assert.Equal(t, end, d.End())
}

func TestClosedDictionaryKnowsNothingAndRefuses(t *testing.T) {
	before := memory.Counters().LiveBytes[memory.Strings]
	d := New(0)
	token, path := mustToken(t, d, "radius"), mustPath(t, d, "/World/Cube")
	h, err := d.NewList([]Path{path, path})
	require.NoError(t, err)
	l, err := d.List(h)
	require.NoError(t, err)
	assert.Greater(t, memory.Counters().LiveBytes[memory.Strings], before)
	d.Close()

	assert.Equal(t, before, memory.Counters().LiveBytes[memory.Strings])
	_, known := d.TokenString(token)
	assert.False(t, known)
	_, err = d.PathString(path)
	assert.Equal(t, ErrUnknownPath, err)
	_, err = d.Token("radius")
	assert.ErrorContains(t, err, "closed")
	_, err = d.Path("/World/Cube")
	assert.ErrorContains(t, err, "closed")
	_, err = d.NewList(nil)
	assert.ErrorContains(t, err, "closed")
	assert.ErrorContains(t, d.ReleaseRef(h), "not found")
	assert.Zero(t, d.Mint(l))
	assert.Equal(t, 2, l.Len(), "a list that somebody holds stays readable")
	assert.Equal(t, path, l.At(1))
}

func TestFullDictionaryRefusesTheNextName(t *testing.T) {
	d := open(t)
	assert.NoError(t, d.checkGrowth(full-1))
	assert.ErrorContains(t, d.checkGrowth(full), "full: it holds 4294967294 names")
}

func TestOutMustHaveRoom(t *testing.T) {
	d := open(t)
	assert.ErrorContains(t, d.Tokens([]string{"a", "b"}, make([]Token, 1)), "room for all 2 entries: it has room for 1")
	assert.ErrorContains(t, d.Paths([]string{"/a", "/b"}, nil), "room for all 2 entries: it has room for 0")
	assert.ErrorContains(t, d.PathsFromTokens(nil, []int{0}, nil), "room for all 1 entries")
	assert.NoError(t, d.Paths(nil, nil))
	assert.Equal(t, Stats{Paths: 1, Bytes: d.paths.bytes() + d.pathPins.bytes()}, d.Stats(), "nothing was interned")
}

// The collector must find nothing to trace, however many names there are.
func TestNamesAreNotGoObjects(t *testing.T) {
	assert.Equal(t, reflect.Uint64, reflect.TypeOf(span(0)).Kind())
	for i := range reflect.TypeOf(node{}).NumField() {
		assert.Equal(t, reflect.Uint32, reflect.TypeOf(node{}).Field(i).Type.Kind())
	}
	const n = 100_000
	d := open(t)
	paths, out := flat(n), make([]Path, n)
	objects := func() int64 {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return int64(stats.HeapObjects)
	}
	before := objects()
	require.NoError(t, d.Paths(paths, out))
	assert.Less(t, objects()-before, int64(200))
	runtime.KeepAlive(paths)
}

func TestPathsAreSmall(t *testing.T) {
	for name, paths := range map[string][]string{"scene": scene(50_000), "flat": flat(50_000)} {
		d := New(0)
		require.NoError(t, d.Paths(paths, make([]Path, len(paths))))
		stats := d.Stats()
		assert.Less(t, float64(stats.Bytes)/float64(stats.Paths), 150.0, name)
		d.Close()
	}
}

// Several goroutines intern overlapping batches, each in an order of its own, and resolve what the others interned.
func TestConcurrentInterning(t *testing.T) {
	d := open(t)
	paths := append(scene(1500), flat(1500)...)
	const workers = 6
	results := make([]map[string]Path, workers)
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			random := rand.New(rand.NewSource(int64(w)))
			mine := make([]string, len(paths))
			for i, j := range random.Perm(len(paths)) {
				mine[i] = paths[j]
			}
			out := make([]Path, len(mine))
			assert.NoError(t, d.Paths(mine, out))
			results[w] = map[string]Path{}
			var tokens []Token
			for i, p := range out {
				results[w][mine[i]] = p
				text, err := d.PathString(p)
				assert.NoError(t, err)
				assert.Equal(t, mine[i], text)
				tokens, _ = d.PathTokens(p, tokens[:0])
				again, one := [1]Path{}, []int{len(tokens)}
				assert.NoError(t, d.PathsFromTokens(tokens, one, again[:]))
				assert.Equal(t, p, again[0])
				newest, err := d.PathString(d.PathAt(uint32(d.PathCount() - 1)))
				assert.NoError(t, err)
				assert.NotEmpty(t, newest)
			}
		})
	}
	group.Wait()
	for w := range workers {
		assert.Equal(t, results[0], results[w])
	}
	distinct := map[Path]bool{}
	for _, p := range results[0] {
		distinct[p] = true
	}
	assert.Len(t, distinct, len(paths))
	assert.Equal(t, d.PathCount(), d.Stats().Paths)
}

func TestConcurrentLists(t *testing.T) {
	d := open(t)
	var group sync.WaitGroup
	for w := range 6 {
		group.Go(func() {
			for i := range 300 {
				h, err := d.NewListFromStrings([]string{"/World", fmt.Sprintf("/World/prim_%d", i%10), "/World/x"})
				assert.NoError(t, err)
				assert.NoError(t, d.AddRef(h))
				l, err := d.List(h)
				assert.NoError(t, err)
				assert.True(t, l.Unique())
				assert.Equal(t, 2, d.Sublist(l, 2, nil).Len())
				minted := d.Mint(l)
				assert.NoError(t, d.ReleaseRef(h))
				assert.NoError(t, d.ReleaseRef(h))
				assert.Error(t, d.ReleaseRef(h))
				again, err := d.List(minted)
				assert.NoError(t, err)
				assert.Same(t, l, again)
				assert.NoError(t, d.ReleaseRef(minted))
				if w == 0 && i%100 == 0 {
					runtime.GC()
				}
			}
		})
	}
	group.Wait()
	assert.Zero(t, d.Stats().Handles)
}

// Names that there is no memory for are refused one and all, at whichever allocation it runs out; then they are taken.
func TestNamesSurviveShortage(t *testing.T) {
	d := open(t)
	names := make([]string, 3*segmentSize)
	for i := range names {
		names[i] = fmt.Sprintf("/World/p%d", i)
	}
	paths := make([]Path, len(names))
	shortages := 0
	for {
		lift := memory.Limit(shortages)
		err := d.Paths(names, paths)
		lift()
		if err == nil {
			break
		}
		require.ErrorContains(t, err, "out of memory")
		shortages++
	}
	assert.Greater(t, shortages, 4)
	for i, path := range paths {
		text, err := d.PathString(path)
		require.NoError(t, err)
		require.Equal(t, names[i], text)
	}
}
