/*
 * call.c - how a call begins and ends: the fork guard, the way into a stage, and the texts of the calling thread.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ring.h"

uint32_t ov_forked;

static pthread_key_t thread_end;

/* Go's own thread-local word makes all of the library's count as static TLS, which is scarce: so it is one pointer, and
 * as it is static anyway, it may as well be reached without a call. */
static __thread ov_thread* here __attribute__((tls_model("initial-exec")));

static void in_forked_child(void) { ov_forked = 1; }

static void free_texts(ov_thread* thread) {
  if (thread->unread.context != NULL) ov_unread_end(thread, false);
  free(thread->error.bytes);
  free(thread->population_error.bytes);
  free(thread->op_error.bytes);
}

static void end_thread(void* memory) {
  free_texts(memory);
  here = NULL; /* a later destructor of this thread may call in again, and then starts afresh */
  free(memory);
}

__attribute__((constructor)) static void prepare(void) {
  pthread_key_create(&thread_end, end_thread);
  pthread_atfork(NULL, NULL, in_forked_child);
}

ov_thread* ov_thread_here(void) {
  if (here == NULL && (here = calloc(1, sizeof *here)) != NULL) pthread_setspecific(thread_end, here);
  return here;
}

/* ---- Texts ------------------------------------------------------------------------------------------------------- */

void ov_text_set(ov_text* text, const char* bytes, size_t length) {
  if (length + 1 > text->capacity) {
    size_t capacity = length + 1 < 256 ? 256 : length + 1;
    char* grown = realloc(text->bytes, capacity);
    if (grown == NULL) { /* a shortened text is better than none */
      if (text->capacity == 0) return;
      length = text->capacity - 1;
    } else {
      text->bytes = grown;
      text->capacity = capacity;
    }
  }
  memcpy(text->bytes, bytes, length);
  text->bytes[length] = '\0';
  text->length = length;
}

void ov_text_clear(ov_text* text) { text->length = 0; }

ovx_string_t ov_text_view(const ov_text* text) {
  return text->length == 0 ? (ovx_string_t){NULL, 0} : (ovx_string_t){text->bytes, text->length};
}

ovx_string_t ovstage_get_last_error(void) {
  if (here != NULL && here->unread.context != NULL) ov_unread_end(here, true);
  return here == NULL ? (ovx_string_t){NULL, 0} : ov_text_view(&here->error);
}

ovstage_api_status_t ov_fail_text(ovstage_api_status_t status, const char* text, size_t length) {
  ov_thread* thread = ov_thread_here();
  if (thread != NULL) ov_text_set(&thread->error, text, length);
  return status;
}

ovstage_api_status_t ov_fail(ovstage_api_status_t status, const char* format, ...) {
  char text[1024]; /* only names, numbers and fixed words are put in here; longer texts come from Go */
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (length < 0) length = 0;
  if ((size_t)length >= sizeof text) length = sizeof text - 1;
  return ov_fail_text(status, text, (size_t)length);
}

ovstage_api_status_t ov_null(const char* argument) {
  return ov_fail(OVSTAGE_ERROR_INVALID_ARGUMENT, "%s must not be NULL", argument);
}

ovstage_api_status_t ov_too_many(const char* argument, size_t count) {
  return ov_fail(OVSTAGE_ERROR_INVALID_ARGUMENT, "%s is %zu, which is more than memory holds", argument, count);
}

/* ---- Memory for Go ----------------------------------------------------------------------------------------------- */

void* ov_alloc(size_t size) { return malloc(size > 0 ? size : 1); }

/* ---- In ---------------------------------------------------------------------------------------------------------- */

const char* ov_forked_text(void) {
  return "the engine does not work in a forked child process, because its threads stayed in the parent: start worker "
         "processes with \"spawn\" or \"forkserver\" instead of \"fork\"";
}

ovstage_api_status_t ov_begin(const char* symbol) {
  if (ov_forked) return ov_fail(OVSTAGE_ERROR_NOT_SUPPORTED, "%s: %s", symbol, ov_forked_text());
  if (here != NULL) {
    if (here->unread.context != NULL) ov_unread_end(here, false);
    ov_text_clear(&here->error);
  }
  return OVSTAGE_OK;
}

ovstage_api_status_t ov_enter(ovstage_context_t* context, const char* symbol) {
  ovstage_api_status_t status = ov_begin(symbol);
  if (status != OVSTAGE_OK) return status;
  if (context == NULL) return ov_null("instance");
  if (!ov_gate_enter(&context->gate))
    return ov_fail(OVSTAGE_ERROR_INVALID_HANDLE, "%s called after the stage was destroyed", symbol);
  status = ov_broken(context);
  if (status != OVSTAGE_OK) ov_gate_leave(&context->gate);
  return status;
}

ovstage_api_status_t ov_broken(const ovstage_context_t* context) {
  if (!__atomic_load_n(&context->poisoned, __ATOMIC_ACQUIRE)) return OVSTAGE_OK;
  const char* text = context->poison != NULL ? context->poison : "the stage broke down for want of memory";
  return ov_fail_text(OVSTAGE_ERROR_INTERNAL, text, strlen(text));
}

ovstage_api_status_t ov_enter_instance(ovstage_instance_t* instance, const char* symbol) {
  return ov_enter(instance == NULL ? NULL : instance->context, symbol);
}

struct timespec ov_deadline(ovstage_timeout_ns_t timeout) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  uint64_t nanoseconds = (uint64_t)at.tv_nsec + timeout % 1000000000;
  at.tv_sec += (time_t)(timeout / 1000000000 + nanoseconds / 1000000000);
  at.tv_nsec = (long)(nanoseconds % 1000000000);
  return at;
}

/* ---- Out --------------------------------------------------------------------------------------------------------- */

static void log_failure(ovstage_log_severity_t severity, const char* symbol, const char* what) {
  if (ov_log_wanted(severity) && here != NULL && here->error.length > 0)
    ov_log(severity, "%s %s: %s", symbol, what, here->error.bytes);
}

ov_thread ov_texts_put_aside(void) {
  ov_thread texts = {0};
  if (here == NULL) return texts;
  texts = *here;
  *here = (ov_thread){0};
  return texts;
}

void ov_texts_bring_back(ov_thread texts) {
  if (here == NULL) return; /* nor was it when they were put aside */
  free_texts(here);
  *here = texts;
}

/* Apart, so that the way out of a call stays short. */
static void __attribute__((noinline, cold)) give_back_what_is_due(void) {
  ov_thread texts = ov_texts_put_aside();
  ov_blocks_give_back();
  ov_texts_bring_back(texts);
}

void ov_give_back(void) {
  if (__atomic_load_n(&ov_blocks_due, __ATOMIC_RELAXED) != NULL) give_back_what_is_due();
}

ovstage_api_status_t ov_leave(ovstage_context_t* context, const char* symbol, ovstage_api_status_t status) {
  ov_gate_leave(&context->gate);
  ov_give_back();
  if (status != OVSTAGE_OK && status != OVSTAGE_ERROR_END_OF_ITERATION && status != OVSTAGE_ERROR_TIMEOUT)
    log_failure(OVSTAGE_LOG_VERBOSE, symbol, "failed");
  return status;
}

ovstage_enqueue_result_t ov_accept(ovstage_context_t* context, const char* symbol, ovstage_enqueue_result_t result) {
  if (result.status == OVSTAGE_OK)
    ov_op_log_accept(&context->ops, result.op_index);
  else
    result.op_index = OVSTAGE_INVALID_OP_ID;
  if (result.status != OVSTAGE_OK && here != NULL) ov_unread_begin(here, context, symbol, result.status);
  ov_gate_leave(&context->gate);
  ov_give_back();
  if (result.status != OVSTAGE_OK) log_failure(OVSTAGE_LOG_INFO, symbol, "was rejected");
  return result;
}

/* ---- The context ------------------------------------------------------------------------------------------------- */

void ov_context_retain(ovstage_context_t* context) { __atomic_add_fetch(&context->references, 1, __ATOMIC_RELAXED); }

void ov_context_release(ovstage_context_t* context) {
  if (__atomic_sub_fetch(&context->references, 1, __ATOMIC_ACQ_REL) != 0) return;
  ov_op_log_close(&context->ops);
  ov_unasked_close(&context->unasked);
  free(context->poison);
  free(context->name);
  free(context);
}

void ov_context_poison(ovstage_context_t* context, const char* text, size_t length) {
  char* copy = strndup(text, length);
  char* none = NULL;
  if (!__atomic_compare_exchange_n(&context->poison, &none, copy, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    free(copy);
  __atomic_store_n(&context->poisoned, 1, __ATOMIC_RELEASE);
  ov_floor_wake(context);
}
