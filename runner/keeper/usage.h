/* What the family uses, from /proc while it lives and from the kernel's own sums once it has ended. */
#ifndef USAGE_H
#define USAGE_H

#include "family.h"
#include "limits.h"

struct usage {
  long long cpu_us;         /* of all that ever lived */
  long long memory;         /* bytes now: all but pages of files, what processes share counted for each */
  long long peak;           /* the most that was seen, or that any one process had with its files */
  long long processes;      /* now */
  long long most_processes; /* the most that were seen */
};

/* Adds up what is there now; peaks grow. Returns the number of `members`, an array that belongs to the next look. */
size_t look(struct usage *usage, struct member **members);

/* Only what has ended by now, which costs no look at /proc. Nobody may be left. */
void sum_up(struct usage *usage);

/* The name of a limit that the family is over, its value in `value`; NULL when it is over none. */
const char *over_limit(const struct usage *usage, const struct member *members, const struct limits *limits, long long *value);

/* Milliseconds until the next look: soon when much is used, rarely when nothing happens, never more than 2 % of the time. */
int next_look(const struct usage *now, const struct usage *before, const struct limits *limits, int last_ms, long cost_us);

#endif
