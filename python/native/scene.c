/*
 * scene.c - Stage: copies of prims, their relatives, where they are in the world, and what they are instances of.
 */
#include "native.h"

/* ---- Clones ------------------------------------------------------------------------------------------------------ */

static PyObject* stage_clone(PyObject* object, PyObject* const* args, Py_ssize_t nargs) {
  enum { SOURCE, TARGETS, ORDINAL, ARGUMENTS };
  Stage* self = (Stage*)object;
  ovx_string_t source;
  uint64_t ordinal;
  texts targets;
  if (!check_argument_count("_clone", nargs, ARGUMENTS) || !guard_string(args[SOURCE], "source_path", &source) ||
      !texts_open(&targets, args[TARGETS], "target_paths")) {
    return NULL;
  }
  PyObject* answer = NULL;
  if (guard_uint64(args[ORDINAL], "ordinal", &ordinal) && stage_begin(self, "clone")) {
    ovstage_enqueue_result_t result;
    WITHOUT_GIL(result = ovstage_clone(self->instance, source, targets.data, targets.count, ordinal));
    answer = operation_named(operation_settled(operation_new(self, result, NULL)), "clone", NULL, &ordinal);
  }
  texts_close(&targets);
  return answer;
}

/* ---- Relatives --------------------------------------------------------------------------------------------------- */

static bool drop_hierarchy(Stage* stage, uint64_t number) {
  return handle_drop(stage, number, ovstage_release_hierarchy);
}

handle_class hierarchy_class = {.name = "Hierarchy", .drop = drop_hierarchy};

static PyObject* stage_get_hierarchy(PyObject* object, PyObject* const* args, Py_ssize_t nargs) {
  enum { PATH_LIST, ORDINAL, RELATION, ARGUMENTS };
  Stage* self = (Stage*)object;
  uint64_t list, ordinal, handle = 0;
  int32_t relation;
  if (!check_argument_count("_get_hierarchy", nargs, ARGUMENTS) || !guard_path_list(args[PATH_LIST], &list) ||
      !guard_uint64(args[ORDINAL], "ordinal", &ordinal) ||
      !guard_open_member(args[RELATION], "relation", "HierarchyRelation", &relation)) {
    return NULL;
  }
  PyObject* made = handle_reserve(&hierarchy_class);
  if (!made || !stage_begin(self, "get_hierarchy")) {
    Py_XDECREF(made);
    return NULL;
  }
  ovstage_enqueue_result_t result;
  WITHOUT_GIL(
      result = ovstage_get_hierarchy(self->instance, list, ordinal, (ovstage_hierarchy_relation_t)relation, &handle));
  return handle_named(handle_open(made, self, result, handle), "get_hierarchy", NULL, &ordinal);
}

/* The paths of one item, as a tuple of strings. */
static PyObject* item_paths(const ovstage_hierarchy_result_t* answer, const ovstage_hierarchy_item_t* item) {
  PyObject* paths = PyTuple_New((Py_ssize_t)item->path_count);
  for (size_t i = 0; paths && i < item->path_count; i++) {
    PyObject* path = string_of(answer->paths[item->path_offset + i].string);
    if (!path || PyTuple_SetItem(paths, (Py_ssize_t)i, path) < 0) Py_CLEAR(paths);
  }
  return paths;
}

static PyObject* all_items(const ovstage_hierarchy_result_t* answer) {
  PyObject* items = PyList_New((Py_ssize_t)answer->input_count);
  for (size_t i = 0; items && i < answer->input_count; i++) {
    PyObject* paths = item_paths(answer, &answer->items[i]);
    PyObject* item = paths ? Py_BuildValue("(iN)", (int)answer->items[i].status, paths) : NULL;
    if (!item || PyList_SetItem(items, (Py_ssize_t)i, item) < 0) Py_CLEAR(items);
  }
  return items;
}

static PyObject* stage_fetch_hierarchy(PyObject* object, PyObject* handle) {
  Stage* self = (Stage*)object;
  uint64_t number;
  if (!guard_handle(handle, "hierarchy", &number) || !stage_begin(self, "fetch_hierarchy_result")) return NULL;
  ovstage_hierarchy_result_t answer;
  ovstage_api_status_t status;
  WITHOUT_GIL(status = ovstage_fetch_hierarchy_result(self->instance, number, &answer));
  if (status != OVSTAGE_OK) return raise_library_error(status);
  PyObject* items = all_items(&answer);
  ovstage_release_hierarchy_result(self->instance, &answer);
  return items ? Py_BuildValue("(KN)", (unsigned long long)answer.ordinal, items) : NULL;
}

static PyObject* stage_release_hierarchy(PyObject* self, PyObject* hierarchy) {
  return handle_end(self, hierarchy, "hierarchy", "release_hierarchy", ovstage_release_hierarchy, NULL);
}

/* ---- World transforms -------------------------------------------------------------------------------------------- */

static PyObject* stage_hierarchy_models(PyObject* object, PyObject* unused) {
  (void)unused;
  Stage* self = (Stage*)object;
  if (!stage_begin(self, "get_hierarchy_computation_models")) return NULL;
  const ovstage_hierarchy_computation_model_desc_t* models;
  size_t count;
  ovstage_api_status_t status = ovstage_get_hierarchy_computation_models(self->instance, &models, &count);
  if (status != OVSTAGE_OK) return raise_library_error(status);
  PyObject* list = PyList_New((Py_ssize_t)count);
  for (size_t i = 0; list && i < count; i++) {
    PyObject* name = string_of(models[i].name);
    PyObject* description = name ? string_of(models[i].description) : NULL;
    PyObject* item = description ? Py_BuildValue("(iNN)", (int)models[i].model_id, name, description) : NULL;
    if (!description) Py_XDECREF(name);
    if (!item || PyList_SetItem(list, (Py_ssize_t)i, item) < 0) Py_CLEAR(list);
  }
  return list;
}

static PyObject* stage_compute_hierarchy(PyObject* object, PyObject* const* args, Py_ssize_t nargs) {
  enum { INPUT_ORDINAL, OUTPUT_ORDINAL, MODEL, ARGUMENTS };
  Stage* self = (Stage*)object;
  uint64_t from, to;
  int32_t model;
  if (!check_argument_count("_compute_hierarchy", nargs, ARGUMENTS) ||
      !guard_uint64(args[INPUT_ORDINAL], "input_ordinal", &from) ||
      !guard_uint64(args[OUTPUT_ORDINAL], "output_ordinal", &to) ||
      !guard_open_member(args[MODEL], "model", "HierarchyComputationModel", &model) ||
      !stage_begin(self, "compute_hierarchy")) {
    return NULL;
  }
  ovstage_enqueue_result_t result;
  WITHOUT_GIL(result =
                  ovstage_compute_hierarchy(self->instance, (ovstage_hierarchy_computation_model_id_t)model, from, to));
  return operation_named(operation_settled(operation_new(self, result, NULL)), "compute_hierarchy", NULL, &to);
}

/* ---- Instances --------------------------------------------------------------------------------------------------- */

/* The paths of a list that was made for this call, and goes with it. */
static PyObject* take_paths(Stage* self, ovstage_api_status_t status, ovx_primpath_list_t list) {
  if (status != OVSTAGE_OK) return raise_library_error(status);
  path_dictionary_instance_t* dictionary = ovstage_get_path_dictionary(self->instance);
  PyObject* paths = paths_of_list(self, list);
  if (dictionary) WITHOUT_GIL(path_dictionary_release_path_list_reference(dictionary, list));
  return paths;
}

static PyObject* stage_prototype_roots(PyObject* object, PyObject* unused) {
  (void)unused;
  Stage* self = (Stage*)object;
  if (!stage_begin(self, "instancing.get_prototype_roots")) return NULL;
  ovx_primpath_list_t list;
  ovstage_api_status_t status;
  WITHOUT_GIL(status = ovstage_instancing_get_prototype_roots(self->instance, &list));
  return take_paths(self, status, list);
}

static PyObject* stage_prototype_root(PyObject* object, PyObject* instance) {
  Stage* self = (Stage*)object;
  uint64_t path;
  if (!guard_uint64(instance, "instance_root", &path) || !stage_begin(self, "instancing.get_prototype_root"))
    return NULL;
  ovx_primpath_t prototype;
  ovstage_api_status_t status;
  WITHOUT_GIL(status = ovstage_instancing_get_prototype_root(self->instance, path, &prototype));
  return status == OVSTAGE_OK ? PyLong_FromUnsignedLongLong(prototype) : raise_library_error(status);
}

static PyObject* stage_instance_roots(PyObject* object, PyObject* prototype) {
  Stage* self = (Stage*)object;
  uint64_t path;
  if (!guard_uint64(prototype, "prototype_root", &path) || !stage_begin(self, "instancing.get_instance_roots"))
    return NULL;
  ovx_primpath_list_t list;
  ovstage_api_status_t status;
  WITHOUT_GIL(status = ovstage_instancing_get_instance_roots(self->instance, path, &list));
  return take_paths(self, status, list);
}

PyMethodDef stage_scene_methods[] = {
    {"_clone", FAST(stage_clone), DOC_Stage__clone},
    {"_get_hierarchy", FAST(stage_get_hierarchy), DOC_Stage__get_hierarchy},
    {"_fetch_hierarchy", stage_fetch_hierarchy, METH_O, DOC_Stage__fetch_hierarchy},
    {"release_hierarchy", stage_release_hierarchy, METH_O, DOC_Stage_release_hierarchy},
    {"_hierarchy_models", stage_hierarchy_models, METH_NOARGS, DOC_Stage__hierarchy_models},
    {"_compute_hierarchy", FAST(stage_compute_hierarchy), DOC_Stage__compute_hierarchy},
    {"_prototype_roots", stage_prototype_roots, METH_NOARGS, DOC_Stage__prototype_roots},
    {"_prototype_root", stage_prototype_root, METH_O, DOC_Stage__prototype_root},
    {"_instance_roots", stage_instance_roots, METH_O, DOC_Stage__instance_roots},
    {NULL, NULL, 0, NULL},
};
