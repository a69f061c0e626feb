/*
 * ovalign.h - bring read groups of several attributes to one common split into prims. Not included by ovstage.h.
 *
 * Not built yet in this version: ovalign_align answers a number other than 0, and a text in ovstage_get_last_error().
 * Note that this library serves a column over a query as one group in query order whenever it can, so that groups of
 * different attributes usually are aligned as they come.
 */
#ifndef OVALIGN_H
#define OVALIGN_H

#include <stdbool.h>
#include <stddef.h>

#include "ovstage.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where results are wanted. */
typedef enum { OVALIGN_DEVICE_CPU = 0, OVALIGN_DEVICE_CUDA = 1 } ovalign_device_t;

/* What to align. 64 bytes. */
typedef struct {
  const ovstage_read_group_t* groups; /* of any of the attributes, in any order */
  size_t group_count;
  const ovx_token_t* attributes;
  size_t attr_count;
  ovx_primpath_list_t prim_list; /* the list that the groups' prims are positions in */
  const uint32_t* prim_order;    /* positions in prim_list; NULL = as they come */
  size_t prim_order_count;       /* ignored with NULL */
  ovalign_device_t device;
} ovalign_request_t;

/* The groups of one attribute. 16 bytes. */
typedef struct {
  const ovstage_read_group_t* groups;
  size_t group_count;
} ovalign_attr_result_t;

/* The groups of all attributes. 32 bytes. Group i of each attribute has the same prims. */
typedef struct {
  const ovalign_attr_result_t* attrs; /* in the order of the request */
  size_t attr_count;
  size_t group_count; /* of each attribute */
  bool skipped;       /* they were aligned already: the pointers are those of the request */
} ovalign_result_t;

/*
 * ovalign_align - align groups; those that are aligned already cost a comparison only.
 *
 *   request     must outlive a result that is `skipped`
 *   out_result  to be freed by ovalign_release
 *
 * Returns   0; any other number: it did not work, and out_result holds nothing.
 */
int ovalign_align(const ovalign_request_t* request, ovalign_result_t* out_result);

/* ovalign_release - free a result; its pointers are dead afterwards. NULL and skipped results: nothing happens. */
void ovalign_release(ovalign_result_t* result);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* OVALIGN_H */
