/*
 * probe.c - a DLPack consumer and producer in C, as other extensions are one.
 *
 * The tests use it to look into capsules and into the exchange table, to run deleters where Python code cannot, and to
 * make capsules that no library in its right mind would make.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <dlpack/dlpack.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- What was taken ---------------------------------------------------------------------------------------------- */

/* A tensor that the probe owns: either form. The capsule around it deletes it, unless a test has done so. */
typedef struct {
  DLManagedTensor* legacy;
  DLManagedTensorVersioned* versioned;
} taken;

static const char taken_name[] = "probe.taken";

static void delete_taken(taken* self) {
  taken dropped = *self;
  memset(self, 0, sizeof *self);
  if (dropped.legacy && dropped.legacy->deleter) dropped.legacy->deleter(dropped.legacy);
  if (dropped.versioned && dropped.versioned->deleter) dropped.versioned->deleter(dropped.versioned);
}

static void end_taken(PyObject* capsule) {
  taken* self = PyCapsule_GetPointer(capsule, taken_name);
  if (!self) return;
  delete_taken(self);
  free(self);
}

static PyObject* wrap(DLManagedTensor* legacy, DLManagedTensorVersioned* versioned) {
  taken* self = malloc(sizeof *self);
  if (!self) return PyErr_NoMemory();
  *self = (taken){legacy, versioned};
  return PyCapsule_New(self, taken_name, end_taken);
}

static taken* open(PyObject* capsule) { return PyCapsule_GetPointer(capsule, taken_name); }

/* consume(capsule): take a capsule as a consumer does. */
static PyObject* consume(PyObject* module, PyObject* capsule) {
  (void)module;
  if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
    void* tensor = PyCapsule_GetPointer(capsule, "dltensor_versioned");
    return PyCapsule_SetName(capsule, "used_dltensor_versioned") < 0 ? NULL : wrap(NULL, tensor);
  }
  void* tensor = PyCapsule_GetPointer(capsule, "dltensor");
  return !tensor || PyCapsule_SetName(capsule, "used_dltensor") < 0 ? NULL : wrap(tensor, NULL);
}

static PyObject* extents(const int64_t* values, int32_t ndim) {
  if (!values) return Py_NewRef(Py_None);
  PyObject* tuple = PyTuple_New(ndim);
  for (int32_t i = 0; tuple && i < ndim; i++) PyTuple_SetItem(tuple, i, PyLong_FromLongLong(values[i]));
  return tuple;
}

/* look(taken): everything that its structure says, by name. */
static PyObject* look(PyObject* module, PyObject* capsule) {
  (void)module;
  taken* self = open(capsule);
  if (!self) return NULL;
  const DLTensor* t = self->versioned ? &self->versioned->dl_tensor : &self->legacy->dl_tensor;
  PyObject* version = Py_NewRef(Py_None);
  if (self->versioned) {
    version = Py_BuildValue("(II)", self->versioned->version.major, self->versioned->version.minor);
  }
  return Py_BuildValue("{s:N,s:K,s:K,s:(ii),s:(iii),s:i,s:N,s:N,s:K}", "version", version, "flags",
                       (unsigned long long)(self->versioned ? self->versioned->flags : 0), "data",
                       (unsigned long long)(uintptr_t)t->data, "device", (int)t->device.device_type,
                       (int)t->device.device_id, "dtype", (int)t->dtype.code, (int)t->dtype.bits, (int)t->dtype.lanes,
                       "ndim", (int)t->ndim, "shape", extents(t->shape, t->ndim), "strides",
                       extents(t->strides, t->ndim), "byte_offset", (unsigned long long)t->byte_offset);
}

/* write(taken, number): to its first element, which must be a double. */
static PyObject* write_first(PyObject* module, PyObject* args) {
  (void)module;
  PyObject* capsule;
  double number;
  taken* self = PyArg_ParseTuple(args, "Od", &capsule, &number) ? open(capsule) : NULL;
  if (!self) return NULL;
  const DLTensor* t = self->versioned ? &self->versioned->dl_tensor : &self->legacy->dl_tensor;
  memcpy((char*)t->data + t->byte_offset, &number, sizeof number);
  return Py_NewRef(Py_None);
}

/* ---- Deleters in odd places -------------------------------------------------------------------------------------- */

static void* delete_on_thread(void* tensor) {
  delete_taken(tensor);
  return NULL;
}

/* delete_elsewhere(taken): on a thread that Python knows nothing of. This one holds the GIL all the while, so that a
 * deleter which wants it would not come back. */
static PyObject* delete_elsewhere(PyObject* module, PyObject* capsule) {
  (void)module;
  taken* self = open(capsule);
  pthread_t thread;
  if (!self || pthread_create(&thread, NULL, delete_on_thread, self) != 0) return NULL;
  pthread_join(thread, NULL);
  return Py_NewRef(Py_None);
}

/* delete_in_error(taken): while an exception is pending, which must be the same one afterwards. */
static PyObject* delete_in_error(PyObject* module, PyObject* capsule) {
  (void)module;
  taken* self = open(capsule);
  if (!self) return NULL;
  PyErr_SetString(PyExc_LookupError, "pending");
  delete_taken(self);
  return NULL;
}

/* drop_in_error(object): drop the last reference while an exception is pending. */
static PyObject* drop_in_error(PyObject* module, PyObject* args) {
  (void)module;
  PyObject* list; /* holds the reference, which args must not */
  if (!PyArg_ParseTuple(args, "O!", &PyList_Type, &list)) return NULL;
  PyErr_SetString(PyExc_LookupError, "pending");
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject* object = Py_NewRef(PyList_GetItem(list, 0));
  PyList_SetSlice(list, 0, 1, NULL);
  PyErr_Restore(type, value, traceback);
  Py_DECREF(object);
  return NULL;
}

static taken* at_exit[64];
static size_t exiting;

static void delete_at_exit(void) {
  for (size_t i = 0; i < exiting; i++) delete_taken(at_exit[i]);
  fputs("deleted after Python\n", stderr);
}

/* delete_after_python(taken): when the C library ends the process, long after the interpreter. */
static PyObject* delete_after_python(PyObject* module, PyObject* capsule) {
  (void)module;
  taken *self = open(capsule), *moved = self && exiting < 64 ? malloc(sizeof *moved) : NULL;
  if (!moved) return NULL;
  *moved = *self;
  memset(self, 0, sizeof *self);
  if (exiting == 0) atexit(delete_at_exit);
  at_exit[exiting++] = moved;
  return Py_NewRef(Py_None);
}

/* ---- The exchange table ------------------------------------------------------------------------------------------ */

static const DLPackExchangeAPI* table_of(PyObject* type) {
  PyObject* capsule = PyObject_GetAttrString(type, "__dlpack_c_exchange_api__");
  const DLPackExchangeAPI* table = capsule ? PyCapsule_GetPointer(capsule, "dlpack_exchange_api") : NULL;
  Py_XDECREF(capsule);
  return table;
}

/* table(type): what is in it. */
static PyObject* table(PyObject* module, PyObject* type) {
  (void)module;
  const DLPackExchangeAPI* api = table_of(type);
  if (!api) return NULL;
  return Py_BuildValue("{s:(II),s:N,s:N,s:N,s:N,s:N,s:N}", "version", api->header.version.major,
                       api->header.version.minor, "previous", PyBool_FromLong(api->header.prev_api != NULL),
                       "allocator", PyBool_FromLong(api->managed_tensor_allocator != NULL), "from_object",
                       PyBool_FromLong(api->managed_tensor_from_py_object_no_sync != NULL), "to_object",
                       PyBool_FromLong(api->managed_tensor_to_py_object_no_sync != NULL), "borrow",
                       PyBool_FromLong(api->dltensor_from_py_object_no_sync != NULL), "stream",
                       PyBool_FromLong(api->current_work_stream != NULL));
}

/* from_object(type, object): export through the table. */
static PyObject* from_object(PyObject* module, PyObject* args) {
  (void)module;
  PyObject *type, *object;
  if (!PyArg_ParseTuple(args, "OO", &type, &object)) return NULL;
  const DLPackExchangeAPI* api = table_of(type);
  DLManagedTensorVersioned* tensor;
  if (!api || api->managed_tensor_from_py_object_no_sync(object, &tensor) != 0) return NULL;
  return wrap(NULL, tensor);
}

/* to_object(type, taken): hand a tensor over to the table. */
static PyObject* to_object(PyObject* module, PyObject* args) {
  (void)module;
  PyObject *type, *capsule;
  if (!PyArg_ParseTuple(args, "OO", &type, &capsule)) return NULL;
  const DLPackExchangeAPI* api = table_of(type);
  taken* self = open(capsule);
  if (!api || !self) return NULL;
  DLManagedTensorVersioned* tensor = self->versioned;
  self->versioned = NULL; /* theirs now, also when they fail */
  void* object;
  return api->managed_tensor_to_py_object_no_sync(tensor, &object) == 0 ? object : NULL;
}

typedef struct {
  const DLPackExchangeAPI* api;
  DLTensor* prototype;
  DLManagedTensorVersioned* out;
  int status;
  char kind[32], message[128];
} allocation;

static void record_error(void* context, const char* kind, const char* message) {
  allocation* call = context;
  strncpy(call->kind, kind, sizeof call->kind - 1);
  strncpy(call->message, message, sizeof call->message - 1);
}

static void* allocate_on_thread(void* context) {
  allocation* call = context;
  call->status = call->api->managed_tensor_allocator(call->prototype, &call->out, call, record_error);
  return NULL;
}

/* allocate(type, shape, (code, bits, lanes), device type): on a thread without the GIL. */
static PyObject* allocate(PyObject* module, PyObject* args) {
  (void)module;
  PyObject *type, *shape;
  int code, bits, lanes, device;
  if (!PyArg_ParseTuple(args, "OO!(iii)i", &type, &PyTuple_Type, &shape, &code, &bits, &lanes, &device)) return NULL;
  int64_t axes[8] = {0};
  for (Py_ssize_t i = 0; i < PyTuple_Size(shape); i++) axes[i] = PyLong_AsLongLong(PyTuple_GetItem(shape, i));
  DLTensor prototype = {.device = {(DLDeviceType)device, 0},
                        .ndim = (int32_t)PyTuple_Size(shape),
                        .dtype = {(uint8_t)code, (uint8_t)bits, (uint16_t)lanes},
                        .shape = axes};
  allocation call = {.api = table_of(type), .prototype = &prototype};
  pthread_t thread;
  if (!call.api || pthread_create(&thread, NULL, allocate_on_thread, &call) != 0) return NULL;
  pthread_join(thread, NULL);
  if (call.status == 0) return wrap(NULL, call.out);
  PyErr_Format(PyExc_RuntimeError, "%s: %s", call.kind, call.message);
  return NULL;
}

/* stream(type): the current stream of the host. */
static PyObject* stream(PyObject* module, PyObject* type) {
  (void)module;
  const DLPackExchangeAPI* api = table_of(type);
  void* current = &current;
  if (!api || api->current_work_stream(kDLCPU, 0, &current) != 0) return NULL;
  return PyLong_FromVoidPtr(current);
}

/* ---- Capsules as no library makes them --------------------------------------------------------------------------- */

typedef struct {
  union {
    DLManagedTensor legacy;
    DLManagedTensorVersioned versioned;
  } managed;
  int64_t axes[128], strides[128];
  double numbers[64];
} made;

static long deletions; /* how often a deleter of these has run */

static void delete_legacy(DLManagedTensor* self) {
  deletions++;
  free(self->manager_ctx);
}

static void delete_versioned(DLManagedTensorVersioned* self) {
  deletions++;
  free(self->manager_ctx);
}

static void end_made(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, "dltensor")) {
    DLManagedTensor* tensor = PyCapsule_GetPointer(capsule, "dltensor");
    tensor->manager_ctx ? delete_legacy(tensor) : free(tensor);
  } else if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
    DLManagedTensorVersioned* tensor = PyCapsule_GetPointer(capsule, "dltensor_versioned");
    tensor->manager_ctx ? delete_versioned(tensor) : free(tensor);
  }
}

static bool read_axes(PyObject* values, int64_t* out) {
  for (Py_ssize_t i = 0; values != Py_None && i < PySequence_Size(values) && i < 128; i++) {
    PyObject* item = PySequence_GetItem(values, i);
    out[i] = item ? PyLong_AsLongLong(item) : 0;
    Py_XDECREF(item);
  }
  return !PyErr_Occurred();
}

/* produce(*, versioned, flags, ndim, shape, strides, dtype, device, data, byte_offset, deleter): a capsule over 64
 * doubles 0, 1, 2 ...; everything may be wrong. shape=None is a NULL pointer, data=False, too. */
static PyObject* produce(PyObject* module, PyObject* args, PyObject* kwargs) {
  (void)module;
  static char* names[] = {"versioned", "flags", "ndim",        "shape",   "strides", "dtype",
                          "device",    "data",  "byte_offset", "deleter", NULL};
  int versioned = 1, ndim = 1, code = kDLFloat, bits = 64, lanes = 1, device = kDLCPU, data = 1, deleter = 1;
  unsigned long long flags = 0, byte_offset = 0;
  PyObject *shape = Py_None, *strides = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$pKiOO(iii)ipKp", names, &versioned, &flags, &ndim, &shape, &strides,
                                   &code, &bits, &lanes, &device, &data, &byte_offset, &deleter)) {
    return NULL;
  }
  made* self = calloc(1, sizeof *self);
  if (!self) return PyErr_NoMemory();
  if (!read_axes(shape, self->axes) || !read_axes(strides, self->strides)) {
    free(self);
    return NULL;
  }
  for (int i = 0; i < 64; i++) self->numbers[i] = i;
  DLTensor tensor = {.data = data ? self->numbers : NULL,
                     .device = {(DLDeviceType)device, 0},
                     .ndim = ndim,
                     .dtype = {(uint8_t)code, (uint8_t)bits, (uint16_t)lanes},
                     .shape = shape == Py_None ? NULL : self->axes,
                     .strides = strides == Py_None ? NULL : self->strides,
                     .byte_offset = byte_offset};
  if (!versioned) {
    self->managed.legacy = (DLManagedTensor){tensor, deleter ? self : NULL, deleter ? delete_legacy : NULL};
    return PyCapsule_New(self, "dltensor", end_made);
  }
  DLManagedTensorVersioned* managed = &self->managed.versioned;
  managed->version = (DLPackVersion){DLPACK_MAJOR_VERSION, 3};
  managed->manager_ctx = deleter ? self : NULL;
  managed->deleter = deleter ? delete_versioned : NULL;
  managed->flags = flags;
  managed->dl_tensor = tensor;
  return PyCapsule_New(self, "dltensor_versioned", end_made);
}

/* address(capsule): of the data in a capsule that nobody has taken yet. */
static PyObject* capsule_address(PyObject* module, PyObject* capsule) {
  (void)module;
  DLManagedTensorVersioned* tensor = PyCapsule_GetPointer(capsule, "dltensor_versioned");
  return tensor ? PyLong_FromVoidPtr(tensor->dl_tensor.data) : NULL;
}

static void delete_foreign(DLManagedTensorVersioned* self) {
  deletions++;
  munmap(self->manager_ctx, 2 * (size_t)sysconf(_SC_PAGESIZE));
}

static void end_foreign(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, "dltensor_versioned")) return;
  DLManagedTensorVersioned* managed = PyCapsule_GetPointer(capsule, "dltensor_versioned");
  if (managed) delete_foreign(managed);
}

/* produce_foreign(major): a capsule of that version. Behind its flags, the last thing that a consumer may look at, the
 * memory ends: whoever reads on dies. */
static PyObject* produce_foreign(PyObject* module, PyObject* major) {
  (void)module;
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char* memory = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory + page, page, PROT_NONE) != 0) return PyErr_NoMemory();
  DLManagedTensorVersioned* managed = (void*)(memory + page - offsetof(DLManagedTensorVersioned, dl_tensor));
  managed->version = (DLPackVersion){(uint32_t)PyLong_AsLong(major), 0};
  managed->manager_ctx = memory;
  managed->deleter = delete_foreign;
  return PyCapsule_New(managed, "dltensor_versioned", end_foreign);
}

static PyObject* deleted(PyObject* module, PyObject* unused) {
  (void)module;
  (void)unused;
  return PyLong_FromLong(deletions);
}

/* ---- The module -------------------------------------------------------------------------------------------------- */

static PyMethodDef functions[] = {
    {"consume", consume, METH_O, NULL},
    {"look", look, METH_O, NULL},
    {"write", write_first, METH_VARARGS, NULL},
    {"delete_elsewhere", delete_elsewhere, METH_O, NULL},
    {"delete_in_error", delete_in_error, METH_O, NULL},
    {"drop_in_error", drop_in_error, METH_VARARGS, NULL},
    {"delete_after_python", delete_after_python, METH_O, NULL},
    {"table", table, METH_O, NULL},
    {"from_object", from_object, METH_VARARGS, NULL},
    {"to_object", to_object, METH_VARARGS, NULL},
    {"allocate", allocate, METH_VARARGS, NULL},
    {"stream", stream, METH_O, NULL},
    {"produce", (PyCFunction)(void (*)(void))produce, METH_VARARGS | METH_KEYWORDS, NULL},
    {"address", capsule_address, METH_O, NULL},
    {"produce_foreign", produce_foreign, METH_O, NULL},
    {"deleted", deleted, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "probe", .m_size = -1, .m_methods = functions};

PyMODINIT_FUNC PyInit_probe(void) { return PyModule_Create(&definition); }
