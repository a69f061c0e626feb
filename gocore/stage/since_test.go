package stage

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/tensor"
)

// follower is a consumer that knows a stage only by what it was told.
type follower struct {
	*fixture
	query   QueryID
	cursors []Cursor
	values  map[pathdict.Token]map[string]float64
	resyncs int
}

func (f *fixture) follow(query QueryID, names ...string) *follower {
	followed := &follower{fixture: f, query: query, values: map[pathdict.Token]map[string]float64{}}
	for _, name := range names {
		followed.cursors = append(followed.cursors, Cursor{Attribute: f.token(name), Resync: true})
		followed.values[f.token(name)] = map[string]float64{}
	}
	return followed
}

// catchUp asks what changed, and takes it over.
func (f *follower) catchUp() (told int) { return f.ask(func(*Cursor) {}) }

// upTo is catchUp that ends at an ordinal.
func (f *follower) upTo(ordinal uint64) (told int) {
	return f.ask(func(c *Cursor) { c.Until, c.Limited = ordinal, true })
}

func (f *follower) ask(prepare func(*Cursor)) (told int) {
	f.Helper()
	asked := make([]Cursor, len(f.cursors))
	copy(asked, f.cursors)
	for k := range asked {
		prepare(&asked[k])
	}
	read, _, failure := f.ReadSince(f.query, asked)
	require.Nil(f, failure)
	for k, c := range asked {
		if c.Resync {
			clear(f.values[c.Attribute])
			f.resyncs++
		}
		require.GreaterOrEqual(f, c.Until, f.cursors[k].Since)
		f.cursors[k] = Cursor{Attribute: c.Attribute, Since: c.Until}
	}
	for {
		g, failure := f.FetchRead(read)
		require.Nil(f, failure)
		if g == nil {
			break
		}
		told += int(g.PrimCount)
		f.take(g)
		g.Release(f.dict)
	}
	_, failure = f.ReleaseRead(read)
	require.Nil(f, failure)
	return told
}

func (f *follower) take(g *Group) {
	paths := f.paths(g)
	if g.Delete {
		for _, path := range paths {
			delete(f.values[g.Attribute], path)
		}
		return
	}
	for i, path := range paths {
		if g.DType.Code == tensor.Int {
			f.values[g.Attribute][path] = float64(rows[int32](g)[i])
		} else {
			f.values[g.Attribute][path] = float64(rows[float32](g)[i])
		}
	}
}

// paths are the prims of a group, in its order.
func (f *fixture) paths(g *Group) []string {
	list, err := f.dict.List(g.List)
	require.NoError(f, err)
	paths := make([]string, g.PrimCount)
	for i := range paths {
		at := int(g.PrimOffset) + i
		if g.PrimMap.Valid() {
			at = int(g.PrimMap.Uint32s(int(g.PrimCount))[i])
		}
		paths[i] = f.path(list.At(at))
	}
	return paths
}

// known is what a latest read serves, up to where an attribute is sealed.
func (f *fixture) known(query QueryID, c Cursor) map[string]float64 {
	truth := &follower{fixture: f, values: map[pathdict.Token]map[string]float64{c.Attribute: {}}}
	read, _, failure := f.Read(query, []pathdict.Token{c.Attribute}, Range{End: c.Since})
	require.Nil(f, failure)
	for {
		g, failure := f.FetchRead(read)
		require.Nil(f, failure)
		if g == nil {
			break
		}
		truth.take(g)
		g.Release(f.dict)
	}
	_, failure = f.ReleaseRead(read)
	require.Nil(f, failure)
	return truth.values[c.Attribute]
}

// Whatever is written, deleted and sealed, in whatever order, a consumer that takes over what it is told knows what a read
// shows: one of all prims, and one of a list; each looks when it likes.
func TestFollowersKnowWhatReadersSee(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			f := newFixture(t)
			random := rand.New(rand.NewPCG(seed, 7))
			names := []string{"a", "b", "c"}
			var all []string
			for i := range 12 {
				all = append(all, fmt.Sprintf("/P%d", i))
			}
			everything := f.query(all...)
			followers := []*follower{f.follow(0, names...), f.follow(f.query(all[2:9]...), names...)}
			lists := []QueryID{everything, f.query(all[2:9]...)}
			floor := uint64(0)
			for range 400 {
				var some []string
				for _, path := range all {
					if random.IntN(3) == 0 {
						some = append(some, path)
					}
				}
				name, ordinal := names[random.IntN(3)], floor+1+random.Uint64N(4)
				switch q := f.query(some...); random.IntN(8) {
				case 0, 1, 2:
					values := make([]float32, len(some))
					for i := range values {
						values[i] = float32(random.IntN(1000))
					}
					_ = f.tryWrite(q, name, ordinal, payload(float32Type, values)) // refused where it is an int
				case 3:
					_ = f.tryWrite(q, name, ordinal, payload(tensor.DType{Code: tensor.Int, Bits: 32, Lanes: 1}, make([]int32, len(some))))
				case 4:
					_ = f.delete(q, ordinal, name)
				case 5:
					if random.IntN(4) == 0 {
						_ = f.delete(q, ordinal)
					}
				case 6:
					floor += random.Uint64N(3)
					f.seal(floor)
				case 7:
					_, failure := f.AdvanceFloor(floor+random.Uint64N(3), Include, []pathdict.Token{f.token(name)})
					require.Nil(t, failure)
				}
				for k, consumer := range followers {
					if random.IntN(5) != 0 {
						continue
					}
					consumer.catchUp()
					for _, c := range consumer.cursors {
						require.Equal(t, f.known(lists[k], c), consumer.values[c.Attribute])
					}
				}
			}
		})
	}
}

// A consumer that has fallen behind what is kept is told everything, once, and then what changes.
func TestFollowersThatFallBehindBeginAgain(t *testing.T) {
	f := newFixture(t)
	q := f.query("/A", "/B")
	require.Nil(t, f.tryWrite(q, "v", 1, scalars(1, 2)))
	f.seal(1)
	late := f.follow(0, "v")
	require.Equal(t, 2, late.catchUp())
	require.Equal(t, 0, late.catchUp(), "nothing changed")
	require.Nil(t, f.delete(f.query("/B"), 2, "v"))
	f.seal(2)
	for ordinal := uint64(3); ordinal < 6000; ordinal++ {
		require.Nil(t, f.tryWrite(f.query("/A"), "v", ordinal, scalars(float32(ordinal))))
		f.seal(ordinal)
	}
	before := late.resyncs
	late.catchUp()
	require.Equal(t, before+1, late.resyncs)
	require.Equal(t, map[string]float64{"/A": 5999}, maps.Clone(late.values[f.token("v")]), "it has lost /B")
	require.Nil(t, f.tryWrite(f.query("/A"), "v", 6000, scalars(7)))
	f.seal(6000)
	require.Equal(t, 1, late.catchUp())
	require.Equal(t, before+1, late.resyncs)
}

func TestBadCursors(t *testing.T) {
	f := newFixture(t)
	v, derived := f.token("v"), f.token("usd-parent")
	for _, c := range []struct {
		query   QueryID
		cursors []Cursor
		code    Code
		text    string
	}{
		{99, []Cursor{{Attribute: v}}, InvalidHandle, "query handle 99"},
		{0, []Cursor{{Attribute: v}, {Attribute: v}}, InvalidArgument, `attribute "v" is listed twice`},
		{0, []Cursor{{Attribute: derived}}, NotSupported, `attribute "usd-parent" follows from the paths`},
		{0, []Cursor{{Attribute: 1 << 50}}, InvalidArgument, "attributes"},
	} {
		_, _, failure := f.ReadSince(c.query, c.cursors)
		require.NotNil(t, failure)
		require.Equal(t, c.code, CodeOf(failure))
		require.Contains(t, failure.Error(), c.text)
	}
}

// A consumer that knows everything up to the highest ordinal that there is has not fallen behind.
func TestNothingIsForgottenAfterTheHighestOrdinal(t *testing.T) {
	f := newFixture(t)
	f.frontier = 9
	for since, forgotten := range map[uint64]bool{0: true, 7: true, 8: false, 9: false, 1<<64 - 1: false} {
		require.Equal(t, forgotten, f.forgot(nil, since), "since %d", since)
	}
}

// What a consumer is told up to an ordinal long sealed is what one was told that never fell behind; one that begins there
// knows prims that have lost the attribute since.
func TestFollowersUpToAnOrdinal(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			f := newFixture(t)
			require.Nil(t, f.KeepHistory(100))
			random := rand.New(rand.NewPCG(seed, 11))
			prompt := f.follow(0, "a")
			a := f.token("a")
			seen := []map[string]float64{{}}
			for ordinal := uint64(1); ordinal <= 30; ordinal++ {
				for range random.IntN(3) {
					path := fmt.Sprintf("/P%d", random.IntN(8))
					if random.IntN(3) == 0 {
						require.Nil(t, f.delete(f.query(path), ordinal, "a"))
					} else {
						require.Nil(t, f.tryWrite(f.query(path), "a", ordinal, scalars(float32(random.IntN(1000)))))
					}
				}
				f.seal(ordinal)
				prompt.catchUp()
				seen = append(seen, maps.Clone(prompt.values[a]))
			}
			late := f.follow(0, "a")
			for ordinal := range seen {
				late.upTo(uint64(ordinal))
				require.Equal(t, seen[ordinal], late.values[a], "told step by step up to %d", ordinal)
				begun := f.follow(0, "a")
				begun.upTo(uint64(ordinal))
				require.Equal(t, seen[ordinal], begun.values[a], "begun at %d", ordinal)
			}
		})
	}
}

func TestAFollowerIsRefusedValuesThatAreNotKept(t *testing.T) {
	f := newFixture(t)
	q := f.query("/A")
	for ordinal := uint64(1); ordinal <= 3; ordinal++ {
		require.Nil(t, f.tryWrite(q, "a", ordinal, scalars(float32(ordinal))))
		f.seal(ordinal)
	}
	_, _, failure := f.ReadSince(0, []Cursor{{Attribute: f.token("a"), Since: 1, Until: 2, Limited: true}})
	require.ErrorContains(t, failure, "its earlier value is no longer kept")
	_, _, failure = f.ReadSince(0, []Cursor{{Attribute: f.token("a"), Resync: true, Until: 2, Limited: true}})
	require.ErrorContains(t, failure, "attribute \"a\" changed after ordinal 2, and its earlier values are no longer kept; begin at the write floor, 3")
}
