/*
 * write.c - Stage: the payload of a write, from the caller's objects to the structures of the C ABI.
 *
 * A tensor is read where it lies. What can be asked through the buffer protocol is (it costs a quarter of a DLPack
 * exchange), then DLTensor descriptors, then __dlpack__, and only what is none of these is given to NumPy to make an
 * array of. Strides are passed on: the engine copies rows straight into the column.
 *
 * A payload is one allocation that does not move, because the engine may read its descriptors until the operation is
 * done. That is nearly always when the call returns; then the sources are let go at once, on this thread. Otherwise the
 * Operation keeps them.
 *
 * With transfer=True the sources go over to the engine instead, which keeps or copies their memory as it sees fit, and
 * lets go of it on any thread: each is then an allocation of its own, which its deleter parks (park.c).
 */
#include "native.h"

/* ---- Sources: one caller object behind one DLTensor -------------------------------------------------------------- */

enum { INLINE_AXES = 4 };

typedef struct {
  Py_buffer view; /* view.obj == NULL: none */
import tensor;  /* all zero: none */
  PyObject* owner; /* of the memory that a DLTensor describes; NULL: none known */
  int64_t* axes;   /* strides of a view, or shape and strides of a DLTensor */
  int64_t inline_axes[2 * INLINE_AXES];
} source;

typedef struct {
  bool several; /* a list or tuple was given ... */
  size_t index; /* ... and this is which of its items */
  char text[32];
} place;

static const char* place_text(place* at) {
  if (at->several)
    PyOS_snprintf(at->text, sizeof at->text, "tensors[%zu]", at->index);
  else
    strcpy(at->text, "tensors");
  return at->text;
}

static void source_close(source* self) {
  if (self->axes != self->inline_axes) free(self->axes);
  self->axes = NULL;
  Py_CLEAR(self->owner);
  if (self->view.obj) PyBuffer_Release(&self->view);
  self->view.obj = NULL;
  import_close(&self->tensor);
}

/* ---- Element types ----------------------------------------------------------------------------------------------- */

typedef enum { TYPE_GOOD, TYPE_FOREIGN_ORDER, TYPE_UNKNOWN } type_verdict;

/* The DLPack type of a struct format. Sizes come from the item, since `l` has two of them. */
static type_verdict type_of_format(const char* format, Py_ssize_t itemsize, DLDataType* out) {
  if (!format) format = "B";
  bool foreign = (*format == '>' || *format == '!') && itemsize > 1;
  if (*format && strchr("@=<>!", *format)) format++;
  bool complex = *format == 'Z';
  if (complex) format++;
  if (!format[0] || format[1]) return TYPE_UNKNOWN;
  int code;
  switch (format[0]) {
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n':
      code = kDLInt;
      break;
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
    case 'N':
      code = kDLUInt;
      break;
    case 'e':
    case 'f':
    case 'd':
      code = kDLFloat;
      break;
    case '?':
      code = kDLBool;
      break;
    default:
      return TYPE_UNKNOWN;
  }
  if (complex) {
    if (code != kDLFloat) return TYPE_UNKNOWN;
    code = kDLComplex;
  }
  if (foreign) return TYPE_FOREIGN_ORDER;
  *out = (DLDataType){(uint8_t)code, (uint8_t)(itemsize * 8), 1};
  return TYPE_GOOD;
}

/* Types that NumPy learns from the package ml_dtypes and cannot say in a struct format. Bits below 8 are stored one
 * element a byte there; they are named so that the engine can refuse them by name. */
static const struct {
  const char* name;
  uint8_t code, bits, storage;
} extension_types[] = {
    {"bfloat16", kDLBfloat, 16, 2},
    {"float8_e3m4", kDLFloat8_e3m4, 8, 1},
    {"float8_e4m3", kDLFloat8_e4m3, 8, 1},
    {"float8_e4m3b11fnuz", kDLFloat8_e4m3b11fnuz, 8, 1},
    {"float8_e4m3fn", kDLFloat8_e4m3fn, 8, 1},
    {"float8_e4m3fnuz", kDLFloat8_e4m3fnuz, 8, 1},
    {"float8_e5m2", kDLFloat8_e5m2, 8, 1},
    {"float8_e5m2fnuz", kDLFloat8_e5m2fnuz, 8, 1},
    {"float8_e8m0fnu", kDLFloat8_e8m0fnu, 8, 1},
    {"float6_e2m3fn", kDLFloat6_e2m3fn, 6, 1},
    {"float6_e3m2fn", kDLFloat6_e3m2fn, 6, 1},
    {"float4_e2m1fn", kDLFloat4_e2m1fn, 4, 1},
    {"int4", kDLInt, 4, 1},
    {"uint4", kDLUInt, 4, 1},
    {"int2", kDLInt, 2, 1},
    {"uint2", kDLUInt, 2, 1},
};

/* str(object.dtype), or NULL: with an exception, or without one where there is no dtype. */
static PyObject* dtype_name(PyObject* object) {
  PyObject* dtype = PyObject_GetAttr(object, native.name.dtype);
  if (!dtype) {
    if (PyErr_ExceptionMatches(PyExc_AttributeError)) PyErr_Clear();
    return NULL;
  }
  PyObject* name = PyObject_Str(dtype);
  Py_DECREF(dtype);
  return name;
}

static bool refuse_type(PyObject* object, place* at, const char* format, type_verdict verdict) {
  PyObject* name = dtype_name(object);
  if (!name && !PyErr_Occurred()) name = PyUnicode_FromFormat("struct format '%s'", format ? format : "?");
  if (!name) return false;
  if (verdict == TYPE_FOREIGN_ORDER) {
    PyErr_Format(PyExc_ValueError,
                 "%s has dtype %U, which is not in this machine's byte order: pass "
                 "array.astype(array.dtype.newbyteorder('='))",
                 place_text(at), name);
  } else {
    PyErr_Format(
        PyExc_ValueError,
        "Unsupported numpy dtype: %s has dtype %U; expected bool, an integer, float or complex type, bfloat16 or "
        "a float8 type",
        place_text(at), name);
  }
  Py_DECREF(name);
  return false;
}

/* ---- Opening a source -------------------------------------------------------------------------------------------- */

static bool make_axes(source* self, int32_t ndim) {
  self->axes = ndim <= INLINE_AXES ? self->inline_axes : malloc(2 * (size_t)ndim * sizeof *self->axes);
  return self->axes || PyErr_NoMemory();
}

/* Strides of a view in elements; NULL where it is compact. */
static bool strides_of_view(source* self, int64_t** out) {
  const Py_buffer* view = &self->view;
  *out = NULL;
  if (!view->strides || (view->ndim == 1 && view->strides[0] == view->itemsize) || PyBuffer_IsContiguous(view, 'C')) {
    return true;
  }
  if (!make_axes(self, view->ndim)) return false;
  for (int axis = 0; axis < view->ndim; axis++) self->axes[axis] = view->strides[axis] / view->itemsize;
  *out = self->axes;
  return true;
}

static bool whole_element_strides(const Py_buffer* view) {
  for (int axis = 0; view->strides && axis < view->ndim; axis++) {
    if (view->shape[axis] > 1 && view->strides[axis] % view->itemsize) return false;
  }
  return true;
}

static bool describe_view(source* self, DLDataType type, DLTensor* out) {
  *out = (DLTensor){.data = self->view.buf,
                    .device = {kDLCPU, 0},
                    .ndim = self->view.ndim,
                    .dtype = type,
                    .shape = (int64_t*)self->view.shape};
  return strides_of_view(self, &out->strides);
}

/* The attribute of a descriptor, None where it has none; NULL: an exception. */
static PyObject* known(PyObject* object, const char* name) {
  PyObject* found = PyObject_GetAttrString(object, name);
  if (found || !PyErr_ExceptionMatches(PyExc_AttributeError)) return found;
  PyErr_Clear();
  return Py_NewRef(Py_None);
}

/* What lies in `held` bytes behind a descriptor's pointer: false, with an exception, when its shape leads out of them.
 * The rule of _reach in ovstage/dlpack.py. What makes no tensor at all is left to the engine, which refuses it. */
static bool check_extent(const DLTensor* t, int64_t held, place* at) {
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
    PyErr_Format(PyExc_ValueError,
                 "%s reaches over bytes %lld to %lld, but its backing buffer holds %lld bytes; make the descriptor "
                 "anew with make_dltensor(array)",
                 place_text(at), (long long)first, (long long)last, (long long)held);
  } else {
    PyErr_Format(PyExc_ValueError,
                 "%s reaches over more than 2**63 bytes, but its backing buffer holds %lld bytes; make the descriptor "
                 "anew with make_dltensor(array)",
                 place_text(at), (long long)held);
  }
  return false;
}

/* A DLTensor, whose view stays open and keeps the object. Its fields may be assigned by other threads, and by Python
 * code that runs before the write does: shape and strides are copied, and the owner of the elements is held. */
static bool open_descriptor(source* self, PyObject* object, place* at, DLTensor* out) {
  PyObject* extent = known(object, "_extent");
  if (!extent || !(self->owner = known(object, "_owner"))) {
    Py_XDECREF(extent);
    return false;
  }
  long long held = PyLong_Check(extent) ? PyLong_AsLongLong(extent) : -1;
  Py_DECREF(extent);
  if (held == -1 && PyErr_Occurred()) return false;

  /* From here to the end no Python code runs. */
  memcpy(out, self->view.buf, sizeof *out);
  if (out->ndim <= 0 || out->ndim > MOST_AXES || !out->shape) { /* one element, or no tensor: the engine says so */
    out->shape = out->strides = NULL;
    return out->ndim != 0 || held < 0 || !out->data || check_extent(out, held, at);
  }
  if (!make_axes(self, out->ndim)) return false;
  size_t size = (size_t)out->ndim * sizeof *self->axes;
  out->shape = memcpy(self->axes, out->shape, size);
  if (out->strides) out->strides = memcpy(self->axes + out->ndim, out->strides, size);
  return held < 0 || !out->data || check_extent(out, held, at);
}

static bool open_through_numpy(source* self, PyObject* object, place* at, DLTensor* out);

/* The object's buffer is open: an array, or a DLTensor, which as a ctypes structure has a buffer too. */
static bool open_view(source* self, PyObject* object, place* at, DLTensor* out) {
  DLDataType type;
  type_verdict verdict = type_of_format(self->view.format, self->view.itemsize, &type);
  if (verdict == TYPE_GOOD) {
    if (whole_element_strides(&self->view)) return describe_view(self, type, out);
    PyBuffer_Release(&self->view); /* a field of records, for one: NumPy knows how to gather it */
    self->view.obj = NULL;
    return open_through_numpy(self, object, at, out);
  }
  if (verdict == TYPE_UNKNOWN && self->view.len == sizeof *out && self->view.format &&
      strncmp(self->view.format, "T{", 2) == 0) {
    static PyObject* class;
    int is_tensor = package_attribute(&class, "ovstage.dlpack", "DLTensor") ? PyObject_IsInstance(object, class) : -1;
    if (is_tensor < 0) return false;
    if (is_tensor) return open_descriptor(self, object, at, out);
  }
  return refuse_type(object, at, self->view.format, verdict);
}

/* An array whose type has a name but no struct format: its bytes are viewed as unsigned integers.
 * 0: it is none; -1: an exception. */
static int open_extension_type(source* self, PyObject* object, PyObject* name, DLTensor* out) {
  for (size_t i = 0; i < COUNT_OF(extension_types); i++) {
    if (PyUnicode_CompareWithASCIIString(name, extension_types[i].name) != 0) continue;
    PyObject* bytes = PyObject_CallMethod(object, "view", "s", extension_types[i].storage == 2 ? "uint16" : "uint8");
    if (!bytes) return -1;
    int got = PyObject_GetBuffer(bytes, &self->view, PyBUF_RECORDS_RO);
    Py_DECREF(bytes); /* the view keeps it */
    if (got < 0) {
      self->view.obj = NULL;
      return -1;
    }
    return describe_view(self, (DLDataType){extension_types[i].code, extension_types[i].bits, 1}, out) ? 1 : -1;
  }
  return 0;
}

static bool open_dlpack(source* self, PyObject* object, place* at, DLTensor* out) {
  if (!import_open(&self->tensor, object, NULL, place_text(at))) return false;
  *out = *import_tensor(&self->tensor);
  if (out->ndim == 0) out->shape = out->strides = NULL;
  return true;
}

static bool open_through_numpy(source* self, PyObject* object, place* at, DLTensor* out) {
  static PyObject* ascontiguousarray;
  PyObject* convert = package_attribute(&ascontiguousarray, "numpy", "ascontiguousarray");
  if (!convert) {
    if (PyErr_ExceptionMatches(PyExc_ImportError)) {
      raise_from_current(PyExc_TypeError, "%s is no tensor, and making one of it needs NumPy", place_text(at));
    }
    return false;
  }
  PyObject* array = PyObject_CallFunctionObjArgs(convert, object, NULL);
  if (!array) return false;
  bool good;
  if (PyObject_GetBuffer(array, &self->view, PyBUF_RECORDS_RO) == 0) {
    DLDataType type;
    type_verdict verdict = type_of_format(self->view.format, self->view.itemsize, &type);
    good = verdict == TYPE_GOOD ? describe_view(self, type, out) : refuse_type(array, at, self->view.format, verdict);
  } else {
    self->view.obj = NULL;
    PyErr_Clear();
    good = refuse_type(array, at, NULL, TYPE_UNKNOWN);
  }
  Py_DECREF(array);
  return good;
}

/* No buffer to be had: `object` is in other memory, has a type that the buffer protocol cannot name, or is no array. */
static bool open_without_buffer(source* self, PyObject* object, place* at, DLTensor* out) {
  /* Only a buffer has a dtype that matters here: what else calls itself dtype need not even answer. */
  PyObject* name = PyObject_CheckBuffer(object) ? dtype_name(object) : NULL;
  if (!name && PyErr_Occurred()) return false;
  int opened = name ? open_extension_type(self, object, name, out) : 0;
  bool good = opened > 0;
  if (opened == 0) {
    PyObject* method = PyObject_GetAttr(object, native.name.dlpack);
    if (method) {
      Py_DECREF(method);
      good = open_dlpack(self, object, at, out);
      /* NumPy's refusal of a dtype is a BufferError that does not say which argument it was */
      if (!good && name && PyErr_ExceptionMatches(PyExc_BufferError)) {
        raise_from_current(PyExc_ValueError, "Unsupported numpy dtype: %s has dtype %U", place_text(at), name);
      }
    } else if (PyErr_ExceptionMatches(PyExc_AttributeError)) {
      PyErr_Clear();
      good = open_through_numpy(self, object, at, out);
    }
  }
  Py_XDECREF(name);
  return good;
}

/* Takes what it opens into `self`, which must be all zero; to be closed also after a failure. */
static bool source_open(source* self, PyObject* object, place* at, DLTensor* out) {
  if (PyUnicode_Check(object) || PyBytes_Check(object)) {
    PyObject* text = shown(object);
    if (text) {
      PyErr_Format(PyExc_ValueError,
                   "%s has an unsupported dtype: text is no tensor, got %U; for the bytes of a string pass "
                   "numpy.frombuffer(text.encode(), dtype=numpy.uint8)",
                   place_text(at), text);
    }
    Py_XDECREF(text);
    return false;
  }
  if (PyObject_CheckBuffer(object)) {
    if (PyObject_GetBuffer(object, &self->view, PyBUF_RECORDS_RO) == 0) return open_view(self, object, at, out);
    self->view.obj = NULL;
    PyErr_Clear();
  }
  return open_without_buffer(self, object, at, out);
}

/* ---- Gifts: sources that go over to the engine ------------------------------------------------------------------- */

typedef struct {
  parked references; /* first: whoever drops the node frees the whole */
  source source;
  DLManagedTensorVersioned managed; /* what the engine gets */
} gift;

static void close_gift(parked* node) { source_close(&((gift*)node)->source); }

static void delete_gift(DLManagedTensorVersioned* managed) { park(managed->manager_ctx); }

/* A descriptor keeps its memory alive if this package made it; one that was filled in by hand may point anywhere. */
static bool check_ownership(PyObject* object, place* at) {
  static PyObject* class;
  int is_tensor = package_attribute(&class, "ovstage.dlpack", "DLTensor") ? PyObject_IsInstance(object, class) : -1;
  if (is_tensor <= 0) return is_tensor == 0;
  PyObject* owner = PyObject_GetAttrString(object, "_owner");
  if (owner) {
    Py_DECREF(owner);
    return true;
  }
  if (PyErr_ExceptionMatches(PyExc_AttributeError)) {
    PyErr_Format(PyExc_ValueError,
                 "%s cannot be transferred: this DLTensor does not own its memory, whose owner could free it; pass the "
                 "array itself, or make_dltensor(array)",
                 place_text(at));
  }
  return false;
}

static DLManagedTensorVersioned* gift_new(PyObject* object, place* at) {
  if (!check_ownership(object, at)) return NULL;
  gift* made = calloc(1, sizeof *made);
  if (!made) {
    PyErr_NoMemory();
    return NULL;
  }
  made->references.close = close_gift;
  made->managed.version = (DLPackVersion){DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  made->managed.manager_ctx = made;
  made->managed.deleter = delete_gift;
  if (source_open(&made->source, object, at, &made->managed.dl_tensor)) return &made->managed;
  parked_drop(&made->references);
  return NULL;
}

/* ---- Payloads ---------------------------------------------------------------------------------------------------- */

typedef struct payload {
  ovstage_attribute_write_t write; /* what the engine gets */
  PyObject* attribute;             /* keeps the bytes of a name */
  words index_map, mask;
  size_t count;
  DLTensor* tensors; /* what stays the caller's ... */
  source* sources;
  DLManagedTensorVersioned** gifts; /* ... or what does not */
  bool given;                       /* the gifts are the engine's now */
  DLTensor one_tensor;
  source one_source;
  DLManagedTensorVersioned* one_gift;
} payload;

static void payload_close(payload* self) {
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
}

/* What a write call and a WriteDesc have in common; NULL = not given. */
typedef struct {
  PyObject *attribute, *tensors, *is_array, *index_map, *mask, *count, *cuda_event, *cuda_stream, *semantic, *transfer;
} write_arguments;

/* None is the same as nothing. */
static PyObject* given(PyObject* value) { return value == Py_None ? NULL : value; }

/* Room for `count` tensors. */
static bool make_room(payload* self, size_t count, bool transfer) {
  if (count > UINT32_MAX) {
    PyErr_Format(PyExc_ValueError, "tensors must have at most %u entries, got %zu", UINT32_MAX, count);
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

static bool open_tensor(payload* self, PyObject* object, place* at) {
  size_t i = self->count;
  if (self->gifts) {
    if (!(self->gifts[i] = gift_new(object, at))) return false;
    self->count++;
    return true;
  }
  self->count++; /* closed even if opening fails half-way */
  return source_open(&self->sources[i], object, at, &self->tensors[i]);
}

static bool open_tensors(payload* self, PyObject* tensors, bool transfer) {
  if (!PyList_Check(tensors) && !PyTuple_Check(tensors)) {
    place at = {.several = false};
    return make_room(self, 1, transfer) && open_tensor(self, tensors, &at);
  }
  PyObject* tuple = PySequence_Tuple(tensors); /* opening a source may run Python code, which could change the list */
  if (!tuple) return false;
  size_t count = (size_t)PyTuple_Size(tuple);
  if (count == 0) PyErr_SetString(PyExc_ValueError, "tensors must not be empty");
  bool good = count > 0 && make_room(self, count, transfer);
  for (size_t i = 0; good && i < count; i++) {
    place at = {.several = true, .index = i};
    good = open_tensor(self, PyTuple_GetItem(tuple, (Py_ssize_t)i), &at);
  }
  Py_DECREF(tuple);
  return good;
}

/* How many logical elements, and which: count, index_map and mask judge each other. */
static bool open_selection(payload* self, const write_arguments* args, bool has_count, uint32_t count) {
  ovstage_write_data_t* data = &self->write.data;
  data->count = count;
  if (given(args->index_map)) {
    if (!words_open(&self->index_map, args->index_map, "index_map", " entries", 32)) return false;
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
  } else if (given(args->mask)) {
    if (!words_open(&self->mask, args->mask, "mask", " words", 64)) return false;
    if (!has_count) {
      PyErr_SetString(PyExc_ValueError,
                      "count is required when mask is supplied: a mask does not say how many elements it is for");
      return false;
    }
    if (count == 0) {
      PyErr_SetString(PyExc_ValueError, "count must be non-zero when mask is supplied, got count=0");
      return false;
    }
    if (((uint64_t)count + 63) / 64 > self->mask.count) {
      PyErr_Format(PyExc_ValueError,
                   "mask must have one bit per logical element: count is %u, which takes %llu words, mask has %zu",
                   count, ((unsigned long long)count + 63) / 64, self->mask.count);
      return false;
    }
    data->mask = self->mask.data;
  } else if (has_count && count == 0) {
    PyErr_SetString(PyExc_ValueError, "count must be non-zero, got count=0; omit it to write every prim of the query");
    return false;
  }
  return true;
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
  if (given(value) && !guard_uint64(value, name, &number)) return false;
  *out = (uintptr_t)number;
  return true;
}

/* All checks of one entry, in the order in which they are promised. The payload must be all zero. */
static bool payload_open(payload* self, const write_arguments* args) {
  ovstage_write_data_t* data = &self->write.data;
  uint32_t count = 0;
  int32_t semantic = 0;
  bool has_count = given(args->count) != NULL, transfer = false;
  if (!guard_flag(args->is_array, "is_array must be a bool: True for an array per prim, False for one value per prim",
                  &data->is_array) ||
      (args->transfer &&
       !guard_flag(args->transfer,
                   "transfer must be a bool: True gives the memory of the tensors away, False has it copied",
                   &transfer))) {
    return false;
  }
  if (given(args->index_map) && given(args->mask)) {
    PyErr_SetString(PyExc_ValueError,
                    "index_map and mask are mutually exclusive: index_map chooses source rows, mask chooses targets");
    return false;
  }
  if (has_count && !guard_uint32(args->count, "count", &count)) return false;
  if (!open_tensors(self, args->tensors, transfer)) return false;
  data->tensors = self->tensors;
  data->managed_tensors = (const DLManagedTensorVersioned* const*)self->gifts;
  data->tensor_count = (uint32_t)self->count;
  if (!open_selection(self, args, has_count, count)) return false;
  if (!guard_sync(args->cuda_stream, "cuda_stream", &data->cuda_sync.stream) ||
      !guard_sync(args->cuda_event, "cuda_event", &data->cuda_sync.wait_event)) {
    return false;
  }
  if (args->semantic && !guard_int32(args->semantic, "semantic", &semantic)) return false;
  data->semantic = (ovstage_attribute_semantic_t)semantic;
  if (!guard_attribute(args->attribute, "attribute", &self->write.attribute)) return false;
  self->attribute = Py_NewRef(args->attribute);
  return true;
}

/* ---- Operations -------------------------------------------------------------------------------------------------- */

/* Payloads of one operation, in one allocation. */
typedef struct {
  size_t count;
  payload payloads[];
} batch;

static void batch_close(batch* self) {
  for (size_t i = 0; i < self->count; i++) payload_close(&self->payloads[i]);
  free(self);
}

static const char batch_name[] = "ovstage.inputs";

static void end_batch(PyObject* capsule) { batch_close(PyCapsule_GetPointer(capsule, batch_name)); }

/* The Operation of a call that has been made. The sources are let go here unless the engine is still reading them. */
static PyObject* finish(Stage* self, batch* inputs, ovstage_enqueue_result_t answer) {
  for (size_t i = 0; i < inputs->count; i++) inputs->payloads[i].given = true; /* also by a call that was refused */
  PyObject* kept = NULL;
  if (answer.status == OVSTAGE_OK && native.go->op_status(self->instance, answer.op_index) == OVSTAGE_ERROR_TIMEOUT) {
    kept = PyCapsule_New(inputs, batch_name, end_batch);
    if (!kept) { /* leaked: freeing what is being read would be worse */
      stage_adopt_orphan(self, answer.op_index, true, NULL);
      return NULL;
    }
  }
  PyObject* operation = operation_new(self, answer, kept);
  if (kept) return operation;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  batch_close(inputs); /* deleters may run Python, and may not see our exception */
  drop_parked();       /* a tensor of this package has parked what it held */
  PyErr_Restore(type, value, traceback);
  return operation;
}

PyObject* stage_write_attribute(PyObject* object, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  enum {
    QUERY,
    ATTRIBUTE,
    ORDINAL,
    TENSORS,
    IS_ARRAY,
    PRIM_MODE,
    SEMANTIC,
    INDEX_MAP,
    MASK,
    COUNT,
    EVENT,
    STREAM,
    TRANSFER,
    SLOTS
  };
  static signature sig = {"write_attribute",
                          4,
                          5,
                          {"query", "attribute", "ordinal", "tensors", "is_array", "prim_mode", "semantic", "index_map",
                           "mask", "count", "cuda_event", "cuda_stream", "transfer"},
                          {0}};
  Stage* self = (Stage*)object;
  PyObject* slots[SLOTS];
  if (!sort_arguments(&sig, args, nargs, kwnames, slots)) return NULL;
  write_arguments entry = {slots[ATTRIBUTE], slots[TENSORS], slots[IS_ARRAY], slots[INDEX_MAP], slots[MASK],
                           slots[COUNT],     slots[EVENT],   slots[STREAM],   slots[SEMANTIC],  slots[TRANSFER]};
  batch* inputs = calloc(1, sizeof *inputs + sizeof(payload));
  if (!inputs) return PyErr_NoMemory();
  inputs->count = 1;

  payload* one = inputs->payloads;
  uint64_t query, ordinal;
  ovstage_prim_mode_t mode;
  if (!payload_open(one, &entry) || !guard_handle(slots[QUERY], "query", &query) ||
      !guard_uint64(slots[ORDINAL], "ordinal", &ordinal) || !guard_prim_mode(slots[PRIM_MODE], &mode) ||
      !stage_begin(self, "write_attribute")) {
    batch_close(inputs);
    return NULL;
  }
  ovstage_enqueue_result_t answer;
  WITHOUT_GIL(answer =
                  ovstage_write_attribute(self->instance, query, one->write.attribute, ordinal, one->write.data, mode));
  return finish(self, inputs, answer);
}

/* ---- Batches ----------------------------------------------------------------------------------------------------- */

enum { FIELDS = 10 };

/* The fields of a WriteDesc, as new references. False: an exception; what was taken is to be dropped all the same. */
static bool read_description(PyObject* description, PyObject* fields[FIELDS]) {
  static const char* const names[FIELDS] = {"attribute", "tensors",    "is_array",    "index_map", "mask",
                                            "count",     "cuda_event", "cuda_stream", "semantic",  "transfer"};
  for (int i = 0; i < FIELDS; i++) {
    if (!(fields[i] = PyObject_GetAttrString(description, names[i]))) return false;
  }
  return true;
}

/* Say of an exception about one entry which entry it was, if it is of a kind that is raised for wrong arguments. */
static void name_entry(PyObject* attribute, Py_ssize_t position) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  if (type == PyExc_TypeError || type == PyExc_ValueError || type == PyExc_BufferError) {
    PyObject* name = PyUnicode_Check(attribute) ? PyUnicode_FromFormat("\"%U\"", attribute) : shown(attribute);
    PyObject* text = name ? PyUnicode_FromFormat("writes[%zd] (%U): %S", position, name, value) : NULL;
    PyObject* args = text ? PyTuple_Pack(1, text) : NULL;
    if (args) PyObject_SetAttrString(value, "args", args);
    PyErr_Clear();
    Py_XDECREF(args);
    Py_XDECREF(text);
    Py_XDECREF(name);
  }
  PyErr_Restore(type, value, traceback);
}

static bool open_description(payload* self, PyObject* description, Py_ssize_t position) {
  static PyObject* class;
  if (!package_attribute(&class, "ovstage", "WriteDesc")) return false;
  int matches = PyObject_IsInstance(description, class);
  if (matches < 0) return false;
  if (!matches) {
    PyObject* text = shown(description);
    if (text) PyErr_Format(PyExc_TypeError, "writes[%zd] must be a WriteDesc, got %U", position, text);
    Py_XDECREF(text);
    return false;
  }
  PyObject* fields[FIELDS] = {0};
  bool good = read_description(description, fields);
  if (good) {
    write_arguments entry = {fields[0], fields[1], fields[2], fields[3], fields[4],
                             fields[5], fields[6], fields[7], fields[8], fields[9]};
    good = payload_open(self, &entry);
    if (!good) name_entry(fields[0], position);
  }
  for (int i = 0; i < FIELDS; i++) Py_XDECREF(fields[i]);
  return good;
}

PyObject* stage_write_attributes(PyObject* object, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  static signature sig = {"write_attributes", 3, 3, {"query", "writes", "ordinal", "prim_mode"}, {0}};
  Stage* self = (Stage*)object;
  PyObject* slots[4];
  if (!sort_arguments(&sig, args, nargs, kwnames, slots)) return NULL;
  PyObject* writes = guard_sequence(slots[1], "writes", "a sequence of WriteDesc");
  if (!writes) return NULL;
  size_t count = (size_t)PyTuple_Size(writes);
  batch* inputs = calloc(1, sizeof *inputs + count * sizeof(payload));
  ovstage_attribute_write_t* entries = malloc((count + 1) * sizeof *entries);
  bool good = inputs && entries;
  if (!good) PyErr_NoMemory();
  for (size_t i = 0; good && i < count; i++) {
    inputs->count = i + 1;
    good = open_description(&inputs->payloads[i], PyTuple_GetItem(writes, (Py_ssize_t)i), (Py_ssize_t)i);
    entries[i] = inputs->payloads[i].write;
  }
  Py_DECREF(writes);
  uint64_t query, ordinal;
  ovstage_prim_mode_t mode;
  good = good && guard_handle(slots[0], "query", &query) && guard_uint64(slots[2], "ordinal", &ordinal) &&
         guard_prim_mode(slots[3], &mode) && stage_begin(self, "write_attributes");
  if (!good) {
    free(entries);
    if (inputs) batch_close(inputs);
    return NULL;
  }
  ovstage_enqueue_result_t answer;
  WITHOUT_GIL(answer = ovstage_write_attributes(self->instance, query, count ? entries : NULL, count, ordinal, mode));
  free(entries); /* copied by the library before it returned; the tensors that they point at are not */
  return finish(self, inputs, answer);
}
