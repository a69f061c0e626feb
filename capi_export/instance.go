package main

/*
#include <stdlib.h>
#include <string.h>
#include "ring.h"
*/
import "C"

import (
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"unsafe"

	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/scene"
	"ovstage.dev/ovstage/gocore/stage"
)

// instance is the Go half of an ovstage_context_t: the stage, and what clients hold of it.
type instance struct {
	context *C.ovstage_context_t
	dict    *pathdict.Dictionary
	stage   *stage.Stage
	scene   *scene.Scene

	mu        sync.Mutex // guards the maps below; a leaf
	groups    map[uint64]heldGroup
	results   map[uint64]unsafe.Pointer // token arrays of query results, from malloc
	relatives map[uint64]unsafe.Pointer // answers about relatives, from malloc
	maps      map[stage.MapID]map[uintptr]mappedGroup
	asked     map[uint64]trials // by query: names of its filter that were new, which go with it
}

// instances finds the Go half by the number in the context. It is copied on every change, so that looking up takes no lock.
// A slot is used again only after its instance's gate has closed, hence no call can look up a successor by mistake.
var instances atomic.Pointer[[]*instance]

// Changes of instances and of the dictionary are ordered by the process lock in process.c, and by this one for the closing
// of stages, which runs outside of it.
var instancesMu sync.Mutex

// of returns the Go half of a context whose gate the caller has entered. It comes after the guard: a test build panics here.
func of(c *C.ovstage_context_t) *instance {
	panicIfTold()
	return (*instances.Load())[c.slot]
}

// Identities of groups and results, unique in the process: one of another instance is never mistaken for one's own.
var lastIdentity atomic.Uint64

// handOut notes what a client has until it gives it back, and returns its identity.
func handOut[T any](i *instance, given map[uint64]T, thing T) uint64 {
	id := lastIdentity.Add(1)
	i.mu.Lock()
	given[id] = thing
	i.mu.Unlock()
	return id
}

// takeBack ends that. It reports whether the client had it.
func takeBack[T any](i *instance, given map[uint64]T, id uint64) (thing T, had bool) {
	i.mu.Lock()
	thing, had = given[id]
	delete(given, id)
	i.mu.Unlock()
	return thing, had
}

//export ovgoCreateInstance
func ovgoCreateInstance(c *C.ovstage_context_t) (status C.ovstage_api_status_t) {
	defer guardProcess("ovstage_create_instance", &status)
	dict := openDictionary()
	i := &instance{
		context:   c,
		dict:      dict,
		stage:     stage.New(nameOf(c), dict, &stage.OpLog{Issued: word(&c.ops.issued), Failed: word(&c.ops.failed)}),
		groups:    map[uint64]heldGroup{},
		results:   map[uint64]unsafe.Pointer{},
		relatives: map[uint64]unsafe.Pointer{},
		maps:      map[stage.MapID]map[uintptr]mappedGroup{},
		asked:     map[uint64]trials{},
	}
	var err error
	if i.scene, err = scene.New(i.stage, dict); err != nil {
		return failText(C.OVSTAGE_ERROR_OUT_OF_MEMORY, "ovstage_create_instance: "+err.Error())
	}
	c.slot = C.uint32_t(enlist(i))
	return C.OVSTAGE_OK
}

// nameOf is a stage's name. C.GoString would do, but it looks for the end in steps that leave the string, which memory
// checkers report.
func nameOf(c *C.ovstage_context_t) string { return C.GoStringN(c.name, C.int(C.strlen(c.name))) }

// word gives the engine a counter that lives in C memory.
func word(p *C.uint64_t) *uint64 { return (*uint64)(unsafe.Pointer(p)) }

// enlist puts an instance into the first free slot.
func enlist(i *instance) int {
	instancesMu.Lock()
	defer instancesMu.Unlock()
	var table []*instance
	if now := instances.Load(); now != nil {
		table = append(table, *now...)
	}
	slot := 0
	for slot < len(table) && table[slot] != nil {
		slot++
	}
	if slot == len(table) {
		table = append(table, nil)
	}
	table[slot] = i
	instances.Store(&table)
	return slot
}

func delist(slot int) {
	instancesMu.Lock()
	defer instancesMu.Unlock()
	table := append([]*instance(nil), *instances.Load()...)
	table[slot] = nil
	instances.Store(&table)
}

// ovgoDestroyInstance ends the engine half. The gate is closed: no call is inside and none will come. Descriptors and buffers
// that clients have retained stay.
//
//export ovgoDestroyInstance
func ovgoDestroyInstance(c *C.ovstage_context_t) {
	defer delist(int(c.slot))
	var ignored C.ovstage_api_status_t
	defer guardProcess("ovstage_destroy_instance", &ignored)
	i := of(c)
	if atomic.LoadUint32((*uint32)(unsafe.Pointer(&c.poisoned))) == 0 {
		// A poisoned stage is left as it is. A change that broke off may have given away what the stage still counts as its
		// own, and a leak is better than a double release.
		i.stage.Unasked(i.tellUnasked)
		i.stage.Close()
	}
	for _, session := range i.maps {
		i.drop(session)
	}
	i.mu.Lock()
	groups := i.groups // a compaction that is under way looks at no more of them
	i.groups = nil
	i.mu.Unlock()
	for _, g := range groups {
		i.release(g)
	}
	for _, tried := range i.asked {
		tried.end(false)
	}
	for _, tokens := range i.results {
		C.free(tokens)
	}
	for _, answer := range i.relatives {
		C.free(answer)
	}
}

// guard turns a panic of an exported function into INTERNAL and takes the stage out of service. It is deferred by each of
// them, directly, and before the Go half of the stage is looked up.
func guard(c *C.ovstage_context_t, symbol string, status *C.ovstage_api_status_t) {
	if p := recover(); p != nil {
		text := report(symbol, p)
		text += fmt.Sprintf("; stage %q takes no further calls, destroy it", nameOf(c))
		C.ov_context_poison(c, chars(text), C.size_t(len(text)))
		*status = failText(C.OVSTAGE_ERROR_INTERNAL, text)
	}
}

// guardProcess is guard for functions without a stage in service.
func guardProcess(symbol string, status *C.ovstage_api_status_t) {
	if p := recover(); p != nil {
		*status = failText(C.OVSTAGE_ERROR_INTERNAL, report(symbol, p))
	}
}

// report logs a panic with its stack and returns the text for the caller.
func report(symbol string, p any) string {
	text := fmt.Sprintf("%s met a fault of the library, not of the caller: %v", symbol, p)
	logged := text + "\n" + string(debug.Stack())
	C.ov_log_text(C.OVSTAGE_LOG_ERROR, chars(logged), C.size_t(len(logged)))
	return text
}

// chars gives a string's bytes to a C function that copies them.
func chars(s string) *C.char { return (*C.char)(unsafe.Pointer(unsafe.StringData(s))) }

// fail records a failure as this thread's last error and returns its code; no failure is OK.
func fail(err error) C.ovstage_api_status_t {
	if err == nil {
		return C.OVSTAGE_OK
	}
	return failText(C.ovstage_api_status_t(stage.CodeOf(err)), err.Error())
}

func failText(status C.ovstage_api_status_t, text string) C.ovstage_api_status_t {
	return C.ov_fail_text(status, chars(text), C.size_t(len(text)))
}

// enqueued is the answer of an enqueueing call.
func enqueued(op uint64, err error) C.ovstage_enqueue_result_t {
	if err != nil {
		return C.ovstage_enqueue_result_t{status: fail(err)}
	}
	return C.ovstage_enqueue_result_t{status: C.OVSTAGE_OK, op_index: C.ovstage_op_id_t(op)}
}

// refuse is a failure found in the ring, before the stage was asked.
func refuse(code stage.Code, format string, args ...any) error {
	return &stage.Error{Code: code, Text: fmt.Sprintf(format, args...)}
}
