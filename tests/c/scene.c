/*
 * scene.c - the checks' footing; see scene.h.
 */
#include "scene.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Checking ---------------------------------------------------------------------------------------------------- */

int passed, failed;

bool check(bool held, const char* condition, const char* function, int line) {
  if (held) {
    passed++;
    return true;
  }
  failed++;
  ovx_string_t last = ovstage_get_last_error();
  printf("%s, line %d: failed: %s\n", function, line, condition);
  if (last.length > 0) printf("    last error: %s\n", last.ptr);
  return false;
}

ovx_string_t view(const char* text) {
  ovx_string_t string;
  string.ptr = text;
  string.length = strlen(text);
  return string;
}

bool equals(ovx_string_t string, const char* text) {
  return string.length == strlen(text) && (string.length == 0 || memcmp(string.ptr, text, string.length) == 0);
}

bool contains(ovx_string_t string, const char* part) {
  return string.ptr != NULL && string.ptr[string.length] == '\0' && strstr(string.ptr, part) != NULL;
}

/* ---- Small things ------------------------------------------------------------------------------------------------ */

const ovstage_cuda_sync_t NO_SYNC = {0, 0};
const DLDataType EXISTING = {0, 0, 0};

DLDataType type_of(uint8_t code, uint8_t bits, uint16_t lanes) {
  DLDataType type;
  type.code = code;
  type.bits = bits;
  type.lanes = lanes;
  return type;
}

DLTensor tensor_of(void* data, DLDataType type, int32_t ndim, int64_t* shape) {
  DLTensor tensor;
  memset(&tensor, 0, sizeof tensor);
  tensor.data = data;
  tensor.device.device_type = kDLCPU;
  tensor.ndim = ndim;
  tensor.dtype = type;
  tensor.shape = shape;
  return tensor;
}

ovstage_write_data_t payload_of(const DLTensor* tensors, uint32_t count) {
  ovstage_write_data_t data;
  memset(&data, 0, sizeof data);
  data.tensors = tensors;
  data.tensor_count = count;
  return data;
}

ovx_string_or_token_t by_token(ovx_token_t token) {
  ovx_string_or_token_t name;
  memset(&name, 0, sizeof name);
  name.token = token;
  return name;
}

ovx_string_or_token_t by_name(const char* text) {
  ovx_string_or_token_t name;
  name.token = OVX_INVALID_TOKEN;
  name.string = view(text);
  return name;
}

ovstage_ordinal_range_t latest(ovstage_ordinal_t end) {
  ovstage_ordinal_range_t range;
  memset(&range, 0, sizeof range);
  range.end_ordinal = end;
  return range;
}

ovstage_map_desc_t map_of(ovx_token_t attribute, DLDataType type) {
  ovstage_map_desc_t desc;
  memset(&desc, 0, sizeof desc);
  desc.attribute = by_token(attribute);
  desc.dtype = type;
  return desc;
}

ovstage_go_counters_t zero_counters(void) {
  ovstage_go_counters_t counters;
  memset(&counters, 0, sizeof counters);
  counters.struct_size = sizeof counters;
  return counters;
}

/* ---- Interface levels -------------------------------------------------------------------------------------------- */

ovstage_go_interface_t level(void) { return ovstage_go_interface_named(getenv(OVSTAGE_GO_INTERFACE_VARIABLE)); }

DLDataType stored_type(const DLTensor* tensor) {
  DLDataType type = tensor->dtype;
  for (int32_t axis = 1; axis < tensor->ndim; axis++) type.lanes = (uint16_t)(type.lanes * tensor->shape[axis]);
  return type;
}

bool shows(const DLTensor* tensor, int64_t rows, DLDataType type, ovstage_attribute_semantic_t semantic,
           ovstage_go_interface_t at) {
  int64_t shape[3] = {rows, type.lanes, 0};
  int32_t ndim = 1;
  if (at == OVSTAGE_GO_INTERFACE_0_3 && type.lanes > 1) {
    ndim = 2;
    for (int64_t side = 2; side <= 4; side++) {
      if (semantic != OVSTAGE_SEMANTIC_MATRIX || type.lanes != side * side) continue;
      shape[1] = shape[2] = side;
      ndim = 3;
    }
    type.lanes = 1;
  }
  return tensor->ndim == ndim && memcmp(tensor->shape, shape, (size_t)ndim * sizeof *shape) == 0 &&
         memcmp(&tensor->dtype, &type, sizeof type) == 0 && tensor->strides == NULL && tensor->byte_offset == 0 &&
         tensor->data != NULL && tensor->device.device_type == kDLCPU;
}

/* ---- A stage with three prims ------------------------------------------------------------------------------------ */

bool open_scene(scene* s, const char* name) {
  memset(s, 0, sizeof *s);
  ovstage_instance_desc_t desc;
  desc.name = name;
  if (!CHECK(ovstage_create_instance(&desc, &s->stage) == OVSTAGE_OK)) return false;
  s->dictionary = ovstage_get_path_dictionary(s->stage);
  const void* table = NULL;
  CHECK(ovstage_query_extension(s->stage, OVSTAGE_GO_V1_NAME, &table) == OVSTAGE_OK);
  s->go = (const ovstage_go_v1_t*)table;
  ovx_string_t paths[PRIMS] = {view("/World/A"), view("/World/B"), view("/World/C")};
  CHECK(path_dictionary_create_path_list_from_strings(s->dictionary, paths, PRIMS, &s->list).status == OVX_API_SUCCESS);
  CHECK(ovstage_query_from_path_list(s->stage, s->list, &s->query) == OVSTAGE_OK);
  CHECK(s->query != OVSTAGE_INVALID_QUERY_HANDLE);
  return s->dictionary != NULL && s->go != NULL && s->query != OVSTAGE_INVALID_QUERY_HANDLE;
}

bool done(const scene* s, ovstage_enqueue_result_t enqueued, const char* call, const char* function, int line) {
  if (!check(enqueued.status == OVSTAGE_OK && enqueued.op_index != OVSTAGE_INVALID_OP_ID, call, function, line))
    return false;
  ovstage_op_wait_result_t result;
  memset(&result, 0xff, sizeof result);
  bool good = ovstage_wait_op(s->stage, enqueued.op_index, OVSTAGE_TIMEOUT_INFINITE, &result) == OVSTAGE_OK &&
              result.error_op_id_count == 0;
  if (!good) printf("    operation: %s\n", ovstage_get_last_op_error(s->stage, enqueued.op_index).ptr);
  good = check(good, call, function, line);
  return check(ovstage_release_op(s->stage, enqueued.op_index) == OVSTAGE_OK, "release_op", function, line) && good;
}

void close_scene(scene* s) {
  DONE(s, ovstage_release_query(s->stage, s->query));
  CHECK(path_dictionary_release_path_list_reference(s->dictionary, s->list).status == OVX_API_SUCCESS);
  ovstage_go_counters_t counters = zero_counters();
  CHECK(s->go->counters(s->stage, &counters) == OVSTAGE_OK);
  CHECK(counters.live_exports == 0);
  CHECK(counters.live_groups == 0);
  CHECK(counters.live_maps == 0);
  CHECK(counters.live_operations == 0);
  CHECK(counters.live_queries == 0);
  CHECK(counters.live_reads == 0);
  CHECK(ovstage_destroy_instance(s->stage) == OVSTAGE_OK);
}

ovx_token_t token_of(const scene* s, const char* text) {
  ovx_string_t string = view(text);
  ovx_token_t token = OVX_INVALID_TOKEN;
  CHECK(path_dictionary_create_tokens_from_strings(s->dictionary, &string, 1, &token).status == OVX_API_SUCCESS);
  CHECK(token != OVX_INVALID_TOKEN);
  return token;
}

ovstage_query_handle_t query_of(const scene* s, const char* const* paths, size_t count) {
  ovx_string_t strings[8];
  for (size_t i = 0; i < count; i++) strings[i] = view(paths[i]);
  ovx_primpath_list_t list = OVX_INVALID_PRIMPATH_LIST;
  CHECK(path_dictionary_create_path_list_from_strings(s->dictionary, strings, count, &list).status == OVX_API_SUCCESS);
  ovstage_query_handle_t query = OVSTAGE_INVALID_QUERY_HANDLE;
  CHECK(ovstage_query_from_path_list(s->stage, list, &query) == OVSTAGE_OK);
  CHECK(path_dictionary_release_path_list_reference(s->dictionary, list).status == OVX_API_SUCCESS);
  return query;
}

ovstage_enqueue_result_t seal(const scene* s, ovstage_ordinal_t ordinal) {
  ovstage_write_floor_desc_t floor;
  memset(&floor, 0, sizeof floor);
  floor.ordinal = ordinal;
  return ovstage_advance_write_floor(s->stage, &floor);
}

ovstage_enqueue_result_t write_tensor(const scene* s, ovx_token_t attribute, ovstage_ordinal_t ordinal,
                                      const DLTensor* tensor, ovstage_attribute_semantic_t semantic) {
  ovstage_write_data_t data = payload_of(tensor, 1);
  data.semantic = semantic;
  return ovstage_write_attribute(s->stage, s->query, by_token(attribute), ordinal, data, OVSTAGE_PRIM_MODE_UPSERT);
}

ovstage_enqueue_result_t write_floats(const scene* s, ovx_token_t attribute, ovstage_ordinal_t ordinal, float a,
                                      float b, float c) {
  float values[PRIMS] = {a, b, c};
  int64_t shape[1] = {PRIMS};
  DLTensor tensor = tensor_of(values, type_of(kDLFloat, 32, 1), 1, shape);
  return write_tensor(s, attribute, ordinal, &tensor, OVSTAGE_SEMANTIC_NONE);
}

bool map_all(const scene* s, const ovstage_map_desc_t* desc, ovstage_ordinal_t ordinal, ovstage_map_handle_t* map,
             ovstage_map_group_t* group) {
  *map = OVSTAGE_INVALID_MAP_HANDLE;
  if (!DONE(s, ovstage_map_attribute(s->stage, s->query, desc, ordinal, NULL, 0, map))) return false;
  CHECK(*map != OVSTAGE_INVALID_MAP_HANDLE);
  if (!CHECK(ovstage_fetch_map_next(s->stage, *map, OVSTAGE_TIMEOUT_INFINITE, group) == OVSTAGE_OK)) return false;
  CHECK(group->prims.offset == 0 && group->prims.count == PRIMS && group->prims.index_map == NULL);
  CHECK(group->data.count == PRIMS && group->data.index_map == NULL);
  return CHECK(group->data.tensor_count == 1 && shows(group->data.tensors, PRIMS, stored_type(group->data.tensors),
                                                      (ovstage_attribute_semantic_t)desc->semantic, level()));
}

bool is_dense(const ovstage_read_group_t* group, ovx_token_t attribute, DLDataType type) {
  if (!CHECK(group->read_group_id != OVSTAGE_INVALID_READ_GROUP_ID)) return false;
  CHECK(group->attribute == attribute);
  CHECK(!group->is_delete && !group->is_array);
  CHECK(group->prims.offset == 0 && group->prims.count == PRIMS && group->prims.index_map == NULL);
  CHECK(group->data.count == PRIMS && group->data.index_map == NULL && group->data.mask == NULL);
  CHECK(group->data.cuda_sync.stream == 0 && group->data.cuda_sync.wait_event == 0);
  CHECK(group->meta.layout_generation >= 1);
  if (!CHECK(group->data.tensor_count == 1 && group->data.tensors != NULL)) return false;
  const DLTensor* tensor = group->data.tensors;
  return CHECK(shows(tensor, PRIMS, type, group->semantic, level()));
}

bool read_first(const scene* s, ovstage_query_handle_t query, ovx_token_t attribute, ovstage_ordinal_t end,
                ovstage_read_handle_t* read, ovstage_read_group_t* group) {
  *read = OVSTAGE_INVALID_READ_HANDLE;
  memset(group, 0, sizeof *group);
  return DONE(s, ovstage_read_attributes(s->stage, query, &attribute, 1, latest(end), read)) &&
         CHECK(ovstage_fetch_read_next(s->stage, *read, OVSTAGE_TIMEOUT_INFINITE, group) == OVSTAGE_OK);
}

void expect(const scene* s, ovx_token_t attribute, ovstage_ordinal_t end, DLDataType type, const void* bytes,
            const char* function, int line) {
  ovstage_read_handle_t read;
  ovstage_read_group_t group;
  if (read_first(s, s->query, attribute, end, &read, &group)) {
    size_t size = (size_t)PRIMS * type.lanes * type.bits / 8;
    if (is_dense(&group, attribute, type))
      check(memcmp(group.data.tensors->data, bytes, size) == 0, "the expected values", function, line);
    check(group.ordinal <= end, "no change later than asked for", function, line);
    CHECK(ovstage_release_group(s->stage, &group) == OVSTAGE_OK);
    check(ovstage_fetch_read_next(s->stage, read, 0, &group) == OVSTAGE_ERROR_END_OF_ITERATION, "one group only",
          function, line);
  } else {
    check(false, "a group", function, line);
  }
  if (read != OVSTAGE_INVALID_READ_HANDLE) DONE(s, ovstage_release_read(s->stage, read));
}

void expect_floats(const scene* s, ovx_token_t attribute, ovstage_ordinal_t end, float a, float b, float c,
                   const char* function, int line) {
  float values[PRIMS] = {a, b, c};
  expect(s, attribute, end, type_of(kDLFloat, 32, 1), values, function, line);
}
