/*
 * adversary.c - arguments that another thread writes to while a call judges them.
 *
 * A word, or several, swing between two states as fast as a thread can write them. Whatever mixture of both a call
 * meets, it answers as if that had been there all the time: with what it accepts, or a refusal that the argument
 * deserves, never with INTERNAL, and with no byte that nobody wrote.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "scene.h"

/* ---- The adversary ----------------------------------------------------------------------------------------------- */

int adversary_rounds = 400;

#define ROUNDS adversary_rounds

typedef struct {
  volatile uint64_t* at;
  const uint64_t *first, *second;
  size_t words;
  bool stop; /* atomic */
  pthread_t thread;
} adversary;

static void* swing(void* argument) {
  adversary* self = (adversary*)argument;
  while (!__atomic_load_n(&self->stop, __ATOMIC_RELAXED)) {
    for (size_t i = 0; i < self->words; i++) self->at[i] = self->first[i];
    for (size_t i = 0; i < self->words; i++) self->at[i] = self->second[i];
  }
  for (size_t i = 0; i < self->words; i++) self->at[i] = self->first[i];
  return NULL;
}

/* Lets memory swing between what it holds now and a second state. */
static void start(adversary* self, void* at, void* first, const void* second, size_t size) {
  memcpy(first, at, size);
  self->at = (volatile uint64_t*)at;
  self->first = (const uint64_t*)first;
  self->second = (const uint64_t*)second;
  self->words = size / sizeof(uint64_t);
  self->stop = false;
  if (!CHECK(pthread_create(&self->thread, NULL, swing, self) == 0)) abort();
}

static void stop(adversary* self) {
  __atomic_store_n(&self->stop, true, __ATOMIC_RELAXED);
  pthread_join(self->thread, NULL);
}

/* Counts answers, so that each kind is one check. */
typedef struct {
  int accepted, refused, others;
} answers;

static bool enter(answers* all, ovstage_api_status_t status) {
  if (status == OVSTAGE_OK)
    all->accepted++;
  else if (status == OVSTAGE_ERROR_INVALID_ARGUMENT || status == OVSTAGE_ERROR_NOT_SUPPORTED ||
           status == OVSTAGE_ERROR_OUT_OF_MEMORY || status == OVSTAGE_ERROR_INVALID_HANDLE)
    all->refused++;
  else
    all->others++;
  return status == OVSTAGE_OK;
}

static bool release(const scene* s, answers* all, ovstage_enqueue_result_t result) {
  if (!enter(all, result.status)) return false;
  ovstage_release_op(s->stage, result.op_index);
  return true;
}

/* ---- A long list of prims ---------------------------------------------------------------------------------------- */

enum { MANY = 8192, WORDS = MANY / 64 };

typedef struct {
  scene base;
  ovx_primpath_list_t list;
  ovstage_query_handle_t query;
  ovx_token_t attribute;
  int64_t shape[1];
  int64_t* values;
  DLTensor tensor;
} crowd;

static bool open_crowd(crowd* c, const char* name) {
  memset(c, 0, sizeof *c);
  if (!open_scene(&c->base, name)) return false;
  char (*texts)[16] = (char (*)[16])malloc(MANY * sizeof *texts);
  ovx_string_t* paths = (ovx_string_t*)malloc(MANY * sizeof *paths);
  c->values = (int64_t*)calloc(MANY, sizeof *c->values);
  for (int i = 0; i < MANY; i++) {
    char* at = &texts[i][15];
    *at = '\0';
    for (int rest = i; at > &texts[i][8]; rest /= 10) *--at = (char)('0' + rest % 10);
    memcpy(&texts[i][6], "/P", 2);
    paths[i] = view(&texts[i][6]);
  }
  CHECK(path_dictionary_create_path_list_from_strings(c->base.dictionary, paths, MANY, &c->list).status ==
        OVX_API_SUCCESS);
  CHECK(ovstage_query_from_path_list(c->base.stage, c->list, &c->query) == OVSTAGE_OK);
  free(paths);
  free(texts);
  c->attribute = token_of(&c->base, "values");
  c->shape[0] = MANY;
  c->tensor = tensor_of(c->values, type_of(kDLInt, 64, 1), 1, c->shape);
  return true;
}

static void close_crowd(crowd* c) {
  DONE(&c->base, ovstage_release_query(c->base.stage, c->query));
  CHECK(path_dictionary_release_path_list_reference(c->base.dictionary, c->list).status == OVX_API_SUCCESS);
  free(c->values);
  close_scene(&c->base);
}

static ovstage_enqueue_result_t put(crowd* c, ovstage_write_data_t data, ovstage_ordinal_t ordinal) {
  for (int i = 0; i < MANY; i++) c->values[i] = (int64_t)ordinal;
  return ovstage_write_attribute(c->base.stage, c->query, by_token(c->attribute), ordinal, data,
                                 OVSTAGE_PRIM_MODE_UPSERT);
}

/* Wants every value to be an ordinal that was written; counts the others. */
static void check_values(const crowd* c, ovstage_ordinal_t end) {
  int strange = 0;
  DONE(&c->base, seal(&c->base, end));
  ovstage_read_handle_t read;
  DONE(&c->base, ovstage_read_attributes(c->base.stage, c->query, &c->attribute, 1, latest(end), &read));
  ovstage_read_group_t group;
  while (ovstage_fetch_read_next(c->base.stage, read, 0, &group) == OVSTAGE_OK) {
    for (uint32_t k = 0; k < group.data.count; k++) {
      const DLTensor* t = &group.data.tensors[group.is_array ? k : 0];
      uint32_t row = group.is_array ? 0 : group.data.index_map != NULL ? group.data.index_map[k] : k;
      int64_t value = ((const int64_t*)t->data)[row];
      strange += value < 1 || value > (int64_t)end;
    }
    ovstage_release_group(c->base.stage, &group);
  }
  CHECK(strange == 0);
  DONE(&c->base, ovstage_release_read(c->base.stage, read));
}

/* ---- Masks, index maps, element sizes ---------------------------------------------------------------------------- */

static void masks(bool is_array) {
  static uint64_t mask[WORDS], all[WORDS], few[WORDS];
  crowd c;
  if (!open_crowd(&c, "adversary: masks")) return;
  memset(mask, 0xff, sizeof mask);
  memset(few, 0xff, sizeof few);
  memset(few + WORDS / 2, 0, sizeof few / 2);
  ovstage_write_data_t data = payload_of(&c.tensor, 1);
  data.mask = mask;
  data.count = MANY;
  data.is_array = is_array;
  answers got = {0, 0, 0};
  adversary other;
  start(&other, mask, all, few, sizeof mask);
  for (ovstage_ordinal_t n = 1; n <= (ovstage_ordinal_t)ROUNDS; n++) release(&c.base, &got, put(&c, data, n));
  stop(&other);
  CHECK(got.accepted == ROUNDS);
  check_values(&c, ROUNDS);
  close_crowd(&c);
}

static void check_masks(void) { masks(false); }
static void check_array_masks(void) { masks(true); }

static void check_index_maps(void) {
  static uint32_t map[MANY];
  static uint64_t good[MANY / 2], bad[MANY / 2];
  crowd c;
  if (!open_crowd(&c, "adversary: index maps")) return;
  for (uint32_t i = 0; i < MANY; i++) map[i] = i;
  memset(bad, 0xff, sizeof bad);
  ovstage_write_data_t data = payload_of(&c.tensor, 1);
  data.index_map = map;
  data.count = MANY;
  answers got = {0, 0, 0};
  adversary other;
  start(&other, map, good, bad, sizeof map);
  for (ovstage_ordinal_t n = 1; n <= (ovstage_ordinal_t)ROUNDS; n++) {
    data.is_array = false;
    release(&c.base, &got, put(&c, data, n));
  }
  stop(&other);
  CHECK(got.others == 0);
  check_values(&c, ROUNDS);
  close_crowd(&c);
}

/* Wants each array of a group to end before the next begins. */
static bool apart(const ovstage_map_group_t* group) {
  const DLTensor* t = group->data.tensors;
  for (uint32_t k = 0; k + 1 < group->data.tensor_count; k++)
    if ((const float*)t[k].data + t[k].shape[0] > (const float*)t[k + 1].data) return false;
  return true;
}

static void check_element_sizes(void) {
  static size_t sizes[MANY];
  static uint64_t small[MANY], large[MANY];
  crowd c;
  if (!open_crowd(&c, "adversary: element sizes")) return;
  for (int i = 0; i < MANY; i++) sizes[i] = 3, large[i] = 100;
  ovstage_map_desc_t desc = map_of(token_of(&c.base, "runs"), type_of(kDLFloat, 32, 1));
  answers got = {0, 0, 0};
  bool all_apart = true;
  adversary other;
  start(&other, sizes, small, large, sizeof sizes);
  for (int n = 0; n < ROUNDS; n++) {
    ovstage_map_handle_t map;
    ovstage_map_group_t group;
    if (!release(&c.base, &got, ovstage_map_attribute(c.base.stage, c.query, &desc, 1, sizes, MANY, &map))) continue;
    if (ovstage_fetch_map_next(c.base.stage, map, 0, &group) == OVSTAGE_OK) all_apart = all_apart && apart(&group);
    c.base.go->abort_map(c.base.stage, map);
  }
  stop(&other);
  CHECK(got.accepted == ROUNDS);
  CHECK(all_apart);
  close_crowd(&c);
}

/* ---- Descriptors and structures ---------------------------------------------------------------------------------- */

/* A descriptor with other axes, and axes with other extents. */
static void check_descriptors(void) {
  static int64_t shape[64], strides[64];
  static uint64_t before[64];
  crowd c;
  if (!open_crowd(&c, "adversary: descriptors")) return;
  for (int i = 0; i < 64; i++) shape[i] = i == 0 ? MANY : 1, strides[i] = 1;
  c.tensor.shape = shape;
  c.tensor.strides = strides;
  DLTensor first, second = c.tensor;
  second.ndim = 40;
  second.strides = NULL;
  ovstage_write_data_t data = payload_of(&c.tensor, 1);
  answers got = {0, 0, 0};
  adversary other;
  start(&other, &c.tensor, &first, &second, sizeof second);
  for (ovstage_ordinal_t n = 1; n <= (ovstage_ordinal_t)ROUNDS; n++) release(&c.base, &got, put(&c, data, n));
  stop(&other);
  CHECK(got.others == 0);

  static const uint64_t beyond[2] = {1ull << 50, 1ull << 50};
  start(&other, shape, before, beyond, sizeof beyond);
  for (ovstage_ordinal_t n = 1; n <= (ovstage_ordinal_t)ROUNDS; n++) release(&c.base, &got, put(&c, data, ROUNDS + n));
  stop(&other);
  start(&other, strides, before, beyond, sizeof beyond);
  for (ovstage_ordinal_t n = 1; n <= (ovstage_ordinal_t)ROUNDS; n++)
    release(&c.base, &got, put(&c, data, 2 * ROUNDS + n));
  stop(&other);
  CHECK(got.others == 0);
  check_values(&c, 3 * ROUNDS);
  close_crowd(&c);
}

/* Tensors that are given away: how many there are, and which, changes meanwhile. */
enum { GIVEN = 64 };

/* What is given away, call after call, and how often the call has deleted each. */
static DLManagedTensorVersioned given[GIVEN];
static int deleted[GIVEN];

static void count_deletion(DLManagedTensorVersioned* self) { deleted[self - given]++; }

/* Whatever a call met in the lists: it has deleted none of the tensors twice, and all that it accepted. */
static bool deletes_once(bool accepted, int at_least) {
  int once = 0, more = 0;
  for (int i = 0; i < GIVEN; i++) {
    once += deleted[i] == 1;
    more += deleted[i] > 1;
  }
  memset(deleted, 0, sizeof deleted);
  return more == 0 && (!accepted || once >= at_least);
}

/* The list swings between two orders of the same tensors, so that a mixture names some twice and others not at all. A
 * call that looked at it a second time, to delete, would delete other ones. */
static void check_managed_lists(void) {
  static const DLManagedTensorVersioned *list[GIVEN], *order[GIVEN], *before[GIVEN];
  crowd c;
  if (!open_crowd(&c, "adversary: managed tensors")) return;
  const char* paths[1] = {"/World/A"};
  ovstage_query_handle_t one = query_of(&c.base, paths, 1);
  memset(given, 0, sizeof given);
  for (int i = 0; i < GIVEN; i++) {
    given[i].version.major = DLPACK_MAJOR_VERSION;
    given[i].deleter = count_deletion;
    given[i].dl_tensor = c.tensor;
    list[i] = &given[i];
    order[i] = &given[(i + 1) % GIVEN];
  }
  ovstage_attribute_write_t writes[GIVEN];
  for (int i = 0; i < GIVEN; i++) {
    writes[i].attribute = by_token(c.attribute);
    writes[i].data = payload_of(NULL, 1);
    writes[i].data.managed_tensors = &list[i];
    writes[i].data.is_array = true;
  }
  answers got = {0, 0, 0};
  adversary other;
  int faults = 0;
  start(&other, list, before, order, sizeof list);
  for (ovstage_ordinal_t n = 1; n <= (ovstage_ordinal_t)ROUNDS; n++) {
    bool accepted =
        release(&c.base, &got, ovstage_write_attributes(c.base.stage, one, writes, GIVEN, n, OVSTAGE_PRIM_MODE_UPSERT));
    faults += !deletes_once(accepted, GIVEN);
  }
  stop(&other);
  CHECK(got.others == 0);
  CHECK(faults == 0);

  /* The number of tensors swings. */
  for (int i = 0; i < GIVEN; i++) list[i] = &given[i];
  ovstage_attribute_write_t write = writes[0], first, second;
  write.data.managed_tensors = list;
  write.data.tensor_count = GIVEN;
  second = write;
  second.data.tensor_count = 1;
  start(&other, &write, &first, &second, sizeof second);
  for (ovstage_ordinal_t n = 1; n <= (ovstage_ordinal_t)ROUNDS; n++) {
    bool accepted = release(
        &c.base, &got, ovstage_write_attributes(c.base.stage, one, &write, 1, ROUNDS + n, OVSTAGE_PRIM_MODE_UPSERT));
    faults += !deletes_once(accepted, 1);
  }
  stop(&other);
  CHECK(got.others == 0);
  CHECK(faults == 0);
  DONE(&c.base, ovstage_release_query(c.base.stage, one));
  close_crowd(&c);
}

/* The lists of a publication, which say how long they are. */
static void check_publications(void) {
  crowd c;
  if (!open_crowd(&c, "adversary: publications")) return;
  ovstage_attribute_write_t writes[2];
  writes[0].attribute = by_token(c.attribute);
  writes[1].attribute = by_name("second");
  writes[0].data = writes[1].data = payload_of(&c.tensor, 1);
  ovx_string_or_token_t names[2] = {by_name("gone"), by_name("lost")};
  struct {
    ovstage_go_batch_t batch;
    ovstage_go_delete_t deletion;
  } given, first, second;
  given.batch.query = given.deletion.query = c.query;
  given.batch.writes = writes;
  given.batch.write_count = 2;
  given.deletion.attributes = names;
  given.deletion.attribute_count = 2;
  second = given;
  second.batch.write_count = (size_t)1 << 60;
  second.deletion.attributes = NULL;
  second.deletion.attribute_count = 0;
  answers got = {0, 0, 0};
  adversary other;
  for (int i = 0; i < MANY; i++) c.values[i] = 1;
  start(&other, &given, &first, &second, sizeof second);
  for (ovstage_ordinal_t n = 1; n <= (ovstage_ordinal_t)ROUNDS; n++)
    release(&c.base, &got, c.base.go->publish(c.base.stage, &given.deletion, 1, &given.batch, 1, n));
  stop(&other);
  CHECK(got.others == 0);
  check_values(&c, ROUNDS);
  close_crowd(&c);
}

static void check_structures(void) {
  scene s;
  if (!open_scene(&s, "adversary: structures")) return;
  DONE(&s, write_floats(&s, token_of(&s, "a"), 1, 1, 2, 3));
  answers got = {0, 0, 0};
  adversary other;

  ovx_token_t tokens[2] = {token_of(&s, "a"), token_of(&s, "b")};
  ovstage_write_floor_desc_t floor, floor_first, floor_second;
  memset(&floor, 0, sizeof floor);
  floor.scope = OVSTAGE_SCOPE_INCLUDE;
  floor.attributes = tokens;
  floor.attribute_count = 2;
  floor_second = floor;
  floor_second.scope = OVSTAGE_SCOPE_ALL;
  floor_second.attributes = NULL;
  floor_second.attribute_count = SIZE_MAX;
  start(&other, &floor, &floor_first, &floor_second, sizeof floor);
  for (int n = 0; n < ROUNDS; n++) release(&s, &got, ovstage_advance_write_floor(s.stage, &floor));
  stop(&other);

  struct {
    ovstage_go_map_options_t options;
    ovstage_map_desc_t desc;
  } map, map_first, map_second;
  memset(&map, 0, sizeof map);
  map.options.struct_size = sizeof map.options;
  map.desc = map_of(tokens[0], type_of(kDLFloat, 32, 1));
  map_second = map;
  map_second.options.struct_size = 2;
  map_second.desc.attribute = by_name("abcdefgh");
  start(&other, &map, &map_first, &map_second, sizeof map / 8 * 8);
  for (int n = 0; n < ROUNDS; n++) {
    ovstage_map_handle_t handle;
    if (release(&s, &got, s.go->map_attribute(s.stage, s.query, &map.desc, 2, NULL, 0, &map.options, &handle)))
      CHECK(s.go->abort_map(s.stage, handle) == OVSTAGE_OK);
  }
  stop(&other);

  struct {
    ovstage_go_counters_t counters;
    uint64_t beyond[8];
  } room;
  memset(&room, 0, sizeof room);
  uint64_t size_first, size_second = sizeof room.counters;
  room.counters.struct_size = 8;
  start(&other, &room, &size_first, &size_second, sizeof size_second);
  for (int n = 0; n < ROUNDS; n++) enter(&got, s.go->counters(s.stage, &room.counters));
  stop(&other);
  for (int i = 0; i < 8; i++) CHECK(room.beyond[i] == 0);
  CHECK(got.others == 0);
  close_scene(&s);
}

/* ---- Tokens, texts, conditions ----------------------------------------------------------------------------------- */

static void check_tokens(void) {
  static ovx_token_t tokens[256];
  static uint64_t good[256], bad[256];
  scene s;
  if (!open_scene(&s, "adversary: tokens")) return;
  DONE(&s, write_floats(&s, token_of(&s, "a"), 1, 1, 2, 3));
  DONE(&s, seal(&s, 1));
  for (int i = 0; i < 256; i++) tokens[i] = token_of(&s, "a"), bad[i] = 1ull << 50;
  answers got = {0, 0, 0};
  int strange = 0;
  adversary other;
  start(&other, tokens, good, bad, sizeof tokens);
  for (int n = 0; n < ROUNDS; n++) {
    ovstage_read_handle_t read;
    if (release(&s, &got, ovstage_read_attributes(s.stage, s.query, tokens, 256, latest(1), &read)))
      release(&s, &got, ovstage_release_read(s.stage, read));
    ovx_string_t texts[256];
    ovx_api_result_t result = path_dictionary_get_strings_from_tokens(s.dictionary, tokens, 256, texts);
    for (int i = 0; result.status == OVX_API_SUCCESS && i < 256; i++) strange += !equals(texts[i], "a");
    path_dictionary_release_error(s.dictionary, result.error);
  }
  stop(&other);
  CHECK(got.others == 0 && strange == 0);
  close_scene(&s);
}

/* Bytes of paths that swing between two paths: what is interned is one path, or a mixture that is one, too. */
static void check_texts(void) {
  static char bytes[64];
  static uint64_t before[8], after[8];
  scene s;
  if (!open_scene(&s, "adversary: texts")) return;
  memset(bytes, 'a', sizeof bytes);
  for (int i = 0; i < 64; i += 8) bytes[i] = '/';
  memset(after, '/', sizeof after);
  ovx_string_t path;
  path.ptr = bytes;
  path.length = sizeof bytes;
  int strange = 0, lists = 0;
  adversary other;
  start(&other, bytes, before, after, sizeof bytes);
  for (int n = 0; n < ROUNDS; n++) {
    ovx_primpath_t made;
    ovx_api_result_t result = path_dictionary_create_paths_from_strings(s.dictionary, &path, 1, &made);
    if (result.status ==
        OVX_API_SUCCESS) { /* seven bytes of each component are those of the first text, or it is refused */
      ovx_token_t tokens[64], *first[1];
      size_t count[1], processed;
      result = path_dictionary_get_tokens_from_paths(s.dictionary, &made, 1, tokens, 64, first, count, &processed);
      strange += result.status != OVX_API_SUCCESS || processed != 1 || count[0] < 1 || count[0] > 8;
      lists++;
    }
    path_dictionary_release_error(s.dictionary, result.error);
  }
  stop(&other);
  CHECK(strange == 0);
  CHECK(lists <= ROUNDS);
  close_scene(&s);
}

static void check_component_counts(void) {
  static ovx_token_t tokens[64 * 8], good_token;
  static size_t counts[64];
  static uint64_t before[64], after[64];
  static ovx_primpath_t paths[64];
  scene s;
  if (!open_scene(&s, "adversary: components")) return;
  good_token = token_of(&s, "a");
  for (int i = 0; i < 64 * 8; i++) tokens[i] = good_token;
  for (int i = 0; i < 64; i++) counts[i] = 1, after[i] = 8;
  int strange = 0;
  adversary other;
  start(&other, counts, before, after, sizeof counts);
  for (int n = 0; n < ROUNDS; n++) {
    ovx_api_result_t result = path_dictionary_create_paths_from_tokens(s.dictionary, tokens, counts, 64, paths);
    strange += result.status != OVX_API_SUCCESS;
    path_dictionary_release_error(s.dictionary, result.error);
  }
  stop(&other);
  CHECK(strange == 0);
  close_scene(&s);
}

static void check_conditions(void) {
  scene s;
  if (!open_scene(&s, "adversary: conditions")) return;
  DONE(&s, write_floats(&s, token_of(&s, "a"), 1, 1, 2, 3));
  ovx_string_t values[4] = {view("/World/A"), view("/World/B"), view("/World/C"), view("/World/D")};
  ovstage_go_condition_t below[4], top, first, second;
  memset(below, 0, sizeof below);
  memset(&top, 0, sizeof top);
  for (int i = 0; i < 4; i++) {
    below[i].predicate.attribute = by_name("usd-path");
    below[i].predicate.op = OVSTAGE_FILTER_OP_IN;
    below[i].predicate.values = values;
    below[i].predicate.value_count = 4;
  }
  top.match = OVSTAGE_GO_MATCH_ANY;
  top.conditions = below;
  top.count = 4;
  second = top;
  second.conditions = NULL;
  second.count = 1;
  answers got = {0, 0, 0};
  adversary other;
  ovstage_query_handle_t query;
  start(&other, &top, &first, &second, sizeof top);
  for (int n = 0; n < ROUNDS; n++)
    if (release(&s, &got, s.go->query(s.stage, &top, NULL, 0, &query)))
      release(&s, &got, ovstage_release_query(s.stage, query));
  stop(&other);

  ovstage_predicate_t before, after = below[0].predicate;
  after.op = OVSTAGE_FILTER_OP_HAS;
  after.values = NULL;
  after.value_count = SIZE_MAX;
  ovstage_filter_t filter = {&below[0].predicate, 1};
  start(&other, &below[0].predicate, &before, &after, sizeof after);
  for (int n = 0; n < ROUNDS; n++)
    if (release(&s, &got, ovstage_query(s.stage, &filter, NULL, 0, &query)))
      release(&s, &got, ovstage_release_query(s.stage, query));
  stop(&other);
  CHECK(got.others == 0);
  close_scene(&s);
}

static void check_clones(void) {
  scene s;
  if (!open_scene(&s, "adversary: clones")) return;
  DONE(&s, write_floats(&s, token_of(&s, "a"), 1, 1, 2, 3));
  ovx_string_t targets[4] = {view("/World/A1"), view("/World/A2"), view("/World/A3"), view("/World/A4")};
  ovx_string_t first[4], second[4];
  for (int i = 0; i < 4; i++) {
    second[i].ptr = targets[i].ptr;
    second[i].length = (size_t)1 << 62;
  }
  answers got = {0, 0, 0};
  adversary other;
  start(&other, targets, first, second, sizeof targets);
  for (int n = 0; n < ROUNDS; n++) release(&s, &got, ovstage_clone(s.stage, view("/World/A"), targets, 4, 1));
  stop(&other);
  CHECK(got.others == 0);
  close_scene(&s);
}

const check_group adversary_groups[] = {
    {"adversary: masks", check_masks},
    {"adversary: masks of arrays", check_array_masks},
    {"adversary: index maps", check_index_maps},
    {"adversary: element sizes", check_element_sizes},
    {"adversary: descriptors", check_descriptors},
    {"adversary: managed tensors", check_managed_lists},
    {"adversary: publications", check_publications},
    {"adversary: structures", check_structures},
    {"adversary: tokens", check_tokens},
    {"adversary: texts", check_texts},
    {"adversary: components", check_component_counts},
    {"adversary: conditions", check_conditions},
    {"adversary: clones", check_clones},
};
const size_t adversary_group_count = sizeof adversary_groups / sizeof adversary_groups[0];
