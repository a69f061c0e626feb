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
  const char* call;    /* what the caller called; NULL: it need not be asked about */
  PyObject* attribute; /* its name or token; NULL: none, or several */
  uint64_t ordinal;
  uint64_t thread;                 /* of a refusal: the thread of the call ... */
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

typedef struct {
  ovstage_instance_t* instance;
  uint64_t op;
  ovstage_op_wait_result_t result;
} wait_call;

static ovstage_api_status_t attempt_wait(void* closure, uint64_t timeout) {
  wait_call* call = closure;
  return ovstage_wait_op(call->instance, call->op, timeout, &call->result);
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
  PyObject* given;
  uint64_t timeout;
  self->asked = true;
  if (!sort_arguments(&sig, args, nargs, kwnames, &given) || !guard_timeout(given, &timeout)) return NULL;
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
  if (!self->stage->alive) { /* destroy has waited for everything: the inputs are not read any more */
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

/* The caller has read the text of this thread's last refusal. */
static void refusal_read(Stage* stage, PyObject* text) {
  uint64_t here = PyThread_get_thread_ident();
  for (Operation* at = stage->refusals; at; at = at->older) {
    if (at->thread != here) continue;
    if (PyUnicode_Compare(at->text, text) == 0) at->asked = true;
    return; /* an earlier one is not what the text is about */
  }
}

/* With the object out of reach already: what the warning runs cannot see it. */
static void warn_unasked(Operation* self) {
  bool refused = self->status != OVSTAGE_OK;
  if (!tell_unasked(self->stage, self->call, self->attribute, self->has_ordinal ? &self->ordinal : NULL,
                    refused ? self->status : self->code, refused ? "was refused" : "failed", self->text, 1)) {
    PyErr_WriteUnraisable((PyObject*)self->stage);
  }
}

/* ---- By number --------------------------------------------------------------------------------------------------- */

static PyObject* stage_wait_op(PyObject* object, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  enum { OP_ID, TIMEOUT, SLOTS };
  static signature sig = {"wait_op", 2, 1, {"op_id", "timeout"}, {0}};
  Stage* self = (Stage*)object;
  PyObject* slots[SLOTS];
  wait_call call = {0};
  uint64_t timeout;
  if (!sort_arguments(&sig, args, nargs, kwnames, slots) || !guard_uint64(slots[OP_ID], "op_id", &call.op) ||
      !guard_timeout(slots[TIMEOUT], &timeout) || !stage_begin(self, "wait_op")) {
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
  PyObject* given;
  uint64_t op;
  if (!sort_arguments(&sig, args, nargs, kwnames, &given) || !guard_uint64(given, "op_id", &op) ||
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

static PyObject* stage_last_error(PyObject* self, PyObject* unused) {
  (void)unused;
  PyObject* text = string_of(ovstage_get_last_error());
  if (text) refusal_read((Stage*)self, text);
  return text;
}

PyMethodDef stage_operation_methods[] = {
    {"wait_op", FAST_KEYWORDS(stage_wait_op), DOC_Stage_wait_op},
    {"release_op", FAST_KEYWORDS(stage_release_op), DOC_Stage_release_op},
    {"op_error", stage_op_error, METH_O, DOC_Stage_op_error},
    {"op_status", stage_op_status, METH_O, DOC_Stage_op_status},
    {"last_error", stage_last_error, METH_NOARGS, DOC_Stage_last_error},
    {NULL, NULL, 0, NULL},
};

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
