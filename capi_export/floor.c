/*
 * floor.c - waiting for the write floor.
 *
 * A waiter asks Go where the floors are, and sleeps until a floor has moved. It is inside the stage all the time: a
 * destroy first closes the gate, then wakes the waiters, then waits for them to leave. Its goal is fixed when it comes.
 */
#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "_cgo_export.h"
#include "ring.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* a leaf: held to sleep and to wake, for nothing else */
static pthread_cond_t moved;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint32_t waiters; /* of all stages; an advance without one takes no lock */

static void open_condition(void) {
  pthread_condattr_t attributes;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&moved, &attributes);
  pthread_condattr_destroy(&attributes);
}

void ov_floor_wake(ovstage_context_t* context) {
  __atomic_fetch_add(&context->floor_moves, 1, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&waiters, __ATOMIC_SEQ_CST) == 0) return;
  pthread_mutex_lock(&lock);
  pthread_cond_broadcast(&moved);
  pthread_mutex_unlock(&lock);
}

/* Sleeps until a floor of the stage has moved since `seen` was read; false: it is past the deadline. */
static bool sleep_until_moved(const ovstage_context_t* context, uint64_t seen, const struct timespec* deadline) {
  bool in_time = true;
  __atomic_fetch_add(&waiters, 1, __ATOMIC_SEQ_CST); /* before the look below: an advance that comes later sees it */
  pthread_mutex_lock(&lock);
  while (in_time && __atomic_load_n(&context->floor_moves, __ATOMIC_SEQ_CST) == seen) {
    if (deadline == NULL)
      pthread_cond_wait(&moved, &lock);
    else
      in_time = pthread_cond_timedwait(&moved, &lock, deadline) != ETIMEDOUT;
  }
  pthread_mutex_unlock(&lock);
  __atomic_fetch_sub(&waiters, 1, __ATOMIC_SEQ_CST);
  return in_time;
}

static ovstage_api_status_t ended(const ovstage_context_t* context) {
  if (ov_gate_closed(&context->gate))
    return ov_fail(OVSTAGE_ERROR_INVALID_HANDLE, "the stage was destroyed while a call waited for its write floor");
  return ov_broken(context);
}

ovstage_api_status_t ov_floor_wait(ovstage_context_t* context, const ovx_string_or_token_t* attributes, size_t count,
                                   ovstage_ordinal_t ordinal, ovstage_timeout_ns_t timeout) {
  bool reached = false, late = timeout == 0;
  struct timespec deadline = ov_deadline(timeout);
  pthread_once(&once, open_condition);
  for (;;) {
    uint64_t seen = __atomic_load_n(&context->floor_moves, __ATOMIC_SEQ_CST);
    ovstage_api_status_t status = ended(context);
    if (status == OVSTAGE_OK)
      status = ovgoFloorReached(context, (ovx_string_or_token_t*)attributes, count, ordinal, late, &reached);
    if (status != OVSTAGE_OK || reached) return status;
    late = !sleep_until_moved(context, seen, timeout == OVSTAGE_TIMEOUT_INFINITE ? NULL : &deadline);
  }
}

ovstage_api_status_t ov_floor_moves(const ovstage_context_t* context, uint64_t seen, ovstage_timeout_ns_t timeout,
                                    uint64_t* moves) {
  struct timespec deadline = ov_deadline(timeout);
  pthread_once(&once, open_condition);
  bool in_time =
      timeout != 0 && sleep_until_moved(context, seen, timeout == OVSTAGE_TIMEOUT_INFINITE ? NULL : &deadline);
  *moves = __atomic_load_n(&context->floor_moves, __ATOMIC_SEQ_CST);
  ovstage_api_status_t status = ended(context);
  if (status != OVSTAGE_OK || *moves != seen || in_time) return status;
  return ov_fail(OVSTAGE_ERROR_TIMEOUT, "timeout: no write floor has moved after %llu ns", (unsigned long long)timeout);
}
