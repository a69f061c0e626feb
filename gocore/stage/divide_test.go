package stage

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"ovstage.dev/ovstage/gocore/tensor"
)

// typed writes one value of a named type.
func (f *fixture) typed(path, name, kind string, ordinal uint64, value float3) {
	f.Helper()
	p := payload(float3Type, []float3{value})
	p.Type = f.token(kind)
	require.Nil(f, f.tryWrite(f.query(path), name, ordinal, p))
}

// newMixed is a stage where /A.v is a float3 and /B.v a color3f.
func newMixed(t *testing.T) *fixture {
	f := newFixture(t)
	f.typed("/A", "v", "float3", 1, one(1))
	f.typed("/B", "v", "color3f", 1, one(2))
	return f
}

// types tells how many prims have each type of an attribute.
func (f *fixture) types(name string) map[string]int {
	f.Helper()
	list, err := f.Attributes()
	require.Nil(f, err)
	found := map[string]int{}
	for _, a := range list {
		if a.Name == f.token(name) {
			assert.NotContains(f, found, a.Schema.Type.Name, "two columns of one type")
			found[a.Schema.Type.Name] = a.Prims
		}
	}
	return found
}

// value is the newest sealed value of one prim.
func (f *fixture) value(path, name string, ordinal uint64) float3 {
	f.Helper()
	return f.read(f.query(path), name, ordinal)[0]
}

func TestValuesWithoutATypeGoWhereEachPrimHasItsOwn(t *testing.T) {
	f := newMixed(t)
	before := *f.ops.Issued
	f.write(f.query("/B", "/A", "/B"), "v", 2, one(3), one(4), one(5))
	assert.Equal(t, before+1, *f.ops.Issued, "one operation")
	f.seal(2)
	assert.Equal(t, one(4), f.value("/A", "v", 2))
	assert.Equal(t, one(5), f.value("/B", "v", 2), "the last of two values for one prim")
	assert.Equal(t, map[string]int{"float3": 1, "color3f": 1}, f.types("v"))
}

func TestPrimsWithoutAValueGoWhereMostOthersAre(t *testing.T) {
	f := newMixed(t)
	f.write(f.query("/A", "/B", "/C"), "v", 2, one(1), one(2), one(3))
	assert.Equal(t, map[string]int{"float3": 2, "color3f": 1}, f.types("v"), "of equally many to the oldest")
	f.typed("/D", "v", "color3f", 2, one(4))
	f.write(f.query("/A", "/B", "/D", "/E"), "v", 3, one(1), one(2), one(3), one(4))
	assert.Equal(t, map[string]int{"float3": 2, "color3f": 3}, f.types("v"))
	f.write(f.query("/B", "/F"), "v", 3, one(1), one(2))
	assert.Equal(t, map[string]int{"float3": 2, "color3f": 4}, f.types("v"))
}

func TestADividedWriteHonoursMasksAndIndexMaps(t *testing.T) {
	f := newMixed(t)
	q := f.query("/A", "/B", "/C", "/A", "/B")
	masked := payload(float3Type, []float3{one(10), one(11), one(12), one(13)})
	masked.Count, masked.Mask = 4, []uint64{0b1010}
	require.Nil(t, f.tryWrite(q, "v", 2, masked))
	f.seal(2)
	assert.Equal(t, one(13), f.value("/A", "v", 2))
	assert.Equal(t, one(11), f.value("/B", "v", 2))
	assert.Empty(t, f.groups(f.query("/C"), "v", 2))

	gathered := payload(float3Type, []float3{one(20), one(21)})
	gathered.Count, gathered.IndexMap = 5, []uint32{0, 0, 1, 1, 0}
	require.Nil(t, f.tryWrite(q, "v", 3, gathered))
	f.seal(3)
	assert.Equal(t, one(21), f.value("/A", "v", 3))
	assert.Equal(t, one(20), f.value("/B", "v", 3))
	assert.Equal(t, one(21), f.value("/C", "v", 3))
}

func TestADividedWriteHonoursTheMode(t *testing.T) {
	f := newMixed(t)
	w := []Write{{Attribute: f.token("v"), Payload: payload(float3Type, []float3{one(3), one(4), one(5)})}}
	q := f.query("/B", "/C", "/A")
	_, err := f.Write(q, w, 2, Insert)
	require.NotNil(t, err)
	assert.Equal(t, PrimNotFound, CodeOf(err))
	_, err = f.Write(q, w, 2, Update)
	require.Nil(t, err)
	f.seal(2)
	assert.Equal(t, one(3), f.value("/B", "v", 2))
	assert.Equal(t, one(5), f.value("/A", "v", 2))
	assert.Equal(t, map[string]int{"float3": 1, "color3f": 1}, f.types("v"))
}

func TestRolesDivideAWriteToo(t *testing.T) {
	f := newFixture(t)
	for path, role := range map[string]tensor.Semantic{"/A": tensor.SemanticPoint, "/B": tensor.SemanticColor} {
		p := payload(float3Type, []float3{one(1)})
		p.Semantic = role
		require.Nil(t, f.tryWrite(f.query(path), "v", 1, p))
	}
	f.write(f.query("/A", "/B"), "v", 2, one(2), one(3))
	f.seal(2)
	assert.Equal(t, one(2), f.value("/A", "v", 2))
	assert.Equal(t, one(3), f.value("/B", "v", 2))
}

// A long copy is made without the mutex: it is judged part by part again.
func TestALongWriteIsDivided(t *testing.T) {
	f := newFixture(t)
	const n = unlockFrom / 12
	paths, values := make([]string, n), make([]float3, n)
	for i := range paths {
		paths[i], values[i] = fmt.Sprint("/P", i), one(float32(i))
	}
	f.typed(paths[0], "v", "float3", 1, one(0))
	f.typed(paths[1], "v", "color3f", 1, one(0))
	q := f.query(paths...)
	f.write(q, "v", 2, values...)
	f.seal(2)
	assert.Equal(t, map[string]int{"float3": n - 1, "color3f": 1}, f.types("v"))
	for _, at := range []int{0, 1, 2, n - 1} {
		assert.Equal(t, one(float32(at)), f.value(paths[at], "v", 2))
	}
}

func TestADividedBatchIsRefusedWhole(t *testing.T) {
	f := newMixed(t)
	double := tensor.DType{Code: tensor.Float, Bits: 64, Lanes: 3}
	require.Nil(t, f.tryWrite(f.query("/C"), "v", 1, payload(double, [][3]float64{{1, 2, 3}})))
	q := f.query("/A", "/B", "/C")
	three := payload(float3Type, []float3{one(7), one(8), one(9)})
	err := f.tryWrite(q, "v", 2, three)
	require.NotNil(t, err)
	assert.Equal(t, `attribute "v": float32x3 does not match the existing float64x3; convert the values, in NumPy by array.astype("float64"), or delete the attribute first to change its schema`, err.Error())

	two := payload(float3Type, []float3{one(7), one(8)})
	v, w := Write{Attribute: f.token("v"), Payload: two}, Write{Attribute: f.token("w"), Payload: two}
	_, err = f.Write(f.query("/A", "/B"), []Write{w, v, v}, 2, Upsert)
	require.NotNil(t, err)
	assert.Contains(t, err.Error(), `attribute "v" occurs twice in one batch`)
	f.seal(2)
	assert.Equal(t, one(1), f.value("/A", "v", 2))
	assert.Equal(t, one(2), f.value("/B", "v", 2))
	assert.Empty(t, f.types("w"))
}

// Numbers must not become texts, nor texts numbers, because they are written in one go.
func TestTextsAndNumbersAreNotWrittenTogether(t *testing.T) {
	f := newFixture(t)
	id := tensor.DType{Code: tensor.UInt, Bits: 64, Lanes: 1}
	text, number := payload(id, []uint64{7}), payload(id, []uint64{8})
	text.Type, number.Type = f.token("string"), f.token("uint64")
	require.Nil(t, f.tryWrite(f.query("/A"), "n", 1, text))
	require.Nil(t, f.tryWrite(f.query("/B"), "n", 1, number))
	err := f.tryWrite(f.query("/A", "/B"), "n", 2, payload(id, []uint64{1, 2}))
	require.NotNil(t, err)
	assert.Equal(t, InvalidArgument, CodeOf(err))
	require.Nil(t, f.tryWrite(f.query("/A"), "n", 2, payload(id, []uint64{1})))
}

func TestArraysAreDividedToo(t *testing.T) {
	f := newFixture(t)
	for path, kind := range map[string]string{"/A": "float[]", "/B": "half[]"} {
		p := ragged([]float32{1, 2})
		p.Type = f.token(kind)
		require.Nil(t, f.tryWrite(f.query(path), "x", 1, p))
	}
	require.Nil(t, f.tryWrite(f.query("/B", "/A", "/B"), "x", 2, ragged([]float32{3}, []float32{4, 5}, []float32{6, 7, 8})))
	f.seal(2)
	assert.Equal(t, [][]float32{{4, 5}}, f.arrays(f.query("/A"), "x", 2))
	assert.Equal(t, [][]float32{{6, 7, 8}}, f.arrays(f.query("/B"), "x", 2))
}

// groupsOf fetches all groups of a map.
func (f *fixture) groupsOf(id MapID) (groups []mapping) {
	f.Helper()
	for {
		g, err := f.FetchMap(id)
		require.Nil(f, err)
		if g == nil {
			return groups
		}
		groups = append(groups, mapping{f, id, g})
	}
}

func TestAMapHasAGroupForEachColumn(t *testing.T) {
	for _, dtype := range []tensor.DType{float3Type, {}} { // asked for, or what there is
		f := newMixed(t)
		id, _, err := f.Map(f.query("/A", "/B", "/C", "/A"), MapDesc{Attribute: f.token("v"), DType: dtype}, 2)
		require.Nil(t, err)
		groups := f.groupsOf(id)
		require.Len(t, groups, 2)
		plain, color := groups[0], groups[1]
		assert.Equal(t, []string{"float3", "color3f"}, []string{f.text(plain.Type), f.text(color.Type)})
		assert.Equal(t, []uint32{0, 2, 3}, plain.PrimMap.Uint32s(3))
		assert.Equal(t, uint32(1), color.PrimOffset)
		assert.Equal(t, []float3{one(1), {}, one(1)}, plain.values(), "the current values")
		assert.Equal(t, []float3{one(2)}, color.values())
		copy(plain.values(), []float3{one(5), one(6), one(7)})
		copy(color.values(), []float3{one(8)})
		for _, g := range groups {
			g.MapGroup.Release(f.dict)
		}
		op, err := f.Unmap(id, false)
		require.Nil(t, err)
		failure := f.OpError(op)
		require.Nil(t, failure)
		f.seal(2)
		for path, want := range map[string]float3{"/A": one(7), "/B": one(8), "/C": one(6)} {
			assert.Equal(t, want, f.value(path, "v", 2), path)
		}
		assert.Equal(t, map[string]int{"float3": 2, "color3f": 1}, f.types("v"))
	}
}

func TestADividedMapIsCutIntoGroups(t *testing.T) {
	f := newMixed(t)
	id, _, err := f.Map(f.query("/B", "/A", "/C", "/D"), MapDesc{Attribute: f.token("v"), DType: float3Type, GroupRows: 2}, 2)
	require.Nil(t, err)
	groups := f.groupsOf(id)
	require.Len(t, groups, 3)
	for _, g := range groups {
		for i := range g.values() {
			g.values()[i] = one(float32(10 + int(g.PrimOffset) + i))
		}
		_, err := f.UnmapGroup(id, g.Key, false)
		require.Nil(t, err)
		g.MapGroup.Release(f.dict)
	}
	_, err = f.Unmap(id, false)
	require.Nil(t, err)
	f.seal(2)
	for path, want := range map[string]float3{"/B": one(10), "/A": one(11), "/C": one(12), "/D": one(13)} {
		assert.Equal(t, want, f.value(path, "v", 2), path)
	}
}

func TestADividedMapOfArraysKeepsTheirSizes(t *testing.T) {
	f := newFixture(t)
	for _, a := range []struct{ path, kind string }{{"/A", "float[]"}, {"/B", "half[]"}} {
		p := ragged([]float32{1, 2})
		p.Type = f.token(a.kind)
		require.Nil(t, f.tryWrite(f.query(a.path), "x", 1, p))
	}
	desc := MapDesc{Attribute: f.token("x"), DType: float32Type, Mode: Update, HasSizes: true, ElementSizes: []uint64{3, 9, 1, 2}}
	id, _, err := f.Map(f.query("/B", "/absent", "/A", "/B"), desc, 2)
	require.Nil(t, err)
	for _, g := range f.groupsOf(id) {
		g.MapGroup.Release(f.dict)
	}
	op, err := f.Unmap(id, false)
	require.Nil(t, err)
	failure := f.OpError(op)
	require.Nil(t, failure)
	f.seal(2)
	assert.Equal(t, [][]float32{{1}}, f.arrays(f.query("/A"), "x", 2))
	assert.Equal(t, [][]float32{{1, 2}}, f.arrays(f.query("/B"), "x", 2), "the last of two")
	assert.Empty(t, f.groups(f.query("/absent"), "x", 2))
}
