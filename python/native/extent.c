/*
 * extent.c - how far a DLTensor leads, for descriptors of this package, whose fields may be assigned: what its memory
 * and its arrays for shape and strides hold, and whether it stays inside.
 */
#include "native.h"

/* The attribute of a descriptor, None where it has none; NULL: an exception. */
PyObject* known_attribute(PyObject* object, const char* name) {
  PyObject* found = PyObject_GetAttrString(object, name);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  PyErr_Clear();
  return Py_NewRef(Py_None);
}

bool known_extent(PyObject* tensor, int64_t* held) {
  PyObject* extent = known_attribute(tensor, "_extent");
  if (!extent) return false;
  *held = PyLong_Check(extent) ? PyLong_AsLongLong(extent) : -1;
  Py_DECREF(extent);
  return *held != -1 || !PyErr_Occurred();
}

bool check_extent(const DLTensor* t, int64_t held, PyObject* kind, const char* where) {
  /* The rule of _reach in ovstage/dlpack.py. */
  __extension__ typedef __int128 wide;
  wide lowest = 0, highest = 1, row = (wide)t->dtype.bits * t->dtype.lanes;
  int64_t compact = 1;
  bool fits = true;
  for (int32_t axis = 0; axis < t->ndim; axis++) {
    if (t->shape[axis] <= 0) return true;
  }
  for (int32_t axis = t->ndim - 1; axis >= 0; axis--) {
    int64_t step;
    fits = !__builtin_mul_overflow(t->shape[axis] - 1, t->strides ? t->strides[axis] : compact, &step) && fits;
    if (!t->strides) fits = !__builtin_mul_overflow(compact, t->shape[axis], &compact) && fits;
    if (!fits) break;
    *(step < 0 ? &lowest : &highest) += step;
  }
  wide first = (wide)t->byte_offset - (7 - lowest * row) / 8, last = (wide)t->byte_offset + (highest * row + 7) / 8;
  if (fits && first >= 0 && last <= held) return true;
  if (fits && first >= INT64_MIN && last <= INT64_MAX) {
    PyErr_Format(kind,
                 "%s reaches over bytes %lld to %lld, but its backing buffer holds %lld bytes; make the descriptor "
                 "anew with make_dltensor(array)",
                 where, (long long)first, (long long)last, (long long)held);
  } else {
    PyErr_Format(kind,
                 "%s reaches over more than 2**63 bytes, but its backing buffer holds %lld bytes; make the descriptor "
                 "anew with make_dltensor(array)",
                 where, (long long)held);
  }
  return false;
}

bool known_axes(PyObject* tensor, axes_room* out) {
  *out = (axes_room){0, 0, 0};
  PyObject* axes = known_attribute(tensor, "_axes");
  bool good =
      axes && (!PyTuple_Check(axes) || PyArg_ParseTuple(axes, "KKL", &out->shape, &out->strides, &out->entries));
  Py_XDECREF(axes);
  return good;
}

bool check_axes(const DLTensor* t, const axes_room* room, PyObject* kind, const char* where) {
  bool ours =
      t->shape && ((uintptr_t)t->shape == room->shape || (t->strides && (uintptr_t)t->strides == room->strides));
  if (!ours || t->ndim <= room->entries) return true;
  PyErr_Format(kind,
               "%s has ndim %d, but its arrays for shape and strides have room for %lld; make the descriptor anew with "
               "make_dltensor(array)",
               where, (int)t->ndim, room->entries);
  return false;
}
