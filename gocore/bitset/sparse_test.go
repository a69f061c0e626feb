package bitset

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheEmptySparseSetAnswersEverything(t *testing.T) {
	var s Sparse
	assert.False(t, s.Has(0))
	assert.False(t, s.AnyIn(0, 1000))
	assert.Zero(t, s.Count())
	assert.Zero(t, s.CountIn(-3, 1000))
	assert.Empty(t, s.Set())
	s.Each(func(int) { t.Fatal("it holds nothing") })
	s.AddRange(7, 7)
	assert.Panics(t, func() { s.Add(0) })
	s.Reset(0)
	assert.Zero(t, s.Count())
}

func TestQuestionsGoBeyondTheEndOfASparseSet(t *testing.T) {
	var s Sparse
	s.Reset(64)
	s.Add(3)
	s.Add(63)
	assert.False(t, s.Has(1<<20))
	assert.False(t, s.Has(-1))
	assert.Equal(t, 1, s.CountIn(4, 1<<30))
	assert.True(t, s.AnyIn(-5, 4))
	assert.False(t, s.AnyIn(64, 1<<30))
	assert.False(t, s.AnyIn(9, 4))
	assert.Zero(t, s.CountIn(9, 4))
}

// Each word of every level is the first and the last one in turn.
func TestOneMemberAtEveryEdge(t *testing.T) {
	const n = 64 * 64 * 64 * 2
	var s Sparse
	for edge := 1; edge <= n; edge *= 64 {
		for _, i := range []int{edge - 2, edge - 1, edge, edge + 1, 2*edge - 1} {
			if i < 0 || i >= n {
				continue
			}
			s.Reset(n)
			s.Add(i)
			require.Equal(t, 1, s.Count())
			require.True(t, s.AnyIn(i, i+1))
			require.True(t, s.AnyIn(0, n))
			require.False(t, s.AnyIn(0, i))
			require.False(t, s.AnyIn(i+1, n))
			require.Equal(t, 1, s.CountIn(0, n))
			s.Each(func(found int) { require.Equal(t, i, found) })
		}
	}
}

// A set that is emptied holds nothing of what it held, and the memory stays.
func TestResetEmptiesAndKeepsTheMemory(t *testing.T) {
	var s Sparse
	s.Reset(1_000_000)
	s.AddRange(10, 999_999)
	s.Add(5)
	words := &s.words[0]
	s.Reset(1_000)
	assert.Same(t, words, &s.words[0])
	for _, level := range []Set{s.words, s.sums, s.tops} {
		assert.Zero(t, level.Count())
	}
	assert.Zero(t, testing.AllocsPerRun(10, func() {
		s.Reset(1_000_000)
		s.Add(999_999)
	}))
	s.Reset(10_000_000)
	assert.False(t, s.AnyIn(0, 10_000_000))
	s.Add(9_999_999)
}

// A copy stays as it is when the set goes on.
func TestASetOfItsOwn(t *testing.T) {
	var s Sparse
	s.Reset(100)
	s.Add(70)
	kept := s.Set()
	s.Reset(100)
	assert.Equal(t, []int{70}, members(kept))
}

func TestRandomSparseSetsAgainstSets(t *testing.T) {
	for seed := range uint64(12) {
		random := rand.New(rand.NewPCG(seed, 2))
		steps := make([]byte, 300)
		for i := range steps {
			steps[i] = byte(random.Uint32())
		}
		playSparse(t, steps)
	}
}

func FuzzSparse(f *testing.F) {
	f.Add([]byte{0, 0, 1, 1, 200, 7, 5, 0, 0, 2, 1, 1})
	f.Fuzz(func(t *testing.T, steps []byte) { playSparse(t, steps) })
}

// playSparse does with a sparse set what the steps say, and with a Set, and compares all that it can be asked. Numbers reach
// over all levels, many of them near to the edges of words.
func playSparse(t *testing.T, steps []byte) {
	reach := 300_000
	var s Sparse
	s.Reset(reach)
	model := New(reach)
	number := func(a, b byte) int {
		edges := [...]int{0, 64, 4096, 64 * 4096, 128, 8192, 3 * 4096, 290_000}
		return min(max(0, edges[a%8]+int(a/8)*64*int(b%2)+int(b)/4-32), reach)
	}
	for ; len(steps) >= 5; steps = steps[5:] {
		from, to := number(steps[1], steps[2]), number(steps[3], steps[4])
		switch steps[0] % 8 {
		case 0, 1, 2, 3:
			if from < reach {
				s.Add(from)
				model.Add(from)
			}
		case 4, 5:
			s.AddRange(from, min(to, from+int(steps[0])*8))
			model.AddRange(from, min(to, from+int(steps[0])*8))
		case 6:
			s.AddRange(from, to)
			model.AddRange(from, to)
		case 7:
			reach = 1 + int(steps[1])*int(steps[2])*9
			s.Reset(reach)
			model = New(reach)
		}
		compareSparse(t, &s, model, from, to)
		compareSparse(t, &s, model, from, from+1)
		compareSparse(t, &s, model, -1, 1<<40)
		require.True(t, model.Equal(s.words))
		require.True(t, s.sums.Equal(above(s.words)))
		require.True(t, s.tops.Equal(above(s.sums)))
	}
}

// compareSparse asks a sparse set everything that it can be asked about a range.
func compareSparse(t *testing.T, s *Sparse, model Set, from, to int) {
	require.Equal(t, model.Count(), s.Count())
	require.Equal(t, model.Has(from), s.Has(from))
	require.Equal(t, model.CountIn(from, to), s.CountIn(from, to))
	require.Equal(t, model.AnyIn(from, to), s.AnyIn(from, to))
	var expected, found []int
	model.EachIn(from, to, func(i int) { expected = append(expected, i) })
	s.EachIn(from, to, func(i int) { found = append(found, i) })
	require.True(t, slices.Equal(expected, found))
}

// above is the level above one.
func above(level Set) Set {
	sums := New(len(level))
	for at, word := range level {
		if word != 0 {
			sums.Add(at)
		}
	}
	return sums
}
