/*
 * first.c - the ten lines of the README in C: write, map, seal, read.
 *
 * Every call that enqueues work answers with an operation. What cannot be done is said by the status, and in words by
 * ovstage_get_last_error on the same thread.
 */
#include <ovstage/ovstage.h>
#include <ovx/path_dictionary/path_dictionary.h>
#include <stdio.h>
#include <stdlib.h>

enum { PRIMS = 2 };

static ovstage_instance_t* stage;

/* Ends the program with the library's own words when something was refused. */
static void need(ovstage_api_status_t status, const char* what) {
  if (status == OVSTAGE_OK) return;
  ovx_string_t reason = ovstage_get_last_error();
  fprintf(stderr, "%s: %.*s\n", what, (int)reason.length, reason.ptr != NULL ? reason.ptr : "");
  exit(1);
}

/* Waits for an operation and forgets it. */
static void done(ovstage_enqueue_result_t enqueued, const char* what) {
  need(enqueued.status, what);
  need(ovstage_wait_op(stage, enqueued.op_index, OVSTAGE_TIMEOUT_INFINITE, NULL), what);
  ovstage_release_op(stage, enqueued.op_index);
}

static void need_name(ovx_api_result_t result, const char* what) {
  if (result.status == OVX_API_SUCCESS) return;
  fprintf(stderr, "%s: %.*s\n", what, (int)result.error.length, result.error.ptr);
  exit(1);
}

int main(void) {
  const DLDataType float3 = {kDLFloat, 32, 3};

  /* A stage, two prims, and the name of a column. */
  need(ovstage_create_instance(&(ovstage_instance_desc_t){"example"}, &stage), "create");
  path_dictionary_instance_t* names = ovstage_get_path_dictionary(stage);
  const ovx_string_t paths[PRIMS] = {literal_to_ovx_string("/A"), literal_to_ovx_string("/B")};
  const ovx_string_t text = literal_to_ovx_string("velocity");
  ovx_primpath_list_t prims;
  ovx_token_t velocity;
  ovstage_query_handle_t query;
  need_name(path_dictionary_create_path_list_from_strings(names, paths, PRIMS, &prims), "paths");
  need_name(path_dictionary_create_tokens_from_strings(names, &text, 1, &velocity), "tokens");
  need(ovstage_query_from_path_list(stage, prims, &query), "query");
  const ovx_string_or_token_t attribute = {.token = velocity};

  /* Write zeros at ordinal 1: one tensor of PRIMS rows with three lanes each. */
  float zeros[PRIMS][3] = {{0}};
  int64_t rows = PRIMS;
  const DLTensor tensor = {.data = zeros, .device = {kDLCPU, 0}, .ndim = 1, .dtype = float3, .shape = &rows};
  const ovstage_write_data_t data = {.tensors = &tensor, .tensor_count = 1};
  done(ovstage_write_attribute(stage, query, attribute, 1, data, OVSTAGE_PRIM_MODE_UPSERT), "write");

  /* Map at ordinal 2: a buffer that starts with the current values, and becomes the column. The other five stay. */
  const ovstage_map_desc_t desc = {.attribute = attribute, .dtype = float3};
  ovstage_map_handle_t map;
  ovstage_map_group_t mapped;
  done(ovstage_map_attribute(stage, query, &desc, 2, NULL, 0, &map), "map");
  need(ovstage_fetch_map_next(stage, map, OVSTAGE_TIMEOUT_INFINITE, &mapped), "fetch the map");
  ((float*)mapped.data.tensors->data)[2] = -9.81f;
  done(ovstage_unmap_attribute(stage, map, (ovstage_cuda_sync_t){0, 0}), "unmap");

  /* Seal, and read what is sealed: a snapshot, valid until the group is released. */
  done(ovstage_advance_write_floor(stage, &(ovstage_write_floor_desc_t){.ordinal = 2}), "seal");
  ovstage_read_handle_t read;
  ovstage_read_group_t group;
  done(ovstage_read_attributes(stage, query, &velocity, 1, (ovstage_ordinal_range_t){.end_ordinal = 2}, &read), "read");
  need(ovstage_fetch_read_next(stage, read, OVSTAGE_TIMEOUT_INFINITE, &group), "fetch");
  const float* values = group.data.tensors->data;
  for (int i = 0; i < PRIMS; i++)
    printf("%s %g %g %g\n", paths[i].ptr, values[3 * i], values[3 * i + 1], values[3 * i + 2]);

  /* Give everything back. */
  need(ovstage_release_group(stage, &group), "release the group");
  done(ovstage_release_read(stage, read), "release the read");
  done(ovstage_release_query(stage, query), "release the query");
  need_name(path_dictionary_release_path_list_reference(names, prims), "release the paths");
  need(ovstage_destroy_instance(stage), "destroy");
  return 0;
}
