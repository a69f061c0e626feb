/*
 * object.c - what exists once in the process, and what all objects of the extension share: attributes of the package,
 * their memory, their methods, and what is said of one that was dropped too early.
 */
#include "native.h"

native_state native;

PyObject* package_attribute(PyObject** slot, const char* module, const char* attribute) {
  if (*slot) return *slot;
  PyObject* imported = PyImport_ImportModule(module);
  *slot = imported ? PyObject_GetAttrString(imported, attribute) : NULL;
  Py_XDECREF(imported);
  return *slot;
}

PyObject* new_object(PyTypeObject* type) {
  allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
  return allocate(type, 0);
}

void free_object(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
  release(self);
  Py_DECREF(type); /* instances of heap types own a reference to their type */
}

bool add_methods(PyTypeObject* type, PyMethodDef* table) {
  for (; table->ml_name; table++) {
    PyObject* method = PyDescr_NewMethod(type, table);
    int added = method ? PyObject_SetAttrString((PyObject*)type, table->ml_name, method) : -1;
    Py_XDECREF(method);
    if (added < 0) return false;
  }
  return true;
}

/* ---- Dropped ----------------------------------------------------------------------------------------------------- */

/* Whether the interpreter is on its way out: modules are being emptied, and whatever is left goes with the process. */
bool finalizing(void) {
  PyObject* ask = PySys_GetObject("is_finalizing"); /* borrowed; gone with the last of sys */
  PyObject* answer = ask ? PyObject_CallNoArgs(ask) : NULL;
  bool leaving = answer != Py_False;
  Py_XDECREF(answer);
  PyErr_Clear();
  return leaving;
}

void forgotten(PyObject* object) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject* answer = finalizing() ? Py_NewRef(Py_None) : PyObject_CallMethod(object, "_forgotten", NULL);
  if (!answer) PyErr_WriteUnraisable(object);
  Py_XDECREF(answer);
  PyErr_Restore(type, value, traceback);
}
