/*
 * source.c - Tensors of a write: one caller object behind one DLTensor.
 *
 * A tensor is read where it lies. What can be asked through the buffer protocol is (it costs a quarter of a DLPack
 * exchange), then DLTensor descriptors, then __dlpack__, and only what is none of these is given to NumPy to make an
 * array of. Strides are passed on: the engine copies rows straight into the column.
 *
 * With transfer=True a source goes over to the engine, which keeps or copies its memory as it sees fit, and lets go of
 * it on any thread: it is then an allocation of its own, a gift, which its deleter parks (park.c).
 */
#include "native.h"

const char* argument_text(argument* at) {
  if (at->several)
    PyOS_snprintf(at->text, sizeof at->text, "%s[%zu]", at->name, at->index);
  else
    return at->name;
  return at->text;
}

void source_close(source* self) {
  if (self->axes != self->inline_axes) free(self->axes);
  self->axes = NULL;
  Py_CLEAR(self->owner);
  if (self->view.obj) PyBuffer_Release(&self->view);
  self->view.obj = NULL;
  import_close(&self->tensor);
}

/* ---- Element types ----------------------------------------------------------------------------------------------- */

typedef enum { TYPE_GOOD, TYPE_FOREIGN_ORDER, TYPE_UNKNOWN } type_verdict;

/* The DLPack type of a struct format. Sizes come from the item, since `l` has two of them. */
static type_verdict type_of_format(const char* format, Py_ssize_t itemsize, DLDataType* out) {
  if (!format) format = "B";
  bool foreign = (*format == '>' || *format == '!') && itemsize > 1;
  if (*format && strchr("@=<>!", *format)) format++;
  bool complex = *format == 'Z';
  if (complex) format++;
  if (!format[0] || format[1]) return TYPE_UNKNOWN;
  int code;
  switch (format[0]) {
    case 'b':
    case 'h':
    case 'i':
    case 'l':
    case 'q':
    case 'n':
      code = kDLInt;
      break;
    case 'B':
    case 'H':
    case 'I':
    case 'L':
    case 'Q':
    case 'N':
      code = kDLUInt;
      break;
    case 'e':
    case 'f':
    case 'd':
      code = kDLFloat;
      break;
    case '?':
      code = kDLBool;
      break;
    default:
      return TYPE_UNKNOWN;
  }
  if (complex) {
    if (code != kDLFloat) return TYPE_UNKNOWN;
    code = kDLComplex;
  }
  if (foreign) return TYPE_FOREIGN_ORDER;
  *out = (DLDataType){(uint8_t)code, (uint8_t)(itemsize * 8), 1};
  return TYPE_GOOD;
}

/* Types that NumPy learns from the package ml_dtypes and cannot say in a struct format. Bits below 8 are stored one
 * element a byte there; they are named so that the engine can refuse them by name. */
static const struct {
  const char* name;
  uint8_t code, bits, storage;
} extension_types[] = {
    {"bfloat16", kDLBfloat, 16, 2},
    {"float8_e3m4", kDLFloat8_e3m4, 8, 1},
    {"float8_e4m3", kDLFloat8_e4m3, 8, 1},
    {"float8_e4m3b11fnuz", kDLFloat8_e4m3b11fnuz, 8, 1},
    {"float8_e4m3fn", kDLFloat8_e4m3fn, 8, 1},
    {"float8_e4m3fnuz", kDLFloat8_e4m3fnuz, 8, 1},
    {"float8_e5m2", kDLFloat8_e5m2, 8, 1},
    {"float8_e5m2fnuz", kDLFloat8_e5m2fnuz, 8, 1},
    {"float8_e8m0fnu", kDLFloat8_e8m0fnu, 8, 1},
    {"float6_e2m3fn", kDLFloat6_e2m3fn, 6, 1},
    {"float6_e3m2fn", kDLFloat6_e3m2fn, 6, 1},
    {"float4_e2m1fn", kDLFloat4_e2m1fn, 4, 1},
    {"int4", kDLInt, 4, 1},
    {"uint4", kDLUInt, 4, 1},
    {"int2", kDLInt, 2, 1},
    {"uint2", kDLUInt, 2, 1},
};

/* str(object.dtype), or NULL: with an exception, or without one where there is no dtype. */
static PyObject* dtype_name(PyObject* object) {
  PyObject* dtype = PyObject_GetAttr(object, native.name.dtype);
  if (!dtype) {
    if (PyErr_ExceptionMatches(PyExc_AttributeError)) PyErr_Clear();
    return NULL;
  }
  PyObject* name = PyObject_Str(dtype);
  Py_DECREF(dtype);
  return name;
}

#define COLUMN_TYPES "expected bool, an integer, float or complex type, bfloat16 or a float8 type"

static bool refuse_type(PyObject* object, argument* at, const char* format, type_verdict verdict) {
  PyObject* name = dtype_name(object);
  if (!name && !PyErr_Occurred()) name = PyUnicode_FromFormat("struct format '%s'", format ? format : "?");
  if (!name) return false;
  if (verdict == TYPE_FOREIGN_ORDER) {
    PyErr_Format(PyExc_ValueError,
                 "%s has dtype %U, which is not in this machine's byte order: pass "
                 "array.astype(array.dtype.newbyteorder('='))",
                 argument_text(at), name);
  } else {
    PyErr_Format(PyExc_ValueError, "Unsupported numpy dtype: %s has dtype %U; " COLUMN_TYPES, argument_text(at), name);
  }
  Py_DECREF(name);
  return false;
}

/* ---- Opening a source -------------------------------------------------------------------------------------------- */

static bool make_axes(source* self, int32_t ndim) {
  self->axes = ndim <= INLINE_AXES ? self->inline_axes : malloc(2 * (size_t)ndim * sizeof *self->axes);
  return self->axes || PyErr_NoMemory();
}

/* Strides of a view in elements; NULL where it is compact. */
static bool strides_of_view(source* self, int64_t** out) {
  const Py_buffer* view = &self->view;
  *out = NULL;
  if (!view->strides || (view->ndim == 1 && view->strides[0] == view->itemsize) || PyBuffer_IsContiguous(view, 'C')) {
    return true;
  }
  if (!make_axes(self, view->ndim)) return false;
  for (int axis = 0; axis < view->ndim; axis++) self->axes[axis] = view->strides[axis] / view->itemsize;
  *out = self->axes;
  return true;
}

static bool whole_element_strides(const Py_buffer* view) {
  for (int axis = 0; view->strides && axis < view->ndim; axis++) {
    if (view->shape[axis] > 1 && view->strides[axis] % view->itemsize) return false;
  }
  return true;
}

static bool describe_view(source* self, DLDataType type, DLTensor* out) {
  *out = (DLTensor){.data = self->view.buf,
                    .device = {kDLCPU, 0},
                    .ndim = self->view.ndim,
                    .dtype = type,
                    .shape = (int64_t*)self->view.shape};
  return strides_of_view(self, &out->strides);
}

/* A DLTensor, whose view stays open and keeps the object. Its fields may be assigned by other threads, and by Python
 * code that runs before the write does: shape and strides are copied, and the owner of the elements is held. */
static bool open_descriptor(source* self, PyObject* object, argument* at, DLTensor* out) {
  int64_t held;
  axes_room room;
  if (!known_extent(object, &held) || !known_axes(object, &room) || !(self->owner = known_attribute(object, "_owner")))
    return false;

  /* From here to the end no Python code runs. */
  memcpy(out, self->view.buf, sizeof *out);
  bool readable = out->ndim > 0 && out->ndim <= MOST_AXES && out->shape;
  if (readable && !check_axes(out, &room, PyExc_ValueError, argument_text(at))) return false;
  if (!readable) { /* one element, or no tensor: the engine says so */
    out->shape = out->strides = NULL;
    return out->ndim != 0 || held < 0 || !out->data || check_extent(out, held, PyExc_ValueError, argument_text(at));
  }
  if (!make_axes(self, out->ndim)) return false;
  size_t size = (size_t)out->ndim * sizeof *self->axes;
  out->shape = memcpy(self->axes, out->shape, size);
  if (out->strides) out->strides = memcpy(self->axes + out->ndim, out->strides, size);
  return held < 0 || !out->data || check_extent(out, held, PyExc_ValueError, argument_text(at));
}

static bool open_through_numpy(source* self, PyObject* object, argument* at, DLTensor* out);

/* The object's buffer is open: an array, or a DLTensor, which as a ctypes structure has a buffer too. */
static bool open_view(source* self, PyObject* object, argument* at, DLTensor* out) {
  DLDataType type;
  type_verdict verdict = type_of_format(self->view.format, self->view.itemsize, &type);
  if (verdict == TYPE_GOOD) {
    if (whole_element_strides(&self->view)) return describe_view(self, type, out);
    PyBuffer_Release(&self->view); /* a field of records, for one: NumPy knows how to gather it */
    self->view.obj = NULL;
    return open_through_numpy(self, object, at, out);
  }
  if (verdict == TYPE_UNKNOWN && self->view.len == sizeof *out && self->view.format &&
      strncmp(self->view.format, "T{", 2) == 0) {
    static PyObject* class;
    int is_tensor = package_attribute(&class, "ovstage.dlpack", "DLTensor") ? PyObject_IsInstance(object, class) : -1;
    if (is_tensor < 0) return false;
    if (is_tensor) return open_descriptor(self, object, at, out);
  }
  return refuse_type(object, at, self->view.format, verdict);
}

/* An array whose type has a name but no struct format: its bytes are viewed as unsigned integers.
 * 0: it is none; -1: an exception. */
static int open_extension_type(source* self, PyObject* object, PyObject* name, DLTensor* out) {
  for (size_t i = 0; i < COUNT_OF(extension_types); i++) {
    if (PyUnicode_CompareWithASCIIString(name, extension_types[i].name) != 0) continue;
    PyObject* bytes = PyObject_CallMethod(object, "view", "s", extension_types[i].storage == 2 ? "uint16" : "uint8");
    if (!bytes) return -1;
    int got = PyObject_GetBuffer(bytes, &self->view, PyBUF_RECORDS_RO);
    Py_DECREF(bytes); /* the view keeps it */
    if (got < 0) {
      self->view.obj = NULL;
      return -1;
    }
    return describe_view(self, (DLDataType){extension_types[i].code, extension_types[i].bits, 1}, out) ? 1 : -1;
  }
  return 0;
}

static bool open_dlpack(source* self, PyObject* object, argument* at, DLTensor* out) {
  if (!import_open(&self->tensor, object, NULL, argument_text(at))) return false;
  *out = *import_tensor(&self->tensor);
  if (out->ndim == 0) out->shape = out->strides = NULL;
  return true;
}

static bool refuse_object(PyObject* object, argument* at) {
  PyObject* text = shown(object);
  if (text) {
    PyErr_Format(PyExc_TypeError, "%s must be an array, a DLPack producer or a DLTensor, or a list of them, got %U",
                 argument_text(at), text);
  }
  Py_XDECREF(text);
  return false;
}

static bool open_through_numpy(source* self, PyObject* object, argument* at, DLTensor* out) {
  static PyObject *ascontiguousarray, *asanyarray, *unmissing;
  if (!package_attribute(&unmissing, "ovstage.guard", "unmissing")) return false;
  PyObject* judged = PyObject_CallFunction(unmissing, "Os", object, argument_text(at));
  if (!judged) return false;
  Py_DECREF(judged);
  PyObject* convert = package_attribute(&ascontiguousarray, "numpy", "ascontiguousarray");
  PyObject* keep_class = convert ? package_attribute(&asanyarray, "numpy", "asanyarray") : NULL;
  if (!keep_class) {
    if (PyErr_ExceptionMatches(PyExc_ImportError)) {
      raise_from_current(PyExc_TypeError, "%s is no tensor, and making one of it needs NumPy", argument_text(at));
    }
    return false;
  }
  PyObject* given = PyObject_CallFunctionObjArgs(keep_class, object, NULL);
  PyObject* array = NULL;
  if (given && check_unmasked(given, argument_text(at))) array = PyObject_CallFunctionObjArgs(convert, given, NULL);
  Py_XDECREF(given);
  if (!array) return false;
  bool good, was_array = PyObject_CheckBuffer(object);
  if (PyObject_GetBuffer(array, &self->view, PyBUF_RECORDS_RO) == 0) {
    DLDataType type;
    type_verdict verdict = type_of_format(self->view.format, self->view.itemsize, &type);
    if (verdict == TYPE_GOOD)
      good = describe_view(self, type, out);
    else
      good = was_array ? refuse_type(array, at, self->view.format, verdict) : refuse_object(object, at);
  } else if (PyErr_ExceptionMatches(PyExc_MemoryError)) {
    self->view.obj = NULL;
    good = false;
  } else {
    self->view.obj = NULL;
    PyErr_Clear();
    PyObject* name = dtype_name(array);
    int opened = name ? open_extension_type(self, array, name, out) : PyErr_Occurred() ? -1 : 0;
    Py_XDECREF(name);
    good = opened > 0 || (opened == 0 && refuse_type(array, at, NULL, TYPE_UNKNOWN));
  }
  Py_DECREF(array);
  return good;
}

/* Columns and groups that were read are producers, but only where their rows lie in order; NumPy puts them there. -1:
 * an exception. */
static int is_read(PyObject* object) {
  static PyObject* column;
  if (PyObject_TypeCheck(object, native.group)) return 1;
  return package_attribute(&column, "ovstage.columns", "Column") ? PyObject_IsInstance(object, column) : -1;
}

static PyObject* arrow_c_array(void) {
  static PyObject* name;
  return name ? name : (name = PyUnicode_InternFromString("__arrow_c_array__"));
}

/* An Arrow array of tuples or truth values, which DLPack cannot carry: as NumPy has it. 0: it is none; -1: an
 * exception. */
static int open_arrow(source* self, PyObject* object, argument* at, DLTensor* out) {
  static PyObject* convert;
  if (PyObject_TypeCheck(object, native.group)) return 0;
  PyObject* method = PyObject_GetAttr(object, arrow_c_array());
  if (!method) {
    if (PyErr_ExceptionMatches(PyExc_MemoryError)) return -1;
    PyErr_Clear();
    return 0;
  }
  Py_DECREF(method);
  if (!package_attribute(&convert, "ovstage.intake", "tensor")) return -1;
  PyObject* array = PyObject_CallFunction(convert, "Os", object, argument_text(at));
  if (!array || array == Py_None) {
    Py_XDECREF(array);
    return array ? 0 : -1;
  }
  int opened =
      PyObject_GetBuffer(array, &self->view, PyBUF_RECORDS_RO) == 0 && open_view(self, array, at, out) ? 1 : -1;
  Py_DECREF(array);
  return opened;
}

/* No buffer to be had: `object` is in other memory, has a type that the buffer protocol cannot name, or is no array. */
static bool open_without_buffer(source* self, PyObject* object, argument* at, DLTensor* out) {
  /* Only a buffer has a dtype that matters here: what else calls itself dtype need not even answer. */
  PyObject* name = PyObject_CheckBuffer(object) ? dtype_name(object) : NULL;
  if (!name && PyErr_Occurred()) return false;
  int opened = name ? open_extension_type(self, object, name, out) : open_arrow(self, object, at, out);
  bool good = opened > 0;
  if (opened == 0) {
    int read = is_read(object);
    PyObject* method = read < 0 ? NULL : PyObject_GetAttr(object, native.name.dlpack);
    if (method && read) {
      Py_DECREF(method);
      good = open_through_numpy(self, object, at, out);
    } else if (method) {
      Py_DECREF(method);
      good = open_dlpack(self, object, at, out);
      /* NumPy's refusal of a dtype is a BufferError that does not say which argument it was */
      if (!good && name && PyErr_ExceptionMatches(PyExc_BufferError)) {
        raise_from_current(PyExc_ValueError, "Unsupported numpy dtype: %s has dtype %U; " COLUMN_TYPES,
                           argument_text(at), name);
      }
    } else if (PyErr_ExceptionMatches(PyExc_AttributeError)) {
      PyErr_Clear();
      good = open_through_numpy(self, object, at, out);
    }
  }
  Py_XDECREF(name);
  return good;
}

bool source_open(source* self, PyObject* object, argument* at, DLTensor* out) {
  if (PyUnicode_Check(object) || PyBytes_Check(object)) {
    PyObject* text = shown(object);
    if (text) {
      PyErr_Format(
          PyExc_ValueError,
          "%s has an unsupported dtype: text is no tensor, got %U; for texts pass a list of them to Stage.write "
          "with type_name=\"string\" or \"token\", for the bytes of a string numpy.frombuffer(text.encode(), "
          "dtype=numpy.uint8), for a token PathDictionary.intern_token(text)",
          argument_text(at), text);
    }
    Py_XDECREF(text);
    return false;
  }
  int hidden = hides_elements(object);
  if (hidden) return hidden > 0 && refuse_hidden(argument_text(at));
  if (PyObject_CheckBuffer(object)) {
    if (PyObject_GetBuffer(object, &self->view, PyBUF_RECORDS_RO) == 0) return open_view(self, object, at, out);
    self->view.obj = NULL;
    if (PyErr_ExceptionMatches(PyExc_MemoryError)) return false;
    PyErr_Clear();
  }
  return open_without_buffer(self, object, at, out);
}

/* ---- Gifts: sources that go over to the engine ------------------------------------------------------------------- */

typedef struct {
  parked references; /* first: dropping the node frees the whole */
  source source;
  DLManagedTensorVersioned managed; /* what the engine gets */
} gift;

static void close_gift(parked* node) { source_close(&((gift*)node)->source); }

static void delete_gift(DLManagedTensorVersioned* managed) { park(managed->manager_ctx); }

/* A descriptor keeps its memory alive if this package made it; one that was filled in by hand may point anywhere. */
static bool check_ownership(PyObject* object, argument* at) {
  static PyObject* class;
  int is_tensor = package_attribute(&class, "ovstage.dlpack", "DLTensor") ? PyObject_IsInstance(object, class) : -1;
  if (is_tensor <= 0) return is_tensor == 0;
  PyObject* owner = PyObject_GetAttrString(object, "_owner");
  if (owner) {
    Py_DECREF(owner);
    return true;
  }
  if (PyErr_ExceptionMatches(PyExc_AttributeError)) {
    PyErr_Format(PyExc_ValueError,
                 "%s cannot be transferred: this DLTensor does not own its memory, whose owner could free it; pass the "
                 "array itself, or make_dltensor(array)",
                 argument_text(at));
  }
  return false;
}

DLManagedTensorVersioned* gift_new(PyObject* object, argument* at) {
  if (!check_ownership(object, at)) return NULL;
  gift* made = calloc(1, sizeof *made);
  if (!made) {
    PyErr_NoMemory();
    return NULL;
  }
  made->references.close = close_gift;
  made->managed.version = (DLPackVersion){DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  made->managed.manager_ctx = made;
  made->managed.deleter = delete_gift;
  if (source_open(&made->source, object, at, &made->managed.dl_tensor)) return &made->managed;
  parked_drop(&made->references);
  return NULL;
}
