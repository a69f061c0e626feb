/*
 * levels.c - interface levels: how a stage gets one, and the layouts of reads, maps and exports at each.
 *
 * The other groups run at the level of the process; these make stages of both.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "scene.h"

static const ovstage_go_interface_t LEVELS[2] = {OVSTAGE_GO_INTERFACE_0_2, OVSTAGE_GO_INTERFACE_0_3};

static ovstage_go_stage_options_t options_of(ovstage_go_interface_t interface_level) {
  ovstage_go_stage_options_t options;
  memset(&options, 0, sizeof options);
  options.struct_size = sizeof options;
  options.interface_level = interface_level;
  return options;
}

static bool open_at(scene* s, ovstage_go_interface_t at) {
  if (!open_scene(s, "levels")) return false;
  ovstage_go_stage_options_t options = options_of(at);
  return CHECK(s->go->set_stage_options(s->stage, &options) == OVSTAGE_OK) &&
         CHECK(s->go->stage_interface(s->stage) == at);
}

static void check_names(void) {
  CHECK(ovstage_go_interface_named(NULL) == OVSTAGE_GO_INTERFACE_0_2);
  CHECK(ovstage_go_interface_named("") == OVSTAGE_GO_INTERFACE_0_2);
  CHECK(ovstage_go_interface_named("0.2") == OVSTAGE_GO_INTERFACE_0_2);
  CHECK(ovstage_go_interface_named("0.3") == OVSTAGE_GO_INTERFACE_0_3);
  const char* const unknown[] = {"0", "0.", "0.4", "0.22", "0.3 ", " 0.3", "1.2", "03", "latest", "0,3"};
  for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
    CHECK(ovstage_go_interface_named(unknown[i]) == OVSTAGE_GO_INTERFACE_DEFAULT);
}

static void check_options(void) {
  scene s;
  if (!open_scene(&s, "options")) return;
  CHECK(s.go->stage_interface(s.stage) == level()); /* of the process */
  CHECK(s.go->stage_interface(NULL) == OVSTAGE_GO_INTERFACE_DEFAULT);
  ovstage_go_stage_options_t options = options_of(OVSTAGE_GO_INTERFACE_DEFAULT);
  CHECK(s.go->set_stage_options(s.stage, &options) == OVSTAGE_OK); /* leaves it */
  CHECK(s.go->stage_interface(s.stage) == level());

  CHECK_FAILS(s.go->set_stage_options(s.stage, NULL), OVSTAGE_ERROR_INVALID_ARGUMENT, "options must not be NULL");
  options.struct_size = 4;
  CHECK_FAILS(s.go->set_stage_options(s.stage, &options), OVSTAGE_ERROR_INVALID_ARGUMENT,
              "options.struct_size is 4, expected at least 8");
  options = options_of((ovstage_go_interface_t)4);
  CHECK_FAILS(s.go->set_stage_options(s.stage, &options), OVSTAGE_ERROR_INVALID_ARGUMENT,
              "options.interface_level is 4, expected OVSTAGE_GO_INTERFACE_0_2 (2) or OVSTAGE_GO_INTERFACE_0_3 (3)");
  CHECK(s.go->stage_interface(s.stage) == level());

  for (int i = 0; i < 4; i++) { /* back and forth, while nobody has used the stage */
    options = options_of(LEVELS[i % 2]);
    CHECK(s.go->set_stage_options(s.stage, &options) == OVSTAGE_OK);
  }
  DONE(&s, seal(&s, 1));
  CHECK(s.go->set_stage_options(s.stage, &options) == OVSTAGE_OK); /* what it is already */
  options = options_of(OVSTAGE_GO_INTERFACE_0_2);
  CHECK_FAILS(s.go->set_stage_options(s.stage, &options), OVSTAGE_ERROR_INVALID_ARGUMENT,
              "options.interface_level is 0.2, but the stage speaks 0.3 since its first operation: set it right after "
              "the stage is created");
  CHECK(s.go->stage_interface(s.stage) == OVSTAGE_GO_INTERFACE_0_3);
  uint32_t major, minor, patch; /* header and structures are those of 0.2 at both */
  ovstage_get_version(s.stage, &major, &minor, &patch);
  CHECK(major == OVSTAGE_VERSION_MAJOR && minor == OVSTAGE_VERSION_MINOR && patch == OVSTAGE_VERSION_PATCH);
  close_scene(&s);
}

/* ---- Layouts ----------------------------------------------------------------------------------------------------- */

typedef struct {
  uint16_t lanes;
  ovstage_attribute_semantic_t semantic;
} kind;

static const kind KINDS[] = {
    {1, OVSTAGE_SEMANTIC_NONE},       {2, OVSTAGE_SEMANTIC_NONE},   {3, OVSTAGE_SEMANTIC_POINT},
    {4, OVSTAGE_SEMANTIC_QUATERNION}, {4, OVSTAGE_SEMANTIC_MATRIX}, {9, OVSTAGE_SEMANTIC_MATRIX},
    {16, OVSTAGE_SEMANTIC_MATRIX},    {16, OVSTAGE_SEMANTIC_NONE},  {255, OVSTAGE_SEMANTIC_NONE},
};

enum { MOST = PRIMS * 255 };

static void check_read(const scene* s, ovx_token_t value, ovstage_ordinal_t end, kind k, const double* bytes,
                       ovstage_go_interface_t at) {
  DLDataType type = type_of(kDLFloat, 64, k.lanes);
  ovstage_read_handle_t read;
  ovstage_read_group_t group;
  if (!read_first(s, s->query, value, end, &read, &group)) return;
  const DLTensor* tensor = group.data.tensors;
  CHECK(group.semantic == k.semantic && shows(tensor, PRIMS, type, k.semantic, at));
  CHECK(memcmp(tensor->data, bytes, (size_t)PRIMS * k.lanes * sizeof *bytes) == 0);

  DLManagedTensor* exported = s->go->export_legacy(s->stage, s->go->tensors_block(tensor), tensor);
  if (CHECK(exported != NULL)) { /* the axes of the tensor, or lanes as one */
    const DLTensor* out = &exported->dl_tensor;
    bool lanes = tensor->dtype.lanes > 1;
    CHECK(out->data == tensor->data && out->ndim == tensor->ndim + lanes && out->dtype.lanes == 1);
    CHECK(memcmp(out->shape, tensor->shape, (size_t)tensor->ndim * sizeof *out->shape) == 0);
    int64_t step = 1;
    for (int32_t axis = out->ndim - 1; axis >= 0; axis--) {
      CHECK(out->strides[axis] == step);
      step *= out->shape[axis];
    }
    CHECK(step == (int64_t)PRIMS * k.lanes);
    exported->deleter(exported);
  }
  CHECK(ovstage_release_group(s->stage, &group) == OVSTAGE_OK);
  CHECK(ovstage_fetch_read_next(s->stage, read, 0, &group) == OVSTAGE_ERROR_END_OF_ITERATION);
  DONE(s, ovstage_release_read(s->stage, read));
}

static void check_fixed_layout(void) {
  static double values[MOST];
  for (int i = 0; i < MOST; i++) values[i] = i;
  for (int l = 0; l < 2; l++) {
    scene s;
    if (!open_at(&s, LEVELS[l])) return;
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++) {
      kind k = KINDS[i];
      char name[] = "valueX";
      name[5] = (char)('a' + i);
      ovx_token_t value = token_of(&s, name);
      ovstage_ordinal_t n = 2 * i + 1;
      int64_t rows[1] = {PRIMS};
      DLTensor tensor = tensor_of(values, type_of(kDLFloat, 64, k.lanes), 1, rows);
      DONE(&s, write_tensor(&s, value, n, &tensor, k.semantic));
      DONE(&s, seal(&s, n));
      check_read(&s, value, n, k, values, LEVELS[l]);

      ovstage_map_desc_t desc = map_of(value, tensor.dtype); /* with full lanes at both levels */
      desc.semantic = k.semantic;
      ovstage_map_handle_t map = OVSTAGE_INVALID_MAP_HANDLE;
      ovstage_map_group_t group;
      DONE(&s, ovstage_map_attribute(s.stage, s.query, &desc, n + 1, NULL, 0, &map));
      if (CHECK(ovstage_fetch_map_next(s.stage, map, OVSTAGE_TIMEOUT_INFINITE, &group) == OVSTAGE_OK)) {
        CHECK(shows(group.data.tensors, PRIMS, tensor.dtype, k.semantic, LEVELS[l]));
        double* mapped = (double*)group.data.tensors->data;
        CHECK(memcmp(mapped, values, (size_t)PRIMS * k.lanes * sizeof *values) == 0);
        mapped[0] = values[0] = -1.0 - (double)i;
      }
      DONE(&s, ovstage_unmap_attribute(s.stage, map, NO_SYNC));
      DONE(&s, seal(&s, n + 1));
      check_read(&s, value, n + 1, k, values, LEVELS[l]);
    }
    close_scene(&s);
  }
}

static void check_array_layout(void) {
  static double values[MOST];
  for (int l = 0; l < 2; l++) {
    scene s;
    if (!open_at(&s, LEVELS[l])) return;
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++) {
      kind k = KINDS[i];
      char name[] = "valueX";
      name[5] = (char)('a' + i);
      ovx_token_t value = token_of(&s, name);
      int64_t lengths[PRIMS] = {2, 0, 1};
      DLTensor tensors[PRIMS];
      for (int p = 0; p < PRIMS; p++) tensors[p] = tensor_of(values, type_of(kDLFloat, 64, k.lanes), 1, &lengths[p]);
      ovstage_write_data_t data = payload_of(tensors, PRIMS);
      data.is_array = true;
      data.semantic = k.semantic;
      DONE(&s, ovstage_write_attribute(s.stage, s.query, by_token(value), i + 1, data, OVSTAGE_PRIM_MODE_UPSERT));
      DONE(&s, seal(&s, i + 1));
      ovstage_read_handle_t read;
      ovstage_read_group_t group;
      if (!read_first(&s, s.query, value, i + 1, &read, &group)) continue;
      for (int p = 0; p < PRIMS; p++)
        CHECK(shows(&group.data.tensors[p], lengths[p], tensors[p].dtype, k.semantic, LEVELS[l]));
      CHECK(ovstage_release_group(s.stage, &group) == OVSTAGE_OK);
      DONE(&s, ovstage_release_read(s.stage, read));
    }
    close_scene(&s);
  }
}

/* ---- Both at once ------------------------------------------------------------------------------------------------ */

enum { ROUNDS = 200 };

/* A thread's part: one stage, which it writes, seals and reads. It answers with how much was not as it must be. */
typedef struct {
  scene s;
  ovstage_go_interface_t at;
  ovx_token_t value;
  intptr_t faults;
} worker;

static void* work(void* argument) {
  worker* w = (worker*)argument;
  double values[PRIMS * 16];
  int64_t rows[1] = {PRIMS};
  DLTensor tensor = tensor_of(values, type_of(kDLFloat, 64, 16), 1, rows);
  for (ovstage_ordinal_t n = 1; n <= ROUNDS; n++) {
    for (int i = 0; i < PRIMS * 16; i++) values[i] = (double)n + i;
    ovstage_enqueue_result_t ops[3];
    ovstage_read_handle_t read = OVSTAGE_INVALID_READ_HANDLE;
    ovstage_read_group_t group;
    memset(&group, 0, sizeof group);
    ops[0] = write_tensor(&w->s, w->value, n, &tensor, OVSTAGE_SEMANTIC_MATRIX);
    ops[1] = seal(&w->s, n);
    ops[2] = ovstage_read_attributes(w->s.stage, w->s.query, &w->value, 1, latest(n), &read);
    for (int i = 0; i < 3; i++) {
      w->faults += ops[i].status != OVSTAGE_OK;
      ovstage_wait_op(w->s.stage, ops[i].op_index, OVSTAGE_TIMEOUT_INFINITE, NULL);
      ovstage_release_op(w->s.stage, ops[i].op_index);
    }
    if (ovstage_fetch_read_next(w->s.stage, read, OVSTAGE_TIMEOUT_INFINITE, &group) != OVSTAGE_OK) {
      w->faults++;
      continue;
    }
    w->faults += !shows(group.data.tensors, PRIMS, tensor.dtype, OVSTAGE_SEMANTIC_MATRIX, w->at) ||
                 memcmp(group.data.tensors->data, values, sizeof values) != 0;
    w->faults += ovstage_release_group(w->s.stage, &group) != OVSTAGE_OK;
    ovstage_enqueue_result_t ended = ovstage_release_read(w->s.stage, read);
    ovstage_wait_op(w->s.stage, ended.op_index, OVSTAGE_TIMEOUT_INFINITE, NULL);
    ovstage_release_op(w->s.stage, ended.op_index);
  }
  return NULL;
}

static void check_side_by_side(void) {
  worker workers[2];
  pthread_t threads[2];
  memset(workers, 0, sizeof workers);
  for (int i = 0; i < 2; i++) {
    workers[i].at = LEVELS[i];
    if (!open_at(&workers[i].s, LEVELS[i])) return;
    workers[i].value = token_of(&workers[i].s, "value");
  }
  for (int i = 0; i < 2; i++) CHECK(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
  for (int i = 0; i < 2; i++) {
    CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(workers[i].faults == 0);
    close_scene(&workers[i].s);
  }
}

const check_group level_groups[] = {
    {"levels: names", check_names},
    {"levels: options", check_options},
    {"levels: values", check_fixed_layout},
    {"levels: arrays", check_array_layout},
    {"levels: both at once", check_side_by_side},
};
const size_t level_group_count = sizeof level_groups / sizeof level_groups[0];
