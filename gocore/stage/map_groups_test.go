package stage

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"ovstage.dev/ovstage/gocore/column"
	"ovstage.dev/ovstage/gocore/memory"
	"ovstage.dev/ovstage/gocore/pathdict"
)

// rows is a query over n prims.
func (f *fixture) rows(n int) QueryID {
	paths := make([]string, n)
	for i := range paths {
		paths[i] = "/p" + itoa(i)
	}
	return f.query(paths...)
}

// split opens a session with groups of n prims and fetches them all.
func (f *fixture) split(q QueryID, desc MapDesc, n uint64, ordinal uint64) (id MapID, groups []openGroup) {
	f.Helper()
	desc.Attribute, desc.DType, desc.GroupRows = f.token("p"), float3Type, n
	id, _, err := f.Map(q, desc, ordinal)
	require.Nil(f, err)
	for {
		g, err := f.FetchMap(id)
		require.Nil(f, err)
		if g == nil {
			return id, groups
		}
		f.Cleanup(func() { g.Release(f.dict) })
		groups = append(groups, openGroup{MapGroup: g})
	}
}

func (f *fixture) commitGroup(id MapID, g openGroup) error {
	op, err := f.UnmapGroup(id, g.Key, true)
	require.Nil(f, err)
	failure := f.OpError(op)
	return failure
}

func (f *fixture) finish(id MapID) error {
	op, err := f.Unmap(id, true)
	require.Nil(f, err)
	failure := f.OpError(op)
	return failure
}

func copiedDuring(do func()) int {
	before := memory.Counters().BytesCopied
	do()
	return int(memory.Counters().BytesCopied - before)
}

func TestGroupsOfASplitMapCoverTheQueryInOrder(t *testing.T) {
	f := newFixture(t)
	all := f.rows(5)
	f.write(all, "p", 1, many(1, 2, 3, 4, 5)...)
	id, groups := f.split(all, MapDesc{}, 2, 2)
	require.Len(t, groups, 3)
	for i, g := range groups {
		assert.Equal(t, uint32(2*i), g.PrimOffset)
		assert.False(t, g.PrimMap.Valid())
	}
	assert.Equal(t, many(5), groups[2].values())
	copy(groups[1].values(), many(30, 40))
	require.Nil(t, f.commitGroup(id, groups[1]))
	copy(groups[0].values(), many(10, 20))
	require.Nil(t, f.commitGroup(id, groups[0]))
	require.Nil(t, f.finish(id))
	f.seal(2)
	assert.Equal(t, many(10, 20, 30, 40, 5), f.read(all, "p", 2))
}

// Groups that together replace the column are copied once, into a buffer that need not know the old values.
func TestSplitMapIsCopiedOnce(t *testing.T) {
	for name, held := range map[string]bool{"nobody reads": false, "a snapshot is held": true} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			const n = 1000
			all := f.rows(n)
			f.write(all, "p", 1, make([]float3, n)...)
			f.seal(1)
			if held {
				f.group(all, "p", 1)
			}
			copied := copiedDuring(func() {
				id, groups := f.split(all, MapDesc{Initial: Discard}, 300, 2)
				for _, g := range groups {
					for i := range g.values() {
						g.values()[i] = one(7)
					}
					require.Nil(t, f.commitGroup(id, g))
				}
				require.Nil(t, f.finish(id))
				f.seal(2)
			})
			assert.Equal(t, n*12, copied)
			for _, value := range f.read(all, "p", 2) {
				require.Equal(t, one(7), value)
			}
			assert.Zero(t, f.Counters().MapsAdopted, "no group is all of the column")
		})
	}
}

func TestGroupsThatNobodyFetched(t *testing.T) {
	for initial, expected := range map[Initial][]float3{
		Current: many(9, 2, 3),
		Zero:    {one(9), {}, {}},
		Discard: many(9, 2, 3),
	} {
		f := newFixture(t)
		all := f.rows(3)
		f.write(all, "p", 1, many(1, 2, 3)...)
		id, _, err := f.Map(all, MapDesc{Attribute: f.token("p"), Initial: initial, GroupRows: 1}, 2)
		require.Nil(t, err)
		g, err := f.FetchMap(id)
		require.Nil(t, err)
		openGroup{MapGroup: g}.values()[0] = one(9)
		require.Nil(t, f.finish(id))
		g.Release(f.dict)
		f.seal(2)
		assert.Equal(t, expected, f.read(all, "p", 2))
	}
}

func TestGroupCommittedLastWinsAPrimThatIsListedTwice(t *testing.T) {
	f := newFixture(t)
	all := f.query("/a", "/b", "/a")
	id, groups := f.split(all, MapDesc{}, 1, 1)
	for i, g := range groups {
		g.values()[0] = one(float32(i + 1))
	}
	require.Nil(t, f.commitGroup(id, groups[2]))
	require.Nil(t, f.commitGroup(id, groups[0]))
	require.Nil(t, f.finish(id))
	f.seal(1)
	assert.Equal(t, many(1, 2, 1), f.read(all, "p", 1))
}

// A commit that comes too late fails, and the session goes on until its end, which fails as a whole.
func TestFloorThatOvertakesASplitMap(t *testing.T) {
	f := newFixture(t)
	all := f.rows(3)
	f.write(all, "p", 1, many(1, 2, 3)...)
	id, groups := f.split(all, MapDesc{}, 1, 2)
	groups[0].values()[0] = one(10)
	require.Nil(t, f.commitGroup(id, groups[0]))
	f.seal(2)
	groups[1].values()[0] = one(20)
	for range 2 {
		assert.Equal(t, WriteFloorViolation, CodeOf(f.commitGroup(id, groups[1])))
	}
	assert.Equal(t, WriteFloorViolation, CodeOf(f.finish(id)))
	assert.Equal(t, many(10, 2, 3), f.read(all, "p", 2), "what was committed before stays")
	assert.Zero(t, f.Counters().LiveMaps)
}

// The end of a session commits all that is left or none: here another schema came up for one prim.
func TestEndOfASplitMapIsAllOrNothing(t *testing.T) {
	f := newFixture(t)
	all := f.rows(3)
	id, groups := f.split(all, MapDesc{}, 1, 1)
	for i, g := range groups {
		g.values()[0] = one(float32(i + 1))
	}
	require.Nil(t, f.commitGroup(id, groups[0]))
	require.Nil(t, f.tryWrite(f.query("/p2"), "p", 1, payload(float32Type, []float32{5})))
	failure := f.finish(id)
	require.NotNil(t, failure)
	assert.Equal(t, InvalidArgument, CodeOf(failure))
	assert.Contains(t, failure.Error(), "float32x3")
	f.seal(1)
	assert.Equal(t, many(1), f.read(f.query("/p0", "/p1"), "p", 1))
}

// An Update maps the prims that exist, with or without the attribute.
func TestUpdateMapsThePrimsThatExist(t *testing.T) {
	f := newFixture(t)
	f.write(f.query("/b"), "p", 1, one(2))
	f.write(f.query("/d"), "other", 1, one(4))
	all := f.query("/a", "/b", "/c", "/d", "/b")
	id, groups := f.split(all, MapDesc{Mode: Update}, 0, 2)
	require.Len(t, groups, 1)
	g := groups[0]
	assert.Equal(t, []uint32{1, 3, 4}, g.PrimMap.Uint32s(int(g.PrimCount)))
	assert.Equal(t, []float3{one(2), {}, one(2)}, g.values())
	copy(g.values(), many(20, 40, 21))
	require.Nil(t, f.finish(id))
	f.seal(2)
	assert.Equal(t, many(21, 40), f.read(f.query("/b", "/d"), "p", 2))
	assert.Empty(t, f.groups(f.query("/a", "/c"), "p", 2), "nothing was created")

	id, groups = f.split(f.query("/a", "/b", "/d", "/c"), MapDesc{Mode: Update}, 1, 3)
	require.Len(t, groups, 2)
	assert.Equal(t, []uint32{1, 2}, []uint32{groups[0].PrimOffset, groups[1].PrimOffset}, "consecutive ones need no map")
	require.Nil(t, f.finish(id))

	_, groups = f.split(f.query("/a", "/c"), MapDesc{Mode: Update}, 0, 3)
	assert.Empty(t, groups)
}

// Sizes are given, and judged, for every queried prim; those of prims that exist count.
func TestElementSizesOfAnUpdate(t *testing.T) {
	f := newFixture(t)
	f.write(f.query("/b"), "other", 1, one(1))
	all := f.query("/a", "/b")
	desc := MapDesc{Attribute: f.token("x"), DType: float32Type, Mode: Update, HasSizes: true, ElementSizes: []uint64{7, 2}}
	m := f.mapDesc(all, desc, 1)
	assert.Equal(t, uint32(1), m.PrimOffset)
	assert.Equal(t, uint64(8), column.Spans(m.Spans, 1)[0].Length)
	require.Nil(t, m.unmap())
	for _, sizes := range [][]uint64{{1, 1 << 60}, {2}} {
		desc.ElementSizes = sizes
		_, _, err := f.Map(all, desc, 2)
		require.NotNil(t, err)
		assert.Contains(t, err.Error(), map[int]string{2: "element_sizes[1]", 1: "1 entries"}[len(sizes)])
	}
}

// An Update is judged when it opens: a prim that was deleted meanwhile comes back.
func TestPrimThatVanishesDuringAnUpdate(t *testing.T) {
	f := newFixture(t)
	a := f.query("/a")
	f.write(a, "p", 1, one(1))
	id, groups := f.split(a, MapDesc{Mode: Update}, 0, 3)
	_, err := f.DeleteAttributes(a, nil, 2)
	require.Nil(t, err)
	groups[0].values()[0] = one(5)
	require.Nil(t, f.finish(id))
	f.seal(3)
	assert.Equal(t, many(5), f.read(a, "p", 3))
}

// reusable leaves a buffer of "p" that nobody holds and that lacks the values of prims 3 and 4.
func (f *fixture) reusable(n int) QueryID {
	f.Helper()
	all := f.rows(n)
	f.write(all, "p", 1, make([]float3, n)...)
	f.seal(1)
	held, err := f.FetchRead(f.readOf(all))
	require.Nil(f, err)
	f.write(f.query("/p3", "/p4"), "p", 2, many(3, 4)...)
	f.seal(2) // into another buffer, because the snapshot is held
	held.Release(f.dict)
	return all
}

// A buffer that held an earlier state is brought up to date by the rows that changed since, when nobody holds it.
func TestCurrentMapCopiesWhatChanged(t *testing.T) {
	f := newFixture(t)
	all := f.reusable(1000)
	f.write(f.query("/p5"), "p", 3, one(5)) // not sealed
	var m mapping
	copied := copiedDuring(func() { m = f.mapFloat3(all, "p", 3, Current) })
	assert.Equal(t, 3*12, copied)
	expected := []float3{{}, {}, {}, one(3), one(4), one(5), {}}
	assert.Equal(t, expected, m.values()[:7])
	require.Nil(t, m.unmap())
	f.seal(3)
	assert.Equal(t, expected, f.read(all, "p", 3)[:7])
}

// A deleted value is not there to start from.
func TestCurrentMapOfDeletedValues(t *testing.T) {
	f := newFixture(t)
	all := f.reusable(1000)
	_, err := f.DeleteAttributes(f.query("/p3"), []pathdict.Token{f.token("p")}, 3)
	require.Nil(t, err)
	f.seal(3)
	m := f.mapFloat3(all, "p", 4, Current)
	assert.Equal(t, []float3{{}, one(4)}, m.values()[3:5])
	require.Nil(t, m.unmap())
}

// A column that is half deleted and half rewritten at one ordinal has holes, and shows nobody's bytes there.
func TestHolesOfAnOrdinalThatNamesEveryRow(t *testing.T) {
	f := newFixture(t)
	const n = 1000
	soil(t, n*12)
	all := f.rows(n)
	f.write(all, "p", 1, make([]float3, n)...)
	f.seal(1)
	f.group(all, "p", 1) // held to the end: the next state is in another buffer
	first, last := f.parts(n)
	_, err := f.DeleteAttributes(first, nil, 2)
	require.Nil(t, err)
	f.write(last, "p", 2, make([]float3, n/2)...)
	f.seal(2)
	g := f.group(f.query("/p999", "/p500"), "p", 2)
	assert.Equal(t, make([]byte, g.Rows*12), g.Data.Bytes()[:g.Rows*12])
}

// parts are the two halves of rows.
func (f *fixture) parts(n int) (first, last QueryID) {
	paths := make([]string, n)
	for i := range paths {
		paths[i] = "/p" + itoa(i)
	}
	return f.query(paths[:n/2]...), f.query(paths[n/2:]...)
}

func TestGroupsThatAreNotOfTheSession(t *testing.T) {
	f := newFixture(t)
	id, _, err := f.Map(f.rows(3), MapDesc{Attribute: f.token("p"), DType: float3Type, GroupRows: 1}, 1)
	require.Nil(t, err)
	g, err := f.FetchMap(id)
	require.Nil(t, err)
	for _, key := range []uint64{0, g.Key - 1, g.Key + 1, g.Key + 3} { // the second is not fetched, the fourth not there
		_, err := f.UnmapGroup(id, key, true)
		require.NotNil(t, err, key)
		assert.Equal(t, InvalidHandle, CodeOf(err))
	}
	g.Release(f.dict)
	require.Nil(t, f.finish(id))
}

func (f *fixture) readOf(q QueryID) ReadID {
	read, _, err := f.Read(q, []pathdict.Token{f.token("p")}, Range{End: 1})
	require.Nil(f, err)
	f.Cleanup(func() { _, _ = f.ReleaseRead(read) })
	return read
}

// A map of all prims and of new ones behind them is one copy of what there is, and becomes the column.
func TestCurrentMapThatAddsPrims(t *testing.T) {
	f := newFixture(t)
	f.write(f.rows(100), "p", 1, make([]float3, 100)...)
	f.seal(1)
	more := f.rows(150)
	var m mapping
	assert.Equal(t, 100*12, copiedDuring(func() { m = f.mapFloat3(more, "p", 2, Current) }))
	m.values()[149] = one(9)
	assert.Zero(t, copiedDuring(func() {
		require.Nil(t, m.unmap())
		f.seal(2)
	}))
	assert.Equal(t, one(9), f.read(more, "p", 2)[149])
	assert.Equal(t, uint64(1), f.Counters().MapsAdopted)
}
