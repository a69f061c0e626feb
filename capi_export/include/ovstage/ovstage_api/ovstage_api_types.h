/*
 * ovstage_api_types.h - the types that cross the stage interface, at interface level 0.2.1.
 *
 * Sizes and offsets are part of the interface; they are given for LP64 systems (pointers and size_t of 8 bytes, enums
 * of 4, bool of 1). Every structure that a caller fills may start as all zero: each zero field has the meaning given as
 * its default.
 */
#ifndef OVSTAGE_API_TYPES_H
#define OVSTAGE_API_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <dlpack/dlpack.h>
#include <ovx/path_dictionary/path_dictionary_types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Version and markers --------------------------------------------------------------------------------------- */

/* Level of the interface that these headers describe; get_version tells that of the library. Semantic versioning. */
#define OVSTAGE_VERSION_MAJOR 0
#define OVSTAGE_VERSION_MINOR 2
#define OVSTAGE_VERSION_PATCH 1

/* Marks a declaration as deprecated where the compiler can. Nothing is at this level. */
#ifndef OVSTAGE_DEPRECATED
#if defined(__cplusplus) && __cplusplus >= 201402L
#define OVSTAGE_DEPRECATED(msg) [[deprecated(msg)]]
#elif defined(__GNUC__) || defined(__clang__)
#define OVSTAGE_DEPRECATED(msg) __attribute__((deprecated(msg)))
#elif defined(_MSC_VER)
#define OVSTAGE_DEPRECATED(msg) __declspec(deprecated(msg))
#else
#define OVSTAGE_DEPRECATED(msg)
#endif
#endif

/* ---- Status codes ---------------------------------------------------------------------------------------------- */

/* Outcome of a call or of an operation. The numbers never change. */
typedef enum ovstage_api_status_t {
  OVSTAGE_OK = 0,                          /* done, or accepted where the call only enqueues */
  OVSTAGE_ERROR_INVALID_ARGUMENT = 1,      /* bad pointer, parameter or payload, or a clash with a column's schema */
  OVSTAGE_ERROR_INVALID_HANDLE = 2,        /* a handle, group or operation id that is not alive */
  OVSTAGE_ERROR_NOT_FOUND = 3,             /* something that was asked for by name does not exist */
  OVSTAGE_ERROR_PRIM_NOT_FOUND = 4,        /* despite its name: the prim EXISTS where only creating was allowed */
  OVSTAGE_ERROR_WRITE_FLOOR_VIOLATION = 5, /* a write at or below the floor, or a read of state that is not sealed */
  OVSTAGE_ERROR_NOT_SUPPORTED = 6,         /* this library cannot do that; the text says what */
  OVSTAGE_ERROR_QUEUE_FULL = 7,            /* too many operations are pending; wait for some and try again */
  OVSTAGE_ERROR_END_OF_ITERATION = 8,      /* an iterator has nothing more to give; not a failure */
  OVSTAGE_ERROR_OUT_OF_MEMORY = 9,         /* an allocation failed; nothing was changed */
  OVSTAGE_ERROR_LAYOUT_CHANGED = 10,       /* storage was laid out anew while mapped; this library never needs it */
  OVSTAGE_ERROR_TIMEOUT = 11,              /* not ready in time; nothing is cancelled, the call may be repeated */
  OVSTAGE_ERROR_OP_FAILED = 12,            /* an operation was accepted, ran and failed */
  OVSTAGE_ERROR_OUT_OF_RANGE = 13,         /* a range of ordinals whose payloads are no longer kept */
  OVSTAGE_ERROR_INTERNAL = 99              /* a fault of the library; the instance refuses further work */
} ovstage_api_status_t;

/* ---- Scalars and handles --------------------------------------------------------------------------------------- */

/* An ordinal: the application's own version number of a change. Every value is legal to read at; writes need one above
 * the write floor, which starts at 0. A sibling library may have declared the type first. */
#ifndef OVSTAGE_ORDINAL_T_DECLARED
#define OVSTAGE_ORDINAL_T_DECLARED
typedef uint64_t ovstage_ordinal_t;
#endif

/* A bit per element: element i is bit i % 64, counted from the least significant, of word i / 64. NULL = every element.
 * ceil(count / 64) words are read; surplus bits of the last one are ignored. */
typedef const uint64_t* ovstage_mask_t;

/* How long a call may wait, in nanoseconds: 0 = look and return, OVSTAGE_TIMEOUT_INFINITE = as long as it takes. */
typedef uint64_t ovstage_timeout_ns_t;
#define OVSTAGE_TIMEOUT_INFINITE ((ovstage_timeout_ns_t)~0ULL)

/* Number of an operation of one instance; they rise in the order of acceptance. */
typedef uint64_t ovstage_op_id_t;
#define OVSTAGE_INVALID_OP_ID ((ovstage_op_id_t)0)

/* A set of prims. Made by query and query_from_path_list, ended by release_query. */
typedef uint64_t ovstage_query_handle_t;
#define OVSTAGE_INVALID_QUERY_HANDLE ((ovstage_query_handle_t)0)

/* A read. Made by read_attributes, ended by release_read. */
typedef uint64_t ovstage_read_handle_t;
#define OVSTAGE_INVALID_READ_HANDLE ((ovstage_read_handle_t)0)

/* A writable session on one attribute. Made by map_attribute, ended by unmap_attribute. */
typedef uint64_t ovstage_map_handle_t;
#define OVSTAGE_INVALID_MAP_HANDLE ((ovstage_map_handle_t)0)

/* A question about ordinals. Made by the two get_..._ordinal/floor calls, ended by release_ordinal_query. */
typedef uint64_t ovstage_ordinal_query_handle_t;
#define OVSTAGE_INVALID_ORDINAL_QUERY_HANDLE ((ovstage_ordinal_query_handle_t)0)

/* Identity of a fetched read group, by which release_group knows it. */
typedef uint64_t ovstage_read_group_id_t;
#define OVSTAGE_INVALID_READ_GROUP_ID ((ovstage_read_group_id_t)0)

/* Identity of a fetched query result, by which release_query_result knows it. */
typedef uint64_t ovstage_query_result_id_t;
#define OVSTAGE_INVALID_QUERY_RESULT_ID ((ovstage_query_result_id_t)0)

/* A question about the hierarchy of prims (ovstage_types.h). */
typedef uint64_t ovstage_hierarchy_handle_t;
#define OVSTAGE_INVALID_HIERARCHY_HANDLE ((ovstage_hierarchy_handle_t)0)

/* Identity of a fetched hierarchy result. */
typedef uint64_t ovstage_hierarchy_result_id_t;
#define OVSTAGE_INVALID_HIERARCHY_RESULT_ID ((ovstage_hierarchy_result_id_t)0)

/* ---- Enumerations ---------------------------------------------------------------------------------------------- */

/* What a predicate asks of an attribute. */
typedef enum {
  OVSTAGE_FILTER_OP_HAS = 0,      /* the prim carries the attribute; values are not looked at */
  OVSTAGE_FILTER_OP_IN = 1,       /* the value equals one of the listed */
  OVSTAGE_FILTER_OP_CONTAINS = 2, /* an array has one of the listed as a member, a string as a part */
  OVSTAGE_FILTER_OP_PREFIX = 3,   /* a string starts, byte by byte, with one of the listed */
  OVSTAGE_FILTER_OP_LT = 4,       /* less than the one listed value: numbers, or strings by bytes */
  OVSTAGE_FILTER_OP_LE = 5,
  OVSTAGE_FILTER_OP_GT = 6,
  OVSTAGE_FILTER_OP_GE = 7
} ovstage_filter_op_t;

/* What a write or map may do to prims. ovstage_go.h has one more for writes: update only. */
typedef enum {
  OVSTAGE_PRIM_MODE_UPSERT = 0, /* create those that do not exist, update the others: the default */
  OVSTAGE_PRIM_MODE_INSERT = 1  /* create only: PRIM_NOT_FOUND, and no change at all, if one of them exists */
} ovstage_prim_mode_t;

/* Which write floors an advance moves. */
typedef enum {
  OVSTAGE_SCOPE_ALL = 0,     /* the global one, and with it that of every attribute: the default */
  OVSTAGE_SCOPE_INCLUDE = 1, /* those of the listed attributes */
  OVSTAGE_SCOPE_EXCLUDE = 2  /* those of all known attributes but the listed; with an empty list the same as ALL */
} ovstage_scope_t;

/* What the bytes of a column mean, apart from how they are stored. Recorded when the column is created and told with
 * every read. Ids are interned by the caller beforehand; the stage neither resolves nor prints them. */
typedef enum {
  OVSTAGE_SEMANTIC_NONE = 0,                   /* nothing said: the default */
  OVSTAGE_SEMANTIC_ASSET_PATH_ID = 1,          /* {kDLUInt,64,2}: authored token, resolved token; 0 = no path */
  OVSTAGE_SEMANTIC_TOKEN_ID = 2,               /* {kDLUInt,64,1}: token; 0 = empty */
  OVSTAGE_SEMANTIC_PATH_EXPRESSION_STRING = 3, /* {kDLUInt,64,1}: token of the expression's text; never evaluated */
  OVSTAGE_SEMANTIC_RELATIONSHIP_PATH_ID = 4,   /* {kDLUInt,64,1} arrays: target paths */
  OVSTAGE_SEMANTIC_POINT = 5,
  OVSTAGE_SEMANTIC_VECTOR = 6,
  OVSTAGE_SEMANTIC_NORMAL = 7,
  OVSTAGE_SEMANTIC_COLOR = 8,
  OVSTAGE_SEMANTIC_QUATERNION = 9, /* i, j, k, real */
  OVSTAGE_SEMANTIC_MATRIX = 10,    /* row-major, row vectors: a translation is in the last row */
  OVSTAGE_SEMANTIC_TEXTURE_COORDINATE = 11,
  OVSTAGE_SEMANTIC_CONNECTION_PATH_ID = 12, /* {kDLUInt,64,2} arrays: path, token of the property */
  OVSTAGE_SEMANTIC_STRING = 13,             /* {kDLUInt,8,1} arrays: UTF-8 bytes, one string a row */
  OVSTAGE_SEMANTIC_TIME_CODE = 14,
  OVSTAGE_SEMANTIC_FRAME = 15
} ovstage_attribute_semantic_t;

/* ---- Payloads -------------------------------------------------------------------------------------------------- */

/*
 * How data and GPU work are ordered. 16 bytes. {0, 0}, the default: nothing to wait for.
 *
 * On data in host memory `stream` is ignored. A wait_event needs CUDA and is answered with NOT_SUPPORTED where CUDA is
 * not loaded, which is always so in this version.
 */
typedef struct {
  uintptr_t stream;     /* 0 none, 1 the default stream, else a cudaStream_t whose queued work is waited for */
  uintptr_t wait_event; /* 0 none, else a cudaEvent_t to wait for */
} ovstage_cuda_sync_t;

/* Answer of a call that enqueues. 16 bytes. With OVSTAGE_OK the operation is accepted, not yet done; see wait_op. */
typedef struct {
  ovstage_api_status_t status;
  ovstage_op_id_t op_index; /* OVSTAGE_INVALID_OP_ID unless status is OVSTAGE_OK */
} ovstage_enqueue_result_t;

/* What wait_op found. 24 bytes. */
typedef struct {
  const ovstage_op_id_t* error_op_ids; /* failed operations; lives until this thread's next wait_op */
  size_t error_op_id_count;
  ovstage_op_id_t lowest_pending_op_id; /* with OVSTAGE_ERROR_TIMEOUT: the lowest id that is still awaited; else 0 */
} ovstage_op_wait_result_t;

/*
 * Values of a read group or a map group. 48 bytes. Descriptors and maps belong to the library and are not to be
 * changed; in a map group the bytes that tensors[i].data points at are the caller's to write.
 *
 * Fixed-size column: one tensor of ndim 1, shape {rows}, strides NULL, byte_offset 0, `lanes` the whole width of a
 * value (a point3f has 3, a matrix4d has 16), whatever shape it was written in.
 * Array column: one tensor per row of ndim 1, shape {elements of that row}, strides NULL, byte_offset 0, `lanes` the
 * width of an element. A row may be empty.
 * `data` is never NULL.
 *
 * Element i of the group (of prims.count) has its value in row index_map ? index_map[i] : i, which is a row of
 * tensors[0] for a fixed-size column, and the tensor of that number for an array column.
 */
typedef struct {
  const DLTensor* tensors;
  uint32_t tensor_count;         /* 0 for a tombstone group; never a sign of the column's kind */
  uint32_t count;                /* number of elements: prims.count for a group of values */
  const uint32_t* index_map;     /* NULL = element i is row i */
  ovstage_mask_t mask;           /* which elements are valid; NULL = all; never together with index_map */
  ovstage_cuda_sync_t cuda_sync; /* to be waited for before the data is touched */
} ovstage_data_t;

/*
 * Which prims a group covers. 24 bytes. Prim k of the group is entry index_map ? index_map[k] : offset + k of `list`.
 * For a query made from a path list the entries have the order of that list.
 */
typedef struct {
  ovx_primpath_list_t list; /* borrowed: add a reference before the group is released in order to keep it */
  uint32_t offset;
  uint32_t count;
  const uint32_t* index_map; /* positions in `list`; NULL = `count` entries from `offset` on */
} ovstage_prim_group_t;

/* State of the column when the group was made. 16 bytes. */
typedef struct {
  ovstage_ordinal_t attribute_write_floor_ordinal; /* data at or below it is final */
  uint64_t layout_generation; /* rises exactly when prims are added to or removed from the column; then >= 1 */
} ovstage_attribute_meta_t;

/* Which state a read asks for. 24 bytes. */
typedef struct {
  ovstage_ordinal_t start_ordinal;
  ovstage_ordinal_t end_ordinal;
  bool has_start_ordinal; /* false: the snapshot at end_ordinal; true: what changed in [start_ordinal, end_ordinal] */
} ovstage_ordinal_range_t;

/* One part of a read's result. 120 bytes. Filled by fetch_read_next, released by release_group. */
typedef struct {
  ovstage_read_group_id_t read_group_id;
  ovx_token_t attribute;
  ovstage_ordinal_t ordinal; /* no change later than this one is contained; exact if one write covered the column */
  bool is_delete;            /* a tombstone: these prims lost the attribute; no tensors */
  bool is_array;             /* array column (one tensor a row) or fixed-size column: the only sign of the kind */
  ovstage_attribute_semantic_t semantic;
  ovstage_prim_group_t prims;
  ovstage_data_t data;
  ovstage_attribute_meta_t meta;
} ovstage_read_group_t;

/* One part of a mapped column. 88 bytes. Filled by fetch_map_next; the library knows it again by data.tensors. */
typedef struct {
  ovstage_prim_group_t prims;
  ovstage_data_t data;
  ovstage_attribute_meta_t meta;
} ovstage_map_group_t;

/* What to map. 40 bytes. */
typedef struct {
  ovx_string_or_token_t attribute;
  DLDataType dtype;                      /* of a value, its width in lanes; all zero = that of the existing column */
  ovstage_attribute_semantic_t semantic; /* NONE = that of the existing column */
  ovstage_prim_mode_t prim_mode;
} ovstage_map_desc_t;

/* One condition of a filter. 48 bytes. Values are text, also those of attributes that hold tokens or paths. */
typedef struct {
  ovx_string_or_token_t attribute;
  ovstage_filter_op_t op;
  const ovx_string_t* values; /* NULL for HAS */
  size_t value_count;         /* ignored for HAS */
} ovstage_predicate_t;

/* Conditions that a prim has to meet, all of them. 16 bytes. No conditions: every prim. */
typedef struct {
  const ovstage_predicate_t* predicates;
  size_t count;
} ovstage_filter_t;

/* What a query found. 40 bytes. Filled by fetch_query_result, released by release_query_result. */
typedef struct {
  ovstage_query_result_id_t query_result_id;
  const ovx_token_t* attributes; /* the distinct attributes that the prims carry; order free */
  size_t attribute_count;
  ovstage_query_handle_t all_handle; /* the query's own handle, not a second one to release */
  size_t total_prim_count;           /* of a path list query: the number of listed prims */
} ovstage_query_result_t;

/* Which floors to raise, and how far. 32 bytes. */
typedef struct {
  ovstage_ordinal_t ordinal;
  ovstage_scope_t scope;
  const ovx_token_t* attributes; /* read for INCLUDE and EXCLUDE only */
  size_t attribute_count;
} ovstage_write_floor_desc_t;

/*
 * The values of a write, passed by value. 64 bytes.
 *
 * Target i of the write is prim i of the query. Its value is source row index_map ? index_map[i] : i.
 *
 * Fixed-size (is_array false): one tensor, rows along its first axis. Further axes are multiplied into lanes and
 * forgotten: shape (N,3) of float32 is N values float32x3, shape (N,4,4) of float64 is N values float64x16, shape (N,4)
 * of float64x4 is the same. A flat tensor of 3*N float32 is 3*N rows, never N rows of 3. Without index_map the number
 * of rows must be the number of targets. A value has at most 255 lanes.
 *
 * Array (is_array true): lanes are taken as sent, and nothing is folded. One tensor per source row; or a single tensor
 * that is cut evenly into (highest index_map entry + 1) rows, without index_map into as many rows as there are targets.
 * A row may be empty.
 *
 * Strides are counted in elements and may be negative or 0; NULL means compact. Sources are only read.
 */
typedef struct {
  const DLTensor* tensors; /* stay the caller's; must stay valid until the operation is done */
  /*
   * ... or these, never both: not NULL, and none of them twice in a call. They belong to the library from the call on,
   * also when the call is refused (but not in a child of fork()), and each deleter runs exactly once; it may be NULL.
   *
   * One that is packed, starts at an address that is a multiple of 64 and gives a whole fixed-size column its newest
   * values becomes the column, without a copy: it may not be written to any more, and its deleter runs when neither the
   * column nor a group or view holds it. All others are copied, and their deleters have run when the call returns.
   *
   * A deleter may be run by any thread, at the end of a call of the library that has let go of everything: it may make
   * calls of its own. A tensor of another major version of DLPack than 1 is refused with NOT_SUPPORTED, and deleted.
   */
  const struct DLManagedTensorVersioned* const* managed_tensors;
  uint32_t tensor_count;         /* length of the array that is used; at least 1 */
  uint32_t count;                /* how many targets, from the first prim on; 0 = all of the query (no map, no mask) */
  const uint32_t* index_map;     /* `count` source rows, never targets; NULL = row i for target i */
  ovstage_mask_t mask;           /* which of the `count` targets are written; never together with index_map */
  ovstage_cuda_sync_t cuda_sync; /* waited for before the source is read */
  ovstage_attribute_semantic_t semantic;
  bool is_array; /* kind of the column; never guessed from the tensors */
} ovstage_write_data_t;

/* One entry of write_attributes. 88 bytes. */
typedef struct {
  ovx_string_or_token_t attribute;
  ovstage_write_data_t data;
} ovstage_attribute_write_t;

/* ---- The instance ---------------------------------------------------------------------------------------------- */

typedef struct ovstage_context_t ovstage_context_t; /* the instance's own state */
typedef struct ovstage_vtable_t ovstage_vtable_t;   /* ovstage_api.h */

/* A sibling library may have declared the name first. */
#ifndef OVSTAGE_INSTANCE_T_DECLARED
#define OVSTAGE_INSTANCE_T_DECLARED
typedef struct ovstage_instance_t ovstage_instance_t;
#endif

/* A stage: functions and state. 16 bytes. Made by ovstage_create_instance, ended by ovstage_destroy_instance. */
struct ovstage_instance_t {
  const ovstage_vtable_t* vtable;
  ovstage_context_t* context;
};

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* OVSTAGE_API_TYPES_H */
