package stage

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"ovstage.dev/ovstage/gocore/memory"
	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/tensor"
)

// float3 is the row type of most tests.
type float3 [3]float32

var (
	float3Type   = tensor.DType{Code: tensor.Float, Bits: 32, Lanes: 3}
	float32Type  = tensor.DType{Code: tensor.Float, Bits: 32, Lanes: 1}
	matrix4dType = tensor.DType{Code: tensor.Float, Bits: 64, Lanes: 16}
)

// fixture is a stage with the calls that a client would make, each of which must succeed.
type fixture struct {
	*testing.T
	*Stage
	dict *pathdict.Dictionary
}

func newFixture(t *testing.T) *fixture {
	dict := pathdict.New(0)
	f := &fixture{t, New(t.Name(), dict, nil), dict}
	t.Cleanup(func() {
		f.Stage.Close()
		dict.Close()
	})
	return f
}

func (f *fixture) token(name string) pathdict.Token {
	token, err := f.dict.Token(name)
	require.NoError(f, err)
	return token
}

// query makes a list of its own and a query over it, and gives the list back, as clients do every tick.
func (f *fixture) query(paths ...string) QueryID {
	list, err := f.dict.NewListFromStrings(paths)
	require.NoError(f, err)
	q, failure := f.QueryPaths(list)
	require.Nil(f, failure)
	require.NoError(f, f.dict.ReleaseRef(list))
	return q
}

// view describes a Go slice of rows.
func view[T any](dtype tensor.DType, rows []T) tensor.View {
	return tensor.View{Data: unsafe.Pointer(unsafe.SliceData(rows)), Device: tensor.Device{Type: tensor.CPU}, DType: dtype, Shape: []int64{int64(len(rows))}}
}

func payload[T any](dtype tensor.DType, rows []T) Payload {
	return Payload{Views: []tensor.View{view(dtype, rows)}}
}

func (f *fixture) tryWrite(q QueryID, name string, ordinal uint64, p Payload) error {
	_, err := f.Write(q, []Write{{Attribute: f.token(name), Payload: p}}, ordinal, Upsert)
	return err
}

func (f *fixture) write(q QueryID, name string, ordinal uint64, rows ...float3) {
	f.Helper()
	require.Nil(f, f.tryWrite(q, name, ordinal, payload(float3Type, rows)))
}

func (f *fixture) seal(ordinal uint64) {
	f.Helper()
	_, err := f.AdvanceFloor(ordinal, All, nil)
	require.Nil(f, err)
}

// groups reads the latest groups of an attribute. They are given back when the test ends.
func (f *fixture) groups(q QueryID, name string, end uint64) []*Group {
	f.Helper()
	read, _, err := f.Read(q, []pathdict.Token{f.token(name)}, Range{End: end})
	require.Nil(f, err)
	var groups []*Group
	for {
		g, err := f.FetchRead(read)
		require.Nil(f, err)
		if g == nil {
			break
		}
		groups = append(groups, g)
	}
	_, err = f.ReleaseRead(read)
	require.Nil(f, err)
	f.Cleanup(func() {
		for _, g := range groups {
			g.Release(f.dict)
		}
	})
	return groups
}

// group reads the one group that the attribute must have.
func (f *fixture) group(q QueryID, name string, end uint64) *Group {
	f.Helper()
	groups := f.groups(q, name, end)
	require.Len(f, groups, 1)
	return groups[0]
}

// rows are the values of a group in the order of its prims.
func rows[T any](g *Group) []T {
	all := unsafe.Slice((*T)(unsafe.Add(g.Data.Pointer(), g.DataOffset)), g.Rows)
	values := make([]T, g.Count)
	for i := range values {
		if g.DataMap.Valid() {
			values[i] = all[g.DataMap.Uint32s(int(g.Count))[i]]
		} else {
			values[i] = all[i]
		}
	}
	return values
}

func (f *fixture) read(q QueryID, name string, end uint64) []float3 {
	f.Helper()
	return rows[float3](f.group(q, name, end))
}

func address(b memory.Block) uintptr { return uintptr(b.Pointer()) }

// mapping is an open session with its group, played by the test as the C ABI does: it holds one reference of the block.
type mapping struct {
	f  *fixture
	id MapID
	*MapGroup
}

func (f *fixture) mapDesc(q QueryID, desc MapDesc, ordinal uint64) mapping {
	f.Helper()
	id, _, err := f.Map(q, desc, ordinal)
	require.Nil(f, err)
	g, err := f.FetchMap(id)
	require.Nil(f, err)
	return mapping{f, id, g}
}

func (f *fixture) mapFloat3(q QueryID, name string, ordinal uint64, initial Initial) mapping {
	f.Helper()
	return f.mapDesc(q, MapDesc{Attribute: f.token(name), DType: float3Type, Initial: initial}, ordinal)
}

// values is the mapped buffer as rows.
func (m mapping) values() []float3 {
	return unsafe.Slice((*float3)(m.Data.Pointer()), m.Rows)
}

// unmap commits and ends the session, as a client without promises does, and returns how the operation ended.
func (m mapping) unmap() error {
	m.f.Helper()
	op, err := m.f.Unmap(m.id, false)
	require.Nil(m.f, err)
	m.MapGroup.Release(m.f.dict)
	failure := m.f.OpError(op)
	return failure
}
