/*
 * export.c - tensors that leave the library: DLPack exports.
 *
 * An export is one allocation: the managed tensor in the form that the consumer asked for, its shape and strides, and
 * the references that it holds until its deleter runs - on the block, so that the bytes outlive the group, the stage
 * and the interpreter, and on the context, so that a leak can be counted where it came from. Deleters are plain C: they
 * run on any thread, at any time, with no runtime around.
 */
#include <stdlib.h>
#include <string.h>

#include "ring.h"

typedef struct export {
  union {
    DLManagedTensorVersioned versioned;
    DLManagedTensor legacy;
  } managed;
  ov_block* block;            /* NULL: a tensor without bytes */
  ovstage_context_t* context; /* NULL: made without an instance */
  int64_t axes[];             /* the shape, then the strides */
} export;

static int64_t live_exports;

int64_t ov_export_count(void) { return __atomic_load_n(&live_exports, __ATOMIC_RELAXED); }

static void count(ovstage_context_t* context, int64_t change) {
  __atomic_add_fetch(&live_exports, change, __ATOMIC_RELAXED);
  if (context != NULL) __atomic_add_fetch(&context->live_exports, change, __ATOMIC_RELAXED);
}

/* Writes the tensor as consumers want it: lanes as a trailing axis, because most read a lane type wrongly; real
 * strides, because DLPack asks for them since 1.2; data at the first element. */
static void lay_out(DLTensor* out, const DLTensor* tensor, int64_t* axes) {
  int64_t lanes = tensor->dtype.lanes > 1 ? tensor->dtype.lanes : 1;
  int32_t ndim = tensor->ndim + (lanes > 1);
  int64_t *shape = axes, *strides = axes + ndim;
  for (int32_t i = 0; i < tensor->ndim; i++) shape[i] = tensor->shape[i];
  if (lanes > 1) {
    shape[ndim - 1] = lanes;
    strides[ndim - 1] = 1;
  }
  int64_t compact = lanes;
  for (int32_t i = tensor->ndim - 1; i >= 0; i--) {
    strides[i] = tensor->strides != NULL ? tensor->strides[i] * lanes : compact;
    if (shape[i] > 0) compact *= shape[i]; /* an axis without extent leaves the others the strides that they had */
  }
  *out = (DLTensor){
      .data = tensor->data != NULL ? (char*)tensor->data + tensor->byte_offset : (void*)ov_no_bytes,
      .device = tensor->device,
      .ndim = ndim,
      .dtype = {tensor->dtype.code, tensor->dtype.bits, 1},
      .shape = shape,
      .strides = strides,
  };
}

/* NULL: out of memory, or no tensor that can be exported. The caller lays the tensor out, which form it has is not
 * known here. */
static export* begin(ovstage_instance_t* instance, ov_block* block, const DLTensor* tensor) {
  if (tensor->ndim < 0 || tensor->ndim > OVSTAGE_GO_MOST_AXES || (tensor->ndim > 0 && tensor->shape == NULL))
    return NULL;
  export* e = malloc(sizeof *e + 2 * ((size_t)tensor->ndim + 1) * sizeof(int64_t));
  if (e == NULL) return NULL;
  e->block = block;
  if (block != NULL) ov_block_retain(block);
  e->context = instance != NULL ? instance->context : NULL;
  if (e->context != NULL) ov_context_retain(e->context);
  count(e->context, +1);
  return e;
}

static void end(export* e) {
  if (ov_forked) return; /* the allocator's locks may be taken for good; the child's memory goes with the child */
  count(e->context, -1);
  if (e->context != NULL) ov_context_release(e->context);
  ov_block_release(e->block);
  free(e);
  ov_give_back();
}

static void delete_versioned(DLManagedTensorVersioned* self) { end(self->manager_ctx); }

static void delete_legacy(DLManagedTensor* self) { end(self->manager_ctx); }

DLManagedTensorVersioned* ov_export_versioned(ovstage_instance_t* instance, ov_block* block, const DLTensor* tensor,
                                              uint64_t flags) {
  if (ov_forked) return NULL;
  export* e = begin(instance, block, tensor);
  if (e == NULL) return NULL;
  DLManagedTensorVersioned* managed = &e->managed.versioned;
  managed->version = (DLPackVersion){DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  managed->manager_ctx = e;
  managed->deleter = delete_versioned;
  managed->flags = flags;
  lay_out(&managed->dl_tensor, tensor, e->axes);
  return managed;
}

DLManagedTensor* ov_export_legacy(ovstage_instance_t* instance, ov_block* block, const DLTensor* tensor) {
  if (ov_forked) return NULL;
  export* e = begin(instance, block, tensor);
  if (e == NULL) return NULL;
  DLManagedTensor* managed = &e->managed.legacy;
  managed->manager_ctx = e;
  managed->deleter = delete_legacy;
  lay_out(&managed->dl_tensor, tensor, e->axes);
  return managed;
}

/* ---- Copies ------------------------------------------------------------------------------------------------------ */

/* The bytes of a tensor without gaps, as a block of their own; the caller owns it. NULL: out of memory, or there are
 * gaps. */
static ov_block* copy_of(const DLTensor* tensor) {
  if (tensor->ndim < 0 || tensor->ndim > OVSTAGE_GO_MOST_AXES || tensor->strides != NULL) return NULL;
  uint64_t bits = (uint64_t)tensor->dtype.bits * tensor->dtype.lanes;
  for (int32_t i = 0; i < tensor->ndim; i++) bits *= (uint64_t)tensor->shape[i];
  ov_block* copy = ov_block_alloc((bits + 7) / 8, OV_PURPOSE_COLUMNS);
  if (copy == NULL || bits == 0) return copy;
  memcpy(copy->data, (char*)tensor->data + tensor->byte_offset, (bits + 7) / 8);
  ov_memory_add_copied((bits + 7) / 8);
  return copy;
}

DLManagedTensorVersioned* ov_export_copy_versioned(ovstage_instance_t* instance, const DLTensor* tensor) {
  ov_block* copy = ov_forked ? NULL : copy_of(tensor);
  if (copy == NULL) return NULL;
  DLManagedTensorVersioned* managed = ov_export_versioned(instance, copy, tensor, DLPACK_FLAG_BITMASK_IS_COPIED);
  if (managed != NULL) managed->dl_tensor.data = copy->data;
  ov_block_release(copy); /* the export has its own reference */
  return managed;
}

DLManagedTensor* ov_export_copy_legacy(ovstage_instance_t* instance, const DLTensor* tensor) {
  ov_block* copy = ov_forked ? NULL : copy_of(tensor);
  if (copy == NULL) return NULL;
  DLManagedTensor* managed = ov_export_legacy(instance, copy, tensor);
  if (managed != NULL) managed->dl_tensor.data = copy->data;
  ov_block_release(copy);
  return managed;
}
