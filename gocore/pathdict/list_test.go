package pathdict

import (
	"fmt"
	"math/rand"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func mustList(t testing.TB, d *Dictionary, paths ...string) ListHandle {
	h, err := d.NewListFromStrings(paths)
	require.NoError(t, err)
	return h
}

func contents(t testing.TB, d *Dictionary, h ListHandle) *List {
	l, err := d.List(h)
	require.NoError(t, err)
	return l
}

func TestListKeepsOrderAndDuplicates(t *testing.T) {
	d := open(t)
	a, b := mustPath(t, d, "/a"), mustPath(t, d, "/b")
	h, err := d.NewList([]Path{b, a, b})
	require.NoError(t, err)
	l := contents(t, d, h)
	assert.Equal(t, 3, l.Len())
	assert.Equal(t, []Path{b, a, b}, []Path{l.At(0), l.At(1), l.At(2)})
	assert.Equal(t, []uint32{2, 1, 2}, l.Indices())
	assert.False(t, l.Unique())
}

func TestEmptyListsAreLegalAndDistinct(t *testing.T) {
	d := open(t)
	a, err := d.NewList(nil)
	require.NoError(t, err)
	b := mustList(t, d)
	assert.NotEqual(t, a, b)
	for _, h := range []ListHandle{a, b} {
		assert.Zero(t, contents(t, d, h).Len())
		assert.True(t, contents(t, d, h).Unique())
		assert.NoError(t, d.ReleaseRef(h))
	}
}

func TestEqualListsHaveHandlesOfTheirOwnAndOneContent(t *testing.T) {
	d := open(t)
	a := mustList(t, d, "/a", "/b")
	b, err := d.NewList([]Path{mustPath(t, d, "/a"), mustPath(t, d, "/b")})
	require.NoError(t, err)
	swapped := mustList(t, d, "/b", "/a")
	assert.Greater(t, b, a)
	assert.Same(t, contents(t, d, a), contents(t, d, b))
	assert.NotSame(t, contents(t, d, a), contents(t, d, swapped))
	assert.Equal(t, 3, d.Stats().Handles)
	assert.Equal(t, 2, d.Stats().Lists)
	require.NoError(t, d.ReleaseRef(a))
	assert.Equal(t, 2, contents(t, d, b).Len(), "the other handle lives on")
}

func TestReferences(t *testing.T) {
	d := open(t)
	h := mustList(t, d, "/a", "/b")
	require.NoError(t, d.AddRef(h))
	require.NoError(t, d.ReleaseRef(h))
	assert.Equal(t, 2, contents(t, d, h).Len())
	require.NoError(t, d.ReleaseRef(h))
	text := fmt.Sprintf("Path list handle was not found (handle %d)", h)
	_, err := d.List(h)
	assert.ErrorContains(t, err, text)
	assert.ErrorContains(t, d.ReleaseRef(h), text)
	assert.ErrorContains(t, d.AddRef(h), text)
	assert.Greater(t, mustList(t, d, "/a", "/b"), h, "a handle is never used again")
}

func TestUnknownAndZeroListHandles(t *testing.T) {
	d := open(t)
	for _, h := range []ListHandle{0xDEADBEEF, 1<<64 - 1} {
		_, err := d.List(h)
		assert.ErrorContains(t, err, "Path list handle was not found")
		assert.ErrorContains(t, d.AddRef(h), "Path list handle was not found")
		assert.ErrorContains(t, d.ReleaseRef(h), "Path list handle was not found")
	}
	assert.NoError(t, d.AddRef(0))
	assert.NoError(t, d.ReleaseRef(0))
	_, err := d.List(0)
	assert.ErrorContains(t, err, "Path list handle was not found")
}

func TestMint(t *testing.T) {
	d := open(t)
	h := mustList(t, d, "/a", "/b")
	l := contents(t, d, h)
	minted := d.Mint(l)
	assert.Greater(t, minted, h)
	require.NoError(t, d.ReleaseRef(h))
	assert.Same(t, l, contents(t, d, minted))
	require.NoError(t, d.ReleaseRef(minted))
	revived := d.Mint(l)
	assert.Same(t, l, contents(t, d, revived), "a list without handles can get one")
	require.NoError(t, d.ReleaseRef(revived))
	assert.Zero(t, d.Mint(nil))
	assert.Zero(t, open(t).Mint(l), "another dictionary's list")
}

func TestSublist(t *testing.T) {
	d := open(t)
	l := contents(t, d, mustList(t, d, "/a", "/b", "/c", "/d"))
	assert.Same(t, l, d.Sublist(l, 4, nil))
	assert.Same(t, contents(t, d, mustList(t, d, "/a", "/b")), d.Sublist(l, 2, nil))
	assert.Same(t, contents(t, d, mustList(t, d, "/b", "/d")), d.Sublist(l, 4, []uint64{0b1010}))
	assert.Same(t, l, d.Sublist(l, 4, []uint64{0b1111}))
	assert.Zero(t, d.Sublist(l, 4, []uint64{0}).Len())
	hold := d.Sublist(l, 3, nil)
	address := fmt.Sprintf("%p", hold)
	hold = nil
	runtime.GC()
	assert.Equal(t, address, fmt.Sprintf("%p", d.Sublist(l, 3, nil)), "kept for the next tick")
}

// What was released a short while ago is found again; what was released long ago only while somebody holds it.
func TestReleasedContentsAreKeptForAWhile(t *testing.T) {
	d := open(t)
	release := func(paths ...string) {
		h := mustList(t, d, paths...)
		require.NoError(t, d.ReleaseRef(h))
	}
	release("/kept")
	h := mustList(t, d, "/held")
	held := contents(t, d, h)
	require.NoError(t, d.ReleaseRef(h))
	runtime.GC()
	assert.Equal(t, 2, d.Stats().Lists)
	assert.Zero(t, d.Stats().Handles)

	for i := range recentLists {
		release(fmt.Sprint("/other_", i))
	}
	runtime.GC()
	assert.Len(t, d.shelf.recent, recentLists)
	assert.Equal(t, recentLists+1, d.Stats().Lists, "the recent ones, and the one that is held")
	assert.Same(t, held, contents(t, d, mustList(t, d, "/held")))
	assert.NotContains(t, d.shelf.recent, held, "a list with handles is not among the recent ones")
}

func TestRecentListsWeighLittle(t *testing.T) {
	d := open(t)
	half := recentBytes/4/2 + 1 // two of them weigh too much
	first, second := &List{d: d, indices: make([]uint32, half)}, &List{d: d, indices: make([]uint32, half)}
	d.shelf.remember(first)
	d.shelf.remember(second)
	assert.Equal(t, []*List{second}, d.shelf.recent)
	assert.Equal(t, 4*half, d.shelf.weight)
	for range 3 { // taking a list up again takes its weight off
		require.NoError(t, d.ReleaseRef(mustList(t, d, "/a", "/b")))
	}
	assert.Len(t, d.shelf.recent, 2)
	assert.Equal(t, 4*half+8, d.shelf.weight)
	d.shelf.remember(&List{d: d, indices: make([]uint32, recentBytes/4+1)})
	assert.Empty(t, d.shelf.recent, "one that is too heavy alone is not kept")
	assert.Zero(t, d.shelf.weight)
}

func TestDeadContentsAreForgotten(t *testing.T) {
	d := open(t)
	for i := range 3 * recentLists {
		require.NoError(t, d.ReleaseRef(mustList(t, d, fmt.Sprint("/list_", i))))
	}
	runtime.GC()
	d.shelf.lock.RLock()
	var gone []dead
	for hash, same := range d.shelf.contents {
		for _, list := range same {
			if list.Value() == nil {
				gone = append(gone, dead{list, hash})
			}
		}
	}
	d.shelf.lock.RUnlock()
	for _, one := range gone { // as the runtime does in its own time
		d.shelf.forget(one)
	}
	assert.Len(t, d.shelf.contents, recentLists)
}

// Lists whose hashes collide must still be told apart.
func TestCollidingListsAreToldApart(t *testing.T) {
	d := open(t)
	a := d.shelf.intern(d, []uint32{1, 2}, 42)
	b := d.shelf.intern(d, []uint32{2, 1}, 42)
	assert.NotSame(t, a, b)
	assert.Same(t, a, d.shelf.intern(d, []uint32{1, 2}, 42))
	assert.Same(t, b, d.shelf.intern(d, []uint32{2, 1}, 42))
}

func TestUnique(t *testing.T) {
	random := rand.New(rand.NewSource(5))
	for range 3000 {
		indices := make([]uint32, random.Intn(40))
		reach := []int{3, 60, 100_000, 1 << 31}[random.Intn(4)]
		for i := range indices {
			indices[i] = uint32(random.Intn(reach))
		}
		switch random.Intn(3) {
		case 0:
			slices.Sort(indices)
		case 1:
			if len(indices) > 1 {
				indices[0] = indices[len(indices)-1]
			}
		}
		seen := map[uint32]bool{}
		for _, index := range indices {
			seen[index] = true
		}
		l := &List{indices: indices}
		require.Equal(t, len(seen) == len(indices), l.Unique(), "%v", indices)
		require.Equal(t, len(seen) == len(indices), l.Unique(), "%v", indices)
	}
}

// Random calls on lists against plain slices and counts.
func TestListsAgreeWithAModel(t *testing.T) {
	d := open(t)
	random := rand.New(rand.NewSource(6))
	type entry struct {
		paths []Path
		refs  int
	}
	model := map[ListHandle]*entry{}
	var handles []ListHandle
	known := make([]Path, 5)
	require.NoError(t, d.Paths([]string{"/", "/a", "/b", "/c", "/a/b"}, known))
	for range 20_000 {
		if len(handles) == 0 || random.Intn(3) == 0 {
			paths := make([]Path, random.Intn(4))
			for i := range paths {
				paths[i] = known[random.Intn(len(known))]
			}
			h, err := d.NewList(paths)
			require.NoError(t, err)
			_, taken := model[h]
			require.False(t, taken)
			model[h], handles = &entry{paths, 1}, append(handles, h)
			continue
		}
		h := handles[random.Intn(len(handles))]
		e := model[h]
		var err error
		change := 1 - 2*random.Intn(2)
		if change > 0 {
			err = d.AddRef(h)
		} else {
			err = d.ReleaseRef(h)
		}
		require.Equal(t, e.refs > 0, err == nil)
		if e.refs > 0 {
			e.refs += change
		}
		l, err := d.List(h)
		require.Equal(t, e.refs > 0, err == nil)
		if err == nil {
			require.Equal(t, len(e.paths), l.Len())
			for i, p := range e.paths {
				require.Equal(t, p, l.At(i))
			}
		}
	}
	live := 0
	for _, e := range model {
		if e.refs > 0 {
			live++
		}
	}
	assert.Equal(t, live, d.Stats().Handles)
}
