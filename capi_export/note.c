/*
 * note.c - what the file says of itself without being loaded. See ovstage_go.h.
 *
 * Loading is starting: the runtime of Go has threads from then on. So the version is an ELF note, which any program can
 * read.
 */
#include "ring.h"

__attribute__((section(".note.ovstage"), used, aligned(4))) static const struct {
  uint32_t name_size, data_size, type;
  char name[sizeof OVSTAGE_GO_NOTE_NAME]; /* 8 bytes, no padding */
  ovstage_go_note_t data;
} note = {
    sizeof OVSTAGE_GO_NOTE_NAME,
    sizeof(ovstage_go_note_t),
    OVSTAGE_GO_NOTE_TYPE,
    OVSTAGE_GO_NOTE_NAME,
    {OVSTAGE_VERSION_MAJOR, OVSTAGE_VERSION_MINOR, OVSTAGE_VERSION_PATCH, 1, sizeof(ovstage_go_v1_t)},
};

_Static_assert(sizeof OVSTAGE_GO_NOTE_NAME % 4 == 0, "the name of a note is padded to four bytes");
