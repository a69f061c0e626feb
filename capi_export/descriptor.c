/*
 * descriptor.c - what the pointers of a group lead to.
 *
 * A fixed-size column is one tensor, whose first axis counts the rows; an array column has one for each prim, whose
 * first axis counts the elements. How one value is laid out behind that axis is up to the interface level of the stage
 * (interface.c). There are no strides and no byte offset, which clients check for: strides appear where consumers need
 * them, in exports.
 */
#include <stdlib.h>

#include "ring.h"

/* One allocation for a whole group, however many tensors it has. */
typedef struct descriptor {
  int64_t references;
  ov_block* data; /* given up when a map group is committed: then nothing but views keeps the bytes */
  ov_block* prim_map;
  ov_block* data_map;
  ovx_token_t type_name;
  DLTensor tensors[]; /* ovstage_data_t.tensors points here; behind them their shapes */
} descriptor;

const uint8_t ov_no_bytes[256] __attribute__((aligned(256))) = {0};

static descriptor* of(const DLTensor* tensors) { return (descriptor*)((char*)tensors - offsetof(descriptor, tensors)); }

static descriptor* make(uint32_t count, const ov_form* form, int64_t references, ov_block* data, ov_block* prim_map,
                        ov_block* data_map) {
  size_t axes = 1 + (size_t)form->ndim;
  descriptor* d = malloc(sizeof *d + count * (sizeof(DLTensor) + axes * sizeof(int64_t)));
  if (d != NULL) *d = (descriptor){.references = references, .data = data, .prim_map = prim_map, .data_map = data_map};
  return d;
}

static void* address(const ov_block* block, uint64_t offset) {
  return block != NULL ? (uint8_t*)block->data + offset : (void*)ov_no_bytes;
}

/* Returns the end of the tensor's shape. */
static int64_t* describe(DLTensor* tensor, void* data, const ov_form* form, int64_t* shape, int64_t extent) {
  *tensor =
      (DLTensor){.data = data, .device = {kDLCPU, 0}, .ndim = 1 + form->ndim, .dtype = form->dtype, .shape = shape};
  *shape++ = extent;
  for (int32_t axis = 0; axis < form->ndim; axis++) *shape++ = form->extents[axis];
  return shape;
}

DLTensor* ov_tensors_fixed(ov_block* data, uint64_t offset, int64_t rows, ov_values values, ov_block* prim_map,
                           ov_block* data_map, int64_t references) {
  ov_form form = ov_form_of(&values);
  descriptor* d = make(1, &form, references, data, prim_map, data_map);
  if (d == NULL) return NULL;
  describe(d->tensors, address(data, offset), &form, (int64_t*)(d->tensors + 1), rows);
  return d->tensors;
}

DLTensor* ov_tensors_ragged(ov_block* data, ov_block* spans, uint32_t count, ov_values values, uint64_t element,
                            ov_block* prim_map, int64_t references) {
  ov_form form = ov_form_of(&values);
  descriptor* d = make(count, &form, references, data, prim_map, NULL);
  if (d == NULL) return NULL;
  const ov_span* span = spans->data;
  int64_t* shape = (int64_t*)(d->tensors + count);
  for (uint32_t k = 0; k < count; k++)
    shape = describe(&d->tensors[k], address(data, span[k].offset), &form, shape, (int64_t)(span[k].length / element));
  ov_block_release(spans);
  return d->tensors;
}

void ov_tensors_name_type(DLTensor* tensors, ovx_token_t type_name) { of(tensors)->type_name = type_name; }

ovx_token_t ov_tensors_type(const DLTensor* tensors) { return of(tensors)->type_name; }

ov_block* ov_tensors_block(const DLTensor* tensors) { return __atomic_load_n(&of(tensors)->data, __ATOMIC_ACQUIRE); }

void ov_tensors_retain(const DLTensor* tensors) { __atomic_add_fetch(&of(tensors)->references, 1, __ATOMIC_RELAXED); }

void ov_tensors_give_up_data(const DLTensor* tensors) {
  ov_block_release(__atomic_exchange_n(&of(tensors)->data, NULL, __ATOMIC_ACQ_REL));
}

void ov_tensors_release(const DLTensor* tensors) {
  descriptor* d = of(tensors);
  if (__atomic_sub_fetch(&d->references, 1, __ATOMIC_ACQ_REL) != 0) return;
  ov_tensors_give_up_data(tensors);
  ov_block_release(d->prim_map);
  ov_block_release(d->data_map);
  free(d);
}
