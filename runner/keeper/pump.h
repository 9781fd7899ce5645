/* Copies bytes from one descriptor to another without ever blocking. */
#ifndef PUMP_H
#define PUMP_H

#include <poll.h>
#include <stddef.h>

/* PUMP_BYTES are read at once; REST_BYTES are more than a terminal of the kernel holds. */
enum { PUMP_BYTES = 64 * 1024, REST_BYTES = 64 * 1024 };

struct pump {
  int from; /* -1 at its end */
  int to;   /* -1 once closed; later bytes are discarded, so that the writer never blocks */
  size_t (*last_bytes)(int to, int line_has_begun, char bytes[2]); /* returns what is written after the end of `from`; may be NULL */
  size_t start, end;
  long long taken; /* bytes since it was opened */
  char bytes[PUMP_BYTES + REST_BYTES];
};

void pump_open(struct pump *p, int from, int to);

/* Makes a pump of no bytes, and closes `to`: its reader finds the end. */
void pump_none(struct pump *p, int to);

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

/*
 * Reads what was written into `from`, a terminal, without waiting for room in `to`, and closes it. A read that finds nothing has waited for
 * what is on its way from the other end (Linux 4.5, n_tty_read).
 */
void pump_read_rest(struct pump *p);

/* Closes `to`; what comes after is discarded. */
void pump_discard(struct pump *p);

/* Reads the available bytes and closes: for a pipe that a process outside the family still holds. */
void pump_finish(struct pump *p);

int pump_done(const struct pump *p);

#endif
