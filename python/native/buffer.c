/*
 * buffer.c - views of column bytes: the buffer protocol over memory of the library, and what keeps that memory alive.
 *
 * NumPy's arrays keep the Buffer as their base, the Buffer keeps a native reference to the block: a view is valid
 * memory after the release of its group, the commit of its map, the end of its stage and the end of the interpreter.
 */
#include "native.h"

/* ---- keep -------------------------------------------------------------------------------------------------------- */

keep keep_retain(const DLTensor* descriptors, ovstage_go_block_t* block) {
  native.go->tensors_retain(descriptors);
  native.go->block_retain(block);
  return (keep){descriptors, block, NULL};
}

void keep_release(keep* held) {
  keep dropped = *held;
  *held = (keep){0};
  if (dropped.block) native.go->block_release(dropped.block);
  if (dropped.descriptors) native.go->tensors_release(dropped.descriptors);
  Py_XDECREF(dropped.source);
}

/* ---- Hold -------------------------------------------------------------------------------------------------------- */

typedef struct {
  PyObject_HEAD keep held;
} Hold;

PyObject* hold_new(keep held) {
  Hold* self = (Hold*)new_object(native.hold);
  if (self)
    self->held = held;
  else
    keep_release(&held);
  return (PyObject*)self;
}

static void hold_dealloc(PyObject* self) {
  keep_release(&((Hold*)self)->held);
  free_object(self);
}

static PyType_Slot hold_slots[] = {
    {Py_tp_doc, "Keeps a tensor's descriptor and bytes alive."},
    {Py_tp_dealloc, hold_dealloc},
    {0, NULL},
};

PyType_Spec hold_spec = {
    .name = "ovstage._native.Hold",
    .basicsize = sizeof(Hold),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = hold_slots,
};

/* ---- Buffer ------------------------------------------------------------------------------------------------------ */

enum { ROW_AXES = 3 }; /* the rows, and the two axes of a matrix */

typedef struct {
  PyObject_HEAD void* data;
  Py_ssize_t count, itemsize;
  int ndim;
  Py_ssize_t shape[ROW_AXES], strides[ROW_AXES]; /* the protocol wants pointers to them */
  const char* format;
  DLDataType dtype; /* of the tensor it shows */
  Py_ssize_t width; /* elements of one row */
  bool readonly;
  keep held;
} Buffer;

/* The struct code of a base type; NULL where there is none. 64-bit integers are `l`, which NumPy knows as int64; `q`
 * would be its second 64-bit type, equal in value but not in identity. */
static const char* format_of(DLDataType type) {
  switch (type.code << 8 | type.bits) {
    case kDLInt << 8 | 8:
      return "b";
    case kDLInt << 8 | 16:
      return "h";
    case kDLInt << 8 | 32:
      return "i";
    case kDLInt << 8 | 64:
      return "l";
    case kDLUInt << 8 | 8:
      return "B";
    case kDLUInt << 8 | 16:
      return "H";
    case kDLUInt << 8 | 32:
      return "I";
    case kDLUInt << 8 | 64:
      return "L";
    case kDLFloat << 8 | 16:
      return "e";
    case kDLFloat << 8 | 32:
      return "f";
    case kDLFloat << 8 | 64:
      return "d";
    case kDLComplex << 8 | 64:
      return "Zf";
    case kDLComplex << 8 | 128:
      return "Zd";
    case kDLBool << 8 | 8:
      return "?";
    default:
      return NULL;
  }
}

/* Types without a struct code whose elements are whole bytes: they come as unsigned integers of their size. */
static const char* stand_in_of(DLDataType type) {
  if (type.code == kDLBfloat && type.bits == 16) return "H";
  return type.code >= kDLFloat8_e3m4 && type.code <= kDLFloat8_e8m0fnu && type.bits == 8 ? "B" : NULL;
}

void name_type(char* out, size_t size, DLDataType type) {
  static const char* const plain[] = {"int", "uint", "float", "opaque", "bfloat", "complex", "bool"};
  static const char* const small[] = {"float8_e3m4",     "float8_e4m3",   "float8_e4m3b11fnuz", "float8_e4m3fn",
                                      "float8_e4m3fnuz", "float8_e5m2",   "float8_e5m2fnuz",    "float8_e8m0fnu",
                                      "float6_e2m3fn",   "float6_e3m2fn", "float4_e2m1fn"};
  size_t index = type.code - COUNT_OF(plain);
  if (type.code < COUNT_OF(plain)) {
    PyOS_snprintf(out, size, "%s%d", plain[type.code], (int)type.bits);
  } else {
    PyOS_snprintf(out, size, "%s", index < COUNT_OF(small) ? small[index] : "an unknown type");
  }
}

/* The number of base elements; -1 with an exception where the tensor is no flat run of them. */
static Py_ssize_t flat_count(const DLTensor* t) {
  if (t->device.device_type != kDLCPU) {
    PyErr_Format(PyExc_NotImplementedError, "only supports CPU tensors, this one is on device type %d; use dlpack()",
                 (int)t->device.device_type);
    return -1;
  }
  int64_t count = t->dtype.lanes;
  if (t->ndim < 0 || t->ndim > MOST_AXES || (t->ndim && !t->shape)) {
    PyErr_Format(PyExc_ValueError, "the tensor has ndim %d and %s shape: expected 0 to %d axes and their extents",
                 (int)t->ndim, t->shape ? "a" : "no", MOST_AXES);
    return -1;
  }
  bool compact = true;
  for (int32_t axis = t->ndim - 1; axis >= 0; axis--) {
    int64_t extent = t->shape[axis];
    if (t->strides && extent != 1) compact = compact && t->strides[axis] * t->dtype.lanes == count;
    if (extent < 0 || __builtin_mul_overflow(count, extent, &count)) {
      PyErr_Format(PyExc_ValueError, "the tensor's shape is not valid: axis %d has the extent %lld", (int)axis,
                   (long long)extent);
      return -1;
    }
  }
  if (!compact && count) {
    PyErr_SetString(PyExc_NotImplementedError, "the tensor has strides and is no flat run of elements; use dlpack()");
    return -1;
  }
  return (Py_ssize_t)count;
}

static Buffer* buffer_new(void* data, Py_ssize_t count, Py_ssize_t itemsize, const char* format, bool readonly,
                          keep held) {
  Buffer* self = (Buffer*)new_object(native.buffer);
  if (!self) {
    keep_release(&held);
    return NULL;
  }
  self->data = data;
  self->count = self->shape[0] = count;
  self->itemsize = self->strides[0] = itemsize;
  self->ndim = 1;
  self->width = 1;
  self->format = format;
  self->readonly = readonly;
  self->held = held;
  return self;
}

/* The axes of the tensor, its lanes in the last one: a single axis of all elements where one row is one lane type. */
static void take_shape(Buffer* self, const DLTensor* t) {
  self->width = (Py_ssize_t)row_width(t);
  if (t->ndim < 2 || t->ndim > ROW_AXES) return;
  self->ndim = t->ndim;
  Py_ssize_t step = self->itemsize;
  for (int axis = t->ndim - 1; axis >= 0; axis--) {
    self->shape[axis] = (Py_ssize_t)t->shape[axis] * (axis == t->ndim - 1 ? t->dtype.lanes : 1);
    self->strides[axis] = step;
    step *= self->shape[axis];
  }
}

PyObject* buffer_of_tensor(const DLTensor* t, bool readonly, keep held) {
  static uint8_t nothing[256] __attribute__((aligned(256))); /* what empty buffers point at */
  Py_ssize_t count = flat_count(t);
  const char* format = count < 0 ? NULL : format_of(t->dtype);
  if (count >= 0 && !format && !(format = stand_in_of(t->dtype))) {
    char name[32];
    name_type(name, sizeof name, t->dtype);
    PyErr_Format(PyExc_ValueError, "Unsupported DLDataType: NumPy has no counterpart of %s; use dlpack()", name);
  }
  if (!format) {
    keep_release(&held);
    return NULL;
  }
  void* data = t->data ? (char*)t->data + t->byte_offset : NULL;
  if (count && !data) {
    keep_release(&held);
    PyErr_Format(PyExc_ValueError, "the tensor has %zd elements and a data pointer that is NULL", count);
    return NULL;
  }
  Buffer* made = buffer_new(data ? data : nothing, count, t->dtype.bits / 8, format, readonly, held);
  if (!made) return NULL;
  made->dtype = t->dtype;
  take_shape(made, t);
  return (PyObject*)made;
}

PyObject* buffer_of_uint32s(const uint32_t* data, size_t count, keep held) {
  Buffer* made = buffer_new((void*)(uintptr_t)data, (Py_ssize_t)count, sizeof *data, "I", true, held);
  if (made) made->dtype = (DLDataType){kDLUInt, 32, 1};
  return (PyObject*)made;
}

static void buffer_dealloc(PyObject* self) {
  keep_release(&((Buffer*)self)->held);
  free_object(self);
}

static int buffer_get(PyObject* object, Py_buffer* view, int flags) {
  Buffer* self = (Buffer*)object;
  view->obj = NULL;
  if (self->readonly && (flags & PyBUF_WRITABLE)) {
    PyErr_SetString(PyExc_BufferError,
                    "these bytes belong to a snapshot and are read-only; copy them in order to change them");
    return -1;
  }
  view->obj = Py_NewRef(object);
  view->buf = self->data;
  view->len = self->count * self->itemsize;
  view->itemsize = self->itemsize;
  view->readonly = self->readonly;
  view->ndim = flags & PyBUF_ND ? self->ndim : 1;
  view->format = flags & PyBUF_FORMAT ? (char*)(uintptr_t)self->format : NULL;
  view->shape = flags & PyBUF_ND ? self->shape : NULL;
  view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? self->strides : NULL;
  view->suboffsets = NULL;
  view->internal = NULL;
  return 0;
}

static Py_ssize_t buffer_length(PyObject* self) { return ((Buffer*)self)->count; }

static PyObject* buffer_address(PyObject* self, void* unused) {
  (void)unused;
  return PyLong_FromVoidPtr(((Buffer*)self)->data);
}

static PyObject* buffer_readonly(PyObject* self, void* unused) {
  (void)unused;
  return PyBool_FromLong(((Buffer*)self)->readonly);
}

static PyObject* buffer_format(PyObject* self, void* unused) {
  (void)unused;
  return PyUnicode_FromString(((Buffer*)self)->format);
}

static PyObject* buffer_extension(PyObject* self, void* unused) {
  (void)unused;
  DLDataType type = ((Buffer*)self)->dtype;
  if (!stand_in_of(type)) return Py_NewRef(Py_None);
  char name[32];
  name_type(name, sizeof name, type);
  return PyUnicode_FromString(name);
}

static PyObject* buffer_lanes(PyObject* self, void* unused) {
  (void)unused;
  return PyLong_FromSsize_t(((Buffer*)self)->width);
}

static PyGetSetDef buffer_getset[] = {
    {"address", buffer_address, NULL, DOC_Buffer_address, NULL},
    {"readonly", buffer_readonly, NULL, DOC_Buffer_readonly, NULL},
    {"format", buffer_format, NULL, DOC_Buffer_format, NULL},
    {"extension", buffer_extension, NULL, DOC_Buffer_extension, NULL},
    {"lanes", buffer_lanes, NULL, DOC_Buffer_lanes, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot buffer_slots[] = {
    {Py_tp_doc, DOC_Buffer},       {Py_tp_dealloc, buffer_dealloc}, {Py_tp_getset, buffer_getset},
    {Py_sq_length, buffer_length}, {Py_bf_getbuffer, buffer_get},   {0, NULL},
};

PyType_Spec buffer_spec = {
    .name = "ovstage._native.Buffer",
    .basicsize = sizeof(Buffer),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = buffer_slots,
};
