/*
 * ovstage_api.h - the functions of a stage instance.
 *
 * A stage holds attributes as columns: a row is a prim (a path), a column is a named attribute, and every change
 * carries an ordinal, a number that the application chooses. The write floor seals ordinals: writes must lie above it,
 * and reads serve what lies at or below it. One frame of an application is usually
 *
 *     write_attribute(query, "speed", 7, data)      change at ordinal 7
 *     advance_write_floor({7, ALL})                 seal it: ordinal 7 can no longer change
 *     read_attributes(query, {"speed"}, up to 7)    read the sealed snapshot, as DLPack tensors
 *
 * The value of (prim, attribute) at ordinal N is the change with the greatest ordinal <= N; among changes with the same
 * ordinal the one submitted last. Values depend on nothing else: not on timing, and not on the order in which changes
 * of different ordinals were submitted.
 *
 * The functions are reached through the instance's table, instance->vtable->slot(instance->context, ...), or by the
 * inline functions of ovstage_api_utils.h, which do just that under names like ovstage_write_attribute(instance, ...).
 *
 * Rules that hold for every slot:
 *
 *   Kinds     A call that returns ovstage_enqueue_result_t enqueues an operation; what can be known at once is checked
 *             at once, and a refusal has op_index 0. The rest is found out by wait_op, or by the fetch_... of the
 *             result. All other calls are done when they return.
 *   Threads   Any number of threads may use an instance at once. The one exception is ovstage_destroy_instance.
 *   Readers and writers never refuse or block one another: open reads, groups and maps reject no write, and a write
 *             that is not sealed neither blocks a read nor changes what it serves.
 *   Errors    A refused or failed call leaves everything as it was, and a text for people in ovstage_get_last_error():
 *             the argument, its value, what was expected. With several faults in one call, any of them may be reported.
 *   Outputs   Handles are written before the call returns, the invalid one (0) when it is refused.
 *   Inputs    Arrays, strings, descriptors and lists are copied before the call returns. Only the bytes that tensors of
 *             a write point at must stay until that operation is done.
 *   NULL      is INVALID_ARGUMENT for any pointer that is not said to be optional.
 *   Handles   that are not alive - never made, released, or 0 - are INVALID_HANDLE. Values are never used twice. A
 *             handle belongs to the instance that made it and means nothing to another.
 *   Destroyed instances answer INVALID_HANDLE for as long as a reference is held (ovstage_go.h). Without one the
 *             instance pointer is dangling after ovstage_destroy_instance.
 *   Fork      In a child of fork() every call fails with NOT_SUPPORTED and says that workers must be started by
 *             spawning a new process, except that what is released or destroyed there succeeds and does nothing.
 *
 * Not built yet in this version, and answered with NOT_SUPPORTED and a text: tensors in CUDA memory and wait events.
 */
#ifndef OVSTAGE_API_H
#define OVSTAGE_API_H

#include "ovstage_api_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * ovstage_get_last_error - the text of this thread's last failed call.
 *
 * Needs no instance and works after a failed ovstage_create_instance. Every call but the pure accessors (this one,
 * get_version, get_error_string, get_last_op_error, get_path_dictionary) first clears the text.
 *
 * Returns   A view that is valid until this thread's next call; {NULL, 0} if the last call did not fail. Copy it to
 *           keep it.
 * Threads   Each thread has its own.
 */
ovx_string_t ovstage_get_last_error(void);

/* 28 slots; slots are only ever appended. The first argument of each is the bundle's context, not the bundle. */
struct ovstage_vtable_t {
  /* ---- Operations ---------------------------------------------------------------------------------------------- */

  /*
   * 0. wait_op - wait until an operation, and everything that it depends on, is done.
   *
   *   op_id            from an accepted call of this instance
   *   timeout          0 looks only
   *   out_wait_result  optional; zeroed first. Lists the failed operations of op_id's own chain, the root cause first,
   *                    and of no other: one that failed is listed every time it is waited for, until it is released.
   *                    The array lives until this thread's next wait_op.
   *
   * Returns   OK when the operation is done - also when it ran and failed: look at error_op_id_count, and ask
   *           get_last_op_error for the text. TIMEOUT while it is pending; nothing is consumed, wait again.
   * Errors    INVALID_HANDLE: op_id is 0, was never issued or has been released.
   */
  ovstage_api_status_t (*wait_op)(ovstage_context_t* instance, ovstage_op_id_t op_id, ovstage_timeout_ns_t timeout,
                                  ovstage_op_wait_result_t* out_wait_result);

  /*
   * 1. release_op - forget a finished operation. Once for each accepted operation, those of release calls included.
   * Afterwards op_id is no longer known.
   *
   * Errors    INVALID_HANDLE: op_id is not known.
   */
  ovstage_api_status_t (*release_op)(ovstage_context_t* instance, ovstage_op_id_t op_id);

  /* ---- Ordinals and write floors ------------------------------------------------------------------------------- */

  /*
   * 2. advance_write_floor - seal everything up to and including desc->ordinal, in a scope.
   *
   * The floor of an attribute is the greater of the global floor and its own. ALL raises the global one, INCLUDE those
   * of the listed attributes - also of ones that were never written yet -, EXCLUDE those of all known attributes but
   * the listed. Floors never fall: an ordinal at or below a floor is a success that changes nothing. The operation runs
   * after all changes with ordinals up to desc->ordinal that were submitted before it.
   *
   * A map that is still open at an ordinal which gets sealed fails when it is committed.
   *
   * Errors    INVALID_ARGUMENT: unknown scope, a list of NULL with a count, or a token that was never interned.
   */
  ovstage_enqueue_result_t (*advance_write_floor)(ovstage_context_t* instance, const ovstage_write_floor_desc_t* desc);

  /*
   * 3. get_oldest_preserved_ordinal - ask from which ordinal on it is known exactly what changed when.
   *
   * The answer, taken by fetch_ordinal, is inclusive: range reads that start at it or later are exact. 0 on a fresh
   * instance. How far it stays behind the floor is not promised: ask, never assume.
   *
   *   out_handle  to be ended by release_ordinal_query
   */
  ovstage_enqueue_result_t (*get_oldest_preserved_ordinal)(ovstage_context_t* instance,
                                                           ovstage_ordinal_query_handle_t* out_handle);

  /*
   * 4. get_attribute_write_floor - ask for the floor of an attribute, global floor included.
   *
   *   attribute   all zero: the global floor
   *   out_handle  to be ended by release_ordinal_query; fetch_ordinal gives the answer
   */
  ovstage_enqueue_result_t (*get_attribute_write_floor)(ovstage_context_t* instance, ovx_string_or_token_t attribute,
                                                        ovstage_ordinal_query_handle_t* out_handle);

  /*
   * 5. fetch_ordinal - take the answer of an ordinal question. May be called again.
   *
   * Returns   OK, TIMEOUT, OP_FAILED. Errors: INVALID_HANDLE.
   */
  ovstage_api_status_t (*fetch_ordinal)(ovstage_context_t* instance, ovstage_ordinal_query_handle_t handle,
                                        ovstage_timeout_ns_t timeout, ovstage_ordinal_t* out_ordinal);

  /* 6. release_ordinal_query - end an ordinal question, after calls that still use it. Errors: INVALID_HANDLE. */
  ovstage_enqueue_result_t (*release_ordinal_query)(ovstage_context_t* instance, ovstage_ordinal_query_handle_t handle);

  /* ---- Queries ------------------------------------------------------------------------------------------------- */

  /*
   * 7. query - choose prims by what they are and what they carry, in the latest executed state, sealed or not.
   *
   * The prims that meet every predicate are listed in the order of their creation, once and for all: what is written
   * later changes nothing about the query. Several values mean any of them. Predicates are
   *
   *   HAS                  on any attribute: the prim carries it
   *   IN, PREFIX           on usd-path: the path, or how it begins, byte by byte ("/World/" is what lies below /World)
   *   IN                   on usd-parent: the path above, whether a prim or not; "/" for top-level prims
   *   CONTAINS             on usd-children: a child that is a prim
   *   IN                   on usd-prim-type; CONTAINS on usd-schemas: the name
   *   IN, LT, LE, GT, GE   on other fixed-size attributes of one lane: a number, or for IN the text of a token
   *
   *   filter            optional; NULL or without predicates: every prim
   *   attrs             optional; the attributes that the result may report; NULL with 0: all that are found
   *   out_query_handle  usable at once; to be ended by release_query
   *
   * Errors    NOT_SUPPORTED: any other predicate, and any of usd-active. INVALID_ARGUMENT: a value that is no path or
   *           no number where one is expected, other than one value to compare with, a token that was never interned.
   */
  ovstage_enqueue_result_t (*query)(ovstage_context_t* instance, const ovstage_filter_t* filter,
                                    const ovx_token_t* attrs, size_t attr_count,
                                    ovstage_query_handle_t* out_query_handle);

  /*
   * 8. query_from_path_list - choose prims by a list of paths.
   *
   * Nothing is looked up: the prims need not exist, and a write through the query creates them. Order and duplicates
   * are kept. The query holds its own reference to the list; the caller may release theirs at once.
   *
   *   out_handle  to be ended by release_query
   *
   * Errors    INVALID_HANDLE or INVALID_ARGUMENT: path_list is not a list that is alive.
   */
  ovstage_api_status_t (*query_from_path_list)(ovstage_context_t* instance, ovx_primpath_list_t path_list,
                                               ovstage_query_handle_t* out_handle);

  /*
   * 9. fetch_query_result - tell how many prims a query has and which attributes they carry. May be called again; every
   * result is released on its own.
   *
   * Returns   OK, TIMEOUT, OP_FAILED. Errors: INVALID_HANDLE.
   */
  ovstage_api_status_t (*fetch_query_result)(ovstage_context_t* instance, ovstage_query_handle_t query_handle,
                                             ovstage_timeout_ns_t timeout, ovstage_query_result_t* out_result);

  /* 10. release_query_result - free a result and its attribute array; the query stays. Errors: INVALID_HANDLE. */
  ovstage_api_status_t (*release_query_result)(ovstage_context_t* instance, const ovstage_query_result_t* result);

  /* 11. release_query - end a query, after the operations that still use it. Groups, reads and maps that were made with
   *     it go on. Errors: INVALID_HANDLE. */
  ovstage_enqueue_result_t (*release_query)(ovstage_context_t* instance, ovstage_query_handle_t handle);

  /* ---- Reading ------------------------------------------------------------------------------------------------- */

  /*
   * 12. read_attributes - read attributes of the query's prims as they are sealed.
   *
   * Without a start ordinal: for each prim and attribute the newest sealed state at or below range.end_ordinal. What is
   * written but not sealed is not served. With a start ordinal: the prims whose attribute changed in [start, end], with
   * their values as of the end, and those that had lost it by then as tombstone groups (is_delete).
   *
   * Prims without such state have no row, and an attribute that no prim carries has no group; neither is an error.
   *
   * usd-path and usd-parent (a path handle) and usd-children (an array of them) follow from the paths of the prims that
   * exist, sealed or not: no floor holds them back, ranges have none of them, and their ordinal is range.end_ordinal.
   * usd-parent has a row where the parent is a prim, other than the root.
   *
   * This library keeps the newest sealed payload, everything that is not sealed, and what is still held: an
   * end_ordinal older than that is served the oldest state that is kept, and group.ordinal tells.
   *
   *   attrs            attr_count tokens; duplicates count once
   *   out_read_handle  usable at once; to be ended by release_read
   *
   * Errors    WRITE_FLOOR_VIOLATION: a selected prim has state at or below end_ordinal, but none of it is sealed; or a
   *           range selects a change that is not sealed.
   *           OUT_OF_RANGE: a range selects a change whose payload is no longer kept.
   *           INVALID_ARGUMENT: start above end, no attributes, a token that was never interned. INVALID_HANDLE.
   */
  ovstage_enqueue_result_t (*read_attributes)(ovstage_context_t* instance, ovstage_query_handle_t handle,
                                              const ovx_token_t* attrs, size_t attr_count,
                                              ovstage_ordinal_range_t range, ovstage_read_handle_t* out_read_handle);

  /*
   * 13. fetch_read_next - take the next group of a read.
   *
   * A column whose rows lie in the order of the query is one group without index maps, whatever ordinals wrote it, and
   * its tensor shows the column itself, without a copy. Otherwise as few groups as possible. An array column is one
   * group with a tensor for each prim, all of which show one buffer. The split depends on what the snapshot contains
   * only: it is the same in every frame until rows are added or removed.
   *
   * The group's bytes never change, whatever is written later. Each group is released on its own, in any order, and
   * outlives the read handle and the query.
   *
   * Returns   OK, TIMEOUT, END_OF_ITERATION after the last group, or the failure of the read: its own status, OP_FAILED
   *           if this call had to wait for it. Errors: INVALID_HANDLE.
   */
  ovstage_api_status_t (*fetch_read_next)(ovstage_context_t* instance, ovstage_read_handle_t read_handle,
                                          ovstage_timeout_ns_t timeout, ovstage_read_group_t* out_group);

  /*
   * 14. release_group - give a read group back; its pointers are dead afterwards. Known by read_group_id.
   *
   * Errors    INVALID_HANDLE: not a group of this instance, or released already; nothing is freed.
   */
  ovstage_api_status_t (*release_group)(ovstage_context_t* instance, const ovstage_read_group_t* group);

  /* 15. release_read - end a read; groups that were fetched stay. Errors: INVALID_HANDLE. */
  ovstage_enqueue_result_t (*release_read)(ovstage_context_t* instance, ovstage_read_handle_t read_handle);

  /* ---- Writing ------------------------------------------------------------------------------------------------- */

  /*
   * 16. write_attribute - write values of one attribute at an ordinal.
   *
   * The values are copied (ovstage_write_data_t says how they are laid out, and when a managed tensor is kept instead).
   * Prims that do not exist are created, with the attribute; only those that are written. A path that a query lists
   * twice is written in list order, the later entry wins. The first write gives a column its schema - kind, dtype and
   * lanes, semantic -, and a write of another schema is refused until the attribute is deleted.
   *
   * Errors    WRITE_FLOOR_VIOLATION: ordinal is at or below the attribute's floor.
   *           PRIM_NOT_FOUND: INSERT, and a prim that would be written exists.
   *           INVALID_ARGUMENT: rows, shape, count, index_map, mask, dtype or semantic do not fit, or a managed tensor
   *           is NULL or given twice.
   *           NOT_SUPPORTED: a dtype that cannot be stored, a device other than the CPU, a derived attribute (usd-path,
   *           usd-parent, usd-children, usd-active). INVALID_HANDLE, OUT_OF_MEMORY, QUEUE_FULL.
   */
  ovstage_enqueue_result_t (*write_attribute)(ovstage_context_t* instance, ovstage_query_handle_t handle,
                                              ovx_string_or_token_t attribute, ovstage_ordinal_t ordinal,
                                              ovstage_write_data_t data, ovstage_prim_mode_t prim_mode);

  /*
   * 17. map_attribute - open a writable session on one attribute of the query's prims.
   *
   * The session hands out buffers (fetch_map_next), the caller fills them in place, and unmap_group or unmap_attribute
   * makes them the attribute's values at `ordinal`. A buffer starts with the current value of each prim: the newest
   * write with an ordinal at or below the session's, sealed or not, and zeros where there is none. ovstage_go.h has a
   * form that starts from zeros or leaves the contents open, and one that ends a session without committing.
   *
   * Several sessions may be open, on the same attribute too. Each changes its own prims only, and at equal ordinals
   * they take effect in the order of their commits.
   *
   *   desc           attribute and schema; a dtype of all zero takes that of the existing column
   *   element_sizes  array columns: number of elements for each prim of the query, 0 for none; a prim whose number
   *                  changes starts with what both have in common, then zeros. Fixed-size columns: NULL
   *   element_count  length of element_sizes: the number of prims of the query; 0 with NULL
   *   out_map_handle usable at once; ended by unmap_attribute
   *
   * Errors    As write_attribute; INVALID_ARGUMENT also for a new column without dtype, an element_count that is not
   *           the number of prims, and element_sizes of NULL with a count. An INSERT session is judged here, not again
   *           when it commits.
   */
  ovstage_enqueue_result_t (*map_attribute)(ovstage_context_t* instance, ovstage_query_handle_t handle,
                                            const ovstage_map_desc_t* desc, ovstage_ordinal_t ordinal,
                                            const size_t* element_sizes, size_t element_count,
                                            ovstage_map_handle_t* out_map_handle);

  /*
   * 18. fetch_map_next - take the next writable group of a session. A column of one schema is one group, rows in query
   * order; an array column has a tensor for each prim. The pointers live until the group is committed.
   *
   * Returns   OK, TIMEOUT, END_OF_ITERATION after the last group, OP_FAILED. Errors: INVALID_HANDLE.
   */
  ovstage_api_status_t (*fetch_map_next)(ovstage_context_t* instance, ovstage_map_handle_t map_handle,
                                         ovstage_timeout_ns_t timeout, ovstage_map_group_t* out_group);

  /*
   * 19. unmap_group - commit one group of a session, which goes on.
   *
   * The buffer itself becomes the column where it covers it: no copy. The caller must not write to it afterwards.
   *
   *   write_done_sync  waited for first
   *
   * Errors    INVALID_HANDLE: no such session, or a group that is not its own or is committed already.
   *           Of the operation: WRITE_FLOOR_VIOLATION - the session's ordinal was sealed meanwhile. Nothing is written,
   *           the group stays uncommitted and the session goes on until unmap_attribute.
   */
  ovstage_enqueue_result_t (*unmap_group)(ovstage_context_t* instance, ovstage_map_handle_t map_handle,
                                          const ovstage_map_group_t* group, ovstage_cuda_sync_t write_done_sync);

  /*
   * 20. unmap_attribute - commit what is not committed yet, fetched or not, and end the session.
   *
   * Errors    INVALID_HANDLE. Of the operation: WRITE_FLOOR_VIOLATION - the session's ordinal was sealed meanwhile.
   *           Nothing is written, and the session ends all the same.
   */
  ovstage_enqueue_result_t (*unmap_attribute)(ovstage_context_t* instance, ovstage_map_handle_t map_handle,
                                              ovstage_cuda_sync_t write_done_sync);

  /*
   * 21. delete_attributes - remove attributes from the query's prims at an ordinal.
   *
   *   attributes  attribute_count names; NULL with 0: everything, the prims cease to exist
   *
   * Afterwards these prims have no row in the attribute, and it may be written with another schema. A prim that loses
   * its last attribute ceases to exist. Removing what is absent succeeds and records nothing.
   *
   * Errors    WRITE_FLOOR_VIOLATION: ordinal is at or below the floor of a named attribute, whichever prim carries it,
   * or of one that the prims lose. INVALID_ARGUMENT: NULL with a count, or no name and no token that is known.
   *           NOT_SUPPORTED: a derived attribute. INVALID_HANDLE.
   */
  ovstage_enqueue_result_t (*delete_attributes)(ovstage_context_t* instance, ovstage_query_handle_t handle,
                                                const ovx_string_or_token_t* attributes, size_t attribute_count,
                                                ovstage_ordinal_t ordinal);

  /* ---- About the library --------------------------------------------------------------------------------------- */

  /* 22. get_version - the interface level that the library was built for: 0, 2, 1. A client compares it with the
   *     OVSTAGE_VERSION_... macros that it was compiled with. Pointers may be NULL. */
  void (*get_version)(ovstage_context_t* instance, uint32_t* out_major, uint32_t* out_minor, uint32_t* out_patch);

  /* 23. get_error_string - a few words for a status code, another for each; never NULL, never empty, never freed. */
  const char* (*get_error_string)(ovstage_context_t* instance, ovstage_api_status_t error);

  /* 24. get_last_op_error - the text of an operation that this thread's last wait_op reported as failed. {NULL, 0} for
   *     any other id. Valid until this thread's next wait_op. */
  ovx_string_t (*get_last_op_error)(ovstage_context_t* instance, ovstage_op_id_t op_id);

  /* 25. get_path_dictionary - the dictionary whose tokens, paths and lists this instance uses. It belongs to the
   *     library. All instances of a process share one; it goes with the last of them. */
  path_dictionary_instance_t* (*get_path_dictionary)(ovstage_context_t* instance);

  /* ---- Added later --------------------------------------------------------------------------------------------- */

  /*
   * 26. write_attributes - write several attributes of the same prims at one ordinal, all of them or none.
   *
   * Every entry is checked before anything is written. Names must differ. One operation for all. No entries: success,
   * nothing happens. What becomes visible when is up to the floors of the attributes.
   *
   * Errors    As write_attribute, the text names the attribute; INVALID_ARGUMENT also for a name that occurs twice, and
   *           for a managed tensor that does, in one entry or in two.
   */
  ovstage_enqueue_result_t (*write_attributes)(ovstage_context_t* instance, ovstage_query_handle_t handle,
                                               const ovstage_attribute_write_t* writes, size_t write_count,
                                               ovstage_ordinal_t ordinal, ovstage_prim_mode_t prim_mode);

  /*
   * 27. query_extension - find a table of further functions by name.
   *
   *   name           a C string; this library knows "ovstage.go.v1" (ovstage_go.h)
   *   out_extension  the table: immutable, valid until the process ends; NULL when there is none
   *
   * Errors    NOT_FOUND: no such table. INVALID_ARGUMENT: NULL.
   */
  ovstage_api_status_t (*query_extension)(ovstage_context_t* instance, const char* name, const void** out_extension);
};

#ifdef __cplusplus
} /* extern "C" */
#endif

#include "ovstage_api_utils.h"

#endif /* OVSTAGE_API_H */
