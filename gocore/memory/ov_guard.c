/*
 * ov_guard.c - debugging: sealed bytes that readers hold are read-only pages, and a write to them ends the
 * process with a sentence.
 *
 * While it is on, every block of a column is a mapping of its own, is not pooled, and can be protected. The addresses
 * of these blocks are in a table that a signal handler may look at.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ov_block.h"

enum { SLOTS = 1 << 15 }; /* further blocks are protected, too, but a fault in them has no sentence */

static struct slot {
  uintptr_t start, end; /* 0: free */
} slots[SLOTS];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the table's free slots and the handler; a leaf */
static int guards;                                       /* stages that want it */
static size_t used;                                      /* slots beyond were never taken */

static struct sigaction previous;
static int watching;

int ov_memory_guarding(void) { return __atomic_load_n(&guards, __ATOMIC_RELAXED) > 0; }

/* ---- The fault --------------------------------------------------------------------------------------------------- */

static const char sentence[] =
    "\novstage: sealed values were written to through a view that is read-only, whatever its library says. Readers of "
    "the "
    "snapshot\nwould have seen other values from here on. Take memory of your own: dlpack(i, private=True), "
    "column.torch() or "
    "column.warp().\nThe write was caught by guard_reads; what follows shows where it is.\n\n";

static int is_guarded(uintptr_t address) {
  size_t count = __atomic_load_n(&used, __ATOMIC_ACQUIRE);
  for (size_t i = 0; i < count; i++) {
    uintptr_t start = __atomic_load_n(&slots[i].start, __ATOMIC_RELAXED);
    if (start != 0 && address >= start && address < __atomic_load_n(&slots[i].end, __ATOMIC_RELAXED)) return 1;
  }
  return 0;
}

/* Everything else is for the handler that was there before: the runtime of Go lives by some faults. */
static void on_fault(int signal, siginfo_t* info, void* context) {
  int ours = info->si_code == SEGV_ACCERR && is_guarded((uintptr_t)info->si_addr);
  if (ours) {
    ssize_t ignored = write(STDERR_FILENO, sentence, sizeof sentence - 1);
    (void)ignored;
  }
  if (!ours && (previous.sa_flags & SA_SIGINFO) != 0)
    previous.sa_sigaction(signal, info, context);
  else if (!ours && previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN)
    previous.sa_handler(signal);
  else
    (void)sigaction(SIGSEGV, &previous, NULL); /* the write is tried again, and ends the process there */
}

/* Called with the lock. */
static void watch(void) {
  struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
  (void)sigemptyset(&action.sa_mask);
  if (!watching) watching = sigaction(SIGSEGV, &action, &previous) == 0;
}

void ov_memory_guard(int on) {
  (void)pthread_mutex_lock(&lock);
  if (on) watch();
  (void)__atomic_add_fetch(&guards, on ? 1 : -1, __ATOMIC_RELAXED);
  (void)pthread_mutex_unlock(&lock);
}

/* ---- Guarded blocks ---------------------------------------------------------------------------------------------- */

void ov_guard_enter(ov_block* block) {
  block->guarded = 1;
  (void)pthread_mutex_lock(&lock);
  for (size_t i = 0; i < SLOTS; i++) {
    if (slots[i].start != 0) continue;
    __atomic_store_n(&slots[i].end, (uintptr_t)block->data + block->capacity, __ATOMIC_RELAXED);
    __atomic_store_n(&slots[i].start, (uintptr_t)block->data, __ATOMIC_RELEASE);
    if (i >= used) __atomic_store_n(&used, i + 1, __ATOMIC_RELEASE);
    break;
  }
  (void)pthread_mutex_unlock(&lock);
}

void ov_guard_leave(ov_block* block) {
  (void)pthread_mutex_lock(&lock);
  for (size_t i = 0; i < used; i++)
    if (slots[i].start == (uintptr_t)block->data) __atomic_store_n(&slots[i].start, 0, __ATOMIC_RELEASE);
  (void)pthread_mutex_unlock(&lock);
}

static void set(ov_block* block, int protection, uint32_t to) {
  if (mprotect(block->data, block->capacity, protection) == 0)
    __atomic_store_n(&block->protected, to, __ATOMIC_RELEASE);
}

void ov_block_protect(ov_block* block) {
  if (block != NULL && block->guarded && !__atomic_load_n(&block->protected, __ATOMIC_ACQUIRE))
    set(block, PROT_READ, 1);
}

void ov_block_unprotect(ov_block* block) {
  if (block != NULL && __atomic_load_n(&block->protected, __ATOMIC_ACQUIRE)) set(block, PROT_READ | PROT_WRITE, 0);
}
