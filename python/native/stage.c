/*
 * stage.c - Stage: one native instance, and the calls on it that are thin.
 *
 * The bundle is retained from creation to dealloc. A call that comes after destroy, or during it from another thread,
 * is therefore answered by the library instead of being a crash.
 */

#include "native.h"

/* ---- Waiting ----------------------------------------------------------------------------------------------------- */

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

bool wait_in_slices(attempt_function attempt, void* call, uint64_t timeout, ovstage_api_status_t* out) {
  static const uint64_t slice = 20000000; /* 20 ms: Ctrl-C is promised within 50 */
  uint64_t start = timeout > slice && timeout != OVSTAGE_TIMEOUT_INFINITE ? now() : 0, left = timeout;
  for (;;) {
    uint64_t part = left < slice ? left : slice;
    WITHOUT_GIL(*out = attempt(call, part));
    if (*out != OVSTAGE_ERROR_TIMEOUT || left <= slice) return true;
    if (PyErr_CheckSignals() < 0) return false;
    if (timeout != OVSTAGE_TIMEOUT_INFINITE) {
      uint64_t passed = now() - start;
      left = passed < timeout ? timeout - passed : 0;
    }
  }
}

/* ---- Inputs whose Operation is gone ------------------------------------------------------------------------------ */

void stage_adopt_orphan(Stage* self, uint64_t op, bool release, PyObject* inputs) {
  orphan* kept = malloc(sizeof *kept);
  if (!kept) return; /* without memory they are leaked: freeing what the engine still reads would be worse */
  *kept = (orphan){self->orphans, op, release, inputs};
  self->orphans = kept;
}

static void drop_finished_orphans(Stage* self) {
  orphan** link = &self->orphans;
  while (*link) {
    orphan* kept = *link;
    if (self->alive && ovstage_wait_op(self->instance, kept->op, 0, NULL) == OVSTAGE_ERROR_TIMEOUT) {
      link = &kept->next;
      continue;
    }
    *link = kept->next;
    if (self->alive && kept->release) ovstage_release_op(self->instance, kept->op);
    PyObject* inputs = kept->inputs;
    free(kept);
    Py_XDECREF(inputs); /* may run anything: begin anew */
    link = &self->orphans;
  }
}

/* ---- Refusals ---------------------------------------------------------------------------------------------------- */

void stage_remember_refusal(Stage* self, int64_t status) {
  PyObject* text = last_library_text(status);
  if (!text) PyErr_Clear();
  PyObject* earlier = self->refusal;
  self->refusal = text;
  Py_XDECREF(earlier);
  self->refusing_thread = PyThread_get_thread_ident();
  self->refused_status = status;
}

PyObject* stage_refusal_text(Stage* self, int64_t status) {
  if (self->refusal && self->refused_status == status && self->refusing_thread == PyThread_get_thread_ident()) {
    PyObject* text = self->refusal;
    self->refusal = NULL;
    return text;
  }
  return last_library_text(status);
}

/* ---- Beginning and answering ------------------------------------------------------------------------------------- */

bool stage_begin(Stage* self, const char* method) {
  if (native.forked) return raise_forked(method) != NULL;
  drop_parked();
  if (self->orphans) drop_finished_orphans(self);
  if (self->alive) return operation_prepare(self);
  raise_stage_error(OVSTAGE_ERROR_INVALID_HANDLE,
                    self->instance ? "%s called after Stage was destroyed" : "%s called before Stage.__init__", method);
  return false;
}

PyObject* none_or_raise(ovstage_api_status_t status) {
  return status == OVSTAGE_OK ? Py_NewRef(Py_None) : raise_library_error(status);
}

PyObject* list_of_uint64s(const uint64_t* values, size_t count) {
  PyObject* list = PyList_New((Py_ssize_t)count);
  for (size_t i = 0; list && i < count; i++) {
    PyObject* number = PyLong_FromUnsignedLongLong(values[i]);
    if (!number || PyList_SetItem(list, (Py_ssize_t)i, number) < 0) Py_CLEAR(list);
  }
  return list;
}

/* ---- Life -------------------------------------------------------------------------------------------------------- */

static int stage_init(PyObject* object, PyObject* args, PyObject* kwargs) {
  static char* names[] = {"name", NULL};
  Stage* self = (Stage*)object;
  const char* name = NULL;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|z:Stage", names, &name)) return -1;
  if (self->instance) {
    PyErr_SetString(PyExc_RuntimeError, "a Stage cannot be initialised twice");
    return -1;
  }
  if (!library_open() || !begin_log()) return -1;
  ovstage_instance_desc_t desc = {name};
  ovstage_instance_t* instance = NULL;
  ovstage_api_status_t status;
  WITHOUT_GIL(status = ovstage_create_instance(&desc, &instance));
  if (status != OVSTAGE_OK) {
    raise_library_error(status);
    return -1;
  }
  if (!find_extension(instance)) {
    ovstage_destroy_instance(instance);
    return -1;
  }
  native.go->instance_retain(instance);
  native.stages++;
  self->instance = instance;
  self->alive = true;
  return 0;
}

bool find_extension(ovstage_instance_t* instance) {
  if (native.go) return true;
  const void* found = NULL;
  ovstage_api_status_t status = ovstage_query_extension(instance, OVSTAGE_GO_V1_NAME, &found);
  const ovstage_go_v1_t* go = found;
  if (status == OVSTAGE_OK && go->version == 1 && go->struct_size >= sizeof *go) {
    native.go = go;
    return true;
  }
  PyErr_SetString(
      PyExc_RuntimeError,
      "Failed to load ovstage: libovstage.so and _native.abi3.so do not belong together; install the package anew");
  return false;
}

static PyObject* stage_destroy(PyObject* object, PyObject* unused) {
  (void)unused;
  Stage* self = (Stage*)object;
  if (native.forked)
    return Py_NewRef(Py_None); /* before anything is locked: who holds the lock may have stayed behind */
  drop_parked();
  if (!self->alive) return Py_NewRef(Py_None);
  self->alive = false; /* first: no other thread shall begin a call */
  ovstage_api_status_t status;
  WITHOUT_GIL(status = ovstage_destroy_instance(self->instance));
  if (status != OVSTAGE_OK) {
    self->alive = true;
    return raise_library_error(status);
  }
  native.stages--;
  end_sessions(self);
  drop_finished_orphans(self);
  return end_log_of_stages() ? Py_NewRef(Py_None) : NULL;
}

static void stage_dealloc(PyObject* object) {
  Stage* self = (Stage*)object;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  if (self->alive && !native.forked) {
    self->alive = false;
    WITHOUT_GIL(ovstage_destroy_instance(self->instance));
    native.stages--;
    if (!end_log_of_stages()) PyErr_WriteUnraisable(NULL);
  }
  end_sessions(self);
  drop_finished_orphans(self);
  if (self->instance) native.go->instance_release(self->instance);
  Py_XDECREF(self->refusal);
  Py_XDECREF(self->spare);
  PyErr_Restore(type, value, traceback);
  free_object(object);
}

/* For what is done in Python, under locks of Python, which may be taken for good in a forked child. */
static PyObject* stage_refuse_fork(PyObject* self, PyObject* name) {
  (void)self;
  if (!native.forked) return Py_NewRef(Py_None);
  PyObject* text = PyUnicode_AsUTF8String(name);
  if (text) raise_forked(PyBytes_AsString(text));
  Py_XDECREF(text);
  return NULL;
}

static PyObject* stage_last_error(PyObject* self, PyObject* unused) {
  (void)unused;
  PyObject* text = string_of(ovstage_get_last_error());
  if (text) refusal_read((Stage*)self, text);
  return text;
}

static PyObject* stage_alive(PyObject* self, void* unused) {
  (void)unused;
  return PyBool_FromLong(((Stage*)self)->alive);
}

/* ---- Operations -------------------------------------------------------------------------------------------------- */

ovstage_api_status_t attempt_wait(void* closure, uint64_t timeout) {
  wait_call* call = closure;
  return ovstage_wait_op(call->instance, call->op, timeout, &call->result);
}

static PyObject* stage_wait_op(PyObject* object, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  static signature sig = {"wait_op", 2, 1, {"op_id", "timeout"}, {0}};
  Stage* self = (Stage*)object;
  PyObject* slots[2];
  wait_call call = {0};
  uint64_t timeout;
  if (!sort_arguments(&sig, args, nargs, kwnames, slots) || !guard_uint64(slots[0], "op_id", &call.op) ||
      !guard_timeout(slots[1], &timeout) || !stage_begin(self, "wait_op")) {
    return NULL;
  }
  call.instance = self->instance;
  ovstage_api_status_t status = attempt_wait(&call, 0);
  if (status == OVSTAGE_ERROR_TIMEOUT && timeout && !wait_in_slices(attempt_wait, &call, timeout, &status)) return NULL;
  PyObject* failed = list_of_uint64s(call.result.error_op_ids, call.result.error_op_id_count);
  return Py_BuildValue("(iNK)", (int)status, failed, (unsigned long long)call.result.lowest_pending_op_id);
}

static PyObject* stage_release_op(PyObject* object, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  static signature sig = {"release_op", 1, 1, {"op_id"}, {0}};
  Stage* self = (Stage*)object;
  PyObject* slots[1];
  uint64_t op;
  if (!sort_arguments(&sig, args, nargs, kwnames, slots) || !guard_uint64(slots[0], "op_id", &op) ||
      !stage_begin(self, "release_op")) {
    return NULL;
  }
  return PyLong_FromLong(ovstage_release_op(self->instance, op));
}

static PyObject* stage_op_error(PyObject* object, PyObject* op_id) {
  Stage* self = (Stage*)object;
  uint64_t op;
  if (!guard_uint64(op_id, "op_id", &op) || !stage_begin(self, "op_error")) return NULL;
  return string_of(ovstage_get_last_op_error(self->instance, op));
}

static PyObject* stage_op_status(PyObject* object, PyObject* op_id) {
  Stage* self = (Stage*)object;
  uint64_t op;
  if (!guard_uint64(op_id, "op_id", &op) || !stage_begin(self, "op_status")) return NULL;
  return PyLong_FromLong(native.go->op_status(self->instance, op));
}

/* ---- Floors ------------------------------------------------------------------------------------------------------ */

static PyObject* stage_advance_write_floor(PyObject* object, PyObject* const* args, Py_ssize_t nargs,
                                           PyObject* kwnames) {
  static signature sig = {"advance_write_floor", 3, 1, {"ordinal", "scope", "attributes"}, {0}};
  Stage* self = (Stage*)object;
  PyObject* slots[3];
  ovstage_write_floor_desc_t desc = {0};
  words tokens = {0};
  if (!sort_arguments(&sig, args, nargs, kwnames, slots) || !guard_uint64(slots[0], "ordinal", &desc.ordinal) ||
      !guard_scope(slots[1], &desc.scope) ||
      (slots[2] && slots[2] != Py_None &&
       !tokens_open(&tokens, self, slots[2], "attributes", "advance_write_floor", NULL))) {
    return NULL;
  }
  PyObject* answer = NULL;
  if (stage_begin(self, "advance_write_floor")) {
    desc.attributes = tokens.count ? tokens.data : NULL;
    desc.attribute_count = tokens.count;
    ovstage_enqueue_result_t result;
    WITHOUT_GIL(result = ovstage_advance_write_floor(self->instance, &desc));
    answer = operation_named(operation_new(self, result, NULL), "advance_write_floor", NULL, &desc.ordinal);
  }
  words_close(&tokens);
  return answer;
}

static PyObject* stage_get_attribute_write_floor(PyObject* object, PyObject* const* args, Py_ssize_t nargs,
                                                 PyObject* kwnames) {
  static signature sig = {"get_attribute_write_floor", 1, 0, {"attribute"}, {0}};
  Stage* self = (Stage*)object;
  PyObject* slots[1];
  ovx_string_or_token_t name = {0};
  if (!sort_arguments(&sig, args, nargs, kwnames, slots) ||
      (slots[0] && slots[0] != Py_None && !guard_attribute(slots[0], "attribute", &name))) {
    return NULL;
  }
  PyObject* made = handle_reserve(&ordinal_query_class);
  if (!made || !stage_begin(self, "get_attribute_write_floor")) {
    Py_XDECREF(made);
    return NULL;
  }
  ovstage_enqueue_result_t result;
  uint64_t handle = 0;
  WITHOUT_GIL(result = ovstage_get_attribute_write_floor(self->instance, name, &handle));
  return handle_named(handle_open(made, self, result, handle), "get_attribute_write_floor", slots[0], NULL);
}

static PyObject* stage_get_oldest_preserved_ordinal(PyObject* object, PyObject* unused) {
  (void)unused;
  Stage* self = (Stage*)object;
  PyObject* made = handle_reserve(&ordinal_query_class);
  if (!made || !stage_begin(self, "get_oldest_preserved_ordinal")) {
    Py_XDECREF(made);
    return NULL;
  }
  ovstage_enqueue_result_t result;
  uint64_t handle = 0;
  WITHOUT_GIL(result = ovstage_get_oldest_preserved_ordinal(self->instance, &handle));
  return handle_named(handle_open(made, self, result, handle), "get_oldest_preserved_ordinal", NULL, NULL);
}

typedef struct {
  ovstage_instance_t* instance;
  uint64_t handle, ordinal;
} ordinal_call;

static ovstage_api_status_t attempt_ordinal(void* closure, uint64_t timeout) {
  ordinal_call* call = closure;
  return ovstage_fetch_ordinal(call->instance, call->handle, timeout, &call->ordinal);
}

static PyObject* stage_fetch_ordinal(PyObject* object, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  static signature sig = {"fetch_ordinal", 2, 1, {"ordinal_query", "timeout"}, {0}};
  Stage* self = (Stage*)object;
  PyObject* slots[2];
  ordinal_call call = {0};
  uint64_t timeout;
  if (!sort_arguments(&sig, args, nargs, kwnames, slots) || !guard_handle(slots[0], "ordinal_query", &call.handle) ||
      !guard_timeout(slots[1], &timeout) || !stage_begin(self, "fetch_ordinal")) {
    return NULL;
  }
  call.instance = self->instance;
  ovstage_api_status_t status;
  if (!wait_in_slices(attempt_ordinal, &call, timeout, &status)) return NULL;
  return status == OVSTAGE_OK ? PyLong_FromUnsignedLongLong(call.ordinal) : raise_library_error(status);
}

static PyObject* stage_release_ordinal_query(PyObject* self, PyObject* query) {
  return handle_end(self, query, "ordinal_query", "release_ordinal_query", ovstage_release_ordinal_query, NULL);
}

/* ---- Deletes ------------------------------------------------------------------------------------------------------
 */

static PyObject* stage_delete(PyObject* object, PyObject* const* args, Py_ssize_t nargs) {
  Stage* self = (Stage*)object;
  uint64_t query, ordinal;
  attribute_names names;
  if (!check_argument_count("_delete", nargs, 3, 3) || !attribute_names_open(&names, args[1], "attributes"))
    return NULL;
  PyObject* answer = NULL;
  if (guard_handle(args[0], "query", &query) && guard_uint64(args[2], "ordinal", &ordinal) &&
      stage_begin(self, "delete_attributes")) {
    ovstage_enqueue_result_t result;
    WITHOUT_GIL(result = ovstage_delete_attributes(self->instance, query, names.count ? names.data : NULL, names.count,
                                                   ordinal));
    answer = operation_named(operation_new(self, result, NULL), "delete_attributes", NULL, &ordinal);
  }
  attribute_names_close(&names);
  return answer;
}

/* ---- Counters ---------------------------------------------------------------------------------------------------- */

PyObject* counters_dict(const ovstage_go_counters_t* counters) {
  static const struct {
    const char* name;
    size_t offset;
  } fields[] = {
#define FIELD(name) {#name, offsetof(ovstage_go_counters_t, name)}
      FIELD(live_exports),  FIELD(live_groups),   FIELD(live_maps),     FIELD(live_operations), FIELD(live_queries),
      FIELD(live_reads),    FIELD(bytes_columns), FIELD(bytes_pooled),  FIELD(bytes_copied),    FIELD(live_blocks),
      FIELD(rows_resolved), FIELD(detach_moves),  FIELD(detach_copies), FIELD(maps_adopted),    FIELD(refused_unasked),
#undef FIELD
  };
  PyObject* dict = PyDict_New();
  for (size_t i = 0; dict && i < COUNT_OF(fields); i++) {
    uint64_t value;
    memcpy(&value, (const char*)counters + fields[i].offset, sizeof value);
    PyObject* number = PyLong_FromUnsignedLongLong(value);
    if (!number || PyDict_SetItemString(dict, fields[i].name, number) < 0) Py_CLEAR(dict);
    Py_XDECREF(number);
  }
  return dict;
}

static PyObject* stage_counters(PyObject* object, PyObject* unused) {
  (void)unused;
  Stage* self = (Stage*)object;
  if (!stage_begin(self, "counters")) return NULL;
  ovstage_go_counters_t counters = {.struct_size = sizeof counters};
  ovstage_api_status_t status;
  WITHOUT_GIL(status = native.go->counters(self->instance, &counters));
  return status == OVSTAGE_OK ? counters_dict(&counters) : raise_library_error(status);
}

/* ---- Attributes -------------------------------------------------------------------------------------------------- */

static PyObject* attribute_row(const ovstage_go_attribute_t* a) {
  return Py_BuildValue("(KK(iii)iNKK)", (unsigned long long)a->attribute, (unsigned long long)a->type_name,
                       (int)a->dtype.code, (int)a->dtype.bits, (int)a->dtype.lanes, (int)a->semantic,
                       PyBool_FromLong(a->is_array), (unsigned long long)a->prims, (unsigned long long)a->write_floor);
}

static PyObject* stage_attributes(PyObject* object, PyObject* unused) {
  (void)unused;
  Stage* self = (Stage*)object;
  if (!stage_begin(self, "attributes")) return NULL;
  ovstage_go_attribute_t* rows = NULL;
  size_t room = 0, count = 64;
  while (count > room) { /* others may add some between two calls */
    room = count + count / 8;
    free(rows);
    if (!(rows = malloc(room * sizeof *rows))) return PyErr_NoMemory();
    ovstage_api_status_t status;
    WITHOUT_GIL(status = native.go->attributes(self->instance, rows, sizeof *rows, room, &count));
    if (status != OVSTAGE_OK) {
      free(rows);
      return raise_library_error(status);
    }
  }
  PyObject* list = PyList_New((Py_ssize_t)count);
  for (size_t i = 0; list && i < count; i++) {
    PyObject* row = attribute_row(&rows[i]);
    if (!row || PyList_SetItem(list, (Py_ssize_t)i, row) < 0) Py_CLEAR(list);
  }
  free(rows);
  return list;
}

static PyObject* stage_guard_reads(PyObject* object, PyObject* unused) {
  (void)unused;
  Stage* self = (Stage*)object;
  if (!stage_begin(self, "guard_reads")) return NULL;
  return none_or_raise(native.go->guard_reads(self->instance));
}

static PyObject* stage_keep_history(PyObject* object, PyObject* argument) {
  Stage* self = (Stage*)object;
  uint64_t ordinals;
  if (!guard_uint64(argument, "ordinals", &ordinals) || !stage_begin(self, "keep_history")) return NULL;
  ovstage_api_status_t status;
  WITHOUT_GIL(status = native.go->keep_history(self->instance, ordinals));
  if (status != OVSTAGE_OK) return raise_library_error(status);
  Py_RETURN_NONE;
}

/* ---- The type ---------------------------------------------------------------------------------------------------- */

static PyMethodDef stage_methods[] = {
    {"destroy", stage_destroy, METH_NOARGS, DOC_Stage_destroy},
    {"_refuse_fork", stage_refuse_fork, METH_O, DOC_Stage__refuse_fork},
    {"last_error", stage_last_error, METH_NOARGS, DOC_Stage_last_error},

    {"wait_op", FAST_KEYWORDS(stage_wait_op), DOC_Stage_wait_op},
    {"release_op", FAST_KEYWORDS(stage_release_op), DOC_Stage_release_op},
    {"op_error", stage_op_error, METH_O, DOC_Stage_op_error},
    {"op_status", stage_op_status, METH_O, DOC_Stage_op_status},

    {"write_attribute", FAST_KEYWORDS(stage_write_attribute), DOC_Stage_write_attribute},
    {"write_attributes", FAST_KEYWORDS(stage_write_attributes), DOC_Stage_write_attributes},
    {"_publish", FAST(stage_publish), DOC_Stage__publish},
    {"_delete", FAST(stage_delete), DOC_Stage__delete},
    {"_tell_unasked", FAST(stage_tell_unasked), DOC_Stage__tell_unasked},

    {"advance_write_floor", FAST_KEYWORDS(stage_advance_write_floor), DOC_Stage_advance_write_floor},
    {"get_attribute_write_floor", FAST_KEYWORDS(stage_get_attribute_write_floor), DOC_Stage_get_attribute_write_floor},
    {"get_oldest_preserved_ordinal", stage_get_oldest_preserved_ordinal, METH_NOARGS,
     DOC_Stage_get_oldest_preserved_ordinal},
    {"fetch_ordinal", FAST_KEYWORDS(stage_fetch_ordinal), DOC_Stage_fetch_ordinal},
    {"release_ordinal_query", stage_release_ordinal_query, METH_O, DOC_Stage_release_ordinal_query},

    {"_query_path_list", stage_query_path_list, METH_O, DOC_Stage__query_path_list},
    {"_name_query", FAST(stage_name_query), DOC_Stage__name_query},
    {"_query", FAST(stage_query), DOC_Stage__query},
    {"_query_where", FAST(stage_query_where), DOC_Stage__query_where},
    {"_refresh_query", stage_refresh_query, METH_O, DOC_Stage__refresh_query},
    {"_query_result", FAST_KEYWORDS(stage_query_result), DOC_Stage__query_result},
    {"release_query", stage_release_query, METH_O, DOC_Stage_release_query},

    {"read_attributes", FAST_KEYWORDS(stage_read_attributes), DOC_Stage_read_attributes},
    {"fetch_read_next", FAST_KEYWORDS(stage_fetch_read_next), DOC_Stage_fetch_read_next},
    {"_read_missing", stage_read_missing, METH_O, DOC_Stage__read_missing},
    {"release_read", stage_release_read, METH_O, DOC_Stage_release_read},
    {"release_group", stage_release_group, METH_O, DOC_Stage_release_group},

    {"_map", FAST(stage_map), DOC_Stage__map},
    {"_fetch_map", FAST(stage_fetch_map), DOC_Stage__fetch_map},
    {"_unmap_group", FAST(stage_unmap_group), DOC_Stage__unmap_group},
    {"_unmap", FAST(stage_unmap), DOC_Stage__unmap},
    {"_abort", stage_abort, METH_O, DOC_Stage__abort},

    {"_clone", FAST(stage_clone), DOC_Stage__clone},
    {"_get_hierarchy", FAST(stage_get_hierarchy), DOC_Stage__get_hierarchy},
    {"_fetch_hierarchy", stage_fetch_hierarchy, METH_O, DOC_Stage__fetch_hierarchy},
    {"release_hierarchy", stage_release_hierarchy, METH_O, DOC_Stage_release_hierarchy},
    {"_prototype_roots", stage_prototype_roots, METH_NOARGS, DOC_Stage__prototype_roots},
    {"_prototype_root", stage_prototype_root, METH_O, DOC_Stage__prototype_root},
    {"_instance_roots", stage_instance_roots, METH_O, DOC_Stage__instance_roots},
    {"_hierarchy_models", stage_hierarchy_models, METH_NOARGS, DOC_Stage__hierarchy_models},
    {"_compute_hierarchy", FAST(stage_compute_hierarchy), DOC_Stage__compute_hierarchy},

    {"_intern_tokens", stage_intern_tokens, METH_O, DOC_Stage__intern_tokens},
    {"_try_name", FAST(stage_try_name), DOC_Stage__try_name},
    {"_token_strings", stage_token_strings, METH_O, DOC_Stage__token_strings},
    {"_intern_paths", stage_intern_paths, METH_O, DOC_Stage__intern_paths},
    {"_path_strings", stage_path_strings, METH_O, DOC_Stage__path_strings},
    {"_list_from_paths", FAST(stage_list_from_paths), DOC_Stage__list_from_paths},
    {"_list_from_strings", FAST(stage_list_from_strings), DOC_Stage__list_from_strings},
    {"_list_of_known", FAST(stage_list_of_known), DOC_Stage__list_of_known},
    {"_list_add", FAST(stage_list_add), DOC_Stage__list_add},
    {"_list_release", stage_list_release, METH_O, DOC_Stage__list_release},
    {"_list_give_back", FAST(stage_list_give_back), DOC_Stage__list_give_back},
    {"_list_count", stage_list_count, METH_O, DOC_Stage__list_count},
    {"_list_paths", stage_list_paths, METH_O, DOC_Stage__list_paths},

    {"_attributes", stage_attributes, METH_NOARGS, DOC_Stage__attributes},
    {"_guard_reads", stage_guard_reads, METH_NOARGS, DOC_Stage__guard_reads},
    {"_keep_history", stage_keep_history, METH_O, DOC_Stage__keep_history},
    {"counters", stage_counters, METH_NOARGS, DOC_Stage_counters},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef stage_getset[] = {
    {"alive", stage_alive, NULL, DOC_Stage_alive, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot stage_slots[] = {
    {Py_tp_doc, DOC_Stage},
    {Py_tp_init, stage_init},
    {Py_tp_new, PyType_GenericNew},
    {Py_tp_dealloc, stage_dealloc},
    {Py_tp_methods, stage_methods},
    {Py_tp_getset, stage_getset},
    {0, NULL},
};

PyType_Spec stage_spec = {
    .name = "ovstage._native.Stage",
    .basicsize = sizeof(Stage),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = stage_slots,
};
