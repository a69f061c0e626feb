/*
 * payload.c - The payload of one attribute: the caller's tensors and which prims they are for, as the C ABI wants them.
 *
 * A payload does not move, because the engine may read its descriptors until the operation is done.
 */
#include "native.h"

void payload_close(payload* self) {
  for (size_t i = 0; i < self->count; i++) {
    if (self->sources) source_close(&self->sources[i]);
    if (self->gifts && !self->given) parked_drop(self->gifts[i]->manager_ctx);
  }
  self->count = 0;
  if (self->sources != &self->one_source) {
    free(self->sources);
    free(self->tensors);
  }
  if (self->gifts != &self->one_gift) free(self->gifts);
  self->sources = NULL;
  self->gifts = NULL;
  words_close(&self->index_map);
  words_close(&self->mask);
  Py_CLEAR(self->attribute);
  Py_CLEAR(self->type_text);
}

/* Room for `count` tensors. */
static bool make_room(payload* self, size_t count, bool transfer) {
  if (count > UINT32_MAX) {
    PyErr_Format(PyExc_ValueError, "%s must have at most %u entries, got %zu", self->tensors_name, UINT32_MAX, count);
    return false;
  }
  if (transfer) {
    self->gifts = count == 1 ? &self->one_gift : calloc(count, sizeof *self->gifts);
    return self->gifts || PyErr_NoMemory();
  }
  self->tensors = count == 1 ? &self->one_tensor : calloc(count, sizeof *self->tensors);
  self->sources = count == 1 ? &self->one_source : calloc(count, sizeof *self->sources);
  return (self->tensors && self->sources) || PyErr_NoMemory();
}

static bool open_tensor(payload* self, PyObject* object, argument* at) {
  size_t i = self->count;
  if (self->gifts) {
    if (!(self->gifts[i] = gift_new(object, at))) return false;
    self->count++;
    return true;
  }
  self->count++; /* closed even if opening fails half-way */
  return source_open(&self->sources[i], object, at, &self->tensors[i]);
}

/* Each item of a list is a tensor, and a fixed column takes one: a list of numbers was meant as an array of them. */
static bool refuse_numbers(PyObject* tensors, const char* name) {
  PyObject* text = shown(tensors);
  PyObject* first = text ? PySequence_GetItem(tensors, 0) : NULL;
  if (first) {
    PyErr_Format(PyExc_ValueError,
                 "%s is a list of %zd tensors, got %U; for one value per prim pass one array, np.%s([...])", name,
                 PySequence_Size(tensors), text, PyBool_Check(first) ? "bool_" : "float32");
  }
  Py_XDECREF(first);
  Py_XDECREF(text);
  return false;
}

static bool is_number_or_list(PyObject* item) {
  return PyFloat_Check(item) || PyLong_Check(item) || PyList_Check(item) || PyTuple_Check(item);
}

static bool open_tensors(payload* self, PyObject* tensors, bool transfer) {
  if (!PyList_Check(tensors) && !PyTuple_Check(tensors)) {
    argument at = {.name = self->tensors_name, .several = false};
    return make_room(self, 1, transfer) && open_tensor(self, tensors, &at);
  }
  PyObject* tuple = PySequence_Tuple(tensors); /* opening a source may run Python code, which could change the list */
  if (!tuple) return false;
  size_t count = (size_t)PyTuple_Size(tuple);
  if (count > 1 && !self->write.data.is_array && is_number_or_list(PyTuple_GetItem(tuple, 0))) {
    Py_DECREF(tuple);
    return refuse_numbers(tensors, self->tensors_name);
  }
  if (count == 0)
    PyErr_Format(PyExc_ValueError, "%s must have at least one entry, got an empty list", self->tensors_name);
  bool good = count > 0 && make_room(self, count, transfer);
  for (size_t i = 0; good && i < count; i++) {
    argument at = {.name = self->tensors_name, .several = true, .index = i};
    good = open_tensor(self, PyTuple_GetItem(tuple, (Py_ssize_t)i), &at);
  }
  Py_DECREF(tuple);
  return good;
}

/* Whether the elements lie one behind the other, row-major; producers say so with strides as well as without. */
static bool is_compact(const DLTensor* t) {
  int64_t step = 1;
  for (int32_t axis = t->ndim - 1; t->strides && axis >= 0; axis--) {
    if (t->shape[axis] == 0) return true;
    if (t->shape[axis] != 1 && t->strides[axis] != step) return false;
    step *= t->shape[axis];
  }
  return true;
}

/* Makes the trailing axes of a compact tensor the lanes of its elements. The shape is the source's and stays as it is.
 * A tensor that has these lanes already, such as one read at interface level 0.2, is as it should be. */
static bool fold_axes(DLTensor* t, long lanes, argument* at) {
  if (t->dtype.lanes == lanes) return true;
  int64_t folded = 1;
  int32_t kept = t->ndim;
  while (kept > 0 && folded < lanes) folded *= t->shape[--kept];
  bool flat_and_empty = t->ndim == 1 && t->shape[0] == 0;
  if (!is_compact(t) || t->dtype.lanes != 1 || (folded != lanes && !flat_and_empty)) {
    PyObject* shape = shape_of(t);
    if (shape) {
      PyErr_Format(PyExc_ValueError,
                   "%s must be compact, with trailing axes that make tuples of lanes=%ld, such as shape (n, %ld), got "
                   "shape %R; for other strides pass numpy.ascontiguousarray(array)",
                   argument_text(at), lanes, lanes, shape);
    }
    Py_XDECREF(shape);
    return false;
  }
  t->dtype.lanes = (uint16_t)lanes;
  t->strides = NULL; /* they counted single numbers */
  t->ndim = flat_and_empty ? 1 : kept;
  return true;
}

static bool fold_tensors(payload* self, PyObject* given_lanes, bool several) {
  uint32_t lanes = 0;
  if (!guard_uint32(given_lanes, "lanes", &lanes)) return false;
  if (lanes < 1 || lanes > MOST_LANES) {
    PyErr_Format(PyExc_ValueError, "lanes must be in 1..255, got %u", lanes);
    return false;
  }
  for (size_t i = 0; i < self->count; i++) {
    argument at = {.name = self->tensors_name, .several = several, .index = i};
    DLTensor* tensor = self->gifts ? &self->gifts[i]->dl_tensor : &self->tensors[i];
    if (lanes > 1 && !fold_axes(tensor, (long)lanes, &at)) return false;
  }
  return true;
}

/* Where a prim's value comes from. */
static bool open_index_map(payload* self, PyObject* given_map, bool has_count) {
  ovstage_write_data_t* data = &self->write.data;
  if (!words_open(&self->index_map, given_map, "index_map", " entries", 32)) return false;
  size_t entries = self->index_map.count;
  if (!has_count && entries <= UINT32_MAX) data->count = (uint32_t)entries;
  if (entries == 0 || data->count == 0) {
    PyErr_Format(PyExc_ValueError, "count must be non-zero when index_map is supplied, got %s",
                 entries == 0 ? "an index_map without entries" : "count=0");
    return false;
  }
  if (data->count > entries) {
    PyErr_Format(PyExc_ValueError,
                 "index_map must have one entry per logical element: count is %u, index_map has %zu entries",
                 data->count, entries);
    return false;
  }
  data->index_map = self->index_map.data;
  return true;
}

/* Which prims get a value. */
static bool open_mask(payload* self, const write_arguments* args, bool has_count) {
  ovstage_write_data_t* data = &self->write.data;
  bool none = has_count && data->count == 0;
  if (!none && !counted_mask_open(&self->mask, args->mask, args->count, &data->count)) return false;
  if (data->count == 0) {
    PyErr_Format(PyExc_ValueError, "count must be non-zero when mask is supplied, got %s",
                 none ? "count=0" : "a mask of no prims");
    return false;
  }
  self->whole = has_count ? 0 : data->count;
  data->mask = self->mask.data;
  return true;
}

/* How many logical elements, and which: count, index_map and mask judge each other. */
static bool open_selection(payload* self, const write_arguments* args, bool has_count, uint32_t count) {
  self->write.data.count = count;
  if (is_given(args->index_map)) return open_index_map(self, args->index_map, has_count);
  if (is_given(args->mask)) return open_mask(self, args, has_count);
  if (!has_count || count) return true;
  PyErr_SetString(PyExc_ValueError, "count must be non-zero, got count=0; omit it to write every prim of the query");
  return false;
}

bool payload_check_query(const payload* self, Stage* stage, uint64_t query) {
  if (!self->whole) return true;
  size_t prims = 0;
  ovstage_api_status_t status;
  WITHOUT_GIL(status = native.go->query_count(stage->instance, query, &prims));
  if (status != OVSTAGE_OK || prims == self->whole) return true; /* a query that is none is the write's to refuse */
  PyErr_Format(PyExc_ValueError,
               "mask must have one truth value per prim: the query lists %zu prims, mask has %zu; for the first prims "
               "alone pass count too",
               prims, self->whole);
  return false;
}

/* A flag that must be meant: numbers and NumPy's own booleans are refused. */
static bool guard_flag(PyObject* value, const char* meaning, bool* out) {
  *out = value == Py_True;
  if (*out || value == Py_False) return true;
  PyObject* text = shown(value);
  if (text) PyErr_Format(PyExc_TypeError, "%s; got %U", meaning, text);
  Py_XDECREF(text);
  return false;
}

static bool guard_sync(PyObject* value, const char* name, uintptr_t* out) {
  uint64_t number = 0;
  if (is_given(value) && !guard_uint64(value, name, &number)) return false;
  *out = (uintptr_t)number;
  return true;
}

bool payload_open(payload* self, const write_arguments* args) {
  ovstage_write_data_t* data = &self->write.data;
  uint32_t count = 0;
  int32_t semantic = 0;
  bool has_count = is_given(args->count), transfer = false;
  if (!guard_flag(args->is_array, "is_array must be a bool: True for an array per prim, False for one value per prim",
                  &data->is_array) ||
      (args->transfer &&
       !guard_flag(args->transfer,
                   "transfer must be a bool: True gives the memory of the tensors away, False has it copied",
                   &transfer))) {
    return false;
  }
  if (is_given(args->index_map) && is_given(args->mask)) {
    PyErr_SetString(PyExc_ValueError,
                    "index_map and mask are mutually exclusive: index_map chooses source rows, mask chooses targets");
    return false;
  }
  if (has_count && !guard_uint32(args->count, "count", &count)) return false;
  self->tensors_name = args->form->tensors;
  if (!open_tensors(self, args->tensors, transfer)) return false;
  bool several = PyList_Check(args->tensors) || PyTuple_Check(args->tensors);
  if (is_given(args->lanes) && !fold_tensors(self, args->lanes, several)) return false;
  data->tensors = self->tensors;
  data->managed_tensors = (const DLManagedTensorVersioned* const*)self->gifts;
  data->tensor_count = (uint32_t)self->count;
  if (!open_selection(self, args, has_count, count)) return false;
  if (!guard_sync(args->cuda_stream, "cuda_stream", &data->cuda_sync.stream) ||
      !guard_sync(args->cuda_event, "cuda_event", &data->cuda_sync.wait_event)) {
    return false;
  }
  if (args->semantic && !guard_open_member(args->semantic, "semantic", "AttributeSemantic", &semantic)) return false;
  data->semantic = (ovstage_attribute_semantic_t)semantic;
  if (!guard_attribute(args->attribute, args->form->attribute, &self->write.attribute)) return false;
  self->attribute = Py_NewRef(args->attribute);
  if (!is_given(args->type_name)) return true;
  if (!guard_string(args->type_name, "type_name", &self->type_name.string)) return false;
  self->type_text = Py_NewRef(args->type_name);
  return true;
}
