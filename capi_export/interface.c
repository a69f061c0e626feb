/*
 * interface.c - the interface levels that a stage can speak, and the layout in which they differ.
 *
 * What is stored, and what a write takes, is the same at every level. A level decides one thing: how the values of
 * fetched groups are described. This file is the only place that knows how; all that shows a group to a client - the
 * descriptors of C, tensors and arrays of Python, exports - goes by the descriptor that is made from its answer.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "ring.h"

/* ---- Which level ------------------------------------------------------------------------------------------------- */

static pthread_once_t asked = PTHREAD_ONCE_INIT;
static ovstage_go_interface_t of_process; /* DEFAULT: the variable names no level, but this: */
static char said[32];

static void ask_environment(void) {
  const char* name = getenv(OVSTAGE_GO_INTERFACE_VARIABLE);
  of_process = ovstage_go_interface_named(name);
  if (of_process == OVSTAGE_GO_INTERFACE_DEFAULT) snprintf(said, sizeof said, "%s", name);
}

ovstage_api_status_t ov_interface_of_process(uint32_t* out) {
  pthread_once(&asked, ask_environment);
  if (of_process == OVSTAGE_GO_INTERFACE_DEFAULT)
    return ov_fail(OVSTAGE_ERROR_INVALID_ARGUMENT,
                   OVSTAGE_GO_INTERFACE_VARIABLE
                   " is \"%s\", which is no interface level: set it to 0.2 or 0.3, or unset it for 0.2",
                   said);
  *out = (uint32_t)of_process;
  return OVSTAGE_OK;
}

ovstage_go_interface_t ov_interface(const ovstage_context_t* context) {
  return (ovstage_go_interface_t)__atomic_load_n(&context->level, __ATOMIC_RELAXED);
}

ovstage_api_status_t ov_interface_set(ovstage_context_t* context, ovstage_go_interface_t level) {
  if (level == OVSTAGE_GO_INTERFACE_DEFAULT || level == ov_interface(context)) return OVSTAGE_OK;
  if (level != OVSTAGE_GO_INTERFACE_0_2 && level != OVSTAGE_GO_INTERFACE_0_3)
    return ov_fail(
        OVSTAGE_ERROR_INVALID_ARGUMENT,
        "options.interface_level is %d, expected OVSTAGE_GO_INTERFACE_0_2 (2) or OVSTAGE_GO_INTERFACE_0_3 (3)",
        (int)level);
  if (__atomic_load_n(&context->ops.issued, __ATOMIC_ACQUIRE) > 0)
    return ov_fail(
        OVSTAGE_ERROR_INVALID_ARGUMENT,
        "options.interface_level is 0.%d, but the stage speaks 0.%d since its first operation: set it right after "
        "the stage is created",
        (int)level, (int)ov_interface(context));
  __atomic_store_n(&context->level, (uint32_t)level, __ATOMIC_RELAXED);
  return OVSTAGE_OK;
}

/* ---- What it lays out differently -------------------------------------------------------------------------------- */

static int64_t side_of(uint16_t lanes) { return lanes == 4 ? 2 : lanes == 9 ? 3 : lanes == 16 ? 4 : 0; }

ov_form ov_form_of(const ov_values* values) {
  int64_t lanes = values->dtype.lanes;
  ov_form form = {.dtype = values->dtype};
  if (values->level != OVSTAGE_GO_INTERFACE_0_3 || lanes <= 1) return form;
  int64_t side = values->semantic == OVSTAGE_SEMANTIC_MATRIX ? side_of(values->dtype.lanes) : 0;
  form.dtype.lanes = 1;
  form.ndim = side > 0 ? 2 : 1;
  form.extents[0] = side > 0 ? side : lanes;
  form.extents[1] = side;
  return form;
}
