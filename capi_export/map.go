package main

/*
#include "ring.h"
*/
import "C"

import (
	"unsafe"

	"ovstage.dev/ovstage/gocore/stage"
	"ovstage.dev/ovstage/gocore/tensor"
)

// mappedGroup is a fetched group of an open map. The C structure of one has no identity, so clients name it by its tensors
// pointer, which is looked up among those of its map and never followed.
type mappedGroup struct {
	heldGroup
	key uint64
}

// commit ends the library's part in a mapped group, whose buffer now is the column's or free: tensors that a client has
// retained no longer keep the bytes.
func (i *instance) commit(g mappedGroup) {
	C.ov_tensors_give_up_data(g.tensors)
	i.release(g.heldGroup)
}

// drop commits or aborts all groups of a map that has ended.
func (i *instance) drop(session map[uintptr]mappedGroup) {
	for _, g := range session {
		i.commit(g)
	}
}

// end forgets a map and its groups.
func (i *instance) end(id stage.MapID) {
	i.mu.Lock()
	session := i.maps[id]
	delete(i.maps, id)
	i.mu.Unlock()
	i.drop(session)
}

//export ovgoMapAttribute
func ovgoMapAttribute(
	c *C.ovstage_context_t, query C.ovstage_query_handle_t, desc *C.ovstage_map_desc_t, ordinal C.ovstage_ordinal_t,
	array C.bool, sizes *C.size_t, count C.size_t, options *C.ovstage_go_map_options_t, out *C.ovstage_map_handle_t,
) (result C.ovstage_enqueue_result_t) {
	var tried trials
	defer func() { tried.end(result.status == C.OVSTAGE_OK) }()
	defer guard(c, "ovstage_map_attribute", &result.status)
	i := of(c)
	token, err := tried.attribute(i, "desc.attribute", &desc.attribute)
	if err != nil {
		return enqueued(0, err)
	}
	d := stage.MapDesc{
		Attribute: token,
		DType:     dtypeOf(desc.dtype),
		Semantic:  tensor.Semantic(desc.semantic),
		Mode:      stage.Mode(desc.prim_mode),
		Initial:   stage.Initial(options.initial),
		HasSizes:  bool(array),
		GroupRows: uint64(options.group_rows),
	}
	if count > 0 {
		d.ElementSizes = unsafe.Slice((*uint64)(unsafe.Pointer(sizes)), int(count))
	}
	id, op, err := i.stage.Map(stage.QueryID(query), d, uint64(ordinal))
	if err != nil {
		return enqueued(0, err)
	}
	i.mu.Lock()
	i.maps[id] = nil // no group is fetched yet; the entry says that the map is open
	i.mu.Unlock()
	*out = C.ovstage_map_handle_t(id)
	return enqueued(op, nil)
}

//export ovgoFetchMapNext
func ovgoFetchMapNext(
	c *C.ovstage_context_t, handle C.ovstage_map_handle_t, out *C.ovstage_map_group_t, keep **C.DLTensor,
) (status C.ovstage_api_status_t) {
	defer guard(c, "ovstage_fetch_map_next", &status)
	i := of(c)
	id := stage.MapID(handle)
	g, err := i.stage.FetchMap(id)
	if err != nil {
		return fail(err)
	}
	if g == nil {
		return C.OVSTAGE_ERROR_END_OF_ITERATION
	}
	held, err := i.hold(&g.Group, keep)
	if err != nil {
		i.stage.ReturnMap(id, g)
		return fail(err)
	}
	mapped := mappedGroup{held, g.Key}
	i.mu.Lock()
	session, open := i.maps[id]
	if open {
		if session == nil {
			session = map[uintptr]mappedGroup{}
			i.maps[id] = session
		}
		session[uintptr(unsafe.Pointer(held.tensors))] = mapped
	}
	i.mu.Unlock()
	if !open { // another thread has ended the map meanwhile
		if keep != nil {
			C.ov_tensors_release(*keep)
			*keep = nil
		}
		i.commit(mapped)
		return fail(refuse(stage.InvalidHandle, "map handle %d has been unmapped", id))
	}
	*out = C.ovstage_map_group_t{prims: prims(&g.Group), data: data(&g.Group, held.tensors), meta: meta(&g.Group)}
	return C.OVSTAGE_OK
}

//export ovgoUnmapGroup
func ovgoUnmapGroup(
	c *C.ovstage_context_t, handle C.ovstage_map_handle_t, tensors C.uintptr_t, adopt C.bool,
) (result C.ovstage_enqueue_result_t) {
	defer guard(c, "ovstage_unmap_group", &result.status)
	i := of(c)
	id, at := stage.MapID(handle), uintptr(tensors)
	i.mu.Lock()
	session, open := i.maps[id]
	g, known := session[at]
	i.mu.Unlock()
	if open && !known {
		return enqueued(0, refuse(stage.InvalidHandle,
			"group: data.tensors is %#x, which is no group of map %d that waits to be committed", at, id))
	}
	op, err := i.stage.UnmapGroup(id, g.key, bool(adopt))
	if err != nil {
		return enqueued(0, err)
	}
	if i.stage.OpFailed(op) {
		return enqueued(op, nil) // the group is uncommitted still, and the map goes on
	}
	i.mu.Lock()
	_, known = i.maps[id][at]
	delete(i.maps[id], at)
	i.mu.Unlock()
	if known {
		i.commit(g)
	}
	return enqueued(op, nil)
}

//export ovgoUnmapAttribute
func ovgoUnmapAttribute(c *C.ovstage_context_t, handle C.ovstage_map_handle_t, adopt C.bool) (result C.ovstage_enqueue_result_t) {
	defer guard(c, "ovstage_unmap_attribute", &result.status)
	i := of(c)
	op, err := i.stage.Unmap(stage.MapID(handle), bool(adopt))
	if err != nil {
		return enqueued(0, err)
	}
	i.end(stage.MapID(handle)) // whether or not the commit succeeded
	return enqueued(op, nil)
}

//export ovgoAbortMap
func ovgoAbortMap(c *C.ovstage_context_t, handle C.ovstage_map_handle_t) (status C.ovstage_api_status_t) {
	defer guard(c, "abort_map", &status)
	i := of(c)
	if err := i.stage.Abort(stage.MapID(handle)); err != nil {
		return fail(err)
	}
	i.end(stage.MapID(handle))
	return C.OVSTAGE_OK
}
