/*
 * log.c - messages to the one log callback of the process.
 *
 * Messages are queued and delivered by a thread of their own, so that a slow receiver delays no call and is never
 * called on a thread that holds a lock of the engine. The thread is made with the first callback and then stays.
 * Without a callback nothing is queued and nothing printed; whether there is a receiver is one load.
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "log_rules.h"
#include "ring.h"

/* A receiver that has stopped taking messages must not eat the memory; what does not fit is counted and told. */
enum { LONGEST_QUEUE = 1 << 14 };

enum { NOBODY_LISTENS = INT_MAX };

typedef struct message {
  struct message* next;
  uint64_t number;
  ovstage_log_severity_t severity;
  double timestamp;
  size_t length;
  char text[];
} message;

static int threshold = NOBODY_LISTENS; /* of LOG_CHANNEL; read without the lock */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* for all below */
static pthread_cond_t queued = PTHREAD_COND_INITIALIZER;
static pthread_cond_t delivered; /* on the monotonic clock */
static message *head, **tail = &head;
static uint64_t emitted, done; /* messages so far; the difference is queued or being delivered */
static uint64_t delivering;    /* number of the message that a receiver is at; 0: none is */
static uint64_t dropped;
static uint64_t generation; /* rises with every install */
static ovstage_log_callback_t receiver;
static void* receiver_data;
static bool started;
static pthread_t dispatcher;

__attribute__((constructor)) static void prepare(void) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&delivered, &attributes);
  pthread_condattr_destroy(&attributes);
}

/* ---- Emitting ---------------------------------------------------------------------------------------------------- */

bool ov_log_wanted(ovstage_log_severity_t severity) {
  return (int)severity >= __atomic_load_n(&threshold, __ATOMIC_RELAXED) && !ov_forked;
}

static void append(message* m) {
  m->next = NULL;
  *tail = m;
  tail = &m->next;
  m->number = ++emitted;
  pthread_cond_signal(&queued);
}

static message* compose(ovstage_log_severity_t severity, const char* text, size_t length) {
  message* m = malloc(sizeof *m + sizeof LOG_CHANNEL + length + 2);
  if (m == NULL) return NULL;
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  m->severity = severity;
  m->timestamp = (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
  m->length = (size_t)sprintf(m->text, LOG_CHANNEL ": ") + length;
  memcpy(m->text + m->length - length, text, length);
  m->text[m->length] = '\0';
  return m;
}

void ov_log_text(ovstage_log_severity_t severity, const char* text, size_t length) {
  if (!ov_log_wanted(severity)) return;
  message* m = compose(severity, text, length);
  if (m == NULL) return;
  pthread_mutex_lock(&lock);
  if (receiver == NULL || emitted - done >= LONGEST_QUEUE) {
    dropped += receiver != NULL;
    free(m);
  } else {
    append(m);
  }
  pthread_mutex_unlock(&lock);
}

void ov_log(ovstage_log_severity_t severity, const char* format, ...) {
  if (!ov_log_wanted(severity)) return;
  char text[2048];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  if (length < 0) return;
  ov_log_text(severity, text, (size_t)length < sizeof text ? (size_t)length : sizeof text - 1);
}

/* ---- Delivering -------------------------------------------------------------------------------------------------- */

/* Once there is room again, say what is missing. Called with the lock. */
static void report_dropped(void) {
  if (dropped == 0 || receiver == NULL) return;
  char text[80];
  int length = snprintf(text, sizeof text, "%llu log messages were dropped, the callback is too slow",
                        (unsigned long long)dropped);
  message* m = compose(OVSTAGE_LOG_WARNING, text, (size_t)length);
  dropped = 0;
  if (m != NULL) append(m);
}

/* Called with the lock, and a message at the head. */
static message* take(void) {
  message* m = head;
  if ((head = m->next) == NULL) {
    tail = &head;
    report_dropped();
  }
  delivering = m->number;
  return m;
}

/* Called with the lock: the receiver is through with its message. */
static void finish(message* m) {
  free(m);
  delivering = 0;
  done = head != NULL ? head->number - 1 : emitted;
  pthread_cond_broadcast(&delivered);
}

static message* current; /* what the receiver is at; the dispatcher's own */

static void* dispatch(void* unused) {
  (void)unused;
  pthread_mutex_lock(&lock);
  for (;;) {
    while (head == NULL) pthread_cond_wait(&queued, &lock);
    current = take();
    ovstage_log_callback_t to = receiver;
    void* data = receiver_data;
    pthread_mutex_unlock(&lock);
    if (to != NULL) to(current->severity, current->timestamp, (ovx_string_t){current->text, current->length}, data);
    pthread_mutex_lock(&lock);
    finish(current);
  }
  return NULL;
}

/* Called with the lock. Signals stay with the application's threads: their handlers do not expect this one. */
static bool start(void) {
  if (started) return true;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  started = pthread_create(&dispatcher, NULL, dispatch, NULL) == 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (started) pthread_detach(dispatcher);
  return started;
}

/* Waiting for a delivery inside a delivery would wait for ever. Called with the lock. */
static bool inside_callback(void) { return started && pthread_equal(pthread_self(), dispatcher); }

bool ov_log_next(ovstage_log_callback_t callback, void* user_data, ovstage_log_severity_t* severity, double* timestamp,
                 ovx_string_t* text) {
  pthread_mutex_lock(&lock);
  bool found = inside_callback() && head != NULL && receiver == callback && receiver_data == user_data;
  if (found) {
    finish(current);
    current = take();
    *severity = current->severity;
    *timestamp = current->timestamp;
    *text = (ovx_string_t){current->text, current->length};
  }
  pthread_mutex_unlock(&lock);
  return found;
}

/* ---- Waiting ----------------------------------------------------------------------------------------------------- */

ovstage_api_status_t ov_log_wait(uint64_t mark, ovstage_timeout_ns_t timeout) {
  ovstage_api_status_t status = OVSTAGE_OK;
  struct timespec deadline = ov_deadline(timeout);
  pthread_mutex_lock(&lock);
  if (inside_callback())
    status =
        ov_fail(OVSTAGE_ERROR_INVALID_ARGUMENT, "ovstage_flush_log was called by the log callback, for which it waits");
  while (done < mark && status == OVSTAGE_OK) {
    if (timeout == OVSTAGE_TIMEOUT_INFINITE)
      pthread_cond_wait(&delivered, &lock);
    else if (pthread_cond_timedwait(&delivered, &lock, &deadline) == ETIMEDOUT && done < mark)
      status = OVSTAGE_ERROR_TIMEOUT;
  }
  pthread_mutex_unlock(&lock);
  if (status == OVSTAGE_ERROR_TIMEOUT)
    ov_fail(status, "timeout: log messages were still under way after %llu ns", (unsigned long long)timeout);
  return status;
}

uint64_t ov_log_mark(void) {
  pthread_mutex_lock(&lock);
  uint64_t mark = receiver != NULL ? emitted : done;
  pthread_mutex_unlock(&lock);
  return mark;
}

/* ---- Removing ---------------------------------------------------------------------------------------------------- */

/* Called with the lock. What is queued is dropped. */
static void discard_queue(void) {
  while (head != NULL) {
    message* m = head;
    head = m->next;
    free(m);
  }
  tail = &head;
  dropped = 0;
  if (delivering == 0) done = emitted;
  pthread_cond_broadcast(&delivered);
}

/* Called with the lock. */
static void cut_receiver(void) {
  __atomic_store_n(&threshold, NOBODY_LISTENS, __ATOMIC_RELAXED);
  receiver = NULL;
  receiver_data = NULL;
  discard_queue();
}

uint64_t ov_log_cut(ovstage_log_callback_t callback, void* user_data, uint64_t* left) {
  pthread_mutex_lock(&lock);
  *left = 0;
  if (receiver == callback && receiver_data == user_data) {
    *left = emitted - done;
    cut_receiver();
  }
  uint64_t mark = delivering;
  pthread_mutex_unlock(&lock);
  return mark;
}

/* Called with the lock. Delivers what was under way when it was called, and no more. When it returns the callback will
 * never be called again, whatever others log or install meanwhile: neither moves what it waits for. */
static void remove_receiver(void) {
  __atomic_store_n(&threshold, NOBODY_LISTENS, __ATOMIC_RELAXED);
  uint64_t removed = generation, mark = emitted;
  if (!inside_callback())
    while (done < mark) pthread_cond_wait(&delivered, &lock);
  if (generation == removed) cut_receiver(); /* else another thread has installed a new one meanwhile */
  mark = delivering;
  if (!inside_callback())
    while (done < mark) pthread_cond_wait(&delivered, &lock);
}

uint64_t ov_log_generation(void) {
  pthread_mutex_lock(&lock);
  uint64_t now = generation;
  pthread_mutex_unlock(&lock);
  return now;
}

void ov_log_remove_if(uint64_t installed) {
  pthread_mutex_lock(&lock);
  if (receiver != NULL && generation == installed) remove_receiver();
  pthread_mutex_unlock(&lock);
}

/* ---- Installing -------------------------------------------------------------------------------------------------- */

ovstage_api_status_t ov_log_install(ovstage_log_severity_t severity, const ovx_string_t* filter,
                                    ovstage_log_callback_t callback, void* user_data) {
  int level;
  char text[512];
  if (filter != NULL && ovx_string_has_null_data(filter))
    return ov_fail(OVSTAGE_ERROR_INVALID_ARGUMENT, "channel_filter: ptr is NULL with length %zu", filter->length);
  ovx_string_t rules = filter != NULL && filter->ptr != NULL ? *filter : (ovx_string_t){"", 0};
  if (!log_threshold((int)severity, rules, &level, text, sizeof text))
    return ov_fail_text(OVSTAGE_ERROR_INVALID_ARGUMENT, text, strlen(text));
  ovstage_api_status_t status = OVSTAGE_OK;
  pthread_mutex_lock(&lock);
  if (callback == NULL) {
    if (receiver != NULL) remove_receiver();
  } else if (!start()) {
    status = ov_fail(OVSTAGE_ERROR_OUT_OF_MEMORY, "the thread that calls the log callback could not be created");
  } else {
    generation++;
    receiver = callback;
    receiver_data = user_data;
    __atomic_store_n(&threshold, level, __ATOMIC_RELAXED);
  }
  pthread_mutex_unlock(&lock);
  return status;
}
