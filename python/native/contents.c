/*
 * contents.c - Stage: what it holds, by attribute and in numbers, and how long.
 */
#include "native.h"

PyObject* counters_dict(const ovstage_go_counters_t* counters) {
  static const struct {
    const char* name;
    size_t offset;
  } fields[] = {
#define FIELD(name) {#name, offsetof(ovstage_go_counters_t, name)}
      FIELD(live_exports),  FIELD(live_groups),   FIELD(live_maps),     FIELD(live_operations), FIELD(live_queries),
      FIELD(live_reads),    FIELD(bytes_columns), FIELD(bytes_pooled),  FIELD(bytes_copied),    FIELD(live_blocks),
      FIELD(rows_resolved), FIELD(detach_moves),  FIELD(detach_copies), FIELD(maps_adopted),    FIELD(refused_unasked),
#undef FIELD
  };
  PyObject* dict = PyDict_New();
  for (size_t i = 0; dict && i < COUNT_OF(fields); i++) {
    uint64_t value;
    memcpy(&value, (const char*)counters + fields[i].offset, sizeof value);
    PyObject* number = PyLong_FromUnsignedLongLong(value);
    if (!number || PyDict_SetItemString(dict, fields[i].name, number) < 0) Py_CLEAR(dict);
    Py_XDECREF(number);
  }
  return dict;
}

static PyObject* stage_counters(PyObject* object, PyObject* unused) {
  (void)unused;
  Stage* self = (Stage*)object;
  if (!stage_begin(self, "counters")) return NULL;
  ovstage_go_counters_t counters = {.struct_size = sizeof counters};
  ovstage_api_status_t status;
  WITHOUT_GIL(status = native.go->counters(self->instance, &counters));
  return status == OVSTAGE_OK ? counters_dict(&counters) : raise_library_error(status);
}

static PyObject* attribute_row(const ovstage_go_attribute_t* a) {
  return Py_BuildValue("(KK(iii)iNKKKK)", (unsigned long long)a->attribute, (unsigned long long)a->type_name,
                       (int)a->dtype.code, (int)a->dtype.bits, (int)a->dtype.lanes, (int)a->semantic,
                       PyBool_FromLong(a->is_array), (unsigned long long)a->prims, (unsigned long long)a->write_floor,
                       (unsigned long long)a->newest, (unsigned long long)a->bytes);
}

static PyObject* stage_attributes(PyObject* object, PyObject* unused) {
  (void)unused;
  Stage* self = (Stage*)object;
  if (!stage_begin(self, "attributes")) return NULL;
  ovstage_go_attribute_t* rows = NULL;
  size_t room = 0, count = 64;
  while (count > room) { /* others may add some between two calls */
    room = count + count / 8;
    free(rows);
    if (!(rows = malloc(room * sizeof *rows))) return PyErr_NoMemory();
    ovstage_api_status_t status;
    WITHOUT_GIL(status = native.go->attributes(self->instance, rows, sizeof *rows, room, &count));
    if (status != OVSTAGE_OK) {
      free(rows);
      return raise_library_error(status);
    }
  }
  PyObject* list = PyList_New((Py_ssize_t)count);
  for (size_t i = 0; list && i < count; i++) {
    PyObject* row = attribute_row(&rows[i]);
    if (!row || PyList_SetItem(list, (Py_ssize_t)i, row) < 0) Py_CLEAR(list);
  }
  free(rows);
  return list;
}

static PyObject* stage_guard_reads(PyObject* object, PyObject* unused) {
  (void)unused;
  Stage* self = (Stage*)object;
  if (!stage_begin(self, "guard_reads")) return NULL;
  return none_or_raise(native.go->guard_reads(self->instance));
}

static PyObject* stage_keep_history(PyObject* object, PyObject* argument) {
  Stage* self = (Stage*)object;
  uint64_t ordinals;
  if (!guard_uint64(argument, "ordinals", &ordinals) || !stage_begin(self, "keep_history")) return NULL;
  ovstage_api_status_t status;
  WITHOUT_GIL(status = native.go->keep_history(self->instance, ordinals));
  if (status != OVSTAGE_OK) return raise_library_error(status);
  Py_RETURN_NONE;
}

PyMethodDef stage_contents_methods[] = {
    {"_attributes", stage_attributes, METH_NOARGS, DOC_Stage__attributes},
    {"_guard_reads", stage_guard_reads, METH_NOARGS, DOC_Stage__guard_reads},
    {"_keep_history", stage_keep_history, METH_O, DOC_Stage__keep_history},
    {"counters", stage_counters, METH_NOARGS, DOC_Stage_counters},
    {NULL, NULL, 0, NULL},
};
