/*
 * extension.c - the table "ovstage.go.v1": reference counts, exports, maps with choices, publication, counters. See
 * ovstage_go.h.
 */
#include <stdlib.h>
#include <string.h>

#include "_cgo_export.h"
#include "ring.h"

/* ---- Lifetimes --------------------------------------------------------------------------------------------------- */

static void instance_retain(ovstage_instance_t* instance) {
  if (instance != NULL) ov_context_retain(instance->context);
}

static void instance_release(ovstage_instance_t* instance) {
  if (instance != NULL && !ov_forked) ov_context_release(instance->context);
}

static ov_block* block_of(const ovstage_go_block_t* block) { return (ov_block*)block; }

static void block_retain(ovstage_go_block_t* block) {
  if (block != NULL) ov_block_retain(block_of(block));
}

static void block_release(ovstage_go_block_t* block) {
  ov_block_release(block_of(block));
  ov_give_back();
}

static int64_t block_refs(const ovstage_go_block_t* block) {
  return block != NULL ? __atomic_load_n(&block_of(block)->refs, __ATOMIC_RELAXED) : 0;
}

static ovstage_go_block_t* tensors_block(const DLTensor* tensors) {
  return tensors != NULL ? (ovstage_go_block_t*)ov_tensors_block(tensors) : NULL;
}

static void tensors_retain(const DLTensor* tensors) {
  if (tensors != NULL) ov_tensors_retain(tensors);
}

static void tensors_release(const DLTensor* tensors) {
  if (tensors == NULL || ov_forked) return;
  ov_tensors_release(tensors);
  ov_give_back();
}

/* ---- DLPack ------------------------------------------------------------------------------------------------------ */

static DLManagedTensorVersioned* export_versioned(ovstage_instance_t* instance, ovstage_go_block_t* block,
                                                  const DLTensor* tensor, uint64_t flags) {
  return tensor != NULL ? ov_export_versioned(instance, block_of(block), tensor, flags) : NULL;
}

static DLManagedTensor* export_legacy(ovstage_instance_t* instance, ovstage_go_block_t* block, const DLTensor* tensor) {
  return tensor != NULL ? ov_export_legacy(instance, block_of(block), tensor) : NULL;
}

static DLManagedTensorVersioned* export_copy_versioned(ovstage_instance_t* instance, const DLTensor* tensor) {
  return tensor != NULL ? ov_export_copy_versioned(instance, tensor) : NULL;
}

static DLManagedTensor* export_copy_legacy(ovstage_instance_t* instance, const DLTensor* tensor) {
  return tensor != NULL ? ov_export_copy_legacy(instance, tensor) : NULL;
}

/* ---- Maps -------------------------------------------------------------------------------------------------------- */

/* The caller's structure may be older than ours: what it has no room for is as without options. */
static ovstage_api_status_t read_options(const ovstage_go_map_options_t* given, ovstage_go_map_options_t* options) {
  const size_t least = offsetof(ovstage_go_map_options_t, group_rows);
  *options = (ovstage_go_map_options_t){.struct_size = sizeof *options, .initial = OVSTAGE_GO_INITIAL_CURRENT};
  if (given == NULL) return OVSTAGE_OK;
  uint32_t size;
  ov_take(&size, &given->struct_size, sizeof size);
  if (size < least)
    return ov_fail(OVSTAGE_ERROR_INVALID_ARGUMENT, "options.struct_size is %u, expected at least %zu", size, least);
  ov_take(options, given, size < sizeof *options ? least : sizeof *options);
  return OVSTAGE_OK;
}

static ovstage_enqueue_result_t map_attribute(ovstage_instance_t* instance, ovstage_query_handle_t handle,
                                              const ovstage_map_desc_t* desc, ovstage_ordinal_t ordinal,
                                              const size_t* element_sizes, size_t element_count,
                                              const ovstage_go_map_options_t* options, ovstage_map_handle_t* out) {
  const char* symbol = "ovstage_map_attribute";
  if (out != NULL) *out = OVSTAGE_INVALID_MAP_HANDLE;
  ovstage_enqueue_result_t result = {ov_enter_instance(instance, symbol), 0};
  if (result.status != OVSTAGE_OK) return result;
  ovstage_go_map_options_t given;
  ov_inputs in;
  ov_inputs_open(&in);
  if (desc == NULL) {
    result.status = ov_null("desc");
  } else if (out == NULL) {
    result.status = ov_null("out_map_handle");
  } else if (element_sizes == NULL && element_count > 0) {
    result.status =
        ov_fail(OVSTAGE_ERROR_INVALID_ARGUMENT, "element_sizes is NULL with element_count %zu", element_count);
  } else if (element_count > OV_MOST_ENTRIES) {
    result.status = ov_too_many("element_count", element_count);
  } else if ((result.status = read_options(options, &given)) == OVSTAGE_OK) {
    ovstage_map_desc_t own;
    ov_take(&own, desc, sizeof own);
    ov_input_name(&in, "desc.attribute", &own.attribute);
    if ((result.status = ov_inputs_status(&in)) == OVSTAGE_OK)
      result = ovgoMapAttribute(instance->context, handle, &own, ordinal, element_sizes != NULL,
                                element_count > 0 ? (size_t*)element_sizes : NULL, element_count, &given, out);
  }
  ov_inputs_close(&in);
  return ov_accept(instance->context, symbol, result);
}

/* What unmapping waits for. Nothing can be pending on host memory, and there is no event without CUDA. */
static ovstage_api_status_t check_commit(ovstage_cuda_sync_t sync, ovstage_go_commit_t commit) {
  if (sync.wait_event != 0)
    return ov_fail(OVSTAGE_ERROR_NOT_SUPPORTED,
                   "write_done_sync.wait_event is 0x%zx, but CUDA is not loaded: pass 0 for host data",
                   sync.wait_event);
  if (commit != OVSTAGE_GO_COMMIT_ADOPT && commit != OVSTAGE_GO_COMMIT_AUTO)
    return ov_fail(OVSTAGE_ERROR_INVALID_ARGUMENT, "commit %d is not one of ADOPT (0), AUTO (1)", (int)commit);
  return OVSTAGE_OK;
}

static ovstage_enqueue_result_t unmap_group(ovstage_instance_t* instance, ovstage_map_handle_t handle,
                                            const ovstage_map_group_t* group, ovstage_cuda_sync_t sync,
                                            ovstage_go_commit_t commit) {
  const char* symbol = "ovstage_unmap_group";
  ovstage_enqueue_result_t result = {ov_enter_instance(instance, symbol), 0};
  if (result.status != OVSTAGE_OK) return result;
  if (group == NULL)
    result.status = ov_null("group");
  else if ((result.status = check_commit(sync, commit)) == OVSTAGE_OK)
    result =
        ovgoUnmapGroup(instance->context, handle, (uintptr_t)group->data.tensors, commit == OVSTAGE_GO_COMMIT_ADOPT);
  return ov_accept(instance->context, symbol, result);
}

static ovstage_enqueue_result_t unmap_attribute(ovstage_instance_t* instance, ovstage_map_handle_t handle,
                                                ovstage_cuda_sync_t sync, ovstage_go_commit_t commit) {
  const char* symbol = "ovstage_unmap_attribute";
  ovstage_enqueue_result_t result = {ov_enter_instance(instance, symbol), 0};
  if (result.status != OVSTAGE_OK) return result;
  if ((result.status = check_commit(sync, commit)) == OVSTAGE_OK)
    result = ovgoUnmapAttribute(instance->context, handle, commit == OVSTAGE_GO_COMMIT_ADOPT);
  return ov_accept(instance->context, symbol, result);
}

static ovstage_api_status_t abort_map(ovstage_instance_t* instance, ovstage_map_handle_t handle) {
  const char* symbol = "abort_map";
  ovstage_api_status_t status = ov_enter_instance(instance, symbol);
  if (status != OVSTAGE_OK) return status;
  return ov_leave(instance->context, symbol, ovgoAbortMap(instance->context, handle));
}

static ovstage_api_status_t keep_history(ovstage_instance_t* instance, uint64_t ordinals) {
  const char* symbol = "keep_history";
  ovstage_api_status_t status = ov_enter_instance(instance, symbol);
  if (status != OVSTAGE_OK) return status;
  return ov_leave(instance->context, symbol, ovgoKeepHistory(instance->context, ordinals));
}

/* ---- Queries ----------------------------------------------------------------------------------------------------- */

static ovstage_enqueue_result_t query(ovstage_instance_t* instance, const ovstage_go_condition_t* condition,
                                      const ovx_token_t* attrs, size_t attr_count, ovstage_query_handle_t* out) {
  const char* symbol = "query";
  if (out != NULL) *out = OVSTAGE_INVALID_QUERY_HANDLE;
  ovstage_enqueue_result_t result = {ov_enter_instance(instance, symbol), 0};
  if (result.status != OVSTAGE_OK) return result;
  ov_inputs in;
  ov_inputs_open(&in);
  if (out == NULL) {
    result.status = ov_null("out");
  } else if (attr_count > OV_MOST_ENTRIES) {
    result.status = ov_too_many("attr_count", attr_count);
  } else if (attr_count > 0 && attrs == NULL) {
    result.status = ov_fail(OVSTAGE_ERROR_INVALID_ARGUMENT, "attrs is NULL with attr_count %zu", attr_count);
  } else {
    ovstage_go_condition_t* own = ov_input_condition(&in, condition);
    ovx_token_t* tokens = ov_input(&in, "attrs", attrs, attr_count, sizeof *attrs);
    if ((result.status = ov_inputs_status(&in)) == OVSTAGE_OK)
      result = ovgoQueryCondition(instance->context, own, tokens, attr_count, out);
  }
  ov_inputs_close(&in);
  return ov_accept(instance->context, symbol, result);
}

static ovstage_enqueue_result_t refresh_query(ovstage_instance_t* instance, ovstage_query_handle_t handle) {
  const char* symbol = "refresh_query";
  ovstage_enqueue_result_t result = {ov_enter_instance(instance, symbol), 0};
  if (result.status != OVSTAGE_OK) return result;
  return ov_accept(instance->context, symbol, ovgoRefreshQuery(instance->context, handle));
}

static ovstage_api_status_t query_count(ovstage_instance_t* instance, ovstage_query_handle_t handle, size_t* out) {
  const char* symbol = "query_count";
  if (out != NULL) *out = 0;
  ovstage_api_status_t status = ov_enter_instance(instance, symbol);
  if (status != OVSTAGE_OK) return status;
  status = out != NULL ? ovgoQueryCount(instance->context, handle, out) : ov_null("out");
  return ov_leave(instance->context, symbol, status);
}

static ovstage_api_status_t query_where(ovstage_instance_t* instance, ovstage_query_handle_t handle,
                                        const uint64_t* mask, size_t count, ovstage_query_handle_t* out) {
  const char* symbol = "query_where";
  if (out != NULL) *out = OVSTAGE_INVALID_QUERY_HANDLE;
  ovstage_api_status_t status = ov_enter_instance(instance, symbol);
  if (status != OVSTAGE_OK) return status;
  if (out == NULL)
    status = ov_null("out");
  else if (mask == NULL && count > 0)
    status = ov_fail(OVSTAGE_ERROR_INVALID_ARGUMENT, "mask is NULL with count %zu", count);
  else if (count > OV_MOST_ENTRIES)
    status = ov_too_many("count", count);
  else
    status = ovgoQueryWhere(instance->context, handle, count > 0 ? (uint64_t*)mask : NULL, count, out);
  return ov_leave(instance->context, symbol, status);
}

/* ---- Publication ------------------------------------------------------------------------------------------------- */

/* What one structure of a list points at: "deletes"[at] at every "attribute", "batches"[at] at every "write". */
static ovstage_api_status_t check_items(const char* list, size_t at, const char* item, const void* items,
                                        size_t count) {
  if (items == NULL && count > 0)
    return ov_fail(OVSTAGE_ERROR_INVALID_ARGUMENT, "%s[%zu].%ss is NULL with %s_count %zu", list, at, item, item,
                   count);
  if (count <= OV_MOST_ENTRIES) return OVSTAGE_OK;
  return ov_fail(OVSTAGE_ERROR_INVALID_ARGUMENT, "%s[%zu].%s_count is %zu, which is more than memory holds", list, at,
                 item, count);
}

static ovstage_api_status_t check_publication(const ovstage_go_delete_t* deletes, size_t delete_count,
                                              const ov_batch* batches, size_t batch_count) {
  ovstage_api_status_t status = OVSTAGE_OK;
  for (size_t i = 0; status == OVSTAGE_OK && i < delete_count; i++)
    status = check_items("deletes", i, "attribute", deletes[i].attributes, deletes[i].attribute_count);
  for (size_t i = 0; status == OVSTAGE_OK && i < batch_count; i++)
    status = check_items("batches", i, "write", batches[i].writes, batches[i].count);
  return status;
}

static ovstage_api_status_t check_lists(const ovstage_go_delete_t* deletes, size_t delete_count,
                                        const ovstage_go_batch_t* batches, size_t batch_count) {
  if (deletes == NULL && delete_count > 0)
    return ov_fail(OVSTAGE_ERROR_INVALID_ARGUMENT, "deletes is NULL with delete_count %zu", delete_count);
  if (batches == NULL && batch_count > 0)
    return ov_fail(OVSTAGE_ERROR_INVALID_ARGUMENT, "batches is NULL with batch_count %zu", batch_count);
  if (delete_count > OV_MOST_ENTRIES) return ov_too_many("delete_count", delete_count);
  return batch_count > OV_MOST_ENTRIES ? ov_too_many("batch_count", batch_count) : OVSTAGE_OK;
}

/* The batches are copied already; now the deletes are, and what either points at. */
static ovstage_enqueue_result_t publish_inputs(ovstage_context_t* c, ov_inputs* in, const ovstage_go_delete_t* deletes,
                                               size_t delete_count, ov_batch* batches, size_t batch_count,
                                               const ovx_string_or_token_t* type_names, ov_managed_list* managed,
                                               ovstage_ordinal_t ordinal) {
  ovstage_go_delete_t* own = ov_input(in, "deletes", deletes, delete_count, sizeof *deletes);
  ovstage_enqueue_result_t result = {ov_inputs_status(in), 0};
  if (result.status == OVSTAGE_OK) result.status = check_publication(own, delete_count, batches, batch_count);
  if (result.status == OVSTAGE_OK) result.status = ov_managed_check(managed);
  if (result.status != OVSTAGE_OK) return result;
  for (size_t i = 0; i < delete_count; i++)
    own[i].attributes = ov_input_names(in, "attributes", own[i].attributes, own[i].attribute_count);
  if ((result.status = ov_input_payloads(in, batches, batch_count, type_names)) == OVSTAGE_OK)
    result = ovgoPublish(c, own, delete_count, batches, batch_count, managed, ordinal);
  return result;
}

static ovstage_enqueue_result_t publish_typed(ovstage_instance_t* instance, const ovstage_go_delete_t* deletes,
                                              size_t delete_count, const ovstage_go_batch_t* batches,
                                              size_t batch_count, const ovx_string_or_token_t* type_names,
                                              ovstage_ordinal_t ordinal) {
  const char* symbol = "publish";
  ov_inputs in;
  ov_inputs_open(&in);
  ov_batch* own = ov_input_batches(&in, batches, batch_count);
  ov_managed_list managed;
  if (in.lost == NULL)
    ov_managed_take(&managed, own, batch_count);
  else
    ov_managed_take_uncopied(&managed, batches, batch_count);
  ovstage_enqueue_result_t result = {ov_enter_instance(instance, symbol), 0};
  if (result.status == OVSTAGE_OK) {
    if ((result.status = check_lists(deletes, delete_count, batches, batch_count)) == OVSTAGE_OK)
      result = publish_inputs(instance->context, &in, deletes, delete_count, own, batch_count, type_names, &managed,
                              ordinal);
    result = ov_accept(instance->context, symbol, result);
  }
  ov_managed_give_back(&managed);
  ov_inputs_close(&in);
  return result;
}

static ovstage_enqueue_result_t publish(ovstage_instance_t* instance, const ovstage_go_delete_t* deletes,
                                        size_t delete_count, const ovstage_go_batch_t* batches, size_t batch_count,
                                        ovstage_ordinal_t ordinal) {
  return publish_typed(instance, deletes, delete_count, batches, batch_count, NULL, ordinal);
}

/* ---- Names of types ---------------------------------------------------------------------------------------------- */

static ovstage_enqueue_result_t write_typed(ovstage_instance_t* instance, ovstage_query_handle_t query,
                                            const ovstage_attribute_write_t* writes,
                                            const ovx_string_or_token_t* type_names, size_t count,
                                            ovstage_ordinal_t ordinal, ovstage_prim_mode_t mode) {
  const char* symbol = "write_typed";
  const ovstage_go_batch_t batch = {query, writes, count};
  return ov_write_batch(instance != NULL ? instance->context : NULL, symbol, &batch, type_names, ordinal, mode, true);
}

static ovstage_api_status_t attributes(ovstage_instance_t* instance, ovstage_go_attribute_t* out, size_t size,
                                       size_t room, size_t* count) {
  const char* symbol = "attributes";
  ovstage_api_status_t status = ov_enter_instance(instance, symbol);
  if (status != OVSTAGE_OK) return status;
  ovstage_go_attribute_t* all = NULL;
  size_t found = 0;
  if (count == NULL)
    status = ov_null("count");
  else if (out == NULL && room > 0)
    status = ov_null("out");
  else if (size < offsetof(ovstage_go_attribute_t, dtype) || size > sizeof *out)
    status = ov_fail(OVSTAGE_ERROR_INVALID_ARGUMENT, "size is %zu: set it to the size of the structure", size);
  else if ((status = ovgoAttributes(instance->context, &all, &found)) == OVSTAGE_OK) {
    *count = found;
    for (size_t i = 0; i < found && i < room; i++) memcpy((char*)out + i * size, &all[i], size);
  }
  free(all);
  return ov_leave(instance->context, symbol, status);
}

/* ---- Waiting for the write floor --------------------------------------------------------------------------------- */

static ovstage_api_status_t wait_floor(ovstage_instance_t* instance, const ovx_string_or_token_t* names, size_t count,
                                       ovstage_ordinal_t ordinal, ovstage_timeout_ns_t timeout) {
  const char* symbol = "wait_floor";
  ovstage_api_status_t status = ov_enter_instance(instance, symbol);
  if (status != OVSTAGE_OK) return status;
  ov_inputs in;
  ov_inputs_open(&in);
  if (count > OV_MOST_ENTRIES) {
    status = ov_too_many("count", count);
  } else if (names == NULL && count > 0) {
    status = ov_null("attributes");
  } else {
    const ovx_string_or_token_t* own = ov_input_names(&in, "attributes", names, count);
    if ((status = ov_inputs_status(&in)) == OVSTAGE_OK)
      status = ov_floor_wait(instance->context, own, count, ordinal, timeout);
  }
  ov_inputs_close(&in);
  return ov_leave(instance->context, symbol, status);
}

static ovstage_api_status_t floor_moves(ovstage_instance_t* instance, uint64_t seen, ovstage_timeout_ns_t timeout,
                                        uint64_t* moves) {
  const char* symbol = "floor_moves";
  ovstage_api_status_t status = ov_enter_instance(instance, symbol);
  if (status != OVSTAGE_OK) return status;
  status = moves != NULL ? ov_floor_moves(instance->context, seen, timeout, moves) : ov_null("moves");
  return ov_leave(instance->context, symbol, status);
}

/* ---- Following --------------------------------------------------------------------------------------------------- */

static ovstage_enqueue_result_t read_since(ovstage_instance_t* instance, ovstage_query_handle_t query,
                                           ovstage_go_cursor_t* cursors, size_t count, ovstage_read_handle_t* out) {
  const char* symbol = "read_since";
  if (out != NULL) *out = OVSTAGE_INVALID_READ_HANDLE;
  ovstage_enqueue_result_t result = {ov_enter_instance(instance, symbol), 0};
  if (result.status != OVSTAGE_OK) return result;
  ov_inputs in;
  ov_inputs_open(&in);
  if (out == NULL) {
    result.status = ov_null("out");
  } else if (cursors == NULL || count == 0) {
    result.status = ov_fail(OVSTAGE_ERROR_INVALID_ARGUMENT, "cursors: there is none, expected one for each attribute");
  } else if (count > OV_MOST_ENTRIES) {
    result.status = ov_too_many("count", count);
  } else {
    ovstage_go_cursor_t* own = ov_input(&in, "cursors", cursors, count, sizeof *cursors);
    if ((result.status = ov_inputs_status(&in)) == OVSTAGE_OK)
      result = ovgoReadSince(instance->context, query, own, count, out);
    for (size_t i = 0; result.status == OVSTAGE_OK && i < count; i++) {
      cursors[i].until = own[i].until;
      cursors[i].resync = own[i].resync;
    }
  }
  ov_inputs_close(&in);
  return ov_accept(instance->context, symbol, result);
}

/* ---- Counters ---------------------------------------------------------------------------------------------------- */

/* The caller's structure may be older than ours: it gets as much as it has room for. */
static void copy_counters(ovstage_go_counters_t* out, const ovstage_go_counters_t* counters) {
  memcpy(out, counters, counters->struct_size < sizeof *counters ? counters->struct_size : sizeof *counters);
}

static ovstage_api_status_t counters(ovstage_instance_t* instance, ovstage_go_counters_t* out) {
  const char* symbol = "counters";
  ovstage_api_status_t status = ov_enter_instance(instance, symbol);
  if (status != OVSTAGE_OK) return status;
  ovstage_go_counters_t now = {0};
  if (out != NULL) ov_take(&now.struct_size, &out->struct_size, sizeof now.struct_size);
  if (out == NULL)
    status = ov_null("counters");
  else if (now.struct_size < offsetof(ovstage_go_counters_t, live_exports))
    status = ov_fail(OVSTAGE_ERROR_INVALID_ARGUMENT, "counters.struct_size is %u: set it to the size of the structure",
                     now.struct_size);
  else if ((status = ovgoCounters(instance->context, &now)) == OVSTAGE_OK)
    copy_counters(out, &now);
  return ov_leave(instance->context, symbol, status);
}

static void process_counters(ovstage_go_counters_t* out) {
  if (out == NULL || ov_forked) return;
  ovstage_go_counters_t now = {0};
  ov_take(&now.struct_size, &out->struct_size, sizeof now.struct_size);
  if (now.struct_size < offsetof(ovstage_go_counters_t, live_exports)) return;
  ovgoProcessCounters(&now);
  copy_counters(out, &now);
}

static void trim(void) {
  if (!ov_forked) ov_memory_trim();
}

/* ---- Groups ------------------------------------------------------------------------------------------------------ */

static ovstage_api_status_t fetch_read(ovstage_instance_t* instance, ovstage_read_handle_t handle,
                                       ovstage_timeout_ns_t timeout, ovstage_read_group_t* out,
                                       const DLTensor** out_keep) {
  (void)timeout;
  return ov_fetch_read(instance != NULL ? instance->context : NULL, handle, out, true, out_keep);
}

static ovstage_api_status_t fetch_map(ovstage_instance_t* instance, ovstage_map_handle_t handle,
                                      ovstage_timeout_ns_t timeout, ovstage_map_group_t* out,
                                      const DLTensor** out_keep) {
  (void)timeout;
  return ov_fetch_map(instance != NULL ? instance->context : NULL, handle, out, true, out_keep);
}

/* ---- Log --------------------------------------------------------------------------------------------------------- */

static uint64_t log_mark(void) { return ov_forked ? 0 : ov_log_mark(); }

static ovstage_api_status_t log_wait(uint64_t mark, ovstage_timeout_ns_t timeout) {
  ovstage_api_status_t status = ov_begin("log_wait");
  return status == OVSTAGE_OK ? ov_log_wait(mark, timeout) : status;
}

static uint64_t log_cut(ovstage_log_callback_t callback, void* user_data, uint64_t* left) {
  uint64_t none;
  if (ov_forked) return 0;
  return ov_log_cut(callback, user_data, left != NULL ? left : &none);
}

static bool log_next(ovstage_log_callback_t callback, void* user_data, ovstage_log_severity_t* severity,
                     double* timestamp, ovx_string_t* message) {
  return !ov_forked && ov_log_next(callback, user_data, severity, timestamp, message);
}

/* ---- Operations that fail, reads that bring nothing ------------------------------------------------------------- */

static ovstage_api_status_t op_status(ovstage_instance_t* instance, ovstage_op_id_t op) {
  const char* symbol = "op_status";
  ovstage_api_status_t status = ov_enter_instance(instance, symbol);
  if (status != OVSTAGE_OK) return status;
  status = ov_op_status(instance->context, op);
  ov_gate_leave(&instance->context->gate); /* the status of an operation is no failure of this call: nothing to log */
  return status;
}

static int32_t tell_unasked(ovstage_instance_t* instance, const ovstage_go_unasked_t* failure, uint64_t* held_back) {
  if (held_back != NULL) *held_back = 0;
  if (ov_forked || instance == NULL || failure == NULL || failure->struct_size < sizeof *failure) return 0;
  return ov_unasked_tell(instance->context, failure, held_back);
}

static size_t read_missing(ovstage_instance_t* instance, ovstage_read_handle_t read, size_t index,
                           ovx_token_t* attribute, char* reason, size_t capacity) {
  const char* symbol = "read_missing";
  if (attribute == NULL || (reason == NULL && capacity > 0) || capacity > OV_MOST_ENTRIES) return 0;
  if (ov_enter_instance(instance, symbol) != OVSTAGE_OK) return 0;
  ovx_token_t token = 0;
  size_t length = ovgoReadMissing(instance->context, read, index, &token, reason, capacity);
  if (length > 0) *attribute = token;
  ov_leave(instance->context, symbol, OVSTAGE_OK);
  return length;
}

/* ---- Debugging --------------------------------------------------------------------------------------------------- */

static ovstage_api_status_t guard_reads(ovstage_instance_t* instance) {
  const char* symbol = "guard_reads";
  ovstage_api_status_t status = ov_enter_instance(instance, symbol);
  if (status != OVSTAGE_OK) return status;
  if (!__atomic_exchange_n(&instance->context->guarding, 1, __ATOMIC_ACQ_REL)) ov_memory_guard(1);
  return ov_leave(instance->context, symbol, OVSTAGE_OK);
}

static ovstage_api_status_t try_name(ovstage_instance_t* instance, ovx_string_t name, ovx_token_t* out, bool* tried) {
  const char* symbol = "try_name";
  ovstage_api_status_t status = ov_enter_instance(instance, symbol);
  if (status != OVSTAGE_OK) return status;
  ovx_token_t token = 0;
  bool trial = false;
  ovx_string_or_token_t own = {.string = name};
  ov_inputs in;
  ov_inputs_open(&in);
  ov_input_name(&in, "name", &own);
  if (out == NULL || tried == NULL)
    status = ov_null(out == NULL ? "out" : "tried");
  else if ((status = ov_inputs_status(&in)) == OVSTAGE_OK)
    status = ovgoTryName(instance->context, &own.string, &token, &trial);
  ov_inputs_close(&in);
  if (status == OVSTAGE_OK) {
    *out = token;
    *tried = trial;
  }
  return ov_leave(instance->context, symbol, status);
}

static void end_name(ovstage_instance_t* instance, ovx_token_t token) {
  const char* symbol = "end_name";
  if (ov_enter_instance(instance, symbol) != OVSTAGE_OK) return;
  ovgoEndName(instance->context, token);
  ov_leave(instance->context, symbol, OVSTAGE_OK);
}

static ovstage_api_status_t list_of_known(ovstage_instance_t* instance, const ovx_string_t* paths, size_t count,
                                          ovx_primpath_list_t* out, size_t* unknown) {
  const char* symbol = "list_of_known";
  ovstage_api_status_t status = ov_enter_instance(instance, symbol);
  if (status != OVSTAGE_OK) return status;
  ovx_primpath_list_t list = OVX_INVALID_PRIMPATH_LIST;
  size_t strangers = 0;
  ov_inputs in;
  ov_inputs_open(&in);
  ovx_string_t* own = NULL;
  if (out == NULL || unknown == NULL)
    status = ov_null(out == NULL ? "out" : "unknown");
  else if (paths == NULL && count > 0)
    status = ov_null("paths");
  else {
    own = ov_input_texts(&in, "paths", paths, count);
    if ((status = ov_inputs_status(&in)) == OVSTAGE_OK)
      status = ovgoListOfKnown(instance->context, own, count, &list, &strangers);
  }
  ov_inputs_close(&in);
  if (status == OVSTAGE_OK) {
    *out = list;
    *unknown = strangers;
  }
  return ov_leave(instance->context, symbol, status);
}

/* ---- Interface levels -------------------------------------------------------------------------------------------- */

static ovstage_api_status_t set_stage_options(ovstage_instance_t* instance, const ovstage_go_stage_options_t* options) {
  const char* symbol = "set_stage_options";
  ovstage_api_status_t status = ov_enter_instance(instance, symbol);
  if (status != OVSTAGE_OK) return status;
  ovstage_go_stage_options_t own = {0};
  if (options != NULL) ov_take(&own, options, sizeof own);
  if (options == NULL)
    status = ov_null("options");
  else if (own.struct_size < sizeof own)
    status = ov_fail(OVSTAGE_ERROR_INVALID_ARGUMENT, "options.struct_size is %u, expected at least %zu",
                     own.struct_size, sizeof own);
  else
    status = ov_interface_set(instance->context, own.interface_level);
  return ov_leave(instance->context, symbol, status);
}

static ovstage_go_interface_t stage_interface(ovstage_instance_t* instance) {
  return instance != NULL ? ov_interface(instance->context) : OVSTAGE_GO_INTERFACE_DEFAULT;
}

/* ---- Paths that nothing names ------------------------------------------------------------------------------------ */

static ovstage_api_status_t compact(ovstage_instance_t* instance, uint64_t* dropped) {
  const char* symbol = "compact";
  ovstage_api_status_t status = ov_enter_instance(instance, symbol);
  if (status != OVSTAGE_OK) return status;
  uint64_t count = 0;
  status = ovgoCompact(instance->context, &count);
  if (dropped != NULL) *dropped = count;
  return ov_leave(instance->context, symbol, status);
}

static ovstage_api_status_t path_texts(ovstage_instance_t* instance, const ovx_primpath_t* paths, size_t count,
                                       char* buffer, size_t capacity, size_t* ends, size_t* done) {
  const char* symbol = "path_texts";
  if (done != NULL) *done = 0;
  ovstage_api_status_t status = ov_enter_instance(instance, symbol);
  if (status != OVSTAGE_OK) return status;
  ov_inputs in;
  ov_inputs_open(&in);
  if (done == NULL)
    status = ov_null("done");
  else if (count > 0 && (paths == NULL || ends == NULL))
    status = ov_null(paths == NULL ? "paths" : "ends");
  else if (capacity > 0 && buffer == NULL)
    status = ov_null("buffer");
  else if (count > OV_MOST_ENTRIES || capacity > OV_MOST_ENTRIES)
    status = ov_too_many(count > OV_MOST_ENTRIES ? "count" : "capacity", count > OV_MOST_ENTRIES ? count : capacity);
  else if (count > 0) {
    ovx_primpath_t* own = ov_input(&in, "paths", paths, count, sizeof *paths);
    if ((status = ov_inputs_status(&in)) == OVSTAGE_OK)
      status = ovgoPathTexts(instance->context, own, count, buffer, capacity, ends, done);
  }
  ov_inputs_close(&in);
  return ov_leave(instance->context, symbol, status);
}

const ovstage_go_v1_t ov_extension = {
    .struct_size = sizeof(ovstage_go_v1_t),
    .version = 1,
    .instance_retain = instance_retain,
    .instance_release = instance_release,
    .block_retain = block_retain,
    .block_release = block_release,
    .block_refs = block_refs,
    .tensors_block = tensors_block,
    .tensors_retain = tensors_retain,
    .tensors_release = tensors_release,
    .export_versioned = export_versioned,
    .export_legacy = export_legacy,
    .map_attribute = map_attribute,
    .unmap_group = unmap_group,
    .unmap_attribute = unmap_attribute,
    .abort_map = abort_map,
    .counters = counters,
    .process_counters = process_counters,
    .trim = trim,
    .op_status = op_status,
    .keep_history = keep_history,
    .query = query,
    .refresh_query = refresh_query,
    .publish = publish,
    .query_count = query_count,
    .query_where = query_where,
    .fetch_read = fetch_read,
    .fetch_map = fetch_map,
    .log_mark = log_mark,
    .log_wait = log_wait,
    .log_cut = log_cut,
    .write_typed = write_typed,
    .publish_typed = publish_typed,
    .tensors_type = ov_tensors_type,
    .attributes = attributes,
    .log_next = log_next,
    .tell_unasked = tell_unasked,
    .read_missing = read_missing,
    .export_copy_versioned = export_copy_versioned,
    .export_copy_legacy = export_copy_legacy,
    .guard_reads = guard_reads,
    .try_name = try_name,
    .end_name = end_name,
    .list_of_known = list_of_known,
    .wait_floor = wait_floor,
    .floor_moves = floor_moves,
    .read_since = read_since,
    .set_stage_options = set_stage_options,
    .stage_interface = stage_interface,
    .compact = compact,
    .path_texts = path_texts,
};
