/*
 * client.c - a client of libovstage.so in plain C, with nothing but the public headers and POSIX threads.
 *
 * Every function named check_... is one group of checks; main lists them. A group makes what it needs and gives all of
 * it back, so that the counters of the process must be zero again at the end, and a leak checker has nothing to say.
 *
 *     scene.h      what the checks stand on; scene.c
 *     client.c     the library, its calls and its handles
 *     values.c     what can be written, and how it is read
 *     map.c        buffers that are lent to be written to
 *     filter.c     queries that choose prims
 *     hierarchy.c  copies, relatives, instances, world transforms
 *     refusals.c   what only C can do wrong
 *     adversary.c  arguments that another thread writes to meanwhile
 *     unasked.c    failures that nobody asks about
 *     floors.c     waiting for the write floor
 *     levels.c     the interface levels
 *
 * Programs of their own:
 *
 *     layout.c     sizes, offsets and prototypes, for a compiler alone
 *     scarce.c     memory that runs out; shortage.c makes it
 *     panics.c     a panic in every function of Go
 *     threads.c    the C that has threads, for the sanitizer of threads
 *     script.c     golden scripts, played in C
 */
#include "scene.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ovstage/ovalign.h>
#include <ovstage/ovstage_population_export.h>

/* ---- Process, log, version --------------------------------------------------------------------------------------- */

static void check_process(void) {
  CHECK(ovstage_initialize(NULL) == OVSTAGE_OK);
  CHECK(ovstage_shutdown() == OVSTAGE_OK);
  CHECK_FAILS(ovstage_shutdown(), OVSTAGE_ERROR_INVALID_ARGUMENT, "ovstage_initialize");

  ovstage_config_entry_t entries[2];
  entries[0] = ovstage_config_entry_runtime_default_hierarchy_computation_model(
      OVSTAGE_HIERARCHY_COMPUTATION_MODEL_CPU_INCREMENTAL);
  entries[1] = ovstage_config_entry_binary_package_root_path(view(OVX_CONFIG_EXECUTABLE_DIR_TOKEN "/package"));
  ovstage_config_t config;
  config.entries = entries;
  config.entry_count = 2;
  CHECK(ovstage_initialize(&config) == OVSTAGE_OK);
  CHECK(ovstage_initialize(&config) == OVSTAGE_OK);
  entries[0] =
      ovstage_config_entry_runtime_default_hierarchy_computation_model(OVSTAGE_HIERARCHY_COMPUTATION_MODEL_GPU_GLOBAL);
  CHECK(ovstage_initialize(&config) == OVSTAGE_ERROR_INVALID_ARGUMENT); /* the other one is in force */
  entries[0].key_type = OVSTAGE_CONFIG_KEY_TYPE_COUNT;
  CHECK(ovstage_initialize(&config) == OVSTAGE_ERROR_INVALID_ARGUMENT);
  CHECK(ovstage_shutdown() == OVSTAGE_OK);
  CHECK(ovstage_shutdown() == OVSTAGE_OK);
  CHECK(ovstage_shutdown() == OVSTAGE_ERROR_INVALID_ARGUMENT);
}

static void check_instances(void) {
  ovstage_instance_desc_t unnamed;
  unnamed.name = NULL;
  ovstage_instance_t* first = NULL;
  ovstage_instance_t* second = NULL;
  CHECK(ovstage_create_instance(&unnamed, &first) == OVSTAGE_OK);
  CHECK(ovstage_create_instance(&unnamed, &second) == OVSTAGE_OK);
  CHECK(first != NULL && second != NULL && first != second);
  CHECK(ovstage_get_path_dictionary(first) == ovstage_get_path_dictionary(second));
  CHECK(ovstage_get_path_dictionary(NULL) == NULL);
  uint64_t id = 0;
  CHECK_FAILS(ovstage_get_usd_stage_id(first, &id), OVSTAGE_ERROR_NOT_SUPPORTED, "ovstage_get_usd_stage_id");
  CHECK(ovstage_destroy_instance(first) == OVSTAGE_OK);
  CHECK(ovstage_destroy_instance(second) == OVSTAGE_OK);
  CHECK(ovstage_destroy_instance(NULL) == OVSTAGE_OK);
}

static void check_version_and_texts(void) {
  scene s;
  if (!open_scene(&s, "version")) return;
  uint32_t major = 99, minor = 99, patch = 99;
  ovstage_get_version(s.stage, &major, &minor, &patch);
  CHECK(major == OVSTAGE_VERSION_MAJOR && minor == OVSTAGE_VERSION_MINOR && patch == OVSTAGE_VERSION_PATCH);

  const ovstage_api_status_t codes[] = {OVSTAGE_OK,
                                        OVSTAGE_ERROR_INVALID_ARGUMENT,
                                        OVSTAGE_ERROR_INVALID_HANDLE,
                                        OVSTAGE_ERROR_NOT_FOUND,
                                        OVSTAGE_ERROR_PRIM_NOT_FOUND,
                                        OVSTAGE_ERROR_WRITE_FLOOR_VIOLATION,
                                        OVSTAGE_ERROR_NOT_SUPPORTED,
                                        OVSTAGE_ERROR_QUEUE_FULL,
                                        OVSTAGE_ERROR_END_OF_ITERATION,
                                        OVSTAGE_ERROR_OUT_OF_MEMORY,
                                        OVSTAGE_ERROR_LAYOUT_CHANGED,
                                        OVSTAGE_ERROR_TIMEOUT,
                                        OVSTAGE_ERROR_OP_FAILED,
                                        OVSTAGE_ERROR_OUT_OF_RANGE,
                                        OVSTAGE_ERROR_INTERNAL};
  const size_t count = sizeof codes / sizeof codes[0];
  for (size_t i = 0; i < count; i++) {
    const char* text = ovstage_get_error_string(s.stage, codes[i]);
    if (!CHECK(text != NULL && text[0] != '\0')) continue;
    for (size_t j = 0; j < i; j++) CHECK(strcmp(text, ovstage_get_error_string(s.stage, codes[j])) != 0);
  }
  CHECK(ovstage_get_error_string(s.stage, (ovstage_api_status_t)77) != NULL);

  const void* table = &s;
  CHECK_FAILS(ovstage_query_extension(s.stage, "no.such.table", &table), OVSTAGE_ERROR_NOT_FOUND, "no.such.table");
  CHECK(table == NULL);
  CHECK(s.go->struct_size >= sizeof(ovstage_go_v1_t) && s.go->version == 1);
  close_scene(&s);
}

static int messages; /* counted under message_lock */
static pthread_mutex_t message_lock = PTHREAD_MUTEX_INITIALIZER;

static void count_message(ovstage_log_severity_t severity, double timestamp, ovx_string_t message, void* user_data) {
  pthread_mutex_lock(&message_lock);
  if (severity >= OVSTAGE_LOG_VERBOSE && severity <= OVSTAGE_LOG_ERROR && timestamp > 1e9 && message.length > 0)
    ++*(int*)user_data;
  pthread_mutex_unlock(&message_lock);
}

static void check_log(void) {
  const ovstage_timeout_ns_t five_seconds = 5000000000ULL;
  CHECK(ovstage_set_log_callback(OVSTAGE_LOG_VERBOSE, NULL, count_message, &messages) == OVSTAGE_ERROR_OP_FAILED);
  scene s;
  if (!open_scene(&s, "log")) return;
  CHECK(ovstage_flush_log(0) == OVSTAGE_OK); /* nobody listens: nothing to wait for */
  CHECK(ovstage_set_log_callback(OVSTAGE_LOG_VERBOSE, NULL, count_message, &messages) == OVSTAGE_OK);
  CHECK(ovstage_release_op(s.stage, 12345) == OVSTAGE_ERROR_INVALID_HANDLE);
  CHECK(ovstage_flush_log(five_seconds) == OVSTAGE_OK);

  ovx_string_t nothing = view("no-such-channel=verbose");
  CHECK(ovstage_set_log_callback(OVSTAGE_LOG_NONE, &nothing, count_message, &messages) == OVSTAGE_OK);
  CHECK(ovstage_flush_log(five_seconds) == OVSTAGE_OK);
  pthread_mutex_lock(&message_lock);
  int before = messages;
  pthread_mutex_unlock(&message_lock);
  CHECK(ovstage_release_op(s.stage, 12345) == OVSTAGE_ERROR_INVALID_HANDLE);
  CHECK(ovstage_flush_log(five_seconds) == OVSTAGE_OK);
  CHECK(ovstage_set_log_callback(OVSTAGE_LOG_NONE, NULL, NULL, NULL) == OVSTAGE_OK);
  CHECK(messages == before); /* cleared: no other thread counts any more */
  CHECK(ovstage_set_log_callback(OVSTAGE_LOG_NONE, NULL, NULL, NULL) == OVSTAGE_OK);

  ovx_string_t nonsense = view("channel=loud");
  CHECK_FAILS(ovstage_set_log_callback(OVSTAGE_LOG_INFO, &nonsense, count_message, &messages),
              OVSTAGE_ERROR_INVALID_ARGUMENT, "loud");
  close_scene(&s);
}

/* ---- The path dictionary ----------------------------------------------------------------------------------------- */

/* Wants a failed dictionary call whose text contains `part`, and gives the text back. */
static void refused(const scene* s, ovx_api_result_t result, const char* part, const char* function, int line) {
  check(result.status == OVX_API_ERROR, part, function, line);
  if (!check(contains(result.error, part), part, function, line) && result.error.length > 0)
    printf("    the text is: %s\n", result.error.ptr);
  path_dictionary_release_error(s->dictionary, result.error);
}

#define REFUSED(scene, result, part) refused((scene), (result), (part), __func__, __LINE__)

static void check_tokens(void) {
  scene s;
  if (!open_scene(&s, "tokens")) return;
  ovx_string_t words[3] = {view("speed"), view("mass"), view("speed")};
  ovx_token_t tokens[3] = {0, 0, 0};
  CHECK(path_dictionary_create_tokens_from_strings(s.dictionary, words, 3, tokens).status == OVX_API_SUCCESS);
  CHECK(tokens[0] != OVX_INVALID_TOKEN && tokens[0] == tokens[2] && tokens[0] != tokens[1]);
  ovx_string_t back[3];
  CHECK(path_dictionary_get_strings_from_tokens(s.dictionary, tokens, 3, back).status == OVX_API_SUCCESS);
  CHECK(equals(back[0], "speed") && equals(back[1], "mass") && back[0].ptr[back[0].length] == '\0');

  ovx_token_t none = OVX_INVALID_TOKEN;
  CHECK(path_dictionary_get_strings_from_tokens(s.dictionary, &none, 1, back).status == OVX_API_SUCCESS);
  CHECK(back[0].length == 0);
  ovx_token_t unknown = 0xdeadbeef;
  REFUSED(&s, path_dictionary_get_strings_from_tokens(s.dictionary, &unknown, 1, back), "Token handle was not found");

  ovx_token_t untouched = 4711;
  ovx_string_t wrong = view("");
  REFUSED(&s, path_dictionary_create_tokens_from_strings(s.dictionary, &wrong, 1, &untouched),
          "Token string must be non-empty");
  wrong.ptr = "a\0b";
  wrong.length = 3;
  REFUSED(&s, path_dictionary_create_tokens_from_strings(s.dictionary, &wrong, 1, &untouched),
          "Token string contains embedded NUL");
  wrong.ptr = NULL;
  REFUSED(&s, path_dictionary_create_tokens_from_strings(s.dictionary, &wrong, 1, &untouched), "no data");
  CHECK(untouched == 4711);
  CHECK(path_dictionary_create_tokens_from_strings(s.dictionary, NULL, 0, NULL).status == OVX_API_SUCCESS);
  close_scene(&s);
}

static void check_paths(void) {
  scene s;
  if (!open_scene(&s, "paths")) return;
  ovx_string_t strings[4] = {view("/World/Robot/Arm"), view("/"), view("/World/Robot/Arm"), view("/World")};
  ovx_primpath_t paths[4];
  CHECK(path_dictionary_create_paths_from_strings(s.dictionary, strings, 4, paths).status == OVX_API_SUCCESS);
  CHECK(paths[0] == paths[2] && paths[0] != paths[1] && paths[1] != OVX_INVALID_PRIMPATH);

  ovx_token_t components[4] = {token_of(&s, "World"), token_of(&s, "Robot"), token_of(&s, "Arm"),
                               token_of(&s, "World")};
  size_t lengths[3] = {3, 1, 0};
  ovx_primpath_t same[3];
  CHECK(path_dictionary_create_paths_from_tokens(s.dictionary, components, lengths, 3, same).status == OVX_API_SUCCESS);
  CHECK(same[0] == paths[0] && same[1] == paths[3] && same[2] == paths[1]);

  const char* wrong[] = {"", "World", "/World/", "/World//A", "/World/./A", "/World/../A"};
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
    ovx_string_t string = view(wrong[i]);
    ovx_primpath_t untouched = 4711;
    REFUSED(&s, path_dictionary_create_paths_from_strings(s.dictionary, &string, 1, &untouched),
            i == 0 ? "Path string must be non-empty" : wrong[i]);
    CHECK(untouched == 4711);
  }
  ovx_string_t with_nul;
  with_nul.ptr = "a\0b";
  with_nul.length = 3;
  ovx_primpath_t untouched = 4711;
  REFUSED(&s, path_dictionary_create_paths_from_strings(s.dictionary, &with_nul, 1, &untouched),
          "Path string contains embedded NUL");
  close_scene(&s);
}

/* Decomposes [/, /World/Robot/Arm, /World] with room for three tokens: the root and the first path fit. */
static void check_path_components(void) {
  scene s;
  if (!open_scene(&s, "components")) return;
  ovx_string_t strings[3] = {view("/"), view("/World/Robot/Arm"), view("/World")};
  ovx_primpath_t paths[3];
  CHECK(path_dictionary_create_paths_from_strings(s.dictionary, strings, 3, paths).status == OVX_API_SUCCESS);
  ovx_token_t buffer[3];
  ovx_token_t* first[3] = {NULL, NULL, NULL};
  size_t lengths[3] = {9, 9, 9};
  size_t processed = 99;
  CHECK(path_dictionary_get_tokens_from_paths(s.dictionary, paths, 3, buffer, 3, first, lengths, &processed).status ==
        OVX_API_SUCCESS);
  CHECK(processed == 2 && lengths[0] == 0 && lengths[1] == 3 && first[1] == buffer);
  ovx_string_t text[3];
  CHECK(path_dictionary_get_strings_from_tokens(s.dictionary, buffer, 3, text).status == OVX_API_SUCCESS);
  CHECK(equals(text[0], "World") && equals(text[1], "Robot") && equals(text[2], "Arm"));
  CHECK(path_dictionary_get_tokens_from_paths(s.dictionary, paths + processed, 1, buffer, 3, first, lengths, &processed)
            .status == OVX_API_SUCCESS);
  CHECK(processed == 1 && lengths[0] == 1 && buffer[0] == token_of(&s, "World"));
  CHECK(
      path_dictionary_get_tokens_from_paths(s.dictionary, paths + 1, 1, buffer, 2, first, lengths, &processed).status ==
      OVX_API_SUCCESS);
  CHECK(processed == 0); /* does not fit at all */

  const ovx_primpath_t strangers[2] = {OVX_INVALID_PRIMPATH, 0xdeadbeef};
  for (size_t i = 0; i < 2; i++) {
    processed = 99;
    ovx_api_result_t result =
        path_dictionary_get_tokens_from_paths(s.dictionary, &strangers[i], 1, buffer, 3, first, lengths, &processed);
    CHECK(result.status == OVX_API_ERROR && processed == 0);
    CHECK(equals(result.error, "Prim path handle was not found in this dictionary"));
    s.dictionary->vtable->release_error(s.dictionary->context, result.error);
  }
  close_scene(&s);
}

/* A list of what is only asked for makes no paths. */
static void check_list_of_known(void) {
  scene s;
  if (!open_scene(&s, "known")) return;
  ovx_string_t strings[4] = {view("/Known"), view("/Nobody"), view("/Known"), view("/Nobody")};
  ovx_primpath_t known = 0, page[4] = {0, 0, 0, 0};
  CHECK(path_dictionary_create_paths_from_strings(s.dictionary, strings, 1, &known).status == OVX_API_SUCCESS);
  ovx_primpath_list_t list = 0;
  size_t unknown = 99, count = 0;
  CHECK(s.go->list_of_known(s.stage, strings, 4, &list, &unknown) == OVSTAGE_OK && unknown == 1);
  CHECK(path_dictionary_get_paths_from_path_list(s.dictionary, list, 0, 4, page, &count).status == OVX_API_SUCCESS);
  CHECK(count == 4 && page[0] == known && page[2] == known && page[1] != known && page[3] == page[1]);
  ovx_primpath_t made = 0;
  CHECK(path_dictionary_create_paths_from_strings(s.dictionary, strings + 1, 1, &made).status == OVX_API_SUCCESS);
  CHECK(made != page[1]);
  CHECK(path_dictionary_release_path_list_reference(s.dictionary, list).status == OVX_API_SUCCESS);
  CHECK(s.go->list_of_known(s.stage, NULL, 0, &list, &unknown) == OVSTAGE_OK && unknown == 0);
  CHECK(path_dictionary_release_path_list_reference(s.dictionary, list).status == OVX_API_SUCCESS);
  list = 7;
  CHECK_FAILS(s.go->list_of_known(s.stage, NULL, 1, &list, &unknown), OVSTAGE_ERROR_INVALID_ARGUMENT, "paths");
  CHECK_FAILS(s.go->list_of_known(s.stage, strings, 1, NULL, &unknown), OVSTAGE_ERROR_INVALID_ARGUMENT, "out");
  CHECK_FAILS(s.go->list_of_known(s.stage, strings, 1, &list, NULL), OVSTAGE_ERROR_INVALID_ARGUMENT, "unknown");
  strings[1] = view("Nobody");
  CHECK_FAILS(s.go->list_of_known(s.stage, strings, 2, &list, &unknown), OVSTAGE_ERROR_INVALID_ARGUMENT, "entry 1");
  CHECK(list == 7);
  close_scene(&s);
}

/* A path that nothing names goes; its text is copied without making it stay. */
static void check_compact(void) {
  scene s;
  if (!open_scene(&s, "compact")) return;
  ovx_string_t strings[3] = {view("/Lasts"), view("/Passes/by"), view("/")};
  ovx_primpath_t lasts = 0, paths[3] = {0};
  ovx_primpath_list_t list = 0;
  size_t count = 0, ends[3] = {0}, done = 9;
  uint64_t dropped = 9;
  char text[32];
  CHECK(path_dictionary_create_paths_from_strings(s.dictionary, strings, 1, &lasts).status == OVX_API_SUCCESS);
  CHECK(path_dictionary_create_path_list_from_strings(s.dictionary, strings, 3, &list).status == OVX_API_SUCCESS);
  CHECK(path_dictionary_get_paths_from_path_list(s.dictionary, list, 0, 3, paths, &count).status == OVX_API_SUCCESS);
  CHECK(s.go->compact(s.stage, &dropped) == OVSTAGE_OK && dropped == 0);

  CHECK(s.go->path_texts(s.stage, paths, 3, text, sizeof text, ends, &done) == OVSTAGE_OK && done == 3);
  CHECK(ends[0] == 6 && ends[1] == 16 && ends[2] == 17 && memcmp(text, "/Lasts/Passes/by/", 17) == 0);
  CHECK(s.go->path_texts(s.stage, paths, 3, text, 15, ends, &done) == OVSTAGE_OK && done == 1);
  CHECK(s.go->path_texts(s.stage, paths, 3, text, 5, ends, &done) == OVSTAGE_OK && done == 0);
  CHECK(s.go->path_texts(s.stage, NULL, 0, NULL, 0, NULL, &done) == OVSTAGE_OK && done == 0);
  CHECK_FAILS(s.go->path_texts(s.stage, NULL, 1, text, 5, ends, &done), OVSTAGE_ERROR_INVALID_ARGUMENT, "paths");
  CHECK_FAILS(s.go->path_texts(s.stage, paths, 1, NULL, 5, ends, &done), OVSTAGE_ERROR_INVALID_ARGUMENT, "buffer");
  CHECK_FAILS(s.go->path_texts(s.stage, paths, 1, text, 5, NULL, &done), OVSTAGE_ERROR_INVALID_ARGUMENT, "ends");
  CHECK_FAILS(s.go->path_texts(s.stage, paths, 1, text, 5, ends, NULL), OVSTAGE_ERROR_INVALID_ARGUMENT, "done");

  CHECK(path_dictionary_release_path_list_reference(s.dictionary, list).status == OVX_API_SUCCESS);
  CHECK(s.go->compact(s.stage, &dropped) == OVSTAGE_OK && dropped == 2);
  CHECK(s.go->compact(s.stage, NULL) == OVSTAGE_OK);
  CHECK(s.go->path_texts(s.stage, &lasts, 1, text, sizeof text, ends, &done) == OVSTAGE_OK && ends[0] == 6);
  CHECK_FAILS(s.go->path_texts(s.stage, paths, 3, text, sizeof text, ends, &done), OVSTAGE_ERROR_INVALID_ARGUMENT,
              "Prim path handle was not found in this dictionary");
  ovx_primpath_t again = 0;
  CHECK(path_dictionary_create_paths_from_strings(s.dictionary, strings + 1, 1, &again).status == OVX_API_SUCCESS);
  CHECK(again != paths[1]);
  close_scene(&s);
}

/* Whoever has a view of a name finds the text there for as long as there is a stage. */
static void check_views_outlive_compact(void) {
  scene s;
  if (!open_scene(&s, "views")) return;
  ovx_string_t string = view("/Passes/viewed_by_somebody"), texts[2];
  ovx_primpath_list_t list = 0;
  ovx_primpath_t path = 0;
  ovx_token_t tokens[2] = {0}, *at = NULL;
  size_t count = 0, done = 0;
  CHECK(path_dictionary_create_path_list_from_strings(s.dictionary, &string, 1, &list).status == OVX_API_SUCCESS);
  CHECK(path_dictionary_get_paths_from_path_list(s.dictionary, list, 0, 1, &path, &count).status == OVX_API_SUCCESS);
  CHECK(path_dictionary_get_tokens_from_paths(s.dictionary, &path, 1, tokens, 2, &at, &count, &done).status ==
        OVX_API_SUCCESS);
  CHECK(path_dictionary_get_strings_from_tokens(s.dictionary, tokens + 1, 1, texts).status == OVX_API_SUCCESS);
  CHECK(path_dictionary_release_path_list_reference(s.dictionary, list).status == OVX_API_SUCCESS);
  uint64_t dropped = 0;
  CHECK(s.go->compact(s.stage, &dropped) == OVSTAGE_OK && dropped == 2);
  ovx_string_t other = view("/Another/name_of_some_length");
  CHECK(path_dictionary_create_path_list_from_strings(s.dictionary, &other, 1, &list).status == OVX_API_SUCCESS);
  CHECK(strcmp(texts[0].ptr, "viewed_by_somebody") == 0);
  ovx_api_result_t unknown = path_dictionary_get_strings_from_tokens(s.dictionary, tokens, 1, texts);
  CHECK(unknown.status == OVX_API_ERROR);
  path_dictionary_release_error(s.dictionary, unknown.error);
  CHECK(path_dictionary_get_strings_from_tokens(s.dictionary, tokens + 1, 1, texts).status == OVX_API_SUCCESS);
  close_scene(&s);
}

static void check_path_lists(void) {
  scene s;
  if (!open_scene(&s, "lists")) return;
  ovx_string_t strings[3] = {view("/B"), view("/A"), view("/B")};
  ovx_primpath_t paths[3];
  CHECK(path_dictionary_create_paths_from_strings(s.dictionary, strings, 3, paths).status == OVX_API_SUCCESS);
  ovx_primpath_list_t one = 0, two = 0, empty = 0;
  CHECK(path_dictionary_create_path_list_from_paths(s.dictionary, paths, 3, &one).status == OVX_API_SUCCESS);
  CHECK(path_dictionary_create_path_list_from_strings(s.dictionary, strings, 3, &two).status == OVX_API_SUCCESS);
  CHECK(path_dictionary_create_path_list_from_paths(s.dictionary, NULL, 0, &empty).status == OVX_API_SUCCESS);
  CHECK(one != 0 && two != 0 && empty != 0 && one != two && two != empty);
  size_t count = 99;
  CHECK(path_dictionary_get_num_paths_from_path_list(s.dictionary, one, &count).status == OVX_API_SUCCESS);
  CHECK(count == 3);
  CHECK(path_dictionary_get_num_paths_from_path_list(s.dictionary, empty, &count).status == OVX_API_SUCCESS);
  CHECK(count == 0);

  ovx_primpath_t page[3] = {0, 0, 0};
  CHECK(path_dictionary_get_paths_from_path_list(s.dictionary, two, 0, 2, page, &count).status == OVX_API_SUCCESS);
  CHECK(count == 2 && page[0] == paths[0] && page[1] == paths[1] && page[2] == 0);
  CHECK(path_dictionary_get_paths_from_path_list(s.dictionary, two, 2, 3, page, &count).status == OVX_API_SUCCESS);
  CHECK(count == 1 && page[0] == paths[2]);
  CHECK(path_dictionary_get_paths_from_path_list(s.dictionary, two, 3, 3, page, &count).status == OVX_API_SUCCESS);
  CHECK(count == 0);

  CHECK(path_dictionary_add_path_list_reference(s.dictionary, one).status == OVX_API_SUCCESS);
  for (int i = 0; i < 2; i++)
    CHECK(path_dictionary_release_path_list_reference(s.dictionary, one).status == OVX_API_SUCCESS);
  REFUSED(&s, path_dictionary_release_path_list_reference(s.dictionary, one), "Path list handle was not found");
  REFUSED(&s, path_dictionary_add_path_list_reference(s.dictionary, one), "Path list handle was not found");
  REFUSED(&s, path_dictionary_get_num_paths_from_path_list(s.dictionary, one, &count), "Path list handle was not");
  REFUSED(&s, path_dictionary_get_num_paths_from_path_list(s.dictionary, 0xdeadbeef, &count), "Path list handle");
  CHECK(path_dictionary_release_path_list_reference(s.dictionary, OVX_INVALID_PRIMPATH_LIST).status == OVX_API_SUCCESS);
  CHECK(path_dictionary_add_path_list_reference(s.dictionary, OVX_INVALID_PRIMPATH_LIST).status == OVX_API_SUCCESS);
  CHECK(path_dictionary_release_path_list_reference(s.dictionary, two).status == OVX_API_SUCCESS);
  CHECK(path_dictionary_release_path_list_reference(s.dictionary, empty).status == OVX_API_SUCCESS);
  ovx_primpath_t stranger = 0xdeadbeef;
  REFUSED(&s, path_dictionary_create_path_list_from_paths(s.dictionary, &stranger, 1, &one), "Prim path handle");
  close_scene(&s);
}

/* ---- Write, seal, read ------------------------------------------------------------------------------------------- */

static void check_minimal(void) {
  scene s;
  if (!open_scene(&s, "minimal")) return;
  ovx_token_t scalar = token_of(&s, "scalar");
  DONE(&s, write_floats(&s, scalar, 1, 1.0f, 2.0f, 3.0f));
  DONE(&s, seal(&s, 1));
  EXPECT_FLOATS(&s, scalar, 1, 1.0f, 2.0f, 3.0f);
  EXPECT_FLOATS(&s, scalar, 9, 1.0f, 2.0f, 3.0f);

  ovstage_query_result_t found;
  CHECK(ovstage_fetch_query_result(s.stage, s.query, OVSTAGE_TIMEOUT_INFINITE, &found) == OVSTAGE_OK);
  CHECK(found.total_prim_count == PRIMS && found.all_handle == s.query);
  CHECK(found.attribute_count == 1 && found.attributes[0] == scalar);
  CHECK(ovstage_release_query_result(s.stage, &found) == OVSTAGE_OK);

  ovx_token_t absent = token_of(&s, "nobody-has-this");
  ovstage_read_handle_t read = OVSTAGE_INVALID_READ_HANDLE;
  DONE(&s, ovstage_read_attributes(s.stage, s.query, &absent, 1, latest(1), &read));
  ovstage_read_group_t group;
  CHECK(ovstage_fetch_read_next(s.stage, read, 0, &group) == OVSTAGE_ERROR_END_OF_ITERATION);
  DONE(&s, ovstage_release_read(s.stage, read));
  close_scene(&s);
}

/* Lanes 3 and 16, with and without strides, and the attribute given by its name. */
static void check_lanes(void) {
  scene s;
  if (!open_scene(&s, "lanes")) return;
  float points[PRIMS * 3];
  double matrices[PRIMS * 16];
  for (int i = 0; i < PRIMS * 3; i++) points[i] = 0.5f + (float)i;
  for (int i = 0; i < PRIMS * 16; i++) matrices[i] = 0.25 * i;
  int64_t shape[1] = {PRIMS};
  int64_t compact[1] = {1};
  DLTensor point = tensor_of(points, type_of(kDLFloat, 32, 3), 1, shape);
  DLTensor matrix = tensor_of(matrices, type_of(kDLFloat, 64, 16), 1, shape);
  ovx_token_t attributes[2] = {token_of(&s, "point"), token_of(&s, "matrix")};
  DONE(&s, write_tensor(&s, attributes[0], 1, &point, OVSTAGE_SEMANTIC_NONE));
  matrix.strides = compact;
  DONE(&s, write_tensor(&s, attributes[1], 1, &matrix, OVSTAGE_SEMANTIC_NONE));
  DONE(&s, seal(&s, 1));
  EXPECT(&s, attributes[0], 1, point.dtype, points);
  EXPECT(&s, attributes[1], 1, matrix.dtype, matrices);

  point.strides = compact;
  points[0] = -1.0f;
  DONE(&s,
       ovstage_write_attribute(s.stage, s.query, by_name("point"), 2, payload_of(&point, 1), OVSTAGE_PRIM_MODE_UPSERT));
  DONE(&s, seal(&s, 2));
  EXPECT(&s, attributes[0], 2, point.dtype, points);

  int64_t backwards[1] = {-1}; /* the rows from the last to the first */
  float reversed[PRIMS * 3];
  for (int i = 0; i < PRIMS; i++) memcpy(&reversed[3 * i], &points[3 * (PRIMS - 1 - i)], 3 * sizeof(float));
  point.strides = backwards;
  point.data = &points[3 * (PRIMS - 1)];
  DONE(&s, write_tensor(&s, attributes[0], 3, &point, OVSTAGE_SEMANTIC_NONE));
  DONE(&s, seal(&s, 3));
  EXPECT(&s, attributes[0], 3, point.dtype, reversed);
  close_scene(&s);
}

/* Shapes (3,3) and (3,4,4) are folded into lanes, and two attributes come out of one read, each in one group. */
static void check_convenience_shapes(void) {
  scene s;
  if (!open_scene(&s, "shapes")) return;
  float points[PRIMS * 3];
  double matrices[PRIMS * 16];
  for (int i = 0; i < PRIMS * 3; i++) points[i] = (float)i;
  for (int i = 0; i < PRIMS * 16; i++) matrices[i] = -i;
  int64_t point_shape[2] = {PRIMS, 3};
  int64_t matrix_shape[3] = {PRIMS, 4, 4};
  DLTensor point = tensor_of(points, type_of(kDLFloat, 32, 1), 2, point_shape);
  DLTensor matrix = tensor_of(matrices, type_of(kDLFloat, 64, 1), 3, matrix_shape);
  ovx_token_t attributes[2] = {token_of(&s, "point"), token_of(&s, "matrix")};

  int64_t flat_shape[1] = {PRIMS * 3};
  DLTensor flat = tensor_of(points, type_of(kDLFloat, 32, 1), 1, flat_shape);
  CHECK_REFUSED(write_tensor(&s, attributes[0], 1, &flat, OVSTAGE_SEMANTIC_POINT), OVSTAGE_ERROR_INVALID_ARGUMENT,
                "point");

  DONE(&s, write_tensor(&s, attributes[0], 1, &point, OVSTAGE_SEMANTIC_POINT));
  DONE(&s, write_tensor(&s, attributes[1], 1, &matrix, OVSTAGE_SEMANTIC_MATRIX));
  DONE(&s, seal(&s, 1));
  ovstage_read_handle_t read = OVSTAGE_INVALID_READ_HANDLE;
  DONE(&s, ovstage_read_attributes(s.stage, s.query, attributes, 2, latest(1), &read));
  bool seen[2] = {false, false};
  ovstage_read_group_t group;
  for (int i = 0; i < 2; i++) {
    if (!CHECK(ovstage_fetch_read_next(s.stage, read, OVSTAGE_TIMEOUT_INFINITE, &group) == OVSTAGE_OK)) break;
    bool is_matrix = group.attribute == attributes[1];
    seen[is_matrix] = true;
    if (is_dense(&group, attributes[is_matrix], is_matrix ? type_of(kDLFloat, 64, 16) : type_of(kDLFloat, 32, 3)))
      CHECK(memcmp(group.data.tensors->data, is_matrix ? (void*)matrices : (void*)points,
                   is_matrix ? sizeof matrices : sizeof points) == 0);
    CHECK(group.semantic == (is_matrix ? OVSTAGE_SEMANTIC_MATRIX : OVSTAGE_SEMANTIC_POINT));
    CHECK(group.ordinal == 1 && group.meta.attribute_write_floor_ordinal == 1);
    CHECK(ovstage_release_group(s.stage, &group) == OVSTAGE_OK);
  }
  CHECK(seen[0] && seen[1]);
  CHECK(ovstage_fetch_read_next(s.stage, read, OVSTAGE_TIMEOUT_INFINITE, &group) == OVSTAGE_ERROR_END_OF_ITERATION);
  DONE(&s, ovstage_release_read(s.stage, read));
  close_scene(&s);
}

static void check_modes_and_floors(void) {
  scene s;
  if (!open_scene(&s, "floors")) return;
  ovx_token_t value = token_of(&s, "value");
  float numbers[PRIMS] = {9, 9, 9};
  int64_t shape[1] = {PRIMS};
  DLTensor tensor = tensor_of(numbers, type_of(kDLFloat, 32, 1), 1, shape);
  CHECK_REFUSED(write_floats(&s, value, 0, 1, 2, 3), OVSTAGE_ERROR_WRITE_FLOOR_VIOLATION, "value"); /* the floor is 0 */
  DONE(&s,
       ovstage_write_attribute(s.stage, s.query, by_token(value), 5, payload_of(&tensor, 1), OVSTAGE_PRIM_MODE_INSERT));
  CHECK_REFUSED(
      ovstage_write_attribute(s.stage, s.query, by_token(value), 6, payload_of(&tensor, 1), OVSTAGE_PRIM_MODE_INSERT),
      OVSTAGE_ERROR_PRIM_NOT_FOUND, "/World/A");

  ovx_token_t unsealed[1] = {value};
  ovstage_read_handle_t read = 4711;
  CHECK_REFUSED(ovstage_read_attributes(s.stage, s.query, unsealed, 1, latest(9), &read),
                OVSTAGE_ERROR_WRITE_FLOOR_VIOLATION, "value");
  CHECK(read == OVSTAGE_INVALID_READ_HANDLE);

  DONE(&s, seal(&s, 5));
  DONE(&s, seal(&s, 3)); /* floors never fall: a success without effect */
  CHECK_REFUSED(write_floats(&s, value, 5, 1, 2, 3), OVSTAGE_ERROR_WRITE_FLOOR_VIOLATION, "5");
  CHECK_REFUSED(write_floats(&s, value, 3, 1, 2, 3), OVSTAGE_ERROR_WRITE_FLOOR_VIOLATION, "3");
  EXPECT_FLOATS(&s, value, 5, 9, 9, 9);
  DONE(&s, write_floats(&s, value, 6, 1, 2, 3));
  EXPECT_FLOATS(&s, value, 6, 9, 9, 9); /* written, not sealed: readers still see the snapshot */
  DONE(&s, seal(&s, 6));
  EXPECT_FLOATS(&s, value, 6, 1, 2, 3);

  ovstage_ordinal_query_handle_t question = OVSTAGE_INVALID_ORDINAL_QUERY_HANDLE;
  DONE(&s, ovstage_get_attribute_write_floor(s.stage, by_token(value), &question));
  ovstage_ordinal_t floor = 0;
  CHECK(ovstage_fetch_ordinal(s.stage, question, OVSTAGE_TIMEOUT_INFINITE, &floor) == OVSTAGE_OK && floor == 6);
  DONE(&s, ovstage_release_ordinal_query(s.stage, question));

  ovstage_write_floor_desc_t one;
  memset(&one, 0, sizeof one);
  one.ordinal = 8;
  one.scope = OVSTAGE_SCOPE_INCLUDE;
  one.attributes = &value;
  one.attribute_count = 1;
  DONE(&s, ovstage_advance_write_floor(s.stage, &one));
  DONE(&s, ovstage_get_attribute_write_floor(s.stage, by_name("value"), &question));
  CHECK(ovstage_fetch_ordinal(s.stage, question, 0, &floor) == OVSTAGE_OK && floor == 8);
  DONE(&s, ovstage_release_ordinal_query(s.stage, question));
  DONE(&s, ovstage_get_attribute_write_floor(s.stage, by_token(OVX_INVALID_TOKEN), &question));
  CHECK(ovstage_fetch_ordinal(s.stage, question, 0, &floor) == OVSTAGE_OK && floor == 6); /* the global one */
  DONE(&s, ovstage_release_ordinal_query(s.stage, question));

  one.scope = (ovstage_scope_t)77;
  CHECK_REFUSED(ovstage_advance_write_floor(s.stage, &one), OVSTAGE_ERROR_INVALID_ARGUMENT, "scope");
  CHECK_REFUSED(
      ovstage_write_attribute(s.stage, s.query, by_token(value), 9, payload_of(&tensor, 1), (ovstage_prim_mode_t)77),
      OVSTAGE_ERROR_INVALID_ARGUMENT, "prim_mode");
  close_scene(&s);
}

/* A held group is a snapshot: nothing that happens later changes it, and it outlives its read, query and list. */
static void check_snapshots(void) {
  scene s;
  if (!open_scene(&s, "snapshots")) return;
  ovx_token_t value = token_of(&s, "value");
  DONE(&s, write_floats(&s, value, 1, 1, 2, 3));
  DONE(&s, seal(&s, 1));
  ovstage_query_handle_t other = OVSTAGE_INVALID_QUERY_HANDLE;
  CHECK(ovstage_query_from_path_list(s.stage, s.list, &other) == OVSTAGE_OK);
  ovstage_read_handle_t read = OVSTAGE_INVALID_READ_HANDLE;
  ovstage_read_group_t group;
  DONE(&s, ovstage_read_attributes(s.stage, other, &value, 1, latest(1), &read));
  CHECK(ovstage_fetch_read_next(s.stage, read, OVSTAGE_TIMEOUT_INFINITE, &group) == OVSTAGE_OK);
  DONE(&s, ovstage_release_read(s.stage, read));
  DONE(&s, ovstage_release_query(s.stage, other));
  for (ovstage_ordinal_t ordinal = 2; ordinal < 6; ordinal++) {
    DONE(&s, write_floats(&s, value, ordinal, 10, 20, (float)ordinal));
    DONE(&s, seal(&s, ordinal));
  }
  if (is_dense(&group, value, type_of(kDLFloat, 32, 1))) {
    const float* held = (const float*)group.data.tensors->data;
    CHECK(held[0] == 1 && held[1] == 2 && held[2] == 3);
  }
  CHECK(ovstage_release_group(s.stage, &group) == OVSTAGE_OK);
  EXPECT_FLOATS(&s, value, 5, 10, 20, 5);
  close_scene(&s);
}

/* ---- Exports and what outlives a stage --------------------------------------------------------------------------- */

static void check_exports(void) {
  scene s;
  if (!open_scene(&s, "exports")) return;
  const ovstage_go_v1_t* go = s.go;
  ovx_token_t point = token_of(&s, "point");
  float points[PRIMS * 3] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  int64_t shape[2] = {PRIMS, 3};
  DLTensor tensor = tensor_of(points, type_of(kDLFloat, 32, 1), 2, shape);
  DONE(&s, write_tensor(&s, point, 1, &tensor, OVSTAGE_SEMANTIC_POINT));
  DONE(&s, seal(&s, 1));
  ovstage_read_handle_t read = OVSTAGE_INVALID_READ_HANDLE;
  ovstage_read_group_t group;
  DONE(&s, ovstage_read_attributes(s.stage, s.query, &point, 1, latest(1), &read));
  CHECK(ovstage_fetch_read_next(s.stage, read, OVSTAGE_TIMEOUT_INFINITE, &group) == OVSTAGE_OK);
  DONE(&s, ovstage_release_read(s.stage, read));

  ovstage_go_block_t* block = go->tensors_block(group.data.tensors);
  CHECK(block != NULL && go->block_refs(block) >= 1);
  DLManagedTensorVersioned* modern =
      go->export_versioned(s.stage, block, group.data.tensors, DLPACK_FLAG_BITMASK_READ_ONLY);
  DLManagedTensor* legacy = go->export_legacy(NULL, block, group.data.tensors);
  CHECK(modern != NULL && legacy != NULL);
  CHECK(modern->version.major == 1 && modern->flags == DLPACK_FLAG_BITMASK_READ_ONLY);
  CHECK(modern->dl_tensor.data == group.data.tensors->data && legacy->dl_tensor.data == modern->dl_tensor.data);

  const DLTensor* exported[2] = {&modern->dl_tensor, &legacy->dl_tensor};
  for (int i = 0; i < 2; i++) {
    CHECK(exported[i]->ndim == 2 && exported[i]->shape[0] == PRIMS && exported[i]->shape[1] == 3);
    CHECK(exported[i]->dtype.lanes == 1 && exported[i]->byte_offset == 0);
    CHECK(exported[i]->strides != NULL && exported[i]->strides[0] == 3 && exported[i]->strides[1] == 1);
  }
  ovstage_go_counters_t counters = zero_counters();
  CHECK(go->counters(s.stage, &counters) == OVSTAGE_OK);
  CHECK(counters.live_exports >= 1 && counters.live_groups == 1 && counters.bytes_columns >= sizeof points);

  const DLTensor* descriptors = group.data.tensors;
  go->tensors_retain(descriptors);
  CHECK(ovstage_release_group(s.stage, &group) == OVSTAGE_OK);
  CHECK(descriptors->shape[0] == PRIMS && stored_type(descriptors).lanes == 3);
  go->tensors_release(descriptors);

  ovstage_instance_t* stage = s.stage;
  go->instance_retain(stage);
  DONE(&s, ovstage_release_query(s.stage, s.query));
  CHECK(path_dictionary_release_path_list_reference(s.dictionary, s.list).status == OVX_API_SUCCESS);
  CHECK(ovstage_destroy_instance(stage) == OVSTAGE_OK);
  CHECK_FAILS(ovstage_release_op(stage, 1), OVSTAGE_ERROR_INVALID_HANDLE, "destroyed");
  go->instance_release(stage);

  CHECK(memcmp(modern->dl_tensor.data, points, sizeof points) == 0); /* the bytes outlive the stage */
  modern->deleter(modern);
  CHECK(memcmp(legacy->dl_tensor.data, points, sizeof points) == 0);
  legacy->deleter(legacy);
}

/* ---- What is refused --------------------------------------------------------------------------------------------- */

static void check_payload_refusals(void) {
  scene s;
  if (!open_scene(&s, "payloads")) return;
  ovx_token_t value = token_of(&s, "value");
  float numbers[PRIMS] = {1, 2, 3};
  int64_t shape[1] = {PRIMS};
  DLTensor tensor = tensor_of(numbers, type_of(kDLFloat, 32, 1), 1, shape);
  DLTensor device = tensor; /* a pointer that nobody may follow */
  device.data = (void*)(uintptr_t)0xdeadbeef;
  device.device.device_type = kDLCUDA;
  CHECK_REFUSED(write_tensor(&s, value, 1, &device, OVSTAGE_SEMANTIC_NONE), OVSTAGE_ERROR_NOT_SUPPORTED, "CUDA");

  DLTensor packed = tensor;
  packed.dtype = type_of(kDLFloat4_e2m1fn, 4, 1);
  CHECK_REFUSED(write_tensor(&s, value, 1, &packed, OVSTAGE_SEMANTIC_NONE), OVSTAGE_ERROR_NOT_SUPPORTED, "value");
  packed.dtype = type_of(kDLOpaqueHandle, 64, 1);
  CHECK_REFUSED(write_tensor(&s, value, 1, &packed, OVSTAGE_SEMANTIC_NONE), OVSTAGE_ERROR_NOT_SUPPORTED, "value");
  packed.dtype = type_of(kDLFloat, 32, 0);
  CHECK_REFUSED(write_tensor(&s, value, 1, &packed, OVSTAGE_SEMANTIC_NONE), OVSTAGE_ERROR_INVALID_ARGUMENT, "lanes");

  tensor.ndim = -1;
  CHECK_REFUSED(write_tensor(&s, value, 1, &tensor, OVSTAGE_SEMANTIC_NONE), OVSTAGE_ERROR_INVALID_ARGUMENT, "ndim");
  tensor.ndim = 1;
  tensor.data = NULL;
  CHECK_REFUSED(write_tensor(&s, value, 1, &tensor, OVSTAGE_SEMANTIC_NONE), OVSTAGE_ERROR_INVALID_ARGUMENT, "value");
  tensor.data = numbers;
  CHECK_REFUSED(write_tensor(&s, value, 1, &tensor, OVSTAGE_SEMANTIC_TOKEN_ID), OVSTAGE_ERROR_INVALID_ARGUMENT,
                "TOKEN_ID");

  CHECK_REFUSED(
      ovstage_write_attribute(s.stage, s.query, by_token(value), 1, payload_of(&tensor, 0), OVSTAGE_PRIM_MODE_UPSERT),
      OVSTAGE_ERROR_INVALID_ARGUMENT, "tensor_count");
  CHECK_REFUSED(ovstage_write_attribute(s.stage, s.query, by_name("usd-path"), 1, payload_of(&tensor, 1),
                                        OVSTAGE_PRIM_MODE_UPSERT),
                OVSTAGE_ERROR_NOT_SUPPORTED, "usd-path");
  CHECK_REFUSED(ovstage_write_attribute(s.stage, s.query, by_token(OVX_INVALID_TOKEN), 1, payload_of(&tensor, 1),
                                        OVSTAGE_PRIM_MODE_UPSERT),
                OVSTAGE_ERROR_INVALID_ARGUMENT, "attribute");

  DONE(&s, write_floats(&s, value, 1, 1, 2, 3)); /* none of this left a trace */
  tensor.dtype = type_of(kDLInt, 32, 1);
  CHECK_REFUSED(write_tensor(&s, value, 2, &tensor, OVSTAGE_SEMANTIC_NONE), OVSTAGE_ERROR_INVALID_ARGUMENT, "float32");
  DONE(&s, seal(&s, 1));
  EXPECT_FLOATS(&s, value, 1, 1, 2, 3);
  close_scene(&s);
}

/* On host data a stream means nothing, and an event cannot be waited for without CUDA. */
static void check_cuda_sync(void) {
  scene s;
  if (!open_scene(&s, "sync")) return;
  ovx_token_t value = token_of(&s, "value");
  float numbers[PRIMS] = {1, 2, 3};
  int64_t shape[1] = {PRIMS};
  DLTensor tensor = tensor_of(numbers, type_of(kDLFloat, 32, 1), 1, shape);
  ovstage_write_data_t data = payload_of(&tensor, 1);
  data.cuda_sync.stream = 1;
  DONE(&s, ovstage_write_attribute(s.stage, s.query, by_token(value), 1, data, OVSTAGE_PRIM_MODE_UPSERT));
  data.cuda_sync.wait_event = 0xdeadbeef;
  CHECK_REFUSED(ovstage_write_attribute(s.stage, s.query, by_token(value), 1, data, OVSTAGE_PRIM_MODE_UPSERT),
                OVSTAGE_ERROR_NOT_SUPPORTED, "wait_event");

  ovstage_map_desc_t desc = map_of(value, EXISTING);
  ovstage_map_handle_t map;
  ovstage_map_group_t group;
  if (map_all(&s, &desc, 2, &map, &group)) {
    ovstage_cuda_sync_t event = {1, 0xdeadbeef};
    ovstage_cuda_sync_t stream = {1, 0};
    ((float*)group.data.tensors->data)[0] = 4;
    CHECK_REFUSED(ovstage_unmap_group(s.stage, map, &group, event), OVSTAGE_ERROR_NOT_SUPPORTED, "wait_event");
    CHECK_REFUSED(ovstage_unmap_attribute(s.stage, map, event), OVSTAGE_ERROR_NOT_SUPPORTED, "wait_event");
    DONE(&s, ovstage_unmap_group(s.stage, map, &group, stream)); /* refused calls changed nothing */
    DONE(&s, ovstage_unmap_attribute(s.stage, map, stream));
  }
  DONE(&s, seal(&s, 2));
  EXPECT_FLOATS(&s, value, 2, 4, 2, 3);
  close_scene(&s);
}

#define CHECK_ABSENT(call, symbol) CHECK_FAILS((call), OVSTAGE_ERROR_NOT_SUPPORTED, symbol)

static void check_absent_stage_functions(void) {
  scene s;
  if (!open_scene(&s, "absent functions")) return;
  ovalign_request_t request;
  memset(&request, 0, sizeof request);
  ovalign_result_t aligned;
  memset(&aligned, 0, sizeof aligned);
  CHECK(ovalign_align(&request, &aligned) != 0 && contains(ovstage_get_last_error(), "ovalign_align"));
  ovalign_release(&aligned);
  ovalign_release(NULL);
  close_scene(&s);
}

/* Population has a last error of its own, and its texts are in the common one too. They say where USD is. */
#define CHECK_NO_POPULATION(call, symbol)                                                     \
  do {                                                                                        \
    CHECK_ABSENT(call, symbol " is not supported");                                           \
    CHECK(contains(ovstage_population_get_last_error(), symbol " is not supported"));         \
    CHECK(contains(ovstage_get_last_error(), "with the Python package, ovstage.population")); \
  } while (0)

static void check_absent_population(void) {
  scene s;
  if (!open_scene(&s, "absent population")) return;
  ovx_string_t text = view("#usda 1.0");
  ovx_string_t target = view("/World");
  ovstage_population_usd_reference_handle_t handle = 4711;
  ovstage_population_op_wait_result_t result;
  CHECK_NO_POPULATION(ovstage_population_register_usd_schemas(&text, 1), "ovstage_population_register_usd_schemas");
  CHECK_NO_POPULATION(
      ovstage_population_open_usd_from_file(s.stage, text, 1, NAN, OVSTAGE_POPULATION_DOMAIN_ALL).status,
      "ovstage_population_open_usd_from_file");
  CHECK_NO_POPULATION(
      ovstage_population_open_usd_from_string(s.stage, text, 1, NAN, OVSTAGE_POPULATION_DOMAIN_ALL).status,
      "ovstage_population_open_usd_from_string");
  CHECK_NO_POPULATION(ovstage_population_open_usd_from_file_with_desc(s.stage, text, 1, NAN, NULL, 0).status,
                      "ovstage_population_open_usd_from_file_with_desc");
  CHECK_NO_POPULATION(ovstage_population_open_usd_from_string_with_desc(s.stage, text, 1, NAN, NULL, 0).status,
                      "ovstage_population_open_usd_from_string_with_desc");
  CHECK_NO_POPULATION(ovstage_population_add_usd_reference_from_file(s.stage, text, target, &handle).status,
                      "ovstage_population_add_usd_reference_from_file");
  CHECK(handle == OVSTAGE_POPULATION_INVALID_USD_REFERENCE_HANDLE);
  CHECK_NO_POPULATION(ovstage_population_add_usd_reference_from_string(s.stage, text, target, NULL).status,
                      "ovstage_population_add_usd_reference_from_string");
  CHECK_NO_POPULATION(ovstage_population_remove_usd_reference(s.stage, 1).status,
                      "ovstage_population_remove_usd_reference");
  CHECK_NO_POPULATION(ovstage_population_reset_usd(s.stage).status, "ovstage_population_reset_usd");
  CHECK_NO_POPULATION(ovstage_population_apply_usd_time(s.stage, 1, 0.0).status, "ovstage_population_apply_usd_time");
  CHECK_NO_POPULATION(ovstage_population_apply_usd_changes(s.stage, 1).status, "ovstage_population_apply_usd_changes");
  CHECK_FAILS(ovstage_population_wait_op(s.stage, 1, 0, &result), OVSTAGE_ERROR_INVALID_ARGUMENT,
              "ovstage_population_wait_op"); /* no operation was ever accepted */
  CHECK(ovstage_population_get_last_op_error(1).length == 0);
  close_scene(&s);
}

static void check_absent_export(void) {
  scene s;
  if (!open_scene(&s, "absent export")) return;
  ovx_string_t file = view("out.usda");
  ovstage_population_export_desc_t desc;
  memset(&desc, 0, sizeof desc);
  ovstage_population_export_report_t report;
  ovstage_population_export_destination_handle_t out = 4711;
  const ovstage_population_export_destination_mode_t empty = OVSTAGE_POPULATION_EXPORT_DESTINATION_EMPTY;
  CHECK_NO_POPULATION(ovstage_population_export_destination_create(s.stage, file, empty, &out),
                      "ovstage_population_export_destination_create");
  CHECK(out == OVSTAGE_POPULATION_EXPORT_INVALID_DESTINATION_HANDLE);
  CHECK_NO_POPULATION(ovstage_population_export_destination_enqueue_create(s.stage, file, empty, &out).status,
                      "ovstage_population_export_destination_enqueue_create");
  CHECK_NO_POPULATION(ovstage_population_export_to_destination(s.stage, 1, &desc, &report),
                      "ovstage_population_export_to_destination");
  CHECK_NO_POPULATION(ovstage_population_export_enqueue_to_destination(s.stage, 1, &desc).status,
                      "ovstage_population_export_enqueue_to_destination");
  CHECK_NO_POPULATION(ovstage_population_export_destination_save(s.stage, 1),
                      "ovstage_population_export_destination_save");
  CHECK_NO_POPULATION(ovstage_population_export_destination_enqueue_save(s.stage, 1).status,
                      "ovstage_population_export_destination_enqueue_save");
  CHECK_NO_POPULATION(ovstage_population_export_destination_destroy(s.stage, 1),
                      "ovstage_population_export_destination_destroy");
  CHECK_NO_POPULATION(ovstage_population_export_destination_enqueue_destroy(s.stage, 1).status,
                      "ovstage_population_export_destination_enqueue_destroy");
  CHECK_NO_POPULATION(ovstage_population_export_to_usd_file(s.stage, file, &desc, NULL),
                      "ovstage_population_export_to_usd_file");
  CHECK_NO_POPULATION(ovstage_population_export_enqueue_to_usd_file(s.stage, file, &desc).status,
                      "ovstage_population_export_enqueue_to_usd_file");
  CHECK_FAILS(ovstage_population_export_wait_op(s.stage, 1, 0, NULL), OVSTAGE_ERROR_INVALID_ARGUMENT,
              "ovstage_population_export_wait_op"); /* no operation was ever accepted */

  CHECK(ovstage_population_export_desc_init_typed_hierarchy(&desc, 7, &file) == OVSTAGE_OK); /* descriptions do work */
  CHECK(desc.struct_size == sizeof desc && desc.ordinal == 7 && desc.prim_rule_count == 0);
  CHECK(desc.layer_mode == OVSTAGE_POPULATION_EXPORT_LAYER_MODE_DEF);
  CHECK(desc.prim_predicate.kind == OVSTAGE_POPULATION_PRIM_PREDICATE_IS_UNDER_PATH);
  CHECK(desc.prim_predicate.values.strings == &file && desc.prim_predicate.value_count == 1);
  CHECK(desc.property_predicate.kind == OVSTAGE_POPULATION_PROPERTY_PREDICATE_ALL);
  CHECK(ovstage_population_export_desc_init(NULL) == OVSTAGE_ERROR_INVALID_ARGUMENT);
  close_scene(&s);
}

/* ---- Handles, NULL, releases ------------------------------------------------------------------------------------- */

static void check_handles(void) {
  scene s;
  if (!open_scene(&s, "handles")) return;
  ovx_token_t value = token_of(&s, "value");
  float number = 1;
  int64_t shape[1] = {1};
  DLTensor tensor = tensor_of(&number, type_of(kDLFloat, 32, 1), 1, shape);
  ovstage_map_desc_t desc = map_of(value, type_of(kDLFloat, 32, 1));
  ovstage_read_group_t group;
  ovstage_map_group_t map_group;
  memset(&group, 0, sizeof group);
  memset(&map_group, 0, sizeof map_group);
  const uint64_t strangers[3] = {0, 0xdeadbeef, UINT64_MAX};
  for (int i = 0; i < 3; i++) {
    uint64_t handle = strangers[i];
    uint64_t out = 4711;
    ovstage_query_result_t found;
    memset(&found, 0, sizeof found);
    found.query_result_id = handle;
    group.read_group_id = handle;
    CHECK_FAILS(ovstage_wait_op(s.stage, handle, 0, NULL), OVSTAGE_ERROR_INVALID_HANDLE, "op_id");
    CHECK_FAILS(ovstage_release_op(s.stage, handle), OVSTAGE_ERROR_INVALID_HANDLE, "op_id");
    CHECK(s.go->op_status(s.stage, handle) == OVSTAGE_ERROR_INVALID_HANDLE);
    CHECK_FAILS(ovstage_fetch_ordinal(s.stage, handle, 0, &out), OVSTAGE_ERROR_INVALID_HANDLE, "handle");
    CHECK_REFUSED(ovstage_release_ordinal_query(s.stage, handle), OVSTAGE_ERROR_INVALID_HANDLE, "handle");
    CHECK_FAILS(ovstage_fetch_query_result(s.stage, handle, 0, &found), OVSTAGE_ERROR_INVALID_HANDLE, "query");
    found.query_result_id = handle;
    CHECK_FAILS(ovstage_release_query_result(s.stage, &found), OVSTAGE_ERROR_INVALID_HANDLE, "query");
    CHECK_REFUSED(ovstage_release_query(s.stage, handle), OVSTAGE_ERROR_INVALID_HANDLE, "query");
    CHECK_REFUSED(ovstage_read_attributes(s.stage, handle, &value, 1, latest(1), &out), OVSTAGE_ERROR_INVALID_HANDLE,
                  "query");
    CHECK(out == 0);
    CHECK_FAILS(ovstage_fetch_read_next(s.stage, handle, 0, &group), OVSTAGE_ERROR_INVALID_HANDLE, "read");
    group.read_group_id = handle;
    CHECK_FAILS(ovstage_release_group(s.stage, &group), OVSTAGE_ERROR_INVALID_HANDLE, "group");
    CHECK_REFUSED(ovstage_release_read(s.stage, handle), OVSTAGE_ERROR_INVALID_HANDLE, "read");
    CHECK_REFUSED(
        ovstage_write_attribute(s.stage, handle, by_token(value), 1, payload_of(&tensor, 1), OVSTAGE_PRIM_MODE_UPSERT),
        OVSTAGE_ERROR_INVALID_HANDLE, "query");
    CHECK_REFUSED(ovstage_map_attribute(s.stage, handle, &desc, 1, NULL, 0, &out), OVSTAGE_ERROR_INVALID_HANDLE,
                  "query");
    CHECK_FAILS(ovstage_fetch_map_next(s.stage, handle, 0, &map_group), OVSTAGE_ERROR_INVALID_HANDLE, "map");
    CHECK_REFUSED(ovstage_unmap_group(s.stage, handle, &map_group, NO_SYNC), OVSTAGE_ERROR_INVALID_HANDLE, "map");
    CHECK_REFUSED(ovstage_unmap_attribute(s.stage, handle, NO_SYNC), OVSTAGE_ERROR_INVALID_HANDLE, "map");
    CHECK_FAILS(s.go->abort_map(s.stage, handle), OVSTAGE_ERROR_INVALID_HANDLE, "map");
    CHECK(ovstage_query_from_path_list(s.stage, handle, &out) != OVSTAGE_OK);
    CHECK(out == 0);
  }
  /* A handle of one kind is no handle of another. */
  CHECK_FAILS(ovstage_fetch_read_next(s.stage, s.query, 0, &group), OVSTAGE_ERROR_INVALID_HANDLE, "read");
  CHECK_FAILS(ovstage_fetch_map_next(s.stage, s.query, 0, &map_group), OVSTAGE_ERROR_INVALID_HANDLE, "map");
  ovx_token_t never_interned = 0xdeadbeef;
  CHECK_REFUSED(ovstage_write_attribute(s.stage, s.query, by_token(never_interned), 1, payload_of(&tensor, 1),
                                        OVSTAGE_PRIM_MODE_UPSERT),
                OVSTAGE_ERROR_INVALID_ARGUMENT, "token");
  close_scene(&s);
}

static void check_nulls(void) {
  scene s;
  if (!open_scene(&s, "nulls")) return;
  const ovstage_api_status_t bad = OVSTAGE_ERROR_INVALID_ARGUMENT;
  ovx_token_t value = token_of(&s, "value");
  ovstage_instance_desc_t named;
  named.name = "never made";
  ovstage_instance_t* made = NULL;
  CHECK_FAILS(ovstage_create_instance(&named, NULL), bad, "NULL");
  CHECK_FAILS(ovstage_create_instance(NULL, &made), bad, "NULL");
  CHECK(made == NULL);
  CHECK_FAILS(ovstage_get_usd_stage_id(NULL, NULL), bad, "NULL");
  CHECK_FAILS(ovstage_get_usd_stage_id(s.stage, NULL), bad, "NULL");

  float number = 1;
  int64_t shape[1] = {1};
  DLTensor tensor = tensor_of(&number, type_of(kDLFloat, 32, 1), 1, shape);
  ovstage_map_desc_t desc = map_of(value, type_of(kDLFloat, 32, 1));
  ovstage_map_handle_t map = 4711;
  ovstage_read_handle_t read = 4711;
  CHECK_REFUSED(ovstage_advance_write_floor(s.stage, NULL), bad, "NULL");
  ovstage_write_floor_desc_t floor;
  memset(&floor, 0, sizeof floor);
  floor.scope = OVSTAGE_SCOPE_INCLUDE;
  floor.attribute_count = 1;
  CHECK_REFUSED(ovstage_advance_write_floor(s.stage, &floor), bad, "NULL");
  CHECK_REFUSED(ovstage_get_attribute_write_floor(s.stage, by_token(value), NULL), bad, "NULL");
  CHECK_FAILS(ovstage_fetch_ordinal(s.stage, 1, 0, NULL), bad, "NULL");
  CHECK_FAILS(ovstage_query_from_path_list(s.stage, s.list, NULL), bad, "NULL");
  CHECK_FAILS(ovstage_fetch_query_result(s.stage, s.query, 0, NULL), bad, "NULL");
  CHECK_FAILS(ovstage_release_query_result(s.stage, NULL), bad, "NULL");
  CHECK_REFUSED(ovstage_read_attributes(s.stage, s.query, NULL, 1, latest(1), &read), bad, "NULL");
  CHECK(read == OVSTAGE_INVALID_READ_HANDLE);
  CHECK_REFUSED(ovstage_read_attributes(s.stage, s.query, &value, 1, latest(1), NULL), bad, "NULL");
  CHECK_FAILS(ovstage_fetch_read_next(s.stage, 1, 0, NULL), bad, "NULL");
  CHECK_FAILS(ovstage_release_group(s.stage, NULL), bad, "NULL");
  CHECK_REFUSED(
      ovstage_write_attribute(s.stage, s.query, by_token(value), 1, payload_of(NULL, 1), OVSTAGE_PRIM_MODE_UPSERT), bad,
      "tensors");
  tensor.shape = NULL;
  CHECK_REFUSED(
      ovstage_write_attribute(s.stage, s.query, by_token(value), 1, payload_of(&tensor, 1), OVSTAGE_PRIM_MODE_UPSERT),
      bad, "shape");
  CHECK_REFUSED(ovstage_write_attributes(s.stage, s.query, NULL, 1, 1, OVSTAGE_PRIM_MODE_UPSERT), bad, "NULL");
  CHECK_REFUSED(ovstage_map_attribute(s.stage, s.query, NULL, 1, NULL, 0, &map), bad, "NULL");
  CHECK(map == OVSTAGE_INVALID_MAP_HANDLE);
  CHECK_REFUSED(ovstage_map_attribute(s.stage, s.query, &desc, 1, NULL, 0, NULL), bad, "NULL");
  CHECK_FAILS(ovstage_fetch_map_next(s.stage, 1, 0, NULL), bad, "NULL");
  CHECK_REFUSED(ovstage_unmap_group(s.stage, 1, NULL, NO_SYNC), bad, "NULL");
  const void* table = NULL;
  CHECK_FAILS(ovstage_query_extension(s.stage, NULL, &table), bad, "NULL");
  CHECK_FAILS(ovstage_query_extension(s.stage, OVSTAGE_GO_V1_NAME, NULL), bad, "NULL");
  CHECK_FAILS(s.go->counters(s.stage, NULL), bad, "NULL");
  ovstage_get_version(s.stage, NULL, NULL, NULL);

  REFUSED(&s, path_dictionary_create_tokens_from_strings(s.dictionary, NULL, 1, &value), "NULL");
  ovx_string_t word = view("word");
  REFUSED(&s, path_dictionary_create_tokens_from_strings(s.dictionary, &word, 1, NULL), "NULL");
  REFUSED(&s, path_dictionary_get_num_paths_from_path_list(s.dictionary, s.list, NULL), "NULL");
  ovx_string_t nothing = {NULL, 0};
  path_dictionary_release_error(s.dictionary, nothing);
  close_scene(&s);
}

/* Whatever is released twice: the second time is refused and frees nothing. */
static void check_double_release(void) {
  scene s;
  if (!open_scene(&s, "twice")) return;
  ovx_token_t value = token_of(&s, "value");
  DONE(&s, write_floats(&s, value, 1, 1, 2, 3));
  DONE(&s, seal(&s, 1));

  ovstage_read_handle_t read = OVSTAGE_INVALID_READ_HANDLE;
  ovstage_read_group_t group;
  DONE(&s, ovstage_read_attributes(s.stage, s.query, &value, 1, latest(1), &read));
  CHECK(ovstage_fetch_read_next(s.stage, read, OVSTAGE_TIMEOUT_INFINITE, &group) == OVSTAGE_OK);
  CHECK(ovstage_release_group(s.stage, &group) == OVSTAGE_OK);
  CHECK_FAILS(ovstage_release_group(s.stage, &group), OVSTAGE_ERROR_INVALID_HANDLE, "group");
  DONE(&s, ovstage_release_read(s.stage, read));
  CHECK_REFUSED(ovstage_release_read(s.stage, read), OVSTAGE_ERROR_INVALID_HANDLE, "read");
  CHECK_FAILS(ovstage_fetch_read_next(s.stage, read, 0, &group), OVSTAGE_ERROR_INVALID_HANDLE, "read");

  ovstage_query_result_t found;
  CHECK(ovstage_fetch_query_result(s.stage, s.query, 0, &found) == OVSTAGE_OK);
  CHECK(ovstage_release_query_result(s.stage, &found) == OVSTAGE_OK);
  CHECK_FAILS(ovstage_release_query_result(s.stage, &found), OVSTAGE_ERROR_INVALID_HANDLE, "query");

  ovstage_query_handle_t query = OVSTAGE_INVALID_QUERY_HANDLE;
  CHECK(ovstage_query_from_path_list(s.stage, s.list, &query) == OVSTAGE_OK);
  DONE(&s, ovstage_release_query(s.stage, query));
  CHECK_REFUSED(ovstage_release_query(s.stage, query), OVSTAGE_ERROR_INVALID_HANDLE, "query");

  ovstage_ordinal_query_handle_t question = OVSTAGE_INVALID_ORDINAL_QUERY_HANDLE;
  DONE(&s, ovstage_get_attribute_write_floor(s.stage, by_token(value), &question));
  DONE(&s, ovstage_release_ordinal_query(s.stage, question));
  CHECK_REFUSED(ovstage_release_ordinal_query(s.stage, question), OVSTAGE_ERROR_INVALID_HANDLE, "ordinal");

  ovstage_map_desc_t desc = map_of(value, EXISTING);
  ovstage_map_handle_t map;
  ovstage_map_group_t mapped;
  if (map_all(&s, &desc, 2, &map, &mapped)) {
    DONE(&s, ovstage_unmap_group(s.stage, map, &mapped, NO_SYNC));
    CHECK_REFUSED(ovstage_unmap_group(s.stage, map, &mapped, NO_SYNC), OVSTAGE_ERROR_INVALID_HANDLE, "map");
    DONE(&s, ovstage_unmap_attribute(s.stage, map, NO_SYNC));
    CHECK_REFUSED(ovstage_unmap_attribute(s.stage, map, NO_SYNC), OVSTAGE_ERROR_INVALID_HANDLE, "map");
    CHECK_FAILS(s.go->abort_map(s.stage, map), OVSTAGE_ERROR_INVALID_HANDLE, "map");
  }
  close_scene(&s);
}

/* ---- Operations and errors --------------------------------------------------------------------------------------- */

static void check_operations(void) {
  scene s;
  if (!open_scene(&s, "operations")) return;
  ovx_token_t value = token_of(&s, "value");
  ovstage_enqueue_result_t first = write_floats(&s, value, 1, 1, 2, 3);
  ovstage_enqueue_result_t second = write_floats(&s, value, 2, 1, 2, 3);
  CHECK(first.status == OVSTAGE_OK && second.status == OVSTAGE_OK && second.op_index > first.op_index);
  ovstage_op_wait_result_t result;
  memset(&result, 0xff, sizeof result);
  CHECK(ovstage_wait_op(s.stage, second.op_index, OVSTAGE_TIMEOUT_INFINITE, &result) == OVSTAGE_OK);
  CHECK(result.error_op_id_count == 0 && result.lowest_pending_op_id == OVSTAGE_INVALID_OP_ID);
  CHECK(ovstage_wait_op(s.stage, second.op_index, 0, NULL) == OVSTAGE_OK); /* again, until it is released */
  CHECK(s.go->op_status(s.stage, second.op_index) == OVSTAGE_OK);
  CHECK(ovstage_get_last_op_error(s.stage, second.op_index).length == 0);
  CHECK(ovstage_release_op(s.stage, second.op_index) == OVSTAGE_OK);
  CHECK_FAILS(ovstage_release_op(s.stage, second.op_index), OVSTAGE_ERROR_INVALID_HANDLE, "op_id");
  CHECK_FAILS(ovstage_wait_op(s.stage, second.op_index, 0, &result), OVSTAGE_ERROR_INVALID_HANDLE, "op_id");
  CHECK(s.go->op_status(s.stage, second.op_index) == OVSTAGE_ERROR_INVALID_HANDLE);
  CHECK(ovstage_wait_op(s.stage, first.op_index, OVSTAGE_TIMEOUT_INFINITE, NULL) == OVSTAGE_OK); /* any order */
  CHECK(ovstage_release_op(s.stage, first.op_index) == OVSTAGE_OK);
  CHECK_FAILS(ovstage_wait_op(s.stage, second.op_index + 1000, 0, NULL), OVSTAGE_ERROR_INVALID_HANDLE, "op_id");
  close_scene(&s);
}

/* What another thread sees: no error of ours, then its own. Returns the number of failed expectations as a pointer. */
static void* fail_elsewhere(void* argument) {
  scene* s = (scene*)argument;
  intptr_t wrong = 0;
  wrong += ovstage_get_last_error().length != 0;
  wrong += ovstage_release_op(s->stage, 0xabcdef) != OVSTAGE_ERROR_INVALID_HANDLE;
  wrong += !contains(ovstage_get_last_error(), "11259375"); /* 0xabcdef */
  return (void*)wrong;
}

static void check_last_error(void) {
  scene s;
  if (!open_scene(&s, "last error")) return;
  ovx_token_t value = token_of(&s, "value");
  CHECK(ovstage_get_last_error().ptr == NULL && ovstage_get_last_error().length == 0);
  CHECK(ovstage_release_op(s.stage, 4711) == OVSTAGE_ERROR_INVALID_HANDLE);
  ovx_string_t text = ovstage_get_last_error();
  CHECK(text.length > 0 && text.ptr[text.length] == '\0' && contains(text, "4711"));
  CHECK(equals(ovstage_get_last_error(), text.ptr)); /* asking changes nothing */
  CHECK(ovstage_get_error_string(s.stage, OVSTAGE_OK) != NULL);
  CHECK(ovstage_get_path_dictionary(s.stage) == s.dictionary);
  CHECK(contains(ovstage_get_last_error(), "4711")); /* nor do the other accessors */

  pthread_t thread;
  void* wrong = &s;
  CHECK(pthread_create(&thread, NULL, fail_elsewhere, &s) == 0);
  CHECK(pthread_join(thread, &wrong) == 0);
  CHECK(wrong == NULL);
  CHECK(contains(ovstage_get_last_error(), "4711")); /* each thread has its own */

  CHECK(write_floats(&s, value, 0, 1, 2, 3).status == OVSTAGE_ERROR_WRITE_FLOOR_VIOLATION);
  CHECK(!contains(ovstage_get_last_error(), "4711") && contains(ovstage_get_last_error(), "value"));
  DONE(&s, seal(&s, 1));
  CHECK(ovstage_get_last_error().length == 0); /* a call that succeeds leaves none */
  close_scene(&s);
}

/* ---- Several threads --------------------------------------------------------------------------------------------- */

enum { WORKERS = 4, TICKS = 50 };

typedef struct {
  scene* s;
  ovx_token_t attribute;
  int wrong;
} worker;

/* Waits and releases without the main thread's bookkeeping. */
static int settle(const scene* s, ovstage_enqueue_result_t enqueued) {
  ovstage_op_wait_result_t result;
  if (enqueued.status != OVSTAGE_OK) return 1;
  return (ovstage_wait_op(s->stage, enqueued.op_index, OVSTAGE_TIMEOUT_INFINITE, &result) != OVSTAGE_OK ||
          result.error_op_id_count != 0) +
         (ovstage_release_op(s->stage, enqueued.op_index) != OVSTAGE_OK);
}

/* Writes, seals and reads its own attribute, tick by tick. */
static void* tick(void* argument) {
  worker* w = (worker*)argument;
  const scene* s = w->s;
  for (int i = 1; i <= TICKS; i++) {
    const ovstage_ordinal_t ordinal = (ovstage_ordinal_t)i;
    w->wrong += settle(s, write_floats(s, w->attribute, ordinal, (float)i, (float)i, (float)i));
    ovstage_write_floor_desc_t floor;
    memset(&floor, 0, sizeof floor);
    floor.ordinal = ordinal;
    floor.scope = OVSTAGE_SCOPE_INCLUDE;
    floor.attributes = &w->attribute;
    floor.attribute_count = 1;
    w->wrong += settle(s, ovstage_advance_write_floor(s->stage, &floor));
    ovstage_read_handle_t read = OVSTAGE_INVALID_READ_HANDLE;
    w->wrong += settle(s, ovstage_read_attributes(s->stage, s->query, &w->attribute, 1, latest(ordinal), &read));
    ovstage_read_group_t group;
    if (ovstage_fetch_read_next(s->stage, read, OVSTAGE_TIMEOUT_INFINITE, &group) == OVSTAGE_OK) {
      const float* values = (const float*)group.data.tensors->data;
      w->wrong += values[0] != (float)i || values[2] != (float)i;
      w->wrong += ovstage_release_group(s->stage, &group) != OVSTAGE_OK;
    } else {
      w->wrong++;
    }
    w->wrong += settle(s, ovstage_release_read(s->stage, read));
  }
  return NULL;
}

static void check_threads(void) {
  scene s;
  if (!open_scene(&s, "threads")) return;
  pthread_t threads[WORKERS];
  worker workers[WORKERS];
  const char* names[WORKERS] = {"a", "b", "c", "d"};
  for (int i = 0; i < WORKERS; i++) {
    workers[i].s = &s;
    workers[i].attribute = token_of(&s, names[i]);
    workers[i].wrong = 0;
    CHECK(pthread_create(&threads[i], NULL, tick, &workers[i]) == 0);
  }
  for (int i = 0; i < WORKERS; i++) {
    CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(workers[i].wrong == 0);
    EXPECT_FLOATS(&s, workers[i].attribute, TICKS, TICKS, TICKS, TICKS);
  }
  close_scene(&s);
}

/* ---- fork() ------------------------------------------------------------------------------------------------------ */

static void note_deletion(DLManagedTensorVersioned* self) { *(bool*)self->manager_ctx = true; }

/* Nothing is taken in a child: what it gives away still is the parent's as well. */
static char wrong_with_managed(const scene* s) {
  bool deleted = false;
  DLManagedTensorVersioned tensor;
  memset(&tensor, 0, sizeof tensor);
  tensor.version.major = DLPACK_MAJOR_VERSION;
  tensor.manager_ctx = &deleted;
  tensor.deleter = note_deletion;
  const DLManagedTensorVersioned* tensors[1] = {&tensor};
  ovstage_write_data_t data = payload_of(NULL, 1);
  data.managed_tensors = tensors;
  return ovstage_write_attribute(s->stage, s->query, by_name("value"), 9, data, OVSTAGE_PRIM_MODE_UPSERT).status !=
             OVSTAGE_ERROR_NOT_SUPPORTED ||
         deleted;
}

/* A forked child has no engine: every call says so at once, and what is given back there does nothing. */
static char wrong_in_child(const scene* s, ovstage_go_block_t* block, DLManagedTensorVersioned* tensor) {
  char wrong = 0;
  ovstage_instance_desc_t desc;
  desc.name = "child";
  ovstage_instance_t* stage = NULL;
  wrong += ovstage_wait_op(s->stage, 1, OVSTAGE_TIMEOUT_INFINITE, NULL) != OVSTAGE_ERROR_NOT_SUPPORTED;
  wrong += !contains(ovstage_get_last_error(), "spawn");
  wrong += seal(s, 9).status != OVSTAGE_ERROR_NOT_SUPPORTED;
  wrong += wrong_with_managed(s);
  wrong += ovstage_create_instance(&desc, &stage) != OVSTAGE_ERROR_NOT_SUPPORTED || stage != NULL;
  wrong += ovstage_initialize(NULL) != OVSTAGE_ERROR_NOT_SUPPORTED;
  ovx_string_t word = view("word");
  ovx_token_t token = OVX_INVALID_TOKEN;
  ovx_api_result_t result = path_dictionary_create_tokens_from_strings(s->dictionary, &word, 1, &token);
  wrong += result.status != OVX_API_ERROR || !contains(result.error, "spawn");
  path_dictionary_release_error(s->dictionary, result.error);
  s->go->block_release(block);
  tensor->deleter(tensor);
  wrong += ovstage_release_op(s->stage, 1) != OVSTAGE_OK;
  wrong += ovstage_destroy_instance(s->stage) != OVSTAGE_OK;
  return wrong;
}

static void check_fork(void) {
  scene s;
  if (!open_scene(&s, "fork")) return;
  ovx_token_t value = token_of(&s, "value");
  DONE(&s, write_floats(&s, value, 1, 1, 2, 3));
  DONE(&s, seal(&s, 1));
  ovstage_read_handle_t handle = OVSTAGE_INVALID_READ_HANDLE;
  ovstage_read_group_t group;
  DONE(&s, ovstage_read_attributes(s.stage, s.query, &value, 1, latest(1), &handle));
  CHECK(ovstage_fetch_read_next(s.stage, handle, OVSTAGE_TIMEOUT_INFINITE, &group) == OVSTAGE_OK);
  DONE(&s, ovstage_release_read(s.stage, handle));
  ovstage_go_block_t* block = s.go->tensors_block(group.data.tensors);
  s.go->block_retain(block);
  DLManagedTensorVersioned* tensor = s.go->export_versioned(s.stage, block, group.data.tensors, 0);

  /* The child answers through a pipe and ends by a signal: what it leaves on purpose is nothing for a leak checker. */
  int ends[2];
  CHECK(pipe(ends) == 0);
  pid_t child = fork();
  if (child == 0) {
    char wrong = wrong_in_child(&s, block, tensor);
    if (write(ends[1], &wrong, 1) == 1) raise(SIGKILL);
    _exit(1);
  }
  char wrong = 99;
  int status = 0;
  CHECK(read(ends[0], &wrong, 1) == 1 && wrong == 0);
  CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  close(ends[0]);
  close(ends[1]);

  s.go->block_release(block); /* all is still there */
  tensor->deleter(tensor);
  CHECK(ovstage_release_group(s.stage, &group) == OVSTAGE_OK);
  EXPECT_FLOATS(&s, value, 1, 1, 2, 3);
  close_scene(&s);
}

/* ---- Nothing is left --------------------------------------------------------------------------------------------- */

static void check_nothing_left(void) {
  ovstage_instance_desc_t desc;
  desc.name = "last";
  ovstage_instance_t* stage = NULL;
  const void* table = NULL;
  CHECK(ovstage_create_instance(&desc, &stage) == OVSTAGE_OK);
  CHECK(ovstage_query_extension(stage, OVSTAGE_GO_V1_NAME, &table) == OVSTAGE_OK);
  CHECK(ovstage_destroy_instance(stage) == OVSTAGE_OK);
  const ovstage_go_v1_t* go = (const ovstage_go_v1_t*)table; /* lives as long as the process */
  ovstage_go_counters_t counters = zero_counters();
  go->process_counters(&counters);
  CHECK(counters.live_exports == 0);
  CHECK(counters.live_groups == 0);
  CHECK(counters.live_maps == 0);
  CHECK(counters.live_operations == 0);
  CHECK(counters.live_queries == 0);
  CHECK(counters.live_reads == 0);
  CHECK(counters.live_blocks == 0);
  CHECK(counters.bytes_columns == 0);
  go->trim();
  counters = zero_counters();
  go->process_counters(&counters);
  CHECK(counters.bytes_pooled == 0);
}

/* ---- All of it --------------------------------------------------------------------------------------------------- */

static void run(const check_group* groups, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const int before = failed, checks = passed + failed;
    groups[i].run();
    printf("%-6s %s (%d checks)\n", failed == before ? "ok" : "FAILED", groups[i].name, passed + failed - checks);
  }
}

/* client [ROUNDS]: how often adversary.c tries a call, not at all for 0. Under a memory checker there is no time for
 * it. */
/* Without a level there are no stages, and nothing else to check. */
static int check_unknown_level(void) {
  ovstage_instance_desc_t desc;
  desc.name = "unknown level";
  for (int i = 0; i < 2; i++) {
    ovstage_instance_t* stage = NULL;
    CHECK_FAILS(ovstage_create_instance(&desc, &stage), OVSTAGE_ERROR_INVALID_ARGUMENT,
                "which is no interface level: set it to 0.2 or 0.3, or unset it for 0.2");
    CHECK(stage == NULL);
  }
  printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}

int main(int argc, char** argv) {
  if (argc > 1) adversary_rounds = atoi(argv[1]);
  if (level() == OVSTAGE_GO_INTERFACE_DEFAULT) return check_unknown_level();
  static const check_group groups[] = {
      {"process", check_process},
      {"instances", check_instances},
      {"version and texts", check_version_and_texts},
      {"log", check_log},
      {"dictionary: tokens", check_tokens},
      {"dictionary: paths", check_paths},
      {"dictionary: path components", check_path_components},
      {"dictionary: path lists", check_path_lists},
      {"dictionary: lists of what is only asked for", check_list_of_known},
      {"dictionary: paths that nothing names", check_compact},
      {"dictionary: views of names outlive the paths", check_views_outlive_compact},
      {"write, seal, read", check_minimal},
      {"lanes and strides", check_lanes},
      {"convenience shapes", check_convenience_shapes},
      {"modes and floors", check_modes_and_floors},
      {"snapshots", check_snapshots},
      {"exports", check_exports},
      {"refused payloads", check_payload_refusals},
      {"cuda_sync on host data", check_cuda_sync},
      {"absent: stage functions", check_absent_stage_functions},
      {"absent: population", check_absent_population},
      {"absent: export", check_absent_export},
      {"bad handles", check_handles},
      {"NULL arguments", check_nulls},
      {"releases twice", check_double_release},
      {"operations", check_operations},
      {"last error", check_last_error},
      {"threads", check_threads},
      {"fork", check_fork},
  };
  static const check_group last[] = {{"nothing left", check_nothing_left}};
  run(groups, sizeof groups / sizeof groups[0]);
  run(value_groups, value_group_count);
  run(map_groups, map_group_count);
  run(filter_groups, filter_group_count);
  run(hierarchy_groups, hierarchy_group_count);
  run(refusal_groups, refusal_group_count);
  if (adversary_rounds > 0) run(adversary_groups, adversary_group_count);
  run(level_groups, level_group_count);
  run(unasked_groups, unasked_group_count);
  run(floor_groups, floor_group_count);
  run(last, 1);
  printf("%d passed, %d failed\n", passed, failed);
  return failed == 0 ? 0 : 1;
}
