package main

/*
#include "ring.h"
*/
import "C"

import (
	"fmt"
	"unsafe"

	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/stage"
)

// trials are the names of one call that were not known before it. They stay when the call goes well, else they go again.
type trials []pathdict.Token

// end comes when it is known how the call went.
func (t trials) end(kept bool) {
	if len(t) == 0 {
		return
	}
	dict := shared.Load()
	for k := len(t) - 1; k >= 0; k-- { // the last one first, which lies at the end of the texts
		if kept {
			dict.Keep(t[k])
		} else {
			dict.Withdraw(t[k])
		}
	}
}

// goWith leaves the names to a query, whose filter asks for them as long as it lives. A write under one of them
// meanwhile keeps it.
func (t *trials) goWith(i *instance, query stage.QueryID) {
	if len(*t) == 0 {
		return
	}
	i.mu.Lock()
	i.asked[uint64(query)] = *t
	i.mu.Unlock()
	*t = nil
}

// attribute returns the token of an attribute that is given as a token or by name. A new name is tried.
func (t *trials) attribute(i *instance, argument string, a *C.ovx_string_or_token_t) (pathdict.Token, error) {
	if a.token != 0 {
		token := pathdict.Token(a.token)
		if !i.dict.Stay(token) {
			return 0, refuse(stage.InvalidArgument, "%s: %d is not a token of this stage's dictionary; intern the name first",
				argument, token)
		}
		return token, nil
	}
	switch at := addressIn(unsafe.Pointer(&a.string.ptr)); {
	case a.string.length == 0:
		return 0, refuse(stage.InvalidArgument, "%s: there is neither a token nor a name, expected one of them", argument)
	case at < firstAddress || a.string.length > maxString:
		return 0, refuse(stage.InvalidArgument, "%s: ptr is %s with length %d, which is no name", argument, number(at), a.string.length)
	case a.string.length > stage.MaxName:
		return 0, refuse(stage.InvalidArgument, "%s: the name has %d bytes, expected at most %d", argument, a.string.length, stage.MaxName)
	}
	token, trial, err := i.dict.Try(unsafe.String((*byte)(unsafe.Pointer(a.string.ptr)), int(a.string.length)))
	if err != nil {
		return 0, refuse(stage.InvalidArgument, "%s: %s", argument, err)
	}
	if trial {
		*t = append(*t, token)
	}
	return token, nil
}

// attributes are the names of a delete; none: everything that the prims carry.
func (t *trials) attributes(i *instance, argument string, entries []C.ovx_string_or_token_t) (names []pathdict.Token, err error) {
	for k := range entries {
		token, err := t.attribute(i, fmt.Sprintf("%s[%d]", argument, k), &entries[k])
		if err != nil {
			return nil, err
		}
		names = append(names, token)
	}
	return names, nil
}

// ovgoTryName is try_name of the extension table.
//
//export ovgoTryName
func ovgoTryName(c *C.ovstage_context_t, name *C.ovx_string_t, out *C.ovx_token_t, tried *C.bool) (status C.ovstage_api_status_t) {
	defer guard(c, "try_name", &status)
	i := of(c)
	texts, err := stringsOf("Token", name, 1)
	if err != nil {
		return fail(refuse(stage.InvalidArgument, "name: %s", err))
	}
	token, trial, err := i.dict.Try(texts[0])
	if err != nil {
		return fail(refuse(stage.InvalidArgument, "name: %s", err))
	}
	*out, *tried = C.ovx_token_t(token), C.bool(trial)
	return C.OVSTAGE_OK
}

// ovgoEndName is end_name of the extension table.
//
//export ovgoEndName
func ovgoEndName(c *C.ovstage_context_t, token C.ovx_token_t) {
	var ignored C.ovstage_api_status_t
	defer guard(c, "end_name", &ignored)
	i := of(c)
	i.dict.Withdraw(pathdict.Token(token))
}

// ovgoListOfKnown is list_of_known of the extension table.
//
//export ovgoListOfKnown
func ovgoListOfKnown(
	c *C.ovstage_context_t, strings *C.ovx_string_t, n C.size_t, out *C.ovx_primpath_list_t, unknown *C.size_t,
) (status C.ovstage_api_status_t) {
	defer guard(c, "list_of_known", &status)
	i := of(c)
	s, err := stringsOf("Path", strings, n)
	if err != nil {
		return fail(refuse(stage.InvalidArgument, "paths: %s", err))
	}
	list, strangers, err := i.dict.NewListOfKnown(s)
	if err != nil {
		return fail(refuse(stage.InvalidArgument, "paths: %s", err))
	}
	*out, *unknown = C.ovx_primpath_list_t(list), C.size_t(strangers)
	return C.OVSTAGE_OK
}
