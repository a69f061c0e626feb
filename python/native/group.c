/*
 * group.c - Group: one part of a read's result, or one writable part of a mapped column.
 *
 * The numbers of a group are copied when it is fetched and answer for ever. What leads to memory - rows, tensors, views
 * - asks first whether the group is still open: not released, not committed, its map session not ended.
 *
 * A read group retains its bytes, so that nothing that happens to the stage can take them away before its release. A
 * mapped group must not: a reference of ours would count as a live view, and the commit could not adopt the buffer.
 */
#include "native.h"

Group* group_new(group_kind kind, PyTypeObject* type, Stage* stage) {
  Group* self = (Group*)new_object(type);
  if (!self) return NULL;
  self->kind = kind;
  self->claimed = true;
  self->stage = (Stage*)Py_NewRef((PyObject*)stage);
  return self;
}

PyObject* group_fetched(Group* self, keep held, bool answered, ovstage_api_status_t status) {
  if (answered && status == OVSTAGE_OK) {
    self->descriptors = held.descriptors;
    self->block = held.block;
    self->type_name = held.descriptors ? native.go->tensors_type(held.descriptors) : 0;
    self->fetched = true;
    self->claimed = false;
    return (PyObject*)self;
  }
  Py_DECREF(self);
  if (!answered) return NULL;
  return status == OVSTAGE_ERROR_END_OF_ITERATION ? Py_NewRef(Py_None) : raise_library_error(status);
}

/* ---- Groups that the caller builds ------------------------------------------------------------------------------- */

bool group_raw_of(PyObject* object, void* out, size_t size) {
  Py_buffer view;
  PyObject* raw = PyObject_CheckBuffer(object) ? Py_NewRef(object) : PyObject_GetAttr(object, native.name.raw);
  if (raw && PyObject_GetBuffer(raw, &view, PyBUF_SIMPLE) == 0) {
    bool fits = view.len == (Py_ssize_t)size;
    if (fits) memcpy(out, view.buf, size);
    PyBuffer_Release(&view);
    Py_DECREF(raw);
    if (fits) return true;
  } else {
    PyErr_Clear();
    Py_XDECREF(raw);
  }
  PyObject* text = shown(object);
  if (text) {
    PyErr_Format(PyExc_TypeError, "expected a %s group or its C structure of %zu bytes, got %U",
                 size == sizeof(ovstage_read_group_t) ? "read" : "map", size, text);
  }
  Py_XDECREF(text);
  return false;
}

static int group_init(PyObject* object, PyObject* args, PyObject* kwargs) {
  static char* names[] = {"raw", "stage", NULL};
  Group* self = (Group*)object;
  PyObject *raw, *stage = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:Group", names, &raw, &stage)) return -1;
  if (stage != Py_None && !PyObject_TypeCheck(stage, native.stage)) {
    PyErr_Format(PyExc_TypeError, "stage must be a Stage or None, got %R", stage);
    return -1;
  }
  if (self->fetched || self->source) {
    PyErr_SetString(PyExc_RuntimeError, "a group cannot be initialised twice");
    return -1;
  }
  Py_buffer view;
  if (PyObject_GetBuffer(raw, &view, PyBUF_SIMPLE) < 0) {
    PyErr_Clear();
    view = (Py_buffer){0};
  }
  bool is_read = view.len == sizeof self->raw.read, is_map = view.len == sizeof self->raw.map;
  if (is_read || is_map) memcpy(&self->raw, view.buf, (size_t)view.len);
  if (view.obj) PyBuffer_Release(&view);
  if (!is_read && !is_map) {
    PyObject* text = shown(raw);
    if (text)
      PyErr_Format(PyExc_TypeError,
                   "raw must be the C structure of a read group (120 bytes) or a map group (88), got %U", text);
    Py_XDECREF(text);
    return -1;
  }
  self->kind = is_read ? GROUP_READ : GROUP_MAP;
  self->source = Py_NewRef(raw); /* whatever its pointers lead to is the caller's: this is all that can be kept alive */
  self->stage = stage == Py_None ? NULL : (Stage*)Py_NewRef(stage);
  return 0;
}

/* ---- Open or not ------------------------------------------------------------------------------------------------- */

static bool group_ended(const Group* self) {
  return self->claimed || (self->session && self->session->ended) || (self->borrows && !self->stage->alive);
}

bool group_open(Group* self, const char* what) {
  if (native.forked) return raise_forked(what) != NULL;
  if (!self->fetched && !self->source) {
    PyErr_SetString(PyExc_ValueError, "this group was never initialised");
    return false;
  }
  if (!group_ended(self)) return true;
  raise_stage_error(
      OVSTAGE_ERROR_INVALID_HANDLE,
      self->kind == GROUP_READ ? "%s: the read group has been released" : "%s: the map group has been unmapped", what);
  return false;
}

bool group_claim(Group* self) {
  if (!group_open(self, self->kind == GROUP_READ ? "release_group" : "unmap_group")) return false;
  self->claimed = true;
  return true;
}

void group_let_go(Group* self) {
  keep held = {self->descriptors, self->block, NULL};
  self->descriptors = NULL;
  self->block = NULL;
  keep_release(&held);
}

static PyObject* group_claim_release(PyObject* self, PyObject* unused) {
  (void)unused;
  return group_claim((Group*)self) ? Py_NewRef(Py_None) : NULL;
}

static PyObject* group_unclaim_release(PyObject* self, PyObject* unused) {
  (void)unused;
  ((Group*)self)->claimed = false;
  return Py_NewRef(Py_None);
}

/* ---- Numbers ----------------------------------------------------------------------------------------------------- */

static const ovstage_prim_group_t* prims_of(const Group* self) {
  return self->kind == GROUP_READ ? &self->raw.read.prims : &self->raw.map.prims;
}

static const ovstage_data_t* data_of(const Group* self) {
  return self->kind == GROUP_READ ? &self->raw.read.data : &self->raw.map.data;
}

static const ovstage_attribute_meta_t* meta_of(const Group* self) {
  return self->kind == GROUP_READ ? &self->raw.read.meta : &self->raw.map.meta;
}

#define NUMBER(name, expression)                                  \
  static PyObject* group_##name(PyObject* object, void* unused) { \
    (void)unused;                                                 \
    Group* self = (Group*)object;                                 \
    return PyLong_FromUnsignedLongLong((uint64_t)(expression));   \
  }

#define FLAG(name, expression)                                    \
  static PyObject* group_##name(PyObject* object, void* unused) { \
    (void)unused;                                                 \
    Group* self = (Group*)object;                                 \
    return PyBool_FromLong(expression);                           \
  }

NUMBER(prim_list, prims_of(self)->list)
NUMBER(prim_offset, prims_of(self)->offset)
NUMBER(prim_count, prims_of(self)->count)
FLAG(has_prim_index_map, prims_of(self)->index_map != NULL)
NUMBER(tensor_count, data_of(self)->tensor_count)
NUMBER(data_count, data_of(self)->count)
FLAG(has_data_index_map, data_of(self)->index_map != NULL)
NUMBER(write_floor, meta_of(self)->attribute_write_floor_ordinal)
NUMBER(type_token, self->type_name)
NUMBER(layout_generation, meta_of(self)->layout_generation)
FLAG(released, group_ended(self))

/* A map group's structure ends before these. */
static bool only_read(const Group* self, const char* name) {
  if (self->kind == GROUP_READ) return true;
  PyErr_Format(PyExc_AttributeError, "a map group has no attribute '%s'", name);
  return false;
}

#define READ_NUMBER(name, expression)                                                           \
  static PyObject* group_##name(PyObject* object, void* unused) {                               \
    (void)unused;                                                                               \
    Group* self = (Group*)object;                                                               \
    return only_read(self, #name) ? PyLong_FromUnsignedLongLong((uint64_t)(expression)) : NULL; \
  }

#define READ_FLAG(name, expression)                                     \
  static PyObject* group_##name(PyObject* object, void* unused) {       \
    (void)unused;                                                       \
    Group* self = (Group*)object;                                       \
    return only_read(self, #name) ? PyBool_FromLong(expression) : NULL; \
  }

READ_NUMBER(attribute, self->raw.read.attribute)
READ_NUMBER(ordinal, self->raw.read.ordinal)
READ_FLAG(is_delete, self->raw.read.is_delete)
READ_FLAG(is_array, self->raw.read.is_array)
READ_NUMBER(semantic, self->raw.read.semantic)

static PyObject* group_stage(PyObject* object, void* unused) {
  (void)unused;
  Group* self = (Group*)object;
  return Py_NewRef(self->stage ? (PyObject*)self->stage : Py_None);
}

static PyObject* group_raw(PyObject* object, PyObject* unused) {
  (void)unused;
  Group* self = (Group*)object;
  size_t size = self->kind == GROUP_READ ? sizeof self->raw.read : sizeof self->raw.map;
  return PyBytes_FromStringAndSize((const char*)&self->raw, (Py_ssize_t)size);
}

/* ---- Rows -------------------------------------------------------------------------------------------------------- */

/* An index in 0 .. count - 1; negative ones are no counting from the end here. It is made a number (guard_int) before
 * anything is asked of the group: __index__ may be anybody's code, which may release the group. */
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
  PyObject* slots[1];
  PyObject* local = sort_arguments(&sig, args, nargs, kwnames, slots) ? guard_int(slots[0], "local", "an int") : NULL;
  const ovstage_prim_group_t* prims = prims_of(self);
  uint32_t i;
  bool good = local && group_open(self, "prim_index") && guard_index(local, "local", prims->count, "prims", &i);
  Py_XDECREF(local);
  return good ? PyLong_FromUnsignedLong(prims->index_map ? prims->index_map[i] : prims->offset + i) : NULL;
}

static PyObject* group_data_row_index(PyObject* object, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  static signature sig = {"data_row_index", 1, 1, {"local"}, {0}};
  Group* self = (Group*)object;
  PyObject* slots[1];
  PyObject* local = sort_arguments(&sig, args, nargs, kwnames, slots) ? guard_int(slots[0], "local", "an int") : NULL;
  const ovstage_data_t* data = data_of(self);
  uint32_t i;
  bool good = local && group_open(self, "data_row_index") && guard_index(local, "local", data->count, "elements", &i);
  Py_XDECREF(local);
  return good ? PyLong_FromUnsignedLong(data->index_map ? data->index_map[i] : i) : NULL;
}

/* ---- Tensors ----------------------------------------------------------------------------------------------------- */

static const DLTensor* tensor_at(Group* self, PyObject* index, const char* what) {
  PyObject* number = guard_int(index, "index", "an int");
  const ovstage_data_t* data = data_of(self);
  uint32_t i;
  bool good = number && group_open(self, what) && guard_index(number, "index", data->tensor_count, "tensors", &i);
  Py_XDECREF(number);
  if (!good) return NULL;
  if (data->tensors) return &data->tensors[i];
  PyErr_SetString(PyExc_ValueError, "the group's tensors are a NULL pointer");
  return NULL;
}

bool group_hold_payload(Group* self, const char* what, keep* out) {
  *out = (keep){0};
  if (!self->fetched) {
    out->source = Py_NewRef((PyObject*)self);
    return true;
  }
  ovstage_go_block_t* block = self->block ? self->block : native.go->tensors_block(self->descriptors);
  if (!block && self->kind == GROUP_MAP) { /* a read group without one shows tensors of no elements */
    raise_stage_error(OVSTAGE_ERROR_INVALID_HANDLE, "%s: the group has no bytes any more", what);
    return false;
  }
  *out = keep_retain(self->descriptors, block);
  return true;
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
  Group* self = (Group*)object;
  if (!check_argument_count("_buffer", nargs, 2, 2)) return NULL;
  int readonly = PyObject_IsTrue(args[1]);
  const DLTensor* tensor = readonly < 0 ? NULL : tensor_at(self, args[0], "array");
  keep held;
  if (!tensor || !group_hold_payload(self, "array", &held)) return NULL;
  return buffer_of_tensor(tensor, readonly, held);
}

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
  const ovstage_prim_group_t* prims = prims_of((Group*)object);
  return index_buffer((Group*)object, prims->index_map, prims->count, "prim_index");
}

static PyObject* group_data_index_buffer(PyObject* object, PyObject* unused) {
  (void)unused;
  const ovstage_data_t* data = data_of((Group*)object);
  return index_buffer((Group*)object, data->index_map, data->count, "data_row_index");
}

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
  static signature sig = {"dlpack", 1, 1, {"index", "readonly", "shape", "private"}, {0}};
  Group* self = (Group*)object;
  PyObject* slots[4];
  if (!sort_arguments(&sig, args, nargs, kwnames, slots)) return NULL;
  drop_parked();
  bool said = slots[1] && slots[1] != Py_None;
  int readonly = said ? PyObject_IsTrue(slots[1]) : self->kind == GROUP_READ;
  int private = slots[3] ? PyObject_IsTrue(slots[3]) : 0;
  if (readonly < 0 || private < 0 || (private && !may_be_private(self, said && readonly))) return NULL;
  PyObject* axes = NULL;
  if (slots[2] && slots[2] != Py_None && !(axes = axes_of(slots[2]))) return NULL;
  const DLTensor* tensor = tensor_at(self, slots[0], "dlpack");
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

/* ---- Death ------------------------------------------------------------------------------------------------------- */

/* A read group that nobody released: the subclass releases it, and says that somebody should have. */
static void group_finalize(PyObject* object) {
  Group* self = (Group*)object;
  if (self->kind != GROUP_READ || self->claimed || !self->stage || !self->stage->alive || native.forked) return;
  forgotten(object);
}

static int group_traverse(PyObject* object, visitproc visit, void* arg) {
  Group* self = (Group*)object;
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(self->source);
  Py_VISIT(self->stage);
  return 0;
}

static int group_clear(PyObject* object) {
  Py_CLEAR(((Group*)object)->source);
  return 0;
}

static void group_dealloc(PyObject* object) {
  Group* self = (Group*)object;
  PyObject_GC_UnTrack(object);
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  group_let_go(self);
  if (self->fetched && self->kind == GROUP_READ &&
      !self->claimed) { /* subclasses warn; the memory is ours to give back */
    WITHOUT_GIL(ovstage_release_group(self->stage->instance, &self->raw.read));
  }
  if (self->fetched && self->kind == GROUP_READ && self->raw.read.is_delete && !self->borrows)
    free((uint32_t*)(uintptr_t)self->raw.read.prims.index_map); /* its own copy: see keep_prims */
  map_session_release(self->session);
  Py_XDECREF(self->source);
  Py_XDECREF((PyObject*)self->stage);
  PyErr_Restore(type, value, traceback);
  free_object(object);
}

/* ---- The type ---------------------------------------------------------------------------------------------------- */

static PyMethodDef group_methods[] = {
    {"prim_index", FAST_KEYWORDS(group_prim_index), DOC_Group_prim_index},
    {"data_row_index", FAST_KEYWORDS(group_data_row_index), DOC_Group_data_row_index},
    {"dlpack", FAST_KEYWORDS(group_dlpack), DOC_Group_dlpack},
    {"_raw", group_raw, METH_NOARGS, DOC_Group__raw},
    {"_tensor_address", group_tensor_address, METH_O, DOC_Group__tensor_address},
    {"_hold", group_hold, METH_O, DOC_Group__hold},
    {"_buffer", FAST(group_buffer), DOC_Group__buffer},
    {"_prim_index_buffer", group_prim_index_buffer, METH_NOARGS, DOC_Group__prim_index_buffer},
    {"_data_index_buffer", group_data_index_buffer, METH_NOARGS, DOC_Group__data_index_buffer},
    {"_arrow_schema", arrow_schema, METH_O, DOC_Group__arrow_schema},
    {"_arrow_array", arrow_array, METH_NOARGS, DOC_Group__arrow_array},
    {"_pack", group_pack, METH_O, DOC_Group__pack},
    {"_claim_release", group_claim_release, METH_NOARGS, DOC_Group__claim_release},
    {"_unclaim_release", group_unclaim_release, METH_NOARGS, DOC_Group__unclaim_release},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef group_getset[] = {
    {"stage", group_stage, NULL, DOC_Group_stage, NULL},
    {"released", group_released, NULL, DOC_Group_released, NULL},
    {"prim_list", group_prim_list, NULL, DOC_Group_prim_list, NULL},
    {"prim_offset", group_prim_offset, NULL, DOC_Group_prim_offset, NULL},
    {"prim_count", group_prim_count, NULL, DOC_Group_prim_count, NULL},
    {"has_prim_index_map", group_has_prim_index_map, NULL, DOC_Group_has_prim_index_map, NULL},
    {"tensor_count", group_tensor_count, NULL, DOC_Group_tensor_count, NULL},
    {"data_count", group_data_count, NULL, DOC_Group_data_count, NULL},
    {"has_data_index_map", group_has_data_index_map, NULL, DOC_Group_has_data_index_map, NULL},
    {"attribute_write_floor_ordinal", group_write_floor, NULL, DOC_Group_attribute_write_floor_ordinal, NULL},
    {"layout_generation", group_layout_generation, NULL, DOC_Group_layout_generation, NULL},
    {"_type_token", group_type_token, NULL, DOC_Group__type_token, NULL},
    {"attribute", group_attribute, NULL, DOC_Group_attribute, NULL},
    {"ordinal", group_ordinal, NULL, DOC_Group_ordinal, NULL},
    {"is_delete", group_is_delete, NULL, DOC_Group_is_delete, NULL},
    {"is_array", group_is_array, NULL, DOC_Group_is_array, NULL},
    {"semantic", group_semantic, NULL, DOC_Group_semantic, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot group_slots[] = {
    {Py_tp_doc, DOC_Group},           {Py_tp_init, group_init},
    {Py_tp_new, PyType_GenericNew},   {Py_tp_dealloc, group_dealloc},
    {Py_tp_finalize, group_finalize}, {Py_tp_traverse, group_traverse},
    {Py_tp_clear, group_clear},       {Py_tp_methods, group_methods},
    {Py_tp_getset, group_getset},     {0, NULL},
};

PyType_Spec group_spec = {
    .name = "ovstage._native.Group",
    .basicsize = sizeof(Group),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = group_slots,
};
