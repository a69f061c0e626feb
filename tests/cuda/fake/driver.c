/*
 * driver.c - the entry points, as NVIDIA's manual of the driver API has them.
 *
 * Names that clients ask for at start and that mean nothing without a device answer something harmless. Types are those
 * of fake.h; the arguments' order and width is all that a caller sees.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

#define API __attribute__((visibility("default")))
#define UNUSED __attribute__((unused))

/* Each call begins with the first and ends with the second. */
#define BEGIN()                             \
  do {                                      \
    result refused_ = fake_enter(__func__); \
    if (refused_ != OK) return refused_;    \
  } while (0)
#define END(code) return fake_leave(code)

API result cuInit(unsigned flags);

/* ---- The process ------------------------------------------------------------------------------------------------- */

API result cuInit(unsigned flags UNUSED) {
  fake_lock();
  fake_configure();
  fake_unlock();
  result refused = fake_enter_early(__func__);
  if (refused != OK) return refused;
  for (int i = 0; i < DEVICES; i++) fake_contexts[i].device = i;
  fake_ready = fake_devices > 0;
  END(fake_ready ? OK : NO_DEVICE);
}

API result cuDriverGetVersion(int* version) {
  const char* value = getenv("FAKECUDA_VERSION");
  *version = value != NULL ? atoi(value) : 13040;
  return OK;
}

API result cuGetErrorName(result code, const char** name) {
  static const struct {
    result code;
    const char* name;
  } names[] = {
      {OK, "CUDA_SUCCESS"},
      {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE"},
      {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY"},
      {NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED"},
      {NO_DEVICE, "CUDA_ERROR_NO_DEVICE"},
      {INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE"},
      {INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT"},
      {INVALID_PTX, "CUDA_ERROR_INVALID_PTX"},
      {INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE"},
      {NOT_FOUND, "CUDA_ERROR_NOT_FOUND"},
      {NOT_READY, "CUDA_ERROR_NOT_READY"},
      {ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS"},
      {NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED"},
  };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (names[i].code != code) continue;
    *name = names[i].name;
    return OK;
  }
  *name = NULL;
  return INVALID_VALUE;
}

API result cuGetErrorString(result code, const char** text) { return cuGetErrorName(code, text); }

/* The newest of name_v3, name_v2, name; NULL where there is none. */
API result cuGetProcAddress_v2(const char* name, void** found, int version UNUSED, uint64_t flags UNUSED, int* status) {
  static const char* const suffix[] = {"_v3", "_v2", ""};
  Dl_info self;
  void* library = dladdr((void*)(uintptr_t)cuInit, &self) != 0 ? dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD) : NULL;
  *found = NULL;
  for (size_t i = 0; i < 3 && *found == NULL && library != NULL; i++) {
    char whole[128];
    (void)snprintf(whole, sizeof whole, "%s%s", name, suffix[i]);
    *found = dlsym(library, whole);
  }
  if (library != NULL) (void)dlclose(library);
  if (status != NULL) *status = *found != NULL ? 0 : 1;
  return OK;
}

API result cuGetProcAddress(const char* name, void** found, int version, uint64_t flags) {
  return cuGetProcAddress_v2(name, found, version, flags, NULL);
}

/* ---- Devices and contexts ---------------------------------------------------------------------------------------- */

static bool is_device(int device) { return device >= 0 && device < fake_devices; }

API result cuDeviceGetCount(int* count) {
  BEGIN();
  *count = fake_devices;
  END(OK);
}

API result cuDeviceGet(int* device, int ordinal) {
  BEGIN();
  if (is_device(ordinal)) *device = ordinal;
  END(is_device(ordinal) ? OK : INVALID_DEVICE);
}

API result cuDeviceGetName(char* name, int room, int device) {
  BEGIN();
  (void)snprintf(name, (size_t)room, "Fake CUDA device %d", device);
  END(OK);
}

API result cuDeviceGetUuid_v2(char* uuid, int device) {
  BEGIN();
  memset(uuid, device + 1, 16);
  END(OK);
}

API result cuDeviceTotalMem_v2(size_t* bytes, int device UNUSED) {
  BEGIN();
  *bytes = (size_t)1 << 34;
  END(OK);
}

API result cuDeviceGetAttribute(int* value, int attribute, int device UNUSED) {
  static const struct {
    int attribute, value;
  } known[] = {{1, 1024} /* threads a block */, {10, 32} /* warp */,
               {16, 132} /* multiprocessors */, {31, 1} /* kernels side by side */,
               {41, 1} /* unified addresses */, {75, 9} /* compute capability */,
               {83, 1} /* managed memory */,    {115, 1} /* memory pools */};
  BEGIN();
  *value = 0;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (known[i].attribute == attribute) *value = known[i].value;
  END(OK);
}

API result cuDeviceCanAccessPeer(int* can, int device, int other) {
  BEGIN();
  *can = device != other;
  END(OK);
}

API result cuDevicePrimaryCtxRetain(context** primary, int device) {
  BEGIN();
  if (!is_device(device)) END(INVALID_DEVICE);
  fake_contexts[device].references++;
  *primary = &fake_contexts[device];
  END(OK);
}

API result cuDevicePrimaryCtxRelease_v2(int device) {
  BEGIN();
  if (!is_device(device) || fake_contexts[device].references == 0) END(INVALID_CONTEXT);
  fake_contexts[device].references--;
  END(OK);
}

API result cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  BEGIN();
  *flags = 0;
  *active = fake_contexts[device].references > 0;
  END(OK);
}

API result cuCtxGetCurrent(context** current) {
  BEGIN();
  *current = *context_top();
  END(OK);
}

API result cuCtxSetCurrent(context* current) {
  BEGIN();
  (void)context_pop();
  END(current != NULL ? context_push(current) : OK);
}

API result cuCtxPushCurrent_v2(context* pushed) {
  BEGIN();
  END(context_push(pushed));
}

API result cuCtxPopCurrent_v2(context** popped) {
  BEGIN();
  context* top = context_pop();
  if (popped != NULL) *popped = top;
  END(top != NULL ? OK : INVALID_CONTEXT);
}

API result cuCtxGetDevice(int* device) {
  BEGIN();
  context* top = *context_top();
  if (top != NULL) *device = top->device;
  END(top != NULL ? OK : INVALID_CONTEXT);
}

API result cuCtxGetApiVersion(context* of UNUSED, unsigned* version) {
  *version = 3020;
  return OK;
}

API result cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  BEGIN();
  *least = 0;
  *greatest = -1;
  END(OK);
}

API result cuCtxEnablePeerAccess(context* other, unsigned flags UNUSED) {
  BEGIN();
  context* top = *context_top();
  if (top != NULL) memory_peers(top->device, other->device);
  END(top != NULL ? OK : INVALID_CONTEXT);
}

API result cuCtxSynchronize(void) {
  BEGIN();
  context* top = *context_top();
  if (top != NULL) stream_wait_all(top);
  END(top != NULL ? OK : INVALID_CONTEXT);
}

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

static result make(address* start, size_t size, memory_kind kind) {
  context* top = *context_top();
  return top != NULL ? memory_make(start, size, kind, top->device) : INVALID_CONTEXT;
}

/* The driver waits for everything before it takes memory away. */
static result take(address start, memory_kind kind) {
  block* b = memory_find(start);
  if (b == NULL || b->start != start || b->kind != kind || b->state != LIVE) return INVALID_VALUE;
  stream_wait_all(NULL);
  memory_unmake(b);
  return OK;
}

API result cuMemAlloc_v2(address* start, size_t size) {
  BEGIN();
  END(make(start, size, DEVICE));
}

API result cuMemAllocManaged(address* start, size_t size, unsigned flags UNUSED) {
  BEGIN();
  END(make(start, size, MANAGED));
}

API result cuMemFree_v2(address start) {
  BEGIN();
  block* b = memory_find(start);
  END(take(start, b != NULL && b->kind == MANAGED ? MANAGED : DEVICE));
}

API result cuMemHostAlloc(void** start, size_t size, unsigned flags UNUSED) {
  BEGIN();
  address made = 0;
  result code = make(&made, size, PINNED);
  if (code == OK) *start = (void*)(uintptr_t)made;
  END(code);
}

API result cuMemAllocHost_v2(void** start, size_t size) { return cuMemHostAlloc(start, size, 0); }

API result cuMemFreeHost(void* start) {
  BEGIN();
  END(take((uintptr_t)start, PINNED));
}

API result cuMemGetInfo_v2(size_t* free_bytes, size_t* total) {
  BEGIN();
  *free_bytes = (size_t)1 << 33;
  *total = (size_t)1 << 34;
  END(OK);
}

API result cuMemAllocAsync(address* start, size_t size, stream* on) {
  BEGIN();
  stream* s = stream_named(on);
  if (s == NULL) END(INVALID_HANDLE);
  result code = memory_make(start, size, DEVICE, stream_context(s)->device);
  if (code == OK) stream_touch(s, *start, size, "cuMemAllocAsync");
  END(code);
}

API result cuMemFreeAsync(address start, stream* on) {
  BEGIN();
  stream* s = stream_named(on);
  block* b = memory_find(start);
  if (s == NULL) END(INVALID_HANDLE);
  if (b == NULL || b->state != LIVE) END(INVALID_VALUE);
  b->state = TO_BE_FREED;
  END(stream_push(s, (operation){.kind = FREE, .to = start, .what = "cuMemFreeAsync"}));
}

API result cuDeviceGetDefaultMemPool(void** pool, int device) {
  BEGIN();
  *pool = (void*)(uintptr_t)(device + 1);
  END(OK);
}

API result cuDeviceGetMemPool(void** pool, int device) { return cuDeviceGetDefaultMemPool(pool, device); }

API result cuMemPoolSetAttribute(void* pool UNUSED, int attribute UNUSED, void* value UNUSED) {
  BEGIN();
  END(OK);
}

API result cuMemPoolGetAttribute(void* pool UNUSED, int attribute UNUSED, void* value) {
  BEGIN();
  *(uint64_t*)value = 0;
  END(OK);
}

API result cuMemAllocFromPoolAsync(address* start, size_t size, void* pool UNUSED, stream* on) {
  return cuMemAllocAsync(start, size, on);
}

API result cuMemGetAddressRange_v2(address* start, size_t* size, address within) {
  BEGIN();
  block* b = memory_find(within);
  if (b != NULL && start != NULL) *start = b->start;
  if (b != NULL && size != NULL) *size = b->size;
  END(b != NULL ? OK : INVALID_VALUE);
}

enum { ATTRIBUTE_CONTEXT = 1, MEMORY_TYPE = 2, DEVICE_POINTER = 3, HOST_POINTER = 4, IS_MANAGED = 8, ORDINAL = 9 };

API result cuPointerGetAttribute(void* value, int attribute, address of) {
  BEGIN();
  block* b = memory_find(of);
  if (b == NULL) END(INVALID_VALUE);
  switch (attribute) {
    case ATTRIBUTE_CONTEXT:
      *(context**)value = &fake_contexts[b->device];
      break;
    case MEMORY_TYPE:
      *(unsigned*)value = b->kind == PINNED ? 1 : 2;
      break;
    case DEVICE_POINTER:
      *(address*)value = of;
      break;
    case HOST_POINTER:
      *(void**)value = b->kind == DEVICE ? NULL : (void*)(uintptr_t)of;
      break;
    case IS_MANAGED:
      *(unsigned*)value = b->kind == MANAGED;
      break;
    case ORDINAL:
      *(int*)value = b->device;
      break;
    default:
      END(INVALID_VALUE);
  }
  END(OK);
}

/* Zeros, and -2 for the ordinal, where the address is none of the driver's. */
API result cuPointerGetAttributes(unsigned count, int* attributes, void** values, address of) {
  for (unsigned i = 0; i < count; i++) {
    if (cuPointerGetAttribute(values[i], attributes[i], of) == OK) continue;
    if (attributes[i] == MEMORY_TYPE || attributes[i] == IS_MANAGED)
      *(unsigned*)values[i] = 0;
    else if (attributes[i] == ORDINAL)
      *(int*)values[i] = -2;
    else
      *(void**)values[i] = NULL;
  }
  return OK;
}

/* ---- Copies ------------------------------------------------------------------------------------------------------ */

typedef enum { ANY, OF_HOST, OF_DEVICE } side;

static bool fits(address at, size_t size, side where, const block* b) {
  if (b == NULL) return where != OF_DEVICE;
  if (where == OF_DEVICE && b->kind == PINNED) return false;
  return at + size <= b->start + b->size && b->state == LIVE;
}

/* As the manual has it of pageable memory: a source is staged before the call returns, a target is filled by then. */
static result copy(stream* on, address to, side where, address from, side whence, size_t size, const char* what) {
  stream* s = stream_named(on);
  if (s == NULL) return INVALID_HANDLE;
  if (size == 0) return OK;
  block *target = memory_find(to), *source = memory_find(from);
  if (!fits(to, size, where, target) || !fits(from, size, whence, source)) return INVALID_VALUE;
  operation one = {.kind = COPY, .to = to, .from = from, .size = size, .what = what};
  if (source == NULL) {
    one.staged = malloc(size);
    if (one.staged == NULL) return OUT_OF_MEMORY;
    memcpy(one.staged, (const void*)(uintptr_t)from, size);
  }
  result code = stream_push(s, one);
  if (target == NULL) stream_wait(s);
  return code;
}

static result copy_now(address to, side where, address from, side whence, size_t size, const char* what) {
  result code = copy(NULL, to, where, from, whence, size, what);
  stream* s = stream_named(NULL);
  if (code == OK && s != NULL) stream_wait(s);
  return code;
}

API result cuMemcpyHtoDAsync_v2(address to, const void* from, size_t size, stream* on) {
  BEGIN();
  END(copy(on, to, OF_DEVICE, (uintptr_t)from, OF_HOST, size, "cuMemcpyHtoDAsync"));
}

API result cuMemcpyDtoHAsync_v2(void* to, address from, size_t size, stream* on) {
  BEGIN();
  END(copy(on, (uintptr_t)to, OF_HOST, from, OF_DEVICE, size, "cuMemcpyDtoHAsync"));
}

API result cuMemcpyDtoDAsync_v2(address to, address from, size_t size, stream* on) {
  BEGIN();
  END(copy(on, to, OF_DEVICE, from, OF_DEVICE, size, "cuMemcpyDtoDAsync"));
}

API result cuMemcpyAsync(address to, address from, size_t size, stream* on) {
  BEGIN();
  END(copy(on, to, ANY, from, ANY, size, "cuMemcpyAsync"));
}

API result cuMemcpyPeerAsync(address to, context* there UNUSED, address from, context* here UNUSED, size_t size,
                             stream* on) {
  BEGIN();
  END(copy(on, to, OF_DEVICE, from, OF_DEVICE, size, "cuMemcpyPeerAsync"));
}

API result cuMemcpyHtoD_v2(address to, const void* from, size_t size) {
  BEGIN();
  END(copy_now(to, OF_DEVICE, (uintptr_t)from, OF_HOST, size, "cuMemcpyHtoD"));
}

API result cuMemcpyDtoH_v2(void* to, address from, size_t size) {
  BEGIN();
  END(copy_now((uintptr_t)to, OF_HOST, from, OF_DEVICE, size, "cuMemcpyDtoH"));
}

API result cuMemcpyDtoD_v2(address to, address from, size_t size) {
  BEGIN();
  END(copy(NULL, to, OF_DEVICE, from, OF_DEVICE, size, "cuMemcpyDtoD")); /* does not wait, says the manual */
}

API result cuMemcpy(address to, address from, size_t size) {
  BEGIN();
  END(copy_now(to, ANY, from, ANY, size, "cuMemcpy"));
}

API result cuMemsetD8Async(address to, unsigned char value, size_t size, stream* on) {
  BEGIN();
  stream* s = stream_named(on);
  block* b = memory_find(to);
  if (s == NULL) END(INVALID_HANDLE);
  if (b == NULL || to + size > b->start + b->size) END(INVALID_VALUE);
  END(stream_push(s, (operation){.kind = FILL, .to = to, .value = value, .size = size, .what = "cuMemsetD8Async"}));
}

/* ---- Streams and events ------------------------------------------------------------------------------------------ */

API result cuStreamCreateWithPriority(stream** made, unsigned flags, int priority UNUSED) {
  BEGIN();
  context* top = *context_top();
  if (top != NULL) *made = stream_make(top, flags);
  END(top != NULL ? OK : INVALID_CONTEXT);
}

API result cuStreamCreate(stream** made, unsigned flags) { return cuStreamCreateWithPriority(made, flags, 0); }

API result cuStreamDestroy_v2(stream* dead) {
  BEGIN();
  END(stream_destroy(dead));
}

API result cuStreamSynchronize(stream* which) {
  BEGIN();
  stream* s = stream_named(which);
  if (s != NULL) stream_wait(s);
  END(s != NULL ? OK : INVALID_HANDLE);
}

API result cuStreamQuery(stream* which) {
  BEGIN();
  stream* s = stream_named(which);
  if (s == NULL) END(INVALID_HANDLE);
  END(stream_poll(s) ? OK : NOT_READY);
}

API result cuStreamGetCtx(stream* which, context** of) {
  BEGIN();
  stream* s = stream_named(which);
  if (s != NULL) *of = stream_context(s);
  END(s != NULL ? OK : INVALID_HANDLE);
}

API result cuStreamGetFlags(stream* which, unsigned* flags) {
  BEGIN();
  stream* s = stream_named(which);
  if (s != NULL) *flags = stream_flags(s);
  END(s != NULL ? OK : INVALID_HANDLE);
}

API result cuStreamGetPriority(stream* which UNUSED, int* priority) {
  BEGIN();
  *priority = 0;
  END(OK);
}

API result cuStreamGetId(stream* which, uint64_t* id) {
  BEGIN();
  stream* s = stream_named(which);
  if (s != NULL) *id = stream_id(s);
  END(s != NULL ? OK : INVALID_HANDLE);
}

API result cuStreamIsCapturing(stream* which UNUSED, int* capturing) {
  BEGIN();
  *capturing = 0;
  END(OK);
}

API result cuLaunchHostFunc(stream* on, void (*call)(void*), void* argument) {
  BEGIN();
  stream* s = stream_named(on);
  if (s == NULL) END(INVALID_HANDLE);
  END(stream_push(s, (operation){.kind = CALL, .call = call, .argument = argument, .what = "a host function"}));
}

API result cuStreamWaitEvent(stream* by, event* which, unsigned flags UNUSED) {
  BEGIN();
  stream* s = stream_named(by);
  if (s == NULL || !event_alive(which)) END(INVALID_HANDLE);
  event_await(which, s);
  END(OK);
}

API result cuEventCreate(event** made, unsigned flags UNUSED) {
  BEGIN();
  context* top = *context_top();
  if (top != NULL) *made = event_make(top);
  END(top != NULL ? OK : INVALID_CONTEXT);
}

API result cuEventDestroy_v2(event* dead) {
  BEGIN();
  END(event_alive(dead) ? event_destroy(dead) : INVALID_HANDLE);
}

API result cuEventRecord(event* which, stream* on) {
  BEGIN();
  stream* s = stream_named(on);
  if (s == NULL || !event_alive(which)) END(INVALID_HANDLE);
  event_record(which, s);
  END(OK);
}

API result cuEventRecordWithFlags(event* which, stream* on, unsigned flags UNUSED) { return cuEventRecord(which, on); }

API result cuEventQuery(event* which) {
  BEGIN();
  if (!event_alive(which)) END(INVALID_HANDLE);
  END(event_poll(which) ? OK : NOT_READY);
}

API result cuEventSynchronize(event* which) {
  BEGIN();
  if (!event_alive(which)) END(INVALID_HANDLE);
  event_wait(which);
  END(OK);
}

/* ---- Kernels ----------------------------------------------------------------------------------------------------- */

API result cuModuleLoadData(module** loaded, const void* text) {
  BEGIN();
  result code = ptx_load(loaded, text);
  fake_live_modules += code == OK;
  END(code);
}

API result cuModuleUnload(module* loaded) {
  BEGIN();
  stream_wait_all(NULL);
  ptx_unload(loaded);
  fake_live_modules--;
  END(OK);
}

API result cuModuleGetFunction(function** found, module* in, const char* name) {
  BEGIN();
  *found = ptx_find(in, name);
  END(*found != NULL ? OK : NOT_FOUND);
}

API result cuLaunchKernel(const function* entry, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                          unsigned block_y, unsigned block_z, unsigned shared UNUSED, stream* on, void** values,
                          void** extra UNUSED) {
  BEGIN();
  stream* s = stream_named(on);
  if (s == NULL) END(INVALID_HANDLE);
  if (grid_x == 0 || grid_y != 1 || grid_z != 1 || block_x == 0 || block_x > 1024 || block_y != 1 || block_z != 1)
    END(INVALID_VALUE);
  operation one = {.kind = LAUNCH, .entry = entry, .blocks = grid_x, .threads = block_x, .what = ptx_name(entry)};
  result code = ptx_arguments(entry, values, one.arguments, sizeof one.arguments);
  END(code == OK ? stream_push(s, one) : code);
}

/* ---- Memory of other processes, of which there are none; some clients ask at start ------------------------------- */

API result cuIpcOpenMemHandle_v2(address* start UNUSED, void* handle UNUSED, unsigned flags UNUSED) {
  return NOT_SUPPORTED;
}
API result cuIpcGetMemHandle(void* handle UNUSED, address start UNUSED) { return NOT_SUPPORTED; }
API result cuIpcCloseMemHandle(address start UNUSED) { return NOT_SUPPORTED; }
