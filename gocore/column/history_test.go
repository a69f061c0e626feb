package column

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"ovstage.dev/ovstage/gocore/memory"
	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/tensor"
)

// Random writes, deletes, seals, derived values at a sealed ordinal, and shortages of memory: what is kept of each ordinal, whole
// and in parts, is what the column showed when it was the newest. Some of what was made is held, and stays as it was.
func TestHistoryAgainstWhatWasSealed(t *testing.T) {
	for seed := range uint64(150) {
		for _, array := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d, arrays %v", seed, array), func(t *testing.T) {
				p := newPast(t, seed, array)
				for range 120 {
					p.step()
				}
				for _, h := range p.held {
					require.Equal(t, h.values, p.values(h.state, h.bytes))
				}
				for _, h := range p.held {
					h.block.Release()
					h.arena.Block.Release()
				}
			})
		}
	}
}

// past is a column with history, and what it showed at each ordinal.
type past struct {
	*testing.T
	random *rand.Rand
	c      *Column
	rows   int
	floor  uint64
	value  int32
	paths  uint32
	keep   uint64
	seen   map[uint64]seenState
	held   []heldState
}

type seenState struct {
	live, gone []bool
	given      []bool   // the row belongs to another prim by now: nobody asks whether it was deleted
	values     []string // of rows that do not hold one: empty
}

type heldState struct {
	block  memory.Block
	arena  Arena
	state  seenState
	bytes  func(row int) string
	values []string
}

func newPast(t *testing.T, seed uint64, array bool) *past {
	random := rand.New(rand.NewPCG(seed, 7))
	schema := Schema{DType: tensor.DType{Code: tensor.Int, Bits: 32, Lanes: 1}, Array: array}
	p := &past{T: t, random: random, c: New(schema), rows: 1 + random.IntN(200), keep: 2 + random.Uint64N(12), seen: map[uint64]seenState{}}
	t.Cleanup(p.c.Close)
	paths := make([]uint32, p.rows)
	for i := range paths {
		paths[i] = uint32(100 + i)
	}
	p.c.Add(paths)
	p.paths = uint32(1000)
	p.c.KeepHistory(p.keep, 0)
	p.note()
	return p
}

func (p *past) step() {
	switch n := p.random.IntN(20); {
	case n < 8:
		p.write(p.some(), p.floor+1+p.random.Uint64N(3))
	case n < 10:
		p.delete(p.floor + 1 + p.random.Uint64N(2))
	case n < 11 && p.floor > 0 && p.c.LastOrdinal() == p.c.sealed.ordinal:
		p.write(p.some(), p.c.sealed.ordinal)
		require.NoError(p, p.c.Amend(p.floor))
		p.note()
		for ordinal := p.c.sealed.ordinal; ordinal < p.floor; ordinal++ {
			p.seen[ordinal] = p.seen[p.floor]
		}
	case n < 12:
		lift := memory.Limit(p.random.IntN(3))
		_ = p.c.Seal(p.floor + 1)
		lift()
		p.seal(p.floor + 1)
	default:
		p.seal(p.floor + 1)
	}
	p.compare()
}

// some is a run, a rising list, or any list.
func (p *past) some() Rows {
	n := 1 + p.random.IntN(p.rows)
	switch p.random.IntN(5) {
	case 0:
		return Run(0, p.rows)
	case 1:
		return Run(p.random.IntN(p.rows-n+1), n)
	}
	n = 1 + p.random.IntN(min(n, 9))
	list := make([]uint32, n)
	for i := range list {
		list[i] = p.random.Uint32N(uint32(p.rows))
	}
	if p.random.IntN(2) == 0 {
		slices.Sort(list)
		list = slices.Compact(list)
	}
	return indexed(p.T, list...)
}

func (p *past) write(rows Rows, ordinal uint64) {
	values := make([]int32, rows.Len())
	for i := range values {
		p.value++
		values[i] = p.value
	}
	if !p.c.schema.Array {
		p.c.Write(rows, ordinal, block(p.T, values...))
		return
	}
	bytes := make([][]byte, len(values))
	for i, value := range values {
		bytes[i] = slices.Repeat([]byte{byte(value)}, 4*p.random.IntN(4))
	}
	spans, arena := arrays(p.T, bytes...)
	p.c.WriteArrays(rows, ordinal, spans, arena)
}

func (p *past) delete(ordinal uint64) {
	rows := p.some()
	there, err := rows.Where(p.c.Alive(rows, ordinal))
	require.NoError(p, err)
	defer there.Release()
	if there.Len() > 0 {
		p.c.Delete(there, ordinal)
	}
}

func (p *past) seal(floor uint64) {
	p.floor = floor
	require.NoError(p, p.c.Seal(floor))
	p.note()
}

// note remembers what the column shows now. Rows that were given up go to other prims at once: no state that is kept shows them.
func (p *past) note() {
	for row, path := range p.c.paths {
		if path != pathdict.NoPath {
			continue
		}
		for ordinal := p.c.oldest(p.floor); ordinal < p.floor; ordinal++ {
			require.False(p, p.seen[ordinal].live[row], "row %d is given up, but ordinal %d shows it", row, ordinal)
			p.seen[ordinal].given[row], p.seen[ordinal].gone[row] = true, false
		}
	}
	for len(p.c.free) > 0 {
		p.paths++
		p.c.Add([]uint32{p.paths})
	}
	p.seen[p.floor] = p.shown(p.c.Sealed(), make([]bool, p.rows), p.from(p.c.Sealed()))
}

// from returns how to read rows of a state that has a block.
func (p *past) from(s Snapshot) func(row int) string {
	if !s.Block().Valid() {
		return func(int) string { return "" }
	}
	return p.read(s.Block(), s.Arena())
}

func (p *past) read(block memory.Block, arena Arena) func(row int) string {
	if p.c.schema.Array {
		return func(row int) string { return string(Spans(block, row+1)[row].of(arena)) }
	}
	return func(row int) string { return fmt.Sprint(ints(block, row+1)[row]) }
}

func (p *past) shown(s Snapshot, given []bool, value func(row int) string) seenState {
	seen := seenState{make([]bool, p.rows), make([]bool, p.rows), given, nil}
	for row := range p.rows {
		seen.live[row], seen.gone[row] = s.Live(row), s.Gone(row) && !given[row]
	}
	seen.values = p.values(seen, value)
	return seen
}

func (p *past) values(s seenState, value func(row int) string) (values []string) {
	for row, live := range s.live {
		if live {
			values = append(values, value(row))
		} else {
			values = append(values, "")
		}
	}
	return values
}

// compare asks for the states as of all ordinals that are kept.
func (p *past) compare() {
	for ordinal := p.c.oldest(p.floor); ordinal <= p.floor; ordinal++ {
		state, then := p.c.At(ordinal), p.seen[ordinal]
		p.compareSome(state, then)
		if p.random.IntN(3) > 0 {
			continue
		}
		shown := p.shown(state, then.given, func(row int) string { return then.values[row] })
		require.Equal(p, then, shown)
		whole, err := p.c.Make(state)
		require.NoError(p, err)
		require.Equal(p, then, p.shown(whole, then.given, p.from(whole)))
		if p.random.IntN(30) == 0 && whole.Block().Valid() {
			block, arena := whole.Block().Retain(), Arena{whole.Arena().Block.Retain(), whole.Arena().Used}
			p.held = append(p.held, heldState{block, arena, then, p.read(block, arena), then.values})
		}
	}
}

func (p *past) compareSome(state Snapshot, then seenState) {
	var list []uint32
	var values []string
	for range p.random.IntN(5) {
		if row := p.random.IntN(p.rows); then.live[row] {
			list, values = append(list, uint32(row)), append(values, then.values[row])
		}
	}
	if len(list) == 0 {
		return
	}
	packed, err := p.c.Pack(state, indexed(p.T, list...), memory.Columns)
	require.NoError(p, err)
	defer packed.Release()
	value := p.read(packed, state.Arena())
	for i := range list {
		require.Equal(p, values[i], value(i))
	}
}

// What history keeps of a seal is what the seal changed, with its rows where the list is not the writer's own.
func TestHistoryCostsWhatChanged(t *testing.T) {
	const n, changed, keep = 1 << 15, 256, 64
	c := newColumn(t, n)
	c.KeepHistory(keep, 1)
	bare := c.Bytes()
	list := make([]uint32, changed)
	for i := range list {
		list[i] = uint32(i * (n / changed))
	}
	rows := indexed(t, list...)
	for ordinal := range uint64(3 * keep) {
		c.Write(rows, ordinal+2, block(t, make([]int32, changed)...))
		require.NoError(t, c.Seal(ordinal+2))
	}
	assert.Len(t, c.history, keep-1)
	assert.Zero(t, c.blocks)
	assert.LessOrEqual(t, float64(c.Bytes()-bare), 1.2*keep*changed*4)
	for _, past := range c.history {
		assert.True(t, past.undo.rows.same(rows), "the list is that of the write")
	}
	few, err := c.Pack(c.At(3*keep-20), rows, memory.Columns)
	require.NoError(t, err)
	few.Release()
	assert.False(t, c.made.block.Valid(), "few rows are read without the whole")
	_, err = c.Make(c.At(3*keep - 20))
	require.NoError(t, err)
	assert.Greater(t, c.Bytes()-bare, 4*n)
	c.Write(rows, 4*keep, block(t, make([]int32, changed)...))
	require.NoError(t, c.Seal(4*keep))
	assert.False(t, c.made.block.Valid(), "what was made goes when the floor does")
}

// Derived values may be computed again and again at one ordinal: one step of the history stands for all.
func TestAmendmentsDoNotPileUp(t *testing.T) {
	c := newColumn(t, 100)
	c.KeepHistory(5, 1)
	for ordinal := uint64(2); ordinal < 5; ordinal++ {
		c.Write(Run(0, 2), ordinal, block(t, int32(ordinal), int32(ordinal)))
		require.NoError(t, c.Seal(ordinal))
		for i := range 20 {
			c.Write(Run(i, 3), ordinal, block(t, -1, -2, -3))
			require.NoError(t, c.Amend(ordinal))
		}
	}
	assert.Len(t, c.history, 3)
	whole, err := c.Make(c.At(1))
	require.NoError(t, err)
	for row, value := range ints(whole.Block(), 100) {
		require.EqualValues(t, row, value)
	}
}
