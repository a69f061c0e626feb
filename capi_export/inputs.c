/*
 * inputs.c - what callers hand in, read once.
 *
 * The memory of a caller is the caller's: another of its threads may write to it while a call looks at it. So each
 * array, text and structure is copied first, and it is the copy that is judged and used. Two things are left to the
 * engine: masks, index maps and element sizes, whose length it has to judge by the query before they may be read,
 * and the bytes of tensors, which are as they are when the write takes them.
 */
#include <stdlib.h>
#include <string.h>

#include "ring.h"

/* Memory beyond the first. */
typedef struct chunk {
  struct chunk* next;
  char bytes[];
} chunk;

enum { CHUNK = 4096 - sizeof(chunk) };

void ov_inputs_open(ov_inputs* in) {
  in->chunks = NULL;
  in->at = in->few;
  in->left = sizeof in->few;
  in->lost = NULL;
}

void ov_inputs_close(ov_inputs* in) {
  for (chunk* c = in->chunks; c != NULL;) {
    chunk* next = c->next;
    free(c);
    c = next;
  }
}

ovstage_api_status_t ov_inputs_status(const ov_inputs* in) {
  if (in->lost == NULL) return OVSTAGE_OK;
  return ov_fail(OVSTAGE_ERROR_OUT_OF_MEMORY, "%s: out of memory for a copy of what was handed in", in->lost);
}

static void* lose(ov_inputs* in, const char* what) {
  if (in->lost == NULL) in->lost = what;
  return NULL;
}

/* Room for so many entries of an argument. NULL: out of memory, or something has been lost before. */
static void* room_for(ov_inputs* in, const char* what, size_t count, size_t size) {
  size_t bytes;
  if (in->lost != NULL || __builtin_mul_overflow(count, size, &bytes) || bytes > OV_LARGEST) return lose(in, what);
  bytes = (bytes + 7) & ~(size_t)7;
  if (bytes > in->left) {
    size_t least = bytes > CHUNK ? bytes : CHUNK;
    chunk* more = malloc(sizeof *more + least);
    if (more == NULL) return lose(in, what);
    more->next = in->chunks;
    in->chunks = more;
    in->at = more->bytes;
    in->left = least;
  }
  void* room = in->at;
  in->at += bytes;
  in->left -= bytes;
  return room;
}

void* ov_take(void* to, const void* from, size_t size) {
  memcpy(to, from, size);
  __asm__ volatile("" ::: "memory"); /* `from` may not be looked at once more instead of `to` */
  return to;
}

void* ov_input(ov_inputs* in, const char* what, const void* array, size_t count, size_t size) {
  if (array == NULL) return NULL;
  if (count == 0) return (void*)ov_no_bytes;
  void* own = room_for(in, what, count, size);
  return own != NULL ? ov_take(own, array, count * size) : NULL;
}

/* ---- Texts ------------------------------------------------------------------------------------------------------- */

/* What is neither empty nor without an address can be copied; the rest is Go's to refuse. */
static bool has_bytes(const ovx_string_t* text) {
  return text->length > 0 && text->length <= OV_MOST_ENTRIES && (uintptr_t)text->ptr >= OV_FIRST_ADDRESS;
}

/* Makes views that are ours lead to bytes that are, too. */
static bool own_bytes(ov_inputs* in, const char* what, ovx_string_t* texts, size_t count) {
  size_t total = 0;
  for (size_t i = 0; i < count && total <= OV_LARGEST; i++)
    if (has_bytes(&texts[i])) total += texts[i].length;
  if (total == 0) return true;
  char* at = room_for(in, what, total, 1);
  for (size_t i = 0; at != NULL && i < count; i++) {
    if (!has_bytes(&texts[i])) continue;
    texts[i].ptr = ov_take(at, texts[i].ptr, texts[i].length);
    at += texts[i].length;
  }
  return at != NULL;
}

ovx_string_t* ov_input_texts(ov_inputs* in, const char* what, const ovx_string_t* texts, size_t count) {
  ovx_string_t* own = ov_input(in, what, texts, count, sizeof *texts);
  return own != NULL && own_bytes(in, what, own, count) ? own : NULL;
}

void ov_input_name(ov_inputs* in, const char* what, ovx_string_or_token_t* own) {
  if (own->token == 0) own_bytes(in, what, &own->string, 1);
}

ovx_string_or_token_t* ov_input_names(ov_inputs* in, const char* what, const ovx_string_or_token_t* names,
                                      size_t count) {
  ovx_string_or_token_t* own = ov_input(in, what, names, count, sizeof *names);
  for (size_t i = 0; own != NULL && i < count; i++) ov_input_name(in, what, &own[i]);
  return own;
}

/* ---- Conditions -------------------------------------------------------------------------------------------------- */

static void own_predicate(ov_inputs* in, ovstage_predicate_t* own) {
  ov_input_name(in, "attribute", &own->attribute);
  if (own->op == OVSTAGE_FILTER_OP_HAS || own->value_count > OV_MOST_ENTRIES ||
      (uintptr_t)own->values < OV_FIRST_ADDRESS)
    return;
  own->values = ov_input_texts(in, "values", own->values, own->value_count);
}

ovstage_predicate_t* ov_input_predicates(ov_inputs* in, const ovstage_predicate_t* predicates, size_t count) {
  ovstage_predicate_t* own = ov_input(in, "filter.predicates", predicates, count, sizeof *predicates);
  for (size_t i = 0; own != NULL && i < count; i++) own_predicate(in, &own[i]);
  return own;
}

/* Copies what lies below a condition of a level, in the order in which Go judges it. False: Go is going to refuse it
 * here, or there is no memory; what would come after is not looked at. */
static bool own_condition(ov_inputs* in, ovstage_go_condition_t* own, int level) {
  if (own->match == OVSTAGE_GO_MATCH_PREDICATE) {
    own_predicate(in, &own->predicate);
    return in->lost == NULL;
  }
  if (own->count == 0) return true;
  if ((uintptr_t)own->conditions < OV_FIRST_ADDRESS || own->count > OV_MOST_ENTRIES || level == OV_MOST_LEVELS)
    return false;
  ovstage_go_condition_t* below =
      ov_input(in, "condition.conditions", own->conditions, own->count, sizeof *own->conditions);
  own->conditions = below;
  bool good = below != NULL;
  for (size_t i = 0; good && i < own->count; i++) good = own_condition(in, &below[i], level + 1);
  return good;
}

ovstage_go_condition_t* ov_input_condition(ov_inputs* in, const ovstage_go_condition_t* condition) {
  ovstage_go_condition_t* own = ov_input(in, "condition", condition, 1, sizeof *condition);
  if (own != NULL) own_condition(in, own, 0);
  return own;
}

/* ---- Writes ------------------------------------------------------------------------------------------------------ */

static ov_write* input_writes(ov_inputs* in, const ovstage_attribute_write_t* writes, size_t count) {
  if (writes == NULL) return NULL;
  if (count == 0 || count > OV_MOST_ENTRIES) return (ov_write*)ov_no_bytes; /* to be refused unread */
  ov_write* own = room_for(in, "writes", count, sizeof *own);
  for (size_t i = 0; own != NULL && i < count; i++) {
    ov_take(&own[i].given, &writes[i], sizeof *writes);
    ovstage_write_data_t* data = &own[i].given.data;
    data->managed_tensors =
        ov_input(in, "managed_tensors", data->managed_tensors, data->tensor_count, sizeof *data->managed_tensors);
    own[i].tensors = NULL;
    own[i].type_name = (ovx_string_or_token_t){0};
  }
  return own;
}

ov_batch ov_input_batch(ov_inputs* in, const ovstage_go_batch_t* batch) {
  ov_write* writes = input_writes(in, batch->writes, batch->write_count);
  return (ov_batch){batch->query, in->lost == NULL ? writes : NULL, batch->write_count};
}

ov_batch* ov_input_batches(ov_inputs* in, const ovstage_go_batch_t* batches, size_t count) {
  const ovstage_go_batch_t* given =
      count <= OV_MOST_ENTRIES ? ov_input(in, "batches", batches, count, sizeof *batches) : NULL;
  ov_batch* own = given != NULL && count > 0 ? room_for(in, "batches", count, sizeof *own) : NULL;
  for (size_t i = 0; own != NULL && i < count; i++) own[i] = ov_input_batch(in, &given[i]);
  return in->lost == NULL ? own : NULL;
}

/* Descriptors whose axes are ours, too, as far as they can be read; the others are Go's to refuse. */
static void own_axes(ov_inputs* in, DLTensor* tensors, size_t count) {
  size_t axes = 0;
  for (size_t i = 0; i < count; i++)
    if (tensors[i].ndim > 0 && tensors[i].ndim <= OVSTAGE_GO_MOST_AXES) axes += 2 * (size_t)tensors[i].ndim;
  int64_t* at = axes > 0 ? room_for(in, "tensors", axes, sizeof *at) : NULL;
  for (size_t i = 0; at != NULL && i < count; i++) {
    DLTensor* t = &tensors[i];
    if (t->ndim <= 0 || t->ndim > OVSTAGE_GO_MOST_AXES) continue;
    size_t size = (size_t)t->ndim * sizeof *at;
    if ((uintptr_t)t->shape >= OV_FIRST_ADDRESS) t->shape = ov_take(at, t->shape, size);
    if ((uintptr_t)t->strides >= OV_FIRST_ADDRESS) t->strides = ov_take(at + t->ndim, t->strides, size);
    at += 2 * t->ndim;
  }
}

/* The descriptors of tensors that were given away. Those of another major version are laid out otherwise. */
static DLTensor* managed_descriptors(ov_inputs* in, const ovstage_write_data_t* data) {
  DLTensor* own = room_for(in, "managed_tensors", data->tensor_count, sizeof *own);
  for (uint32_t k = 0; own != NULL && k < data->tensor_count; k++) {
    const DLManagedTensorVersioned* t = data->managed_tensors[k];
    own[k] = (DLTensor){.ndim = 0};
    if (t != NULL && t->version.major == DLPACK_MAJOR_VERSION) ov_take(&own[k], &t->dl_tensor, sizeof *own);
  }
  return own;
}

static void input_payload(ov_inputs* in, ov_write* write) {
  const ovstage_write_data_t* data = &write->given.data;
  ov_input_name(in, "attribute", &write->given.attribute);
  if (data->tensor_count == 0 || (data->tensors != NULL && data->managed_tensors != NULL))
    return; /* for Go to refuse */
  write->tensors = data->managed_tensors != NULL
                       ? managed_descriptors(in, data)
                       : ov_input(in, "tensors", data->tensors, data->tensor_count, sizeof *data->tensors);
  if (write->tensors != NULL) own_axes(in, write->tensors, data->tensor_count);
}

static void input_type_names(ov_inputs* in, const ovx_string_or_token_t* names, ov_batch* batches, size_t count) {
  for (size_t i = 0; i < count; i++) {
    for (size_t k = 0; k < batches[i].count; k++) {
      ovx_string_or_token_t* own = &batches[i].writes[k].type_name;
      ov_take(own, names++, sizeof *own);
      ov_input_name(in, "type_names", own);
    }
  }
}

ovstage_api_status_t ov_input_payloads(ov_inputs* in, ov_batch* batches, size_t count,
                                       const ovx_string_or_token_t* type_names) {
  if (type_names != NULL && batches != NULL && in->lost == NULL) input_type_names(in, type_names, batches, count);
  for (size_t i = 0; batches != NULL && i < count; i++)
    for (size_t k = 0; k < batches[i].count && in->lost == NULL; k++) input_payload(in, &batches[i].writes[k]);
  return ov_inputs_status(in);
}
