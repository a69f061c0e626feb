package main

/*
#include "ring.h"
*/
import "C"

// ovgoOpFailure returns how an operation failed, OK if it did not, and leaves the text with the thread.
//
//export ovgoOpFailure
func ovgoOpFailure(c *C.ovstage_context_t, op C.uint64_t) (status C.ovstage_api_status_t) {
	i := of(c)
	defer i.guard("ovstage_wait_op", &status)
	failure, failed := i.stage.OpError(uint64(op))
	if !failed {
		return C.OVSTAGE_OK
	}
	C.ov_op_error_set(chars(failure.Text), C.size_t(len(failure.Text)))
	return C.ovstage_api_status_t(failure.Code)
}

//export ovgoForgetOp
func ovgoForgetOp(c *C.ovstage_context_t, op C.uint64_t) (status C.ovstage_api_status_t) {
	i := of(c)
	defer i.guard("ovstage_release_op", &status)
	i.stage.ForgetOp(uint64(op))
	return C.OVSTAGE_OK
}
