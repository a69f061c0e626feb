package prims

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"ovstage.dev/ovstage/gocore/pathdict"
)

// Random prims get and lose random attributes: what each carries is what a plain set says, and there are no more kinds than
// different sets.
func TestKindsAgainstSets(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 5))
		var k kinds
		attributes, sets := make([]pathdict.Token, 1+random.IntN(8)), make([]map[pathdict.Token]bool, 1+random.IntN(50))
		for i := range attributes {
			attributes[i] = pathdict.Token(100 + i)
		}
		for path := range sets {
			sets[path] = map[pathdict.Token]bool{}
		}
		for range 500 {
			a, carried := attributes[random.IntN(len(attributes))], random.IntN(2) == 0
			var paths []uint32
			for path := range uint32(len(sets)) {
				if random.IntN(3) == 0 {
					paths = append(paths, path)
				}
			}
			if random.IntN(2) == 0 { // some are listed twice, in any order
				paths = append(paths, paths[:random.IntN(len(paths)+1)]...)
				random.Shuffle(len(paths), func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
			}
			var visited []uint32
			k.change(a, paths, carried, func(paths []uint32, before, after uint32) {
				visited = append(visited, paths...)
				for _, path := range paths {
					require.Equal(t, len(sets[path]) > 0, before != 0)
					if sets[path][a] = true; !carried {
						delete(sets[path], a)
					}
					require.Equal(t, len(sets[path]) > 0, after != 0)
				}
			})
			require.Equal(t, paths, visited)
			compareKinds(t, &k, sets)
		}
	}
}

func compareKinds(t *testing.T, k *kinds, sets []map[pathdict.Token]bool) {
	different := map[string]bool{}
	for path, set := range sets {
		var names []string
		found := k.carried([]uint32{uint32(path)})
		for _, a := range found {
			require.True(t, set[a])
			names = append(names, fmt.Sprint(a))
		}
		require.Len(t, found, len(set))
		require.Equal(t, len(set) > 0, k.carries(uint32(path)))
		if len(set) > 0 {
			different[fmt.Sprint(names)] = true
		}
	}
	used := 0
	for _, one := range k.list {
		if one.prims > 0 {
			used++
		}
	}
	require.Equal(t, len(different), used)
	require.LessOrEqual(t, used+len(k.free)+1, len(k.list)+1)
}

// The only prim of its kind takes the kind along: an attribute more costs no copy of the others.
func TestOnePrimWithManyAttributes(t *testing.T) {
	var k kinds
	for i := range 10_000 {
		k.change(pathdict.Token(1+i), []uint32{7}, true, func([]uint32, uint32, uint32) {})
	}
	assert.Len(t, k.list, 2)
	assert.Len(t, k.carried([]uint32{7}), 10_000)
}
