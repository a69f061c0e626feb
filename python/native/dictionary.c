/*
 * dictionary.c - Stage: tokens, names and paths, many in one call.
 *
 * The GIL is released while the dictionary works: a million strings are one call into the engine. What the caller gave
 * stays alive in a tuple meanwhile, whatever other threads do to the caller's list.
 */
#include "native.h"

path_dictionary_instance_t* open_dictionary(Stage* self, const char* method) {
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

static PyObject* stage_intern_tokens(PyObject* self, PyObject* strings) {
  return intern((Stage*)self, strings, "strings", "intern_token", path_dictionary_create_tokens_from_strings);
}

static PyObject* stage_intern_paths(PyObject* self, PyObject* strings) {
  return intern((Stage*)self, strings, "paths", "intern_path", path_dictionary_create_paths_from_strings);
}

/* ---- Names that are only asked for ------------------------------------------------------------------------------- */

/* A name that is only asked for: it goes with its capsule. */
static const char* const trial_name = "ovstage.trial";

typedef struct {
  ovstage_instance_t* instance; /* retained */
  uint64_t token;
} trial;

static void end_trial(PyObject* capsule) {
  trial* self = PyCapsule_GetPointer(capsule, trial_name);
  if (!native.forked) {
    if (self->token) WITHOUT_GIL(native.go->end_name(self->instance, self->token));
    native.go->instance_release(self->instance);
  }
  free(self);
}

/* The list is made for the first name that is tried: nearly always there is none. */
static bool keep_trial(PyObject** trials, PyObject* capsule) {
  if (!*trials) *trials = PyList_New(0);
  return *trials && PyList_Append(*trials, capsule) == 0;
}

/* 1: found or tried, 0: the name is none, -1: an exception. The capsule is made before there is a trial. */
static int try_name(Stage* self, ovx_string_t text, PyObject** trials, uint64_t* out) {
  trial* made = calloc(1, sizeof *made);
  PyObject* capsule = made ? PyCapsule_New(made, trial_name, NULL) : PyErr_NoMemory();
  if (!capsule) {
    free(made);
    return -1;
  }
  native.go->instance_retain(made->instance = self->instance);
  PyCapsule_SetDestructor(capsule, end_trial);
  bool tried = false;
  ovstage_api_status_t status;
  WITHOUT_GIL(status = native.go->try_name(self->instance, text, out, &tried));
  if (tried) made->token = *out;
  bool good = !tried || keep_trial(trials, capsule);
  Py_DECREF(capsule);
  return good ? status == OVSTAGE_OK : -1;
}

static bool token_of_name(Stage* self, PyObject* name, const char* where, const char* method, PyObject** trials,
                          uint64_t* out) {
  ovx_string_t text;
  path_dictionary_instance_t* dictionary;
  if (!guard_string(name, where, &text) || !(dictionary = open_dictionary(self, method))) return false;
  int tried = trials ? try_name(self, text, trials, out) : 0;
  if (tried) return tried > 0;
  ovx_api_result_t result; /* which says in its own words what is no name */
  WITHOUT_GIL(result = path_dictionary_create_tokens_from_strings(dictionary, &text, 1, out));
  return result.status == OVX_API_SUCCESS || raise_dictionary_error(dictionary, result.error, NULL);
}

static PyObject* stage_try_name(PyObject* self, PyObject* const* args, Py_ssize_t nargs) {
  enum { NAME, WHERE, TRIALS, ARGUMENTS };
  uint64_t token;
  PyObject* trials = nargs == 3 ? args[TRIALS] : NULL;
  const char* where = nargs == 3 ? PyUnicode_AsUTF8AndSize(args[WHERE], NULL) : NULL;
  if (!check_argument_count("_try_name", nargs, ARGUMENTS) || !where ||
      !token_of_name((Stage*)self, args[NAME], where, "intern_token", &trials, &token)) {
    return NULL;
  }
  return PyLong_FromUnsignedLongLong(token);
}

typedef struct {
  Stage* stage;
  const char* method;
  PyObject** trials;
} reading;

static bool token_of_item(void* context, PyObject* name, const char* where, uint64_t* out) {
  const reading* self = context;
  return token_of_name(self->stage, name, where, self->method, self->trials, out);
}

bool tokens_open(words* out, Stage* stage, PyObject* values, const char* name, const char* method, PyObject** trials) {
  reading context = {stage, method, trials};
  const name_reader names = {token_of_item, &context};
  return named_words_open(out, values, name, &names);
}

/* ---- Texts ------------------------------------------------------------------------------------------------------- */

static PyObject* stage_token_strings(PyObject* object, PyObject* tokens) {
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

/* Texts of paths, as many as have room at a time. */
typedef struct {
  char* bytes;
  size_t capacity;
  size_t ends[512];
} path_batch;

/* What is wrong with the first paths, in the dictionary's own words. False; true where nothing is any more. */
static bool refused_paths(path_dictionary_instance_t* dictionary, const uint64_t* paths, size_t count, size_t given) {
  ovx_token_t* tokens[COUNT_OF(((path_batch*)NULL)->ends)];
  size_t counts[COUNT_OF(tokens)], processed;
  ovx_api_result_t result =
      path_dictionary_get_tokens_from_paths(dictionary, paths, count, NULL, 0, tokens, counts, &processed);
  return result.status == OVX_API_SUCCESS ||
         raise_dictionary_error(dictionary, result.error, given == 1 ? paths : NULL) != NULL;
}

/* Texts of some of the first `count` paths into `list` from `start` on; how many, -1: an exception. */
static Py_ssize_t append_paths(Stage* self, path_dictionary_instance_t* dictionary, path_batch* batch,
                               const uint64_t* paths, size_t count, PyObject* list, size_t start) {
  size_t done = 0, from = 0, most = count < COUNT_OF(batch->ends) ? count : COUNT_OF(batch->ends);
  ovstage_api_status_t status;
  WITHOUT_GIL(
      status = native.go->path_texts(self->instance, paths, most, batch->bytes, batch->capacity, batch->ends, &done));
  if (status != OVSTAGE_OK) return refused_paths(dictionary, paths, most, start + count) ? 0 : -1;
  if (!done) {
    char* grown = realloc(batch->bytes, 4 * batch->capacity);
    if (!grown) return PyErr_NoMemory() != NULL ? 0 : -1;
    batch->bytes = grown;
    batch->capacity *= 4;
  }
  for (size_t i = 0; i < done; from = batch->ends[i], i++) {
    PyObject* text = PyUnicode_DecodeUTF8(batch->bytes + from, (Py_ssize_t)(batch->ends[i] - from), "replace");
    if (!text || PyList_SetItem(list, (Py_ssize_t)(start + i), text) < 0) return -1;
  }
  return (Py_ssize_t)done;
}

static PyObject* stage_path_strings(PyObject* object, PyObject* paths) {
  words given;
  if (!words_open(&given, paths, "primpaths", "", 64)) return NULL;
  path_batch batch = {.capacity = 1 << 15};
  PyObject* list = NULL;
  path_dictionary_instance_t* dictionary = open_dictionary((Stage*)object, "path_to_string");
  if (dictionary) {
    batch.bytes = malloc(batch.capacity);
    list = batch.bytes ? PyList_New((Py_ssize_t)given.count) : PyErr_NoMemory();
  }
  for (size_t done = 0; list && done < given.count;) {
    Py_ssize_t added = append_paths((Stage*)object, dictionary, &batch, (const uint64_t*)given.data + done,
                                    given.count - done, list, done);
    if (added < 0)
      Py_CLEAR(list);
    else
      done += (size_t)added;
  }
  free(batch.bytes);
  words_close(&given);
  return list;
}

/* ---- Names that nothing needs any more ----------------------------------------------------------------------------
 */

static PyObject* stage_compact(PyObject* object, PyObject* ignored) {
  (void)ignored;
  Stage* self = (Stage*)object;
  if (!open_dictionary(self, "compact")) return NULL;
  uint64_t dropped = 0;
  ovstage_api_status_t status;
  WITHOUT_GIL(status = native.go->compact(self->instance, &dropped));
  return status == OVSTAGE_OK ? PyLong_FromUnsignedLongLong(dropped) : raise_library_error(status);
}

PyMethodDef stage_dictionary_methods[] = {
    {"_intern_tokens", stage_intern_tokens, METH_O, DOC_Stage__intern_tokens},
    {"_try_name", FAST(stage_try_name), DOC_Stage__try_name},
    {"_token_strings", stage_token_strings, METH_O, DOC_Stage__token_strings},
    {"_intern_paths", stage_intern_paths, METH_O, DOC_Stage__intern_paths},
    {"_path_strings", stage_path_strings, METH_O, DOC_Stage__path_strings},
    {"_compact", stage_compact, METH_NOARGS, DOC_Stage__compact},
    {NULL, NULL, 0, NULL},
};
