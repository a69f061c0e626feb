/*
 * error.c - exceptions: the package's own classes, the library's words, and how a wrong argument is quoted.
 */
#include "native.h"

PyObject* string_of(ovx_string_t text) {
  return PyUnicode_DecodeUTF8(text.ptr ? text.ptr : "", (Py_ssize_t)text.length, "replace");
}

static PyObject* raise_coded(PyObject* kind, int64_t code, PyObject* text) {
  PyObject* error = text ? PyObject_CallFunction(kind, "LO", (long long)code, text) : NULL;
  if (error) PyErr_SetObject(kind, error);
  Py_XDECREF(error);
  Py_XDECREF(text);
  return NULL;
}

PyObject* unasked_warning;

static PyObject *stage_error, *dictionary_error;

bool load_error_classes(void) {
  return package_attribute(&stage_error, "ovstage.errors", "OvstageError") &&
         package_attribute(&dictionary_error, "ovstage.errors", "OvxError") &&
         package_attribute(&unasked_warning, "ovstage.errors", "OvstageWarning");
}

PyObject* raise_stage_error_text(int64_t code, PyObject* text) {
  return text ? raise_coded(stage_error, code, text) : NULL;
}

PyObject* raise_stage_error(int64_t code, const char* format, ...) {
  va_list values;
  va_start(values, format);
  PyObject* text = PyUnicode_FromFormatV(format, values);
  va_end(values);
  return raise_stage_error_text(code, text);
}

PyObject* last_library_text(int64_t code) {
  ovx_string_t text = ovstage_get_last_error();
  if (text.length) return string_of(text);
  return PyUnicode_FromFormat("the library gave no reason (status %lld)", (long long)code);
}

PyObject* raise_library_error(int64_t code) { return raise_stage_error_text(code, last_library_text(code)); }

PyObject* raise_forked(const char* method) {
  ovstage_api_status_t status = ovstage_get_usd_stage_id(NULL, NULL); /* any call is refused, and tells why */
  ovx_string_t text = ovstage_get_last_error();
  const char* reason = text.ptr ? strstr(text.ptr, ": ") : NULL; /* after the name of the call */
  return raise_stage_error(status, "%s: %s", method, reason ? reason + 2 : "not possible in a forked child process");
}

PyObject* raise_dictionary_error(path_dictionary_instance_t* dictionary, ovx_string_t text, const uint64_t* handle) {
  PyObject* copy = string_of(text);
  if (copy && handle) {
    PyObject* longer = PyUnicode_FromFormat("%U (handle %llu)", copy, (unsigned long long)*handle);
    Py_DECREF(copy);
    copy = longer;
  }
  dictionary->vtable->release_error(dictionary->context, text);
  if (!copy) return NULL;
  return raise_coded(dictionary_error, OVX_API_ERROR, copy);
}

PyObject* raise_from_current(PyObject* kind, const char* format, ...) {
  PyObject *type, *cause, *traceback;
  PyErr_Fetch(&type, &cause, &traceback);
  PyErr_NormalizeException(&type, &cause, &traceback);
  if (cause && traceback) PyException_SetTraceback(cause, traceback);
  Py_XDECREF(type);
  Py_XDECREF(traceback);

  va_list values;
  va_start(values, format);
  PyErr_FormatV(kind, format, values);
  va_end(values);

  PyObject* error;
  PyErr_Fetch(&type, &error, &traceback);
  PyErr_NormalizeException(&type, &error, &traceback);
  if (error && cause) {
    PyException_SetCause(error, Py_NewRef(cause));
    PyException_SetContext(error, Py_NewRef(cause));
  }
  Py_XDECREF(cause);
  PyErr_Restore(type, error, traceback);
  return NULL;
}

PyObject* shown(PyObject* value) {
  PyObject* type = PyType_GetName(Py_TYPE(value));
  PyObject* text = type ? PyObject_Repr(value) : NULL;
  PyObject* quoted = NULL;
  if (text && PyUnicode_GetLength(text) > 80) {
    PyObject* start = PyUnicode_Substring(text, 0, 77);
    quoted = start ? PyUnicode_FromFormat("%U... (%U)", start, type) : NULL;
    Py_XDECREF(start);
  } else if (text) {
    quoted = PyUnicode_FromFormat("%U (%U)", text, type);
  }
  Py_XDECREF(text);
  Py_XDECREF(type);
  return quoted;
}
