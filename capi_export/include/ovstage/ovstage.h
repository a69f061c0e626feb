/*
 * ovstage.h - the stage library: process, log, instances, clones, hierarchy.
 *
 * A program makes an instance, works with it through the functions of ovstage_api/ovstage_api.h, and destroys it:
 *
 *     ovstage_instance_desc_t desc = {"robots"};
 *     ovstage_instance_t* stage = NULL;
 *     if (ovstage_create_instance(&desc, &stage) != OVSTAGE_OK) {
 *       ovx_string_t why = ovstage_get_last_error();
 *       fprintf(stderr, "%.*s\n", (int)why.length, why.ptr);
 *     }
 *     ...
 *     ovstage_destroy_instance(stage);
 *
 * Link with -lovstage. The rules at the top of ovstage_api.h hold here too. For paths and tokens include
 * <ovx/path_dictionary/path_dictionary.h> as well; for what this library offers beyond the shared interface,
 * <ovstage/ovstage_go.h>.
 *
 * Not built in this version, and answered with NOT_SUPPORTED and a text that names the call: everything about USD files
 * in C (ovstage_population.h, ovstage_population_export.h). USD scenes are loaded by the Python package.
 */
#ifndef OVSTAGE_H
#define OVSTAGE_H

#include "ovstage_api/ovstage_api.h"

#include "ovstage_config.h"
#include "ovstage_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Process --------------------------------------------------------------------------------------------------- */

/*
 * ovstage_initialize - take a reference to the process-wide state, and configure it.
 *
 * Optional: each instance takes a reference of its own. Call it to keep the state across the lives of several
 * instances, to see early that the library works, or to configure it.
 *
 *   config  optional; its strings need to live during the call only
 *
 * Returns   OK; then exactly one ovstage_shutdown is due.
 * Errors    INVALID_ARGUMENT: an entry that is malformed, unknown, given twice, or different from what is in force
 *           while a reference is held already. No reference is taken.
 * Threads   Any.
 */
ovstage_api_status_t ovstage_initialize(const ovstage_config_t* config);

/*
 * ovstage_shutdown - drop a reference that ovstage_initialize took.
 *
 * The last reference, those of living instances counted, ends the process-wide state: the log is flushed and its
 * callback removed. The library may be initialised again afterwards.
 *
 * Errors    INVALID_ARGUMENT: there is no ovstage_initialize left to answer.
 * Threads   Any.
 */
ovstage_api_status_t ovstage_shutdown(void);

/* ---- Log ------------------------------------------------------------------------------------------------------- */

/*
 * ovstage_set_log_callback - choose what receives messages; there is one receiver in a process.
 *
 *   severity        threshold for channels without a rule: lighter messages are dropped
 *   channel_filter  optional; rules "channel=level", separated by commas. A channel name stands for all that begin with
 *                   it. Levels: verbose debug info warn warning error fatal none
 *   callback        replaces the earlier one; NULL: messages under way are delivered, then no more
 *   user_data       given to each call
 *
 * Without a callback the library prints nothing. Once a callback has been cleared it is never called again; once it has
 * been replaced, one message may still be on its way to it until ovstage_flush_log returns.
 *
 * Errors    INVALID_ARGUMENT: the filter cannot be understood. OP_FAILED: no initialisation and no instance is alive.
 * Threads   Any but that of the callback.
 */
ovstage_api_status_t ovstage_set_log_callback(ovstage_log_severity_t severity, const ovx_string_t* channel_filter,
                                              ovstage_log_callback_t callback, void* user_data);

/*
 * ovstage_flush_log - wait until every message from before the call has been delivered.
 *
 * Returns   OK, at once if there is no callback. TIMEOUT.
 * Threads   Any but that of the callback.
 */
ovstage_api_status_t ovstage_flush_log(ovstage_timeout_ns_t timeout);

/* ---- Instances ------------------------------------------------------------------------------------------------- */

/*
 * ovstage_create_instance - make an empty stage with a write floor of 0.
 *
 *   out_instance  the instance, owned by the caller until ovstage_destroy_instance; NULL on failure
 *
 * Any number of instances may exist. They share one path dictionary.
 *
 * Errors    INVALID_ARGUMENT: NULL. INTERNAL: a second copy of the library is loaded in this process; the text gives
 *           both files. OUT_OF_MEMORY.
 * Threads   Any.
 */
ovstage_api_status_t ovstage_create_instance(const ovstage_instance_desc_t* desc, ovstage_instance_t** out_instance);

/*
 * ovstage_destroy_instance - end a stage.
 *
 * Waits for pending operations, aborts open maps and drops the columns. Groups, buffers and DLPack exports that
 * are still held stay valid memory. The instance pointer is dangling afterwards, unless a reference to it was
 * taken (ovstage_go.h).
 *
 *   instance  NULL: nothing happens
 *
 * Threads   No other thread may use the instance during the call or after it.
 */
ovstage_api_status_t ovstage_destroy_instance(ovstage_instance_t* instance);

/*
 * ovstage_get_usd_stage_id - tell which USD stage stands behind an instance. In this library none does: NOT_SUPPORTED.
 *
 * Errors    INVALID_ARGUMENT: NULL.
 */
ovstage_api_status_t ovstage_get_usd_stage_id(ovstage_instance_t* instance, uint64_t* out_usd_stage_id);

/* ---- Clones ---------------------------------------------------------------------------------------------------- */

/*
 * ovstage_clone - copy a prim and everything below it to new paths, at an ordinal.
 *
 * Values are those as of `ordinal`, sealed or not, and are changes at it. Targets of relationships and connections that
 * are the source, lie below it, or are properties there, lead into the copy; others stay. World transforms are copied
 * like all else, see ovstage_compute_hierarchy. Prims above a target need not exist and are not created.
 *
 *   source_path   the source; there must be a prim at or below it
 *   target_paths  num_target_paths paths, apart from each other and outside of the source. No prim may exist at or
 *                 below any of them. None: nothing is done
 *
 * Errors    INVALID_ARGUMENT: no paths, the same target twice, a target inside the source or inside another. Of the
 *           operation: OP_FAILED - no such source, or a prim in the way, "already exists"; WRITE_FLOOR_VIOLATION -
 *           `ordinal` is sealed for an attribute of the source. Then nothing is cloned.
 */
ovstage_enqueue_result_t ovstage_clone(ovstage_instance_t* instance, ovx_string_t source_path,
                                       const ovx_string_t* target_paths, size_t num_target_paths,
                                       ovstage_ordinal_t ordinal);

/* ---- Hierarchy ------------------------------------------------------------------------------------------------- */

/*
 * ovstage_get_hierarchy - ask for parents, children or siblings of prims.
 *
 * The answer is that of the moment of the call: like usd-parent and usd-children it is about the prims that exist by
 * then, sealed or not.
 *
 *   prim_paths            the prims; copied
 *   ordinal               comes back in the result
 *   out_hierarchy_handle  to be ended by ovstage_release_hierarchy; 0 on failure
 *
 * Errors    INVALID_ARGUMENT: an unknown relation, NULL. INVALID_HANDLE: no path list.
 */
ovstage_enqueue_result_t ovstage_get_hierarchy(ovstage_instance_t* instance, ovx_primpath_list_t prim_paths,
                                               ovstage_ordinal_t ordinal, ovstage_hierarchy_relation_t relation,
                                               ovstage_hierarchy_handle_t* out_hierarchy_handle);

/*
 * ovstage_fetch_hierarchy_result - take the answer of a hierarchy question; never waits.
 *
 *   out_result  one item for each path, NOT_FOUND where it is no prim; its relatives are those of `paths` from
 *               path_offset on, as strings, in the order of their creation. To be released; may be taken again
 *
 * Returns   OK, TIMEOUT while it is not ready, OP_FAILED. INVALID_HANDLE, INVALID_ARGUMENT: NULL.
 */
ovstage_api_status_t ovstage_fetch_hierarchy_result(ovstage_instance_t* instance,
                                                    ovstage_hierarchy_handle_t hierarchy_handle,
                                                    ovstage_hierarchy_result_t* out_result);

/* ovstage_release_hierarchy_result - free an answer, once; the question stays. INVALID_HANDLE for any other. */
ovstage_api_status_t ovstage_release_hierarchy_result(ovstage_instance_t* instance,
                                                      const ovstage_hierarchy_result_t* result);

/* ovstage_release_hierarchy - end a hierarchy question; answers that were taken stay. */
ovstage_enqueue_result_t ovstage_release_hierarchy(ovstage_instance_t* instance, ovstage_hierarchy_handle_t handle);

/*
 * ovstage_get_hierarchy_computation_models - list the models that ovstage_compute_hierarchy accepts.
 *
 *   out_models  an array of the library, valid as long as the instance: by id, CPU_INCREMENTAL, GPU_INCREMENTAL,
 *               GPU_GLOBAL, RUNTIME_DEFAULT
 *
 * Errors    INVALID_ARGUMENT: NULL.
 */
ovstage_api_status_t ovstage_get_hierarchy_computation_models(
    ovstage_instance_t* instance, const ovstage_hierarchy_computation_model_desc_t** out_models,
    size_t* out_model_count);

/*
 * ovstage_compute_hierarchy - compute world transforms from local ones.
 *
 * Reads omni:xform (float64, 16 lanes, row-major for row vectors: elements 12..14 are the translation) and
 * omni:resetXformStack (bool) as of input_ordinal, and writes omni:fabric:worldMatrix at output_ordinal for every prim
 * that has an omni:xform, wherever that came from: its own times the world transform of the nearest ancestor that has
 * one. A prim whose reset flag is true, or that has no such ancestor, keeps its own. Only what moved is written; rows
 * are added where a prim had none.
 *
 * Above the write floor of omni:fabric:worldMatrix that is a write like any other, made of the newest values at or
 * below input_ordinal, sealed or not. At a sealed output_ordinal, unlike any write, it makes a new version of that
 * ordinal's state out of sealed values; groups that readers hold keep theirs, and ranges report what moved at
 * output_ordinal. The usual calls are: write at N, seal N, compute (N, N).
 *
 *   computation_model_id  a concrete model, or RUNTIME_DEFAULT for the process's default when the instance was made
 *
 * Errors    INVALID_ARGUMENT: no model. Of the operation: OP_FAILED - a GPU model where CUDA is not loaded, an
 *           attribute of another type, an output_ordinal older than the sealed world transforms. Then nothing is
 *           written.
 */
ovstage_enqueue_result_t ovstage_compute_hierarchy(ovstage_instance_t* instance,
                                                   ovstage_hierarchy_computation_model_id_t computation_model_id,
                                                   ovstage_ordinal_t input_ordinal, ovstage_ordinal_t output_ordinal);

#ifdef __cplusplus
} /* extern "C" */
#endif

#include "ovstage_instancing.h"
#include "ovstage_population.h"

#endif /* OVSTAGE_H */
