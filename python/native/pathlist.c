/*
 * pathlist.c - Stage: path lists, their references and their owners.
 */
#include "native.h"

/* ---- References -------------------------------------------------------------------------------------------------- */

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

/* ---- Owners ------------------------------------------------------------------------------------------------------ */

/* What a PathList holds by its list: dropped with it, it gives the reference back that is its owner's. */
typedef struct {
  PyObject_HEAD uint64_t handle;
  PyObject* stage;      /* a weak reference */
  PyObject* references; /* of the list: see ovstage/dictionary.py */
  bool implicit;        /* there is nothing to forget: no warning */
} ListOwner;

static bool give_back_owned(const ListOwner* self) {
  Stage* stage = usable_stage(self->stage);
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

/* ---- Making ------------------------------------------------------------------------------------------------------ */

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

/* What the calls that make a list take. */
enum { PATHS, CLS, ATTRIBUTES, MAKER_ARGUMENTS };

/* What became of a list. An owner that has got no handle lets nothing go. */
static PyObject* list_or_raise(Stage* self, path_dictionary_instance_t* dictionary, ovx_api_result_t result,
                               uint64_t handle, ListOwner* owner, PyObject* const* args) {
  bool accepted = result.status == OVX_API_SUCCESS;
  if (!accepted) Py_CLEAR(owner->references);
  PyObject* made = accepted ? own_list(self, handle, owner, args[CLS], args[ATTRIBUTES])
                            : raise_dictionary_error(dictionary, result.error, NULL);
  Py_DECREF((PyObject*)owner);
  return made;
}

static bool check_owner(const char* function, PyObject* const* args, Py_ssize_t nargs) {
  if (!check_argument_count(function, nargs, MAKER_ARGUMENTS)) return false;
  if (PyType_Check(args[CLS]) && PyType_IsSubtype((PyTypeObject*)args[CLS], &PyLong_Type) &&
      PyDict_Check(args[ATTRIBUTES]))
    return true;
  return PyErr_BadArgument();
}

static PyObject* stage_list_from_paths(PyObject* object, PyObject* const* args, Py_ssize_t nargs) {
  words given;
  if (!check_owner("_list_from_paths", args, nargs) || !words_open(&given, args[PATHS], "primpaths", "", 64))
    return NULL;
  PyObject* answer = NULL;
  path_dictionary_instance_t* dictionary = open_dictionary((Stage*)object, "create_path_list");
  ListOwner* owner = dictionary ? owner_new(args[ATTRIBUTES]) : NULL;
  if (owner) {
    uint64_t handle = 0;
    ovx_api_result_t result;
    WITHOUT_GIL(result = path_dictionary_create_path_list_from_paths(dictionary, given.data, given.count, &handle));
    answer = list_or_raise((Stage*)object, dictionary, result, handle, owner, args);
  }
  words_close(&given);
  return answer;
}

static PyObject* stage_list_from_strings(PyObject* object, PyObject* const* args, Py_ssize_t nargs) {
  texts given;
  if (!check_owner("_list_from_strings", args, nargs) || !texts_open(&given, args[PATHS], "paths")) return NULL;
  PyObject* answer = NULL;
  path_dictionary_instance_t* dictionary = open_dictionary((Stage*)object, "create_path_list_from_strings");
  ListOwner* owner = dictionary ? owner_new(args[ATTRIBUTES]) : NULL;
  if (owner) {
    uint64_t handle = 0;
    ovx_api_result_t result;
    WITHOUT_GIL(result = path_dictionary_create_path_list_from_strings(dictionary, given.data, given.count, &handle));
    answer = list_or_raise((Stage*)object, dictionary, result, handle, owner, args);
  }
  texts_close(&given);
  return answer;
}

/* The list of what is only asked for: the attribute _unknown says how many of its paths have never been made. What
 * cannot be such a list is refused in the dictionary's own words. */
static PyObject* stage_list_of_known(PyObject* object, PyObject* const* args, Py_ssize_t nargs) {
  texts given;
  if (!check_owner("_list_of_known", args, nargs) || !texts_open(&given, args[PATHS], "paths")) return NULL;
  PyObject* answer = NULL;
  ovstage_instance_t* instance = ((Stage*)object)->instance;
  path_dictionary_instance_t* dictionary = open_dictionary((Stage*)object, "create_path_list_from_strings");
  ListOwner* owner = dictionary ? owner_new(args[ATTRIBUTES]) : NULL;
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

/* ---- Keeping ----------------------------------------------------------------------------------------------------- */

static PyObject* stage_list_add(PyObject* object, PyObject* const* args, Py_ssize_t nargs) {
  enum { PATH_LIST, TOKENS, ARGUMENTS };
  uint64_t handle;
  path_dictionary_instance_t* dictionary;
  if (!check_argument_count("_list_add", nargs, ARGUMENTS) ||
      (!PyList_Check(args[TOKENS]) && PyErr_BadArgument() == 0) || !guard_path_list(args[PATH_LIST], &handle) ||
      !(dictionary = open_dictionary((Stage*)object, "add_path_list_reference"))) {
    return NULL;
  }
  PyObject* added = change_reference(dictionary, handle, path_dictionary_add_path_list_reference);
  if (added && PyList_Append(args[TOKENS], Py_None) == 0) return added;
  Py_XDECREF(added);
  return NULL;
}

static PyObject* stage_list_release(PyObject* object, PyObject* path_list) {
  uint64_t handle;
  path_dictionary_instance_t* dictionary;
  if (!guard_path_list(path_list, &handle) || !(dictionary = open_dictionary((Stage*)object, "destroy_path_list"))) {
    return NULL;
  }
  return change_reference(dictionary, handle, path_dictionary_release_path_list_reference);
}

static PyObject* stage_list_give_back(PyObject* object, PyObject* const* args, Py_ssize_t nargs) {
  enum { PATH_LIST, REFERENCES, TOKENS, ARGUMENTS };
  uint64_t handle;
  path_dictionary_instance_t* dictionary;
  if (!check_argument_count("_list_give_back", nargs, ARGUMENTS) || !guard_path_list(args[PATH_LIST], &handle) ||
      !(dictionary = open_dictionary((Stage*)object, "destroy_path_list"))) {
    return NULL;
  }
  int given = give_back((Stage*)object, dictionary, handle, args[REFERENCES], args[TOKENS]);
  return given < 0 ? NULL : PyBool_FromLong(given);
}

/* ---- What they hold ---------------------------------------------------------------------------------------------- */

static PyObject* number_or_raise(path_dictionary_instance_t* dictionary, ovx_api_result_t result, uint64_t number) {
  return result.status == OVX_API_SUCCESS ? PyLong_FromUnsignedLongLong(number)
                                          : raise_dictionary_error(dictionary, result.error, NULL);
}

static PyObject* stage_list_count(PyObject* object, PyObject* path_list) {
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

PyObject* paths_of_list(Stage* self, uint64_t list) {
  path_dictionary_instance_t* dictionary = open_dictionary(self, "get_paths");
  if (!dictionary) return NULL;
  size_t got = 0;
  ovx_primpath_t* paths = NULL;
  ovx_api_result_t result;
  WITHOUT_GIL(result = copy_paths(dictionary, list, &paths, &got));
  PyObject* answer = result.status != OVX_API_SUCCESS ? raise_dictionary_error(dictionary, result.error, NULL)
                     : paths                          ? list_of_uint64s(paths, got)
                                                      : PyErr_NoMemory();
  free(paths);
  return answer;
}

static PyObject* stage_list_paths(PyObject* object, PyObject* path_list) {
  uint64_t handle;
  return guard_path_list(path_list, &handle) ? paths_of_list((Stage*)object, handle) : NULL;
}

PyMethodDef stage_pathlist_methods[] = {
    {"_list_from_paths", FAST(stage_list_from_paths), DOC_Stage__list_from_paths},
    {"_list_from_strings", FAST(stage_list_from_strings), DOC_Stage__list_from_strings},
    {"_list_of_known", FAST(stage_list_of_known), DOC_Stage__list_of_known},
    {"_list_add", FAST(stage_list_add), DOC_Stage__list_add},
    {"_list_release", stage_list_release, METH_O, DOC_Stage__list_release},
    {"_list_give_back", FAST(stage_list_give_back), DOC_Stage__list_give_back},
    {"_list_count", stage_list_count, METH_O, DOC_Stage__list_count},
    {"_list_paths", stage_list_paths, METH_O, DOC_Stage__list_paths},
    {NULL, NULL, 0, NULL},
};
