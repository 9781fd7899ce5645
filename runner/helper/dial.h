#ifndef HELPER_DIAL_H
#define HELPER_DIAL_H

/* Why the runner was not reached. */
struct dial_failure {
  const char *code; /* of core/enter/hello.ts */
  char message[200];
};

/*
 * Connects to the runner of this pod, by the variable BERTH_POD_UID. Returns the socket, or -1 with the failure. The
 * listener must be PID 1, which no process of the agent is; on the embedded cluster (BERTH_LOCAL_ROOT) no runner is.
 */
int dial_runner(struct dial_failure *failure);

#endif
