/*
 * vtable.c - the slots of an instance, in the order of the table.
 *
 * Each slot does the same: enter (refused for a forked child, a destroyed or a broken stage), check its pointers, let
 * Go answer, leave. What a slot does is said in ovstage_api.h.
 */
#include <string.h>

#include "_cgo_export.h"
#include "ring.h"

/* Every slot has one of two results and the same first parameter. */
typedef ovstage_api_status_t S;
typedef ovstage_enqueue_result_t E;
typedef ovstage_context_t* C;

/* ---- Operations -------------------------------------------------------------------------------------------------- */

static S wait_op(C c, ovstage_op_id_t op, ovstage_timeout_ns_t timeout, ovstage_op_wait_result_t* out) {
  const char* symbol = "ovstage_wait_op";
  if (out != NULL) memset(out, 0, sizeof *out);
  S status = ov_enter(c, symbol);
  if (status != OVSTAGE_OK) return status;
  return ov_leave(c, symbol, ov_op_wait(c, op, timeout, out));
}

static S release_op(C c, ovstage_op_id_t op) {
  const char* symbol = "ovstage_release_op";
  if (ov_forked) return OVSTAGE_OK;
  S status = ov_enter(c, symbol);
  if (status != OVSTAGE_OK) return status;
  return ov_leave(c, symbol, ov_op_release(c, op));
}

/* ---- Ordinals and write floors ----------------------------------------------------------------------------------- */

static E advance_write_floor(C c, const ovstage_write_floor_desc_t* desc) {
  const char* symbol = "ovstage_advance_write_floor";
  E result = {ov_enter(c, symbol), 0};
  if (result.status != OVSTAGE_OK) return result;
  if (desc == NULL) {
    result.status = ov_null("desc");
    return ov_accept(c, symbol, result);
  }
  ov_inputs in;
  ov_inputs_open(&in);
  ovstage_write_floor_desc_t own;
  ov_take(&own, desc, sizeof own);
  if (own.scope == OVSTAGE_SCOPE_ALL) own.attribute_count = 0; /* the list is not looked at */
  if (own.attribute_count > OV_MOST_ENTRIES) {
    result.status = ov_too_many("desc.attribute_count", own.attribute_count);
  } else if (own.attribute_count > 0 && own.attributes == NULL) {
    result.status = ov_fail(OVSTAGE_ERROR_INVALID_ARGUMENT, "desc.attributes is NULL with attribute_count %zu",
                            own.attribute_count);
  } else {
    own.attributes = ov_input(&in, "desc.attributes", own.attributes, own.attribute_count, sizeof *own.attributes);
    if ((result.status = ov_inputs_status(&in)) == OVSTAGE_OK) result = ovgoAdvanceWriteFloor(c, &own);
    ov_floor_wake(c);
  }
  ov_inputs_close(&in);
  return ov_accept(c, symbol, result);
}

static E get_oldest_preserved_ordinal(C c, ovstage_ordinal_query_handle_t* out) {
  const char* symbol = "ovstage_get_oldest_preserved_ordinal";
  if (out != NULL) *out = 0;
  E result = {ov_enter(c, symbol), 0};
  if (result.status != OVSTAGE_OK) return result;
  if (out == NULL)
    result.status = ov_null("out_handle");
  else
    result = ovgoGetOldestPreservedOrdinal(c, out);
  return ov_accept(c, symbol, result);
}

static E get_attribute_write_floor(C c, ovx_string_or_token_t attribute, ovstage_ordinal_query_handle_t* out) {
  const char* symbol = "ovstage_get_attribute_write_floor";
  if (out != NULL) *out = 0;
  E result = {ov_enter(c, symbol), 0};
  if (result.status != OVSTAGE_OK) return result;
  ov_inputs in;
  ov_inputs_open(&in);
  ov_input_name(&in, "attribute", &attribute);
  if (out == NULL)
    result.status = ov_null("out_handle");
  else if ((result.status = ov_inputs_status(&in)) == OVSTAGE_OK)
    result = ovgoGetAttributeWriteFloor(c, &attribute, out);
  ov_inputs_close(&in);
  return ov_accept(c, symbol, result);
}

static S fetch_ordinal(C c, ovstage_ordinal_query_handle_t handle, ovstage_timeout_ns_t timeout,
                       ovstage_ordinal_t* out) {
  const char* symbol = "ovstage_fetch_ordinal";
  (void)timeout; /* what has a handle is finished; so below */
  S status = ov_enter(c, symbol);
  if (status != OVSTAGE_OK) return status;
  return ov_leave(c, symbol, out == NULL ? ov_null("out_ordinal") : ovgoFetchOrdinal(c, handle, out));
}

static E release_ordinal_query(C c, ovstage_ordinal_query_handle_t handle) {
  const char* symbol = "ovstage_release_ordinal_query";
  E result = {ov_enter(c, symbol), 0};
  if (result.status != OVSTAGE_OK) return result;
  return ov_accept(c, symbol, ovgoReleaseOrdinalQuery(c, handle));
}

/* ---- Queries ----------------------------------------------------------------------------------------------------- */

static E query(C c, const ovstage_filter_t* filter, const ovx_token_t* attrs, size_t attr_count,
               ovstage_query_handle_t* out) {
  const char* symbol = "ovstage_query";
  if (out != NULL) *out = OVSTAGE_INVALID_QUERY_HANDLE;
  E result = {ov_enter(c, symbol), 0};
  if (result.status != OVSTAGE_OK) return result;
  ovstage_filter_t own = {0};
  if (filter != NULL) ov_take(&own, filter, sizeof own);
  ov_inputs in;
  ov_inputs_open(&in);
  if (out == NULL) {
    result.status = ov_null("out_query_handle");
  } else if (own.count > OV_MOST_ENTRIES) {
    result.status = ov_too_many("filter.count", own.count);
  } else if (own.count > 0 && own.predicates == NULL) {
    result.status = ov_fail(OVSTAGE_ERROR_INVALID_ARGUMENT, "filter.predicates is NULL with count %zu", own.count);
  } else if (attr_count > OV_MOST_ENTRIES) {
    result.status = ov_too_many("attr_count", attr_count);
  } else if (attr_count > 0 && attrs == NULL) {
    result.status = ov_fail(OVSTAGE_ERROR_INVALID_ARGUMENT, "attrs is NULL with attr_count %zu", attr_count);
  } else {
    ovstage_predicate_t* predicates = ov_input_predicates(&in, own.predicates, own.count);
    ovx_token_t* tokens = ov_input(&in, "attrs", attrs, attr_count, sizeof *attrs);
    if ((result.status = ov_inputs_status(&in)) == OVSTAGE_OK)
      result = ovgoQuery(c, predicates, own.count, tokens, attr_count, out);
  }
  ov_inputs_close(&in);
  return ov_accept(c, symbol, result);
}

static S query_from_path_list(C c, ovx_primpath_list_t list, ovstage_query_handle_t* out) {
  const char* symbol = "ovstage_query_from_path_list";
  if (out != NULL) *out = OVSTAGE_INVALID_QUERY_HANDLE;
  S status = ov_enter(c, symbol);
  if (status != OVSTAGE_OK) return status;
  return ov_leave(c, symbol, out == NULL ? ov_null("out_handle") : ovgoQueryFromPathList(c, list, out));
}

static S fetch_query_result(C c, ovstage_query_handle_t handle, ovstage_timeout_ns_t timeout,
                            ovstage_query_result_t* out) {
  const char* symbol = "ovstage_fetch_query_result";
  (void)timeout;
  if (out != NULL) memset(out, 0, sizeof *out);
  S status = ov_enter(c, symbol);
  if (status != OVSTAGE_OK) return status;
  return ov_leave(c, symbol, out == NULL ? ov_null("out_result") : ovgoFetchQueryResult(c, handle, out));
}

static S release_query_result(C c, const ovstage_query_result_t* query_result) {
  const char* symbol = "ovstage_release_query_result";
  if (ov_forked) return OVSTAGE_OK;
  S status = ov_enter(c, symbol);
  if (status != OVSTAGE_OK) return status;
  return ov_leave(c, symbol,
                  query_result == NULL ? ov_null("result") : ovgoReleaseQueryResult(c, query_result->query_result_id));
}

static E release_query(C c, ovstage_query_handle_t handle) {
  const char* symbol = "ovstage_release_query";
  E result = {ov_enter(c, symbol), 0};
  if (result.status != OVSTAGE_OK) return result;
  return ov_accept(c, symbol, ovgoReleaseQuery(c, handle));
}

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

static E read_attributes(C c, ovstage_query_handle_t handle, const ovx_token_t* attrs, size_t attr_count,
                         ovstage_ordinal_range_t range, ovstage_read_handle_t* out) {
  const char* symbol = "ovstage_read_attributes";
  if (out != NULL) *out = OVSTAGE_INVALID_READ_HANDLE;
  E result = {ov_enter(c, symbol), 0};
  if (result.status != OVSTAGE_OK) return result;
  ov_inputs in;
  ov_inputs_open(&in);
  if (out == NULL) {
    result.status = ov_null("out_read_handle");
  } else if (attr_count == 0) {
    result.status =
        ov_fail(OVSTAGE_ERROR_INVALID_ARGUMENT, "attr_count is 0: name the attributes to read by their tokens");
  } else if (attrs == NULL) {
    result.status = ov_fail(OVSTAGE_ERROR_INVALID_ARGUMENT, "attrs is NULL with attr_count %zu", attr_count);
  } else if (attr_count > OV_MOST_ENTRIES) {
    result.status = ov_too_many("attr_count", attr_count);
  } else {
    ovx_token_t* tokens = ov_input(&in, "attrs", attrs, attr_count, sizeof *attrs);
    if ((result.status = ov_inputs_status(&in)) == OVSTAGE_OK)
      result = ovgoReadAttributes(c, handle, tokens, attr_count, &range, out);
  }
  ov_inputs_close(&in);
  return ov_accept(c, symbol, result);
}

/* A group of a read or of a map: `size` bytes at `out`. The extension's forms keep its tensors as well. */
static S fetch_group(C c, const char* symbol, uint64_t handle, void* out, size_t size, bool keeps,
                     const DLTensor** keep, S (*fetch)(C, uint64_t, void*, DLTensor**)) {
  if (out != NULL) memset(out, 0, size);
  if (keep != NULL) *keep = NULL;
  S status = ov_enter(c, symbol);
  if (status != OVSTAGE_OK) return status;
  if (out == NULL)
    status = ov_null("out_group");
  else if (keeps && keep == NULL)
    status = ov_null("out_keep");
  else
    status = fetch(c, handle, out, (DLTensor**)keep);
  return ov_leave(c, symbol, status);
}

static S next_of_read(C c, uint64_t handle, void* out, DLTensor** keep) {
  return ovgoFetchReadNext(c, handle, out, keep);
}

static S next_of_map(C c, uint64_t handle, void* out, DLTensor** keep) {
  return ovgoFetchMapNext(c, handle, out, keep);
}

S ov_fetch_read(C c, ovstage_read_handle_t handle, ovstage_read_group_t* out, bool keeps, const DLTensor** keep) {
  return fetch_group(c, "ovstage_fetch_read_next", handle, out, sizeof *out, keeps, keep, next_of_read);
}

S ov_fetch_map(C c, ovstage_map_handle_t handle, ovstage_map_group_t* out, bool keeps, const DLTensor** keep) {
  return fetch_group(c, "ovstage_fetch_map_next", handle, out, sizeof *out, keeps, keep, next_of_map);
}

static S fetch_read_next(C c, ovstage_read_handle_t handle, ovstage_timeout_ns_t timeout, ovstage_read_group_t* out) {
  (void)timeout;
  return ov_fetch_read(c, handle, out, false, NULL);
}

static S release_group(C c, const ovstage_read_group_t* group) {
  const char* symbol = "ovstage_release_group";
  if (ov_forked) return OVSTAGE_OK;
  S status = ov_enter(c, symbol);
  if (status != OVSTAGE_OK) return status;
  return ov_leave(c, symbol, group == NULL ? ov_null("group") : ovgoReleaseGroup(c, group->read_group_id));
}

static E release_read(C c, ovstage_read_handle_t handle) {
  const char* symbol = "ovstage_release_read";
  E result = {ov_enter(c, symbol), 0};
  if (result.status != OVSTAGE_OK) return result;
  return ov_accept(c, symbol, ovgoReleaseRead(c, handle));
}

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

E ov_write_batch(C c, const char* symbol, const ovstage_go_batch_t* batch, const ovx_string_or_token_t* type_names,
                 ovstage_ordinal_t ordinal, ovstage_prim_mode_t mode, bool many) {
  ov_inputs in;
  ov_inputs_open(&in);
  ov_batch own = ov_input_batch(&in, batch);
  ov_managed_list managed;
  if (in.lost == NULL)
    ov_managed_take(&managed, &own, 1);
  else
    ov_managed_take_uncopied(&managed, batch, 1);
  E result = {ov_enter(c, symbol), 0};
  if (result.status == OVSTAGE_OK) {
    if (batch->writes == NULL && batch->write_count > 0)
      result.status =
          ov_fail(OVSTAGE_ERROR_INVALID_ARGUMENT, "writes is NULL with write_count %zu", batch->write_count);
    else if (batch->write_count > OV_MOST_ENTRIES)
      result.status = ov_too_many("write_count", batch->write_count);
    else if ((result.status = ov_managed_check(&managed)) == OVSTAGE_OK &&
             (result.status = ov_input_payloads(&in, &own, 1, type_names)) == OVSTAGE_OK)
      result = ovgoWriteAttributes(c, &own, &managed, ordinal, mode, many);
    result = ov_accept(c, symbol, result);
  }
  ov_managed_give_back(&managed);
  ov_inputs_close(&in);
  return result;
}

static E write_batch(C c, const char* symbol, ovstage_query_handle_t handle, const ovstage_attribute_write_t* writes,
                     size_t count, ovstage_ordinal_t ordinal, ovstage_prim_mode_t mode, bool many) {
  const ovstage_go_batch_t batch = {handle, writes, count};
  return ov_write_batch(c, symbol, &batch, NULL, ordinal, mode, many);
}

static E write_attribute(C c, ovstage_query_handle_t handle, ovx_string_or_token_t attribute, ovstage_ordinal_t ordinal,
                         ovstage_write_data_t data, ovstage_prim_mode_t mode) {
  ovstage_attribute_write_t write = {attribute, data};
  return write_batch(c, "ovstage_write_attribute", handle, &write, 1, ordinal, mode, false);
}

static E write_attributes(C c, ovstage_query_handle_t handle, const ovstage_attribute_write_t* writes, size_t count,
                          ovstage_ordinal_t ordinal, ovstage_prim_mode_t mode) {
  return write_batch(c, "ovstage_write_attributes", handle, writes, count, ordinal, mode, true);
}

static E delete_attributes(C c, ovstage_query_handle_t handle, const ovx_string_or_token_t* attributes, size_t count,
                           ovstage_ordinal_t ordinal) {
  const char* symbol = "ovstage_delete_attributes";
  E result = {ov_enter(c, symbol), 0};
  if (result.status != OVSTAGE_OK) return result;
  ov_inputs in;
  ov_inputs_open(&in);
  if (attributes == NULL && count > 0) {
    result.status = ov_fail(OVSTAGE_ERROR_INVALID_ARGUMENT, "attributes is NULL with attribute_count %zu", count);
  } else if (count > OV_MOST_ENTRIES) {
    result.status = ov_too_many("attribute_count", count);
  } else {
    ovx_string_or_token_t* names = ov_input_names(&in, "attributes", attributes, count);
    if ((result.status = ov_inputs_status(&in)) == OVSTAGE_OK)
      result = ovgoDeleteAttributes(c, handle, names, count, ordinal);
  }
  ov_inputs_close(&in);
  return ov_accept(c, symbol, result);
}

/* ---- Maps -------------------------------------------------------------------------------------------------------- */

/* The extension table has the same calls with more choices: each form is the other with the choices made. */

static E map_attribute(C c, ovstage_query_handle_t handle, const ovstage_map_desc_t* desc, ovstage_ordinal_t ordinal,
                       const size_t* element_sizes, size_t element_count, ovstage_map_handle_t* out) {
  return ov_extension.map_attribute(c != NULL ? &c->bundle : NULL, handle, desc, ordinal, element_sizes, element_count,
                                    NULL, out);
}

static S fetch_map_next(C c, ovstage_map_handle_t handle, ovstage_timeout_ns_t timeout, ovstage_map_group_t* out) {
  (void)timeout;
  return ov_fetch_map(c, handle, out, false, NULL);
}

static E unmap_group(C c, ovstage_map_handle_t handle, const ovstage_map_group_t* group, ovstage_cuda_sync_t sync) {
  return ov_extension.unmap_group(c != NULL ? &c->bundle : NULL, handle, group, sync, OVSTAGE_GO_COMMIT_ADOPT);
}

static E unmap_attribute(C c, ovstage_map_handle_t handle, ovstage_cuda_sync_t sync) {
  return ov_extension.unmap_attribute(c != NULL ? &c->bundle : NULL, handle, sync, OVSTAGE_GO_COMMIT_ADOPT);
}

/* ---- About the library ------------------------------------------------------------------------------------------- */

static void get_version(C c, uint32_t* out_major, uint32_t* out_minor, uint32_t* out_patch) {
  (void)c;
  if (out_major != NULL) *out_major = OVSTAGE_VERSION_MAJOR;
  if (out_minor != NULL) *out_minor = OVSTAGE_VERSION_MINOR;
  if (out_patch != NULL) *out_patch = OVSTAGE_VERSION_PATCH;
}

static const char* get_error_string(C c, S error) {
  (void)c;
  switch (error) {
    case OVSTAGE_OK:
      return "success";
    case OVSTAGE_ERROR_INVALID_ARGUMENT:
      return "invalid argument";
    case OVSTAGE_ERROR_INVALID_HANDLE:
      return "invalid handle";
    case OVSTAGE_ERROR_NOT_FOUND:
      return "not found";
    case OVSTAGE_ERROR_PRIM_NOT_FOUND:
      return "prim already exists";
    case OVSTAGE_ERROR_WRITE_FLOOR_VIOLATION:
      return "write floor violation";
    case OVSTAGE_ERROR_NOT_SUPPORTED:
      return "not supported";
    case OVSTAGE_ERROR_QUEUE_FULL:
      return "queue full";
    case OVSTAGE_ERROR_END_OF_ITERATION:
      return "end of iteration";
    case OVSTAGE_ERROR_OUT_OF_MEMORY:
      return "out of memory";
    case OVSTAGE_ERROR_LAYOUT_CHANGED:
      return "layout changed";
    case OVSTAGE_ERROR_TIMEOUT:
      return "timeout";
    case OVSTAGE_ERROR_OP_FAILED:
      return "operation failed";
    case OVSTAGE_ERROR_OUT_OF_RANGE:
      return "ordinal range not kept";
    case OVSTAGE_ERROR_INTERNAL:
      return "internal error";
  }
  return "unknown status code";
}

static ovx_string_t get_last_op_error(C c, ovstage_op_id_t op) {
  ov_thread* thread = ov_forked ? NULL : ov_thread_here();
  if (thread == NULL || op == OVSTAGE_INVALID_OP_ID || thread->failed_op != op || thread->failed_in != c)
    return (ovx_string_t){NULL, 0};
  return ov_text_view(&thread->op_error);
}

static path_dictionary_instance_t* get_path_dictionary(C c) {
  if (c == NULL || ov_forked || !ov_gate_enter(&c->gate)) return NULL;
  ov_gate_leave(&c->gate);
  return &ov_dictionary;
}

static S query_extension(C c, const char* name, const void** out) {
  const char* symbol = "ovstage_query_extension";
  if (out != NULL) *out = NULL;
  S status = ov_enter(c, symbol);
  if (status != OVSTAGE_OK) return status;
  if (name == NULL)
    status = ov_null("name");
  else if (out == NULL)
    status = ov_null("out_extension");
  else if (strcmp(name, OVSTAGE_GO_V1_NAME) == 0)
    *out = &ov_extension;
  else
    status = ov_fail(OVSTAGE_ERROR_NOT_FOUND, "name: there is no extension \"%.200s\"; this library has \"%s\"", name,
                     OVSTAGE_GO_V1_NAME);
  return ov_leave(c, symbol, status);
}

const ovstage_vtable_t ov_vtable = {
    .wait_op = wait_op,
    .release_op = release_op,
    .advance_write_floor = advance_write_floor,
    .get_oldest_preserved_ordinal = get_oldest_preserved_ordinal,
    .get_attribute_write_floor = get_attribute_write_floor,
    .fetch_ordinal = fetch_ordinal,
    .release_ordinal_query = release_ordinal_query,
    .query = query,
    .query_from_path_list = query_from_path_list,
    .fetch_query_result = fetch_query_result,
    .release_query_result = release_query_result,
    .release_query = release_query,
    .read_attributes = read_attributes,
    .fetch_read_next = fetch_read_next,
    .release_group = release_group,
    .release_read = release_read,
    .write_attribute = write_attribute,
    .map_attribute = map_attribute,
    .fetch_map_next = fetch_map_next,
    .unmap_group = unmap_group,
    .unmap_attribute = unmap_attribute,
    .delete_attributes = delete_attributes,
    .get_version = get_version,
    .get_error_string = get_error_string,
    .get_last_op_error = get_last_op_error,
    .get_path_dictionary = get_path_dictionary,
    .write_attributes = write_attributes,
    .query_extension = query_extension,
};
