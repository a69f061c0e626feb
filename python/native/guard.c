/*
 * guard.c - argument guards, by the rules of ovstage/guard.py: integers go through __index__, a wrong type is a
 * TypeError, a number that does not fit a ValueError, and both name the argument.
 */
#include "native.h"

/* ---- One number -------------------------------------------------------------------------------------------------- */

/* A Python int, or NULL with a TypeError. `expected` completes "<name> must be ...". */
static PyObject* as_int(PyObject* value, const char* name, const char* expected) {
  if (PyLong_Check(value)) return Py_NewRef(value);
  PyObject* number = PyNumber_Index(value);
  if (number || !PyErr_ExceptionMatches(PyExc_TypeError)) return number;
  PyErr_Clear();
  PyObject* text = shown(value);
  if (text) PyErr_Format(PyExc_TypeError, "%s must be %s, got %U", name, expected, text);
  Py_XDECREF(text);
  return NULL;
}

static bool refuse_range(PyObject* number, const char* name, const char* wanted) {
  PyErr_Format(PyExc_ValueError, "%s must %s, got %S", name, wanted, number);
  return false;
}

/* 0 .. 2**bits - 1 */
static bool unsigned_value(PyObject* number, const char* name, int bits, uint64_t* out) {
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
  PyObject* number = as_int(value, name, "an int");
  bool fits = number && unsigned_value(number, name, 64, out);
  Py_XDECREF(number);
  return fits;
}

bool guard_uint32(PyObject* value, const char* name, uint32_t* out) {
  uint64_t wide = 0;
  PyObject* number = as_int(value, name, "an int");
  bool fits = number && unsigned_value(number, name, 32, &wide);
  Py_XDECREF(number);
  *out = (uint32_t)wide;
  return fits;
}

bool guard_int64(PyObject* value, const char* name, int64_t* out) {
  PyObject* number = as_int(value, name, "an int");
  bool fits = number && signed_value(number, name, 64, out);
  Py_XDECREF(number);
  return fits;
}

bool guard_int32(PyObject* value, const char* name, int32_t* out) {
  int64_t wide = 0;
  PyObject* number = as_int(value, name, "an int");
  bool fits = number && signed_value(number, name, 32, &wide);
  Py_XDECREF(number);
  *out = (int32_t)wide;
  return fits;
}

bool guard_timeout(PyObject* value, uint64_t* out) {
  *out = OVSTAGE_TIMEOUT_INFINITE;
  if (!value) return true;
  PyObject* number = as_int(value, "timeout", "an int, a number of nanoseconds");
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

/* ---- Handles, names, modes --------------------------------------------------------------------------------------- */

/* A path list is an int, but never the number of one of these: small numbers of both kinds look alike. */
static bool refuse_path_list(PyObject* value, const char* name) {
  static PyObject* class;
  int matches =
      package_attribute(&class, "ovstage.dictionary", "PathList") ? PyObject_IsInstance(value, class) : -1;
  if (matches <= 0) return matches == 0;
  static const char* const kinds[][2] = {
      {"query", "a Query"}, {"read", "a Read"}, {"mapping", "a Map"}, {"ordinal_query", "an OrdinalQuery"}};
  const char* kind = "a handle of its own kind";
  for (size_t i = 0; i < COUNT_OF(kinds); i++) {
    if (strcmp(name, kinds[i][0]) == 0) kind = kinds[i][1];
  }
  PyErr_Format(PyExc_TypeError, "%s must be %s, got %R%s", name, kind, value,
               strcmp(name, "query") == 0 ? "; make one with stage.query_from_path_list(...)" : "");
  return false;
}

bool guard_handle(PyObject* value, const char* name, uint64_t* out) {
  if (PyLong_CheckExact(value)) return guard_uint64(value, name, out);
  if (PyLong_Check(value)) return refuse_path_list(value, name) && guard_uint64(value, name, out);
  if (PyObject_TypeCheck(value, native.handle)) return handle_number(value, out);
  return guard_uint64(value, name, out);
}

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
  PyObject* number = as_int(value, name, "an int (a token) or a str (a name)");
  bool fits = number && unsigned_value(number, name, 64, &out->token);
  Py_XDECREF(number);
  return fits;
}

/* A member of an enum whose values are 0 .. highest. */
static bool guard_member(PyObject* value, const char* name, const char* members, int highest, int* out) {
  PyObject* number = as_int(value, name, "an int");
  if (!number) return false;
  int overflow;
  long long member = PyLong_AsLongLongAndOverflow(number, &overflow);
  bool declared = !overflow && member >= 0 && member <= highest;
  if (!declared) PyErr_Format(PyExc_ValueError, "%s must be a valid %s, got %S", name, members, number);
  Py_DECREF(number);
  *out = (int)member;
  return declared;
}

bool guard_prim_mode(PyObject* value, ovstage_prim_mode_t* out) {
  int mode = OVSTAGE_PRIM_MODE_UPSERT;
  bool declared = !value || guard_member(value, "prim_mode", "PrimMode (UPSERT=0, INSERT=1, UPDATE=2)",
                                         (int)OVSTAGE_GO_PRIM_MODE_UPDATE, &mode);
  *out = (ovstage_prim_mode_t)mode;
  return declared;
}

bool guard_scope(PyObject* value, ovstage_scope_t* out) {
  int scope = OVSTAGE_SCOPE_ALL;
  bool declared = !value || guard_member(value, "scope", "Scope (ALL=0, INCLUDE=1, EXCLUDE=2)", OVSTAGE_SCOPE_EXCLUDE,
                                         &scope);
  *out = (ovstage_scope_t)scope;
  return declared;
}

/* ---- Lists ------------------------------------------------------------------------------------------------------- */

static bool is_text(PyObject* values) {
  return PyUnicode_Check(values) || PyBytes_Check(values) || PyByteArray_Check(values);
}

PyObject* guard_sequence(PyObject* values, const char* name, const char* expected) {
  if (is_text(values)) {
    PyErr_Format(PyExc_TypeError, "%s must be %s, got the single string %R; write [%R]", name, expected, values,
                 values);
    return NULL;
  }
  PyObject* tuple = PySequence_Tuple(values);
  if (tuple || !PyErr_ExceptionMatches(PyExc_TypeError)) return tuple;
  PyErr_Clear();
  PyObject* text = shown(values);
  if (text) PyErr_Format(PyExc_TypeError, "%s must be %s, got %U", name, expected, text);
  Py_XDECREF(text);
  return NULL;
}

/* ---- Lists of numbers -------------------------------------------------------------------------------------------- */

/* One element of an integer buffer, of 1 to 8 bytes, as it reads in its own type. */
static bool buffer_entry(const char* at, Py_ssize_t size, bool is_signed, uint64_t* bits, bool* negative) {
  int64_t s = 0;
  uint64_t u = 0;
  switch (size) {
    case 1:
      s = *(const int8_t*)at, u = *(const uint8_t*)at;
      break;
    case 2: {
      int16_t v;
      memcpy(&v, at, 2);
      s = v, u = (uint16_t)v;
      break;
    }
    case 4: {
      int32_t v;
      memcpy(&v, at, 4);
      s = v, u = (uint32_t)v;
      break;
    }
    case 8: {
      int64_t v;
      memcpy(&v, at, 8);
      s = v, u = (uint64_t)v;
      break;
    }
    default:
      return false;
  }
  *negative = is_signed && s < 0;
  *bits = is_signed ? (uint64_t)s : u;
  return true;
}

static bool refuse_entries(PyObject* values, const char* name, const char* entries, const char* found) {
  PyObject* text = found ? PyUnicode_FromString(found) : shown(values);
  if (text)
    PyErr_Format(PyExc_TypeError, "%s%s must be ints (a list or a 1-D integer array of them), got %U", name, entries,
                 text);
  Py_XDECREF(text);
  return false;
}

/* From a buffer: a view where the element type is the wanted one, else a checked copy. */
static bool words_of_buffer(words* out, PyObject* values, const char* name, const char* entries, int bits) {
  const Py_buffer* view = &out->view;
  const char* format = view->format ? view->format : "B";
  if (strchr("@=<", *format) && *format) format++; /* little-endian is native on every machine this is built for */
  bool is_unsigned = *format && strchr("BHILQN", *format), is_signed = *format && strchr("bhilqn", *format);
  bool native_order = view->itemsize == 1 || !(view->format && strchr(">!", *view->format));
  if (view->ndim != 1 || format[0] == 0 || format[1] != 0 || !native_order || !(is_unsigned || is_signed)) {
    return refuse_entries(values, name, entries, NULL);
  }
  Py_ssize_t count = view->shape[0], stride = view->strides ? view->strides[0] : view->itemsize;
  out->count = (size_t)count;
  bool fits = is_unsigned && view->itemsize * 8 == bits && (uintptr_t)view->buf % (size_t)view->itemsize == 0;
  if (fits && (stride == view->itemsize || count <= 1)) {
    out->data = view->buf;
    return true;
  }
  uint32_t* narrow = NULL;
  uint64_t* wide = NULL;
  out->data = out->copy = malloc((size_t)(count ? count : 1) * (size_t)bits / 8);
  if (!out->copy) return PyErr_NoMemory() != NULL;
  if (bits == 32)
    narrow = out->copy;
  else
    wide = out->copy;
  const char* at = view->buf;
  for (Py_ssize_t i = 0; i < count; i++, at += stride) {
    uint64_t entry;
    bool negative;
    if (!buffer_entry(at, view->itemsize, is_signed, &entry, &negative))
      return refuse_entries(values, name, entries, NULL);
    if (negative) {
      PyErr_Format(PyExc_ValueError, "%s%s must be non-negative, got %lld at position %zd", name, entries,
                   (long long)entry, i);
      return false;
    }
    if (bits == 32 && entry >> 32) {
      PyErr_Format(PyExc_ValueError, "%s%s must fit in uint32, got %llu at position %zd", name, entries,
                   (unsigned long long)entry, i);
      return false;
    }
    if (narrow)
      narrow[i] = (uint32_t)entry;
    else
      wide[i] = entry;
  }
  return true;
}

static bool words_of_iterable(words* out, PyObject* values, const char* name, const char* entries, int bits) {
  PyObject* tuple = PySequence_Tuple(values);
  if (!tuple) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) return false;
    PyErr_Clear();
    return refuse_entries(values, name, entries, NULL);
  }
  Py_ssize_t count = PyTuple_Size(tuple);
  out->count = (size_t)count;
  out->data = out->copy = malloc((size_t)(count ? count : 1) * (size_t)bits / 8);
  bool good = out->copy != NULL;
  if (!good) PyErr_NoMemory();
  for (Py_ssize_t i = 0; good && i < count; i++) {
    PyObject *item = PyTuple_GetItem(tuple, i), *number = NULL;
    uint64_t entry = 0;
    if (PyLong_Check(item)) {
      number = Py_NewRef(item);
    } else if (!(number = PyNumber_Index(item)) && PyErr_ExceptionMatches(PyExc_TypeError)) {
      PyErr_Clear();
      PyObject* text = shown(item);
      if (text) PyErr_Format(PyExc_TypeError, "%s%s must be ints (got %U at position %zd)", name, entries, text, i);
      Py_XDECREF(text);
    }
    good = number && unsigned_value(number, name, bits, &entry);
    if (number && !good) { /* to say which one it is would take longer than all else, so it is said only now */
      char place[96];
      PyOS_snprintf(place, sizeof place, "%s[%zd]", name, i);
      PyErr_Clear();
      unsigned_value(number, place, bits, &entry);
    }
    Py_XDECREF(number);
    if (bits == 32)
      ((uint32_t*)out->copy)[i] = (uint32_t)entry;
    else
      ((uint64_t*)out->copy)[i] = entry;
  }
  Py_DECREF(tuple);
  return good;
}

bool words_open(words* out, PyObject* values, const char* name, const char* entries, int bits) {
  memset(out, 0, sizeof *out);
  bool good;
  if (is_text(values)) {
    good = refuse_entries(values, name, entries, NULL);
  } else if (!PyList_Check(values) && !PyTuple_Check(values) && PyObject_CheckBuffer(values)) {
    if (PyObject_GetBuffer(values, &out->view, PyBUF_RECORDS_RO) == 0) {
      good = words_of_buffer(out, values, name, entries, bits);
    } else {
      PyErr_Clear(); /* not every array can say its dtype this way; its elements still can be asked */
      out->view.obj = NULL;
      good = words_of_iterable(out, values, name, entries, bits);
    }
  } else {
    good = words_of_iterable(out, values, name, entries, bits);
  }
  if (!good) words_close(out);
  return good;
}

void words_close(words* list) {
  free(list->copy);
  if (list->view.obj) PyBuffer_Release(&list->view);
  list->copy = NULL;
  list->view.obj = NULL;
}

/* ---- Lists of strings -------------------------------------------------------------------------------------------- */

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
      char place[96];
      PyOS_snprintf(place, sizeof place, "%s[%zu]", name, i);
      PyErr_Clear();
      guard_string(item, place, &out->data[i]);
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
    char place[96];
    PyOS_snprintf(place, sizeof place, "%s[%zu]", name, i);
    good = guard_attribute(PyTuple_GetItem(out->tuple, (Py_ssize_t)i), place, &out->data[i]);
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

/* ---- Calling conventions ----------------------------------------------------------------------------------------- */

static int slot_of(signature* sig, PyObject* keyword) {
  for (int i = 0; sig->names[i]; i++) {
    if (keyword == sig->interned[i]) return i;
  }
  for (int i = 0; sig->names[i]; i++) {
    if (PyUnicode_CompareWithASCIIString(keyword, sig->names[i]) == 0) return i;
  }
  return -1;
}

bool sort_arguments(signature* sig, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames, PyObject** slots) {
  if (nargs > sig->positional) {
    PyErr_Format(PyExc_TypeError, "%s() takes at most %d positional arguments (%zd given)", sig->function,
                 sig->positional, nargs);
    return false;
  }
  for (int i = 0; sig->names[i]; i++) {
    if (!sig->interned[i] && !(sig->interned[i] = PyUnicode_InternFromString(sig->names[i]))) return false;
    slots[i] = i < nargs ? args[i] : NULL;
  }
  Py_ssize_t keywords = kwnames ? PyTuple_Size(kwnames) : 0;
  for (Py_ssize_t i = 0; i < keywords; i++) {
    PyObject* keyword = PyTuple_GetItem(kwnames, i);
    int slot = slot_of(sig, keyword);
    if (slot < 0 || slots[slot]) {
      PyErr_Format(PyExc_TypeError,
                   slot < 0 ? "%s() got an unexpected keyword argument %R" : "%s() got multiple values for argument %R",
                   sig->function, keyword);
      return false;
    }
    slots[slot] = args[nargs + i];
  }
  for (int i = 0; i < sig->required; i++) {
    if (!slots[i]) {
      PyErr_Format(PyExc_TypeError, "%s() missing required argument: '%s'", sig->function, sig->names[i]);
      return false;
    }
  }
  return true;
}

bool check_argument_count(const char* function, Py_ssize_t nargs, Py_ssize_t least, Py_ssize_t most) {
  if (nargs >= least && nargs <= most) return true;
  PyErr_Format(PyExc_TypeError, "%s() takes from %zd to %zd arguments (%zd given)", function, least, most, nargs);
  return false;
}
