//go:build invariants

package column

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"ovstage.dev/ovstage/gocore/memory"
)

func TestRowsBeyondTheColumnAreCaught(t *testing.T) {
	c := newColumn(t, 4)
	values := block(t, 1, 2)
	defer values.Release()
	assert.PanicsWithValue(t, "invariant: a record names row 4 of 4", func() { c.Write(Run(3, 2), 2, values) })
	assert.PanicsWithValue(t, "invariant: 1000 rows of 4 bytes in 256 bytes", func() { mustHold(values.Bytes(), 1000, 4) })
}

func TestAStateThatCountsWronglyIsCaught(t *testing.T) {
	c := newColumn(t, 4)
	c.sealed.rows--
	assert.PanicsWithValue(t, "invariant: 4 rows live, counted are 3", func() { c.sealed.mustBeWhole(4, 4) })
}

func TestAListThatWasReleasedIsCaught(t *testing.T) {
	c := newColumn(t, 4)
	index, err := memory.Alloc(8, memory.Indices)
	require.NoError(t, err)
	copy(index.Uint32s(2), []uint32{3, 1})
	rows := Indexed(index, 2)
	rows.Release()
	assert.PanicsWithValue(t, "invariant: a list of 2 rows was released", func() { rows.Gather(make([]byte, 8), c.Sealed().Block().Bytes(), 4) })
}
