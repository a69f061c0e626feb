/*
 * managed.c - ManagedDLTensor: one tensor, offered to DLPack consumers.
 *
 * Two kinds. One is made by Group.dlpack over a block of the library: its exports hold native references only, are
 * deleted by C code of the library, and outlive group, stage and interpreter. The other is built by the caller over a
 * DLTensor of their own: its exports hold Python references, which their deleter parks (park.c) because it may run
 * anywhere.
 */

#include "native.h"

typedef struct {
  PyObject_HEAD const DLTensor* tensor; /* in `held`'s descriptors or in `view`; NULL before __init__ */
  bool readonly;
  bool exported; /* caller-built: a capsule was made, so that the callback is the capsule's to call */
  /* made by a group */
  ovstage_instance_t* instance;
  keep held;
  DLTensor shaped; /* the tensor under the axes that the caller asked for ... */
  int64_t* axes;   /* ... which are here; NULL = as it is */
  /* caller-built */
  PyObject* object; /* the DLTensor, read anew by every call: it may be changed field by field */
  Py_buffer view;
  PyObject *context, *callback;
} Managed;

static const char legacy_name[] = "dltensor", versioned_name[] = "dltensor_versioned";

/* ---- Shapes as consumers want them ------------------------------------------------------------------------------- */

/* How many bytes a compact copy takes; -1 for a descriptor that describes nothing. Runs without the GIL, too. */
static int64_t bytes_of(const DLTensor* t) {
  int64_t bits = (int64_t)t->dtype.bits * t->dtype.lanes;
  bool valid = t->ndim >= 0 && t->ndim <= MOST_AXES && (t->ndim == 0 || t->shape) && t->dtype.lanes > 0;
  for (int32_t axis = 0; valid && axis < t->ndim; axis++) {
    valid = t->shape[axis] >= 0 && !__builtin_mul_overflow(bits, t->shape[axis], &bits);
  }
  return valid && bits <= INT64_MAX - 7 ? (bits + 7) / 8 : -1;
}

/* The same with BufferError set. A descriptor is its owner's to change: it is judged when it is exported. */
static Py_ssize_t measure(const DLTensor* t) {
  int64_t bytes = bytes_of(t);
  if (bytes < 0) {
    PyErr_Format(PyExc_BufferError, "the tensor cannot be exported: ndim %d, %s, %d lanes", (int)t->ndim,
                 t->shape || t->ndim == 0 ? "a shape with an extent that is none" : "no shape", (int)t->dtype.lanes);
  } else if (bytes > 0 && !t->data) {
    PyErr_Format(PyExc_BufferError, "the tensor cannot be exported: it has %lld bytes and a data pointer that is NULL",
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

static void delete_legacy(DLManagedTensor* self) { park(self->manager_ctx); }
static void delete_versioned(DLManagedTensorVersioned* self) { park(self->manager_ctx); }

static Export* export_of_object(Managed* self, PyObject* owner, bool versioned, uint64_t flags) {
  const DLTensor* t = self->tensor;
  if (measure(t) < 0) return NULL;
  Export* made = calloc(1, sizeof *made + 2 * (size_t)exported_ndim(t) * sizeof(int64_t));
  if (!made) {
    PyErr_NoMemory();
    return NULL;
  }
  made->references.owner = Py_NewRef(owner);
  made->references.context = Py_XNewRef(self->context);
  made->references.callback = Py_XNewRef(self->callback);
  if (versioned) {
    DLManagedTensorVersioned* m = &made->managed.versioned;
    m->version = (DLPackVersion){DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
    m->flags = flags;
    m->manager_ctx = made;
    m->deleter = delete_versioned;
    describe(&m->dl_tensor, made->extents, t, false);
  } else {
    DLManagedTensor* m = &made->managed.legacy;
    m->manager_ctx = made;
    m->deleter = delete_legacy;
    describe(&m->dl_tensor, made->extents, t, false);
  }
  self->exported = true;
  return made;
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

/* A compact writable copy, one allocation: struct, extents, aligned bytes. */
static Copy* copy_of(const DLTensor* t, bool versioned) {
  Py_ssize_t bytes = measure(t);
  if (bytes < 0) return NULL;
  int64_t size_bits = (int64_t)t->dtype.bits * t->dtype.lanes;
  if (t->strides && size_bits % 8) {
    PyErr_SetString(PyExc_BufferError, "a strided tensor of elements below one byte cannot be copied");
    return NULL;
  }
  size_t head = sizeof(Copy) + 2 * (size_t)exported_ndim(t) * sizeof(int64_t);
  head = (head + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  void* memory = NULL;
  if (posix_memalign(&memory, ALIGNMENT, head + (bytes ? (size_t)bytes : 1))) {
    PyErr_NoMemory();
    return NULL;
  }
  Copy* copy = memory;
  char* data = (char*)memory + head;
  const char* source = t->data ? (const char*)t->data + t->byte_offset : NULL;
  /* whoever called holds the tensor, so that its bytes stay while other threads run */
  if (bytes && source) WITHOUT_GIL(copy_bytes(data, source, t, (size_t)bytes, (size_t)size_bits / 8));
  DLTensor* out;
  if (versioned) {
    copy->managed.versioned = (DLManagedTensorVersioned){.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION},
                                                         .manager_ctx = copy,
                                                         .deleter = free_versioned,
                                                         .flags = DLPACK_FLAG_BITMASK_IS_COPIED};
    out = &copy->managed.versioned.dl_tensor;
  } else {
    copy->managed.legacy = (DLManagedTensor){.manager_ctx = copy, .deleter = free_legacy};
    out = &copy->managed.legacy.dl_tensor;
  }
  describe(out, copy->extents, t, true);
  out->data = data;
  out->device = (DLDevice){kDLCPU, 0};
  return copy;
}

/* ---- Capsules ---------------------------------------------------------------------------------------------------- */

/* Destructors of capsules. A consumer has renamed the capsule when it took the tensor; else the tensor is still ours.
 * The GIL is held here, so Python references need no detour. An exception may be pending: nothing here looks at it. */
static void end_legacy(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, legacy_name)) return;
  DLManagedTensor* m = PyCapsule_GetPointer(capsule, legacy_name);
  if (m->deleter == delete_legacy)
    parked_drop(m->manager_ctx);
  else
    m->deleter(m);
}

static void end_versioned(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, versioned_name)) return;
  DLManagedTensorVersioned* m = PyCapsule_GetPointer(capsule, versioned_name);
  if (m->deleter == delete_versioned)
    parked_drop(m->manager_ctx);
  else
    m->deleter(m);
}

/* Made by a group over memory of the library, which may be none: a tensor without elements needs no block. */
static bool is_native(const Managed* self) { return self->held.descriptors != NULL; }

static DLManagedTensorVersioned* make_versioned(Managed* self, bool copy) {
  if (copy) return (DLManagedTensorVersioned*)copy_of(self->tensor, true);
  uint64_t flags = self->readonly ? DLPACK_FLAG_BITMASK_READ_ONLY : 0;
  if (is_native(self)) {
    DLManagedTensorVersioned* m = native.go->export_versioned(self->instance, self->held.block, self->tensor, flags);
    if (!m) PyErr_NoMemory();
    return m;
  }
  Export* made = export_of_object(self, self->object ? self->object : (PyObject*)self, true, flags);
  return made ? &made->managed.versioned : NULL;
}

static DLManagedTensor* make_legacy(Managed* self, bool copy) {
  if (copy) return (DLManagedTensor*)copy_of(self->tensor, false);
  if (is_native(self)) {
    DLManagedTensor* m = native.go->export_legacy(self->instance, self->held.block, self->tensor);
    if (!m) PyErr_NoMemory();
    return m;
  }
  Export* made = export_of_object(self, self->object ? self->object : (PyObject*)self, false, 0);
  return made ? &made->managed.legacy : NULL;
}

static PyObject* capsule_of(Managed* self, bool versioned, bool copy) {
  void* managed = versioned ? (void*)make_versioned(self, copy) : (void*)make_legacy(self, copy);
  if (!managed) return NULL;
  PyObject* capsule =
      PyCapsule_New(managed, versioned ? versioned_name : legacy_name, versioned ? end_versioned : end_legacy);
  if (!capsule) {
    if (versioned)
      ((DLManagedTensorVersioned*)managed)->deleter(managed);
    else
      ((DLManagedTensor*)managed)->deleter(managed);
  }
  return capsule;
}

/* ---- __dlpack__ -------------------------------------------------------------------------------------------------- */

static bool ready(Managed* self) {
  if (native.forked && is_native(self)) return raise_forked("ManagedDLTensor") != NULL;
  if (self->tensor) return true;
  PyErr_SetString(PyExc_ValueError, "this ManagedDLTensor was never initialised");
  return false;
}

/* 1: the consumer understands the versioned form; 0: it asked for the old one; -1: exception */
static int wants_versioned(PyObject* max_version) {
  if (!max_version || max_version == Py_None) return 0;
  bool pair = PyTuple_Check(max_version) && PyTuple_Size(max_version) == 2;
  PyObject* major = pair ? PyNumber_Index(PyTuple_GetItem(max_version, 0)) : NULL;
  if (!major) {
    PyErr_Clear();
    PyObject* text = shown(max_version);
    if (text) PyErr_Format(PyExc_TypeError, "max_version must be a (major, minor) tuple or None, got %U", text);
    Py_XDECREF(text);
    return -1;
  }
  int overflow;
  long long number = PyLong_AsLongLongAndOverflow(major, &overflow);
  Py_DECREF(major);
  return overflow > 0 || number >= 1;
}

/* Host memory that the CPU reads directly, under whatever device it is filed. */
static bool host_readable(const DLTensor* t) {
  return t->device.device_type == kDLCPU || t->device.device_type == kDLCUDAHost ||
         t->device.device_type == kDLROCMHost;
}

static bool malformed_device(PyObject* dl_device) {
  PyErr_Clear();
  PyObject* text = shown(dl_device);
  if (text)
    PyErr_Format(PyExc_TypeError, "dl_device must be a (device_type, device_id) tuple of ints or None, got %U", text);
  Py_XDECREF(text);
  return false;
}

/* Where the consumer wants the tensor. *copy is set where only a copy serves it. */
static bool check_device(const DLTensor* t, PyObject* dl_device, bool* copy) {
  if (!dl_device || dl_device == Py_None) return true;
  if (PyDict_Check(dl_device) || PyUnicode_Check(dl_device) || PySequence_Size(dl_device) != 2) {
    return malformed_device(dl_device);
  }
  long numbers[2];
  for (int i = 0; i < 2; i++) {
    PyObject* item = PySequence_GetItem(dl_device, i);
    PyObject* number = item ? PyNumber_Index(item) : NULL;
    numbers[i] = number ? PyLong_AsLong(number) : -1;
    Py_XDECREF(number);
    Py_XDECREF(item);
    if (!number || PyErr_Occurred()) return malformed_device(dl_device);
  }
  if (numbers[0] == (long)t->device.device_type && numbers[1] == t->device.device_id) return true;
  if (numbers[0] == kDLCPU && numbers[1] == 0 && host_readable(t)) {
    *copy = true;
    return true;
  }
  PyErr_Format(PyExc_BufferError, "dl_device (%ld, %ld) does not match tensor device (%d, %d)", numbers[0], numbers[1],
               (int)t->device.device_type, (int)t->device.device_id);
  return false;
}

static PyObject* managed_dlpack(PyObject* object, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  static signature sig = {"__dlpack__", 0, 0, {"stream", "max_version", "dl_device", "copy"}, {0}};
  Managed* self = (Managed*)object;
  PyObject* slots[4]; /* stream is accepted and ignored: this memory has none, and ordering is the caller's */
  if (!sort_arguments(&sig, args, nargs, kwnames, slots) || !ready(self)) return NULL;
  drop_parked();

  int versioned = wants_versioned(slots[1]);
  if (versioned < 0) return NULL;
  bool needs_copy = false;
  if (!check_device(self->tensor, slots[2], &needs_copy)) return NULL;
  int asked = slots[3] && slots[3] != Py_None ? PyObject_IsTrue(slots[3]) : -2;
  if (asked == -1) return NULL;
  if (needs_copy && asked == 0) {
    PyErr_SetString(PyExc_BufferError,
                    "dl_device does not match tensor device without a copy, and copy=False forbids one");
    return NULL;
  }
  bool copy = needs_copy || asked == 1;
  if (copy && !host_readable(self->tensor)) {
    PyErr_Format(PyExc_BufferError, "copy=True is not supported for memory of device type %d",
                 (int)self->tensor->device.device_type);
    return NULL;
  }
  return capsule_of(self, versioned, copy);
}

static PyObject* managed_dlpack_device(PyObject* self, PyObject* unused) {
  (void)unused;
  if (!ready((Managed*)self)) return NULL;
  DLDevice device = ((Managed*)self)->tensor->device;
  return Py_BuildValue("(ii)", (int)device.device_type, (int)device.device_id);
}

/* ---- What it describes ------------------------------------------------------------------------------------------- */

static PyObject* dltensor_class(void) {
  static PyObject* class;
  return package_attribute(&class, "ovstage.dlpack", "DLTensor");
}

static PyObject* managed_shape(PyObject* object, void* unused) {
  (void)unused;
  Managed* self = (Managed*)object;
  if (!ready(self)) return NULL;
  const DLTensor* t = self->tensor;
  Py_ssize_t ndim = t->shape && t->ndim > 0 ? t->ndim : 0;
  PyObject* tuple = PyTuple_New(ndim);
  for (Py_ssize_t axis = 0; tuple && axis < ndim; axis++) {
    PyObject* extent = PyLong_FromLongLong(t->shape[axis]);
    if (!extent || PyTuple_SetItem(tuple, axis, extent) < 0) Py_CLEAR(tuple);
  }
  return tuple;
}

static PyObject* managed_ndim(PyObject* self, void* unused) {
  (void)unused;
  return ready((Managed*)self) ? PyLong_FromLong(((Managed*)self)->tensor->ndim) : NULL;
}

static PyObject* managed_dtype(PyObject* self, void* unused) {
  (void)unused;
  static PyObject* class;
  if (!ready((Managed*)self) || !package_attribute(&class, "ovstage.dlpack", "DLDataType")) return NULL;
  DLDataType type = ((Managed*)self)->tensor->dtype;
  return PyObject_CallFunction(class, "iii", (int)type.code, (int)type.bits, (int)type.lanes);
}

static PyObject* managed_device(PyObject* self, void* unused) {
  (void)unused;
  static PyObject* class;
  if (!ready((Managed*)self) || !package_attribute(&class, "ovstage.dlpack", "DLDevice")) return NULL;
  DLDevice device = ((Managed*)self)->tensor->device;
  return PyObject_CallFunction(class, "ii", (int)device.device_type, (int)device.device_id);
}

static PyObject* managed_data(PyObject* self, void* unused) {
  (void)unused;
  if (!ready((Managed*)self)) return NULL;
  void* data = ((Managed*)self)->tensor->data;
  return data ? PyLong_FromVoidPtr(data) : Py_NewRef(Py_None);
}

static PyObject* managed_readonly(PyObject* self, void* unused) {
  (void)unused;
  return PyBool_FromLong(((Managed*)self)->readonly);
}

/* A DLTensor of its own for the caller: a copy, because descriptors of the library must not be changed. */
static PyObject* managed_raw(PyObject* object, void* unused) {
  (void)unused;
  Managed* self = (Managed*)object;
  if (!ready(self)) return NULL;
  if (self->object) return Py_NewRef(self->object);
  PyObject* class = dltensor_class();
  PyObject* bytes = class ? PyBytes_FromStringAndSize((const char*)self->tensor, sizeof *self->tensor) : NULL;
  PyObject* copy = bytes ? PyObject_CallMethod(class, "from_buffer_copy", "O", bytes) : NULL;
  Py_XDECREF(bytes);
  if (copy && PyObject_SetAttrString(copy, "_owner", object) < 0) Py_CLEAR(copy); /* shape and bytes live in `self` */
  return copy;
}

static PyObject* managed_repr(PyObject* self) {
  PyObject* shape = managed_shape(self, NULL);
  PyObject* dtype = shape ? managed_dtype(self, NULL) : NULL;
  PyObject* device = dtype ? managed_device(self, NULL) : NULL;
  PyObject* text =
      device ? PyUnicode_FromFormat("ManagedDLTensor(shape=%R, dtype=%R, device=%R)", shape, dtype, device) : NULL;
  Py_XDECREF(shape);
  Py_XDECREF(dtype);
  Py_XDECREF(device);
  return text;
}

static PyObject* managed_numpy(PyObject* self, PyObject* unused) {
  (void)unused;
  static PyObject* from_dlpack;
  PyObject* function = package_attribute(&from_dlpack, "numpy", "from_dlpack");
  return function ? PyObject_CallFunctionObjArgs(function, self, NULL) : NULL;
}

/* ---- Birth and death --------------------------------------------------------------------------------------------- */

static bool refuse_shape(const DLTensor* t, PyObject* shape, PyObject* kind, const char* expected) {
  PyErr_Clear();
  int64_t rows = 1;
  for (int32_t axis = 0; axis < t->ndim; axis++) rows *= t->shape[axis];
  PyErr_Format(kind, "shape must be %s, got %R for %lld rows of %d elements", expected, shape, (long long)rows,
               (int)t->dtype.lanes);
  return false;
}

/* The axes that the caller asks for, as numpy.reshape understands them: one may be -1, whatever is left for it. */
static bool take_axes(Managed* self, const DLTensor* t, PyObject* shape, PyObject* entries) {
  static const char fitting[] = "a sequence of extents with as many elements as the tensor, at most one of them -1";
  Py_ssize_t count = PyTuple_Size(entries), open = -1;
  if (t->strides || count > MOST_AXES) return refuse_shape(t, shape, PyExc_ValueError, fitting);
  self->axes = malloc(((size_t)count + 1) * sizeof *self->axes); /* none is an answer, too */
  if (!self->axes) return PyErr_NoMemory() != NULL;
  int64_t wanted = 1, elements = t->dtype.lanes;
  for (int32_t axis = 0; axis < t->ndim; axis++) elements *= t->shape[axis];
  for (Py_ssize_t axis = 0; axis < count; axis++) {
    PyObject* number = PyNumber_Index(PyTuple_GetItem(entries, axis));
    if (!number) return refuse_shape(t, shape, PyExc_TypeError, "a sequence of ints");
    int64_t extent = PyLong_AsLongLong(number);
    Py_DECREF(number);
    if (extent == -1 && !PyErr_Occurred() && open < 0) {
      open = axis;
    } else if (extent < 0 || __builtin_mul_overflow(wanted, extent, &wanted)) {
      return refuse_shape(t, shape, PyExc_ValueError, fitting);
    }
    self->axes[axis] = extent;
  }
  if (open < 0 ? wanted != elements : wanted == 0 || elements % wanted) {
    return refuse_shape(t, shape, PyExc_ValueError, fitting);
  }
  if (open >= 0) self->axes[open] = elements / wanted;
  self->shaped = *t;
  self->shaped.ndim = (int32_t)count;
  self->shaped.shape = self->axes;
  self->shaped.dtype.lanes = 1;
  self->tensor = &self->shaped;
  return true;
}

PyObject* managed_of_tensor(ovstage_instance_t* instance, const DLTensor* tensor, PyObject* shape, bool readonly,
                            keep held) {
  Managed* self = (Managed*)new_object(native.managed);
  if (!self) {
    keep_release(&held);
    return NULL;
  }
  self->tensor = tensor;
  self->readonly = readonly;
  self->held = held;
  self->instance = instance;
  if (instance) native.go->instance_retain(instance);
  if (!held.source) PyObject_GC_UnTrack(self); /* refers to no Python object */
  if (!shape || shape == Py_None) return (PyObject*)self;
  PyObject* entries = PySequence_Tuple(shape);
  bool good = entries ? take_axes(self, tensor, shape, entries)
                      : refuse_shape(tensor, shape, PyExc_TypeError, "a sequence of ints");
  Py_XDECREF(entries);
  if (good) return (PyObject*)self;
  Py_DECREF(self);
  return NULL;
}

static int managed_clear(PyObject* object) {
  Managed* self = (Managed*)object;
  self->tensor = NULL;
  if (self->view.obj) PyBuffer_Release(&self->view);
  Py_CLEAR(self->object);
  Py_CLEAR(self->context);
  Py_CLEAR(self->callback);
  keep_release(&self->held);
  free(self->axes);
  self->axes = NULL;
  return 0;
}

static int managed_init(PyObject* object, PyObject* args, PyObject* kwargs) {
  static char* names[] = {"dl_tensor", "manager_ctx", "deleter_callback", "readonly", NULL};
  Managed* self = (Managed*)object;
  PyObject *tensor, *context, *callback = Py_None, *readonly = Py_True;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|OO:ManagedDLTensor", names, &tensor, &context, &callback,
                                   &readonly)) {
    return -1;
  }
  PyObject* class = dltensor_class();
  int matches = class ? PyObject_IsInstance(tensor, class) : -1;
  if (matches < 0) return -1;
  Py_buffer view;
  if (!matches || PyObject_GetBuffer(tensor, &view, PyBUF_SIMPLE) < 0) {
    PyErr_Clear();
    PyObject* text = shown(tensor);
    if (text) PyErr_Format(PyExc_TypeError, "dl_tensor must be a DLTensor, got %U", text);
    Py_XDECREF(text);
    return -1;
  }
  if (callback != Py_None && !PyCallable_Check(callback)) {
    PyBuffer_Release(&view);
    PyErr_Format(PyExc_TypeError, "deleter_callback must be callable or None, got %R", callback);
    return -1;
  }
  int flag = PyObject_IsTrue(readonly);
  if (flag < 0) {
    PyBuffer_Release(&view);
    return -1;
  }
  managed_clear(object);
  self->view = view;
  self->tensor = view.buf;
  self->readonly = flag;
  self->exported = false;
  self->object = Py_NewRef(tensor);
  self->context = Py_NewRef(context);
  self->callback = callback == Py_None ? NULL : Py_NewRef(callback);
  return 0;
}

static int managed_traverse(PyObject* object, visitproc visit, void* arg) {
  Managed* self = (Managed*)object;
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(self->object);
  Py_VISIT(self->view.obj);
  Py_VISIT(self->context);
  Py_VISIT(self->callback);
  Py_VISIT(self->held.source);
  return 0;
}

/* The callback is owed once even if no capsule was ever made. */
static void managed_finalize(PyObject* object) {
  Managed* self = (Managed*)object;
  if (!self->callback || self->exported) return;
  self->exported = true;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject* result = PyObject_CallFunctionObjArgs(self->callback, self->context, NULL);
  if (!result) PyErr_Clear(); /* nobody is left to tell */
  Py_XDECREF(result);
  PyErr_Restore(type, value, traceback);
}

static void managed_dealloc(PyObject* object) {
  Managed* self = (Managed*)object;
  PyObject_GC_UnTrack(object);
  managed_finalize(object); /* the callback sees its context, never this object: it cannot come back to life */
  if (self->instance) native.go->instance_release(self->instance);
  managed_clear(object);
  free_object(object);
}

/* ---- The C exchange table ---------------------------------------------------------------------------------------- */

/* DLPack calls these from other extensions, with the GIL unless said. They answer -1 with a Python exception set. */

static int exchange_allocate(DLTensor* prototype, DLManagedTensorVersioned** out, void* error_ctx,
                             void (*set_error)(void* error_ctx, const char* kind, const char* message)) {
  /* May run without the GIL: no Python in here. */
  int64_t bytes = bytes_of(prototype);
  if (bytes < 0 || prototype->device.device_type != kDLCPU) {
    set_error(error_ctx, "BufferError", "ovstage allocates tensors with valid extents in host memory only");
    return -1;
  }
  size_t ndim = (size_t)prototype->ndim;
  size_t head = (sizeof(Copy) + 2 * ndim * sizeof(int64_t) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  void* memory = NULL;
  if (posix_memalign(&memory, ALIGNMENT, head + (size_t)bytes + 1)) {
    set_error(error_ctx, "MemoryError", "out of memory");
    return -1;
  }
  Copy* copy = memory;
  copy->managed.versioned = (DLManagedTensorVersioned){.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION},
                                                       .manager_ctx = copy,
                                                       .deleter = free_versioned,
                                                       .dl_tensor = *prototype};
  DLTensor* t = &copy->managed.versioned.dl_tensor; /* lanes stay as they were asked for */
  t->data = (char*)memory + head;
  t->byte_offset = 0;
  t->shape = copy->extents;
  t->strides = copy->extents + ndim;
  int64_t step = 1;
  for (int32_t axis = t->ndim - 1; axis >= 0; axis--) {
    t->shape[axis] = prototype->shape[axis];
    t->strides[axis] = step;
    step *= t->shape[axis] ? t->shape[axis] : 1;
  }
  *out = &copy->managed.versioned;
  return 0;
}

static int exchange_from_object(void* object, DLManagedTensorVersioned** out) {
  if (!PyObject_TypeCheck((PyObject*)object, native.managed)) {
    PyErr_SetString(PyExc_TypeError, "expected a ManagedDLTensor");
    return -1;
  }
  if (!ready(object)) return -1;
  drop_parked();
  *out = make_versioned(object, false);
  return *out ? 0 : -1;
}

/* Owner of a tensor that another extension handed over. */
static void end_owned(PyObject* capsule) {
  DLManagedTensorVersioned* m = PyCapsule_GetPointer(capsule, versioned_name);
  if (m && m->deleter) m->deleter(m);
}

static int exchange_to_object(DLManagedTensorVersioned* tensor, void** out) {
  bool foreign = tensor->version.major != DLPACK_MAJOR_VERSION;
  if (foreign) PyErr_Format(PyExc_BufferError, "DLPack %u has another layout", (unsigned)tensor->version.major);
  PyObject* owner = foreign ? NULL : PyCapsule_New(tensor, versioned_name, end_owned);
  if (!owner) { /* taken over all the same */
    if (tensor->deleter) tensor->deleter(tensor);
    return -1;
  }
  *out = managed_of_tensor(NULL, &tensor->dl_tensor, NULL, (tensor->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0,
                           (keep){NULL, NULL, owner});
  return *out ? 0 : -1;
}

static int exchange_current_stream(DLDeviceType device_type, int32_t device_id, void** out) {
  (void)device_type;
  (void)device_id;
  *out = NULL; /* host memory is on no stream */
  return 0;
}

bool managed_add_exchange_table(PyTypeObject* type) {
  static DLPackExchangeAPI table = {
      .header = {.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION}, .prev_api = NULL},
      .managed_tensor_allocator = exchange_allocate,
      .managed_tensor_from_py_object_no_sync = exchange_from_object,
      .managed_tensor_to_py_object_no_sync = exchange_to_object,
      .dltensor_from_py_object_no_sync = NULL, /* a borrow could not say that it is read-only */
      .current_work_stream = exchange_current_stream,
  };
  PyObject* capsule = PyCapsule_New(&table, "dlpack_exchange_api", NULL);
  bool added = capsule && PyObject_SetAttrString((PyObject*)type, "__dlpack_c_exchange_api__", capsule) == 0;
  Py_XDECREF(capsule);
  return added;
}

/* ---- The type ---------------------------------------------------------------------------------------------------- */

static PyMethodDef managed_methods[] = {
    {"__dlpack__", FAST_KEYWORDS(managed_dlpack),
     "__dlpack__($self, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
     "A DLPack capsule: versioned (1.3) for consumers that ask for major version 1 or more, else of the old form, "
     "which "
     "has no read-only flag. copy=True gives the consumer bytes of its own."},
    {"__dlpack_device__", managed_dlpack_device, METH_NOARGS,
     "__dlpack_device__($self)\n--\n\nThe pair (device type, device id)."},
    {"numpy", managed_numpy, METH_NOARGS, "numpy($self)\n--\n\nThe tensor as numpy.from_dlpack(self) sees it."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef managed_getset[] = {
    {"shape", managed_shape, NULL, "The raw extents; lanes are not an axis here.", NULL},
    {"ndim", managed_ndim, NULL, "The number of axes, lanes not counted.", NULL},
    {"dtype", managed_dtype, NULL, "The DLDataType of an element.", NULL},
    {"data", managed_data, NULL, "Address of the data, or None.", NULL},
    {"device", managed_device, NULL, "The DLDevice that the data is on.", NULL},
    {"raw_dltensor", managed_raw, NULL, "The DLTensor.", NULL},
    {"readonly", managed_readonly, NULL, "True where consumers are told not to write.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot managed_slots[] = {
    {Py_tp_doc,
     "ManagedDLTensor(dl_tensor, manager_ctx, deleter_callback=None, readonly=True)\n--\n\n"
     "A tensor that DLPack consumers can take: numpy.from_dlpack(tensor), and likewise in Warp, PyTorch, JAX, CuPy.\n\n"
     "manager_ctx is kept alive until the consumer is done; deleter_callback(manager_ctx) then runs, once per "
     "capsule."},
    {Py_tp_init, managed_init},
    {Py_tp_new, PyType_GenericNew},
    {Py_tp_dealloc, managed_dealloc},
    {Py_tp_finalize, managed_finalize},
    {Py_tp_traverse, managed_traverse},
    {Py_tp_clear, managed_clear},
    {Py_tp_repr, managed_repr},
    {Py_tp_methods, managed_methods},
    {Py_tp_getset, managed_getset},
    {0, NULL},
};

PyType_Spec managed_spec = {
    .name = "ovstage._native.ManagedDLTensor",
    .basicsize = sizeof(Managed),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
    .slots = managed_slots,
};
