/*
 * hierarchy.c - what prims are to each other: where they are in the world.
 */
#include "scene.h"

#include <string.h>

enum { LANES = 16 };

static DLDataType matrix_type(void) { return type_of(kDLFloat, 64, LANES); }

/* Three transforms that move along x. */
static void along_x(double* matrices, double a, double b, double c) {
  double by[PRIMS] = {a, b, c};
  memset(matrices, 0, sizeof(double) * PRIMS * LANES);
  for (int prim = 0; prim < PRIMS; prim++) {
    double* matrix = matrices + prim * LANES;
    matrix[0] = matrix[5] = matrix[10] = matrix[15] = 1;
    matrix[12] = by[prim];
  }
}

static ovstage_enqueue_result_t compute(const scene* s, int model, ovstage_ordinal_t from, ovstage_ordinal_t to) {
  return ovstage_compute_hierarchy(s->stage, (ovstage_hierarchy_computation_model_id_t)model, from, to);
}

/* Waits for an operation that was accepted, and wants it to have failed with a text about this. */
#define FAILED(scene, call, part) failed_op((scene), (call), (part), #call, __func__, __LINE__)

static void failed_op(const scene* s, ovstage_enqueue_result_t enqueued, const char* part, const char* call,
                      const char* function, int line) {
  check(enqueued.status == OVSTAGE_OK && enqueued.op_index != 0, call, function, line);
  ovstage_op_wait_result_t result;
  ovstage_api_status_t status =
      ovstage_wait_op(s->stage, enqueued.op_index, OVSTAGE_TIMEOUT_INFINITE, &result);
  check(status != OVSTAGE_OK || result.error_op_id_count > 0, "the operation failed", function, line);
  check(contains(ovstage_get_last_op_error(s->stage, enqueued.op_index), part), part, function, line);
  CHECK(ovstage_release_op(s->stage, enqueued.op_index) == OVSTAGE_OK);
}

/* /World/A, /World/A/B, /World/A/B/C. */
static bool open_chain(scene* s, const char* name) {
  if (!open_scene(s, name)) return false;
  const char* paths[PRIMS] = {"/World/A", "/World/A/B", "/World/A/B/C"};
  DONE(s, ovstage_release_query(s->stage, s->query));
  s->query = query_of(s, paths, PRIMS);
  return true;
}

static void check_world_transforms(void) {
  scene s;
  if (!open_chain(&s, "world transforms")) return;
  ovx_token_t local = token_of(&s, "omni:xform"), world = token_of(&s, "omni:fabric:worldMatrix");
  int64_t shape[1] = {PRIMS};
  double matrices[PRIMS * LANES], expected[PRIMS * LANES];
  DLTensor tensor = tensor_of(matrices, matrix_type(), 1, shape);

  DONE(&s, compute(&s, OVSTAGE_HIERARCHY_COMPUTATION_MODEL_RUNTIME_DEFAULT, 1, 1)); /* nothing there: nothing to do */
  along_x(matrices, 1, 10, 100);
  DONE(&s, write_tensor(&s, local, 1, &tensor, OVSTAGE_SEMANTIC_MATRIX));
  DONE(&s, seal(&s, 1));
  DONE(&s, compute(&s, OVSTAGE_HIERARCHY_COMPUTATION_MODEL_DEFAULT_CPU, 1, 1)); /* at a sealed ordinal */
  along_x(expected, 1, 11, 111);
  EXPECT(&s, world, 1, matrix_type(), expected);

  along_x(matrices, 2, 10, 100);
  DONE(&s, write_tensor(&s, local, 2, &tensor, OVSTAGE_SEMANTIC_MATRIX));
  DONE(&s, compute(&s, OVSTAGE_HIERARCHY_COMPUTATION_MODEL_CPU_INCREMENTAL, 2, 2)); /* at an open one */
  EXPECT(&s, world, 2, matrix_type(), expected);
  DONE(&s, seal(&s, 2));
  along_x(expected, 2, 12, 112);
  EXPECT(&s, world, 2, matrix_type(), expected);
  close_scene(&s);
}

static void check_models(void) {
  scene s;
  if (!open_scene(&s, "models")) return;
  const ovstage_hierarchy_computation_model_desc_t* models = NULL;
  size_t count = 0;
  CHECK(ovstage_get_hierarchy_computation_models(s.stage, &models, &count) == OVSTAGE_OK);
  const char* names[4] = {"cpu-incremental", "gpu-incremental", "gpu-global", "runtime-default"};
  if (CHECK(count == 4)) {
    for (size_t i = 0; i < count; i++) {
      CHECK((size_t)models[i].model_id == i + 1 && equals(models[i].name, names[i]));
      CHECK(models[i].description.length > 0);
    }
  }
  CHECK_FAILS(ovstage_get_hierarchy_computation_models(s.stage, NULL, &count), OVSTAGE_ERROR_INVALID_ARGUMENT,
              "out_models");
  CHECK_FAILS(ovstage_get_hierarchy_computation_models(s.stage, &models, NULL), OVSTAGE_ERROR_INVALID_ARGUMENT,
              "out_model_count");
  CHECK_REFUSED(compute(&s, OVSTAGE_HIERARCHY_COMPUTATION_MODEL_INVALID, 1, 1), OVSTAGE_ERROR_INVALID_ARGUMENT,
                "model 0");
  CHECK_REFUSED(compute(&s, 5, 1, 1), OVSTAGE_ERROR_INVALID_ARGUMENT, "model 5");
  FAILED(&s, compute(&s, OVSTAGE_HIERARCHY_COMPUTATION_MODEL_GPU_INCREMENTAL, 1, 1), "needs CUDA");
  FAILED(&s, compute(&s, OVSTAGE_HIERARCHY_COMPUTATION_MODEL_DEFAULT_GPU, 1, 1), "needs CUDA");
  close_scene(&s);
}

const check_group hierarchy_groups[] = {
    {"world transforms", check_world_transforms},
    {"models of computation", check_models},
};
const size_t hierarchy_group_count = sizeof hierarchy_groups / sizeof hierarchy_groups[0];
