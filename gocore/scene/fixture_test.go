package scene

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/stage"
	"ovstage.dev/ovstage/gocore/tensor"
)

var boolType = tensor.DType{Code: tensor.Bool, Bits: 8, Lanes: 1}

// fixture is a stage and its scene, with the calls that a client would make, each of which must succeed.
type fixture struct {
	testing.TB
	*stage.Stage
	scene *Scene
	dict  *pathdict.Dictionary
}

func newFixture(t testing.TB) *fixture {
	dict := pathdict.New(0)
	s := stage.New(t.Name(), dict, nil)
	t.Cleanup(func() {
		s.Close()
		dict.Close()
	})
	scene, err := New(s, dict)
	require.NoError(t, err)
	return &fixture{t, s, scene, dict}
}

func (f *fixture) token(name string) pathdict.Token {
	token, err := f.dict.Token(name)
	require.NoError(f, err)
	return token
}

func (f *fixture) query(paths ...string) stage.QueryID {
	list, err := f.dict.NewListFromStrings(paths)
	require.NoError(f, err)
	q, failure := f.QueryPaths(list)
	require.Nil(f, failure)
	require.NoError(f, f.dict.ReleaseRef(list))
	return q
}

// write writes one row for each prim.
func write[T any](f *fixture, name string, dtype tensor.DType, role tensor.Semantic, ordinal uint64, paths []string, rows []T) {
	f.Helper()
	view := tensor.View{
		Data: unsafe.Pointer(unsafe.SliceData(rows)), Device: tensor.Device{Type: tensor.CPU}, DType: dtype, Shape: []int64{int64(len(rows))},
	}
	payload := stage.Payload{Views: []tensor.View{view}, Semantic: role}
	q := f.query(paths...)
	_, err := f.Write(q, []stage.Write{{Attribute: f.token(name), Payload: payload}}, ordinal, stage.Upsert)
	require.Nil(f, err)
	_, err = f.ReleaseQuery(q)
	require.Nil(f, err)
}

func (f *fixture) locals(ordinal uint64, at map[string]matrix) {
	f.Helper()
	for path, local := range at {
		write(f, LocalTransform, matrixType, tensor.SemanticMatrix, ordinal, []string{path}, []matrix{local})
	}
}

func (f *fixture) resets(ordinal uint64, path string, reset bool) {
	f.Helper()
	write(f, ResetStack, boolType, 0, ordinal, []string{path}, []bool{reset})
}

func (f *fixture) remove(ordinal uint64, path string, names ...string) {
	f.Helper()
	tokens := make([]pathdict.Token, len(names))
	for i, name := range names {
		tokens[i] = f.token(name)
	}
	q := f.query(path)
	_, err := f.DeleteAttributes(q, tokens, ordinal)
	require.Nil(f, err)
	_, err = f.ReleaseQuery(q)
	require.Nil(f, err)
}

func (f *fixture) seal(ordinal uint64) {
	f.Helper()
	_, err := f.AdvanceFloor(ordinal, stage.All, nil)
	require.Nil(f, err)
}

// failure is how an accepted operation ended.
func (f *fixture) failure(op uint64, err error) error {
	f.Helper()
	require.Nil(f, err)
	failure := f.OpError(op)
	return failure
}

func (f *fixture) compute(from, to uint64) {
	f.Helper()
	require.Nil(f, f.failure(f.scene.Compute(CPUIncremental, from, to)))
}

// fetch reads the groups of one attribute, which are given back when the test ends.
func (f *fixture) fetch(q stage.QueryID, name string, r stage.Range) []*stage.Group {
	f.Helper()
	read, _, err := f.Read(q, []pathdict.Token{f.token(name)}, r)
	require.Nil(f, err)
	var groups []*stage.Group
	for {
		g, err := f.FetchRead(read)
		require.Nil(f, err)
		if g == nil {
			break
		}
		groups = append(groups, g)
		f.Cleanup(func() { g.Release(f.dict) })
	}
	_, err = f.ReleaseRead(read)
	require.Nil(f, err)
	return groups
}

// values are those of the listed prims as of an ordinal, in the order of the list; prims without one have none.
func values[T any](f *fixture, name string, r stage.Range, paths ...string) map[string]T {
	f.Helper()
	q := f.query(paths...)
	found := map[string]T{}
	for _, g := range f.fetch(q, name, r) {
		if g.Delete {
			continue
		}
		rows := unsafe.Slice((*T)(unsafe.Add(g.Data.Pointer(), g.DataOffset)), g.Rows)
		for i := range int(g.PrimCount) {
			at, row := int(g.PrimOffset)+i, i
			if g.PrimMap.Valid() {
				at = int(g.PrimMap.Uint32s(int(g.PrimCount))[i])
			}
			if g.DataMap.Valid() {
				row = int(g.DataMap.Uint32s(int(g.Count))[i])
			}
			found[paths[at]] = rows[row]
		}
	}
	_, err := f.ReleaseQuery(q)
	require.Nil(f, err)
	return found
}

func (f *fixture) worlds(ordinal uint64, paths ...string) map[string]matrix {
	f.Helper()
	return values[matrix](f, WorldTransform, stage.Range{End: ordinal}, paths...)
}

// moved lists the prims whose world transform changed at ordinals.
func (f *fixture) moved(from, to uint64, paths ...string) []string {
	f.Helper()
	found := values[matrix](f, WorldTransform, stage.Range{Start: from, End: to, HasStart: true}, paths...)
	var listed []string
	for _, path := range paths {
		if _, ok := found[path]; ok {
			listed = append(listed, path)
		}
	}
	return listed
}

func translation(x, y, z float64) matrix {
	return matrix{1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, x, y, z, 1}
}

func position(m matrix) [3]float64 { return [3]float64(m[12:15]) }

// quarter turns by 90 degrees about z, for row vectors: x becomes y.
var quarter = matrix{0, 1, 0, 0, -1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}
