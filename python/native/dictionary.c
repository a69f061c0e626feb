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

static PyObject* number_or_raise(path_dictionary_instance_t* dictionary, ovx_api_result_t result, uint64_t number) {
  return result.status == OVX_API_SUCCESS ? PyLong_FromUnsignedLongLong(number)
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

/* 1: found or tried, 0: the name is none, -1: an exception. The capsule is made before there is a trial. */
static int try_name(Stage* self, ovx_string_t text, PyObject* trials, uint64_t* out) {
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
  bool good = !tried || PyList_Append(trials, capsule) == 0;
  Py_DECREF(capsule);
  return good ? status == OVSTAGE_OK : -1;
}

bool token_of_name(Stage* self, PyObject* name, const char* place, const char* method, PyObject* trials,
                   uint64_t* out) {
  ovx_string_t text;
  path_dictionary_instance_t* dictionary;
  if (!guard_string(name, place, &text) || !(dictionary = open_dictionary(self, method))) return false;
  int tried = trials ? try_name(self, text, trials, out) : 0;
  if (tried) return tried > 0;
  ovx_api_result_t result; /* which says in its own words what is no name */
  WITHOUT_GIL(result = path_dictionary_create_tokens_from_strings(dictionary, &text, 1, out));
  return result.status == OVX_API_SUCCESS || raise_dictionary_error(dictionary, result.error, NULL);
}

PyObject* stage_try_name(PyObject* self, PyObject* const* args, Py_ssize_t nargs) {
  uint64_t token;
  const char* place = nargs == 3 ? PyUnicode_AsUTF8AndSize(args[1], NULL) : NULL;
  if (!check_argument_count("_try_name", nargs, 3, 3) || !place ||
      !token_of_name((Stage*)self, args[0], place, "intern_token", args[2], &token)) {
    return NULL;
  }
  return PyLong_FromUnsignedLongLong(token);
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

/* ---- References to path lists -------------------------------------------------------------------------------------
 */

typedef ovx_api_result_t (*reference_function)(path_dictionary_instance_t*, ovx_primpath_list_t);

static PyObject* change_reference(path_dictionary_instance_t* dictionary, uint64_t handle,
                                  reference_function function) {
  ovx_api_result_t result;
  WITHOUT_GIL(result = function(dictionary, handle));
  return result.status == OVX_API_SUCCESS ? Py_NewRef(Py_None) : raise_dictionary_error(dictionary, result.error, NULL);
}

/* Whether there is something to give back in a list of tokens, which an object has as an attribute. */
static bool has_tokens(PyObject* references, const char* name) {
  PyObject* tokens = PyObject_GetAttrString(references, name);
  bool some = tokens && PyList_Check(tokens) && PyList_Size(tokens) > 0;
  Py_XDECREF(tokens);
  return some;
}

/* Forget what is known of a list for which nothing is to be given back any more. */
static void forget_list(Stage* self, uint64_t handle, PyObject* references) {
  if (has_tokens(references, "owner") || has_tokens(references, "added")) return;
  PyObject* known = PyObject_GetAttrString((PyObject*)self, "_path_list_refs");
  PyObject* number = known ? PyLong_FromUnsignedLongLong(handle) : NULL;
  if (number) PyObject_DelItem(known, number);
  Py_XDECREF(number);
  Py_XDECREF(known);
  PyErr_Clear();
}

/* A token is taken and the reference given back as one: no interrupt comes between, and two threads get two tokens.
 * 1: done; 0: there is none; -1: an exception. */
static int give_back(Stage* self, path_dictionary_instance_t* dictionary, uint64_t handle, PyObject* references,
                     PyObject* tokens) {
  Py_ssize_t count = PyList_Size(tokens);
  if (count <= 0) return (int)count;
  if (PyList_SetSlice(tokens, count - 1, count, NULL) < 0) return -1;
  PyObject* done = change_reference(dictionary, handle, path_dictionary_release_path_list_reference);
  if (done) {
    Py_DECREF(done);
    forget_list(self, handle, references);
    return 1;
  }
  PyObject *type, *error, *traceback;
  PyErr_Fetch(&type, &error, &traceback);
  PyList_Append(tokens, Py_None);
  PyErr_Restore(type, error, traceback);
  return -1;
}

/* ---- Owners of path lists ---------------------------------------------------------------------------------------- */

/* What a PathList holds by its list: dropped with it, it gives the reference back that is its owner's. */
typedef struct {
  PyObject_HEAD uint64_t handle;
  PyObject* stage;      /* a weak reference */
  PyObject* references; /* of the list: see ovstage/dictionary.py */
  bool implicit;        /* nobody forgot anything */
} ListOwner;

/* The stage, while lists can be given back: a new reference, or NULL. */
static Stage* usable_stage(const ListOwner* self) {
  PyObject* stage = self->stage ? PyObject_CallNoArgs(self->stage) : NULL;
  if (stage && PyObject_TypeCheck(stage, native.stage) && ((Stage*)stage)->alive && !native.forked && !finalizing())
    return (Stage*)stage;
  Py_XDECREF(stage);
  return NULL;
}

static bool give_back_owned(const ListOwner* self) {
  Stage* stage = usable_stage(self);
  PyObject* tokens = stage ? PyObject_GetAttrString(self->references, "owner") : NULL;
  path_dictionary_instance_t* dictionary =
      tokens && PyList_Size(tokens) > 0 ? ovstage_get_path_dictionary(stage->instance) : NULL;
  bool given = dictionary && give_back(stage, dictionary, self->handle, self->references, tokens) > 0;
  Py_XDECREF(tokens);
  Py_XDECREF((PyObject*)stage);
  return given;
}

/* Here, and not in Python code, where an interrupt could come between; that speaks of it afterwards. */
static void owner_dealloc(PyObject* object) {
  static PyObject* speak;
  ListOwner* self = (ListOwner*)object;
  PyObject *type, *error, *traceback;
  PyErr_Fetch(&type, &error, &traceback);
  bool given = self->references && give_back_owned(self);
  PyErr_Clear();
  if (given && !self->implicit && package_attribute(&speak, "ovstage.dictionary", "forgotten")) {
    PyObject* answer = PyObject_CallFunction(speak, "K", (unsigned long long)self->handle);
    if (!answer) PyErr_WriteUnraisable(speak);
    Py_XDECREF(answer);
  }
  PyErr_Clear();
  Py_XDECREF(self->references);
  Py_XDECREF(self->stage);
  PyErr_Restore(type, error, traceback);
  free_object(object);
}

static PyType_Slot owner_slots[] = {
    {Py_tp_doc, "Held by a PathList, it gives the list back when that is dropped."},
    {Py_tp_dealloc, owner_dealloc},
    {0, NULL},
};

PyType_Spec owner_spec = {
    .name = "ovstage._native.ListOwner",
    .basicsize = sizeof(ListOwner),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = owner_slots,
};

/* The owner of a list that is about to be made; it holds nothing before it has a handle. */
static ListOwner* owner_new(PyObject* attributes) {
  PyObject* stage = PyDict_GetItemString(attributes, "_stage"); /* borrowed, as the others */
  PyObject* references = PyDict_GetItemString(attributes, "_references");
  if (!stage || !references) return (ListOwner*)PyErr_NoMemory(); /* for the key: it hides that, and they are there */
  ListOwner* self = (ListOwner*)new_object(native.owner);
  if (!self) return NULL;
  self->stage = Py_NewRef(stage);
  self->references = Py_NewRef(references);
  self->implicit = PyDict_GetItemString(attributes, "_implicit") == Py_True;
  return self;
}

/* ---- Path lists -------------------------------------------------------------------------------------------------- */

/*
 * A list that was just made, as an object of `class`, a subclass of int, with the attributes of a dict, of which
 * _references is noted in the stage, and with its owner. No Python code runs in here: an interrupt finds the list with
 * its owner, or not made at all.
 */
static PyObject* own_list(Stage* self, uint64_t handle, ListOwner* owner, PyObject* class, PyObject* attributes) {
  PyObject *name, *value, *number = PyLong_FromUnsignedLongLong(handle), *known = NULL;
  owner->handle = handle;
  PyObject* made = number ? PyObject_CallFunctionObjArgs(class, number, NULL) : NULL;
  bool good = made && PyObject_SetAttrString(made, "_owner", (PyObject*)owner) == 0;
  for (Py_ssize_t at = 0; good && PyDict_Next(attributes, &at, &name, &value);)
    good = PyObject_SetAttr(made, name, value) == 0;
  good = good && (known = PyObject_GetAttrString((PyObject*)self, "_path_list_refs")) &&
         PyObject_SetItem(known, number, owner->references) == 0;
  Py_XDECREF(known);
  Py_XDECREF(number);
  if (good) return made;
  Py_XDECREF(made);
  return NULL;
}

/* What became of a list. An owner that has got no handle lets nothing go. */
static PyObject* list_or_raise(Stage* self, path_dictionary_instance_t* dictionary, ovx_api_result_t result,
                               uint64_t handle, ListOwner* owner, PyObject* const* args) {
  bool accepted = result.status == OVX_API_SUCCESS;
  if (!accepted) Py_CLEAR(owner->references);
  PyObject* made = accepted ? own_list(self, handle, owner, args[1], args[2])
                            : raise_dictionary_error(dictionary, result.error, NULL);
  Py_DECREF((PyObject*)owner);
  return made;
}

static bool check_owner(const char* function, PyObject* const* args, Py_ssize_t nargs) {
  if (!check_argument_count(function, nargs, 3, 3)) return false;
  if (PyType_Check(args[1]) && PyType_IsSubtype((PyTypeObject*)args[1], &PyLong_Type) && PyDict_Check(args[2]))
    return true;
  return PyErr_BadArgument();
}

PyObject* stage_list_from_paths(PyObject* object, PyObject* const* args, Py_ssize_t nargs) {
  words given;
  if (!check_owner("_list_from_paths", args, nargs) || !words_open(&given, args[0], "primpaths", "", 64)) return NULL;
  PyObject* answer = NULL;
  path_dictionary_instance_t* dictionary = open_dictionary((Stage*)object, "create_path_list");
  ListOwner* owner = dictionary ? owner_new(args[2]) : NULL;
  if (owner) {
    uint64_t handle = 0;
    ovx_api_result_t result;
    WITHOUT_GIL(result = path_dictionary_create_path_list_from_paths(dictionary, given.data, given.count, &handle));
    answer = list_or_raise((Stage*)object, dictionary, result, handle, owner, args);
  }
  words_close(&given);
  return answer;
}

PyObject* stage_list_from_strings(PyObject* object, PyObject* const* args, Py_ssize_t nargs) {
  texts given;
  if (!check_owner("_list_from_strings", args, nargs) || !texts_open(&given, args[0], "paths")) return NULL;
  PyObject* answer = NULL;
  path_dictionary_instance_t* dictionary = open_dictionary((Stage*)object, "create_path_list_from_strings");
  ListOwner* owner = dictionary ? owner_new(args[2]) : NULL;
  if (owner) {
    uint64_t handle = 0;
    ovx_api_result_t result;
    WITHOUT_GIL(result = path_dictionary_create_path_list_from_strings(dictionary, given.data, given.count, &handle));
    answer = list_or_raise((Stage*)object, dictionary, result, handle, owner, args);
  }
  texts_close(&given);
  return answer;
}

/* The list of what is only asked for: the attribute _unknown says how many of its paths nobody has made. What cannot be
 * such a list is refused in the dictionary's own words. */
PyObject* stage_list_of_known(PyObject* object, PyObject* const* args, Py_ssize_t nargs) {
  texts given;
  if (!check_owner("_list_of_known", args, nargs) || !texts_open(&given, args[0], "paths")) return NULL;
  PyObject* answer = NULL;
  ovstage_instance_t* instance = ((Stage*)object)->instance;
  path_dictionary_instance_t* dictionary = open_dictionary((Stage*)object, "create_path_list_from_strings");
  ListOwner* owner = dictionary ? owner_new(args[2]) : NULL;
  if (owner) {
    uint64_t handle = 0;
    size_t unknown = 0;
    ovx_api_result_t result = {.status = OVX_API_SUCCESS};
    WITHOUT_GIL({
      if (native.go->list_of_known(instance, given.data, given.count, &handle, &unknown) != OVSTAGE_OK)
        result = path_dictionary_create_path_list_from_strings(dictionary, given.data, given.count, &handle);
    });
    answer = list_or_raise((Stage*)object, dictionary, result, handle, owner, args);
    PyObject* number = answer ? PyLong_FromSize_t(unknown) : NULL;
    if (answer && (!number || PyObject_SetAttrString(answer, "_unknown", number) < 0)) Py_CLEAR(answer);
    Py_XDECREF(number);
  }
  texts_close(&given);
  return answer;
}

static bool check_tokens(const char* function, PyObject* const* args, Py_ssize_t nargs) {
  if (!check_argument_count(function, nargs, 2, 2)) return false;
  if (PyList_Check(args[1])) return true;
  return PyErr_BadArgument();
}

PyObject* stage_list_add(PyObject* object, PyObject* const* args, Py_ssize_t nargs) {
  uint64_t handle;
  path_dictionary_instance_t* dictionary;
  if (!check_tokens("_list_add", args, nargs) || !guard_path_list(args[0], &handle) ||
      !(dictionary = open_dictionary((Stage*)object, "add_path_list_reference"))) {
    return NULL;
  }
  PyObject* added = change_reference(dictionary, handle, path_dictionary_add_path_list_reference);
  if (added && PyList_Append(args[1], Py_None) == 0) return added;
  Py_XDECREF(added);
  return NULL;
}

PyObject* stage_list_release(PyObject* object, PyObject* path_list) {
  uint64_t handle;
  path_dictionary_instance_t* dictionary;
  if (!guard_path_list(path_list, &handle) || !(dictionary = open_dictionary((Stage*)object, "destroy_path_list"))) {
    return NULL;
  }
  return change_reference(dictionary, handle, path_dictionary_release_path_list_reference);
}

PyObject* stage_list_give_back(PyObject* object, PyObject* const* args, Py_ssize_t nargs) {
  uint64_t handle;
  path_dictionary_instance_t* dictionary;
  if (!check_argument_count("_list_give_back", nargs, 3, 3) || !guard_path_list(args[0], &handle) ||
      !(dictionary = open_dictionary((Stage*)object, "destroy_path_list"))) {
    return NULL;
  }
  int given = give_back((Stage*)object, dictionary, handle, args[1], args[2]);
  return given < 0 ? NULL : PyBool_FromLong(given);
}

/* ---- What lists hold --------------------------------------------------------------------------------------------- */

PyObject* stage_list_count(PyObject* object, PyObject* path_list) {
  uint64_t handle;
  path_dictionary_instance_t* dictionary;
  if (!guard_path_list(path_list, &handle) || !(dictionary = open_dictionary((Stage*)object, "path_list_count"))) {
    return NULL;
  }
  size_t count = 0;
  ovx_api_result_t result;
  WITHOUT_GIL(result = path_dictionary_get_num_paths_from_path_list(dictionary, handle, &count));
  return number_or_raise(dictionary, result, count);
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
