// The least that writing some rows of a column can cost: one assignment per row, nothing else.
#include <stdint.h>

typedef struct {
  float lane[3];
} row;

void scatter(row* restrict target, const row* restrict source, const uint32_t* restrict rows, int64_t count) {
  for (int64_t i = 0; i < count; i++) target[rows[i]] = source[i];
}
