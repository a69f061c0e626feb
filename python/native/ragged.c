/*
 * ragged.c - rows of an array column as one run of elements, and how long each is.
 *
 * Rows that were written together lie in the column's memory one behind the other: then the run is a view of it.
 * Otherwise it is a copy, made in one pass without the GIL.
 */
#include "native.h"

/* Rows of a group, in the order that is asked for. */
typedef struct {
  const DLTensor* tensors;
  const uint32_t* rows; /* NULL: all tensors, in their order */
  size_t count;
  size_t element; /* bytes */
} run;

static const DLTensor* row_at(const run* self, size_t i) { return &self->tensors[self->rows ? self->rows[i] : i]; }

/* Writes the length of each row and answers with the sum. */
static int64_t measure(const run* self, int64_t* lengths) {
  int64_t total = 0;
  for (size_t i = 0; i < self->count; i++) total += lengths[i] = row_at(self, i)->shape[0];
  return total;
}

const void* start_of_run(const DLTensor* tensors, const uint32_t* rows, size_t count, size_t element) {
  const char *start = NULL, *end = NULL;
  for (size_t i = 0; i < count; i++) {
    const DLTensor* row = &tensors[rows ? rows[i] : i];
    if (!row->shape[0]) continue;
    const char* at = (const char*)row->data + row->byte_offset;
    if (!start) start = at;
    if (end && at != end) return NULL;
    end = at + (size_t)row->shape[0] * element;
  }
  return start;
}

static void copy_run(const run* self, const int64_t* lengths, char* to) {
  for (size_t i = 0; i < self->count; i++) {
    size_t size = (size_t)lengths[i] * self->element;
    if (size) memcpy(to, row_at(self, i)->data, size);
    to += size;
  }
}

static PyObject* view_of_run(const run* self, const void* start, int64_t total, keep held) {
  DLTensor whole = self->tensors[0];
  total *= row_width(&whole);
  whole.data = (void*)(uintptr_t)start;
  whole.byte_offset = 0;
  whole.ndim = 1;
  whole.shape = &total;
  whole.dtype.lanes = 1;
  return buffer_of_tensor(&whole, true, held);
}

static PyObject* copy_of_run(const run* self, const int64_t* lengths, int64_t total, keep held) {
  PyObject* bytes = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)((size_t)total * self->element));
  if (bytes) WITHOUT_GIL(copy_run(self, lengths, PyBytes_AsString(bytes)));
  keep_release(&held);
  return bytes;
}

/* The rows that are asked for must be tensors of the group. */
static bool check_rows(const run* self, uint32_t tensors) {
  for (size_t i = 0; self->rows && i < self->count; i++) {
    if (self->rows[i] < tensors) continue;
    PyErr_Format(PyExc_IndexError, "rows[%zu] is %u, but the group has %u tensors", i, self->rows[i], tensors);
    return false;
  }
  return true;
}

/* Takes `held` over. */
static PyObject* pack(const run* self, uint32_t tensors, keep held) {
  PyObject* lengths = check_rows(self, tensors) ? PyBytes_FromStringAndSize(NULL, (Py_ssize_t)self->count * 8) : NULL;
  if (!lengths) {
    keep_release(&held);
    return NULL;
  }
  int64_t *length = (int64_t*)(void*)PyBytes_AsString(lengths), total = measure(self, length);
  const void* start = start_of_run(self->tensors, self->rows, self->count, self->element);
  PyObject* values = start || !total ? view_of_run(self, start, total, held) : copy_of_run(self, length, total, held);
  if (values) return Py_BuildValue("(NN)", values, lengths);
  Py_DECREF(lengths);
  return NULL;
}

/* A list of our own of what was opened: the caller's may change while it is looked at. */
static bool own_words(words* list) {
  if (list->copy) return true;
  list->copy = malloc((list->count + 1) * sizeof(uint32_t));
  if (!list->copy) return PyErr_NoMemory() != NULL;
  list->data = memcpy(list->copy, list->data, list->count * sizeof(uint32_t));
  return true;
}

static PyObject* group_pack(PyObject* object, PyObject* rows) {
  Group* self = (Group*)object;
  const ovstage_data_t* data = self->kind == GROUP_READ ? &self->raw.read.data : &self->raw.map.data;
  words chosen = {0};
  keep held;
  if (rows != Py_None && !words_open(&chosen, rows, "rows", "", 32)) return NULL;
  PyObject* answer = NULL;
  if (rows != Py_None && !own_words(&chosen)) {
    words_close(&chosen);
    return NULL;
  }
  if (!data->tensor_count) {
    PyErr_SetString(PyExc_ValueError, "the group has no tensors");
  } else if (group_open(self, "pack") && group_hold_payload(self, "pack", &held)) {
    size_t count = rows == Py_None ? data->tensor_count : chosen.count;
    size_t element = (size_t)(data->tensors->dtype.bits * row_width(data->tensors) / 8);
    run wanted = {data->tensors, chosen.data, count, element};
    answer = pack(&wanted, data->tensor_count, held);
  }
  words_close(&chosen);
  return answer;
}

PyMethodDef group_ragged_methods[] = {
    {"_pack", group_pack, METH_O, DOC_Group__pack},
    {NULL, NULL, 0, NULL},
};
