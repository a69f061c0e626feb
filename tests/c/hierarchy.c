/*
 * hierarchy.c - what prims are to each other: copies, relatives, instances, and where they are in the world.
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
  ovstage_api_status_t status = ovstage_wait_op(s->stage, enqueued.op_index, OVSTAGE_TIMEOUT_INFINITE, &result);
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

/* ---- Clones ------------------------------------------------------------------------------------------------------ */

static ovstage_enqueue_result_t clone_to(const scene* s, const char* source, const char* a, const char* b,
                                         ovstage_ordinal_t ordinal) {
  ovx_string_t targets[2] = {view(a), view(b != NULL ? b : "")};
  return ovstage_clone(s->stage, view(source), targets, b != NULL ? 2 : 1, ordinal);
}

static void check_clones(void) {
  scene s;
  if (!open_chain(&s, "clones")) return;
  ovx_token_t value = token_of(&s, "value");
  DONE(&s, write_floats(&s, value, 1, 1, 2, 3));
  DONE(&s, seal(&s, 1));
  DONE(&s, clone_to(&s, "/World/A", "/World/Env0/A", "/World/Env1/A", 2));
  FAILED(&s, clone_to(&s, "/World/A", "/Fresh", "/World/Env1/A", 3), "already exists"); /* not sealed, yet there */
  DONE(&s, seal(&s, 2));

  const char* targets[2][PRIMS] = {{"/World/Env0/A", "/World/Env0/A/B", "/World/Env0/A/B/C"},
                                   {"/World/Env1/A", "/World/Env1/A/B", "/World/Env1/A/B/C"}};
  for (int target = 0; target < 2; target++) {
    DONE(&s, ovstage_release_query(s.stage, s.query));
    s.query = query_of(&s, targets[target], PRIMS);
    EXPECT_FLOATS(&s, value, 2, 1, 2, 3);
  }

  FAILED(&s, clone_to(&s, "/Nobody", "/T", NULL, 3), "/Nobody");
  FAILED(&s, clone_to(&s, "/World/A", "/T", NULL, 2), "sealed");
  CHECK_REFUSED(clone_to(&s, "World/A", "/T", NULL, 3), OVSTAGE_ERROR_INVALID_ARGUMENT, "source_path");
  CHECK_REFUSED(clone_to(&s, "", "/T", NULL, 3), OVSTAGE_ERROR_INVALID_ARGUMENT, "source_path");
  CHECK_REFUSED(clone_to(&s, "/World/A", "/T/", NULL, 3), OVSTAGE_ERROR_INVALID_ARGUMENT, "target_paths");
  CHECK_REFUSED(clone_to(&s, "/World/A", "/T", "/T", 3), OVSTAGE_ERROR_INVALID_ARGUMENT, "target_paths[1]");
  CHECK_REFUSED(clone_to(&s, "/World/A", "/World/A/B/T", NULL, 3), OVSTAGE_ERROR_INVALID_ARGUMENT, "inside the source");
  CHECK_REFUSED(ovstage_clone(s.stage, view("/World/A"), NULL, 1, 3), OVSTAGE_ERROR_INVALID_ARGUMENT,
                "target_paths is NULL with num_target_paths 1");
  CHECK_REFUSED(ovstage_clone(s.stage, view("/World/A"), NULL, SIZE_MAX, 3), OVSTAGE_ERROR_INVALID_ARGUMENT,
                "num_target_paths");
  DONE(&s, ovstage_clone(s.stage, view("/World/A"), NULL, 0, 3));
  close_scene(&s);
}

/* ---- Relatives --------------------------------------------------------------------------------------------------- */

static void check_relatives(void) {
  scene s;
  if (!open_chain(&s, "relatives")) return;
  DONE(&s, write_floats(&s, token_of(&s, "value"), 1, 1, 2, 3));
  const char* asked[4] = {"/World/A/B", "/World/A/B/C", "/Nobody", "/World/A"};
  ovx_string_t texts[4];
  for (int i = 0; i < 4; i++) texts[i] = view(asked[i]);
  ovx_primpath_list_t list = 0;
  CHECK(path_dictionary_create_path_list_from_strings(s.dictionary, texts, 4, &list).status == OVX_API_SUCCESS);

  ovstage_hierarchy_handle_t question = 0;
  DONE(&s, ovstage_get_hierarchy(s.stage, list, 9, OVSTAGE_HIERARCHY_CHILDREN, &question));
  CHECK(path_dictionary_release_path_list_reference(s.dictionary, list).status == OVX_API_SUCCESS); /* copied */
  ovstage_hierarchy_result_t answer, again;
  if (CHECK(ovstage_fetch_hierarchy_result(s.stage, question, &answer) == OVSTAGE_OK)) {
    CHECK(answer.ordinal == 9 && answer.input_count == 4 && answer.path_count == 2);
    CHECK(answer.items[0].status == OVSTAGE_OK && answer.items[0].path_count == 1);
    CHECK(answer.items[1].status == OVSTAGE_OK && answer.items[1].path_count == 0);
    CHECK(answer.items[2].status == OVSTAGE_ERROR_NOT_FOUND && answer.items[2].path_count == 0);
    CHECK(answer.items[3].status == OVSTAGE_OK && answer.items[3].path_offset == 1);
    CHECK(answer.paths[0].token == 0 && equals(answer.paths[0].string, "/World/A/B/C"));
    CHECK(answer.paths[1].string.ptr[answer.paths[1].string.length] == 0 &&
          equals(answer.paths[1].string, "/World/A/B"));
    CHECK(ovstage_fetch_hierarchy_result(s.stage, question, &again) == OVSTAGE_OK);
    CHECK(again.hierarchy_result_id != answer.hierarchy_result_id);
    CHECK(ovstage_release_hierarchy_result(s.stage, &answer) == OVSTAGE_OK);
    CHECK_FAILS(ovstage_release_hierarchy_result(s.stage, &answer), OVSTAGE_ERROR_INVALID_HANDLE, "released");
  }
  DONE(&s, ovstage_release_hierarchy(s.stage, question));
  CHECK(again.path_count == 2 && equals(again.paths[0].string, "/World/A/B/C")); /* outlives the question */
  CHECK(ovstage_release_hierarchy_result(s.stage, &again) == OVSTAGE_OK);

  CHECK_FAILS(ovstage_fetch_hierarchy_result(s.stage, question, &answer), OVSTAGE_ERROR_INVALID_HANDLE, "released");
  CHECK_REFUSED(ovstage_release_hierarchy(s.stage, question), OVSTAGE_ERROR_INVALID_HANDLE, "released");
  CHECK_REFUSED(ovstage_release_hierarchy(s.stage, s.query), OVSTAGE_ERROR_INVALID_HANDLE, "unknown");
  CHECK_REFUSED(ovstage_get_hierarchy(s.stage, s.list, 1, (ovstage_hierarchy_relation_t)3, &question),
                OVSTAGE_ERROR_INVALID_ARGUMENT, "relation 3");
  CHECK(question == OVSTAGE_INVALID_HIERARCHY_HANDLE);
  CHECK_REFUSED(ovstage_get_hierarchy(s.stage, 4711, 1, OVSTAGE_HIERARCHY_PARENT, &question),
                OVSTAGE_ERROR_INVALID_HANDLE, "prim_paths 4711");
  CHECK_REFUSED(ovstage_get_hierarchy(s.stage, s.list, 1, OVSTAGE_HIERARCHY_PARENT, NULL),
                OVSTAGE_ERROR_INVALID_ARGUMENT, "out_hierarchy_handle");
  CHECK_FAILS(ovstage_fetch_hierarchy_result(s.stage, 1, NULL), OVSTAGE_ERROR_INVALID_ARGUMENT, "out_result");
  CHECK_FAILS(ovstage_release_hierarchy_result(s.stage, NULL), OVSTAGE_ERROR_INVALID_ARGUMENT, "result");

  DONE(&s, ovstage_get_hierarchy(s.stage, s.list, 1, OVSTAGE_HIERARCHY_SIBLINGS, &question));
  CHECK(ovstage_fetch_hierarchy_result(s.stage, question, &answer) == OVSTAGE_OK); /* both go with the stage */
  close_scene(&s);
}

/* ---- Instances --------------------------------------------------------------------------------------------------- */

static ovx_primpath_t path_of(const scene* s, const char* text) {
  ovx_string_t string = view(text);
  ovx_primpath_t path = 0;
  CHECK(path_dictionary_create_paths_from_strings(s->dictionary, &string, 1, &path).status == OVX_API_SUCCESS);
  return path;
}

/* Wants a list of this many paths and gives it back. */
static void give_back(const scene* s, ovx_primpath_list_t list, size_t wanted) {
  size_t count = SIZE_MAX;
  CHECK(path_dictionary_get_num_paths_from_path_list(s->dictionary, list, &count).status == OVX_API_SUCCESS);
  CHECK(count == wanted);
  CHECK(path_dictionary_release_path_list_reference(s->dictionary, list).status == OVX_API_SUCCESS);
}

static void check_instances(void) {
  scene s;
  if (!open_scene(&s, "instances")) return;
  ovx_primpath_list_t list = 4711;
  CHECK(ovstage_instancing_get_prototype_roots(s.stage, &list) == OVSTAGE_OK);
  give_back(&s, list, 0);

  ovx_primpath_t prototype = path_of(&s, "/__Prototype_1"), found = 4711;
  uint64_t targets[PRIMS] = {prototype, prototype, path_of(&s, "/__Prototype_2")};
  int64_t shape[1] = {PRIMS};
  DLTensor tensor = tensor_of(targets, type_of(kDLUInt, 64, 1), 1, shape);
  ovstage_write_data_t payload = payload_of(&tensor, 1);
  payload.is_array = true;
  payload.semantic = OVSTAGE_SEMANTIC_RELATIONSHIP_PATH_ID;
  DONE(&s, ovstage_write_attribute(s.stage, s.query, by_name("usd-prototype"), 1, payload, OVSTAGE_PRIM_MODE_UPSERT));

  CHECK(ovstage_instancing_get_prototype_roots(s.stage, &list) == OVSTAGE_OK);
  give_back(&s, list, 2);
  CHECK(ovstage_instancing_get_instance_roots(s.stage, prototype, &list) == OVSTAGE_OK);
  give_back(&s, list, 2);
  CHECK(ovstage_instancing_get_instance_roots(s.stage, path_of(&s, "/World"), &list) == OVSTAGE_OK);
  give_back(&s, list, 0);
  CHECK(ovstage_instancing_get_prototype_root(s.stage, path_of(&s, "/World/B"), &found) == OVSTAGE_OK);
  CHECK(found == prototype);

  CHECK_FAILS(ovstage_instancing_get_prototype_root(s.stage, prototype, &found), OVSTAGE_ERROR_NOT_FOUND,
              "/__Prototype_1");
  CHECK(found == OVX_INVALID_PRIMPATH);
  CHECK_FAILS(ovstage_instancing_get_prototype_root(s.stage, 0, &found), OVSTAGE_ERROR_INVALID_ARGUMENT,
              "instance_root");
  CHECK_FAILS(ovstage_instancing_get_instance_roots(s.stage, 0, &list), OVSTAGE_ERROR_INVALID_ARGUMENT,
              "prototype_root");
  CHECK(list == OVX_INVALID_PRIMPATH_LIST);
  CHECK_FAILS(ovstage_instancing_get_prototype_roots(s.stage, NULL), OVSTAGE_ERROR_INVALID_ARGUMENT,
              "out_prototype_roots");
  close_scene(&s);
}

const check_group hierarchy_groups[] = {
    {"clones", check_clones},
    {"relatives", check_relatives},
    {"instances", check_instances},
    {"world transforms", check_world_transforms},
    {"models of computation", check_models},
};
const size_t hierarchy_group_count = sizeof hierarchy_groups / sizeof hierarchy_groups[0];
