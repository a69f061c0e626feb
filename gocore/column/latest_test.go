package column

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// Rows far apart and close together, some forgotten, ranges of every kind, against a look at each row.
func TestTheLatestChangesOfRowsAreFound(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 5))
		n := 1 + random.IntN(3*perPage)
		var l latest
		plain := map[int]uint64{}
		l.grow(1 + random.IntN(n))
		l.grow(n)
		for ordinal := uint64(1); ordinal < 60; ordinal++ {
			for range random.IntN(30) {
				row := random.IntN(n)
				l.set(row, ordinal)
				plain[row] = ordinal
			}
			if random.IntN(3) == 0 {
				for row := range plain {
					l.forget(row)
					delete(plain, row)
					break
				}
			}
			start := 1 + random.Uint64N(ordinal+2)
			end := start + random.Uint64N(10)
			found := map[int]uint64{}
			last := -1
			l.between(start, end, func(row int, ordinal uint64) {
				require.Less(t, last, row)
				last, found[row] = row, ordinal
			})
			for row, ordinal := range plain {
				if ordinal >= start && ordinal <= end {
					require.Equal(t, ordinal, found[row])
					delete(found, row)
				}
			}
			require.Empty(t, found)
		}
	}
}
