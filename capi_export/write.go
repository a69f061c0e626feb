package main

/*
#include "ring.h"
*/
import "C"

import (
	"sync"
	"unsafe"

	"ovstage/gocore/stage"
	"ovstage/gocore/tensor"
)

// batch is what one write call needs for its translation. Batches are used again: a steady frame allocates nothing here.
type batch struct {
	writes []stage.Write
	views  []tensor.View // of all writes, one after the other
}

var batches = sync.Pool{New: func() any { return new(batch) }}

// giveBack empties a batch. Addresses of callers must not linger where the garbage collector looks: the memory behind them
// may belong to somebody else tomorrow, to Go's own heap even.
func (b *batch) giveBack() {
	clear(b.writes)
	clear(b.views)
	b.writes, b.views = b.writes[:0], b.views[:0]
	batches.Put(b)
}

//export ovgoWrite
func ovgoWrite(
	c *C.ovstage_context_t, query C.ovstage_query_handle_t, writes *C.ovstage_attribute_write_t, count C.size_t,
	ordinal C.ovstage_ordinal_t, mode C.ovstage_prim_mode_t, many C.bool,
) (result C.ovstage_enqueue_result_t) {
	i := of(c)
	symbol := "ovstage_write_attribute"
	if many {
		symbol = "ovstage_write_attributes"
	}
	defer i.guard(symbol, &result.status)
	b := batches.Get().(*batch)
	defer b.giveBack()
	if err := b.translate(i, unsafe.Slice(writes, int(count)), bool(many)); err != nil {
		return enqueued(0, err)
	}
	return enqueued(i.stage.Write(stage.QueryID(query), b.writes, uint64(ordinal), stage.Mode(mode)))
}

// translate describes the entries as the stage takes them. Tensors, maps and masks stay the caller's memory, which it lends
// for the length of the call.
func (b *batch) translate(i *instance, entries []C.ovstage_attribute_write_t, many bool) *stage.Error {
	for k := range entries {
		w := &entries[k]
		token, err := i.attribute("attribute", &w.attribute)
		if err != nil && many {
			return refuse(err.Code, "writes[%d].%s", k, err.Text)
		}
		if err != nil {
			return err
		}
		payload, err := b.payload(&w.data)
		if err != nil {
			name, _ := i.dict.TokenString(token)
			return refuse(err.Code, "attribute %q: %s", name, err.Text)
		}
		b.writes = append(b.writes, stage.Write{Attribute: token, Payload: payload})
	}
	// The views are cut out only now: while they were collected, the array behind them may have moved.
	from := 0
	for k := range entries {
		to := from + int(entries[k].data.tensor_count)
		b.writes[k].Payload.Views = b.views[from:to:to]
		from = to
	}
	return nil
}

// payload checks what can be checked without the query and collects the views.
func (b *batch) payload(d *C.ovstage_write_data_t) (stage.Payload, *stage.Error) {
	p := stage.Payload{
		Array:    bool(d.is_array),
		Count:    uint32(d.count),
		Stream:   uintptr(d.cuda_sync.stream),
		Event:    uintptr(d.cuda_sync.wait_event),
		Semantic: tensor.Semantic(d.semantic),
	}
	switch {
	case d.managed_tensors != nil && d.tensors != nil:
		return p, refuse(stage.InvalidArgument, "tensors and managed_tensors are both given, expected exactly one of them")
	case d.managed_tensors != nil: // they are deleted by the caller of ovgoWrite, as all that is taken over
		return p, refuse(stage.NotSupported, "managed_tensors are not supported by this version: pass tensors, whose bytes are copied")
	case d.tensors == nil:
		return p, refuse(stage.InvalidArgument, "tensors is NULL, expected tensor_count descriptors")
	case d.tensor_count == 0:
		return p, refuse(stage.InvalidArgument, "tensor_count is 0, expected at least one tensor")
	case !p.Array && d.tensor_count != 1:
		return p, refuse(stage.InvalidArgument, "tensor_count is %d, but is_array is false: a fixed-size column takes exactly one tensor",
			d.tensor_count)
	case d.index_map != nil && d.mask != nil:
		return p, refuse(stage.InvalidArgument, "index_map and mask are both given, expected at most one of them")
	case (d.index_map != nil || d.mask != nil) && d.count == 0:
		return p, refuse(stage.InvalidArgument, "count is 0, but an index_map or mask needs to know how many elements it is for")
	}
	if d.index_map != nil {
		p.IndexMap = unsafe.Slice((*uint32)(d.index_map), int(d.count))
	}
	if d.mask != nil {
		p.Mask = unsafe.Slice((*uint64)(unsafe.Pointer(d.mask)), (int(d.count)+63)/64)
	}
	tensors := unsafe.Slice(d.tensors, int(d.tensor_count))
	for k := range tensors {
		if err := b.collect(k, &tensors[k]); err != nil {
			return p, err
		}
	}
	return p, nil
}

// maxAxes bounds ndim before the shape is read: what is beyond is an uninitialised descriptor rather than a tensor.
const maxAxes = 32

// collect describes a tensor in place. Memory of another device is refused here, before anybody can look at it.
func (b *batch) collect(k int, t *C.DLTensor) *stage.Error {
	device := tensor.Device{Type: int32(t.device.device_type), ID: int32(t.device.device_id)}
	data := addressIn(unsafe.Pointer(&t.data))
	switch {
	case device.Type != tensor.CPU:
		return refuse(stage.NotSupported, "tensors[%d].device is %s, which this build can't read: copy the tensor to the host first",
			k, device)
	case t.ndim < 0 || t.ndim > maxAxes:
		return refuse(stage.InvalidArgument, "tensors[%d].ndim is %d, expected 0 to %d", k, t.ndim, maxAxes)
	case t.ndim > 0 && t.shape == nil:
		return refuse(stage.InvalidArgument, "tensors[%d].shape is NULL with ndim %d", k, t.ndim)
	case data > 0 && data < firstAddress:
		return refuse(stage.InvalidArgument, "tensors[%d].data is %#x, which is no address", k, data)
	}
	v := tensor.View{
		Data:       t.data,
		Device:     device,
		DType:      dtypeOf(t.dtype),
		ByteOffset: uint64(t.byte_offset),
	}
	if t.ndim > 0 {
		v.Shape = unsafe.Slice((*int64)(t.shape), int(t.ndim))
		if t.strides != nil {
			v.Strides = unsafe.Slice((*int64)(t.strides), int(t.ndim))
		}
	}
	b.views = append(b.views, v)
	return nil
}

func dtypeOf(t C.DLDataType) tensor.DType {
	return tensor.DType{Code: tensor.Code(t.code), Bits: uint8(t.bits), Lanes: uint16(t.lanes)}
}
