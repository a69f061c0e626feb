/*
 * path_dictionary_types.h - the bundle through which a path dictionary is called.
 */
#ifndef PATH_DICTIONARY_TYPES_H
#define PATH_DICTIONARY_TYPES_H

#include <stdint.h>

#include "../types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct path_dictionary_context_t path_dictionary_context_t; /* the dictionary's own state */
typedef struct path_dictionary_vtable_t path_dictionary_vtable_t;   /* path_dictionary_vtable.h */

/*
 * A dictionary: its functions and its state. 16 bytes. It belongs to what produced it - for ovstage, to the library,
 * which answers it in ovstage_get_path_dictionary() - and neither it nor its members are ever freed by a client.
 */
typedef struct path_dictionary_instance_t {
  path_dictionary_vtable_t* vtable;
  path_dictionary_context_t* context;
} path_dictionary_instance_t;

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* PATH_DICTIONARY_TYPES_H */
