/*
 * managed.c - tensors that a write brings along and leaves here.
 *
 * They are the library's from the call on, so that each deleter runs exactly once, whatever becomes of the call. Most
 * are copied, and deleted when the call has left the stage. One whose memory can serve as a column's goes to the
 * stage as a block over that memory: then dropping the last reference of the block makes its deletion due, at the end
 * of the call if the stage has made no use of it, else when the column lets go.
 *
 * Where there is no memory for the list, the tensors themselves are chained: each is the library's, and has a word that
 * its deleter does not look at.
 */
#include <stdlib.h>

#include "ring.h"

static void delete_tensor(void* tensor) {
  DLManagedTensorVersioned* managed = tensor;
  if (managed->deleter != NULL) managed->deleter(managed);
}

static int by_address(const void* a, const void* b) {
  uintptr_t x = (uintptr_t)((const ov_managed*)a)->tensor, y = (uintptr_t)((const ov_managed*)b)->tensor;
  return (x > y) - (x < y);
}

/* The writes that can be looked at; what is refused for its pointer or its number is left alone. */
static size_t readable(const ov_batch* batch) {
  return batch->writes != NULL && batch->count <= OV_MOST_ENTRIES ? batch->count : 0;
}

static size_t count_tensors(const ov_batch* batch) {
  size_t total = 0;
  for (size_t i = 0; i < readable(batch); i++)
    if (batch->writes[i].given.data.managed_tensors != NULL) total += batch->writes[i].given.data.tensor_count;
  return total;
}

/* ---- Without memory: a chain ------------------------------------------------------------------------------------ */

/* What an array of a caller may have to be followed without a copy; a larger number is taken for a mistake. */
enum { MOST_CHAINED = 1 << 24 };

/* A chained tensor's flags: a mark, which no producer sets, and the address of the next one. */
static const uint64_t MARK = 0xa5c3ull << 48, ADDRESS = ((uint64_t)1 << 48) - 1;

static DLManagedTensorVersioned* next_of(const DLManagedTensorVersioned* tensor) {
  return (DLManagedTensorVersioned*)(uintptr_t)(tensor->flags & ADDRESS);
}

static bool is_chained(const ov_managed_list* list, const DLManagedTensorVersioned* tensor) {
  if ((tensor->flags & ~ADDRESS) != MARK) return false;
  const DLManagedTensorVersioned* at = list->chain; /* the mark may be chance */
  while (at != NULL && at != tensor) at = next_of(at);
  return at != NULL;
}

/* Each pointer is read once: what another thread puts into the array meanwhile is not followed. */
static void chain(ov_managed_list* list, const DLManagedTensorVersioned* const* tensors, size_t count) {
  if (tensors == NULL || count > MOST_CHAINED) return;
  for (size_t k = 0; k < count; k++) {
    DLManagedTensorVersioned* tensor;
    ov_take(&tensor, &tensors[k], sizeof(DLManagedTensorVersioned*));
    if (tensor == NULL || is_chained(list, tensor)) continue;
    tensor->flags = MARK | (uint64_t)(uintptr_t)list->chain;
    list->chain = tensor;
  }
}

/* The tensors of a batch as the caller has it, of which there is no copy. */
static void chain_given(ov_managed_list* list, const ovstage_go_batch_t* given) {
  if (given->writes == NULL || given->write_count > MOST_CHAINED) return;
  for (size_t i = 0; i < given->write_count; i++) {
    ovstage_attribute_write_t write;
    ov_take(&write, &given->writes[i], sizeof write);
    chain(list, write.data.managed_tensors, write.data.tensor_count);
  }
}

static void delete_chain(DLManagedTensorVersioned* tensor) {
  while (tensor != NULL) {
    DLManagedTensorVersioned* next = next_of(tensor);
    delete_tensor(tensor);
    tensor = next;
  }
}

/* ---- With memory: a list ---------------------------------------------------------------------------------------- */

/* Enters the tensors of one write, but for those that are NULL. */
static void enter(ov_managed_list* list, const ovstage_write_data_t* data) {
  if (data->managed_tensors == NULL) return;
  for (uint32_t k = 0; k < data->tensor_count; k++)
    if (data->managed_tensors[k] != NULL)
      list->entries[list->count++].tensor = (DLManagedTensorVersioned*)data->managed_tensors[k];
}

/* Sorts, and strikes out what is listed again. */
static void sort(ov_managed_list* list) {
  qsort(list->entries, list->count, sizeof *list->entries, by_address);
  size_t kept = 0;
  for (size_t i = 0; i < list->count; i++)
    if (kept > 0 && list->entries[i].tensor == list->entries[kept - 1].tensor)
      list->repeated = list->entries[i].tensor;
    else
      list->entries[kept++] = list->entries[i];
  list->count = kept;
}

void ov_managed_take_uncopied(ov_managed_list* list, const ovstage_go_batch_t* given, size_t count) {
  *list = (ov_managed_list){.entries = list->few};
  if (given == NULL || count > MOST_CHAINED || ov_forked) return;
  for (size_t i = 0; i < count; i++) {
    ovstage_go_batch_t batch;
    chain_given(list, ov_take(&batch, &given[i], sizeof batch));
  }
}

void ov_managed_take(ov_managed_list* list, const ov_batch* batches, size_t count) {
  *list = (ov_managed_list){.entries = list->few};
  if (batches == NULL || ov_forked) return;
  size_t total = 0;
  for (size_t i = 0; i < count; i++) total += count_tensors(&batches[i]);
  if (total == 0) return;
  if (total > OV_MANAGED_FEW && (list->entries = calloc(total, sizeof *list->entries)) == NULL) {
    list->lost = total;
    for (size_t i = 0; i < count; i++)
      for (size_t k = 0; k < readable(&batches[i]); k++) {
        const ovstage_write_data_t* data = &batches[i].writes[k].given.data;
        chain(list, data->managed_tensors, data->tensor_count);
      }
    return;
  }
  for (size_t i = 0; i < count; i++)
    for (size_t k = 0; k < readable(&batches[i]); k++) enter(list, &batches[i].writes[k].given.data);
  sort(list);
}

ovstage_api_status_t ov_managed_check(const ov_managed_list* list) {
  if (list->lost > 0)
    return ov_fail(OVSTAGE_ERROR_OUT_OF_MEMORY, "managed_tensors: out of memory for a list of %zu tensors", list->lost);
  if (list->repeated != NULL)
    return ov_fail(OVSTAGE_ERROR_INVALID_ARGUMENT,
                   "managed_tensors: the tensor at %p is listed twice, but can be given away only once: copy it, or "
                   "pass it in tensors",
                   (void*)list->repeated);
  return OVSTAGE_OK;
}

ov_block* ov_managed_wrap(ov_managed_list* list, const DLManagedTensorVersioned* tensor, void* data, uint64_t size) {
  const ov_managed key = {.tensor = (DLManagedTensorVersioned*)tensor};
  ov_managed* entry = bsearch(&key, list->entries, list->count, sizeof key, by_address);
  entry->block = ov_block_foreign(data, size, OV_PURPOSE_COLUMNS, delete_tensor, entry->tensor);
  return entry->block;
}

void ov_managed_give_back(ov_managed_list* list) {
  if (list->count == 0 && list->chain == NULL) return;
  ov_thread texts = ov_texts_put_aside();
  delete_chain(list->chain);
  for (size_t i = 0; i < list->count; i++)
    if (list->entries[i].block != NULL)
      ov_block_release_unlocked(list->entries[i].block);
    else
      delete_tensor(list->entries[i].tensor);
  ov_texts_bring_back(texts);
  if (list->entries != list->few) free(list->entries);
}
