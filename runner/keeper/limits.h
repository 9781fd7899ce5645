/* What one family may use: rlimits of each of its processes, and sums that are looked at while it runs. */
#ifndef LIMITS_H
#define LIMITS_H

#include <sys/resource.h>

enum { RLIMITS = 6 };

struct limits {
  rlim_t of_process[RLIMITS]; /* RLIM_INFINITY: is left as it is */
  long long memory;           /* bytes of the family; 0: any */
  long long processes;        /* of the family; 0: any */
  long long cpu_us;           /* microseconds of the family; 0: any */
  int contained;              /* nobody is in this PID namespace but the runner, as PID 1, and what it started */
};

/* Reads `data=N,cpu=N,fsize=N,nproc=N,nofile=N,core=N,memory=N,processes=N,contained=1`, any of them, or `-`. Returns -1 for another text. */
int read_limits(const char *text, struct limits *limits);

/* Sets the rlimits of this process. Returns the name of one that cannot be set, errno telling why, or NULL. */
const char *set_limits(const struct limits *limits);

#endif
