//go:build faults

package main

/*
#include "ring.h"
*/
import "C"

import (
	"runtime"
	"strings"
	"sync/atomic"
)

// told is the name of the exported function that is to panic, nil for none.
var told atomic.Pointer[string]

// The test build (tests/c/panics.c): the next call of the Go function of this name panics, once.
//
//export ovstage_test_panic
func ovstage_test_panic(name *C.char) {
	text := C.GoString(name)
	told.Store(&text)
}

// Whether the panic that ovstage_test_panic asked for is still to come.
//
//export ovstage_test_panic_is_due
func ovstage_test_panic_is_due() C.bool { return told.Load() != nil }

// panicIfTold panics where the exported function that it runs in was named.
func panicIfTold() {
	name := told.Load()
	if name == nil {
		return
	}
	callers := make([]uintptr, 16)
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
	for {
		frame, more := frames.Next()
		if function, exported := strings.CutPrefix(frame.Function, "main."); exported && function == *name {
			if told.CompareAndSwap(name, nil) {
				panic("the test build was told to panic in " + function)
			}
		}
		if !more {
			return
		}
	}
}
