/* Usage of the family, from /proc while it lives and from the kernel's own sums once it has ended. */
#ifndef USAGE_H
#define USAGE_H

#include "family.h"
#include "limits.h"

struct usage {
  long long cpu_us;         /* sum over all processes, ended ones included */
  long long memory;         /* current bytes without pages of files; shared memory counts for each process */
  long long peak;           /* highest memory seen, or highest resident size of one process with its files */
  long long processes;      /* current number */
  long long most_processes; /* highest number seen */
};

/*
 * Measures the current usage and raises the peaks. Returns the number of `members`, an array that is valid until the
 * next call.
 */
size_t look(struct usage *usage, struct member **members);

/* Adds only processes that have ended, without a scan of /proc. No process may be left. */
void sum_up(struct usage *usage);

/* Returns the name of a limit that the family exceeds, with its value in `value`; NULL when it exceeds none. */
const char *over_limit(const struct usage *usage, const struct member *members, const struct limits *limits, long long *value);

/*
 * Returns the milliseconds until the next check: few when much is used, many when nothing happens. Checks never take
 * more than 2 % of the time.
 */
int next_look(const struct usage *now, const struct usage *before, const struct limits *limits, int last_ms, long cost_us);

#endif
