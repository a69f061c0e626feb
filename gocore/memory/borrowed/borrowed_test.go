package borrowed

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestForeignMemoryIsGivenBackOnce(t *testing.T) {
	b := Block(70)
	assert.True(t, b.Foreign())
	assert.Equal(t, 70, b.Capacity())
	before := GivenBack()
	b.Retain()
	b.Release()
	assert.Equal(t, before, GivenBack())
	b.Release()
	assert.Equal(t, before+1, GivenBack())
}
