/*
 * fake.h - a libcuda.so.1 that needs no GPU, and that finds missing synchronisation for certain, not by luck.
 *
 * A test double for the CUDA driver: clients load it in place of the real one (LD_LIBRARY_PATH, or the path that they
 * take a driver from). It follows NVIDIA's manual of the driver API where that says what may happen, and then picks the
 * worst of it:
 *
 *   late          Nothing that is queued on a stream runs before a host thread waits for something.
 *   out of order  Then streams advance in a seeded random order, which events, the legacy stream and host waits alone
 *                 constrain.
 *   judged        Each operation carries the vector clock of the moment in which it was queued. Each range of bytes
 * that it touches is compared with the earlier accesses of that block: one that is not ordered after an earlier access,
 * where one of the two writes, is a race, whether or not the bytes came out right. walled        Device memory is
 * PROT_NONE for the host; the driver works through an alias. Pinned memory is PROT_NONE while a copy may still write to
 * it and PROT_READ while one may still read it, until a wait of the host covers that copy. interpreted   Kernels are
 * PTX text, run instruction by instruction, with bounds and alignment checked.
 *
 *   report.c   races and faults, counts of calls, calls that are made to fail; what a test asks (fakecuda_...)
 *   clock.c    vector clocks, one entry for each stream and each host thread
 *   memory.c   blocks of device, pinned and managed memory, and the accesses to them
 *   ptx.c      kernels: their text, and a thread after the other
 *   stream.c   streams, events, and in which order what is queued runs
 *   driver.c   the entry points
 *
 * Environment, read by cuInit:
 *   FAKECUDA_DEVICES=n            how many devices there are, 0 to 8 (1)
 *   FAKECUDA_SEED=n               of the order (1)
 *   FAKECUDA_EAGER=1              run everything at once: a driver that hides each missing edge
 *   FAKECUDA_FAIL=call:n[:code]   the n-th call of that name answers with the code (2, out of memory)
 *   FAKECUDA_TRACE=file           the name of each call
 *   FAKECUDA_VERSION=n            what cuDriverGetVersion answers (13040)
 *   FAKECUDA_LOUD=1               races and faults on stderr as they are found
 *
 * Limits: the accesses of a kernel are one range of reads and one of writes for each block; accesses of the host are
 * seen where pages forbid them, not otherwise; what host threads tell each other by locks is no order here; kernels
 * have one dimension; graphs, captures, virtual memory and memory of other processes are absent.
 *
 * One lock guards everything. It is let go of while a host function of a stream runs, and for nothing else.
 */
#ifndef FAKE_H
#define FAKE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int result;                 /* CUresult */
typedef unsigned long long address; /* CUdeviceptr */

enum {
  OK = 0,
  INVALID_VALUE = 1,
  OUT_OF_MEMORY = 2,
  NOT_INITIALIZED = 3,
  NO_DEVICE = 100,
  INVALID_DEVICE = 101,
  INVALID_CONTEXT = 201,
  INVALID_PTX = 218,
  INVALID_HANDLE = 400,
  NOT_FOUND = 500,
  NOT_READY = 600,
  ILLEGAL_ADDRESS = 700,
  NOT_SUPPORTED = 801
};

enum { DEVICES = 8, AGENTS = 512 };

/* ---- report.c ---------------------------------------------------------------------------------------------------- */

/* Takes the lock, counts the call, and answers with the code with which it has to end at once, without the lock then.
 */
result fake_enter(const char* name);
/* Ends a call that fake_enter let in. */
result fake_leave(result code);
/* As fake_enter, for calls that come before cuInit. */
result fake_enter_early(const char* name);

void fake_lock(void);
void fake_unlock(void);

void fake_race(const char* format, ...) __attribute__((format(printf, 1, 2)));
void fake_fault(const char* format, ...) __attribute__((format(printf, 1, 2)));

extern bool fake_ready;    /* cuInit has succeeded */
extern int fake_devices;   /* how many there are */
extern unsigned fake_seed; /* of the order */
extern bool fake_eager;
extern long fake_live_events, fake_live_streams, fake_live_modules;

/* Reads the environment. */
void fake_configure(void);

/* ---- clock.c ----------------------------------------------------------------------------------------------------- */

/* What an agent, a stream or a host thread, knows of the progress of each. */
typedef uint32_t vector[AGENTS];

int clock_agent(void); /* a new one; ends the process after AGENTS of them */
void clock_join(vector into, const vector other);
int clock_host(void);          /* the agent of this thread */
uint32_t* clock_of_host(void); /* its vector */
void clock_tick_host(void);

/* ---- memory.c ---------------------------------------------------------------------------------------------------- */

typedef enum { DEVICE = 1, PINNED = 2, MANAGED = 3 } memory_kind;

typedef struct touch {
  size_t low, high; /* bytes, from the block's start */
  int agent;
  bool write;
  uint32_t epoch;
  char what[40];
  struct touch* next;
} touch;

typedef struct block {
  address start;
  size_t size, mapped;
  char* alias; /* the same pages, where the driver may touch them */
  memory_kind kind;
  int device;
  enum { LIVE, TO_BE_FREED, FREED } state;
  touch* accesses;
  int wall;     /* of a pinned one: PROT_NONE or PROT_READ, or -1 */
  vector until; /* the wall stands until a host thread knows this much */
  struct block* next;
} block;

/* What touches memory: the operation of a stream, or the driver for one. */
typedef struct {
  int agent;
  uint32_t epoch;
  const uint32_t* knows;
  const char* what;
  int device; /* -1: the driver itself, to which all memory belongs */
} toucher;

result memory_make(address* start, size_t size, memory_kind kind, int device);
void memory_unmake(block* dead);
block* memory_find(address at);
char* memory_at(address at); /* where the driver touches it; host memory that is not the driver's stays where it is */
void memory_touch(address at, size_t size, bool write, const toucher* by);
void memory_wall(address at, int protection, const toucher* by);
void memory_unwall(void); /* walls that this host thread has waited for */
long memory_live(memory_kind kind);
void memory_peers(int device, int other); /* the first may touch what is the second's */

/* ---- ptx.c ------------------------------------------------------------------------------------------------------- */

typedef struct module module;
typedef struct function function;

result ptx_load(module** loaded, const char* text);
void ptx_unload(module* loaded);
function* ptx_find(module* loaded, const char* name);
const char* ptx_name(const function* entry);
/* Copies the values of a launch behind each other; INVALID_VALUE where they do not fit. */
result ptx_arguments(const function* entry, void** values, char* into, size_t room);
/* Runs all threads of a grid of one dimension. */
result ptx_run(const function* entry, const char* arguments, unsigned blocks, unsigned threads, const toucher* by);

/* ---- stream.c ---------------------------------------------------------------------------------------------------- */

typedef struct context {
  int device, references;
} context;

typedef struct stream stream;
typedef struct event event;

enum { NON_BLOCKING = 1 };

/* What is queued; stream_push copies it. */
typedef struct {
  enum { COPY, FILL, LAUNCH, CALL, NOTHING, FREE } kind;
  address to, from;
  size_t size;
  int value;
  char* staged; /* the bytes of pageable memory, copied when the call was made; owned */
  void (*call)(void*);
  void* argument;
  const function* entry;
  unsigned blocks, threads;
  char arguments[256];
  const char* what;
} operation;

extern context fake_contexts[DEVICES];
context** context_top(void); /* of this thread's stack: NULL there where it is empty */
result context_push(context* pushed);
context* context_pop(void);

stream* stream_make(context* of, unsigned flags);
stream* stream_named(stream* handle); /* 0 and 1 legacy, 2 of the thread, else a live one; NULL where it is none */
result stream_destroy(stream* handle);
result stream_push(stream* to, operation what);
void stream_wait(stream* which);   /* until all that it has been given is done; the host then knows it */
bool stream_poll(stream* which);   /* whether it is done; the first answers are no */
void stream_wait_all(context* of); /* NULL: everywhere */
void stream_run_all(void);         /* without that the host knows */
context* stream_context(const stream* of);
unsigned stream_flags(const stream* of);
uint64_t stream_id(const stream* of);
void stream_touch(stream* by, address at, size_t size, const char* what); /* at once, in the order of the stream */

event* event_make(context* of);
bool event_alive(const event* which);
result event_destroy(event* which); /* its memory stays: a stale handle is told from a live one */
void event_record(event* which, stream* on);
void event_await(event* which, stream* by);
bool event_poll(event* which);
void event_wait(event* which);

#endif
