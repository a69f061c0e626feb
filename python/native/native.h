/*
 * native.h - what the C files of the extension share.
 *
 * ovstage._native stands between Python and the C ABI of libovstage.so. It builds the structures of a call straight
 * from the caller's objects, and owns everything whose lifetime Python cannot be trusted with: buffers under views,
 * DLPack exports, consumed capsules.
 *
 * The files, in reading order. A file may use what stands in files above it; this header has a section for each, in the
 * same order. Methods are static: a file exports the table of them, and the file of the type joins the tables.
 *
 *   object.c         what exists once, and what all objects of the extension share
 *   park.c           Python references that are dropped without the GIL
 *   library.c        libovstage.so, opened by the first stage
 *   error.c          exceptions: classes, the library's words, wrong arguments as they are quoted
 *   waiting.c        waits that answer Ctrl-C
 *
 *   trait.c          what a given object is: a text, a truth value, a masked array
 *   arguments.c      calling conventions
 *   guard.c          guards of numbers, names, modes and lists of texts
 *   dlpack_in.c      tensors from DLPack producers
 *   words.c          lists of numbers and of truth values
 *   extent.c         how far a DLTensor leads
 *   source.c         one tensor of a write
 *   buffer.c         views of column bytes, and what keeps memory of the library alive
 *   export.c         DLPack structures over memory that is not the library's
 *   managed.c        ManagedDLTensor: one tensor, offered to consumers
 *   exchange.c       DLPack's C exchange table
 *   log.c            the log callback
 *
 *   orphan.c         inputs of operations whose objects are gone
 *   call.c           how a call on a stage begins and answers
 *   unasked.c        failures that were not asked about
 *   operation.c      Operation: what became of one enqueued call
 *   handle.c         Handle: what a stage hands out
 *   dictionary.c     Stage: tokens, names, paths
 *   pathlist.c       Stage: path lists
 *   payload.c        one attribute of a write
 *   write.c          Stage: writes and deletes
 *   query.c          Stage: queries
 *   implicit.c       ImplicitQuery: a query that the short form makes in passing
 *   session.c        map sessions, as their groups see them
 *   group.c          Group: fetched, open, released
 *   group_tensors.c  Group: rows and tensors
 *   ragged.c         Group: rows of an array column as one run
 *   arrow.c          Group: values for Arrow readers
 *   group_type.c     Group: the type, its numbers, groups that a caller builds
 *   read.c           Stage: reads
 *   map.c            Stage: maps
 *   floor.c          Stage: write floors
 *   scene.c          Stage: clones, relatives, world transforms, instances
 *   contents.c       Stage: what it holds, in numbers
 *   stage.c          Stage: the type, its beginning and end
 *   module.c         import: types and functions of the module
 *
 * Order       A method converts its arguments first, then asks for state: a conversion may run any code
 *             (__index__, __bool__, __iter__, __dlpack__), which may release the very object. From there to the call no
 *             Python code runs.
 * GIL         Released around every call that may wait or take a lock of the engine. Held where C answers alone: counts
 *             of references, exports, a look at an operation that is done.
 * References  A Python reference is dropped with the GIL only. A deleter may run without it: it parks what it holds
 *             (park.c).
 * Structures  A structure that the engine reads during the call alone is on the stack. What it may read until the
 *             operation is done, a payload and its descriptors, is allocated, and the Operation keeps it.
 * fork        A forked child may not call the engine. The library refuses there and its releases do nothing; what is
 *             answered here without it asks `native.forked` first.
 *
 * One copy of this state per process, on purpose: the engine is one per process too. Other interpreters are refused.
 */
#ifndef OVSTAGE_NATIVE_H
#define OVSTAGE_NATIVE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h> /* before all others: it chooses what the system headers declare */
#include <ovstage/ovstage.h>
#include <ovstage/ovstage_config.h>
#include <ovstage/ovstage_go.h>
#include <ovx/path_dictionary/path_dictionary.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "docs_generated.h" /* DOC_<class>_<method>: the docstrings, made from ovstage/_native.pyi */
#include "library.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "foreign byte order is told apart by this");
_Static_assert(sizeof(Py_ssize_t) == sizeof(int64_t), "shapes of the buffer protocol are used as shapes of DLPack");

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Run one statement that may wait or take a lock. What it uses must be alive without Python's help. */
#define WITHOUT_GIL(statement)                      \
  do {                                              \
    PyThreadState* suspended = PyEval_SaveThread(); \
    statement;                                      \
    PyEval_RestoreThread(suspended);                \
  } while (0)

/* ---- object.c ---------------------------------------------------------------------------------------------------- */

typedef struct {
  PyTypeObject *stage, *operation, *handle, *group, *managed, *buffer, *imported, *hold, *owner, *implicit;
  struct { /* attribute and keyword names, interned */
    PyObject *dlpack, *dlpack_device, *raw, *dtype, *stream, *start_ordinal, *end_ordinal, *path_list;
  } name;
  PyObject* empty_tuple;
  PyObject* ask_versioned;   /* {"max_version": (1, 3)} */
  const ovstage_go_v1_t* go; /* the extension table, found with the first instance */
  int64_t stages;            /* that are alive */
  bool forked;               /* this process is a forked child of one that had the library open */
} native_state;

extern native_state native;

/* An attribute of a module of the package, imported at first use and kept. `slot` is a static of the caller. */
PyObject* package_attribute(PyObject** slot, const char* module, const char* attribute);

/* A new object of a type of this module or of a Python subclass, all zero, without calling __init__. */
PyObject* new_object(PyTypeObject* type);
void free_object(PyObject* self); /* the last act of a tp_dealloc */

bool add_methods(PyTypeObject* type, PyMethodDef* table); /* to those of its spec, before the type is given out */

/* Whether the interpreter is on its way out: modules are being emptied, and whatever is left goes with the process. */
bool finalizing(void);

/* Call `_forgotten` of an object that its finaliser has found open: it says that the caller should have ended it. Keeps
 * a pending exception. */
void forgotten(PyObject* object);

/* ---- park.c ------------------------------------------------------------------------------------------------------ */

/* Python references of something that foreign code may delete anywhere. The node is part of a malloc'd block that
 * starts with it; dropping the references frees the block. */
typedef struct parked {
  struct parked* next;
  PyObject* owner;               /* keeps the bytes alive */
  PyObject* context;             /* the caller's manager_ctx ... */
  PyObject* callback;            /* ... and what to call with it; NULL = nothing */
  void (*close)(struct parked*); /* gives back what else is in the block; NULL = nothing */
} parked;

void park(parked* node);        /* any thread, with or without the GIL, also after finalisation */
void parked_drop(parked* node); /* with the GIL; keeps a pending exception */
void parked_drop_all(void);

extern _Atomic(parked*) parked_list;

static inline void drop_parked(void) {
  if (atomic_load_explicit(&parked_list, memory_order_relaxed)) parked_drop_all();
}

/* ---- library.c --------------------------------------------------------------------------------------------------- */

/* All need the GIL. False: RuntimeError "Failed to load ..."; the next call tries again. */
bool library_open(void);
bool library_level(uint32_t level[3]); /* the interface level, which the file tells without being opened */
bool library_is_open(void);

/* The interface level of stages for which none is said; 0 with a ValueError where the environment names an unknown one.
 */
ovstage_go_interface_t library_interface(void);

/* ---- error.c ----------------------------------------------------------------------------------------------------- */

/* At import, since failures are raised until the interpreter is gone, when nothing can be imported any more. */
bool load_error_classes(void);
extern PyObject* unasked_warning; /* OvstageWarning */

/* Raise OvstageError(code, text); NULL, so that callers can return it. The format is PyUnicode_FromFormat's. */
PyObject* raise_stage_error(int64_t code, const char* format, ...);
PyObject* raise_stage_error_text(int64_t code, PyObject* text); /* takes `text` over; NULL = an exception is set */

/* The same with what the library said last on this thread; in its absence the library's words for the code. */
PyObject* raise_library_error(int64_t code);
PyObject* last_library_text(int64_t code);

/* Raise what the library says to any call in a forked child. */
PyObject* raise_forked(const char* method);

/* Raise OvxError with the dictionary's text, and give the text back to it. `handle`, which may be NULL, is what the
 * text is about where it cannot say so: its words are fixed by the interface. */
PyObject* raise_dictionary_error(path_dictionary_instance_t* dictionary, ovx_string_t text, const uint64_t* handle);

/* Raise `kind` with a message, the exception that is set now becoming its cause. */
PyObject* raise_from_current(PyObject* kind, const char* format, ...);

PyObject* string_of(ovx_string_t text);
PyObject* shown(PyObject* value); /* "5.25 (float)": how messages quote a wrong argument */

/* ---- waiting.c --------------------------------------------------------------------------------------------------- */

/* Wait in slices, so that Ctrl-C is answered: `attempt` runs without the GIL until it answers anything but TIMEOUT or
 * the time is up. False: a signal handler raised. */
typedef ovstage_api_status_t (*attempt_function)(void* call, uint64_t timeout);
bool wait_in_slices(attempt_function attempt, void* call, uint64_t timeout, ovstage_api_status_t* out);

/* ---- trait.c ----------------------------------------------------------------------------------------------------- */

bool is_text(PyObject* value); /* str, bytes or bytearray */

/* 1 and a new reference, or 0 without an exception where the object has no such attribute; -1: an exception. */
int optional_attribute(PyObject* object, const char* name, PyObject** out);
int has_attribute(PyObject* object, const char* name); /* the same, without the reference */

/* Whether a value is a bool of Python, NumPy or a tensor library; -1: an exception. */
int is_truth(PyObject* value);
int has_truth_dtype(PyObject* object); /* of arrays: whether their elements are */

/* Whether a masked array of numpy.ma hides an element, in `value` or in a list that it is; -1: an exception. */
int hides_elements(PyObject* value);
bool refuse_hidden(const char* name);                   /* false, always */
bool check_unmasked(PyObject* value, const char* name); /* false with an exception set */

/* Refuse sets and mappings where a list is meant: `expected` completes "<name> must be ...". */
bool check_order(PyObject* values, const char* name, const char* expected);

/* ---- arguments.c ------------------------------------------------------------------------------------------------- */

/* Parameters of a METH_FASTCALL | METH_KEYWORDS function. The first `positional` ones may be given by position, the
 * first `required` must be given. Keywords in source code are interned: comparing pointers finds nearly all of them. */
typedef struct {
  const char* function;
  int positional, required;
  const char* names[16];  /* ends with NULL; an enum in the function names their indices */
  PyObject* interned[16]; /* filled in at first use */
} signature;

/* Puts each argument at the index of its name, NULL where it was not given. False: TypeError. */
bool sort_arguments(signature* sig, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames, PyObject** slots);

/* For plain METH_FASTCALL functions: `count` is how many an enum in the function names. False: TypeError. */
bool check_argument_count(const char* function, Py_ssize_t nargs, Py_ssize_t count);

static inline bool is_given(PyObject* argument) { return argument && argument != Py_None; }

/* Entries of method tables. */
#define FAST(function) (PyCFunction)(void (*)(void)) function, METH_FASTCALL
#define FAST_KEYWORDS(function) (PyCFunction)(void (*)(void)) function, METH_FASTCALL | METH_KEYWORDS

/* ---- guard.c ----------------------------------------------------------------------------------------------------- */

/* All return false with TypeError or ValueError set; the message names the argument. */
bool guard_uint64(PyObject* value, const char* name, uint64_t* out);
bool guard_uint32(PyObject* value, const char* name, uint32_t* out);
bool guard_int32(PyObject* value, const char* name, int32_t* out);
bool guard_int64(PyObject* value, const char* name, int64_t* out);
bool guard_timeout(PyObject* value, uint64_t* out);                                              /* NULL = infinite */
bool guard_attribute(PyObject* value, const char* name, ovx_string_or_token_t* out);             /* borrows the bytes */
bool guard_open_member(PyObject* value, const char* name, const char* enum_class, int32_t* out); /* any int32 */
bool guard_prim_mode(PyObject* value, ovstage_prim_mode_t* out);                                 /* NULL = UPSERT */
bool guard_scope(PyObject* value, ovstage_scope_t* out);                                         /* NULL = ALL */
bool guard_string(PyObject* value, const char* name, ovx_string_t* out);                         /* borrows the bytes */

/* A Python int, or NULL with a TypeError. `expected` completes "<name> must be ...". Truth values are no numbers. */
PyObject* guard_int(PyObject* value, const char* name, const char* expected);
bool unsigned_value(PyObject* number, const char* name, int bits, uint64_t* out); /* 0 .. 2**bits - 1 */
PyObject* guard_int_or_hint(PyObject* value, const char* name, const char* expected,
                            const char* hint); /* ends the message */

/* A tuple of what a list holds: a new reference, which no other code changes. `expected` completes "<name> must be
 * ..."; a single str or bytes is refused, though it could be iterated. NULL: an exception. */
PyObject* guard_sequence(PyObject* values, const char* name, const char* expected);

/* A list of str in an argument. The tuple keeps the bytes alive while the GIL is released. */
typedef struct {
  ovx_string_t* data;
  size_t count;
  PyObject* tuple;
} texts;

bool texts_open(texts* out, PyObject* values, const char* name);
void texts_close(texts* list);

/* A list of names or tokens of attributes in an argument; all zero is a valid empty one. */
typedef struct {
  ovx_string_or_token_t* data;
  size_t count;
  PyObject* tuple;
} attribute_names;

bool attribute_names_open(attribute_names* out, PyObject* values, const char* name);
void attribute_names_close(attribute_names* list);

/* ---- dlpack_in.c ------------------------------------------------------------------------------------------------- */

/* A consumed DLPack export. All zero = none. */
typedef struct {
  DLManagedTensor* legacy;
  DLManagedTensorVersioned* versioned;
} imported;

extern PyType_Spec imported_spec;

enum { MOST_AXES = OVSTAGE_GO_MOST_AXES, MOST_LANES = OVSTAGE_GO_MOST_LANES };

/* Ask `object` for its tensor and take it over. `where` names the argument in messages. */
bool import_open(imported* out, PyObject* object, PyObject* stream, const char* where);
void import_close(imported* self); /* calls the deleter, once; keeps a pending exception */
const DLTensor* import_tensor(const imported* self);

/* What an object says of its device: a DLDeviceType, DEVICE_UNKNOWN if it says nothing, DEVICE_FAILED with an exception
 * if it cannot say. */
enum { DEVICE_UNKNOWN = 0, DEVICE_FAILED = -1 };
long stated_device(PyObject* object);
bool on_host(long device); /* memory that the CPU can read */

extern PyMethodDef import_functions[];

/* ---- words.c ----------------------------------------------------------------------------------------------------- */

/*
 * A list in an argument: a view into the caller's array where its type is the wanted one, else a copy. All zero is a
 * valid empty one. words_close may be called twice.
 */
typedef struct {
  const void* data; /* uint32_t or uint64_t, as asked */
  size_t count;
  void* copy;
  Py_buffer view;  /* view.obj == NULL: none */
  imported tensor; /* all zero: none */
} words;

/* Makes tokens of names, where names are welcome. `where` is what to call the item in messages. */
typedef struct {
  bool (*token)(void* context, PyObject* name, const char* where, uint64_t* out);
  void* context;
} name_reader;

/* A list of tokens, or of names. */
bool named_words_open(words* out, PyObject* values, const char* name, const name_reader* names);

/* `name` and `entries` begin the messages: "index_map", " entries". */
bool words_open(words* out, PyObject* values, const char* name, const char* entries, int bits);
void words_close(words* list);

/* The argument `mask`: words of 64 bits, or truth values, which are packed into them; `truths` tells how many they are,
 * and is -1 for words. */
bool mask_open(words* out, PyObject* values, Py_ssize_t* truths);

/* The same, with the argument `count`, NULL or None where it is left out: how many prims the mask is for. */
bool counted_mask_open(words* out, PyObject* values, PyObject* given_count, uint32_t* count);

/* ---- extent.c ---------------------------------------------------------------------------------------------------- */

/* How many bytes lie behind a DLTensor's pointer, as far as this package knows; -1 = it does not. False: exception. */
bool known_extent(PyObject* tensor, int64_t* held);

/* False, with an exception of `kind`, when the shape of `t` leads out of `held` bytes behind its pointer. What makes no
 * tensor at all is left to the code that reads it next. */
bool check_extent(const DLTensor* t, int64_t held, PyObject* kind, const char* where);

/* The arrays for shape and strides that this package gave a DLTensor, and how many entries they have. All 0: none. */
typedef struct {
  unsigned long long shape, strides;
  long long entries;
} axes_room;

bool known_axes(PyObject* tensor, axes_room* out); /* False: an exception */

/* False, with an exception of `kind`, when `t` says more axes than its arrays, if they are these, have entries. To be
 * asked before the arrays are read: fields of a DLTensor may be assigned. */
bool check_axes(const DLTensor* t, const axes_room* room, PyObject* kind, const char* where);

PyObject* known_attribute(PyObject* object,
                          const char* name); /* an attribute, None where there is none; NULL: an exception */

/* ---- source.c ---------------------------------------------------------------------------------------------------- */

enum { INLINE_AXES = 4 };

typedef struct {
  Py_buffer view;  /* view.obj == NULL: none */
  imported tensor; /* all zero: none */
  PyObject* owner; /* of the memory that a DLTensor describes; NULL: none known */
  int64_t* axes;   /* strides of a view, or shape and strides of a DLTensor */
  int64_t inline_axes[2 * INLINE_AXES];
} source;

typedef struct {
  const char* name; /* of the argument: "tensors" */
  bool several;     /* a list or tuple was given ... */
  size_t index;     /* ... and this is which of its items */
  char text[32];
} argument;

const char* argument_text(argument* at); /* "tensors[3]" */

/* Takes what it opens into `self`, which must be all zero; to be closed also after a failure. */
bool source_open(source* self, PyObject* object, argument* at, DLTensor* out);
void source_close(source* self);

/* A source of its own, whose deleter may be called anywhere. NULL: an exception. */
DLManagedTensorVersioned* gift_new(PyObject* object, argument* at);

/* ---- buffer.c ---------------------------------------------------------------------------------------------------- */

/* Keeps descriptors and a block alive. A plain value: copy it only together with its references. */
typedef struct {
  const DLTensor* descriptors;
  ovstage_go_block_t* block;
  PyObject* source; /* instead: the caller's own object */
} keep;

keep keep_retain(const DLTensor* descriptors, ovstage_go_block_t* block);
void keep_release(keep* held);

extern PyType_Spec buffer_spec, hold_spec;

PyObject* hold_new(keep held); /* takes the references over, also on failure */
PyObject* buffer_of_tensor(const DLTensor* tensor, bool readonly, keep held);
PyObject* buffer_of_uint32s(const uint32_t* data, size_t count, keep held);

/* What people call an element type, lanes aside: "bfloat16". */
void name_type(char* out, size_t size, DLDataType type);

/* ---- export.c ---------------------------------------------------------------------------------------------------- */

/* What a capsule may be called, before a consumer has taken the tensor out of it. */
#define LEGACY_NAME "dltensor"
#define VERSIONED_NAME "dltensor_versioned"

/* How many bytes a compact copy takes; -1 for a descriptor that describes nothing. Runs without the GIL, too. */
int64_t export_bytes(const DLTensor* t);

PyObject* shape_of(const DLTensor* t); /* a tuple, without lanes */

/* Base elements of one row, of a tensor whose axes were judged: lanes at interface level 0.2, axes behind the first at
 * 0.3. */
static inline int64_t row_width(const DLTensor* t) {
  int64_t width = t->dtype.lanes;
  for (int32_t axis = 1; axis < t->ndim; axis++) width *= t->shape[axis];
  return width;
}

/* Exports of a tensor as consumers want it: lanes as one trailing axis, real strides, no byte offset. They keep `owner`
 * and `context`, and call `callback`, which may be NULL, with the latter. NULL: an exception. */
DLManagedTensorVersioned* export_versioned(const DLTensor* t, PyObject* owner, PyObject* context, PyObject* callback,
                                           uint64_t flags);
DLManagedTensor* export_legacy(const DLTensor* t, PyObject* owner, PyObject* context, PyObject* callback);

/* Exports of a compact writable copy in host memory. NULL: an exception. */
DLManagedTensorVersioned* export_versioned_copy(const DLTensor* t);
DLManagedTensor* export_legacy_copy(const DLTensor* t);

/* Uninitialised memory of the shape and type of `prototype`. NULL without an exception: runs without the GIL. */
DLManagedTensorVersioned* export_empty(const DLTensor* prototype);

/* Delete a tensor that no consumer has taken, with the GIL: Python references need no detour. */
void export_end_legacy(DLManagedTensor* m);
void export_end_versioned(DLManagedTensorVersioned* m);

/* ---- managed.c --------------------------------------------------------------------------------------------------- */

extern PyType_Spec managed_spec;

/* A tuple of ints of a shape that a caller asks for: a new reference. NULL: TypeError, or what one of them has raised.
 */
PyObject* axes_of(PyObject* shape);

/* `axes` are other ones over the same elements, from axes_of, or NULL. Takes `held` over, also on failure. */
PyObject* managed_of_tensor(ovstage_instance_t* instance, const DLTensor* tensor, PyObject* axes, bool readonly,
                            keep held);
PyObject* managed_private(PyObject* managed); /* its exports are copies from now on; returns its argument */
DLManagedTensorVersioned* managed_export(PyObject* object); /* of a ManagedDLTensor; NULL: an exception */

/* ---- exchange.c -------------------------------------------------------------------------------------------------- */

bool managed_add_exchange_table(PyTypeObject* type);

/* ---- log.c ------------------------------------------------------------------------------------------------------- */

bool begin_log(
    void); /* with a stage, before it is made: a callback that was kept comes into force. False: an exception */
bool end_log_of_stages(
    void); /* with the last stage, after it has gone. False: a signal handler raised, all has ended anyway */

extern PyMethodDef log_functions[];

/* ---- Stage, on which all below works ----------------------------------------------------------------------------- */

/* A map session as the groups fetched from it see it. Counted under the GIL. */
typedef struct map_session {
  struct map_session* next; /* in the stage's list while it is open */
  uint64_t handle;
  int64_t references;
  bool ended;
} map_session;

/* Inputs of an operation whose Operation was dropped before it was done. */
typedef struct orphan {
  struct orphan* next;
  uint64_t op;
  bool release; /* the caller does not know the id */
  PyObject* inputs;
} orphan;

struct Operation;

typedef struct {
  PyObject_HEAD ovstage_instance_t*
      instance; /* retained: valid memory until dealloc, also after destroy; NULL before __init__ */
  bool alive;
  map_session* sessions;
  orphan* orphans;
  /* The text of the last refused enqueue, for the Operation that the same thread makes of it next: a finalizer that
   * runs in between may call the library, which would overwrite its own record. */
  PyObject* refusal;
  uint64_t refusing_thread;
  int64_t refused_status;
  PyObject* spare;            /* the Operation of the next call: see operation_prepare */
  struct Operation* refusals; /* those whose objects are alive, the newest first; they unlist themselves */
} Stage;

/* ---- orphan.c ---------------------------------------------------------------------------------------------------- */

/* Take `inputs` over until the operation is done. Sets no exception. */
void stage_adopt_orphan(Stage* self, uint64_t op, bool release, PyObject* inputs);
void drop_finished_orphans(Stage* self);

/* ---- call.c ------------------------------------------------------------------------------------------------------ */

/* False with INVALID_HANDLE set once the stage is destroyed. Drops what is parked or orphaned: every call begins here.
 */
bool stage_begin(Stage* self, const char* method);

/* Take the words of a refusal, on the thread of the call, before anything else calls the library. */
void stage_remember_refusal(Stage* self, int64_t status);
PyObject* stage_refusal_text(Stage* self, int64_t status); /* new reference */

/* Has the Operation of the next call made before the call, since one that was carried out must not end for want of
 * memory. False: MemoryError. Of threads that call at once, one may have to make its own afterwards. */
bool operation_prepare(Stage* stage);

/* The stage of a weak reference, for a finaliser that gives something back: a new reference, or NULL once it was
 * destroyed, in a forked child, and when the interpreter ends. */
Stage* usable_stage(PyObject* weak);

PyObject* none_or_raise(ovstage_api_status_t status);
PyObject* list_of_uint64s(const uint64_t* values, size_t count);

/* ---- unasked.c --------------------------------------------------------------------------------------------------- */

/* Tell of a failure of `call`: "write_attribute of "v" at ordinal 2 <how> and nobody asked why: ...". `attribute` is a
 * name or a token; it and `ordinal` may be NULL. `level` is that of PyErr_WarnFormat. False: the warning was made an
 * exception. */
bool tell_unasked(Stage* stage, const char* call, PyObject* attribute, const uint64_t* ordinal, int64_t code,
                  const char* how, PyObject* reason, Py_ssize_t level);

extern PyMethodDef stage_unasked_methods[];

/* ---- operation.c ------------------------------------------------------------------------------------------------- */

extern PyType_Spec operation_spec;

/* An Operation from the answer of an enqueue. Takes `inputs` over, which may be NULL. */
PyObject* operation_new(Stage* stage, ovstage_enqueue_result_t answer, PyObject* inputs);

/* The code that an Operation was refused with; OVSTAGE_OK if it was accepted. */
int64_t operation_refusal(PyObject* operation);

/* Find out at once what became of it: for operations that may fail after they were accepted. Returns its argument, or
 * NULL with an exception. */
PyObject* operation_settled(PyObject* operation);

/* Say which call an operation comes from, so that its failure is told when the caller does not ask: a static text, the
 * name or token of the attribute, and the ordinal, either of which may be NULL. Returns its argument, which may be
 * NULL. */
PyObject* operation_named(PyObject* operation, const char* call, PyObject* attribute, const uint64_t* ordinal);

PyObject* operation_named_like(PyObject* operation, const char* call, PyObject* other);

/* Methods of Operation that handles have too. */
PyObject* operation_wait(PyObject* object, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);

extern PyMethodDef stage_operation_methods[];

/* ---- handle.c ---------------------------------------------------------------------------------------------------- */

extern PyType_Spec handle_spec;

/* A class of ovstage.handles, found at first use, and how one that is dropped ends; false where it had ended. */
typedef struct handle_class {
  const char* name;
  bool (*drop)(Stage*, uint64_t number);
  bool quiet; /* one that is dropped ends without a word: there is nothing to forget */
  PyObject* type;
  struct handle_class* next; /* of those that objects of Python code may be of */
} handle_class;

void handle_class_add(handle_class* class);

/*
 * A handle is made before the call that fills it. Between that call and the object no Python code runs: an interrupt
 * comes when the number has an owner, and the owner ends it.
 */
PyObject* handle_reserve(handle_class* class);
void handle_keep_trials(PyObject* reserved, PyObject* trials); /* names that it was asked for go with it */
PyObject* handle_open(PyObject* reserved, Stage* stage, ovstage_enqueue_result_t answer, uint64_t number);
PyObject* handle_open_now(PyObject* reserved, Stage* stage, uint64_t number); /* open at once, without an operation */

/* As operation_named, of what opens it. */
PyObject* handle_named(PyObject* handle, const char* call, PyObject* attribute, const uint64_t* ordinal);

/* Name an operation on a handle, an object or its number, after the attribute and the ordinal that it was opened for.
 */
PyObject* handle_names(PyObject* operation, const char* call, PyObject* handle);

/* The number of a Handle. False with an exception: it was ended, or never opened, for which it has the code of the
 * cause. */
bool handle_number(PyObject* handle, uint64_t* out);

/* Take a handle out of use before the call that ends it, and undo that because the call was refused. What is no Handle
 * but a number needs neither. False with an exception: it has ended, or was never opened. */
bool handle_claim(PyObject* given);
void handle_reopen(PyObject* given);

typedef ovstage_enqueue_result_t (*end_function)(ovstage_instance_t*, uint64_t);
bool handle_drop(Stage* stage, uint64_t number, end_function end); /* what a finaliser does */

/* End a handle, an object or its number, by an enqueue that takes nothing else: an Operation. An object is claimed
 * first, so that it ends once, and reopened on a refusal. Takes `inputs` over, what to keep until it is done, or NULL.
 */
PyObject* handle_end(PyObject* stage, PyObject* given, const char* name, const char* method, end_function end,
                     PyObject* inputs);

/* Guards of arguments, as those of guard.c. */
bool guard_handle(PyObject* value, const char* name, uint64_t* out); /* a number, or a wrapper that is still open */
bool guard_path_list(PyObject* value, uint64_t* out);

/* ---- dictionary.c ------------------------------------------------------------------------------------------------ */

/* The path dictionary of a stage that is alive. NULL: an exception, as from stage_begin. */
path_dictionary_instance_t* open_dictionary(Stage* self, const char* method);

/* A list of tokens, or of names, of which the stage makes tokens. `method` is what was called. With `trials`, a
 * name that is new is on trial: it goes with the list there, which is appended what keeps it, and made if it is NULL.
 * Without: it stays. */
bool tokens_open(words* out, Stage* stage, PyObject* values, const char* name, const char* method, PyObject** trials);

extern PyMethodDef stage_dictionary_methods[];

/* ---- pathlist.c -------------------------------------------------------------------------------------------------- */

extern PyType_Spec owner_spec;

PyObject* paths_of_list(Stage* self, uint64_t list); /* a list of path handles */

extern PyMethodDef stage_pathlist_methods[];

/* ---- payload.c --------------------------------------------------------------------------------------------------- */

typedef struct {
  ovstage_attribute_write_t write; /* what the engine gets */
  const char* tensors_name;        /* what the caller knows them by */
  PyObject* attribute;             /* keeps the bytes of a name */
  ovx_string_or_token_t type_name; /* all zero: not said */
  PyObject* type_text;             /* keeps its bytes; NULL: not said */
  words index_map, mask;
  size_t whole; /* truth values of a mask without a count: so many prims must the query have; 0: not asked */
  size_t count;
  DLTensor* tensors; /* what stays the caller's ... */
  source* sources;
  DLManagedTensorVersioned** gifts; /* ... or what does not */
  bool given;                       /* the gifts are the engine's now */
  DLTensor one_tensor;
  source one_source;
  DLManagedTensorVersioned* one_gift;
} payload;

/* What a call says of itself in messages: the short form has other words than the long one. */
typedef struct {
  const char *call, *attribute, *tensors;
} write_form;

/* What a write call and a WriteDesc have in common; NULL = not given. */
typedef struct {
  const write_form* form;
  PyObject *attribute, *tensors, *is_array, *index_map, *mask, *count, *cuda_event, *cuda_stream, *semantic, *transfer,
      *lanes, *type_name;
} write_arguments;

/* All checks of one entry, in the order in which they are promised. The payload must be all zero, and is to be closed
 * also after a failure. */
bool payload_open(payload* self, const write_arguments* args);

/* What can only be asked once the query is known. */
bool payload_check_query(const payload* self, Stage* stage, uint64_t query);
void payload_close(payload* self);

/* ---- write.c ----------------------------------------------------------------------------------------------------- */

extern PyMethodDef stage_write_methods[];

/* ---- query.c ----------------------------------------------------------------------------------------------------- */

extern handle_class query_class, part_class;
extern PyMethodDef stage_query_methods[];

/* ---- implicit.c -------------------------------------------------------------------------------------------------- */

extern PyType_Spec implicit_spec;

/* ---- session.c --------------------------------------------------------------------------------------------------- */

/* The record of a session, made before the fetch: whatever ends the session meanwhile must find it. One reference more.
 * NULL: MemoryError. */
map_session* session_join(Stage* self, uint64_t handle);
void session_leave(Stage* self, map_session* session);
void session_release(map_session* session);

/* Mark a session's groups as dead before the call that ends it: the GIL is free while it runs. */
void session_begin_end(Stage* self, uint64_t handle);
void session_finish_end(Stage* self, uint64_t handle, bool ended);
void session_end_all(Stage* self); /* with the stage */

/* ---- group.c ----------------------------------------------------------------------------------------------------- */

typedef enum { GROUP_READ, GROUP_MAP } group_kind;

typedef struct {
  PyObject_HEAD group_kind kind;
  bool fetched; /* came out of the library, which knows it; else built by the caller over `source` */
  bool claimed; /* released, or its release is under way */
  bool borrows; /* there was no memory for an index map of its own: see keep_prims */
  Stage* stage; /* or NULL */
  PyObject* source;
  map_session* session;
  const DLTensor* descriptors; /* retained: what `prims` and `data` point at outlives a release behind our back */
  ovx_token_t type_name;       /* of the values; 0: they have none */
  ovstage_go_block_t* block;   /* read groups retain their bytes; a map group must not: that would be a live view */
  union {
    ovstage_read_group_t read;
    ovstage_map_group_t map;
  } raw;
} Group;

/* A group for what a fetch will bring. It is made before the fetch, since what was fetched is not fetched again; until
 * it is filled it counts as released. */
Group* group_new(group_kind kind, PyTypeObject* type, Stage* stage);

/* How that fetch ended: the group, which takes `held` over; None after the last one; NULL with an exception set. */
PyObject* group_fetched(Group* self, keep held, bool answered, ovstage_api_status_t status);

/* What the two fetches have in common. */
typedef struct {
  Stage* stage;
  uint64_t handle;
  Group* group;
  keep held; /* what retains the group's memory */
} fetch_call;

bool group_claim(Group* self);          /* false with INVALID_HANDLE set if it was claimed before */
void group_release_memory(Group* self); /* after a release: drop what is retained */

/* False with an exception set: the memory of this group may not be touched any more. */
bool group_open(Group* self, const char* what);

/* What a view of this group has to hold. False: the bytes are gone, though we were not told. */
bool group_hold_payload(Group* self, const char* what, keep* out);

bool group_ended(const Group* self);

const ovstage_prim_group_t* group_prims(const Group* self);
const ovstage_data_t* group_data(const Group* self);
const ovstage_attribute_meta_t* group_meta(const Group* self);

/* The C structure of a group that is not one of ours: `size` bytes as such, or as the attribute `raw`. */
bool group_raw_of(PyObject* object, void* out, size_t size);

/* ---- group_tensors.c --------------------------------------------------------------------------------------------- */

extern PyMethodDef group_tensor_methods[];

/* ---- ragged.c ---------------------------------------------------------------------------------------------------- */

/* Where rows of `element` bytes an element, all tensors or those that `rows` lists, begin in memory if they lie there
 * one behind the other. NULL: they do not, or none has an element. */
const void* start_of_run(const DLTensor* tensors, const uint32_t* rows, size_t count, size_t element);

extern PyMethodDef group_ragged_methods[];

/* ---- arrow.c ----------------------------------------------------------------------------------------------------- */

extern PyMethodDef group_arrow_methods[];

/* ---- group_type.c ------------------------------------------------------------------------------------------------ */

extern PyType_Spec group_spec;
extern PyMethodDef* const group_methods[]; /* ends with NULL */

/* ---- read.c ------------------------------------------------------------------------------------------------------ */

extern handle_class read_class;
extern PyMethodDef stage_read_methods[];

/* ---- map.c ------------------------------------------------------------------------------------------------------- */

extern handle_class map_class;
extern PyMethodDef stage_map_methods[];

/* ---- floor.c ----------------------------------------------------------------------------------------------------- */

extern handle_class ordinal_query_class;
extern PyMethodDef stage_floor_methods[];

/* ---- scene.c ----------------------------------------------------------------------------------------------------- */

extern handle_class hierarchy_class;
extern PyMethodDef stage_scene_methods[];

/* ---- contents.c -------------------------------------------------------------------------------------------------- */

PyObject* counters_dict(const ovstage_go_counters_t* counters);

extern PyMethodDef stage_contents_methods[];

/* ---- stage.c ----------------------------------------------------------------------------------------------------- */

extern PyType_Spec stage_spec;
extern PyMethodDef* const stage_methods[]; /* ends with NULL */

#endif
