/*
 * orphan.c - inputs of an operation whose Operation was dropped before it was done: the stage keeps them until it is.
 */
#include "native.h"

void stage_adopt_orphan(Stage* self, uint64_t op, bool release, PyObject* inputs) {
  orphan* kept = malloc(sizeof *kept);
  if (!kept) return; /* without memory they are leaked: freeing what the engine still reads would be worse */
  *kept = (orphan){self->orphans, op, release, inputs};
  self->orphans = kept;
}

void drop_finished_orphans(Stage* self) {
  orphan** link = &self->orphans;
  while (*link) {
    orphan* kept = *link;
    if (self->alive && ovstage_wait_op(self->instance, kept->op, 0, NULL) == OVSTAGE_ERROR_TIMEOUT) {
      link = &kept->next;
      continue;
    }
    *link = kept->next;
    if (self->alive && kept->release) ovstage_release_op(self->instance, kept->op);
    PyObject* inputs = kept->inputs;
    free(kept);
    Py_XDECREF(inputs); /* may run anything: begin anew */
    link = &self->orphans;
  }
}
