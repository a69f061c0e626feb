package query

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"ovstage.dev/ovstage/gocore/bitset"
	"ovstage.dev/ovstage/gocore/column"
	"ovstage.dev/ovstage/gocore/memory"
)

// To look up the rows of a set in the inverse of a list against a walk over the list, for sets that hold one row in so many:
// perInverse is where the two cost the same. An inverse costs about what a few walks do.
func BenchmarkMeet(b *testing.B) {
	for _, n := range []int{1_000, 1_000_000} {
		index, err := memory.Alloc(4*n, memory.Indices)
		if err != nil {
			b.Fatal(err)
		}
		list := index.Uint32s(n)
		for i, row := range rand.Perm(n) {
			list[i] = uint32(row)
		}
		binding := Binding{rows: column.Indexed(index, n)}
		b.Cleanup(binding.release)
		b.Run(fmt.Sprintf("make/%d", n), func(b *testing.B) {
			for b.Loop() {
				newInverse(list, n)
			}
		})
		inverse := newInverse(list, n)
		for _, per := range []int{16, 64, 256} {
			var set bitset.Sparse
			set.Reset(n)
			for range n / per {
				set.Add(rand.IntN(n))
			}
			b.Run(fmt.Sprintf("look-up/%d/1-in-%d", n, per), func(b *testing.B) {
				for b.Loop() {
					inverse.find(list, &set)
				}
			})
			b.Run(fmt.Sprintf("walk/%d/1-in-%d", n, per), func(b *testing.B) {
				found := 0
				for b.Loop() {
					binding.walk(&set).each(func(int, uint32) { found++ })
				}
			})
		}
	}
}
