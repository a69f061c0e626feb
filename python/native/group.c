/*
 * group.c - one part of a read's result, or one writable part of a mapped column: fetched, open, released.
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

/* ---- Open or not ------------------------------------------------------------------------------------------------- */

bool group_ended(const Group* self) {
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

void group_release_memory(Group* self) {
  keep held = {self->descriptors, self->block, NULL};
  self->descriptors = NULL;
  self->block = NULL;
  keep_release(&held);
}

/* ---- What it holds ----------------------------------------------------------------------------------------------- */

const ovstage_prim_group_t* group_prims(const Group* self) {
  return self->kind == GROUP_READ ? &self->raw.read.prims : &self->raw.map.prims;
}

const ovstage_data_t* group_data(const Group* self) {
  return self->kind == GROUP_READ ? &self->raw.read.data : &self->raw.map.data;
}

const ovstage_attribute_meta_t* group_meta(const Group* self) {
  return self->kind == GROUP_READ ? &self->raw.read.meta : &self->raw.map.meta;
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
