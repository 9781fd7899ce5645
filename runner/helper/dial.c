#define _GNU_SOURCE
#include "dial.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

/* Limit of the wait for a listener whose queue is full, seconds. */
enum { CONNECT_SECONDS = 10 };

static int fail(struct dial_failure *failure, const char *code, const char *what, const char *why) {
  failure->code = code;
  snprintf(failure->message, sizeof failure->message, "%s%s%s", what, why ? ": " : "", why ? why : "");
  return -1;
}

int dial_runner(struct dial_failure *failure) {
  const char *pod = getenv("BERTH_POD_UID");
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (!pod || !*pod) return fail(failure, "Unsupported", "the container has no BERTH_POD_UID, so no runner runs in it", NULL);
  /* An abstract name begins with NUL and has no other end than the address's length. */
  int length = snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "berth/%s", pod);
  if ((size_t)length >= sizeof address.sun_path - 1) return fail(failure, "Unsupported", "BERTH_POD_UID is too long", NULL);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return fail(failure, "NotReady", "no socket can be made", strerror(errno));
  struct timeval limit = {.tv_sec = CONNECT_SECONDS};
  setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  if (connect(fd, (struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length))) {
    int error = errno;
    close(fd);
    if (error == ECONNREFUSED) return fail(failure, "NotReady", "the session's runner is not bound to its session yet", NULL);
    return fail(failure, "NotReady", "the session's runner does not answer", strerror(error));
  }
  struct ucred peer = {0};
  socklen_t size = sizeof peer;
  if (!getenv("BERTH_LOCAL_ROOT") && (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) || peer.pid != 1)) {
    close(fd);
    return fail(failure, "NotReady", "another process than the runner listens in the runner's place; restart the session", NULL);
  }
  return fd;
}
