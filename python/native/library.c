/*
 * library.c - libovstage.so: looking at the file, and opening it, which starts the engine.
 *
 * Opening is for good, and a process that has done it cannot fork any more. Therefore nothing but the first stage opens
 * it, and the version is read from the file. Whatever would end the process when the runtime of Go starts - a file that
 * is broken or of another version, too little address space, too few threads - is found first and said as an exception.
 *
 * All of it happens with the GIL: no two threads open, and no fork by Python falls into an opening.
 */
#include "native.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIBRARY_FILE "libovstage.so"

static ovx_string_t nothing_said(void) { return (ovx_string_t){NULL, 0}; }

library_functions library = {.get_last_error = nothing_said};

static bool is_open;
static ovstage_go_note_t opened; /* what the file said when it was opened: another may have its name by now */

/* ---- Refusing ---------------------------------------------------------------------------------------------------- */

/* The path of the library, beside the file that holds this function. NULL: an exception. */
static PyObject* library_path(void) {
  Dl_info own;
  const char* file = dladdr(&library, &own) && own.dli_fname ? own.dli_fname : "";
  const char* slash = strrchr(file, '/');
  PyObject* folder = PyUnicode_DecodeFSDefaultAndSize(file, slash ? slash - file : 0);
  PyObject* path = folder ? PyUnicode_FromFormat("%U/%s", folder, LIBRARY_FILE) : NULL;
  Py_XDECREF(folder);
  return path;
}

static bool failed_to_load(PyObject* path, const char* why) {
  PyObject* reason = PyUnicode_DecodeFSDefault(why);
  if (reason)
    PyErr_Format(
        PyExc_RuntimeError,
        "Failed to load the native library of ovstage, %U: %U. Reinstall the wheel, or run build.sh in a source "
        "tree.",
        path, reason);
  Py_XDECREF(reason);
  return false;
}

/* ---- Looking ----------------------------------------------------------------------------------------------------- */

#if defined(__x86_64__)
enum { OWN_MACHINE = EM_X86_64 };
#elif defined(__aarch64__)
enum { OWN_MACHINE = EM_AARCH64 };
#else
#error "name the machine of this architecture as ELF does"
#endif

static bool read_at(int file, void* out, size_t size, uint64_t offset) {
  return offset <= INT64_MAX - size && pread(file, out, size, (off_t)offset) == (ssize_t)size;
}

/* Finds the library's note in one segment of notes. */
static bool find_note(int file, const Elf64_Phdr* notes, ovstage_go_note_t* out) {
  struct {
    Elf64_Nhdr header;
    char name[sizeof OVSTAGE_GO_NOTE_NAME];
    ovstage_go_note_t data;
  } note;
  static const Elf64_Nhdr wanted = {sizeof OVSTAGE_GO_NOTE_NAME, sizeof(ovstage_go_note_t), OVSTAGE_GO_NOTE_TYPE};
  uint64_t at = notes->p_offset, end = notes->p_offset + notes->p_filesz;
  while (at < end && read_at(file, &note.header, sizeof note.header, at)) {
    if (memcmp(&note.header, &wanted, sizeof wanted) == 0 && read_at(file, &note, sizeof note, at) &&
        memcmp(note.name, OVSTAGE_GO_NOTE_NAME, sizeof note.name) == 0) {
      *out = note.data;
      return true;
    }
    at += sizeof note.header + ((note.header.n_namesz + UINT64_C(3)) & ~UINT64_C(3)) +
          ((note.header.n_descsz + UINT64_C(3)) & ~UINT64_C(3));
  }
  return false;
}

/* NULL, or what is wrong with the file. A file that ends early is found here, where the loader might still map it. */
static const char* look_at(int file, ovstage_go_note_t* out) {
  static const unsigned char ident[] = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB};
  struct stat status;
  Elf64_Ehdr header;
  if (fstat(file, &status) < 0) return strerror(errno);
  if (!read_at(file, &header, sizeof header, 0) || memcmp(header.e_ident, ident, sizeof ident) != 0)
    return "it is no shared library";
  if (header.e_machine != OWN_MACHINE || header.e_phentsize != sizeof(Elf64_Phdr))
    return "it was built for another kind of machine";
  bool found = false;
  for (size_t i = 0; i < header.e_phnum; i++) {
    Elf64_Phdr segment;
    if (!read_at(file, &segment, sizeof segment, header.e_phoff + i * sizeof segment) ||
        segment.p_offset > (uint64_t)status.st_size || segment.p_filesz > (uint64_t)status.st_size - segment.p_offset)
      return "the file ends too early";
    found = found || (segment.p_type == PT_NOTE && find_note(file, &segment, out));
  }
  if (!found || out->major != OVSTAGE_VERSION_MAJOR || out->minor != OVSTAGE_VERSION_MINOR ||
      out->patch != OVSTAGE_VERSION_PATCH || out->table_version != 1 || out->table_size < sizeof(ovstage_go_v1_t))
    return LIBRARY_FILE " and _native.abi3.so do not belong together";
  return NULL;
}

static bool look(PyObject* path, ovstage_go_note_t* out) {
  PyObject* name;
  if (!PyUnicode_FSConverter(path, &name)) return false;
  /* Not to wait for a writer, where it is a pipe. */
  int file = open(PyBytes_AsString(name), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  const char* fault = file < 0 ? strerror(errno) : look_at(file, out);
  if (file >= 0) close(file);
  Py_DECREF(name);
  return !fault || failed_to_load(path, fault);
}

/* ---- Interface levels -------------------------------------------------------------------------------------------- */

ovstage_go_interface_t library_interface(void) {
  static bool asked; /* once, by the first question or the first stage: a level does not change under a process */
  static ovstage_go_interface_t found;
  static char said[32];
  if (!asked) {
    const char* name = getenv(OVSTAGE_GO_INTERFACE_VARIABLE);
    found = ovstage_go_interface_named(name);
    if (found == OVSTAGE_GO_INTERFACE_DEFAULT) PyOS_snprintf(said, sizeof said, "%s", name);
    asked = true;
  }
  if (found == OVSTAGE_GO_INTERFACE_DEFAULT)
    PyErr_Format(PyExc_ValueError,
                 OVSTAGE_GO_INTERFACE_VARIABLE
                 " is '%s', which is no interface level: set it to 0.2 or 0.3, or unset it for 0.2",
                 said);
  return found;
}

bool library_level(uint32_t level[3]) {
  ovstage_go_note_t seen = opened;
  ovstage_go_interface_t interface = library_interface();
  if (!interface) return false;
  if (!is_open) {
    PyObject* path = library_path();
    bool good = path && look(path, &seen);
    Py_XDECREF(path);
    if (!good) return false;
  }
  if (interface == OVSTAGE_GO_INTERFACE_0_3) seen = (ovstage_go_note_t){.minor = 3};
  memcpy(level, (uint32_t[]){seen.major, seen.minor, seen.patch}, 3 * sizeof *level);
  return true;
}

/* ---- Room -------------------------------------------------------------------------------------------------------- */

/* Bytes of address space, not of memory, that the runtime of Go and its threads reserve. */
#define NEEDED_SPACE ((uint64_t)7 << 28)

static bool has_address_space(void) {
  struct rlimit limit;
  unsigned long long pages = 0;
  if (getrlimit(RLIMIT_AS, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY) return true;
  FILE* sizes = fopen("/proc/self/statm", "re");
  bool known = sizes && fscanf(sizes, "%llu", &pages) == 1;
  if (sizes) fclose(sizes);
  uint64_t used = pages * (uint64_t)sysconf(_SC_PAGESIZE);
  if (!known || (used <= limit.rlim_cur && limit.rlim_cur - used >= NEEDED_SPACE)) return true;
  PyErr_Format(
      PyExc_RuntimeError,
      "Failed to load the native library of ovstage: it reserves %llu MiB of address space, and of the %llu MiB "
      "that this process may have %llu are in use. Raise the limit (ulimit -v).",
      (unsigned long long)(NEEDED_SPACE >> 20), (unsigned long long)(limit.rlim_cur >> 20),
      (unsigned long long)(used >> 20));
  return false;
}

/* Threads that the engine has at work at once, seen on a machine of two cores: 6; each further core may add one. */
enum { FEW_THREADS = 8, MOST_THREADS = 64 };

static void* stand_by(void* gate) {
  pthread_mutex_lock(gate);
  pthread_mutex_unlock(gate);
  return NULL;
}

/* Whether so many threads can be made beside those that there are. They wait until the last was made or refused. */
static bool has_threads(void) {
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  int wanted = FEW_THREADS + (cores > 2 ? (int)cores - 2 : 0), made = 0, refusal = 0;
  if (wanted > MOST_THREADS) wanted = MOST_THREADS;
  pthread_t threads[MOST_THREADS];
  pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&gate);
  while (made < wanted && (refusal = pthread_create(&threads[made], NULL, stand_by, &gate)) == 0) made++;
  pthread_mutex_unlock(&gate);
  for (int i = 0; i < made; i++) pthread_join(threads[i], NULL);
  if (refusal == 0) return true;
  PyErr_Format(PyExc_RuntimeError,
               "Failed to load the native library of ovstage: it works with up to %d threads, and the system gave this "
               "process only %d more (%s). Raise the limit (ulimit -u, or pids.max of the container).",
               wanted, made, strerror(refusal));
  return false;
}

/* ---- Opening ----------------------------------------------------------------------------------------------------- */

static bool find_functions(void* handle, library_functions* out) {
#define FIND(name) \
  if (!(out->name = (__typeof__(out->name))dlsym(handle, "ovstage_" #name))) return false;
  LIBRARY_FUNCTIONS(FIND)
#undef FIND
  return true;
}

bool library_open(void) {
  if (is_open) return true;
  PyObject *path = library_path(), *name = NULL;
  if (path && look(path, &opened) && has_address_space() && has_threads() && PyUnicode_FSConverter(path, &name)) {
    void* handle = dlopen(PyBytes_AsString(name), RTLD_NOW | RTLD_LOCAL);
    library_functions found;
    if (handle && find_functions(handle, &found)) {
      library = found;
      is_open = true;
    } else {
      const char* why = dlerror();
      failed_to_load(path, why ? why : "the loader gave no reason");
    }
  }
  Py_XDECREF(name);
  Py_XDECREF(path);
  return is_open;
}

bool library_is_open(void) { return is_open; }
