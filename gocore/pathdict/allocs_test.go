//go:build !race

package pathdict

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A steady frame asks for what is known, and must not allocate for it. (The race detector empties pools at random.)
func TestKnownNamesCostNoAllocation(t *testing.T) {
	d := open(t)
	strings, paths, tokens := flat(1000), make([]Path, 1000), make([]Token, 0, 8)
	require.NoError(t, d.Paths(strings, paths))
	l := contents(t, d, mustList(t, d, strings...))
	for name, call := range map[string]func(){
		"paths": func() { _ = d.Paths(strings, paths) },
		"list": func() {
			h, _ := d.NewList(paths)
			_ = d.ReleaseRef(h)
		},
		"list from strings": func() {
			h, _ := d.NewListFromStrings(strings)
			_ = d.ReleaseRef(h)
		},
		"sublist": func() { d.Sublist(l, 10, nil) },
		"resolve": func() {
			tokens, _ = d.PathTokens(paths[7], tokens[:0])
			_, _ = d.TokenString(tokens[0])
		},
	} {
		assert.Zero(t, testing.AllocsPerRun(50, call), name)
	}
}
