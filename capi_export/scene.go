package main

/*
#include "ring.h"
*/
import "C"

import "ovstage/gocore/scene"

//export ovgoComputeHierarchy
func ovgoComputeHierarchy(c *C.ovstage_context_t, model C.uint32_t, from, to C.ovstage_ordinal_t) (result C.ovstage_enqueue_result_t) {
	i := of(c)
	defer i.guard("ovstage_compute_hierarchy", &result.status)
	return enqueued(i.scene.Compute(scene.Model(model), uint64(from), uint64(to)))
}
