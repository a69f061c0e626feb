/*
 * ovstage_population_export.h - write a stage's values into USD files. Not included by ovstage.h.
 *
 * Not built into the C library in this version: descriptions are filled in, but each call that would export answers
 * NOT_SUPPORTED, with a text that names it in ovstage_population_get_last_error() and ovstage_get_last_error(). Stages
 * are exported by the Python package. What follows describes the interface as clients are compiled against it.
 *
 * An export chooses prims and properties by predicates, and says by rules what becomes of them. It goes into a
 * destination, a USD layer in memory, which reaches a file only when it is saved. Prim predicates may use NONE, ALL,
 * AND, OR, NOT, HAS_TYPE, IS_A_TYPE, HAS_SCHEMA, HAS_APPLIED_SCHEMA, HAS_APPLIED_SCHEMA_IN_NAMESPACE, HAS_PATH and
 * IS_UNDER_PATH, property predicates NONE, ALL, AND, OR, NOT, DECLARED_BY_SCHEMA, HAS_NAME, IN_NAMESPACE, IS_ATTRIBUTE
 * and IS_RELATIONSHIP.
 */
#ifndef OVSTAGE_POPULATION_EXPORT_H
#define OVSTAGE_POPULATION_EXPORT_H

#include <stddef.h>
#include <stdint.h>

#include <ovstage/ovstage.h>
#include <ovstage/ovstage_population.h>
#include <ovstage/ovstage_population_predicate.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Types ----------------------------------------------------------------------------------------------------- */

/* A USD layer that is being written. */
typedef uint64_t ovstage_population_export_destination_handle_t;
#define OVSTAGE_POPULATION_EXPORT_INVALID_DESTINATION_HANDLE ((ovstage_population_export_destination_handle_t)0)

/* Key of a layer's custom data under which names of API schemas that USD does not know are kept. */
#define OVSTAGE_POPULATION_EXPORT_UNKNOWN_APPLIED_API_SCHEMAS_CUSTOM_DATA_KEY "ovpopulation:unknownAppliedAPISchemas"

/* What is exported of the prims that the predicate matches. */
typedef enum {
  OVSTAGE_POPULATION_EXPORT_SELECTION_EXPLICIT_PREDICATE = 0,
  OVSTAGE_POPULATION_EXPORT_SELECTION_CHANGED_PROPERTIES_SINCE_ORDINAL = 1 /* changes in (since_ordinal, ordinal] */
} ovstage_population_export_selection_t;

/* How prims are authored. */
typedef enum {
  OVSTAGE_POPULATION_EXPORT_LAYER_MODE_OVER = 0,
  OVSTAGE_POPULATION_EXPORT_LAYER_MODE_DEF = 1
} ovstage_population_export_layer_mode_t;

/* How a rule's path is compared. */
typedef enum {
  OVSTAGE_POPULATION_EXPORT_PATH_MATCH_EXACT = 0,
  OVSTAGE_POPULATION_EXPORT_PATH_MATCH_PREFIX = 1 /* the path and what is below it */
} ovstage_population_export_path_match_t;

/* How a rule's name is compared. */
typedef enum {
  OVSTAGE_POPULATION_EXPORT_NAME_MATCH_EXACT = 0,
  OVSTAGE_POPULATION_EXPORT_NAME_MATCH_GLOB = 1
} ovstage_population_export_name_match_t;

/* How local transforms are authored. */
typedef enum {
  OVSTAGE_POPULATION_EXPORT_TRANSFORM_USD_XFORM_OP = 0,
  OVSTAGE_POPULATION_EXPORT_TRANSFORM_NONE = 1,
  OVSTAGE_POPULATION_EXPORT_TRANSFORM_USD_MATRIX_OP = 2
} ovstage_population_export_transform_policy_t;

/* What becomes of metadata that USD does not know. */
typedef enum {
  OVSTAGE_POPULATION_EXPORT_UNKNOWN_METADATA_DROP = 0,
  OVSTAGE_POPULATION_EXPORT_UNKNOWN_METADATA_PRESERVE = 1,
  OVSTAGE_POPULATION_EXPORT_UNKNOWN_METADATA_FAIL = 2
} ovstage_population_export_unknown_metadata_policy_t;

/* Which API schemas are applied. */
typedef enum {
  OVSTAGE_POPULATION_EXPORT_SOURCE_API_SCHEMAS_EXPLICIT_ONLY = 0, /* those of the rules */
  OVSTAGE_POPULATION_EXPORT_SOURCE_API_SCHEMAS_APPLY_RECORDED = 1 /* those of the usd-schemas attribute as well */
} ovstage_population_export_source_api_schema_policy_t;

/* Which properties are exported. */
typedef enum {
  OVSTAGE_POPULATION_EXPORT_PROJECTION_EXPLICIT_RULES = 0, /* those of the rules */
  OVSTAGE_POPULATION_EXPORT_PROJECTION_SCHEMA_DECLARED = 1 /* those that the prim's schemas declare as well */
} ovstage_population_export_projection_t;

/* Bits of a rule's `flags`. Bit 2 is unused. */
typedef enum {
  OVSTAGE_POPULATION_EXPORT_RULE_NONE = 0,
  OVSTAGE_POPULATION_EXPORT_RULE_EXPORT_DEFAULT_VALUE = 1 << 0,
  OVSTAGE_POPULATION_EXPORT_RULE_DERIVED_ALLOWED = 1 << 1,
  OVSTAGE_POPULATION_EXPORT_RULE_INFER_CUSTOM_TYPE = 1 << 3,
  OVSTAGE_POPULATION_EXPORT_RULE_REQUIRED = 1 << 4 /* what cannot be exported fails the export, instead of counting */
} ovstage_population_export_rule_flags_t;

/* What a property edge rule makes. */
typedef enum {
  OVSTAGE_POPULATION_EXPORT_PROPERTY_INVALID = 0, /* refused */
  OVSTAGE_POPULATION_EXPORT_PROPERTY_RELATIONSHIP = 1,
  OVSTAGE_POPULATION_EXPORT_PROPERTY_CONNECTION = 2,
  OVSTAGE_POPULATION_EXPORT_PROPERTY_MATERIAL_BINDING = 3
} ovstage_population_export_property_kind_t;

/* Where a metadata rule writes. */
typedef enum {
  OVSTAGE_POPULATION_EXPORT_METADATA_PRIM = 0,
  OVSTAGE_POPULATION_EXPORT_METADATA_LAYER_CUSTOM_DATA = 1,
  OVSTAGE_POPULATION_EXPORT_METADATA_REFERENCES = 2,
  OVSTAGE_POPULATION_EXPORT_METADATA_LAYER_STANDARD = 3
} ovstage_population_export_metadata_kind_t;

/* How a destination begins. */
typedef enum {
  OVSTAGE_POPULATION_EXPORT_DESTINATION_EMPTY = 0,
  OVSTAGE_POPULATION_EXPORT_DESTINATION_OPEN_EXISTING = 1
} ovstage_population_export_destination_mode_t;

/*
 * Rules. An empty path stands for all chosen prims, except in prim and API schema rules, which name theirs. An empty
 * destination name is the source's. An empty usd_type_name is found in the destination's schema or in what exists
 * there, or inferred if the flags say so.
 */

/* An attribute and what becomes of it. 104 bytes. */
typedef struct {
  ovx_string_t path;
  ovstage_population_export_path_match_t path_match;
  ovx_string_t source_attribute_name;
  ovstage_population_export_name_match_t source_attribute_name_match;
  ovx_string_t destination_attribute_name;
  ovx_string_t usd_type_name;
  ovx_string_t required_schema_name; /* optional; where the type is looked up */
  uint32_t flags;                    /* ovstage_population_export_rule_flags_t */
} ovstage_population_export_attribute_rule_t;

/* The type of a prim. 56 bytes. */
typedef struct {
  ovx_string_t path;
  ovstage_population_export_path_match_t path_match;
  ovx_string_t usd_type_name;
  ovx_string_t unknown_type_metadata_key; /* where a type that USD does not know is kept */
} ovstage_population_export_prim_rule_t;

/* An API schema to apply. 64 bytes. */
typedef struct {
  ovx_string_t path;
  ovstage_population_export_path_match_t path_match;
  ovx_string_t schema_name;
  ovx_string_t instance_name;
  uint32_t flags; /* ovstage_population_export_rule_flags_t */
} ovstage_population_export_api_schema_rule_t;

/* A relationship, connection or material binding. 80 bytes. Connections are read from attribute "<name>.connect". */
typedef struct {
  ovx_string_t path;
  ovstage_population_export_path_match_t path_match;
  ovx_string_t source_property_name;
  ovx_string_t destination_property_name;
  ovx_string_t usd_type_name;
  ovstage_population_export_property_kind_t property_kind;
  uint32_t flags; /* ovstage_population_export_rule_flags_t */
} ovstage_population_export_property_edge_rule_t;

/* A piece of metadata. 64 bytes. Metadata of the layer does not look at the path. */
typedef struct {
  ovx_string_t path;
  ovstage_population_export_path_match_t path_match;
  ovx_string_t source_metadata_name;
  ovx_string_t destination_metadata_name;
  ovstage_population_export_metadata_kind_t metadata_kind;
  uint32_t flags; /* ovstage_population_export_rule_flags_t */
} ovstage_population_export_metadata_rule_t;

/* An export. 176 bytes. Made by ovstage_population_export_desc_init. Each array of rules has at most 4096 entries. */
typedef struct {
  uint32_t struct_size; /* sizeof(ovstage_population_export_desc_t) */
  ovstage_population_export_source_api_schema_policy_t source_api_schema_policy;
  ovstage_population_export_projection_t projection;
  ovstage_ordinal_t ordinal;       /* the state that the caller expects to be current; any other is refused */
  ovstage_ordinal_t since_ordinal; /* with CHANGED_PROPERTIES_SINCE_ORDINAL */
  ovstage_population_export_selection_t selection;
  ovstage_population_export_layer_mode_t layer_mode;
  ovstage_population_export_transform_policy_t transform_policy;
  ovstage_population_export_unknown_metadata_policy_t unknown_metadata_policy;
  ovstage_population_prim_predicate_t prim_predicate;
  ovstage_population_property_predicate_t property_predicate; /* for rules about properties, and the projection */
  const ovstage_population_export_prim_rule_t* prim_rules;
  size_t prim_rule_count;
  const ovstage_population_export_api_schema_rule_t* api_schema_rules;
  size_t api_schema_rule_count;
  const ovstage_population_export_attribute_rule_t* attribute_rules;
  size_t attribute_rule_count;
  const ovstage_population_export_property_edge_rule_t* property_rules;
  size_t property_rule_count;
  const ovstage_population_export_metadata_rule_t* metadata_rules;
  size_t metadata_rule_count;
} ovstage_population_export_desc_t;

/* What an export did, in numbers, for people. 184 bytes. */
typedef struct {
  size_t prims_examined;
  size_t prims_exported;
  size_t prims_skipped;
  size_t attributes_examined;
  size_t attributes_exported;
  size_t attributes_skipped;
  size_t attributes_unsupported;
  size_t api_schemas_examined;
  size_t api_schemas_applied;
  size_t api_schemas_skipped;
  size_t custom_attributes_inferred;
  size_t unknown_metadata_preserved;
  size_t transforms_examined;
  size_t transforms_exported;
  size_t property_edges_examined;
  size_t property_edges_exported;
  size_t property_edges_skipped;
  size_t property_edges_unsupported;
  size_t metadata_examined;
  size_t metadata_exported;
  size_t metadata_skipped;
  size_t metadata_unsupported;
  size_t source_states_unavailable;
} ovstage_population_export_report_t;

/* ---- Descriptions ---------------------------------------------------------------------------------------------- */

/*
 * ovstage_population_export_desc_init - fill in the defaults: EXPLICIT_PREDICATE, OVER, USD_XFORM_OP, DROP,
 * EXPLICIT_ONLY, EXPLICIT_RULES, predicates that match everything, no rules.
 *
 * Errors    INVALID_ARGUMENT: NULL.
 */
ovstage_api_status_t ovstage_population_export_desc_init(ovstage_population_export_desc_t* desc);

/* As above, and set the ordinal. */
ovstage_api_status_t ovstage_population_export_desc_init_snapshot(ovstage_population_export_desc_t* desc,
                                                                  ovstage_ordinal_t ordinal);

/*
 * As above, for a whole typed subtree: layer mode DEF, recorded API schemas applied, properties as their schemas
 * declare them, prims at or below root_path. `desc` borrows *root_path, the view as well as the text.
 */
static inline ovstage_api_status_t ovstage_population_export_desc_init_typed_hierarchy(
    ovstage_population_export_desc_t* desc, ovstage_ordinal_t ordinal, const ovx_string_t* root_path) {
  ovstage_api_status_t status = ovstage_population_export_desc_init_snapshot(desc, ordinal);
  if (status == OVSTAGE_OK) {
    desc->layer_mode = OVSTAGE_POPULATION_EXPORT_LAYER_MODE_DEF;
    desc->source_api_schema_policy = OVSTAGE_POPULATION_EXPORT_SOURCE_API_SCHEMAS_APPLY_RECORDED;
    desc->projection = OVSTAGE_POPULATION_EXPORT_PROJECTION_SCHEMA_DECLARED;
    desc->prim_predicate = ovstage_population_prim_predicate_is_under_path(root_path, 1);
  }
  return status;
}

/* ---- Destinations ---------------------------------------------------------------------------------------------- */

/*
 * ovstage_population_export_destination_create - begin a destination; no file is written.
 *
 * It belongs to the instance, which must outlive it. One process has at most one destination for a file. Synchronous
 * calls and enqueued ones that are pending must not be mixed on one destination.
 *
 *   usd_identifier   the file
 *   mode             OPEN_EXISTING fails if the file cannot be opened
 *   out_destination  to be ended by ..._destination_destroy; 0 on failure
 */
ovstage_api_status_t ovstage_population_export_destination_create(
    ovstage_instance_t* stage, ovx_string_t usd_identifier, ovstage_population_export_destination_mode_t mode,
    ovstage_population_export_destination_handle_t* out_destination);

/* The same as an operation; the handle is usable at once. */
ovstage_population_enqueue_result_t ovstage_population_export_destination_enqueue_create(
    ovstage_instance_t* stage, ovx_string_t usd_identifier, ovstage_population_export_destination_mode_t mode,
    ovstage_population_export_destination_handle_t* out_destination);

/*
 * ovstage_population_export_to_destination - export into a destination, on top of what it contains.
 *
 *   report  optional
 *
 * A failure leaves the destination as it was.
 */
ovstage_api_status_t ovstage_population_export_to_destination(
    ovstage_instance_t* stage, ovstage_population_export_destination_handle_t destination,
    const ovstage_population_export_desc_t* desc, ovstage_population_export_report_t* report);

/* The same as an operation; the description and all that it points at is copied. */
ovstage_population_enqueue_result_t ovstage_population_export_enqueue_to_destination(
    ovstage_instance_t* stage, ovstage_population_export_destination_handle_t destination,
    const ovstage_population_export_desc_t* desc);

/* ovstage_population_export_destination_save - write the file. The destination stays. */
ovstage_api_status_t ovstage_population_export_destination_save(
    ovstage_instance_t* stage, ovstage_population_export_destination_handle_t destination);

/* The same as an operation. */
ovstage_population_enqueue_result_t ovstage_population_export_destination_enqueue_save(
    ovstage_instance_t* stage, ovstage_population_export_destination_handle_t destination);

/* ovstage_population_export_destination_destroy - end a destination, after work that is under way; never saves. */
ovstage_api_status_t ovstage_population_export_destination_destroy(
    ovstage_instance_t* stage, ovstage_population_export_destination_handle_t destination);

/* The same as an operation. */
ovstage_population_enqueue_result_t ovstage_population_export_destination_enqueue_destroy(
    ovstage_instance_t* stage, ovstage_population_export_destination_handle_t destination);

/* ---- Files ----------------------------------------------------------------------------------------------------- */

/*
 * ovstage_population_export_to_usd_file - export into a new file: an empty destination, filled, saved and ended.
 *
 *   report  optional
 */
ovstage_api_status_t ovstage_population_export_to_usd_file(ovstage_instance_t* stage, ovx_string_t usd_identifier,
                                                           const ovstage_population_export_desc_t* desc,
                                                           ovstage_population_export_report_t* report);

/* The same as an operation. */
ovstage_population_enqueue_result_t ovstage_population_export_enqueue_to_usd_file(
    ovstage_instance_t* stage, ovx_string_t usd_identifier, const ovstage_population_export_desc_t* desc);

/* ---- Waiting --------------------------------------------------------------------------------------------------- */

/*
 * ovstage_population_export_wait_op - wait for all population operations up to op_id and take the result of this one.
 * Due once for each accepted export operation.
 *
 *   report  optional; zeros first, and on TIMEOUT
 *
 * Returns   OK, TIMEOUT - the result is kept -, or the status that the operation failed with.
 * Errors    INVALID_ARGUMENT: op_id is unknown, taken already, or not an export operation.
 */
ovstage_api_status_t ovstage_population_export_wait_op(ovstage_instance_t* stage, ovstage_population_op_id_t op_id,
                                                       ovstage_timeout_ns_t timeout_ns,
                                                       ovstage_population_export_report_t* report);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* OVSTAGE_POPULATION_EXPORT_H */
