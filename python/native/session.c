/*
 * session.c - map sessions, as the groups that were fetched from them see them.
 *
 * A group must learn when its session ends, by whatever way: the groups share a small record with the stage, whose flag
 * is set before the call that ends the session, because the GIL is free while that call runs.
 */
#include "native.h"

void session_release(map_session* session) {
  if (session && --session->references == 0) free(session);
}

void session_end_all(Stage* self) {
  while (self->sessions) {
    map_session* session = self->sessions;
    self->sessions = session->next;
    session->ended = true;
    session_release(session);
  }
}

static map_session** find_session(Stage* self, uint64_t handle) {
  map_session** link = &self->sessions;
  while (*link && (*link)->handle != handle) link = &(*link)->next;
  return link;
}

/* Mark a session's groups as dead before the call that ends it: the GIL is free while it runs. */
void session_begin_end(Stage* self, uint64_t handle) {
  map_session* session = *find_session(self, handle);
  if (session) session->ended = true;
}

void session_finish_end(Stage* self, uint64_t handle, bool ended) {
  map_session **link = find_session(self, handle), *session = *link;
  if (!session) return;
  session->ended = ended;
  if (!ended) return;
  *link = session->next;
  session_release(session);
}

/* The record of a session, made before the fetch: whatever ends the session meanwhile must find it. One reference more.
 */
map_session* session_join(Stage* self, uint64_t handle) {
  map_session* session = *find_session(self, handle);
  if (!session) {
    session = malloc(sizeof *session);
    if (!session) return (map_session*)PyErr_NoMemory();
    *session = (map_session){self->sessions, handle, 1, false};
    self->sessions = session;
  }
  session->references++;
  return session;
}

void session_leave(Stage* self, map_session* session) {
  map_session** link = find_session(self, session->handle);
  if (*link == session && session->references == 2) { /* ours and the list's: no group has come of it */
    *link = session->next;
    session_release(session);
  }
  session_release(session);
}
