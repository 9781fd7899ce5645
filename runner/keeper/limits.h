/* Limits of one family: rlimits of each of its processes, and sums that are checked while it runs. */
#ifndef LIMITS_H
#define LIMITS_H

#include <sys/resource.h>

enum { RLIMITS = 6 };

struct limits {
  rlim_t of_process[RLIMITS]; /* RLIM_INFINITY: left unchanged */
  long long memory;           /* bytes of the family; 0: no limit */
  long long processes;        /* number in the family; 0: no limit */
  long long cpu_us;           /* microseconds of the family; 0: no limit */
  int has_terminal;           /* true if the program runs on a terminal, of this size */
  unsigned short rows, columns;
  int contained;              /* true if the PID namespace has only the runner, as PID 1, and its descendants */
};

/*
 * Reads any of `data=N,cpu=N,fsize=N,nproc=N,nofile=N,core=N,memory=N,processes=N,contained=1,tty=RxC`, or `-`. Returns -1 for
 * another text.
 */
int read_limits(const char *text, struct limits *limits);

/*
 * Sets the rlimits of this process. Returns NULL, or the name of the one that cannot be set, with the reason in errno.
 */
const char *set_limits(const struct limits *limits);

#endif
