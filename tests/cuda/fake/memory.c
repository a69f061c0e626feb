/* memory.c - blocks of memory, who may touch them, and in which order they were touched. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fake.h"

static block* blocks;
static unsigned peers[DEVICES]; /* a bit for each device whose memory may be touched */

static void* pages(address at) { return (void*)(uintptr_t)at; }

result memory_make(address* start, size_t size, memory_kind kind, int device) {
  if (size == 0) return INVALID_VALUE;
  size_t mapped = (size + 4095) & ~(size_t)4095;
  block* made = calloc(1, sizeof *made);
  int file = memfd_create("fakecuda", 0);
  if (made == NULL || file < 0 || ftruncate(file, (off_t)mapped) != 0) {
    free(made);
    if (file >= 0) (void)close(file);
    return OUT_OF_MEMORY;
  }
  int visible = kind == DEVICE ? PROT_NONE : PROT_READ | PROT_WRITE;
  made->alias = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  made->start = (uintptr_t)mmap(NULL, mapped, visible, MAP_SHARED, file, 0);
  (void)close(file);
  if (made->alias == MAP_FAILED || pages(made->start) == MAP_FAILED) abort();
  memset(made->alias, 0xCD, size); /* values that no test writes */
  made->size = size;
  made->mapped = mapped;
  made->kind = kind;
  made->device = device;
  made->wall = -1;
  made->next = blocks;
  blocks = made;
  *start = made->start;
  return OK;
}

void memory_unmake(block* dead) {
  block** at = &blocks;
  while (*at != dead) at = &(*at)->next;
  *at = dead->next;
  (void)munmap(dead->alias, dead->mapped);
  (void)munmap(pages(dead->start), dead->mapped);
  while (dead->accesses != NULL) {
    touch* first = dead->accesses;
    dead->accesses = first->next;
    free(first);
  }
  free(dead);
}

block* memory_find(address at) {
  for (block* b = blocks; b != NULL; b = b->next)
    if (at >= b->start && at < b->start + b->size) return b;
  return NULL;
}

char* memory_at(address at) {
  block* b = memory_find(at);
  return b != NULL ? b->alias + (at - b->start) : pages(at);
}

long memory_live(memory_kind kind) {
  long number = 0;
  for (block* b = blocks; b != NULL; b = b->next) number += b->kind == kind && b->state == LIVE;
  return number;
}

void memory_peers(int device, int other) { peers[device] |= 1u << other; }

/* ---- Accesses ---------------------------------------------------------------------------------------------------- */

static bool is_before(const touch* earlier, const toucher* by) {
  return earlier->agent == by->agent || by->knows[earlier->agent] >= earlier->epoch;
}

/* An earlier access need not be kept where each later one that conflicts with it conflicts with the new one, too. */
static bool is_covered(const touch* earlier, size_t low, size_t high, bool write, const toucher* by) {
  return earlier->low >= low && earlier->high <= high && (write || (!earlier->write && earlier->agent == by->agent));
}

void memory_touch(address at, size_t size, bool write, const toucher* by) {
  block* b = memory_find(at);
  if (b == NULL || size == 0) return;
  if (b->state == FREED) fake_fault("use after free: %s touches %llx", by->what, at);
  if (at + size > b->start + b->size)
    fake_fault("out of bounds: %s touches %zu bytes at +%llu of %zu", by->what, size, at - b->start, b->size);
  if (b->kind == DEVICE && by->device >= 0 && by->device != b->device && (peers[by->device] >> b->device & 1) == 0)
    fake_fault("peer: %s on device %d touches memory of device %d", by->what, by->device, b->device);
  size_t low = at - b->start, high = low + size;
  for (touch** link = &b->accesses; *link != NULL;) {
    touch* earlier = *link;
    bool meets = earlier->low < high && low < earlier->high, before = is_before(earlier, by);
    if (meets && !before && (write || earlier->write))
      fake_race("race on [%zu,%zu) of block %llx: %s (%s) is not ordered after %s (%s)", low, high, b->start, by->what,
                write ? "write" : "read", earlier->what, earlier->write ? "write" : "read");
    if (meets && before && is_covered(earlier, low, high, write, by)) {
      *link = earlier->next;
      free(earlier);
    } else {
      link = &earlier->next;
    }
  }
  touch* made = calloc(1, sizeof *made);
  if (made == NULL) abort();
  *made = (touch){low, high, by->agent, write, by->epoch, "", b->accesses};
  (void)snprintf(made->what, sizeof made->what, "%s", by->what);
  b->accesses = made;
}

/* ---- Walls ------------------------------------------------------------------------------------------------------- */

void memory_wall(address at, int protection, const toucher* by) {
  block* b = memory_find(at);
  if (b == NULL || b->kind != PINNED) return;
  if (b->wall != PROT_NONE && b->wall != protection) {
    b->wall = protection;
    (void)mprotect(pages(b->start), b->mapped, protection);
  }
  if (by->epoch > b->until[by->agent]) b->until[by->agent] = by->epoch;
}

static bool knows(const uint32_t* vector, const uint32_t* other) {
  for (int i = 0; i < AGENTS; i++)
    if (vector[i] < other[i]) return false;
  return true;
}

void memory_unwall(void) {
  for (block* b = blocks; b != NULL; b = b->next) {
    if (b->wall < 0 || !knows(clock_of_host(), b->until)) continue;
    (void)mprotect(pages(b->start), b->mapped, PROT_READ | PROT_WRITE);
    b->wall = -1;
  }
}
