/*
 * waiting.c - waits that answer Ctrl-C.
 */
#include "native.h"

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

bool wait_in_slices(attempt_function attempt, void* call, uint64_t timeout, ovstage_api_status_t* out) {
  static const uint64_t slice = 20000000; /* 20 ms: Ctrl-C is promised within 50 */
  uint64_t start = timeout > slice && timeout != OVSTAGE_TIMEOUT_INFINITE ? now() : 0, left = timeout;
  for (;;) {
    uint64_t part = left < slice ? left : slice;
    WITHOUT_GIL(*out = attempt(call, part));
    if (*out != OVSTAGE_ERROR_TIMEOUT || left <= slice) return true;
    if (PyErr_CheckSignals() < 0) return false;
    if (timeout != OVSTAGE_TIMEOUT_INFINITE) {
      uint64_t passed = now() - start;
      left = passed < timeout ? timeout - passed : 0;
    }
  }
}
