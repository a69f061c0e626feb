package stage

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ovstage.dev/ovstage/gocore/column"
	"ovstage.dev/ovstage/gocore/pathdict"
)

// model is the contract in its plainest form: every write of every prim, searched at every read.
type model struct {
	floor  uint64
	seq    int
	writes map[string][]written
}

type written struct {
	ordinal uint64
	seq     int
	value   float3
	gone    bool
}

func (m *model) write(path string, ordinal uint64, value float3) {
	m.seq++
	m.writes[path] = append(m.writes[path], written{ordinal, m.seq, value, false})
}

// remove records nothing for a prim that holds no value at the ordinal.
func (m *model) remove(path string, ordinal uint64) {
	if _, ok := m.at(path, ordinal); ok {
		m.seq++
		m.writes[path] = append(m.writes[path], written{ordinal, m.seq, float3{}, true})
	}
}

// at is the newest value at or below an ordinal, ties by submission.
func (m *model) at(path string, ordinal uint64) (value float3, ok bool) {
	var best written
	for _, w := range m.writes[path] {
		if w.ordinal <= ordinal && (!ok || w.ordinal > best.ordinal || w.ordinal == best.ordinal && w.seq > best.seq) {
			best, ok = w, true
		}
	}
	return best.value, ok && !best.gone
}

// exists tells whether the newest state of a prim is a value.
func (m *model) exists(path string) bool {
	_, ok := m.at(path, column.Latest)
	return ok
}

// Random writes, deletes, maps, aborts, seals and long-held snapshots, compared with the model after every seal. Lists are random
// subsets, in random order, some with duplicates; ordinals come out of order.
func TestStageAgainstModel(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			playOut(t, seed, 250, func(*play) {})
		})
		t.Run(fmt.Sprint(seed, " with history"), func(t *testing.T) {
			playOut(t, seed, 150, func(p *play) {
				p.history = 5
				require.Nil(p.T, p.KeepHistory(5))
				p.say("history 5")
			})
		})
		t.Run(fmt.Sprint(seed, " with types"), func(t *testing.T) {
			playOut(t, seed, 150, (*play).giveTypes)
		})
	}
}

type play struct {
	*fixture
	random *rand.Rand
	model  model
	pool   []string
	open   []openMap

	mixed     bool   // the prims' values differ in the names of their types
	history   uint64 // kept ordinals
	held      []heldGroup
	value     float32
	forgetful bool     // a planted fault: the model forgets deletes
	script    []string // what was done, in the language of tests/scripts
}

type heldGroup struct {
	group  *Group
	values []float3
}

func newPlay(t *testing.T, seed uint64) *play {
	p := &play{fixture: newFixture(t), random: rand.New(rand.NewPCG(seed, 1)), model: model{writes: map[string][]written{}}}
	for i := range 1 + p.random.IntN(40) {
		p.pool = append(p.pool, fmt.Sprintf("/prim%d", i))
	}
	return p
}

// run plays steps, each with random numbers of its own, so that the others stay as they are when one is left out.
func (p *play) run(seed uint64, steps []int) {
	for _, step := range steps {
		p.random = rand.New(rand.NewPCG(seed, uint64(step)+2))
		switch n := p.random.IntN(100); {
		case n < 40 || p.mixed && n < 75 && (n < 45 || n >= 50): // maps and publications keep to one type
			p.writeSome()
		case n < 45:
			p.publishSome()
		case n < 50:
			p.deleteSome()
		case n < 62:
			p.openSome()
		case n < 75:
			p.closeSome()
		default:
			p.sealSome()
		}
	}
	for len(p.open) > 0 {
		p.closeSome()
	}
	p.sealTo(p.model.floor + 10)
	for _, h := range p.held {
		require.Equal(p.T, h.values, rows[float3](h.group), "a snapshot changed while it was held")
	}
}

// some is a list of prims: often the same few lists, as clients have them.
func (p *play) some() []string {
	switch p.random.IntN(4) {
	case 0:
		return p.pool
	case 1:
		from := p.random.IntN(len(p.pool))
		return p.pool[from : from+1+p.random.IntN(len(p.pool)-from)]
	}
	list := make([]string, 1+p.random.IntN(len(p.pool)))
	for i := range list {
		list[i] = p.pool[p.random.IntN(len(p.pool))]
	}
	return list
}

func (p *play) ordinal() uint64 { return p.model.floor + 1 + p.random.Uint64N(4) }

func (p *play) writeSome() {
	if p.random.IntN(3) == 0 {
		p.writeSparsely()
		return
	}
	paths, ordinal := p.some(), p.ordinal()
	values := make([]float3, len(paths))
	for i := range paths {
		p.value++
		values[i] = one(p.value)
	}
	p.say("write %s p@%d float32x3%s", strings.Join(paths, ","), ordinal, spelled(values))
	if p.accepted(paths, ordinal, payload(float3Type, values)) {
		for i, path := range paths {
			p.model.write(path, ordinal, values[i])
		}
	}
}

// giveTypes writes a value to each prim of the pool, of one of two types.
func (p *play) giveTypes() {
	p.mixed = true
	for _, path := range p.pool {
		p.value++
		kind := []string{"float3", "color3f"}[p.random.IntN(2)]
		p.say("write %s p@1 float32x3 type=%s%s", path, kind, spelled([]float3{one(p.value)}))
		p.typed(path, "p", kind, 1, one(p.value))
		p.model.write(path, 1, one(p.value))
	}
}

// accepted reports whether a write took place, as all do but those below a delete after which a prim got another type.
func (p *play) accepted(paths []string, ordinal uint64, values Payload) bool {
	err := p.tryWrite(p.query(paths...), "p", ordinal, values)
	if p.mixed && err != nil {
		require.Contains(p.T, err.Error(), "lies below a delete")
		return false
	}
	require.Nil(p.T, err)
	return true
}

// writeSparsely writes some of the leading prims of a list, chosen by a mask or from gathered rows.
func (p *play) writeSparsely() {
	paths, ordinal := p.some(), p.ordinal()
	count := 1 + p.random.IntN(len(paths))
	sparse := Payload{Count: uint32(count)}
	source := make([]float3, count)
	if p.random.IntN(2) == 0 {
		source = make([]float3, 1+p.random.IntN(5))
		for range count {
			sparse.IndexMap = append(sparse.IndexMap, p.random.Uint32N(uint32(len(source))))
		}
	} else {
		sparse.Mask = []uint64{p.random.Uint64()}
	}
	for i := range source {
		p.value++
		source[i] = one(p.value)
	}
	sparse.Views = payload(float3Type, source).Views
	p.say("write %s p@%d float32x3 %s%s", strings.Join(paths, ","), ordinal, chosenRows(&sparse), spelled(source))
	if !p.accepted(paths, ordinal, sparse) {
		return
	}
	for i, path := range paths[:count] {
		switch {
		case sparse.IndexMap != nil:
			p.model.write(path, ordinal, source[sparse.IndexMap[i]])
		case sparse.Mask[0]>>i&1 == 1:
			p.model.write(path, ordinal, source[i])
		}
	}
}

func (p *play) deleteSome() {
	paths, ordinal := p.some(), p.ordinal()
	names := []pathdict.Token{p.token("p")}
	if p.random.IntN(2) == 0 {
		names = nil // whole prims
	}
	p.say("delete %s %s@%d", strings.Join(paths, ","), map[bool]string{true: "*", false: "p"}[names == nil], ordinal)
	_, err := p.DeleteAttributes(p.query(paths...), names, ordinal)
	require.Nil(p.T, err)
	for _, path := range paths {
		if !p.forgetful {
			p.model.remove(path, ordinal)
		}
	}
}

func (p *play) sealSome() { p.sealTo(p.model.floor + p.random.Uint64N(3)) }

func (p *play) sealTo(floor uint64) {
	p.say("seal %d", floor)
	p.seal(floor)
	p.model.floor = floor
	p.compare(p.pool, p.model.floor)
	p.compare(p.some(), p.model.floor)
	if p.history > 0 {
		p.compare(p.some(), p.model.floor-min(p.model.floor, p.random.Uint64N(p.history)))
	}
	p.compareChanges(p.some())
	for _, path := range p.pool {
		token, err := p.dict.Path(path)
		require.NoError(p.T, err)
		index, _ := p.dict.Index(token)
		require.Equal(p.T, p.model.exists(path), p.exists(index), "prim %s exists", path)
	}
}

// compare reads the state of a list as of an ordinal and holds some of the groups for the rest of the play.
func (p *play) compare(paths []string, at uint64) {
	p.say("read latest %d %s p", at, strings.Join(paths, ","))
	q := p.query(paths...)
	read, _, err := p.Read(q, []pathdict.Token{p.token("p")}, Range{End: at})
	require.Nil(p.T, err)
	seen := map[int]float3{}
	for {
		g, err := p.FetchRead(read)
		require.Nil(p.T, err)
		if g == nil {
			break
		}
		values := rows[float3](g)
		for k, value := range values {
			position := int(g.PrimOffset) + k
			if g.PrimMap.Valid() {
				position = int(g.PrimMap.Uint32s(int(g.PrimCount))[k])
			}
			require.NotContains(p.T, seen, position, "a prim in two groups")
			seen[position] = value
		}
		if p.random.IntN(4) == 0 {
			p.held = append(p.held, heldGroup{g, values})
			p.Cleanup(func() { g.Release(p.dict) })
		} else {
			g.Release(p.dict)
		}
	}
	for i, path := range paths {
		value, ok := p.model.at(path, at)
		got, found := seen[i]
		require.Equal(p.T, ok, found, "prim %s at %d, floor %d", path, at, p.model.floor)
		if ok {
			require.Equal(p.T, value, got, "prim %s at %d, floor %d", path, at, p.model.floor)
		}
	}
	_, err = p.ReleaseRead(read)
	require.Nil(p.T, err)
	_, err = p.ReleaseQuery(q)
	require.Nil(p.T, err)
}

// frontier is the ordinal from which change membership is exact.
func (p *play) frontier() uint64 {
	id, _, err := p.OldestPreserved()
	require.Nil(p.T, err)
	frontier, err := p.FetchOrdinal(id)
	require.Nil(p.T, err)
	_, err = p.ReleaseOrdinalQuery(id)
	require.Nil(p.T, err)
	return frontier
}

// compareChanges reads a random range of ordinals.
func (p *play) compareChanges(paths []string) {
	end := p.model.floor - min(p.model.floor, p.random.Uint64N(3))
	start := max(end-min(end, p.random.Uint64N(6)), p.frontier()) // below, membership is not exact
	if start > end {
		return
	}
	expected, overtaken := map[int]float3{}, false
	deleted := map[int]bool{}
	for i, path := range paths {
		in, after := false, false
		for _, w := range p.model.writes[path] {
			in = in || w.ordinal >= start && w.ordinal <= end
			after = after || w.ordinal > end && w.ordinal <= p.model.floor
		}
		if !in {
			continue
		}
		overtaken = overtaken || after
		if value, ok := p.model.at(path, end); ok {
			expected[i] = value
		} else {
			deleted[i] = true
		}
	}
	p.say("read range %d %d %s p", start, end, strings.Join(paths, ","))
	q := p.query(paths...)
	read, _, err := p.Read(q, []pathdict.Token{p.token("p")}, Range{Start: start, End: end, HasStart: true})
	if overtaken && (p.history == 0 || end+p.history <= p.model.floor) {
		if err == nil && p.history > 0 {
			return // kept a little longer than promised
		}
		require.NotNil(p.T, err)
		require.Equal(p.T, OutOfRange, CodeOf(err))
		return
	}
	require.Nil(p.T, err)
	values, gone := map[int]float3{}, map[int]bool{}
	for {
		g, err := p.FetchRead(read)
		require.Nil(p.T, err)
		if g == nil {
			break
		}
		require.LessOrEqual(p.T, g.Ordinal, end)
		require.GreaterOrEqual(p.T, g.Ordinal, start)
		var of []float3
		if !g.Delete {
			of = rows[float3](g)
		}
		for k := range int(g.PrimCount) {
			position := int(g.PrimOffset) + k
			if g.PrimMap.Valid() {
				position = int(g.PrimMap.Uint32s(int(g.PrimCount))[k])
			}
			if g.Delete {
				gone[position] = true
			} else {
				values[position] = of[k]
			}
		}
		g.Release(p.dict)
	}
	require.Equal(p.T, expected, values, "range [%d, %d]", start, end)
	require.Equal(p.T, deleted, gone, "range [%d, %d]", start, end)
	_, err = p.ReleaseRead(read)
	require.Nil(p.T, err)
}
