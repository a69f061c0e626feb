package scene

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/stage"
	"ovstage.dev/ovstage/gocore/tensor"
)

var (
	floatType = tensor.DType{Code: tensor.Float, Bits: 32, Lanes: 1}
	idType    = tensor.DType{Code: tensor.UInt, Bits: 64, Lanes: 1}
	pairType  = tensor.DType{Code: tensor.UInt, Bits: 64, Lanes: 2}
)

func (f *fixture) path(text string) pathdict.Path {
	path, err := f.dict.Path(text)
	require.NoError(f, err)
	return path
}

// arrays writes one array to each prim.
func arrays[T any](f *fixture, name string, dtype tensor.DType, role tensor.Semantic, ordinal uint64, paths []string, rows ...[]T) {
	f.Helper()
	payload := stage.Payload{Array: true, Semantic: role}
	for _, row := range rows {
		payload.Views = append(payload.Views, tensor.View{
			Data: unsafe.Pointer(unsafe.SliceData(row)), Device: tensor.Device{Type: tensor.CPU}, DType: dtype,
			Shape: []int64{int64(len(row)) * int64(unsafe.Sizeof(*new(T))) / int64(dtype.Size())},
		})
	}
	q := f.query(paths...)
	_, err := f.Write(q, []stage.Write{{Attribute: f.token(name), Payload: payload}}, ordinal, stage.Upsert)
	require.Nil(f, err)
	_, err = f.ReleaseQuery(q)
	require.Nil(f, err)
}

// ragged are the arrays of the listed prims.
func ragged[T any](f *fixture, name string, ordinal uint64, paths ...string) map[string][]T {
	f.Helper()
	q := f.query(paths...)
	found := map[string][]T{}
	for _, g := range f.fetch(q, name, stage.Range{End: ordinal}) {
		spans := unsafe.Slice((*[2]uint64)(g.Spans.Pointer()), g.Rows)
		for i := range int(g.PrimCount) {
			at := int(g.PrimOffset) + i
			if g.PrimMap.Valid() {
				at = int(g.PrimMap.Uint32s(int(g.PrimCount))[i])
			}
			first := (*T)(unsafe.Add(g.Data.Pointer(), spans[i][0]))
			found[paths[at]] = slices.Clone(unsafe.Slice(first, spans[i][1]/uint64(unsafe.Sizeof(*first))))
		}
	}
	_, err := f.ReleaseQuery(q)
	require.Nil(f, err)
	return found
}

func (f *fixture) clone(source string, ordinal uint64, targets ...string) {
	f.Helper()
	require.Nil(f, f.failure(f.scene.Clone(source, targets, ordinal)))
}

func (f *fixture) floats(ordinal uint64, paths ...string) map[string]float32 {
	f.Helper()
	return values[float32](f, "x", stage.Range{End: ordinal}, paths...)
}

func TestCloneCopiesASubtree(t *testing.T) {
	f := newFixture(t)
	write(f, "x", floatType, 0, 1, []string{"/A", "/A/b", "/A/b/c", "/Ab"}, []float32{1, 2, 3, 4})
	write(f, "flag", boolType, 0, 1, []string{"/A/b"}, []bool{true})
	f.seal(1)
	f.clone("/A", 2, "/T", "/New/place/U")
	f.seal(2)
	require.Equal(t, map[string]float32{"/T": 1, "/T/b": 2, "/T/b/c": 3, "/New/place/U": 1, "/New/place/U/b": 2, "/New/place/U/b/c": 3},
		f.floats(2, "/T", "/T/b", "/T/b/c", "/New", "/New/place", "/New/place/U", "/New/place/U/b", "/New/place/U/b/c", "/Tb"))
	require.Equal(t, map[string]bool{"/T/b": true, "/New/place/U/b": true},
		values[bool](f, "flag", stage.Range{Start: 2, End: 2, HasStart: true}, "/T", "/T/b", "/New/place/U/b", "/A/b"),
		"clones are changes at their ordinal")
}

func TestTheRowsOfATargetStayTogether(t *testing.T) {
	f := newFixture(t)
	write(f, "x", floatType, 0, 1, []string{"/A/z", "/A", "/A/m"}, []float32{1, 2, 3}) // the client's order, not the tree's
	f.seal(1)
	f.clone("/A", 2, "/T", "/U")
	f.seal(2)
	for _, root := range []string{"/A", "/T", "/U"} {
		g := f.fetch(f.query(root+"/z", root, root+"/m"), "x", stage.Range{End: 2})
		require.Len(t, g, 1)
		require.False(t, g[0].DataMap.Valid(), root)
	}
}

func TestCloneTakesTheStateAsOfItsOrdinal(t *testing.T) {
	f := newFixture(t)
	write(f, "x", floatType, 0, 1, []string{"/A", "/A/b", "/A/d"}, []float32{1, 2, 3})
	f.seal(1)
	write(f, "x", floatType, 0, 3, []string{"/A"}, []float32{30}) // counts, though not sealed
	write(f, "x", floatType, 0, 6, []string{"/A", "/A/later"}, []float32{60, 61})
	f.remove(2, "/A/b")
	f.remove(6, "/A/d")
	f.clone("/A", 4, "/T")
	f.seal(10)
	require.Equal(t, map[string]float32{"/T": 30, "/T/d": 3}, f.floats(10, "/T", "/T/b", "/T/d", "/T/later"))
}

func TestPathsInsideTheSourceMoveAlong(t *testing.T) {
	f := newFixture(t)
	write(f, "x", floatType, 0, 1, []string{"/World/A", "/World/A/b", "/World/A2"}, []float32{1, 2, 3})
	targets := []string{"/World/A", "/World/A/b", "/World/A/not/there", "/World/A/b.size", "/World/A.size", "/World/A2", "/World/A2.size", "/World", "/"}
	ids := []pathdict.Path{0}
	for _, target := range targets {
		ids = append(ids, f.path(target))
	}
	arrays(f, "rel", idType, tensor.SemanticRelationshipPathID, 1, []string{"/World/A/b", "/World/A"}, ids, nil)
	token := pathdict.Path(f.token("outputs:out"))
	arrays(f, "con", pairType, tensor.SemanticConnectionPathID, 1, []string{"/World/A"}, []pathdict.Path{f.path("/World/A/b"), token, f.path("/World/A2"), token})
	arrays(f, "numbers", idType, 0, 1, []string{"/World/A"}, []pathdict.Path{f.path("/World/A/b")})
	f.seal(1)
	f.clone("/World/A", 2, "/T", "/World/U")
	f.seal(2)
	for _, root := range []string{"/T", "/World/U"} {
		var moved []string
		for _, id := range ragged[pathdict.Path](f, "rel", 2, root+"/b")[root+"/b"][1:] {
			text, _ := f.dict.PathString(id)
			moved = append(moved, text)
		}
		require.Equal(t, []string{root, root + "/b", root + "/not/there", root + "/b.size", root + ".size", "/World/A2", "/World/A2.size", "/World", "/"}, moved)
		require.Equal(t, []pathdict.Path{f.path(root + "/b"), token, f.path("/World/A2"), token}, ragged[pathdict.Path](f, "con", 2, root)[root])
		require.Equal(t, []pathdict.Path{f.path("/World/A/b")}, ragged[pathdict.Path](f, "numbers", 2, root)[root], "numbers are no paths")
	}
	require.Equal(t, ids, ragged[pathdict.Path](f, "rel", 2, "/World/A/b")["/World/A/b"], "the source stays")
}

func TestArraysOfClonesCanBeRewritten(t *testing.T) {
	f := newFixture(t)
	arrays(f, "points", floatType, 0, 1, []string{"/A", "/A/b"}, []float32{1, 2, 3}, []float32{4})
	f.seal(1)
	f.clone("/A", 2, "/T", "/U")
	arrays(f, "points", floatType, 0, 2, []string{"/T"}, []float32{9, 9})
	f.seal(2)
	for n := uint64(3); n < 20; n++ { // until the arena moves
		arrays(f, "points", floatType, 0, n, []string{"/A/b"}, make([]float32, n))
		f.seal(n)
	}
	require.Equal(t, map[string][]float32{"/A": {1, 2, 3}, "/T": {9, 9}, "/U": {1, 2, 3}, "/T/b": {4}, "/U/b": {4}},
		ragged[float32](f, "points", 20, "/A", "/T", "/U", "/T/b", "/U/b"))
}

func TestCloneRefusals(t *testing.T) {
	f := newFixture(t)
	write(f, "x", floatType, 0, 1, []string{"/A", "/A/b", "/Taken", "/Group/prim"}, []float32{1, 2, 3, 4})
	f.seal(1)
	atCall := func(text, source string, targets ...string) {
		t.Helper()
		_, err := f.scene.Clone(source, targets, 2)
		require.NotNil(t, err)
		require.Equal(t, stage.InvalidArgument, stage.CodeOf(err))
		require.Contains(t, err.Error(), text)
	}
	atWait := func(code stage.Code, text, source string, ordinal uint64, targets ...string) {
		t.Helper()
		failure := f.failure(f.scene.Clone(source, targets, ordinal))
		require.NotNil(t, failure)
		require.Equal(t, code, stage.CodeOf(failure))
		require.Contains(t, failure.Error(), text)
	}
	atCall("source_path", "A", "/T")
	atCall("target_paths", "/A", "/T", "/T/")
	atCall("target_paths[0] and target_paths[2] are both /T", "/A", "/T", "/U", "/T")
	atCall("target_paths[1]: /A/b/c lies inside the source /A", "/A", "/T", "/A/b/c")
	atCall("target_paths[0]: /T/x lies inside target_paths[1], /T", "/A", "/T/x", "/T")
	atCall("lies inside the source /", "/", "/T")
	atWait(stage.OpFailed, "target_paths[1]: prim /Taken already exists", "/A", 2, "/T", "/Taken")
	atWait(stage.OpFailed, "target_paths[0]: prim /Group/prim already exists", "/A", 2, "/Group")
	atWait(stage.OpFailed, "target_paths[0]: prim /A already exists", "/A", 2, "/A")
	atWait(stage.OpFailed, "already exists", "/A/b", 2, "/")
	atWait(stage.OpFailed, "there is no prim at or below /Nobody as of ordinal 2", "/Nobody", 2, "/T")
	atWait(stage.OpFailed, "there is no prim at or below /Never/met", "/Never/met", 2, "/T")
	atWait(stage.WriteFloorViolation, "ordinal 1 is sealed, the write floor is 1", "/A", 1, "/T")
	f.seal(2)
	require.Empty(t, f.floats(2, "/T", "/T/b", "/U", "/U/b"), "a refusal leaves nothing")
	f.clone("/A", 3)
	f.clone("/A", 3, "/T")
	atWait(stage.OpFailed, "prim /T already exists", "/A", 3, "/T")
}

func TestACloneIsAPrimLikeAnyOther(t *testing.T) {
	f := newFixture(t)
	write(f, "x", floatType, 0, 1, []string{"/A", "/A/b"}, []float32{1, 2})
	f.seal(1)
	f.clone("/A", 2, "/T")
	write(f, "x", floatType, 0, 2, []string{"/T"}, []float32{7}) // in order of submission
	f.seal(2)
	f.remove(3, "/A")
	f.clone("/T", 3, "/U")
	f.remove(4, "/T")
	f.remove(4, "/T/b")
	f.seal(4)
	f.clone("/U", 5, "/T") // where deleted prims were
	f.seal(5)
	require.Equal(t, map[string]float32{"/T": 7, "/T/b": 2, "/U": 7, "/U/b": 2}, f.floats(5, "/A", "/T", "/T/b", "/U", "/U/b"))
}

func TestClonedTransformsFollowTheirNewParents(t *testing.T) {
	f := newFixture(t)
	f.locals(1, map[string]matrix{"/A": translation(1, 0, 0), "/A/b": translation(0, 1, 0), "/Far": translation(100, 0, 0)})
	f.seal(1)
	f.compute(1, 1)
	f.clone("/A", 2, "/Far/copy")
	f.seal(2)
	f.compute(2, 2)
	require.Equal(t, translation(101, 1, 0), f.worlds(2, "/Far/copy/b")["/Far/copy/b"])
}

// Whatever the source holds at whatever ordinal, a clone holds what a client would have read there.
func TestClonesHoldWhatTheSourceHeld(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 1))
		f := newFixture(t)
		paths := forest(random, 3+random.IntN(20))
		type change struct {
			ordinal uint64
			path    string
			value   float32
		}
		var done []change
		held := func(at uint64) map[string]float32 {
			slices.SortStableFunc(done, func(a, b change) int { return int(a.ordinal) - int(b.ordinal) })
			held := map[string]float32{}
			for _, c := range done {
				switch {
				case c.ordinal > at:
				case c.value >= 0:
					held[c.path] = c.value
				default:
					delete(held, c.path)
				}
			}
			return held
		}
		floor := uint64(0)
		for range 60 {
			ordinal := floor + 1 + random.Uint64N(6)
			path := paths[random.IntN(len(paths))]
			switch random.IntN(6) {
			case 0:
				floor += random.Uint64N(2)
				f.seal(floor)
				continue
			case 1:
				f.remove(ordinal, path, "x")
				if _, ok := held(ordinal)[path]; ok { // else it deletes nothing, whatever is written below it later
					done = append(done, change{ordinal, path, -1})
				}
			default:
				value := float32(random.IntN(1000))
				write(f, "x", floatType, 0, ordinal, []string{path}, []float32{value})
				done = append(done, change{ordinal, path, value})
			}
		}
		at := floor + 1 + random.Uint64N(6)
		expected, listed := map[string]float32{}, []string{}
		for _, path := range paths {
			if path != "/A" && !strings.HasPrefix(path, "/A/") {
				continue
			}
			for _, target := range []string{"/T", "/Deep/U"} {
				listed = append(listed, target+path[2:])
				if value, ok := held(at)[path]; ok {
					expected[target+path[2:]] = value
				}
			}
		}
		failure := f.failure(f.scene.Clone("/A", []string{"/T", "/Deep/U"}, at))
		if len(expected) == 0 {
			require.Equal(t, stage.OpFailed, stage.CodeOf(failure))
			continue
		}
		require.Nil(t, failure)
		f.seal(floor + 10)
		require.Equal(t, expected, f.floats(floor+10, listed...), "seed %d", seed)
	}
}

func BenchmarkClone(b *testing.B) {
	f := newFixture(b)
	paths := []string{"/Env"}
	for i := range 99 {
		paths = append(paths, fmt.Sprintf("/Env/prim_%d", i))
	}
	for k := range 10 {
		write(f, fmt.Sprintf("m%d", k), matrixType, 0, 1, paths, make([]matrix, len(paths)))
	}
	f.seal(1)
	n := 0
	for b.Loop() {
		n++
		targets := make([]string, 1000)
		for i := range targets {
			targets[i] = fmt.Sprintf("/Envs%d/env_%d", n, i)
		}
		f.clone("/Env", 2, targets...)
	}
}
