package column

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"ovstage.dev/ovstage/gocore/memory"
)

// Random writes and deletes at a few unsealed ordinals, far more than the column has rows: what each ordinal shows is what a
// plain model says, before and after it is sealed, and the memory follows what can be seen.
func TestCondensedAgainstModel(t *testing.T) {
	for seed := range uint64(40) {
		for _, array := range []bool{false, true} {
			t.Run(fmt.Sprint(seed, array), func(t *testing.T) { newRewriting(t, seed, array).run() })
		}
	}
}

// rewriting is a column and what its rows should hold at each ordinal: a value, or -1 for none.
type rewriting struct {
	*testing.T
	*Column
	random *rand.Rand
	array  bool
	rows   int
	model  map[uint64][]int32 // by ordinal: what was written or deleted at it; 0 for neither
	value  int32
}

const ordinals = 4

func newRewriting(t *testing.T, seed uint64, array bool) *rewriting {
	r := &rewriting{T: t, random: rand.New(rand.NewPCG(seed, 7)), array: array, model: map[uint64][]int32{}}
	r.rows = 1 + r.random.IntN(60)
	schema := int32Schema
	schema.Array = array
	r.Column = New(schema)
	t.Cleanup(r.Column.Close)
	r.Add(make([]uint32, r.rows))
	for ordinal := range uint64(ordinals) {
		r.model[1+ordinal] = make([]int32, r.rows)
	}
	return r
}

func (r *rewriting) run() {
	for range 400 {
		ordinal := 1 + r.random.Uint64N(ordinals)
		if r.random.IntN(4) == 0 {
			r.delete(ordinal)
		} else {
			r.write(ordinal)
		}
	}
	r.compare(0)
	visible := r.rows * (r.width + 4) * ordinals
	if r.array {
		visible += 2 * r.rows * 12 * ordinals // the arrays themselves, and the bytes of small blocks
	}
	assert.LessOrEqual(r.T, r.weigh(), 8*visible+ordinals*(minCondensed+8*recordCost))
	for floor := range uint64(ordinals) {
		require.NoError(r.T, r.Seal(1+floor))
		r.compare(1 + floor)
	}
	assert.Zero(r.T, r.tombstones)
}

// weigh is the memory that unsealed records keep alive.
func (r *rewriting) weigh() (total int) {
	for _, record := range r.records {
		total += record.size()
	}
	return total
}

// some is a run or a list of rows, a few of them twice.
func (r *rewriting) some() Rows {
	if r.random.IntN(2) == 0 {
		from := r.random.IntN(r.rows)
		return Run(from, 1+r.random.IntN(r.rows-from))
	}
	list := make([]uint32, 1+r.random.IntN(r.rows))
	for i := range list {
		list[i] = r.random.Uint32N(uint32(r.rows))
	}
	return indexed(r.T, list...)
}

func (r *rewriting) write(ordinal uint64) {
	rows := r.some()
	values := make([]int32, rows.Len())
	rows.Each(func(i, row int) {
		r.value++
		values[i], r.model[ordinal][row] = r.value, r.value
	})
	if !r.array {
		r.Write(rows, ordinal, block(r.T, values...))
		return
	}
	// An array of one, two or three times the value; every second write has its rows share the first one's.
	spans, err := memory.Alloc(rows.Len()*SpanSize, memory.Columns)
	require.NoError(r.T, err)
	arena := Arena{Block: block(r.T, make([]int32, 3*len(values))...)}
	share := r.random.IntN(2) == 0
	for i, value := range values {
		if share && i > 0 {
			Spans(spans, len(values))[i] = Spans(spans, len(values))[0]
			continue
		}
		span := Span{uint64(arena.Used), uint64(4 * (1 + value%3))}
		for range 1 + value%3 {
			binary.NativeEndian.PutUint32(arena.Block.Bytes()[arena.Used:], uint32(value))
			arena.Used += 4
		}
		Spans(spans, len(values))[i] = span
	}
	if share {
		rows.Each(func(_, row int) { r.model[ordinal][row] = values[0] })
	}
	r.WriteArrays(rows, ordinal, spans, arena)
}

// delete names rows that hold a value, as a stage does.
func (r *rewriting) delete(ordinal uint64) {
	rows := r.some()
	held, err := rows.Where(r.Alive(rows, ordinal))
	require.NoError(r.T, err)
	defer held.Release()
	if held.Len() == 0 {
		return
	}
	r.Delete(held, ordinal)
	held.Each(func(_, row int) { r.model[ordinal][row] = -1 })
	if r.random.IntN(4) == 0 { // a publication that is refused takes it back, and then does it after all
		r.Undelete(ordinal)
		r.Delete(held, ordinal)
	}
}

// at is what a row holds as of an ordinal, -1 for nothing.
func (r *rewriting) at(row int, ordinal uint64) int32 {
	for ; ordinal > 0; ordinal-- {
		if value := r.model[ordinal][row]; value != 0 {
			return value
		}
	}
	return -1
}

// compare looks at every ordinal that is not below the floor.
func (r *rewriting) compare(floor uint64) {
	everything := Run(0, r.rows)
	backward := make([]uint32, r.rows)
	for i := range backward {
		backward[i] = uint32(r.rows - 1 - i)
	}
	for ordinal := max(1, floor); ordinal <= ordinals; ordinal++ {
		for _, rows := range []Rows{everything, indexed(r.T, backward...)} {
			alive, values := r.Alive(rows, ordinal), r.values(rows, ordinal)
			rows.Each(func(i, row int) {
				expected := r.at(row, ordinal)
				require.Equal(r.T, expected != -1, alive[i], "row %d at %d", row, ordinal)
				require.Equal(r.T, max(expected, 0), values[i], "row %d at %d", row, ordinal)
			})
		}
	}
	for i := range r.records[:max(0, len(r.records)-1)] {
		require.LessOrEqual(r.T, r.records[i].ordinal, r.records[i+1].ordinal)
	}
}

func (r *rewriting) values(rows Rows, ordinal uint64) []int32 {
	values := make([]int32, rows.Len())
	if !r.array {
		whole := block(r.T, values...)
		defer whole.Release()
		require.NoError(r.T, r.Compose(whole.Bytes(), rows, ordinal))
		return slices.Clone(ints(whole, len(values)))
	}
	for i, bytes := range r.Values(rows, ordinal) {
		if bytes == nil {
			continue
		}
		values[i] = int32(binary.NativeEndian.Uint32(bytes))
		require.Len(r.T, bytes, int(4*(1+values[i]%3)))
	}
	return values
}

// Random halves of a column, for ever at one ordinal that is not sealed.
func TestRecordsOfOneOrdinalStayFewTimesTheColumn(t *testing.T) {
	c, random := newColumn(t, 256), rand.New(rand.NewPCG(1, 1))
	most := 0
	for value := range int32(20_000) {
		var list []uint32
		for row := range uint32(256) {
			if random.IntN(2) == 0 {
				list = append(list, row)
			}
		}
		index, err := memory.Alloc(4*len(list), memory.Indices)
		require.NoError(t, err)
		copy(index.Uint32s(len(list)), list)
		rows := Indexed(index, len(list))
		c.Write(rows, 2, block(t, slices.Repeat([]int32{value}, len(list))...))
		rows.Release()
		most = max(most, len(c.records))
	}
	assert.LessOrEqual(t, most, 16)
	assert.Less(t, c.Bytes(), 64<<10)
	assert.LessOrEqual(t, len(c.rewritten.rows), maxRecent)
}

// Values that a later write of the same ordinal covers go, whatever owned their memory.
func TestCoveredRecordsLetGoOfTheirBuffers(t *testing.T) {
	c := newColumn(t, 8)
	first := block(t, make([]int32, 8)...)
	c.Write(Run(0, 8), 2, first.Retain())
	defer first.Release()
	for range 100 {
		c.Write(indexed(t, 0, 3, 1, 2), 2, block(t, 1, 2, 3, 4))
		c.Write(indexed(t, 7, 5, 4, 6), 2, block(t, 5, 6, 7, 8))
	}
	for c.records[0].block == first {
		c.Write(Run(1, 7), 2, block(t, make([]int32, 7)...))
	}
	assert.Zero(t, ints(first, 8)[0], "a block that something else holds is not written to")
	c.Write(Run(0, 8), 2, block(t, make([]int32, 8)...))
	assert.Len(t, c.records, 1, "and a record that covers all dismisses the others at once")
}

// A clone's targets share their arrays: making room for another write does not multiply them.
func TestSharedArraysMoveOnce(t *testing.T) {
	schema := int32Schema
	schema.Array = true
	c := New(schema)
	t.Cleanup(c.Close)
	const rows, size = 1000, 4096
	c.Add(make([]uint32, rows))
	spans, err := memory.Alloc(rows*SpanSize, memory.Columns)
	require.NoError(t, err)
	for i := range Spans(spans, rows) {
		Spans(spans, rows)[i] = Span{0, size}
	}
	c.WriteArrays(Run(0, rows), 1, spans, Arena{block(t, make([]int32, size/4)...), size})
	require.NoError(t, c.Seal(1))
	for ordinal := uint64(2); ordinal < 20; ordinal++ {
		one, err := memory.Alloc(SpanSize, memory.Columns)
		require.NoError(t, err)
		Spans(one, 1)[0] = Span{0, size}
		c.WriteArrays(Run(int(ordinal), 1), ordinal, one, Arena{block(t, slices.Repeat([]int32{int32(ordinal)}, size/4)...), size})
		require.NoError(t, c.Seal(ordinal))
	}
	assert.Less(t, c.Bytes(), 1<<20)
	values := c.Values(Run(0, rows), 20)
	assert.Equal(t, byte(7), values[7][0])
	assert.Len(t, values[999], size)
}

func TestCondensingWithoutMemoryChangesNothing(t *testing.T) {
	c := newColumn(t, 64)
	for value := range int32(400) {
		rows, b := indexed(t, uint32(value)%64, uint32(value+2)%64), block(t, value, value)
		lift := memory.Limit(int(value % 3))
		c.Write(rows, 2, b)
		lift()
	}
	composed := block(t, make([]int32, 64)...)
	defer composed.Release()
	require.NoError(t, c.Compose(composed.Bytes(), Run(0, 64), 2))
	assert.Equal(t, int32(399), ints(composed, 64)[399%64])
	require.NoError(t, c.Seal(2))
	assert.Equal(t, ints(composed, 64), sealed(c))
}
