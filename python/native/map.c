/*
 * map.c - Stage: maps, their groups and their ends.
 */
#include "native.h"

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

static ovstage_api_status_t abort_map(Stage* self, uint64_t handle) {
  session_begin_end(self, handle);
  ovstage_api_status_t status;
  WITHOUT_GIL(status = native.go->abort_map(self->instance, handle));
  session_finish_end(self, handle, status == OVSTAGE_OK);
  return status;
}

static bool drop_map(Stage* self, uint64_t handle) { return abort_map(self, handle) == OVSTAGE_OK; }

handle_class map_class = {.name = "Map", .drop = drop_map};

static bool open_dtype(PyObject* given, DLDataType* out) {
  int code, bits, lanes;
  *out = (DLDataType){0, 0, 0};
  if (given == Py_None) return true;
  if (!PyArg_ParseTuple(given, "iii:dtype", &code, &bits, &lanes)) return false;
  *out = (DLDataType){(uint8_t)code, (uint8_t)bits, (uint16_t)lanes};
  if (out->code == code && out->bits == bits && out->lanes == lanes) return true;
  PyErr_Format(PyExc_ValueError, "dtype must fit in (uint8, uint8, uint16), got (%d, %d, %d)", code, bits, lanes);
  return false;
}

static PyObject* stage_map(PyObject* object, PyObject* const* args, Py_ssize_t nargs) {
  enum { QUERY, ATTRIBUTE, ORDINAL, PRIM_MODE, DTYPE, SEMANTIC, ELEMENT_SIZES, INITIAL, GROUP_ROWS, ARGUMENTS };
  Stage* self = (Stage*)object;
  if (!check_argument_count("_map", nargs, ARGUMENTS)) return NULL;
  uint64_t query, ordinal, handle = 0;
  int32_t semantic, initial;
  words sizes = {0};
  ovstage_map_desc_t desc = {0};
  ovstage_go_map_options_t options = {.struct_size = sizeof options};
  if (args[ELEMENT_SIZES] != Py_None && !words_open(&sizes, args[ELEMENT_SIZES], "element_sizes", " entries", 64))
    return NULL;
  PyObject *made = NULL, *answer = NULL;
  if (guard_attribute(args[ATTRIBUTE], "attribute", &desc.attribute) && open_dtype(args[DTYPE], &desc.dtype) &&
      guard_open_member(args[SEMANTIC], "semantic", "AttributeSemantic", &semantic) &&
      guard_prim_mode(args[PRIM_MODE], &desc.prim_mode) && guard_handle(args[QUERY], "query", &query) &&
      guard_uint64(args[ORDINAL], "ordinal", &ordinal) && guard_int32(args[INITIAL], "initial", &initial) &&
      guard_uint64(args[GROUP_ROWS], "group_rows", &options.group_rows) && (made = handle_reserve(&map_class)) &&
      stage_begin(self, "map_attribute")) {
    desc.semantic = (ovstage_attribute_semantic_t)semantic;
    options.initial = (ovstage_go_initial_t)initial;
    ovstage_enqueue_result_t result;
    WITHOUT_GIL(result = native.go->map_attribute(self->instance, query, &desc, ordinal, sizes.data, sizes.count,
                                                  &options, &handle));
    answer = handle_named(handle_open(made, self, result, handle), "map_attribute", args[ATTRIBUTE], &ordinal);
    made = NULL;
  }
  Py_XDECREF(made);
  words_close(&sizes);
  return answer;
}

/* ---- Groups ------------------------------------------------------------------------------------------------------ */

static bool check_group_class(PyObject* class) {
  if (PyType_Check(class) && PyType_IsSubtype((PyTypeObject*)class, native.group)) return true;
  PyErr_Format(PyExc_TypeError, "cls must be Group or a subclass of it, got %R", class);
  return false;
}

static ovstage_api_status_t attempt_fetch_map(void* closure, uint64_t timeout) {
  fetch_call* call = closure;
  /* the descriptors only: a reference to the bytes would be a live view at the commit */
  return native.go->fetch_map(call->stage->instance, call->handle, timeout, &call->group->raw.map,
                              &call->held.descriptors);
}

static PyObject* stage_fetch_map(PyObject* object, PyObject* const* args, Py_ssize_t nargs) {
  enum { MAPPING, TIMEOUT, CLS, ARGUMENTS };
  Stage* self = (Stage*)object;
  fetch_call call = {.stage = self};
  uint64_t timeout;
  map_session* session;
  if (!check_argument_count("_fetch_map", nargs, ARGUMENTS) || !guard_handle(args[MAPPING], "mapping", &call.handle) ||
      !guard_timeout(args[TIMEOUT], &timeout) || !check_group_class(args[CLS]) ||
      !stage_begin(self, "fetch_map_next") || !(session = session_join(self, call.handle))) {
    return NULL;
  }
  ovstage_api_status_t status;
  PyObject* answer = NULL;
  if ((call.group = group_new(GROUP_MAP, (PyTypeObject*)args[CLS], self))) {
    bool answered = wait_in_slices(attempt_fetch_map, &call, timeout, &status);
    answer = group_fetched(call.group, call.held, answered, status);
  }
  if (answer == (PyObject*)call.group && answer) {
    call.group->session = session;
    session->references++;
  }
  session_leave(self, session);
  return answer;
}

/* ---- Commits ----------------------------------------------------------------------------------------------------- */

static bool open_sync(PyObject* stream, PyObject* event, PyObject* commit, ovstage_cuda_sync_t* sync,
                      ovstage_go_commit_t* how) {
  uint64_t numbers[2];
  int32_t choice;
  if (!guard_uint64(stream, "cuda_stream", &numbers[0]) || !guard_uint64(event, "cuda_event", &numbers[1]) ||
      !guard_int32(commit, "commit", &choice)) {
    return false;
  }
  *sync = (ovstage_cuda_sync_t){numbers[0], numbers[1]};
  *how = (ovstage_go_commit_t)choice;
  return true;
}

static PyObject* stage_unmap_group(PyObject* object, PyObject* const* args, Py_ssize_t nargs) {
  enum { MAPPING, GROUP, STREAM, EVENT, COMMIT, ARGUMENTS };
  Stage* self = (Stage*)object;
  uint64_t handle;
  ovstage_cuda_sync_t sync;
  ovstage_go_commit_t commit;
  ovstage_map_group_t raw;
  if (!check_argument_count("_unmap_group", nargs, ARGUMENTS) || !guard_handle(args[MAPPING], "mapping", &handle) ||
      !open_sync(args[STREAM], args[EVENT], args[COMMIT], &sync, &commit)) {
    return NULL;
  }
  Group* group = PyObject_TypeCheck(args[GROUP], native.group) ? (Group*)args[GROUP] : NULL;
  if (group && group->kind != GROUP_MAP) {
    PyErr_SetString(PyExc_TypeError, "group must be a MapGroup of this mapping, got a ReadGroup");
    return NULL;
  }
  if (group)
    raw = group->raw.map;
  else if (!group_raw_of(args[GROUP], &raw, sizeof raw))
    return NULL;
  if (!stage_begin(self, "unmap_group") || (group && !group_claim(group))) return NULL;
  ovstage_enqueue_result_t result;
  WITHOUT_GIL(result = native.go->unmap_group(self->instance, handle, &raw, sync, commit));
  bool committed = result.status == OVSTAGE_OK && native.go->op_status(self->instance, result.op_index) == OVSTAGE_OK;
  if (group && committed)
    group_release_memory(group);
  else if (group)
    group->claimed = false; /* what could not be committed is the caller's still */
  return handle_names(operation_settled(operation_new(self, result, NULL)), "unmap_group", args[MAPPING]);
}

static PyObject* stage_unmap(PyObject* object, PyObject* const* args, Py_ssize_t nargs) {
  enum { MAPPING, STREAM, EVENT, COMMIT, ARGUMENTS };
  Stage* self = (Stage*)object;
  uint64_t handle;
  ovstage_cuda_sync_t sync;
  ovstage_go_commit_t commit;
  if (!check_argument_count("_unmap", nargs, ARGUMENTS) || !guard_handle(args[MAPPING], "mapping", &handle) ||
      !open_sync(args[STREAM], args[EVENT], args[COMMIT], &sync, &commit) || !stage_begin(self, "unmap_attribute") ||
      !handle_claim(args[MAPPING])) {
    return NULL;
  }
  session_begin_end(self, handle);
  ovstage_enqueue_result_t result;
  WITHOUT_GIL(result = native.go->unmap_attribute(self->instance, handle, sync, commit));
  /* a session whose ordinal was sealed meanwhile ends too, without a commit */
  session_finish_end(self, handle, result.status == OVSTAGE_OK || result.status == OVSTAGE_ERROR_WRITE_FLOOR_VIOLATION);
  if (result.status != OVSTAGE_OK) handle_reopen(args[MAPPING]);
  return handle_names(operation_settled(operation_new(self, result, NULL)), "unmap_attribute", args[MAPPING]);
}

/* ---- Aborts ------------------------------------------------------------------------------------------------------ */

static PyObject* stage_abort(PyObject* object, PyObject* mapping) {
  Stage* self = (Stage*)object;
  uint64_t handle;
  if (!guard_handle(mapping, "mapping", &handle) || !stage_begin(self, "abort_map") || !handle_claim(mapping))
    return NULL;
  ovstage_api_status_t status = abort_map(self, handle);
  if (status != OVSTAGE_OK) {
    handle_reopen(mapping);
    return raise_library_error(status);
  }
  bool object_given = PyObject_TypeCheck(mapping, native.handle);
  PyObject* how = object_given ? PyUnicode_FromString("aborted") : NULL;
  if (object_given && (!how || PyObject_SetAttrString(mapping, "_ended", how) < 0)) PyErr_Clear(); /* it has ended */
  Py_XDECREF(how);
  return Py_NewRef(Py_None);
}

PyMethodDef stage_map_methods[] = {
    {"_map", FAST(stage_map), DOC_Stage__map},
    {"_fetch_map", FAST(stage_fetch_map), DOC_Stage__fetch_map},
    {"_unmap_group", FAST(stage_unmap_group), DOC_Stage__unmap_group},
    {"_unmap", FAST(stage_unmap), DOC_Stage__unmap},
    {"_abort", stage_abort, METH_O, DOC_Stage__abort},
    {NULL, NULL, 0, NULL},
};
