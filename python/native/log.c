/*
 * log.c - the log callback: one in the process, called by the library's dispatcher thread.
 *
 * The library knows one function, deliver, whatever callbacks come and go. It takes the callback of the moment with the
 * GIL, as does the call that replaces it: a replaced callback is let go of at once, and a call that has begun holds its
 * own.
 *
 * A callback that is set before there is a library is kept, and in force from the first stage on.
 */
#include "native.h"

#include <pthread.h>

#include "../../capi_export/log_rules.h" /* the library's own, and not installed: both judge rules by it */

/* All of it is guarded by the GIL. */
static PyObject* receiver; /* NULL: none */
static uint64_t installs;  /* so far */
static struct {            /* how to install the receiver that is kept; `rules` is NULL when there is none */
  int32_t severity;
  PyObject* rules;
} kept;

static void call_receiver(ovstage_log_severity_t severity, double timestamp, ovx_string_t message) {
  if (!receiver) return;
  PyObject* callback = Py_NewRef(receiver);
  PyObject* text = string_of(message);
  PyObject* result = text ? PyObject_CallFunction(callback, "idO", (int)severity, timestamp, text) : NULL;
  if (!result) PyErr_WriteUnraisable(callback); /* printed with its traceback: there is no caller to raise it to */
  Py_XDECREF(result);
  Py_XDECREF(text);
  Py_DECREF(callback);
}

/* The interpreter that callbacks are called in: that of the first one. */
static PyInterpreterState* interpreter;

/* Guards the making and the end of a thread state, which take a lock of the interpreter without the GIL. CPython 3.11
 * takes that lock in a forked child before it makes it anew, so that a fork in such a moment is a child that hangs. A
 * fork therefore takes this mutex first (see fork_hooks). While it is held neither the GIL nor another lock of this
 * module is waited for. */
static pthread_mutex_t thread_states = PTHREAD_MUTEX_INITIALIZER;

/* Into the interpreter, with the GIL. The thread is Go's own, and has no thread state but during a call. */
static PyThreadState* enter_python(void) {
  pthread_mutex_lock(&thread_states);
  PyThreadState* state = PyThreadState_New(interpreter);
  pthread_mutex_unlock(&thread_states);
  if (state) PyEval_RestoreThread(state);
  return state;
}

static void leave_python(PyThreadState* state) {
  PyThreadState_Clear(state);
  PyEval_SaveThread();
  pthread_mutex_lock(&thread_states);
  PyThreadState_Delete(state);
  pthread_mutex_unlock(&thread_states);
}

/* Takes what is queued in one turn of the GIL, which callbacks give up like all Python: a turn for each message would
 * fall behind threads that log without a pause. */
static void deliver(ovstage_log_severity_t severity, double timestamp, ovx_string_t message, void* unused) {
  (void)unused;
  if (!Py_IsInitialized()) return;
  PyThreadState* state = enter_python();
  if (!state) return; /* no memory: the message is lost, as it would be in the callback */
  do call_receiver(severity, timestamp, message);
  while (native.go && native.go->log_next(deliver, NULL, &severity, &timestamp, &message));
  leave_python(state);
}

/* Without the GIL: between its hook and its fork a thread may run other hooks, and then this one waits for it. */
static PyObject* before_fork(PyObject* module, PyObject* unused) {
  (void)module;
  (void)unused;
  WITHOUT_GIL(pthread_mutex_lock(&thread_states));
  Py_RETURN_NONE;
}

static PyObject* after_fork(PyObject* module, PyObject* unused) {
  (void)module;
  (void)unused;
  pthread_mutex_unlock(&thread_states);
  Py_RETURN_NONE;
}

static PyMethodDef fork_hooks[] = {{"_before_fork", before_fork, METH_NOARGS, NULL},
                                   {"_after_fork", after_fork, METH_NOARGS, NULL}};

/* Once, before the first callback can be called. */
static bool hook_forks(void) {
  static bool hooked;
  if (hooked) return true;
  interpreter = PyInterpreterState_Get();
  PyObject* os = PyImport_ImportModule("os");
  PyObject* hook = os ? PyObject_GetAttrString(os, "register_at_fork") : NULL;
  PyObject* before = hook ? PyCFunction_New(&fork_hooks[0], NULL) : NULL;
  PyObject* after = before ? PyCFunction_New(&fork_hooks[1], NULL) : NULL;
  PyObject* names =
      after ? Py_BuildValue("{sOsOsO}", "before", before, "after_in_parent", after, "after_in_child", after) : NULL;
  PyObject* none = names ? PyTuple_New(0) : NULL;
  PyObject* result = none ? PyObject_Call(hook, none, names) : NULL;
  hooked = result != NULL;
  Py_XDECREF(result);
  Py_XDECREF(none);
  Py_XDECREF(names);
  Py_XDECREF(after);
  Py_XDECREF(before);
  Py_XDECREF(hook);
  Py_XDECREF(os);
  return hooked;
}

/* Whatever the end of the earlier one runs finds the new one in its place. */
static void replace_receiver(PyObject* callback) {
  PyObject* earlier = receiver;
  receiver = Py_XNewRef(callback);
  installs++;
  Py_CLEAR(kept.rules);
  Py_XDECREF(earlier);
}

/* ---- Installing -------------------------------------------------------------------------------------------------- */

/* While the library has the callback it is held alive, so that the end of the last stage does not wait for messages on
 * its own: that is done here, where Ctrl-C is answered. */
static bool holding;

/* With the GIL all the while: callbacks are here and in the library in one order. It waits for no callback. */
static ovstage_api_status_t install(int32_t severity, ovx_string_t rules) {
  ovstage_api_status_t status =
      ovstage_set_log_callback((ovstage_log_severity_t)severity, rules.length ? &rules : NULL, deliver, NULL);
  if (status == OVSTAGE_OK && !holding) holding = ovstage_initialize(NULL) == OVSTAGE_OK;
  return status;
}

static void release_library(void) {
  if (!holding) return;
  holding = false;
  WITHOUT_GIL(ovstage_shutdown());
}

/* Before there is a library, which judges the rules otherwise. */
static bool keep_callback(PyObject* callback, int32_t severity, PyObject* filter) {
  PyObject* rules = filter ? Py_NewRef(filter) : PyUnicode_FromString("");
  ovx_string_t text;
  char fault[512];
  int level;
  if (!rules || !guard_string(rules, "channel_filter", &text)) {
    Py_XDECREF(rules);
    return false;
  }
  if (!log_threshold(severity, text, &level, fault, sizeof fault)) {
    Py_DECREF(rules);
    return raise_stage_error(OVSTAGE_ERROR_INVALID_ARGUMENT, "%s", fault) != NULL;
  }
  replace_receiver(callback);
  kept.severity = severity;
  kept.rules = rules;
  return true;
}

bool begin_log(void) {
  if (!kept.rules) return true;
  ovx_string_t rules;
  if (!guard_string(kept.rules, "channel_filter", &rules)) return false;
  ovstage_api_status_t status = ovstage_initialize(NULL);
  if (status == OVSTAGE_OK) {
    holding = true;
    status = install(kept.severity, rules);
  }
  if (status == OVSTAGE_OK) {
    Py_CLEAR(kept.rules);
    return true;
  }
  raise_library_error(status);
  release_library();
  return false;
}

/* ---- Waiting ----------------------------------------------------------------------------------------------------- */

static const uint64_t AT_EXIT = 2000000000; /* ns */
static bool leaving;                        /* the interpreter is: nothing waits for longer */

static ovstage_api_status_t attempt_log_wait(void* mark, uint64_t timeout) {
  return native.go->log_wait(*(uint64_t*)mark, timeout);
}

/* Wait for the messages up to a mark, which is set before the wait, so that other threads that log cannot draw it out.
 */
static bool wait_for_log(uint64_t mark, uint64_t timeout, ovstage_api_status_t* status) {
  return wait_in_slices(attempt_log_wait, &mark, leaving && timeout > AT_EXIT ? AT_EXIT : timeout, status);
}

/* Takes the callback away; what is under way is not delivered any more. The number of such messages, with the one that
 * a call is at now, is the answer; `mark` is what to wait for until no call is. */
static uint64_t cut_log(uint64_t* mark) {
  uint64_t left = 0;
  *mark = native.go->log_cut(deliver, NULL, &left);
  replace_receiver(NULL);
  release_library();
  return left;
}

/* Delivers what is under way and ends. False: a signal handler raised, and the callback is still in force. */
static bool end_in_order(void) {
  uint64_t before = installs, mark = native.go->log_mark();
  ovstage_api_status_t status; /* of no interest: from inside the callback there is nothing to wait for */
  if (!wait_for_log(mark, OVSTAGE_TIMEOUT_INFINITE, &status)) return false;
  if (installs != before) return true; /* another thread has installed one meanwhile */
  cut_log(&mark);
  return wait_for_log(mark, OVSTAGE_TIMEOUT_INFINITE, &status);
}

static bool in_library(void) { return holding && native.go && !native.forked; }

bool end_log_of_stages(void) {
  if (!in_library() || native.stages) return true;
  uint64_t before = installs, mark = native.go->log_mark();
  ovstage_api_status_t status;
  bool calm = wait_for_log(mark, OVSTAGE_TIMEOUT_INFINITE, &status);
  if (installs != before || native.stages) return calm;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  cut_log(&mark);
  PyErr_Restore(type, value, traceback);
  return calm && wait_for_log(mark, OVSTAGE_TIMEOUT_INFINITE, &status);
}

/* The dispatcher must not call into an interpreter that is going away. */
static PyObject* end_log(PyObject* module, PyObject* unused) {
  (void)module;
  (void)unused;
  leaving = true;
  if (!in_library()) return Py_NewRef(Py_None);
  uint64_t mark = native.go->log_mark();
  ovstage_api_status_t status;
  bool calm = wait_for_log(mark, AT_EXIT, &status);
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  uint64_t left = cut_log(&mark);
  if (left)
    PySys_WriteStderr("ovstage: %llu log messages were not delivered, the callback is too slow for the exit\n",
                      (unsigned long long)left);
  PyErr_Restore(type, value, traceback);
  return calm ? Py_NewRef(Py_None) : NULL;
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

/* ---- The functions of the module --------------------------------------------------------------------------------- */

static PyObject* set_log_callback(PyObject* module, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  enum { CALLBACK, SEVERITY, CHANNEL_FILTER, SLOTS };
  static signature sig = {"set_log_callback", 3, 1, {"callback", "severity", "channel_filter"}, {0}};
  PyObject* slots[SLOTS];
  int32_t severity = OVSTAGE_LOG_WARNING;
  ovx_string_t rules = {0};
  if (!sort_arguments(&sig, args, nargs, kwnames, slots) ||
      (slots[SEVERITY] && !guard_int32(slots[SEVERITY], "severity", &severity)) ||
      (is_given(slots[CHANNEL_FILTER]) && !guard_string(slots[CHANNEL_FILTER], "channel_filter", &rules))) {
    return NULL;
  }
  if (native.forked) return raise_forked("set_log_callback");
  drop_parked();
  if (slots[CALLBACK] == Py_None) {
    if (in_library()) return end_in_order() ? Py_NewRef(Py_None) : NULL;
    replace_receiver(NULL);
    return Py_NewRef(Py_None);
  }
  if (!end_log_at_exit(module) || !hook_forks()) return NULL;
  if (!library_is_open())
    return keep_callback(slots[CALLBACK], severity, rules.length ? slots[CHANNEL_FILTER] : NULL) ? Py_NewRef(Py_None)
                                                                                                 : NULL;
  ovstage_api_status_t status = install(severity, rules);
  if (status != OVSTAGE_OK) return raise_library_error(status);
  replace_receiver(slots[CALLBACK]);
  return Py_NewRef(Py_None);
}

static PyObject* flush_log(PyObject* module, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  (void)module;
  static signature sig = {"flush_log", 1, 0, {"timeout"}, {0}};
  PyObject* given;
  uint64_t timeout;
  if (!sort_arguments(&sig, args, nargs, kwnames, &given) || !guard_timeout(given, &timeout)) return NULL;
  if (native.forked) return raise_forked("flush_log");
  drop_parked();
  if (!native.go) return Py_NewRef(Py_True); /* no stage has ever been, nor said anything */
  ovstage_api_status_t status;
  if (!wait_for_log(native.go->log_mark(), timeout, &status)) return NULL;
  if (status == OVSTAGE_ERROR_TIMEOUT) return Py_NewRef(Py_False);
  return status == OVSTAGE_OK ? Py_NewRef(Py_True) : raise_library_error(status);
}

PyMethodDef log_functions[] = {
    {"set_log_callback", FAST_KEYWORDS(set_log_callback), DOC_set_log_callback},
    {"flush_log", FAST_KEYWORDS(flush_log), DOC_flush_log},
    {"_end_log", end_log, METH_NOARGS, DOC__end_log},
    {NULL, NULL, 0, NULL},
};
