/*
 * scene.c - Stage: copies of prims, their relatives, and where they are in the world.
 */
#include "native.h"

/* ---- Clones ------------------------------------------------------------------------------------------------------ */

PyObject* stage_clone(PyObject* object, PyObject* const* args, Py_ssize_t nargs) {
  Stage* self = (Stage*)object;
  ovx_string_t source;
  uint64_t ordinal;
  texts targets;
  if (!check_argument_count("_clone", nargs, 3, 3) || !guard_string(args[0], "source_path", &source) ||
      !texts_open(&targets, args[1], "target_paths")) {
    return NULL;
  }
  PyObject* answer = NULL;
  if (guard_uint64(args[2], "ordinal", &ordinal) && stage_begin(self, "clone")) {
    ovstage_enqueue_result_t result;
    WITHOUT_GIL(result = ovstage_clone(self->instance, source, targets.data, targets.count, ordinal));
    answer = enqueued(self, result);
  }
  texts_close(&targets);
  return answer;
}

/* ---- World transforms -------------------------------------------------------------------------------------------- */

PyObject* stage_hierarchy_models(PyObject* object, PyObject* unused) {
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

PyObject* stage_compute_hierarchy(PyObject* object, PyObject* const* args, Py_ssize_t nargs) {
  Stage* self = (Stage*)object;
  uint64_t from, to;
  int32_t model;
  if (!check_argument_count("_compute_hierarchy", nargs, 3, 3) || !guard_uint64(args[0], "input_ordinal", &from) ||
      !guard_uint64(args[1], "output_ordinal", &to) || !guard_int32(args[2], "model", &model) ||
      !stage_begin(self, "compute_hierarchy")) {
    return NULL;
  }
  ovstage_enqueue_result_t result;
  WITHOUT_GIL(result = ovstage_compute_hierarchy(self->instance, (ovstage_hierarchy_computation_model_id_t)model, from,
                                                 to));
  return enqueued(self, result);
}
