/* clock.c - vector clocks. An access is ordered after another one if the agent of the first knew of it. */
#include <stdio.h>
#include <stdlib.h>

#include "fake.h"

static int agents;
static vector hosts[AGENTS]; /* by agent; those of streams are in the streams */
static __thread int this_host = -1;

int clock_agent(void) {
  if (agents == AGENTS) {
    fprintf(stderr, "fakecuda: more than %d streams and threads\n", AGENTS);
    abort();
  }
  return agents++;
}

void clock_join(vector into, const vector other) {
  for (int i = 0; i < agents; i++)
    if (other[i] > into[i]) into[i] = other[i];
}

int clock_host(void) {
  if (this_host < 0) {
    this_host = clock_agent();
    hosts[this_host][this_host] = 1;
  }
  return this_host;
}

uint32_t* clock_of_host(void) { return hosts[clock_host()]; }

void clock_tick_host(void) { clock_of_host()[clock_host()]++; }
