package main

/*
#include <stdlib.h>
#include "ring.h"
*/
import "C"

import (
	"fmt"
	"unsafe"

	"ovstage.dev/ovstage/gocore/bitset"
	"ovstage.dev/ovstage/gocore/pathdict"
	"ovstage.dev/ovstage/gocore/query"
	"ovstage.dev/ovstage/gocore/stage"
)

// firstAddress is the lowest that Go takes for an address at all: it must not meet a smaller one in a pointer.
const firstAddress = C.OV_FIRST_ADDRESS

// addressIn reads a pointer as a number, so that one which is none can be looked at.
func addressIn(p unsafe.Pointer) uintptr { return *(*uintptr)(p) }

// tokens looks at an array of tokens in place.
func tokens(p *C.ovx_token_t, n C.size_t) []pathdict.Token {
	return unsafe.Slice((*pathdict.Token)(unsafe.Pointer(p)), int(n))
}

// texts copies the views of an array of strings, not their bytes: those must outlive the result. An empty string may have any
// address.
func texts(argument string, p **C.ovx_string_t, n C.size_t) ([]string, error) {
	switch at := addressIn(unsafe.Pointer(p)); {
	case n == 0:
		return nil, nil
	case at < firstAddress || n > maxString:
		return nil, refuse(stage.InvalidArgument, "%s is %s with %d entries, which is no array", argument, number(at), n)
	}
	list := make([]string, int(n))
	for k := range list {
		s := &unsafe.Slice(*p, int(n))[k]
		switch at := addressIn(unsafe.Pointer(&s.ptr)); {
		case s.length == 0:
		case at < firstAddress || s.length > maxString:
			return nil, refuse(stage.InvalidArgument, "%s[%d]: ptr is %s with length %d, which is no text", argument, k, number(at), s.length)
		default:
			list[k] = unsafe.String((*byte)(unsafe.Pointer(s.ptr)), int(s.length))
		}
	}
	return list, nil
}

// predicate translates one. HAS does not look at values.
func (t *trials) predicate(i *instance, argument string, p *C.ovstage_predicate_t) (c stage.Condition, err error) {
	c.Predicate.Op = query.FilterOp(p.op)
	if c.Predicate.Attribute, err = t.attribute(i, argument+".attribute", &p.attribute); err != nil || c.Predicate.Op == query.Has {
		return c, err
	}
	c.Predicate.Values, err = texts(argument+".values", &p.values, p.value_count)
	return c, err
}

// mostLevels is how deep conditions may lie in each other. It also ends a condition that lies in itself.
const mostLevels = C.OV_MOST_LEVELS

// condition translates a condition and those below it.
func (t *trials) condition(i *instance, argument string, p *C.ovstage_go_condition_t, level int) (c stage.Condition, err error) {
	c.Match = query.Match(p.match)
	switch at := addressIn(unsafe.Pointer(&p.conditions)); {
	case c.Match == query.One:
		return t.predicate(i, argument+".predicate", &p.predicate)
	case p.count == 0:
		return c, nil
	case at < firstAddress || p.count > maxString:
		return c, refuse(stage.InvalidArgument, "%s.conditions is %s with count %d, which is no array", argument, number(at), p.count)
	case level == mostLevels:
		return c, refuse(stage.InvalidArgument, "condition: conditions lie more than %d levels deep in each other", mostLevels)
	}
	below := unsafe.Slice(p.conditions, int(p.count))
	c.Conditions = make([]stage.Condition, len(below))
	for k := range below {
		if c.Conditions[k], err = t.condition(i, fmt.Sprintf("%s.conditions[%d]", argument, k), &below[k], level+1); err != nil {
			return c, err
		}
	}
	return c, nil
}

//export ovgoQuery
func ovgoQuery(
	c *C.ovstage_context_t, list *C.ovstage_predicate_t, count C.size_t, attrs *C.ovx_token_t, attrCount C.size_t,
	out *C.ovstage_query_handle_t,
) (result C.ovstage_enqueue_result_t) {
	var tried trials
	defer func() { tried.end(false) }()
	defer guard(c, "ovstage_query", &result.status)
	i := of(c)
	predicates := unsafe.Slice(list, int(count))
	filter := stage.Condition{Match: query.All, Conditions: make([]stage.Condition, len(predicates))}
	for k := range predicates {
		var err error
		if filter.Conditions[k], err = tried.predicate(i, fmt.Sprintf("filter.predicates[%d]", k), &predicates[k]); err != nil {
			return enqueued(0, err)
		}
	}
	id, op, err := i.stage.QueryFilter(filter, tokens(attrs, attrCount))
	*out = C.ovstage_query_handle_t(id)
	if err == nil {
		tried.goWith(i, id)
	}
	return enqueued(op, err)
}

//export ovgoQueryCondition
func ovgoQueryCondition(
	c *C.ovstage_context_t, condition *C.ovstage_go_condition_t, attrs *C.ovx_token_t, attrCount C.size_t, out *C.ovstage_query_handle_t,
) (result C.ovstage_enqueue_result_t) {
	var tried trials
	defer func() { tried.end(false) }()
	defer guard(c, "query", &result.status)
	i := of(c)
	filter := stage.Condition{Match: query.All}
	if condition != nil {
		var err error
		if filter, err = tried.condition(i, "condition", condition, 0); err != nil {
			return enqueued(0, err)
		}
	}
	id, op, err := i.stage.QueryFilter(filter, tokens(attrs, attrCount))
	*out = C.ovstage_query_handle_t(id)
	if err == nil {
		tried.goWith(i, id)
	}
	return enqueued(op, err)
}

//export ovgoRefreshQuery
func ovgoRefreshQuery(c *C.ovstage_context_t, query C.ovstage_query_handle_t) (result C.ovstage_enqueue_result_t) {
	defer guard(c, "refresh_query", &result.status)
	i := of(c)
	return enqueued(i.stage.RefreshQuery(stage.QueryID(query)))
}

//export ovgoQueryFromPathList
func ovgoQueryFromPathList(
	c *C.ovstage_context_t, list C.ovx_primpath_list_t, out *C.ovstage_query_handle_t,
) (status C.ovstage_api_status_t) {
	defer guard(c, "ovstage_query_from_path_list", &status)
	i := of(c)
	id, err := i.stage.QueryPaths(pathdict.ListHandle(list))
	*out = C.ovstage_query_handle_t(id)
	return fail(err)
}

//export ovgoQueryCount
func ovgoQueryCount(
	c *C.ovstage_context_t, query C.ovstage_query_handle_t, out *C.size_t,
) (status C.ovstage_api_status_t) {
	defer guard(c, "query_count", &status)
	i := of(c)
	count, err := i.stage.QueryCount(stage.QueryID(query))
	*out = C.size_t(count)
	return fail(err)
}

//export ovgoQueryWhere
func ovgoQueryWhere(
	c *C.ovstage_context_t, query C.ovstage_query_handle_t, mask *C.uint64_t, count C.size_t, out *C.ovstage_query_handle_t,
) (status C.ovstage_api_status_t) {
	defer guard(c, "query_where", &status)
	i := of(c)
	words := bitset.Over((*uint64)(unsafe.Pointer(mask)), int(count))
	id, err := i.stage.QueryWhere(stage.QueryID(query), words, int(count))
	*out = C.ovstage_query_handle_t(id)
	return fail(err)
}

//export ovgoReleaseQuery
func ovgoReleaseQuery(c *C.ovstage_context_t, query C.ovstage_query_handle_t) (result C.ovstage_enqueue_result_t) {
	defer guard(c, "ovstage_release_query", &result.status)
	i := of(c)
	op, err := i.stage.ReleaseQuery(stage.QueryID(query))
	if err == nil {
		if tried, had := takeBack(i, i.asked, uint64(query)); had {
			tried.end(false)
		}
	}
	return enqueued(op, err)
}

//export ovgoFetchQueryResult
func ovgoFetchQueryResult(
	c *C.ovstage_context_t, query C.ovstage_query_handle_t, out *C.ovstage_query_result_t,
) (status C.ovstage_api_status_t) {
	defer guard(c, "ovstage_fetch_query_result", &status)
	i := of(c)
	attributes, total, err := i.stage.QueryResult(stage.QueryID(query))
	if err != nil {
		return fail(err)
	}
	array := (*C.ovx_token_t)(C.ov_alloc(C.size_t(8 * len(attributes))))
	if array == nil {
		return fail(refuse(stage.OutOfMemory, "ovstage_fetch_query_result: out of memory for %d tokens", len(attributes)))
	}
	copy(tokens(array, C.size_t(len(attributes))), attributes)
	*out = C.ovstage_query_result_t{
		query_result_id:  C.ovstage_query_result_id_t(handOut(i, i.results, unsafe.Pointer(array))),
		attributes:       array,
		attribute_count:  C.size_t(len(attributes)),
		all_handle:       query,
		total_prim_count: C.size_t(total),
	}
	return C.OVSTAGE_OK
}

//export ovgoReleaseQueryResult
func ovgoReleaseQueryResult(c *C.ovstage_context_t, id C.ovstage_query_result_id_t) (status C.ovstage_api_status_t) {
	defer guard(c, "ovstage_release_query_result", &status)
	i := of(c)
	array, live := takeBack(i, i.results, uint64(id))
	if !live {
		return fail(refuse(stage.InvalidHandle, "result: query_result_id %d is unknown or has been released", id))
	}
	C.free(array)
	return C.OVSTAGE_OK
}

//export ovgoAdvanceWriteFloor
func ovgoAdvanceWriteFloor(c *C.ovstage_context_t, desc *C.ovstage_write_floor_desc_t) (result C.ovstage_enqueue_result_t) {
	defer guard(c, "ovstage_advance_write_floor", &result.status)
	i := of(c)
	var names []pathdict.Token
	if scope := stage.Scope(desc.scope); scope != stage.All && desc.attribute_count > 0 { // ALL does not look at the list
		names = tokens(desc.attributes, desc.attribute_count)
	}
	return enqueued(i.stage.AdvanceFloor(uint64(desc.ordinal), stage.Scope(desc.scope), names))
}

//export ovgoFloorReached
func ovgoFloorReached(
	c *C.ovstage_context_t, attributes *C.ovx_string_or_token_t, count C.size_t, ordinal C.ovstage_ordinal_t, late C.bool,
	reached *C.bool,
) (status C.ovstage_api_status_t) {
	var tried trials
	defer func() { tried.end(false) }() // nothing remembers the question
	defer guard(c, "wait_floor", &status)
	i := of(c)
	names := make([]pathdict.Token, count)
	for k := range names {
		var err error
		if names[k], err = tried.attribute(i, fmt.Sprintf("attributes[%d]", k), &unsafe.Slice(attributes, count)[k]); err != nil {
			return fail(err)
		}
	}
	there, err := i.stage.FloorReached(uint64(ordinal), names, bool(late))
	*reached = C.bool(there)
	return fail(err)
}

//export ovgoGetOldestPreservedOrdinal
func ovgoGetOldestPreservedOrdinal(c *C.ovstage_context_t, out *C.ovstage_ordinal_query_handle_t) (result C.ovstage_enqueue_result_t) {
	defer guard(c, "ovstage_get_oldest_preserved_ordinal", &result.status)
	i := of(c)
	id, op, err := i.stage.OldestPreserved()
	*out = C.ovstage_ordinal_query_handle_t(id)
	return enqueued(op, err)
}

//export ovgoGetAttributeWriteFloor
func ovgoGetAttributeWriteFloor(
	c *C.ovstage_context_t, attribute *C.ovx_string_or_token_t, out *C.ovstage_ordinal_query_handle_t,
) (result C.ovstage_enqueue_result_t) {
	var tried trials
	defer func() { tried.end(false) }() // nothing remembers the question
	defer guard(c, "ovstage_get_attribute_write_floor", &result.status)
	i := of(c)
	var token pathdict.Token // 0 asks for the global floor
	if attribute.token != 0 || attribute.string.length != 0 {
		var err error
		if token, err = tried.attribute(i, "attribute", attribute); err != nil {
			return enqueued(0, err)
		}
	}
	id, op, err := i.stage.AttributeFloor(token)
	*out = C.ovstage_ordinal_query_handle_t(id)
	return enqueued(op, err)
}

//export ovgoFetchOrdinal
func ovgoFetchOrdinal(
	c *C.ovstage_context_t, handle C.ovstage_ordinal_query_handle_t, out *C.ovstage_ordinal_t,
) (status C.ovstage_api_status_t) {
	defer guard(c, "ovstage_fetch_ordinal", &status)
	i := of(c)
	ordinal, err := i.stage.FetchOrdinal(stage.OrdinalQueryID(handle))
	if err == nil {
		*out = C.ovstage_ordinal_t(ordinal)
	}
	return fail(err)
}

//export ovgoReleaseOrdinalQuery
func ovgoReleaseOrdinalQuery(
	c *C.ovstage_context_t, handle C.ovstage_ordinal_query_handle_t,
) (result C.ovstage_enqueue_result_t) {
	defer guard(c, "ovstage_release_ordinal_query", &result.status)
	i := of(c)
	return enqueued(i.stage.ReleaseOrdinalQuery(stage.OrdinalQueryID(handle)))
}

//export ovgoKeepHistory
func ovgoKeepHistory(c *C.ovstage_context_t, ordinals C.uint64_t) (status C.ovstage_api_status_t) {
	defer guard(c, "keep_history", &status)
	i := of(c)
	if err := i.stage.KeepHistory(uint64(ordinals)); err != nil {
		return fail(err)
	}
	return C.OVSTAGE_OK
}
