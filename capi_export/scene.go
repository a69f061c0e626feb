package main

/*
#include <stdlib.h>
#include "ring.h"
*/
import "C"

import (
	"unsafe"

	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/scene"
	"ovstage.dev/ovstage/gocore/stage"
)

//export ovgoClone
func ovgoClone(
	c *C.ovstage_context_t, source, targets *C.ovx_string_t, count C.size_t, ordinal C.ovstage_ordinal_t,
) (result C.ovstage_enqueue_result_t) {
	defer guard(c, "ovstage_clone", &result.status)
	i := of(c)
	from, err := texts("source_path", &source, 1)
	if err != nil {
		return enqueued(0, err)
	}
	to, err := texts("target_paths", &targets, count)
	if err != nil {
		return enqueued(0, err)
	}
	return enqueued(i.scene.Clone(from[0], to, uint64(ordinal)))
}

//export ovgoGetHierarchy
func ovgoGetHierarchy(
	c *C.ovstage_context_t, list C.ovx_primpath_list_t, ordinal C.ovstage_ordinal_t, relation C.uint32_t, out *C.ovstage_hierarchy_handle_t,
) (result C.ovstage_enqueue_result_t) {
	defer guard(c, "ovstage_get_hierarchy", &result.status)
	i := of(c)
	id, op, err := i.scene.AskRelatives(pathdict.ListHandle(list), uint64(ordinal), scene.Relation(relation))
	*out = C.ovstage_hierarchy_handle_t(id)
	return enqueued(op, err)
}

//export ovgoFetchHierarchyResult
func ovgoFetchHierarchyResult(
	c *C.ovstage_context_t, handle C.ovstage_hierarchy_handle_t, out *C.ovstage_hierarchy_result_t,
) (status C.ovstage_api_status_t) {
	defer guard(c, "ovstage_fetch_hierarchy_result", &status)
	i := of(c)
	answer, err := i.scene.FetchRelatives(scene.RelativesID(handle))
	if err != nil {
		return fail(err)
	}
	if err := i.describe(answer, out); err != nil {
		return fail(err)
	}
	id := lastIdentity.Add(1)
	i.mu.Lock()
	i.relatives[id] = unsafe.Pointer(out.items)
	i.mu.Unlock()
	out.hierarchy_result_id = C.ovstage_hierarchy_result_id_t(id)
	return C.OVSTAGE_OK
}

// describe lays an answer out in one piece of C memory, which begins with the items: then the paths, then their texts.
func (i *instance) describe(answer *scene.Relatives, out *C.ovstage_hierarchy_result_t) error {
	texts, size := make([]string, len(answer.Paths)), 0
	for k, path := range answer.Paths {
		texts[k], _ = i.dict.PathString(path)
		size += len(texts[k]) + 1
	}
	itemsSize, pathsSize := len(answer.Ends)*C.sizeof_ovstage_hierarchy_item_t, len(texts)*C.sizeof_ovx_string_or_token_t
	memory := C.ov_alloc(C.size_t(itemsSize + pathsSize + size))
	if memory == nil {
		return refuse(stage.OutOfMemory, "ovstage_fetch_hierarchy_result: out of memory for %d paths", len(texts))
	}
	items := unsafe.Slice((*C.ovstage_hierarchy_item_t)(memory), len(answer.Ends))
	paths := unsafe.Slice((*C.ovx_string_or_token_t)(unsafe.Add(memory, itemsSize)), len(texts))
	bytes := unsafe.Slice((*byte)(unsafe.Add(memory, itemsSize+pathsSize)), size)
	start := 0
	for k, end := range answer.Ends {
		items[k] = C.ovstage_hierarchy_item_t{status: C.OVSTAGE_OK, path_offset: C.size_t(start), path_count: C.size_t(end - start)}
		if !answer.Known[k] {
			items[k].status = C.OVSTAGE_ERROR_NOT_FOUND
		}
		start = end
	}
	for k, text := range texts {
		n := copy(bytes, text)
		bytes[n] = 0
		view := C.ovx_string_t{ptr: (*C.char)(unsafe.Pointer(&bytes[0])), length: C.size_t(n)}
		paths[k] = C.ovx_string_or_token_t{string: view}
		bytes = bytes[n+1:]
	}
	*out = C.ovstage_hierarchy_result_t{
		ordinal:     C.ovstage_ordinal_t(answer.Ordinal),
		items:       (*C.ovstage_hierarchy_item_t)(memory),
		input_count: C.size_t(len(items)),
		paths:       (*C.ovx_string_or_token_t)(unsafe.Add(memory, itemsSize)),
		path_count:  C.size_t(len(paths)),
	}
	return nil
}

//export ovgoReleaseHierarchyResult
func ovgoReleaseHierarchyResult(c *C.ovstage_context_t, id C.ovstage_hierarchy_result_id_t) (status C.ovstage_api_status_t) {
	defer guard(c, "ovstage_release_hierarchy_result", &status)
	i := of(c)
	i.mu.Lock()
	memory, live := i.relatives[uint64(id)]
	delete(i.relatives, uint64(id))
	i.mu.Unlock()
	if !live {
		return fail(refuse(stage.InvalidHandle, "result: hierarchy_result_id %d is unknown or has been released", id))
	}
	C.free(memory)
	return C.OVSTAGE_OK
}

//export ovgoReleaseHierarchy
func ovgoReleaseHierarchy(c *C.ovstage_context_t, handle C.ovstage_hierarchy_handle_t) (result C.ovstage_enqueue_result_t) {
	defer guard(c, "ovstage_release_hierarchy", &result.status)
	i := of(c)
	return enqueued(i.scene.ReleaseRelatives(scene.RelativesID(handle)))
}

//export ovgoComputeHierarchy
func ovgoComputeHierarchy(c *C.ovstage_context_t, model C.uint32_t, from, to C.ovstage_ordinal_t) (result C.ovstage_enqueue_result_t) {
	defer guard(c, "ovstage_compute_hierarchy", &result.status)
	i := of(c)
	return enqueued(i.scene.Compute(scene.Model(model), uint64(from), uint64(to)))
}

//export ovgoInstancingGetPrototypeRoots
func ovgoInstancingGetPrototypeRoots(c *C.ovstage_context_t, out *C.ovx_primpath_list_t) (status C.ovstage_api_status_t) {
	defer guard(c, "ovstage_instancing_get_prototype_roots", &status)
	i := of(c)
	list, err := i.scene.Prototypes()
	*out = C.ovx_primpath_list_t(list)
	return fail(err)
}

//export ovgoInstancingGetPrototypeRoot
func ovgoInstancingGetPrototypeRoot(c *C.ovstage_context_t, instance C.ovx_primpath_t, out *C.ovx_primpath_t) (status C.ovstage_api_status_t) {
	defer guard(c, "ovstage_instancing_get_prototype_root", &status)
	i := of(c)
	prototype, err := i.scene.PrototypeOf(pathdict.Path(instance))
	*out = C.ovx_primpath_t(prototype)
	return fail(err)
}

//export ovgoInstancingGetInstanceRoots
func ovgoInstancingGetInstanceRoots(c *C.ovstage_context_t, prototype C.ovx_primpath_t, out *C.ovx_primpath_list_t) (status C.ovstage_api_status_t) {
	defer guard(c, "ovstage_instancing_get_instance_roots", &status)
	i := of(c)
	list, err := i.scene.Instances(pathdict.Path(prototype))
	*out = C.ovx_primpath_list_t(list)
	return fail(err)
}
