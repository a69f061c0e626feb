/*
 * ovstage_go.h - what this library offers beyond the shared interface: the extension table "ovstage.go.v1".
 *
 *     const void* found = NULL;
 *     ovstage_query_extension(instance, OVSTAGE_GO_V1_NAME, &found);
 *     const ovstage_go_v1_t* go = (const ovstage_go_v1_t*)found;
 *
 * The table is immutable and lives until the process ends. New functions are appended: before using one that a later
 * header added, check that struct_size reaches it. Its functions take the instance bundle, not its context.
 *
 * What it adds: buffers with reference counts, so that a view may outlive the group and even the instance it came from;
 * DLPack exports; maps that start from zeros or from nothing, commits that protect live views, sessions that end
 * without a commit; counters, on which leak tests stand; filters with OR and NOT, queries that are asked anew; deletes
 * and writes of many prims that happen together or not at all; names of types beside columns; and, beside the table, a
 * mode of writing.
 */
#ifndef OVSTAGE_GO_H
#define OVSTAGE_GO_H

#include "ovstage_api/ovstage_api.h"
#include "ovstage_types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define OVSTAGE_GO_V1_NAME "ovstage.go.v1"

/* The most axes of a tensor, given or described: what NumPy and the buffer protocol go up to. A descriptor with more is
 * refused without a look at its shape. */
#define OVSTAGE_GO_MOST_AXES 64

/* The most lanes of a value. DLPack's 16 bits could say more. */
#define OVSTAGE_GO_MOST_LANES 255

/*
 * What libovstage.so says of itself to a program that looks at the file without loading it, which starts the engine: an
 * ELF note of this name and type. 20 bytes.
 */
#define OVSTAGE_GO_NOTE_NAME "ovstage"
#define OVSTAGE_GO_NOTE_TYPE 1

typedef struct {
  uint32_t major, minor, patch; /* the interface level, as get_version tells it */
  uint32_t table_version;       /* of the table: its member version */
  uint32_t table_size;          /* its member struct_size */
} ovstage_go_note_t;

/*
 * A third prim_mode: only prims that exist are written, the others are left alone. The payload of a write is laid out
 * as ever, with a value for every target. A session opened with it has groups of the prims that existed when it was
 * opened, and only those; prims.index_map or prims.offset says which, and element_sizes still has an entry for every
 * queried prim.
 */
#define OVSTAGE_GO_PRIM_MODE_UPDATE ((ovstage_prim_mode_t)2)

/*
 * A fourth: every prim must exist. Where one does not, the call is refused with PRIM_NOT_FOUND, the text names the
 * first that is missing, and nothing is written, of a whole batch either. Prims that a mask leaves out may be absent.
 * For a session the prims are judged when it is opened, as those of INSERT are.
 */
#define OVSTAGE_GO_PRIM_MODE_REQUIRE ((ovstage_prim_mode_t)3)

/*
 * One buffer of bytes that belong to the library, with a reference count. Columns, groups, mapped buffers and exports
 * each hold a reference; the bytes stay where they are until the last one is dropped.
 */
typedef struct ovstage_go_block ovstage_go_block_t;

/*
 * The interface levels. They differ in one thing: how the tensors of read and map groups describe their values.
 *
 *   0.2   one axis, that of the rows; whole values in the lanes: N x {float, 32, 3}, N x {float, 64, 16}
 *   0.3   one lane; the components of a value are axes behind that of the rows: [N, 3], and [N, 4, 4] where the role is
 *         MATRIX and there are 4, 9 or 16 of them; values of one component have no such axis
 *
 * At both the bytes are the same, strides are NULL (row-major) and byte_offset is 0. Writes, the dtype of a map and all
 * other calls are the same, with full lanes; a write takes either layout. Stages of both may be alive in one process.
 */
typedef enum {
  OVSTAGE_GO_INTERFACE_DEFAULT = 0, /* what the environment said when the process first asked, else 0.2 */
  OVSTAGE_GO_INTERFACE_0_2 = 2,
  OVSTAGE_GO_INTERFACE_0_3 = 3
} ovstage_go_interface_t;

/* Names the level of stages for which none is set: "0.2" or "0.3"; unset or empty is 0.2. It is read once, by the first
 * stage; with another value no stage can be created. */
#define OVSTAGE_GO_INTERFACE_VARIABLE "OVSTAGE_INTERFACE"

/* The level of a name; NULL and "" are 0.2. DEFAULT where there is no level of that name. */
static inline ovstage_go_interface_t ovstage_go_interface_named(const char* name) {
  if (name == NULL || name[0] == '\0') return OVSTAGE_GO_INTERFACE_0_2;
  if (name[0] != '0' || name[1] != '.' || (name[2] != '2' && name[2] != '3') || name[3] != '\0')
    return OVSTAGE_GO_INTERFACE_DEFAULT;
  return name[2] == '2' ? OVSTAGE_GO_INTERFACE_0_2 : OVSTAGE_GO_INTERFACE_0_3;
}

/* Options of a stage. 8 bytes. */
typedef struct {
  uint32_t struct_size; /* sizeof(ovstage_go_stage_options_t) */
  ovstage_go_interface_t interface_level;
} ovstage_go_stage_options_t;

/* What a mapped buffer contains before the caller writes to it. */
typedef enum {
  OVSTAGE_GO_INITIAL_CURRENT = 0, /* each prim's newest value at or below the session's ordinal; zeros for new ones */
  OVSTAGE_GO_INITIAL_ZERO = 1,    /* zeros */
  OVSTAGE_GO_INITIAL_DISCARD = 2  /* unspecified, but never another column's bytes: fill every value that is fetched.
                                     The cheapest; groups that were never fetched commit nothing */
} ovstage_go_initial_t;

/* What a commit does with the mapped buffer. */
typedef enum {
  OVSTAGE_GO_COMMIT_ADOPT = 0, /* it becomes the column as it is; the caller promises not to write to it any more */
  OVSTAGE_GO_COMMIT_AUTO = 1   /* the same, unless something beside the library and the fetched group still holds the
                                  buffer (block_retain, an export): then its bytes move to a new address, and what is
                                  left under the old one stays valid memory of unspecified content */
} ovstage_go_commit_t;

/* Options of map_attribute. 16 bytes; a structure of the 8 bytes before group_rows is accepted, too. */
typedef struct {
  uint32_t struct_size; /* sizeof(ovstage_go_map_options_t) */
  ovstage_go_initial_t initial;
  uint64_t group_rows; /* prims in each group, the last may have fewer: groups can be committed one by one while others
                          are being filled. 0: one group of all */
} ovstage_go_map_options_t;

/* How a condition of a filter follows from those below it. */
typedef enum {
  OVSTAGE_GO_MATCH_PREDICATE = 0, /* there are none below: the predicate decides */
  OVSTAGE_GO_MATCH_ALL = 1,       /* every one holds; where there are none every prim meets it */
  OVSTAGE_GO_MATCH_ANY = 2,       /* at least one holds */
  OVSTAGE_GO_MATCH_NONE = 3       /* not one holds: with a single condition, its opposite */
} ovstage_go_match_t;

/* What a filter asks of a prim: a predicate, or further conditions, at most 64 deep. 72 bytes. */
typedef struct ovstage_go_condition {
  ovstage_go_match_t match;
  uint32_t reserved;
  ovstage_predicate_t predicate;                 /* of MATCH_PREDICATE; else not looked at */
  const struct ovstage_go_condition* conditions; /* of the others; NULL for none, which only MATCH_ALL takes */
  size_t count;
} ovstage_go_condition_t;

/* What a publication deletes: attributes of the prims of a query, or, with none, the prims. 24 bytes. */
typedef struct {
  ovstage_query_handle_t query;
  const ovx_string_or_token_t* attributes; /* NULL with 0: every attribute */
  size_t attribute_count;
} ovstage_go_delete_t;

/* What a publication writes to the prims of a query. 24 bytes. */
typedef struct {
  ovstage_query_handle_t query;
  const ovstage_attribute_write_t* writes; /* NULL with 0 */
  size_t write_count;
} ovstage_go_batch_t;

/* What an instance holds under one name with one schema. 64 bytes, of which a caller may know the first 48. */
typedef struct {
  ovx_token_t attribute;
  ovx_token_t type_name; /* what its values are called where they come from, such as a USD type; 0: it was never said */
  DLDataType dtype;      /* of a value, or of an element of its array: all lanes */
  ovstage_attribute_semantic_t semantic;
  bool is_array;
  uint64_t prims;                /* how many have a value, sealed or not; 0: its last deletes are not sealed yet */
  ovstage_ordinal_t write_floor; /* of the attribute */
  ovstage_ordinal_t newest;      /* ordinal of the newest write or delete, sealed or not */
  uint64_t bytes;                /* of memory, with buffers that are kept for the next write */
} ovstage_go_attribute_t;

/* What is alive and what was done. 128 bytes. Each "live" number is 0 once everything was given back. */
typedef struct {
  uint32_t struct_size; /* set it to sizeof(ovstage_go_counters_t) before the call: no more is written */
  uint32_t reserved;
  uint64_t live_exports;    /* DLPack exports whose deleter has not run */
  uint64_t live_groups;     /* read groups that were fetched and not released */
  uint64_t live_maps;       /* sessions that were opened and not ended */
  uint64_t live_operations; /* operations that are not finished */
  uint64_t live_queries;    /* queries that were made and not released */
  uint64_t live_reads;      /* reads that were opened and not released */
  uint64_t bytes_columns;   /* bytes in buffers of columns, whatever holds them */
  uint64_t bytes_pooled;    /* bytes in free buffers that are kept for use again */
  uint64_t bytes_copied;    /* bytes copied on behalf of calls, since the start */
  uint64_t live_blocks;     /* buffers to which a reference is held */
  uint64_t rows_resolved;   /* rows matched between a query and a column, since the start; stands still when steady */
  uint64_t detach_moves;    /* commits that moved the pages of a buffer with live views */
  uint64_t detach_copies;   /* commits that copied a buffer with live views */
  uint64_t maps_adopted;    /* map groups whose buffer became all of a column without a copy */
  uint64_t refused_unasked; /* operations that were refused or failed, unasked: see tell_unasked */
} ovstage_go_counters_t;

/* An operation that failed and was not asked about, as a binding tells it. 72 bytes. */
typedef struct {
  uint32_t struct_size; /* sizeof(ovstage_go_unasked_t) */
  ovstage_api_status_t status;
  ovx_string_t call;      /* what was called */
  ovx_string_t attribute; /* empty: the reason begins with its name, or it has none */
  ovx_string_t reason;    /* the text of the refusal or failure */
  ovx_string_t text;      /* all of it, for the log */
} ovstage_go_unasked_t;

/* How far a consumer has followed one attribute. 32 bytes. */
typedef struct {
  ovx_token_t attribute;
  ovstage_ordinal_t since; /* everything up to it is known */
  ovstage_ordinal_t until; /* out: everything up to it is known with this read; never below since */
  bool resync;  /* in: nothing is known, since is not looked at. out: what changed since is not known any more;
                   the groups are all values as of until, and what has none there has lost it */
  bool limited; /* in: until is given, and the read tells of nothing above it; what changed again after it is told only
                   where the stage keeps its values as of until, and fails the read with OUT_OF_RANGE elsewhere */
} ovstage_go_cursor_t;

/* The table. Its size is struct_size: it grows. */
typedef struct ovstage_go_v1 {
  uint32_t struct_size; /* bytes of this table in the library */
  uint32_t version;     /* 1 */

  /* ---- Lifetime of the instance -------------------------------------------------------------------------------- */

  /* Keep the bundle valid memory, or stop keeping it: between destroy and the last release, its calls answer
   * INVALID_HANDLE. Neither keeps the instance from being destroyed. Any thread; NULL is fine. */
  void (*instance_retain)(ovstage_instance_t*);
  void (*instance_release)(ovstage_instance_t*);

  /* ---- Buffers ------------------------------------------------------------------------------------------------- */

  /* Add and drop one reference. Any thread, also after the instance is gone; pure C, no call into the engine. NULL is
   * fine. In a child of fork() block_release does nothing. */
  void (*block_retain)(ovstage_go_block_t*);
  void (*block_release)(ovstage_go_block_t*);

  /* The number of references at this moment; for tests and for people. */
  int64_t (*block_refs)(const ovstage_go_block_t*);

  /* The buffer that a fetched group's data.tensors show, all of them where they are several; NULL when there is none (a
   * tombstone). The pointer must be that of a group which is not yet released or committed, not that of a later entry.
   * No reference is added: block_retain does that. */
  ovstage_go_block_t* (*tensors_block)(const DLTensor* tensors);

  /* Keep the descriptors of a fetched group - data.tensors, their shapes, the index maps - readable beyond the group's
   * release, or stop keeping them. The bytes are kept by block_retain. */
  void (*tensors_retain)(const DLTensor*);
  void (*tensors_release)(const DLTensor*);

  /* ---- DLPack -------------------------------------------------------------------------------------------------- */

  /*
   * Export one tensor, any entry of data.tensors, whose bytes lie in `block`. Lanes above 1 become one trailing axis,
   * strides are always given, byte_offset is 0. The export holds a reference to the block and, if `instance` is not
   * NULL, to the instance bundle, until its deleter runs; the deleter is C and may run on any thread, at any time,
   * without the interpreter lock.
   *
   *   flags    DLPACK_FLAG_BITMASK_READ_ONLY and DLPACK_FLAG_BITMASK_IS_COPIED
   *   Returns  the export, owned by the caller; NULL when memory is short
   *
   * The legacy form has no flags: what is exported by it can be written to.
   */
  struct DLManagedTensorVersioned* (*export_versioned)(ovstage_instance_t*, ovstage_go_block_t*, const DLTensor*,
                                                       uint64_t flags);
  struct DLManagedTensor* (*export_legacy)(ovstage_instance_t*, ovstage_go_block_t*, const DLTensor*);

  /* ---- Maps ---------------------------------------------------------------------------------------------------- */

  /* As the slot map_attribute, with options; NULL options are those of the slot (CURRENT). */
  ovstage_enqueue_result_t (*map_attribute)(ovstage_instance_t*, ovstage_query_handle_t, const ovstage_map_desc_t*,
                                            ovstage_ordinal_t, const size_t* element_sizes, size_t element_count,
                                            const ovstage_go_map_options_t*, ovstage_map_handle_t* out);

  /* As the slots of these names, with a choice of commit; theirs is ADOPT. */
  ovstage_enqueue_result_t (*unmap_group)(ovstage_instance_t*, ovstage_map_handle_t, const ovstage_map_group_t*,
                                          ovstage_cuda_sync_t, ovstage_go_commit_t);
  ovstage_enqueue_result_t (*unmap_attribute)(ovstage_instance_t*, ovstage_map_handle_t, ovstage_cuda_sync_t,
                                              ovstage_go_commit_t);

  /* End a session and write nothing of what is not committed yet; groups that were committed stay. Once more does
   * nothing. Errors: INVALID_HANDLE - no such session, or it was ended by unmap_attribute. */
  ovstage_api_status_t (*abort_map)(ovstage_instance_t*, ovstage_map_handle_t);

  /* ---- Counters and memory ------------------------------------------------------------------------------------- */

  /* Fill in the counters of one instance, or of the whole process. Errors: INVALID_ARGUMENT, INVALID_HANDLE. */
  ovstage_api_status_t (*counters)(ovstage_instance_t*, ovstage_go_counters_t*);
  void (*process_counters)(ovstage_go_counters_t*);

  /* Give free buffers that are kept for use again back to the operating system. */
  void (*trim)(void);

  /* ---- Operations ---------------------------------------------------------------------------------------------- */

  /* The outcome of a finished operation: OK, or the status it failed with. INVALID_HANDLE when the id is not known. */
  ovstage_api_status_t (*op_status)(ovstage_instance_t*, ovstage_op_id_t);

  /* ---- History ---- appended later: present when struct_size reaches beyond it ---- */

  /*
   * Keeps the values of every attribute readable as of the last `ordinals` sealed ordinals: latest reads then serve the
   * state as of their end_ordinal N for floor - ordinals < N <= floor, and change ranges that end there are served even
   * where a prim changed again later. 0 and 1 keep the newest state only, which is the default. What is kept of an
   * ordinal is what it changed. Takes effect from the next seal on. Any thread. Returns OK or INVALID_HANDLE.
   */
  ovstage_api_status_t (*keep_history)(ovstage_instance_t*, uint64_t ordinals);

  /* ---- Queries ---- appended later: present when struct_size reaches beyond it ---- */

  /*
   * As the slot query, with a condition of any shape; NULL is met by every prim. A prim exists while it carries an
   * attribute: NONE selects among those that do. A prim without the attribute of a predicate does not meet it, and
   * meets its opposite. The query keeps a copy of the condition: the caller's memory is free when the call returns.
   *
   *   condition   the filter; its predicates are those of the slot
   *   attrs       the attributes that the result may report; NULL with 0: whatever the prims carry
   *   out         receives the handle; 0 when the call is refused
   *
   * Errors: those of the slot; INVALID_ARGUMENT - an unknown match, ANY or NONE of nothing, more than 64 levels. The
   * text says which predicate is meant by its indices: 2.0 is the first condition below the third.
   */
  ovstage_enqueue_result_t (*query)(ovstage_instance_t*, const ovstage_go_condition_t* condition,
                                    const ovx_token_t* attrs, size_t attr_count, ovstage_query_handle_t* out);

  /*
   * Asks the filter of a query again, of the newest executed state: the handle stands for the prims that meet it now,
   * in the order of their creation. Reads, groups and maps that were made from it before keep their prims and their
   * list. The list handle of later groups stays the same while the prims do. A query over a path list stays what it is.
   * Any thread.
   *
   * Errors: INVALID_HANDLE - no such query; what the filter was refused with today - the query stays what it was.
   */
  ovstage_enqueue_result_t (*refresh_query)(ovstage_instance_t*, ovstage_query_handle_t);

  /* ---- Publication ---- appended later: present when struct_size reaches beyond it ---- */

  /*
   * Deletes, then writes, all at one ordinal, as one operation: where any of it is refused nothing has changed, and no
   * other call sees a part of it. Each delete is one of the slot delete_attributes, each batch one of the slot
   * write_attributes with the mode UPSERT, in this order, with two differences. The writes are judged by what the
   * deletes leave: an attribute that a prim loses here may come back with another type. A prim gets at most one value
   * of an attribute.
   *
   *   deletes, batches   NULL with 0. The tensors are taken, copied and given back as those of write_attributes are;
   * all that the structures point at is the caller's again when the call returns
   *
   * Any thread. Errors: those of the two slots, the text naming the attribute; INVALID_ARGUMENT - a prim would get two
   * values of an attribute.
   */
  ovstage_enqueue_result_t (*publish)(ovstage_instance_t*, const ovstage_go_delete_t* deletes, size_t delete_count,
                                      const ovstage_go_batch_t* batches, size_t batch_count, ovstage_ordinal_t);

  /* ---- Parts of queries ---- appended later: present when struct_size reaches beyond it ---- */

  /* How many prims a query lists. Any thread. Errors: INVALID_ARGUMENT, INVALID_HANDLE. */
  ovstage_api_status_t (*query_count)(ovstage_instance_t*, ovstage_query_handle_t, size_t* out);

  /*
   * A query over the prims of another whose bit is set, in the order of that one; bit i is that of prim i, as in the
   * mask of a write. It is independent of the other from then on, and released like any query. A mask that recurs finds
   * what was worked out for it. Any thread.
   *
   *   mask    (count + 63) / 64 words; the caller's again when the call returns
   *   count   the prims that the mask is for: those of the query
   *   out     receives the handle; 0 when the call is refused
   *
   * Errors: INVALID_ARGUMENT - count is not that of the query; INVALID_HANDLE - no such query.
   */
  ovstage_api_status_t (*query_where)(ovstage_instance_t*, ovstage_query_handle_t, const uint64_t* mask, size_t count,
                                      ovstage_query_handle_t* out);

  /* ---- Groups that are kept ---- appended later: present when struct_size reaches beyond it ---- */

  /*
   * As the slots fetch_read_next and fetch_map_next, with a reference of the group's tensors that is the caller's,
   * taken before any other thread can release or commit the group or destroy the instance: what the group points at is
   * valid memory until the reference is dropped with tensors_release.
   *
   *   out_keep   the reference, also for a tombstone group, which shows no tensors; NULL unless the call returns OK
   */
  ovstage_api_status_t (*fetch_read)(ovstage_instance_t*, ovstage_read_handle_t, ovstage_timeout_ns_t,
                                     ovstage_read_group_t* out_group, const DLTensor** out_keep);
  ovstage_api_status_t (*fetch_map)(ovstage_instance_t*, ovstage_map_handle_t, ovstage_timeout_ns_t,
                                    ovstage_map_group_t* out_group, const DLTensor** out_keep);

  /* ---- The log, in steps ---- appended later: present when struct_size reaches beyond it ---- */

  /*
   * log_mark - the number of the newest message: what a wait for the log begins with.
   * log_wait - waits until that message, and all before it, have been delivered or dropped. Messages that come later do
   * not draw it out. ovstage_flush_log is the two together; apart they make a wait that can be taken up again. log_cut
   * - removes the callback, if it is this one, with what is under way to it, and waits for nothing. `left` tells how
   *            many messages it will not get, one that it is at included; NULL: not asked. The answer is a mark: once
   * it is reached the callback is not at work any more.
   *
   * log_next - called by the callback instead of returning: gives it the message that would be next, and takes the one
   * that it was at. False: there is none for it; then it returns. For callbacks that have a price for being entered.
   *
   * Any thread. Errors of log_wait: TIMEOUT; INVALID_ARGUMENT - called by the callback, for which it would wait.
   */
  uint64_t (*log_mark)(void);
  ovstage_api_status_t (*log_wait)(uint64_t mark, ovstage_timeout_ns_t timeout);
  uint64_t (*log_cut)(ovstage_log_callback_t callback, void* user_data, uint64_t* left);
  bool (*log_next)(ovstage_log_callback_t callback, void* user_data, ovstage_log_severity_t* out_severity,
                   double* out_timestamp, ovx_string_t* out_message);

  /* ---- Names of types ---- appended later: present when struct_size reaches beyond it ---- */

  /*
   * A column may have the name of the type of its values beside element type and role, such as "color3f" or "string":
   * what the values are called where they come from. It is part of what a column is, like the role: values with another
   * name are another type, and what a prim has of one type is deleted before it gets the other. Values without a name
   * go where the others are; a column without one takes the first that it gets, but for "string" and "string[]", which
   * would make texts of the numbers of other prims.
   *
   * As the slots write_attributes and publish, with a name for each write, in publish of all batches one after the
   * other.
   *
   *   type_names   as many as there are writes; all zero for none; NULL for none of them
   *
   * Errors: those of the slot; INVALID_ARGUMENT - a name that is no token or no text.
   */
  ovstage_enqueue_result_t (*write_typed)(ovstage_instance_t*, ovstage_query_handle_t, const ovstage_attribute_write_t*,
                                          const ovx_string_or_token_t* type_names, size_t count, ovstage_ordinal_t,
                                          ovstage_prim_mode_t);
  ovstage_enqueue_result_t (*publish_typed)(ovstage_instance_t*, const ovstage_go_delete_t* deletes,
                                            size_t delete_count, const ovstage_go_batch_t* batches, size_t batch_count,
                                            const ovx_string_or_token_t* type_names, ovstage_ordinal_t);

  /* The name of the type of a fetched group's values, by its data.tensors; 0 where there is none. Pure C, any thread.
   * The pointer must be that of a group which is not yet released or committed, or which is retained. */
  ovx_token_t (*tensors_type)(const DLTensor* tensors);

  /*
   * What the instance holds, by the age of the names, without the attributes that follow from paths.
   *
   *   size    sizeof(ovstage_go_attribute_t): as much of each structure is written, which are so far apart
   *   room    how many structures `out` has; fewer are written where there are fewer
   *   count   receives how many there are: call again with more room where it is above `room`
   *
   * Any thread. Errors: INVALID_ARGUMENT, INVALID_HANDLE.
   */
  ovstage_api_status_t (*attributes)(ovstage_instance_t*, ovstage_go_attribute_t* out, size_t size, size_t room,
                                     size_t* count);

  /* ---- Failures that were not asked about -- appended later: present when struct_size reaches beyond it ---- */

  /*
   * Counts an operation whose failure its caller never looked at (refused_unasked), and logs its text at WARNING: the
   * first of each call, attribute and status, then one a second for the instance, which says how many were held back
   * since.
   *
   *   held_back  receives that number; may be NULL
   *   Returns    1 if it was told, for a binding that warns by other means, too; 0 if it was held back
   *
   * The library tells by itself what it can see of C clients: a call that was refused and whose text the thread did not
   * read (ovstage_get_last_error) before its next call, and a failed operation that was released, or ended with its
   * stage, before a call waited for it or took its status. Calls that release something are left out. Any thread, also
   * after the instance was destroyed while its bundle is retained; no call into the engine. Does nothing in a child of
   * fork().
   */
  int32_t (*tell_unasked)(ovstage_instance_t*, const ovstage_go_unasked_t*, uint64_t* held_back);

  /* ---- Empty reads ---- appended later: present when struct_size reaches beyond it ---- */

  /*
   * Says of what an open read serves nothing, and why, as it was when the read was opened: "no prim has it; there are
   * mass, velocity", "deleted at 3", "not sealed: newest write 1, floor 0; advance the floor first".
   *
   *   index      0, 1, ... in the order of the read's attributes
   *   attribute  receives the attribute
   *   reason     receives at most `capacity` bytes of the text, without a NUL; may be NULL with 0
   *   Returns    the length of the text; 0 beyond the last, and where there is no such read
   *
   * Any thread.
   */
  size_t (*read_missing)(ovstage_instance_t*, ovstage_read_handle_t, size_t index, ovx_token_t* attribute, char* reason,
                         size_t capacity);

  /* ---- Private exports ---- appended later: present when struct_size reaches beyond it ---- */

  /*
   * As export_versioned and export_legacy, of a copy that is the consumer's own, to be written to: for consumers that
   * write through read-only exports. The versioned form has IS_COPIED. The memory comes from the pool of the library
   * and goes back there. The tensor must have NULL strides, as those of groups have, and its bytes must stay where they
   * are during the call. NULL when memory is short.
   */
  struct DLManagedTensorVersioned* (*export_copy_versioned)(ovstage_instance_t*, const DLTensor*);
  struct DLManagedTensor* (*export_copy_legacy)(ovstage_instance_t*, const DLTensor*);

  /* ---- Debugging ---- appended later: present when struct_size reaches beyond it ---- */

  /*
   * From now on a write through a view of a read group ends the process, with a sentence on stderr before whatever
   * SIGSEGV did already: buffers become read-only pages when a group that shows them is fetched, and stay so until the
   * library alone holds them. For the stage's life, from before its first write; other stages of the process get such
   * buffers meanwhile, too. It costs a mapping and at least a page for each buffer, two system calls for each that is
   * fetched anew, and the use of buffers again; transferred tensors are copied. The system has a limit of mappings
   * (vm.max_map_count, 65,530). Any thread. Returns OK or INVALID_HANDLE.
   */
  ovstage_api_status_t (*guard_reads)(ovstage_instance_t*);

  /* ---- Names that are asked for ---- appended later: present when struct_size reaches beyond it ---- */

  /*
   * The token of a name that is only asked for. create_tokens_from_strings of the dictionary would keep it for ever;
   * with this one a new name goes again with end_name, unless it was interned or written under
   * meanwhile. It may be tried several times at once: it goes with the last. Its token is for reads and floors: a query
   * that is to be refreshed needs one that stays.
   *
   *   out    receives the token
   *   tried  receives whether the caller has to call end_name with it, when nothing uses the token any more
   *
   * Any thread. Returns OK, INVALID_HANDLE or INVALID_ARGUMENT.
   */
  ovstage_api_status_t (*try_name)(ovstage_instance_t*, ovx_string_t name, ovx_token_t* out, bool* tried);
  void (*end_name)(ovstage_instance_t*, ovx_token_t token);

  /*
   * A list of paths that are only asked for. create_path_list_from_strings of the dictionary would keep new paths for
   * ever; here a path that was never made gets a stand-in, a path of which no text is known and to which no call may
   * write: reads find nothing of it. Equal texts have the same one. The list is given back as any other. It does not
   * follow what becomes of such a path later.
   *
   *   out      receives the list, with one reference
   *   unknown  receives how many different paths were never made; 0: the list is as create_path_list_from_strings makes
   * it
   *
   * Any thread. Returns OK, INVALID_HANDLE, INVALID_ARGUMENT or OUT_OF_MEMORY.
   */
  ovstage_api_status_t (*list_of_known)(ovstage_instance_t*, const ovx_string_t* paths, size_t count,
                                        ovx_primpath_list_t* out, size_t* unknown);

  /* ---- Waiting for the write floor ---- appended later: present when struct_size reaches beyond it ---- */

  /*
   * Waits until the write floor has come to an ordinal: the lowest effective floor of the attributes, or the global
   * floor when none is named. An attribute that the stage does not know has the global floor. The call sleeps until a
   * floor moves; it holds no lock, and keeps no other call from doing anything. A destroy of the stage ends it.
   *
   *   attributes  names or tokens; NULL with 0: the global floor
   *   ordinal     what the floor has to reach; 0 is reached at once
   *   timeout     nanoseconds; 0 only asks, OVSTAGE_TIMEOUT_INFINITE has no end
   *
   * Any thread. Returns OK, TIMEOUT - the last error says where the floors are, and which attributes are ahead -,
   * INVALID_HANDLE when the stage is destroyed, meanwhile too, or INVALID_ARGUMENT.
   */
  ovstage_api_status_t (*wait_floor)(ovstage_instance_t*, const ovx_string_or_token_t* attributes, size_t count,
                                     ovstage_ordinal_t ordinal, ovstage_timeout_ns_t timeout);

  /*
   * How often a floor of the stage may have moved: waits until the number differs from one that the caller has seen. A
   * consumer of several attributes takes the number, looks at what changed, and waits with the number that it took.
   *
   *   seen     what the number was; 0 has never been one, and is answered at once
   *   timeout  nanoseconds, as above
   *   moves    receives the number, also with TIMEOUT
   *
   * Any thread. Returns OK, TIMEOUT, INVALID_HANDLE when the stage is destroyed, meanwhile too, or INVALID_ARGUMENT.
   */
  ovstage_api_status_t (*floor_moves)(ovstage_instance_t*, uint64_t seen, ovstage_timeout_ns_t timeout,
                                      uint64_t* moves);

  /* ---- Following ---- appended later: present when struct_size reaches beyond it ---- */

  /*
   * Reads what changed since, of several attributes, each up to where it is sealed now. Floors and changes are looked
   * at in one step: to ask for the floor first and for the range then fails whenever a writer seals in between. The
   * read is fetched and released as any other. Its groups are those of a range read: changed values, and deletes
   * without data. When nothing changed it has none.
   *
   *   query    prims to be told of; 0: all, those that are gone among them. It then costs what changed
   *   cursors  one for each attribute: what is known, and, filled in, what will be known with this read
   *   out      receives the read
   *
   * Any thread. Errors: those of read_attributes; INVALID_ARGUMENT for an attribute that is listed twice, NOT_SUPPORTED
   * for one that follows from the paths of prims.
   */
  ovstage_enqueue_result_t (*read_since)(ovstage_instance_t*, ovstage_query_handle_t query,
                                         ovstage_go_cursor_t* cursors, size_t count, ovstage_read_handle_t* out);

  /* ---- Interface levels ---- appended later: present when struct_size reaches beyond it ---- */

  /*
   * Sets options of a stage, right after it was created: before its first operation, so that no reader ever sees two
   * layouts.
   *
   *   options   the caller's again when the call returns; interface_level DEFAULT leaves the level as it is
   *
   * Any thread. Errors: INVALID_HANDLE; INVALID_ARGUMENT - NULL, a struct_size that is too small, an unknown level,
   * another level than the stage has spoken since its first operation.
   */
  ovstage_api_status_t (*set_stage_options)(ovstage_instance_t*, const ovstage_go_stage_options_t* options);

  /* The level of a stage; never DEFAULT but for NULL. Any thread, also while the bundle of a destroyed instance is
   * retained. */
  ovstage_go_interface_t (*stage_interface)(ovstage_instance_t*);

  /* ---- Paths that nothing names ---- appended later: present when struct_size reaches beyond it ---- */

  /*
   * Drops the paths that nothing names any more, and the names that were made for them alone, from the dictionary,
   * which all stages of the process share. Without it they stay until the last stage ends. A path is named by
   *   - a path list that is alive, and with it by queries, maps and groups;
   *   - a row: of a prim that carries an attribute in any state that a read can ask for, sealed or not;
   *   - a value of uint64 elements, with the role of a path or none: of an attribute, an open map, a group that is
   * held;
   *   - itself, when it was made by create_paths_from_strings or create_paths_from_tokens;
   *   - a path below it.
   * A handle that is held as a number alone names nothing. That of a path that was dropped is unknown for ever, also
   * when the same text is interned again, and never that of another path.
   *
   *   dropped  receives how many paths went; may be NULL
   *
   * It takes some 60 ns for each path that there is, while other threads go on. Any thread. Returns OK,
   * INVALID_HANDLE or OUT_OF_MEMORY.
   */
  ovstage_api_status_t (*compact)(ovstage_instance_t*, uint64_t* dropped);

  /*
   * The texts of paths, one behind the other without an end mark, as many as the buffer has room for. Views of
   * get_strings_from_tokens make the names of which a path consists stay for ever; these copies do not.
   *
   *   ends  receives for each of the first *done paths where its text ends in the buffer
   *   done  receives how many texts were written; 0 where even the first needs more room
   *
   * Any thread. Returns OK, INVALID_HANDLE, INVALID_ARGUMENT or OUT_OF_MEMORY.
   */
  ovstage_api_status_t (*path_texts)(ovstage_instance_t*, const ovx_primpath_t* paths, size_t count, char* buffer,
                                     size_t capacity, size_t* ends, size_t* done);
} ovstage_go_v1_t;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* OVSTAGE_GO_H */
