/*
 * floor.c - Stage: write floors, and the questions about ordinals.
 */
#include "native.h"

static PyObject* stage_advance_write_floor(PyObject* object, PyObject* const* args, Py_ssize_t nargs,
                                           PyObject* kwnames) {
  enum { ORDINAL, SCOPE, ATTRIBUTES, SLOTS };
  static signature sig = {"advance_write_floor", 3, 1, {"ordinal", "scope", "attributes"}, {0}};
  Stage* self = (Stage*)object;
  PyObject* slots[SLOTS];
  ovstage_write_floor_desc_t desc = {0};
  words tokens = {0};
  if (!sort_arguments(&sig, args, nargs, kwnames, slots) || !guard_uint64(slots[ORDINAL], "ordinal", &desc.ordinal) ||
      !guard_scope(slots[SCOPE], &desc.scope) ||
      (is_given(slots[ATTRIBUTES]) &&
       !tokens_open(&tokens, self, slots[ATTRIBUTES], "attributes", "advance_write_floor", NULL))) {
    return NULL;
  }
  PyObject* answer = NULL;
  if (stage_begin(self, "advance_write_floor")) {
    desc.attributes = tokens.count ? tokens.data : NULL;
    desc.attribute_count = tokens.count;
    ovstage_enqueue_result_t result;
    WITHOUT_GIL(result = ovstage_advance_write_floor(self->instance, &desc));
    answer = operation_named(operation_new(self, result, NULL), "advance_write_floor", NULL, &desc.ordinal);
  }
  words_close(&tokens);
  return answer;
}

static PyObject* stage_get_attribute_write_floor(PyObject* object, PyObject* const* args, Py_ssize_t nargs,
                                                 PyObject* kwnames) {
  static signature sig = {"get_attribute_write_floor", 1, 0, {"attribute"}, {0}};
  Stage* self = (Stage*)object;
  PyObject* given;
  ovx_string_or_token_t name = {0};
  if (!sort_arguments(&sig, args, nargs, kwnames, &given) ||
      (is_given(given) && !guard_attribute(given, "attribute", &name))) {
    return NULL;
  }
  PyObject* made = handle_reserve(&ordinal_query_class);
  if (!made || !stage_begin(self, "get_attribute_write_floor")) {
    Py_XDECREF(made);
    return NULL;
  }
  ovstage_enqueue_result_t result;
  uint64_t handle = 0;
  WITHOUT_GIL(result = ovstage_get_attribute_write_floor(self->instance, name, &handle));
  return handle_named(handle_open(made, self, result, handle), "get_attribute_write_floor", given, NULL);
}

static PyObject* stage_get_oldest_preserved_ordinal(PyObject* object, PyObject* unused) {
  (void)unused;
  Stage* self = (Stage*)object;
  PyObject* made = handle_reserve(&ordinal_query_class);
  if (!made || !stage_begin(self, "get_oldest_preserved_ordinal")) {
    Py_XDECREF(made);
    return NULL;
  }
  ovstage_enqueue_result_t result;
  uint64_t handle = 0;
  WITHOUT_GIL(result = ovstage_get_oldest_preserved_ordinal(self->instance, &handle));
  return handle_named(handle_open(made, self, result, handle), "get_oldest_preserved_ordinal", NULL, NULL);
}

typedef struct {
  ovstage_instance_t* instance;
  uint64_t handle, ordinal;
} ordinal_call;

static ovstage_api_status_t attempt_ordinal(void* closure, uint64_t timeout) {
  ordinal_call* call = closure;
  return ovstage_fetch_ordinal(call->instance, call->handle, timeout, &call->ordinal);
}

static PyObject* stage_fetch_ordinal(PyObject* object, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  enum { ORDINAL_QUERY, TIMEOUT, SLOTS };
  static signature sig = {"fetch_ordinal", 2, 1, {"ordinal_query", "timeout"}, {0}};
  Stage* self = (Stage*)object;
  PyObject* slots[SLOTS];
  ordinal_call call = {0};
  uint64_t timeout;
  if (!sort_arguments(&sig, args, nargs, kwnames, slots) ||
      !guard_handle(slots[ORDINAL_QUERY], "ordinal_query", &call.handle) || !guard_timeout(slots[TIMEOUT], &timeout) ||
      !stage_begin(self, "fetch_ordinal")) {
    return NULL;
  }
  call.instance = self->instance;
  ovstage_api_status_t status;
  if (!wait_in_slices(attempt_ordinal, &call, timeout, &status)) return NULL;
  return status == OVSTAGE_OK ? PyLong_FromUnsignedLongLong(call.ordinal) : raise_library_error(status);
}

/* _floor(attribute): the answer alone. */
static PyObject* stage_floor(PyObject* object, PyObject* attribute) {
  Stage* self = (Stage*)object;
  ovx_string_or_token_t name = {0};
  if (!guard_attribute(attribute, "attribute", &name) || !stage_begin(self, "get_attribute_write_floor")) return NULL;
  ordinal_call call = {.instance = self->instance};
  ovstage_enqueue_result_t result;
  WITHOUT_GIL(result = ovstage_get_attribute_write_floor(self->instance, name, &call.handle));
  if (result.status != OVSTAGE_OK) return raise_library_error(result.status);
  ovstage_release_op(self->instance, result.op_index);
  ovstage_api_status_t status;
  bool answered = wait_in_slices(attempt_ordinal, &call, UINT64_MAX, &status);
  handle_drop(self, call.handle, ovstage_release_ordinal_query);
  if (!answered) return NULL;
  return status == OVSTAGE_OK ? PyLong_FromUnsignedLongLong(call.ordinal) : raise_library_error(status);
}

static bool drop_ordinal_query(Stage* stage, uint64_t number) {
  return handle_drop(stage, number, ovstage_release_ordinal_query);
}

handle_class ordinal_query_class = {.name = "OrdinalQuery", .drop = drop_ordinal_query};

static PyObject* stage_release_ordinal_query(PyObject* self, PyObject* query) {
  return handle_end(self, query, "ordinal_query", "release_ordinal_query", ovstage_release_ordinal_query, NULL);
}

typedef struct {
  ovstage_instance_t* instance;
  const ovx_string_or_token_t* attributes;
  size_t count;
  uint64_t ordinal;
} floor_call;

static ovstage_api_status_t attempt_floor(void* closure, uint64_t timeout) {
  floor_call* call = closure;
  return native.go->wait_floor(call->instance, call->attributes, call->count, call->ordinal, timeout);
}

/* _wait_floor(ordinal, attributes, timeout): the attributes are tokens, none of them stands for the global floor. */
static PyObject* stage_wait_floor(PyObject* object, PyObject* const* args, Py_ssize_t nargs) {
  enum { ORDINAL, ATTRIBUTES, TIMEOUT };
  Stage* self = (Stage*)object;
  floor_call call = {0};
  uint64_t timeout;
  words tokens = {0};
  if (!check_argument_count("_wait_floor", nargs, 3) || !guard_uint64(args[ORDINAL], "ordinal", &call.ordinal) ||
      !guard_timeout(args[TIMEOUT], &timeout) ||
      !tokens_open(&tokens, self, args[ATTRIBUTES], "attributes", "wait_floor", NULL)) {
    return NULL;
  }
  ovx_string_or_token_t* attributes = calloc(tokens.count + 1, sizeof *attributes);
  for (size_t i = 0; attributes && i < tokens.count; i++) attributes[i].token = ((const uint64_t*)tokens.data)[i];
  PyObject* answer = NULL;
  if (!attributes) {
    PyErr_NoMemory();
  } else if (stage_begin(self, "wait_floor")) {
    call.instance = self->instance;
    call.attributes = attributes;
    call.count = tokens.count;
    ovstage_api_status_t status;
    if (wait_in_slices(attempt_floor, &call, timeout, &status)) answer = none_or_raise(status);
  }
  free(attributes);
  words_close(&tokens);
  return answer;
}

typedef struct {
  ovstage_instance_t* instance;
  uint64_t seen, moves;
} moves_call;

static ovstage_api_status_t attempt_moves(void* closure, uint64_t timeout) {
  moves_call* call = closure;
  return native.go->floor_moves(call->instance, call->seen, timeout, &call->moves);
}

/* _floor_moves(seen, timeout): the number after the wait, the one that was seen when it took too long. */
static PyObject* stage_floor_moves(PyObject* object, PyObject* const* args, Py_ssize_t nargs) {
  enum { SEEN, TIMEOUT };
  Stage* self = (Stage*)object;
  moves_call call = {0};
  uint64_t timeout;
  if (!check_argument_count("_floor_moves", nargs, 2) || !guard_uint64(args[SEEN], "seen", &call.seen) ||
      !guard_timeout(args[TIMEOUT], &timeout) || !stage_begin(self, "changes")) {
    return NULL;
  }
  call.instance = self->instance;
  ovstage_api_status_t status;
  if (!wait_in_slices(attempt_moves, &call, timeout, &status)) return NULL;
  if (status != OVSTAGE_OK && status != OVSTAGE_ERROR_TIMEOUT) return raise_library_error(status);
  return PyLong_FromUnsignedLongLong(call.moves);
}

PyMethodDef stage_floor_methods[] = {
    {"_floor", stage_floor, METH_O, DOC_Stage__floor},
    {"_floor_moves", FAST(stage_floor_moves), DOC_Stage__floor_moves},
    {"_wait_floor", FAST(stage_wait_floor), DOC_Stage__wait_floor},
    {"advance_write_floor", FAST_KEYWORDS(stage_advance_write_floor), DOC_Stage_advance_write_floor},
    {"get_attribute_write_floor", FAST_KEYWORDS(stage_get_attribute_write_floor), DOC_Stage_get_attribute_write_floor},
    {"get_oldest_preserved_ordinal", stage_get_oldest_preserved_ordinal, METH_NOARGS,
     DOC_Stage_get_oldest_preserved_ordinal},
    {"fetch_ordinal", FAST_KEYWORDS(stage_fetch_ordinal), DOC_Stage_fetch_ordinal},
    {"release_ordinal_query", stage_release_ordinal_query, METH_O, DOC_Stage_release_ordinal_query},
    {NULL, NULL, 0, NULL},
};
