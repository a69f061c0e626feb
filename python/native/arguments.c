/*
 * arguments.c - calling conventions: the arguments of one call, each at the index that its name has in the signature.
 */
#include "native.h"

static int slot_of(signature* sig, PyObject* keyword) {
  for (int i = 0; sig->names[i]; i++) {
    if (keyword == sig->interned[i]) return i;
  }
  for (int i = 0; sig->names[i]; i++) {
    if (PyUnicode_CompareWithASCIIString(keyword, sig->names[i]) == 0) return i;
  }
  return -1;
}

bool sort_arguments(signature* sig, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames, PyObject** slots) {
  if (nargs > sig->positional) {
    PyErr_Format(PyExc_TypeError, "%s() takes at most %d positional arguments (%zd given)", sig->function,
                 sig->positional, nargs);
    return false;
  }
  for (int i = 0; sig->names[i]; i++) {
    if (!sig->interned[i] && !(sig->interned[i] = PyUnicode_InternFromString(sig->names[i]))) return false;
    slots[i] = i < nargs ? args[i] : NULL;
  }
  Py_ssize_t keywords = kwnames ? PyTuple_Size(kwnames) : 0;
  for (Py_ssize_t i = 0; i < keywords; i++) {
    PyObject* keyword = PyTuple_GetItem(kwnames, i);
    int slot = slot_of(sig, keyword);
    if (slot < 0 || slots[slot]) {
      PyErr_Format(PyExc_TypeError,
                   slot < 0 ? "%s() got an unexpected keyword argument %R" : "%s() got multiple values for argument %R",
                   sig->function, keyword);
      return false;
    }
    slots[slot] = args[nargs + i];
  }
  for (int i = 0; i < sig->required; i++) {
    if (!slots[i]) {
      PyErr_Format(PyExc_TypeError, "%s() missing required argument: '%s'", sig->function, sig->names[i]);
      return false;
    }
  }
  return true;
}

bool check_argument_count(const char* function, Py_ssize_t nargs, Py_ssize_t count) {
  if (nargs == count) return true;
  PyErr_Format(PyExc_TypeError, "%s() takes %zd arguments (%zd given)", function, count, nargs);
  return false;
}
