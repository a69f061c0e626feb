/*
 * implicit.c - ImplicitQuery: a query that the short form makes in passing.
 *
 * It ends with its last user, without a warning, since there is nothing to forget. It ends in C: in a finaliser of
 * Python an interrupt could come before the release, which would then never happen. It must not keep the stage alive,
 * whose own table of such queries has it.
 */
#include "native.h"

typedef struct {
  PyObject_HEAD uint64_t number; /* 0 before __init__ */
  PyObject* stage;               /* a weak reference */
} ImplicitQuery;

static int implicit_init(PyObject* object, PyObject* args, PyObject* kwargs) {
  static char* names[] = {"stage", "path_list", NULL};
  ImplicitQuery* self = (ImplicitQuery*)object;
  PyObject *given, *path_list;
  uint64_t list, number = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O:ImplicitQuery", names, native.stage, &given, &path_list) ||
      !guard_path_list(path_list, &list)) {
    return -1;
  }
  if (self->stage) {
    PyErr_SetString(PyExc_RuntimeError, "a query cannot be initialised twice");
    return -1;
  }
  Stage* stage = (Stage*)given;
  PyObject* weak = PyWeakref_NewRef(given, NULL);
  if (!weak || !stage_begin(stage, "query_from_path_list")) {
    Py_XDECREF(weak);
    return -1;
  }
  ovstage_api_status_t status;
  WITHOUT_GIL(status = ovstage_query_from_path_list(stage->instance, list, &number));
  if (status != OVSTAGE_OK) {
    Py_DECREF(weak);
    raise_library_error(status);
    return -1;
  }
  self->stage = weak;
  self->number = number;
  return 0;
}

static void implicit_dealloc(PyObject* object) {
  ImplicitQuery* self = (ImplicitQuery*)object;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  Stage* stage = self->number ? usable_stage(self->stage) : NULL;
  if (stage) query_class.drop(stage, self->number);
  Py_XDECREF((PyObject*)stage);
  Py_XDECREF(self->stage);
  PyErr_Restore(type, value, traceback);
  free_object(object);
}

static PyObject* implicit_index(PyObject* self) { return PyLong_FromUnsignedLongLong(((ImplicitQuery*)self)->number); }

static PyObject* implicit_handle(PyObject* self, void* unused) {
  (void)unused;
  return implicit_index(self);
}

static PyObject* implicit_of(PyObject* self, PyObject* stage) {
  PyObject* own = ((ImplicitQuery*)self)->stage ? PyObject_CallNoArgs(((ImplicitQuery*)self)->stage) : NULL;
  bool same = own == stage;
  Py_XDECREF(own);
  return PyErr_Occurred() ? NULL : PyBool_FromLong(same);
}

static PyMethodDef implicit_methods[] = {
    {"of", implicit_of, METH_O, DOC_ImplicitQuery_of},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef implicit_getset[] = {
    {"handle", implicit_handle, NULL, DOC_ImplicitQuery_handle, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot implicit_slots[] = {
    {Py_tp_doc, DOC_ImplicitQuery},    {Py_tp_init, implicit_init},
    {Py_tp_new, PyType_GenericNew},    {Py_tp_dealloc, implicit_dealloc},
    {Py_tp_methods, implicit_methods}, {Py_tp_getset, implicit_getset},
    {Py_nb_index, implicit_index},     {0, NULL},
};

PyType_Spec implicit_spec = {
    .name = "ovstage._native.ImplicitQuery",
    .basicsize = sizeof(ImplicitQuery),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = implicit_slots,
};
