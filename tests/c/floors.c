/*
 * floors.c - waiting for the write floor, on other threads and beside the end of the stage; what changed since.
 */
#include <pthread.h>
#include <string.h>

#include "scene.h"

static const uint64_t SECOND = 1000000000ULL;

static void seal_attribute(const scene* s, uint64_t ordinal, const char* attribute) {
  ovx_token_t token = token_of(s, attribute);
  ovstage_write_floor_desc_t desc = {ordinal, OVSTAGE_SCOPE_INCLUDE, &token, 1};
  DONE(s, ovstage_advance_write_floor(s->stage, &desc));
}

/* ---- One thread -------------------------------------------------------------------------------------------------- */

static void check_answers(void) {
  scene s;
  if (!open_scene(&s, "floors")) return;
  ovx_string_or_token_t names[2] = {by_name("mass"), by_name("speed")};
  CHECK(s.go->wait_floor(s.stage, NULL, 0, 0, 0) == OVSTAGE_OK);
  CHECK_FAILS(s.go->wait_floor(s.stage, NULL, 0, 1, 0), OVSTAGE_ERROR_TIMEOUT,
              "the global write floor is 0, ordinal 1 was waited for; no attribute is sealed further");
  DONE(&s, seal(&s, 3));
  CHECK(s.go->wait_floor(s.stage, NULL, 0, 3, OVSTAGE_TIMEOUT_INFINITE) == OVSTAGE_OK);
  CHECK(s.go->wait_floor(s.stage, names, 2, 3, 0) == OVSTAGE_OK); /* not known: the global floor */
  seal_attribute(&s, 7, "mass");
  CHECK(s.go->wait_floor(s.stage, names, 1, 7, 0) == OVSTAGE_OK);
  CHECK_FAILS(s.go->wait_floor(s.stage, names, 2, 7, SECOND / 1000), OVSTAGE_ERROR_TIMEOUT,
              "the write floor of attribute \"speed\" is 3, ordinal 7 was waited for; "
              "sealed further than the global floor 3: \"mass\" up to 7");
  close_scene(&s);
}

static void check_refusals(void) {
  scene s;
  if (!open_scene(&s, "floors refused")) return;
  ovx_string_or_token_t none = by_name("");
  CHECK_FAILS(s.go->wait_floor(s.stage, NULL, 1, 1, 0), OVSTAGE_ERROR_INVALID_ARGUMENT, "attributes");
  CHECK_FAILS(s.go->wait_floor(s.stage, &none, 1, 1, 0), OVSTAGE_ERROR_INVALID_ARGUMENT, "attributes[0]");
  none.token = (ovx_token_t)1 << 60;
  CHECK_FAILS(s.go->wait_floor(s.stage, &none, 1, 1, 0), OVSTAGE_ERROR_INVALID_ARGUMENT, "is not a token");
  CHECK_FAILS(s.go->wait_floor(NULL, NULL, 0, 1, 0), OVSTAGE_ERROR_INVALID_ARGUMENT, "instance");
  uint64_t moves = 0;
  CHECK(s.go->floor_moves(s.stage, 0, OVSTAGE_TIMEOUT_INFINITE, &moves) == OVSTAGE_OK && moves != 0);
  CHECK_FAILS(s.go->floor_moves(s.stage, moves, 1, &moves), OVSTAGE_ERROR_TIMEOUT,
              "timeout: no write floor has moved after 1 ns");
  CHECK_FAILS(s.go->floor_moves(s.stage, moves, 1, NULL), OVSTAGE_ERROR_INVALID_ARGUMENT, "moves");
  close_scene(&s);
}

/* ---- What changed since ------------------------------------------------------------------------------------------ */

static size_t prims_of(const scene* s, ovstage_read_handle_t read, bool deleted) {
  size_t count = 0;
  ovstage_read_group_t group;
  while (ovstage_fetch_read_next(s->stage, read, OVSTAGE_TIMEOUT_INFINITE, &group) == OVSTAGE_OK) {
    if (group.is_delete == deleted) count += group.prims.count;
    CHECK(ovstage_release_group(s->stage, &group) == OVSTAGE_OK);
  }
  DONE(s, ovstage_release_read(s->stage, read));
  return count;
}

static void check_following(void) {
  scene s;
  if (!open_scene(&s, "following")) return;
  ovx_token_t mass = token_of(&s, "mass");
  ovstage_go_cursor_t cursor = {mass, 77, 0, true, false};
  ovstage_read_handle_t read;
  DONE(&s, write_floats(&s, mass, 1, 1, 2, 3));
  DONE(&s, seal(&s, 1));
  DONE(&s, s.go->read_since(s.stage, 0, &cursor, 1, &read));
  CHECK(prims_of(&s, read, false) == PRIMS);
  CHECK(cursor.until == 1 && cursor.resync);

  cursor.since = cursor.until;
  cursor.resync = false;
  DONE(&s, s.go->read_since(s.stage, 0, &cursor, 1, &read));
  CHECK(prims_of(&s, read, false) == 0);
  CHECK(cursor.until == 1 && !cursor.resync);

  ovx_string_or_token_t gone = by_token(mass);
  const char* const one[] = {"/World/A"};
  ovstage_query_handle_t query = query_of(&s, one, 1);
  DONE(&s, ovstage_delete_attributes(s.stage, query, &gone, 1, 2));
  DONE(&s, ovstage_release_query(s.stage, query));
  DONE(&s, seal(&s, 2));
  DONE(&s, s.go->read_since(s.stage, s.query, &cursor, 1, &read));
  CHECK(prims_of(&s, read, true) == 1);
  CHECK(cursor.until == 2);

  DONE(&s, write_floats(&s, mass, 3, 7, 8, 9));
  DONE(&s, seal(&s, 3));
  ovstage_go_cursor_t limited = {mass, 1, 2, false, true};
  CHECK_REFUSED(s.go->read_since(s.stage, 0, &limited, 1, &read), OVSTAGE_ERROR_OUT_OF_RANGE,
                "its earlier value is no longer kept");
  limited.since = 2;
  limited.until = 3;
  DONE(&s, s.go->read_since(s.stage, 0, &limited, 1, &read));
  CHECK(prims_of(&s, read, false) == PRIMS);
  CHECK(limited.until == 3);
  CHECK_REFUSED(s.go->read_since(s.stage, 0, NULL, 1, &read), OVSTAGE_ERROR_INVALID_ARGUMENT,
                "cursors: there is none, expected one for each attribute");
  CHECK_REFUSED(s.go->read_since(s.stage, 0, &cursor, 1, NULL), OVSTAGE_ERROR_INVALID_ARGUMENT, "out");
  CHECK_REFUSED(s.go->read_since(s.stage, 4711, &cursor, 1, &read), OVSTAGE_ERROR_INVALID_HANDLE, "4711");
  close_scene(&s);
}

/* ---- Several threads --------------------------------------------------------------------------------------------- */

typedef struct {
  const scene* s;
  uint64_t ordinal;
  const char* attribute;
  ovstage_api_status_t status;
} waiting;

static void* wait_on_a_thread(void* argument) {
  waiting* w = (waiting*)argument;
  ovx_string_or_token_t name = by_name(w->attribute != NULL ? w->attribute : "");
  size_t count = w->attribute != NULL ? 1 : 0;
  w->status = w->s->go->wait_floor(w->s->stage, &name, count, w->ordinal, OVSTAGE_TIMEOUT_INFINITE);
  return NULL;
}

enum { WAITERS = 6 };

static void check_waiters_are_woken(void) {
  scene s;
  if (!open_scene(&s, "floors awaited")) return;
  pthread_t threads[WAITERS];
  waiting waits[WAITERS];
  for (int i = 0; i < WAITERS; i++) {
    waiting one = {&s, (uint64_t)(i + 1), i % 2 ? "mass" : NULL, OVSTAGE_ERROR_INTERNAL};
    waits[i] = one;
    CHECK(pthread_create(&threads[i], NULL, wait_on_a_thread, &waits[i]) == 0);
  }
  for (uint64_t ordinal = 1; ordinal <= WAITERS; ordinal++) DONE(&s, seal(&s, ordinal));
  for (int i = 0; i < WAITERS; i++) {
    CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(waits[i].status == OVSTAGE_OK);
  }
  close_scene(&s);
}

/* The stage ends while calls wait in it, without a limit: they end, and the destroy does not wait for anything else. */
static void check_stage_that_ends(void) {
  for (int round = 0; round < 20; round++) {
    scene s;
    if (!open_scene(&s, "floors end")) return;
    pthread_t threads[WAITERS];
    waiting waits[WAITERS];
    for (int i = 0; i < WAITERS; i++) {
      waiting one = {&s, 100, NULL, OVSTAGE_OK};
      waits[i] = one;
      CHECK(pthread_create(&threads[i], NULL, wait_on_a_thread, &waits[i]) == 0);
    }
    if (round % 2) DONE(&s, seal(&s, 1));
    scene held = s; /* its threads may still come to the stage: its table must outlive the destroy */
    s.go->instance_retain(held.stage);
    close_scene(&s);
    for (int i = 0; i < WAITERS; i++) {
      CHECK(pthread_join(threads[i], NULL) == 0);
      CHECK(waits[i].status == OVSTAGE_ERROR_INVALID_HANDLE);
    }
    held.go->instance_release(held.stage);
  }
}

const check_group floor_groups[] = {
    {"floors: answers", check_answers},
    {"floors: refusals", check_refusals},
    {"floors: following", check_following},
    {"floors: waiters are woken", check_waiters_are_woken},
    {"floors: a stage that ends", check_stage_that_ends},
};
const size_t floor_group_count = sizeof floor_groups / sizeof floor_groups[0];
