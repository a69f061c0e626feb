/*
 * trait.c - what an object that a caller gave is: a text, a truth value, an array that hides elements, a list with an
 * order.
 */
#include "native.h"

/* ---- Attributes that it may have --------------------------------------------------------------------------------- */

/* An attribute that an array may have: 0 without an exception where it has none. */
int optional_attribute(PyObject* object, const char* name, PyObject** out) {
  *out = PyObject_GetAttrString(object, name);
  if (*out) return 1;
  if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return -1;
  PyErr_Clear();
  return 0;
}

int has_attribute(PyObject* object, const char* name) {
  PyObject* found;
  int answer = optional_attribute(object, name, &found);
  Py_XDECREF(found);
  return answer;
}

/* ---- Texts and truth values -------------------------------------------------------------------------------------- */

bool is_text(PyObject* values) { return PyUnicode_Check(values) || PyBytes_Check(values) || PyByteArray_Check(values); }

/* Whether str(object.dtype) is that of truth values: "bool", "torch.bool". */
int has_truth_dtype(PyObject* object) {
  PyObject* dtype;
  int found = optional_attribute(object, "dtype", &dtype);
  if (found <= 0) return found;
  PyObject* name = PyObject_Str(dtype);
  Py_DECREF(dtype);
  if (!name) return -1;
  Py_ssize_t length = PyUnicode_GetLength(name);
  PyObject* ending = PyUnicode_Substring(name, length < 4 ? 0 : length - 4, length);
  found = ending ? PyUnicode_CompareWithASCIIString(ending, "bool") == 0 : -1;
  Py_XDECREF(ending);
  Py_DECREF(name);
  return found;
}

int is_truth(PyObject* value) {
  if (PyBool_Check(value)) return 1;
  if (PyLong_Check(value) || PyFloat_Check(value) || is_text(value)) return 0;
  int truth = has_truth_dtype(value);
  PyObject* axes = NULL;
  if (truth > 0 && (truth = optional_attribute(value, "ndim", &axes)) == 0) return 1;
  if (truth > 0) truth = PyLong_Check(axes) && PyLong_AsLong(axes) == 0; /* an array of one is no truth value */
  Py_XDECREF(axes);
  return truth;
}

/* ---- Masked arrays ----------------------------------------------------------------------------------------------- */

/* numpy.ma.MaskedArray; NULL: an exception, or without one where it has not been imported, so that there can be none.
 */
static PyObject* masked_class(void) {
  static PyObject* class;
  if (class) return class;
  PyObject* name = PyUnicode_InternFromString("numpy.ma");
  PyObject* module = name ? PyImport_GetModule(name) : NULL;
  Py_XDECREF(name);
  if (module) class = PyObject_GetAttrString(module, "MaskedArray");
  Py_XDECREF(module);
  return class;
}

static int hides_own_elements(PyObject* array) {
  static PyObject* is_masked;
  PyObject* ask = package_attribute(&is_masked, "numpy.ma", "is_masked");
  PyObject* answer = ask ? PyObject_CallFunctionObjArgs(ask, array, NULL) : NULL;
  int hidden = answer ? PyObject_IsTrue(answer) : -1;
  Py_XDECREF(answer);
  return hidden;
}

static int hides_elements_of_items(PyObject* list) {
  PyObject* tuple = PySequence_Tuple(list);
  if (!tuple || Py_EnterRecursiveCall(" in a list of tensors")) {
    Py_XDECREF(tuple);
    return -1;
  }
  int hidden = 0;
  for (Py_ssize_t i = 0; hidden == 0 && i < PyTuple_Size(tuple); i++)
    hidden = hides_elements(PyTuple_GetItem(tuple, i));
  Py_LeaveRecursiveCall();
  Py_DECREF(tuple);
  return hidden;
}

int hides_elements(PyObject* value) {
  PyTypeObject* type = Py_TYPE(value);
  unsigned long flags = PyType_GetFlags(type);
  if (flags & (Py_TPFLAGS_LIST_SUBCLASS | Py_TPFLAGS_TUPLE_SUBCLASS)) return hides_elements_of_items(value);
  if (!(flags & Py_TPFLAGS_HEAPTYPE)) return 0; /* as nearly always: masked arrays are written in Python */
  PyObject* class = masked_class();
  if (!class) return PyErr_Occurred() ? -1 : 0;
  return PyType_IsSubtype(type, (PyTypeObject*)class) ? hides_own_elements(value) : 0;
}

bool refuse_hidden(const char* name) {
  PyErr_Format(PyExc_ValueError,
               "%s is a masked array (numpy.ma) that hides elements, which nothing here could keep hidden: pass "
               "array.filled(value), or, to leave prims of a write alone, array.data with mask=",
               name);
  return false;
}

bool check_unmasked(PyObject* value, const char* name) {
  int hidden = hides_elements(value);
  return hidden == 0 || (hidden > 0 && refuse_hidden(name));
}

/* ---- Order ------------------------------------------------------------------------------------------------------- */

bool check_order(PyObject* values, const char* name, const char* expected) {
  static PyObject* class;
  if (PyList_Check(values) || PyTuple_Check(values)) return true;
  int set = PyAnySet_Check(values), mapping = PyDict_Check(values);
  if (!set && !mapping)
    mapping = package_attribute(&class, "collections.abc", "Mapping") ? PyObject_IsInstance(values, class) : -1;
  if (mapping < 0 || (!set && !mapping)) return mapping == 0;
  PyObject* text = shown(values);
  if (text) {
    PyErr_Format(PyExc_TypeError, "%s must be %s, got %U, which %s", name, expected, text,
                 set ? "has no order" : "is a mapping");
  }
  Py_XDECREF(text);
  return false;
}
