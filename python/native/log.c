/*
 * log.c - the log callback: one in the process, called by the library's dispatcher thread.
 *
 * A callback that was replaced may still be on its way to be called. It is therefore kept until a flush or a clearing
 * has returned OK, after which the library promises never to call it again.
 */
#include "native.h"

typedef struct receiver {
  struct receiver* next;
  PyObject* callback;
} receiver;

static receiver* installed; /* newest first; all but the first are retired. Guarded by the GIL. */

static void deliver(ovstage_log_severity_t severity, double timestamp, ovx_string_t message, void* user_data) {
  if (!Py_IsInitialized()) return;
  PyGILState_STATE state = PyGILState_Ensure();
  PyObject* callback = Py_NewRef(((receiver*)user_data)->callback);
  PyObject* text = string_of(message);
  PyObject* result = text ? PyObject_CallFunction(callback, "idO", (int)severity, timestamp, text) : NULL;
  if (!result) PyErr_WriteUnraisable(callback); /* printed with its traceback: there is nobody to raise it to */
  Py_XDECREF(result);
  Py_XDECREF(text);
  Py_DECREF(callback);
  PyGILState_Release(state);
}

static void drop_after(receiver** link) {
  while (*link) {
    receiver* gone = *link;
    *link = gone->next;
    PyObject* callback = gone->callback;
    free(gone);
    Py_DECREF(callback);
  }
}

/* The dispatcher must not call into an interpreter that is going away. */
PyObject* end_log(PyObject* module, PyObject* unused) {
  (void)module;
  (void)unused;
  if (!installed) return Py_NewRef(Py_None);
  /* refused where the process state has ended: just as well */
  WITHOUT_GIL(ovstage_set_log_callback(OVSTAGE_LOG_NONE, NULL, NULL, NULL));
  drop_after(&installed);
  return Py_NewRef(Py_None);
}

static bool end_log_at_exit(PyObject* module) {
  static bool registered;
  if (registered) return true;
  PyObject* atexit = PyImport_ImportModule("atexit");
  PyObject* end = atexit ? PyObject_GetAttrString(module, "_end_log") : NULL;
  PyObject* result = end ? PyObject_CallMethod(atexit, "register", "O", end) : NULL;
  registered = result != NULL;
  Py_XDECREF(result);
  Py_XDECREF(end);
  Py_XDECREF(atexit);
  return registered;
}

PyObject* set_log_callback(PyObject* module, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  static signature sig = {"set_log_callback", 3, 1, {"callback", "severity", "channel_filter"}, {0}};
  PyObject* slots[3];
  int32_t severity = OVSTAGE_LOG_WARNING;
  ovx_string_t filter = {0};
  if (!sort_arguments(&sig, args, nargs, kwnames, slots) ||
      (slots[1] && !guard_int32(slots[1], "severity", &severity)) ||
      (slots[2] && slots[2] != Py_None && !guard_string(slots[2], "channel_filter", &filter))) {
    return NULL;
  }
  drop_parked();
  receiver* fresh = NULL;
  if (slots[0] != Py_None) {
    if (!end_log_at_exit(module)) return NULL;
    if (!(fresh = malloc(sizeof *fresh))) return PyErr_NoMemory();
    *fresh = (receiver){installed, Py_NewRef(slots[0])};
    installed = fresh; /* before the library knows it: a message may arrive at once */
  }
  ovstage_api_status_t status;
  WITHOUT_GIL(status = ovstage_set_log_callback((ovstage_log_severity_t)severity, filter.length ? &filter : NULL,
                                                fresh ? deliver : NULL, fresh));
  if (status != OVSTAGE_OK) {
    raise_library_error(status);
    for (receiver** link = &installed; fresh && *link; link = &(*link)->next) {
      if (*link != fresh) continue;
      *link = fresh->next;
      Py_DECREF(fresh->callback);
      free(fresh);
      break;
    }
    return NULL;
  }
  if (!fresh) drop_after(&installed);
  return Py_NewRef(Py_None);
}

static ovstage_api_status_t attempt_flush(void* unused, uint64_t timeout) {
  (void)unused;
  return ovstage_flush_log(timeout);
}

PyObject* flush_log(PyObject* module, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  (void)module;
  static signature sig = {"flush_log", 1, 0, {"timeout"}, {0}};
  PyObject* slots[1];
  uint64_t timeout;
  if (!sort_arguments(&sig, args, nargs, kwnames, slots) || !guard_timeout(slots[0], &timeout)) return NULL;
  drop_parked();
  receiver* newest = installed;
  ovstage_api_status_t status;
  if (!wait_in_slices(attempt_flush, NULL, timeout, &status)) return NULL;
  if (status == OVSTAGE_ERROR_TIMEOUT) return Py_NewRef(Py_False);
  if (status != OVSTAGE_OK) return raise_library_error(status);
  for (receiver* r = installed; r; r = r->next) {
    if (r == newest) drop_after(&r->next); /* what was retired before the flush; newer ones are not covered by it */
  }
  return Py_NewRef(Py_True);
}
