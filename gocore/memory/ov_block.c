#define _GNU_SOURCE
/* mmap64, then: a test that lets memory run out tells it from the mmap of Go's runtime */
#define _FILE_OFFSET_BITS 64
#include "ov_block.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

#define ALIGNMENT 256u
#define SMALLEST 256u           /* capacity of size class 0 */
#define MAPPING_FROM (64 * KIB) /* from here a block is an anonymous mapping of its own, whose pages can be moved */
#define HUGE_FROM (4 * MIB)     /* from here it is aligned and rounded for huge pages: first touch is 4-10x cheaper */
#define HUGE_PAGE (2 * MIB)
#define MOVE_FROM (1 * MIB) /* below, copying is as cheap as moving pages, a map cycle taken as a whole */

#define CLASSES 160            /* four per power of two, from SMALLEST to OV_LARGEST */
#define POOL_BYTES (256 * MIB) /* the pool never keeps more */
#define LARGE_FROM (64 * MIB)  /* a class of blocks this large ... */
#define LARGE_KEPT 2 /* ... keeps only these: the two buffers that a steadily rewritten column alternates between */

enum { KIND_HEAP, KIND_MAPPING, KIND_FOREIGN };

/* ---- counters and the fork guard ---- */

ov_memory_counters_t ov_memory_totals;

static int forked; /* set in a forked child, never cleared */

static void in_child(void) { __atomic_store_n(&forked, 1, __ATOMIC_RELAXED); }

__attribute__((constructor)) static void watch_fork(void) { (void)pthread_atfork(NULL, NULL, in_child); }

static int is_forked(void) { return __atomic_load_n(&forked, __ATOMIC_RELAXED); }

static void add(int64_t* counter, int64_t n) { (void)__atomic_fetch_add(counter, n, __ATOMIC_RELAXED); }

static int64_t get(const int64_t* counter) { return __atomic_load_n(counter, __ATOMIC_RELAXED); }

void ov_memory_counters(ov_memory_counters_t* out) {
  for (int i = 0; i < OV_PURPOSES; i++) {
    out->live_bytes[i] = get(&ov_memory_totals.live_bytes[i]);
    out->live_blocks[i] = get(&ov_memory_totals.live_blocks[i]);
  }
  out->pooled_bytes = get(&ov_memory_totals.pooled_bytes);
  out->pooled_blocks = get(&ov_memory_totals.pooled_blocks);
  out->detach_moves = get(&ov_memory_totals.detach_moves);
  out->detach_copies = get(&ov_memory_totals.detach_copies);
  out->bytes_copied = get(&ov_memory_totals.bytes_copied);
}

void ov_memory_add_copied(uint64_t bytes) { add(&ov_memory_totals.bytes_copied, (int64_t)bytes); }

/* ---- size classes ---- */

/* The smallest class that holds `size` bytes: its index, and its capacity in *capacity. Rounding wastes at most a
 * fifth. */
static uint32_t quarter_class(uint64_t size, uint64_t* capacity) {
  if (size <= SMALLEST) {
    *capacity = SMALLEST;
    return 0;
  }
  uint32_t power = 63 - (uint32_t)__builtin_clzll(size - 1);
  uint64_t base = (uint64_t)1 << power, quarter = base / 4;
  uint32_t step = (uint32_t)((size - 1 - base) / quarter);
  *capacity = base + (step + 1) * quarter;
  return (power - 8) * 4 + step + 1;
}

static uint32_t class_of(uint64_t size, uint64_t* capacity) {
  uint32_t size_class = quarter_class(size, capacity);
  if (*capacity < HUGE_FROM) return size_class;
  return quarter_class((*capacity + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1), capacity);
}

/* ---- memory from and to the system ---- */

/* An anonymous mapping of `length` bytes at a multiple of `alignment`, or NULL. Maps too much, then cuts both ends off.
 */
static void* map_aligned(uint64_t length, uint64_t alignment) {
  uint64_t slack = alignment > ALIGNMENT ? alignment : 0; /* a page is aligned enough for the small ones */
  char* start = mmap(NULL, length + slack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) return NULL;
  if (slack == 0) return start;
  uint64_t head = (alignment - (uintptr_t)start % alignment) % alignment;
  if (head > 0) (void)munmap(start, head);
  if (slack > head) (void)munmap(start + head + length, slack - head);
  return start + head;
}

static void* map_capacity(uint64_t capacity) {
  if (capacity < HUGE_FROM) return map_aligned(capacity, ALIGNMENT);
  void* data = map_aligned(capacity, HUGE_PAGE);
  if (data != NULL) (void)madvise(data, capacity, MADV_HUGEPAGE); /* a refusal costs speed only */
  return data;
}

/* A block without references and outside of all lists. Its bytes are zero when it is a mapping. */
static ov_block* create(uint32_t size_class, uint64_t capacity, int guarded) {
  ov_block* block = calloc(1, sizeof *block);
  if (block == NULL) return NULL;
  block->size_class = size_class;
  block->capacity = capacity;
  if (capacity >= MAPPING_FROM || guarded) {
    block->kind = KIND_MAPPING;
    block->data = map_capacity(capacity);
  } else {
    block->kind = KIND_HEAP;
    if (posix_memalign(&block->data, ALIGNMENT, capacity) != 0) block->data = NULL;
  }
  if (block->data == NULL) {
    free(block);
    return NULL;
  }
  if (guarded) ov_guard_enter(block);
  return block;
}

static void destroy(ov_block* block) {
  if (block->guarded) ov_guard_leave(block);
  if (block->kind == KIND_MAPPING)
    (void)munmap(block->data, block->capacity);
  else
    free(block->data);
  free(block);
}

/* ---- given-up bytes ---- */

#ifdef OV_INVARIANTS
/* A build that looks for faults: a read of a free block finds 0xCC, or, in a mapping, ends the process. */
static void spoil(const ov_block* block) {
  memset(block->data, 0xCC, block->capacity);
  if (block->kind == KIND_MAPPING) (void)mprotect(block->data, block->capacity, PROT_NONE);
}

static void restore(const ov_block* block) {
  if (block->kind == KIND_MAPPING) (void)mprotect(block->data, block->capacity, PROT_READ | PROT_WRITE);
}
#else
static void spoil(const ov_block* block) { (void)block; }
static void restore(const ov_block* block) { (void)block; }
#endif

/* ---- the pool ---- */

/*
 * Free blocks, kept because the first touch of fresh pages dominates the cost of writing a large column. The newest of
 * a class is handed out first (its pages are warm), the oldest of all makes room first.
 */
static struct {
  pthread_mutex_t lock;
  ov_block *newest, *oldest;
  ov_block *class_newest[CLASSES], *class_oldest[CLASSES];
  uint32_t class_length[CLASSES];
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void pool_link(ov_block* block) {
  uint32_t c = block->size_class;
  block->newer = block->class_newer = NULL;
  block->older = pool.newest;
  block->class_older = pool.class_newest[c];
  *(block->older != NULL ? &block->older->newer : &pool.oldest) = block;
  *(block->class_older != NULL ? &block->class_older->class_newer : &pool.class_oldest[c]) = block;
  pool.newest = pool.class_newest[c] = block;
  pool.class_length[c]++;
  add(&ov_memory_totals.pooled_bytes, (int64_t)block->capacity);
  add(&ov_memory_totals.pooled_blocks, 1);
}

static void pool_unlink(ov_block* block) {
  uint32_t c = block->size_class;
  *(block->newer != NULL ? &block->newer->older : &pool.newest) = block->older;
  *(block->older != NULL ? &block->older->newer : &pool.oldest) = block->newer;
  *(block->class_newer != NULL ? &block->class_newer->class_older : &pool.class_newest[c]) = block->class_older;
  *(block->class_older != NULL ? &block->class_older->class_newer : &pool.class_oldest[c]) = block->class_newer;
  pool.class_length[c]--;
  add(&ov_memory_totals.pooled_bytes, -(int64_t)block->capacity);
  add(&ov_memory_totals.pooled_blocks, -1);
}

/* The newest free block of a class, or NULL. */
static ov_block* pool_take(uint32_t size_class) {
  (void)pthread_mutex_lock(&pool.lock);
  ov_block* block = pool.class_newest[size_class];
  if (block != NULL) pool_unlink(block);
  (void)pthread_mutex_unlock(&pool.lock);
  if (block != NULL) restore(block);
  return block;
}

/* Destroys a chain of unlinked blocks: outside the lock, since unmapping a large one takes long. */
static void destroy_all(ov_block* chain) {
  while (chain != NULL) {
    ov_block* next = chain->older;
    destroy(chain);
    chain = next;
  }
}

static ov_block* evict(ov_block* block, ov_block* chain) {
  pool_unlink(block);
  block->older = chain;
  return block;
}

/* Keeps a block for the next allocation of its class, and drops the oldest ones beyond the limits. */
static void pool_put(ov_block* block) {
  if (block->capacity > POOL_BYTES) { /* it would push out all the others, and then itself */
    destroy(block);
    return;
  }
  spoil(block);
  uint32_t c = block->size_class;
  ov_block* dropped = NULL;
  (void)pthread_mutex_lock(&pool.lock);
  pool_link(block);
  if (block->capacity >= LARGE_FROM && pool.class_length[c] > LARGE_KEPT)
    dropped = evict(pool.class_oldest[c], dropped);
  while (ov_memory_totals.pooled_bytes > (int64_t)POOL_BYTES) dropped = evict(pool.oldest, dropped);
  (void)pthread_mutex_unlock(&pool.lock);
  destroy_all(dropped);
}

void ov_memory_trim(void) {
  if (is_forked()) return;
  ov_block* dropped = NULL;
  (void)pthread_mutex_lock(&pool.lock);
  while (pool.oldest != NULL) dropped = evict(pool.oldest, dropped);
  (void)pthread_mutex_unlock(&pool.lock);
  destroy_all(dropped);
}

/* ---- blocks ---- */

/* A fresh block. When the system has no more memory, what the pool keeps is given up first. */
static ov_block* create_or_trim(uint32_t size_class, uint64_t capacity, int guarded) {
  ov_block* block = create(size_class, capacity, guarded);
  if (block == NULL && get(&ov_memory_totals.pooled_blocks) > 0) {
    ov_memory_trim();
    block = create(size_class, capacity, guarded);
  }
  return block;
}

/* Hands a block out: one reference, counted as live. */
static ov_block* issue(ov_block* block, uint64_t size, uint32_t purpose) {
  block->size = size;
  block->purpose = purpose;
  add(&ov_memory_totals.live_bytes[purpose], (int64_t)size);
  add(&ov_memory_totals.live_blocks[purpose], 1);
  __atomic_store_n(&block->refs, 1, __ATOMIC_RELEASE);
  return block;
}

static ov_block* allocate(uint64_t size, uint32_t purpose, int zeroed) {
  if (is_forked() || size > OV_LARGEST || purpose >= OV_PURPOSES) return NULL;
  uint64_t capacity;
  uint32_t size_class = class_of(size, &capacity);

  ov_block* block = NULL;
  int guarded = purpose == OV_PURPOSE_COLUMNS && ov_memory_guarding();
  if (!guarded && (!zeroed || capacity < HUGE_FROM)) block = pool_take(size_class);
  int clean = 0;
  if (block == NULL) {
    block = create_or_trim(size_class, capacity, guarded);
    if (block == NULL) return NULL;
    clean = block->kind == KIND_MAPPING;
  }
  if (zeroed && !clean) memset(block->data, 0, capacity);
  return issue(block, size, purpose);
}

ov_block* ov_block_alloc(uint64_t size, uint32_t purpose) { return allocate(size, purpose, 0); }

ov_block* ov_block_alloc_zeroed(uint64_t size, uint32_t purpose) { return allocate(size, purpose, 1); }

ov_block* ov_block_foreign(void* data, uint64_t size, uint32_t purpose, void (*give_back)(void* owner), void* owner) {
  if (is_forked() || purpose >= OV_PURPOSES) return NULL;
  ov_block* block = calloc(1, sizeof *block);
  if (block == NULL) return NULL;
  block->kind = KIND_FOREIGN;
  block->data = data;
  block->capacity = size;
  block->give_back = give_back;
  block->owner = owner;
  return issue(block, size, purpose);
}

void ov_block_retain(ov_block* block) { (void)__atomic_fetch_add(&block->refs, 1, __ATOMIC_RELAXED); }

void ov_block_release(ov_block* block) {
  /* A count below zero is a caller's bug; leaving the block alone then keeps it from entering the pool twice. */
  if (block != NULL && !is_forked() && __atomic_sub_fetch(&block->refs, 1, __ATOMIC_ACQ_REL) == 0)
    ov_block_retire(block);
}

ov_block* ov_blocks_due;

static void make_due(ov_block* block) {
  block->older = __atomic_load_n(&ov_blocks_due, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(&ov_blocks_due, &block->older, block, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

static void give_back(ov_block* block) {
  block->give_back(block->owner);
  free(block);
}

void ov_blocks_give_back(void) {
  if (is_forked()) return;
  ov_block* block = __atomic_exchange_n(&ov_blocks_due, NULL, __ATOMIC_ACQUIRE);
  while (block != NULL) {
    ov_block* next = block->older;
    give_back(block);
    block = next;
  }
}

static void count_out(const ov_block* block) {
  add(&ov_memory_totals.live_bytes[block->purpose], -(int64_t)block->size);
  add(&ov_memory_totals.live_blocks[block->purpose], -1);
}

void ov_block_release_unlocked(ov_block* block) {
  if (is_forked() || __atomic_sub_fetch(&block->refs, 1, __ATOMIC_ACQ_REL) != 0) return;
  if (block->kind != KIND_FOREIGN) {
    ov_block_retire(block);
    return;
  }
  count_out(block);
  give_back(block);
}

void ov_block_retire(ov_block* block) {
  if (is_forked()) return;
  count_out(block);
  /* A hollow block has no warm pages to offer, and would hide one that has. */
  if (block->kind == KIND_FOREIGN)
    make_due(block);
  else if (block->hollow || block->guarded)
    destroy(block);
  else
    pool_put(block);
}

/* ---- detach ---- */

/* Moves the pages of `block` to a new block and leaves fresh ones behind. NULL: not possible here, nothing has changed.
 */
static ov_block* move_pages(ov_block* block) {
#if defined(MREMAP_DONTUNMAP)
  ov_block* moved = create(block->size_class, block->capacity, block->guarded != 0);
  if (moved == NULL) return NULL;
  /* The new mapping was made only to reserve an aligned range: whole huge pages then move as one entry each. */
  int flags = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;
  if (mremap(block->data, block->capacity, block->capacity, flags, moved->data) == MAP_FAILED) {
    destroy(moved);
    return NULL;
  }
  block->hollow = 1;
  add(&ov_memory_totals.detach_moves, 1);
  return issue(moved, block->size, block->purpose);
#else
  (void)block;
  return NULL;
#endif
}

ov_block* ov_block_detach(ov_block* block) {
  if (is_forked()) return NULL;
  ov_block* detached = NULL;
  if (block->kind == KIND_MAPPING && block->capacity >= MOVE_FROM) detached = move_pages(block);
  if (detached != NULL) return detached;
  detached = ov_block_alloc(block->size, block->purpose);
  if (detached == NULL) return NULL;
  /* All of the capacity, as a move takes it: holders may have used more than they asked for. */
  memcpy(detached->data, block->data, block->capacity);
  add(&ov_memory_totals.detach_copies, 1);
  add(&ov_memory_totals.bytes_copied, (int64_t)block->size);
  return detached;
}
