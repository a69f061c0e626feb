/*
 * guard.c - argument guards, by the rules of ovstage/guard.py: integers go through __index__, a wrong type is a
 * TypeError, a number that does not fit a ValueError, and both name the argument.
 */
#include "native.h"

/* ---- One number -------------------------------------------------------------------------------------------------- */

/* `hint` ends the message. */
PyObject* guard_int_or_hint(PyObject* value, const char* name, const char* expected, const char* hint) {
  if (PyLong_CheckExact(value)) return Py_NewRef(value);
  int truth = is_truth(value);
  if (truth < 0 || !check_unmasked(value, name)) return NULL;
  PyObject* number = truth ? NULL : PyNumber_Index(value);
  if (number || (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_TypeError))) return number;
  PyErr_Clear();
  PyObject* text = shown(value);
  if (text) PyErr_Format(PyExc_TypeError, "%s must be %s, got %U%s", name, expected, text, hint);
  Py_XDECREF(text);
  return NULL;
}

PyObject* guard_int(PyObject* value, const char* name, const char* expected) {
  return guard_int_or_hint(value, name, expected, "");
}

static bool refuse_range(PyObject* number, const char* name, const char* wanted) {
  PyErr_Format(PyExc_ValueError, "%s must %s, got %S", name, wanted, number);
  return false;
}

bool unsigned_value(PyObject* number, const char* name, int bits, uint64_t* out) {
  int overflow;
  long long small = PyLong_AsLongLongAndOverflow(number, &overflow);
  if (small == -1 && !overflow && PyErr_Occurred()) return false;
  if (overflow < 0 || (!overflow && small < 0)) return refuse_range(number, name, "be non-negative");
  if (overflow) {
    *out = PyLong_AsUnsignedLongLong(number);
    if (PyErr_Occurred()) {
      PyErr_Clear();
      return refuse_range(number, name, bits == 64 ? "fit in uint64" : "fit in uint32");
    }
  } else {
    *out = (uint64_t)small;
  }
  if (bits < 64 && *out >> bits) return refuse_range(number, name, "fit in uint32");
  return true;
}

static bool signed_value(PyObject* number, const char* name, int bits, int64_t* out) {
  int overflow;
  *out = PyLong_AsLongLongAndOverflow(number, &overflow);
  if (*out == -1 && !overflow && PyErr_Occurred()) return false;
  if (overflow || (bits == 32 && *out != (int32_t)*out)) {
    return refuse_range(number, name, bits == 32 ? "fit in int32" : "fit in int64");
  }
  return true;
}

bool guard_uint64(PyObject* value, const char* name, uint64_t* out) {
  PyObject* number = guard_int(value, name, "an int");
  bool fits = number && unsigned_value(number, name, 64, out);
  Py_XDECREF(number);
  return fits;
}

bool guard_uint32(PyObject* value, const char* name, uint32_t* out) {
  uint64_t wide = 0;
  PyObject* number = guard_int(value, name, "an int");
  bool fits = number && unsigned_value(number, name, 32, &wide);
  Py_XDECREF(number);
  *out = (uint32_t)wide;
  return fits;
}

bool guard_int64(PyObject* value, const char* name, int64_t* out) {
  PyObject* number = guard_int(value, name, "an int");
  bool fits = number && signed_value(number, name, 64, out);
  Py_XDECREF(number);
  return fits;
}

bool guard_int32(PyObject* value, const char* name, int32_t* out) {
  int64_t wide = 0;
  PyObject* number = guard_int(value, name, "an int");
  bool fits = number && signed_value(number, name, 32, &wide);
  Py_XDECREF(number);
  *out = (int32_t)wide;
  return fits;
}

bool guard_timeout(PyObject* value, uint64_t* out) {
  *out = OVSTAGE_TIMEOUT_INFINITE;
  if (!value) return true;
  PyObject* number = guard_int(value, "timeout", "an int, a number of nanoseconds");
  if (!number) return false;
  int overflow;
  long long small = PyLong_AsLongLongAndOverflow(number, &overflow);
  bool fits;
  if (overflow < 0 || (!overflow && small < 0)) {
    PyErr_Format(PyExc_ValueError,
                 "timeout must be non-negative, got %S; pass TIMEOUT_INFINITE to wait without a limit", number);
    fits = false;
  } else {
    fits = unsigned_value(number, "timeout", 64, out);
  }
  Py_DECREF(number);
  return fits;
}

/* ---- Names and modes --------------------------------------------------------------------------------------------- */

bool guard_string(PyObject* value, const char* name, ovx_string_t* out) {
  if (!PyUnicode_Check(value)) {
    PyObject* text = shown(value);
    if (text) PyErr_Format(PyExc_TypeError, "expected str for %s, got %U", name, text);
    Py_XDECREF(text);
    return false;
  }
  Py_ssize_t length = 0;
  out->ptr = PyUnicode_AsUTF8AndSize(value, &length);
  out->length = (size_t)length;
  if (!out->ptr && PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) {
    PyErr_Clear();
    PyErr_Format(PyExc_ValueError, "%s must be text that UTF-8 can express, got %A, which has a lone surrogate", name,
                 value);
  }
  return out->ptr != NULL;
}

bool guard_attribute(PyObject* value, const char* name, ovx_string_or_token_t* out) {
  *out = (ovx_string_or_token_t){0};
  if (PyUnicode_Check(value)) return guard_string(value, name, &out->string);
  PyObject* number = guard_int(value, name, "an int (a token) or a str (a name)");
  bool fits = number && unsigned_value(number, name, 64, &out->token);
  Py_XDECREF(number);
  return fits;
}

/* A member of an enum, which strings are not: the hint names the one that was meant. */
static PyObject* member_or_hint(PyObject* value, const char* name, const char* class) {
  if (!PyUnicode_Check(value)) return guard_int(value, name, "an int");
  PyObject* module = PyImport_ImportModule("ovstage.enums");
  PyObject* members = module ? PyObject_GetAttrString(module, class) : NULL;
  PyObject* upper = members ? PyObject_CallMethod(value, "upper", NULL) : NULL;
  PyObject* member = upper ? PyObject_GetAttr(members, upper) : NULL;
  if (upper && !member) PyErr_Clear();
  if (upper && member)
    PyErr_Format(PyExc_TypeError, "%s must be an int, got %R (str); write %s.%U", name, value, class, upper);
  else if (upper)
    PyErr_Format(PyExc_TypeError, "%s must be an int, got %R (str); write a member of %s", name, value, class);
  Py_XDECREF(member);
  Py_XDECREF(upper);
  Py_XDECREF(members);
  Py_XDECREF(module);
  return NULL;
}

/* A member of an enum whose values are 0 .. highest. */
static bool guard_member(PyObject* value, const char* name, const char* class, const char* members, int highest,
                         int* out) {
  PyObject* number = member_or_hint(value, name, class);
  if (!number) return false;
  int overflow;
  long long member = PyLong_AsLongLongAndOverflow(number, &overflow);
  bool declared = !overflow && member >= 0 && member <= highest;
  if (!declared) PyErr_Format(PyExc_ValueError, "%s must be a valid %s (%s), got %S", name, class, members, number);
  Py_DECREF(number);
  *out = (int)member;
  return declared;
}

bool guard_open_member(PyObject* value, const char* name, const char* class, int32_t* out) {
  int64_t wide = 0;
  PyObject* number = member_or_hint(value, name, class);
  bool fits = number && signed_value(number, name, 32, &wide);
  Py_XDECREF(number);
  *out = (int32_t)wide;
  return fits;
}

bool guard_prim_mode(PyObject* value, ovstage_prim_mode_t* out) {
  int mode = OVSTAGE_PRIM_MODE_UPSERT;
  bool declared = !value || guard_member(value, "prim_mode", "PrimMode", "UPSERT=0, INSERT=1, UPDATE=2, REQUIRE=3",
                                         (int)OVSTAGE_GO_PRIM_MODE_REQUIRE, &mode);
  *out = (ovstage_prim_mode_t)mode;
  return declared;
}

bool guard_scope(PyObject* value, ovstage_scope_t* out) {
  int scope = OVSTAGE_SCOPE_ALL;
  bool declared =
      !value || guard_member(value, "scope", "Scope", "ALL=0, INCLUDE=1, EXCLUDE=2", OVSTAGE_SCOPE_EXCLUDE, &scope);
  *out = (ovstage_scope_t)scope;
  return declared;
}

/* ---- Lists ------------------------------------------------------------------------------------------------------- */

PyObject* guard_sequence(PyObject* values, const char* name, const char* expected) {
  if (is_text(values)) {
    PyErr_Format(PyExc_TypeError, "%s must be %s, got the single string %R; write [%R]", name, expected, values,
                 values);
    return NULL;
  }
  if (!check_order(values, name, expected)) return NULL;
  PyObject* tuple = PySequence_Tuple(values);
  if (tuple || !PyErr_ExceptionMatches(PyExc_TypeError)) return tuple;
  PyErr_Clear();
  PyObject* text = shown(values);
  if (text) PyErr_Format(PyExc_TypeError, "%s must be %s, got %U", name, expected, text);
  Py_XDECREF(text);
  return NULL;
}

bool texts_open(texts* out, PyObject* values, const char* name) {
  memset(out, 0, sizeof *out);
  out->tuple = guard_sequence(values, name, "a list of strings");
  if (!out->tuple) return false;
  out->count = (size_t)PyTuple_Size(out->tuple);
  out->data = malloc((out->count ? out->count : 1) * sizeof *out->data);
  bool good = out->data != NULL;
  if (!good) PyErr_NoMemory();
  for (size_t i = 0; good && i < out->count; i++) {
    PyObject* item = PyTuple_GetItem(out->tuple, (Py_ssize_t)i);
    good = guard_string(item, name, &out->data[i]);
    if (!good) { /* as above */
      char where[96];
      PyOS_snprintf(where, sizeof where, "%s[%zu]", name, i);
      PyErr_Clear();
      guard_string(item, where, &out->data[i]);
    }
  }
  if (!good) texts_close(out);
  return good;
}

void texts_close(texts* list) {
  free(list->data);
  list->data = NULL;
  Py_CLEAR(list->tuple);
}

bool attribute_names_open(attribute_names* out, PyObject* values, const char* name) {
  memset(out, 0, sizeof *out);
  out->tuple = guard_sequence(values, name, "a list of attributes"); /* keeps the bytes of names */
  if (!out->tuple) return false;
  out->count = (size_t)PyTuple_Size(out->tuple);
  out->data = calloc(out->count + 1, sizeof *out->data);
  bool good = out->data != NULL;
  if (!good) PyErr_NoMemory();
  for (size_t i = 0; good && i < out->count; i++) {
    char where[96];
    PyOS_snprintf(where, sizeof where, "%s[%zu]", name, i);
    good = guard_attribute(PyTuple_GetItem(out->tuple, (Py_ssize_t)i), where, &out->data[i]);
  }
  if (!good) attribute_names_close(out);
  return good;
}

void attribute_names_close(attribute_names* list) {
  free(list->data);
  Py_CLEAR(list->tuple);
  list->data = NULL;
  list->count = 0;
}
