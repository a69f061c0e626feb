/* stream.c - what is queued runs late, and in any order that nothing forbids. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fake.h"

enum { WAITS = 64, EARLY_POLLS = 2, STACK = 64 };

/* That a stream has done its first so many. */
typedef struct {
  stream* of;
  uint64_t number;
} point;

typedef struct queued {
  operation what;
  point after[WAITS];
  int waits;
  uint64_t number; /* of its stream */
  uint32_t epoch;
  vector knows;
  struct queued* next;
} queued;

struct stream {
  context* of;
  unsigned flags;
  bool dead;
  int agent;
  queued *first, *last;
  uint64_t issued, done;
  vector knows;
  uint64_t id;
  unsigned polls;
  stream* next;
};

struct event {
  bool dead;
  context* of;
  bool recorded;
  point at;
  vector knows;
  unsigned polls;
};

context fake_contexts[DEVICES];
static stream* streams;
static uint64_t last_id;
static stream legacy[DEVICES];               /* one for each context */
static __thread stream* per_thread[DEVICES]; /* cudaStreamPerThread: one for each thread, too */
static __thread context* stack[STACK];
static __thread int depth;

/* ---- Contexts ---------------------------------------------------------------------------------------------------- */

context** context_top(void) {
  static __thread context* none;
  none = NULL;
  return depth > 0 ? &stack[depth - 1] : &none;
}

result context_push(context* pushed) {
  if (depth == STACK || pushed == NULL) return INVALID_CONTEXT;
  stack[depth++] = pushed;
  return OK;
}

context* context_pop(void) { return depth > 0 ? stack[--depth] : NULL; }

/* ---- Running ----------------------------------------------------------------------------------------------------- */

static void run(stream* on, queued* one) {
  operation* what = &one->what;
  toucher by = {on->agent, one->epoch, one->knows, what->what, on->of->device};
  toucher driver = by;
  driver.device = -1;
  switch (what->kind) {
    case COPY:
      if (what->staged == NULL) memory_touch(what->from, what->size, false, &driver);
      memory_touch(what->to, what->size, true, &driver);
      memmove(memory_at(what->to), what->staged != NULL ? what->staged : memory_at(what->from), what->size);
      free(what->staged);
      break;
    case FILL:
      memory_touch(what->to, what->size, true, &by);
      memset(memory_at(what->to), what->value, what->size);
      break;
    case LAUNCH:
      (void)ptx_run(what->entry, what->arguments, what->blocks, what->threads, &by);
      break;
    case CALL:
      fake_unlock();
      what->call(what->argument);
      fake_lock();
      break;
    case FREE: {
      block* b = memory_find(what->to);
      if (b == NULL) break;
      memory_touch(b->start, b->size, true, &by);
      b->state = FREED;
      break;
    }
    case NOTHING:
      break;
  }
}

static bool is_due(const queued* one) {
  for (int i = 0; i < one->waits; i++)
    if (one->after[i].of->done < one->after[i].number) return false;
  return true;
}

/* Runs one of what may run next, whichever the seed says; false where nothing may. */
static bool step(void) {
  static stream* due[AGENTS];
  unsigned count = 0;
  for (stream* s = streams; s != NULL; s = s->next)
    if (s->first != NULL && is_due(s->first)) due[count++] = s;
  if (count == 0) return false;
  fake_seed = fake_seed * 1103515245u + 12345u;
  stream* chosen = due[(fake_seed >> 16) % count];
  queued* one = chosen->first;
  run(chosen, one);
  chosen->first = one->next;
  if (chosen->first == NULL) chosen->last = NULL;
  chosen->done = one->number;
  free(one);
  return true;
}

static void reach(point at) {
  while (at.of->done < at.number) {
    if (step()) continue;
    fprintf(stderr, "fakecuda: streams wait for each other\n");
    abort();
  }
}

void stream_run_all(void) {
  while (step()) continue;
}

/* A host thread has waited for what is known there. */
static void learn(const vector knows) {
  clock_join(clock_of_host(), knows);
  memory_unwall();
}

/* ---- Streams ----------------------------------------------------------------------------------------------------- */

static void enlist(stream* made, context* of, unsigned flags) {
  made->of = of;
  made->flags = flags;
  made->agent = clock_agent();
  made->id = ++last_id;
  made->next = streams;
  streams = made;
}

stream* stream_make(context* of, unsigned flags) {
  stream* made = calloc(1, sizeof *made);
  if (made == NULL) abort();
  enlist(made, of, flags);
  fake_live_streams++;
  return made;
}

stream* stream_named(stream* handle) {
  uintptr_t number = (uintptr_t)handle;
  context* of = *context_top();
  if (number > 2) {
    for (stream* s = streams; s != NULL; s = s->next)
      if (s == handle) return s->dead ? NULL : s;
    return NULL;
  }
  if (of == NULL) return NULL;
  if (number == 2) {
    stream** own = &per_thread[of->device];
    if (*own == NULL) {
      *own = stream_make(of, 0);
      fake_live_streams--; /* the client does not destroy it */
    }
    return *own;
  }
  stream* s = &legacy[of->device];
  if (s->of == NULL) enlist(s, of, 0);
  return s;
}

result stream_destroy(stream* handle) {
  stream* s = (uintptr_t)handle > 2 ? stream_named(handle) : NULL;
  if (s == NULL) return INVALID_HANDLE;
  s->dead = true; /* what it was given still runs; its memory stays, so that a stale handle is told from a live one */
  fake_live_streams--;
  return OK;
}

static void wait_for(queued* one, point at) {
  if (at.of->done >= at.number) return;
  for (int i = 0; i < one->waits; i++) {
    if (one->after[i].of != at.of) continue;
    if (one->after[i].number < at.number) one->after[i].number = at.number;
    return;
  }
  if (one->waits == WAITS) abort();
  one->after[one->waits++] = at;
}

/* The legacy stream and the blocking streams of a context wait for each other. */
static void wait_for_legacy(stream* to, queued* one) {
  stream* l = &legacy[to->of->device];
  if (to == l) {
    for (stream* s = streams; s != NULL; s = s->next) {
      if (s == l || s->of != to->of || (s->flags & NON_BLOCKING) != 0) continue;
      clock_join(to->knows, s->knows);
      wait_for(one, (point){s, s->issued});
    }
  } else if ((to->flags & NON_BLOCKING) == 0 && l->of != NULL) {
    clock_join(to->knows, l->knows);
    wait_for(one, (point){l, l->issued});
  }
}

static queued* prepare(stream* to, operation what) {
  queued* one = calloc(1, sizeof *one);
  if (one == NULL) abort();
  one->what = what;
  wait_for_legacy(to, one);
  clock_join(to->knows, clock_of_host());
  one->epoch = ++to->knows[to->agent];
  memcpy(one->knows, to->knows, sizeof(vector));
  one->number = ++to->issued;
  clock_tick_host();
  return one;
}

static void append(stream* to, queued* one) {
  if (to->last != NULL) to->last->next = one;
  if (to->first == NULL) to->first = one;
  to->last = one;
  to->polls = 0;
  if (one->what.kind == COPY) {
    toucher by = {to->agent, one->epoch, one->knows, one->what.what, -1};
    memory_wall(one->what.to, PROT_NONE, &by);
    memory_wall(one->what.from, PROT_READ, &by);
  }
  if (fake_eager) stream_run_all();
}

result stream_push(stream* to, operation what) {
  append(to, prepare(to, what));
  return OK;
}

void stream_wait(stream* which) {
  reach((point){which, which->issued});
  learn(which->knows);
}

bool stream_poll(stream* which) {
  if (which->done < which->issued && which->polls++ >= EARLY_POLLS) (void)step();
  if (which->done < which->issued) return false;
  learn(which->knows);
  return true;
}

void stream_wait_all(context* of) {
  stream_run_all();
  for (stream* s = streams; s != NULL; s = s->next)
    if (of == NULL || s->of == of) learn(s->knows);
}

context* stream_context(const stream* of) { return of->of; }
unsigned stream_flags(const stream* of) { return of->flags; }
uint64_t stream_id(const stream* of) { return of->id; }

void stream_touch(stream* by, address at, size_t size, const char* what) {
  clock_join(by->knows, clock_of_host());
  uint32_t epoch = ++by->knows[by->agent];
  memory_touch(at, size, true, &(toucher){by->agent, epoch, by->knows, what, -1});
}

/* ---- Events ------------------------------------------------------------------------------------------------------ */

event* event_make(context* of) {
  event* made = calloc(1, sizeof *made);
  if (made == NULL) abort();
  made->of = of;
  fake_live_events++;
  return made;
}

bool event_alive(const event* which) { return which != NULL && !which->dead; }

result event_destroy(event* which) {
  which->dead = true;
  fake_live_events--;
  return OK;
}

void event_record(event* which, stream* on) {
  (void)stream_push(on, (operation){.kind = NOTHING, .what = "cuEventRecord"});
  which->recorded = true;
  which->at = (point){on, on->issued};
  memcpy(which->knows, on->knows, sizeof(vector));
  which->polls = 0;
}

void event_await(event* which, stream* by) {
  if (!which->recorded) return;
  clock_join(by->knows, which->knows);
  queued* one = prepare(by, (operation){.kind = NOTHING, .what = "cuStreamWaitEvent"});
  wait_for(one, which->at);
  append(by, one);
}

/* The first answers are no: a client that asks once and goes on has not waited. */
bool event_poll(event* which) {
  if (!which->recorded) return true;
  bool pending = which->at.of->done < which->at.number;
  if (pending && which->polls++ >= EARLY_POLLS) (void)step();
  if (which->at.of->done < which->at.number) return false;
  learn(which->knows);
  return true;
}

void event_wait(event* which) {
  if (!which->recorded) return;
  reach(which->at);
  learn(which->knows);
}
