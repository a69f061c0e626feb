/*
 * write.c - Stage: writes of one attribute, of a batch, deletes, and batches together with deletes.
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

/* Room for so many, and none of them open. Not from calloc, which passes by what this thread has freed: the batch of
 * the write before; a memset from the start would be made a calloc again by the compiler. NULL: MemoryError. */
static batch* batch_new(size_t most) {
  batch* self = malloc(sizeof *self + most * sizeof(payload));
  if (!self) return (batch*)PyErr_NoMemory();
  self->count = 0;
  memset(self->payloads, 0, most * sizeof(payload));
  return self;
}

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

/* ---- One attribute ----------------------------------------------------------------------------------------------- */

static const write_form long_form = {"write_attribute", "attribute", "tensors"},
                        short_form = {"write", "name", "values"};

/* What both forms take. The first five are required. */
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
  TYPE_NAME,
  SLOTS
};

static PyObject* write_one(Stage* self, PyObject* const* slots, const write_form* form) {
  write_arguments entry = {
      .form = form,
      .attribute = slots[ATTRIBUTE],
      .tensors = slots[TENSORS],
      .is_array = slots[IS_ARRAY],
      .index_map = slots[INDEX_MAP],
      .mask = slots[MASK],
      .count = slots[COUNT],
      .cuda_event = slots[EVENT],
      .cuda_stream = slots[STREAM],
      .semantic = slots[SEMANTIC],
      .transfer = slots[TRANSFER],
      .lanes = slots[LANES],
      .type_name = slots[TYPE_NAME],
  };
  batch* inputs = batch_new(1);
  if (!inputs) return NULL;
  inputs->count = 1;

  payload* one = inputs->payloads;
  uint64_t query, ordinal;
  ovstage_prim_mode_t mode;
  if (!payload_open(one, &entry) || !guard_handle(slots[QUERY], "query", &query) ||
      !guard_uint64(slots[ORDINAL], "ordinal", &ordinal) || !guard_prim_mode(slots[PRIM_MODE], &mode) ||
      !stage_begin(self, form->call) || !payload_check_query(one, self, query)) {
    batch_close(inputs);
    return NULL;
  }
  ovstage_enqueue_result_t answer;
  if (one->type_text)
    WITHOUT_GIL(answer = native.go->write_typed(self->instance, query, &one->write, &one->type_name, 1, ordinal, mode));
  else
    WITHOUT_GIL(
        answer = ovstage_write_attribute(self->instance, query, one->write.attribute, ordinal, one->write.data, mode));
  return operation_named(finish(self, inputs, answer), form->call, slots[ATTRIBUTE], &ordinal);
}

static PyObject* stage_write_attribute(PyObject* object, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  static signature sig = {"write_attribute",
                          4,
                          5,
                          {"query", "attribute", "ordinal", "tensors", "is_array", "prim_mode", "semantic", "index_map",
                           "mask", "count", "cuda_event", "cuda_stream", "transfer", "lanes", "type_name"},
                          {0}};
  PyObject* slots[SLOTS];
  return sort_arguments(&sig, args, nargs, kwnames, slots) ? write_one((Stage*)object, slots, &long_form) : NULL;
}

/* The options that only the long form has are left out. */
static PyObject* stage_write(PyObject* object, PyObject* const* args, Py_ssize_t nargs) {
  enum { PRIMS, NAME, AT, VALUES, ARRAYS, MODE, ROLE, CHOSEN, WIDTH, TYPE, ARGUMENTS };
  if (!check_argument_count("_write", nargs, ARGUMENTS)) return NULL;
  PyObject* const slots[SLOTS] = {
      [QUERY] = args[PRIMS],     [ATTRIBUTE] = args[NAME], [ORDINAL] = args[AT],    [TENSORS] = args[VALUES],
      [IS_ARRAY] = args[ARRAYS], [PRIM_MODE] = args[MODE], [SEMANTIC] = args[ROLE], [MASK] = args[CHOSEN],
      [LANES] = args[WIDTH],     [TYPE_NAME] = args[TYPE],
  };
  return write_one((Stage*)object, slots, &short_form);
}

/* ---- Batches ----------------------------------------------------------------------------------------------------- */

/* The fields of a WriteDesc. */
#define FIELD(name) {#name, offsetof(write_arguments, name)}
static const struct {
  const char* name;
  size_t offset;
} fields[] = {
    FIELD(attribute),  FIELD(tensors),     FIELD(is_array), FIELD(index_map), FIELD(mask),  FIELD(count),
    FIELD(cuda_event), FIELD(cuda_stream), FIELD(semantic), FIELD(transfer),  FIELD(lanes), FIELD(type_name),
};
#undef FIELD

static PyObject** field_of(write_arguments* self, size_t i) { return (PyObject**)((char*)self + fields[i].offset); }

/* Takes new references. False: an exception; what was taken is to be dropped all the same. */
static bool read_description(PyObject* description, write_arguments* out) {
  for (size_t i = 0; i < COUNT_OF(fields); i++) {
    if (!(*field_of(out, i) = PyObject_GetAttrString(description, fields[i].name))) return false;
  }
  return true;
}

static void drop_description(write_arguments* self) {
  for (size_t i = 0; i < COUNT_OF(fields); i++) Py_XDECREF(*field_of(self, i));
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
  write_arguments entry = {.form = &long_form};
  bool good = read_description(description, &entry);
  if (good) {
    good = payload_open(self, &entry);
    if (!good) name_entry(entry.attribute, position);
  }
  drop_description(&entry);
  return good;
}

/* What the descriptions of one batch ask of its query. */
static bool check_query(Stage* self, uint64_t query, const payload* payloads, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (payload_check_query(&payloads[i], self, query)) continue;
    name_entry(payloads[i].attribute, (Py_ssize_t)i);
    return false;
  }
  return true;
}

static bool any_type(const batch* inputs) {
  for (size_t i = 0; i < inputs->count; i++)
    if (inputs->payloads[i].type_text) return true;
  return false;
}

static PyObject* stage_write_attributes(PyObject* object, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  enum { QUERY, WRITES, ORDINAL, PRIM_MODE, SLOTS };
  static signature sig = {"write_attributes", 3, 3, {"query", "writes", "ordinal", "prim_mode"}, {0}};
  Stage* self = (Stage*)object;
  PyObject* slots[SLOTS];
  if (!sort_arguments(&sig, args, nargs, kwnames, slots)) return NULL;
  PyObject* writes = guard_sequence(slots[WRITES], "writes", "a sequence of WriteDesc");
  if (!writes) return NULL;
  size_t count = (size_t)PyTuple_Size(writes);
  batch* inputs = batch_new(count);
  ovstage_attribute_write_t* entries = malloc((count + 1) * sizeof *entries);
  ovx_string_or_token_t* types = malloc((count + 1) * sizeof *types);
  bool good = inputs && entries && types;
  if (!good) PyErr_NoMemory();
  for (size_t i = 0; good && i < count; i++) {
    inputs->count = i + 1;
    good = open_description(&inputs->payloads[i], PyTuple_GetItem(writes, (Py_ssize_t)i), (Py_ssize_t)i);
    entries[i] = inputs->payloads[i].write;
    types[i] = inputs->payloads[i].type_name;
  }
  Py_DECREF(writes);
  uint64_t query, ordinal;
  ovstage_prim_mode_t mode;
  good = good && guard_handle(slots[QUERY], "query", &query) && guard_uint64(slots[ORDINAL], "ordinal", &ordinal) &&
         guard_prim_mode(slots[PRIM_MODE], &mode) && stage_begin(self, "write_attributes") &&
         check_query(self, query, inputs->payloads, count);
  if (!good) {
    free(entries);
    free(types);
    if (inputs) batch_close(inputs);
    return NULL;
  }
  ovstage_enqueue_result_t answer;
  if (any_type(inputs))
    WITHOUT_GIL(answer = native.go->write_typed(self->instance, query, entries, types, count, ordinal, mode));
  else
    WITHOUT_GIL(answer = ovstage_write_attributes(self->instance, query, count ? entries : NULL, count, ordinal, mode));
  free(types);
  free(entries); /* copied by the library before it returned; the tensors that they point at are not */
  return operation_named(finish(self, inputs, answer), "write_attributes", NULL, &ordinal);
}

/* ---- Deletes ----------------------------------------------------------------------------------------------------- */

static PyObject* stage_delete(PyObject* object, PyObject* const* args, Py_ssize_t nargs) {
  enum { QUERY, ATTRIBUTES, ORDINAL, ARGUMENTS };
  Stage* self = (Stage*)object;
  uint64_t query, ordinal;
  attribute_names names;
  if (!check_argument_count("_delete", nargs, ARGUMENTS) ||
      !attribute_names_open(&names, args[ATTRIBUTES], "attributes"))
    return NULL;
  PyObject* answer = NULL;
  if (guard_handle(args[QUERY], "query", &query) && guard_uint64(args[ORDINAL], "ordinal", &ordinal) &&
      stage_begin(self, "delete_attributes")) {
    ovstage_enqueue_result_t result;
    WITHOUT_GIL(result = ovstage_delete_attributes(self->instance, query, names.count ? names.data : NULL, names.count,
                                                   ordinal));
    answer = operation_named(operation_new(self, result, NULL), "delete_attributes", NULL, &ordinal);
  }
  attribute_names_close(&names);
  return answer;
}

/* ---- Publications ------------------------------------------------------------------------------------------------ */

/* The structures of one call, over arguments whose memory the tuples and the inputs keep. */
typedef struct {
  size_t delete_count, batch_count;
  ovstage_go_delete_t* deletes;
  attribute_names* names; /* of each delete */
  ovstage_go_batch_t* batches;
  PyObject** writes;                  /* a tuple of WriteDescs for each batch */
  ovstage_attribute_write_t* entries; /* of all batches */
  ovx_string_or_token_t* types;       /* likewise */
  batch* inputs;                      /* likewise */
} publication;

/* Not the inputs: they live until the engine has read them. */
static void publication_close(publication* self) {
  for (size_t i = 0; self->names && i < self->delete_count; i++) attribute_names_close(&self->names[i]);
  for (size_t i = 0; self->writes && i < self->batch_count; i++) Py_XDECREF(self->writes[i]);
  free(self->deletes);
  free(self->names);
  free(self->batches);
  free(self->writes);
  free(self->entries);
  free(self->types);
}

/* One pair of a query and a list, which is the pair's. */
static bool open_pair(PyObject* pairs, size_t at, const char* name, uint64_t* query, PyObject** list) {
  PyObject* pair = PyTuple_GetItem(pairs, (Py_ssize_t)at);
  if (!PyTuple_Check(pair) || PyTuple_Size(pair) != 2) {
    PyErr_Format(PyExc_TypeError, "%s[%zu] must be a pair of a query and a list, got %R", name, at, pair);
    return false;
  }
  *list = PyTuple_GetItem(pair, 1);
  return guard_handle(PyTuple_GetItem(pair, 0), "query", query);
}

static bool open_deletes(publication* self, PyObject* pairs) {
  size_t count = (size_t)PyTuple_Size(pairs);
  self->deletes = calloc(count + 1, sizeof *self->deletes);
  self->names = calloc(count + 1, sizeof *self->names);
  if (!self->deletes || !self->names) return PyErr_NoMemory() != NULL;
  for (; self->delete_count < count; self->delete_count++) {
    size_t i = self->delete_count;
    PyObject* list;
    if (!open_pair(pairs, i, "deletes", &self->deletes[i].query, &list) ||
        !attribute_names_open(&self->names[i], list, "attributes")) {
      return false;
    }
    self->deletes[i].attributes = self->names[i].count ? self->names[i].data : NULL;
    self->deletes[i].attribute_count = self->names[i].count;
  }
  return true;
}

/* The batches with the numbers of their writes, which are to be opened. */
static bool open_batches(publication* self, PyObject* pairs, size_t* total) {
  size_t count = (size_t)PyTuple_Size(pairs);
  self->batches = calloc(count + 1, sizeof *self->batches);
  self->writes = calloc(count + 1, sizeof *self->writes);
  if (!self->batches || !self->writes) return PyErr_NoMemory() != NULL;
  for (; self->batch_count < count; self->batch_count++) {
    size_t i = self->batch_count;
    PyObject* list;
    if (!open_pair(pairs, i, "batches", &self->batches[i].query, &list) ||
        !(self->writes[i] = guard_sequence(list, "writes", "a sequence of WriteDesc"))) {
      return false;
    }
    *total += self->batches[i].write_count = (size_t)PyTuple_Size(self->writes[i]);
  }
  return true;
}

static bool open_writes(publication* self, size_t total) {
  self->inputs = batch_new(total);
  self->entries = malloc((total + 1) * sizeof *self->entries);
  self->types = malloc((total + 1) * sizeof *self->types);
  if (!self->inputs || !self->entries || !self->types) return PyErr_NoMemory() != NULL;
  for (size_t i = 0; i < self->batch_count; i++) {
    self->batches[i].writes = &self->entries[self->inputs->count];
    for (size_t k = 0; k < self->batches[i].write_count; k++) {
      size_t at = self->inputs->count++;
      PyObject* description = PyTuple_GetItem(self->writes[i], (Py_ssize_t)k);
      if (!open_description(&self->inputs->payloads[at], description, (Py_ssize_t)k)) return false;
      self->entries[at] = self->inputs->payloads[at].write;
      self->types[at] = self->inputs->payloads[at].type_name;
    }
  }
  return true;
}

static bool check_batches(Stage* self, const publication* all) {
  const payload* next = all->inputs->payloads;
  for (size_t i = 0; i < all->batch_count; i++) {
    if (!check_query(self, all->batches[i].query, next, all->batches[i].write_count)) return false;
    next += all->batches[i].write_count;
  }
  return true;
}

static PyObject* stage_publish(PyObject* object, PyObject* const* args, Py_ssize_t nargs) {
  enum { DELETES, BATCHES, ORDINAL, ARGUMENTS };
  Stage* self = (Stage*)object;
  if (!check_argument_count("_publish", nargs, ARGUMENTS)) return NULL;
  PyObject* deletes = guard_sequence(args[DELETES], "deletes", "a list of pairs");
  PyObject* batches = deletes ? guard_sequence(args[BATCHES], "batches", "a list of pairs") : NULL;
  publication all = {0};
  uint64_t ordinal;
  size_t total = 0;
  PyObject* operation = NULL;
  if (batches && open_deletes(&all, deletes) && open_batches(&all, batches, &total) && open_writes(&all, total) &&
      guard_uint64(args[ORDINAL], "ordinal", &ordinal) && stage_begin(self, "publish") && check_batches(self, &all)) {
    ovstage_enqueue_result_t answer;
    WITHOUT_GIL(answer = native.go->publish_typed(self->instance, all.deletes, all.delete_count, all.batches,
                                                  all.batch_count, all.types, ordinal));
    operation = finish(self, all.inputs, answer);
  } else if (all.inputs) {
    batch_close(all.inputs);
  }
  publication_close(&all);
  Py_XDECREF(batches);
  Py_XDECREF(deletes);
  return operation;
}

PyMethodDef stage_write_methods[] = {
    {"write_attribute", FAST_KEYWORDS(stage_write_attribute), DOC_Stage_write_attribute},
    {"_write", FAST(stage_write), DOC_Stage__write},
    {"write_attributes", FAST_KEYWORDS(stage_write_attributes), DOC_Stage_write_attributes},
    {"_delete", FAST(stage_delete), DOC_Stage__delete},
    {"_publish", FAST(stage_publish), DOC_Stage__publish},
    {NULL, NULL, 0, NULL},
};
