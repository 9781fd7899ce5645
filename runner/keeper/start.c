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
 * gives. A terminal is both ends of all three.
 */
struct streams {
  int in[2], out[2], err[2], failure[2];
};

/* A step that failed, NULL if none has; the reason is in errno. */
static const char *open_streams(struct streams *s, struct terminal *terminal, const struct limits *limits) {
  terminal->master = terminal->slave = -1;
  if (pipe2(s->failure, O_CLOEXEC)) return "pipe";
  if (!limits->has_terminal) return pipe2(s->in, O_CLOEXEC) || pipe2(s->out, O_CLOEXEC) || pipe2(s->err, O_CLOEXEC) ? "pipe" : NULL;
  if (open_terminal(terminal, limits->rows, limits->columns)) return "terminal";
  s->in[0] = s->out[1] = s->err[1] = terminal->slave;
  s->err[0] = -1;
  s->in[1] = fcntl(terminal->master, F_DUPFD_CLOEXEC, 0);
  s->out[0] = fcntl(terminal->master, F_DUPFD_CLOEXEC, 0);
  return s->in[1] < 0 || s->out[0] < 0 ? "terminal" : NULL;
}

/* Report of a child that could not become the program. */
struct failure {
  int error;
  const char *step; /* constants, so the pointers are valid in the parent too */
  const char *limit;
};

/* Becomes the program. Returns where that failed. */
static struct failure become(const char *file, char *const argv[], struct streams *s, const struct limits *limits) {
  const char *limit = set_limits(limits);
  if (limit) return (struct failure){errno, "limit", limit};
  if (limits->has_terminal && take_terminal(s->in[0])) return (struct failure){errno, "terminal", NULL};
  /* dup2 clears close-on-exec on the three copies; all other descriptors close by themselves. */
  if (dup2(s->in[0], 0) == 0 && dup2(s->out[1], 1) == 1 && dup2(s->err[1], 2) == 2) execve(file, argv, environ);
  return (struct failure){errno, "exec", NULL};
}

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
  struct failure failure = become(file, argv, s, limits);
  if (write(s->failure[1], &failure, sizeof failure) < 0) _exit(126);
  _exit(127);
}

struct started start_process(const char *file, char *const argv[], const struct limits *limits, int control) {
  struct started result = {.pid = -1, .in = -1, .out = -1, .err = -1};
  struct streams s;
  result.step = open_streams(&s, &result.terminal, limits);
  if (result.step) {
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
  if (!limits->has_terminal) {
    close(s.in[0]);
    close(s.out[1]);
    close(s.err[1]);
  }
  close(s.failure[1]);
  struct failure failure;
  ssize_t n;
  do n = read(s.failure[0], &failure, sizeof failure);
  while (n < 0 && errno == EINTR);
  close(s.failure[0]);
  if (n == (ssize_t)sizeof failure) {
    waitpid(pid, NULL, 0);
    result.error = failure.error;
    result.step = failure.step;
    result.limit = failure.limit;
    return result;
  }
  result.pid = pid;
  result.in = s.in[1];
  result.out = s.out[0];
  result.err = s.err[0];
  return result;
}
