/*
 * read.c - Stage: reads, and their groups from the first to the release.
 */
#include "native.h"
static bool drop_read(Stage* stage, uint64_t number) { return handle_drop(stage, number, ovstage_release_read); }

handle_class read_class = {.name = "Read", .drop = drop_read};

/* The fields are judged anew: they may have been assigned since the range was made. */
static bool guard_range(PyObject* value, ovstage_ordinal_range_t* out) {
  static PyObject* class;
  if (!package_attribute(&class, "ovstage.values", "OrdinalRange")) return false;
  int matches = PyObject_IsInstance(value, class);
  if (matches < 0) return false;
  if (!matches) {
    PyErr_Format(PyExc_TypeError, "ordinal_range must be an OrdinalRange, got %R; write OrdinalRange.latest(ordinal)",
                 value);
    return false;
  }
  PyObject* end = PyObject_GetAttr(value, native.name.end_ordinal);
  PyObject* start = end ? PyObject_GetAttr(value, native.name.start_ordinal) : NULL;
  *out = (ovstage_ordinal_range_t){.has_start_ordinal = start != Py_None};
  bool good = start && guard_uint64(end, "end_ordinal", &out->end_ordinal) &&
              (start == Py_None || guard_uint64(start, "start_ordinal", &out->start_ordinal));
  Py_XDECREF(end);
  Py_XDECREF(start);
  if (!good || out->start_ordinal <= out->end_ordinal) return good;
  PyErr_Format(PyExc_ValueError, "start_ordinal %llu must not exceed end_ordinal %llu",
               (unsigned long long)out->start_ordinal, (unsigned long long)out->end_ordinal);
  return false;
}

static PyObject* stage_read_attributes(PyObject* object, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  enum { QUERY, ATTRS, ORDINAL_RANGE, SLOTS };
  static signature sig = {"read_attributes", 3, 3, {"query", "attrs", "ordinal_range"}, {0}};
  Stage* self = (Stage*)object;
  PyObject* slots[SLOTS];
  uint64_t query;
  words tokens;
  ovstage_ordinal_range_t range;
  PyObject* trials = NULL;
  if (!sort_arguments(&sig, args, nargs, kwnames, slots) || !guard_range(slots[ORDINAL_RANGE], &range) ||
      !tokens_open(&tokens, self, slots[ATTRS], "attrs", "read_attributes", &trials)) {
    Py_XDECREF(trials);
    return NULL;
  }
  PyObject *made = NULL, *answer = NULL;
  if (!tokens.count) {
    PyErr_SetString(PyExc_ValueError, "attrs must not be empty: give the attributes to read, by name or token");
  } else if (guard_handle(slots[QUERY], "query", &query) && (made = handle_reserve(&read_class)) &&
             stage_begin(self, "read_attributes")) {
    ovstage_enqueue_result_t result;
    uint64_t handle = 0;
    if (trials) handle_keep_trials(made, trials);
    WITHOUT_GIL(result = ovstage_read_attributes(self->instance, query, tokens.data, tokens.count, range, &handle));
    answer = handle_named(handle_open(made, self, result, handle), "read_attributes", NULL, &range.end_ordinal);
    made = NULL;
  }
  Py_XDECREF(made);
  words_close(&tokens);
  Py_XDECREF(trials);
  return answer;
}

/* The tokens and ordinals of a consumer, None for an ordinal: it knows nothing. NULL: an exception. */
static ovstage_go_cursor_t* cursors_of(const words* tokens, PyObject* since) {
  ovstage_go_cursor_t* cursors = calloc(tokens->count + 1, sizeof *cursors);
  if (!cursors) return (ovstage_go_cursor_t*)PyErr_NoMemory();
  for (size_t i = 0; i < tokens->count; i++) {
    PyObject* known = PyList_GetItem(since, (Py_ssize_t)i);
    cursors[i].attribute = ((const uint64_t*)tokens->data)[i];
    cursors[i].resync = known == Py_None;
    if (known && (known == Py_None || guard_uint64(known, "since", &cursors[i].since))) continue;
    free(cursors);
    return NULL;
  }
  return cursors;
}

static PyObject* told(const ovstage_go_cursor_t* cursors, size_t count) {
  PyObject* list = PyList_New((Py_ssize_t)count);
  for (size_t i = 0; list && i < count; i++) {
    PyObject* pair =
        Py_BuildValue("(KO)", (unsigned long long)cursors[i].until, cursors[i].resync ? Py_True : Py_False);
    if (!pair || PyList_SetItem(list, (Py_ssize_t)i, pair) < 0) Py_CLEAR(list);
  }
  return list;
}

/* _read_since(query, tokens, since, limit): a Read of what changed, and (until, resync) for each token. Query 0: all
 * prims. */
static PyObject* stage_read_since(PyObject* object, PyObject* const* args, Py_ssize_t nargs) {
  enum { QUERY, TOKENS, SINCE, LIMIT };
  Stage* self = (Stage*)object;
  uint64_t query = 0, handle = 0, limit = 0;
  words tokens = {0};
  if (!check_argument_count("_read_since", nargs, 4) ||
      (args[LIMIT] != Py_None && !guard_uint64(args[LIMIT], "limit", &limit)) ||
      (args[QUERY] != Py_None && !guard_handle(args[QUERY], "query", &query)) ||
      !tokens_open(&tokens, self, args[TOKENS], "attributes", "changes", NULL)) {
    return NULL;
  }
  PyObject *made = NULL, *read = NULL, *ends = NULL;
  ovstage_go_cursor_t* cursors = NULL;
  if (!PyList_Check(args[SINCE]) || PyList_Size(args[SINCE]) != (Py_ssize_t)tokens.count) {
    PyErr_BadArgument();
  } else if ((cursors = cursors_of(&tokens, args[SINCE])) && (made = handle_reserve(&read_class)) &&
             stage_begin(self, "changes")) {
    ovstage_enqueue_result_t result;
    for (size_t i = 0; args[LIMIT] != Py_None && i < tokens.count; i++) {
      cursors[i].until = limit;
      cursors[i].limited = true;
    }
    WITHOUT_GIL(result = native.go->read_since(self->instance, query, cursors, tokens.count, &handle));
    read = handle_named(handle_open(made, self, result, handle), "changes", NULL, NULL);
    made = NULL;
    ends = told(cursors, tokens.count);
  }
  Py_XDECREF(made);
  free(cursors);
  words_close(&tokens);
  if (read && ends) return Py_BuildValue("(NN)", read, ends);
  Py_XDECREF(read);
  Py_XDECREF(ends);
  return NULL;
}

static PyObject* stage_read_missing(PyObject* object, PyObject* read) {
  Stage* self = (Stage*)object;
  uint64_t handle;
  if (!guard_handle(read, "read", &handle) || !stage_begin(self, "read_missing")) return NULL;
  PyObject* list = PyList_New(0);
  for (size_t i = 0; list; i++) {
    char reason[2048];
    ovx_token_t attribute;
    size_t length;
    WITHOUT_GIL(length = native.go->read_missing(self->instance, handle, i, &attribute, reason, sizeof reason));
    if (length == 0) break;
    PyObject* text = string_of((ovx_string_t){reason, length < sizeof reason ? length : sizeof reason});
    PyObject* pair = text ? Py_BuildValue("(KN)", (unsigned long long)attribute, text) : NULL;
    if (!pair || PyList_Append(list, pair) < 0) Py_CLEAR(list);
    Py_XDECREF(pair);
  }
  return list;
}

static PyObject* stage_release_read(PyObject* self, PyObject* read) {
  return handle_end(self, read, "read", "release_read", ovstage_release_read, NULL);
}

/* ---- Groups ------------------------------------------------------------------------------------------------------ */

/* A tombstone has no tensors to retain, with which its index map would stay: it gets a copy, freed with the Group.
 * False: there is no memory for one, and the group has its index map for as long as there is the stage. */
static bool keep_prims(ovstage_read_group_t* tombstone) {
  ovstage_prim_group_t* prims = &tombstone->prims;
  if (!prims->index_map) return true;
  size_t size = prims->count * sizeof *prims->index_map;
  uint32_t* copy = malloc(size);
  if (copy) prims->index_map = memcpy(copy, prims->index_map, size);
  return copy != NULL;
}

static ovstage_api_status_t attempt_fetch_read(void* closure, uint64_t timeout) {
  fetch_call* call = closure;
  ovstage_read_group_t* group = &call->group->raw.read;
  const DLTensor* tensors;
  ovstage_api_status_t status = native.go->fetch_read(call->stage->instance, call->handle, timeout, group, &tensors);
  if (status == OVSTAGE_OK && group->data.tensors) {
    call->held = (keep){tensors, native.go->tensors_block(tensors), NULL};
    native.go->block_retain(call->held.block);
  } else if (status == OVSTAGE_OK) {
    call->group->borrows = !keep_prims(group);
    native.go->tensors_release(tensors);
  }
  return status;
}

static PyObject* stage_fetch_read_next(PyObject* object, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  enum { READ, TIMEOUT, SLOTS };
  static signature sig = {"fetch_read_next", 2, 1, {"read", "timeout"}, {0}};
  static PyObject* class;
  Stage* self = (Stage*)object;
  PyObject* slots[SLOTS];
  fetch_call call = {.stage = self};
  uint64_t timeout;
  if (!sort_arguments(&sig, args, nargs, kwnames, slots) || !guard_handle(slots[READ], "read", &call.handle) ||
      !guard_timeout(slots[TIMEOUT], &timeout) || !package_attribute(&class, "ovstage.groups", "ReadGroup") ||
      !stage_begin(self, "fetch_read_next") || !(call.group = group_new(GROUP_READ, (PyTypeObject*)class, self))) {
    return NULL;
  }
  ovstage_api_status_t status;
  bool answered = wait_in_slices(attempt_fetch_read, &call, timeout, &status);
  return group_fetched(call.group, call.held, answered, status);
}

/*
 * _read_one(query, token, ordinal): the first group of a latest read, which is the only one if it covers the query.
 * None where there is no group, or no read: the long way says why.
 */
static PyObject* stage_read_one(PyObject* object, PyObject* const* args, Py_ssize_t nargs) {
  enum { QUERY, TOKEN, ORDINAL };
  static PyObject* class;
  Stage* self = (Stage*)object;
  uint64_t query, token;
  ovstage_ordinal_range_t range = {0};
  if (!check_argument_count("_read_one", nargs, 3) || !guard_handle(args[QUERY], "query", &query) ||
      !guard_uint64(args[TOKEN], "attribute", &token) || !guard_uint64(args[ORDINAL], "ordinal", &range.end_ordinal) ||
      !package_attribute(&class, "ovstage.groups", "ReadGroup") || !stage_begin(self, "read")) {
    return NULL;
  }
  fetch_call call = {.stage = self};
  if (!(call.group = group_new(GROUP_READ, (PyTypeObject*)class, self))) return NULL;
  ovstage_enqueue_result_t result;
  WITHOUT_GIL(result = ovstage_read_attributes(self->instance, query, &token, 1, range, &call.handle));
  if (result.status != OVSTAGE_OK) {
    Py_DECREF(call.group);
    Py_RETURN_NONE;
  }
  ovstage_release_op(self->instance, result.op_index);
  ovstage_api_status_t status;
  bool answered = wait_in_slices(attempt_fetch_read, &call, UINT64_MAX, &status);
  PyObject* group = group_fetched(call.group, call.held, answered, status);
  handle_drop(self, call.handle, ovstage_release_read);
  if (group || !answered) return group;
  PyErr_Clear();
  Py_RETURN_NONE;
}

static PyObject* stage_release_group(PyObject* object, PyObject* given) {
  Stage* self = (Stage*)object;
  ovstage_read_group_t raw;
  Group* group = PyObject_TypeCheck(given, native.group) ? (Group*)given : NULL;
  if (group && group->kind != GROUP_READ) {
    PyErr_SetString(PyExc_TypeError, "a MapGroup is not released: pass it to unmap_group");
    return NULL;
  }
  if (group)
    raw = group->raw.read;
  else if (!group_raw_of(given, &raw, sizeof raw))
    return NULL;
  if (!stage_begin(self, "release_group") || (group && !group_claim(group))) return NULL;
  ovstage_api_status_t status;
  WITHOUT_GIL(status = ovstage_release_group(self->instance, &raw));
  if (group && status == OVSTAGE_OK)
    group_release_memory(group);
  else if (group)
    group->claimed = false;
  return none_or_raise(status);
}

PyMethodDef stage_read_methods[] = {
    {"_read_one", FAST(stage_read_one), DOC_Stage__read_one},
    {"_read_since", FAST(stage_read_since), DOC_Stage__read_since},
    {"read_attributes", FAST_KEYWORDS(stage_read_attributes), DOC_Stage_read_attributes},
    {"fetch_read_next", FAST_KEYWORDS(stage_fetch_read_next), DOC_Stage_fetch_read_next},
    {"_read_missing", stage_read_missing, METH_O, DOC_Stage__read_missing},
    {"release_read", stage_release_read, METH_O, DOC_Stage_release_read},
    {"release_group", stage_release_group, METH_O, DOC_Stage_release_group},
    {NULL, NULL, 0, NULL},
};
