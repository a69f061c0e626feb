/*
 * write.c - Stage: writes of one attribute or of a batch.
 *
 * The payloads of an operation are one allocation. When the call returns the engine has nearly always read them; then
 * the sources are let go at once, on this thread. Otherwise the Operation keeps them.
 */
#include "native.h"

/* Payloads of one operation, in one allocation. */
typedef struct {
  size_t count;
  payload payloads[];
} batch;

static void batch_close(batch* self) {
  for (size_t i = 0; i < self->count; i++) payload_close(&self->payloads[i]);
  free(self);
}

static const char batch_name[] = "ovstage.inputs";

static void end_batch(PyObject* capsule) { batch_close(PyCapsule_GetPointer(capsule, batch_name)); }

/* The Operation of a call that has been made. The sources are let go here unless the engine is still reading them. */
static PyObject* finish(Stage* self, batch* inputs, ovstage_enqueue_result_t answer) {
  for (size_t i = 0; i < inputs->count; i++) inputs->payloads[i].given = true; /* also by a call that was refused */
  PyObject* kept = NULL;
  if (answer.status == OVSTAGE_OK && native.go->op_status(self->instance, answer.op_index) == OVSTAGE_ERROR_TIMEOUT) {
    kept = PyCapsule_New(inputs, batch_name, end_batch);
    if (!kept) { /* leaked: freeing what is being read would be worse */
      stage_adopt_orphan(self, answer.op_index, true, NULL);
      return NULL;
    }
  }
  PyObject* operation = operation_new(self, answer, kept);
  if (kept) return operation;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  batch_close(inputs); /* deleters may run Python, and may not see our exception */
  drop_parked();       /* a tensor of this package has parked what it held */
  PyErr_Restore(type, value, traceback);
  return operation;
}

PyObject* stage_write_attribute(PyObject* object, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  enum {
    QUERY,
    ATTRIBUTE,
    ORDINAL,
    TENSORS,
    IS_ARRAY,
    PRIM_MODE,
    SEMANTIC,
    INDEX_MAP,
    MASK,
    COUNT,
    EVENT,
    STREAM,
    TRANSFER,
    LANES,
    SLOTS
  };
  static signature sig = {"write_attribute",
                          4,
                          5,
                          {"query", "attribute", "ordinal", "tensors", "is_array", "prim_mode", "semantic", "index_map",
                           "mask", "count", "cuda_event", "cuda_stream", "transfer", "lanes"},
                          {0}};
  Stage* self = (Stage*)object;
  PyObject* slots[SLOTS];
  if (!sort_arguments(&sig, args, nargs, kwnames, slots)) return NULL;
  write_arguments entry = {slots[ATTRIBUTE], slots[TENSORS], slots[IS_ARRAY], slots[INDEX_MAP], slots[MASK],
                           slots[COUNT],     slots[EVENT],   slots[STREAM],   slots[SEMANTIC],  slots[TRANSFER],
                           slots[LANES]};
  batch* inputs = calloc(1, sizeof *inputs + sizeof(payload));
  if (!inputs) return PyErr_NoMemory();
  inputs->count = 1;

  payload* one = inputs->payloads;
  uint64_t query, ordinal;
  ovstage_prim_mode_t mode;
  if (!payload_open(one, &entry) || !guard_handle(slots[QUERY], "query", &query) ||
      !guard_uint64(slots[ORDINAL], "ordinal", &ordinal) || !guard_prim_mode(slots[PRIM_MODE], &mode) ||
      !stage_begin(self, "write_attribute")) {
    batch_close(inputs);
    return NULL;
  }
  ovstage_enqueue_result_t answer;
  WITHOUT_GIL(answer =
                  ovstage_write_attribute(self->instance, query, one->write.attribute, ordinal, one->write.data, mode));
  return finish(self, inputs, answer);
}

/* ---- Batches ----------------------------------------------------------------------------------------------------- */

enum { FIELDS = 11 };

/* The fields of a WriteDesc, as new references. False: an exception; what was taken is to be dropped all the same. */
static bool read_description(PyObject* description, PyObject* fields[FIELDS]) {
  static const char* const names[FIELDS] = {"attribute", "tensors",    "is_array",    "index_map", "mask",
                                            "count",     "cuda_event", "cuda_stream", "semantic",  "transfer",
                                            "lanes"};
  for (int i = 0; i < FIELDS; i++) {
    if (!(fields[i] = PyObject_GetAttrString(description, names[i]))) return false;
  }
  return true;
}

/* Say of an exception about one entry which entry it was, if it is of a kind that is raised for wrong arguments. */
static void name_entry(PyObject* attribute, Py_ssize_t position) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (type == PyExc_TypeError || type == PyExc_ValueError || type == PyExc_BufferError) {
    PyObject* name = PyUnicode_Check(attribute) ? PyUnicode_FromFormat("\"%U\"", attribute) : shown(attribute);
    PyObject* text = name ? PyUnicode_FromFormat("writes[%zd] (%U): %S", position, name, value) : NULL;
    PyObject* args = text ? PyTuple_Pack(1, text) : NULL;
    if (args) PyObject_SetAttrString(value, "args", args);
    PyErr_Clear();
    Py_XDECREF(args);
    Py_XDECREF(text);
    Py_XDECREF(name);
  }
  PyErr_Restore(type, value, traceback);
}

static bool open_description(payload* self, PyObject* description, Py_ssize_t position) {
  static PyObject* class;
  if (!package_attribute(&class, "ovstage", "WriteDesc")) return false;
  int matches = PyObject_IsInstance(description, class);
  if (matches < 0) return false;
  if (!matches) {
    PyObject* text = shown(description);
    if (text) PyErr_Format(PyExc_TypeError, "writes[%zd] must be a WriteDesc, got %U", position, text);
    Py_XDECREF(text);
    return false;
  }
  PyObject* fields[FIELDS] = {0};
  bool good = read_description(description, fields);
  if (good) {
    write_arguments entry = {fields[0], fields[1], fields[2], fields[3], fields[4],
                             fields[5], fields[6], fields[7], fields[8], fields[9],
                             fields[10]};
    good = payload_open(self, &entry);
    if (!good) name_entry(fields[0], position);
  }
  for (int i = 0; i < FIELDS; i++) Py_XDECREF(fields[i]);
  return good;
}

PyObject* stage_write_attributes(PyObject* object, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  static signature sig = {"write_attributes", 3, 3, {"query", "writes", "ordinal", "prim_mode"}, {0}};
  Stage* self = (Stage*)object;
  PyObject* slots[4];
  if (!sort_arguments(&sig, args, nargs, kwnames, slots)) return NULL;
  PyObject* writes = guard_sequence(slots[1], "writes", "a sequence of WriteDesc");
  if (!writes) return NULL;
  size_t count = (size_t)PyTuple_Size(writes);
  batch* inputs = calloc(1, sizeof *inputs + count * sizeof(payload));
  ovstage_attribute_write_t* entries = malloc((count + 1) * sizeof *entries);
  bool good = inputs && entries;
  if (!good) PyErr_NoMemory();
  for (size_t i = 0; good && i < count; i++) {
    inputs->count = i + 1;
    good = open_description(&inputs->payloads[i], PyTuple_GetItem(writes, (Py_ssize_t)i), (Py_ssize_t)i);
    entries[i] = inputs->payloads[i].write;
  }
  Py_DECREF(writes);
  uint64_t query, ordinal;
  ovstage_prim_mode_t mode;
  good = good && guard_handle(slots[0], "query", &query) && guard_uint64(slots[2], "ordinal", &ordinal) &&
         guard_prim_mode(slots[3], &mode) && stage_begin(self, "write_attributes");
  if (!good) {
    free(entries);
    if (inputs) batch_close(inputs);
    return NULL;
  }
  ovstage_enqueue_result_t answer;
  WITHOUT_GIL(answer = ovstage_write_attributes(self->instance, query, count ? entries : NULL, count, ordinal, mode));
  free(entries); /* copied by the library before it returned; the tensors that they point at are not */
  return finish(self, inputs, answer);
}
