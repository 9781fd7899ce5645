/* Copies bytes from one descriptor to another without ever blocking. */
#ifndef PUMP_H
#define PUMP_H

#include <poll.h>
#include <stddef.h>

enum { PUMP_BYTES = 64 * 1024 };

struct pump {
  int from; /* -1 at its end */
  int to;   /* -1 once closed; later bytes are discarded, so that the writer never blocks */
  size_t start, end;
  long long taken; /* bytes since it was opened */
  char bytes[PUMP_BYTES];
};

void pump_open(struct pump *p, int from, int to);

/* Fills two poll entries; an entry that is not awaited has fd -1. */
void pump_wants(const struct pump *p, struct pollfd wants[2]);

/* Reads available bytes if all earlier ones are written. Returns 1 when it read something. */
int pump_take(struct pump *p);

/*
 * Writes the bytes that were read, as many as `to` accepts. Closes `to` after the last byte. Returns 1 when it wrote
 * something.
 */
int pump_give(struct pump *p);

/* Reads and writes as much as possible now. Returns 1 when it moved something. */
int pump_run(struct pump *p);

/* Returns the bytes written into `from` so far, including those that still wait there. */
long long pump_given(const struct pump *p);

/* Reads the available bytes and closes: for a pipe that a process outside the family still holds. */
void pump_finish(struct pump *p);

int pump_done(const struct pump *p);

#endif
