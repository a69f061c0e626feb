/*
 * ov_block.h - reference-counted, aligned buffers outside any garbage-collected heap.
 *
 * Columns, maps, index maps and descriptors live in blocks. A view, a DLPack export or a stage holds a block by holding
 * one reference; the release of the last reference frees the memory, on whatever thread it happens, with or
 * without a Go or Python runtime around. That is why this file is plain C: a consumer may free a tensor long after both
 * are gone.
 *
 * Ownership   ov_block_alloc* and ov_block_detach return a block with one reference, owned by the caller.
 *             ov_block_retain adds one, ov_block_release drops one.
 * Threads     Every function may be called from any thread. The bytes themselves are not synchronised.
 * Lock order  One lock, the pool's. It is a leaf: nothing is called, allocated or unmapped while it is held.
 * fork        In a forked child allocation fails and release does nothing: another thread of the parent may have held
 * the pool's lock at the fork. Bytes stay readable there.
 */
#ifndef OV_BLOCK_H
#define OV_BLOCK_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The most bytes of a block: half of what a process can address on x86-64, and more than any machine has. A size beyond
 * it is a mistake, and is refused unread. */
#define OV_LARGEST ((uint64_t)1 << 46)

/* What a block is for. Counters are kept per purpose, so that a leak names its kind. */
enum {
  OV_PURPOSE_COLUMNS = 0,
  OV_PURPOSE_MAPS = 1,
  OV_PURPOSE_INDICES = 2,
  OV_PURPOSE_DESCRIPTORS = 3,
  OV_PURPOSE_STRINGS = 4,
  OV_PURPOSES = 5
};

/*
 * One buffer. The fields up to `purpose` may be read by a holder of a reference; only `refs` ever changes while one is
 * held. `refs` is a plain integer that C touches with __atomic builtins and Go with sync/atomic: cgo cannot see _Atomic
 * fields, and both compile to the same instructions.
 */
typedef struct ov_block {
  int64_t refs;
  void* data;        /* 256-byte aligned; 2 MiB aligned from 4 MiB up; never NULL, also for size 0 */
  uint64_t size;     /* bytes asked for */
  uint64_t capacity; /* bytes usable, >= size */
  uint32_t purpose;

  /* the allocator's own, from here on */
  uint32_t kind;                              /* from malloc, a mapping of its own, or foreign memory          */
  uint32_t size_class;                        /* index of its free list */
  uint32_t hollow;                            /* its pages were moved away by a detach */
  uint32_t guarded;                           /* it can be protected: a mapping of its own that is never pooled */
  uint32_t protected;                         /* its bytes are read-only */
  struct ov_block *newer, *older;             /* pooled: all free blocks, by the time of their release */
  struct ov_block *class_newer, *class_older; /* pooled: those of one size class */
  void (*give_back)(void* owner);             /* foreign memory: how its owner gets it back   */
  void* owner;
} ov_block;

/* A block of `size` bytes with unspecified contents (often a recycled one's). NULL: out of memory. */
ov_block* ov_block_alloc(uint64_t size, uint32_t purpose);

/* As ov_block_alloc, all `capacity` bytes zero. From 4 MiB up the zeros come from the system, page by page at first
 * touch, so that the call costs the same at any size. */
ov_block* ov_block_alloc_zeroed(uint64_t size, uint32_t purpose);

/*
 * A block over `size` bytes at `data` that belong to a client, which neither writes to nor frees them before
 * `give_back(owner)` runs: once, after the last reference has gone. The thread that releases it may hold locks, and
 * give_back is foreign code: it is due then, and runs in ov_blocks_give_back. NULL: out of memory, and `give_back` is
 * not called.
 */
ov_block* ov_block_foreign(void* data, uint64_t size, uint32_t purpose, void (*give_back)(void* owner), void* owner);

/* Blocks whose give_back is due, newest first. */
extern ov_block* ov_blocks_due;

/* Runs what is due, whichever thread made it due. For a caller that holds no lock, as every call into the library has
 * none when it ends. A give_back may call back. */
void ov_blocks_give_back(void);

void ov_block_retain(ov_block* block);

/* Drops one reference. The last one sends the block to the pool or back to the system. NULL is ignored. */
void ov_block_release(ov_block* block);

/* As release, for a caller that holds no lock: a give_back that is due for it runs at once. */
void ov_block_release_unlocked(ov_block* block);

/* The second half of release, for a caller that has itself counted `refs` down to zero. */
void ov_block_retire(ov_block* block);

/*
 * A new block (one reference) that owns the bytes of `block` at a new address. `block` keeps its address and stays
 * writable, its contents are unspecified from here on: a stale writer cannot reach the new block.
 *
 * Large blocks move their pages (mremap leaves fresh ones behind), which costs microseconds at any size; small ones,
 * and those that the kernel will not move, are copied. NULL: out of memory, and `block` is as it was.
 */
ov_block* ov_block_detach(ov_block* block);

/* A snapshot of the process-wide counters. Each is exact, together they may be torn by calls on other threads. */
typedef struct ov_memory_counters_t {
  int64_t live_bytes[OV_PURPOSES]; /* sizes of the blocks in use */
  int64_t live_blocks[OV_PURPOSES];
  int64_t pooled_bytes; /* capacities of the free blocks that are kept for the next allocation */
  int64_t pooled_blocks;
  int64_t detach_moves;
  int64_t detach_copies;
  int64_t bytes_copied; /* payload copies reported by ov_memory_add_copied, and those of detach */
} ov_memory_counters_t;

void ov_memory_counters(ov_memory_counters_t* out);

/* Counts payload bytes that were copied outside this file: what "no copy you did not ask for" is measured by. */
void ov_memory_add_copied(uint64_t bytes);

/* Gives all pooled blocks back to the system. */
void ov_memory_trim(void);

/* ---- ov_guard.c: debugging. Views of sealed bytes that are written to end the process, with a sentence. ---- */

/* One more stage wants it, or one less. While any does, blocks of columns are made so that they can be protected. */
void ov_memory_guard(int on);
int ov_memory_guarding(void);

/* Make a block's bytes read-only, where it can be, because a client is given them; and writable
 * again, for an engine that alone holds it. NULL is ignored. */
void ov_block_protect(ov_block* block);
void ov_block_unprotect(ov_block* block);

/* The allocator's: a block that was made while it is on, and its end. */
void ov_guard_enter(ov_block* block);
void ov_guard_leave(ov_block* block);

/* The live counters, for Go to add to without a call into C. Use the functions above everywhere else. */
extern ov_memory_counters_t ov_memory_totals;

#ifdef __cplusplus
}
#endif

#endif
