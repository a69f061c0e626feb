package stage

import (
	"errors"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"ovstage.dev/ovstage/gocore/memory"
	"ovstage.dev/ovstage/gocore/pathdict"
)

// everyShortage makes a call with ever more memory until it succeeds. Each failure before that must say OUT_OF_MEMORY, and
// after it `unchanged` is asked.
func (f *fixture) everyShortage(call func() error, unchanged func()) (failures int) {
	f.Helper()
	for {
		lift := memory.Limit(failures)
		err := call()
		lift()
		if err == nil {
			return failures
		}
		require.Equal(f, OutOfMemory, CodeOf(err), err.Error())
		unchanged()
		failures++
	}
}

// sizes is what a failed write must leave as it was.
func (f *fixture) sizes() map[string]int {
	sizes := map[string]int{"attributes": len(f.attributes)}
	for name, a := range f.attributes {
		text, _ := f.dict.TokenString(name)
		for _, c := range a.columns {
			sizes[text+" rows"] += c.Rows()
			sizes[text+" columns"]++
		}
	}
	return sizes
}

// A batch that runs out of memory at any point writes nothing and gives out no row; once there is memory, it goes through.
func TestBatchesAreWrittenAsAWholeOrNotAtAll(t *testing.T) {
	f := newFixture(t)
	some, all := f.query("/b", "/d"), f.query("/a", "/b", "/c", "/d", "/e")
	for _, name := range []string{"old", "apart"} {
		f.write(some, name, 1, float3{1}, float3{2})
	}
	require.Nil(t, f.tryWrite(all, "runs", 1, ragged([]float32{1}, nil, nil, nil, nil)))
	f.seal(1)

	five := func(from float32) []float3 { return []float3{{from}, {from + 1}, {from + 2}, {from + 3}, {from + 4}} }
	block, err := memory.Alloc(5*12, memory.Maps)
	require.NoError(t, err)
	defer block.Release()
	owned := payload(float3Type, unsafe.Slice((*float3)(block.Pointer()), 5))
	owned.Owned = block
	copy(unsafe.Slice((*float3)(block.Pointer()), 5), five(30))

	batch := []Write{
		{Attribute: f.token("old"), Payload: payload(float3Type, five(10))}, // prims without a row between others
		{Attribute: f.token("new"), Payload: payload(float3Type, five(20))}, // a column that is not there yet
		{Attribute: f.token("apart"), Payload: owned},                       // memory that is given away
		{Attribute: f.token("runs"), Payload: ragged([]float32{1}, []float32{2}, nil, nil, nil)},
	}
	f.write(some, "apart", 9, float3{8}, float3{9}) // so that it is not the newest value, and copied after all
	before := f.sizes()
	failures := f.everyShortage(func() error {
		_, err := f.Write(all, batch, 5, Upsert)
		return err
	}, func() { require.Equal(t, before, f.sizes()) })
	assert.Greater(t, failures, 4)

	f.seal(5)
	assert.Equal(t, five(10), f.read(all, "old", 5))
	assert.Equal(t, five(20), f.read(all, "new", 5))
	assert.Equal(t, five(30), f.read(all, "apart", 5))
	for _, name := range []string{"old", "new", "apart", "runs"} {
		query, _, failure := f.QueryFilter(every(Predicate{Attribute: f.token(name)}), nil)
		require.Nil(t, failure)
		_, count, failure := f.QueryResult(query)
		require.Nil(t, failure)
		assert.EqualValues(t, 5, count, name)
	}
}

// A map that runs out of memory opens no session; a commit that does writes nothing and can be made again.
func TestMapsSurviveShortage(t *testing.T) {
	f := newFixture(t)
	some, all := f.query("/b", "/d"), f.query("/a", "/b", "/c", "/d", "/e")
	f.write(some, "p", 1, float3{1}, float3{2})
	f.seal(1)
	var id MapID
	before := f.sizes()
	f.everyShortage(func() (err error) {
		id, _, err = f.Map(all, MapDesc{Attribute: f.token("p"), DType: float3Type}, 2)
		return err
	}, func() {
		require.Empty(t, f.maps)
		require.Equal(t, before, f.sizes())
	})
	g, err := f.FetchMap(id)
	require.Nil(t, err)
	m := mapping{f, id, g}
	copy(m.values(), []float3{{5}, {6}, {7}, {8}, {9}})
	f.everyShortage(func() error {
		op, err := f.UnmapGroup(id, g.Key, true)
		require.Nil(t, err)
		failure := f.OpError(op)
		return failure
	}, func() { require.Equal(t, before, f.sizes()) })
	require.Nil(t, m.unmap())
	f.seal(2)
	assert.Equal(t, []float3{{5}, {6}, {7}, {8}, {9}}, f.read(all, "p", 2))
}

// Sealing, reading and deleting under shortage fail or wait; what was written is never lost.
func TestSealedValuesSurviveShortage(t *testing.T) {
	f := newFixture(t)
	all, some := f.query("/a", "/b", "/c", "/d"), f.query("/d", "/b")
	f.write(all, "p", 1, float3{1}, float3{2}, float3{3}, float3{4})
	f.seal(1)
	held := f.group(all, "p", 1) // a reader, so that sealing needs another buffer
	f.write(some, "p", 2, float3{5}, float3{6})
	lift := memory.Limit(0)
	f.seal(2)
	lift()
	var read ReadID
	f.everyShortage(func() (err error) {
		read, _, err = f.Read(some, []pathdict.Token{f.token("p")}, Range{End: 2})
		return err
	}, func() { require.Empty(t, f.reads) })
	_, err := f.ReleaseRead(read)
	require.Nil(t, err)
	assert.Equal(t, []float3{{5}, {6}}, f.read(some, "p", 2))
	assert.Equal(t, []float3{{1}, {2}, {3}, {4}}, rows[float3](held))
	f.everyShortage(func() error {
		_, err := f.DeleteAttributes(some, []pathdict.Token{f.token("p")}, 3)
		return err
	}, func() {})
	f.seal(3)
	assert.Equal(t, []float3{{1}, {3}}, f.read(all, "p", 3))
}

// A group that could not be handed on is served again; of a map also where another thread has fetched the next one meanwhile.
func TestGroupsThatWereReturnedAreServedAgain(t *testing.T) {
	f := newFixture(t)
	all := f.query("/a", "/b")
	names := []pathdict.Token{f.token("p"), f.token("q")}
	for _, name := range []string{"p", "q"} {
		f.write(all, name, 1, float3{1}, float3{2})
	}
	f.seal(1)
	fetched := func(read ReadID) *Group {
		g, err := f.FetchRead(read)
		require.Nil(t, err)
		return g
	}

	read, _, err := f.Read(all, names, Range{End: 1})
	require.Nil(t, err)
	var refused pathdict.Token
	_, err = f.HandRead(read, func(g *Group) error {
		refused = g.Attribute
		assert.False(t, f.mu.TryLock(), "a compaction could ask the stage what it names while neither names the group")
		return own(errors.New("no room"))
	})
	assert.ErrorContains(t, err, "no room")
	assert.Equal(t, refused, fetched(read).Attribute)
	assert.NotEqual(t, refused, fetched(read).Attribute)
	assert.Nil(t, fetched(read))
	_, err = f.ReleaseRead(read)
	require.Nil(t, err)

	id, _, err := f.Map(all, MapDesc{Attribute: f.token("p"), DType: float3Type, Initial: Discard, GroupRows: 1}, 2)
	require.Nil(t, err)
	mapped := func() *MapGroup {
		g, err := f.FetchMap(id)
		require.Nil(t, err)
		return g
	}
	a, b := mapped(), mapped()
	f.ReturnMap(id, a)
	again := mapped()
	assert.Equal(t, a.Key, again.Key)
	assert.Nil(t, mapped())
	f.ReturnMap(id, b)
	again.Release(f.dict)
	_, err = f.Unmap(id, true)
	require.Nil(t, err)
	f.seal(2)
	assert.Equal(t, float3{2}, f.read(all, "p", 2)[1], "what was never fetched is not committed")
}

// A list in another order has its rows looked up one by one, in a table that the column makes then.
func TestAListInAnotherOrderSurvivesShortage(t *testing.T) {
	f := newFixture(t)
	f.write(f.query("/a", "/b", "/c"), "p", 1, float3{1}, float3{2}, float3{3})
	f.seal(1)
	some, before := f.query("/c", "/a"), f.sizes()
	failures := f.everyShortage(func() error {
		return f.tryWrite(some, "p", 2, payload(float3Type, []float3{{30}, {10}}))
	}, func() { require.Equal(t, before, f.sizes()) })
	assert.GreaterOrEqual(t, failures, 3, "the table, the rows, the values")
	f.seal(2)
	assert.Equal(t, []float3{{10}, {2}, {30}}, f.read(f.query("/a", "/b", "/c"), "p", 2))
}
