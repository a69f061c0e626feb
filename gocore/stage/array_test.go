package stage

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"ovstage.dev/ovstage/gocore/column"
	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/tensor"
)

// ragged is a payload of one array per prim.
func ragged(arrays ...[]float32) Payload {
	p := Payload{Array: true}
	for _, a := range arrays {
		p.Views = append(p.Views, view(float32Type, a))
	}
	return p
}

// arrays are the values of a group in the order of its prims.
func arrays(g *Group) [][]float32 {
	values := make([][]float32, g.Count)
	for i, span := range column.Spans(g.Spans, int(g.Count)) {
		values[i] = slices.Clone(unsafe.Slice((*float32)(unsafe.Add(g.Data.Pointer(), span.Offset)), span.Length/4))
	}
	return values
}

func (f *fixture) arrays(q QueryID, name string, end uint64) [][]float32 {
	f.Helper()
	return arrays(f.group(q, name, end))
}

func TestArrayPerPrim(t *testing.T) {
	f := newFixture(t)
	q := f.query("/a", "/b", "/c")
	require.Nil(t, f.tryWrite(q, "x", 1, ragged([]float32{1, 2}, []float32{}, []float32{6})))
	f.seal(1)
	g := f.group(q, "x", 1)
	assert.True(t, g.Array)
	assert.Equal(t, [][]float32{{1, 2}, {}, {6}}, arrays(g))
	require.Nil(t, f.tryWrite(f.query("/c", "/b"), "x", 2, ragged([]float32{7, 8, 9}, []float32{3})))
	f.seal(2)
	assert.Equal(t, [][]float32{{1, 2}, {3}, {7, 8, 9}}, f.arrays(q, "x", 2))
	assert.Equal(t, [][]float32{{1, 2}, {}, {6}}, arrays(g), "a snapshot keeps its values")
	assert.Equal(t, [][]float32{{7, 8, 9}, {1, 2}}, f.arrays(f.query("/c", "/x", "/a"), "x", 2))
}

func TestPackedUniformRows(t *testing.T) {
	f := newFixture(t)
	q := f.query("/a", "/b")
	require.Nil(t, f.tryWrite(q, "x", 1, ragged([]float32{1, 2, 3, 4})))
	f.seal(1)
	assert.Equal(t, [][]float32{{1, 2}, {3, 4}}, f.arrays(q, "x", 1))

	mapped := ragged([]float32{1, 2, 3, 4, 5, 6})
	mapped.IndexMap, mapped.Count = []uint32{2, 0}, 2
	require.Nil(t, f.tryWrite(q, "x", 2, mapped))
	f.seal(2)
	assert.Equal(t, [][]float32{{5, 6}, {1, 2}}, f.arrays(q, "x", 2))

	uneven := f.tryWrite(q, "x", 3, ragged([]float32{1, 2, 3}))
	require.NotNil(t, uneven)
	assert.Contains(t, uneven.Error(), "does not divide evenly across 2 source row(s)")
}

func TestArraysNeverFold(t *testing.T) {
	f := newFixture(t)
	q := f.query("/a")
	p := ragged([]float32{1, 2, 3, 4, 5, 6})
	p.Views[0].Shape = []int64{2, 3}
	require.Nil(t, f.tryWrite(q, "x", 1, p))
	f.seal(1)
	g := f.group(q, "x", 1)
	assert.Equal(t, float32Type, g.DType)
	assert.Len(t, arrays(g)[0], 6)
}

func TestArrayRefusals(t *testing.T) {
	f := newFixture(t)
	q := f.query("/a", "/b")
	require.Nil(t, f.tryWrite(q, "x", 1, scalars(1, 2)))
	mixed := ragged([]float32{1}, []float32{2})
	mixed.Views[1].DType = tensor.DType{Code: tensor.Int, Bits: 32, Lanes: 1}
	outside := ragged([]float32{1}, []float32{2}, []float32{3})
	outside.IndexMap, outside.Count = []uint32{3}, 1
	asset := payload(tensor.DType{Code: tensor.UInt, Bits: 8, Lanes: 1}, []byte{1, 2})
	asset.Array, asset.Semantic = true, tensor.SemanticAssetPathID
	for name, c := range map[string]struct {
		attribute string
		payload   Payload
		parts     []string
	}{
		"kind":      {"x", ragged([]float32{1}, []float32{2}), []string{"float32[]", "float32;"}},
		"rows":      {"y", ragged([]float32{1}, []float32{2}, []float32{3}), []string{"3 tensors", "2 prims"}},
		"types":     {"y", mixed, []string{"tensor 1 is int32", "float32"}},
		"index_map": {"y", outside, []string{"index_map[0] is 3", "outside the transported row count 3"}},
		"semantic":  {"y", asset, []string{"ASSET_PATH_ID"}},
	} {
		err := f.tryWrite(q, c.attribute, 2, c.payload)
		require.NotNil(t, err, name)
		assert.Equal(t, InvalidArgument, CodeOf(err), name)
		for _, part := range c.parts {
			assert.Contains(t, err.Error(), part, name)
		}
	}
}

// mapArrays opens an array map; elements writes are seen by row.
func (f *fixture) mapArrays(q QueryID, name string, ordinal uint64, initial Initial, sizes ...uint64) mapping {
	f.Helper()
	return f.mapDesc(q, MapDesc{Attribute: f.token(name), DType: float32Type, ElementSizes: sizes, HasSizes: true, Initial: initial}, ordinal)
}

func (m mapping) row(i int) []float32 {
	span := column.Spans(m.Spans, m.Rows)[i]
	return unsafe.Slice((*float32)(unsafe.Add(m.Data.Pointer(), span.Offset)), span.Length/4)
}

func TestMapArrays(t *testing.T) {
	f := newFixture(t)
	q := f.query("/a", "/b", "/c")
	require.Nil(t, f.tryWrite(q, "x", 1, ragged([]float32{1, 2, 3}, []float32{4}, []float32{})))
	m := f.mapArrays(f.query("/b", "/a", "/new"), "x", 2, Current, 2, 2, 1)
	assert.Equal(t, []float32{4, 0}, m.row(0), "what both lengths share, then zeros")
	assert.Equal(t, []float32{1, 2}, m.row(1))
	assert.Equal(t, []float32{0}, m.row(2))
	m.row(0)[1] = 5
	m.row(2)[0] = 9
	require.Nil(t, m.unmap())
	f.seal(2)
	assert.Equal(t, [][]float32{{1, 2}, {4, 5}, {}, {9}}, f.arrays(f.query("/a", "/b", "/c", "/new"), "x", 2))

	for sizes, part := range map[*[]uint64]string{{1}: "element_sizes has 1 entries", {1, 1, 1 << 60}: "element_sizes[2]"} {
		_, _, err := f.Map(q, MapDesc{Attribute: f.token("x"), ElementSizes: *sizes, HasSizes: true}, 3)
		require.NotNil(t, err)
		assert.Contains(t, err.Error(), part)
	}
	_, _, err := f.Map(q, MapDesc{Attribute: f.token("x")}, 3)
	require.NotNil(t, err)
	assert.Contains(t, err.Error(), "element_sizes")
}

func TestEmptyArraysAreValues(t *testing.T) {
	f := newFixture(t)
	q := f.query("/a", "/a", "/b")
	require.Nil(t, f.tryWrite(q, "x", 1, ragged([]float32{}, []float32{}, []float32{})))
	f.seal(1)
	g := f.group(q, "x", 1)
	assert.True(t, g.Data.Valid())
	assert.Equal(t, [][]float32{{}, {}, {}}, arrays(g))
}

// Random array writes, deletes, maps and seals, compared with a plain model.
func TestArraysAgainstModel(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { newArrayPlay(t, seed).run(150) })
	}
}

type arrayPlay struct {
	*fixture
	random *rand.Rand
	pool   []string
	floor  uint64
	state  map[string]map[uint64][]float32 // path -> ordinal -> value at that ordinal; nil = deleted
	value  float32
	held   []heldArrays
}

type heldArrays struct {
	group  *Group
	values [][]float32
}

func newArrayPlay(t *testing.T, seed uint64) *arrayPlay {
	p := &arrayPlay{fixture: newFixture(t), random: rand.New(rand.NewPCG(seed, 2)), state: map[string]map[uint64][]float32{}}
	for i := range 1 + p.random.IntN(12) {
		p.pool = append(p.pool, fmt.Sprintf("/prim%d", i))
	}
	return p
}

// at is the value at an ordinal, nil when there is none.
func (p *arrayPlay) at(path string, ordinal uint64) []float32 {
	best, value := uint64(0), []float32(nil)
	for o, v := range p.state[path] {
		if o <= ordinal && o >= best {
			best, value = o, v
		}
	}
	return value
}

func (p *arrayPlay) put(path string, ordinal uint64, value []float32) {
	if p.state[path] == nil {
		p.state[path] = map[uint64][]float32{}
	}
	p.state[path][ordinal] = value
}

func (p *arrayPlay) fresh(n int) []float32 {
	values := make([]float32, n)
	for i := range values {
		p.value++
		values[i] = p.value
	}
	return values
}

func (p *arrayPlay) run(steps int) {
	for range steps {
		paths := slices.Clone(p.pool)
		p.random.Shuffle(len(paths), func(i, k int) { paths[i], paths[k] = paths[k], paths[i] })
		paths = paths[:1+p.random.IntN(len(paths))]
		ordinal := p.floor + 1 + p.random.Uint64N(3)
		switch p.random.IntN(6) {
		case 0, 1:
			p.writeArrays(paths, ordinal)
		case 2:
			p.mapSome(paths, ordinal)
		case 3:
			require.Nil(p.T, p.delete(p.query(paths...), ordinal, "x"))
			for _, path := range paths {
				if p.at(path, ordinal) != nil {
					p.put(path, ordinal, nil)
				}
			}
		default:
			p.floor += p.random.Uint64N(3)
			p.seal(p.floor)
			p.check()
		}
	}
	for _, h := range p.held {
		require.Equal(p.T, h.values, arrays(h.group), "a snapshot changed while it was held")
	}
}

func (p *arrayPlay) writeArrays(paths []string, ordinal uint64) {
	payload := Payload{Array: true}
	for _, path := range paths {
		values := p.fresh(p.random.IntN(4))
		payload.Views = append(payload.Views, view(float32Type, values))
		p.put(path, ordinal, values)
	}
	if len(paths) == 1 {
		payload.Views = payload.Views[:1]
	}
	require.Nil(p.T, p.tryWrite(p.query(paths...), "x", ordinal, payload))
}

func (p *arrayPlay) mapSome(paths []string, ordinal uint64) {
	sizes := make([]uint64, len(paths))
	for i := range sizes {
		sizes[i] = p.random.Uint64N(5)
	}
	m := p.mapArrays(p.query(paths...), "x", ordinal, Current, sizes...)
	for i, path := range paths {
		expected := make([]float32, sizes[i])
		copy(expected, p.at(path, ordinal))
		require.Equal(p.T, expected, slices.Clone(m.row(i)))
		values := p.fresh(int(sizes[i]))
		copy(m.row(i), values)
		p.put(path, ordinal, values)
	}
	require.Nil(p.T, m.unmap())
}

func (p *arrayPlay) check() {
	q := p.query(p.pool...)
	read, _, err := p.Read(q, []pathdict.Token{p.token("x")}, Range{End: p.floor})
	require.Nil(p.T, err)
	g, err := p.FetchRead(read)
	require.Nil(p.T, err)
	found := map[string][]float32{}
	if g != nil {
		values := arrays(g)
		for k := range int(g.PrimCount) {
			position := int(g.PrimOffset) + k
			if g.PrimMap.Valid() {
				position = int(g.PrimMap.Uint32s(int(g.PrimCount))[k])
			}
			found[p.pool[position]] = values[k]
		}
		if p.random.IntN(3) == 0 {
			p.held = append(p.held, heldArrays{g, values})
			p.Cleanup(func() { g.Release(p.dict) })
		} else {
			g.Release(p.dict)
		}
	}
	for _, path := range p.pool {
		expected, got := p.at(path, p.floor), found[path]
		require.Equal(p.T, expected == nil, got == nil, "prim %s", path)
		require.True(p.T, slices.Equal(expected, got), "prim %s at floor %d: %v, expected %v", path, p.floor, got, expected)
	}
	_, err = p.ReleaseRead(read)
	require.Nil(p.T, err)
}

// A tensor that claims more than there is memory is refused, not packed.
func TestBroadcastBeyondMemory(t *testing.T) {
	f := newFixture(t)
	p := ragged([]float32{1})
	p.Views[0].Shape, p.Views[0].Strides = []int64{1 << 44}, []int64{0}
	err := f.tryWrite(f.query("/a"), "x", 1, p)
	require.NotNil(t, err)
	assert.Equal(t, OutOfMemory, CodeOf(err))

	wide := scalars(5)
	wide.Views[0].Shape, wide.Views[0].Strides = []int64{1 << 34}, []int64{0}
	wide.IndexMap, wide.Count = []uint32{1 << 30}, 1
	require.Nil(t, f.tryWrite(f.query("/a"), "y", 1, wide), "only the rows that are asked for are read")
	f.seal(1)
	assert.Equal(t, []float32{5}, f.floats(f.query("/a"), "y", 1))
}
