package pathdict

import (
	"fmt"
	"runtime"
	"testing"
)

const million = 1_000_000

// scene returns n prim paths as a robot scene has them: environments with a robot of a dozen links each, in order.
func scene(n int) []string {
	paths := make([]string, n)
	for i := range paths {
		paths[i] = fmt.Sprintf("/World/envs/env_%d/Robot/link_%d/collision", i/12, i%12)
	}
	return paths
}

// flat returns n prim paths with names of their own below one parent.
func flat(n int) []string {
	paths := make([]string, n)
	for i := range paths {
		paths[i] = fmt.Sprintf("/World/Particles/particle_%07d", i)
	}
	return paths
}

// perPath reports the time of one path of a batch of a million.
func perPath(b *testing.B) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/million, "ns/path")
}

func BenchmarkMillionPaths(b *testing.B) {
	for _, c := range []struct {
		name  string
		paths []string
	}{{"scene", scene(million)}, {"flat", flat(million)}} {
		out := make([]Path, million)
		b.Run(c.name+"/new", func(b *testing.B) {
			for b.Loop() {
				d := New(0)
				if err := d.Paths(c.paths, out); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				stats := d.Stats()
				b.ReportMetric(float64(stats.Bytes)/float64(stats.Paths), "B/path")
				d.Close()
				runtime.GC()
				b.StartTimer()
			}
			perPath(b)
		})
		d := New(0)
		if err := d.Paths(c.paths, out); err != nil {
			b.Fatal(err)
		}
		b.Run(c.name+"/known", func(b *testing.B) {
			for b.Loop() {
				_ = d.Paths(c.paths, out)
			}
			perPath(b)
		})
		b.Run(c.name+"/to string", func(b *testing.B) {
			for b.Loop() {
				for _, p := range out {
					_, _ = d.PathString(p)
				}
			}
			perPath(b)
		})
		b.Run(c.name+"/to tokens", func(b *testing.B) {
			var tokens []Token
			for b.Loop() {
				for _, p := range out {
					tokens, _ = d.PathTokens(p, tokens[:0])
				}
			}
			perPath(b)
		})
		b.Run(c.name+"/to list", func(b *testing.B) {
			for b.Loop() {
				h, _ := d.NewList(out)
				_ = d.ReleaseRef(h)
			}
			perPath(b)
		})
		d.Close()
	}
}

func BenchmarkKnownPath(b *testing.B) {
	d := open(b)
	for b.Loop() {
		_, _ = d.Path("/World/envs/env_1/Robot/link_3/collision")
	}
}

func BenchmarkKnownToken(b *testing.B) {
	d := open(b)
	for b.Loop() {
		_, _ = d.Token("omni:fabric:worldMatrix")
	}
}

func BenchmarkTokenString(b *testing.B) {
	d := open(b)
	token := mustToken(b, d, "omni:fabric:worldMatrix")
	for b.Loop() {
		_, _ = d.TokenString(token)
	}
}

func BenchmarkSmallList(b *testing.B) {
	d := open(b)
	paths := make([]Path, 4)
	_ = d.Paths(flat(4), paths)
	for b.Loop() {
		h, _ := d.NewList(paths)
		_ = d.ReleaseRef(h)
	}
}

// A garbage collection with two million paths interned costs what it costs with none.
func BenchmarkCollection(b *testing.B) {
	for _, n := range []int{0, 2 * million} {
		b.Run(fmt.Sprint(n, " paths"), func(b *testing.B) {
			d := open(b)
			_ = d.Paths(flat(n), make([]Path, n))
			runtime.GC()
			for b.Loop() {
				runtime.GC()
			}
		})
	}
}
