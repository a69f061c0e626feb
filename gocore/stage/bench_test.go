package stage

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"ovstage.dev/ovstage/gocore/memory"
	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/tensor"
)

// benchStage is a stage with n prims and a query over all of them.
func benchStage(b *testing.B, n int) (*Stage, *pathdict.Dictionary, []string, QueryID, pathdict.Token) {
	dict := pathdict.New(0)
	s := New(b.Name(), dict, nil)
	b.Cleanup(func() { s.Close(); dict.Close() })
	paths := make([]string, n)
	for i := range paths {
		paths[i] = fmt.Sprintf("/World/p%d", i)
	}
	name, err := dict.Token("p")
	require.NoError(b, err)
	return s, dict, paths, benchQuery(b, s, dict, paths), name
}

func benchQuery(b *testing.B, s *Stage, dict *pathdict.Dictionary, paths []string) QueryID {
	list, err := dict.NewListFromStrings(paths)
	require.NoError(b, err)
	q, failure := s.QueryPaths(list)
	require.Nil(b, failure)
	return q
}

func write(b *testing.B, s *Stage, q QueryID, name pathdict.Token, ordinal uint64, rows []float3) {
	_, err := s.Write(q, []Write{{name, payload(float3Type, rows)}}, ordinal, Upsert)
	require.Nil(b, err)
	_, err = s.AdvanceFloor(ordinal, All, nil)
	require.Nil(b, err)
}

func BenchmarkTick(b *testing.B) {
	s, dict, _, q, name := benchStage(b, 4)
	rows := make([]float3, 4)
	names := []pathdict.Token{name}
	for i := 0; b.Loop(); i++ {
		write(b, s, q, name, uint64(i+1), rows)
		read, _, _ := s.Read(q, names, Range{End: uint64(i + 1)})
		g, _ := s.FetchRead(read)
		g.Release(dict)
		_, _ = s.ReleaseRead(read)
	}
}

func BenchmarkDenseWrite64MB(b *testing.B) {
	const n = 64 << 20 / 12
	s, _, _, q, name := benchStage(b, n)
	rows := make([]float3, n)
	for i := range uint64(3) { // the first writes touch fresh pages
		write(b, s, q, name, i+1, rows)
	}
	for i := uint64(4); b.Loop(); i++ {
		write(b, s, q, name, i, rows)
	}
	b.SetBytes(64 << 20)
}

// A reader always holds the previous snapshot while 1 % of a million rows change.
func BenchmarkOnePercentBehindAReader(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, dict, paths, q, name := benchStage(b, n)
			write(b, s, q, name, 1, make([]float3, n))
			some, index := make([]string, 10_000), make([]uint32, 10_000)
			for i := range some {
				index[i] = rand.Uint32N(uint32(n))
				some[i] = paths[index[i]]
			}
			part, rows := benchQuery(b, s, dict, some), make([]float3, len(some))
			held := benchRead(b, s, q, name)
			tick := func(ordinal uint64) {
				write(b, s, part, name, ordinal, rows)
				next := benchRead(b, s, q, name)
				held.Release(dict)
				held = next
			}
			for i := range uint64(3) { // the first ticks copy the column once
				tick(i + 2)
			}
			for i := uint64(5); b.Loop(); i++ {
				tick(i)
			}
			b.StopTimer()
			held.Release(dict)
			target := make([]byte, 12*n)
			source := view(float3Type, rows)
			packed, _ := source.Packed()
			start := time.Now()
			for range b.N {
				tensor.ScatterRows(target, packed, index, 12)
			}
			b.ReportMetric(float64(b.Elapsed())/float64(time.Since(start)), "x-bare-scatter")
		})
	}
}

func benchRead(b *testing.B, s *Stage, q QueryID, name pathdict.Token) *Group {
	read, _, err := s.Read(q, []pathdict.Token{name}, Range{End: 1 << 60})
	require.Nil(b, err)
	g, err := s.FetchRead(read)
	require.Nil(b, err)
	_, _ = s.ReleaseRead(read)
	return g
}

func BenchmarkMapDiscard(b *testing.B) {
	for _, n := range []int{1_000, 10_000_000} {
		for _, alive := range []bool{false, true} {
			b.Run(fmt.Sprintf("%d/view=%v", n, alive), func(b *testing.B) {
				s, dict, _, q, name := benchStage(b, n)
				write(b, s, q, name, 1, make([]float3, n))
				for i := 0; b.Loop(); i++ {
					id, _, err := s.Map(q, MapDesc{Attribute: name, Initial: Discard}, uint64(i+2))
					require.Nil(b, err)
					g, err := s.FetchMap(id)
					require.Nil(b, err)
					view := memory.Block{}
					if alive {
						view = g.Data.Retain()
					}
					_, err = s.Unmap(id, false)
					require.Nil(b, err)
					g.Group.Release(dict)
					view.Release()
					_, _ = s.AdvanceFloor(uint64(i+2), All, nil)
				}
			})
		}
	}
}

func BenchmarkReadWholeColumn(b *testing.B) {
	for _, n := range []int{1_000, 10_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s, dict, _, q, name := benchStage(b, n)
			write(b, s, q, name, 1, make([]float3, n))
			for b.Loop() {
				benchRead(b, s, q, name).Release(dict)
			}
		})
	}
}

// A long run in small: every ordinal is sealed, most change a few prims, some all of them, some delete one, and a consumer
// follows by range reads. What it costs must not depend on how long it has been going on: with -benchtime=10000000x the
// last tenth takes as long as the first (x-first-tenth, of the fastest laps), and the books are as large as after it (heap
// and column growth).
func BenchmarkSealedOrdinals(b *testing.B) {
	s, dict, paths, q, name := benchStage(b, 64)
	names, rows := []pathdict.Token{name}, make([]float3, len(paths))
	var parts []QueryID
	for i := range 16 {
		parts = append(parts, benchQuery(b, s, dict, []string{paths[i], paths[16+i], paths[63-i]}))
	}
	step := func(ordinal uint64) {
		switch part := parts[ordinal*7%16]; ordinal % 8 {
		case 0:
			write(b, s, q, name, ordinal, rows)
		case 5:
			_, err := s.DeleteAttributes(part, names, ordinal)
			require.Nil(b, err)
			_, err = s.AdvanceFloor(ordinal, All, nil)
			require.Nil(b, err)
		default:
			write(b, s, part, name, ordinal, rows[:3])
		}
		if ordinal%10 > 0 {
			return
		}
		read, _, err := s.Read(q, names, Range{Start: ordinal - 9, End: ordinal, HasStart: true})
		require.Nil(b, err)
		for g, _ := s.FetchRead(read); g != nil; g, _ = s.FetchRead(read) {
			g.Release(dict)
		}
		_, _ = s.ReleaseRead(read)
	}
	const lap = 1000 // what else the machine does falls on some of the laps
	ordinal := uint64(0)
	run := func(laps int) time.Duration {
		fastest := time.Duration(math.MaxInt64)
		for range laps {
			start := time.Now()
			for range lap {
				ordinal++
				step(ordinal)
			}
			fastest = min(fastest, time.Since(start))
		}
		return fastest
	}
	tenth := max(1, b.N/lap/10)
	b.ResetTimer()
	first := run(tenth)
	heap, columns := footprint()
	run(max(0, b.N/lap-2*tenth))
	last := run(tenth)
	grownHeap, grownColumns := footprint()
	b.ReportMetric(float64(last)/float64(first), "x-first-tenth")
	b.ReportMetric(float64(grownHeap)-float64(heap), "heap-growth-B")
	b.ReportMetric(float64(grownColumns)-float64(columns), "column-growth-B")
}

// footprint is what the engine holds on the Go heap and off it.
func footprint() (heap uint64, columns int64) {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc, memory.Counters().Bytes()
}
