/*
 * export.c - DLPack structures over memory that is not the library's: exports of tensors that a caller built, copies.
 *
 * An export of a caller's tensor holds Python references, which its deleter parks (park.c) because it may run anywhere.
 * A copy is one allocation, which its deleter frees.
 */
#include "native.h"

/* ---- Shapes as consumers want them ------------------------------------------------------------------------------- */

int64_t export_bytes(const DLTensor* t) {
  int64_t bits = (int64_t)t->dtype.bits * t->dtype.lanes;
  bool valid = t->ndim >= 0 && t->ndim <= MOST_AXES && (t->ndim == 0 || t->shape) && t->dtype.lanes > 0;
  for (int32_t axis = 0; valid && axis < t->ndim; axis++) {
    valid = t->shape[axis] >= 0 && !__builtin_mul_overflow(bits, t->shape[axis], &bits);
  }
  return valid && bits <= INT64_MAX - 7 ? (bits + 7) / 8 : -1;
}

PyObject* shape_of(const DLTensor* t) {
  if (t->shape && (t->ndim < 0 || t->ndim > MOST_AXES)) {
    PyErr_Format(PyExc_ValueError, "ndim must be in [0, %d], the tensor has %d", MOST_AXES, (int)t->ndim);
    return NULL;
  }
  Py_ssize_t ndim = t->shape && t->ndim > 0 ? t->ndim : 0;
  PyObject* tuple = PyTuple_New(ndim);
  for (Py_ssize_t axis = 0; tuple && axis < ndim; axis++) {
    PyObject* extent = PyLong_FromLongLong(t->shape[axis]);
    if (!extent || PyTuple_SetItem(tuple, axis, extent) < 0) Py_CLEAR(tuple);
  }
  return tuple;
}

/* The same with BufferError set. A descriptor is its owner's to change: it is judged when it is exported. */
static Py_ssize_t measure(const DLTensor* t) {
  int64_t bytes = export_bytes(t);
  if (t->ndim < 0 || t->ndim > MOST_AXES || (t->ndim && !t->shape)) {
    PyErr_Format(PyExc_BufferError,
                 "dl_tensor cannot be exported: it has ndim %d and %s shape, expected 0 to %d axes and their extents",
                 (int)t->ndim, t->shape ? "a" : "no", MOST_AXES);
  } else if (bytes < 0) {
    PyObject* shape = shape_of(t);
    if (shape) {
      PyErr_Format(PyExc_BufferError,
                   "dl_tensor cannot be exported: its shape is %R with %d lanes, expected extents that memory holds",
                   shape, (int)t->dtype.lanes);
    }
    Py_XDECREF(shape);
  } else if (bytes > 0 && !t->data) {
    PyErr_Format(PyExc_BufferError,
                 "dl_tensor cannot be exported: its data is NULL, expected the address of %lld bytes",
                 (long long)bytes);
    bytes = -1;
  }
  return (Py_ssize_t)bytes;
}

static int32_t exported_ndim(const DLTensor* t) { return t->ndim + (t->dtype.lanes > 1); }

/* `t` as a consumer gets it: lanes as one trailing axis, real strides, no byte offset. `extents` has room for shape and
 * strides of exported_ndim(t) axes each. */
static void describe(DLTensor* out, int64_t* extents, const DLTensor* t, bool compact) {
  static uint8_t nothing[256] __attribute__((aligned(256))); /* a NULL for "no elements" is leaked by some consumers */
  int32_t ndim = exported_ndim(t);
  int64_t *shape = extents, *strides = extents + ndim, lanes = t->dtype.lanes;
  *out = *t;
  out->data = t->data ? (char*)t->data + t->byte_offset : (char*)nothing;
  out->byte_offset = 0;
  out->ndim = ndim;
  out->shape = shape;
  out->strides = strides;
  out->dtype.lanes = 1;
  if (ndim > t->ndim) {
    shape[t->ndim] = lanes;
    strides[t->ndim] = 1;
  }
  int64_t step = lanes;
  for (int32_t axis = t->ndim - 1; axis >= 0; axis--) {
    shape[axis] = t->shape[axis];
    strides[axis] = t->strides && !compact ? t->strides[axis] * lanes : step;
    step *= shape[axis] ? shape[axis] : 1;
  }
}

/* ---- Exports of caller-built tensors ----------------------------------------------------------------------------- */

typedef struct {
  parked references; /* first: parked_drop frees the whole through it */
  union {
    DLManagedTensor legacy;
    DLManagedTensorVersioned versioned;
  } managed;
  int64_t extents[];
} Export;

static void park_legacy(DLManagedTensor* self) { park(self->manager_ctx); }
static void park_versioned(DLManagedTensorVersioned* self) { park(self->manager_ctx); }

static Export* export_of(const DLTensor* t, PyObject* owner, PyObject* context, PyObject* callback) {
  if (measure(t) < 0) return NULL;
  Export* made = calloc(1, sizeof *made + 2 * (size_t)exported_ndim(t) * sizeof(int64_t));
  if (!made) {
    PyErr_NoMemory();
    return NULL;
  }
  made->references.owner = Py_NewRef(owner);
  made->references.context = Py_XNewRef(context);
  made->references.callback = Py_XNewRef(callback);
  return made;
}

DLManagedTensorVersioned* export_versioned(const DLTensor* t, PyObject* owner, PyObject* context, PyObject* callback,
                                           uint64_t flags) {
  Export* made = export_of(t, owner, context, callback);
  if (!made) return NULL;
  DLManagedTensorVersioned* m = &made->managed.versioned;
  m->version = (DLPackVersion){DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  m->flags = flags;
  m->manager_ctx = made;
  m->deleter = park_versioned;
  describe(&m->dl_tensor, made->extents, t, false);
  return m;
}

DLManagedTensor* export_legacy(const DLTensor* t, PyObject* owner, PyObject* context, PyObject* callback) {
  Export* made = export_of(t, owner, context, callback);
  if (!made) return NULL;
  DLManagedTensor* m = &made->managed.legacy;
  m->manager_ctx = made;
  m->deleter = park_legacy;
  describe(&m->dl_tensor, made->extents, t, false);
  return m;
}

void export_end_legacy(DLManagedTensor* m) {
  if (m->deleter == park_legacy)
    parked_drop(m->manager_ctx);
  else if (m->deleter)
    m->deleter(m);
}

void export_end_versioned(DLManagedTensorVersioned* m) {
  if (m->deleter == park_versioned)
    parked_drop(m->manager_ctx);
  else if (m->deleter)
    m->deleter(m);
}

/* ---- Copies ------------------------------------------------------------------------------------------------------ */

enum { ALIGNMENT = 256 };

typedef struct {
  union {
    DLManagedTensor legacy;
    DLManagedTensorVersioned versioned;
  } managed;
  int64_t extents[];
} Copy;

static void free_legacy(DLManagedTensor* self) { free(self->manager_ctx); }
static void free_versioned(DLManagedTensorVersioned* self) { free(self->manager_ctx); }

/* Rows of the last axis are copied one after the other, elements one by one where they have gaps. */
static void copy_strided(char* to, const char* from, const int64_t* shape, const int64_t* strides, int32_t ndim,
                         size_t size) {
  if (ndim == 0) {
    memcpy(to, from, size);
    return;
  }
  size_t inner = size;
  for (int32_t axis = 1; axis < ndim; axis++) inner *= (size_t)shape[axis];
  if (ndim == 1 && strides[0] == 1) {
    memcpy(to, from, size * (size_t)shape[0]);
    return;
  }
  for (int64_t i = 0; i < shape[0]; i++) {
    copy_strided(to + (size_t)i * inner, from + i * strides[0] * (int64_t)size, shape + 1, strides + 1, ndim - 1, size);
  }
}

static void copy_bytes(char* to, const char* from, const DLTensor* t, size_t bytes, size_t size) {
  if (t->strides)
    copy_strided(to, from, t->shape, t->strides, t->ndim, size);
  else
    memcpy(to, from, bytes);
}

/* Room for a tensor of `ndim` axes and `bytes` bytes, in one allocation that the deleter frees. Needs no GIL. */
static Copy* room_for(int32_t ndim, size_t bytes, char** data) {
  size_t head = sizeof(Copy) + 2 * (size_t)ndim * sizeof(int64_t);
  head = (head + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  void* memory = NULL;
  if (posix_memalign(&memory, ALIGNMENT, head + bytes + 1)) return NULL; /* one more: never an empty allocation */
  *data = (char*)memory + head;
  return memory;
}

/* `t` as a compact writable copy; the struct around it is not filled in. */
static Copy* copy_of(const DLTensor* t, DLTensor* out) {
  Py_ssize_t bytes = measure(t);
  if (bytes < 0) return NULL;
  int64_t size_bits = (int64_t)t->dtype.bits * t->dtype.lanes;
  if (t->strides && size_bits % 8) {
    PyErr_Format(PyExc_BufferError,
                 "dl_tensor cannot be copied: it has strides and elements of %lld bits, expected whole bytes",
                 (long long)size_bits);
    return NULL;
  }
  char* data;
  Copy* copy = room_for(exported_ndim(t), (size_t)bytes, &data);
  if (!copy) {
    PyErr_NoMemory();
    return NULL;
  }
  describe(out, copy->extents, t, true);
  /* The caller holds the tensor, so that its bytes stay while other threads run. Its fields need not. */
  int64_t shape[MOST_AXES], strides[MOST_AXES];
  DLTensor from = *t;
  if (t->ndim) from.shape = memcpy(shape, t->shape, (size_t)t->ndim * sizeof *shape);
  if (t->ndim && t->strides) from.strides = memcpy(strides, t->strides, (size_t)t->ndim * sizeof *strides);
  const char* source = (const char*)from.data + from.byte_offset;
  if (bytes) WITHOUT_GIL(copy_bytes(data, source, &from, (size_t)bytes, (size_t)size_bits / 8));
  out->data = data;
  out->device = (DLDevice){kDLCPU, 0};
  return copy;
}

static DLManagedTensorVersioned* versioned_copy(Copy* copy, const DLTensor* tensor, uint64_t flags) {
  copy->managed.versioned = (DLManagedTensorVersioned){.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION},
                                                       .manager_ctx = copy,
                                                       .deleter = free_versioned,
                                                       .flags = flags,
                                                       .dl_tensor = *tensor};
  return &copy->managed.versioned;
}

DLManagedTensorVersioned* export_versioned_copy(const DLTensor* t) {
  DLTensor tensor;
  Copy* copy = copy_of(t, &tensor);
  return copy ? versioned_copy(copy, &tensor, DLPACK_FLAG_BITMASK_IS_COPIED) : NULL;
}

DLManagedTensor* export_legacy_copy(const DLTensor* t) {
  DLTensor tensor;
  Copy* copy = copy_of(t, &tensor);
  if (!copy) return NULL;
  copy->managed.legacy = (DLManagedTensor){.dl_tensor = tensor, .manager_ctx = copy, .deleter = free_legacy};
  return &copy->managed.legacy;
}

DLManagedTensorVersioned* export_empty(const DLTensor* prototype) {
  int64_t bytes = export_bytes(prototype);
  char* data;
  Copy* copy = bytes < 0 ? NULL : room_for(prototype->ndim, (size_t)bytes, &data);
  if (!copy) return NULL;
  DLTensor t = *prototype; /* lanes stay as they were asked for */
  t.data = data;
  t.byte_offset = 0;
  t.shape = copy->extents;
  t.strides = copy->extents + t.ndim;
  int64_t step = 1;
  for (int32_t axis = t.ndim - 1; axis >= 0; axis--) {
    t.shape[axis] = prototype->shape[axis];
    t.strides[axis] = step;
    step *= t.shape[axis] ? t.shape[axis] : 1;
  }
  return versioned_copy(copy, &t, 0);
}
