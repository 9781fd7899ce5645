/*
 * keeper LIMITS FILE ARGV0 [ARG…]: runs one process and keeps everything that descends from it. See README.md for the
 * protocol.
 *
 * Node can neither reap children that it did not start nor find a daemon that detached itself. This process is the
 * sub-reaper of all its descendants: a process that loses its parent becomes its child. So no process gets away, and
 * the end of this process's children is the end of them all.
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
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "family.h"
#include "hold.h"
#include "limits.h"
#include "pump.h"
#include "start.h"
#include "terminal.h"
#include "usage.h"

enum { CONTROL = 3, KILL_PAUSE_MS = 5, FIRST_LOOK_MS = 50, COMMAND_BYTES = 4096, ORDER_BYTES = 32, NAMED = 10, LEAST_CROWD = 256 };

static struct pump in, out, err;
static int control = CONTROL;
static struct limits limits;
static struct terminal terminal;
/* Group of the program, which outlives it while the group has members. */
static pid_t group;
static struct usage usage = {.processes = 1, .most_processes = 1};

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

void give_up(int error) {
  say("blind %d\n", error);
  _exit(1);
}

static long long clock_us(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec * 1000000LL + time.tv_nsec / 1000;
}

static long long now_us(void) { return clock_us(CLOCK_MONOTONIC); }

static void say_usage(void) {
  say("use %lld %lld %lld %lld %lld\n", usage.cpu_us, usage.memory, usage.peak, usage.processes, usage.most_processes);
}

/* Reports the usage before the end of the process is reported. */
static void use_at_end(void) {
  siginfo_t other = {0};
  struct member *members;
  if (waitid(P_ALL, 0, &other, WEXITED | WNOHANG | WNOWAIT | __WALL) == 0) look(&usage, &members);
  else sum_up(&usage);
  say_usage();
}

/*
 * Reaps every dead child. Returns 1 while any child is left, living or not yet dead. `agent` is set to 0 once its end is reported:
 * a process that began later may have the same pid.
 */
static int reap(pid_t *agent) {
  for (;;) {
    int status;
    pid_t pid = waitpid(-1, &status, WNOHANG | __WALL);
    if (pid < 0) return errno != ECHILD;
    if (pid == 0) return 1;
    if (pid != *agent) continue;
    *agent = 0;
    use_at_end();
    hang_up(&terminal, &in, &out);
    /*
     * The numbers of bytes tell the runner how much output to wait for: this report may overtake output that is still
     * on its way.
     */
    long long said = pump_given(&out), complained = pump_given(&err);
    if (WIFSIGNALED(status))
      say("signal %d %lld %lld\n", WTERMSIG(status), said, complained);
    else
      say("exit %d %lld %lld\n", WEXITSTATUS(status), said, complained);
  }
}

/* The numbers of bytes tell the runner how much of the output so far has yet to arrive. */
static void list_family(void) {
  struct member *members;
  size_t n = look(&usage, &members);
  say_usage();
  for (size_t i = 0; i < n; i++) {
    char command[COMMAND_BYTES];
    describe(members[i].pid, command, sizeof command);
    say("left %d %s\n", (int)members[i].pid, command);
  }
  say("listed %lld %lld\n", pump_given(&out), pump_given(&err));
}

/* Names the first processes that could not be stopped in time: what they write meanwhile may be read in part. */
static void hold(void) {
  struct member *moving;
  size_t n = hold_family(&moving);
  for (size_t i = 0; i < n && i < NAMED; i++) {
    char command[COMMAND_BYTES];
    describe(moving[i].pid, command, sizeof command);
    say("moves %d %s\n", (int)moving[i].pid, command);
  }
  say("held %zu\n", n);
}

/* Sends a signal to the foreground group of the terminal, or to the program's group. */
static void signal_foreground(int sig) {
  if (sig == SIGCONT && continue_all_at_release()) return;
  if (!signal_member_group(foreground_group(&terminal), sig)) signal_member_group(group, sig);
}

static void terminate(pid_t agent) {
  signal_family(SIGTERM);
  /* A shell on a terminal ignores SIGTERM and ends, with its jobs, when the terminal is gone. */
  if (terminal.master >= 0 && agent > 0) kill(agent, SIGHUP);
  /* A stopped process handles no SIGTERM; one that is held does when it is released. */
  if (!continue_all_at_release()) signal_family(SIGCONT);
}

/* Carries out a command that has arguments: a letter, numbers, and the end of the line. */
static void obey_line(const char *line) {
  unsigned short rows, columns;
  int sig;
  if (sscanf(line, "W%hu %hu", &rows, &columns) == 2) resize_terminal(&terminal, rows, columns);
  if (sscanf(line, "N%d", &sig) == 1 && sig > 0 && sig < NSIG) signal_foreground(sig);
}

/* Adds a byte to a command that has arguments. Returns 0 for a byte that belongs to none. */
static int is_of_line(char byte) {
  static char line[ORDER_BYTES];
  static size_t length;
  if (!length && byte != 'W' && byte != 'N') return 0;
  if (byte == '\n') {
    line[length] = 0;
    length = 0;
    obey_line(line);
  } else if (length < sizeof line - 1) {
    line[length++] = byte;
  }
  return 1;
}

/* Reads commands. Returns 1 when all processes must be killed: on command, or because the runner has gone. */
static int obey(pid_t agent) {
  char commands[64];
  ssize_t n = recv(control, commands, sizeof commands, MSG_DONTWAIT);
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return 0;
  if (n <= 0) {
    close(control);
    control = -1;
    return 1;
  }
  int kill_all = 0;
  for (ssize_t i = 0; i < n; i++) {
    if (is_of_line(commands[i])) continue;
    if (commands[i] == 'T') terminate(agent);
    if (commands[i] == 'K') kill_all = 1;
    if (commands[i] == 'L') list_family();
    if (commands[i] == 'S') hold();
    if (commands[i] == 'C') release_family();
    if (commands[i] == 'H') hang_up(&terminal, &in, &out);
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

/* Returns 1 when a signal other than SIGCHLD came: the runner is gone, or this process is told to end. */
static int told_to_go(int signals) {
  struct signalfd_siginfo info;
  int go = 0;
  while (read(signals, &info, sizeof info) == (ssize_t)sizeof info) go |= info.ssi_signo != SIGCHLD;
  return go;
}

/*
 * Measures the family's usage. Returns 1 when it is over a limit. `wait` is the time until the next check, in
 * milliseconds.
 */
static int check(int *wait) {
  struct usage before = usage;
  struct member *members;
  long long began = clock_us(CLOCK_PROCESS_CPUTIME_ID), value;
  look(&usage, &members);
  const char *over = over_limit(&usage, members, &limits, &value);
  if (over) say("over %s %lld\n", over, value);
  if (over || memcmp(&before, &usage, sizeof usage)) say_usage();
  *wait = next_look(&usage, &before, &limits, *wait, (long)(clock_us(CLOCK_PROCESS_CPUTIME_ID) - began));
  return over != NULL;
}

int main(int argc, char *argv[]) {
  if (argc < 4 || read_limits(argv[1], &limits)) {
    fputs("usage: keeper LIMITS FILE ARGV0 [ARG...], with the runner on descriptor 3\n", stderr);
    return 2;
  }
  pid_t runner = getppid();
  harden();
  int killing = getppid() != runner;
  int signals = catch_signals();
  if (limits.contained) may_hold_all(limits.processes > LEAST_CROWD ? (size_t)limits.processes : LEAST_CROWD);
  struct started agent = start_process(argv[2], argv + 3, &limits, CONTROL);
  if (agent.pid < 0) {
    say("fail %s %d %s\n", agent.step, agent.error, agent.limit ? agent.limit : "");
    return 1;
  }
  pump_open(&in, 0, agent.in);
  pump_open(&out, agent.out, 1);
  terminal = agent.terminal;
  group = agent.pid;
  if (agent.err >= 0) pump_open(&err, agent.err, 2);
  else pump_none(&err, 2);
  if (terminal.master >= 0) in.last_bytes = end_of_input;
  say("start\n");
  int wait = FIRST_LOOK_MS;
  long long next = now_us() + wait * 1000LL;

  for (;;) {
    int some = reap(&agent.pid);
    if (some && killing) {
      signal_family(SIGSTOP); /* stop all of them first, or a process could fork between scan and kill */
      signal_family(SIGKILL);
    }
    let_go();
    if (!some) break;
    struct pollfd wants[8] = {{.fd = signals, .events = POLLIN}, {.fd = control, .events = POLLIN}};
    pump_wants(&in, wants + 2);
    pump_wants(&out, wants + 4);
    pump_wants(&err, wants + 6);
    long long left = (next - now_us()) / 1000 + 1;
    if (poll(wants, 8, killing ? KILL_PAUSE_MS : left > 0 ? (int)left : 0) < 0 && errno != EINTR) {
      wait_out(errno);
      wants[0].revents = wants[1].revents = POLLIN; /* the state is unknown, so everything is tried */
    }
    if (wants[0].revents && told_to_go(signals)) killing = 1;
    if (wants[1].revents && obey(agent.pid)) killing = 1;
    /* err is read last and written first: text written to err before text to out then arrives first. */
    pump_take(&out);
    pump_take(&err);
    pump_give(&err);
    pump_give(&out);
    /* A request resets the interval of a process that was checked rarely. */
    if (pump_run(&in) && wait > FIRST_LOOK_MS) {
      wait = FIRST_LOOK_MS;
      if (next > now_us() + wait * 1000LL) next = now_us() + wait * 1000LL;
    }
    if (!killing && now_us() >= next) {
      killing = check(&wait);
      next = now_us() + wait * 1000LL;
    }
  }

  sum_up(&usage);
  say_usage();
  /*
   * No process of the family is left. Their output is still in the pipes until the runner reads it. A runner that is
   * gone reads nothing.
   */
  say("empty\n");
  for (;;) {
    pump_finish(&out);
    pump_finish(&err);
    if (control < 0 && pump_done(&out) && pump_done(&err)) return 0;
    struct pollfd wants[5] = {{.fd = control, .events = POLLIN}};
    pump_wants(&out, wants + 1);
    pump_wants(&err, wants + 3);
    if (poll(wants, 5, -1) < 0 && errno != EINTR) return 0;
    if (!wants[0].revents) continue;
    obey(agent.pid);
    /* A command that crossed with `empty` causes one more scan, and no process may stay stopped. */
    let_go();
  }
}
