package query

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"ovstage.dev/ovstage/gocore/bitset"
)

// found is what a walk over a binding visits: positions and rows.
type found [][2]int

func (f *found) add(position int, row uint32) { *f = append(*f, [2]int{position, int(row)}) }

// A set meets a binding where a walk over all positions finds its rows, whichever way the rows lie, positions are missing,
// prims are listed again, and however much of the list the set holds.
func TestMeetingsAreWhatAWalkFinds(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for round := range 200 {
		b, prims := newBench(t), 150
		if round%8 == 0 {
			prims = 2000 // long enough for an inverse, and for buckets of several rows
		}
		binding := b.randomBinding(random, prims)
		if binding == nil {
			continue
		}
		var set bitset.Sparse
		for _, members := range []int{0, 1, 3, random.IntN(prims), 10 * prims} {
			set.Reset(b.column.Rows())
			for range members {
				set.Add(random.IntN(b.column.Rows()))
			}
			var expected, chosen, each found
			even := func(row uint32) bool { return row%2 == 0 }
			binding.Each(func(position int, row uint32) {
				if set.Has(int(row)) {
					expected.add(position, row)
					if even(row) {
						chosen.add(position, row)
					}
				}
			})
			binding.EachIn(&set, each.add)
			require.Equal(t, expected, each)
			require.Equal(t, len(expected) > 0, binding.Any(&set))
			if binding.All(&set) {
				require.Len(t, expected, binding.list.Len())
			}
			plan, err := binding.Select(&set, even)
			require.NoError(t, err)
			require.Equal(t, chosen, planned(plan))
			plan.Release()
		}
	}
}

// randomBinding lists some prims of which some have rows: a run or not, in the order of the rows or not, some twice.
func (b *bench) randomBinding(random *rand.Rand, prims int) *Binding {
	var there, listed []string
	share := 1 + 2*random.IntN(4) // of eight
	for i := range prims {
		path := fmt.Sprintf("/p%d", i)
		if random.IntN(3) > 0 {
			there = append(there, path)
		}
		if random.IntN(8) < share {
			listed = append(listed, path)
		}
	}
	switch random.IntN(4) {
	case 0: // rows in the order of the list: a run with missing positions in it
		listed = listed[random.IntN(len(listed)):]
		there = slices.DeleteFunc(there, func(path string) bool {
			_, is := slices.BinarySearchFunc(listed, path, func(a, b string) int { return number(a) - number(b) })
			return !is
		})
	case 1:
		random.Shuffle(len(listed), func(i, k int) { listed[i], listed[k] = listed[k], listed[i] })
	case 2:
		random.Shuffle(len(there), func(i, k int) { there[i], there[k] = there[k], there[i] })
		listed = append(listed, listed[random.IntN(len(listed)):]...)
	}
	if len(there) == 0 {
		return nil
	}
	b.grow(b.list(there...))
	binding, err := b.bindings.Of(b.column, b.list(listed...))
	require.NoError(b, err)
	return binding
}

func number(path string) (n int) {
	_, _ = fmt.Sscanf(path, "/p%d", &n)
	return n
}

// planned is what a plan covers.
func planned(p *Plan) (covered found) {
	p.Rows.Each(func(i, row int) {
		position := p.Offset + i
		if p.Positions.Valid() {
			position = int(p.Positions.Uint32s(p.Count)[i])
		}
		covered.add(position, uint32(row))
	})
	return covered
}

// An inverse finds rows of a list wherever they are in it, and holds no more than three numbers for each.
func TestAnInverseFindsEveryRow(t *testing.T) {
	random := rand.New(rand.NewPCG(2, 1))
	for range 500 {
		end := 1 + random.IntN(1<<random.IntN(14))
		rows, last := make([]uint32, 1+random.IntN(200)), 0
		for i := range rows {
			rows[i] = random.Uint32N(uint32(end))
			last = max(last, int(rows[i])+1)
		}
		v := newInverse(rows, last)
		require.LessOrEqual(t, len(v.entries)+len(v.begins), 3*len(rows)+2)
		var set bitset.Sparse
		set.Reset(end + 100)
		for range random.IntN(2 * end) {
			set.Add(random.IntN(end + 100))
		}
		expected := []uint32{}
		for i, row := range rows {
			if set.Has(int(row)) {
				expected = append(expected, uint32(i))
			}
		}
		require.Equal(t, expected, v.find(rows, &set))
	}
}

// A list is inverted once, by the first small set that meets it, and not at all for a set that is large beside it.
func TestAListIsInvertedOnce(t *testing.T) {
	b := newBench(t)
	prims := max(minInverse, perInverse, 4)
	paths := make([]string, prims)
	for i := range paths {
		paths[i] = fmt.Sprintf("/p%d", i)
	}
	b.grow(b.list(paths...))
	slices.Reverse(paths)
	binding := b.grow(b.list(append(paths, "/more")...))
	var set bitset.Sparse
	set.Reset(b.column.Rows())
	require.False(t, binding.Any(&set))
	require.Nil(t, binding.inverse, "an empty set is answered at once")
	set.Add(1)
	require.True(t, binding.Any(&set))
	inverse := binding.inverse
	require.NotNil(t, inverse)
	binding.EachIn(&set, func(position int, row uint32) { require.Equal(t, []int{prims - 2, 1}, []int{position, int(row)}) })
	require.Same(t, inverse, binding.inverse)
}
