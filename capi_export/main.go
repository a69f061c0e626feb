// Command capi_export is the C ABI: built with -buildmode=c-shared it is libovstage.so, the only thing that clients link.
//
// It holds no behaviour of its own. A call comes in through a C function, which refuses what needs no engine to be refused
// (a forked child, a destroyed stage, a NULL) and answers what needs none to be answered (is this operation finished? keep
// this buffer). All else it hands to one Go function, which translates C structures to the stage's terms, calls the stage
// once, and translates the answer back.
//
//	include/          the public headers: what is promised
//	ring.h            what the C files and the Go files share
//	vtable.c          the slots of a stage         -> query.go write.go read.go map.go ops.go, names.go for attributes
//	dictionary.c      the slots of the dictionary  -> dictionary.go
//	process.c         initialise, create, destroy  -> instance.go
//	scene.c           what prims are to each other -> scene.go
//	extension.c       the table "ovstage.go.v1"    -> the same, publish.go attributes.go counters.go compact.go
//	inputs.c          what callers hand in, copied before it is judged
//	call.c gate.c     how each call begins and ends; how a destroy waits for the calls inside
//	ops.c             waiting for operations without Go
//	descriptor.c      the tensors that groups point at
//	managed.c         tensors that a write brings along, and their deleters
//	export.c          DLPack exports and their deleters
//	floor.c           waiting for the write floor, without Go while nothing moves
//	unasked.c         operations that failed, unasked
//	log.c             the thread that delivers log messages; log_rules.h says which pass
//	note.c            what the file says of itself without being loaded
//	panic.go          a panic where a test build is told to; nopanic.go is for every other build
//	interface.c       the interface levels, and how each lays out the values of a group
//	absent.c          what is not built yet, each with its refusal
//
// # Adding a function
//
// Declare it in the public header and say there what it promises. Give it a C function in vtable.c (or, if it is flat, in
// the file of its subject): enter, check every pointer, call ovgoX, leave. Write ovgoX beside its kin in Go: defer the
// guard, look the instance up, translate, call the stage, report a failure with fail. A new slot goes to the end of its
// table; a new extension function too, where struct_size tells clients that it is there. tests/c/panics.c finds ovgoX by itself
// and wants its guard.
//
// # Memory
//
// Pointers to Go memory never cross, in either direction: C gets blocks, descriptors and copies, all of them C memory. Go looks
// at C memory in place, for the length of the call, which is safe since operations are finished when it returns. What it judges
// there is a copy that was made for the call (inputs.c): a caller may change its own at any time.
//
// # Panics
//
// Each exported function defers one guard. A panic becomes INTERNAL with its text, and the stage refuses all further calls:
// it may have been caught in the middle of a change. The process goes on.
package main

/*
#cgo CFLAGS: -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -I${SRCDIR}/include -I${SRCDIR}/../gocore/memory
#cgo LDFLAGS: -lpthread -ldl
#include "ring.h"
*/
import "C"

import "embed"

// The go command sees an edit of a header only where the header is an input of the package. Embedding makes the public ones
// that; those of package memory are embedded there, and an edit rebuilds this package through the import.
//
//go:embed include
var _ embed.FS

func main() {}
