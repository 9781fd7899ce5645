/* Starts the agent's process. */
#ifndef START_H
#define START_H

#include <sys/types.h>

#include "limits.h"
#include "terminal.h"

struct started {
  pid_t pid;       /* -1 when it could not be started */
  int error;       /* errno in that case */
  const char *step; /* failed step: pipe, terminal, fork, limit, exec */
  const char *limit; /* limit that could not be set */
  int in, out, err; /* our ends of its standard streams; err is -1 where it has a terminal, for all three */
  struct terminal terminal;
};

/*
 * Executes `file` with `argv` and this process's environment, within the limits, in a session of its own, on a terminal if the
 * limits say so. The child is killed when this process dies. It reports its pid on `control` first.
 */
struct started start_process(const char *file, char *const argv[], const struct limits *limits, int control);

#endif
