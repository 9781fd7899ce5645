#define _GNU_SOURCE
#include "start.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * Nice value of an agent in a container relative to its keeper and its runner, which a thousand of its processes would
 * keep from running.
 */
enum { CONTAINED_NICE = 10 };

extern char **environ;

/*
 * Pipes, not sockets: a program may open /dev/stdin or /dev/stderr, which fails with ENXIO on the sockets that Node
 * gives.
 */
struct streams {
  int in[2], out[2], err[2], failure[2];
};

/* Report of a child that could not become the program. */
struct failure {
  int error;
  const char *limit; /* NULL: exec failed. A constant, so the pointer is valid in the parent too. */
};

static void run_child(const char *file, char *const argv[], pid_t keeper, struct streams *s, const struct limits *limits, int control) {
  /*
   * The raw system call is used because libc reserves two signals, which make's posix_spawn leaves ignored. This is the
   * kernel's own struct; all zero means SIG_DFL.
   */
  const unsigned long normal[8] = {0};
  sigset_t none;
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != keeper) _exit(127);
  for (int sig = 1; sig < NSIG; sig++) syscall(SYS_rt_sigaction, sig, normal, NULL, NSIG / 8);
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  if (limits->contained) setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + CONTAINED_NICE);
  /*
   * The pid is reported before the exec, because the program may kill its keeper at once: the runner then knows which
   * process to kill.
   */
  dprintf(control, "pid %d\n", (int)getpid());
  struct failure failure = {.limit = set_limits(limits)};
  /* dup2 clears close-on-exec on the three copies; all other descriptors close by themselves. */
  if (!failure.limit && dup2(s->in[0], 0) == 0 && dup2(s->out[1], 1) == 1 && dup2(s->err[1], 2) == 2) execve(file, argv, environ);
  failure.error = errno;
  if (write(s->failure[1], &failure, sizeof failure) < 0) _exit(126);
  _exit(127);
}

struct started start_process(const char *file, char *const argv[], const struct limits *limits, int control) {
  struct started result = {.pid = -1, .step = "pipe", .in = -1, .out = -1, .err = -1};
  struct streams s;
  if (pipe2(s.in, O_CLOEXEC) || pipe2(s.out, O_CLOEXEC) || pipe2(s.err, O_CLOEXEC) || pipe2(s.failure, O_CLOEXEC)) {
    result.error = errno;
    return result;
  }
  pid_t keeper = getpid();
  pid_t pid = fork();
  if (pid == 0) run_child(file, argv, keeper, &s, limits, control);
  if (pid < 0) {
    result.error = errno;
    result.step = "fork";
    return result;
  }
  close(s.in[0]);
  close(s.out[1]);
  close(s.err[1]);
  close(s.failure[1]);
  struct failure failure;
  ssize_t n;
  do n = read(s.failure[0], &failure, sizeof failure);
  while (n < 0 && errno == EINTR);
  close(s.failure[0]);
  if (n == (ssize_t)sizeof failure) {
    waitpid(pid, NULL, 0);
    result.error = failure.error;
    result.step = failure.limit ? "limit" : "exec";
    result.limit = failure.limit;
    return result;
  }
  result.pid = pid;
  result.in = s.in[1];
  result.out = s.out[0];
  result.err = s.err[0];
  return result;
}
