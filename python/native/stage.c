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
    {"destroy", stage_destroy, METH_NOARGS,
     "destroy($self)\n--\n\nEnd the stage. Groups, views and exports stay valid. Idempotent; a failure raises and "
     "keeps the stage."},
    {"_refuse_fork", stage_refuse_fork, METH_O,
     "_refuse_fork($self, name, /)\n--\n\nRaise in a forked child, as every call does; before anything is locked."},
    {"last_error", stage_last_error, METH_NOARGS,
     "last_error($self)\n--\n\nThe text of this thread's last refused call; empty if the last call was not refused."},

    {"wait_op", FAST_KEYWORDS(stage_wait_op),
     "wait_op($self, op_id, timeout=18446744073709551615)\n--\n\n"
     "Wait for an operation: (code, failed op ids, lowest pending op id). Never raises for a failed one, releases "
     "nothing."},
    {"release_op", FAST_KEYWORDS(stage_release_op),
     "release_op($self, op_id)\n--\n\nForget a finished operation; the status."},
    {"op_error", stage_op_error, METH_O,
     "op_error($self, op_id, /)\n--\n\nWhy an operation failed that this thread's last wait_op reported; else empty."},
    {"op_status", stage_op_status, METH_O,
     "op_status($self, op_id, /)\n--\n\nThe status a finished operation ended with; INVALID_HANDLE if it is not "
     "known."},

    {"write_attribute", FAST_KEYWORDS(stage_write_attribute),
     "write_attribute($self, query, attribute, ordinal, tensors, *, is_array, prim_mode=0, semantic=0, index_map=None, "
     "mask=None, count=None, cuda_event=None, cuda_stream=None, transfer=False, lanes=None, type_name=None)\n--\n\n"
     "Write one attribute of the query's prims at an ordinal; an Operation.\n\n"
     "tensors is one tensor, or a list or tuple of several: NumPy arrays, objects with __dlpack__, DLTensors, or what "
     "NumPy makes an array of. Their bytes are copied when the write runs, whatever their strides.\n\n"
     "is_array says whether a prim has one value or an array of them. An array column takes one tensor per prim, or a "
     "single one that is cut into equal rows. index_map gives the source row of each target, mask a bit for each "
     "target "
     "to write, count the number of targets. lanes=k makes tuples of the trailing axes of each tensor, which array\n"
     "columns need said: their rows of shape (n, 3) are 3 n numbers, with lanes=3 they are n triples.\n\n"
     "transfer=True gives the tensors away: the caller promises not to write to their memory any more. A packed one at "
     "an address that is a multiple of 64, with the newest values of a whole fixed-size column, becomes the column "
     "without a copy; any other is copied. Either way it is let go of once, on a Python thread, when it is not needed "
     "any more.\n\n"
     "type_name says what the values are called where they come from, such as the USD type 'color3f' or 'string'. It "
     "is "
     "part of what a column is, like semantic: another one on the same prims is refused, none goes where the others "
     "are."},
    {"write_attributes", FAST_KEYWORDS(stage_write_attributes),
     "write_attributes($self, query, writes, ordinal, *, prim_mode=0)\n--\n\n"
     "Write several attributes, each described by a WriteDesc, at one ordinal: all of them or none; one Operation."},
    {"_publish", FAST(stage_publish),
     "_publish($self, deletes, batches, ordinal, /)\n--\n\n"
     "Delete, then write, all of it or nothing; one Operation. deletes are pairs of a query and attributes, none for "
     "the "
     "prims, batches are pairs of a query and WriteDescs."},
    {"_delete", FAST(stage_delete), "_delete($self, query, attributes, ordinal, /)\n--\n\nAn Operation."},
    {"_tell_unasked", FAST(stage_tell_unasked),
     "_tell_unasked($self, call, ordinal, code, reason, /)\n--\n\n"
     "Count a failure that nobody asked about, and warn."},

    {"advance_write_floor", FAST_KEYWORDS(stage_advance_write_floor),
     "advance_write_floor($self, ordinal, scope=0, attributes=None)\n--\n\n"
     "Seal everything at or below `ordinal`, after the writes that reach it. Never lowers a floor.\n\n"
     "`attributes` belongs to the scopes INCLUDE (these only) and EXCLUDE (all but these); ALL seals every attribute, "
     "whatever it lists."},
    {"get_attribute_write_floor", FAST_KEYWORDS(stage_get_attribute_write_floor),
     "get_attribute_write_floor($self, attribute=None)\n--\n\nAsk for the floor of an attribute, or for the global "
     "one."},
    {"get_oldest_preserved_ordinal", stage_get_oldest_preserved_ordinal, METH_NOARGS,
     "get_oldest_preserved_ordinal($self)\n--\n\n"
     "Ask for the oldest ordinal from which ranges select exactly what changed; 0 until changes were merged."},
    {"fetch_ordinal", FAST_KEYWORDS(stage_fetch_ordinal),
     "fetch_ordinal($self, ordinal_query, timeout=18446744073709551615)\n--\n\nThe answer of an ordinal query."},
    {"release_ordinal_query", stage_release_ordinal_query, METH_O,
     "release_ordinal_query($self, ordinal_query, /)\n--\n\nLet an ordinal query go."},

    {"_query_path_list", stage_query_path_list, METH_O,
     "_query_path_list($self, path_list, /)\n--\n\nA Query, which keeps the list."},
    {"_name_query", FAST(stage_name_query),
     "_name_query($self, path_list, owner, /)\n--\n\nThe owner, its attribute handle being the number of a query."},
    {"_query", FAST(stage_query),
     "_query($self, filter, attributes, /)\n--\n\nA Query; a filter is (match, conditions), each of which is a "
     "filter or (attribute, op, values)."},
    {"_query_where", FAST(stage_query_where),
     "_query_where($self, query, mask, count, /)\n--\n\nA query of some prims of another."},
    {"_refresh_query", stage_refresh_query, METH_O, "_refresh_query($self, query, /)\n--\n\nAn Operation."},
    {"_query_result", FAST_KEYWORDS(stage_query_result),
     "_query_result($self, query, timeout=18446744073709551615)\n--\n\n(attribute tokens, total prim count, all "
     "handle)"},
    {"release_query", stage_release_query, METH_O,
     "release_query($self, query, /)\n--\n\nLet a query go, after the operations that use it."},

    {"read_attributes", FAST_KEYWORDS(stage_read_attributes),
     "read_attributes($self, query, attrs, ordinal_range)\n--\n\n"
     "Open a snapshot of sealed values, or of what changed in a range.\n\n"
     "An attribute that no queried prim has contributes no group. A prim that has been written at or below the end of "
     "the range, but has no sealed value yet, fails the read with WRITE_FLOOR_VIOLATION. Neither the read nor its "
     "groups keep writers from writing.\n\n"
     "OrdinalRange.between selects the prims that changed in it and serves their values as of its end; those that lost "
     "the attribute come in groups with is_delete and no tensors. A prim that changed again after the end is "
     "OUT_OF_RANGE: end the range at the write floor."},
    {"fetch_read_next", FAST_KEYWORDS(stage_fetch_read_next),
     "fetch_read_next($self, read, timeout=18446744073709551615)\n--\n\nThe next group of a read, None after the "
     "last."},
    {"_read_missing", stage_read_missing, METH_O,
     "_read_missing($self, read, /)\n--\n\n[(token, why the read serves nothing of it)], for an open read."},
    {"release_read", stage_release_read, METH_O,
     "release_read($self, read, /)\n--\n\nLet a read go. Its groups stay valid."},
    {"release_group", stage_release_group, METH_O,
     "release_group($self, group, /)\n--\n\n"
     "Give a ReadGroup back, or any object that has the structure of one as raw. Answers at once."},

    {"_map", FAST(stage_map),
     "_map($self, query, attribute, ordinal, prim_mode, dtype, semantic, element_sizes, initial, group_rows, /)\n--\n\n"
     "A Map."},
    {"_fetch_map", FAST(stage_fetch_map),
     "_fetch_map($self, mapping, timeout, cls, /)\n--\n\nThe next writable group as a cls; None after the last."},
    {"_unmap_group", FAST(stage_unmap_group),
     "_unmap_group($self, mapping, group, stream, event, commit, /)\n--\n\nAn Operation."},
    {"_unmap", FAST(stage_unmap), "_unmap($self, mapping, stream, event, commit, /)\n--\n\nAn Operation."},
    {"_abort", stage_abort, METH_O, "_abort($self, mapping, /)\n--\n\nEnd a session without committing the rest."},

    {"_clone", FAST(stage_clone), "_clone($self, source, targets, ordinal, /)\n--\n\nAn Operation."},
    {"_get_hierarchy", FAST(stage_get_hierarchy),
     "_get_hierarchy($self, path_list, ordinal, relation, /)\n--\n\nA Hierarchy."},
    {"_fetch_hierarchy", stage_fetch_hierarchy, METH_O,
     "_fetch_hierarchy($self, hierarchy, /)\n--\n\n(ordinal, [(status, paths)])"},
    {"release_hierarchy", stage_release_hierarchy, METH_O,
     "release_hierarchy($self, hierarchy, /)\n--\n\nLet a hierarchy query go."},
    {"_prototype_roots", stage_prototype_roots, METH_NOARGS, "_prototype_roots($self)\n--\n\nPath handles."},
    {"_prototype_root", stage_prototype_root, METH_O,
     "_prototype_root($self, instance_root, /)\n--\n\nThe path handle of its prototype."},
    {"_instance_roots", stage_instance_roots, METH_O, "_instance_roots($self, prototype_root, /)\n--\n\nPath handles."},
    {"_hierarchy_models", stage_hierarchy_models, METH_NOARGS,
     "_hierarchy_models($self)\n--\n\n[(id, name, description)]"},
    {"_compute_hierarchy", FAST(stage_compute_hierarchy),
     "_compute_hierarchy($self, input_ordinal, output_ordinal, model, /)\n--\n\nAn Operation."},

    {"_intern_tokens", stage_intern_tokens, METH_O,
     "_intern_tokens($self, strings, /)\n--\n\nA token for each string."},
    {"_try_name", FAST(stage_try_name),
     "_try_name($self, name, place, trials, /)\n--\n\n"
     "The token of a name; a new one goes again with the list, which gets what keeps it."},
    {"_token_strings", stage_token_strings, METH_O, "_token_strings($self, tokens, /)\n--\n\nA string for each token."},
    {"_intern_paths", stage_intern_paths, METH_O,
     "_intern_paths($self, strings, /)\n--\n\nA path handle for each string."},
    {"_path_strings", stage_path_strings, METH_O,
     "_path_strings($self, paths, /)\n--\n\nA string for each path handle."},
    {"_list_from_paths", FAST(stage_list_from_paths),
     "_list_from_paths($self, paths, cls, attributes, /)\n--\n\n"
     "A new path list, as a cls with these attributes; its _references are noted in _path_list_refs."},
    {"_list_from_strings", FAST(stage_list_from_strings),
     "_list_from_strings($self, paths, cls, attributes, /)\n--\n\nThe same for paths as text."},
    {"_list_of_known", FAST(stage_list_of_known),
     "_list_of_known($self, paths, cls, attributes, /)\n--\n\nThe same for paths that are only asked for: no new one "
     "stays."},
    {"_list_add", FAST(stage_list_add),
     "_list_add($self, path_list, tokens, /)\n--\n\nAdd a reference, and a token to the list."},
    {"_list_release", stage_list_release, METH_O, "_list_release($self, path_list, /)\n--\n\nDrop a reference."},
    {"_list_give_back", FAST(stage_list_give_back),
     "_list_give_back($self, path_list, references, tokens, /)\n--\n\n"
     "Take a token and drop its reference; False if there is none. Forgets references that are empty then."},
    {"_list_count", stage_list_count, METH_O, "_list_count($self, path_list, /)\n--\n\nThe number of paths."},
    {"_list_paths", stage_list_paths, METH_O, "_list_paths($self, path_list, /)\n--\n\nThe path handles."},

    {"_attributes", stage_attributes, METH_NOARGS,
     "_attributes($self)\n--\n\n[(token, type token, (code, bits, lanes), semantic, is_array, prims, write floor)]"},
    {"_guard_reads", stage_guard_reads, METH_NOARGS,
     "_guard_reads($self)\n--\n\nEnd the process when somebody writes to sealed values."},
    {"_keep_history", stage_keep_history, METH_O,
     "_keep_history($self, ordinals, /)\n--\n\nKeep values readable as of this many sealed ordinals."},
    {"counters", stage_counters, METH_NOARGS,
     "counters($self)\n--\n\nWhat is alive and what was done, by name. Each live_ number is 0 once everything was "
     "given back."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef stage_getset[] = {
    {"alive", stage_alive, NULL, "True from creation to destroy().", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot stage_slots[] = {
    {Py_tp_doc, "Stage(name=None)\n--\n\nOne native instance: an empty stage with a write floor of 0."},
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
