/*
 * gate.c - counting the calls inside an object, so that its end can wait for them.
 *
 * Entering and leaving are one atomic addition each. Nothing of the object is touched after the count has gone down:
 * the closer may be freeing it by then. What a leaver has to tell the closer goes through a lock that belongs to no
 * object.
 */
#include <pthread.h>

#include "ring.h"

static const uint64_t CLOSED = 1ULL << 63;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t emptied = PTHREAD_COND_INITIALIZER;

bool ov_gate_enter(ov_gate* gate) {
  if (!(__atomic_add_fetch(&gate->word, 1, __ATOMIC_ACQUIRE) & CLOSED)) return true;
  ov_gate_leave(gate);
  return false;
}

void ov_gate_leave(ov_gate* gate) {
  if (__atomic_sub_fetch(&gate->word, 1, __ATOMIC_RELEASE) != CLOSED) return;
  pthread_mutex_lock(&lock);
  pthread_cond_broadcast(&emptied);
  pthread_mutex_unlock(&lock);
}

bool ov_gate_closed(const ov_gate* gate) { return (__atomic_load_n(&gate->word, __ATOMIC_ACQUIRE) & CLOSED) != 0; }

bool ov_gate_shut(ov_gate* gate) { return !(__atomic_fetch_or(&gate->word, CLOSED, __ATOMIC_ACQ_REL) & CLOSED); }

void ov_gate_drain(ov_gate* gate) {
  pthread_mutex_lock(&lock);
  while (__atomic_load_n(&gate->word, __ATOMIC_ACQUIRE) != CLOSED) pthread_cond_wait(&emptied, &lock);
  pthread_mutex_unlock(&lock);
}

/* Not a store: callers that were turned away may still be on their way out, and each takes its one away again. */
void ov_gate_open(ov_gate* gate) { __atomic_fetch_and(&gate->word, ~CLOSED, __ATOMIC_RELEASE); }
