/* report.c - what was found, what was called, and which calls are made to fail. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

#define TEST_API __attribute__((visibility("default")))

enum { NAMES = 256 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long races, faults;
static char report[1 << 14];
static struct {
  const char* name; /* of the entry point: a text that stays */
  long count;
} calls[NAMES];
static char failing[64];
static long failing_in; /* calls until then, the failing one included */
static result failing_with = OUT_OF_MEMORY;
static FILE* trace;

bool fake_ready, fake_eager;
int fake_devices = 1;
unsigned fake_seed = 1;
long fake_live_events, fake_live_streams, fake_live_modules;

void fake_lock(void) { (void)pthread_mutex_lock(&lock); }

void fake_unlock(void) { (void)pthread_mutex_unlock(&lock); }

static void count(const char* name) {
  for (int i = 0; i < NAMES; i++) {
    if (calls[i].name == NULL) calls[i].name = name;
    if (strcmp(calls[i].name, name) != 0) continue;
    calls[i].count++;
    break;
  }
  if (trace != NULL) {
    fprintf(trace, "%s\n", name);
    (void)fflush(trace);
  }
}

/* The code that the call was to fail with, once; OK for all others. */
static result injected(const char* name) {
  if (failing[0] == '\0' || strcmp(failing, name) != 0 || --failing_in != 0) return OK;
  failing[0] = '\0';
  return failing_with;
}

result fake_enter_early(const char* name) {
  fake_lock();
  count(name);
  result refused = injected(name);
  if (refused != OK) fake_unlock();
  return refused;
}

result fake_enter(const char* name) {
  result refused = fake_enter_early(name);
  if (refused != OK || fake_ready) return refused;
  fake_unlock();
  return NOT_INITIALIZED;
}

result fake_leave(result code) {
  fake_unlock();
  return code;
}

static void found(long* counter, const char* format, va_list arguments) {
  char line[512];
  (void)vsnprintf(line, sizeof line, format, arguments);
  ++*counter;
  size_t length = strlen(report);
  if (length + strlen(line) + 2 < sizeof report) (void)snprintf(report + length, sizeof report - length, "%s\n", line);
  if (getenv("FAKECUDA_LOUD") != NULL) fprintf(stderr, "fakecuda: %s\n", line);
}

void fake_race(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  found(&races, format, arguments);
  va_end(arguments);
}

void fake_fault(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  found(&faults, format, arguments);
  va_end(arguments);
}

static void fail_later(const char* name, long nth, result code) {
  (void)snprintf(failing, sizeof failing, "%s", name != NULL ? name : "");
  failing_in = nth;
  failing_with = code;
}

void fake_configure(void) {
  const char* value = getenv("FAKECUDA_DEVICES");
  if (value != NULL) fake_devices = atoi(value) < DEVICES ? atoi(value) : DEVICES;
  value = getenv("FAKECUDA_SEED");
  if (value != NULL) fake_seed = (unsigned)atoi(value);
  fake_eager = getenv("FAKECUDA_EAGER") != NULL;
  value = getenv("FAKECUDA_TRACE");
  if (value != NULL && trace == NULL) trace = fopen(value, "w");
  value = getenv("FAKECUDA_FAIL");
  if (value != NULL) {
    char name[64] = "";
    long nth = 1;
    int code = OUT_OF_MEMORY;
    (void)sscanf(value, "%63[^:]:%ld:%d", name, &nth, &code);
    fail_later(name, nth, code);
    (void)unsetenv("FAKECUDA_FAIL"); /* once, also where cuInit is what fails */
  }
}

/* ---- What a test asks -------------------------------------------------------------------------------------------- */

/* Accesses without an order so far. What is queued runs first. */
TEST_API long fakecuda_races(void) {
  fake_lock();
  stream_run_all();
  long number = races;
  fake_unlock();
  return number;
}

/* Illegal accesses, use after free, unknown instructions, and the like. */
TEST_API long fakecuda_faults(void) { return faults; }

/* A line for each, as many as there is room for. */
TEST_API const char* fakecuda_report(void) { return report; }

/* Runs what is queued, forgets what was found, and takes an order of its own from here on. */
TEST_API void fakecuda_begin(unsigned seed) {
  fake_lock();
  stream_run_all();
  races = faults = 0;
  report[0] = '\0';
  fake_seed = seed;
  fake_unlock();
}

/* How many calls of an entry point there were. */
TEST_API long fakecuda_calls(const char* name) {
  fake_lock();
  long number = 0;
  for (int i = 0; i < NAMES && calls[i].name != NULL; i++)
    if (strcmp(calls[i].name, name) == 0) number = calls[i].count;
  fake_unlock();
  return number;
}

/* Live things: 1, 2, 3 blocks of device, pinned and managed memory; 10 events, 11 streams, 12 modules. */
TEST_API long fakecuda_live(int kind) {
  fake_lock();
  long number = kind == 10   ? fake_live_events
                : kind == 11 ? fake_live_streams
                : kind == 12 ? fake_live_modules
                             : memory_live((memory_kind)kind);
  fake_unlock();
  return number;
}

/* The nth call from now on of an entry point answers with the code. NULL: none does. */
TEST_API void fakecuda_fail(const char* name, long nth, int code) {
  fake_lock();
  fail_later(name, nth, code);
  fake_unlock();
}

/* The bytes that lie there now, whatever is queued. */
TEST_API void fakecuda_peek(void* into, address from, size_t size) {
  fake_lock();
  memcpy(into, memory_at(from), size);
  fake_unlock();
}
