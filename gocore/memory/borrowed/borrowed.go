// Package borrowed makes blocks over memory that belongs to a client, for tests: an owner in C hands its memory over
// with ov_block_foreign, and Go tests can't call C themselves.
package borrowed

/*
#cgo CFLAGS: -std=c11 -I${SRCDIR}/..
#include <stdlib.h>
#include "ov_block.h"

static int64_t given_back;

static void count_and_free(void *data)
{
    (void)__atomic_fetch_add(&given_back, 1, __ATOMIC_RELAXED);
    free(data);
}

static ov_block *borrow(uint64_t size)
{
    void *data = aligned_alloc(64, (size + 63) & ~(uint64_t)63);
    return data == NULL ? NULL : ov_block_foreign(data, size, OV_PURPOSE_COLUMNS, count_and_free, data);
}

static int64_t given_back_so_far(void) { return __atomic_load_n(&given_back, __ATOMIC_RELAXED); }
*/
import "C"

import (
	"unsafe"

	"ovstage.dev/ovstage/gocore/memory"
)

// Block returns a block over size bytes of the C library's, which takes them back with the last reference.
func Block(size int) memory.Block {
	return memory.FromC(unsafe.Pointer(C.borrow(C.uint64_t(size))))
}

// GivenBack gives back what is due, as every call into the library does when it ends, and counts the blocks so far.
func GivenBack() int {
	C.ov_blocks_give_back()
	return int(C.given_back_so_far())
}
