/*
 * keeper FILE ARGV0 [ARG…]: runs one process and keeps everything that descends from it. See README.md for the protocol.
 *
 * Node can neither reap children that it did not start nor find a daemon that detached itself. This process is the
 * sub-reaper of all it starts: whoever loses its parent comes here, so nobody gets away, and the end of this process's
 * children is the end of them all.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "family.h"
#include "pump.h"
#include "start.h"

enum { CONTROL = 3, KILL_PAUSE_MS = 5, COMMAND_BYTES = 256 };

static struct pump in, out, err;
static int control = CONTROL;

static void say(const char *format, ...) {
  char line[COMMAND_BYTES + 64];
  va_list args;
  if (control < 0) return;
  va_start(args, format);
  int n = vsnprintf(line, sizeof line, format, args);
  va_end(args);
  if (n >= (int)sizeof line) n = (int)sizeof line - 1;
  for (int done = 0; done < n;) {
    ssize_t w = write(control, line + done, (size_t)(n - done));
    if (w < 0 && errno != EINTR) return;
    if (w > 0) done += (int)w;
  }
}

/* Takes every dead child. Returns 1 while any child, living or not yet dead, is left. */
static int reap(pid_t agent) {
  for (;;) {
    int status;
    pid_t pid = waitpid(-1, &status, WNOHANG | __WALL);
    if (pid < 0) return errno != ECHILD;
    if (pid == 0) return 1;
    if (pid != agent) continue;
    if (WIFSIGNALED(status))
      say("signal %d\n", WTERMSIG(status));
    else
      say("exit %d\n", WEXITSTATUS(status));
  }
}

static void list_family(void) {
  struct member *members;
  size_t n = family(&members);
  for (size_t i = 0; i < n; i++) {
    char command[COMMAND_BYTES];
    describe(members[i].pid, command, sizeof command);
    say("left %d %s\n", (int)members[i].pid, command);
  }
  say("listed\n");
}

/* Reads commands. Returns 1 when all must be killed: told so, or nobody is there any more to tell. */
static int obey(void) {
  char commands[64];
  ssize_t n = read(control, commands, sizeof commands);
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return 0;
  if (n <= 0) {
    close(control);
    control = -1;
    return 1;
  }
  int kill_all = 0;
  for (ssize_t i = 0; i < n; i++) {
    if (commands[i] == 'T') {
      signal_family(SIGTERM);
      signal_family(SIGCONT); /* a stopped process takes no SIGTERM */
    }
    if (commands[i] == 'K') kill_all = 1;
    if (commands[i] == 'L') list_family();
  }
  return kill_all;
}

static void harden(void) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  prctl(PR_SET_DUMPABLE, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  fcntl(CONTROL, F_SETFD, FD_CLOEXEC);
  if (syscall(SYS_close_range, CONTROL + 1, ~0U, 0) != 0)
    for (int fd = CONTROL + 1; fd < 1024; fd++) close(fd);
}

static int catch_signals(void) {
  sigset_t caught;
  signal(SIGPIPE, SIG_IGN);
  sigemptyset(&caught);
  sigaddset(&caught, SIGCHLD);
  sigaddset(&caught, SIGTERM);
  sigaddset(&caught, SIGINT);
  sigaddset(&caught, SIGHUP);
  sigprocmask(SIG_BLOCK, &caught, NULL);
  return signalfd(-1, &caught, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Returns 1 when a signal other than SIGCHLD came: the runner is gone or this process is told to go. */
static int told_to_go(int signals) {
  struct signalfd_siginfo info;
  int go = 0;
  while (read(signals, &info, sizeof info) == (ssize_t)sizeof info) go |= info.ssi_signo != SIGCHLD;
  return go;
}

int main(int argc, char *argv[]) {
  if (argc < 3) {
    fputs("usage: keeper FILE ARGV0 [ARG...], with the runner on descriptor 3\n", stderr);
    return 2;
  }
  pid_t runner = getppid();
  harden();
  int killing = getppid() != runner;
  int signals = catch_signals();
  struct started agent = start_process(argv[1], argv + 2);
  if (agent.pid < 0) {
    say("fail %s %d\n", agent.step, agent.error);
    return 1;
  }
  pump_open(&in, 0, agent.in);
  pump_open(&out, agent.out, 1);
  pump_open(&err, agent.err, 2);
  say("start %d\n", (int)agent.pid);

  for (;;) {
    int some = reap(agent.pid);
    if (!some) break;
    if (killing) {
      signal_family(SIGSTOP); /* first hold all of them still, or a forking one gets away between look and kill */
      signal_family(SIGKILL);
    }
    struct pollfd wants[8] = {{.fd = signals, .events = POLLIN}, {.fd = control, .events = POLLIN}};
    pump_wants(&in, wants + 2);
    pump_wants(&out, wants + 4);
    pump_wants(&err, wants + 6);
    if (poll(wants, 8, killing ? KILL_PAUSE_MS : -1) < 0 && errno != EINTR) break;
    if (wants[0].revents && told_to_go(signals)) killing = 1;
    if (wants[1].revents && obey()) killing = 1;
    pump_run(&in);
    pump_run(&out);
    pump_run(&err);
  }

  /* Nobody of the family is left; what they wrote is still in the pipes, as far as the runner takes it. */
  say("empty\n");
  for (;;) {
    pump_finish(&out);
    pump_finish(&err);
    if (control < 0 || (pump_done(&out) && pump_done(&err))) return 0;
    struct pollfd wants[5] = {{.fd = control, .events = POLLIN}};
    pump_wants(&out, wants + 1);
    pump_wants(&err, wants + 3);
    if (poll(wants, 5, -1) < 0 && errno != EINTR) return 0;
    if (wants[0].revents) obey();
  }
}
