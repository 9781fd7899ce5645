/* Starts the agent's process. */
#ifndef START_H
#define START_H

#include <sys/types.h>

#include "limits.h"

struct started {
  pid_t pid;       /* -1 when it could not be started */
  int error;       /* errno then */
  const char *step; /* which step failed: pipe, fork, limit, exec */
  const char *limit; /* which limit could not be set */
  int in, out, err; /* our ends of its standard streams */
};

/* `file` is executed with `argv` and this process's environment, within the limits, in a session of its own, killed when this one dies. The child says its pid on `control` first. */
struct started start_process(const char *file, char *const argv[], const struct limits *limits, int control);

#endif
