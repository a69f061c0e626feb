/*
 * ops.c - waiting for operations and releasing them.
 *
 * Operations run inside the call that enqueues them, so one that has an id is finished, and whether it succeeded is one
 * comparison while no operation of the stage has failed. A tick waits three or four times: none of these waits enters
 * Go.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "_cgo_export.h"
#include "ring.h"

static const uint64_t MASK = OV_OP_RING - 1;

bool ov_op_log_open(ov_op_log* log) {
  log->released = calloc(OV_OP_RING / 64, sizeof *log->released);
  return log->released != NULL;
}

void ov_op_log_close(ov_op_log* log) { free(log->released); }

static uint64_t* word_of(const ov_op_log* log, uint64_t op) { return &log->released[(op & MASK) / 64]; }

static uint64_t bit_of(uint64_t op) { return 1ULL << (op % 64); }

static uint64_t newest(const ov_op_log* log) { return __atomic_load_n(&log->issued, __ATOMIC_ACQUIRE); }

void ov_op_log_accept(ov_op_log* log, ovstage_op_id_t op) {
  if (op < OV_OP_RING) return; /* its bit was never used before */
  __atomic_fetch_and(word_of(log, op), ~bit_of(op), __ATOMIC_ACQ_REL);
}

static bool in_window(const ov_op_log* log, uint64_t op) { return newest(log) - op < OV_OP_WINDOW; }

static ovstage_api_status_t refuse_released(uint64_t op) {
  return ov_fail(OVSTAGE_ERROR_INVALID_HANDLE, "op_id %" PRIu64 " has been released already", op);
}

/* INVALID_HANDLE for an id that the client cannot be holding. */
static ovstage_api_status_t check(const ov_op_log* log, uint64_t op) {
  if (op == OVSTAGE_INVALID_OP_ID)
    return ov_fail(OVSTAGE_ERROR_INVALID_HANDLE,
                   "op_id is 0, which is no operation: was the call that gave it rejected?");
  if (op > newest(log))
    return ov_fail(OVSTAGE_ERROR_INVALID_HANDLE, "op_id %" PRIu64 " was never issued: the newest operation is %" PRIu64,
                   op, newest(log));
  if (in_window(log, op) && (__atomic_load_n(word_of(log, op), __ATOMIC_ACQUIRE) & bit_of(op)))
    return refuse_released(op);
  return OVSTAGE_OK;
}

static bool any_failed(const ov_op_log* log) { return __atomic_load_n(&log->failed, __ATOMIC_ACQUIRE) != 0; }

ovstage_api_status_t ov_op_wait(ovstage_context_t* context, ovstage_op_id_t op, ovstage_timeout_ns_t timeout,
                                ovstage_op_wait_result_t* result) {
  (void)timeout; /* whatever has an id is finished */
  ov_thread* thread = ov_thread_here();
  if (thread == NULL) return OVSTAGE_ERROR_OUT_OF_MEMORY;
  thread->failed_op = OVSTAGE_INVALID_OP_ID;
  ovstage_api_status_t status = check(&context->ops, op);
  if (status != OVSTAGE_OK || !any_failed(&context->ops)) return status;
  /* The answer is about this operation alone: its failure is told as often as it is asked for, and no other failure. */
  if (ovgoOpFailure(context, op) == OVSTAGE_OK) return OVSTAGE_OK;
  thread->failed_op = op;
  thread->failed_in = context;
  if (result != NULL) {
    result->error_op_ids = &thread->failed_op;
    result->error_op_id_count = 1;
  }
  return OVSTAGE_OK;
}

void ov_op_error_set(const char* text, size_t length) {
  ov_thread* thread = ov_thread_here();
  if (thread != NULL) ov_text_set(&thread->op_error, text, length);
}

ovstage_api_status_t ov_op_release(ovstage_context_t* context, ovstage_op_id_t op) {
  ov_op_log* log = &context->ops;
  ovstage_api_status_t status = check(log, op);
  if (status != OVSTAGE_OK) return status;
  if (in_window(log, op)) {
    uint64_t before = __atomic_fetch_or(word_of(log, op), bit_of(op), __ATOMIC_ACQ_REL);
    if (before & bit_of(op)) return refuse_released(op); /* another thread was faster */
  }
  return any_failed(log) ? ovgoForgetOp(context, op) : OVSTAGE_OK;
}

ovstage_api_status_t ov_op_status(ovstage_context_t* context, ovstage_op_id_t op) {
  ovstage_api_status_t status = check(&context->ops, op);
  if (status != OVSTAGE_OK || !any_failed(&context->ops)) return status;
  return ovgoOpFailure(context, op);
}
