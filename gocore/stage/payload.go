package stage

import (
	"ovstage.dev/ovstage/gocore/memory"
	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/tensor"
)

// Mode says what a write does with prims that exist and with those that do not.
type Mode uint32

// The modes.
const (
	Upsert  Mode = 0 // creates absent prims, updates present ones
	Insert  Mode = 1 // creates prims; refused when any of them exists
	Update  Mode = 2 // updates present prims, leaves absent ones alone
	Require Mode = 3 // updates prims; refused when any of them is absent
)

// Write is one attribute of a batch.
type Write struct {
	Attribute pathdict.Token
	Payload   Payload
}

// Payload is what a write brings.
type Payload struct {
	Views    []tensor.View // one for a fixed column
	Array    bool          // declares one variable-length array per prim
	Count    uint32        // leading prims that are written; 0 = all
	IndexMap []uint32      // source row of each written prim
	Mask     []uint64      // which of the leading prims are written
	Stream   uintptr       // CUDA stream to wait for; ignored for host data
	Event    uintptr       // CUDA event to wait for
	Semantic tensor.Semantic
	Type     pathdict.Token // the name of the type of the values; 0: not said

	// Owned is the memory of a fixed column's tensor when its owner gives it away: a foreign block whose first byte is that
	// of the tensor. It becomes the column's storage if the tensor is packed, aligned, covers the column and is its newest
	// value; the write then takes a reference of its own. Otherwise it is copied like any other.
	Owned memory.Block
}

// count is the number of leading prims, of so many, that the payload is about. A payload that makes no sense for them is refused.
func (p *Payload) count(prims int) (int, error) {
	switch count := int(p.Count); {
	case len(p.Views) == 0:
		return 0, errorf(InvalidArgument, "tensor_count is 0; pass at least one tensor")
	case len(p.Views) != 1 && !p.Array:
		return 0, errorf(InvalidArgument, "a fixed column takes exactly one tensor, got %d; set is_array for one array per prim", len(p.Views))
	case p.Event != 0:
		return 0, errorf(NotSupported, "cuda_sync.wait_event is %#x, but CUDA is not loaded; pass 0 for host data", p.Event)
	case p.IndexMap != nil && p.Mask != nil:
		return 0, errorf(InvalidArgument, "index_map and mask are mutually exclusive; pass one of them")
	case count == 0 && (p.IndexMap != nil || p.Mask != nil):
		return 0, errorf(InvalidArgument, "count must be non-zero when index_map or mask is supplied")
	case p.IndexMap != nil && len(p.IndexMap) < count:
		return 0, errorf(InvalidArgument, "index_map has %d entries, but count is %d; pass one entry per written prim",
			len(p.IndexMap), count)
	case p.Mask != nil && 64*len(p.Mask) < count:
		return 0, errorf(InvalidArgument, "mask has %d words of 64 bits, but count is %d; pass a bit per prim",
			len(p.Mask), count)
	case count > prims:
		return 0, errorf(InvalidArgument, "count is %d, but the query lists %d prims; pass at most that many, or leave count out for all",
			count, prims)
	case count == 0:
		return prims, nil
	default:
		return count, nil
	}
}
