package stage

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"ovstage.dev/ovstage/gocore/memory"
	"ovstage.dev/ovstage/gocore/pathdict"
)

func TestMapStartsWithCurrentValues(t *testing.T) {
	f := newFixture(t)
	all := f.query("/a", "/b", "/c")
	f.write(all, "p", 1, many(1, 2, 3)...)
	f.seal(1)
	f.write(f.query("/b"), "p", 4, one(40)) // unsealed, above what session 3 may see
	f.write(f.query("/c"), "p", 2, one(20)) // unsealed, below it

	m := f.mapFloat3(f.query("/c", "/new", "/b", "/a"), "p", 3, Current)
	assert.Equal(t, []float3{one(20), {}, one(2), one(1)}, m.values())
	m.values()[3] = one(9)
	require.Nil(t, m.unmap())

	f.seal(3)
	assert.Equal(t, many(9, 2, 20), f.read(all, "p", 3))
	f.seal(4)
	assert.Equal(t, many(9, 40, 20), f.read(all, "p", 4), "the later ordinal wins")
	assert.Equal(t, []float3{{}}, f.read(f.query("/new"), "p", 4))
}

func TestMapCreatesColumnsAndPrimsAtCommit(t *testing.T) {
	f := newFixture(t)
	all := f.query("/a", "/b")
	m := f.mapFloat3(all, "fresh", 1, Current)
	assert.Equal(t, make([]float3, 2), m.values(), "zeros for new keys")
	attributes, total, err := f.QueryResult(all)
	require.Nil(t, err)
	assert.Empty(t, attributes, "nothing exists before the commit")
	assert.Equal(t, 2, total)
	copy(m.values(), many(1, 2))
	require.Nil(t, m.unmap())
	f.seal(1)
	assert.Equal(t, many(1, 2), f.read(all, "fresh", 1))
}

// A covering map is adopted: the committed column is the mapped buffer itself.
func TestCoveringMapIsAdopted(t *testing.T) {
	f := newFixture(t)
	all := f.query("/a", "/b")
	f.write(all, "p", 1, many(1, 2)...)
	f.seal(1)
	for ordinal, initial := uint64(2), Current; initial <= Discard; ordinal, initial = ordinal+1, initial+1 {
		m := f.mapFloat3(all, "p", ordinal, initial)
		buffer := address(m.Data)
		copy(m.values(), many(float32(ordinal), 5))
		before := memory.Counters().BytesCopied
		require.Nil(t, m.unmap())
		f.seal(ordinal)
		assert.Equal(t, before, memory.Counters().BytesCopied, "no copy at unmap or seal")
		g := f.group(all, "p", ordinal)
		assert.Equal(t, buffer, address(g.Data))
		assert.Equal(t, many(float32(ordinal), 5), rows[float3](g))
	}
}

// A view that is alive at unmap keeps its address and can't change what was committed, at any size.
func TestViewAliveAtUnmap(t *testing.T) {
	for name, n := range map[string]int{"small, copied": 2, "large, pages moved": 1 << 19} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			paths := make([]string, n)
			for i := range paths {
				paths[i] = "/p" + itoa(i)
			}
			all := f.query(paths...)
			m := f.mapFloat3(all, "p", 1, Current)
			m.values()[n-1] = one(3)
			values, buffer := m.values(), address(m.Data)
			held := m.Data.Retain()
			copied := copiedDuring(func() { require.Nil(t, m.unmap()) })
			assert.Equal(t, copied == 0, f.Counters().MapsAdopted == 1)
			f.seal(1)

			values[n-1] = one(666) // a late write through the view
			g := f.group(all, "p", 1)
			assert.NotEqual(t, buffer, address(g.Data))
			assert.Equal(t, one(3), rows[float3](g)[n-1])
			held.Release()
		})
	}
}

// A client that promises not to write afterwards keeps its address.
func TestAdoptKeepsTheAddressDespiteViews(t *testing.T) {
	f := newFixture(t)
	all := f.query("/a")
	m := f.mapFloat3(all, "p", 1, Current)
	m.values()[0] = one(1)
	held := m.Data.Retain()
	op, err := f.Unmap(m.id, true)
	require.Nil(t, err)
	assert.NoError(t, f.OpError(op))
	f.seal(1)
	assert.Equal(t, address(held), address(f.group(all, "p", 1).Data))
	held.Release()
	m.MapGroup.Release(f.dict)
}

func TestSeveralMapsTakeEffectInUnmapOrder(t *testing.T) {
	f := newFixture(t)
	all := f.query("/a", "/b")
	f.write(all, "p", 1, many(1, 2)...)
	first := f.mapFloat3(all, "p", 2, Current)
	second := f.mapFloat3(all, "p", 2, Current)
	part := f.mapFloat3(f.query("/b"), "p", 2, Current)
	copy(first.values(), many(10, 11))
	copy(second.values(), many(20, 21))
	copy(part.values(), many(31))
	require.Nil(t, second.unmap())
	require.Nil(t, part.unmap())
	require.Nil(t, first.unmap())
	f.seal(2)
	assert.Equal(t, many(10, 11), f.read(all, "p", 2))
}

func TestAbortLeavesNoTrace(t *testing.T) {
	f := newFixture(t)
	all := f.query("/a", "/b")
	m := f.mapFloat3(all, "p", 1, Current)
	copy(m.values(), many(1, 2))
	require.Nil(t, f.Abort(m.id))
	m.MapGroup.Release(f.dict)
	attributes, _, err := f.QueryResult(all)
	require.Nil(t, err)
	assert.Empty(t, attributes)
	assert.Nil(t, f.Abort(m.id), "aborting twice does nothing")
	_, err = f.Unmap(m.id, false)
	assert.Equal(t, InvalidHandle, CodeOf(err))
	assert.Zero(t, f.Counters().LiveMaps)
	assert.Nil(t, f.tryWrite(all, "p", 1, payload(float32Type, []float32{1, 2})), "the name is still free for any schema")
}

func TestFloorThatOvertakesAMap(t *testing.T) {
	f := newFixture(t)
	all := f.query("/a")
	f.write(all, "p", 1, one(1))
	m := f.mapFloat3(all, "p", 2, Current)
	m.values()[0] = one(9)
	f.seal(2)
	op, err := f.UnmapGroup(m.id, m.Key, false)
	require.Nil(t, err)
	failure := f.OpError(op)
	require.NotNil(t, failure)
	assert.Equal(t, WriteFloorViolation, CodeOf(failure))
	for _, part := range []string{`"p"`, "ordinal 2", "floor is 2"} {
		assert.Contains(t, failure.Error(), part)
	}
	assert.Equal(t, WriteFloorViolation, CodeOf(m.unmap()), "the session ends all the same")
	_, err = f.Unmap(m.id, false)
	assert.Equal(t, InvalidHandle, CodeOf(err))
	assert.Equal(t, InvalidHandle, CodeOf(f.Abort(m.id)))
	assert.Equal(t, many(1), f.read(all, "p", 2))
}

func TestDiscardedGroupsThatNobodyFetchedCommitNothing(t *testing.T) {
	f := newFixture(t)
	all := f.query("/a")
	id, _, err := f.Map(all, MapDesc{Attribute: f.token("p"), DType: float3Type, Initial: Discard}, 1)
	require.Nil(t, err)
	_, err = f.Unmap(id, false)
	require.Nil(t, err)
	f.seal(1)
	assert.Empty(t, f.groups(all, "p", 1))
}

// A discard buffer holds earlier bytes of its own column or zeros, never those of another.
func TestDiscardNeverShowsAnotherColumnsBytes(t *testing.T) {
	f := newFixture(t)
	paths := make([]string, 4096)
	secret := make([]float3, len(paths))
	for i := range paths {
		paths[i], secret[i] = "/p"+itoa(i), one(42)
	}
	all := f.query(paths...)
	for ordinal := uint64(1); ordinal < 4; ordinal++ {
		f.write(all, "secret", ordinal, secret...)
		f.seal(ordinal)
	}
	f.write(all, "mine", 4, make([]float3, len(paths))...)
	f.seal(4)
	for ordinal := uint64(5); ordinal < 9; ordinal++ {
		m := f.mapFloat3(all, "mine", ordinal, Discard)
		assert.Equal(t, make([]float3, len(paths)), m.values())
		require.Nil(t, m.unmap())
		f.seal(ordinal)
	}
}

func TestMapRefusals(t *testing.T) {
	f := newFixture(t)
	all := f.query("/a")
	f.write(all, "p", 1, one(1))
	f.seal(1)
	refused := func(code Code, desc MapDesc, ordinal uint64, parts ...string) {
		t.Helper()
		_, _, err := f.Map(all, desc, ordinal)
		require.NotNil(t, err)
		assert.Equal(t, code, CodeOf(err))
		for _, part := range parts {
			assert.Contains(t, err.Error(), part)
		}
	}
	refused(WriteFloorViolation, MapDesc{Attribute: f.token("p")}, 1, `"p"`, "ordinal 1", "floor is 1")
	refused(InvalidArgument, MapDesc{Attribute: f.token("q")}, 2, `"q"`, "dtype")
	refused(InvalidArgument, MapDesc{Attribute: f.token("p"), DType: float32Type}, 2, "float32", "float32x3")
	refused(PrimNotFound, MapDesc{Attribute: f.token("p"), Mode: Insert}, 2, "/a", "already exists")
	refused(NotSupported, MapDesc{Attribute: f.token("usd-path")}, 2, `"usd-path"`, "derived")
	refused(InvalidArgument, MapDesc{Attribute: f.token("p"), Initial: 3}, 2, "initial is 3")
	assert.Zero(t, f.Counters().LiveMaps)
}

func TestEmptyQueryMapsNoGroup(t *testing.T) {
	f := newFixture(t)
	id, _, err := f.Map(f.query(), MapDesc{Attribute: f.token("p"), DType: float3Type}, 1)
	require.Nil(t, err)
	g, err := f.FetchMap(id)
	require.Nil(t, err)
	assert.Nil(t, g)
	_, err = f.Unmap(id, false)
	require.Nil(t, err)
	assert.Empty(t, f.groups(f.query(), "p", 1))
}

// Groups, blocks and lists that a client holds outlive the stage.
func TestGroupsOutliveTheStage(t *testing.T) {
	dict := pathdict.New(0)
	defer dict.Close()
	live := payloadBlocks()
	f := &fixture{t, New("short", dict, nil), dict}
	all := f.query("/a", "/b")
	f.write(all, "p", 1, many(1, 2)...)
	f.seal(1)
	read, _, err := f.Read(all, []pathdict.Token{f.token("p")}, Range{End: 1})
	require.Nil(t, err)
	g, err := f.FetchRead(read)
	require.Nil(t, err)
	m := f.mapFloat3(all, "p", 2, Current)
	f.Stage.Close()
	assert.Equal(t, many(1, 2), rows[float3](g))
	m.values()[0] = one(5)
	_, err = f.QueryPaths(g.List)
	assert.Equal(t, InvalidHandle, CodeOf(err))
	g.Release(dict)
	m.MapGroup.Release(dict)
	assert.Equal(t, live, payloadBlocks(), "everything was given back")
}

// payloadBlocks counts the blocks in use, those of the dictionary aside.
func payloadBlocks() int64 {
	c := memory.Counters()
	return c.Blocks() - c.LiveBlocks[memory.Strings]
}

// soil leaves blocks full of somebody's bytes in the pool.
func soil(t *testing.T, size int) {
	var blocks []memory.Block
	for range 64 {
		b, err := memory.Alloc(size, memory.Columns)
		require.NoError(t, err)
		for i := range b.Bytes() {
			b.Bytes()[i] = 0xAA
		}
		blocks = append(blocks, b)
	}
	for _, b := range blocks {
		b.Release()
	}
}

// A recycled buffer may be larger than what the column ever wrote to it.
func TestDiscardBufferThatOutgrowsARecycledOne(t *testing.T) {
	f := newFixture(t)
	soil(t, 256)
	paths := []string{"/a", "/b", "/c", "/d", "/e", "/f", "/g", "/h", "/i", "/j", "/k", "/l"}
	few := f.query(paths[:6]...)
	for range 3 {
		f.write(few, "p", 1, make([]float3, 6)...)
	}
	m := f.mapFloat3(f.query(paths...), "p", 2, Discard)
	assert.Equal(t, make([]float3, len(paths)), m.values())
	require.Nil(t, m.unmap())
}

// Rows between others that are not sealed yet show zeros, in whichever buffer the state has arrived.
func TestHolesShowNobodysBytes(t *testing.T) {
	f := newFixture(t)
	soil(t, 12_000)
	paths := make([]string, 1000)
	for i := range paths {
		paths[i] = "/p" + itoa(i)
	}
	all, first := f.query(paths...), f.query(paths[0])
	f.write(all, "p", 1, make([]float3, len(paths))...)
	f.seal(1)
	held := f.group(all, "p", 1)
	f.write(first, "p", 2, float3{})
	f.seal(2)
	f.write(f.query("/x", "/y"), "p", 100, make([]float3, 2)...)
	f.write(f.query("/z"), "p", 3, float3{})
	f.seal(3)
	f.write(first, "p", 4, float3{})
	f.seal(4)
	g := f.group(f.query("/z", paths[0]), "p", 4)
	assert.Equal(t, make([]byte, g.Rows*12), g.Data.Bytes()[:g.Rows*12])
	assert.NotEqual(t, address(held.Data), address(g.Data))
}
