/*
 * ovstage_types.h - the types of the flat functions in ovstage.h: instance, configuration, log, hierarchy.
 */
#ifndef OVSTAGE_TYPES_H
#define OVSTAGE_TYPES_H

#include "ovstage_api/ovstage_api_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Instance -------------------------------------------------------------------------------------------------- */

/* How to make an instance. 8 bytes. */
typedef struct {
  const char* name; /* a C string, copied; optional. Shown in messages, for people */
} ovstage_instance_desc_t;

/* ---- Configuration --------------------------------------------------------------------------------------------- */

/* Which pair of members of an ovstage_config_entry_t counts. */
typedef enum {
  OVSTAGE_CONFIG_KEY_TYPE_BOOL = 0,
  OVSTAGE_CONFIG_KEY_TYPE_INT64 = 1,
  OVSTAGE_CONFIG_KEY_TYPE_UINT64 = 2,
  OVSTAGE_CONFIG_KEY_TYPE_DOUBLE = 3,
  OVSTAGE_CONFIG_KEY_TYPE_STRING = 4,
  OVSTAGE_CONFIG_KEY_TYPE_BLOB = 5,
  OVSTAGE_CONFIG_KEY_TYPE_COUNT = 6 /* number of types, not a type */
} ovstage_config_key_type_t;

/* Settings by type. Each COUNT is the number of settings of that type, not a setting. */
typedef enum { OVSTAGE_CONFIG_BOOL_COUNT = 0 } ovstage_config_bool_t;
typedef enum { OVSTAGE_CONFIG_INT64_COUNT = 0 } ovstage_config_int64_t;
typedef enum {
  /* An ovstage_hierarchy_computation_model_id_t: what RUNTIME_DEFAULT means for instances made from now on. One of the
   * concrete models; RUNTIME_DEFAULT itself means "leave it as it is". */
  OVSTAGE_CONFIG_RUNTIME_DEFAULT_HIERARCHY_COMPUTATION_MODEL = 0,
  OVSTAGE_CONFIG_UINT64_COUNT = 1
} ovstage_config_uint64_t;
typedef enum { OVSTAGE_CONFIG_DOUBLE_COUNT = 0 } ovstage_config_double_t;
typedef enum {
  /* Where a static loader looks for its package. libovstage.so is the package: accepted and ignored. */
  OVSTAGE_CONFIG_BINARY_PACKAGE_ROOT_PATH = 0,
  OVSTAGE_CONFIG_STRING_COUNT = 1
} ovstage_config_string_t;
typedef enum { OVSTAGE_CONFIG_BLOB_COUNT = 0 } ovstage_config_blob_t;

/* One setting. 24 bytes. ovstage_config.h has functions that make them. */
typedef struct {
  ovstage_config_key_type_t key_type; /* selects the member of both unions */
  union {
    ovstage_config_bool_t bool_key;
    ovstage_config_int64_t int64_key;
    ovstage_config_uint64_t uint64_key;
    ovstage_config_double_t double_key;
    ovstage_config_string_t string_key;
    ovstage_config_blob_t blob_key;
  } key;
  union {
    bool bool_value;
    int64_t int_value;
    uint64_t uint_value;
    double double_value;
    ovx_string_t string_value;
    struct {
      const void* data;
      size_t size;
    } blob_value;
  } value;
} ovstage_config_entry_t;

/* Settings. 16 bytes. No entries: the defaults. */
typedef struct {
  const ovstage_config_entry_t* entries;
  size_t entry_count;
} ovstage_config_t;

/* ---- Log ------------------------------------------------------------------------------------------------------- */

/* Weight of a message. Signed; 2 is unused. */
typedef enum {
  OVSTAGE_LOG_VERBOSE = -2,
  OVSTAGE_LOG_INFO = -1,
  OVSTAGE_LOG_WARNING = 0,
  OVSTAGE_LOG_ERROR = 1,
  OVSTAGE_LOG_NONE = 3 /* a threshold that lets nothing pass; no message has it */
} ovstage_log_severity_t;

/*
 * Receives a message: on a thread of the library that exists for this only, one message at a time.
 *
 *   timestamp  seconds since 1970-01-01 UTC
 *   message    valid during the call; copy it to keep it
 *   user_data  as given to ovstage_set_log_callback
 *
 * Must not wait for anything and must not call into the library.
 */
typedef void (*ovstage_log_callback_t)(ovstage_log_severity_t severity, double timestamp, ovx_string_t message,
                                       void* user_data);

/* ---- Hierarchy ------------------------------------------------------------------------------------------------- */

/* A way to compute world transforms. */
typedef enum {
  OVSTAGE_HIERARCHY_COMPUTATION_MODEL_INVALID = 0, /* never accepted */
  OVSTAGE_HIERARCHY_COMPUTATION_MODEL_CPU_INCREMENTAL = 1,
  OVSTAGE_HIERARCHY_COMPUTATION_MODEL_GPU_INCREMENTAL = 2,
  OVSTAGE_HIERARCHY_COMPUTATION_MODEL_GPU_GLOBAL = 3,
  OVSTAGE_HIERARCHY_COMPUTATION_MODEL_RUNTIME_DEFAULT = 4, /* the process's default when the instance was made */
  OVSTAGE_HIERARCHY_COMPUTATION_MODEL_DEFAULT_CPU = OVSTAGE_HIERARCHY_COMPUTATION_MODEL_CPU_INCREMENTAL,
  OVSTAGE_HIERARCHY_COMPUTATION_MODEL_DEFAULT_GPU = OVSTAGE_HIERARCHY_COMPUTATION_MODEL_GPU_GLOBAL
} ovstage_hierarchy_computation_model_id_t;

#define OVSTAGE_INVALID_HIERARCHY_COMPUTATION_MODEL_ID \
  ((ovstage_hierarchy_computation_model_id_t)OVSTAGE_HIERARCHY_COMPUTATION_MODEL_INVALID)

/* A model and words for it. 40 bytes. */
typedef struct {
  ovstage_hierarchy_computation_model_id_t model_id;
  ovx_string_t name;        /* a short identifier, fit for logs and configuration files */
  ovx_string_t description; /* for people */
} ovstage_hierarchy_computation_model_desc_t;

/* Which relatives of a prim are asked for. */
typedef enum {
  OVSTAGE_HIERARCHY_PARENT = 0,   /* none or one; a top-level prim has none */
  OVSTAGE_HIERARCHY_CHILDREN = 1, /* the direct ones */
  OVSTAGE_HIERARCHY_SIBLINGS = 2  /* the others under the same parent */
} ovstage_hierarchy_relation_t;

/* Answer for one prim. 24 bytes. No relatives: OK and a count of 0. */
typedef struct {
  ovstage_api_status_t status; /* NOT_FOUND: no such prim; the other items are not affected */
  size_t path_offset;          /* its relatives in the result's `paths` */
  size_t path_count;
} ovstage_hierarchy_item_t;

/* Answer to a hierarchy question. 48 bytes. Released by ovstage_release_hierarchy_result. */
typedef struct {
  ovstage_hierarchy_result_id_t hierarchy_result_id;
  ovstage_ordinal_t ordinal;             /* the one of the question */
  const ovstage_hierarchy_item_t* items; /* one for each path asked about, in that order */
  size_t input_count;
  const ovx_string_or_token_t* paths; /* all relatives; the text is in `string`, `token` is 0 */
  size_t path_count;
} ovstage_hierarchy_result_t;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* OVSTAGE_TYPES_H */
