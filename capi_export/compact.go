package main

/*
#include "ring.h"
*/
import "C"

import (
	"sync/atomic"
	"unsafe"

	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/stage"
)

// ovgoCompact is compact of the extension table: every stage of the process says what it names.
//
//export ovgoCompact
func ovgoCompact(c *C.ovstage_context_t, dropped *C.uint64_t) (status C.ovstage_api_status_t) {
	defer guard(c, "compact", &status)
	i := of(c)
	for _, one := range inService() {
		one.stage.Forget()
	}
	gone, err := i.dict.Compact(func(n *pathdict.Named) error {
		for _, one := range inService() {
			one.stage.Name(n)
			one.nameGroups(n)
		}
		return nil
	})
	if err != nil {
		return fail(refuse(stage.OutOfMemory, "%s", err))
	}
	*dropped = C.uint64_t(gone.Paths)
	return C.OVSTAGE_OK
}

// inService lists the stages of the process but those that a panic has stopped: these can't be asked what a path is.
func inService() (all []*instance) {
	for _, one := range *instances.Load() {
		if one != nil && atomic.LoadUint32((*uint32)(unsafe.Pointer(&one.context.poisoned))) == 0 {
			all = append(all, one)
		}
	}
	return all
}

// nameGroups says what the values of the groups name that clients hold.
func (i *instance) nameGroups(n *pathdict.Named) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, g := range i.groups {
		stage.NameValues(n, g.role, g.numbers)
	}
}

// ovgoPathTexts is path_texts of the extension table.
//
//export ovgoPathTexts
func ovgoPathTexts(
	c *C.ovstage_context_t, paths *C.ovx_primpath_t, n C.size_t, buffer *C.char, capacity C.size_t, ends, done *C.size_t,
) (status C.ovstage_api_status_t) {
	defer guard(c, "path_texts", &status)
	i := of(c)
	room, stops := unsafe.Slice((*byte)(unsafe.Pointer(buffer)), int(capacity)), unsafe.Slice((*int)(unsafe.Pointer(ends)), int(n))
	written, err := i.dict.PathTexts(pathsOf(paths, n), room, stops)
	if err != nil {
		return fail(refuse(stage.InvalidArgument, "paths: %s", err))
	}
	*done = C.size_t(written)
	return C.OVSTAGE_OK
}
