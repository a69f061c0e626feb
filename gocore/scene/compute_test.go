package scene

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"ovstage.dev/ovstage/gocore/stage"
	"ovstage.dev/ovstage/gocore/tensor"
)

func TestWorldIsLocalTimesParent(t *testing.T) {
	f := newFixture(t)
	f.locals(1, map[string]matrix{"/A": quarter, "/A/B": translation(1, 0, 0), "/A/B/C": translation(0, 2, 0)})
	f.seal(1)
	f.compute(1, 1)
	worlds := f.worlds(1, "/A", "/A/B", "/A/B/C")
	require.Equal(t, quarter, worlds["/A"])
	require.Equal(t, [3]float64{0, 1, 0}, position(worlds["/A/B"]), "the parent turns x into y")
	require.Equal(t, [3]float64{-2, 1, 0}, position(worlds["/A/B/C"]))
}

func TestAPrimWithoutTransformIsSkipped(t *testing.T) {
	f := newFixture(t)
	f.locals(1, map[string]matrix{"/A": translation(1, 0, 0), "/A/Scope/B": translation(0, 1, 0), "/": translation(9, 9, 9)})
	write(f, "name", boolType, 0, 1, []string{"/A/Scope"}, []bool{true})
	f.seal(1)
	f.compute(1, 1)
	require.Equal(t, map[string]matrix{"/A": translation(1, 0, 0), "/A/Scope/B": translation(1, 1, 0), "/": translation(9, 9, 9)},
		f.worlds(1, "/A", "/A/Scope", "/A/Scope/B", "/"))
}

func TestResetMakesLocalTheWorldTransform(t *testing.T) {
	f := newFixture(t)
	f.locals(1, map[string]matrix{"/A": translation(1, 0, 0), "/A/B": translation(0, 1, 0), "/A/B/C": translation(0, 0, 1)})
	f.resets(1, "/A/B", true)
	f.seal(1)
	f.compute(1, 1)
	require.Equal(t, translation(0, 1, 1), f.worlds(1, "/A/B/C")["/A/B/C"])
	f.resets(2, "/A/B", false)
	f.seal(2)
	f.compute(2, 2)
	require.Equal(t, translation(1, 1, 1), f.worlds(2, "/A/B/C")["/A/B/C"])
}

func TestASealedOrdinalGetsANewVersion(t *testing.T) {
	f := newFixture(t)
	write(f, LocalTransform, matrixType, 0, 1, []string{"/A", "/B"}, []matrix{translation(1, 0, 0), translation(2, 0, 0)})
	f.seal(1)
	f.compute(1, 1)
	q := f.query("/A", "/B")
	before := f.fetch(q, WorldTransform, stage.Range{End: 1})[0]

	f.locals(2, map[string]matrix{"/A": translation(5, 0, 0)})
	f.seal(2)
	require.Equal(t, translation(1, 0, 0), f.worlds(2, "/A")["/A"], "nothing moves without a pass")
	f.compute(2, 2)
	after := f.fetch(q, WorldTransform, stage.Range{End: 2})[0]
	require.Equal(t, before.Generation, after.Generation)
	require.Equal(t, uint64(2), after.Ordinal)
	require.Equal(t, translation(1, 0, 0), matrices(before.Data.Bytes())[0], "who holds a group keeps its values")
	require.Equal(t, translation(5, 0, 0), f.worlds(2, "/A")["/A"])
	require.Equal(t, []string{"/A"}, f.moved(2, 2, "/A", "/B"), "ranges report what moved")
}

func TestAnOpenOrdinalTakesThemLikeAnyWrite(t *testing.T) {
	f := newFixture(t)
	f.locals(1, map[string]matrix{"/A": translation(1, 0, 0), "/A/B": translation(0, 1, 0)})
	f.seal(1)
	f.compute(1, 1)
	f.locals(2, map[string]matrix{"/A": translation(5, 0, 0)})
	f.compute(2, 2)
	require.Equal(t, translation(1, 1, 0), f.worlds(2, "/A/B")["/A/B"], "not sealed yet")
	f.seal(2)
	require.Equal(t, translation(5, 1, 0), f.worlds(2, "/A/B")["/A/B"])
}

func TestOnlyWhatMovedIsWrittenAtEachOpenOrdinal(t *testing.T) {
	f := newFixture(t)
	f.locals(1, map[string]matrix{"/A": translation(1, 0, 0), "/A/B": translation(0, 1, 0), "/C": quarter})
	f.compute(1, 1)
	f.locals(2, map[string]matrix{"/A": translation(1, 0, 0), "/C": translation(2, 0, 0)})
	f.compute(2, 2)
	f.locals(3, map[string]matrix{"/A/B": translation(0, 2, 0)})
	f.compute(3, 3)
	f.compute(3, 3)
	f.seal(3)
	require.Equal(t, []string{"/A", "/A/B", "/C"}, f.moved(1, 3, "/A", "/A/B", "/C"))
	require.Equal(t, []string{"/A/B", "/C"}, f.moved(2, 3, "/A", "/A/B", "/C"))
	require.Equal(t, []string{"/A/B"}, f.moved(3, 3, "/A", "/A/B", "/C"))
	require.Equal(t, translation(1, 2, 0), f.worlds(3, "/A/B")["/A/B"])
}

func TestOnlySealedTransformsEnterASealedState(t *testing.T) {
	f := newFixture(t)
	f.locals(1, map[string]matrix{"/A": translation(1, 0, 0)})
	f.seal(1)
	f.locals(2, map[string]matrix{"/A": translation(2, 0, 0)})
	f.compute(2, 1)
	require.Equal(t, translation(1, 0, 0), f.worlds(1, "/A")["/A"])
}

func TestAStrangersWorldTransformIsPutRight(t *testing.T) {
	f := newFixture(t)
	f.locals(1, map[string]matrix{"/A": translation(1, 0, 0), "/A/B": translation(0, 1, 0)})
	f.seal(1)
	f.compute(1, 1)
	write(f, WorldTransform, matrixType, tensor.SemanticMatrix, 2, []string{"/A"}, []matrix{quarter})
	f.seal(2)
	require.Equal(t, quarter, f.worlds(2, "/A")["/A"])
	f.compute(2, 2)
	require.Equal(t, translation(1, 0, 0), f.worlds(2, "/A")["/A"])
	require.Equal(t, translation(1, 1, 0), f.worlds(2, "/A/B")["/A/B"])
}

func TestWorldTransformsOfAnotherRoleStay(t *testing.T) {
	f := newFixture(t)
	f.locals(1, map[string]matrix{"/A": translation(1, 0, 0), "/A/B": translation(0, 1, 0)})
	write(f, WorldTransform, matrixType, tensor.SemanticFrame, 1, []string{"/A"}, []matrix{quarter})
	f.seal(1)
	f.compute(1, 1) // gives a row to /A/B
	f.compute(1, 1)
	require.Equal(t, map[string]matrix{"/A": translation(1, 0, 0), "/A/B": translation(1, 1, 0)}, f.worlds(1, "/A", "/A/B"))

	f.remove(2, "/A", WorldTransform)
	f.remove(2, "/A/B", WorldTransform)
	f.seal(3)
	for range 2 {
		f.compute(3, 3) // as if there had been none
	}
	require.Equal(t, map[string]matrix{"/A": translation(1, 0, 0), "/A/B": translation(1, 1, 0)}, f.worlds(3, "/A", "/A/B"))
	require.Equal(t, tensor.SemanticMatrix, f.fetch(f.query("/A"), WorldTransform, stage.Range{End: 3})[0].Semantic)

	f.locals(4, map[string]matrix{"/C": quarter})
	write(f, WorldTransform, matrixType, tensor.SemanticFrame, 4, []string{"/C"}, []matrix{quarter})
	f.seal(4)
	failure := f.failure(f.scene.Compute(CPUIncremental, 4, 4))
	require.Contains(t, failure.Error(), "holds float64x16 FRAME, expected float64x16 MATRIX; delete it first")
	f.remove(5, "/C", WorldTransform)
	f.seal(5)
	f.compute(5, 5)
	require.Equal(t, quarter, f.worlds(5, "/C")["/C"])
}

func TestNewRowsFollowTheLocalOnes(t *testing.T) {
	f := newFixture(t)
	paths := []string{"/C", "/A", "/A/X", "/B"}
	write(f, LocalTransform, matrixType, 0, 1, paths, []matrix{quarter, quarter, quarter, quarter})
	f.seal(1)
	f.compute(1, 1)
	g := f.fetch(f.query(paths...), WorldTransform, stage.Range{End: 1})[0]
	require.False(t, g.DataMap.Valid(), "a list that is dense in one column is in the other")
	require.Equal(t, tensor.SemanticMatrix, g.Semantic)
}

func TestHistoryKeepsOneStateAnOrdinal(t *testing.T) {
	f := newFixture(t)
	require.Nil(t, f.KeepHistory(4))
	for n := uint64(1); n <= 3; n++ {
		f.locals(n, map[string]matrix{"/A": translation(float64(n), 0, 0)})
		f.seal(n)
		f.compute(n, n)
	}
	write(f, WorldTransform, matrixType, tensor.SemanticMatrix, 4, []string{"/A"}, []matrix{quarter})
	f.seal(4)
	f.compute(4, 4)
	for n := uint64(1); n <= 3; n++ {
		require.Equal(t, translation(float64(n), 0, 0), f.worlds(n, "/A")["/A"])
	}
	require.Equal(t, translation(3, 0, 0), f.worlds(4, "/A")["/A"])
}

func TestRefusals(t *testing.T) {
	f := newFixture(t)
	for model, text := range map[Model]string{GPUIncremental: "GPU_INCREMENTAL (2) needs CUDA", GPUGlobal: "GPU_GLOBAL (3) needs CUDA"} {
		failure := f.failure(f.scene.Compute(model, 1, 1))
		require.Equal(t, stage.OpFailed, stage.CodeOf(failure))
		require.Contains(t, failure.Error(), text)
	}
	for _, model := range []Model{0, 4, 99} {
		_, err := f.scene.Compute(model, 1, 1)
		require.Equal(t, stage.InvalidArgument, stage.CodeOf(err))
		require.Contains(t, err.Error(), "expected CPU_INCREMENTAL (1)")
	}
	f.compute(1, 1) // an empty stage is none

	f.locals(1, map[string]matrix{"/A": quarter})
	write(f, LocalTransform, boolType, 0, 1, []string{"/B"}, []bool{true})
	f.seal(1)
	failure := f.failure(f.scene.Compute(CPUIncremental, 1, 1))
	require.Equal(t, stage.OpFailed, stage.CodeOf(failure))
	require.Contains(t, failure.Error(), `attribute "omni:xform" of prim /B holds bool8, expected float64x16`)
	require.Empty(t, f.worlds(1, "/A"))

	f.remove(2, "/B")
	write(f, WorldTransform, boolType, 0, 2, []string{"/A"}, []bool{true})
	f.seal(2)
	failure = f.failure(f.scene.Compute(CPUIncremental, 2, 2))
	require.Contains(t, failure.Error(), `attribute "omni:fabric:worldMatrix" of prim /A holds bool8, expected float64x16`)

	f.remove(3, "/A", WorldTransform)
	f.seal(3)
	f.compute(3, 3)
	failure = f.failure(f.scene.Compute(CPUIncremental, 2, 2))
	require.Contains(t, failure.Error(), "output ordinal 2 is older than the world transforms, which are those of ordinal 3")
}

func TestAnIntegerResetFlagCounts(t *testing.T) {
	f := newFixture(t)
	f.locals(1, map[string]matrix{"/A": translation(1, 0, 0), "/A/B": translation(0, 1, 0)})
	write(f, ResetStack, tensor.DType{Code: tensor.UInt, Bits: 8, Lanes: 1}, 0, 1, []string{"/A/B"}, []uint8{1})
	f.seal(1)
	f.compute(1, 1)
	require.Equal(t, translation(0, 1, 0), f.worlds(1, "/A/B")["/A/B"])
}

// plain is the scene as one would write it down: what every prim holds.
type plain struct {
	local map[string]matrix
	reset map[string]bool
}

func (p plain) world(path string) matrix {
	own := p.local[path]
	if p.reset[path] {
		return own
	}
	for up := above(path); up != ""; up = above(up) {
		if _, ok := p.local[up]; ok {
			parent, world := p.world(up), matrix{}
			world.multiply(&own, &parent)
			return world
		}
	}
	return own
}

func above(path string) string { return path[:strings.LastIndexByte(path, '/')] }

// forest is paths in all shapes, some of which are above others.
func forest(random *rand.Rand, n int) []string {
	paths := []string{"/A", "/B"}
	for len(paths) < n {
		up := paths[random.IntN(len(paths))]
		paths = append(paths, up+"/"+string(rune('a'+random.IntN(26)))+string(rune('a'+len(paths)%26)))
	}
	return unique(paths)
}

func unique(paths []string) []string {
	seen, kept := map[string]bool{}, paths[:0]
	for _, path := range paths {
		if !seen[path] {
			seen[path] = true
			kept = append(kept, path)
		}
	}
	return kept
}

func anyMatrix(random *rand.Rand) (m matrix) {
	for i := range m {
		m[i] = random.NormFloat64()
	}
	return m
}

// Whatever was written, deleted, sealed and computed in between, a pass ends where the plain scene is.
func TestEveryPassEndsAtThePlainScene(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 0))
		f := newFixture(t)
		paths := forest(random, 4+random.IntN(40))
		if seed%3 == 0 {
			require.Nil(t, f.KeepHistory(3))
		}
		now := plain{map[string]matrix{}, map[string]bool{}}
		for n := uint64(1); n < 30; n++ {
			for range random.IntN(6) {
				path := paths[random.IntN(len(paths))]
				switch random.IntN(8) {
				case 0:
					f.remove(n, path)
					delete(now.local, path)
					delete(now.reset, path)
				case 1:
					f.remove(n, path, LocalTransform, WorldTransform)
					delete(now.local, path)
				case 2:
					now.reset[path] = random.IntN(2) == 0
					f.resets(n, path, now.reset[path])
				case 3:
					write(f, WorldTransform, matrixType, 0, n, []string{path}, []matrix{anyMatrix(random)})
					if _, ok := now.local[path]; !ok {
						f.remove(n, path, WorldTransform)
					}
				default:
					now.local[path] = anyMatrix(random)
					f.locals(n, map[string]matrix{path: now.local[path]})
				}
				if random.IntN(10) == 0 {
					f.compute(n, n) // before it is sealed, and perhaps not for the last time
				}
			}
			if random.IntN(2) == 0 {
				f.compute(n, n)
				f.seal(n)
			} else {
				f.seal(n)
				f.compute(n, n)
			}
			worlds := f.worlds(n, paths...)
			for _, path := range paths {
				if _, ok := now.local[path]; ok {
					require.Equal(t, now.world(path), worlds[path], "seed %d, ordinal %d, %s", seed, n, path)
				}
			}
		}
		f.Close()
	}
}

func BenchmarkFirstPass(b *testing.B) {
	paths := make([]string, 100_000)
	for i := range paths {
		paths[i] = fmt.Sprintf("/World/robot_%d/link_%d", i/100, i%100)
	}
	for b.Loop() {
		b.StopTimer()
		f := newFixture(b)
		write(f, LocalTransform, matrixType, 0, 1, paths, make([]matrix, len(paths)))
		f.seal(1)
		b.StartTimer()
		f.compute(1, 1)
	}
}

// A pass over little that changed looks at no path and computes nothing else.
func BenchmarkPass(b *testing.B) {
	for name, share := range map[string]int{"all": 1, "tenth": 10, "one": 100_000} {
		b.Run(name, func(b *testing.B) {
			f := newFixture(b)
			paths := make([]string, 0, 100_000)
			for i := range 1000 {
				robot := "/World/Robot_" + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676))
				paths = append(paths, robot)
				for k := range 99 {
					paths = append(paths, robot+"/link_"+string(rune('a'+k%26))+string(rune('a'+k/26)))
				}
			}
			some := make([]string, 0, len(paths)/share)
			for i := 0; i < len(paths); i += share {
				some = append(some, paths[i])
			}
			write(f, LocalTransform, matrixType, 0, 1, paths, make([]matrix, len(paths)))
			f.seal(1)
			f.compute(1, 1)
			rows := make([]matrix, len(some))
			n := uint64(1)
			for b.Loop() {
				b.StopTimer()
				n++
				for i := range rows {
					rows[i] = translation(float64(n), 0, 0)
				}
				write(f, LocalTransform, matrixType, 0, n, some, rows)
				f.seal(n)
				b.StartTimer()
				f.compute(n, n)
			}
		})
	}
}
