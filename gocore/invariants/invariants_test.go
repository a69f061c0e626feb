package invariants

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestCheckSaysWhatDoesNotHold(t *testing.T) {
	assert.NotPanics(t, func() { Check(true, "row %d", 3) })
	assert.PanicsWithValue(t, "invariant: row 3", func() { Check(false, "row %d", 3) })
}
