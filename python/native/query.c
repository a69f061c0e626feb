/*
 * query.c - Stage: queries, over a path list, by a filter, and of some prims of another.
 */
#include "native.h"

static bool drop_query(Stage* stage, uint64_t number) { return handle_drop(stage, number, ovstage_release_query); }

handle_class query_class = {.name = "Query", .drop = drop_query},
             part_class = {.name = "Part", .drop = drop_query, .quiet = true};

/* ---- Path lists -------------------------------------------------------------------------------------------------- */

static PyObject* stage_query_path_list(PyObject* object, PyObject* path_list) {
  Stage* self = (Stage*)object;
  uint64_t list, handle = 0;
  PyObject* made = handle_reserve(&query_class);
  if (!made || !guard_path_list(path_list, &list) || !stage_begin(self, "query_from_path_list") ||
      PyObject_SetAttr(made, native.name.path_list, path_list) < 0) {
    Py_XDECREF(made);
    return NULL;
  }
  ovstage_api_status_t status;
  WITHOUT_GIL(status = ovstage_query_from_path_list(self->instance, list, &handle));
  if (status == OVSTAGE_OK) return handle_open_now(made, self, handle);
  Py_DECREF(made);
  return raise_library_error(status);
}

/* ---- Filters ----------------------------------------------------------------------------------------------------- */

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

static PyObject* stage_query(PyObject* object, PyObject* const* args, Py_ssize_t nargs) {
  enum { FILTER, ATTRIBUTES, ARGUMENTS };
  Stage* self = (Stage*)object;
  level* levels = NULL;
  ovstage_go_condition_t filter = {.match = OVSTAGE_GO_MATCH_ALL};
  words tokens = {0};
  PyObject *made = NULL, *answer = NULL, *trials = NULL;
  if (check_argument_count("_query", nargs, ARGUMENTS) &&
      (args[FILTER] == Py_None || filter_open(&levels, &filter, args[FILTER])) &&
      (args[ATTRIBUTES] == Py_None || tokens_open(&tokens, self, args[ATTRIBUTES], "attrs", "query", &trials)) &&
      (made = handle_reserve(&query_class)) && stage_begin(self, "query")) {
    ovstage_enqueue_result_t result;
    uint64_t handle = 0;
    if (trials) handle_keep_trials(made, trials);
    WITHOUT_GIL(
        result = native.go->query(self->instance, &filter, tokens.count ? tokens.data : NULL, tokens.count, &handle));
    answer = handle_named(handle_open(made, self, result, handle), "query", NULL, NULL);
    made = NULL;
  }
  Py_XDECREF(made);
  Py_XDECREF(trials);
  words_close(&tokens);
  filter_close(levels);
  return answer;
}

/* ---- Parts ------------------------------------------------------------------------------------------------------- */

/* A mask of another length than the query is a wrong argument, which the engine finds out. */
static PyObject* raise_misfit(ovstage_api_status_t status) {
  if (status != OVSTAGE_ERROR_INVALID_ARGUMENT) return raise_library_error(status);
  PyObject* text = last_library_text(status);
  if (text) PyErr_SetObject(PyExc_ValueError, text);
  Py_XDECREF(text);
  return NULL;
}

static PyObject* stage_query_where(PyObject* object, PyObject* const* args, Py_ssize_t nargs) {
  enum { QUERY, MASK, COUNT, ARGUMENTS };
  Stage* self = (Stage*)object;
  words mask = {0};
  uint64_t query, part = 0;
  uint32_t count;
  PyObject *made = NULL, *answer = NULL;
  if (check_argument_count("_query_where", nargs, ARGUMENTS) && guard_handle(args[QUERY], "query", &query) &&
      counted_mask_open(&mask, args[MASK], args[COUNT], &count) && (made = handle_reserve(&part_class)) &&
      stage_begin(self, "where")) {
    ovstage_api_status_t status;
    WITHOUT_GIL(status = native.go->query_where(self->instance, query, mask.data, count, &part));
    answer = status == OVSTAGE_OK ? Py_NewRef(handle_open_now(made, self, part)) : raise_misfit(status);
  }
  Py_XDECREF(made);
  words_close(&mask);
  return answer;
}

/* ---- Answers ----------------------------------------------------------------------------------------------------- */

static PyObject* stage_refresh_query(PyObject* object, PyObject* query) {
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

static PyObject* stage_query_result(PyObject* object, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  enum { QUERY, TIMEOUT, SLOTS };
  static signature sig = {"_query_result", 2, 1, {"query", "timeout"}, {0}};
  Stage* self = (Stage*)object;
  PyObject* slots[SLOTS];
  query_call call = {0};
  uint64_t timeout;
  if (!sort_arguments(&sig, args, nargs, kwnames, slots) || !guard_handle(slots[QUERY], "query", &call.handle) ||
      !guard_timeout(slots[TIMEOUT], &timeout) || !stage_begin(self, "fetch_query_result")) {
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
static PyObject* stage_release_query(PyObject* self, PyObject* query) {
  PyObject* list = PyObject_TypeCheck(query, native.handle) ? PyObject_GetAttr(query, native.name.path_list) : NULL;
  if (!list) PyErr_Clear();
  return handle_end(self, query, "query", "release_query", ovstage_release_query, list);
}

PyMethodDef stage_query_methods[] = {
    {"_query_path_list", stage_query_path_list, METH_O, DOC_Stage__query_path_list},
    {"_query", FAST(stage_query), DOC_Stage__query},
    {"_query_where", FAST(stage_query_where), DOC_Stage__query_where},
    {"_refresh_query", stage_refresh_query, METH_O, DOC_Stage__refresh_query},
    {"_query_result", FAST_KEYWORDS(stage_query_result), DOC_Stage__query_result},
    {"release_query", stage_release_query, METH_O, DOC_Stage_release_query},
    {NULL, NULL, 0, NULL},
};
