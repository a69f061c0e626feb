/*
 * words.c - lists of numbers, and of truth values, in an argument.
 *
 * An array is read where it lies if its elements are of the wanted type, else it is copied: out of a buffer, out of a
 * DLPack producer, or out of what NumPy makes of the argument. Anything else is asked element by element. Truth values
 * are packed into words of 64 bits, in one pass that looks at each of them once.
 *
 * A truth value is no number: as one it would be row 0 or 1, or a word with at most one bit. What has no order is no
 * list, and what is on a device cannot be looked at.
 */
#include "native.h"

/* One axis of elements in the caller's memory. */
typedef struct {
  const char* first;
  Py_ssize_t count, stride; /* the stride in bytes */
  size_t size;
  enum { SIGNED, UNSIGNED, TRUTHS } kind;
} axis;

/* What is to be read. `name` and `entries` begin the messages: "mask", " words". */
typedef struct {
  PyObject* values;
  const char *name, *entries;
  int bits;
  bool truths;              /* truth values are welcome */
  const name_reader* names; /* where names are welcome; else NULL */
} request;

typedef enum { BROKEN = -1, NO_ARRAY, OPENED } opening; /* BROKEN: an exception */

/* ---- Refusals ---------------------------------------------------------------------------------------------------- */

/* What else the caller may have meant. */
static const char* truths_hint(const request* asked) {
  return strcmp(asked->name, "index_map") == 0
             ? "; a truth value per prim is a mask: pass mask=, or the row numbers, numpy.flatnonzero(values)"
             : "; a truth value is no number";
}

/* Paths are given as texts elsewhere. */
static const char* names_hint(const request* asked, PyObject* item) {
  return PyUnicode_Check(item) && strcmp(asked->name, "primpaths") == 0 ? "; create_path_list_from_strings takes texts"
                                                                        : "";
}

static opening refuse_values(const request* asked) {
  PyObject* text = shown(asked->values);
  if (text && asked->names) {
    PyErr_Format(PyExc_TypeError, "%s must be ints (tokens) or strs (names), in a list or a 1-D array, got %U",
                 asked->name, text);
  } else if (text && asked->truths) {
    PyErr_Format(PyExc_TypeError,
                 "%s must be truth values, one per prim, or words of 64 bits (a list or a 1-D array of bool or of an "
                 "integer type), got %U",
                 asked->name, text);
  } else if (text) {
    PyErr_Format(PyExc_TypeError, "%s%s must be ints (a list or a 1-D integer array of them), got %U", asked->name,
                 asked->entries, text);
  }
  Py_XDECREF(text);
  return BROKEN;
}

static opening refuse_single(const request* asked) {
  PyErr_Format(PyExc_TypeError, "%s must be a list of attributes, got the single string %R; write [%R]", asked->name,
               asked->values, asked->values);
  return BROKEN;
}

static opening refuse_truths(const request* asked) {
  PyObject* text = shown(asked->values);
  if (text) {
    PyErr_Format(PyExc_TypeError, "%s%s must be ints (a list or a 1-D integer array of them), got truth values, %U%s",
                 asked->name, asked->entries, text, truths_hint(asked));
  }
  Py_XDECREF(text);
  return BROKEN;
}

static opening refuse_device(const request* asked, long device) {
  PyErr_Format(PyExc_ValueError,
               "%s is on a device (DLPack type %ld), where this build cannot read it: pass a copy in host memory",
               asked->name, device);
  return BROKEN;
}

/* ---- Arrays ------------------------------------------------------------------------------------------------------ */

static opening axis_of_view(words* out, const request* asked, axis* found) {
  const Py_buffer* view = &out->view;
  const char* format = view->format ? view->format : "B";
  bool native_order = view->itemsize == 1 || !strchr(">!", *format);
  if (*format && strchr("@=<>!", *format)) format++;
  bool one = *format && !format[1], is_unsigned = one && strchr("BHILQN", *format);
  bool is_signed = one && strchr("bhilqn", *format), is_truth = one && *format == '?';
  bool strings = *format && strchr("wO", format[strlen(format) - 1]); /* "4w": four characters each */
  if (asked->names && view->ndim == 1 && strings) return NO_ARRAY;
  if (view->ndim != 1 || !native_order || !(is_unsigned || is_signed || is_truth)) return refuse_values(asked);
  *found = (axis){view->buf, view->shape[0], view->strides ? view->strides[0] : view->itemsize, (size_t)view->itemsize,
                  is_truth      ? TRUTHS
                  : is_unsigned ? UNSIGNED
                                : SIGNED};
  return OPENED;
}

static opening axis_of_tensor(const DLTensor* t, const request* asked, axis* found) {
  int code = t->dtype.code, bits = t->dtype.bits, truth = code == kDLBool && bits == 8;
  /* some producers have no word for truth values but "bytes" */
  if (code == kDLUInt && bits == 8 && (truth = has_truth_dtype(asked->values)) < 0) return BROKEN;
  bool whole = bits == 8 || bits == 16 || bits == 32 || bits == 64;
  if (t->ndim != 1 || t->dtype.lanes != 1 || t->shape[0] < 0 || (t->shape[0] > 0 && !t->data) ||
      !(truth || (whole && (code == kDLInt || code == kDLUInt)))) {
    return refuse_values(asked);
  }
  *found = (axis){(const char*)t->data + t->byte_offset, t->shape[0], (t->strides ? t->strides[0] : 1) * bits / 8,
                  (size_t)bits / 8,
                  truth             ? TRUTHS
                  : code == kDLUInt ? UNSIGNED
                                    : SIGNED};
  return OPENED;
}

/* What an export failed with, under the name of the argument. */
static opening refuse_export(const request* asked) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  PyObject* text = value ? PyObject_Str(value) : NULL;
  PyErr_Restore(type, value, traceback); /* in place of what str raised, if anything */
  if (text) raise_from_current(PyExc_TypeError, "%s cannot be read through __dlpack__: %U", asked->name, text);
  Py_XDECREF(text);
  return BROKEN;
}

/* NO_ARRAY where it cannot be exported, as arrays of bits cannot, but NumPy can be asked. */
static opening axis_of_producer(words* out, const request* asked, bool for_numpy, axis* found) {
  long device = stated_device(asked->values);
  if (device == DEVICE_FAILED) return refuse_export(asked);
  if (device != DEVICE_UNKNOWN && !on_host(device)) return refuse_device(asked, device);
  if (!import_open(&out->tensor, asked->values, NULL, asked->name)) {
    if (!PyErr_ExceptionMatches(PyExc_Exception)) return BROKEN; /* Ctrl-C */
    if (!for_numpy) return refuse_export(asked);
    PyErr_Clear();
    return NO_ARRAY;
  }
  const DLTensor* tensor = import_tensor(&out->tensor);
  if (!on_host(tensor->device.device_type)) return refuse_device(asked, tensor->device.device_type);
  return axis_of_tensor(tensor, asked, found);
}

/* A column of a table, for one. NO_ARRAY where NumPy makes a list of objects of it, which is then put in its place. */
static opening axis_through_numpy(words* out, const request* asked, axis* found, PyObject** list) {
  static PyObject* asarray;
  PyObject* convert = package_attribute(&asarray, "numpy", "asarray");
  PyObject* array = convert ? PyObject_CallFunctionObjArgs(convert, asked->values, NULL) : NULL;
  if (!array) {
    if (!PyErr_ExceptionMatches(PyExc_Exception)) return BROKEN;
    PyErr_Clear();
    return NO_ARRAY;
  }
  Py_DECREF(*list); /* the caller has the argument, too */
  *list = array;
  if (PyObject_GetBuffer(array, &out->view, PyBUF_RECORDS_RO) == 0) {
    if (strcmp(out->view.format ? out->view.format : "", "O") != 0) return axis_of_view(out, asked, found);
    PyBuffer_Release(&out->view);
  } else {
    PyErr_Clear();
  }
  out->view.obj = NULL;
  return NO_ARRAY;
}

/* `list` is what to ask for items where this is no array, and a reference of the caller's. */
static opening open_axis(words* out, const request* asked, axis* found, PyObject** list) {
  PyObject* values = asked->values;
  if (PyList_Check(values) || PyTuple_Check(values)) return NO_ARRAY;
  if (is_text(values)) return asked->names ? refuse_single(asked) : refuse_values(asked);
  if (!check_unmasked(values, asked->name)) return BROKEN;
  if (PyObject_CheckBuffer(values)) {
    if (PyObject_GetBuffer(values, &out->view, PyBUF_RECORDS_RO) == 0) return axis_of_view(out, asked, found);
    PyErr_Clear(); /* not every array can say its dtype this way; its elements still can be asked */
    out->view.obj = NULL;
    return NO_ARRAY;
  }
  if (!check_order(values, asked->name, "a list of numbers")) return BROKEN;
  int for_dlpack = has_attribute(values, "__dlpack__"),
      for_numpy = for_dlpack < 0 ? -1 : has_attribute(values, "__array__");
  if (for_numpy < 0) return BROKEN;
  opening opened = for_dlpack ? axis_of_producer(out, asked, for_numpy, found) : NO_ARRAY;
  return opened == NO_ARRAY && for_numpy ? axis_through_numpy(out, asked, found, list) : opened;
}

/* ---- Numbers ----------------------------------------------------------------------------------------------------- */

/* One element of an integer array, of 1 to 8 bytes, as it reads in its own type. */
static uint64_t element_at(const char* at, const axis* of, bool* negative) {
  uint64_t bits = 0;
  memcpy(&bits, at, of->size);
  *negative = of->kind == SIGNED && bits >> (8 * of->size - 1);
  if (*negative && of->size < 8) bits |= ~(uint64_t)0 << 8 * of->size;
  return bits;
}

/* Entries that are to be set. Small ones come from what this thread has freed, which calloc would pass by. */
static bool make_room(words* out, size_t count, int bits) {
  size_t size;
  bool fits = !__builtin_mul_overflow(count ? count : 1, (size_t)bits / 8, &size);
  out->count = count;
  out->data = out->copy = fits ? malloc(size) : NULL;
  return out->copy || PyErr_NoMemory();
}

static void put(words* out, size_t at, uint64_t entry, int bits) {
  if (bits == 32)
    ((uint32_t*)out->copy)[at] = (uint32_t)entry;
  else
    ((uint64_t*)out->copy)[at] = entry;
}

/* A view where the element type is the wanted one, else a checked copy. */
static bool words_of_axis(words* out, const request* asked, const axis* from) {
  bool wanted = from->kind == UNSIGNED && from->size * 8 == (size_t)asked->bits;
  bool dense = from->stride == (Py_ssize_t)from->size || from->count <= 1;
  if (wanted && dense && (uintptr_t)from->first % from->size == 0) {
    out->data = from->first;
    out->count = (size_t)from->count;
    return true;
  }
  if (!make_room(out, (size_t)from->count, asked->bits)) return false;
  const char* at = from->first;
  for (Py_ssize_t i = 0; i < from->count; i++, at += from->stride) {
    bool negative;
    uint64_t entry = element_at(at, from, &negative);
    if (negative) {
      PyErr_Format(PyExc_ValueError, "%s%s must be non-negative, got %lld at position %zd", asked->name, asked->entries,
                   (long long)entry, i);
      return false;
    }
    if (asked->bits == 32 && entry >> 32) {
      PyErr_Format(PyExc_ValueError, "%s%s must fit in uint32, got %llu at position %zd", asked->name, asked->entries,
                   (unsigned long long)entry, i);
      return false;
    }
    put(out, (size_t)i, entry, asked->bits);
  }
  return true;
}

static bool refuse_item(const request* asked, const char* expected, PyObject* item, Py_ssize_t at, const char* hint) {
  PyObject* text = shown(item);
  if (text) {
    PyErr_Format(PyExc_TypeError, "%s%s must be %s (got %U at position %zd)%s", asked->name, asked->entries, expected,
                 text, at, hint);
  }
  Py_XDECREF(text);
  return false;
}

static bool token_of(const request* asked, PyObject* name, Py_ssize_t at, uint64_t* out) {
  char where[96];
  PyOS_snprintf(where, sizeof where, "%s[%zd]", asked->name, at);
  return asked->names->token(asked->names->context, name, where, out);
}

/* One item of a list. */
static bool number_of(const request* asked, PyObject* item, Py_ssize_t at, uint64_t* out) {
  const char* expected = asked->names ? "ints (tokens) or strs (names)" : "ints";
  if (asked->names && PyUnicode_Check(item)) return token_of(asked, item, at, out);
  PyObject* number = PyLong_CheckExact(item) ? Py_NewRef(item) : NULL;
  if (!number) {
    int truth = is_truth(item);
    if (truth < 0) return false;
    if (truth) return refuse_item(asked, expected, item, at, truths_hint(asked));
    number = PyNumber_Index(item);
    if (!number && PyErr_ExceptionMatches(PyExc_TypeError)) {
      PyErr_Clear();
      return refuse_item(asked, expected, item, at, names_hint(asked, item));
    }
  }
  bool good = number && unsigned_value(number, asked->name, asked->bits, out);
  if (number && !good) { /* to say which one it is would take longer than all else, so it is said only now */
    char where[96];
    PyOS_snprintf(where, sizeof where, "%s[%zd]", asked->name, at);
    PyErr_Clear();
    unsigned_value(number, where, asked->bits, out);
  }
  Py_XDECREF(number);
  return good;
}

static bool words_of_tuple(words* out, const request* asked, PyObject* tuple) {
  Py_ssize_t count = PyTuple_Size(tuple);
  bool good = make_room(out, (size_t)count, asked->bits);
  for (Py_ssize_t i = 0; good && i < count; i++) {
    uint64_t entry = 0;
    good = number_of(asked, PyTuple_GetItem(tuple, i), i, &entry);
    put(out, (size_t)i, entry, asked->bits);
  }
  return good;
}

static PyObject* items_of(const request* asked, PyObject* list) {
  PyObject* tuple = PySequence_Tuple(list);
  if (!tuple && PyErr_ExceptionMatches(PyExc_TypeError)) {
    PyErr_Clear();
    refuse_values(asked);
  }
  return tuple;
}

/* An array, or the items of what is none as a tuple; NULL: an exception. */
static opening open_list(words* out, const request* asked, axis* found, PyObject** items) {
  PyObject* list = Py_NewRef(asked->values);
  opening opened = open_axis(out, asked, found, &list);
  *items = opened == NO_ARRAY ? items_of(asked, list) : NULL;
  Py_DECREF(list);
  return opened;
}

static bool open_numbers(words* out, const request* asked) {
  memset(out, 0, sizeof *out);
  axis found;
  PyObject* tuple;
  opening opened = open_list(out, asked, &found, &tuple);
  bool good;
  if (opened == OPENED)
    good = found.kind == TRUTHS ? refuse_truths(asked) == OPENED : words_of_axis(out, asked, &found);
  else
    good = tuple && words_of_tuple(out, asked, tuple);
  Py_XDECREF(tuple);
  if (!good) words_close(out);
  return good;
}

bool named_words_open(words* out, PyObject* values, const char* name, const name_reader* names) {
  const request asked = {.values = values, .name = name, .entries = "", .bits = 64, .names = names};
  return open_numbers(out, &asked);
}

bool words_open(words* out, PyObject* values, const char* name, const char* entries, int bits) {
  const request asked = {.values = values, .name = name, .entries = entries, .bits = bits};
  return open_numbers(out, &asked);
}

void words_close(words* list) {
  free(list->copy);
  list->copy = NULL;
  if (list->view.obj) PyBuffer_Release(&list->view);
  list->view.obj = NULL;
  import_close(&list->tensor);
}

/* ---- Truth values ------------------------------------------------------------------------------------------------ */

static void set_bit(words* out, size_t at, bool value) {
  ((uint64_t*)out->copy)[at / 64] |= (uint64_t)value << at % 64;
}

/* Eight bytes as eight bits; whatever is not zero counts as true. */
static uint64_t bits_of_bytes(const char* at) {
  uint64_t bytes;
  memcpy(&bytes, at, sizeof bytes);
  bytes |= (bytes >> 4) & 0x0f0f0f0f0f0f0f0f;
  bytes |= (bytes >> 2) & 0x0303030303030303;
  bytes |= (bytes >> 1) & 0x0101010101010101;
  return ((bytes & 0x0101010101010101) * 0x0102040810204080) >> 56;
}

static bool make_mask(words* out, size_t truths) {
  out->count = (truths + 63) / 64;
  out->data = out->copy = calloc(out->count ? out->count : 1, sizeof(uint64_t));
  return out->copy || PyErr_NoMemory();
}

static bool pack_axis(words* out, const axis* from) {
  size_t count = (size_t)from->count, i = 0;
  if (!make_mask(out, count)) return false;
  if (from->stride == 1) {
    for (; i + 8 <= count; i += 8) ((uint64_t*)out->copy)[i / 64] |= bits_of_bytes(from->first + i) << i % 64;
  }
  for (; i < count; i++) set_bit(out, i, from->first[(Py_ssize_t)i * from->stride] != 0);
  return true;
}

/* 0 or 1; -1: an exception. */
static int truth_of(const request* asked, PyObject* item, Py_ssize_t at) {
  if (PyBool_Check(item)) return item == Py_True;
  int truth = is_truth(item);
  if (truth == 0) refuse_item(asked, "truth values", item, at, "");
  return truth > 0 ? PyObject_IsTrue(item) : -1;
}

static bool pack_tuple(words* out, const request* asked, PyObject* tuple) {
  Py_ssize_t count = PyTuple_Size(tuple);
  bool good = make_mask(out, (size_t)count);
  for (Py_ssize_t i = 0; good && i < count; i++) {
    int truth = truth_of(asked, PyTuple_GetItem(tuple, i), i);
    good = truth >= 0;
    if (good) set_bit(out, (size_t)i, truth);
  }
  return good;
}

bool mask_open(words* out, PyObject* values, Py_ssize_t* truths) {
  memset(out, 0, sizeof *out);
  *truths = -1;
  const request asked = {values, "mask", " words", 64, .truths = true};
  axis found;
  PyObject* tuple;
  opening opened = open_list(out, &asked, &found, &tuple);
  bool good = false;
  if (opened == OPENED && found.kind == TRUTHS) {
    *truths = found.count;
    good = pack_axis(out, &found);
  } else if (opened == OPENED) {
    good = words_of_axis(out, &asked, &found);
  } else if (tuple) {
    const request each = {values, "mask", "", 64, .truths = true};
    int first = PyTuple_Size(tuple) ? is_truth(PyTuple_GetItem(tuple, 0)) : 1;
    if (first > 0) *truths = PyTuple_Size(tuple);
    good = first >= 0 && (first ? pack_tuple(out, &each, tuple) : words_of_tuple(out, &asked, tuple));
  }
  Py_XDECREF(tuple);
  if (!good) words_close(out);
  return good;
}

/* Truth values say how many prims they are for. */
static bool judge_truths(Py_ssize_t truths, bool has_count, uint32_t* count) {
  if (has_count && *count != (uint64_t)truths) {
    PyErr_Format(PyExc_ValueError,
                 "mask must have one truth value per logical element: count is %u, mask has %zd; leave count out for "
                 "all prims of the query",
                 *count, truths);
    return false;
  }
  if (truths > UINT32_MAX) {
    PyErr_Format(PyExc_ValueError, "mask must have at most %u truth values, got %zd", UINT32_MAX, truths);
    return false;
  }
  *count = (uint32_t)truths;
  return true;
}

#define TRUTH_VALUES "for one truth value per prim pass dtype bool, such as numpy.asarray(mask, dtype=bool)"

/* Words do not; as many as there are prims are no words, but numbers that were meant as truth values. */
static bool judge_words(const words* mask, bool has_count, uint32_t count) {
  size_t wanted = ((size_t)count + 63) / 64;
  if (!has_count) {
    PyErr_SetString(PyExc_ValueError,
                    "count is required when mask is supplied as words of 64 bits, which do not say how many prims they "
                    "are for; " TRUTH_VALUES);
    return false;
  }
  if (wanted == mask->count) return true;
  PyErr_Format(PyExc_ValueError,
               "mask must have one bit per logical element, in words of 64 bits: expected %zu for count=%u, got "
               "%zu; " TRUTH_VALUES,
               wanted, count, mask->count);
  return false;
}

bool counted_mask_open(words* out, PyObject* values, PyObject* given_count, uint32_t* count) {
  Py_ssize_t truths;
  bool has_count = is_given(given_count);
  *count = 0;
  if ((has_count && !guard_uint32(given_count, "count", count)) || !mask_open(out, values, &truths)) return false;
  if (truths < 0 ? judge_words(out, has_count, *count) : judge_truths(truths, has_count, count)) return true;
  words_close(out);
  return false;
}
