/*
 * map.c - buffers that are lent to be written to: what they start with, their commits, their ends.
 */
#include <pthread.h>
#include <string.h>

#include "scene.h"

/* The example that documents mapping: one prim, a new 16-lane column at ordinal 2, committed by unmap_attribute. */
static void check_map_example(void) {
  scene s;
  if (!open_scene(&s, "map example")) return;
  const char* path = "/World/Plane";
  ovstage_query_handle_t query = query_of(&s, &path, 1);
  ovx_token_t attribute = token_of(&s, "omni:xform");
  ovstage_map_desc_t desc = map_of(attribute, type_of(kDLFloat, 64, 16));
  desc.semantic = OVSTAGE_SEMANTIC_MATRIX;
  desc.prim_mode = OVSTAGE_PRIM_MODE_UPSERT;
  ovstage_map_handle_t map = OVSTAGE_INVALID_MAP_HANDLE;
  DONE(&s, ovstage_map_attribute(s.stage, query, &desc, 2, NULL, 0, &map));
  ovstage_map_group_t group;
  if (CHECK(ovstage_fetch_map_next(s.stage, map, OVSTAGE_TIMEOUT_INFINITE, &group) == OVSTAGE_OK)) {
    double* matrix = (double*)group.data.tensors[0].data;
    for (int i = 0; i < 16; i++) CHECK(matrix[i] == 0.0); /* a new value starts from zeros */
    matrix[0] = matrix[5] = matrix[10] = matrix[15] = 1.0;
    matrix[12] = 15.0;
  }
  DONE(&s, ovstage_unmap_attribute(s.stage, map, NO_SYNC));
  DONE(&s, seal(&s, 2));

  ovstage_read_handle_t read = OVSTAGE_INVALID_READ_HANDLE;
  DONE(&s, ovstage_read_attributes(s.stage, query, &attribute, 1, latest(2), &read));
  ovstage_read_group_t values;
  if (CHECK(ovstage_fetch_read_next(s.stage, read, OVSTAGE_TIMEOUT_INFINITE, &values) == OVSTAGE_OK)) {
    const double expected[16] = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 15, 0, 0, 1};
    CHECK(values.semantic == OVSTAGE_SEMANTIC_MATRIX && values.ordinal == 2);
    CHECK(shows(values.data.tensors, 1, type_of(kDLFloat, 64, 16), OVSTAGE_SEMANTIC_MATRIX, level()));
    CHECK(memcmp(values.data.tensors->data, expected, sizeof expected) == 0);
    CHECK(((uintptr_t)values.data.tensors->data & 255) == 0); /* columns are aligned for every consumer */
    CHECK(ovstage_release_group(s.stage, &values) == OVSTAGE_OK);
  }
  DONE(&s, ovstage_release_read(s.stage, read));
  DONE(&s, ovstage_release_query(s.stage, query));
  close_scene(&s);
}

static void check_map_existing_and_fresh(void) {
  scene s;
  if (!open_scene(&s, "map")) return;
  ovx_token_t old = token_of(&s, "existing"), fresh = token_of(&s, "fresh");
  DONE(&s, write_floats(&s, old, 1, 1, 2, 3));
  DONE(&s, seal(&s, 1));

  ovstage_map_desc_t desc = map_of(old, EXISTING);
  ovstage_map_handle_t map;
  ovstage_map_group_t group;
  if (map_all(&s, &desc, 2, &map, &group)) {
    float* values = (float*)group.data.tensors->data;
    CHECK(values[0] == 1 && values[1] == 2 && values[2] == 3); /* the current values, ready to be changed in place */
    values[0] = 10;
    values[2] = 30;
    EXPECT_FLOATS(&s, old, 2, 1, 2, 3); /* nothing is seen before the commit */
    DONE(&s, ovstage_unmap_group(s.stage, map, &group, NO_SYNC));
    CHECK(ovstage_fetch_map_next(s.stage, map, 0, &group) == OVSTAGE_ERROR_END_OF_ITERATION);
    DONE(&s, ovstage_unmap_attribute(s.stage, map, NO_SYNC));
  }
  DONE(&s, seal(&s, 2));
  EXPECT_FLOATS(&s, old, 2, 10, 2, 30);

  desc = map_of(fresh, EXISTING);
  CHECK_REFUSED(ovstage_map_attribute(s.stage, s.query, &desc, 3, NULL, 0, &map), OVSTAGE_ERROR_INVALID_ARGUMENT,
                "fresh");
  CHECK(map == OVSTAGE_INVALID_MAP_HANDLE);
  desc = map_of(fresh, type_of(kDLFloat, 32, 3));
  float points[PRIMS * 3] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  if (map_all(&s, &desc, 3, &map, &group)) {
    memcpy(group.data.tensors->data, points, sizeof points);
    DONE(&s, ovstage_unmap_attribute(s.stage, map, NO_SYNC));
  }
  DONE(&s, seal(&s, 3));
  EXPECT(&s, fresh, 3, type_of(kDLFloat, 32, 3), points);
  EXPECT_FLOATS(&s, old, 3, 10, 2, 30);
  desc = map_of(fresh, type_of(kDLFloat, 64, 3));
  CHECK_REFUSED(ovstage_map_attribute(s.stage, s.query, &desc, 4, NULL, 0, &map), OVSTAGE_ERROR_INVALID_ARGUMENT,
                "fresh");
  close_scene(&s);
}

/* Two sessions at one ordinal take effect in the order in which they end, not in which they began. */
static void check_map_order(void) {
  scene s;
  if (!open_scene(&s, "map order")) return;
  ovx_token_t value = token_of(&s, "value");
  DONE(&s, write_floats(&s, value, 1, 1, 2, 3));
  DONE(&s, seal(&s, 1));
  ovstage_map_desc_t desc = map_of(value, EXISTING);
  ovstage_map_handle_t first, second, third;
  ovstage_map_group_t a, b, c;
  if (map_all(&s, &desc, 2, &first, &a) && map_all(&s, &desc, 2, &second, &b) && map_all(&s, &desc, 3, &third, &c)) {
    for (int i = 0; i < PRIMS; i++) {
      ((float*)a.data.tensors->data)[i] = 100;
      ((float*)b.data.tensors->data)[i] = 200;
      ((float*)c.data.tensors->data)[i] = 300;
    }
    DONE(&s, write_floats(&s, value, 2, 7, 7, 7)); /* nobody stands in the way of a writer */
    DONE(&s, ovstage_unmap_attribute(s.stage, third, NO_SYNC));
    DONE(&s, ovstage_unmap_attribute(s.stage, second, NO_SYNC));
    DONE(&s, ovstage_unmap_attribute(s.stage, first, NO_SYNC));
  }
  DONE(&s, seal(&s, 2));
  EXPECT_FLOATS(&s, value, 2, 100, 100, 100);
  DONE(&s, seal(&s, 3));
  EXPECT_FLOATS(&s, value, 3, 300, 300, 300);
  close_scene(&s);
}

static void check_map_abort(void) {
  scene s;
  if (!open_scene(&s, "abort")) return;
  ovx_token_t value = token_of(&s, "value"), never = token_of(&s, "never");
  DONE(&s, write_floats(&s, value, 1, 1, 2, 3));
  ovstage_map_handle_t map;
  ovstage_map_group_t group;
  ovstage_map_desc_t desc = map_of(value, EXISTING);
  if (map_all(&s, &desc, 2, &map, &group)) {
    ((float*)group.data.tensors->data)[0] = 99;
    CHECK(s.go->abort_map(s.stage, map) == OVSTAGE_OK);
    CHECK(s.go->abort_map(s.stage, map) == OVSTAGE_OK); /* once more does nothing */
    CHECK_REFUSED(ovstage_unmap_group(s.stage, map, &group, NO_SYNC), OVSTAGE_ERROR_INVALID_HANDLE, "map");
    CHECK_REFUSED(ovstage_unmap_attribute(s.stage, map, NO_SYNC), OVSTAGE_ERROR_INVALID_HANDLE, "map");
  }
  desc = map_of(never, type_of(kDLInt, 32, 1));
  if (map_all(&s, &desc, 2, &map, &group)) CHECK(s.go->abort_map(s.stage, map) == OVSTAGE_OK);
  DONE(&s, seal(&s, 2));
  EXPECT_FLOATS(&s, value, 2, 1, 2, 3);
  ovstage_query_result_t found;
  CHECK(ovstage_fetch_query_result(s.stage, s.query, 0, &found) == OVSTAGE_OK);
  CHECK(found.attribute_count == 1); /* the aborted session made no column */
  CHECK(ovstage_release_query_result(s.stage, &found) == OVSTAGE_OK);
  close_scene(&s);
}

static void check_map_options(void) {
  scene s;
  if (!open_scene(&s, "map options")) return;
  ovx_token_t value = token_of(&s, "value");
  DONE(&s, write_floats(&s, value, 1, 1, 2, 3));
  ovstage_map_desc_t desc = map_of(value, EXISTING);
  ovstage_map_handle_t map = OVSTAGE_INVALID_MAP_HANDLE;
  ovstage_map_group_t group;

  ovstage_go_map_options_t options;
  options.struct_size = offsetof(ovstage_go_map_options_t, group_rows); /* of a client that knows no more */
  options.initial = OVSTAGE_GO_INITIAL_ZERO;
  options.group_rows = 1;
  DONE(&s, s.go->map_attribute(s.stage, s.query, &desc, 2, NULL, 0, &options, &map));
  if (CHECK(ovstage_fetch_map_next(s.stage, map, 0, &group) == OVSTAGE_OK)) {
    float* values = (float*)group.data.tensors->data;
    CHECK(values[0] == 0 && values[1] == 0 && values[2] == 0);
    values[1] = 5;
    DONE(&s, s.go->unmap_group(s.stage, map, &group, NO_SYNC, OVSTAGE_GO_COMMIT_ADOPT));
  }
  DONE(&s, s.go->unmap_attribute(s.stage, map, NO_SYNC, OVSTAGE_GO_COMMIT_ADOPT));
  DONE(&s, seal(&s, 2));
  EXPECT_FLOATS(&s, value, 2, 0, 5, 0);

  options.initial = OVSTAGE_GO_INITIAL_DISCARD; /* never fetched: commits nothing */
  DONE(&s, s.go->map_attribute(s.stage, s.query, &desc, 3, NULL, 0, &options, &map));
  DONE(&s, ovstage_unmap_attribute(s.stage, map, NO_SYNC));
  DONE(&s, seal(&s, 3));
  EXPECT_FLOATS(&s, value, 3, 0, 5, 0);

  DONE(&s, s.go->map_attribute(s.stage, s.query, &desc, 4, NULL, 0, &options, &map));
  if (CHECK(ovstage_fetch_map_next(s.stage, map, 0, &group) == OVSTAGE_OK)) {
    float* values = (float*)group.data.tensors->data;
    for (int i = 0; i < PRIMS; i++) values[i] = (float)(i + 1);
  }
  DONE(&s, s.go->unmap_attribute(s.stage, map, NO_SYNC, OVSTAGE_GO_COMMIT_AUTO));
  DONE(&s, seal(&s, 4));
  EXPECT_FLOATS(&s, value, 4, 1, 2, 3);
  options.initial = (ovstage_go_initial_t)77;
  CHECK_REFUSED(s.go->map_attribute(s.stage, s.query, &desc, 5, NULL, 0, &options, &map),
                OVSTAGE_ERROR_INVALID_ARGUMENT, "initial");
  options.struct_size = 4;
  CHECK_REFUSED(s.go->map_attribute(s.stage, s.query, &desc, 5, NULL, 0, &options, &map),
                OVSTAGE_ERROR_INVALID_ARGUMENT, "struct_size");
  close_scene(&s);
}

/* Groups of two prims, the second committed first; then the prims that exist among others, in a third order. */
static void check_map_groups(void) {
  scene s;
  if (!open_scene(&s, "map groups")) return;
  ovx_token_t value = token_of(&s, "value");
  DONE(&s, write_floats(&s, value, 1, 1, 2, 3));
  ovstage_map_desc_t desc = map_of(value, EXISTING);
  ovstage_map_handle_t map = OVSTAGE_INVALID_MAP_HANDLE;
  ovstage_map_group_t groups[2], none;
  ovstage_go_map_options_t options = {sizeof options, OVSTAGE_GO_INITIAL_CURRENT, 2};
  DONE(&s, s.go->map_attribute(s.stage, s.query, &desc, 2, NULL, 0, &options, &map));
  if (CHECK(ovstage_fetch_map_next(s.stage, map, 0, &groups[0]) == OVSTAGE_OK) &&
      CHECK(ovstage_fetch_map_next(s.stage, map, 0, &groups[1]) == OVSTAGE_OK)) {
    CHECK(ovstage_fetch_map_next(s.stage, map, 0, &none) == OVSTAGE_ERROR_END_OF_ITERATION);
    CHECK(groups[0].prims.offset == 0 && groups[0].prims.count == 2 && groups[0].data.count == 2);
    CHECK(groups[1].prims.offset == 2 && groups[1].prims.count == 1 && groups[1].data.tensors->shape[0] == 1);
    ((float*)groups[1].data.tensors->data)[0] = 30;
    DONE(&s, ovstage_unmap_group(s.stage, map, &groups[1], NO_SYNC));
    CHECK_REFUSED(ovstage_unmap_group(s.stage, map, &groups[1], NO_SYNC), OVSTAGE_ERROR_INVALID_HANDLE, "map");
    ((float*)groups[0].data.tensors->data)[1] = 20;
    DONE(&s, ovstage_unmap_group(s.stage, map, &groups[0], NO_SYNC));
  }
  DONE(&s, ovstage_unmap_attribute(s.stage, map, NO_SYNC));
  DONE(&s, seal(&s, 2));
  EXPECT_FLOATS(&s, value, 2, 1, 20, 30);

  const char* paths[] = {"/World/Nobody", "/World/C", "/World/NoOne", "/World/A"};
  desc.prim_mode = OVSTAGE_GO_PRIM_MODE_UPDATE;
  ovstage_query_handle_t mixed = query_of(&s, paths, 4);
  DONE(&s, ovstage_map_attribute(s.stage, mixed, &desc, 3, NULL, 0, &map));
  if (CHECK(ovstage_fetch_map_next(s.stage, map, 0, &groups[0]) == OVSTAGE_OK)) {
    const uint32_t* at = groups[0].prims.index_map;
    CHECK(groups[0].prims.count == 2 && at != NULL && at[0] == 1 && at[1] == 3);
    float* values = (float*)groups[0].data.tensors->data;
    CHECK(groups[0].data.index_map == NULL && values[0] == 30 && values[1] == 1);
    values[0] = 31, values[1] = 11;
  }
  DONE(&s, ovstage_unmap_attribute(s.stage, map, NO_SYNC));
  DONE(&s, ovstage_release_query(s.stage, mixed));
  DONE(&s, seal(&s, 3));
  EXPECT_FLOATS(&s, value, 3, 11, 20, 31);
  close_scene(&s);
}

/* A view that is still held at the commit neither changes what was committed nor dangles. */
static void check_map_live_view(void) {
  scene s;
  if (!open_scene(&s, "live view")) return;
  ovx_token_t value = token_of(&s, "value");
  ovstage_map_desc_t desc = map_of(value, type_of(kDLFloat, 32, 1));
  ovstage_map_handle_t map;
  ovstage_map_group_t group;
  if (map_all(&s, &desc, 1, &map, &group)) {
    float* values = (float*)group.data.tensors->data;
    ovstage_go_block_t* block = s.go->tensors_block(group.data.tensors);
    CHECK(block != NULL);
    s.go->block_retain(block);
    values[0] = 1, values[1] = 2, values[2] = 3;
    DONE(&s, s.go->unmap_attribute(s.stage, map, NO_SYNC, OVSTAGE_GO_COMMIT_AUTO));
    values[0] = values[1] = values[2] = -1; /* too late, and harmless */
    DONE(&s, seal(&s, 1));
    EXPECT_FLOATS(&s, value, 1, 1, 2, 3);
    CHECK(s.go->block_refs(block) == 1);
    s.go->block_release(block);
  }
  close_scene(&s);
}

/* A map whose ordinal is sealed before it ends commits nothing, and its operation says so. */
static void check_map_after_seal(void) {
  scene s;
  if (!open_scene(&s, "map after seal")) return;
  ovx_token_t value = token_of(&s, "value");
  DONE(&s, write_floats(&s, value, 1, 1, 2, 3));
  ovstage_map_desc_t desc = map_of(value, EXISTING);
  ovstage_map_handle_t map;
  ovstage_map_group_t group;
  if (map_all(&s, &desc, 2, &map, &group)) {
    ((float*)group.data.tensors->data)[0] = 99;
    DONE(&s, seal(&s, 2));
    ovstage_enqueue_result_t commit = ovstage_unmap_attribute(s.stage, map, NO_SYNC);
    ovstage_op_wait_result_t result;
    if (commit.status == OVSTAGE_OK) {
      for (int i = 0; i < 2; i++) { /* it failed however often one asks */
        CHECK(ovstage_wait_op(s.stage, commit.op_index, OVSTAGE_TIMEOUT_INFINITE, &result) == OVSTAGE_OK);
        CHECK(result.error_op_id_count == 1 && result.error_op_ids[0] == commit.op_index);
      }
      ovx_string_t text = ovstage_get_last_op_error(s.stage, commit.op_index);
      CHECK(contains(text, "value") && contains(text, "2"));
      CHECK(s.go->op_status(s.stage, commit.op_index) == OVSTAGE_ERROR_WRITE_FLOOR_VIOLATION);
      CHECK(ovstage_get_last_op_error(s.stage, commit.op_index + 1).length == 0);
      CHECK(ovstage_release_op(s.stage, commit.op_index) == OVSTAGE_OK);
    } else {
      CHECK(commit.status == OVSTAGE_ERROR_WRITE_FLOOR_VIOLATION);
    }
    CHECK_REFUSED(ovstage_unmap_attribute(s.stage, map, NO_SYNC), OVSTAGE_ERROR_INVALID_HANDLE, "map"); /* ended */
  }
  EXPECT_FLOATS(&s, value, 2, 1, 2, 3);
  desc.prim_mode = OVSTAGE_PRIM_MODE_INSERT;
  CHECK_REFUSED(ovstage_map_attribute(s.stage, s.query, &desc, 3, NULL, 0, &map), OVSTAGE_ERROR_PRIM_NOT_FOUND,
                "/World/A");
  desc.prim_mode = OVSTAGE_PRIM_MODE_UPSERT;
  CHECK_REFUSED(ovstage_map_attribute(s.stage, s.query, &desc, 2, NULL, 0, &map), OVSTAGE_ERROR_WRITE_FLOOR_VIOLATION,
                "value");
  close_scene(&s);
}

/* ---- Groups that threads fill ------------------------------------------------------------------------------------ */

typedef struct {
  const scene* s;
  ovstage_map_handle_t map;
  ovstage_map_group_t group;
  float value;
  int wrong;
} filler;

/* Writes through the pointer that was lent, and commits its group. */
static void* fill_group(void* argument) {
  filler* f = (filler*)argument;
  float* values = (float*)f->group.data.tensors->data;
  for (uint32_t i = 0; i < f->group.data.count; i++) values[i] = f->value;
  ovstage_op_wait_result_t result;
  ovstage_enqueue_result_t commit = ovstage_unmap_group(f->s->stage, f->map, &f->group, NO_SYNC);
  f->wrong += commit.status != OVSTAGE_OK ||
              ovstage_wait_op(f->s->stage, commit.op_index, OVSTAGE_TIMEOUT_INFINITE, &result) != OVSTAGE_OK ||
              result.error_op_id_count != 0 || ovstage_release_op(f->s->stage, commit.op_index) != OVSTAGE_OK;
  return NULL;
}

static void check_map_threads(void) {
  scene s;
  if (!open_scene(&s, "map threads")) return;
  ovx_token_t value = token_of(&s, "value");
  DONE(&s, write_floats(&s, value, 1, 0, 0, 0)); /* the rows lie in the order of the query, whoever commits first */
  ovstage_map_desc_t desc = map_of(value, EXISTING);
  ovstage_go_map_options_t options = {sizeof options, OVSTAGE_GO_INITIAL_DISCARD, 1};
  ovstage_map_handle_t map = OVSTAGE_INVALID_MAP_HANDLE;
  DONE(&s, s.go->map_attribute(s.stage, s.query, &desc, 2, NULL, 0, &options, &map));
  filler fillers[PRIMS];
  pthread_t threads[PRIMS];
  for (int i = 0; i < PRIMS; i++) {
    fillers[i].s = &s, fillers[i].map = map, fillers[i].value = (float)(i + 1), fillers[i].wrong = 0;
    CHECK(ovstage_fetch_map_next(s.stage, map, 0, &fillers[i].group) == OVSTAGE_OK);
    CHECK(pthread_create(&threads[i], NULL, fill_group, &fillers[i]) == 0);
  }
  for (int i = 0; i < PRIMS; i++) {
    CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(fillers[i].wrong == 0);
  }
  DONE(&s, ovstage_unmap_attribute(s.stage, map, NO_SYNC));
  DONE(&s, seal(&s, 2));
  EXPECT_FLOATS(&s, value, 2, 1, 2, 3);
  close_scene(&s);
}

const check_group map_groups[] = {
    {"map: the documented example", check_map_example},
    {"map: existing and fresh columns", check_map_existing_and_fresh},
    {"map: order of commits", check_map_order},
    {"map: abort", check_map_abort},
    {"map: options", check_map_options},
    {"map: groups", check_map_groups},
    {"map: groups that threads fill", check_map_threads},
    {"map: live views", check_map_live_view},
    {"map: sealed too early", check_map_after_seal},
};
const size_t map_group_count = sizeof map_groups / sizeof map_groups[0];
