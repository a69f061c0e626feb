package bitset

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func of(members ...int) Set {
	s := New(slices.Max(append(members, 0)) + 1)
	for _, i := range members {
		s.Add(i)
	}
	return s
}

func members(s Set) (list []int) {
	s.Each(func(i int) { list = append(list, i) })
	return list
}

func TestTheEmptySetAnswersEverything(t *testing.T) {
	var s Set
	assert.False(t, s.Has(0))
	assert.False(t, s.AnyIn(0, 1000))
	assert.Zero(t, s.Count())
	assert.Zero(t, s.CountIn(-3, 1000))
	assert.Empty(t, s.AppendTo(nil, 1000))
	assert.True(t, s.Equal(New(640)))
	assert.False(t, s.Meets(of(1)))
	assert.True(t, s.Grow(65).Equal(nil))
	assert.Len(t, s.Grow(65), 2)
}

func TestQuestionsGoBeyondTheEnd(t *testing.T) {
	s := of(3, 63)
	assert.False(t, s.Has(64))
	assert.False(t, s.Has(-1))
	assert.Equal(t, 1, s.CountIn(4, 1000))
	assert.True(t, s.AnyIn(-5, 4))
	assert.Panics(t, func() { s.Add(64) })
	assert.Panics(t, func() { s.Remove(64) })
}

// Every range in the first three words, against what its two ends say.
func TestRangesByTheWord(t *testing.T) {
	const n = 140
	for from := range n {
		for to := from; to < n; to++ {
			s := New(n)
			s.AddRange(from, to)
			require.Equal(t, to-from, s.Count())
			require.Equal(t, to-from, s.CountIn(from, to))
			require.Equal(t, to > from, s.AnyIn(from, to))
			require.False(t, s.AnyIn(0, from))
			require.False(t, s.AnyIn(to, n))
			require.Equal(t, to > from, s.Has(from))
			require.False(t, s.Has(to))
		}
	}
}

func TestSetsWithSpaceForDifferentNumbers(t *testing.T) {
	small, large := of(1, 5), of(1, 5, 200)
	assert.False(t, small.Equal(large))
	assert.False(t, large.Equal(small))
	large.Remove(200)
	assert.True(t, small.Equal(large))
	large.Add(200)
	assert.True(t, small.Meets(large))

	large.And(small)
	assert.Equal(t, []int{1, 5}, members(large), "what the other has no space for is not in it")
	large.Add(200)
	small.AndNot(large)
	assert.Empty(t, members(small))
	large.Or(of(7))
	assert.Equal(t, []int{1, 5, 7, 200}, members(large))
	assert.Panics(t, func() { small.Or(large) })
}

// A mask of the C ABI may have bits beyond its count.
func TestBitsBeyondTheEndAreNotListed(t *testing.T) {
	mask := Set{^uint64(0), ^uint64(0)}
	assert.Len(t, mask.AppendTo(nil, 70), 70)
	assert.Equal(t, []uint32{9, 8, 7}, mask.Pick(nil, []uint32{9, 8, 7}))
}

func TestAnAdderAddsByTheWord(t *testing.T) {
	s := of(3, 700)
	adder := Adder{To: s}
	for _, i := range []uint32{64, 65, 1, 2, 66, 699} {
		adder.Add(i)
	}
	adder.Flush()
	adder.Flush()
	assert.Equal(t, []int{1, 2, 3, 64, 65, 66, 699, 700}, members(s))
}

func TestRandomSetsAgainstAModel(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		steps := make([]byte, 200)
		for i := range steps {
			steps[i] = byte(random.Uint32())
		}
		play(t, steps)
	}
}

func FuzzSet(f *testing.F) {
	f.Add([]byte{0, 1, 2, 2, 63, 65, 7, 9, 9})
	f.Fuzz(func(t *testing.T, steps []byte) { play(t, steps) })
}

// play does with two sets what the steps say, and with two lists of truth values, and compares all that a set can be asked.
func play(t *testing.T, steps []byte) {
	const n = 256
	sets, models := [2]Set{New(n), New(n)}, [2][n]bool{}
	for ; len(steps) >= 3; steps = steps[3:] {
		s, model, from, to := sets[steps[0]&1], &models[steps[0]&1], int(steps[1]), int(steps[2])
		o, other := sets[^steps[0]&1], &models[^steps[0]&1]
		each := func(change func(i int)) {
			for i := range n {
				change(i)
			}
		}
		switch steps[0] / 2 % 7 {
		case 0:
			s.Add(from)
			model[from] = true
		case 1:
			s.Remove(from)
			model[from] = false
		case 2, 3:
			s.AddRange(from, to)
			for i := from; i < to; i++ {
				model[i] = true
			}
		case 4:
			s.And(o)
			each(func(i int) { model[i] = model[i] && other[i] })
		case 5:
			s.Or(o)
			each(func(i int) { model[i] = model[i] || other[i] })
		case 6:
			s.AndNot(o)
			each(func(i int) { model[i] = model[i] && !other[i] })
		}
		compare(t, s, model[:], from, to)
		require.Equal(t, *model == *other, s.Equal(o))
		require.Equal(t, meet(model[:], other[:]), s.Meets(o))
	}
}

func meet(a, b []bool) bool {
	for i := range a {
		if a[i] && b[i] {
			return true
		}
	}
	return false
}

// truths is a set as a list of truth values.
func truths(s Set, n int) []bool {
	list := make([]bool, n)
	s.Each(func(i int) { list[i] = true })
	return list
}

// compare asks a set everything that one set can be asked.
func compare(t *testing.T, s Set, model []bool, from, to int) {
	var everything, some, visited []int
	var listed, picked, values []uint32
	for i, is := range model {
		values = append(values, uint32(1000-i))
		require.Equal(t, is, s.Has(i))
		if is {
			everything = append(everything, i)
		}
		if is && i >= from && i < to {
			some = append(some, i)
		}
		if is && i < to {
			listed, picked = append(listed, uint32(i)), append(picked, uint32(1000-i))
		}
	}
	s.EachIn(from, to, func(i int) { visited = append(visited, i) })
	missing, cut := []uint32(nil), slices.Clone(s).Below(to)
	for i := from; i < to; i++ {
		if !model[i] {
			missing = append(missing, uint32(i))
		}
	}
	require.Equal(t, missing, s.Missing(nil, from, to))
	require.Equal(t, listed, cut.AppendTo(nil, len(model)))
	require.Equal(t, model[from:], truths(s.Gather(len(model)-from, func(i int) int { return from + i }), len(model)-from))
	require.Equal(t, everything, members(s))
	require.Equal(t, some, visited)
	require.Equal(t, len(everything), s.Count())
	require.Equal(t, len(some), s.CountIn(from, to))
	require.Equal(t, len(some) > 0, s.AnyIn(from, to))
	first := slices.IndexFunc(everything, func(i int) bool { return i >= from })
	if first >= 0 {
		first = everything[first]
	}
	require.Equal(t, first, s.First(from))
	require.Equal(t, listed, s.AppendTo(nil, to))
	require.Equal(t, picked, s.Pick(nil, values[:to]))
}
