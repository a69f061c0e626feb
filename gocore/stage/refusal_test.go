package stage

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/tensor"
)

// What the C interface refuses before the stage is asked, and the stage refuses all the same.
func TestRefusalsThatNoClientMeets(t *testing.T) {
	f := newFixture(t)
	q := f.query("/a", "/b")
	f.write(q, "p", 1, float3{}, float3{})
	two := payload(float3Type, make([]float3, 2))
	mapped := f.mapFloat3(q, "p", 2, Current)
	defer mapped.unmap()

	write := func(change func(p *Payload)) func() error {
		return func() error {
			p := two
			change(&p)
			return f.tryWrite(q, "p", 2, p)
		}
	}
	for text, refused := range map[string]func() error{
		`attribute "p": index_map has 1 entries, but count is 2; pass one entry per written prim`: write(func(p *Payload) {
			p.Count, p.IndexMap = 2, []uint32{0}
		}),
		`attribute "p": mask has 1 words of 64 bits, but count is 65; pass a bit per prim`: write(func(p *Payload) {
			p.Count, p.Mask = 65, []uint64{1}
		}),
		`attribute "p": the tensor is on CUDA:3, which this build can't read; copy it to the host first`: write(func(p *Payload) {
			p.Views = []tensor.View{view(float3Type, make([]float3, 2))}
			p.Views[0].Device = tensor.Device{Type: tensor.CUDA, ID: 3}
		}),
		"map group: not a group of map " + strconv.Itoa(int(mapped.id)) + " that waits to be committed; it may have been unmapped before": func() error {
			_, err := f.UnmapGroup(mapped.id, 4711, false)
			return err
		},
	} {
		err := refused()
		require.NotNil(t, err, text)
		assert.Equal(t, text, err.Error())
	}
}

func TestCallsAfterTheEndAreRefused(t *testing.T) {
	f := newFixture(t)
	q := f.query("/a")
	f.Close()
	_, _, err := f.Read(q, []pathdict.Token{f.token("p")}, Range{End: 1})
	require.NotNil(t, err)
	assert.Equal(t, &Error{InvalidHandle, `stage "TestCallsAfterTheEndAreRefused" was destroyed`}, err)
}
