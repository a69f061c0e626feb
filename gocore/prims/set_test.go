package prims

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSetAgainstMap(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	a, b, model := Set{}, Set{}, map[uint32]bool{}
	b.Add(70_000)
	for range 2000 {
		path := random.Uint32N(3)*60_000 + random.Uint32N(200)
		by := 1 - 2*random.IntN(2)
		a.Change([]uint32{path}, by)
		if model[path] = true; by < 0 {
			delete(model, path)
		}
	}
	assert.Equal(t, len(model), a.Count())
	a.Each(func(path uint32) { assert.True(t, model[path] && a.Has(path)) })
	assert.False(t, a.Meets(b) || b.Meets(a) || a.Has(1<<31))
	a.Add(70_000)
	assert.True(t, a.Meets(b) && b.Meets(a) && b.Any([]uint32{1, 70_000}))
	pages := 0
	for _, p := range a.pages {
		if p != nil {
			pages++
		}
	}
	assert.LessOrEqual(t, pages, 4, "a page for the paths that are near each other")
}
