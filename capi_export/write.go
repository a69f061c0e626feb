package main

/*
#include "ring.h"
*/
import "C"

import (
	"sync"
	"unsafe"

	"ovstage.dev/ovstage/gocore/bitset"
	"ovstage.dev/ovstage/gocore/memory"
	"ovstage.dev/ovstage/gocore/stage"
	"ovstage.dev/ovstage/gocore/tensor"
)

// batch is what one write call needs for its translation. Batches are used again: a steady frame allocates nothing here.
type batch struct {
	writes  []stage.Write
	views   []tensor.View      // of all writes, one after the other
	cuts    []int              // where those of each write end
	managed *C.ov_managed_list // the tensors that were given away with the call
	tried   trials             // names that are new with the call
}

var batches = sync.Pool{New: func() any { return new(batch) }}

// giveBack empties a batch. Addresses of callers must not linger where the garbage collector looks: the memory behind them
// may be other memory tomorrow, of Go's own heap even.
func (b *batch) giveBack() {
	clear(b.writes)
	clear(b.views)
	b.writes, b.views, b.cuts, b.managed, b.tried = b.writes[:0], b.views[:0], b.cuts[:0], nil, b.tried[:0]
	batches.Put(b)
}

// end gives a batch back when it is known how the call went.
func (b *batch) end(kept bool) {
	b.tried.end(kept)
	b.giveBack()
}

//export ovgoWriteAttributes
func ovgoWriteAttributes(
	c *C.ovstage_context_t, given *C.ov_batch, managed *C.ov_managed_list, ordinal C.ovstage_ordinal_t, mode C.ovstage_prim_mode_t,
	many C.bool,
) (result C.ovstage_enqueue_result_t) {
	symbol := "ovstage_write_attribute"
	if many {
		symbol = "ovstage_write_attributes"
	}
	b := batches.Get().(*batch)
	defer func() { b.end(result.status == C.OVSTAGE_OK) }()
	defer guard(c, symbol, &result.status)
	i := of(c)
	b.managed = managed
	if err := b.translate(i, unsafe.Slice(given.writes, int(given.count)), bool(many)); err != nil {
		return enqueued(0, err)
	}
	return enqueued(i.stage.Write(stage.QueryID(given.query), b.cut(), uint64(ordinal), stage.Mode(mode)))
}

// translate describes the entries as the stage takes them. The bytes of tensors, and maps and masks, stay the caller's memory
// for the length of the call; the rest is copied already (inputs.c).
func (b *batch) translate(i *instance, entries []C.ov_write, many bool) error {
	for k := range entries {
		w := &entries[k]
		token, err := b.tried.attribute(i, "attribute", &w.given.attribute)
		if err != nil && many {
			return refuse(stage.CodeOf(err), "writes[%d].%s", k, err)
		}
		if err != nil {
			return err
		}
		payload, err := b.payload(w)
		if err == nil && (w.type_name.token != 0 || w.type_name.string.length != 0) {
			payload.Type, err = b.tried.attribute(i, "type_name", &w.type_name)
		}
		if err != nil {
			name, _ := i.dict.TokenString(token)
			return refuse(stage.CodeOf(err), "attribute %q: %s", name, err)
		}
		b.writes = append(b.writes, stage.Write{Attribute: token, Payload: payload})
		b.cuts = append(b.cuts, len(b.views))
	}
	return nil
}

// cut gives each write its views. That comes last: while they were collected, the array behind them may have moved.
func (b *batch) cut() []stage.Write {
	from := 0
	for k, to := range b.cuts {
		b.writes[k].Payload.Views = b.views[from:to:to]
		from = to
	}
	return b.writes
}

// payload collects the views and what belongs to them. What they are to fit is for the stage to judge.
func (b *batch) payload(w *C.ov_write) (p stage.Payload, err error) {
	d := &w.given.data
	p = stage.Payload{
		Array:    bool(d.is_array),
		Count:    uint32(d.count),
		Stream:   uintptr(d.cuda_sync.stream),
		Event:    uintptr(d.cuda_sync.wait_event),
		Semantic: tensor.Semantic(d.semantic),
	}
	if d.index_map != nil {
		p.IndexMap = unsafe.Slice((*uint32)(d.index_map), int(d.count))
	}
	if d.mask != nil {
		p.Mask = bitset.Over((*uint64)(unsafe.Pointer(d.mask)), int(d.count))
	}
	switch {
	case d.tensors != nil && d.managed_tensors != nil:
		err = refuse(stage.InvalidArgument, "tensors and managed_tensors are both given, expected exactly one of them")
	case d.managed_tensors != nil:
		p.Owned, err = b.receive(unsafe.Slice(d.managed_tensors, int(d.tensor_count)), unsafe.Slice(w.tensors, int(d.tensor_count)), p.Array)
	case d.tensors != nil:
		err = b.look(unsafe.Slice(w.tensors, int(d.tensor_count)))
	default:
		err = refuse(stage.InvalidArgument, "tensors is NULL, expected tensor_count descriptors, or as many managed_tensors")
	}
	return p, err
}

// look collects tensors that stay the caller's.
func (b *batch) look(tensors []C.DLTensor) error {
	for k := range tensors {
		if err := b.collect("tensors", k, &tensors[k]); err != nil {
			return err
		}
	}
	return nil
}

// receive collects tensors that were given away. The memory of a single one is offered to the stage, which may keep it
// instead of copying.
func (b *batch) receive(
	tensors []*C.DLManagedTensorVersioned, described []C.DLTensor, array bool,
) (owned memory.Block, err error) {
	for k, t := range tensors {
		switch {
		case t == nil:
			return owned, refuse(stage.InvalidArgument, "managed_tensors[%d] is NULL", k)
		case t.version.major != C.DLPACK_MAJOR_VERSION: // only the version and the deleter lie at the same offset in all
			return owned, refuse(stage.NotSupported, "managed_tensors[%d] is laid out by DLPack %d.%d, expected major version %d",
				k, t.version.major, t.version.minor, C.DLPACK_MAJOR_VERSION)
		}
		if err := b.collect("managed_tensors", k, &described[k]); err != nil {
			return owned, err
		}
	}
	if !array && len(tensors) == 1 {
		owned = b.wrap(tensors[0])
	}
	return owned, nil
}

// wrap makes a block of the memory of the tensor that was collected last, if it lies packed. The list of managed tensors
// holds its reference. Without a block the values are copied.
func (b *batch) wrap(t *C.DLManagedTensorVersioned) memory.Block {
	v := b.views[len(b.views)-1]
	if v.CheckExtents() != nil || v.Size() == 0 {
		return memory.Block{} // for the stage to refuse
	}
	bytes, packed := v.Packed()
	if !packed {
		return memory.Block{}
	}
	return memory.FromC(unsafe.Pointer(C.ov_managed_wrap(b.managed, t, unsafe.Pointer(&bytes[0]), C.uint64_t(len(bytes)))))
}

const maxAxes = C.OVSTAGE_GO_MOST_AXES

// collect describes entry k of an array of tensors, in place. Memory of another device is refused here, before anything
// reads it.
func (b *batch) collect(argument string, k int, t *C.DLTensor) error {
	device := tensor.Device{Type: int32(t.device.device_type), ID: int32(t.device.device_id)}
	data := addressIn(unsafe.Pointer(&t.data))
	switch {
	case device.Type != tensor.CPU:
		return refuse(stage.NotSupported, "%s[%d].device is %s, which this build can't read: copy the tensor to the host first",
			argument, k, device)
	case t.ndim < 0 || t.ndim > maxAxes:
		return refuse(stage.InvalidArgument, "%s[%d].ndim is %d, expected 0 to %d", argument, k, t.ndim, maxAxes)
	case t.ndim > 0 && t.shape == nil:
		return refuse(stage.InvalidArgument, "%s[%d].shape is NULL with ndim %d", argument, k, t.ndim)
	case data > 0 && data < firstAddress:
		return refuse(stage.InvalidArgument, "%s[%d].data is %#x, which is no address", argument, k, data)
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

//export ovgoDeleteAttributes
func ovgoDeleteAttributes(
	c *C.ovstage_context_t, query C.ovstage_query_handle_t, attributes *C.ovx_string_or_token_t, count C.size_t,
	ordinal C.ovstage_ordinal_t,
) (result C.ovstage_enqueue_result_t) {
	var tried trials
	defer func() { tried.end(false) }() // a name that was not known deletes nothing
	defer guard(c, "ovstage_delete_attributes", &result.status)
	i := of(c)
	names, err := tried.attributes(i, "attributes", unsafe.Slice(attributes, int(count)))
	if err != nil {
		return enqueued(0, err)
	}
	return enqueued(i.stage.DeleteAttributes(stage.QueryID(query), names, uint64(ordinal)))
}

func dtypeOf(t C.DLDataType) tensor.DType {
	return tensor.DType{Code: tensor.Code(t.code), Bits: uint8(t.bits), Lanes: uint16(t.lanes)}
}
