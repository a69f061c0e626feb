/*
 * group_tensors.c - Group: which row belongs to which prim, and the tensors with the rows.
 */
#include "native.h"

/* ---- Rows -------------------------------------------------------------------------------------------------------- */

/* An index in 0 .. count - 1; a negative one is refused and does not count from the end. It is made a number
 * (guard_int) before anything is asked of the group: __index__ may run any code, which may release the group. */
static bool guard_index(PyObject* number, const char* name, uint64_t count, const char* what, uint32_t* out) {
  int overflow;
  long long index = PyLong_AsLongLongAndOverflow(number, &overflow);
  *out = (uint32_t)index;
  if (!overflow && index >= 0 && (uint64_t)index < count) return true;
  PyErr_Format(PyExc_IndexError, "%s %S is out of range: the group has %llu %s", name, number,
               (unsigned long long)count, what);
  return false;
}

static PyObject* group_prim_index(PyObject* object, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  static signature sig = {"prim_index", 1, 1, {"local"}, {0}};
  Group* self = (Group*)object;
  PyObject* given;
  PyObject* local = sort_arguments(&sig, args, nargs, kwnames, &given) ? guard_int(given, "local", "an int") : NULL;
  const ovstage_prim_group_t* prims = group_prims(self);
  uint32_t i;
  bool good = local && group_open(self, "prim_index") && guard_index(local, "local", prims->count, "prims", &i);
  Py_XDECREF(local);
  return good ? PyLong_FromUnsignedLong(prims->index_map ? prims->index_map[i] : prims->offset + i) : NULL;
}

static PyObject* group_data_row_index(PyObject* object, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  static signature sig = {"data_row_index", 1, 1, {"local"}, {0}};
  Group* self = (Group*)object;
  PyObject* given;
  PyObject* local = sort_arguments(&sig, args, nargs, kwnames, &given) ? guard_int(given, "local", "an int") : NULL;
  const ovstage_data_t* data = group_data(self);
  uint32_t i;
  bool good = local && group_open(self, "data_row_index") && guard_index(local, "local", data->count, "elements", &i);
  Py_XDECREF(local);
  return good ? PyLong_FromUnsignedLong(data->index_map ? data->index_map[i] : i) : NULL;
}

/* ---- Tensors ----------------------------------------------------------------------------------------------------- */

static const DLTensor* tensor_at(Group* self, PyObject* index, const char* what) {
  PyObject* number = guard_int(index, "index", "an int");
  const ovstage_data_t* data = group_data(self);
  uint32_t i;
  bool good = number && group_open(self, what) && guard_index(number, "index", data->tensor_count, "tensors", &i);
  Py_XDECREF(number);
  if (!good) return NULL;
  if (data->tensors) return &data->tensors[i];
  PyErr_SetString(PyExc_ValueError, "the group's tensors are a NULL pointer");
  return NULL;
}

static PyObject* group_tensor_address(PyObject* object, PyObject* index) {
  const DLTensor* tensor = tensor_at((Group*)object, index, "tensor");
  return tensor ? PyLong_FromVoidPtr((void*)(uintptr_t)tensor) : NULL;
}

static PyObject* group_hold(PyObject* object, PyObject* index) {
  keep held;
  if (!tensor_at((Group*)object, index, "tensor") || !group_hold_payload((Group*)object, "tensor", &held)) return NULL;
  return hold_new(held);
}

static PyObject* group_buffer(PyObject* object, PyObject* const* args, Py_ssize_t nargs) {
  enum { INDEX, READONLY, ARGUMENTS };
  Group* self = (Group*)object;
  if (!check_argument_count("_buffer", nargs, ARGUMENTS)) return NULL;
  int readonly = PyObject_IsTrue(args[READONLY]);
  const DLTensor* tensor = readonly < 0 ? NULL : tensor_at(self, args[INDEX], "array");
  keep held;
  if (!tensor || !group_hold_payload(self, "array", &held)) return NULL;
  return buffer_of_tensor(tensor, readonly, held);
}

/* ---- Index maps -------------------------------------------------------------------------------------------------- */

static PyObject* index_buffer(Group* self, const uint32_t* map, uint32_t count, const char* what) {
  if (!group_open(self, what)) return NULL;
  if (!map) return Py_NewRef(Py_None);
  keep held = {0};
  if (self->fetched && self->descriptors) {
    held.descriptors = self->descriptors; /* they keep the maps too */
    native.go->tensors_retain(held.descriptors);
  } else if (self->fetched) { /* a deletion has no descriptors that could be kept: copy */
    held.source = PyBytes_FromStringAndSize((const char*)map, (Py_ssize_t)(count * sizeof *map));
    if (!held.source) return NULL;
    map = (const uint32_t*)PyBytes_AsString(held.source);
  } else {
    held.source = Py_NewRef((PyObject*)self);
  }
  return buffer_of_uint32s(map, count, held);
}

static PyObject* group_prim_index_buffer(PyObject* object, PyObject* unused) {
  (void)unused;
  const ovstage_prim_group_t* prims = group_prims((Group*)object);
  return index_buffer((Group*)object, prims->index_map, prims->count, "prim_index");
}

static PyObject* group_data_index_buffer(PyObject* object, PyObject* unused) {
  (void)unused;
  const ovstage_data_t* data = group_data((Group*)object);
  return index_buffer((Group*)object, data->index_map, data->count, "data_row_index");
}

/* ---- Exports ----------------------------------------------------------------------------------------------------- */

/* A copy is its consumer's to write to; what is written to a copy of a mapped buffer would be lost. */
static bool may_be_private(const Group* self, bool readonly) {
  if (self->kind == GROUP_MAP) {
    PyErr_SetString(PyExc_ValueError,
                    "private=True is not for a map group: what a consumer writes to a copy is not committed");
  } else if (readonly) {
    PyErr_SetString(PyExc_ValueError, "private=True gives memory to write to: leave out readonly=True");
  } else {
    return true;
  }
  return false;
}

static PyObject* group_dlpack(PyObject* object, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  enum { INDEX, READONLY, SHAPE, PRIVATE, SLOTS };
  static signature sig = {"dlpack", 1, 1, {"index", "readonly", "shape", "private"}, {0}};
  Group* self = (Group*)object;
  PyObject* slots[SLOTS];
  if (!sort_arguments(&sig, args, nargs, kwnames, slots)) return NULL;
  drop_parked();
  bool said = is_given(slots[READONLY]);
  int readonly = said ? PyObject_IsTrue(slots[READONLY]) : self->kind == GROUP_READ;
  int private = slots[PRIVATE] ? PyObject_IsTrue(slots[PRIVATE]) : 0;
  if (readonly < 0 || private < 0 || (private && !may_be_private(self, said && readonly))) return NULL;
  PyObject* axes = NULL;
  if (is_given(slots[SHAPE]) && !(axes = axes_of(slots[SHAPE]))) return NULL;
  const DLTensor* tensor = tensor_at(self, slots[INDEX], "dlpack");
  keep held;
  PyObject* made = NULL;
  if (tensor && group_hold_payload(self, "dlpack", &held)) {
    ovstage_instance_t* instance = self->fetched && self->stage ? self->stage->instance : NULL;
    made = managed_of_tensor(instance, tensor, axes, readonly, held);
    if (private) made = managed_private(made);
  }
  Py_XDECREF(axes);
  return made;
}

PyMethodDef group_tensor_methods[] = {
    {"prim_index", FAST_KEYWORDS(group_prim_index), DOC_Group_prim_index},
    {"data_row_index", FAST_KEYWORDS(group_data_row_index), DOC_Group_data_row_index},
    {"dlpack", FAST_KEYWORDS(group_dlpack), DOC_Group_dlpack},
    {"_tensor_address", group_tensor_address, METH_O, DOC_Group__tensor_address},
    {"_hold", group_hold, METH_O, DOC_Group__hold},
    {"_buffer", FAST(group_buffer), DOC_Group__buffer},
    {"_prim_index_buffer", group_prim_index_buffer, METH_NOARGS, DOC_Group__prim_index_buffer},
    {"_data_index_buffer", group_data_index_buffer, METH_NOARGS, DOC_Group__data_index_buffer},
    {NULL, NULL, 0, NULL},
};
