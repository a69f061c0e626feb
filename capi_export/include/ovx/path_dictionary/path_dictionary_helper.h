/*
 * path_dictionary_helper.h - two checks of string views that a dictionary refuses.
 */
#ifndef PATH_DICTIONARY_HELPER_H
#define PATH_DICTIONARY_HELPER_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "path_dictionary_types.h"

/* True if one of the `length` bytes is NUL. False for NULL and for a view without data. */
static inline bool ovx_string_contains_embedded_nul(const ovx_string_t* str) {
  return str != NULL && str->ptr != NULL && str->length != 0 && memchr(str->ptr, '\0', str->length) != NULL;
}

/* True if the view promises bytes without pointing at any: ptr is NULL and length is not 0. False for NULL. */
static inline bool ovx_string_has_null_data(const ovx_string_t* str) {
  return str != NULL && str->ptr == NULL && str->length != 0;
}

#endif /* PATH_DICTIONARY_HELPER_H */
