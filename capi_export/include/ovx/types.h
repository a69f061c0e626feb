/*
 * ovx/types.h - scalar types, sentinels and the result type shared by the ovx interfaces.
 */
#ifndef OVX_TYPES_H
#define OVX_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ovx/string_types.h>

/* An interned path of a prim. Equal paths have equal handles within one dictionary, and live as long as it does, unless
 * compact of the extension table drops them. A handle is never used for another path. */
typedef uint64_t ovx_primpath_t;

/* An immutable, ordered list of prim paths with a reference count. Handles are never used twice. */
typedef uint64_t ovx_primpath_list_t;

/* "None". No successful call ever returns these. */
#define OVX_INVALID_TOKEN ((ovx_token_t)0)
#define OVX_INVALID_PRIMPATH ((ovx_primpath_t)0)
#define OVX_INVALID_PRIMPATH_LIST ((ovx_primpath_list_t)0)

/* A path given either as a handle or as text, with the rule of ovx_string_or_token_t. 24 bytes. */
typedef struct ovx_string_or_prim_path_t {
  ovx_primpath_t path;
  ovx_string_t string;
} ovx_string_or_prim_path_t;

/* Outcome of a path dictionary call. */
typedef enum { OVX_API_SUCCESS = 0, OVX_API_ERROR = 1 } ovx_api_status_t;

/*
 * Outcome with its text. 24 bytes. When `status` is OVX_API_ERROR, `error` says what was wrong; it belongs to the
 * caller, to be given back through the dictionary's release_error. On success `error` is {NULL, 0}.
 */
typedef struct {
  ovx_api_status_t status;
  ovx_string_t error;
} ovx_api_result_t;

/* True for NULL, for a view without data and for a view of length 0. */
static inline bool is_ovx_string_empty(const ovx_string_t* str) {
  return str == NULL || str->ptr == NULL || str->length == 0;
}

/*
 * A view of a string literal, its length known at compile time: literal_to_ovx_string("/World").
 * The empty literal in front makes anything but a literal a syntax error: the size of a pointer is not a length.
 */
#ifdef __cplusplus
#define literal_to_ovx_string(str) (ovx_string_t{"" str, sizeof("" str) - 1})
#else
#define literal_to_ovx_string(str) ((ovx_string_t){"" str, sizeof("" str) - 1})
#endif

#endif /* OVX_TYPES_H */
