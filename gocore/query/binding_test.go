package query

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"ovstage.dev/ovstage/gocore/column"
	"ovstage.dev/ovstage/gocore/memory"
	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/tensor"
)

// bench is a column with its bindings and a dictionary.
type bench struct {
	*testing.T
	dict     *pathdict.Dictionary
	column   *column.Column
	bindings Bindings
	resolved uint64
	added    []uint32
}

func newBench(t *testing.T) *bench {
	b := &bench{T: t, dict: pathdict.New(0), column: column.New(column.Schema{DType: tensor.DType{Code: tensor.Int, Bits: 8, Lanes: 1}})}
	b.bindings.Resolved = &b.resolved
	t.Cleanup(func() {
		b.bindings.Close()
		b.column.Close()
		b.dict.Close()
	})
	return b
}

func (b *bench) list(paths ...string) *pathdict.List {
	handle, err := b.dict.NewListFromStrings(paths)
	require.NoError(b, err)
	list, err := b.dict.List(handle)
	require.NoError(b, err)
	return list
}

func (b *bench) grow(list *pathdict.List) *Binding {
	growth, err := b.bindings.Prepare(b.column, list)
	require.NoError(b, err)
	binding, added := b.bindings.Grow(b.column, growth)
	b.added = append(b.added, added...)
	return binding
}

// seal writes one byte to every row of the binding and seals it.
func (b *bench) seal(binding *Binding, ordinal uint64) {
	block, err := memory.Alloc(binding.Rows().Len(), memory.Columns)
	require.NoError(b, err)
	b.column.Write(binding.Rows(), ordinal, block)
	require.NoError(b, b.column.Seal(ordinal))
}

func TestGrowGivesRowsInListOrder(t *testing.T) {
	b := newBench(t)
	first := b.grow(b.list("/a", "/b"))
	start, run := first.Rows().Run()
	assert.True(t, run)
	assert.Zero(t, start)

	mixed := b.grow(b.list("/c", "/b", "/d", "/c"))
	assert.Equal(t, []uint32{2, 1, 3, 2}, mixed.Rows().List(), "a prim that is listed twice has one row")
	assert.Equal(t, 4, b.column.Rows())
	assert.Len(t, b.added, 4)
}

func TestBindingIsFoundByContent(t *testing.T) {
	b := newBench(t)
	b.grow(b.list("/a", "/b", "/c"))
	first := b.grow(b.list("/c", "/a"))
	resolved := b.resolved
	for range 10 {
		assert.Same(t, first, b.grow(b.list("/c", "/a")))
	}
	assert.Equal(t, resolved, b.resolved)
}

func TestMissingPrimsAreLookedUpAgainWhenTheColumnGrows(t *testing.T) {
	b := newBench(t)
	b.grow(b.list("/a"))
	list := b.list("/x", "/a", "/y")
	before, err := b.bindings.Of(b.column, list)
	require.NoError(t, err)
	assert.Equal(t, 2, before.Missing())
	again, err := b.bindings.Of(b.column, list)
	require.NoError(t, err)
	assert.Same(t, before, again)
	b.grow(b.list("/y"))
	after, err := b.bindings.Of(b.column, list)
	require.NoError(t, err)
	assert.Equal(t, 1, after.Missing())
	assert.Equal(t, 2, after.Rows().Len())
}

func TestPlanCoversWhatIsSealed(t *testing.T) {
	b := newBench(t)
	all := b.grow(b.list("/a", "/b", "/c", "/d"))
	b.seal(all, 1)
	plan, err := all.Plan(b.column)
	require.NoError(t, err)
	assert.Equal(t, []int{0, 4, 4}, []int{plan.Offset, plan.Count, plan.Rows.Len()})
	assert.False(t, plan.Positions.Valid())

	mixed, err := b.bindings.Of(b.column, b.list("/x", "/d", "/y", "/b"))
	require.NoError(t, err)
	plan, err = mixed.Plan(b.column)
	require.NoError(t, err)
	assert.Equal(t, []uint32{1, 3}, plan.Positions.Uint32s(plan.Count))
	assert.Equal(t, []uint32{3, 1}, plan.Rows.List())

	tail, err := b.bindings.Of(b.column, b.list("/x", "/c", "/d"))
	require.NoError(t, err)
	plan, err = tail.Plan(b.column)
	require.NoError(t, err)
	assert.Equal(t, []int{1, 2}, []int{plan.Offset, plan.Count})
	assert.False(t, plan.Positions.Valid(), "positions in a row need no list")

	wider := b.grow(b.list("/a", "/n"))
	plan, err = wider.Plan(b.column)
	require.NoError(t, err)
	assert.Equal(t, []uint32{4}, plan.Pending)
	assert.Equal(t, 1, plan.Count)
}

func TestCacheIsBounded(t *testing.T) {
	b := newBench(t)
	for i := range maxBindings + 100 {
		b.grow(b.list(fmt.Sprintf("/p%d", i)))
	}
	assert.Len(t, b.bindings.order, maxBindings)
	assert.Len(t, b.bindings.all, maxBindings)
}

// Lists that are prepared together grow one after the other, also those that the cache has lost meanwhile.
func TestGrowthOutlivesItsBinding(t *testing.T) {
	b := newBench(t)
	const lists = maxBindings + 3
	pairs := make([]*pathdict.List, lists)
	for i := range pairs {
		pairs[i] = b.list(fmt.Sprintf("/old%d", i), fmt.Sprintf("/older%d", i))
	}
	b.grow(b.list("/first"))
	for round := range 2 { // without rows, then with all of them
		growths := make([]Growth, lists)
		for i, list := range pairs {
			var err error
			growths[i], err = b.bindings.Prepare(b.column, list)
			require.NoError(t, err)
		}
		for i, g := range growths {
			binding, added := b.bindings.Grow(b.column, g)
			assert.Len(t, added, 2-2*round)
			start, run := binding.Rows().Run()
			require.True(t, run)
			assert.Equal(t, 1+2*i, start)
		}
	}
	mixed := make([]Growth, lists)
	for i := range mixed { // with some of them, and not side by side
		var err error
		mixed[i], err = b.bindings.Prepare(b.column, b.list(fmt.Sprintf("/older%d", i), fmt.Sprintf("/new%d", i), fmt.Sprintf("/old%d", i)))
		require.NoError(t, err)
	}
	live := memory.Counters().Blocks()
	for i, g := range mixed[1:] {
		binding, _ := b.bindings.Grow(b.column, g)
		assert.Equal(t, []uint32{uint32(2*i + 4), uint32(2*lists + 1 + i), uint32(2*i + 3)}, binding.Rows().List())
	}
	mixed[0].Drop()
	b.bindings.Close()
	assert.Less(t, memory.Counters().Blocks(), live)
}

// Lists that are new with every tick do not pile up: what is kept is a few times the column.
func TestBindingsOfEverNewLists(t *testing.T) {
	b := newBench(t)
	paths := make([]string, 512)
	for i := range paths {
		paths[i] = fmt.Sprintf("/p%d", i)
	}
	b.seal(b.grow(b.list(paths...)), 1)
	random := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		random.Shuffle(len(paths), func(i, k int) { paths[i], paths[k] = paths[k], paths[i] })
		handle, err := b.dict.NewListFromStrings(paths)
		require.NoError(t, err)
		list, err := b.dict.List(handle)
		require.NoError(t, err)
		binding, err := b.bindings.Of(b.column, list)
		require.NoError(t, err)
		require.Zero(t, binding.Missing())
		require.NoError(t, b.dict.ReleaseRef(handle))
		require.LessOrEqual(t, b.bindings.held, max(minPositions, 8*len(paths)))
	}
}
