/*
 * park.c - Python references that foreign code lets go of without the GIL.
 *
 * A DLPack consumer may run a deleter on any thread, in the middle of an exception, or after Python has ended. Deleters
 * that hold Python references therefore only push a node onto a lock-free stack. The thread that holds the GIL next
 * takes the whole stack and drops it: any call into this module, or the interpreter itself, which is asked to look at
 * its next safe point.
 *
 * Pushing is one compare-and-swap loop; taking is one exchange, so that no node is ever read by two threads.
 */
#include "native.h"

_Atomic(parked*) parked_list;

static int drop_at_safe_point(void* unused) {
  (void)unused;
  drop_parked();
  return 0;
}

void park(parked* node) {
  if (!Py_IsInitialized()) return; /* too late: the interpreter is gone, and its objects with it */
  parked* top = atomic_load_explicit(&parked_list, memory_order_relaxed);
  do {
    node->next = top;
  } while (
      !atomic_compare_exchange_weak_explicit(&parked_list, &top, node, memory_order_release, memory_order_relaxed));
  /* Only the node that made the stack non-empty asks: one request serves all that follow. It may be declined when too
   * many are pending; then the next call into the module does the work. */
  if (!top) Py_AddPendingCall(drop_at_safe_point, NULL);
}

void parked_drop(parked* node) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback); /* this may run inside a call that is about to fail */
  if (node->callback) {
    PyObject* result = PyObject_CallFunctionObjArgs(node->callback, node->context, NULL);
    if (!result) PyErr_WriteUnraisable(node->callback);
    Py_XDECREF(result);
  }
  if (node->close) node->close(node);
  Py_XDECREF(node->callback);
  Py_XDECREF(node->context);
  Py_XDECREF(node->owner);
  free(node);
  PyErr_Restore(type, value, traceback);
}

void parked_drop_all(void) {
  parked* node = atomic_exchange_explicit(&parked_list, NULL, memory_order_acquire);
  while (node) { /* newest first; a callback that parks something again starts a new stack */
    parked* next = node->next;
    parked_drop(node);
    node = next;
  }
}
