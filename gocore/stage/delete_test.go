package stage

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"ovstage.dev/ovstage/gocore/pathdict"
)

func (f *fixture) delete(q QueryID, ordinal uint64, names ...string) error {
	tokens := make([]pathdict.Token, len(names))
	for i, name := range names {
		tokens[i] = f.token(name)
	}
	_, err := f.DeleteAttributes(q, tokens, ordinal)
	return err
}

func TestDeleteIsSeenAtItsOrdinal(t *testing.T) {
	f := newFixture(t)
	all, b := f.query("/a", "/b"), f.query("/b")
	f.write(all, "p", 1, many(1, 2)...)
	f.seal(1)
	held := f.group(all, "p", 1)
	require.Nil(t, f.delete(b, 3, "p"))
	assert.Equal(t, many(1, 2), f.read(all, "p", 2))
	f.seal(3)
	after := f.group(all, "p", 3)
	assert.Equal(t, many(1), rows[float3](after))
	assert.Greater(t, after.Generation, held.Generation)
	assert.Equal(t, many(1, 2), rows[float3](held), "a snapshot keeps the deleted row")
	assert.Empty(t, f.groups(b, "p", 3))
}

func TestRewriteAfterDelete(t *testing.T) {
	f := newFixture(t)
	all, b := f.query("/a", "/b"), f.query("/b")
	f.write(all, "p", 1, many(1, 2)...)
	f.seal(1)
	require.Nil(t, f.delete(b, 2, "p"))
	f.write(b, "p", 2, one(20)) // the same ordinal: order of submission
	f.seal(2)
	assert.Equal(t, many(1, 20), f.read(all, "p", 2))
	require.Nil(t, f.delete(b, 3, "p"))
	f.seal(3)
	f.write(b, "p", 4, one(40))
	assert.Equal(t, many(1), f.read(all, "p", 4), "sealed as deleted and rewritten above the floor: no row, no failure")
	f.seal(4)
	assert.Equal(t, many(1, 40), f.read(all, "p", 4))
}

func TestDeletingWhatIsAbsentRecordsNothing(t *testing.T) {
	f := newFixture(t)
	q := f.query("/a")
	require.Nil(t, f.delete(q, 5, "p"))
	require.Nil(t, f.delete(q, 5))
	f.write(q, "p", 3, one(3))
	f.seal(5)
	assert.Equal(t, many(3), f.read(q, "p", 5), "the delete found nothing at or below its ordinal")
}

func TestDeletingThePrim(t *testing.T) {
	f := newFixture(t)
	a, both := f.query("/a"), f.query("/a", "/b")
	f.write(both, "p", 1, many(1, 2)...)
	f.write(both, "q", 1, many(3, 4)...)
	f.seal(1)
	require.Nil(t, f.delete(a, 2))
	attributes, _, err := f.QueryResult(a)
	require.Nil(t, err)
	assert.Empty(t, attributes)
	_, err = f.Write(a, []Write{{f.token("p"), payload(float3Type, many(9))}}, 3, Insert)
	assert.Nil(t, err, "the prim is gone, so INSERT creates it")
	f.seal(2)
	assert.Equal(t, many(4), f.read(both, "q", 2))
}

func TestDeleteForgetsTheSchema(t *testing.T) {
	f := newFixture(t)
	q := f.query("/a")
	f.write(q, "p", 1, one(1))
	f.seal(1)
	require.Nil(t, f.delete(q, 4, "p"))
	require.Nil(t, f.tryWrite(q, "p", 6, scalars(6)))
	err := f.tryWrite(q, "p", 3, scalars(3))
	require.NotNil(t, err, "another schema below the delete would have two values at once")
	assert.Contains(t, err.Error(), "below a delete")
	assert.Equal(t, many(1), f.read(q, "p", 6), "the unsealed rewrite does not veto the sealed value")
	f.seal(4)
	assert.Empty(t, f.groups(q, "p", 4))
	f.seal(6)
	assert.Equal(t, []float32{6}, f.floats(q, "p", 6))
}

func TestDeleteRefusals(t *testing.T) {
	f := newFixture(t)
	q := f.query("/a")
	f.write(q, "p", 1, one(1))
	f.seal(3)
	assert.Equal(t, WriteFloorViolation, CodeOf(f.delete(q, 3, "p")))
	assert.Equal(t, WriteFloorViolation, CodeOf(f.delete(q, 3, "other")), "also where the prim lacks it")
	assert.Equal(t, WriteFloorViolation, CodeOf(f.delete(q, 3)))
	assert.Nil(t, f.delete(f.query("/absent"), 3), "a whole-prim delete is judged by what the prim carries")
	assert.Equal(t, NotSupported, CodeOf(f.delete(q, 4, "usd-path")))
	assert.Equal(t, many(1), f.read(q, "p", 3))
}

func TestMapOverDeletedPrims(t *testing.T) {
	f := newFixture(t)
	q := f.query("/a", "/b")
	f.write(q, "p", 1, many(1, 2)...)
	f.seal(1)
	require.Nil(t, f.delete(f.query("/a"), 2, "p"))
	m := f.mapFloat3(q, "p", 3, Current)
	assert.Equal(t, []float3{{}, one(2)}, m.values())
	m.values()[0] = one(9)
	require.Nil(t, m.unmap())
	f.seal(3)
	assert.Equal(t, many(9, 2), f.read(q, "p", 3))
}

// Prims that are spawned and deleted all the time do not grow the column, and snapshots of them stay whole.
func TestSpawnAndDeleteChurn(t *testing.T) {
	f := newFixture(t)
	base := f.query("/base")
	f.write(base, "p", 1, one(1))
	values := make([]float3, 64)
	var size uint64
	var held *Group
	for ordinal := uint64(1); ordinal <= 3000; ordinal++ {
		paths := make([]string, len(values))
		for i := range paths {
			paths[i], values[i] = fmt.Sprintf("/spawn%d/p%d", ordinal, i), one(float32(ordinal))
		}
		q := f.query(paths...)
		f.write(q, "p", ordinal, values...)
		f.seal(ordinal)
		if ordinal%500 == 0 {
			held = f.group(q, "p", ordinal)
			require.Equal(t, values, rows[float3](held))
		}
		if ordinal == 1500 {
			size = f.Counters().BytesColumns
		}
		require.Nil(t, f.delete(q, ordinal+1))
		_, err := f.ReleaseQuery(q)
		require.Nil(t, err)
	}
	assert.LessOrEqual(t, f.Counters().BytesColumns, size)
	assert.Equal(t, one(3000), rows[float3](held)[63])
	assert.Equal(t, many(1), f.read(base, "p", 3000))
}

// A list that named a prim before it existed finds it when it comes into being in a row that another prim gave up.
func TestRowsThatAreUsedAgainAreFound(t *testing.T) {
	f := newFixture(t)
	paths := make([]string, 2000)
	for i := range paths {
		paths[i] = fmt.Sprintf("/p%d", i)
	}
	f.write(f.query(paths...), "p", 1, make([]float3, len(paths))...)
	f.seal(1)
	require.Nil(t, f.delete(f.query(paths[1000:]...), 2))
	f.seal(2)
	rest, ordinal := f.query(paths[:1000]...), uint64(3)
	for c := f.attributes[f.token("p")].columns[0]; c.Epoch() == 0; ordinal++ {
		f.write(rest, "p", ordinal, make([]float3, 1000)...)
		f.seal(ordinal)
	}
	mixed, fresh := f.query(paths[0], "/new"), f.query("/new")
	require.Len(t, f.read(mixed, "p", ordinal), 1)
	f.write(fresh, "p", ordinal, one(7))
	f.seal(ordinal)
	assert.Equal(t, []float3{{}, one(7)}, f.read(mixed, "p", ordinal))
	f.write(mixed, "p", ordinal+1, many(8, 9)...)
	f.seal(ordinal + 1)
	assert.Equal(t, many(9), f.read(fresh, "p", ordinal+1), "one prim, one row")
}

// What waits for a seal is not remembered beyond the deletes that end it.
func TestPrimBornAndDeletedInOneSeal(t *testing.T) {
	f := newFixture(t)
	a, b, both := f.query("/a"), f.query("/b"), f.query("/a", "/b")
	f.write(a, "p", 1, one(1))
	f.seal(1)
	f.write(b, "p", 3, one(3))
	before := f.group(both, "p", 2)
	require.Nil(t, f.delete(b, 4))
	f.seal(4)
	f.write(b, "p", 6, one(6))
	after := f.group(both, "p", 10)
	assert.Equal(t, many(1), rows[float3](after))
	assert.Equal(t, before.Generation, after.Generation, "no row came or went")
}
