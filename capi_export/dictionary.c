/*
 * dictionary.c - the slots of the path dictionary.
 *
 * All instances share one dictionary, which lives from the first of them to the last. Its bundle is the same object all
 * the time; calls between two dictionaries find the gate closed. Texts of errors belong to the caller, hence one malloc
 * each; one text is always there, for want of memory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "_cgo_export.h"
#include "ring.h"

ov_gate ov_dictionary_gate = {1ULL << 63}; /* closed: there is no instance yet */

typedef ovx_api_result_t R;
typedef path_dictionary_context_t* C;

static R success(void) { return (R){OVX_API_SUCCESS, {NULL, 0}}; }

static const char SCARCE[] = "out of memory: the call failed, and there was none for the text that says why";

ovx_string_t ov_dictionary_error(const char* text, size_t length) {
  char* copy = malloc(length + 1);
  if (copy == NULL) return (ovx_string_t){SCARCE, sizeof SCARCE - 1};
  memcpy(copy, text, length);
  copy[length] = '\0';
  return (ovx_string_t){copy, length};
}

static R refuse(const char* text) { return (R){OVX_API_ERROR, ov_dictionary_error(text, strlen(text))}; }

static R refuse_excess(size_t path, size_t tokens) {
  char text[128];
  (void)snprintf(text, sizeof text,
                 "num_tokens_per_path[%zu] is %zu, with which the paths have more tokens than memory holds", path,
                 tokens);
  return refuse(text);
}

/* Enters; answers false with `result` set when the call is over. */
static bool enter(R* result) {
  if (ov_forked)
    *result = refuse(ov_forked_text());
  else if (!ov_gate_enter(&ov_dictionary_gate))
    *result = refuse("the path dictionary is gone: it was destroyed with the last stage of this process");
  else
    return true;
  return false;
}

static R leave(R result) {
  ov_gate_leave(&ov_dictionary_gate);
  return result;
}

/* Go answers with a malloc'ed text, or {NULL, 0} when all is well. */
static R outcome(ovx_string_t error) {
  return error.ptr == NULL && error.length == 0 ? success() : (R){OVX_API_ERROR, error};
}

static R answer(ovx_string_t error) { return leave(outcome(error)); }

static R refuse_lost(const ov_inputs* in) {
  char text[160];
  (void)snprintf(text, sizeof text, "%s: out of memory for a copy of what was handed in", in->lost);
  return refuse(text);
}

/* An array that is NULL although it has entries - `what` is a sentence about it - or has more than there can be. */
static bool missing(const void* array, size_t count, const char* what, R* result) {
  if (count == 0 || (array != NULL && count <= OV_MOST_ENTRIES)) return false;
  char text[160];
  if (array != NULL)
    (void)snprintf(text, sizeof text, "%.*s is given %zu entries, more than memory holds; expected at most %zu",
                   (int)strcspn(what, " "), what, count, (size_t)OV_MOST_ENTRIES);
  *result = leave(refuse(array == NULL ? what : text));
  return true;
}

/* What the caller is to receive. An empty array is handed on as NULL: what a caller gives for one need not be an
 * address. */
#define OUT(array, count) ((count) > 0 ? (array) : NULL)

/* End a call whose arguments were copied: with what the dictionary says, or because there was no memory for them. */
static R answer_of(ov_inputs* in, ovx_string_t error) {
  ov_inputs_close(in);
  return answer(error);
}

static R out_of_memory(ov_inputs* in) {
  R result = refuse_lost(in);
  ov_inputs_close(in);
  return leave(result);
}

/* ---- Interning --------------------------------------------------------------------------------------------------- */

static R create_tokens_from_strings(C c, const ovx_string_t* strings, size_t num_strings, ovx_token_t* out_tokens) {
  (void)c;
  R result;
  if (!enter(&result)) return result;
  if (missing(strings, num_strings, "strings must not be NULL when num_strings is not 0", &result)) return result;
  if (missing(out_tokens, num_strings, "out_tokens must not be NULL when num_strings is not 0", &result)) return result;
  ov_inputs in;
  ov_inputs_open(&in);
  ovx_string_t* own = ov_input_texts(&in, "strings", strings, num_strings);
  if (in.lost != NULL) return out_of_memory(&in);
  return answer_of(&in, ovgoCreateTokensFromStrings(own, num_strings, OUT(out_tokens, num_strings)));
}

/* The paths of tokens whose numbers are copied already, and judged here: they say how many tokens there are to copy. */
static R components(ov_inputs* in, const ovx_token_t* tokens, size_t* counts, size_t num_paths, ovx_primpath_t* out) {
  size_t total = 0;
  for (size_t i = 0; i < num_paths; i++)
    if (__builtin_add_overflow(total, counts[i], &total) || total > OV_MOST_ENTRIES) return refuse_excess(i, counts[i]);
  if (tokens == NULL && total > 0) return refuse("tokens_per_path must not be NULL when a path has tokens");
  ovx_token_t* own = ov_input(in, "tokens_per_path", tokens, total, sizeof *tokens);
  if (in->lost != NULL) return refuse_lost(in);
  return outcome(ovgoCreatePathsFromTokens(own, total, counts, num_paths, out));
}

static R create_paths_from_tokens(C c, const ovx_token_t* tokens, const size_t* counts, size_t num_paths,
                                  ovx_primpath_t* out_prim_paths) {
  (void)c;
  R result;
  if (!enter(&result)) return result;
  if (missing(counts, num_paths, "num_tokens_per_path must not be NULL when num_paths is not 0", &result))
    return result;
  if (missing(out_prim_paths, num_paths, "out_prim_paths must not be NULL when num_paths is not 0", &result))
    return result;
  ov_inputs in;
  ov_inputs_open(&in);
  size_t* own = ov_input(&in, "num_tokens_per_path", counts, num_paths, sizeof *counts);
  if (in.lost != NULL) return out_of_memory(&in);
  result = components(&in, tokens, own, num_paths, OUT(out_prim_paths, num_paths));
  ov_inputs_close(&in);
  return leave(result);
}

static R create_paths_from_strings(C c, const ovx_string_t* strings, size_t num_paths, ovx_primpath_t* out_prim_paths) {
  (void)c;
  R result;
  if (!enter(&result)) return result;
  if (missing(strings, num_paths, "path_strings must not be NULL when num_paths is not 0", &result)) return result;
  if (missing(out_prim_paths, num_paths, "out_prim_paths must not be NULL when num_paths is not 0", &result))
    return result;
  ov_inputs in;
  ov_inputs_open(&in);
  ovx_string_t* own = ov_input_texts(&in, "path_strings", strings, num_paths);
  if (in.lost != NULL) return out_of_memory(&in);
  return answer_of(&in, ovgoCreatePathsFromStrings(own, num_paths, OUT(out_prim_paths, num_paths)));
}

/* ---- Lists ------------------------------------------------------------------------------------------------------- */

static R create_path_list_from_paths(C c, const ovx_primpath_t* paths, size_t num_paths,
                                     ovx_primpath_list_t* out_list) {
  (void)c;
  R result;
  if (!enter(&result)) return result;
  if (missing(paths, num_paths, "paths must not be NULL when num_paths is not 0", &result)) return result;
  if (missing(out_list, 1, "out_path_list must not be NULL", &result)) return result;
  ov_inputs in;
  ov_inputs_open(&in);
  ovx_primpath_t* own = ov_input(&in, "paths", paths, num_paths, sizeof *paths);
  if (in.lost != NULL) return out_of_memory(&in);
  return answer_of(&in, ovgoCreatePathListFromPaths(own, num_paths, out_list));
}

static R create_path_list_from_strings(C c, const ovx_string_t* strings, size_t num_paths,
                                       ovx_primpath_list_t* out_list) {
  (void)c;
  R result;
  if (!enter(&result)) return result;
  if (missing(strings, num_paths, "path_strings must not be NULL when num_paths is not 0", &result)) return result;
  if (missing(out_list, 1, "out_path_list must not be NULL", &result)) return result;
  ov_inputs in;
  ov_inputs_open(&in);
  ovx_string_t* own = ov_input_texts(&in, "path_strings", strings, num_paths);
  if (in.lost != NULL) return out_of_memory(&in);
  return answer_of(&in, ovgoCreatePathListFromStrings(own, num_paths, out_list));
}

static R add_path_list_reference(C c, ovx_primpath_list_t list) {
  (void)c;
  R result;
  if (!enter(&result)) return result;
  return list == OVX_INVALID_PRIMPATH_LIST ? leave(success()) : answer(ovgoAddPathListReference(list));
}

static R release_path_list_reference(C c, ovx_primpath_list_t list) {
  (void)c;
  R result;
  if (ov_forked) return success();
  if (!enter(&result)) return result;
  return list == OVX_INVALID_PRIMPATH_LIST ? leave(success()) : answer(ovgoReleasePathListReference(list));
}

static R get_num_paths_from_path_list(C c, ovx_primpath_list_t list, size_t* out_num_paths) {
  (void)c;
  R result;
  if (!enter(&result)) return result;
  if (missing(out_num_paths, 1, "out_num_paths must not be NULL", &result)) return result;
  return answer(ovgoGetNumPathsFromPathList(list, out_num_paths));
}

static R get_paths_from_path_list(C c, ovx_primpath_list_t list, size_t start_offset, size_t max_paths,
                                  ovx_primpath_t* out_paths, size_t* out_num_paths) {
  (void)c;
  R result;
  if (!enter(&result)) return result;
  if (missing(out_paths, max_paths > 0, "out_paths must not be NULL when max_paths is not 0", &result)) return result;
  if (missing(out_num_paths, 1, "out_num_paths must not be NULL", &result)) return result;
  return answer(ovgoGetPathsFromPathList(list, start_offset, max_paths, OUT(out_paths, max_paths), out_num_paths));
}

/* ---- Back to text ------------------------------------------------------------------------------------------------ */

static R get_strings_from_tokens(C c, const ovx_token_t* tokens, size_t num_tokens, ovx_string_t* out_strings) {
  (void)c;
  R result;
  if (!enter(&result)) return result;
  if (missing(tokens, num_tokens, "tokens must not be NULL when num_tokens is not 0", &result)) return result;
  if (missing(out_strings, num_tokens, "out_strings must not be NULL when num_tokens is not 0", &result)) return result;
  ov_inputs in;
  ov_inputs_open(&in);
  ovx_token_t* own = ov_input(&in, "tokens", tokens, num_tokens, sizeof *tokens);
  if (in.lost != NULL) return out_of_memory(&in);
  return answer_of(&in, ovgoGetStringsFromTokens(own, num_tokens, OUT(out_strings, num_tokens)));
}

static R get_tokens_from_paths(C c, const ovx_primpath_t* paths, size_t num_paths, ovx_token_t* buffer,
                               size_t buffer_size, ovx_token_t** out_tokens_per_path, size_t* out_num_tokens_per_path,
                               size_t* out_num_paths_processed) {
  (void)c;
  R result;
  if (out_num_paths_processed != NULL) *out_num_paths_processed = 0;
  if (!enter(&result)) return result;
  if (missing(paths, num_paths, "prim_paths must not be NULL when num_paths is not 0", &result)) return result;
  if (missing(buffer, buffer_size, "token_buffer must not be NULL when token_buffer_size is not 0", &result))
    return result;
  if (missing(out_tokens_per_path, num_paths, "out_tokens_per_path must not be NULL when num_paths is not 0", &result))
    return result;
  if (missing(out_num_tokens_per_path, num_paths, "out_num_tokens_per_path must not be NULL when num_paths is not 0",
              &result))
    return result;
  if (missing(out_num_paths_processed, 1, "out_num_paths_processed must not be NULL", &result)) return result;
  ov_inputs in;
  ov_inputs_open(&in);
  ovx_primpath_t* own = ov_input(&in, "prim_paths", paths, num_paths, sizeof *paths);
  if (in.lost != NULL) return out_of_memory(&in);
  return answer_of(&in, ovgoGetTokensFromPaths(own, num_paths, OUT(buffer, buffer_size), buffer_size,
                                               OUT(out_tokens_per_path, num_paths),
                                               OUT(out_num_tokens_per_path, num_paths), out_num_paths_processed));
}

static void release_error(C c, ovx_string_t error) {
  (void)c;
  if (!ov_forked && error.ptr != SCARCE) free((char*)error.ptr);
}

static path_dictionary_vtable_t vtable = {
    .create_tokens_from_strings = create_tokens_from_strings,
    .create_paths_from_tokens = create_paths_from_tokens,
    .create_paths_from_strings = create_paths_from_strings,
    .create_path_list_from_paths = create_path_list_from_paths,
    .create_path_list_from_strings = create_path_list_from_strings,
    .add_path_list_reference = add_path_list_reference,
    .release_path_list_reference = release_path_list_reference,
    .get_strings_from_tokens = get_strings_from_tokens,
    .get_tokens_from_paths = get_tokens_from_paths,
    .get_num_paths_from_path_list = get_num_paths_from_path_list,
    .get_paths_from_path_list = get_paths_from_path_list,
    .release_error = release_error,
};

/* There is nothing to tell apart, so the context only is an address that is not NULL. */
path_dictionary_instance_t ov_dictionary = {&vtable, (path_dictionary_context_t*)&ov_dictionary};
