/*
 * threads.c - the C of the library that has threads, without Go: the log, the blocks, unasked failures, waits for the
 * floor, the life of instances.
 *
 * A program of its own, for the thread sanitizer: it takes in those files as they are, and answers for Go with stubs.
 * Each part runs several threads that do what clients do at the same time; the sanitizer finds the races, the checks
 * find what has come out wrong. `./build.sh test tsan` runs it.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "_cgo_export.h"
#include "ring.h"

enum { THREADS = 4, ROUNDS = 2000 };

static atomic_int failed;

#define CHECK(condition)                                     \
  do {                                                       \
    if (!(condition)) {                                      \
      printf("%s:%d: %s\n", __func__, __LINE__, #condition); \
      atomic_fetch_add(&failed, 1);                          \
    }                                                        \
  } while (0)

static void run(void* (*body)(void*)) {
  pthread_t threads[THREADS];
  for (intptr_t i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, body, (void*)i) == 0);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

/* ---- What stands in for Go --------------------------------------------------------------------------------------- */

const ovstage_vtable_t ov_vtable;
path_dictionary_instance_t ov_dictionary;
ov_gate ov_dictionary_gate = {1ULL << 63};

static int open_stages; /* under the process lock, as in Go the dictionary is */

ovstage_api_status_t ovgoCreateInstance(ovstage_context_t* context) {
  (void)context;
  open_stages++;
  return OVSTAGE_OK;
}

void ovgoDestroyInstance(ovstage_context_t* context) { (void)context; }

void ovgoCloseDictionary(void) { open_stages = 0; }

static _Atomic uint64_t floor_now;

ovstage_api_status_t ovgoFloorReached(ovstage_context_t* context, ovx_string_or_token_t* attributes, size_t count,
                                      ovstage_ordinal_t ordinal, bool late, bool* reached) {
  (void)context, (void)attributes, (void)count;
  *reached = atomic_load(&floor_now) >= ordinal;
  return !*reached && late ? ov_fail(OVSTAGE_ERROR_TIMEOUT, "late") : OVSTAGE_OK;
}

ovstage_api_status_t ovgoOpFailure(ovstage_context_t* context, uint64_t op) {
  (void)context, (void)op;
  return OVSTAGE_OK;
}

ovstage_api_status_t ovgoForgetOp(ovstage_context_t* context, uint64_t op) {
  (void)context, (void)op;
  return OVSTAGE_OK;
}

/* ---- The log ----------------------------------------------------------------------------------------------------- */

static atomic_long received;

static void receive(ovstage_log_severity_t severity, double timestamp, ovx_string_t message, void* data) {
  (void)severity, (void)timestamp, (void)data;
  if (message.length > 0) atomic_fetch_add(&received, 1);
}

static void* use_log(void* number) {
  static int names[THREADS];
  int* mine = &names[(intptr_t)number];
  for (int n = 0; n < ROUNDS; n++) {
    ov_log(OVSTAGE_LOG_WARNING, "thread %d, round %d", (int)(intptr_t)number, n);
    if (n % 50 == 0) CHECK(ovstage_set_log_callback(OVSTAGE_LOG_VERBOSE, NULL, receive, mine) == OVSTAGE_OK);
    if (n % 70 == 0) CHECK(ovstage_flush_log(OVSTAGE_TIMEOUT_INFINITE) == OVSTAGE_OK);
    if (n % 90 == 0) CHECK(ov_log_wait(ov_log_mark(), OVSTAGE_TIMEOUT_INFINITE) == OVSTAGE_OK);
    if (n % 400 == 0) {
      uint64_t left;
      ov_log_cut(receive, mine, &left);
    }
    if (n % 700 == 0) CHECK(ovstage_set_log_callback(OVSTAGE_LOG_VERBOSE, NULL, NULL, NULL) == OVSTAGE_OK);
  }
  return NULL;
}

static void check_log(void) {
  CHECK(ovstage_initialize(NULL) == OVSTAGE_OK);
  run(use_log);
  CHECK(ovstage_set_log_callback(OVSTAGE_LOG_VERBOSE, NULL, receive, NULL) == OVSTAGE_OK);
  CHECK(ovstage_flush_log(OVSTAGE_TIMEOUT_INFINITE) == OVSTAGE_OK);
  long before = atomic_load(&received);
  for (int i = 0; i < 10; i++) ov_log(OVSTAGE_LOG_ERROR, "%d", i);
  CHECK(ovstage_flush_log(OVSTAGE_TIMEOUT_INFINITE) == OVSTAGE_OK);
  CHECK(atomic_load(&received) == before + 10);
  CHECK(ovstage_set_log_callback(OVSTAGE_LOG_VERBOSE, NULL, NULL, NULL) == OVSTAGE_OK);
  ov_log(OVSTAGE_LOG_ERROR, "nobody hears this");
  CHECK(ovstage_shutdown() == OVSTAGE_OK);
  CHECK(atomic_load(&received) == before + 10);
}

/* ---- Blocks ------------------------------------------------------------------------------------------------------ */

static ov_block* _Atomic handed_on; /* from one thread to whichever takes it */
static atomic_long lent, given_back;

static void take_back(void* owner) {
  free(owner);
  atomic_fetch_add(&given_back, 1);
}

static void* use_blocks(void* number) {
  for (int n = 0; n < ROUNDS; n++) {
    uint64_t size = 64ull << ((n * 7 + (int)(intptr_t)number) % 14);
    ov_block* block =
        n % 3 == 0 ? ov_block_alloc_zeroed(size, OV_PURPOSE_COLUMNS) : ov_block_alloc(size, OV_PURPOSE_MAPS);
    if (block == NULL) return NULL;
    memset(block->data, n, 64);
    ov_block_retain(block);
    ov_block* other = atomic_exchange(&handed_on, block);
    if (other != NULL) CHECK(((unsigned char*)other->data)[0] == ((unsigned char*)other->data)[63]);
    ov_block_release(other);
    if (n % 11 == 0) {
      ov_block* moved = ov_block_detach(block);
      ov_block_release(moved);
    }
    ov_block_release(block);
    if (n % 5 == 0) {
      void* owner = malloc(64);
      ov_block* foreign = ov_block_foreign(owner, 64, OV_PURPOSE_COLUMNS, take_back, owner);
      if (foreign != NULL) atomic_fetch_add(&lent, 1);
      ov_block_release(foreign);
      ov_blocks_give_back();
    }
    if (n % 97 == 0) ov_memory_trim();
    if (n % 101 == 0) {
      ov_memory_guard(1);
      ov_block* guarded = ov_block_alloc(5000, OV_PURPOSE_COLUMNS);
      ov_block_protect(guarded);
      ov_block_unprotect(guarded);
      ov_block_release(guarded);
      ov_memory_guard(0);
    }
    ov_memory_counters_t now;
    ov_memory_counters(&now);
  }
  return NULL;
}

static void check_blocks(void) {
  run(use_blocks);
  ov_block_release(atomic_exchange(&handed_on, NULL));
  ov_blocks_give_back();
  ov_memory_trim();
  ov_memory_counters_t now;
  ov_memory_counters(&now);
  for (int i = 0; i < OV_PURPOSES; i++) CHECK(now.live_blocks[i] == 0 && now.live_bytes[i] == 0);
  CHECK(now.pooled_bytes == 0 && now.pooled_blocks == 0);
  CHECK(atomic_load(&lent) == atomic_load(&given_back));
}

/* ---- Instances, and failures about which nobody asks ------------------------------------------------------------- */

static ovstage_instance_t* shared;

static void* use_instances(void* number) {
  ovstage_instance_desc_t desc = {"of a thread"};
  for (int n = 0; n < ROUNDS / 10; n++) {
    ovstage_instance_t* mine = NULL;
    CHECK(ovstage_create_instance(&desc, &mine) == OVSTAGE_OK);
    if (n % 7 == 0) CHECK(ovstage_initialize(NULL) == OVSTAGE_OK);
    for (int k = 0; k < 5; k++) {
      ovstage_context_t* context = k % 2 == 0 ? mine->context : shared->context;
      ovstage_enqueue_result_t refused = {ov_enter(context, "ovstage_test"), 0};
      CHECK(refused.status == OVSTAGE_OK);
      refused.status = ov_fail(OVSTAGE_ERROR_INVALID_ARGUMENT, "attribute \"a%d\": wrong", (int)(intptr_t)number);
      ov_accept(context, "ovstage_test", refused);
      if (k % 3 == 0) CHECK(ovstage_get_last_error().length > 0);
    }
    ov_unasked_operation(shared->context, (uint64_t)n, OVSTAGE_ERROR_OP_FAILED, "lost", 4);
    CHECK(ov_unasked_count_of(shared->context) > 0 && ov_unasked_count() > 0);
    if (n % 7 == 0) CHECK(ovstage_shutdown() == OVSTAGE_OK);
    CHECK(ovstage_destroy_instance(mine) == OVSTAGE_OK);
  }
  return NULL;
}

/* One thread destroys what others are inside of: they are waited for, and refused from then on. */
static ovstage_instance_t* _Atomic ending;
static atomic_int inside;

static void* enter_what_ends(void* unused) {
  (void)unused;
  ovstage_instance_t* stage = atomic_load(&ending);
  ov_context_retain(stage->context);
  atomic_fetch_add(&inside, 1);
  while (ov_enter(stage->context, "ovstage_test") == OVSTAGE_OK) ov_leave(stage->context, "ovstage_test", OVSTAGE_OK);
  ov_context_release(stage->context);
  return NULL;
}

static void check_ends(void) {
  for (int n = 0; n < 50; n++) {
    ovstage_instance_desc_t desc = {"ends"};
    ovstage_instance_t* stage = NULL;
    pthread_t threads[THREADS];
    CHECK(ovstage_create_instance(&desc, &stage) == OVSTAGE_OK);
    atomic_store(&ending, stage);
    atomic_store(&inside, 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, enter_what_ends, NULL) == 0);
    while (atomic_load(&inside) < THREADS) sched_yield();
    CHECK(ovstage_destroy_instance(stage) == OVSTAGE_OK);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  }
}

/* ---- Waiting for the floor --------------------------------------------------------------------------------------- */

/* Each waits for every ordinal that one of them seals, and none waits for ever: no wake is lost. */
static void* wait_for_floors(void* number) {
  for (uint64_t ordinal = 1; ordinal <= ROUNDS; ordinal++) {
    if ((uint64_t)(intptr_t)number == ordinal % THREADS) {
      while (atomic_load(&floor_now) < ordinal - 1) sched_yield();
      atomic_store(&floor_now, ordinal);
      ov_floor_wake(shared->context);
    }
    CHECK(ov_enter(shared->context, "ovstage_test") == OVSTAGE_OK);
    CHECK(ov_floor_wait(shared->context, NULL, 0, ordinal, OVSTAGE_TIMEOUT_INFINITE) == OVSTAGE_OK);
    uint64_t moves = 0;
    CHECK(ov_floor_moves(shared->context, 0, OVSTAGE_TIMEOUT_INFINITE, &moves) == OVSTAGE_OK && moves > 0);
    ov_leave(shared->context, "ovstage_test", OVSTAGE_OK);
  }
  return NULL;
}

static void* wait_for_the_end(void* unused) {
  (void)unused;
  ovstage_instance_t* stage = atomic_load(&ending);
  ov_context_retain(stage->context);
  CHECK(ov_enter(stage->context, "ovstage_test") == OVSTAGE_OK);
  atomic_fetch_add(&inside, 1);
  CHECK(ov_floor_wait(stage->context, NULL, 0, UINT64_MAX, OVSTAGE_TIMEOUT_INFINITE) == OVSTAGE_ERROR_INVALID_HANDLE);
  ov_leave(stage->context, "ovstage_test", OVSTAGE_OK);
  ov_context_release(stage->context);
  return NULL;
}

static void check_floors(void) {
  run(wait_for_floors);
  for (int n = 0; n < 50; n++) {
    ovstage_instance_desc_t desc = {"ends while it is waited for"};
    ovstage_instance_t* stage = NULL;
    pthread_t threads[THREADS];
    CHECK(ovstage_create_instance(&desc, &stage) == OVSTAGE_OK);
    atomic_store(&ending, stage);
    atomic_store(&inside, 0);
    for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, wait_for_the_end, NULL) == 0);
    while (atomic_load(&inside) < THREADS) sched_yield();
    CHECK(ovstage_destroy_instance(stage) == OVSTAGE_OK);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  }
}

static void check_instances(void) {
  ovstage_instance_desc_t desc = {"of all threads"};
  CHECK(ovstage_create_instance(&desc, &shared) == OVSTAGE_OK);
  CHECK(ovstage_set_log_callback(OVSTAGE_LOG_VERBOSE, NULL, receive, NULL) == OVSTAGE_OK);
  run(use_instances);
  CHECK(open_stages == 1 + THREADS * ROUNDS / 10);
  check_ends();
  check_floors();
  CHECK(ovstage_destroy_instance(shared) == OVSTAGE_OK);
  CHECK(open_stages == 0);
  CHECK(!ov_process_alive());
}

int main(void) {
  check_log();
  check_blocks();
  check_instances();
  printf("%d threads on the log, blocks, instances and floors; %d checks failed\n", THREADS, atomic_load(&failed));
  return atomic_load(&failed) > 0;
}
