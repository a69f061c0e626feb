/*
 * shortage.c - memory that runs out where a test says.
 *
 * It stands before libc, preloaded (LD_PRELOAD) or linked into a test, and answers for the functions that allocate.
 * Only calls out of libovstage.so and _native.abi3.so count, from every thread; once shortage_python was called, also
 * what the interpreter allocates for calls out of the extension. Between shortage_begin and shortage_end the calls with
 * the numbers first to last fail, from 1.
 *
 * Left alone is what Go's runtime asks for: it ends the process where there is none. Its mappings come through mmap,
 * those of the product through mmap64; and for each new thread it has three words from malloc.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shortage.h"

extern void* __libc_malloc(size_t size);
extern void* __libc_calloc(size_t count, size_t size);
extern void* __libc_realloc(void* memory, size_t size);
extern void* __libc_memalign(size_t alignment, size_t size);

enum { OF_A_GO_THREAD = 3 * sizeof(void*) };

/* ---- Whose call it is -------------------------------------------------------------------------------------------- */

static struct {
  uintptr_t from, to;
} ours[2]; /* the library, the extension */

static int look_at(struct dl_phdr_info* info, size_t size, void* unused) {
  (void)size;
  (void)unused;
  const char* slash = strrchr(info->dlpi_name, '/');
  const char* name = slash != NULL ? slash + 1 : info->dlpi_name;
  int place = strcmp(name, "libovstage.so") == 0 ? 0 : strcmp(name, "_native.abi3.so") == 0 ? 1 : -1;
  for (int i = 0; place >= 0 && i < info->dlpi_phnum; i++)
    if (info->dlpi_phdr[i].p_type == PT_LOAD && (info->dlpi_phdr[i].p_flags & PF_X)) {
      ours[place].from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
      ours[place].to = ours[place].from + info->dlpi_phdr[i].p_memsz;
    }
  return 0;
}

static bool is_ours(const void* caller) {
  uintptr_t at = (uintptr_t)caller;
  return (at >= ours[0].from && at < ours[0].to) || (at >= ours[1].from && at < ours[1].to);
}

/* ---- Whether it fails -------------------------------------------------------------------------------------------- */

static bool begun;
static long first, last, seen, failed;

static bool counts_out(void) {
  long number = __atomic_add_fetch(&seen, 1, __ATOMIC_RELAXED);
  bool fails = number >= first && number <= last;
  if (fails) __atomic_add_fetch(&failed, 1, __ATOMIC_RELAXED);
  return fails;
}

static bool fails(const void* caller) {
  return __atomic_load_n(&begun, __ATOMIC_ACQUIRE) && is_ours(caller) && counts_out();
}

void shortage_begin(long from, long to) {
  dl_iterate_phdr(look_at, NULL);
  first = from;
  last = to;
  seen = failed = 0;
  __atomic_store_n(&begun, true, __ATOMIC_RELEASE);
}

void shortage_end(void) { __atomic_store_n(&begun, false, __ATOMIC_RELEASE); }

long shortage_failed(void) { return failed; }

/* ---- The functions that allocate --------------------------------------------------------------------------------- */

#define FAILS fails(__builtin_return_address(0))

void* malloc(size_t size) {
  if (size != OF_A_GO_THREAD && FAILS) return NULL;
  return __libc_malloc(size);
}

void* calloc(size_t count, size_t size) { return FAILS ? NULL : __libc_calloc(count, size); }

void* realloc(void* memory, size_t size) { return FAILS ? NULL : __libc_realloc(memory, size); }

void* aligned_alloc(size_t alignment, size_t size) { return FAILS ? NULL : __libc_memalign(alignment, size); }

int posix_memalign(void** memory, size_t alignment, size_t size) {
  if (FAILS) return ENOMEM;
  void* made = __libc_memalign(alignment, size);
  if (made != NULL) *memory = made;
  return made != NULL ? 0 : ENOMEM;
}

char* strndup(const char* text, size_t most) {
  size_t length = strnlen(text, most);
  char* copy = FAILS ? NULL : __libc_malloc(length + 1);
  if (copy == NULL) return NULL;
  copy[length] = '\0';
  return memcpy(copy, text, length);
}

char* strdup(const char* text) {
  size_t size = strlen(text) + 1;
  char* copy = FAILS ? NULL : __libc_malloc(size);
  return copy != NULL ? memcpy(copy, text, size) : NULL;
}

void* mmap64(void* address, size_t length, int protection, int flags, int file, off64_t offset) {
  if (FAILS) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return (void*)syscall(SYS_mmap, address, length, protection, flags, file, offset);
}

/* ---- Python's own allocators ------------------------------------------------------------------------------------- */

typedef struct {
  void* context;
  void* (*malloc)(void* context, size_t size);
  void* (*calloc)(void* context, size_t count, size_t size);
  void* (*realloc)(void* context, void* memory, size_t size);
  void (*free)(void* context, void* memory);
} allocator; /* PyMemAllocatorEx */

enum { DOMAIN_MEM = 1, DOMAIN_OBJECT = 2 };

static allocator before[3];

/* How far up the caller is looked for: beyond, what is allocated is the interpreter's or another module's matter. */
enum { FRAMES = 12 };

static bool fails_here(void) {
  if (!__atomic_load_n(&begun, __ATOMIC_ACQUIRE)) return false;
  void* frames[FRAMES];
  int count = backtrace(frames, FRAMES);
  for (int i = 0; i < count; i++)
    if (is_ours(frames[i])) return counts_out();
  return false;
}

static void* python_malloc(void* to, size_t size) {
  allocator* a = to;
  return fails_here() ? NULL : a->malloc(a->context, size);
}

static void* python_calloc(void* to, size_t count, size_t size) {
  allocator* a = to;
  return fails_here() ? NULL : a->calloc(a->context, count, size);
}

static void* python_realloc(void* to, void* memory, size_t size) {
  allocator* a = to;
  return fails_here() ? NULL : a->realloc(a->context, memory, size);
}

static void python_free(void* to, void* memory) {
  allocator* a = to;
  a->free(a->context, memory);
}

void shortage_python(void) {
  backtrace(&(void*){NULL}, 1); /* the first one allocates */
  void (*get)(int, allocator*) = (void (*)(int, allocator*))dlsym(RTLD_DEFAULT, "PyMem_GetAllocator");
  void (*set)(int, allocator*) = (void (*)(int, allocator*))dlsym(RTLD_DEFAULT, "PyMem_SetAllocator");
  for (int domain = DOMAIN_MEM; domain <= DOMAIN_OBJECT; domain++) {
    get(domain, &before[domain]);
    set(domain, &(allocator){&before[domain], python_malloc, python_calloc, python_realloc, python_free});
  }
}
