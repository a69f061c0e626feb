/*
 * path_dictionary_vtable.h - the functions of a path dictionary.
 *
 * A dictionary interns strings to tokens and paths to handles, and keeps ordered lists of paths. Interning the same
 * text twice gives the same handle. Tokens and paths are never given back one by one: they live as long as the
 * dictionary, which is until the last stage instance of the process is destroyed. Only paths that came with a list and
 * that nothing names go earlier, when a program calls compact of the extension table (ovstage/ovstage_go.h). A handle
 * of an earlier dictionary, or of a path that has gone, is refused, not misread.
 *
 * Rules that hold for every slot:
 *   Threads   any number at once; no call waits for a stage operation.
 *   Returns   OVX_API_SUCCESS, or OVX_API_ERROR with a text that names the entry at fault. The text belongs to the
 *             caller until release_error. ovstage_get_last_error() is not touched.
 *   On error  nothing is created and no output is written, unless said otherwise.
 *   Inputs    are copied as far as they are kept; they may go when the call returns.
 *   NULL      is accepted for an array of 0 entries, and refused otherwise.
 *
 * Paths are "/" or absolute ("/World/Box"), in UTF-8, without trailing slash and without empty, "." or ".." components.
 * A property path ("/World/Box.size") is taken as it is, its last component being "Box.size".
 */
#ifndef PATH_DICTIONARY_VTABLE_H
#define PATH_DICTIONARY_VTABLE_H

#include "path_dictionary_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* 12 slots; slots are only ever appended. The first argument of each is the bundle's context, not the bundle. */
struct path_dictionary_vtable_t {
  /* 0. Interns `num_strings` strings, out_tokens[i] for strings[i].
   *    Errors: an empty string, a NUL byte inside a string, text that is not UTF-8. */
  ovx_api_result_t (*create_tokens_from_strings)(path_dictionary_context_t* instance, const ovx_string_t* strings,
                                                 size_t num_strings, ovx_token_t* out_tokens);

  /* 1. Interns `num_paths` paths given by their components, root first. tokens_per_path holds the components of the
   *    first path, then those of the second, and so on; num_tokens_per_path[i] of them belong to path i. No components
   *    give the root "/". Errors: a token that is not of this dictionary, a component no path may have. */
  ovx_api_result_t (*create_paths_from_tokens)(path_dictionary_context_t* instance, const ovx_token_t* tokens_per_path,
                                               const size_t* num_tokens_per_path, size_t num_paths,
                                               ovx_primpath_t* out_prim_paths);

  /* 2. Interns `num_paths` path strings, out_prim_paths[i] for path_strings[i].
   *    Errors: an empty string, a NUL byte inside a string, text that is not a path as described above. */
  ovx_api_result_t (*create_paths_from_strings)(path_dictionary_context_t* instance, const ovx_string_t* path_strings,
                                                size_t num_paths, ovx_primpath_t* out_prim_paths);

  /* 3. Makes a list of the paths, in this order, duplicates kept. Every call makes a new handle with one reference,
   *    which the caller owns (release_path_list_reference). 0 paths make a valid empty list.
   *    Errors: a handle that is not a path of this dictionary. */
  ovx_api_result_t (*create_path_list_from_paths)(path_dictionary_context_t* instance, const ovx_primpath_t* paths,
                                                  size_t num_paths, ovx_primpath_list_t* out_path_list);

  /* 4. As 2 and 3 in one call. */
  ovx_api_result_t (*create_path_list_from_strings)(path_dictionary_context_t* instance,
                                                    const ovx_string_t* path_strings, size_t num_paths,
                                                    ovx_primpath_list_t* out_path_list);

  /* 5. Adds a reference to the list. OVX_INVALID_PRIMPATH_LIST: success, nothing happens.
   *    Errors: a handle that is not alive. */
  ovx_api_result_t (*add_path_list_reference)(path_dictionary_context_t* instance, ovx_primpath_list_t path_list);

  /* 6. Drops a reference; with the last one the handle is dead for good, at once. A query made from the list keeps
   *    working. OVX_INVALID_PRIMPATH_LIST: success, nothing happens. Errors: a handle that is not alive. */
  ovx_api_result_t (*release_path_list_reference)(path_dictionary_context_t* instance, ovx_primpath_list_t path_list);

  /* 7. Gives the text of each token: views of the dictionary's own storage, NUL-terminated, valid as long as the
   *    dictionary and never freed. Token 0 gives an empty view. Errors: a token that is not of this dictionary. */
  ovx_api_result_t (*get_strings_from_tokens)(path_dictionary_context_t* instance, const ovx_token_t* tokens,
                                              size_t num_tokens, ovx_string_t* out_strings);

  /* 8. Decomposes paths into the tokens of their components, root first, page by page.
   *    token_buffer              receives the tokens; token_buffer_size counts tokens, not bytes
   *    out_tokens_per_path[i]    where in token_buffer the tokens of prim_paths[i] start
   *    out_num_tokens_per_path[i] how many they are; 0 for the root "/"
   *    out_num_paths_processed   how many leading paths were written: processing stops before the first path whose
   *                              tokens do not fit; call again with the remaining paths
   *    Errors: a handle that is not a path of this dictionary; then out_num_paths_processed is 0. */
  ovx_api_result_t (*get_tokens_from_paths)(path_dictionary_context_t* instance, const ovx_primpath_t* prim_paths,
                                            size_t num_paths, ovx_token_t* token_buffer, size_t token_buffer_size,
                                            ovx_token_t** out_tokens_per_path, size_t* out_num_tokens_per_path,
                                            size_t* out_num_paths_processed);

  /* 9. Number of paths in the list. Errors: a handle that is not alive. */
  ovx_api_result_t (*get_num_paths_from_path_list)(path_dictionary_context_t* instance, ovx_primpath_list_t path_list,
                                                   size_t* out_num_paths);

  /* 10. Copies up to `max_paths` paths of the list, beginning at position `start_offset`, and says how many it copied;
   *     0 at and beyond the end. Errors: a handle that is not alive. */
  ovx_api_result_t (*get_paths_from_path_list)(path_dictionary_context_t* instance, ovx_primpath_list_t path_list,
                                               size_t start_offset, size_t max_paths, ovx_primpath_t* out_paths,
                                               size_t* out_num_paths);

  /* 11. Frees the `error` of a failed call. {NULL, 0} is fine. Never for strings of get_strings_from_tokens. */
  void (*release_error)(path_dictionary_context_t* context, ovx_string_t error);
};

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* PATH_DICTIONARY_VTABLE_H */
