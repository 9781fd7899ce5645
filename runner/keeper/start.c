#define _GNU_SOURCE
#include "start.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Real pipes: a program may open /dev/stdin or /dev/stderr, which fails with ENXIO on the sockets Node gives. */
struct streams {
  int in[2], out[2], err[2], failure[2];
};

static void run_child(const char *file, char *const argv[], pid_t keeper, struct streams *s) {
  /* The kernel's own struct, all zero: SIG_DFL. libc keeps two signals to itself, and make's posix_spawn leaves them ignored. */
  const unsigned long normal[8] = {0};
  sigset_t none;
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != keeper) _exit(127);
  for (int sig = 1; sig < NSIG; sig++) syscall(SYS_rt_sigaction, sig, normal, NULL, NSIG / 8);
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  /* dup2 clears close-on-exec on the three copies; everything else closes itself. */
  if (dup2(s->in[0], 0) == 0 && dup2(s->out[1], 1) == 1 && dup2(s->err[1], 2) == 2) execve(file, argv, environ);
  int error = errno;
  if (write(s->failure[1], &error, sizeof error) < 0) _exit(126);
  _exit(127);
}

struct started start_process(const char *file, char *const argv[]) {
  struct started result = {.pid = -1, .step = "pipe", .in = -1, .out = -1, .err = -1};
  struct streams s;
  if (pipe2(s.in, O_CLOEXEC) || pipe2(s.out, O_CLOEXEC) || pipe2(s.err, O_CLOEXEC) || pipe2(s.failure, O_CLOEXEC)) {
    result.error = errno;
    return result;
  }
  pid_t keeper = getpid();
  pid_t pid = fork();
  if (pid == 0) run_child(file, argv, keeper, &s);
  if (pid < 0) {
    result.error = errno;
    result.step = "fork";
    return result;
  }
  close(s.in[0]);
  close(s.out[1]);
  close(s.err[1]);
  close(s.failure[1]);
  int error = 0;
  ssize_t n;
  do n = read(s.failure[0], &error, sizeof error);
  while (n < 0 && errno == EINTR);
  close(s.failure[0]);
  if (n == (ssize_t)sizeof error) {
    waitpid(pid, NULL, 0);
    result.error = error;
    result.step = "exec";
    return result;
  }
  result.pid = pid;
  result.in = s.in[1];
  result.out = s.out[0];
  result.err = s.err[0];
  return result;
}
