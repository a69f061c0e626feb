package stage

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"ovstage.dev/ovstage/gocore/pathdict"
)

func (f *fixture) snap() SnapshotID {
	f.Helper()
	id, _, err := f.Snapshot()
	require.NoError(f, err)
	return id
}

// shown reads a snapshot: the value of each listed prim that had one.
func (f *fixture) shown(id SnapshotID, name string, paths ...string) map[string]float3 {
	f.Helper()
	q := f.query(paths...)
	read, _, err := f.ReadSnapshot(id, q, []pathdict.Token{f.token(name)})
	require.NoError(f, err)
	values := map[string]float3{}
	for {
		g, err := f.FetchRead(read)
		require.NoError(f, err)
		if g == nil {
			break
		}
		for k, value := range rows[float3](g) {
			position := int(g.PrimOffset) + k
			if g.PrimMap.Valid() {
				position = int(g.PrimMap.Uint32s(int(g.PrimCount))[k])
			}
			values[paths[position]] = value
		}
		g.Release(f.dict)
	}
	_, err = f.ReleaseRead(read)
	require.NoError(f, err)
	_, err = f.ReleaseQuery(q)
	require.NoError(f, err)
	return values
}

func TestASnapshotShowsItsMoment(t *testing.T) {
	f := newFixture(t)
	all := f.query("/a", "/b", "/c")
	f.write(all, "p", 1, many(1, 2, 3)...)
	f.seal(1)
	f.write(f.query("/b"), "p", 2, many(9)...) // not sealed: not in it
	snap := f.snap()
	assert.EqualValues(t, 1, f.Counters().LiveSnapshots)
	f.seal(2)
	f.write(all, "p", 3, many(7, 8, 9)...)
	f.write(f.query("/d"), "p", 3, many(4)...)
	f.write(f.query("/d"), "q", 3, many(4)...)
	f.seal(3)

	was := map[string]float3{"/a": one(1), "/b": one(2), "/c": one(3)}
	assert.Equal(t, was, f.shown(snap, "p", "/a", "/b", "/c", "/d"))
	assert.Equal(t, map[string]float3{"/c": one(3), "/a": one(1)}, f.shown(snap, "p", "/c", "/d", "/a"))
	assert.Empty(t, f.shown(snap, "q", "/d"), "an attribute that came later")
	for name, floor := range map[string]uint64{"p": 1, "q": 1} {
		at, err := f.SnapshotFloor(snap, f.token(name))
		require.NoError(t, err)
		assert.Equal(t, floor, at, name)
	}

	_, err := f.ReleaseSnapshot(snap)
	require.NoError(t, err)
	assert.Zero(t, f.Counters().LiveSnapshots)
	_, err = f.ReleaseSnapshot(snap)
	assert.EqualError(t, err, fmt.Sprintf("snapshot handle %d is unknown or was released", snap))
	_, err = f.SnapshotFloor(snap, 0)
	assert.Equal(t, InvalidHandle, CodeOf(err))
	_, _, err = f.ReadSnapshot(snap, all, []pathdict.Token{f.token("p")})
	assert.Equal(t, InvalidHandle, CodeOf(err))
}

func TestASnapshotEndsWithItsStage(t *testing.T) {
	f := newFixture(t)
	all := f.query("/a")
	f.write(all, "p", 1, many(1)...)
	f.seal(1)
	snap := f.snap()
	f.Close()
	_, _, err := f.ReadSnapshot(snap, all, []pathdict.Token{f.token("p")})
	assert.Equal(t, InvalidHandle, CodeOf(err))
	_, err = f.ReleaseSnapshot(snap)
	assert.Equal(t, InvalidHandle, CodeOf(err))
}

func TestASnapshotSaysWhyItServesNothing(t *testing.T) {
	f := newFixture(t)
	f.write(f.query("/a"), "p", 1, many(1)...)
	f.seal(1)
	read, _, err := f.ReadSnapshot(f.snap(), f.query("/b"), []pathdict.Token{f.token("p")})
	require.NoError(t, err)
	missing, found := f.Missing(read, 0)
	require.True(t, found)
	assert.Equal(t, Missing{f.token("p"), "the snapshot has no value of it for these prims; its floor was 1"}, missing)
}

func TestASnapshotHasNoDerivedAttributes(t *testing.T) {
	f := newFixture(t)
	all := f.query("/a")
	f.write(all, "p", 1, many(1)...)
	f.seal(1)
	_, _, err := f.ReadSnapshot(f.snap(), all, []pathdict.Token{f.token("usd-path")})
	assert.EqualError(t, err,
		`attribute "usd-path" is derived from the prims that there are now and not in a snapshot; read it of the stage`)
}

// Prims come and go until rows are used again by others, and columns end; each snapshot goes on showing what it did.
func TestSnapshotsOutliveDeletesAndReusedRows(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			f, random := newFixture(t), rand.New(rand.NewPCG(seed, 7))
			paths := make([]string, 400)
			for i := range paths {
				paths[i] = fmt.Sprintf("/w/p%d", i)
			}
			type kept struct {
				id     SnapshotID
				values map[string]float3
			}
			var snaps []kept
			now := map[string]float3{}
			for ordinal := uint64(1); ordinal <= 60; ordinal++ {
				first := random.IntN(len(paths))
				some := paths[first:min(len(paths), first+1+random.IntN(150))]
				if q := f.query(some...); random.IntN(5) < 2 || ordinal%20 == 0 {
					if ordinal%20 == 0 {
						some = paths
						q = f.query(some...)
					}
					require.NoError(t, f.delete(q, ordinal, "p"))
					for _, path := range some {
						delete(now, path)
					}
				} else {
					values := make([]float3, len(some))
					for i, path := range some {
						values[i] = one(float32(ordinal)*1000 + float32(i))
						now[path] = values[i]
					}
					f.write(q, "p", ordinal, values...)
				}
				f.seal(ordinal)
				if random.IntN(4) == 0 {
					values := map[string]float3{}
					for path, value := range now {
						values[path] = value
					}
					snaps = append(snaps, kept{f.snap(), values})
				}
				for _, s := range snaps {
					require.Equal(t, s.values, f.shown(s.id, "p", paths...), "ordinal %d", ordinal)
				}
				if len(snaps) > 3 {
					_, err := f.ReleaseSnapshot(snaps[0].id)
					require.NoError(t, err)
					snaps = snaps[1:]
				}
			}
		})
	}
}

// Arrays are appended behind those that a snapshot shows, until they move to another arena.
func TestASnapshotKeepsArrays(t *testing.T) {
	f := newFixture(t)
	all, part := f.query("/a", "/b"), f.query("/b")
	require.NoError(t, f.tryWrite(all, "r", 1, ragged([]float32{1}, []float32{2, 2})))
	f.seal(1)
	snap := f.snap()
	for ordinal := uint64(2); ordinal < 100; ordinal++ {
		x := float32(ordinal)
		require.NoError(t, f.tryWrite(part, "r", ordinal, ragged([]float32{x, x, x})))
		f.seal(ordinal)
		read, _, err := f.ReadSnapshot(snap, all, []pathdict.Token{f.token("r")})
		require.NoError(t, err)
		g, err := f.FetchRead(read)
		require.NoError(t, err)
		require.Equal(t, [][]float32{{1}, {2, 2}}, arrays(g), "ordinal %d", ordinal)
		g.Release(f.dict)
		_, err = f.ReleaseRead(read)
		require.NoError(t, err)
	}
}

// A writer goes on while others take snapshots, look at them twice and release them.
func TestSnapshotsBesideAWriter(t *testing.T) {
	f := newFixture(t)
	paths := []string{"/a", "/b", "/c", "/d"}
	all, part := f.query(paths...), f.query("/b", "/d")
	f.write(all, "p", 1, many(1, 1, 1, 1)...)
	f.seal(1)
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for range 100 {
				snap := f.snap()
				first := f.shown(snap, "p", paths...)
				assert.Equal(t, first, f.shown(snap, "p", paths...))
				assert.Equal(t, first["/b"], first["/d"], "written in one call")
				_, err := f.ReleaseSnapshot(snap)
				assert.NoError(t, err)
			}
		})
	}
	for ordinal := uint64(2); ordinal < 300; ordinal++ {
		f.write(part, "p", ordinal, many(float32(ordinal), float32(ordinal))...)
		f.seal(ordinal)
	}
	readers.Wait()
	assert.Zero(t, f.Counters().LiveSnapshots)
}

func BenchmarkSnapshot(b *testing.B) {
	for _, n := range []int{1_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, _, _, q, name := benchStage(b, n)
			write(b, s, q, name, 1, make([]float3, n))
			for b.Loop() {
				snap, _, err := s.Snapshot()
				require.NoError(b, err)
				_, err = s.ReleaseSnapshot(snap)
				require.NoError(b, err)
			}
		})
	}
}
