package prims

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"ovstage.dev/ovstage/gocore/pathdict"
)

// fixture is a table over a dictionary, spoken to in text.
type fixture struct {
	*testing.T
	Table
}

func newFixture(t *testing.T) *fixture {
	dict := pathdict.New(1 << 40)
	t.Cleanup(dict.Close)
	return &fixture{t, New(dict)}
}

func (f *fixture) indices(texts []string) []uint32 {
	paths, indices := make([]pathdict.Path, len(texts)), make([]uint32, len(texts))
	require.NoError(f, f.dict.Paths(texts, paths))
	for i, path := range paths {
		indices[i], _ = f.dict.Index(path)
	}
	return indices
}

func (f *fixture) texts(paths []uint32) []string {
	texts := make([]string, len(paths))
	for i, path := range paths {
		texts[i], _ = f.dict.PathString(f.dict.PathAt(path))
	}
	return texts
}

func (f *fixture) all() []string {
	all := f.None()
	f.AddAll(all)
	return f.texts(f.List(all))
}

// Prims that come and go are listed in the order of their creation, the slots of those that have gone are given up in time,
// and the tree is empty once all have gone.
func TestPrimsComeAndGo(t *testing.T) {
	f, random := newFixture(t), rand.New(rand.NewPCG(4, 4))
	var order []string
	for round := range 50 {
		fresh := make([]string, 300)
		for i := range fresh {
			fresh[i] = fmt.Sprintf("/World/e%d/p%d_%d", random.IntN(20), round, i)
		}
		f.Carry(1, f.indices(fresh), true)
		order = append(order, fresh...)
		var doomed []string
		order = slices.DeleteFunc(order, func(path string) bool {
			goes := random.IntN(10) < 6
			if goes {
				doomed = append(doomed, path)
			}
			return goes
		})
		f.Carry(1, f.indices(doomed), false)
		require.Equal(t, order, f.all())
		require.Equal(t, len(order), f.Count())
		f.Tree()
	}
	assert.LessOrEqual(t, len(f.order), 2*len(order)+2*minGone)
	f.Carry(1, f.indices(order), false)
	assert.Empty(t, f.all())
	linked := slices.ContainsFunc(f.tree.links, func(l link) bool { return l != link{} })
	assert.False(t, linked, "the tree is empty again")
}

// Children that are many enough to be searched by name come, go and come back.
func TestManyChildrenByName(t *testing.T) {
	f, random := newFixture(t), rand.New(rand.NewPCG(6, 6))
	alive := map[string]bool{}
	for range 10 {
		fresh := make([]string, 1000)
		for i := range fresh {
			fresh[i] = fmt.Sprintf("/World/%c%d", 'a'+rune(random.IntN(3)), random.IntN(1_000_000))
			alive[fresh[i]] = true
		}
		f.Carry(1, f.indices(fresh), true)
		var doomed []string
		for path := range alive {
			if random.IntN(12) == 0 {
				doomed = append(doomed, path)
				delete(alive, path)
			}
		}
		f.Carry(1, f.indices(doomed), false)
		prefix := fmt.Sprintf("/World/%c%d", 'a'+rune(random.IntN(3)), random.IntN(10))
		var expected []string
		for path := range alive {
			if strings.HasPrefix(path, prefix) {
				expected = append(expected, path)
			}
		}
		found := f.None()
		f.Tree().Named(f.indices([]string{"/World"})[0], strings.TrimPrefix(prefix, "/World/"), func(child uint32) { f.Add(found, child) })
		require.ElementsMatch(t, expected, f.texts(f.List(found)))
	}
	assert.NotEmpty(t, f.tree.names, "they were searched by name")
}
