/*
 * unasked.c - failures that were not asked about: they are counted, logged, and told in a warning.
 */
#include "native.h"

static const char* code_name(int64_t code) {
  static const char* const names[] = {"OK",
                                      "INVALID_ARGUMENT",
                                      "INVALID_HANDLE",
                                      "NOT_FOUND",
                                      "PRIM_NOT_FOUND",
                                      "WRITE_FLOOR_VIOLATION",
                                      "NOT_SUPPORTED",
                                      "QUEUE_FULL",
                                      "END_OF_ITERATION",
                                      "OUT_OF_MEMORY",
                                      "LAYOUT_CHANGED",
                                      "TIMEOUT",
                                      "OP_FAILED",
                                      "OUT_OF_RANGE"};
  return code >= 0 && code < (int64_t)COUNT_OF(names) ? names[code] : "INTERNAL";
}

/* The name of an attribute; NULL without an exception where the number is no token, or the stage has gone. */
static PyObject* token_text(Stage* stage, PyObject* token) {
  uint64_t number = PyLong_AsUnsignedLongLong(token);
  path_dictionary_instance_t* dictionary = stage->alive ? ovstage_get_path_dictionary(stage->instance) : NULL;
  PyErr_Clear(); /* a number that is too large */
  if (!dictionary) return NULL;
  ovx_string_t text;
  ovx_api_result_t result;
  WITHOUT_GIL(result = path_dictionary_get_strings_from_tokens(dictionary, &number, 1, &text));
  if (result.status == OVX_API_SUCCESS) return string_of(text);
  dictionary->vtable->release_error(dictionary->context, result.error);
  return NULL;
}

/* "write_attribute of "v" at ordinal 2" */
static PyObject* call_text(const char* call, PyObject* name, const uint64_t* ordinal) {
  PyObject* about = name ? PyUnicode_FromFormat("%s of \"%.200U\"", call, name) : PyUnicode_FromString(call);
  if (!about || !ordinal) return about;
  PyObject* text = PyUnicode_FromFormat("%U at ordinal %llu", about, (unsigned long long)*ordinal);
  Py_DECREF(about);
  return text;
}

static ovx_string_t view_of(PyObject* text) {
  Py_ssize_t length = 0;
  const char* bytes = text ? PyUnicode_AsUTF8AndSize(text, &length) : NULL;
  return (ovx_string_t){bytes ? bytes : "", (size_t)length};
}

/* `level` 1 is the line that dropped the operation, or what Python function runs for it; 2 is that function's caller.
 */
static bool warn(PyObject* text, uint64_t held_back, Py_ssize_t level) {
  if (!held_back) return PyErr_WarnFormat(unasked_warning, level, "%U", text) == 0;
  return PyErr_WarnFormat(unasked_warning, level, "%U (%llu more were held back)", text,
                          (unsigned long long)held_back) == 0;
}

bool tell_unasked(Stage* stage, const char* call, PyObject* attribute, const uint64_t* ordinal, int64_t code,
                  const char* how, PyObject* reason, Py_ssize_t level) {
  if (native.forked || !stage->instance) return true;
  PyObject* name = attribute && PyLong_Check(attribute) ? token_text(stage, attribute) : Py_XNewRef(attribute);
  PyObject* about = call_text(call, name, ordinal);
  PyObject* text =
      about ? PyUnicode_FromFormat("%U %s and nobody asked why: %s: %U", about, how, code_name(code), reason) : NULL;
  bool good = text;
  if (good) {
    ovstage_go_unasked_t failure = {.struct_size = sizeof failure,
                                    .status = (ovstage_api_status_t)code,
                                    .call = {call, strlen(call)},
                                    .attribute = view_of(name),
                                    .reason = view_of(reason),
                                    .text = view_of(text)};
    uint64_t held_back;
    PyErr_Clear(); /* of texts that are no UTF-8 */
    if (native.go->tell_unasked(stage->instance, &failure, &held_back)) good = warn(text, held_back, level);
  }
  Py_XDECREF(text);
  Py_XDECREF(about);
  Py_XDECREF(name);
  return good;
}

static PyObject* stage_tell_unasked(PyObject* object, PyObject* const* args, Py_ssize_t nargs) {
  enum { CALL, ORDINAL, CODE, REASON, ARGUMENTS };
  Stage* self = (Stage*)object;
  uint64_t ordinal;
  int64_t code;
  ovx_string_t reason;
  if (!check_argument_count("_tell_unasked", nargs, ARGUMENTS) || !guard_string(args[REASON], "reason", &reason))
    return NULL;
  const char* call = PyUnicode_AsUTF8AndSize(args[CALL], NULL);
  if (!call || !guard_int64(args[CODE], "code", &code) ||
      (args[ORDINAL] != Py_None && !guard_uint64(args[ORDINAL], "ordinal", &ordinal))) {
    return NULL;
  }
  bool told =
      tell_unasked(self, call, NULL, args[ORDINAL] == Py_None ? NULL : &ordinal, code, "failed", args[REASON], 2);
  return told ? Py_NewRef(Py_None) : NULL;
}

PyMethodDef stage_unasked_methods[] = {
    {"_tell_unasked", FAST(stage_tell_unasked), DOC_Stage__tell_unasked},
    {NULL, NULL, 0, NULL},
};
