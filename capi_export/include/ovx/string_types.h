/*
 * ovx/string_types.h - strings and interned strings as they cross the C interface.
 */
#ifndef OVX_STRING_TYPES_H
#define OVX_STRING_TYPES_H

#include <stddef.h>
#include <stdint.h>

/*
 * A view of UTF-8 text that is owned elsewhere. 16 bytes.
 *
 * As an argument it need not end in a NUL: `length` bytes are read, and whatever the callee keeps, it copies before it
 * returns. As a result of the library a view that is not empty is followed by a NUL at ptr[length], so that `ptr`
 * prints as a C string; how long it lives is said where it is returned.
 *
 * {NULL, 0} means "no value". NULL with a length other than 0 is an error. Compare by length, then by memcmp.
 */
typedef struct ovx_string_t {
  const char* ptr;
  size_t length; /* in bytes */
} ovx_string_t;

/* An interned string. Equal strings have equal tokens within one dictionary. 0 (OVX_INVALID_TOKEN) is the empty one. */
typedef uint64_t ovx_token_t;

/*
 * A name given either as a token or as text. 24 bytes. A token other than 0 wins and the string is not looked at;
 * otherwise the string is interned by the callee during the call. All zero means "no name".
 */
typedef struct ovx_string_or_token_t {
  ovx_token_t token;
  ovx_string_t string;
} ovx_string_or_token_t;

#endif /* OVX_STRING_TYPES_H */
