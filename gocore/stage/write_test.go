package stage

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"ovstage.dev/ovstage/gocore/memory"
	"ovstage.dev/ovstage/gocore/memory/borrowed"
	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/query"
	"ovstage.dev/ovstage/gocore/tensor"
)

func scalars(values ...float32) Payload { return payload(float32Type, values) }

func (f *fixture) floats(q QueryID, name string, end uint64) []float32 {
	f.Helper()
	return rows[float32](f.group(q, name, end))
}

func TestConvenienceShapesFoldIntoLanes(t *testing.T) {
	f := newFixture(t)
	q := f.query("/a", "/b")
	values := []float32{0, 1, 2, 3, 4, 5}
	folded := payload(float32Type, values)
	folded.Views[0].Shape = []int64{2, 3}
	require.Nil(t, f.tryWrite(q, "point", 1, folded))
	matrix := payload(tensor.DType{Code: tensor.Float, Bits: 64, Lanes: 4}, make([]float64, 32))
	matrix.Views[0].Shape = []int64{2, 4}
	require.Nil(t, f.tryWrite(q, "matrix", 1, matrix))
	f.seal(1)
	assert.Equal(t, float3Type, f.group(q, "point", 1).DType)
	assert.Equal(t, []float3{{0, 1, 2}, {3, 4, 5}}, f.read(q, "point", 1))
	assert.Equal(t, matrix4dType, f.group(q, "matrix", 1).DType)
}

func TestSparseWrites(t *testing.T) {
	f := newFixture(t)
	q := f.query("/a", "/b", "/c", "/d")
	require.Nil(t, f.tryWrite(q, "x", 1, scalars(10, 20, 30, 40)))

	gather := scalars(111, 222, 333)
	gather.IndexMap, gather.Count = []uint32{1, 2, 0}, 3
	require.Nil(t, f.tryWrite(q, "x", 2, gather))
	f.seal(2)
	assert.Equal(t, []float32{222, 333, 111, 40}, f.floats(q, "x", 2))

	mask := scalars(0, 0, 0, 44)
	mask.Mask, mask.Count = []uint64{0b11111000}, 4
	require.Nil(t, f.tryWrite(q, "x", 3, mask))
	broadcast := scalars(7)
	broadcast.IndexMap, broadcast.Count = []uint32{0, 0, 9}, 2
	require.Nil(t, f.tryWrite(q, "x", 3, broadcast), "entries beyond count are not judged")
	f.seal(3)
	assert.Equal(t, []float32{7, 7, 111, 44}, f.floats(q, "x", 3))
}

func TestMaskCreatesOnlySelectedPrims(t *testing.T) {
	f := newFixture(t)
	q := f.query("/a", "/b", "/c")
	p := scalars(1, 2, 3)
	p.Mask, p.Count = []uint64{0b101}, 3
	_, err := f.Write(q, []Write{{f.token("x"), p}}, 1, Insert)
	require.Nil(t, err)
	f.seal(1)
	g := f.group(q, "x", 1)
	assert.Equal(t, []uint32{0, 2}, g.PrimMap.Uint32s(2))
	assert.Equal(t, []float32{1, 3}, rows[float32](g))
	p.Mask = []uint64{0b010}
	_, err = f.Write(q, []Write{{f.token("x"), p}}, 2, Insert)
	assert.Nil(t, err, "INSERT is about the selected prims")
}

func TestBatchIsJudgedAsAWhole(t *testing.T) {
	f := newFixture(t)
	q := f.query("/a", "/b")
	x, y := f.token("x"), f.token("y")
	_, err := f.Write(q, []Write{{x, scalars(1, 2)}, {y, scalars(1, 2, 3)}}, 1, Upsert)
	require.NotNil(t, err)
	attributes, _, err := f.QueryResult(q)
	require.Nil(t, err)
	assert.Empty(t, attributes, "nothing was written")
	_, err = f.Write(q, []Write{{x, scalars(1, 2)}, {x, scalars(3, 4)}}, 1, Upsert)
	assert.Contains(t, err.Error(), `"x" occurs twice`)
	_, err = f.Write(q, []Write{{x, scalars(1, 2)}, {y, scalars(3, 4)}}, 1, Insert)
	require.Nil(t, err)
	f.seal(1)
	assert.Equal(t, []float32{3, 4}, f.floats(q, "y", 1))
}

func TestInsert(t *testing.T) {
	f := newFixture(t)
	q := f.query("/a", "/b")
	_, err := f.Write(q, []Write{{f.token("x"), scalars(1, 2)}}, 1, Insert)
	require.Nil(t, err)
	_, err = f.Write(f.query("/new", "/b"), []Write{{f.token("y"), scalars(9, 9)}}, 2, Insert)
	require.NotNil(t, err)
	assert.Equal(t, PrimNotFound, CodeOf(err))
	assert.Contains(t, err.Error(), "/b already exists")
	require.Nil(t, f.tryWrite(q, "x", 2, scalars(10, 20)), "the ordinal is still usable")
	f.seal(2)
	assert.Equal(t, []float32{10, 20}, f.floats(q, "x", 2))
}

func TestRequire(t *testing.T) {
	f := newFixture(t)
	q := f.query("/a", "/b")
	f.write(q, "x", 1, float3{}, float3{})
	_, err := f.Write(q, []Write{{f.token("y"), scalars(1, 2)}}, 2, Require)
	require.Nil(t, err, "the prim has to exist, not the attribute")
	_, err = f.Write(f.query("/a", "/new", "/newer"), []Write{{f.token("y"), scalars(9, 9, 9)}}, 3, Require)
	require.NotNil(t, err)
	assert.Equal(t, PrimNotFound, CodeOf(err))
	assert.Contains(t, err.Error(), "/new does not exist")
	f.seal(3)
	assert.Equal(t, []float32{1, 2}, f.floats(q, "y", 3))
}

// The same name may have another schema on other prims, never on the same ones.
func TestSchemaBelongsToThePrim(t *testing.T) {
	f := newFixture(t)
	a, b, both := f.query("/a"), f.query("/b"), f.query("/a", "/b")
	require.Nil(t, f.tryWrite(a, "x", 1, scalars(1)))
	f.write(b, "x", 1, one(2))
	f.seal(1)
	assert.Len(t, f.groups(both, "x", 1), 2)
	err := f.tryWrite(b, "x", 2, scalars(1))
	require.NotNil(t, err)
	assert.Equal(t, InvalidArgument, CodeOf(err))
	for _, part := range []string{`"x"`, "float32", "float32x3"} {
		assert.Contains(t, err.Error(), part)
	}
}

func TestRolesAreStampedOnceAndKept(t *testing.T) {
	f := newFixture(t)
	q := f.query("/a")
	role := func(ordinal uint64, semantic tensor.Semantic) error {
		p := payload(float3Type, many(1))
		p.Semantic = semantic
		return f.tryWrite(q, "p", ordinal, p)
	}
	require.Nil(t, role(1, 0))
	require.Nil(t, role(2, tensor.SemanticPoint))
	require.Nil(t, role(3, 0), "NONE keeps the role")
	f.seal(3)
	assert.Equal(t, tensor.SemanticPoint, f.group(q, "p", 3).Semantic)
	assert.Contains(t, role(4, tensor.SemanticColor).Error(), "POINT")
}

func TestRefusalsNameWhatIsWrongAndChangeNothing(t *testing.T) {
	f := newFixture(t)
	q := f.query("/a", "/b")
	require.Nil(t, f.tryWrite(q, "x", 5, scalars(1, 2)))
	f.seal(5)
	cuda := scalars(1, 2)
	cuda.Views[0].Device = tensor.Device{Type: tensor.CUDA, ID: 1}
	event := scalars(1, 2)
	event.Event = 0xbeef
	outside := scalars(1)
	outside.IndexMap, outside.Count = []uint32{1}, 1
	both := scalars(1, 2)
	both.IndexMap, both.Mask, both.Count = []uint32{0}, []uint64{1}, 1
	uncounted := scalars(1, 2)
	uncounted.Mask = []uint64{1}
	wide := scalars(1, 2)
	wide.Count = 3
	array := scalars(1, 2)
	array.Array = true
	token := scalars(1, 2)
	token.Semantic = tensor.SemanticTokenID
	for name, c := range map[string]struct {
		attribute string
		ordinal   uint64
		payload   Payload
		code      Code
		parts     []string
	}{
		"flat":          {"x", 6, scalars(1, 2, 3, 4, 5, 6), InvalidArgument, []string{`"x"`, "6 rows", "2 prims", "(2, 3)"}},
		"row count":     {"x", 6, scalars(1, 2, 3), InvalidArgument, []string{`"x"`, "3 rows", "2 prims"}},
		"at the floor":  {"x", 5, scalars(1, 2), WriteFloorViolation, []string{`"x"`, "ordinal 5", "floor is 5"}},
		"below it":      {"x", 3, scalars(1, 2), WriteFloorViolation, []string{"ordinal 3"}},
		"new attribute": {"y", 5, scalars(1, 2), WriteFloorViolation, []string{`"y"`, "floor is 5"}},
		"dtype":         {"x", 6, payload(float3Type, many(1, 2)), InvalidArgument, []string{"float32x3", "float32"}},
		"device":        {"x", 6, cuda, NotSupported, []string{"CUDA:1"}},
		"event":         {"x", 6, event, NotSupported, []string{"wait_event", "0xbeef"}},
		"index_map":     {"x", 6, outside, InvalidArgument, []string{"index_map[0] is 1", "outside the transported row count 1"}},
		"both":          {"x", 6, both, InvalidArgument, []string{"mutually exclusive"}},
		"no count":      {"x", 6, uncounted, InvalidArgument, []string{"count must be non-zero"}},
		"count":         {"x", 6, wide, InvalidArgument, []string{"count is 3", "2 prims"}},
		"array":         {"x", 6, array, InvalidArgument, []string{`"x"`, "float32[]", "float32;"}},
		"derived":       {"usd-parent", 6, scalars(1, 2), NotSupported, []string{`"usd-parent"`, "derived"}},
		"no tensor":     {"x", 6, Payload{}, InvalidArgument, []string{"tensor_count is 0"}},
		"semantic":      {"y", 6, token, InvalidArgument, []string{"TOKEN_ID", "float32"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := f.tryWrite(q, c.attribute, c.ordinal, c.payload)
			require.NotNil(t, err)
			assert.Equal(t, c.code, CodeOf(err), err.Error())
			for _, part := range c.parts {
				assert.Contains(t, err.Error(), part)
			}
		})
	}
	f.seal(6)
	assert.Equal(t, []float32{1, 2}, f.floats(q, "x", 6))
	attributes, _, err := f.QueryResult(q)
	require.Nil(t, err)
	assert.Equal(t, []pathdict.Token{f.token("x")}, attributes)
}

func TestHandlesOfEveryKindAreRefused(t *testing.T) {
	f := newFixture(t)
	q := f.query("/a")
	read, _, err := f.Read(q, nil, Range{End: 1})
	require.Nil(t, err)
	_, err = f.ReleaseRead(read)
	require.Nil(t, err)
	_, err = f.ReleaseQuery(q)
	require.Nil(t, err)
	for name, call := range map[string]func() error{
		"query":         func() error { return f.tryWrite(q, "x", 1, scalars(1)) },
		"read as query": func() error { return f.tryWrite(QueryID(read), "x", 1, scalars(1)) },
		"query twice":   func() error { _, err := f.ReleaseQuery(q); return err },
		"read":          func() error { _, err := f.FetchRead(read); return err },
		"read twice":    func() error { _, err := f.ReleaseRead(read); return err },
		"map":           func() error { _, err := f.FetchMap(12345); return err },
		"ordinal query": func() error { _, err := f.FetchOrdinal(12345); return err },
		"path list":     func() error { _, err := f.QueryPaths(12345); return err },
		"zero":          func() error { _, err := f.ReleaseQuery(0); return err },
	} {
		err := call()
		require.NotNil(t, err, name)
		assert.Equal(t, InvalidHandle, CodeOf(err), name)
	}
}

func TestFloors(t *testing.T) {
	f := newFixture(t)
	q := f.query("/a")
	x, y := f.token("x"), f.token("y")
	floor := func(attr pathdict.Token) uint64 {
		id, _, err := f.AttributeFloor(attr)
		require.Nil(t, err)
		ordinal, err := f.FetchOrdinal(id)
		require.Nil(t, err)
		_, err = f.ReleaseOrdinalQuery(id)
		require.Nil(t, err)
		return ordinal
	}
	require.Nil(t, f.tryWrite(q, "x", 1, scalars(1)))
	require.Nil(t, f.tryWrite(q, "y", 1, scalars(2)))
	_, err := f.AdvanceFloor(3, Include, []pathdict.Token{x})
	require.Nil(t, err)
	assert.Equal(t, []uint64{3, 0, 0}, []uint64{floor(x), floor(y), floor(0)})
	assert.Equal(t, []float32{1}, f.floats(q, "x", 3))
	_, err = f.AdvanceFloor(2, Exclude, []pathdict.Token{x})
	require.Nil(t, err)
	assert.Equal(t, []uint64{3, 2, 0}, []uint64{floor(x), floor(y), floor(0)})
	f.seal(5)
	f.seal(4)
	assert.Equal(t, []uint64{5, 5, 5}, []uint64{floor(x), floor(y), floor(f.token("later"))}, "a floor is never lowered")
	_, err = f.AdvanceFloor(9, 7, nil)
	assert.Contains(t, err.Error(), "scope 7")
}

func TestUpdateLeavesAbsentPrimsAlone(t *testing.T) {
	f := newFixture(t)
	require.Nil(t, f.tryWrite(f.query("/a", "/c"), "x", 1, scalars(1, 3)))
	all := f.query("/a", "/b", "/c")
	_, err := f.Write(all, []Write{{f.token("x"), scalars(10, 20, 30)}}, 2, Update)
	require.Nil(t, err)
	gather := scalars(7, 8)
	gather.IndexMap, gather.Count = []uint32{0, 0, 1}, 3
	_, err = f.Write(all, []Write{{f.token("y"), gather}, {f.token("z"), ragged([]float32{1}, []float32{2}, []float32{3, 4})}}, 2, Update)
	require.Nil(t, err)
	f.seal(2)
	assert.Equal(t, []float32{10, 30}, f.floats(all, "x", 2))
	assert.Equal(t, []float32{7, 8}, f.floats(all, "y", 2))
	assert.Equal(t, [][]float32{{1}, {3, 4}}, f.arrays(all, "z", 2))
	assert.Equal(t, []uint32{0, 2}, f.group(all, "x", 2).PrimMap.Uint32s(2))
}

// Memory that is handed over becomes the column's storage as it is, is never written to, and is given back once.
func TestOwnedMemoryIsTakenOver(t *testing.T) {
	f := newFixture(t)
	q, part := f.query("/a", "/b"), f.query("/b")
	require.Nil(t, f.tryWrite(q, "x", 1, scalars(1, 2)))
	f.seal(1)
	give := func(to QueryID, ordinal uint64, values ...float32) (owned memory.Block) {
		owned = borrowed.Block(4 * len(values))
		theirs := unsafe.Slice((*float32)(owned.Pointer()), len(values))
		copy(theirs, values)
		p := scalars(theirs...)
		p.Views[0].Data, p.Owned = owned.Pointer(), owned
		require.Nil(t, f.tryWrite(to, "x", ordinal, p))
		owned.Release()
		return owned
	}
	before := borrowed.GivenBack()
	owned := give(q, 2, 10, 20)
	f.seal(2)
	g := f.group(q, "x", 2)
	assert.Equal(t, address(owned), address(g.Data))

	require.Nil(t, f.tryWrite(part, "x", 3, scalars(21)))
	f.seal(3)
	assert.Equal(t, []float32{10, 21}, f.floats(q, "x", 3))
	assert.Equal(t, []float32{10, 20}, rows[float32](g), "never written in place")

	give(part, 4, 22)
	assert.Equal(t, before+1, borrowed.GivenBack(), "a part of the column is copied and given back at once")
	f.seal(4)
	assert.Equal(t, []float32{10, 22}, f.floats(q, "x", 4))
}

func TestAliasNamesTheSameColumn(t *testing.T) {
	f := newFixture(t)
	q := f.query("/a")
	local, xform := f.token("omni:fabric:localMatrix"), f.token("omni:xform")
	_, err := f.Write(q, []Write{{local, payload(float3Type, many(1))}, {xform, payload(float3Type, many(2))}}, 1, Upsert)
	require.NotNil(t, err)
	assert.Contains(t, err.Error(), "alias")
	f.write(q, "omni:fabric:localMatrix", 1, one(1))
	f.seal(1)
	assert.Equal(t, many(1), f.read(q, "omni:xform", 1))
	assert.Equal(t, local, f.group(q, "omni:fabric:localMatrix", 1).Attribute)

	for _, name := range []string{"omni:fabric:localMatrix", "omni:xform"} {
		id, _, err := f.QueryFilter(every(f.where(name, query.Has)), []pathdict.Token{f.token(name)})
		require.Nil(t, err)
		attributes, total, err := f.QueryResult(id)
		require.Nil(t, err)
		assert.Equal(t, 1, total)
		assert.Equal(t, []pathdict.Token{f.token(name)}, attributes, "under the name that was asked for")
	}
	require.Nil(t, f.delete(q, 2, "omni:xform"))
	f.seal(2)
	assert.Empty(t, f.groups(q, "omni:fabric:localMatrix", 2))
}

func TestRecordedBuiltInsHoldTokens(t *testing.T) {
	f := newFixture(t)
	q := f.query("/a")
	ids := tensor.DType{Code: tensor.UInt, Bits: 64, Lanes: 1}
	require.Nil(t, f.tryWrite(q, "usd-prim-type", 1, payload(ids, []uint64{1})))
	schemas := payload(ids, []uint64{1, 2})
	schemas.Array, schemas.Semantic = true, tensor.SemanticTokenID
	require.Nil(t, f.tryWrite(q, "usd-schemas", 1, schemas))
	for name, p := range map[string]Payload{"usd-prim-type": scalars(1), "usd-schemas": payload(ids, []uint64{1})} {
		err := f.tryWrite(f.query("/b"), name, 1, p)
		require.NotNil(t, err)
		assert.Contains(t, err.Error(), "holds token ids")
	}
}

func TestSelectedBits(t *testing.T) {
	assert.Equal(t, []uint32{}, selected([]uint64{0}, 5))
	assert.Equal(t, []uint32{0, 3}, selected([]uint64{0b11001}, 4), "bits beyond the last are not looked at")
	assert.Equal(t, []uint32{63, 64, 69}, selected([]uint64{1 << 63, 1 | 1<<5 | 1<<6}, 70))
	assert.Equal(t, []uint32{}, selected(nil, 0))
	all := selected([]uint64{^uint64(0), ^uint64(0)}, 128)
	assert.Len(t, all, 128)
	assert.EqualValues(t, 127, all[127])
}

func TestPartsOfQueries(t *testing.T) {
	f := newFixture(t)
	q := f.query("/A", "/B", "/C")
	part, err := f.QueryWhere(q, []uint64{0b110}, 3)
	require.Nil(t, err)
	same, err := f.QueryWhere(q, []uint64{0b110}, 3)
	require.Nil(t, err)
	assert.Same(t, f.queries[part].Prims, f.queries[same].Prims, "equal masks make equal lists")
	f.write(part, "v", 1, float3{2}, float3{3})
	f.seal(1)
	assert.Equal(t, []float3{{2}, {3}}, f.read(part, "v", 1))
	count, err := f.QueryCount(part)
	require.Nil(t, err)
	assert.Equal(t, 2, count)
	_, err = f.QueryWhere(q, []uint64{0b110}, 2)
	assert.Equal(t, InvalidArgument, CodeOf(err))
	_, err = f.QueryWhere(4711, nil, 0)
	assert.Equal(t, InvalidHandle, CodeOf(err))
	_, err = f.QueryCount(4711)
	assert.Equal(t, InvalidHandle, CodeOf(err))
}
