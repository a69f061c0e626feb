package memory

import (
	"fmt"
	"testing"
)

func BenchmarkAllocRelease(b *testing.B) {
	for _, size := range []int{100, 100 * kib, 64 * mib} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			for b.Loop() {
				block, err := Alloc(size, Columns)
				if err != nil {
					b.Fatal(err)
				}
				block.Release()
			}
		})
	}
	Trim()
}

func BenchmarkAllocZeroed(b *testing.B) {
	for _, size := range []int{100, 100 * kib, mib, 64 * mib, 1024 * mib} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			for b.Loop() {
				block, err := AllocZeroed(size, Maps)
				if err != nil {
					b.Fatal(err)
				}
				block.Release()
			}
		})
	}
	Trim()
}

func BenchmarkRetainRelease(b *testing.B) {
	block, err := Alloc(100, Columns)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		block.Retain()
		block.Release()
	}
	block.Release()
}

// The steady state of a mapped column whose writer keeps a view: fill a recycled buffer, detach it, drop the version before.
func BenchmarkMapCycle(b *testing.B) {
	for _, size := range []int{12 * kib, 120 * kib, 1200 * kib, 12 * mib, 120 * mib} {
		for _, detach := range []bool{false, true} {
			b.Run(fmt.Sprintf("%d/detach=%v", size, detach), func(b *testing.B) {
				current := Block{}
				for b.Loop() {
					mapped, err := Alloc(size, Maps)
					if err != nil {
						b.Fatal(err)
					}
					clear(mapped.Bytes()[:size])
					version := mapped
					if detach {
						if version, err = mapped.Detach(); err != nil {
							b.Fatal(err)
						}
						mapped.Release()
					}
					current.Release()
					current = version
				}
				current.Release()
			})
		}
	}
	Trim()
}
