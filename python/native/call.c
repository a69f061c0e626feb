/*
 * call.c - how a call on a stage begins, and how it answers.
 */
#include "native.h"

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

/* ---- Beginning --------------------------------------------------------------------------------------------------- */

bool operation_prepare(Stage* stage) {
  if (stage->spare) return true;
  stage->spare = new_object(native.operation);
  if (stage->spare) PyObject_GC_UnTrack(stage->spare); /* it refers to nothing */
  return stage->spare != NULL;
}

bool stage_begin(Stage* self, const char* method) {
  if (native.forked) return raise_forked(method) != NULL;
  drop_parked();
  if (self->orphans) drop_finished_orphans(self);
  if (self->alive) return operation_prepare(self);
  raise_stage_error(OVSTAGE_ERROR_INVALID_HANDLE,
                    self->instance ? "%s called after Stage was destroyed" : "%s called before Stage.__init__", method);
  return false;
}

/* ---- Answering --------------------------------------------------------------------------------------------------- */

Stage* usable_stage(PyObject* weak) {
  PyObject* stage = weak ? PyObject_CallNoArgs(weak) : NULL;
  if (stage && PyObject_TypeCheck(stage, native.stage) && ((Stage*)stage)->alive && !native.forked && !finalizing())
    return (Stage*)stage;
  Py_XDECREF(stage);
  return NULL;
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
