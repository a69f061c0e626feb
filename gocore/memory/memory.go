// Package memory keeps the bytes of columns outside the Go heap: aligned, reference counted, recycled.
//
// Three things ask for that. Views and DLPack exports outlive the call, the stage and even the runtime that made them, so
// they need a count that C can drop on any thread. Rewriting large buffers on the Go heap doubles the peak memory, because
// the collector frees a version only after the next one exists. And the first touch of fresh pages costs more than the copy
// into them, so freed blocks go to a pool instead of the system.
//
// It is the only package of the engine that uses cgo, but for one of its tests (borrowed). The allocator itself, with its lock and its fork rules, is ov_block.c.
package memory

/*
#cgo CFLAGS: -std=c11 -Wall -Wextra -Wno-unused-parameter
#cgo LDFLAGS: -lpthread
#cgo nocallback ov_block_alloc
#cgo nocallback ov_block_alloc_zeroed
#cgo nocallback ov_block_detach
#include "ov_block.h"
*/
import "C"

import (
	_ "embed"
	"fmt"
	"sync/atomic"
	"unsafe"
)

// The C files of the shared library include this header too. Embedding it makes an edit of the header change this package,
// and with it rebuild the packages that import it; the go command does not see an include across packages by itself.
//
//go:embed ov_block.h
var _ string

// Purpose says what a block is for. Counters are kept per purpose.
type Purpose uint32

// The purposes, in the order of Stats.LiveBytes and Stats.LiveBlocks.
const (
	Columns     Purpose = C.OV_PURPOSE_COLUMNS     // payloads of attribute columns
	Maps        Purpose = C.OV_PURPOSE_MAPS        // copies that last for one call
	Indices     Purpose = C.OV_PURPOSE_INDICES     // index maps of groups
	Descriptors Purpose = C.OV_PURPOSE_DESCRIPTORS // tensor descriptors handed to C
	Strings     Purpose = C.OV_PURPOSE_STRINGS     // bytes of interned tokens and paths

	purposes = C.OV_PURPOSES
)

// String returns the purpose as it appears in messages.
func (p Purpose) String() string {
	switch p {
	case Columns:
		return "columns"
	case Maps:
		return "maps"
	case Indices:
		return "index maps"
	case Descriptors:
		return "descriptors"
	case Strings:
		return "strings"
	}
	return fmt.Sprintf("purpose %d", uint32(p))
}

// Largest is the most bytes that a block may have.
const Largest = C.OV_LARGEST

// OutOfMemory is the error of an allocation that neither the system nor the pool could serve.
type OutOfMemory struct {
	Size    int     // bytes asked for
	Purpose Purpose // what for
}

// Error names the size and what can be done about it.
func (e *OutOfMemory) Error() string {
	return fmt.Sprintf("out of memory: %d bytes for %s could not be allocated; release groups, views and maps that are "+
		"no longer needed, or use fewer rows", e.Size, e.Purpose)
}

// Block is one buffer, as a handle: copying it copies no bytes and adds no reference. Each reference is released
// once. Blocks compare equal when they are the same buffer; the zero value is no block.
type Block struct{ p *C.ov_block }

// Alloc returns a block of size bytes with one reference. Its contents are unspecified, often those of a released block.
// Size 0 is legal. The error is an *OutOfMemory.
func Alloc(size int, purpose Purpose) (Block, error) {
	if size < 0 || exhausted() {
		return Block{}, &OutOfMemory{size, purpose}
	}
	return issued(C.ov_block_alloc(C.uint64_t(size), C.uint32_t(purpose)), size, purpose)
}

// AllocZeroed is Alloc with zeroed bytes. From 4 MiB up its cost does not depend on the size: the system supplies zeroed
// pages at first touch.
func AllocZeroed(size int, purpose Purpose) (Block, error) {
	if size < 0 || exhausted() {
		return Block{}, &OutOfMemory{size, purpose}
	}
	return issued(C.ov_block_alloc_zeroed(C.uint64_t(size), C.uint32_t(purpose)), size, purpose)
}

// allowance is how many more allocations succeed; negative when a test has set no limit.
var allowance atomic.Int64

func init() { allowance.Store(-1) }

// Limit lets n more allocations succeed and fails those after them as if memory had run out, until lift is called. It is for
// tests of what happens then, and holds for the whole process.
func Limit(n int) (lift func()) {
	allowance.Store(int64(n))
	return func() { allowance.Store(-1) }
}

// exhausted reports whether a limit stops an allocation.
func exhausted() bool {
	return allowance.Load() >= 0 && allowance.Add(-1) < 0 && allowance.CompareAndSwap(-1, 0)
}

func issued(p *C.ov_block, size int, purpose Purpose) (Block, error) {
	if p == nil {
		return Block{}, &OutOfMemory{size, purpose}
	}
	return Block{p}, nil
}

// Valid reports whether b is a block at all.
func (b Block) Valid() bool { return b.p != nil }

// Retain adds a reference and returns b, so that it reads as "keep this one". No block stays no block.
func (b Block) Retain() Block {
	if b.p != nil {
		atomic.AddInt64((*int64)(&b.p.refs), 1)
	}
	return b
}

// Release drops a reference. The last one gives the memory back, and only that one costs a call into C. Releasing no block
// does nothing; releasing more often than retaining is a bug of the engine and panics.
func (b Block) Release() {
	if b.p == nil {
		return
	}
	switch refs := atomic.AddInt64((*int64)(&b.p.refs), -1); {
	case refs == 0:
		C.ov_block_retire(b.p)
	case refs < 0:
		panic(fmt.Sprintf("memory: a block of %d bytes for %s was released more often than retained", b.Size(), Purpose(b.p.purpose)))
	}
}

// Refs returns the number of references, 0 for no block. It counts what C holds as well; another thread may change it at
// any time, so only 1, the caller's own, is a lasting answer.
func (b Block) Refs() int {
	if b.p == nil {
		return 0
	}
	return int(atomic.LoadInt64((*int64)(&b.p.refs)))
}

// Size returns the bytes asked for, 0 for no block.
func (b Block) Size() int {
	if b.p == nil {
		return 0
	}
	return int(b.p.size)
}

// Capacity returns the usable bytes, at least Size.
func (b Block) Capacity() int {
	if b.p == nil {
		return 0
	}
	return int(b.p.capacity)
}

// Bytes returns all usable bytes; its length is Capacity. The slice is valid while a reference is held.
func (b Block) Bytes() []byte {
	if b.p == nil {
		return nil
	}
	return unsafe.Slice((*byte)(b.p.data), b.Capacity())
}

// Uint32s returns the first n 32-bit words. It panics when the block is too small for them.
func (b Block) Uint32s(n int) []uint32 {
	if n < 0 || n > b.Capacity()/4 {
		panic(fmt.Sprintf("memory: %d 32-bit words do not fit a block of %d bytes", n, b.Capacity()))
	}
	return unsafe.Slice((*uint32)(b.Pointer()), n)
}

// Guarding reports whether some stage wants writes through views of sealed bytes to be caught. Blocks that are made meanwhile can
// be protected.
func Guarding() bool { return C.ov_memory_guarding() != 0 }

// Guarded reports whether a reader can make the bytes read-only, at any moment while it holds a reference.
func (b Block) Guarded() bool { return b.p != nil && b.p.guarded != 0 }

// Writable returns b, whose bytes may be written to from now on. The caller alone holds it.
func (b Block) Writable() Block {
	if b.p != nil && atomic.LoadUint32((*uint32)(&b.p.protected)) != 0 {
		C.ov_block_unprotect(b.p)
	}
	return b
}

// Foreign reports whether the bytes belong to a client: they are read, never written to and never recycled.
func (b Block) Foreign() bool { return b.p != nil && b.p.give_back != nil }

// Pointer returns the address of the first byte, nil for no block.
func (b Block) Pointer() unsafe.Pointer {
	if b.p == nil {
		return nil
	}
	return b.p.data
}

// C returns the ov_block itself, to be handed to C code. No reference is added.
func (b Block) C() unsafe.Pointer { return unsafe.Pointer(b.p) }

// FromC is the inverse of Block.C: p is an ov_block pointer or nil. No reference is added.
func FromC(p unsafe.Pointer) Block { return Block{(*C.ov_block)(p)} }

// Detach returns a new block, with one reference, that owns b's bytes at a new address. b keeps its address and stays
// writable with unspecified contents: a write through a view of it no longer reaches the bytes. From 1 MiB up
// pages are moved instead of copied. The error is an *OutOfMemory, and b is then as it was. No block gives no block.
func (b Block) Detach() (Block, error) {
	if b.p == nil {
		return Block{}, nil
	}
	if exhausted() {
		return Block{}, &OutOfMemory{b.Size(), Purpose(b.p.purpose)}
	}
	return issued(C.ov_block_detach(b.p), b.Size(), Purpose(b.p.purpose))
}

// Hollow reports whether a Detach moved the pages of the block away. Where they could not be moved they were copied.
func (b Block) Hollow() bool { return b.p != nil && b.p.hollow != 0 }
