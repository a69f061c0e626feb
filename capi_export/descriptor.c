/*
 * descriptor.c - what the pointers of a group lead to.
 *
 * Groups have the canonical layout of the interface: one tensor, one axis of rows, whole values in the lanes, no
 * strides and no byte offset. Clients check for it. Strides and trailing axes appear where consumers need them, in
 * exports.
 */
#include <stdlib.h>

#include "ring.h"

const uint8_t ov_no_bytes[256] __attribute__((aligned(256))) = {0};

ov_descriptor* ov_descriptor_new(ov_block* data, uint64_t offset, int64_t rows, DLDataType dtype, ov_block* prim_map,
                                 ov_block* data_map) {
  ov_descriptor* d = malloc(sizeof *d);
  if (d == NULL) {
    ov_block_release(data);
    ov_block_release(prim_map);
    ov_block_release(data_map);
    return NULL;
  }
  *d = (ov_descriptor){.references = 1, .data = data, .prim_map = prim_map, .data_map = data_map, .shape = {rows}};
  d->tensor = (DLTensor){
      .data = data != NULL ? (uint8_t*)data->data + offset : (void*)ov_no_bytes,
      .device = {kDLCPU, 0},
      .ndim = 1,
      .dtype = dtype,
      .shape = d->shape,
  };
  return d;
}

ov_descriptor* ov_descriptor_of(const DLTensor* tensors) {
  return (ov_descriptor*)((char*)tensors - offsetof(ov_descriptor, tensor));
}

void ov_descriptor_retain(ov_descriptor* d) { __atomic_add_fetch(&d->references, 1, __ATOMIC_RELAXED); }

void ov_descriptor_give_up_data(ov_descriptor* d) {
  ov_block_release(__atomic_exchange_n(&d->data, NULL, __ATOMIC_ACQ_REL));
}

void ov_descriptor_release(ov_descriptor* d) {
  if (__atomic_sub_fetch(&d->references, 1, __ATOMIC_ACQ_REL) != 0) return;
  ov_descriptor_give_up_data(d);
  ov_block_release(d->prim_map);
  ov_block_release(d->data_map);
  free(d);
}
