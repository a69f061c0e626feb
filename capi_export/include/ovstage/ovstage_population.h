/*
 * ovstage_population.h - fill a stage from USD scenes.
 *
 * Not built into the C library in this version: each call that enqueues or answers a status gives NOT_SUPPORTED, with a
 * text that names the call in ovstage_population_get_last_error() and ovstage_get_last_error(). USD scenes are loaded
 * by the Python package, which writes what it finds through the ordinary data functions. What follows describes the
 * interface as clients are compiled against it.
 *
 * Population has operations of its own, numbered apart from those of ovstage_wait_op. They run one after another in the
 * order of the calls. An ordinal given to a call must lie above the write floors; nothing is ever sealed here, so the
 * usual order is: open or apply, wait, advance the floor, read. `time` is in seconds; NaN is USD's default time.
 */
#ifndef OVSTAGE_POPULATION_H
#define OVSTAGE_POPULATION_H

#include "ovstage_api/ovstage_api.h"

#include "ovstage_population_predicate.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Types ----------------------------------------------------------------------------------------------------- */

/* Number of a population operation. */
typedef uint64_t ovstage_population_op_id_t;
#define OVSTAGE_POPULATION_INVALID_OP_ID ((ovstage_population_op_id_t)0)

/* A USD reference that was added; dead after its removal, a reset or another open. */
typedef uint64_t ovstage_population_usd_reference_handle_t;
#define OVSTAGE_POPULATION_INVALID_USD_REFERENCE_HANDLE ((ovstage_population_usd_reference_handle_t)0)

/* Parts of a scene by subject; bits, passed as uint32_t. Unknown bits are ignored. */
typedef enum {
  OVSTAGE_POPULATION_DOMAIN_NONE = 0,      /* nothing */
  OVSTAGE_POPULATION_DOMAIN_RENDERING = 1, /* meshes, lights, materials, cameras */
  OVSTAGE_POPULATION_DOMAIN_PHYSICS = 2,   /* colliders, bodies, joints, articulations and their schemas' data */
  OVSTAGE_POPULATION_DOMAIN_ALL = 3
} ovstage_population_domain_t;

/* Some prims, and what of them is published. 80 bytes. */
typedef struct ovstage_population_selector_t {
  ovstage_population_prim_predicate_t prim_predicate;
  ovstage_population_property_predicate_t property_predicate;
  const ovx_string_t* prim_metadata_paths; /* published as "usd-metadata:<path>" */
  size_t prim_metadata_path_count;
  const ovx_string_t* property_metadata_paths; /* published as "<property>:usd-metadata:<path>" */
  size_t property_metadata_path_count;
} ovstage_population_selector_t;

/* What is populated. 40 bytes. Of several descriptions domains and selectors are united. Copied by the call. */
typedef struct ovstage_population_desc_t {
  uint32_t domains; /* ovstage_population_domain_t */
  const ovstage_population_selector_t* selectors;
  size_t selector_count;
  const ovx_string_t* stage_metadata_paths; /* published on "/" */
  size_t stage_metadata_path_count;
} ovstage_population_desc_t;

/* Answer of a call that enqueues. 16 bytes. OVSTAGE_OK: accepted; whether it worked is told by the wait. */
typedef struct ovstage_population_enqueue_result_t {
  ovstage_api_status_t status;
  ovstage_population_op_id_t op_index; /* 0 unless status is OVSTAGE_OK */
} ovstage_population_enqueue_result_t;

/* What ovstage_population_wait_op found. 24 bytes. */
typedef struct ovstage_population_op_wait_result_t {
  const ovstage_population_op_id_t* error_op_ids; /* lives until this thread's next population wait */
  size_t error_op_id_count;
  ovstage_population_op_id_t lowest_pending_op_id; /* with OVSTAGE_ERROR_TIMEOUT; else 0 */
} ovstage_population_op_wait_result_t;

/* The name that stands in usd-prim-type for a prim without a type. */
static inline ovx_string_t ovstage_population_untyped_type_name(void) {
  return literal_to_ovx_string("__ovstage_population_untyped__");
}

/* ---- Schemas --------------------------------------------------------------------------------------------------- */

/*
 * ovstage_population_register_usd_schemas - make USD schemas known, before the first USD file is opened.
 *
 * Holds for the whole process and cannot be taken back. Needs no instance and no initialisation.
 *
 *   paths  path_count files plugInfo.json, or directories that contain one; none: nothing happens
 *
 * Errors    INVALID_ARGUMENT: an empty entry, NULL with a count. NOT_FOUND: an entry that cannot be read. Both before
 *           anything is registered. OP_FAILED: too late, definitions have been read.
 * Threads   Any.
 */
ovstage_api_status_t ovstage_population_register_usd_schemas(const ovx_string_t* paths, size_t path_count);

/* ---- Opening a scene ------------------------------------------------------------------------------------------- */

/*
 * ovstage_population_open_usd_from_file - load a USD file and populate the stage with it, in place of an earlier scene.
 *
 *   path     a .usd, .usda or .usdc file; one that does not exist fails at the wait
 *   ordinal  of the writes
 *   domains  ovstage_population_domain_t bits
 */
ovstage_population_enqueue_result_t ovstage_population_open_usd_from_file(ovstage_instance_t* stage, ovx_string_t path,
                                                                          ovstage_ordinal_t ordinal, double time,
                                                                          uint32_t domains);

/* As above, from USD text. */
ovstage_population_enqueue_result_t ovstage_population_open_usd_from_string(ovstage_instance_t* stage,
                                                                            ovx_string_t usda,
                                                                            ovstage_ordinal_t ordinal, double time,
                                                                            uint32_t domains);

/* As ovstage_population_open_usd_from_file, with descriptions of what is wanted; without any nothing is populated. */
ovstage_population_enqueue_result_t ovstage_population_open_usd_from_file_with_desc(
    ovstage_instance_t* stage, ovx_string_t path, ovstage_ordinal_t ordinal, double time,
    const ovstage_population_desc_t* descs, size_t desc_count);

/* As above, from USD text. */
ovstage_population_enqueue_result_t ovstage_population_open_usd_from_string_with_desc(
    ovstage_instance_t* stage, ovx_string_t usda, ovstage_ordinal_t ordinal, double time,
    const ovstage_population_desc_t* descs, size_t desc_count);

/* ---- Editing the scene ----------------------------------------------------------------------------------------- */

/*
 * ovstage_population_add_usd_reference_from_file - add a reference to a USD file to the open scene.
 *
 * Changes the USD scene only; ovstage_population_apply_usd_changes brings the change into the stage.
 *
 *   target_path  an existing prim, a new one (defined with its ancestors), or "/" to merge at the top level
 *   out_handle   optional; known at once, 0 on refusal
 *
 * Errors    Refused while no scene is open.
 */
ovstage_population_enqueue_result_t ovstage_population_add_usd_reference_from_file(
    ovstage_instance_t* stage, ovx_string_t ref_file_path, ovx_string_t target_path,
    ovstage_population_usd_reference_handle_t* out_handle);

/* As above, from USD text. */
ovstage_population_enqueue_result_t ovstage_population_add_usd_reference_from_string(
    ovstage_instance_t* stage, ovx_string_t ref_str, ovx_string_t target_path,
    ovstage_population_usd_reference_handle_t* out_handle);

/* ovstage_population_remove_usd_reference - undo exactly one addition. Fails at the wait if it is undone already. */
ovstage_population_enqueue_result_t ovstage_population_remove_usd_reference(
    ovstage_instance_t* stage, ovstage_population_usd_reference_handle_t handle);

/* ovstage_population_reset_usd - empty the USD scene; apply the changes or open another one next. */
ovstage_population_enqueue_result_t ovstage_population_reset_usd(ovstage_instance_t* stage);

/* ---- Following the scene --------------------------------------------------------------------------------------- */

/* ovstage_population_apply_usd_time - write the values that animated properties have at `time`. */
ovstage_population_enqueue_result_t ovstage_population_apply_usd_time(ovstage_instance_t* stage,
                                                                      ovstage_ordinal_t ordinal, double time);

/* ovstage_population_apply_usd_changes - write what has changed in the USD scene since the last time. A value that a
 * client wrote stays, unless USD's own value changed. */
ovstage_population_enqueue_result_t ovstage_population_apply_usd_changes(ovstage_instance_t* stage,
                                                                         ovstage_ordinal_t ordinal);

/* ---- Waiting --------------------------------------------------------------------------------------------------- */

/*
 * ovstage_population_wait_op - wait for all population operations up to and including op_id.
 *
 *   out_wait_result  optional
 *
 * Returns   OK; TIMEOUT; OP_FAILED if one of them failed - unlike ovstage_wait_op. Each failure is told once.
 * Errors    INVALID_ARGUMENT: op_id is 0 or was never issued.
 */
ovstage_api_status_t ovstage_population_wait_op(ovstage_instance_t* stage, ovstage_population_op_id_t op_id,
                                                ovstage_timeout_ns_t timeout_ns,
                                                ovstage_population_op_wait_result_t* out_wait_result);

/* ovstage_population_get_last_error - the text of this thread's last failed population call; valid until its next. */
ovx_string_t ovstage_population_get_last_error(void);

/* ovstage_population_get_last_op_error - the text of an operation that this thread's last population wait listed;
 * {NULL, 0} for any other. */
ovx_string_t ovstage_population_get_last_op_error(ovstage_population_op_id_t op_id);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* OVSTAGE_POPULATION_H */
