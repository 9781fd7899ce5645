/* Carries bytes from one descriptor to another without ever blocking. */
#ifndef PUMP_H
#define PUMP_H

#include <poll.h>
#include <stddef.h>

enum { PUMP_BYTES = 64 * 1024 };

struct pump {
  int from; /* -1 once at its end */
  int to;   /* -1 once closed; what is read then is thrown away, so that the writer never blocks */
  size_t start, end;
  long long taken; /* bytes, since it was opened */
  char bytes[PUMP_BYTES];
};

void pump_open(struct pump *p, int from, int to);

/* What to wait for: fills two entries; an entry that is not waited for has fd -1. */
void pump_wants(const struct pump *p, struct pollfd wants[2]);

/* Reads what there is, when nothing is left to be written. Returns 1 when it read something. */
int pump_take(struct pump *p);

/* Writes what was read, as far as it is taken. Closes `to` behind the last byte. Returns 1 when it wrote something. */
int pump_give(struct pump *p);

/* Moves what can be moved now. Returns 1 when it moved something. */
int pump_run(struct pump *p);

/* Bytes that were written into `from` by now, those that still wait there too. */
long long pump_given(const struct pump *p);

/* Takes what is there and closes: for a pipe that somebody outside the family still holds. */
void pump_finish(struct pump *p);

int pump_done(const struct pump *p);

#endif
