package ovstage_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"ovstage.dev/ovstage"
	"ovstage.dev/ovstage/gocore/stage"
)

func TestSnapshot(t *testing.T) {
	s := ovstage.New("snapshot")
	defer s.Close()
	prims, err := s.Prims("/a", "/b")
	require.NoError(t, err)
	require.NoError(t, ovstage.Write(prims, "mass", 1, []float32{1, 2}))
	require.NoError(t, s.Seal(1))
	snap, err := s.Snapshot()
	require.NoError(t, err)
	require.NoError(t, ovstage.Write(prims, "mass", 2, []float32{3, 4}))
	require.NoError(t, s.Seal(2))

	then, err := ovstage.ReadSnapshot[float32](snap, prims, "mass")
	require.NoError(t, err)
	now, err := ovstage.Read[float32](prims, "mass")
	require.NoError(t, err)
	floor, err := snap.Floor()
	require.NoError(t, err)
	assert.EqualValues(t, 1, floor)
	require.NoError(t, snap.Release())
	assert.Equal(t, []float32{1, 2}, then.Values(), "it outlives the snapshot")
	assert.Equal(t, []float32{3, 4}, now.Values())

	_, err = ovstage.ReadSnapshot[float32](snap, prims, "mass")
	assert.Equal(t, stage.InvalidHandle, ovstage.CodeOf(err))
}
