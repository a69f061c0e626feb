/*
 * dlpack_in.c - taking tensors from DLPack producers.
 *
 * The producer is asked for the versioned form first and, when it does not know that question, for whatever
 * it has. A capsule is taken over by renaming it; from then on the producer's deleter is ours to call, exactly once, on
 * a thread that holds the GIL: most deleters in Python land need it.
 *
 * What comes out of a capsule is the word of another library. The version is looked at before anything behind it, axes
 * and lanes before anything is read through them; a capsule that is refused for these is not taken over, so that its
 * own destructor gives the tensor back. Whether the rest makes sense is the engine's to judge.
 */
#include "native.h"

static const char legacy_name[] = "dltensor", versioned_name[] = "dltensor_versioned";

const DLTensor* import_tensor(const imported* self) {
  return self->versioned ? &self->versioned->dl_tensor : &self->legacy->dl_tensor;
}

void import_close(imported* self) {
  if (!self->legacy && !self->versioned) return;
  imported taken = *self;
  self->legacy = NULL;
  self->versioned = NULL;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback); /* a deleter written in Python must not meet, nor replace, our exception */
  if (taken.versioned && taken.versioned->deleter) taken.versioned->deleter(taken.versioned);
  if (taken.legacy && taken.legacy->deleter) taken.legacy->deleter(taken.legacy);
  if (PyErr_Occurred()) PyErr_Clear();
  PyErr_Restore(type, value, traceback);
}

/* ---- Asking ------------------------------------------------------------------------------------------------------ */

long stated_device(PyObject* object) {
  PyObject* ask = PyObject_GetAttr(object, native.name.dlpack_device);
  if (!ask) {
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return DEVICE_FAILED;
    PyErr_Clear();
    return DEVICE_UNKNOWN;
  }
  PyObject* device = PyObject_CallNoArgs(ask);
  Py_DECREF(ask);
  PyObject* kind = device ? PySequence_GetItem(device, 0) : NULL;
  PyObject* number = kind ? PyNumber_Index(kind) : NULL;
  long type = number ? PyLong_AsLong(number) : DEVICE_FAILED;
  Py_XDECREF(number);
  Py_XDECREF(kind);
  Py_XDECREF(device);
  return PyErr_Occurred() ? DEVICE_FAILED : type;
}

/* Some producers file pinned memory under the CPU in one place and not in the other. */
bool on_host(long device) {
  return device == kDLCPU || device == kDLCUDAHost || device == kDLROCMHost || device == kDLCUDAManaged;
}

static PyObject* ask(PyObject* method, PyObject* stream, bool versioned) {
  if (!stream) {
    return versioned ? PyObject_Call(method, native.empty_tuple, native.ask_versioned) : PyObject_CallNoArgs(method);
  }
  PyObject* keywords = versioned ? PyDict_Copy(native.ask_versioned) : PyDict_New();
  PyObject* answer = NULL;
  if (keywords && PyDict_SetItem(keywords, native.name.stream, stream) == 0) {
    answer = PyObject_Call(method, native.empty_tuple, keywords);
  }
  Py_XDECREF(keywords);
  return answer;
}

/* Whether the pending TypeError says that the producer does not know max_version. What it raises for reasons of its own
 * is not taken for that, and goes through. */
static bool unknown_keyword(void) {
  if (!PyErr_ExceptionMatches(PyExc_TypeError)) return false;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  PyObject* text = value ? PyObject_Str(value) : NULL;
  const char* said = text ? PyUnicode_AsUTF8AndSize(text, NULL) : NULL;
  bool named = said && strstr(said, "max_version") && strstr(said, "keyword");
  bool bound = said && !traceback && strstr(said, "argument"); /* the call itself failed: nothing of the producer ran */
  PyErr_Clear();
  bool unknown = named || bound || (said && strstr(said, "takes no keyword arguments"));
  Py_XDECREF(text);
  PyErr_Restore(type, value, traceback);
  return unknown;
}

/* `device` is what the object states, and decides whether it gets to see the stream: only CUDA memory has one. */
static PyObject* capsule_of(PyObject* object, PyObject* stream, long device, const char* where) {
  PyObject* method = PyObject_GetAttr(object, native.name.dlpack);
  if (!method) {
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return NULL;
    PyErr_Clear();
    PyObject* text = shown(object);
    if (text)
      PyErr_Format(PyExc_TypeError, "%s does not support the DLPack protocol: it has no __dlpack__, got %U", where,
                   text);
    Py_XDECREF(text);
    return NULL;
  }
  bool has_stream = device == kDLCUDA || device == kDLCUDAManaged;
  PyObject* passed = has_stream && stream && stream != Py_None ? stream : NULL;
  PyObject* capsule = ask(method, passed, true);
  if (!capsule && unknown_keyword()) {
    PyErr_Clear();
    capsule = ask(method, passed, false);
  }
  Py_DECREF(method);
  return capsule;
}

/* ---- Taking ------------------------------------------------------------------------------------------------------ */

static bool refuse_capsule(PyObject* capsule, const char* where) {
  const char* name = PyCapsule_CheckExact(capsule) ? PyCapsule_GetName(capsule) : NULL;
  if (name) {
    PyErr_Format(PyExc_ValueError,
                 "%s: __dlpack__ returned a capsule with the incorrect name '%s': expected 'dltensor' or "
                 "'dltensor_versioned', and a capsule can be consumed only once",
                 where, name);
  } else {
    PyObject* text = shown(capsule);
    if (text) PyErr_Format(PyExc_ValueError, "%s: __dlpack__ returned an invalid PyCapsule object: %U", where, text);
    Py_XDECREF(text);
  }
  return false;
}

/* False with an exception set: reading this tensor would lead out of it. */
static bool check_tensor(const DLTensor* t, long stated, const char* where) {
  long device = t->device.device_type;
  if (t->ndim < 0 || t->ndim > MOST_AXES || (t->ndim > 0 && !t->shape)) {
    PyErr_Format(PyExc_ValueError,
                 "%s: the producer's tensor has ndim %d and %s shape: expected 0 to %d axes and their extents", where,
                 (int)t->ndim, t->shape ? "a" : "no", MOST_AXES);
  } else if (t->dtype.lanes < 1 || t->dtype.lanes > MOST_LANES) {
    PyErr_Format(PyExc_ValueError, "%s: lanes must be in [1, 255], the producer's tensor has %d", where,
                 (int)t->dtype.lanes);
  } else if (stated != DEVICE_UNKNOWN && stated != device && !(on_host(stated) && on_host(device))) {
    PyErr_Format(PyExc_BufferError,
                 "%s: __dlpack_device__ says device type %ld, but the tensor of __dlpack__ is on device type %ld",
                 where, stated, device);
  } else {
    return true;
  }
  return false;
}

bool import_open(imported* out, PyObject* object, PyObject* stream, const char* where) {
  memset(out, 0, sizeof *out);
  if (!check_unmasked(object, where)) return false;
  long stated = stated_device(object);
  PyObject* capsule = stated == DEVICE_FAILED ? NULL : capsule_of(object, stream, stated, where);
  if (!capsule) return false;

  imported found = {0};
  if (PyCapsule_IsValid(capsule, versioned_name)) {
    found.versioned = PyCapsule_GetPointer(capsule, versioned_name);
  } else if (PyCapsule_IsValid(capsule, legacy_name)) {
    found.legacy = PyCapsule_GetPointer(capsule, legacy_name);
  } else {
    refuse_capsule(capsule, where);
    Py_DECREF(capsule);
    return false;
  }

  /* Of a foreign major version only the version, the deleter and the flags may be looked at. */
  bool foreign = found.versioned && found.versioned->version.major != DLPACK_MAJOR_VERSION;
  if (!foreign && !check_tensor(import_tensor(&found), stated, where)) {
    Py_DECREF(capsule);
    return false;
  }
  if (PyCapsule_SetName(capsule, found.versioned ? "used_dltensor_versioned" : "used_dltensor") < 0) {
    Py_DECREF(capsule);
    return false;
  }
  Py_DECREF(capsule);
  if (foreign) {
    unsigned major = found.versioned->version.major, minor = found.versioned->version.minor;
    import_close(&found);
    PyErr_Format(PyExc_BufferError,
                 "%s: the producer answered with DLPack %u.%u, which has another layout; at most %d.x can be read",
                 where, major, minor, DLPACK_MAJOR_VERSION);
    return false;
  }
  *out = found;
  return true;
}

/* ---- For Python -------------------------------------------------------------------------------------------------- */

typedef struct {
  PyObject_HEAD imported tensor;
} Imported;

static void imported_dealloc(PyObject* self) {
  import_close(&((Imported*)self)->tensor);
  free_object(self);
}

static PyType_Slot imported_slots[] = {
    {Py_tp_doc, DOC_ImportedTensor},
    {Py_tp_dealloc, imported_dealloc},
    {0, NULL},
};

PyType_Spec imported_spec = {
    .name = "ovstage._native.ImportedTensor",
    .basicsize = sizeof(Imported),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = imported_slots,
};

static PyObject* tuple_of(const int64_t* values, int32_t count) {
  PyObject* tuple = PyTuple_New(count);
  for (int32_t i = 0; tuple && i < count; i++) {
    PyObject* number = PyLong_FromLongLong(values[i]);
    if (!number || PyTuple_SetItem(tuple, i, number) < 0) Py_CLEAR(tuple);
  }
  return tuple;
}

static PyObject* consume_dlpack(PyObject* module, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  enum { OBJ, STREAM, SLOTS };
  (void)module;
  static signature sig = {"consume_dlpack", 2, 1, {"obj", "stream"}, {0}};
  PyObject* slots[SLOTS];
  if (!sort_arguments(&sig, args, nargs, kwnames, slots)) return NULL;
  drop_parked();

  imported taken;
  if (!import_open(&taken, slots[OBJ], slots[STREAM], "obj")) return NULL;
  Imported* owner = (Imported*)new_object(native.imported);
  if (!owner) {
    import_close(&taken);
    return NULL;
  }
  owner->tensor = taken;

  const DLTensor* t = import_tensor(&taken);
  PyObject* shape = tuple_of(t->shape, t->ndim);
  PyObject* strides = t->strides && t->ndim ? tuple_of(t->strides, t->ndim) : Py_NewRef(Py_None);
  return Py_BuildValue("((KiiiiiNNKK)N)", (unsigned long long)(uintptr_t)t->data, (int)t->device.device_type,
                       (int)t->device.device_id, (int)t->dtype.code, (int)t->dtype.bits, (int)t->dtype.lanes, shape,
                       strides, (unsigned long long)t->byte_offset,
                       (unsigned long long)(taken.versioned ? taken.versioned->flags : 0), owner);
}

PyMethodDef import_functions[] = {
    {"consume_dlpack", FAST_KEYWORDS(consume_dlpack), DOC_consume_dlpack},
    {NULL, NULL, 0, NULL},
};
