package pathdict

import (
	"fmt"
	"runtime"
	"testing"
)

// scene returns n prim paths as a robot scene has them: environments with a robot of a dozen links each, in order.
func scene(n int) []string {
	paths := make([]string, 0, n)
	for env := 0; len(paths) < n; env++ {
		for link := 0; link < 12 && len(paths) < n; link++ {
			paths = append(paths, fmt.Sprintf("/World/envs/env_%d/Robot/link_%d/collision", env, link))
		}
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

const million = 1_000_000

func BenchmarkInternMillion(b *testing.B) {
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
				b.ReportMetric(float64(d.Stats().Bytes)/float64(d.PathCount()), "B/path")
				b.StopTimer()
				d.Close()
				runtime.GC()
				b.StartTimer()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/million, "ns/path")
		})
		b.Run(c.name+"/known", func(b *testing.B) {
			d := New(0)
			defer d.Close()
			_ = d.Paths(c.paths, out)
			for b.Loop() {
				_ = d.Paths(c.paths, out)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/million, "ns/path")
		})
		b.Run(c.name+"/strings", func(b *testing.B) {
			d := New(0)
			defer d.Close()
			_ = d.Paths(c.paths, out)
			for b.Loop() {
				for _, p := range out {
					if s, _ := d.PathString(p); s == "" {
						b.Fatal(p)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/million, "ns/path")
		})
	}
}

func BenchmarkCheckMillion(b *testing.B) {
	paths := scene(million)
	for b.Loop() {
		_ = checkPaths(paths)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/million, "ns/path")
}

func BenchmarkPathKnown(b *testing.B) {
	d := New(0)
	defer d.Close()
	b.ReportAllocs()
	for b.Loop() {
		_, _ = d.Path("/World/envs/env_1/Robot/link_3/collision")
	}
}

func BenchmarkTokenKnown(b *testing.B) {
	d := New(0)
	defer d.Close()
	b.ReportAllocs()
	for b.Loop() {
		_, _ = d.Token("omni:fabric:worldMatrix")
	}
}

func BenchmarkTokenString(b *testing.B) {
	d := New(0)
	defer d.Close()
	t, _ := d.Token("omni:fabric:worldMatrix")
	for b.Loop() {
		_, _ = d.TokenString(t)
	}
}

func BenchmarkNewListKnown(b *testing.B) {
	for _, n := range []int{4, million} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			d := New(0)
			defer d.Close()
			paths := make([]Path, n)
			_ = d.Paths(flat(n), paths)
			b.ReportAllocs()
			for b.Loop() {
				h, _ := d.NewList(paths)
				_ = d.ReleaseRef(h)
			}
		})
	}
}
