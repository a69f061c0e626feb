/*
 * dictionary.c - Stage: tokens, paths and path lists, many in one call.
 *
 * The GIL is released while the dictionary works: a million strings are one call into the engine. What the caller gave
 * stays alive in a tuple meanwhile, whatever other threads do to the caller's list.
 */
#include "native.h"

static path_dictionary_instance_t* open_dictionary(Stage* self, const char* method) {
  if (!stage_begin(self, method)) return NULL;
  path_dictionary_instance_t* dictionary = ovstage_get_path_dictionary(self->instance);
  if (dictionary) return dictionary;
  /* It says nothing about its reason: another thread has destroyed the stage, or this is the child of a fork that
   * Python does not know of, in which any other call is refused with a code of its own. */
  const void* table;
  if (ovstage_query_extension(self->instance, OVSTAGE_GO_V1_NAME, &table) == OVSTAGE_ERROR_NOT_SUPPORTED)
    raise_forked(method);
  else
    raise_stage_error(OVSTAGE_ERROR_INVALID_HANDLE, "%s called after Stage was destroyed", method);
  return NULL;
}

static PyObject* handle_or_raise(path_dictionary_instance_t* dictionary, ovx_api_result_t result, uint64_t handle) {
  return result.status == OVX_API_SUCCESS ? PyLong_FromUnsignedLongLong(handle)
                                          : raise_dictionary_error(dictionary, result.error, NULL);
}

/* ---- Interning --------------------------------------------------------------------------------------------------- */

typedef ovx_api_result_t (*intern_function)(path_dictionary_instance_t*, const ovx_string_t*, size_t, uint64_t*);

static PyObject* intern(Stage* self, PyObject* strings, const char* name, const char* method,
                        intern_function function) {
  texts given;
  if (!texts_open(&given, strings, name)) return NULL;
  PyObject* answer = NULL;
  path_dictionary_instance_t* dictionary = open_dictionary(self, method);
  uint64_t* handles = dictionary ? malloc((given.count + 1) * sizeof *handles) : NULL;
  if (handles) {
    ovx_api_result_t result;
    WITHOUT_GIL(result = function(dictionary, given.data, given.count, handles));
    answer = result.status == OVX_API_SUCCESS ? list_of_uint64s(handles, given.count)
                                              : raise_dictionary_error(dictionary, result.error, NULL);
  } else if (dictionary) {
    PyErr_NoMemory();
  }
  free(handles);
  texts_close(&given);
  return answer;
}

bool token_of_name(Stage* self, PyObject* name, const char* place, const char* method, uint64_t* out) {
  ovx_string_t text;
  path_dictionary_instance_t* dictionary;
  if (!guard_string(name, place, &text) || !(dictionary = open_dictionary(self, method))) return false;
  ovx_api_result_t result;
  WITHOUT_GIL(result = path_dictionary_create_tokens_from_strings(dictionary, &text, 1, out));
  return result.status == OVX_API_SUCCESS || raise_dictionary_error(dictionary, result.error, NULL);
}

PyObject* stage_intern_tokens(PyObject* self, PyObject* strings) {
  return intern((Stage*)self, strings, "strings", "intern_token", path_dictionary_create_tokens_from_strings);
}

PyObject* stage_intern_paths(PyObject* self, PyObject* strings) {
  return intern((Stage*)self, strings, "paths", "intern_path", path_dictionary_create_paths_from_strings);
}

/* ---- Texts of handles -------------------------------------------------------------------------------------------- */

PyObject* stage_token_strings(PyObject* object, PyObject* tokens) {
  words given;
  if (!words_open(&given, tokens, "tokens", "", 64)) return NULL;
  PyObject* list = NULL;
  path_dictionary_instance_t* dictionary = open_dictionary((Stage*)object, "token_to_string");
  ovx_string_t* strings = dictionary ? calloc(given.count + 1, sizeof *strings) : NULL;
  if (strings) {
    ovx_api_result_t result;
    WITHOUT_GIL(result = path_dictionary_get_strings_from_tokens(dictionary, given.data, given.count, strings));
    list = result.status == OVX_API_SUCCESS ? PyList_New((Py_ssize_t)given.count)
                                            : raise_dictionary_error(dictionary, result.error, NULL);
    for (size_t i = 0; list && i < given.count; i++) {
      PyObject* text = string_of(strings[i]);
      if (!text || PyList_SetItem(list, (Py_ssize_t)i, text) < 0) Py_CLEAR(list);
    }
  } else if (dictionary) {
    PyErr_NoMemory();
  }
  free(strings);
  words_close(&given);
  return list;
}

/* Scratch space for a batch of paths. */
typedef struct {
  size_t capacity; /* tokens */
  ovx_token_t* tokens;
  ovx_string_t* strings;
  ovx_token_t** tokens_of_path;
  size_t* count_of_path;
  char* text;
  size_t text_capacity;
} batch;

static bool batch_grow(batch* self, size_t capacity) {
  free(self->tokens);
  free(self->strings);
  self->capacity = capacity;
  self->tokens = malloc(capacity * sizeof *self->tokens);
  self->strings = malloc(capacity * sizeof *self->strings);
  return self->tokens && self->strings;
}

static void batch_close(batch* self) {
  free(self->tokens);
  free(self->strings);
  free(self->tokens_of_path);
  free(self->count_of_path);
  free(self->text);
}

static PyObject* join(batch* self, const ovx_string_t* components, size_t count) {
  if (!count) return PyUnicode_FromString("/");
  size_t length = 0;
  for (size_t i = 0; i < count; i++) length += 1 + components[i].length;
  if (length > self->text_capacity) {
    char* grown = realloc(self->text, length * 2);
    if (!grown) return PyErr_NoMemory();
    self->text = grown;
    self->text_capacity = length * 2;
  }
  char* at = self->text;
  for (size_t i = 0; i < count; i++) {
    *at++ = '/';
    memcpy(at, components[i].ptr, components[i].length);
    at += components[i].length;
  }
  return PyUnicode_DecodeUTF8(self->text, (Py_ssize_t)length, "replace");
}

/* The tokens of as many of the first `count` paths as fit into the batch: at least one, the batch grows for it. */
static bool tokens_of_paths(path_dictionary_instance_t* dictionary, batch* self, const uint64_t* paths, size_t count,
                            size_t* processed) {
  for (;;) {
    ovx_api_result_t result;
    WITHOUT_GIL(result = path_dictionary_get_tokens_from_paths(dictionary, paths, count, self->tokens, self->capacity,
                                                               self->tokens_of_path, self->count_of_path, processed));
    if (result.status != OVX_API_SUCCESS)
      return raise_dictionary_error(dictionary, result.error, count == 1 ? paths : NULL) != NULL;
    if (*processed) return true;
    if (!batch_grow(self, self->capacity * 4)) return PyErr_NoMemory() != NULL;
  }
}

/* Texts of the first `count` paths, or of as many as make one batch, into `list` from `start` on. 0: an exception. */
static size_t append_paths(path_dictionary_instance_t* dictionary, batch* self, const uint64_t* paths, size_t count,
                           PyObject* list, size_t start) {
  size_t processed = 0, tokens = 0;
  if (!tokens_of_paths(dictionary, self, paths, count, &processed)) return 0;
  for (size_t i = 0; i < processed; i++) tokens += self->count_of_path[i];
  ovx_api_result_t result;
  WITHOUT_GIL(result = path_dictionary_get_strings_from_tokens(dictionary, self->tokens, tokens, self->strings));
  if (result.status != OVX_API_SUCCESS) {
    raise_dictionary_error(dictionary, result.error, NULL);
    return 0;
  }
  const ovx_string_t* components = self->strings;
  for (size_t i = 0; i < processed; components += self->count_of_path[i], i++) {
    PyObject* text = join(self, components, self->count_of_path[i]);
    if (!text || PyList_SetItem(list, (Py_ssize_t)(start + i), text) < 0) return 0;
  }
  return processed;
}

PyObject* stage_path_strings(PyObject* object, PyObject* paths) {
  words given;
  if (!words_open(&given, paths, "primpaths", "", 64)) return NULL;
  PyObject* list = NULL;
  batch scratch = {0};
  path_dictionary_instance_t* dictionary = open_dictionary((Stage*)object, "path_to_string");
  if (dictionary) {
    scratch.tokens_of_path = malloc((given.count + 1) * sizeof *scratch.tokens_of_path);
    scratch.count_of_path = malloc((given.count + 1) * sizeof *scratch.count_of_path);
    bool room = batch_grow(&scratch, 4096) && scratch.tokens_of_path && scratch.count_of_path;
    if (room)
      list = PyList_New((Py_ssize_t)given.count);
    else
      PyErr_NoMemory();
  }
  for (size_t done = 0; list && done < given.count;) {
    size_t added =
        append_paths(dictionary, &scratch, (const uint64_t*)given.data + done, given.count - done, list, done);
    if (!added) Py_CLEAR(list);
    done += added;
  }
  batch_close(&scratch);
  words_close(&given);
  return list;
}

/* ---- Path lists -------------------------------------------------------------------------------------------------- */

PyObject* stage_list_from_paths(PyObject* object, PyObject* paths) {
  words given;
  if (!words_open(&given, paths, "primpaths", "", 64)) return NULL;
  PyObject* answer = NULL;
  path_dictionary_instance_t* dictionary = open_dictionary((Stage*)object, "create_path_list");
  if (dictionary) {
    uint64_t handle = 0;
    ovx_api_result_t result;
    WITHOUT_GIL(result = path_dictionary_create_path_list_from_paths(dictionary, given.data, given.count, &handle));
    answer = handle_or_raise(dictionary, result, handle);
  }
  words_close(&given);
  return answer;
}

PyObject* stage_list_from_strings(PyObject* object, PyObject* strings) {
  texts given;
  if (!texts_open(&given, strings, "paths")) return NULL;
  PyObject* answer = NULL;
  path_dictionary_instance_t* dictionary = open_dictionary((Stage*)object, "create_path_list_from_strings");
  if (dictionary) {
    uint64_t handle = 0;
    ovx_api_result_t result;
    WITHOUT_GIL(result = path_dictionary_create_path_list_from_strings(dictionary, given.data, given.count, &handle));
    answer = handle_or_raise(dictionary, result, handle);
  }
  texts_close(&given);
  return answer;
}

typedef ovx_api_result_t (*reference_function)(path_dictionary_instance_t*, ovx_primpath_list_t);

static PyObject* change_reference(Stage* self, PyObject* path_list, const char* method, reference_function function) {
  uint64_t handle;
  path_dictionary_instance_t* dictionary;
  if (!guard_path_list(path_list, &handle) || !(dictionary = open_dictionary(self, method))) return NULL;
  ovx_api_result_t result;
  WITHOUT_GIL(result = function(dictionary, handle));
  return result.status == OVX_API_SUCCESS ? Py_NewRef(Py_None) : raise_dictionary_error(dictionary, result.error, NULL);
}

PyObject* stage_list_add(PyObject* self, PyObject* path_list) {
  return change_reference((Stage*)self, path_list, "add_path_list_reference", path_dictionary_add_path_list_reference);
}

PyObject* stage_list_release(PyObject* self, PyObject* path_list) {
  return change_reference((Stage*)self, path_list, "destroy_path_list", path_dictionary_release_path_list_reference);
}

PyObject* stage_list_count(PyObject* object, PyObject* path_list) {
  uint64_t handle;
  path_dictionary_instance_t* dictionary;
  if (!guard_path_list(path_list, &handle) ||
      !(dictionary = open_dictionary((Stage*)object, "path_list_count"))) {
    return NULL;
  }
  size_t count = 0;
  ovx_api_result_t result;
  WITHOUT_GIL(result = path_dictionary_get_num_paths_from_path_list(dictionary, handle, &count));
  return handle_or_raise(dictionary, result, count);
}

/* All paths of a list, malloc'd; NULL with a successful result: out of memory. */
static ovx_api_result_t copy_paths(path_dictionary_instance_t* dictionary, uint64_t list, ovx_primpath_t** paths,
                                   size_t* got) {
  size_t count = 0;
  ovx_api_result_t result = path_dictionary_get_num_paths_from_path_list(dictionary, list, &count);
  if (result.status != OVX_API_SUCCESS || !(*paths = malloc((count + 1) * sizeof **paths))) return result;
  return path_dictionary_get_paths_from_path_list(dictionary, list, 0, count, *paths, got);
}

PyObject* stage_list_paths(PyObject* object, PyObject* path_list) {
  uint64_t handle;
  path_dictionary_instance_t* dictionary;
  if (!guard_path_list(path_list, &handle) || !(dictionary = open_dictionary((Stage*)object, "get_paths"))) {
    return NULL;
  }
  size_t got = 0;
  ovx_primpath_t* paths = NULL;
  ovx_api_result_t result;
  WITHOUT_GIL(result = copy_paths(dictionary, handle, &paths, &got));
  PyObject* answer = result.status != OVX_API_SUCCESS ? raise_dictionary_error(dictionary, result.error, NULL)
                     : paths                          ? list_of_uint64s(paths, got)
                                                      : PyErr_NoMemory();
  free(paths);
  return answer;
}
