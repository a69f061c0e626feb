/*
 * operation.c - Operation: what became of one enqueued call.
 *
 * A refused call has a status and a text and no id. An accepted one has an id, which the library tracks until it is
 * released: wait() releases it, and so does dropping the object - unless the caller has read `op_id`, which may be
 * waited for through the stage as long as it is not released.
 *
 * Inputs that a pending operation still reads are kept here, and go over to the stage if the object is dropped first.
 *
 * A failure that the caller never asks about warns when the object is dropped. Which calls that holds for, and what the
 * warning is to say, is told to operation_named: an operation without a name is dropped in silence.
 */
#include "native.h"

typedef enum {
  UNKNOWN, /* pending, or not yet asked */
  GOOD,    /* done; the library still tracks it */
  FAILED,  /* done; `code` and `text` say why */
  CONSUMED /* waited for and released */
} outcome;

typedef struct Operation {
  PyObject_HEAD Stage* stage; /* NULL before __init__ */
  int64_t status;
  uint64_t op;
  outcome outcome;
  bool id_is_known; /* the caller has read op_id */
  bool asked;       /* the caller has asked what became of it */
  bool has_ordinal;
  int64_t code;
  PyObject* text; /* of a refusal or failure */
  PyObject* inputs;
  const char* call;    /* what the caller called; NULL: nobody has to ask */
  PyObject* attribute; /* its name or token; NULL: none, or several */
  uint64_t ordinal;
  uint64_t thread;                 /* of a refusal: who made the call ... */
  struct Operation *newer, *older; /* ... and the other refusals of the stage whose objects are alive */
} Operation;

static bool has_id(const Operation* self) { return self->status == OVSTAGE_OK && self->op != OVSTAGE_INVALID_OP_ID; }

static bool settle(Operation* self, uint64_t timeout);

/* ---- Birth ------------------------------------------------------------------------------------------------------- */

static void list_refusal(Operation* self) {
  self->thread = PyThread_get_thread_ident();
  self->older = self->stage->refusals;
  if (self->older) self->older->newer = self;
  self->stage->refusals = self;
}

static void unlist_refusal(Operation* self) {
  if (self->newer)
    self->newer->older = self->older;
  else if (self->stage->refusals == self)
    self->stage->refusals = self->older;
  if (self->older) self->older->newer = self->newer;
}

bool operation_prepare(Stage* stage) {
  if (stage->spare) return true;
  stage->spare = new_object(native.operation);
  if (stage->spare) PyObject_GC_UnTrack(stage->spare); /* it refers to nothing */
  return stage->spare != NULL;
}

PyObject* operation_new(Stage* stage, ovstage_enqueue_result_t answer, PyObject* inputs) {
  if (answer.status != OVSTAGE_OK) stage_remember_refusal(stage, answer.status);
  Operation* self = operation_prepare(stage) ? (Operation*)stage->spare : NULL;
  stage->spare = NULL;
  PyObject* text = self && answer.status != OVSTAGE_OK ? stage_refusal_text(stage, answer.status) : NULL;
  if (!self || (answer.status != OVSTAGE_OK && !text)) {
    Py_XDECREF((PyObject*)self);
    if (answer.status == OVSTAGE_OK)
      stage_adopt_orphan(stage, answer.op_index, true, inputs);
    else
      Py_XDECREF(inputs);
    return NULL;
  }
  self->stage = (Stage*)Py_NewRef((PyObject*)stage);
  self->status = answer.status;
  self->op = answer.op_index;
  self->text = text;
  self->inputs = inputs;
  if (answer.status != OVSTAGE_OK) list_refusal(self);
  if (inputs)
    PyObject_GC_Track(self); /* else no cycle can run through here: a stage refers to none that was given out */
  return (PyObject*)self;
}

PyObject* operation_settled(PyObject* made) {
  if (made && has_id((Operation*)made) && !settle((Operation*)made, 0)) Py_CLEAR(made);
  return made;
}

PyObject* operation_named(PyObject* made, const char* call, PyObject* attribute, const uint64_t* ordinal) {
  Operation* self = (Operation*)made;
  if (!self) return NULL;
  self->call = call;
  if (attribute && (PyUnicode_CheckExact(attribute) || PyLong_CheckExact(attribute)))
    self->attribute = Py_NewRef(attribute);
  self->has_ordinal = ordinal != NULL;
  if (ordinal) self->ordinal = *ordinal;
  return made;
}

PyObject* operation_named_like(PyObject* operation, const char* call, PyObject* other) {
  Operation* like = (Operation*)other;
  return operation_named(operation, call, like->attribute, like->has_ordinal ? &like->ordinal : NULL);
}

static int operation_init(PyObject* object, PyObject* args, PyObject* kwargs) {
  static char* names[] = {"stage", "status", "op_id", "keepalive", NULL};
  Operation* self = (Operation*)object;
  PyObject *stage, *status, *op, *keepalive = NULL;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!OO|O:Operation", names, native.stage, &stage, &status, &op,
                                   &keepalive)) {
    return -1;
  }
  int64_t code;
  uint64_t id;
  if (!guard_int64(status, "status", &code) || !guard_uint64(op, "op_id", &id)) return -1;
  if (self->stage) {
    PyErr_SetString(PyExc_RuntimeError, "an Operation cannot be initialised twice");
    return -1;
  }
  PyObject* text = code == OVSTAGE_OK ? NULL : stage_refusal_text((Stage*)stage, code);
  if (code != OVSTAGE_OK && !text) return -1;
  self->stage = (Stage*)Py_NewRef(stage);
  self->status = code;
  self->op = id;
  self->text = text;
  self->inputs = keepalive == Py_None ? NULL : Py_XNewRef(keepalive);
  return 0;
}

int64_t operation_refusal(PyObject* operation) { return ((Operation*)operation)->status; }

/* ---- Looking ----------------------------------------------------------------------------------------------------- */

static bool initialised(Operation* self) {
  if (native.forked) return raise_forked("Operation") != NULL;
  if (self->stage) return true;
  PyErr_SetString(PyExc_ValueError, "this Operation was never initialised");
  return false;
}

/* A failure: by the words of the first failed operation, which is the cause, and with its own code. */
static bool settle_failure(Operation* self, ovstage_api_status_t status, const ovstage_op_wait_result_t* result) {
  uint64_t failed = result->error_op_id_count ? result->error_op_ids[0] : self->op;
  ovx_string_t why = ovstage_get_last_op_error(self->stage->instance, failed);
  PyObject* text = why.length || status == OVSTAGE_OK ? string_of(why) : last_library_text(status);
  if (!text) return false;
  self->code = status;
  if (status == OVSTAGE_OK) {
    ovstage_api_status_t own = native.go->op_status(self->stage->instance, failed);
    bool told = own != OVSTAGE_OK && own != OVSTAGE_ERROR_INVALID_HANDLE;
    self->code = told ? own : OVSTAGE_ERROR_OP_FAILED;
  }
  self->text = text;
  self->outcome = FAILED;
  return true;
}

/* Find out what became of it, waiting at most `timeout`. Leaves UNKNOWN when it is pending. False: an exception. */
static bool settle(Operation* self, uint64_t timeout) {
  wait_call call = {self->stage->instance, self->op, {0}};
  /* A look first: a finished operation is answered by C code without a lock, for which giving up the GIL costs more. */
  ovstage_api_status_t status = attempt_wait(&call, 0);
  if (status == OVSTAGE_ERROR_TIMEOUT && timeout && !wait_in_slices(attempt_wait, &call, timeout, &status))
    return false;
  if (self->outcome != UNKNOWN) return true; /* another thread was faster */
  if (status == OVSTAGE_ERROR_TIMEOUT) return true;
  if (status != OVSTAGE_OK || call.result.error_op_id_count) return settle_failure(self, status, &call.result);
  self->outcome = GOOD;
  return true;
}

static PyObject* operation_done(PyObject* object, PyObject* unused) {
  (void)unused;
  Operation* self = (Operation*)object;
  self->asked = true;
  drop_parked();
  if (!initialised(self)) return NULL;
  if (has_id(self) && self->outcome == UNKNOWN && self->stage->alive && !settle(self, 0)) return NULL;
  bool pending = has_id(self) && self->outcome == UNKNOWN && self->stage->alive;
  if (!pending) Py_CLEAR(self->inputs);
  return PyBool_FromLong(!pending);
}

/* ---- Waiting ----------------------------------------------------------------------------------------------------- */

static PyObject* raise_own(Operation* self, int64_t code) {
  return raise_stage_error_text(code, Py_NewRef(self->text));
}

PyObject* operation_wait(PyObject* object, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  static signature sig = {"wait", 1, 0, {"timeout"}, {0}};
  Operation* self = (Operation*)object;
  PyObject* slots[1];
  uint64_t timeout;
  self->asked = true;
  if (!sort_arguments(&sig, args, nargs, kwnames, slots) || !guard_timeout(slots[0], &timeout)) return NULL;
  drop_parked();
  if (!initialised(self)) return NULL;
  if (self->status != OVSTAGE_OK) {
    Py_CLEAR(self->inputs);
    return raise_own(self, self->status);
  }
  if (self->outcome == CONSUMED) {
    return raise_stage_error(OVSTAGE_ERROR_INVALID_HANDLE, "Operation %llu has already been waited and released",
                             (unsigned long long)self->op);
  }
  if (self->op == OVSTAGE_INVALID_OP_ID) {
    return raise_stage_error(OVSTAGE_ERROR_INVALID_HANDLE, "Operation has no valid op id: op_id is 0");
  }
  if (!self->stage->alive) { /* destroy has waited for everything: nobody reads the inputs any more */
    Py_CLEAR(self->inputs);
    return raise_stage_error(OVSTAGE_ERROR_INVALID_HANDLE, "Operation.wait called after its Stage was destroyed");
  }
  if (self->outcome == UNKNOWN && !settle(self, timeout)) return NULL;
  if (self->outcome == UNKNOWN) {
    return raise_stage_error(OVSTAGE_ERROR_TIMEOUT,
                             "Operation %llu is still pending after %llu ns; it can be waited for again",
                             (unsigned long long)self->op, (unsigned long long)timeout);
  }
  if (self->outcome == CONSUMED) {
    return raise_stage_error(OVSTAGE_ERROR_INVALID_HANDLE, "Operation %llu has already been waited and released",
                             (unsigned long long)self->op);
  }
  bool failed = self->outcome == FAILED;
  self->outcome = CONSUMED;
  PyObject* inputs = self->inputs; /* dropped last: what a deleter does must find this object in order */
  self->inputs = NULL;
  ovstage_api_status_t released = ovstage_release_op(self->stage->instance, self->op);
  PyObject* answer = failed                   ? raise_own(self, self->code)
                     : released != OVSTAGE_OK ? raise_library_error(released)
                                              : Py_NewRef(Py_None);
  if (inputs) {
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    Py_DECREF(inputs);
    PyErr_Restore(type, value, traceback);
  }
  return answer;
}

/* Python's event loops are Python's subject: the generator is ovstage.awaiting's. */
static PyObject* operation_await(PyObject* object) {
  static PyObject* settled;
  ((Operation*)object)->asked = true;
  if (!initialised((Operation*)object) || !package_attribute(&settled, "ovstage.awaiting", "settled")) return NULL;
  return PyObject_CallFunctionObjArgs(settled, object, NULL);
}

static PyObject* operation_error_message(PyObject* object, PyObject* unused) {
  (void)unused;
  Operation* self = (Operation*)object;
  self->asked = true;
  if (!initialised(self)) return NULL;
  if (self->text) return Py_NewRef(self->text);
  if (self->outcome != UNKNOWN || !has_id(self) || !self->stage->alive) return PyUnicode_FromString("");
  return string_of(ovstage_get_last_op_error(self->stage->instance, self->op));
}

/* ---- Dropped unasked --------------------------------------------------------------------------------------------- */

void refusal_read(Stage* stage, PyObject* text) {
  uint64_t here = PyThread_get_thread_ident();
  for (Operation* at = stage->refusals; at; at = at->older) {
    if (at->thread != here) continue;
    if (PyUnicode_Compare(at->text, text) == 0) at->asked = true;
    return; /* an earlier one is not what the text is about */
  }
}

static const char* code_name(int64_t code) {
  static const char* const names[] = {"OK",
                                      "INVALID_ARGUMENT",
                                      "INVALID_HANDLE",
                                      "NOT_FOUND",
                                      "PRIM_NOT_FOUND",
                                      "WRITE_FLOOR_VIOLATION",
                                      "NOT_SUPPORTED",
                                      "QUEUE_FULL",
                                      "END_OF_ITERATION",
                                      "OUT_OF_MEMORY",
                                      "LAYOUT_CHANGED",
                                      "TIMEOUT",
                                      "OP_FAILED",
                                      "OUT_OF_RANGE"};
  return code >= 0 && code < (int64_t)COUNT_OF(names) ? names[code] : "INTERNAL";
}

static PyObject* token_text(Stage* stage, PyObject* token) {
  PyObject* list = stage->alive ? PyTuple_Pack(1, token) : NULL;
  PyObject* texts = list ? stage_token_strings((PyObject*)stage, list) : NULL;
  PyObject* text = texts ? PySequence_GetItem(texts, 0) : NULL;
  Py_XDECREF(texts);
  Py_XDECREF(list);
  return text;
}

/* "write_attribute of "v" at ordinal 2" */
static PyObject* call_text(const char* call, PyObject* name, const uint64_t* ordinal) {
  PyObject* about = name ? PyUnicode_FromFormat("%s of \"%.200U\"", call, name) : PyUnicode_FromString(call);
  if (!about || !ordinal) return about;
  PyObject* text = PyUnicode_FromFormat("%U at ordinal %llu", about, (unsigned long long)*ordinal);
  Py_DECREF(about);
  return text;
}

static ovx_string_t view_of(PyObject* text) {
  Py_ssize_t length = 0;
  const char* bytes = text ? PyUnicode_AsUTF8AndSize(text, &length) : NULL;
  return (ovx_string_t){bytes ? bytes : "", (size_t)length};
}

/* `level` 1 is the line that dropped the operation, or what Python function runs for it; 2 is that function's caller.
 */
static bool warn(PyObject* text, uint64_t held_back, Py_ssize_t level) {
  if (!held_back) return PyErr_WarnFormat(unasked_warning, level, "%U", text) == 0;
  return PyErr_WarnFormat(unasked_warning, level, "%U (%llu more were held back)", text,
                          (unsigned long long)held_back) == 0;
}

static bool tell_unasked(Stage* stage, const char* call, PyObject* attribute, const uint64_t* ordinal, int64_t code,
                         const char* how, PyObject* reason, Py_ssize_t level) {
  if (native.forked || !stage->instance) return true;
  PyObject* name = attribute && PyLong_Check(attribute) ? token_text(stage, attribute) : Py_XNewRef(attribute);
  PyErr_Clear(); /* a number that is no token is not worth a second complaint */
  PyObject* about = call_text(call, name, ordinal);
  PyObject* text =
      about ? PyUnicode_FromFormat("%U %s and nobody asked why: %s: %U", about, how, code_name(code), reason) : NULL;
  bool good = text;
  if (good) {
    ovstage_go_unasked_t failure = {.struct_size = sizeof failure,
                                    .status = (ovstage_api_status_t)code,
                                    .call = {call, strlen(call)},
                                    .attribute = view_of(name),
                                    .reason = view_of(reason),
                                    .text = view_of(text)};
    uint64_t held_back;
    PyErr_Clear(); /* of texts that are no UTF-8 */
    if (native.go->tell_unasked(stage->instance, &failure, &held_back)) good = warn(text, held_back, level);
  }
  Py_XDECREF(text);
  Py_XDECREF(about);
  Py_XDECREF(name);
  return good;
}

PyObject* stage_tell_unasked(PyObject* object, PyObject* const* args, Py_ssize_t nargs) {
  Stage* self = (Stage*)object;
  uint64_t ordinal;
  int64_t code;
  ovx_string_t reason;
  if (!check_argument_count("_tell_unasked", nargs, 4, 4) || !guard_string(args[3], "reason", &reason)) return NULL;
  const char* call = PyUnicode_AsUTF8AndSize(args[0], NULL);
  if (!call || !guard_int64(args[2], "code", &code) ||
      (args[1] != Py_None && !guard_uint64(args[1], "ordinal", &ordinal))) {
    return NULL;
  }
  bool told = tell_unasked(self, call, NULL, args[1] == Py_None ? NULL : &ordinal, code, "failed", args[3], 2);
  return told ? Py_NewRef(Py_None) : NULL;
}

/* With the object out of reach already: what the warning runs cannot see it. */
static void warn_unasked(Operation* self) {
  bool refused = self->status != OVSTAGE_OK;
  if (!tell_unasked(self->stage, self->call, self->attribute, self->has_ordinal ? &self->ordinal : NULL,
                    refused ? self->status : self->code, refused ? "was refused" : "failed", self->text, 1)) {
    PyErr_WriteUnraisable((PyObject*)self->stage);
  }
}

/* ---- Death ------------------------------------------------------------------------------------------------------- */

static int operation_traverse(PyObject* object, visitproc visit, void* arg) {
  Operation* self = (Operation*)object;
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(self->stage);
  Py_VISIT(self->inputs);
  return 0;
}

static void operation_dealloc(PyObject* object) {
  Operation* self = (Operation*)object;
  PyObject_GC_UnTrack(object);
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  if (self->status != OVSTAGE_OK && self->stage) unlist_refusal(self);
  bool tracked = self->stage && has_id(self) && self->outcome != CONSUMED && self->stage->alive && !native.forked;
  if (tracked) {
    if (self->outcome == UNKNOWN && !settle(self, 0)) PyErr_WriteUnraisable((PyObject*)self->stage);
    if (self->outcome == UNKNOWN) {
      stage_adopt_orphan(self->stage, self->op, !self->id_is_known, self->inputs);
      self->inputs = NULL;
    } else if (!self->id_is_known) {
      ovstage_release_op(self->stage->instance, self->op);
    }
  }
  if (self->call && self->text && !self->asked) warn_unasked(self);
  Py_XDECREF(self->inputs);
  Py_XDECREF(self->text);
  Py_XDECREF(self->attribute);
  Py_XDECREF((PyObject*)self->stage);
  PyErr_Restore(type, value, traceback);
  free_object(object);
}

/* ---- The type ---------------------------------------------------------------------------------------------------- */

static PyObject* operation_status(PyObject* self, void* unused) {
  (void)unused;
  ((Operation*)self)->asked = true;
  return PyLong_FromLongLong(((Operation*)self)->status);
}

static PyObject* operation_op_id(PyObject* self, void* unused) {
  (void)unused;
  ((Operation*)self)->id_is_known = true;
  ((Operation*)self)->asked = true;
  return PyLong_FromUnsignedLongLong(((Operation*)self)->op);
}

static PyObject* operation_ok(PyObject* self, void* unused) {
  (void)unused;
  ((Operation*)self)->asked = true;
  return PyBool_FromLong(((Operation*)self)->status == OVSTAGE_OK);
}

/* What became of it, as far as C knows without a lock: a look, which asks for nothing and settles nothing. */
static const char* state_of(const Operation* self) {
  static const char* const states[] = {"accepted", "done", "failed", "waited for"};
  if (self->outcome != UNKNOWN || native.forked || !has_id(self) || !self->stage || !self->stage->alive)
    return states[self->outcome];
  ovstage_api_status_t status = native.go->op_status(self->stage->instance, self->op);
  return status == OVSTAGE_OK ? "done" : status == OVSTAGE_ERROR_TIMEOUT ? "pending" : "failed";
}

static PyObject* operation_repr(PyObject* object) {
  Operation* self = (Operation*)object;
  if (self->status != OVSTAGE_OK)
    return PyUnicode_FromFormat("<Operation refused, status %lld: %V>", (long long)self->status, self->text, "");
  if (self->outcome == FAILED)
    return PyUnicode_FromFormat("<Operation %llu, failed: %V>", (unsigned long long)self->op, self->text, "");
  return PyUnicode_FromFormat("<Operation %llu, %s>", (unsigned long long)self->op, state_of(self));
}

static PyMethodDef operation_methods[] = {
    {"wait", FAST_KEYWORDS(operation_wait), DOC_Operation_wait},
    {"done", operation_done, METH_NOARGS, DOC_Operation_done},
    {"error_message", operation_error_message, METH_NOARGS, DOC_Operation_error_message},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef operation_getset[] = {
    {"status", operation_status, NULL, DOC_Operation_status, NULL},
    {"op_id", operation_op_id, NULL, DOC_Operation_op_id, NULL},
    {"ok", operation_ok, NULL, DOC_Operation_ok, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot operation_slots[] = {
    {Py_tp_doc, DOC_Operation},           {Py_tp_init, operation_init},
    {Py_tp_new, PyType_GenericNew},       {Py_tp_dealloc, operation_dealloc},
    {Py_tp_traverse, operation_traverse}, {Py_tp_repr, operation_repr},
    {Py_am_await, operation_await},       {Py_tp_methods, operation_methods},
    {Py_tp_getset, operation_getset},     {0, NULL},
};

PyType_Spec operation_spec = {
    .name = "ovstage._native.Operation",
    .basicsize = sizeof(Operation),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = operation_slots,
};
