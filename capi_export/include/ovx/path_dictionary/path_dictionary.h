/*
 * path_dictionary.h - everything about path dictionaries: the types, the slots and the functions that call them.
 */
#ifndef PATH_DICTIONARY_INTERFACE_H
#define PATH_DICTIONARY_INTERFACE_H

#include "path_dictionary_types.h"
#include "path_dictionary_utils.h"
#include "path_dictionary_vtable.h"

#endif /* PATH_DICTIONARY_INTERFACE_H */
