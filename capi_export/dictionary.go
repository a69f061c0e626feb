package main

/*
#include "ring.h"
*/
import "C"

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"ovstage.dev/ovstage/gocore/pathdict"
)

// shared is the dictionary of the process: made with the first instance, closed with the last. Both happen under the process
// lock; calls find it open because they have entered its gate.
var shared atomic.Pointer[pathdict.Dictionary]

// nextBase is the first handle that no dictionary of this process has minted: a successor refuses the handles of the earlier
// ones instead of misreading them.
var nextBase uint64

// dictionary returns it to a call that has entered its gate. It comes after the guard: a test build panics here.
func dictionary() *pathdict.Dictionary {
	panicIfTold()
	return shared.Load()
}

func openDictionary() *pathdict.Dictionary {
	panicIfTold()
	if d := shared.Load(); d != nil {
		return d
	}
	d := pathdict.New(nextBase)
	shared.Store(d)
	return d
}

//export ovgoCloseDictionary
func ovgoCloseDictionary() {
	var ignored C.ovstage_api_status_t
	defer guardProcess("ovstage_destroy_instance", &ignored)
	panicIfTold()
	d := shared.Swap(nil)
	nextBase = d.End()
	d.Close()
}

// Errors of the dictionary go to the caller, to be released; {NULL, 0} is success.

func ownedText(text string) C.ovx_string_t {
	return C.ov_dictionary_error(chars(text), C.size_t(len(text)))
}

func outcome(err error) C.ovx_string_t {
	if err == nil {
		return C.ovx_string_t{}
	}
	return ownedText(err.Error())
}

// refuseEntry is an error found before the dictionary was asked, in its wording.
func refuseEntry(format string, args ...any) error {
	return pathdict.Error(fmt.Sprintf(format, args...))
}

// guardDictionary turns a panic into an error. The dictionary stays in service: it is shared, and it holds its locks by
// defer.
func guardDictionary(symbol string, text *C.ovx_string_t) {
	if p := recover(); p != nil {
		*text = ownedText(report(symbol, p))
	}
}

// maxString is where a length is no length any more but a mistake.
const maxString = 1 << 40

// stringsOf looks at an array of views in place: an ovx_string_t is laid out as a Go string is. It refuses what can't be
// one. what is "Token" or "Path".
func stringsOf(what string, p *C.ovx_string_t, n C.size_t) ([]string, error) {
	views := unsafe.Slice(p, int(n))
	for k := range views {
		s := &views[k]
		switch at := addressIn(unsafe.Pointer(&s.ptr)); {
		case s.length > maxString:
			return nil, refuseEntry("%s string is too long (entry %d): its length is %d", what, k, s.length)
		case s.length == 0 && at < firstAddress: // NULL, or the dangling pointer that some languages give an empty view
			return nil, refuseEntry("%s string must be non-empty (entry %d)", what, k)
		case at < firstAddress:
			return nil, refuseEntry("%s string has no data (entry %d): ptr is %s with length %d", what, k, number(at), s.length)
		}
	}
	return unsafe.Slice((*string)(unsafe.Pointer(p)), int(n)), nil
}

// number names a pointer that is no address.
func number(at uintptr) string {
	if at == 0 {
		return "NULL"
	}
	return fmt.Sprintf("%#x", at)
}

// pathsOf looks at an array of path handles in place.
func pathsOf(p *C.ovx_primpath_t, n C.size_t) []pathdict.Path {
	return unsafe.Slice((*pathdict.Path)(unsafe.Pointer(p)), int(n))
}

//export ovgoCreateTokensFromStrings
func ovgoCreateTokensFromStrings(strings *C.ovx_string_t, n C.size_t, out *C.ovx_token_t) (text C.ovx_string_t) {
	defer guardDictionary("create_tokens_from_strings", &text)
	s, err := stringsOf("Token", strings, n)
	if err != nil {
		return outcome(err)
	}
	return outcome(dictionary().Tokens(s, tokens(out, n)))
}

//export ovgoCreatePathsFromStrings
func ovgoCreatePathsFromStrings(strings *C.ovx_string_t, n C.size_t, out *C.ovx_primpath_t) (text C.ovx_string_t) {
	defer guardDictionary("create_paths_from_strings", &text)
	s, err := stringsOf("Path", strings, n)
	if err != nil {
		return outcome(err)
	}
	return outcome(dictionary().Paths(s, pathsOf(out, n)))
}

//export ovgoCreatePathsFromTokens
func ovgoCreatePathsFromTokens(
	components *C.ovx_token_t, total C.size_t, counts *C.size_t, n C.size_t, out *C.ovx_primpath_t,
) (text C.ovx_string_t) {
	defer guardDictionary("create_paths_from_tokens", &text)
	perPath := unsafe.Slice((*int)(unsafe.Pointer(counts)), int(n)) // the sum was checked, so that each fits an int
	return outcome(dictionary().PathsFromTokens(tokens(components, total), perPath, pathsOf(out, n)))
}

//export ovgoCreatePathListFromPaths
func ovgoCreatePathListFromPaths(paths *C.ovx_primpath_t, n C.size_t, out *C.ovx_primpath_list_t) (text C.ovx_string_t) {
	defer guardDictionary("create_path_list_from_paths", &text)
	list, err := dictionary().NewList(pathsOf(paths, n))
	if err == nil {
		*out = C.ovx_primpath_list_t(list)
	}
	return outcome(err)
}

//export ovgoCreatePathListFromStrings
func ovgoCreatePathListFromStrings(strings *C.ovx_string_t, n C.size_t, out *C.ovx_primpath_list_t) (text C.ovx_string_t) {
	defer guardDictionary("create_path_list_from_strings", &text)
	s, err := stringsOf("Path", strings, n)
	if err != nil {
		return outcome(err)
	}
	list, err := dictionary().NewListFromStrings(s)
	if err == nil {
		*out = C.ovx_primpath_list_t(list)
	}
	return outcome(err)
}

//export ovgoAddPathListReference
func ovgoAddPathListReference(list C.ovx_primpath_list_t) (text C.ovx_string_t) {
	defer guardDictionary("add_path_list_reference", &text)
	return outcome(dictionary().AddRef(pathdict.ListHandle(list)))
}

//export ovgoReleasePathListReference
func ovgoReleasePathListReference(list C.ovx_primpath_list_t) (text C.ovx_string_t) {
	defer guardDictionary("release_path_list_reference", &text)
	return outcome(dictionary().ReleaseRef(pathdict.ListHandle(list)))
}

//export ovgoGetNumPathsFromPathList
func ovgoGetNumPathsFromPathList(list C.ovx_primpath_list_t, out *C.size_t) (text C.ovx_string_t) {
	defer guardDictionary("get_num_paths_from_path_list", &text)
	l, err := dictionary().List(pathdict.ListHandle(list))
	if err == nil {
		*out = C.size_t(l.Len())
	}
	return outcome(err)
}

//export ovgoGetPathsFromPathList
func ovgoGetPathsFromPathList(
	list C.ovx_primpath_list_t, start, most C.size_t, out *C.ovx_primpath_t, outCount *C.size_t,
) (text C.ovx_string_t) {
	defer guardDictionary("get_paths_from_path_list", &text)
	l, err := dictionary().List(pathdict.ListHandle(list))
	if err != nil {
		return outcome(err)
	}
	first := min(uint64(start), uint64(l.Len()))
	n := min(uint64(most), uint64(l.Len())-first)
	paths := pathsOf(out, C.size_t(n))
	for k := range paths {
		paths[k] = l.At(int(first) + k)
	}
	*outCount = C.size_t(n)
	return outcome(nil)
}

//export ovgoGetStringsFromTokens
func ovgoGetStringsFromTokens(handles *C.ovx_token_t, n C.size_t, out *C.ovx_string_t) (text C.ovx_string_t) {
	defer guardDictionary("get_strings_from_tokens", &text)
	d := dictionary()
	asked := tokens(handles, n)
	for k, t := range asked { // all of them first: a failure leaves the output alone
		if !d.Stay(t) { // the views may be looked at for as long as the dictionary lives
			return outcome(refuseEntry("Token handle was not found in this dictionary (entry %d): %d", k, t))
		}
	}
	views := unsafe.Slice(out, int(n))
	for k, t := range asked {
		s, _ := d.TokenString(t) // C memory of the dictionary, NUL-terminated, so that the view may leave
		views[k] = C.ovx_string_t{ptr: (*C.char)(unsafe.Pointer(&C.ov_no_bytes)), length: C.size_t(len(s))}
		if s != "" {
			views[k].ptr = chars(s)
		}
	}
	return outcome(nil)
}

//export ovgoGetTokensFromPaths
func ovgoGetTokensFromPaths(
	paths *C.ovx_primpath_t, n C.size_t, buffer *C.ovx_token_t, size C.size_t, outTokens **C.ovx_token_t, outCounts,
	outProcessed *C.size_t,
) (text C.ovx_string_t) {
	defer guardDictionary("get_tokens_from_paths", &text)
	d := dictionary()
	asked, room := pathsOf(paths, n), tokens(buffer, size)
	for _, p := range asked {
		if _, known := d.Depth(p); !known {
			return outcome(pathdict.ErrUnknownPath)
		}
	}
	starts, counts := unsafe.Slice(outTokens, int(n)), unsafe.Slice(outCounts, int(n))
	used := 0
	for k, p := range asked {
		depth, _ := d.Depth(p)
		if depth > len(room)-used {
			break
		}
		if _, err := d.PathTokens(p, room[used:used]); err != nil { // fits, so it is written in place
			return outcome(err)
		}
		starts[k] = (*C.ovx_token_t)(unsafe.Add(unsafe.Pointer(buffer), 8*used))
		counts[k] = C.size_t(depth)
		used += depth
		*outProcessed = C.size_t(k + 1)
	}
	return outcome(nil)
}
