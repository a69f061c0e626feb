package main

/*
#include "ring.h"
*/
import "C"

import (
	"sync/atomic"
	"unsafe"

	"ovstage.dev/ovstage/gocore/column"
	"ovstage.dev/ovstage/gocore/memory"
	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/stage"
	"ovstage.dev/ovstage/gocore/tensor"
)

// heldGroup is what a client holds by a fetched group: the tensors with their buffers, and the list that the prims are
// positions in.
type heldGroup struct {
	tensors *C.DLTensor // made by ov_tensors_fixed or ov_tensors_ragged
	list    pathdict.ListHandle
	numbers []byte          // its values, kept by tensors, where they can be handles of paths or tokens,
	role    tensor.Semantic // as their role says
}

// release ends the library's part in a group. Retained tensors live on; the list, which needs the engine, does not.
func (i *instance) release(g heldGroup) {
	C.ov_tensors_release(g.tensors)
	_ = i.dict.ReleaseRef(g.list) // the reference was the group's own, so it is there
}

//export ovgoReadAttributes
func ovgoReadAttributes(
	c *C.ovstage_context_t, query C.ovstage_query_handle_t, attrs *C.ovx_token_t, count C.size_t,
	span *C.ovstage_ordinal_range_t, out *C.ovstage_read_handle_t,
) (result C.ovstage_enqueue_result_t) {
	defer guard(c, "ovstage_read_attributes", &result.status)
	i := of(c)
	id, op, err := i.stage.Read(stage.QueryID(query), tokens(attrs, count), stage.Range{
		Start: uint64(span.start_ordinal), End: uint64(span.end_ordinal), HasStart: bool(span.has_start_ordinal),
	})
	*out = C.ovstage_read_handle_t(id)
	return enqueued(op, err)
}

//export ovgoReadSince
func ovgoReadSince(
	c *C.ovstage_context_t, query C.ovstage_query_handle_t, cursors *C.ovstage_go_cursor_t, count C.size_t,
	out *C.ovstage_read_handle_t,
) (result C.ovstage_enqueue_result_t) {
	defer guard(c, "read_since", &result.status)
	i := of(c)
	given := unsafe.Slice(cursors, count)
	own := make([]stage.Cursor, count)
	for k, g := range given {
		own[k] = stage.Cursor{
			Attribute: pathdict.Token(g.attribute),
			Since:     uint64(g.since),
			Until:     uint64(g.until),
			Limited:   bool(g.limited),
			Resync:    bool(g.resync),
		}
	}
	id, op, err := i.stage.ReadSince(stage.QueryID(query), own)
	for k, o := range own {
		given[k].until, given[k].resync = C.ovstage_ordinal_t(o.Until), C.bool(o.Resync)
	}
	*out = C.ovstage_read_handle_t(id)
	return enqueued(op, err)
}

//export ovgoReleaseRead
func ovgoReleaseRead(c *C.ovstage_context_t, read C.ovstage_read_handle_t) (result C.ovstage_enqueue_result_t) {
	defer guard(c, "ovstage_release_read", &result.status)
	i := of(c)
	return enqueued(i.stage.ReleaseRead(stage.ReadID(read)))
}

// ovgoReadMissing is read_missing of the extension table.
//
//export ovgoReadMissing
func ovgoReadMissing(
	c *C.ovstage_context_t, read C.ovstage_read_handle_t, index C.size_t, attribute *C.ovx_token_t, reason *C.char, capacity C.size_t,
) (length C.size_t) {
	var ignored C.ovstage_api_status_t
	defer guard(c, "read_missing", &ignored)
	i := of(c)
	m, found := i.stage.Missing(stage.ReadID(read), uint64(index))
	if !found {
		return 0
	}
	*attribute = C.ovx_token_t(m.Attribute)
	copy(unsafe.Slice((*byte)(unsafe.Pointer(reason)), capacity), m.Reason)
	return C.size_t(len(m.Reason))
}

//export ovgoFetchReadNext
func ovgoFetchReadNext(
	c *C.ovstage_context_t, read C.ovstage_read_handle_t, out *C.ovstage_read_group_t, keep **C.DLTensor,
) (status C.ovstage_api_status_t) {
	defer guard(c, "ovstage_fetch_read_next", &status)
	i := of(c)
	g, err := i.stage.HandRead(stage.ReadID(read), func(g *stage.Group) error {
		held, err := i.hold(g, keep)
		if err != nil {
			return err
		}
		if g.Data.Guarded() { // asked here: the way into C costs more than all the rest of a small fetch
			C.ov_block_protect(block(g.Data)) // the stage has it to itself no longer
		}
		*out = C.ovstage_read_group_t{
			attribute: C.ovx_token_t(g.Attribute),
			ordinal:   C.ovstage_ordinal_t(g.Ordinal),
			is_delete: C.bool(g.Delete),
			is_array:  C.bool(g.Array),
			semantic:  C.ovstage_attribute_semantic_t(g.Semantic),
			prims:     prims(g),
			data:      data(g, held.tensors),
			meta:      meta(g),
		}
		out.read_group_id = C.ovstage_read_group_id_t(handOut(i, i.groups, held))
		return nil
	})
	if err != nil {
		return fail(err)
	}
	if g == nil {
		return C.OVSTAGE_ERROR_END_OF_ITERATION
	}
	return C.OVSTAGE_OK
}

//export ovgoReleaseGroup
func ovgoReleaseGroup(c *C.ovstage_context_t, id C.ovstage_read_group_id_t) (status C.ovstage_api_status_t) {
	defer guard(c, "ovstage_release_group", &status)
	i := of(c)
	g, live := takeBack(i, i.groups, uint64(id))
	if !live {
		return fail(refuse(stage.InvalidHandle, "group: read_group_id %d is unknown or has been released", id))
	}
	i.release(g)
	return C.OVSTAGE_OK
}

// hold makes the tensors of a group, which take over the group's references, unless there is no memory for them. A client
// that asked to keep them has its reference before another thread can learn of the group.
func (i *instance) hold(g *stage.Group, keep **C.DLTensor) (heldGroup, error) {
	references := C.int64_t(1)
	if keep != nil {
		references = 2
	}
	values := C.ov_values{
		dtype:    C.DLDataType{code: C.uint8_t(g.DType.Code), bits: C.uint8_t(g.DType.Bits), lanes: C.uint16_t(g.DType.Lanes)},
		semantic: C.ovstage_attribute_semantic_t(g.Semantic),
		level:    C.uint32_t(atomic.LoadUint32((*uint32)(unsafe.Pointer(&i.context.level)))),
	}
	var tensors *C.DLTensor
	if g.Spans.Valid() {
		tensors = C.ov_tensors_ragged(block(g.Data), block(g.Spans), C.uint32_t(g.Count), values, C.uint64_t(g.DType.Size()),
			block(g.PrimMap), references)
	} else {
		tensors = C.ov_tensors_fixed(block(g.Data), C.uint64_t(g.DataOffset), C.int64_t(g.Rows), values, block(g.PrimMap),
			block(g.DataMap), references)
	}
	if tensors == nil {
		return heldGroup{}, refuse(stage.OutOfMemory, "out of memory for the tensors of a group of %d prims", g.Count)
	}
	if keep != nil {
		*keep = tensors
	}
	if g.Type != 0 {
		C.ov_tensors_name_type(tensors, C.ovx_token_t(g.Type))
	}
	return heldGroup{tensors, g.List, g.Numbers(), g.Semantic}, nil
}

// The spans of an array column are read as they lie.
var _ [C.sizeof_ov_span]byte = [column.SpanSize]byte{}

func block(b memory.Block) *C.ov_block { return (*C.ov_block)(b.C()) }

func prims(g *stage.Group) C.ovstage_prim_group_t {
	return C.ovstage_prim_group_t{
		list:      C.ovx_primpath_list_t(g.List),
		offset:    C.uint32_t(g.PrimOffset),
		count:     C.uint32_t(g.PrimCount),
		index_map: indices(g.PrimMap),
	}
}

func data(g *stage.Group, tensors *C.DLTensor) C.ovstage_data_t {
	if g.Delete {
		return C.ovstage_data_t{} // a tombstone shows no tensors: the one it has keeps the index map
	}
	count := C.uint32_t(1)
	if g.Array {
		count = C.uint32_t(g.Count)
	}
	return C.ovstage_data_t{
		tensors:      tensors,
		tensor_count: count,
		count:        C.uint32_t(g.Count),
		index_map:    indices(g.DataMap),
	}
}

func meta(g *stage.Group) C.ovstage_attribute_meta_t {
	return C.ovstage_attribute_meta_t{
		attribute_write_floor_ordinal: C.ovstage_ordinal_t(g.Floor),
		layout_generation:             C.uint64_t(g.Generation),
	}
}

// indices is the address of an index map's first entry, nil for none.
func indices(b memory.Block) *C.uint32_t { return (*C.uint32_t)(unsafe.Pointer(b.Pointer())) }
