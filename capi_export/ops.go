package main

/*
#include "ring.h"
*/
import "C"

import "ovstage.dev/ovstage/gocore/stage"

// ovgoOpFailure returns how an operation failed, OK if it did not, and leaves the text with the thread.
//
//export ovgoOpFailure
func ovgoOpFailure(c *C.ovstage_context_t, op C.uint64_t) (status C.ovstage_api_status_t) {
	defer guard(c, "ovstage_wait_op", &status)
	i := of(c)
	failure := i.stage.OpError(uint64(op))
	if failure == nil {
		return C.OVSTAGE_OK
	}
	text := failure.Error()
	C.ov_op_error_set(chars(text), C.size_t(len(text)))
	return C.ovstage_api_status_t(stage.CodeOf(failure))
}

//export ovgoForgetOp
func ovgoForgetOp(c *C.ovstage_context_t, op C.uint64_t) (status C.ovstage_api_status_t) {
	defer guard(c, "ovstage_release_op", &status)
	i := of(c)
	if failure := i.stage.ForgetOp(uint64(op)); failure != nil {
		i.tellUnasked(uint64(op), failure)
	}
	return C.OVSTAGE_OK
}

// tellUnasked is for a failure that leaves the record without having been asked for.
func (i *instance) tellUnasked(op uint64, failure error) {
	text := failure.Error()
	C.ov_unasked_operation(i.context, C.uint64_t(op), C.ovstage_api_status_t(stage.CodeOf(failure)), chars(text), C.size_t(len(text)))
}
