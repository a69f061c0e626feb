/*
 * managed.c - ManagedDLTensor: one tensor, offered to DLPack consumers.
 *
 * Two kinds. One is made by Group.dlpack over a block of the library: its exports hold native references only, are
 * deleted by C code of the library, and outlive group, stage and interpreter. The other is built by the caller over a
 * DLTensor of their own: its exports hold Python references (export.c).
 */
#include "native.h"

typedef struct {
  PyObject_HEAD const DLTensor* tensor; /* in `held`'s descriptors or in `view`; NULL before __init__ */
  bool readonly;
  bool private;  /* every export is a copy of the consumer's own */
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

/* ---- Capsules ---------------------------------------------------------------------------------------------------- */

/* Destructors of capsules. A consumer has renamed the capsule when it took the tensor; else the tensor is still ours.
 * An exception may be pending: nothing here looks at it. */
static void end_legacy(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, LEGACY_NAME)) export_end_legacy(PyCapsule_GetPointer(capsule, LEGACY_NAME));
}

static void end_versioned(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, VERSIONED_NAME)) export_end_versioned(PyCapsule_GetPointer(capsule, VERSIONED_NAME));
}

/* Made by a group over memory of the library, which may be none: a tensor without elements needs no block. */
static bool is_native(const Managed* self) { return self->held.descriptors != NULL; }

/* What keeps the bytes of a tensor that is not the library's. */
static PyObject* owner_of(Managed* self) { return self->object ? self->object : (PyObject*)self; }

/* The caller may have changed a descriptor since its memory was measured: it is judged when it is exported. */
static bool within_memory(Managed* self) {
  int64_t held;
  axes_room room;
  if (!self->object) return true;
  if (!known_extent(self->object, &held) || !known_axes(self->object, &room)) return false;
  const DLTensor* t = self->tensor;
  if (t->ndim <= MOST_AXES && !check_axes(t, &room, PyExc_BufferError, "dl_tensor")) return false;
  return held < 0 || export_bytes(t) <= 0 || !t->data || check_extent(t, held, PyExc_BufferError, "dl_tensor");
}

static bool packed_natively(const Managed* self) { return is_native(self) && !self->tensor->strides; }

static DLManagedTensorVersioned* make_versioned(Managed* self, bool copy) {
  if (!within_memory(self)) return NULL;
  if ((copy || self->private) && packed_natively(self)) {
    DLManagedTensorVersioned* m;
    WITHOUT_GIL(m = native.go->export_copy_versioned(self->instance, self->tensor));
    if (!m) PyErr_NoMemory();
    return m;
  }
  if (copy || self->private) return export_versioned_copy(self->tensor);
  uint64_t flags = self->readonly ? DLPACK_FLAG_BITMASK_READ_ONLY : 0;
  if (is_native(self)) {
    DLManagedTensorVersioned* m = native.go->export_versioned(self->instance, self->held.block, self->tensor, flags);
    if (!m) PyErr_NoMemory();
    return m;
  }
  DLManagedTensorVersioned* m = export_versioned(self->tensor, owner_of(self), self->context, self->callback, flags);
  if (m) self->exported = true;
  return m;
}

static DLManagedTensor* make_legacy(Managed* self, bool copy) {
  if (!within_memory(self)) return NULL;
  if ((copy || self->private) && packed_natively(self)) {
    DLManagedTensor* m;
    WITHOUT_GIL(m = native.go->export_copy_legacy(self->instance, self->tensor));
    if (!m) PyErr_NoMemory();
    return m;
  }
  if (copy || self->private) return export_legacy_copy(self->tensor);
  if (is_native(self)) {
    DLManagedTensor* m = native.go->export_legacy(self->instance, self->held.block, self->tensor);
    if (!m) PyErr_NoMemory();
    return m;
  }
  DLManagedTensor* m = export_legacy(self->tensor, owner_of(self), self->context, self->callback);
  if (m) self->exported = true;
  return m;
}

static PyObject* capsule_of(Managed* self, bool versioned, bool copy) {
  void* managed = versioned ? (void*)make_versioned(self, copy) : (void*)make_legacy(self, copy);
  if (!managed) return NULL;
  PyObject* capsule =
      PyCapsule_New(managed, versioned ? VERSIONED_NAME : LEGACY_NAME, versioned ? end_versioned : end_legacy);
  if (!capsule) {
    if (versioned)
      export_end_versioned(managed);
    else
      export_end_legacy(managed);
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

DLManagedTensorVersioned* managed_export(PyObject* object) {
  Managed* self = (Managed*)object;
  if (!ready(self)) return NULL;
  drop_parked();
  return make_versioned(self, false);
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

/* Where the consumer wants the tensor; `asked` is false where it does not say. */
typedef struct {
  bool asked;
  long type, id;
} device_wish;

static bool guard_device(PyObject* dl_device, device_wish* out) {
  *out = (device_wish){.asked = dl_device && dl_device != Py_None};
  if (!out->asked) return true;
  if (PyDict_Check(dl_device) || PyUnicode_Check(dl_device) || PySequence_Size(dl_device) != 2) {
    return malformed_device(dl_device);
  }
  long* numbers[2] = {&out->type, &out->id};
  for (int i = 0; i < 2; i++) {
    PyObject* item = PySequence_GetItem(dl_device, i);
    PyObject* number = item ? PyNumber_Index(item) : NULL;
    *numbers[i] = number ? PyLong_AsLong(number) : -1;
    Py_XDECREF(number);
    Py_XDECREF(item);
    if (!number || PyErr_Occurred()) return malformed_device(dl_device);
  }
  return true;
}

/* *copy is set where only a copy serves the wish. */
static bool check_device(const DLTensor* t, const device_wish* wish, bool* copy) {
  *copy = false;
  if (!wish->asked || (wish->type == (long)t->device.device_type && wish->id == t->device.device_id)) return true;
  if (wish->type == kDLCPU && wish->id == 0 && host_readable(t)) {
    *copy = true;
    return true;
  }
  PyErr_Format(PyExc_BufferError, "dl_device (%ld, %ld) does not match tensor device (%d, %d)", wish->type, wish->id,
               (int)t->device.device_type, (int)t->device.device_id);
  return false;
}

static PyObject* managed_dlpack(PyObject* object, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  enum { STREAM, MAX_VERSION, DL_DEVICE, COPY, SLOTS };
  static signature sig = {"__dlpack__", 0, 0, {"stream", "max_version", "dl_device", "copy"}, {0}};
  Managed* self = (Managed*)object;
  PyObject* slots[SLOTS]; /* stream is accepted and ignored: this memory has none, and ordering is the caller's */
  if (!sort_arguments(&sig, args, nargs, kwnames, slots)) return NULL;
  drop_parked();

  /* First the arguments, which may run any code, then the tensor. */
  device_wish device;
  bool needs_copy;
  int versioned = wants_versioned(slots[MAX_VERSION]);
  if (versioned < 0 || !guard_device(slots[DL_DEVICE], &device)) return NULL;
  int asked = is_given(slots[COPY]) ? PyObject_IsTrue(slots[COPY]) : -2;
  if (asked == -1 || !ready(self) || !check_device(self->tensor, &device, &needs_copy)) return NULL;
  if (needs_copy && asked == 0) {
    DLDevice own = self->tensor->device;
    PyErr_Format(PyExc_BufferError,
                 "dl_device (1, 0) does not match tensor device (%d, %d) without a copy, and copy=False forbids one",
                 (int)own.device_type, (int)own.device_id);
    return NULL;
  }
  if (self->private && asked == 0) {
    PyErr_SetString(PyExc_BufferError, "private=True gives every consumer a copy, and copy=False forbids one");
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
  return ready(self) ? shape_of(self->tensor) : NULL;
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
  if (!ready((Managed*)self)) { /* a repr tells, and raises nothing */
    PyErr_Clear();
    return PyUnicode_FromFormat("<ManagedDLTensor, %s>",
                                native.forked ? "not to be asked in a forked child process" : "never initialised");
  }
  int32_t ndim = ((Managed*)self)->tensor->ndim;
  bool known = ndim >= 0 && ndim <= MOST_AXES;
  PyObject* shape = known ? managed_shape(self, NULL) : PyUnicode_FromFormat("<ndim %d>", (int)ndim);
  PyObject* dtype = shape ? managed_dtype(self, NULL) : NULL;
  PyObject* device = dtype ? managed_device(self, NULL) : NULL;
  PyObject* text =
      device ? PyUnicode_FromFormat("ManagedDLTensor(shape=%S, dtype=%R, device=%R)", shape, dtype, device) : NULL;
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

PyObject* axes_of(PyObject* shape) {
  PyObject* given = guard_sequence(shape, "shape", "a sequence of ints");
  Py_ssize_t count = given ? PyTuple_Size(given) : 0;
  PyObject* axes = given ? PyTuple_New(count) : NULL;
  for (Py_ssize_t axis = 0; axes && axis < count; axis++) {
    PyObject* number = guard_int(PyTuple_GetItem(given, axis), "shape", "ints");
    if (!number || PyTuple_SetItem(axes, axis, number) < 0) Py_CLEAR(axes);
  }
  Py_XDECREF(given);
  if (axes || !PyErr_ExceptionMatches(PyExc_TypeError)) return axes;
  PyErr_Clear();
  PyErr_Format(PyExc_TypeError, "shape must be a sequence of ints, got %R", shape);
  return NULL;
}

static bool refuse_axes(const DLTensor* t, PyObject* axes, int64_t rows) {
  int64_t width = t->dtype.lanes;
  if (rows >= 0 && t->ndim > 0) {
    rows = t->shape[0];
    width = row_width(t);
  }
  PyErr_Clear();
  PyErr_Format(
      PyExc_ValueError,
      "shape must be a sequence of extents with as many elements as the tensor, at most one of them -1, got %R for "
      "%lld rows of %lld elements",
      axes, (long long)rows, (long long)width);
  return false;
}

/* The axes that the caller asks for, as numpy.reshape understands them: one may be -1, whatever is left for it. */
static bool take_axes(Managed* self, const DLTensor* t, PyObject* axes) {
  Py_ssize_t count = PyTuple_Size(axes), open = -1;
  if (t->ndim < 0 || t->ndim > MOST_AXES || (t->ndim && !t->shape)) { /* of a group that the caller has built */
    PyErr_Format(PyExc_ValueError, "the tensor has ndim %d and %s shape: expected 0 to %d axes and their extents",
                 (int)t->ndim, t->shape ? "a" : "no", MOST_AXES);
    return false;
  }
  int64_t wanted = 1, rows = 1, elements;
  for (int32_t axis = 0; axis < t->ndim; axis++)
    if (__builtin_mul_overflow(rows, t->shape[axis], &rows)) rows = -1;
  if (t->strides || count > MOST_AXES || rows < 0 || __builtin_mul_overflow(rows, t->dtype.lanes, &elements))
    return refuse_axes(t, axes, rows);
  self->axes = malloc(((size_t)count + 1) * sizeof *self->axes); /* none is an answer, too */
  if (!self->axes) return PyErr_NoMemory() != NULL;
  for (Py_ssize_t axis = 0; axis < count; axis++) {
    int64_t extent = PyLong_AsLongLong(PyTuple_GetItem(axes, axis));
    if (extent == -1 && !PyErr_Occurred() && open < 0) {
      open = axis;
    } else if (extent < 0 || __builtin_mul_overflow(wanted, extent, &wanted)) {
      return refuse_axes(t, axes, rows);
    }
    self->axes[axis] = extent;
  }
  if (open < 0 ? wanted != elements : wanted == 0 || elements % wanted) return refuse_axes(t, axes, rows);
  if (open >= 0) self->axes[open] = elements / wanted;
  self->shaped = *t;
  self->shaped.ndim = (int32_t)count;
  self->shaped.shape = self->axes;
  self->shaped.dtype.lanes = 1;
  self->tensor = &self->shaped;
  return true;
}

PyObject* managed_private(PyObject* managed) {
  if (!managed) return NULL;
  ((Managed*)managed)->private = true;
  ((Managed*)managed)->readonly = false;
  return managed;
}

PyObject* managed_of_tensor(ovstage_instance_t* instance, const DLTensor* tensor, PyObject* axes, bool readonly,
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
  if (!axes || take_axes(self, tensor, axes)) return (PyObject*)self;
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
  if (self->tensor) {
    PyBuffer_Release(&view);
    PyErr_SetString(PyExc_RuntimeError, "a ManagedDLTensor cannot be initialised twice");
    return -1;
  }
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
  if (!result) PyErr_Clear(); /* there is no caller left to tell */
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

/* ---- The type ---------------------------------------------------------------------------------------------------- */

static PyMethodDef managed_methods[] = {
    {"__dlpack__", FAST_KEYWORDS(managed_dlpack), DOC_ManagedDLTensor___dlpack__},
    {"__dlpack_device__", managed_dlpack_device, METH_NOARGS, DOC_ManagedDLTensor___dlpack_device__},
    {"numpy", managed_numpy, METH_NOARGS, DOC_ManagedDLTensor_numpy},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef managed_getset[] = {
    {"shape", managed_shape, NULL, DOC_ManagedDLTensor_shape, NULL},
    {"ndim", managed_ndim, NULL, DOC_ManagedDLTensor_ndim, NULL},
    {"dtype", managed_dtype, NULL, DOC_ManagedDLTensor_dtype, NULL},
    {"data", managed_data, NULL, DOC_ManagedDLTensor_data, NULL},
    {"device", managed_device, NULL, DOC_ManagedDLTensor_device, NULL},
    {"raw_dltensor", managed_raw, NULL, DOC_ManagedDLTensor_raw_dltensor, NULL},
    {"readonly", managed_readonly, NULL, DOC_ManagedDLTensor_readonly, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot managed_slots[] = {
    {Py_tp_doc, DOC_ManagedDLTensor},
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
