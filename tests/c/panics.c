/*
 * panics.c - a panic in every function of Go that C calls, one after the other in one process.
 *
 * A program of its own, for a library that was built with the tag `faults` and shows its ovgo functions too; run.sh
 * makes it. The arguments are the names of those functions, as the library lists them, so that a new one is tried
 * without being named here. Each is called as C would call it, with a stage and zeros: it panics before it looks at
 * them. A panic is answered with INTERNAL and its text, ends the stage that it is about, and nothing else.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scene.h"

extern void ovstage_test_panic(const char* name);
extern bool ovstage_test_panic_is_due(void);

static const char TEXT[] = "met a fault of the library, not of the caller: the test build was told to panic in ";

/* What the functions return: a status, a status and an operation, or a text. They come back in the same registers. */
typedef struct {
  uint64_t first, second;
} answer;

typedef answer (*function)(void* context, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g,
                           uint64_t h, uint64_t i, uint64_t j);

static answer call(const char* name, ovstage_context_t* context) {
  void* symbol = dlsym(RTLD_DEFAULT, name);
  function go;
  memcpy(&go, &symbol, sizeof go);
  if (!CHECK(go != NULL)) return (answer){0, 0};
  ovstage_test_panic(name);
  answer got = go(context, 0, 0, 0, 0, 0, 0, 0, 0, 0);
  if (!CHECK(!ovstage_test_panic_is_due())) printf("%s does not panic when it is told to\n", name);
  return got;
}

static bool is_one_of(const char* name, const char* const* names) {
  while (*names != NULL && strcmp(*names, name) != 0) names++;
  return *names != NULL;
}

/* Those of the dictionary, which stays in service, answer with a text that is the caller's. */
static const char* const OF_THE_DICTIONARY[] = {
    "ovgoCreateTokensFromStrings",  "ovgoCreatePathsFromTokens",     "ovgoCreatePathsFromStrings",
    "ovgoCreatePathListFromPaths",  "ovgoCreatePathListFromStrings", "ovgoAddPathListReference",
    "ovgoReleasePathListReference", "ovgoGetNumPathsFromPathList",   "ovgoGetPathsFromPathList",
    "ovgoGetStringsFromTokens",     "ovgoGetTokensFromPaths",        NULL};

/* Those that are about no stage in service: check_process calls them as clients do. */
static const char* const OF_THE_PROCESS[] = {"ovgoCreateInstance", "ovgoDestroyInstance", "ovgoCloseDictionary",
                                             "ovgoProcessCounters", NULL};

static const char* const WITHOUT_STATUS[] = {"ovgoReadMissing", "ovgoEndName", NULL};

/* ---- Through the library's own door ------------------------------------------------------------------------------ */

static void is_in_service(const scene* s) {
  ovx_token_t value = token_of(s, "value");
  static ovstage_ordinal_t ordinal;
  ordinal++;
  DONE(s, write_floats(s, value, ordinal, 1, 2, 3));
  DONE(s, seal(s, ordinal));
  EXPECT_FLOATS(s, value, ordinal, 1, 2, 3);
}

static void is_poisoned(ovstage_instance_t* stage, const char* name) {
  ovstage_ordinal_query_handle_t handle;
  CHECK_REFUSED(ovstage_get_oldest_preserved_ordinal(stage, &handle), OVSTAGE_ERROR_INTERNAL, TEXT);
  CHECK(contains(ovstage_get_last_error(), name));
  CHECK(contains(ovstage_get_last_error(), "\"broken\" takes no further calls, destroy it"));
}

static ovstage_instance_t* new_stage(void) {
  ovstage_instance_t* stage = NULL;
  ovstage_instance_desc_t desc = {"broken"};
  CHECK(ovstage_create_instance(&desc, &stage) == OVSTAGE_OK);
  return stage;
}

static void check_stage_call(const char* name) {
  ovstage_instance_t* stage = new_stage();
  if (stage == NULL) return;
  answer got = call(name, stage->context);
  ovx_string_t text = ovstage_get_last_error();
  CHECK(contains(text, TEXT) && contains(text, name));
  if (!is_one_of(name, WITHOUT_STATUS)) CHECK((uint32_t)got.first == OVSTAGE_ERROR_INTERNAL);
  is_poisoned(stage, name);
  CHECK(ovstage_destroy_instance(stage) == OVSTAGE_OK);
}

static void* wait_for_ever(void* argument) {
  const scene* s = (const scene*)argument;
  bool told = s->go->wait_floor(s->stage, NULL, 0, 1, OVSTAGE_TIMEOUT_INFINITE) == OVSTAGE_ERROR_INTERNAL &&
              contains(ovstage_get_last_error(), TEXT);
  return told ? argument : NULL;
}

/* A thread that waits for a floor of a stage that breaks down is told. */
static void check_waiter(const scene* other) {
  ovstage_instance_t* stage = new_stage();
  if (stage == NULL) return;
  scene s = {.stage = stage, .go = other->go};
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, wait_for_ever, &s) == 0);
  call("ovgoCounters", stage->context);
  void* told = NULL;
  CHECK(pthread_join(thread, &told) == 0);
  CHECK(told != NULL);
  CHECK(ovstage_destroy_instance(stage) == OVSTAGE_OK);
}

static void check_dictionary_call(const char* name, const scene* other) {
  answer got = call(name, other->stage->context);
  ovx_string_t text = {(const char*)(uintptr_t)got.first, got.second};
  if (CHECK(got.first != 0) && CHECK(contains(text, TEXT)) && CHECK(contains(text, name)))
    path_dictionary_release_error(other->dictionary, text);
}

/* ---- The life of stages, as clients call it ---------------------------------------------------------------------- */

static void check_process(const scene* other) {
  ovstage_instance_t* stage = (ovstage_instance_t*)&stage;
  ovstage_instance_desc_t desc = {"never"};
  ovstage_test_panic("ovgoCreateInstance");
  CHECK_FAILS(ovstage_create_instance(&desc, &stage), OVSTAGE_ERROR_INTERNAL, TEXT);
  CHECK(stage == NULL);

  stage = new_stage();
  ovstage_test_panic("ovgoDestroyInstance");
  CHECK(ovstage_destroy_instance(stage) == OVSTAGE_OK);
  CHECK(!ovstage_test_panic_is_due());

  ovstage_go_counters_t counters = zero_counters();
  ovstage_test_panic("ovgoProcessCounters");
  other->go->process_counters(&counters);
  CHECK(!ovstage_test_panic_is_due());
}

/* The last stage takes the dictionary along: where that fails, the next stage finds the old one. */
static void check_dictionary_end(void) {
  ovstage_test_panic("ovgoCloseDictionary");
  ovstage_instance_t* stage = new_stage();
  CHECK(ovstage_destroy_instance(stage) == OVSTAGE_OK);
  CHECK(!ovstage_test_panic_is_due());
  scene after;
  if (!open_scene(&after, "after")) return;
  is_in_service(&after);
  close_scene(&after);
}

/* ---- A write, as a client calls it ------------------------------------------------------------------------------- */

static int deletions;

static void count_deletion(DLManagedTensorVersioned* tensor) {
  (void)tensor;
  deletions++;
}

static void check_write(void) {
  scene s;
  if (!open_scene(&s, "broken")) return;
  _Alignas(64) float values[PRIMS] = {1, 2, 3};
  int64_t shape = PRIMS;
  DLManagedTensorVersioned given;
  memset(&given, 0, sizeof given);
  given.version.major = DLPACK_MAJOR_VERSION;
  given.deleter = count_deletion;
  given.dl_tensor = tensor_of(values, type_of(kDLFloat, 32, 1), 1, &shape);
  const DLManagedTensorVersioned* list = &given;
  ovstage_attribute_write_t write = {by_name("a name of its own"), payload_of(NULL, 1)};
  write.data.managed_tensors = &list;
  ovstage_read_handle_t read;
  ovstage_read_group_t group;
  ovx_token_t value = token_of(&s, "value");
  DONE(&s, write_floats(&s, value, 1, 1, 2, 3));
  DONE(&s, seal(&s, 1));
  CHECK(read_first(&s, s.query, value, 1, &read, &group));
  ovstage_test_panic("ovgoWriteAttributes");
  CHECK_REFUSED(ovstage_write_attributes(s.stage, s.query, &write, 1, 2, OVSTAGE_PRIM_MODE_UPSERT),
                OVSTAGE_ERROR_INTERNAL, TEXT);
  CHECK(deletions == 1); /* what was given away is deleted all the same */
  is_poisoned(s.stage, "ovgoWriteAttributes");
  CHECK(((const float*)group.data.tensors->data)[2] == 3); /* what was read before stays readable */
  CHECK(ovstage_destroy_instance(s.stage) == OVSTAGE_OK);
}

int main(int count, char** names) {
  scene other;
  if (count < 2 || !open_scene(&other, "other")) return 1;
  for (int i = 1; i < count; i++) {
    int before = failed;
    if (is_one_of(names[i], OF_THE_DICTIONARY))
      check_dictionary_call(names[i], &other);
    else if (!is_one_of(names[i], OF_THE_PROCESS))
      check_stage_call(names[i]);
    is_in_service(&other);
    if (failed > before) printf("%s: %d checks failed\n", names[i], failed - before);
  }
  check_process(&other);
  is_in_service(&other);
  check_write();
  check_waiter(&other);
  is_in_service(&other);
  close_scene(&other);
  check_dictionary_end();
  printf("%d functions of Go panicked; %d checks, %d failed\n", count - 1, passed + failed, failed);
  return failed > 0;
}
