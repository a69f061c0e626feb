/*
 * unasked.c - failures that a client never asks about: one line in the log, and a counter.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "scene.h"

/* ---- What the log says ------------------------------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int lines;
static char newest[2048];

static void take(ovstage_log_severity_t severity, double timestamp, ovx_string_t message, void* user_data) {
  (void)timestamp;
  (void)user_data;
  pthread_mutex_lock(&lock);
  if (severity == OVSTAGE_LOG_WARNING) {
    lines++;
    snprintf(newest, sizeof newest, "%.*s", (int)message.length, message.ptr);
  }
  pthread_mutex_unlock(&lock);
}

/* Wants so many lines since the last question, the newest of them with this part. */
static void logged(int count, const char* part, const char* function, int line) {
  check(ovstage_flush_log(5000000000ULL) == OVSTAGE_OK, "the log is delivered", function, line);
  pthread_mutex_lock(&lock);
  check(lines == count, "as many lines in the log", function, line);
  check(count == 0 || strstr(newest, part) != NULL, part, function, line);
  if (lines != count || (count > 0 && strstr(newest, part) == NULL)) printf("    %d, the last: %s\n", lines, newest);
  lines = 0;
  pthread_mutex_unlock(&lock);
}

#define LOGGED(count, part) logged((count), (part), __func__, __LINE__)

static bool open_listening(scene* s, const char* name) {
  lines = 0;
  return open_scene(s, name) && CHECK(ovstage_set_log_callback(OVSTAGE_LOG_WARNING, NULL, take, NULL) == OVSTAGE_OK);
}

static void close_listening(scene* s) {
  close_scene(s);
  ovstage_set_log_callback(OVSTAGE_LOG_NONE, NULL, NULL, NULL);
}

static uint64_t unasked(const scene* s) {
  ovstage_go_counters_t counters = zero_counters();
  CHECK(s->go->counters(s->stage, &counters) == OVSTAGE_OK);
  return counters.refused_unasked;
}

/* Three rows of an attribute that is derived. */
static ovstage_api_status_t refused_write(const scene* s, const char* attribute) {
  return write_floats(s, token_of(s, attribute), 1, 1, 2, 3).status;
}

/* ---- Refusals ---------------------------------------------------------------------------------------------------- */

static void check_refusal(void) {
  scene s;
  if (!open_listening(&s, "unasked")) return;
  CHECK(refused_write(&s, "usd-path") == OVSTAGE_ERROR_NOT_SUPPORTED);
  CHECK(unasked(&s) == 1); /* the next call: the text was not read */
  LOGGED(1, "ovstage_write_attribute was refused with status 6, and nobody asked why: attribute \"usd-path\"");

  CHECK(refused_write(&s, "usd-path") == OVSTAGE_ERROR_NOT_SUPPORTED);
  CHECK(ovstage_get_last_error().length > 0); /* asked */
  CHECK(unasked(&s) == 1);
  LOGGED(0, "");

  for (int i = 0; i < 100; i++) refused_write(&s, "usd-path"); /* of a kind that was told */
  for (int i = 0; i < 100; i++) refused_write(&s, "usd-parent");
  CHECK(unasked(&s) == 201);
  LOGGED(1, "usd-parent");
  CHECK(ovstage_release_read(s.stage, 12345).status == OVSTAGE_ERROR_INVALID_HANDLE); /* nothing is lost by it */
  CHECK(unasked(&s) == 201);
  close_listening(&s);
}

static void* fail_and_end(void* argument) {
  refused_write((const scene*)argument, "usd-children");
  return NULL;
}

static void check_thread_that_ends(void) {
  scene s;
  if (!open_listening(&s, "unasked thread")) return;
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, fail_and_end, &s) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  CHECK(unasked(&s) == 1);
  LOGGED(1, "usd-children");
  close_listening(&s);
}

/* ---- Operations that failed -------------------------------------------------------------------------------------- */

static ovstage_op_id_t failed_clone(const scene* s) {
  ovx_string_t target = view("/Copy");
  ovstage_enqueue_result_t result = ovstage_clone(s->stage, view("/No"), &target, 1, 1);
  CHECK(result.status == OVSTAGE_OK);
  return result.op_index;
}

static void check_failed_operation(void) {
  scene s;
  if (!open_listening(&s, "unasked operation")) return;
  ovstage_op_wait_result_t result;
  ovstage_op_id_t op = failed_clone(&s);
  CHECK(ovstage_wait_op(s.stage, op, OVSTAGE_TIMEOUT_INFINITE, &result) == OVSTAGE_OK && result.error_op_id_count == 1);
  CHECK(ovstage_release_op(s.stage, op) == OVSTAGE_OK);
  op = failed_clone(&s);
  CHECK(s.go->op_status(s.stage, op) == OVSTAGE_ERROR_OP_FAILED);
  CHECK(ovstage_release_op(s.stage, op) == OVSTAGE_OK);
  CHECK(unasked(&s) == 0);
  LOGGED(0, "");

  CHECK(ovstage_release_op(s.stage, failed_clone(&s)) == OVSTAGE_OK);
  CHECK(unasked(&s) == 1);
  LOGGED(1, "failed with status 12, and nobody asked why: ");
  close_listening(&s);
}

static void check_stage_that_ends(void) {
  scene s;
  if (!open_listening(&s, "unasked end")) return;
  scene other;
  if (!open_scene(&other, "keeps the process alive")) return;
  failed_clone(&s);
  CHECK(unasked(&s) == 0);
  close_scene(&s);
  LOGGED(1, "failed with status 12");
  close_listening(&other);
}

const check_group unasked_groups[] = {
    {"unasked: a refusal", check_refusal},
    {"unasked: a thread that ends", check_thread_that_ends},
    {"unasked: a failed operation", check_failed_operation},
    {"unasked: a stage that ends", check_stage_that_ends},
};
const size_t unasked_group_count = sizeof unasked_groups / sizeof unasked_groups[0];
