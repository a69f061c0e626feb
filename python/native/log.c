/*
 * log.c - the log callback: one in the process, called by the library's dispatcher thread.
 *
 * A callback that was replaced may still be on its way to be called. It is therefore kept until a flush or a clearing
 * has returned OK, after which the library promises never to call it again. Installing happens with the GIL, so that
 * the list here has the order that the library has; it never waits for a callback.
 */
#include "native.h"

typedef struct receiver {
  struct receiver* next;
  uint64_t number; /* rises with every install */
  PyObject* callback;
} receiver;

static receiver* installed; /* newest first; all but the first are retired. Guarded by the GIL, like the count. */
static uint64_t installs;

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

/* Drops what follows `link`, which is cut off first: what a callback's end runs may install another one. */
static void drop_after(receiver** link) {
  receiver* gone = *link;
  *link = NULL;
  while (gone) {
    receiver* next = gone->next;
    Py_DECREF(gone->callback);
    free(gone);
    gone = next;
  }
}

/* Ends delivery. A callback that another thread has installed meanwhile stays, and so do the retired ones: one of them
 * may still be under way. */
static ovstage_api_status_t remove_callback(void) {
  uint64_t before = installs;
  ovstage_api_status_t status;
  WITHOUT_GIL(status = ovstage_set_log_callback(OVSTAGE_LOG_NONE, NULL, NULL, NULL));
  if (status == OVSTAGE_OK && installs == before) drop_after(&installed);
  return status;
}

/* The dispatcher must not call into an interpreter that is going away. */
PyObject* end_log(PyObject* module, PyObject* unused) {
  (void)module;
  (void)unused;
  if (!installed) return Py_NewRef(Py_None);
  remove_callback(); /* refused where the process state has ended: just as well */
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

static ovstage_api_status_t attempt_flush(void* unused, uint64_t timeout) {
  (void)unused;
  return ovstage_flush_log(timeout);
}

/* Clearing delivers what is on its way first. That is waited for here, where Ctrl-C ends it and leaves the callback. */
static PyObject* clear_callback(void) {
  ovstage_api_status_t status; /* of no interest: from inside the callback there is nothing to wait for */
  if (!wait_in_slices(attempt_flush, NULL, OVSTAGE_TIMEOUT_INFINITE, &status)) return NULL;
  return none_or_raise(remove_callback());
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
  if (slots[0] == Py_None) return clear_callback();
  receiver* fresh = end_log_at_exit(module) ? malloc(sizeof *fresh) : NULL;
  if (!fresh) return PyErr_Occurred() ? NULL : PyErr_NoMemory();
  *fresh = (receiver){installed, ++installs, Py_NewRef(slots[0])};
  installed = fresh; /* before the library knows it: a message may arrive at once */
  ovstage_api_status_t status = ovstage_set_log_callback((ovstage_log_severity_t)severity,
                                                         filter.length ? &filter : NULL, deliver, fresh);
  if (status == OVSTAGE_OK) return Py_NewRef(Py_None);
  installed = fresh->next;
  raise_library_error(status);
  Py_DECREF(fresh->callback);
  free(fresh);
  return NULL;
}

PyObject* flush_log(PyObject* module, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  (void)module;
  static signature sig = {"flush_log", 1, 0, {"timeout"}, {0}};
  PyObject* slots[1];
  uint64_t timeout;
  if (!sort_arguments(&sig, args, nargs, kwnames, slots) || !guard_timeout(slots[0], &timeout)) return NULL;
  drop_parked();
  uint64_t newest = installed ? installed->number : 0;
  ovstage_api_status_t status;
  if (!wait_in_slices(attempt_flush, NULL, timeout, &status)) return NULL;
  if (status == OVSTAGE_ERROR_TIMEOUT) return Py_NewRef(Py_False);
  if (status != OVSTAGE_OK) return raise_library_error(status);
  receiver** link = &installed;
  while (*link && (*link)->number >= newest) link = &(*link)->next;
  drop_after(link); /* retired before the flush; later ones are not covered by it */
  return Py_NewRef(Py_True);
}
