/*
 * handle.c - Handle: a numbered native object, the stage it belongs to, and the operation that opens it.
 *
 * The base of Query, Read, Map and the others. A handle is open until its end is claimed. Claims are made under the
 * GIL, so that of two threads that end a handle one is refused.
 */
#include "native.h"

typedef struct {
  PyObject_HEAD Stage* stage; /* NULL before __init__ */
  PyObject* op;               /* an Operation, or NULL: it was open at once */
  uint64_t number;            /* 0: it was refused */
  bool open;
  PyObject* trials;          /* what keeps the names that it was asked for, or NULL */
  const handle_class* class; /* NULL: how it ends is not known */
} Handle;

static bool is_handle(PyObject* object) { return PyObject_TypeCheck(object, native.handle); }

/* ---- Classes ----------------------------------------------------------------------------------------------------- */

bool handle_drop(Stage* stage, uint64_t number, end_function end) {
  ovstage_enqueue_result_t result;
  WITHOUT_GIL(result = end(stage->instance, number));
  if (result.status == OVSTAGE_OK) ovstage_release_op(stage->instance, result.op_index);
  return result.status == OVSTAGE_OK;
}
static handle_class* classes; /* that objects of Python code may be of */

void handle_class_add(handle_class* class) {
  class->next = classes;
  classes = class;
}

static PyTypeObject* type_of(handle_class* class) {
  return (PyTypeObject*)package_attribute(&class->type, "ovstage.handles", class->name);
}

/* The class that an object of Python code is of. False: an exception. */
static bool find_class(Handle* self) {
  for (handle_class* class = classes; class; class = class->next) {
    PyTypeObject* type = type_of(class);
    if (!type) return false;
    if (PyObject_TypeCheck((PyObject*)self, type)) self->class = class;
  }
  return true;
}

/* ---- Birth ------------------------------------------------------------------------------------------------------- */

static PyObject* opened(Handle* self, Stage* stage, uint64_t number, PyObject* op) {
  self->stage = (Stage*)Py_NewRef((PyObject*)stage);
  self->op = op;
  self->number = number;
  self->open = true;
  return (PyObject*)self;
}

PyObject* handle_reserve(handle_class* class) {
  PyTypeObject* type = type_of(class);
  Handle* self = type ? (Handle*)new_object(type) : NULL;
  if (self) self->class = class;
  return (PyObject*)self;
}

PyObject* handle_open(PyObject* reserved, Stage* stage, ovstage_enqueue_result_t answer, uint64_t number) {
  Handle* self = (Handle*)reserved;
  bool accepted = answer.status == OVSTAGE_OK;
  PyObject* op = operation_new(stage, answer, NULL);
  if (op) return opened(self, stage, accepted ? number : 0, op);
  if (accepted) self->class->drop(stage, number);
  Py_DECREF(reserved);
  return NULL;
}

PyObject* handle_open_now(PyObject* reserved, Stage* stage, uint64_t number) {
  return opened((Handle*)reserved, stage, number, NULL);
}

void handle_keep_trials(PyObject* handle, PyObject* trials) { ((Handle*)handle)->trials = Py_NewRef(trials); }

PyObject* handle_named(PyObject* handle, const char* call, PyObject* attribute, const uint64_t* ordinal) {
  if (handle) operation_named(((Handle*)handle)->op, call, attribute, ordinal);
  return handle;
}

PyObject* handle_names(PyObject* operation, const char* call, PyObject* handle) {
  PyObject* opened_by = is_handle(handle) ? ((Handle*)handle)->op : NULL;
  return opened_by ? operation_named_like(operation, call, opened_by) : operation_named(operation, call, NULL, NULL);
}

static int handle_init(PyObject* object, PyObject* args, PyObject* kwargs) {
  static char* names[] = {"stage", "handle", "op", NULL};
  Handle* self = (Handle*)object;
  PyObject *stage, *handle, *op;
  uint64_t number;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!OO:Handle", names, native.stage, &stage, &handle, &op) ||
      !guard_uint64(handle, "handle", &number)) {
    return -1;
  }
  if (op != Py_None && !PyObject_TypeCheck(op, native.operation)) {
    PyErr_Format(PyExc_TypeError, "op must be an Operation or None, got %R", op);
    return -1;
  }
  if (self->stage) {
    PyErr_SetString(PyExc_RuntimeError, "a handle cannot be initialised twice");
    return -1;
  }
  if (!find_class(self)) return -1;
  opened(self, (Stage*)stage, number, op == Py_None ? NULL : Py_NewRef(op));
  return 0;
}

/* ---- Open or not ------------------------------------------------------------------------------------------------- */

/* False with an exception: INVALID_HANDLE if it was ended, the code of the cause if it was never opened. */
static bool active(Handle* self) {
  if (self->open && self->number) return true;
  PyObject* name = PyType_GetName(Py_TYPE((PyObject*)self));
  PyObject* how = self->open ? NULL : PyObject_GetAttrString((PyObject*)self, "_ended");
  PyObject* why = self->open && self->op ? PyObject_CallMethod(self->op, "error_message", NULL) : NULL;
  if (name && how) {
    raise_stage_error(OVSTAGE_ERROR_INVALID_HANDLE, "%U %llu has been %S", name, (unsigned long long)self->number, how);
  } else if (name && !PyErr_Occurred()) {
    int64_t refused = self->op ? operation_refusal(self->op) : OVSTAGE_OK;
    raise_stage_error(refused != OVSTAGE_OK ? refused : OVSTAGE_ERROR_INVALID_HANDLE, "%U was never opened: %V", name,
                      why, "");
  }
  Py_XDECREF(name);
  Py_XDECREF(how);
  Py_XDECREF(why);
  return false;
}

bool handle_number(PyObject* object, uint64_t* out) {
  *out = ((Handle*)object)->number;
  return active((Handle*)object);
}

/* ---- Arguments --------------------------------------------------------------------------------------------------- */

/* What an argument of this name must be, and how one gets it. */
static const struct {
  const char *name, *kind, *hint;
} handles[] = {
    {"query", "a Query", "; make one with stage.query_from_path_list(...)"},
    {"read", "a Read", "; make one with stage.read_attributes(...)"},
    {"mapping", "a Map", "; make one with stage.map_attribute(...)"},
    {"ordinal_query", "an OrdinalQuery", "; make one with stage.get_attribute_write_floor(...)"},
    {"hierarchy", "a Hierarchy", "; make one with stage.get_hierarchy_async(...)"},
    {"", "a handle of its own kind", ""},
};

/* A path list is an int, but never the number of one of these: small numbers of both kinds look alike. */
static bool refuse_path_list(PyObject* value, const char* name, const char* kind, const char* hint) {
  static PyObject* class;
  int matches = package_attribute(&class, "ovstage.dictionary", "PathList") ? PyObject_IsInstance(value, class) : -1;
  if (matches <= 0) return matches == 0;
  PyObject* released = PyObject_GetAttrString(value, "released"); /* not its repr, which asks the stage for the paths */
  if (!released) return false;
  PyErr_Format(PyExc_TypeError, "%s must be %s, got PathList(%S, %s)%s", name, kind, value,
               released == Py_True ? "released" : "owned", hint);
  Py_DECREF(released);
  return false;
}

bool guard_handle(PyObject* value, const char* name, uint64_t* out) {
  if (PyLong_CheckExact(value)) return guard_uint64(value, name, out);
  if (PyObject_TypeCheck(value, native.handle)) return handle_number(value, out);
  size_t k = 0;
  while (*handles[k].name && strcmp(handles[k].name, name) != 0) k++;
  if (PyLong_Check(value) && !refuse_path_list(value, name, handles[k].kind, handles[k].hint)) return false;
  PyObject* number = guard_int_or_hint(value, name, handles[k].kind, handles[k].hint);
  bool fits = number && unsigned_value(number, name, 64, out);
  Py_XDECREF(number);
  return fits;
}

bool guard_path_list(PyObject* value, uint64_t* out) {
  PyObject* number = guard_int_or_hint(value, "path_list", "a PathList or its number",
                                       "; make one with PathDictionary(stage).create_path_list_from_strings([...])");
  bool fits = number && unsigned_value(number, "path_list", 64, out);
  Py_XDECREF(number);
  return fits;
}

/* ---- Ends -------------------------------------------------------------------------------------------------------- */

bool handle_claim(PyObject* given) {
  if (!is_handle(given)) return true;
  if (!active((Handle*)given)) return false;
  ((Handle*)given)->open = false;
  return true;
}

void handle_reopen(PyObject* given) {
  if (is_handle(given)) ((Handle*)given)->open = true;
}

PyObject* handle_end(PyObject* stage, PyObject* given, const char* name, const char* method, end_function end,
                     PyObject* inputs) {
  Stage* self = (Stage*)stage;
  uint64_t number;
  if (!guard_handle(given, name, &number) || !stage_begin(self, method) || !handle_claim(given)) {
    Py_XDECREF(inputs);
    return NULL;
  }
  ovstage_enqueue_result_t result;
  WITHOUT_GIL(result = end(self->instance, number));
  if (result.status != OVSTAGE_OK) handle_reopen(given);
  return operation_new(self, result, inputs);
}

static PyObject* handle_wait(PyObject* object, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  static signature sig = {"wait", 1, 0, {"timeout"}, {0}};
  Handle* self = (Handle*)object;
  PyObject* given;
  uint64_t timeout;
  if (self->op) return operation_wait(self->op, args, nargs, kwnames);
  return sort_arguments(&sig, args, nargs, kwnames, &given) && guard_timeout(given, &timeout) ? Py_NewRef(Py_None)
                                                                                              : NULL;
}

/* ---- Death ------------------------------------------------------------------------------------------------------- */

/* It is ended here, where no interrupt can come between, and then spoken about in Python. */
static void handle_finalize(PyObject* object) {
  Handle* self = (Handle*)object;
  if (!self->open || !self->number || !self->class || !self->stage || !self->stage->alive || native.forked) return;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  self->open = false;
  if (!finalizing() && self->class->drop(self->stage, self->number) && !self->class->quiet) forgotten(object);
  PyErr_Restore(type, value, traceback);
}

static int handle_traverse(PyObject* object, visitproc visit, void* arg) {
  Handle* self = (Handle*)object;
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(self->stage);
  Py_VISIT(self->op);
  return 0;
}

static void handle_dealloc(PyObject* object) {
  Handle* self = (Handle*)object;
  PyObject_GC_UnTrack(object);
  Py_XDECREF(self->trials);
  Py_XDECREF(self->op);
  Py_XDECREF((PyObject*)self->stage);
  free_object(object);
}

/* ---- The type ---------------------------------------------------------------------------------------------------- */

static PyObject* handle_int(PyObject* self) { return PyLong_FromUnsignedLongLong(((Handle*)self)->number); }

static PyObject* handle_handle(PyObject* self, void* unused) {
  (void)unused;
  return handle_int(self);
}

static PyObject* handle_op(PyObject* self, void* unused) {
  (void)unused;
  PyObject* op = ((Handle*)self)->op;
  return Py_NewRef(op ? op : Py_None);
}

static PyObject* handle_stage(PyObject* self, void* unused) {
  (void)unused;
  Stage* stage = ((Handle*)self)->stage;
  return Py_NewRef(stage ? (PyObject*)stage : Py_None);
}

static PyObject* handle_is_open(PyObject* self, void* unused) {
  (void)unused;
  return PyBool_FromLong(((Handle*)self)->open);
}

static PyMethodDef handle_methods[] = {
    {"wait", FAST_KEYWORDS(handle_wait), DOC_Handle_wait},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef handle_getset[] = {
    {"handle", handle_handle, NULL, DOC_Handle_handle, NULL},
    {"op", handle_op, NULL, DOC_Handle_op, NULL},
    {"_stage", handle_stage, NULL, DOC_Handle__stage, NULL},
    {"_open", handle_is_open, NULL, DOC_Handle__open, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot handle_slots[] = {
    {Py_tp_doc, DOC_Handle},           {Py_tp_init, handle_init},
    {Py_tp_new, PyType_GenericNew},    {Py_tp_dealloc, handle_dealloc},
    {Py_tp_finalize, handle_finalize}, {Py_tp_traverse, handle_traverse},
    {Py_tp_methods, handle_methods},   {Py_tp_getset, handle_getset},
    {Py_nb_int, handle_int},           {0, NULL},
};

PyType_Spec handle_spec = {
    .name = "ovstage._native.Handle",
    .basicsize = sizeof(Handle),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = handle_slots,
};
