/*
 * refusals.c - what can be done wrong through the C interface only, and the sentences that answer it, word for word.
 *
 * What the Python package lets through is in the tables of tests/python/test_refusals_*.py. The two together have every
 * refusal of the sources; tests/python/test_refusals.py compares.
 */
#include "scene.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <ovstage/ovalign.h>
#include <ovstage/ovstage_config.h>
#include <ovstage/ovstage_population.h>

/* Whether a text is the expected one, in which "..." stands for what differs from run to run. */
static bool reads(ovx_string_t text, const char* expected) {
  const char* open = strstr(expected, "...");
  if (open == NULL) return equals(text, expected);
  size_t before = (size_t)(open - expected), after = strlen(open + 3);
  return text.length >= before + after && memcmp(text.ptr, expected, before) == 0 &&
         memcmp(text.ptr + text.length - after, open + 3, after) == 0;
}

static void says(ovstage_api_status_t status, const char* expected, const char* call, int line) {
  ovx_string_t text = ovstage_get_last_error();
  if (check(status != OVSTAGE_OK && reads(text, expected), call, "refusals", line)) return;
  fprintf(stderr, "  expected: %s\n  said:     %.*s\n", expected, (int)text.length, text.ptr ? text.ptr : "");
}

#define SAYS(call, expected) says((call), expected, #call, __LINE__)

static void dictionary_says(const scene* s, ovx_api_result_t result, const char* expected, const char* call, int line) {
  if (!check(result.status == OVX_API_ERROR && reads(result.error, expected), call, "refusals", line))
    fprintf(stderr, "  expected: %s\n  said:     %.*s\n", expected, (int)result.error.length, result.error.ptr);
  path_dictionary_release_error(s->dictionary, result.error);
}

#define DICTIONARY_SAYS(call, expected) dictionary_says(s, (call), expected, #call, __LINE__)

/* ---- Names ------------------------------------------------------------------------------------------------------- */

static void dictionary(const scene* s) {
  ovx_string_t text = view("\xff"), path = view("/\xff");
  ovx_token_t token = 0, tokens[2] = {4711, 0};
  ovx_primpath_t made = 0;
  DICTIONARY_SAYS(path_dictionary_create_tokens_from_strings(s->dictionary, &text, 1, &token),
                  "Token string must be valid UTF-8 (entry 0, \"\\xff\"): encode the text as UTF-8");
  DICTIONARY_SAYS(path_dictionary_create_paths_from_strings(s->dictionary, &path, 1, &made),
                  "Path string must be valid UTF-8 (entry 0, \"/\\xff\"): encode the text as UTF-8");
  DICTIONARY_SAYS(path_dictionary_create_tokens_from_strings(s->dictionary, NULL, 1, &token),
                  "strings must not be NULL when num_strings is not 0");

  size_t count = 1;
  DICTIONARY_SAYS(path_dictionary_create_paths_from_tokens(s->dictionary, tokens, &count, 1, &made),
                  "Token handle was not found in this dictionary (entry 0, component 0, handle 4711): intern the "
                  "string first");
  tokens[0] = token_of(s, "..");
  DICTIONARY_SAYS(path_dictionary_create_paths_from_tokens(s->dictionary, tokens, &count, 1, &made),
                  "Path component must be without \"/\" and not be \".\" or \"..\" (entry 0, component 0, \"..\")");
  static ovx_token_t deep[65537];
  count = 65537;
  DICTIONARY_SAYS(path_dictionary_create_paths_from_tokens(s->dictionary, deep, &count, 1, &made),
                  "Path must have at most 65536 components (entry 0): it has 65537");
  count = SIZE_MAX;
  DICTIONARY_SAYS(path_dictionary_create_paths_from_tokens(s->dictionary, deep, &count, 1, &made),
                  "num_tokens_per_path[0] is 18446744073709551615, with which the paths have more tokens than memory "
                  "holds");
}

static void dictionary_nulls(const scene* s) {
  path_dictionary_instance_t* d = s->dictionary;
  ovx_string_t text = view("/A");
  ovx_token_t token = token_of(s, "A");
  ovx_primpath_t path = 0;
  ovx_primpath_list_t list = 0;
  size_t count = 1, processed = 0;
  ovx_token_t* first = NULL;
  DICTIONARY_SAYS(path_dictionary_create_tokens_from_strings(d, NULL, 1, &token),
                  "strings must not be NULL when num_strings is not 0");
  DICTIONARY_SAYS(path_dictionary_create_tokens_from_strings(d, &text, 1, NULL),
                  "out_tokens must not be NULL when num_strings is not 0");
  DICTIONARY_SAYS(path_dictionary_create_tokens_from_strings(d, &text, SIZE_MAX, &token),
                  "strings is given 18446744073709551615 entries, more than memory holds; expected at most ...");
  DICTIONARY_SAYS(path_dictionary_get_strings_from_tokens(d, NULL, 1, &text),
                  "tokens must not be NULL when num_tokens is not 0");
  DICTIONARY_SAYS(path_dictionary_get_strings_from_tokens(d, &token, 1, NULL),
                  "out_strings must not be NULL when num_tokens is not 0");
  DICTIONARY_SAYS(path_dictionary_create_paths_from_tokens(d, &token, NULL, 1, &path),
                  "num_tokens_per_path must not be NULL when num_paths is not 0");
  DICTIONARY_SAYS(path_dictionary_create_paths_from_tokens(d, &token, &count, 1, NULL),
                  "out_prim_paths must not be NULL when num_paths is not 0");
  DICTIONARY_SAYS(path_dictionary_create_paths_from_tokens(d, NULL, &count, 1, &path),
                  "tokens_per_path must not be NULL when a path has tokens");
  DICTIONARY_SAYS(path_dictionary_create_paths_from_strings(d, NULL, 1, &path),
                  "path_strings must not be NULL when num_paths is not 0");
  DICTIONARY_SAYS(path_dictionary_create_path_list_from_paths(d, NULL, 1, &list),
                  "paths must not be NULL when num_paths is not 0");
  DICTIONARY_SAYS(path_dictionary_create_path_list_from_paths(d, &path, 0, NULL), "out_path_list must not be NULL");
  DICTIONARY_SAYS(path_dictionary_get_num_paths_from_path_list(d, s->list, NULL), "out_num_paths must not be NULL");
  DICTIONARY_SAYS(path_dictionary_get_paths_from_path_list(d, s->list, 0, 1, NULL, &count),
                  "out_paths must not be NULL when max_paths is not 0");
  DICTIONARY_SAYS(path_dictionary_get_tokens_from_paths(d, NULL, 1, &token, 1, &first, &count, &processed),
                  "prim_paths must not be NULL when num_paths is not 0");
  DICTIONARY_SAYS(path_dictionary_get_tokens_from_paths(d, &path, 1, NULL, 1, &first, &count, &processed),
                  "token_buffer must not be NULL when token_buffer_size is not 0");
  DICTIONARY_SAYS(path_dictionary_get_tokens_from_paths(d, &path, 1, &token, 1, NULL, &count, &processed),
                  "out_tokens_per_path must not be NULL when num_paths is not 0");
  DICTIONARY_SAYS(path_dictionary_get_tokens_from_paths(d, &path, 1, &token, 1, &first, NULL, &processed),
                  "out_num_tokens_per_path must not be NULL when num_paths is not 0");
  DICTIONARY_SAYS(path_dictionary_get_tokens_from_paths(d, &path, 1, &token, 1, &first, &count, NULL),
                  "out_num_paths_processed must not be NULL");
}

/* ---- The process ------------------------------------------------------------------------------------------------- */

static ovstage_api_status_t initialize_with(ovstage_config_key_type_t type, uint64_t key, uint64_t value) {
  ovstage_config_entry_t entry;
  memset(&entry, 0, sizeof entry);
  entry.key_type = type;
  memcpy(&entry.key, &key, sizeof entry.key < sizeof key ? sizeof entry.key : sizeof key);
  if (type == OVSTAGE_CONFIG_KEY_TYPE_STRING)
    entry.value.string_value.length = (size_t)value;
  else
    entry.value.uint_value = value;
  ovstage_config_t config;
  config.entries = &entry;
  config.entry_count = 1;
  return ovstage_initialize(&config);
}

static ovstage_api_status_t initialize_twice_the_same(void) {
  ovstage_config_entry_t entries[2];
  entries[0] = entries[1] = ovstage_config_entry_runtime_default_hierarchy_computation_model(
      OVSTAGE_HIERARCHY_COMPUTATION_MODEL_CPU_INCREMENTAL);
  ovstage_config_t config;
  config.entries = entries;
  config.entry_count = 2;
  return ovstage_initialize(&config);
}

static void nothing_to_do(ovstage_log_severity_t severity, double timestamp, ovx_string_t message, void* user_data) {
  (void)severity, (void)timestamp, (void)message, (void)user_data;
}

static void process(const scene* s) {
  SAYS(initialize_with((ovstage_config_key_type_t)99, 0, 0),
       "config.entries[0].key_type: 99 is not a key type, expected 0 to 5");
  SAYS(initialize_with(OVSTAGE_CONFIG_KEY_TYPE_UINT64, 99, 1),
       "config.entries[0].key: there is no UINT64 setting with number 99");
  SAYS(initialize_with(OVSTAGE_CONFIG_KEY_TYPE_STRING, 0, 3), "config.entries[0].value: ptr is NULL with length 3");
  SAYS(initialize_with(OVSTAGE_CONFIG_KEY_TYPE_UINT64, 0, 99),
       "config.entries[0].value: 99 is not a hierarchy computation model, expected CPU_INCREMENTAL (1), "
       "GPU_INCREMENTAL (2), GPU_GLOBAL (3) or RUNTIME_DEFAULT (4)");
  SAYS(initialize_twice_the_same(), "config.entries[1]: UINT64 setting 0 is given twice");
  ovstage_config_t config;
  config.entries = NULL;
  config.entry_count = 2;
  SAYS(ovstage_initialize(&config), "config.entries is NULL with entry_count 2");
  SAYS(ovstage_shutdown(),
       "ovstage_shutdown has no ovstage_initialize to answer: each initialisation is shut down once");

  ovx_string_t filter = {NULL, 3};
  SAYS(ovstage_set_log_callback((ovstage_log_severity_t)2, NULL, nothing_to_do, NULL),
       "severity 2 is not one of VERBOSE (-2), INFO (-1), WARNING (0), ERROR (1), NONE (3)");
  SAYS(ovstage_set_log_callback(OVSTAGE_LOG_ERROR, &filter, nothing_to_do, NULL),
       "channel_filter: ptr is NULL with length 3");

  const void* table = NULL;
  uint64_t id = 0;
  SAYS(ovstage_query_extension(s->stage, "no.such.table", &table),
       "name: there is no extension \"no.such.table\"; this library has \"ovstage.go.v1\"");
  SAYS(ovstage_get_usd_stage_id(s->stage, &id),
       "ovstage_get_usd_stage_id: no USD stage stands behind a stage of this library");
  SAYS(ovstage_create_instance(NULL, NULL), "... must not be NULL");
}

static void destroyed(const scene* s) {
  ovstage_instance_desc_t desc;
  desc.name = "gone";
  ovstage_instance_t* stage = NULL;
  CHECK(ovstage_create_instance(&desc, &stage) == OVSTAGE_OK);
  s->go->instance_retain(stage);
  CHECK(ovstage_destroy_instance(stage) == OVSTAGE_OK);
  SAYS(ovstage_release_op(stage, 1), "ovstage_release_op called after the stage was destroyed");
  SAYS(ovstage_destroy_instance(stage), "ovstage_destroy_instance called after the stage was destroyed");
  s->go->instance_release(stage);
}

static void operations(const scene* s) {
  ovstage_op_id_t op = seal(s, 1).op_index;
  CHECK(ovstage_release_op(s->stage, op) == OVSTAGE_OK);
  SAYS(ovstage_release_op(s->stage, op), "op_id ... has been released already");
  SAYS(ovstage_release_op(s->stage, 0), "op_id is 0, which is no operation: was the call that gave it rejected?");
  SAYS(ovstage_release_op(s->stage, 1000000), "op_id 1000000 was never issued: the newest operation is ...");
}

/* ---- Queries, reads, floors -------------------------------------------------------------------------------------- */

static ovstage_api_status_t filtered(const scene* s, ovx_string_or_token_t attribute, ovx_string_t* values,
                                     size_t count) {
  ovstage_predicate_t predicate;
  memset(&predicate, 0, sizeof predicate);
  predicate.attribute = attribute;
  predicate.op = OVSTAGE_FILTER_OP_IN;
  predicate.values = values;
  predicate.value_count = count;
  ovstage_filter_t filter;
  filter.predicates = &predicate;
  filter.count = 1;
  ovstage_query_handle_t query = OVSTAGE_INVALID_QUERY_HANDLE;
  return ovstage_query(s->stage, &filter, NULL, 0, &query).status;
}

static void queries(const scene* s) {
  ovx_string_t text = {NULL, 3};
  ovx_string_or_token_t attribute = by_name("usd-path"), nowhere = attribute;
  nowhere.string.ptr = (const char*)(uintptr_t)16;
  SAYS(filtered(s, nowhere, NULL, 0), "filter.predicates[0].attribute: ptr is 0x10 with length 8, which is no name");
  SAYS(filtered(s, attribute, NULL, 2), "filter.predicates[0].values is NULL with 2 entries, which is no array");
  SAYS(filtered(s, attribute, &text, 1), "filter.predicates[0].values[0]: ptr is NULL with length 3, which is no text");

  ovstage_filter_t filter;
  filter.predicates = NULL;
  filter.count = 2;
  ovstage_query_handle_t query = OVSTAGE_INVALID_QUERY_HANDLE;
  SAYS(ovstage_query(s->stage, &filter, NULL, 0, &query).status, "filter.predicates is NULL with count 2");
  SAYS(ovstage_query(s->stage, NULL, NULL, 2, &query).status, "attrs is NULL with attr_count 2");
  ovstage_query_result_t result;
  CHECK(ovstage_fetch_query_result(s->stage, s->query, 0, &result) == OVSTAGE_OK);
  CHECK(ovstage_release_query_result(s->stage, &result) == OVSTAGE_OK);
  SAYS(ovstage_release_query_result(s->stage, &result), "result: query_result_id ... is unknown or has been released");
}

static void reads_and_floors(const scene* s) {
  ovx_token_t value = token_of(s, "value");
  ovstage_read_handle_t read = OVSTAGE_INVALID_READ_HANDLE;
  SAYS(ovstage_read_attributes(s->stage, s->query, &value, 0, latest(1), &read).status,
       "attr_count is 0: name the attributes to read by their tokens");
  SAYS(ovstage_read_attributes(s->stage, s->query, NULL, 1, latest(1), &read).status,
       "attrs is NULL with attr_count 1");
  ovstage_ordinal_range_t range = latest(1);
  range.has_start_ordinal = true;
  range.start_ordinal = 2;
  SAYS(ovstage_read_attributes(s->stage, s->query, &value, 1, range, &read).status,
       "range: start ordinal 2 is above end ordinal 1");

  ovstage_write_floor_desc_t floor;
  memset(&floor, 0, sizeof floor);
  floor.ordinal = 1;
  floor.scope = (ovstage_scope_t)7;
  SAYS(ovstage_advance_write_floor(s->stage, &floor).status,
       "desc.scope 7 is not one of ALL (0), INCLUDE (1), EXCLUDE (2)");
  floor.scope = OVSTAGE_SCOPE_INCLUDE;
  floor.attribute_count = 2;
  SAYS(ovstage_advance_write_floor(s->stage, &floor).status, "desc.attributes is NULL with attribute_count 2");
  SAYS(ovstage_delete_attributes(s->stage, s->query, NULL, 2, 1).status, "attributes is NULL with attribute_count 2");
}

/* ---- Writes ------------------------------------------------------------------------------------------------------ */

static ovstage_api_status_t write_payload(const scene* s, ovstage_write_data_t data) {
  return ovstage_write_attribute(s->stage, s->query, by_name("value"), 2, data, OVSTAGE_PRIM_MODE_UPSERT).status;
}

static void note_nothing(DLManagedTensorVersioned* self) { (void)self; }

static void writes(const scene* s) {
  float numbers[PRIMS] = {1, 2, 3};
  int64_t shape[1] = {PRIMS};
  uint32_t map[PRIMS] = {0, 1, 2};
  uint64_t mask = 7;
  DLTensor tensor = tensor_of(numbers, type_of(kDLFloat, 32, 1), 1, shape);
  ovstage_write_data_t good = payload_of(&tensor, 1), data = good;

  data.tensor_count = 0;
  SAYS(write_payload(s, data), "attribute \"value\": tensor_count is 0; pass at least one tensor");
  data = payload_of(NULL, 1);
  SAYS(write_payload(s, data),
       "attribute \"value\": tensors is NULL, expected tensor_count descriptors, or as many managed_tensors");
  data = good;
  data.index_map = map;
  SAYS(write_payload(s, data), "attribute \"value\": count must be non-zero when index_map or mask is supplied");
  data.count = PRIMS;
  data.mask = &mask;
  SAYS(write_payload(s, data), "attribute \"value\": index_map and mask are mutually exclusive; pass one of them");
  SAYS(ovstage_write_attribute(s->stage, s->query, by_name("value"), 2, good, (ovstage_prim_mode_t)7).status,
       "prim_mode 7 is not one of UPSERT (0), INSERT (1), UPDATE (2), REQUIRE (3)");
  SAYS(ovstage_write_attributes(s->stage, s->query, NULL, 2, 2, OVSTAGE_PRIM_MODE_UPSERT).status,
       "writes is NULL with write_count 2");
  ovstage_attribute_write_t entry;
  memset(&entry, 0, sizeof entry);
  SAYS(ovstage_write_attributes(s->stage, s->query, &entry, SIZE_MAX, 2, OVSTAGE_PRIM_MODE_UPSERT).status,
       "write_count is 18446744073709551615, which is more than memory holds");

  DLManagedTensorVersioned given;
  memset(&given, 0, sizeof given);
  given.version.major = DLPACK_MAJOR_VERSION;
  given.deleter = note_nothing;
  given.dl_tensor = tensor;
  const DLManagedTensorVersioned* one[1] = {&given};
  const DLManagedTensorVersioned* none[1] = {NULL};
  const DLManagedTensorVersioned* twice[2] = {&given, &given};
  data = good;
  data.managed_tensors = one;
  SAYS(write_payload(s, data),
       "attribute \"value\": tensors and managed_tensors are both given, expected exactly one of them");
  data.tensors = NULL;
  data.managed_tensors = none;
  SAYS(write_payload(s, data), "attribute \"value\": managed_tensors[0] is NULL");
  data.managed_tensors = twice;
  data.tensor_count = 2;
  SAYS(write_payload(s, data),
       "managed_tensors: the tensor at ... is listed twice, but can be given away only once: copy it, or pass it in "
       "tensors");
  given.version.major = DLPACK_MAJOR_VERSION + 1;
  data.managed_tensors = one;
  data.tensor_count = 1;
  SAYS(write_payload(s, data),
       "attribute \"value\": managed_tensors[0] is laid out by DLPack 2.0, expected major version 1");
}

/* ---- Publications ------------------------------------------------------------------------------------------------ */

static void publications(const scene* s) {
  ovstage_attribute_write_t write;
  memset(&write, 0, sizeof write);
  write.attribute = by_token(0xdeadbeef);
  ovx_string_or_token_t nameless = by_name("");
  ovstage_go_delete_t one;
  ovstage_go_batch_t batch;
  one.query = batch.query = s->query;
  SAYS(s->go->publish(s->stage, NULL, 2, NULL, 0, 2).status, "deletes is NULL with delete_count 2");
  SAYS(s->go->publish(s->stage, NULL, 0, NULL, 2, 2).status, "batches is NULL with batch_count 2");
  SAYS(s->go->publish(s->stage, &one, SIZE_MAX, NULL, 0, 2).status,
       "delete_count is 18446744073709551615, which is more than memory holds");
  one.attributes = NULL;
  one.attribute_count = 3;
  SAYS(s->go->publish(s->stage, &one, 1, NULL, 0, 2).status, "deletes[0].attributes is NULL with attribute_count 3");
  one.attributes = &nameless;
  one.attribute_count = 1;
  SAYS(s->go->publish(s->stage, &one, 1, NULL, 0, 2).status,
       "deletes[0].attributes[0]: there is neither a token nor a name, expected one of them");
  batch.writes = NULL;
  batch.write_count = 3;
  SAYS(s->go->publish(s->stage, NULL, 0, &batch, 1, 2).status, "batches[0].writes is NULL with write_count 3");
  batch.writes = &write;
  batch.write_count = SIZE_MAX;
  SAYS(s->go->publish(s->stage, NULL, 0, &batch, 1, 2).status,
       "batches[0].write_count is 18446744073709551615, which is more than memory holds");
  batch.write_count = (size_t)1 << 40;
  SAYS(s->go->publish(s->stage, NULL, 0, &batch, 1, 2).status,
       "writes: out of memory for a copy of what was handed in");
  batch.write_count = 1;
  SAYS(s->go->publish(s->stage, NULL, 0, &batch, 1, 2).status,
       "batches[0]: writes[0].attribute: 3735928559 is not a token of this stage's dictionary; intern the name first");
}

/* ---- Parts of queries -------------------------------------------------------------------------------------------- */

static void parts(const scene* s) {
  uint64_t mask = 1;
  ovstage_query_handle_t part;
  SAYS(s->go->query_where(s->stage, s->query, &mask, 2, &part),
       "mask is for 2 prims, but the query lists 3; pass a bit for each of them");
  SAYS(s->go->query_where(s->stage, s->query, NULL, 3, &part), "mask is NULL with count 3");
  SAYS(s->go->query_where(s->stage, s->query, &mask, SIZE_MAX, &part),
       "count is 18446744073709551615, which is more than memory holds");
}

/* ---- Maps and counters ------------------------------------------------------------------------------------------- */

static void maps(const scene* s) {
  ovstage_map_desc_t desc = map_of(token_of(s, "value"), type_of(kDLFloat, 32, 1));
  ovstage_map_handle_t map = OVSTAGE_INVALID_MAP_HANDLE;
  ovstage_go_map_options_t options;
  options.struct_size = sizeof options;
  options.initial = (ovstage_go_initial_t)7;
  SAYS(s->go->map_attribute(s->stage, s->query, &desc, 2, NULL, 0, &options, &map).status,
       "attribute \"value\": initial is 7, expected 0 (current), 1 (zero) or 2 (discard)");
  options.struct_size = 4;
  SAYS(s->go->map_attribute(s->stage, s->query, &desc, 2, NULL, 0, &options, &map).status,
       "options.struct_size is 4, expected at least 8");
  SAYS(ovstage_map_attribute(s->stage, s->query, &desc, 2, NULL, 2, &map).status,
       "element_sizes is NULL with element_count 2");

  DONE(s, ovstage_map_attribute(s->stage, s->query, &desc, 2, NULL, 0, &map));
  SAYS(s->go->unmap_attribute(s->stage, map, NO_SYNC, (ovstage_go_commit_t)7).status,
       "commit 7 is not one of ADOPT (0), AUTO (1)");
  CHECK(s->go->abort_map(s->stage, map) == OVSTAGE_OK);

  ovstage_go_counters_t counters = zero_counters();
  counters.struct_size = 3;
  SAYS(s->go->counters(s->stage, &counters), "counters.struct_size is 3: set it to the size of the structure");

  size_t count = 0;
  SAYS(s->go->attributes(s->stage, NULL, 3, 0, &count), "size is 3: set it to the size of the structure");
  SAYS(s->go->attributes(s->stage, NULL, sizeof(ovstage_go_attribute_t), 2, &count), "out must not be NULL");
  SAYS(s->go->attributes(s->stage, NULL, sizeof(ovstage_go_attribute_t), 0, NULL), "count must not be NULL");

  ovx_string_t path = view("A");
  ovx_primpath_list_t list = 0;
  SAYS(s->go->list_of_known(s->stage, &path, 1, &list, &count),
       "paths: Path string must start with \"/\" (entry 0, \"A\"): paths are absolute, as \"/World/Cube\" is");
  path.ptr = NULL;
  path.length = 0;
  SAYS(s->go->list_of_known(s->stage, &path, 1, &list, &count), "paths: Path string must be non-empty (entry 0)");
}

/* ---- Absent ------------------------------------------------------------------------------------------------------ */

static void absent(const scene* s) {
  ovx_string_t nothing = {NULL, 0};
  ovstage_population_op_wait_result_t result;
  SAYS(ovstage_population_register_usd_schemas(&nothing, 1),
       "paths[0] is empty, expected a plugInfo.json or its folder");
  SAYS(ovstage_population_wait_op(s->stage, 3, 0, &result),
       "ovstage_population_wait_op: op_id 3 was never issued: USD calls are in the Python package, ovstage.population");
}

/* ---- The log ----------------------------------------------------------------------------------------------------- */

static pthread_mutex_t busy = PTHREAD_MUTEX_INITIALIZER;

static void call_back(ovstage_log_severity_t severity, double timestamp, ovx_string_t message, void* user_data) {
  (void)severity, (void)timestamp, (void)message;
  pthread_mutex_lock(&busy);
  if (*(int*)user_data == 0)
    SAYS(ovstage_flush_log(0), "ovstage_flush_log was called by the log callback, for which it waits");
  ++*(int*)user_data;
  pthread_mutex_unlock(&busy);
}

static void following(const scene* s) {
  uint64_t moves = 0;
  ovstage_read_handle_t read;
  CHECK(s->go->floor_moves(s->stage, 0, 0, &moves) == OVSTAGE_OK);
  SAYS(s->go->floor_moves(s->stage, moves, 1, &moves), "timeout: no write floor has moved after 1 ns");
  SAYS(s->go->read_since(s->stage, 0, NULL, 1, &read).status,
       "cursors: there is none, expected one for each attribute");
}

static void logging(const scene* s) {
  int calls = 0;
  pthread_mutex_lock(&busy); /* until it is given up the callback does not return */
  CHECK(ovstage_set_log_callback(OVSTAGE_LOG_VERBOSE, NULL, call_back, &calls) == OVSTAGE_OK);
  CHECK(ovstage_release_op(s->stage, 1000000) == OVSTAGE_ERROR_INVALID_HANDLE); /* which is logged */
  SAYS(ovstage_flush_log(1), "timeout: log messages were still under way after 1 ns");
  pthread_mutex_unlock(&busy);
  CHECK(ovstage_flush_log(OVSTAGE_TIMEOUT_INFINITE) == OVSTAGE_OK);
  CHECK(ovstage_set_log_callback(OVSTAGE_LOG_NONE, NULL, NULL, NULL) == OVSTAGE_OK);
  CHECK(calls > 0);
}

static void check_refusals_without_a_stage(void) {
  SAYS(ovstage_set_log_callback(OVSTAGE_LOG_ERROR, NULL, nothing_to_do, NULL),
       "ovstage_set_log_callback needs a running library: create a stage or call ovstage_initialize first");
  ovstage_instance_desc_t desc;
  desc.name = "last";
  ovstage_instance_t* stage = NULL;
  CHECK(ovstage_create_instance(&desc, &stage) == OVSTAGE_OK);
  path_dictionary_instance_t* gone = ovstage_get_path_dictionary(stage);
  CHECK(ovstage_destroy_instance(stage) == OVSTAGE_OK);
  ovx_string_t word = view("word");
  ovx_token_t token = OVX_INVALID_TOKEN;
  ovx_api_result_t result_of_word = path_dictionary_create_tokens_from_strings(gone, &word, 1, &token);
  CHECK(
      reads(result_of_word.error, "the path dictionary is gone: it was destroyed with the last stage of this process"));
  path_dictionary_release_error(gone, result_of_word.error);
  ovalign_request_t request;
  ovalign_result_t result;
  memset(&request, 0, sizeof request);
  SAYS((ovstage_api_status_t)ovalign_align(&request, &result), "ovalign_align is not supported by this version");
}

static void check_refusals(void) {
  scene s;
  if (!open_scene(&s, "refusals")) return;
  dictionary(&s);
  dictionary_nulls(&s);
  process(&s);
  following(&s);
  logging(&s);
  destroyed(&s);
  operations(&s);
  queries(&s);
  reads_and_floors(&s);
  writes(&s);
  publications(&s);
  parts(&s);
  maps(&s);
  absent(&s);
  close_scene(&s);
}

const check_group refusal_groups[] = {
    {"refusals: without a stage", check_refusals_without_a_stage},
    {"refusals: word for word", check_refusals},
};
const size_t refusal_group_count = sizeof refusal_groups / sizeof refusal_groups[0];
