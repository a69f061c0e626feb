/*
 * group_type.c - Group: the type, its numbers, and groups that a caller builds.
 */
#include "native.h"

/* ---- Groups that the caller builds ------------------------------------------------------------------------------- */

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

static PyObject* group_claim_release(PyObject* self, PyObject* unused) {
  (void)unused;
  return group_claim((Group*)self) ? Py_NewRef(Py_None) : NULL;
}

static PyObject* group_unclaim_release(PyObject* self, PyObject* unused) {
  (void)unused;
  ((Group*)self)->claimed = false;
  return Py_NewRef(Py_None);
}

static PyObject* group_raw(PyObject* object, PyObject* unused) {
  (void)unused;
  Group* self = (Group*)object;
  size_t size = self->kind == GROUP_READ ? sizeof self->raw.read : sizeof self->raw.map;
  return PyBytes_FromStringAndSize((const char*)&self->raw, (Py_ssize_t)size);
}

/* ---- Numbers ----------------------------------------------------------------------------------------------------- */

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

NUMBER(prim_list, group_prims(self)->list)
NUMBER(prim_offset, group_prims(self)->offset)
NUMBER(prim_count, group_prims(self)->count)
FLAG(has_prim_index_map, group_prims(self)->index_map != NULL)
NUMBER(tensor_count, group_data(self)->tensor_count)
NUMBER(data_count, group_data(self)->count)
FLAG(has_data_index_map, group_data(self)->index_map != NULL)
NUMBER(write_floor, group_meta(self)->attribute_write_floor_ordinal)
NUMBER(type_token, self->type_name)
NUMBER(layout_generation, group_meta(self)->layout_generation)
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

/* ---- Death ------------------------------------------------------------------------------------------------------- */

/* A read group that was not released: the subclass releases it, and says that the caller should have. */
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
  group_release_memory(self);
  if (self->fetched && self->kind == GROUP_READ &&
      !self->claimed) { /* subclasses warn; the memory is ours to give back */
    WITHOUT_GIL(ovstage_release_group(self->stage->instance, &self->raw.read));
  }
  if (self->fetched && self->kind == GROUP_READ && self->raw.read.is_delete && !self->borrows)
    free((uint32_t*)(uintptr_t)self->raw.read.prims.index_map); /* its own copy: see keep_prims */
  session_release(self->session);
  Py_XDECREF(self->source);
  Py_XDECREF((PyObject*)self->stage);
  PyErr_Restore(type, value, traceback);
  free_object(object);
}

/* ---- The type ---------------------------------------------------------------------------------------------------- */

static PyMethodDef own_methods[] = {
    {"_raw", group_raw, METH_NOARGS, DOC_Group__raw},
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
    {Py_tp_clear, group_clear},       {Py_tp_methods, own_methods},
    {Py_tp_getset, group_getset},     {0, NULL},
};

PyType_Spec group_spec = {
    .name = "ovstage._native.Group",
    .basicsize = sizeof(Group),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = group_slots,
};

PyMethodDef* const group_methods[] = {group_tensor_methods, group_ragged_methods, group_arrow_methods, NULL};
