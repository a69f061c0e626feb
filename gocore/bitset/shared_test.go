package bitset

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Neighbours share a word: none of them gets lost.
func TestManyAddToASharedSetAtOnce(t *testing.T) {
	const n, adders = 1000, 4
	s := NewShared(n)
	var done sync.WaitGroup
	for k := range uint32(adders) {
		done.Go(func() {
			for i := k; i < n; i += adders {
				s.Add(i)
				s.Add(i)
			}
		})
	}
	done.Wait()
	for i := range uint32(n) {
		assert.True(t, s.Has(i))
	}
	assert.True(t, s.Reaches(n-1))
	assert.False(t, s.Reaches(1024))
	assert.False(t, s.Has(n), "space that was not filled")
}
