/*
 * scarce.c - the calls of C while memory runs out, at each of their allocations in turn: shortage.c fails them.
 *
 * A program of its own. Each call answers OVSTAGE_OK or OUT_OF_MEMORY; what failed has left nothing behind, and
 * succeeds as soon as there is memory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scene.h"
#include "shortage.h"

/* A scene, and one of each thing that a call may be about. */
typedef struct {
  scene base;
  ovx_token_t value, fresh;
  ovstage_query_handle_t two;
  ovstage_read_handle_t read;
  ovstage_map_handle_t map;
  ovstage_map_group_t mapped;
} stock;

/* A tensor of three floats that may be given away. */
typedef struct {
  _Alignas(64) float values[PRIMS];
  int64_t shape;
  DLManagedTensorVersioned tensor;
} gift;

static int deletions;

static void delete_gift(DLManagedTensorVersioned* tensor) {
  deletions++;
  free(tensor->manager_ctx);
}

static const DLManagedTensorVersioned* gift_new(void) {
  gift* made = aligned_alloc(64, sizeof *made);
  memset(made, 0, sizeof *made);
  made->shape = PRIMS;
  made->tensor.version.major = DLPACK_MAJOR_VERSION;
  made->tensor.version.minor = DLPACK_MINOR_VERSION;
  made->tensor.manager_ctx = made;
  made->tensor.deleter = delete_gift;
  made->tensor.dl_tensor = tensor_of(made->values, type_of(kDLFloat, 32, 1), 1, &made->shape);
  return &made->tensor;
}

static bool open_stock(stock* s) {
  if (!open_scene(&s->base, "scarce")) return false;
  s->value = token_of(&s->base, "value");
  s->fresh = token_of(&s->base, "fresh");
  const char* const paths[2] = {"/World/C", "/World/A"};
  s->two = query_of(&s->base, paths, 2);
  DONE(&s->base, write_floats(&s->base, s->value, 1, 1, 2, 3));
  DONE(&s->base, seal(&s->base, 1));
  ovstage_map_desc_t desc = map_of(s->value, EXISTING);
  map_all(&s->base, &desc, 5, &s->map, &s->mapped);
  DONE(&s->base, ovstage_read_attributes(s->base.stage, s->base.query, &s->value, 1, latest(1), &s->read));
  s->base.go->trim();
  return true;
}

static void close_stock(stock* s) {
  s->base.go->abort_map(s->base.stage, s->map);
  DONE(&s->base, ovstage_release_read(s->base.stage, s->read));
  DONE(&s->base, ovstage_release_query(s->base.stage, s->two));
  close_scene(&s->base);
}

/* ---- The calls --------------------------------------------------------------------------------------------------- */

/* What became of an operation. */
static ovstage_api_status_t ended(stock* s, ovstage_enqueue_result_t enqueued) {
  if (enqueued.status != OVSTAGE_OK) return enqueued.status;
  ovstage_api_status_t status = s->base.go->op_status(s->base.stage, enqueued.op_index);
  CHECK(ovstage_release_op(s->base.stage, enqueued.op_index) == OVSTAGE_OK);
  return status;
}

/* The dictionary has one status for all failures, and a text. */
static ovstage_api_status_t named(stock* s, ovx_api_result_t result) {
  if (result.status == OVX_API_SUCCESS) return OVSTAGE_OK;
  bool scarce = contains(result.error, "out of memory");
  path_dictionary_release_error(s->base.dictionary, result.error);
  return scarce ? OVSTAGE_ERROR_OUT_OF_MEMORY : OVSTAGE_ERROR_INTERNAL;
}

static ovstage_api_status_t create(stock* s) {
  (void)s;
  ovstage_instance_t* made = NULL;
  ovstage_instance_desc_t desc = {"another"};
  ovstage_api_status_t status = ovstage_create_instance(&desc, &made);
  return status == OVSTAGE_OK ? ovstage_destroy_instance(made) : status;
}

static ovstage_api_status_t write_value(stock* s) { return ended(s, write_floats(&s->base, s->value, 6, 4, 5, 6)); }

static ovstage_api_status_t write_new(stock* s) { return ended(s, write_floats(&s->base, s->fresh, 6, 4, 5, 6)); }

static ovstage_api_status_t write_batch(stock* s) {
  float values[3] = {4, 5, 6};
  int64_t shape = 3;
  const DLTensor tensor = tensor_of(values, type_of(kDLFloat, 32, 1), 1, &shape);
  const ovstage_attribute_write_t writes[2] = {{by_token(s->value), payload_of(&tensor, 1)},
                                               {by_name("a name of its own"), payload_of(&tensor, 1)}};
  return ended(s, ovstage_write_attributes(s->base.stage, s->base.query, writes, 2, 6, OVSTAGE_PRIM_MODE_UPSERT));
}

/* More writes, and tensors given away, than need no allocation. */
enum { MANY = 20 };

typedef struct {
  const DLManagedTensorVersioned* tensors[MANY];
  ovstage_attribute_write_t writes[MANY];
  char names[MANY][8];
} gifts;

static void wrap_gifts(gifts* g) {
  for (int i = 0; i < MANY; i++) {
    g->tensors[i] = gift_new();
    snprintf(g->names[i], sizeof g->names[i], "given%d", i);
    g->writes[i] = (ovstage_attribute_write_t){by_name(g->names[i]), payload_of(NULL, 1)};
    g->writes[i].data.managed_tensors = &g->tensors[i];
  }
  deletions = 0;
}

/* A refused call deletes each tensor once. */
static ovstage_api_status_t write_given(stock* s) {
  gifts g;
  wrap_gifts(&g);
  ovstage_api_status_t status =
      ended(s, ovstage_write_attributes(s->base.stage, s->base.query, g.writes, MANY, 6, OVSTAGE_PRIM_MODE_UPSERT));
  if (status != OVSTAGE_OK) CHECK(deletions == MANY);
  return status;
}

static ovstage_api_status_t publish_given(stock* s) {
  gifts g;
  wrap_gifts(&g);
  ovstage_go_batch_t batches[MANY];
  for (int i = 0; i < MANY; i++) batches[i] = (ovstage_go_batch_t){s->base.query, &g.writes[i], 1};
  ovstage_api_status_t status = ended(s, s->base.go->publish(s->base.stage, NULL, 0, batches, MANY, 6));
  if (status != OVSTAGE_OK) CHECK(deletions == MANY);
  return status;
}

/* One that is given twice is refused with memory and without, and deleted once. */
static ovstage_api_status_t write_given_twice(stock* s) {
  gifts g;
  wrap_gifts(&g);
  DLManagedTensorVersioned* spare = (DLManagedTensorVersioned*)g.tensors[MANY - 1];
  g.tensors[MANY - 1] = g.tensors[0];
  ovstage_api_status_t status =
      ended(s, ovstage_write_attributes(s->base.stage, s->base.query, g.writes, MANY, 6, OVSTAGE_PRIM_MODE_UPSERT));
  CHECK(deletions == MANY - 1);
  spare->deleter(spare);
  return status == OVSTAGE_ERROR_INVALID_ARGUMENT ? OVSTAGE_OK : status;
}

static ovstage_api_status_t publish(stock* s) {
  float values[3] = {4, 5, 6};
  int64_t shape = 3;
  const DLTensor tensor = tensor_of(values, type_of(kDLFloat, 32, 1), 1, &shape);
  const ovstage_attribute_write_t one = {by_token(s->fresh), payload_of(&tensor, 1)};
  const ovx_string_or_token_t gone = by_token(s->value);
  const ovstage_go_delete_t away = {s->two, &gone, 1};
  const ovstage_go_batch_t batch = {s->base.query, &one, 1};
  return ended(s, s->base.go->publish(s->base.stage, &away, 1, &batch, 1, 6));
}

static ovstage_api_status_t delete_value(stock* s) {
  const ovx_string_or_token_t gone = by_token(s->value);
  return ended(s, ovstage_delete_attributes(s->base.stage, s->two, &gone, 1, 6));
}

static ovstage_api_status_t seal_all(stock* s) { return ended(s, seal(&s->base, 4)); }

static ovstage_api_status_t filter(stock* s) {
  ovx_string_t prefix = view("/World");
  const ovstage_predicate_t predicate = {by_name("usd-path"), OVSTAGE_FILTER_OP_PREFIX, &prefix, 1};
  const ovstage_filter_t all = {&predicate, 1};
  ovstage_query_handle_t made = OVSTAGE_INVALID_QUERY_HANDLE;
  ovstage_api_status_t status = ended(s, ovstage_query(s->base.stage, &all, NULL, 0, &made));
  ovstage_query_result_t result;
  if (status == OVSTAGE_OK) {
    status = ovstage_fetch_query_result(s->base.stage, made, OVSTAGE_TIMEOUT_INFINITE, &result);
    if (status == OVSTAGE_OK) status = ovstage_release_query_result(s->base.stage, &result);
  }
  if (made != OVSTAGE_INVALID_QUERY_HANDLE) CHECK(ended(s, ovstage_release_query(s->base.stage, made)) == OVSTAGE_OK);
  return status;
}

static ovstage_api_status_t part(stock* s) {
  const uint64_t mask = 0x5;
  ovstage_query_handle_t made = OVSTAGE_INVALID_QUERY_HANDLE;
  ovstage_api_status_t status = s->base.go->query_where(s->base.stage, s->base.query, &mask, 3, &made);
  return status == OVSTAGE_OK ? ended(s, ovstage_release_query(s->base.stage, made)) : status;
}

/* A read in another order, so that it needs index maps, and its group, exported in both forms. */
static ovstage_api_status_t read_two(stock* s) {
  ovstage_read_handle_t read = OVSTAGE_INVALID_READ_HANDLE;
  ovstage_read_group_t group;
  ovstage_api_status_t status =
      ended(s, ovstage_read_attributes(s->base.stage, s->two, &s->value, 1, latest(1), &read));
  if (status != OVSTAGE_OK) return status;
  status = ovstage_fetch_read_next(s->base.stage, read, OVSTAGE_TIMEOUT_INFINITE, &group);
  if (status == OVSTAGE_OK) {
    ovstage_go_block_t* block = s->base.go->tensors_block(group.data.tensors);
    DLManagedTensorVersioned* versioned =
        s->base.go->export_versioned(s->base.stage, block, group.data.tensors, DLPACK_FLAG_BITMASK_READ_ONLY);
    DLManagedTensor* legacy = s->base.go->export_legacy(s->base.stage, block, group.data.tensors);
    if (versioned == NULL || legacy == NULL) status = OVSTAGE_ERROR_OUT_OF_MEMORY; /* that is how they say it */
    if (versioned != NULL) versioned->deleter(versioned);
    if (legacy != NULL) legacy->deleter(legacy);
    CHECK(ovstage_release_group(s->base.stage, &group) == OVSTAGE_OK);
  }
  CHECK(ended(s, ovstage_release_read(s->base.stage, read)) == OVSTAGE_OK);
  return status;
}

static ovstage_api_status_t fetch(stock* s) {
  ovstage_read_group_t group;
  ovstage_api_status_t status = ovstage_fetch_read_next(s->base.stage, s->read, OVSTAGE_TIMEOUT_INFINITE, &group);
  return status == OVSTAGE_OK ? ovstage_release_group(s->base.stage, &group) : status;
}

static ovstage_api_status_t map_new(stock* s) {
  ovstage_map_desc_t desc = map_of(s->fresh, type_of(kDLFloat, 32, 3));
  ovstage_map_handle_t map = OVSTAGE_INVALID_MAP_HANDLE;
  ovstage_api_status_t status = ended(s, ovstage_map_attribute(s->base.stage, s->two, &desc, 6, NULL, 0, &map));
  if (status != OVSTAGE_OK) return status;
  ovstage_map_group_t group;
  status = ovstage_fetch_map_next(s->base.stage, map, OVSTAGE_TIMEOUT_INFINITE, &group);
  if (status == OVSTAGE_OK) return ended(s, ovstage_unmap_attribute(s->base.stage, map, NO_SYNC));
  CHECK(s->base.go->abort_map(s->base.stage, map) == OVSTAGE_OK);
  return status;
}

static ovstage_api_status_t commit(stock* s) {
  return ended(s, s->base.go->unmap_group(s->base.stage, s->map, &s->mapped, NO_SYNC, OVSTAGE_GO_COMMIT_AUTO));
}

static ovstage_api_status_t clone(stock* s) {
  const ovx_string_t targets[2] = {view("/World/D"), view("/World/E")};
  return ended(s, ovstage_clone(s->base.stage, view("/World/A"), targets, 2, 6));
}

static ovstage_api_status_t relatives(stock* s) {
  ovstage_hierarchy_handle_t handle = 0;
  ovstage_hierarchy_result_t result;
  ovstage_api_status_t status =
      ended(s, ovstage_get_hierarchy(s->base.stage, s->base.list, 1, OVSTAGE_HIERARCHY_PARENT, &handle));
  if (status != OVSTAGE_OK) return status;
  status = ovstage_fetch_hierarchy_result(s->base.stage, handle, &result);
  if (status == OVSTAGE_OK) status = ovstage_release_hierarchy_result(s->base.stage, &result);
  CHECK(ended(s, ovstage_release_hierarchy(s->base.stage, handle)) == OVSTAGE_OK);
  return status;
}

static ovstage_api_status_t tokens(stock* s) {
  const ovx_string_t texts[2] = {view("one"), view("two")};
  ovx_token_t made[2];
  return named(s, path_dictionary_create_tokens_from_strings(s->base.dictionary, texts, 2, made));
}

static ovstage_api_status_t paths(stock* s) {
  const ovx_token_t components[2] = {s->value, s->fresh};
  const size_t counts[1] = {2};
  ovx_primpath_t made;
  ovx_primpath_list_t list;
  ovstage_api_status_t status =
      named(s, path_dictionary_create_paths_from_tokens(s->base.dictionary, components, counts, 1, &made));
  if (status == OVSTAGE_OK)
    status = named(s, path_dictionary_create_path_list_from_paths(s->base.dictionary, &made, 1, &list));
  return status == OVSTAGE_OK ? named(s, path_dictionary_release_path_list_reference(s->base.dictionary, list))
                              : status;
}

/* A call that fails in any case; its text may give way to that of the shortage. */
static ovstage_api_status_t unknown_token(stock* s) {
  const ovx_token_t none = 1234567;
  ovx_string_t text;
  ovx_api_result_t result = path_dictionary_get_strings_from_tokens(s->base.dictionary, &none, 1, &text);
  CHECK(result.status == OVX_API_ERROR);
  CHECK(contains(result.error, "not found") || contains(result.error, "out of memory"));
  path_dictionary_release_error(s->base.dictionary, result.error);
  return OVSTAGE_OK;
}

static const struct {
  const char* name;
  ovstage_api_status_t (*run)(stock*);
} CALLS[] = {
    {"create_instance", create},
    {"write_attribute", write_value},
    {"write_attribute, new", write_new},
    {"write_attributes", write_batch},
    {"write_attributes, given away", write_given},
    {"write_attributes, given away twice", write_given_twice},
    {"publish", publish},
    {"publish, given away", publish_given},
    {"delete_attributes", delete_value},
    {"advance_write_floor", seal_all},
    {"query", filter},
    {"query_where", part},
    {"read_attributes", read_two},
    {"fetch_read_next", fetch},
    {"map_attribute", map_new},
    {"unmap_group", commit},
    {"clone", clone},
    {"get_hierarchy", relatives},
    {"create_tokens", tokens},
    {"create_paths", paths},
    {"get_strings", unknown_token},
};

/* ---- Each of them ------------------------------------------------------------------------------------------------ */

typedef struct {
  int64_t of[6];
} live;

static live count_live(const stock* s) {
  ovstage_go_counters_t c = zero_counters();
  CHECK(s->base.go->counters(s->base.stage, &c) == OVSTAGE_OK);
  return (live){{(int64_t)c.live_exports, (int64_t)c.live_groups, (int64_t)c.live_maps, (int64_t)c.live_operations,
                 (int64_t)c.live_queries, (int64_t)c.live_reads}};
}

static void require(bool held, const char* what, const char* call, long first) {
  if (!held) printf("    in %s, allocation %ld\n", call, first);
  check(held, what, call, (int)first);
}

/* One call, of whose allocations those from first to last fail. Whether any did. */
static bool attempt(size_t k, long first, long last, long* failures) {
  stock s;
  if (!open_stock(&s)) return false;
  live before = count_live(&s);
  shortage_begin(first, last);
  ovstage_api_status_t status = CALLS[k].run(&s);
  shortage_end();
  bool met = shortage_failed() > 0;
  if (status != OVSTAGE_OK) {
    ++*failures;
    live after = count_live(&s);
    require(met && status == OVSTAGE_ERROR_OUT_OF_MEMORY, "it says out of memory", CALLS[k].name, first);
    require(memcmp(&before, &after, sizeof before) == 0, "it leaves nothing", CALLS[k].name, first);
    EXPECT_FLOATS(&s.base, s.value, 1, 1, 2, 3);
    require(CALLS[k].run(&s) == OVSTAGE_OK, "it succeeds with memory", CALLS[k].name, first);
  }
  close_stock(&s);
  return met;
}

int main(void) {
  long failures = 0;
  for (size_t k = 0; k < sizeof CALLS / sizeof *CALLS; k++)
    for (int all = 0; all < 2; all++)
      for (long first = 1; attempt(k, first, all ? 1L << 40 : first, &failures); first++) continue;
  CHECK(failures > 50);
  printf("%ld calls met a shortage; %d checks, %d failed\n", failures, passed + failed, failed);
  return failed != 0;
}
