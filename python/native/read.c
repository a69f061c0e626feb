/*
 * read.c - Stage: queries, and reads with their groups.
 */
#include "native.h"

/* ---- Queries ----------------------------------------------------------------------------------------------------- */

/* A query over a path list, as a Query that keeps the list, or as a number: the attribute `handle` of a given object.
 */
static PyObject* query_path_list(Stage* self, PyObject* path_list, PyObject* owner) {
  uint64_t list, handle = 0;
  PyObject* made = owner ? Py_NewRef(owner) : handle_reserve(&query_class);
  if (!made || !guard_path_list(path_list, &list) || !stage_begin(self, "query_from_path_list") ||
      (!owner && PyObject_SetAttr(made, native.name.path_list, path_list) < 0)) {
    Py_XDECREF(made);
    return NULL;
  }
  ovstage_api_status_t status;
  WITHOUT_GIL(status = ovstage_query_from_path_list(self->instance, list, &handle));
  if (status == OVSTAGE_OK && !owner) {
    handle_open_now(made, self, handle);
    return made;
  }
  PyObject* number = status == OVSTAGE_OK ? PyLong_FromUnsignedLongLong(handle) : raise_library_error(status);
  bool good = number && PyObject_SetAttrString(owner, "handle", number) == 0;
  if (handle && !good) query_class.drop(self, handle);
  Py_XDECREF(number);
  if (good) return made;
  Py_DECREF(made);
  return NULL;
}

PyObject* stage_query_path_list(PyObject* object, PyObject* path_list) {
  return query_path_list((Stage*)object, path_list, NULL);
}

PyObject* stage_name_query(PyObject* object, PyObject* const* args, Py_ssize_t nargs) {
  return check_argument_count("_name_query", nargs, 2, 2) ? query_path_list((Stage*)object, args[0], args[1]) : NULL;
}

/* The conditions that lie directly below another one. */
typedef struct level {
  struct level* next; /* of the same filter, in no order */
  PyObject* tuple;    /* of the caller's conditions: keeps the bytes of their strings */
  size_t count;
  ovstage_go_condition_t* conditions;
  texts* values; /* of each that is a predicate */
} level;

static void filter_close(level* levels) {
  while (levels) {
    level* self = levels;
    levels = self->next;
    for (size_t i = 0; self->values && i < self->count; i++) texts_close(&self->values[i]);
    free(self->values);
    free(self->conditions);
    Py_DECREF(self->tuple);
    free(self);
  }
}

static bool predicate_open(ovstage_predicate_t* out, texts* values, PyObject* tuple) {
  PyObject *attribute, *op, *list;
  int32_t number;
  if (!PyArg_ParseTuple(tuple, "OOO:predicate", &attribute, &op, &list) ||
      !guard_attribute(attribute, "attribute", &out->attribute) || !guard_int32(op, "op", &number) ||
      !texts_open(values, list, "values")) {
    return false;
  }
  out->op = (ovstage_filter_op_t)number;
  out->values = values->count ? values->data : NULL;
  out->value_count = values->count;
  return true;
}

/* A filter is a pair of a match and a list of conditions, a predicate has an attribute, an operator and values. What
 * was opened is added to levels, also when it fails. */
static bool filter_open(level** levels, ovstage_go_condition_t* out, PyObject* pair) {
  PyObject* list;
  int match;
  if (!PyArg_ParseTuple(pair, "iO:filter", &match, &list)) return false;
  PyObject* tuple = guard_sequence(list, "predicates", "a list of Predicates");
  if (!tuple) return false;
  level* self = calloc(1, sizeof *self);
  if (!self) {
    Py_DECREF(tuple);
    return PyErr_NoMemory() != NULL;
  }
  *self = (level){.next = *levels, .tuple = tuple, .count = (size_t)PyTuple_Size(tuple)};
  *levels = self;
  self->conditions = calloc(self->count + 1, sizeof *self->conditions);
  self->values = calloc(self->count + 1, sizeof *self->values);
  if (!self->conditions || !self->values) return PyErr_NoMemory() != NULL;
  *out = (ovstage_go_condition_t){
      .match = (ovstage_go_match_t)match, .conditions = self->conditions, .count = self->count};
  if (Py_EnterRecursiveCall(" in a filter")) return false;
  bool good = true;
  for (size_t i = 0; good && i < self->count; i++) {
    PyObject* item = PyTuple_GetItem(tuple, (Py_ssize_t)i);
    if (PyTuple_Check(item) && PyTuple_Size(item) == 2)
      good = filter_open(levels, &self->conditions[i], item);
    else
      good = predicate_open(&self->conditions[i].predicate, &self->values[i], item);
  }
  Py_LeaveRecursiveCall();
  return good;
}

PyObject* stage_query(PyObject* object, PyObject* const* args, Py_ssize_t nargs) {
  Stage* self = (Stage*)object;
  level* levels = NULL;
  ovstage_go_condition_t filter = {.match = OVSTAGE_GO_MATCH_ALL};
  words tokens = {0};
  PyObject *made = NULL, *answer = NULL;
  if (check_argument_count("_query", nargs, 2, 2) && (args[0] == Py_None || filter_open(&levels, &filter, args[0])) &&
      (args[1] == Py_None || tokens_open(&tokens, self, args[1], "attrs", "query", NULL)) &&
      (made = handle_reserve(&query_class)) && stage_begin(self, "query")) {
    ovstage_enqueue_result_t result;
    uint64_t handle = 0;
    WITHOUT_GIL(
        result = native.go->query(self->instance, &filter, tokens.count ? tokens.data : NULL, tokens.count, &handle));
    answer = handle_named(handle_open(made, self, result, handle), "query", NULL, NULL);
    made = NULL;
  }
  Py_XDECREF(made);
  words_close(&tokens);
  filter_close(levels);
  return answer;
}

/* A mask of another length than the query is a wrong argument, which the engine finds out. */
static PyObject* raise_misfit(ovstage_api_status_t status) {
  if (status != OVSTAGE_ERROR_INVALID_ARGUMENT) return raise_library_error(status);
  PyObject* text = last_library_text(status);
  if (text) PyErr_SetObject(PyExc_ValueError, text);
  Py_XDECREF(text);
  return NULL;
}

PyObject* stage_query_where(PyObject* object, PyObject* const* args, Py_ssize_t nargs) {
  Stage* self = (Stage*)object;
  words mask = {0};
  uint64_t query, part = 0;
  uint32_t count;
  PyObject *made = NULL, *answer = NULL;
  if (check_argument_count("_query_where", nargs, 3, 3) && guard_handle(args[0], "query", &query) &&
      counted_mask_open(&mask, args[1], args[2], &count) && (made = handle_reserve(&part_class)) &&
      stage_begin(self, "where")) {
    ovstage_api_status_t status;
    WITHOUT_GIL(status = native.go->query_where(self->instance, query, mask.data, count, &part));
    answer = status == OVSTAGE_OK ? Py_NewRef(handle_open_now(made, self, part)) : raise_misfit(status);
  }
  Py_XDECREF(made);
  words_close(&mask);
  return answer;
}

PyObject* stage_refresh_query(PyObject* object, PyObject* query) {
  Stage* self = (Stage*)object;
  uint64_t handle;
  if (!guard_handle(query, "query", &handle) || !stage_begin(self, "refresh_query")) return NULL;
  ovstage_enqueue_result_t result;
  WITHOUT_GIL(result = native.go->refresh_query(self->instance, handle));
  return operation_named(operation_new(self, result, NULL), "refresh_query", NULL, NULL);
}

typedef struct {
  ovstage_instance_t* instance;
  uint64_t handle;
  ovstage_query_result_t result;
} query_call;

static ovstage_api_status_t attempt_query(void* closure, uint64_t timeout) {
  query_call* call = closure;
  return ovstage_fetch_query_result(call->instance, call->handle, timeout, &call->result);
}

PyObject* stage_query_result(PyObject* object, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  static signature sig = {"_query_result", 2, 1, {"query", "timeout"}, {0}};
  Stage* self = (Stage*)object;
  PyObject* slots[2];
  query_call call = {0};
  uint64_t timeout;
  if (!sort_arguments(&sig, args, nargs, kwnames, slots) || !guard_handle(slots[0], "query", &call.handle) ||
      !guard_timeout(slots[1], &timeout) || !stage_begin(self, "fetch_query_result")) {
    return NULL;
  }
  call.instance = self->instance;
  ovstage_api_status_t status;
  if (!wait_in_slices(attempt_query, &call, timeout, &status)) return NULL;
  if (status != OVSTAGE_OK) return raise_library_error(status);
  PyObject* tokens = list_of_uint64s(call.result.attributes, call.result.attribute_count);
  WITHOUT_GIL(ovstage_release_query_result(self->instance, &call.result));
  return Py_BuildValue("(NKK)", tokens, (unsigned long long)call.result.total_prim_count,
                       (unsigned long long)call.result.all_handle);
}

/* The operation keeps the path list that the query was made from, as the query does. */
PyObject* stage_release_query(PyObject* self, PyObject* query) {
  PyObject* list = PyObject_TypeCheck(query, native.handle) ? PyObject_GetAttr(query, native.name.path_list) : NULL;
  if (!list) PyErr_Clear();
  return handle_end(self, query, "query", "release_query", ovstage_release_query, list);
}

/* ---- Reads ------------------------------------------------------------------------------------------------------- */

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

PyObject* stage_read_attributes(PyObject* object, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  static signature sig = {"read_attributes", 3, 3, {"query", "attrs", "ordinal_range"}, {0}};
  Stage* self = (Stage*)object;
  PyObject* slots[3];
  uint64_t query;
  words tokens;
  ovstage_ordinal_range_t range;
  PyObject* trials = PyList_New(0);
  if (!trials || !sort_arguments(&sig, args, nargs, kwnames, slots) || !guard_range(slots[2], &range) ||
      !tokens_open(&tokens, self, slots[1], "attrs", "read_attributes", trials)) {
    Py_XDECREF(trials);
    return NULL;
  }
  PyObject *made = NULL, *answer = NULL;
  if (!tokens.count) {
    PyErr_SetString(PyExc_ValueError, "attrs must not be empty: give the attributes to read, by name or token");
  } else if (guard_handle(slots[0], "query", &query) && (made = handle_reserve(&read_class)) &&
             stage_begin(self, "read_attributes")) {
    ovstage_enqueue_result_t result;
    uint64_t handle = 0;
    if (PyList_Size(trials)) handle_keep_trials(made, trials);
    WITHOUT_GIL(result = ovstage_read_attributes(self->instance, query, tokens.data, tokens.count, range, &handle));
    answer = handle_named(handle_open(made, self, result, handle), "read_attributes", NULL, &range.end_ordinal);
    made = NULL;
  }
  Py_XDECREF(made);
  words_close(&tokens);
  Py_DECREF(trials);
  return answer;
}

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

PyObject* stage_fetch_read_next(PyObject* object, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  static signature sig = {"fetch_read_next", 2, 1, {"read", "timeout"}, {0}};
  static PyObject* class;
  Stage* self = (Stage*)object;
  PyObject* slots[2];
  fetch_call call = {.stage = self};
  uint64_t timeout;
  if (!sort_arguments(&sig, args, nargs, kwnames, slots) || !guard_handle(slots[0], "read", &call.handle) ||
      !guard_timeout(slots[1], &timeout) || !package_attribute(&class, "ovstage.groups", "ReadGroup") ||
      !stage_begin(self, "fetch_read_next") || !(call.group = group_new(GROUP_READ, (PyTypeObject*)class, self))) {
    return NULL;
  }
  ovstage_api_status_t status;
  bool answered = wait_in_slices(attempt_fetch_read, &call, timeout, &status);
  return group_fetched(call.group, call.held, answered, status);
}

PyObject* stage_read_missing(PyObject* object, PyObject* read) {
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

PyObject* stage_release_read(PyObject* self, PyObject* read) {
  return handle_end(self, read, "read", "release_read", ovstage_release_read, NULL);
}

bool check_group_class(PyObject* class) {
  if (PyType_Check(class) && PyType_IsSubtype((PyTypeObject*)class, native.group)) return true;
  PyErr_Format(PyExc_TypeError, "cls must be Group or a subclass of it, got %R", class);
  return false;
}

PyObject* stage_release_group(PyObject* object, PyObject* given) {
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
    group_let_go(group);
  else if (group)
    group->claimed = false;
  return none_or_raise(status);
}
