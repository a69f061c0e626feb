/*
 * ring.h - what the C files and the Go files of the ring share.
 *
 * A call comes in through a slot (vtable.c, dictionary.c) or a flat function (process.c, absent.c, extension.c). The C
 * side refuses what needs no engine to be refused - a forked child, a destroyed or broken stage, a NULL - and answers
 * what needs none to be answered. The rest goes on to the Go function of the same name with an ovgo prefix:
 * query_from_path_list calls ovgoQueryFromPathList. Slots that differ only in their arguments share the function of
 * one of them; tests/lint/check_lists.py has the exceptions.
 *
 * Ownership   A context lives while it is referenced: by its creator until ovstage_destroy_instance, by what
 *             retained the bundle, and by every DLPack export made through it. Its engine half, in Go, ends with the
 *             destroy.
 * Lock order  process lock (process.c), then whatever Go takes. The locks of gate.c, log.c and unasked.c are leaves.
 * None is held while foreign code runs: the deleter of a tensor that a column has taken over is due where the column
 * lets go of it, and runs when the call that did so, or another one that ends earlier, has let go of everything.
 */
#ifndef OV_RING_H
#define OV_RING_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <ov_block.h>
#include <ovstage/ovalign.h>
#include <ovstage/ovstage.h>
#include <ovstage/ovstage_go.h>
#include <ovstage/ovstage_population_export.h>
#include <ovx/path_dictionary/path_dictionary.h>
#include <ovx/path_dictionary/path_dictionary_helper.h>

/* ---- gate.c: calls that are inside, and the end that waits for them ---------------------------------------------- */

/* Counts the calls that are inside; its top bit says that no further one may enter. */
typedef struct ov_gate {
  uint64_t word;
} ov_gate;

bool ov_gate_enter(ov_gate* gate); /* false: closed. Else ov_gate_leave must follow. */
void ov_gate_leave(ov_gate* gate); /* the last thing a call does with the object: it may be gone right after */
bool ov_gate_shut(ov_gate* gate);  /* no further call may enter; false: was shut already */
void ov_gate_drain(ov_gate* gate); /* waits until all calls have left */
bool ov_gate_closed(const ov_gate* gate);
void ov_gate_open(ov_gate* gate);

/* ---- ops.c: operations, answered without Go while none has failed ------------------------------------------------ */

/* Released operations are remembered as bits of a ring. Ids that have left the window count as finished and not
 * released: a client that never releases its operations costs no memory. The window is shorter than the ring by more
 * ids than can be issued while a release is between its check and its bit. */
enum { OV_OP_RING = 1 << 20, OV_OP_WINDOW = OV_OP_RING - (1 << 16) };

typedef struct ov_op_log {
  uint64_t issued;    /* id of the newest operation; Go raises it */
  uint64_t failed;    /* failed operations that are not released; Go counts them */
  uint64_t* released; /* OV_OP_RING bits */
} ov_op_log;

bool ov_op_log_open(ov_op_log* log); /* false: out of memory */
void ov_op_log_close(ov_op_log* log);
void ov_op_log_accept(ov_op_log* log, ovstage_op_id_t op); /* before the client learns of the new id */

ovstage_api_status_t ov_op_wait(ovstage_context_t* context, ovstage_op_id_t op, ovstage_timeout_ns_t timeout,
                                ovstage_op_wait_result_t* result);
ovstage_api_status_t ov_op_release(ovstage_context_t* context, ovstage_op_id_t op);
ovstage_api_status_t ov_op_status(ovstage_context_t* context, ovstage_op_id_t op);

/* ---- floor.c: waiting for the write floor ------------------------------------------------------------------------ */

/* A floor may have moved, the stage is about to end, or it broke down: calls that wait for a floor look again. */
void ov_floor_wake(ovstage_context_t* context);

/* The call `wait_floor`, for a caller that is inside the stage. The names are copies. */
ovstage_api_status_t ov_floor_wait(ovstage_context_t* context, const ovx_string_or_token_t* attributes, size_t count,
                                   ovstage_ordinal_t ordinal, ovstage_timeout_ns_t timeout);

/* The call `floor_moves`, likewise. */
ovstage_api_status_t ov_floor_moves(const ovstage_context_t* context, uint64_t seen, ovstage_timeout_ns_t timeout,
                                    uint64_t* moves);

/* ---- unasked.c: failures that were not asked about --------------------------------------------------------------- */

/* What a context knows about them. */
typedef struct ov_unasked {
  uint64_t count;
  uint64_t* seen; /* kinds that were told, as hashes; NULL before the first */
  uint32_t kinds;
  uint64_t told; /* when, in ns of the monotonic clock */
  uint64_t held; /* since then */
} ov_unasked;

/* Counts one, logs it if it is time, and returns whether it was. Not in a forked child. */
int32_t ov_unasked_tell(ovstage_context_t* context, const ovstage_go_unasked_t* failure, uint64_t* held_back);
uint64_t ov_unasked_count_of(ovstage_context_t* context);
uint64_t ov_unasked_count(void); /* of the process */
void ov_unasked_close(ov_unasked* record);

/* Called by Go: a failed operation was released, or its stage ended, and no call had waited for it. */
void ov_unasked_operation(ovstage_context_t* context, ovstage_op_id_t op, ovstage_api_status_t status, const char* text,
                          size_t length);

/* ---- The context ------------------------------------------------------------------------------------------------- */

struct ovstage_context_t {
  ovstage_instance_t bundle; /* what the client holds; its context member points back here */
  int64_t references;
  ov_gate gate;             /* closed from the destroy on */
  uint32_t slot;            /* where Go finds its half; Go pointers never cross */
  uint32_t poisoned;        /* a panic was caught: `poison` is set, and every further call is refused */
  uint32_t guarding;        /* guard_reads is on for this stage */
  uint32_t hierarchy_model; /* what RUNTIME_DEFAULT meant when the instance was made */
  uint64_t floor_moves;     /* how often a floor may have moved */
  uint32_t level;           /* the interface level, an ovstage_go_interface_t */
  int64_t live_exports;     /* DLPack exports made through this instance and not yet deleted */
  ov_op_log ops;
  ov_unasked unasked;
  char* poison;
  char* name; /* for messages */
};

void ov_context_retain(ovstage_context_t* context);
void ov_context_release(ovstage_context_t* context);

/* Called by Go, at most once with effect: the stage is broken by `text`. */
void ov_context_poison(ovstage_context_t* context, const char* text, size_t length);

/* Runs the deleters that are due, if any are: foreign code, which may call back. For the end of whatever may have
 * dropped the last reference of a block over a caller's tensor; no lock may be held. This thread's texts stay as they
 * are. */
void ov_give_back(void);

/* ---- call.c: how every call begins and ends ---------------------------------------------------------------------- */

/* Set in a forked child, for good: there are no threads behind the engine there, and any lock may be taken. */
extern uint32_t ov_forked;

/* Clears the last error and refuses in a forked child. For flat calls without an instance. */
ovstage_api_status_t ov_begin(const char* symbol);

/* ov_begin, then enters the context. Unless it answers OVSTAGE_OK the call is over. */
ovstage_api_status_t ov_enter(ovstage_context_t* context, const char* symbol);
ovstage_api_status_t ov_enter_instance(ovstage_instance_t* instance, const char* symbol);

/* INTERNAL with the text of the panic that broke the stage, if one did. For a caller that is inside. */
ovstage_api_status_t ov_broken(const ovstage_context_t* context);

/* The point of the monotonic clock that is so many nanoseconds away. */
struct timespec ov_deadline(ovstage_timeout_ns_t timeout);

/* Leave after ov_enter; both log a failure and return their argument. ov_accept also opens the operation's tracking. */
ovstage_api_status_t ov_leave(ovstage_context_t* context, const char* symbol, ovstage_api_status_t status);
ovstage_enqueue_result_t ov_accept(ovstage_context_t* context, const char* symbol, ovstage_enqueue_result_t result);

/* Record this thread's last error; all return the status. */
ovstage_api_status_t ov_fail(ovstage_api_status_t status, const char* format, ...)
    __attribute__((format(printf, 2, 3)));
ovstage_api_status_t ov_fail_text(ovstage_api_status_t status, const char* text, size_t length);
ovstage_api_status_t ov_null(const char* argument); /* "argument must not be NULL" */

/* A count above this is a mistake, and must not reach Go, which would take it for one of its own. */
#define OV_MOST_ENTRIES ((size_t)1 << 40)
ovstage_api_status_t ov_too_many(const char* argument, size_t count);

const char* ov_forked_text(void); /* the sentence about spawning, without the name of the call */

/* A growable text of one thread. */
typedef struct ov_text {
  char* bytes; /* NUL-terminated once it was set */
  size_t length, capacity;
} ov_text;

void ov_text_set(ov_text* text, const char* bytes, size_t length);
void ov_text_clear(ov_text* text);
ovx_string_t ov_text_view(const ov_text* text); /* {NULL, 0} when clear */

/* For Go, where C.malloc and C.CString end the process when there is no memory: NULL then, else for free. */
void* ov_alloc(size_t size);

/* A refused enqueue whose text was not read yet; the context is retained. */
typedef struct ov_unread {
  ovstage_context_t* context; /* NULL: there is none */
  const char* call;
  ovstage_api_status_t status;
} ov_unread;

/* What the library remembers for a thread; freed when the thread ends. */
typedef struct ov_thread {
  ov_text error;                      /* ovstage_get_last_error */
  ov_unread unread;                   /* what that text is about */
  ov_text population_error;           /* ovstage_population_get_last_error */
  ov_text op_error;                   /* of failed_op */
  ovstage_op_id_t failed_op;          /* reported by this thread's last wait_op; 0 = none */
  const ovstage_context_t* failed_in; /* its stage; only compared, it may be gone */
} ov_thread;

ov_thread* ov_thread_here(void); /* NULL: out of memory */

/* unasked.c: a call was refused; its text was read, or the thread goes on without having read it. */
void ov_unread_begin(ov_thread* thread, ovstage_context_t* context, const char* call, ovstage_api_status_t status);
void ov_unread_end(ov_thread* thread, bool read);
/* Around foreign code that runs at the end of a call and may make calls of its own: what this one has said stays. */
ov_thread ov_texts_put_aside(void);
void ov_texts_bring_back(ov_thread texts);

/* Called by Go: the operation that is being waited for has failed with this text. */
void ov_op_error_set(const char* text, size_t length);

/* ---- inputs.c: what callers hand in, read once ------------------------------------------------------------------- */

#define OV_FIRST_ADDRESS 4096 /* what is lower in a pointer is no address: Go must not meet it there */
#define OV_MOST_LEVELS 64     /* how deep conditions may lie in each other; it also ends one that lies in itself */

/* The copies that one call makes of what it was given. Those of a usual call need no allocation. */
typedef struct ov_inputs {
  void* chunks; /* from malloc */
  char* at;     /* the room that is left */
  size_t left;
  const char* lost; /* the first argument that there was no memory for; nothing is copied any more */
  _Alignas(8) char few[1024];
} ov_inputs;

void ov_inputs_open(ov_inputs* in);
void ov_inputs_close(ov_inputs* in);
ovstage_api_status_t ov_inputs_status(const ov_inputs* in); /* the refusal when something was lost */

/* A memcpy from a caller's memory, which is read once and not again. Returns `to`. */
void* ov_take(void* to, const void* from, size_t size);

/* Copies of an argument, which live until the close; `what` names it. NULL for NULL, and when something was lost.
 * Texts, names and conditions are copied with all that they lead to, as far as it can be read; the rest is left for Go
 * to refuse. */
void* ov_input(ov_inputs* in, const char* what, const void* array, size_t count, size_t size);
ovx_string_t* ov_input_texts(ov_inputs* in, const char* what, const ovx_string_t* texts, size_t count);
ovx_string_or_token_t* ov_input_names(ov_inputs* in, const char* what, const ovx_string_or_token_t* names,
                                      size_t count);
void ov_input_name(ov_inputs* in, const char* what, ovx_string_or_token_t* own); /* the bytes of one that is ours */
ovstage_predicate_t* ov_input_predicates(ov_inputs* in, const ovstage_predicate_t* predicates, size_t count);
ovstage_go_condition_t* ov_input_condition(ov_inputs* in, const ovstage_go_condition_t* condition);

/* One write, and its batch, as Go gets them. */
typedef struct ov_write {
  ovstage_attribute_write_t given; /* its arrays of tensors are not to be looked at, but for managed_tensors, a copy */
  DLTensor* tensors;               /* the descriptors of either */
  ovx_string_or_token_t type_name; /* all zero: none */
} ov_write;

typedef struct ov_batch {
  ovstage_query_handle_t query;
  ov_write* writes;
  size_t count;
} ov_batch;

/* First the batches, and which tensors were given away; then all else, which has the status of the inputs. type_names
 * has one for each write of all batches, or is NULL. ov_input_batch is for a batch that is the library's already; its
 * writes are NULL when something was lost. */
ov_batch ov_input_batch(ov_inputs* in, const ovstage_go_batch_t* batch);
ov_batch* ov_input_batches(ov_inputs* in, const ovstage_go_batch_t* batches, size_t count);
ovstage_api_status_t ov_input_payloads(ov_inputs* in, ov_batch* batches, size_t count,
                                       const ovx_string_or_token_t* type_names);

/* ---- interface.c: interface levels, and the layout in which they differ ------------------------------------------ */

/* The level of stages for which none is said. INVALID_ARGUMENT: the environment names an unknown one. */
ovstage_api_status_t ov_interface_of_process(uint32_t* out);
ovstage_go_interface_t ov_interface(const ovstage_context_t* context);
ovstage_api_status_t ov_interface_set(ovstage_context_t* context, ovstage_go_interface_t level);

/* What the values of a group are, and for which level they are described. */
typedef struct ov_values {
  DLDataType dtype; /* as stored: with all lanes */
  ovstage_attribute_semantic_t semantic;
  uint32_t level; /* an ovstage_go_interface_t */
} ov_values;

/* How one of them is described: its axes, behind the axis of rows, and the type of an element. */
typedef struct ov_form {
  DLDataType dtype;
  int32_t ndim;
  int64_t extents[2];
} ov_form;

ov_form ov_form_of(const ov_values* values);

/* ---- descriptor.c: the tensors of groups ------------------------------------------------------------------------- */

/* The tensors of one group, as C sees them, with the buffers that the group's pointers lead into. They are known by the
 * pointer to the first. The registry in Go holds one reference until the group is released or committed; clients may
 * add their own.
 *
 * They start with as many references as are asked for: the registry's, and that of a client that fetches and retains at
 * once. Making them takes over one reference of each block that is not NULL. NULL: out of memory, and nothing was
 * taken. */
DLTensor* ov_tensors_fixed(ov_block* data, uint64_t offset, int64_t rows, ov_values values, ov_block* prim_map,
                           ov_block* data_map, int64_t references);

/* The name of the type of the values, said before a client has the tensors. */
void ov_tensors_name_type(DLTensor* tensors, ovx_token_t type_name);
ovx_token_t ov_tensors_type(const DLTensor* tensors);

/* Where the values of one row of an array column lie; laid out as column.Span. */
typedef struct ov_span {
  uint64_t offset, length; /* bytes */
} ov_span;

/* One tensor for each of `count` spans into data, of elements of `element` bytes. The spans are not needed any more. */
DLTensor* ov_tensors_ragged(ov_block* data, ov_block* spans, uint32_t count, ov_values values, uint64_t element,
                            ov_block* prim_map, int64_t references);

void ov_tensors_retain(const DLTensor* tensors);
void ov_tensors_release(const DLTensor* tensors);
ov_block* ov_tensors_block(const DLTensor* tensors); /* not retained; NULL: none, or given up */
void ov_tensors_give_up_data(const DLTensor* tensors);

/* An aligned address for tensors without bytes: consumers take NULL for a missing tensor, and some leak it. */
extern const uint8_t ov_no_bytes[256];

/* ---- managed.c: tensors that a write brings along ---------------------------------------------------------------- */

/* One tensor that was given to the library. */
typedef struct ov_managed {
  DLManagedTensorVersioned* tensor;
  ov_block* block; /* over its memory, once the stage has that; its last reference deletes the tensor */
} ov_managed;

enum { OV_MANAGED_FEW = 4 }; /* so many need no allocation */

/* All that one call was given, by address, each once. */
typedef struct ov_managed_list {
  ov_managed* entries;
  size_t count;
  const DLManagedTensorVersioned* repeated; /* was listed more than once; NULL: none was */
  size_t lost;                              /* tensors that there was no memory to list, */
  DLManagedTensorVersioned* chain;          /* and that are chained instead, each once */
  ov_managed few[OV_MANAGED_FEW];
} ov_managed_list;

/* A write takes its tensors first of all, even where it is refused, and gives them back last of all, when it holds
 * nothing any more: deleters are foreign code. In a forked child nothing is taken. */
void ov_managed_take(ov_managed_list* list, const ov_batch* batches, size_t count);

/* The same for batches of which there was no memory for a copy: the call is refused, and they are deleted. */
void ov_managed_take_uncopied(ov_managed_list* list, const ovstage_go_batch_t* given, size_t count);
ovstage_api_status_t ov_managed_check(const ov_managed_list* list);
void ov_managed_give_back(ov_managed_list* list);

/* Called by Go: a block over the tensor's own bytes. The list holds the reference. NULL: out of memory. */
ov_block* ov_managed_wrap(ov_managed_list* list, const DLManagedTensorVersioned* tensor, void* data, uint64_t size);

/* ---- vtable.c ---------------------------------------------------------------------------------------------------- */

/* A write of one batch, or of one attribute. type_names: one for each write; NULL for none. */
ovstage_enqueue_result_t ov_write_batch(ovstage_context_t* context, const char* symbol, const ovstage_go_batch_t* batch,
                                        const ovx_string_or_token_t* type_names, ovstage_ordinal_t ordinal,
                                        ovstage_prim_mode_t mode, bool many);

/* The next group of a read or of a map. `keeps`: the caller gets a reference of its tensors, too, and `keep` is not
 * NULL. */
ovstage_api_status_t ov_fetch_read(ovstage_context_t* context, ovstage_read_handle_t handle, ovstage_read_group_t* out,
                                   bool keeps, const DLTensor** keep);
ovstage_api_status_t ov_fetch_map(ovstage_context_t* context, ovstage_map_handle_t handle, ovstage_map_group_t* out,
                                  bool keeps, const DLTensor** keep);

/* ---- export.c: DLPack -------------------------------------------------------------------------------------------- */

DLManagedTensorVersioned* ov_export_versioned(ovstage_instance_t* instance, ov_block* block, const DLTensor* tensor,
                                              uint64_t flags);
DLManagedTensor* ov_export_legacy(ovstage_instance_t* instance, ov_block* block, const DLTensor* tensor);
DLManagedTensorVersioned* ov_export_copy_versioned(ovstage_instance_t* instance, const DLTensor* tensor);
DLManagedTensor* ov_export_copy_legacy(ovstage_instance_t* instance, const DLTensor* tensor);
int64_t ov_export_count(void); /* live exports of the process */

/* ---- log.c ------------------------------------------------------------------------------------------------------- */

bool ov_log_wanted(ovstage_log_severity_t severity);
void ov_log(ovstage_log_severity_t severity, const char* format, ...) __attribute__((format(printf, 2, 3)));
void ov_log_text(ovstage_log_severity_t severity, const char* text, size_t length); /* for Go */
ovstage_api_status_t ov_log_install(ovstage_log_severity_t severity, const ovx_string_t* filter,
                                    ovstage_log_callback_t callback, void* user_data);
uint64_t ov_log_mark(void); /* the number of the newest message; without a callback of one that is delivered */
ovstage_api_status_t ov_log_wait(uint64_t mark, ovstage_timeout_ns_t timeout); /* until it is delivered or dropped */
uint64_t ov_log_cut(ovstage_log_callback_t callback, void* user_data, uint64_t* left); /* see ovstage_go.h */
bool ov_log_next(ovstage_log_callback_t callback, void* user_data, ovstage_log_severity_t* severity, double* timestamp,
                 ovx_string_t* text);       /* the same */
uint64_t ov_log_generation(void);           /* which callback is installed */
void ov_log_remove_if(uint64_t generation); /* flush and remove that callback, unless another has taken its place */

/* ---- process.c --------------------------------------------------------------------------------------------------- */

bool ov_process_alive(void); /* an initialisation or an instance holds the process state */

/* ---- dictionary.c ------------------------------------------------------------------------------------------------ */

/* A copy of a text for the caller of the dictionary, which gives it to release_error. Never NULL. */
ovx_string_t ov_dictionary_error(const char* text, size_t length);

/* ---- The tables -------------------------------------------------------------------------------------------------- */

extern const ovstage_vtable_t ov_vtable;         /* vtable.c */
extern const ovstage_go_v1_t ov_extension;       /* extension.c */
extern path_dictionary_instance_t ov_dictionary; /* dictionary.c */
extern ov_gate ov_dictionary_gate;               /* open while a dictionary exists, that is, while an instance does */

#endif
