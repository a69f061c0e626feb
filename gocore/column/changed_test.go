package column

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"ovstage.dev/ovstage/gocore/bitset"
)

// told is one write or delete as a play remembers it.
type told struct {
	ordinal uint64
	rows    []int
}

// Whatever was written, deleted and sealed, a column tells exactly the rows that changed in a range, after an ordinal, and that
// wait for the floor: asked again and again, from its frontier on.
func TestChangesAgainstAModel(t *testing.T) {
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 4))
		const n = 150
		c, floor, ahead := newColumn(t, n), uint64(1), uint64(1)
		all := make([]int, n)
		for i := range all {
			all[i] = i
		}
		log := []told{{1, all}}
		lists := []Rows{Run(0, n), Run(70, 9), indexed(t, 5, 149, 64), indexed(t, 3, 2, 1), indexed(t, 64, 0, 64)}
		for range 80 {
			ahead = max(ahead, floor+1) + random.Uint64N(2)
			for range random.IntN(4) { // neighbours in the log are the same rows or others
				rows, one := lists[random.IntN(len(lists))], told{ordinal: ahead}
				rows.each(func(row int) { one.rows = append(one.rows, row) })
				log = append(log, one)
				if random.IntN(4) == 0 {
					c.Delete(rows.Retain(), ahead)
				} else {
					c.Write(rows.Retain(), ahead, block(t, make([]int32, rows.Len())...))
				}
			}
			if random.IntN(2) == 0 {
				floor = max(floor, ahead-random.Uint64N(3))
				require.NoError(t, c.Seal(floor))
			}
			start := c.Frontier() + random.Uint64N(floor+2)
			end := start + random.Uint64N(6)
			expected, last := between(log, start, min(end, floor))
			changed, found := c.Changed(start, end)
			require.Equal(t, last, found)
			require.Equal(t, expected, members(changed))
			expected, _ = between(log, end+1, floor)
			require.Equal(t, expected, members(c.ChangedAfter(end)))
			expected, _ = between(log, max(start, floor+1), end)
			unsealed, first := c.UnsealedIn(start, end)
			require.Equal(t, expected, members(unsealed))
			require.Equal(t, len(expected) > 0, first > 0)
		}
	}
}

// between is what a log tells of a range: which rows, and the last ordinal.
func between(log []told, start, end uint64) (rows []int, last uint64) {
	set := bitset.New(1000)
	for _, one := range log {
		if one.ordinal >= start && one.ordinal <= end {
			for _, row := range one.rows {
				set.Add(row)
			}
			last = max(last, one.ordinal)
		}
	}
	set.Each(func(row int) { rows = append(rows, row) })
	return rows, last
}

func members(s *bitset.Sparse) (rows []int) {
	s.Each(func(row int) { rows = append(rows, row) })
	return rows
}

// Asking a column what changed takes memory once.
func TestWhatChangedTakesNoMemoryAgain(t *testing.T) {
	c := newColumn(t, 100_000)
	rows := indexed(t, 5, 99_999, 70_000)
	for ordinal := uint64(2); ordinal < 6; ordinal++ {
		c.Write(rows.Retain(), ordinal, block(t, 1, 2, 3))
	}
	require.NoError(t, c.Seal(4))
	ask := func() {
		changed, last := c.Changed(2, 3)
		unsealed, first := c.UnsealedIn(1, 9)
		if last != 3 || first != 5 || changed.Count() != 3 || unsealed.Count() != 3 || c.ChangedAfter(3).Count() != 3 {
			t.Error("rows are missing")
		}
	}
	ask()
	require.Zero(t, testing.AllocsPerRun(100, ask))
}
