package column

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"ovstage.dev/ovstage/gocore/memory"
	"ovstage.dev/ovstage/gocore/tensor"
)

var int32Schema = Schema{DType: tensor.DType{Code: tensor.Int, Bits: 32, Lanes: 1}}

// newColumn has n rows, of paths 100, 101, ..., that hold 0, 1, 2, ... at ordinal 1, sealed.
func newColumn(t *testing.T, n int) *Column {
	c := New(int32Schema)
	t.Cleanup(c.Close)
	paths, values := make([]uint32, n), make([]int32, n)
	for i := range n {
		paths[i], values[i] = uint32(100+i), int32(i)
	}
	c.Add(paths)
	c.Write(Run(0, n), 1, block(t, values...))
	require.NoError(t, c.Seal(1))
	return c
}

func block(t *testing.T, values ...int32) memory.Block {
	b, err := memory.Alloc(4*len(values), memory.Columns)
	require.NoError(t, err)
	copy(ints(b, len(values)), values)
	return b
}

func ints(b memory.Block, n int) []int32 { return unsafe.Slice((*int32)(b.Pointer()), n) }

func indexed(t *testing.T, rows ...uint32) Rows {
	b, err := memory.Alloc(4*len(rows), memory.Indices)
	require.NoError(t, err)
	copy(b.Uint32s(len(rows)), rows)
	r := Indexed(b, len(rows))
	t.Cleanup(r.Release)
	return r
}

func sealed(c *Column) []int32 { return ints(c.Sealed().Block(), c.Sealed().Extent()) }

func TestRowsThatAreConsecutiveBecomeAnInterval(t *testing.T) {
	start, ok := indexed(t, 4, 5, 6).Run()
	assert.True(t, ok)
	assert.Equal(t, 4, start)
	_, ok = indexed(t, 4, 6, 5).Run()
	assert.False(t, ok)
	assert.Equal(t, 7, indexed(t, 4, 6, 5).End())
	assert.Equal(t, Rows{}, indexed(t))
}

func TestPartialWriteGoesInPlaceWhenNothingElseHoldsTheBlock(t *testing.T) {
	c := newColumn(t, 4)
	before := c.Sealed().Block()
	c.Write(indexed(t, 3, 1), 2, block(t, 30, 10))
	require.NoError(t, c.Seal(2))
	assert.Equal(t, before, c.Sealed().Block())
	assert.Equal(t, []int32{0, 10, 2, 30}, sealed(c))
}

// A reader holds the sealed block: the write goes into another, and once there are two of them a partial write
// costs the rows that changed, not the column.
func TestPartialWriteBehindAReaderCostsWhatItTouches(t *testing.T) {
	const n = 10_000
	c := newColumn(t, n)
	rows := indexed(t, 5, 9, 7)
	held := c.Sealed().Block().Retain()
	for i := range int32(10) {
		ordinal := uint64(2 + i)
		c.Write(rows, ordinal, block(t, i, i+1, i+2))
		copied := memory.Counters().BytesCopied
		require.NoError(t, c.Seal(ordinal))
		copied = memory.Counters().BytesCopied - copied
		assert.NotEqual(t, held, c.Sealed().Block())
		assert.Equal(t, []int32{i, i + 2, i + 1}, []int32{sealed(c)[5], sealed(c)[7], sealed(c)[9]})
		assert.Equal(t, int32(n-1), sealed(c)[n-1])
		if i > 1 {
			assert.EqualValues(t, 2*3*4, copied, "the rows of this write and of the one before")
		}
		held.Release()
		held = c.Sealed().Block().Retain()
	}
	held.Release()
}

func TestComposeOverlaysRecordsInOrder(t *testing.T) {
	c := newColumn(t, 4)
	c.Write(indexed(t, 2, 0), 5, block(t, 52, 50))
	c.Write(Run(1, 2), 3, block(t, 31, 32))
	c.Write(Run(0, 4), 9, block(t, 90, 91, 92, 93))
	for ordinal, expected := range map[uint64][]int32{
		2: {0, 1, 2, 3}, 3: {0, 31, 32, 3}, 4: {0, 31, 32, 3}, 5: {50, 31, 52, 3}, 9: {90, 91, 92, 93},
	} {
		dst := make([]byte, 16)
		require.NoError(t, c.Compose(dst, Run(0, 4), ordinal))
		assert.Equal(t, expected, unsafe.Slice((*int32)(unsafe.Pointer(&dst[0])), 4), "ordinal %d", ordinal)
		require.NoError(t, c.Compose(dst, indexed(t, 3, 0, 2), ordinal))
		assert.Equal(t, []int32{expected[3], expected[0], expected[2]}, unsafe.Slice((*int32)(unsafe.Pointer(&dst[0])), 3))
	}
	assert.Equal(t, []int32{0, 1, 2, 3}, sealed(c), "composing changes nothing")
}

func TestGenerationRisesExactlyWithRows(t *testing.T) {
	c := newColumn(t, 2)
	generation := c.Sealed().Generation()
	assert.NotZero(t, generation)
	c.Write(Run(0, 2), 2, block(t, 7, 8))
	require.NoError(t, c.Seal(2))
	assert.Equal(t, generation, c.Sealed().Generation())
	c.Add([]uint32{200, 201, 202})
	c.Write(Run(3, 1), 3, block(t, 9)) // row 3 first: row 2 is a hole
	require.NoError(t, c.Seal(3))
	assert.Greater(t, c.Sealed().Generation(), generation)
	assert.Equal(t, []bool{true, true, false, true, false}, []bool{c.Sealed().Live(0), c.Sealed().Live(1), c.Sealed().Live(2), c.Sealed().Live(3), c.Sealed().Live(4)})
	assert.Equal(t, []int32{7, 8, 0, 9}, sealed(c), "a hole holds zeros, never another row's bytes")
	assert.False(t, c.Sealed().Dense(3))
	c.Write(Run(2, 1), 4, block(t, 5))
	require.NoError(t, c.Seal(4))
	assert.True(t, c.Sealed().Dense(4))
}

func TestFirstUnsealedFindsTheWriteThatWaits(t *testing.T) {
	c := newColumn(t, 2)
	c.Add([]uint32{200, 201})
	c.Write(indexed(t, 3, 0), 6, block(t, 1, 2))
	row, at, found := c.FirstUnsealed([]uint32{2, 3}, 6)
	assert.Equal(t, []any{3, uint64(6), true}, []any{row, at, found})
	_, _, found = c.FirstUnsealed([]uint32{2, 3}, 5)
	assert.False(t, found)
}

func TestTableFindsRowsAndRuns(t *testing.T) {
	c := newColumn(t, 1000)
	assert.Equal(t, 500, c.Row(600))
	assert.Equal(t, -1, c.Row(99))
	assert.Equal(t, 10, c.Run([]uint32{110, 111, 112}))
	assert.Equal(t, -1, c.Run([]uint32{110, 112}))
	assert.Equal(t, -1, c.Run([]uint32{1098, 1099, 1100}))
	c.Add([]uint32{7})
	assert.Equal(t, 1000, c.Row(7))
}

func arrays(t *testing.T, rows ...[]byte) (memory.Block, Arena) {
	spans, err := memory.Alloc(SpanSize*len(rows), memory.Columns)
	require.NoError(t, err)
	var arena Arena
	arena.Block, err = memory.Alloc(64*len(rows), memory.Columns)
	require.NoError(t, err)
	for i, row := range rows {
		Spans(spans, len(rows))[i] = Span{uint64(arena.Used), uint64(len(row))}
		arena.Used += copy(arena.Block.Bytes()[arena.Used:], row)
	}
	return spans, arena
}

func sealedArrays(c *Column) (values []string) {
	for _, span := range Spans(c.Sealed().Block(), c.Sealed().Extent()) {
		values = append(values, string(span.of(c.sealed.arena)))
	}
	return values
}

// Versions of an array column share an arena: a reader's bytes stay while later rows are appended, and the arena moves
// when it is full.
func TestArrayColumnSharesItsArena(t *testing.T) {
	c := New(Schema{DType: tensor.DType{Code: tensor.UInt, Bits: 8, Lanes: 1}, Array: true})
	t.Cleanup(c.Close)
	c.Add([]uint32{1, 2, 3})
	write := func(ordinal uint64, rows Rows, values ...[]byte) {
		spans, arena := arrays(t, values...)
		c.WriteArrays(rows, ordinal, spans, arena)
		require.NoError(t, c.Seal(ordinal))
	}
	write(1, Run(0, 3), []byte("one"), nil, []byte("three"))
	assert.Equal(t, []string{"one", "", "three"}, sealedArrays(c))
	held, spans := c.Sealed().Arena().Block.Retain(), Spans(c.Sealed().Block(), 3)[2]
	moves := map[memory.Block]bool{}
	for i := range uint64(200) {
		write(2+i, Run(1, 1), []byte("second"))
		moves[c.Sealed().Arena().Block] = true
	}
	assert.Equal(t, []string{"one", "second", "three"}, sealedArrays(c))
	assert.Equal(t, "three", string(spans.of(Arena{Block: held})))
	held.Release()
	assert.Greater(t, len(moves), 1)
	assert.Less(t, c.Bytes(), 8<<10, "values that no reader can see do not pile up")

	late, arena := arrays(t, []byte("late"))
	c.WriteArrays(indexed(t, 0), 500, late, arena)
	c.Delete(indexed(t, 2), 400)
	assert.Equal(t, [][]byte{[]byte("one"), []byte("second"), nil}, c.Values(Run(0, 3), 450))
	assert.Equal(t, []byte("late"), c.Values(Run(0, 3), 500)[0])
}

// Columns whose rows came with one list share it until one of them changes.
func TestColumnsShareTheListOfTheirRows(t *testing.T) {
	paths := []uint32{5, 6, 7}
	var a, b table
	assert.Equal(t, 0, a.add(paths))
	assert.Equal(t, 0, b.add(paths))
	assert.Same(t, &a.paths[0], &b.paths[0])

	a.vacate([]uint32{1})
	assert.Equal(t, 1, a.add([]uint32{8}), "the vacant row")
	assert.Equal(t, 3, b.add([]uint32{9}))
	assert.Equal(t, []uint32{5, 8, 7}, a.paths)
	assert.Equal(t, []uint32{5, 6, 7, 9}, b.paths)
	assert.Equal(t, []uint32{5, 6, 7}, paths)
	assert.Equal(t, []int{0, -1, 2, 1}, []int{a.row(5), a.row(6), a.row(7), a.row(8)})
}

// The table of rows is off Go's heap: where there is no memory for it rows are searched, and a caller that looks up many is told.
func TestRowsAreFoundWithoutMemoryForTheirTable(t *testing.T) {
	c := New(int32Schema)
	t.Cleanup(c.Close)
	c.Add([]uint32{30, 10, 20})
	before := memory.Counters().LiveBlocks[memory.Indices]
	lift := memory.Limit(0)
	var outOfMemory *memory.OutOfMemory
	assert.ErrorAs(t, c.PrepareRows(), &outOfMemory)
	assert.Equal(t, []int{1, -1}, []int{c.Row(10), c.Row(11)})
	assert.Equal(t, 1, c.Run([]uint32{10, 20}))
	lift()
	assert.Equal(t, before, memory.Counters().LiveBlocks[memory.Indices])

	assert.NoError(t, c.PrepareRows())
	assert.Equal(t, before+1, memory.Counters().LiveBlocks[memory.Indices])
	more := make([]uint32, 100)
	for i := range more {
		more[i] = uint32(100 + i)
	}
	c.Add(more)
	lift = memory.Limit(0) // the table that there is knows the first rows alone
	assert.Equal(t, []int{1, 102}, []int{c.Row(10), c.Row(199)})
	lift()
	assert.Equal(t, []int{1, 102, -1}, []int{c.Row(10), c.Row(199), c.Row(200)})
	assert.Equal(t, before+1, memory.Counters().LiveBlocks[memory.Indices], "the smaller table is released")
	c.Close()
	assert.Equal(t, before, memory.Counters().LiveBlocks[memory.Indices])
}
