package pathdict

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestGraftRepeatsATree(t *testing.T) {
	d := New(100)
	defer d.Close()
	intern := func(texts ...string) []uint32 {
		paths := make([]Path, len(texts))
		require.NoError(t, d.Paths(texts, paths))
		indices := make([]uint32, len(texts))
		for i, path := range paths {
			indices[i], _ = d.Index(path)
		}
		return indices
	}
	paths := intern("/A", "/A/b", "/A/b/c", "/A/d")
	onto := intern("/T", "/Some/where")
	grafted, err := d.Graft(paths[0], paths, onto)
	require.NoError(t, err)
	require.Equal(t, intern("/T", "/T/b", "/T/b/c", "/T/d", "/Some/where", "/Some/where/b", "/Some/where/b/c", "/Some/where/d"), grafted)

	grafted, err = d.Graft(paths[0], paths[1:], onto[:1])
	require.NoError(t, err)
	require.Equal(t, intern("/T/b", "/T/b/c", "/T/d"), grafted, "the top need not be listed")
}
