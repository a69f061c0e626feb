/*
 * unasked.c - operations that failed, and about which the caller never asked.
 *
 * Each is counted. The first of its kind - call, attribute and status - is told in the log, at WARNING; of those that
 * follow one a second, with the number held back since. A binding with warnings of its own (Python) decides itself what
 * asking is, comes in through tell_unasked, and warns when it is told to. For C, a refusal has been asked about when
 * its text was read before the thread's next call, and a failed operation when it was waited for before its release.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ring.h"

enum {
  MOST_KINDS = 1024, /* beyond so many, another kind is held back like one that repeats */
  LONGEST = 1536     /* of a text */
};

static const uint64_t SECOND = 1000000000;

/* Guards the records of all contexts, which only failures touch. A leaf. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t all;

uint64_t ov_unasked_count(void) { return __atomic_load_n(&all, __ATOMIC_RELAXED); }

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

/* ---- Kinds ------------------------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t hash, const char* bytes, size_t length) { /* FNV-1a, and where the text ends */
  for (size_t i = 0; i < length; i++) hash = (hash ^ (uint8_t)bytes[i]) * 1099511628211u;
  return (hash ^ 0xff) * 1099511628211u;
}

/* The attribute that a refusal is about, where the caller does not say: texts begin with its name. */
static ovx_string_t named_in(ovx_string_t text) {
  static const char start[] = "attribute \"";
  size_t skipped = sizeof start - 1;
  if (text.length <= skipped || memcmp(text.ptr, start, skipped) != 0) return (ovx_string_t){NULL, 0};
  const char* name = text.ptr + skipped;
  const char* end = memchr(name, '"', text.length - skipped);
  return (ovx_string_t){name, end != NULL ? (size_t)(end - name) : text.length - skipped};
}

static uint64_t kind_of(const ovstage_go_unasked_t* failure) {
  ovx_string_t name = failure->attribute.length > 0 ? failure->attribute : named_in(failure->reason);
  uint64_t hash = mix(14695981039346656037u, failure->call.ptr, failure->call.length);
  hash = mix(hash, name.ptr, name.length);
  return mix(hash, (const char*)&failure->status, sizeof failure->status);
}

/* Whether a kind is met for the first time; it is noted. */
static bool is_new(ov_unasked* record, uint64_t kind) {
  for (uint32_t i = 0; i < record->kinds; i++)
    if (record->seen[i] == kind) return false;
  if (record->kinds == MOST_KINDS) return false;
  if (record->seen == NULL) record->seen = malloc(MOST_KINDS * sizeof *record->seen);
  if (record->seen != NULL) record->seen[record->kinds++] = kind;
  return record->seen != NULL;
}

/* ---- Telling ----------------------------------------------------------------------------------------------------- */

/* Counts one. True: it is to be told now, with the number of those that were held back. */
static bool note(ovstage_context_t* context, const ovstage_go_unasked_t* failure, uint64_t* held_back) {
  ov_unasked* record = &context->unasked;
  uint64_t kind = kind_of(failure);
  __atomic_add_fetch(&all, 1, __ATOMIC_RELAXED);
  pthread_mutex_lock(&lock);
  record->count++;
  uint64_t at = now();
  bool tell = is_new(record, kind) || at - record->told >= SECOND;
  *held_back = tell ? record->held : 0;
  record->held = tell ? 0 : record->held + 1;
  if (tell) record->told = at;
  pthread_mutex_unlock(&lock);
  return tell;
}

uint64_t ov_unasked_count_of(ovstage_context_t* context) {
  pthread_mutex_lock(&lock);
  uint64_t count = context->unasked.count;
  pthread_mutex_unlock(&lock);
  return count;
}

void ov_unasked_close(ov_unasked* record) { free(record->seen); }

int32_t ov_unasked_tell(ovstage_context_t* context, const ovstage_go_unasked_t* failure, uint64_t* held_back) {
  uint64_t held = 0;
  bool told = note(context, failure, &held);
  if (told && ov_log_wanted(OVSTAGE_LOG_WARNING)) {
    char more[48] = "";
    if (held > 0) snprintf(more, sizeof more, " (%" PRIu64 " more were held back)", held);
    int length = (int)(failure->text.length < LONGEST ? failure->text.length : LONGEST);
    ov_log(OVSTAGE_LOG_WARNING, "%.*s%s", length, failure->text.ptr, more);
  }
  if (held_back != NULL) *held_back = held;
  return told;
}

/* ---- What C clients leave unasked -------------------------------------------------------------------------------- */

/* `kind` is the call without what differs from one to the next. */
static void tell(ovstage_context_t* context, const char* kind, const char* call, ovstage_api_status_t status,
                 const char* how, ovx_string_t reason) {
  char text[LONGEST];
  int length = snprintf(text, sizeof text, "%s %s with status %d, and nobody asked why: %.*s", call, how, (int)status,
                        (int)(reason.length < LONGEST ? reason.length : LONGEST), reason.ptr);
  if (length >= LONGEST) length = LONGEST - 1;
  ovstage_go_unasked_t failure = {.struct_size = sizeof failure,
                                  .status = status,
                                  .call = {kind, strlen(kind)},
                                  .reason = reason,
                                  .text = {text, (size_t)length}};
  ov_unasked_tell(context, &failure, NULL);
}

void ov_unasked_operation(ovstage_context_t* context, ovstage_op_id_t op, ovstage_api_status_t status, const char* text,
                          size_t length) {
  char call[48];
  snprintf(call, sizeof call, "operation %" PRIu64, op);
  tell(context, "operation", call, status, "failed", (ovx_string_t){text, length});
}

/* ---- Refusals whose text is not read ----------------------------------------------------------------------------- */

void ov_unread_begin(ov_thread* thread, ovstage_context_t* context, const char* call, ovstage_api_status_t status) {
  static const char release[] = "ovstage_release"; /* nothing is lost where a release is refused */
  if (ov_forked || strncmp(call, release, sizeof release - 1) == 0) return;
  ov_context_retain(context);
  thread->unread = (ov_unread){context, call, status};
}

void ov_unread_end(ov_thread* thread, bool read) {
  ov_unread unread = thread->unread;
  thread->unread = (ov_unread){NULL, NULL, OVSTAGE_OK};
  if (ov_forked) return; /* the lock may be taken for good */
  if (!read) tell(unread.context, unread.call, unread.call, unread.status, "was refused", ov_text_view(&thread->error));
  ov_context_release(unread.context);
}
