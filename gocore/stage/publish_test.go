package stage

import (
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"ovstage.dev/ovstage/gocore/column"
	"ovstage.dev/ovstage/gocore/memory"
	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/tensor"
)

func (f *fixture) deletion(q QueryID, names ...string) Deletion {
	d := Deletion{Query: q}
	for _, name := range names {
		d.Attributes = append(d.Attributes, f.token(name))
	}
	return d
}

func (f *fixture) put(name string, p Payload) Write {
	return Write{Attribute: f.token(name), Payload: p}
}

func (f *fixture) publish(ordinal uint64, deletions []Deletion, batches ...Batch) error {
	_, err := f.Publish(deletions, batches, ordinal)
	return err
}

func points(values ...float3) Payload {
	p := payload(float3Type, values)
	p.Semantic = tensor.SemanticPoint
	return p
}

// state is everything that a refused publication must leave as it was.
type state struct {
	sizes    map[string]int
	roles    map[string][]tensor.Semantic
	existing []uint32
	alive    int
	unsealed int
}

func (f *fixture) state() state {
	now := state{sizes: f.sizes(), roles: map[string][]tensor.Semantic{}, unsealed: len(f.unsealed)}
	for name, a := range f.attributes {
		for _, c := range a.columns {
			now.roles[f.text(name)] = append(now.roles[f.text(name)], c.Schema().Semantic)
			now.alive += c.AllAlive(column.Latest).Count()
		}
	}
	all := f.prims.None()
	f.prims.AddAll(all)
	now.existing = f.prims.List(all)
	return now
}

func (f *fixture) everyPrim() QueryID {
	q, _, err := f.QueryFilter(every(), nil)
	require.Nil(f, err)
	return q
}

// published is a stage before a publication that would delete, create and stamp.
func published(t *testing.T) (f *fixture, deletions []Deletion, batches []Batch) {
	f = newFixture(t)
	a, b, ab := f.query("/a"), f.query("/b"), f.query("/a", "/b")
	f.write(ab, "plain", 1, many(1, 2)...)
	f.write(ab, "reformed", 1, many(1, 2)...)
	require.Nil(t, f.tryWrite(f.query("/client"), "client", 1, scalars(1)))
	f.seal(1)
	deletions = []Deletion{f.deletion(b), f.deletion(a, "reformed")}
	batches = []Batch{
		{f.query("/a", "/new"), []Write{f.put("plain", points(many(3, 4)...)), f.put("fresh", scalars(5, 6))}},
		{a, []Write{f.put("reformed", scalars(7)), f.put("runs", ragged([]float32{8, 9}))}},
	}
	return f, deletions, batches
}

func TestAPublicationDeletesThenWrites(t *testing.T) {
	f, deletions, batches := published(t)
	require.Nil(t, f.publish(2, deletions, batches...))
	a, b, all := f.query("/a"), f.query("/b"), f.query("/a", "/b", "/new")
	_, total, err := f.QueryResult(f.everyPrim())
	require.Nil(t, err)
	assert.Equal(t, 3, total, "/a, /new and the client's")
	assert.Equal(t, many(1, 2), f.read(all, "plain", 1), "nobody reads it before the seal")
	f.seal(2)
	assert.Equal(t, many(3, 4), f.read(all, "plain", 2))
	assert.Equal(t, tensor.SemanticPoint, f.group(a, "plain", 2).Semantic)
	assert.Equal(t, []float32{5, 6}, f.floats(all, "fresh", 2))
	assert.Equal(t, []float32{7}, f.floats(all, "reformed", 2))
	assert.Equal(t, [][]float32{{8, 9}}, arrays(f.group(a, "runs", 2)))
	assert.Empty(t, f.groups(b, "plain", 2))
}

// Whatever the last batch is refused for, nothing of the deletes and the other batches has happened.
func TestARefusedPublicationChangesNothing(t *testing.T) {
	for text, last := range map[string]func(f *fixture) Batch{
		`attribute "client": float32x3 does not match the existing float32; pass one value per row, shape (n,), or delete the attribute first to change its schema`: func(f *fixture) Batch {
			return Batch{f.query("/new", "/client"), []Write{f.put("client", payload(float3Type, many(1, 2)))}}
		},
		`attribute "sealed": ordinal 2 is sealed, the write floor is 9; use an ordinal above it`: func(f *fixture) Batch {
			_, err := f.AdvanceFloor(9, Include, []pathdict.Token{f.token("sealed")})
			require.Nil(f, err)
			return Batch{f.query("/new"), []Write{f.put("sealed", scalars(1))}}
		},
		`attribute "plain": prim /new is written twice in one publication; give each prim one value`: func(f *fixture) Batch {
			return Batch{f.query("/other", "/new"), []Write{f.put("plain", payload(float3Type, many(1, 2)))}}
		},
		"query handle 4711 is unknown or was released": func(*fixture) Batch { return Batch{Query: 4711} },
	} {
		t.Run(text, func(t *testing.T) {
			f, deletions, batches := published(t)
			batches = append(batches, last(f))
			before := f.state()
			err := f.publish(2, deletions, batches...)
			require.NotNil(t, err)
			assert.Equal(t, text, err.Error())
			assert.Equal(t, before, f.state())
			require.Nil(t, f.publish(2, deletions, batches[:2]...), "the rest of it goes through")
		})
	}
}

func TestARefusedDeleteChangesNothing(t *testing.T) {
	f, deletions, batches := published(t)
	before := f.state()
	assert.Equal(t, WriteFloorViolation, CodeOf(f.publish(1, deletions, batches...)))
	assert.Equal(t, WriteFloorViolation, CodeOf(f.publish(1, deletions)), "without a write, too")
	assert.Equal(t, NotSupported, CodeOf(f.publish(2, append(deletions, f.deletion(f.query("/a"), "usd-path")), batches...)))
	_, err := f.AdvanceFloor(3, Include, []pathdict.Token{f.token("client")})
	require.Nil(t, err)
	clients := append(deletions, f.deletion(f.query("/client")))
	err = f.publish(2, clients, batches...)
	require.NotNil(t, err, "the prim carries what is sealed")
	assert.Contains(t, err.Error(), `attribute "client": ordinal 2 is sealed`)
	assert.Equal(t, InvalidHandle, CodeOf(f.publish(2, []Deletion{{Query: 4711}}, batches...)))
	assert.Equal(t, before, f.state())
	require.Nil(t, f.publish(2, nil))
	assert.Equal(t, before, f.state())
}

// A schema may change above the delete that makes room for it, but not where a newer value would be left beside it.
func TestAReformBelowANewerValueIsRefused(t *testing.T) {
	f := newFixture(t)
	a := f.query("/a")
	f.write(a, "p", 1, one(1))
	f.write(a, "p", 5, one(5))
	before := f.state()
	reform := Batch{a, []Write{f.put("p", scalars(3))}}
	err := f.publish(3, []Deletion{f.deletion(a, "p")}, reform)
	require.NotNil(t, err)
	assert.Contains(t, err.Error(), "float32 does not match the existing float32x3")
	assert.Equal(t, before, f.state())
	require.Nil(t, f.publish(5, []Deletion{f.deletion(a, "p")}, reform))
	f.seal(5)
	assert.Equal(t, []float32{3}, f.floats(a, "p", 5))
}

// Batches of one attribute share columns as far as their schemas agree, also columns that none of them has found.
func TestBatchesShareTheirNewColumns(t *testing.T) {
	f := newFixture(t)
	color := payload(float3Type, many(4))
	color.Semantic = tensor.SemanticColor
	require.Nil(t, f.publish(1, nil,
		Batch{f.query("/a", "/b"), []Write{f.put("p", payload(float3Type, many(1, 2)))}},
		Batch{f.query("/c"), []Write{f.put("p", points(one(3)))}},
		Batch{f.query("/d"), []Write{f.put("p", color)}},
		Batch{f.query("/e"), []Write{f.put("p", scalars(5))}},
		Batch{f.query("/f"), []Write{f.put("p", scalars(6))}},
	))
	f.seal(1)
	assert.Len(t, f.attributes[f.token("p")].columns, 3)
	groups := map[string]*Group{}
	for _, g := range f.groups(f.query("/a", "/b", "/c", "/d", "/e", "/f"), "p", 1) {
		groups[g.DType.String()+" "+g.Semantic.String()] = g
	}
	require.Len(t, groups, 3)
	assert.Equal(t, many(1, 2, 3), rows[float3](groups["float32x3 POINT"]), "the role came with the second batch")
	assert.Equal(t, many(4), rows[float3](groups["float32x3 COLOR"]))
	assert.Equal(t, []float32{5, 6}, rows[float32](groups["float32 "+tensor.SemanticNone.String()]))
}

// More lists of one column than its cache of bindings holds under the tag tiny, with and without rows, dense and not.
func TestManyBatchesOfOneColumn(t *testing.T) {
	f := newFixture(t)
	for ordinal := uint64(1); ordinal <= 3; ordinal++ {
		var batches []Batch
		for i := range 20 {
			q := f.query("/p"+itoa(i+40), "/p"+itoa(i), "/p"+itoa(i+20), "/x"+itoa(int(ordinal)*100+i))
			x := float32(int(ordinal)*100 + i)
			batches = append(batches, Batch{q, []Write{f.put("p", payload(float3Type, many(x, x, x, x)))}})
		}
		require.Nil(t, f.publish(ordinal, nil, batches...))
		f.seal(ordinal)
		for i := range 20 {
			x := float32(int(ordinal)*100 + i)
			assert.Equal(t, many(x, x, x), f.read(f.query("/p"+itoa(i), "/p"+itoa(i+20), "/p"+itoa(i+40)), "p", ordinal))
		}
	}
	assert.Equal(t, 60+3*20, f.attributes[f.token("p")].columns[0].Rows())
}

func TestAPublicationSurvivesShortage(t *testing.T) {
	blocks := func() int64 {
		live := memory.Counters().LiveBlocks
		return live[memory.Columns] + live[memory.Indices] + live[memory.Maps]
	}
	none := blocks()
	f, deletions, batches := published(t)
	f.write(f.query("/other", "/a"), "split", 2, many(1, 2)...)
	batches = append(batches, Batch{f.query("/b", "/a", "/other"), []Write{f.put("split", payload(float3Type, many(1, 2, 3)))}})
	before := f.state()
	failures := f.everyShortage(func() error { return f.publish(2, deletions, batches...) }, func() {
		require.Equal(t, before, f.state())
	})
	assert.Greater(t, failures, 6)
	f.seal(2)
	f.Stage.Close()
	assert.Equal(t, none, blocks(), "nothing is left behind by what failed")
}

// While a long copy is under way others see the stage as it was, and what they write is judged anew.
func TestAPublicationIsJudgedAgainAfterALongCopy(t *testing.T) {
	f, deletions, batches := published(t)
	before := f.state()
	p := publication{Stage: f.Stage, ordinal: 2}
	require.Nil(t, p.judge(deletions, batches))
	require.Nil(t, p.try())
	assert.NotEqual(t, before, f.state())
	p.takeBack()
	assert.Equal(t, before, f.state())

	f.write(f.query("/new"), "fresh", 3, one(1)) // the client is faster
	between := f.state()
	err := p.try()
	require.NotNil(t, err)
	assert.Contains(t, err.Error(), `attribute "fresh": float32 does not match the existing float32x3`)
	p.release()
	assert.Equal(t, between, f.state())
	f.seal(3)
	assert.Equal(t, many(1, 2), f.read(f.query("/a", "/b"), "reformed", 3))
}

// Large publications beside a client that writes what does not go with them, at whatever moment: one of the two is refused.
func TestPublicationsBesideAHostileWriter(t *testing.T) {
	const n, rounds = 30_000, 25 // 360 KB a column: copied without the mutex
	outcomes := map[bool]int{}
	for round := range rounds {
		f := newFixture(t)
		paths := make([]string, n)
		for i := range paths {
			paths[i] = "/p" + itoa(i)
		}
		all, one, old := f.query(paths...), f.query(paths[n/2]), f.query("/old")
		f.write(old, "p", 1, float3{1})
		var workers sync.WaitGroup
		var published, written error
		begin := make(chan struct{})
		workers.Go(func() {
			<-begin
			published = f.publish(1, []Deletion{f.deletion(old)}, Batch{all, []Write{
				f.put("p", payload(float3Type, make([]float3, n))), f.put("zz", scalars(make([]float32, n)...)),
			}})
		})
		workers.Go(func() {
			<-begin
			for range round * 20 { // ever later
				_, _, _ = f.QueryResult(one)
			}
			written = f.tryWrite(one, "zz", 1, payload(float3Type, make([]float3, 1)))
		})
		close(begin)
		workers.Wait()
		require.NotEqual(t, published == nil, written == nil, "%v, %v", published, written)
		outcomes[published == nil]++
		_, total, err := f.QueryResult(f.everyPrim())
		require.Nil(t, err)
		if published == nil {
			require.Equal(t, n, total)
		} else {
			require.Equal(t, 2, total, "the old prim and the client's")
			require.Equal(t, 1, f.sizes()["p rows"])
		}
	}
	t.Log(outcomes)
}

// publishSome deletes and writes as one operation, a few batches of apart prims in the same column. Now and then the last of
// them writes what does not go with a value that is there, and nothing happens.
func (p *play) publishSome() {
	ordinal, refused := p.ordinal(), ""
	var deletions []Deletion
	var doomed [][]string
	for range p.random.IntN(3) {
		paths := p.some()
		doomed = append(doomed, paths)
		d := Deletion{Query: p.query(paths...)}
		if p.random.IntN(2) == 0 {
			d.Attributes = []pathdict.Token{p.token("p")}
		}
		deletions = append(deletions, d)
	}
	order := p.random.Perm(len(p.pool))
	if last := p.pool[order[0]]; p.random.IntN(3) == 0 && p.model.exists(last) && !slices.Contains(slices.Concat(doomed...), last) {
		refused, order = last, order[1:]
	}
	after := p.model.clone()
	for _, paths := range doomed {
		for _, path := range paths {
			after.remove(path, ordinal)
		}
	}
	var batches []Batch
	for places := range slices.Chunk(order[:p.random.IntN(len(order)+1)], 1+p.random.IntN(8)) {
		var paths []string
		var values []float3
		for _, place := range places {
			p.value++
			paths, values = append(paths, p.pool[place]), append(values, one(p.value))
			after.write(p.pool[place], ordinal, one(p.value))
		}
		batches = append(batches, Batch{p.query(paths...), []Write{p.put("p", payload(float3Type, values))}})
	}
	if refused == "" {
		p.sayPublish(ordinal, doomed, deletions, batches)
		require.Nil(p.T, p.publish(ordinal, deletions, batches...))
		p.model = after
		return
	}
	before := p.state()
	batches = append(batches, Batch{p.query(refused), []Write{p.put("p", scalars(0))}})
	require.NotNil(p.T, p.publish(ordinal, deletions, batches...))
	require.Equal(p.T, before, p.state())
}

func (m *model) clone() model {
	copied := model{m.floor, m.seq, map[string][]written{}}
	for path, writes := range m.writes {
		copied.writes[path] = slices.Clone(writes)
	}
	return copied
}
