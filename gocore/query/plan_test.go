package query

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"ovstage.dev/ovstage/gocore/column"
	"ovstage.dev/ovstage/gocore/memory"
)

// Rows go and come back, and lists that follow the column, or part of it, or are in any order, are planned anew each time: a plan
// is what a walk over the list finds, however it was made.
func TestPlansAreWhatAWalkFinds(t *testing.T) {
	for seed := range uint64(10) {
		random := rand.New(rand.NewPCG(seed, 6))
		b := newBench(t)
		n := 300 + random.IntN(700)
		paths := make([]string, n)
		for i := range paths {
			paths[i] = fmt.Sprintf("/p%d", i)
		}
		b.seal(b.grow(b.list(paths...)), 1)
		shuffled := make([]string, n)
		for i, at := range random.Perm(n) {
			shuffled[i] = paths[at]
		}
		twice := append(append([]string{}, shuffled...), shuffled[:n/3]...)
		lists := [][]string{paths, paths[n/3 : 2*n/3], shuffled, twice, shuffled[:n-n/4]}
		for ordinal := uint64(2); ordinal < 40; ordinal++ {
			first, count := random.IntN(n), 1+random.IntN(6)
			switch random.IntN(4) {
			case 0:
				first = 0
			case 1:
				first = n - count
			}
			rows := column.Run(min(first, n-count), count)
			if random.IntN(2) == 0 {
				values, err := memory.AllocZeroed(count, memory.Columns)
				require.NoError(t, err)
				b.column.Write(rows, ordinal, values)
			} else {
				b.column.Delete(rows, ordinal)
			}
			require.NoError(t, b.column.Seal(ordinal))
			for _, listed := range lists {
				binding, err := b.bindings.Of(b.column, b.list(listed...))
				require.NoError(t, err)
				plan, err := binding.Plan(b.column)
				require.NoError(t, err)
				walked := &Plan{}
				require.NoError(t, walked.fill(len(listed), func(add func(position int, row uint32)) {
					binding.Each(func(position int, row uint32) {
						if b.column.Sealed().Live(int(row)) {
							add(position, row)
						}
					})
				}))
				require.Equal(t, planned(walked), planned(plan))
				require.Equal(t, walked.Positions.Valid(), plan.Positions.Valid())
				require.Equal(t, walked.Rows.List() == nil, plan.Rows.List() == nil)
				require.Empty(t, plan.Pending)
				walked.Release()
			}
		}
	}
}
