/*
 * guard.c - argument guards, by the rules of ovstage/guard.py: integers go through __index__, a wrong type is a
 * TypeError, a number that does not fit a ValueError, and both name the argument.
 */
#include "native.h"

/* ---- One number -------------------------------------------------------------------------------------------------- */

/* `hint` ends the message. */
static PyObject* int_or_hint(PyObject* value, const char* name, const char* expected, const char* hint) {
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
  return int_or_hint(value, name, expected, "");
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

/* ---- Handles, names, modes --------------------------------------------------------------------------------------- */

/* What an argument of this name must be, and how one gets it. */
static const struct {
  const char *name, *kind, *hint;
} handles[] = {
    {"query", "a Query", "; make one with stage.query_from_path_list(...)"},
    {"read", "a Read", "; make one with stage.read_attributes(...)"},
    {"mapping", "a Map", "; make one with stage.map_attribute(...)"},
    {"ordinal_query", "an OrdinalQuery", "; make one with stage.get_attribute_write_floor(...)"},
    {"hierarchy", "a Hierarchy", "; make one with stage.get_hierarchy_async(...)"},
    {"", "a handle of its own kind", ""},
};

/* A path list is an int, but never the number of one of these: small numbers of both kinds look alike. */
static bool refuse_path_list(PyObject* value, const char* name, const char* kind, const char* hint) {
  static PyObject* class;
  int matches = package_attribute(&class, "ovstage.dictionary", "PathList") ? PyObject_IsInstance(value, class) : -1;
  if (matches <= 0) return matches == 0;
  PyObject* released = PyObject_GetAttrString(value, "released"); /* not its repr, which asks the stage for the paths */
  if (!released) return false;
  PyErr_Format(PyExc_TypeError, "%s must be %s, got PathList(%S, %s)%s", name, kind, value,
               released == Py_True ? "released" : "owned", hint);
  Py_DECREF(released);
  return false;
}

bool guard_handle(PyObject* value, const char* name, uint64_t* out) {
  if (PyLong_CheckExact(value)) return guard_uint64(value, name, out);
  if (PyObject_TypeCheck(value, native.handle)) return handle_number(value, out);
  size_t k = 0;
  while (*handles[k].name && strcmp(handles[k].name, name) != 0) k++;
  if (PyLong_Check(value) && !refuse_path_list(value, name, handles[k].kind, handles[k].hint)) return false;
  PyObject* number = int_or_hint(value, name, handles[k].kind, handles[k].hint);
  bool fits = number && unsigned_value(number, name, 64, out);
  Py_XDECREF(number);
  return fits;
}

bool guard_path_list(PyObject* value, uint64_t* out) {
  PyObject* number = int_or_hint(value, "path_list", "a PathList or its number",
                                 "; make one with PathDictionary(stage).create_path_list_from_strings([...])");
  bool fits = number && unsigned_value(number, "path_list", 64, out);
  Py_XDECREF(number);
  return fits;
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
  bool declared = !value || guard_member(value, "prim_mode", "PrimMode", "UPSERT=0, INSERT=1, UPDATE=2",
                                         (int)OVSTAGE_GO_PRIM_MODE_UPDATE, &mode);
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

/* ---- Masked arrays ----------------------------------------------------------------------------------------------- */

/* numpy.ma.MaskedArray; NULL: an exception, or without one where nobody has imported it, so that there can be none. */
static PyObject* masked_class(void) {
  static PyObject* class;
  if (class) return class;
  PyObject* name = PyUnicode_InternFromString("numpy.ma");
  PyObject* module = name ? PyImport_GetModule(name) : NULL;
  Py_XDECREF(name);
  if (module) class = PyObject_GetAttrString(module, "MaskedArray");
  Py_XDECREF(module);
  return class;
}

static int hides_own_elements(PyObject* array) {
  static PyObject* is_masked;
  PyObject* ask = package_attribute(&is_masked, "numpy.ma", "is_masked");
  PyObject* answer = ask ? PyObject_CallFunctionObjArgs(ask, array, NULL) : NULL;
  int hidden = answer ? PyObject_IsTrue(answer) : -1;
  Py_XDECREF(answer);
  return hidden;
}

static int hides_elements_of_items(PyObject* list) {
  PyObject* tuple = PySequence_Tuple(list);
  if (!tuple || Py_EnterRecursiveCall(" in a list of tensors")) {
    Py_XDECREF(tuple);
    return -1;
  }
  int hidden = 0;
  for (Py_ssize_t i = 0; hidden == 0 && i < PyTuple_Size(tuple); i++)
    hidden = hides_elements(PyTuple_GetItem(tuple, i));
  Py_LeaveRecursiveCall();
  Py_DECREF(tuple);
  return hidden;
}

int hides_elements(PyObject* value) {
  PyTypeObject* type = Py_TYPE(value);
  unsigned long flags = PyType_GetFlags(type);
  if (flags & (Py_TPFLAGS_LIST_SUBCLASS | Py_TPFLAGS_TUPLE_SUBCLASS)) return hides_elements_of_items(value);
  if (!(flags & Py_TPFLAGS_HEAPTYPE)) return 0; /* as nearly always: masked arrays are written in Python */
  PyObject* class = masked_class();
  if (!class) return PyErr_Occurred() ? -1 : 0;
  return PyType_IsSubtype(type, (PyTypeObject*)class) ? hides_own_elements(value) : 0;
}

bool refuse_hidden(const char* name) {
  PyErr_Format(PyExc_ValueError,
               "%s is a masked array (numpy.ma) that hides elements, which nothing here could keep hidden: pass "
               "array.filled(value), or, to leave prims of a write alone, array.data with mask=",
               name);
  return false;
}

bool check_unmasked(PyObject* value, const char* name) {
  int hidden = hides_elements(value);
  return hidden == 0 || (hidden > 0 && refuse_hidden(name));
}

/* ---- Lists ------------------------------------------------------------------------------------------------------- */

bool is_text(PyObject* values) { return PyUnicode_Check(values) || PyBytes_Check(values) || PyByteArray_Check(values); }

bool check_order(PyObject* values, const char* name, const char* expected) {
  static PyObject* class;
  if (PyList_Check(values) || PyTuple_Check(values)) return true;
  int set = PyAnySet_Check(values), mapping = PyDict_Check(values);
  if (!set && !mapping)
    mapping = package_attribute(&class, "collections.abc", "Mapping") ? PyObject_IsInstance(values, class) : -1;
  if (mapping < 0 || (!set && !mapping)) return mapping == 0;
  PyObject* text = shown(values);
  if (text) {
    PyErr_Format(PyExc_TypeError, "%s must be %s, got %U, which %s", name, expected, text,
                 set ? "has no order" : "is a mapping");
  }
  Py_XDECREF(text);
  return false;
}

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
