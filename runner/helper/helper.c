/*
 * berth-enter: carries a client's bytes into a running session. The kubelet starts it by pods/exec, without arguments, which
 * would stand in the cluster's audit log. The client's hello comes on fd 0 and goes to the runner over its abstract socket; the runner
 * answers with frames, which are passed on, or with an order, which the helper carries out by itself: files and ports. It starts no
 * process: the container runtime waits for everybody who holds the streams.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "client.h"
#include "dial.h"
#include "files.h"
#include "frames.h"
#include "ports.h"
#include "pump.h"

/* Time for the client's hello, and for the runner's answer to it, milliseconds. */
enum { HELLO_MS = 30000, ANSWER_MS = 30000 };

/* Bytes that each pipe from and to the client holds. */
enum { PIPE_BYTES = 256 * 1024 };

static void set_nonblocking(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

/*
 * A frame is longer than the 64 KiB of a pipe by default: the rest of each would wait for its reader. A limit of the user's pipes
 * (pipe(7)) or a stream of another kind may refuse it, and nothing but speed is lost.
 */
static void widen_pipes(void) {
  fcntl(0, F_SETPIPE_SZ, PIPE_BYTES);
  fcntl(1, F_SETPIPE_SZ, PIPE_BYTES);
}

/* Each folder on the way to an entry takes a descriptor. */
static void raise_open_files(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit)) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

static int send_all(int fd, const unsigned char *bytes, size_t length) {
  while (length > 0) {
    ssize_t count = write(fd, bytes, length);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return -1;
    bytes += count;
    length -= (size_t)count;
  }
  return 0;
}

int main(void) {
  static unsigned char frame[MAX_FRAME];
  struct dial_failure failure;
  signal(SIGPIPE, SIG_IGN);
  /* A file above a limit of the container is refused as one that has no space. */
  signal(SIGXFSZ, SIG_IGN);
  set_nonblocking(0);
  set_nonblocking(1);
  raise_open_files();
  widen_pipes();
  size_t length = read_frame(0, frame, HELLO_MS);
  if (length == 0 || frame[0] != HELLO) {
    fprintf(stderr, "berth-enter: no hello came; this program is started by berth alone\n");
    return 2;
  }
  int runner = dial_runner(&failure);
  client_watch(runner);
  if (runner < 0) client_refuse(failure.code, NULL, "%s", failure.message);
  if (send_all(runner, frame, length)) client_refuse("NotReady", NULL, "the session's runner does not take the hello");
  length = read_frame(runner, frame, ANSWER_MS);
  if (length == 0) client_refuse("NotReady", NULL, "the session's runner gave no answer");
  set_nonblocking(runner);
  if (frame[0] == ORDER && length >= FRAME_HEADER + sizeof "ports" && memcmp(frame + FRAME_HEADER, "ports", sizeof "ports") == 0) serve_ports(runner);
  if (frame[0] == ORDER) carry_out((char *)frame + FRAME_HEADER, length - FRAME_HEADER);
  pump(runner, frame, length);
  return 0;
}
