/*
 * exchange.c - The C exchange table of DLPack: other extensions take and hand over tensors without a Python call.
 */
#include "native.h"

#include <stdio.h>

/* DLPack calls these from other extensions, with the GIL unless said. They answer -1 with a Python exception set. */

static int exchange_allocate(DLTensor* prototype, DLManagedTensorVersioned** out, void* error_ctx,
                             void (*set_error)(void* error_ctx, const char* kind, const char* message)) {
  /* May run without the GIL: no Python in here. */
  if (prototype->device.device_type != kDLCPU || export_bytes(prototype) < 0) {
    char text[160];
    snprintf(text, sizeof text, "prototype has device type %d and ndim %d: expected host memory (%d) and valid extents",
             (int)prototype->device.device_type, (int)prototype->ndim, (int)kDLCPU);
    set_error(error_ctx, "BufferError", text);
    return -1;
  }
  *out = export_empty(prototype);
  if (*out) return 0;
  set_error(error_ctx, "MemoryError", "out of memory for a tensor");
  return -1;
}

static int exchange_from_object(void* object, DLManagedTensorVersioned** out) {
  if (!PyObject_TypeCheck((PyObject*)object, native.managed)) {
    PyObject* text = shown(object);
    if (text) PyErr_Format(PyExc_TypeError, "expected a ManagedDLTensor, got %U", text);
    Py_XDECREF(text);
    return -1;
  }
  *out = managed_export(object);
  return *out ? 0 : -1;
}

/* Owner of a tensor that another extension handed over. */
static void end_owned(PyObject* capsule) {
  DLManagedTensorVersioned* m = PyCapsule_GetPointer(capsule, VERSIONED_NAME);
  if (m && m->deleter) m->deleter(m);
}

static int exchange_to_object(DLManagedTensorVersioned* tensor, void** out) {
  bool foreign = tensor->version.major != DLPACK_MAJOR_VERSION;
  if (foreign) {
    PyErr_Format(PyExc_BufferError, "the tensor is laid out by DLPack %u.%u, expected major version %d",
                 (unsigned)tensor->version.major, (unsigned)tensor->version.minor, DLPACK_MAJOR_VERSION);
  }
  PyObject* owner = foreign ? NULL : PyCapsule_New(tensor, VERSIONED_NAME, end_owned);
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
