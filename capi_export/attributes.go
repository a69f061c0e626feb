package main

/*
#include <stdlib.h>
#include "ring.h"
*/
import "C"

import (
	"unsafe"

	"ovstage.dev/ovstage/gocore/stage"
)

// ovgoAttributes hands out an array that C frees, since how many there are is known only now.
//
//export ovgoAttributes
func ovgoAttributes(c *C.ovstage_context_t, out **C.ovstage_go_attribute_t, count *C.size_t) (status C.ovstage_api_status_t) {
	defer guard(c, "attributes", &status)
	i := of(c)
	found, err := i.stage.Attributes()
	if err != nil {
		return fail(err)
	}
	if len(found) == 0 {
		return C.OVSTAGE_OK
	}
	array := (*C.ovstage_go_attribute_t)(C.calloc(C.size_t(len(found)), C.sizeof_ovstage_go_attribute_t))
	if array == nil {
		return fail(refuse(stage.OutOfMemory, "out of memory for a list of %d attributes", len(found)))
	}
	for k, a := range found {
		unsafe.Slice(array, len(found))[k] = C.ovstage_go_attribute_t{
			attribute: C.ovx_token_t(a.Name),
			type_name: C.ovx_token_t(a.Schema.Type.Token),
			dtype: C.DLDataType{
				code: C.uint8_t(a.Schema.DType.Code), bits: C.uint8_t(a.Schema.DType.Bits), lanes: C.uint16_t(a.Schema.DType.Lanes),
			},
			semantic:    C.ovstage_attribute_semantic_t(a.Schema.Semantic),
			is_array:    C.bool(a.Schema.Array),
			prims:       C.uint64_t(a.Prims),
			write_floor: C.ovstage_ordinal_t(a.Floor),
			newest:      C.ovstage_ordinal_t(a.Newest),
			bytes:       C.uint64_t(a.Bytes),
		}
	}
	*out, *count = array, C.size_t(len(found))
	return C.OVSTAGE_OK
}
