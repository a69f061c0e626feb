package stage

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"ovstage.dev/ovstage/gocore/pathdict"
)

// Attributes that were written and deleted again leave their names and floors, no columns, once their deletes are beyond what
// ranges are told of.
func TestSpentColumnsGo(t *testing.T) {
	f := newFixture(t)
	q := f.query("/a", "/b")
	f.write(q, "stays", 1, many(1, 2)...)
	f.seal(1)
	ordinal := uint64(1)
	for i := range maxSpent + 50 {
		name := fmt.Sprintf("goes%d", i)
		ordinal++
		f.write(q, name, ordinal, many(1, 2)...)
		f.seal(ordinal)
		ordinal++
		require.Nil(t, f.delete(q, ordinal, name))
		f.seal(ordinal)
	}
	last := fmt.Sprintf("goes%d", maxSpent+49)
	assert.True(t, f.changedAt(q, last, ordinal), "the newest delete is told of")
	f.seal(ordinal + 1)
	assert.LessOrEqual(t, len(f.inUse), maxSpent+1)
	assert.LessOrEqual(t, f.Counters().BytesColumns, uint64(1000), "and only what is alive has buffers")
	assert.Equal(t, uint64(2*50+1)+1, f.frontierOf(), "the oldest 50 are forgotten")
	attributes, _, err := f.QueryResult(q)
	require.Nil(t, err)
	assert.Equal(t, []pathdict.Token{f.token("stays")}, attributes)
	assert.Len(t, f.attributes, maxSpent+51, "all are known")

	_, err = f.AdvanceFloor(ordinal+9, Exclude, []pathdict.Token{f.token("stays")})
	require.Nil(t, err)
	assert.Equal(t, WriteFloorViolation, CodeOf(f.tryWrite(q, "goes0", ordinal+5, scalars(1, 2))), "EXCLUDE raises what is known")
	require.Nil(t, f.tryWrite(q, "goes0", ordinal+10, scalars(1, 2)), "with any schema")
	f.seal(ordinal + 10)
	assert.Equal(t, []float32{1, 2}, f.floats(q, "goes0", ordinal+10))
	assert.Equal(t, uint64(3), f.group(q, "goes0", ordinal+10).Generation, "layout generations go on")
}

func (f *fixture) changedAt(q QueryID, name string, ordinal uint64) bool {
	read, _, err := f.Read(q, []pathdict.Token{f.token(name)}, Range{Start: ordinal, End: ordinal, HasStart: true})
	require.Nil(f, err)
	g, err := f.FetchRead(read)
	require.Nil(f, err)
	_, err = f.ReleaseRead(read)
	require.Nil(f, err)
	if g == nil {
		return false
	}
	g.Release(f.dict)
	return g.Delete
}

func (f *fixture) frontierOf() uint64 {
	id, _, err := f.OldestPreserved()
	require.Nil(f, err)
	frontier, err := f.FetchOrdinal(id)
	require.Nil(f, err)
	return frontier
}

// What a column held goes with its last value, for whom history keeps nothing; who writes to it again finds it as it was.
func TestSpentColumnIsWrittenAgain(t *testing.T) {
	f := newFixture(t)
	require.Nil(t, f.KeepHistory(3))
	q, other := f.query("/a", "/b"), f.query("/x")
	f.write(other, "o", 1, one(1))
	for round := range uint64(5) {
		at := 10 * round
		f.write(q, "p", at+1, many(1, 2)...)
		require.Nil(t, f.tryWrite(q, "v", at+1, ragged([]float32{1}, []float32{2, 3})))
		f.seal(at + 1)
		require.Nil(t, f.delete(q, at+2))
		f.seal(at + 2)
		assert.Equal(t, many(1, 2), f.read(q, "p", at+1), "history shows it still")
		f.seal(at + 6)
		assert.Empty(t, f.groups(q, "p", at+6))
		assert.Empty(t, f.keeping)
		assert.LessOrEqual(t, f.Counters().BytesColumns, uint64(256), "what is left is the other column")
		m := f.mapFloat3(q, "p", at+7, Current)
		assert.Equal(t, make([]float3, 2), m.values())
		_ = f.Abort(m.id)
		m.MapGroup.Release(f.dict)
	}
}
