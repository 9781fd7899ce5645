#define _GNU_SOURCE
#include "family.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Time to wait for the end of a shortage, less than the runner waits for an answer. */
enum { PATIENCE_MS = 2000, SHORTAGE_PAUSE_MS = 20 };

/*
 * Passes of signals against a fork bomb. After SOME_PASSES the whole container is stopped at once if allowed.
 * MAX_PASSES without an end mean that signals alone cannot stop it.
 */
enum { SOME_PASSES = 4, MAX_PASSES = 64 };

static struct member *table;
static size_t table_room;

struct pids {
  pid_t *pid; /* ascending, as /proc lists them */
  size_t count, room;
};
/* All processes at the last scan. */
static struct pids last;
/*
 * Number of new processes in one scan above which they fork faster than they can be read one by one; 0: they cannot be
 * stopped at once.
 */
static size_t crowd;
static int held;

/* Clock time in milliseconds at which the current scan could not continue; 0: it continued. */
static long long blind_since;

void wait_out(int error) {
  struct timespec now, pause = {.tv_nsec = SHORTAGE_PAUSE_MS * 1000000L};
  clock_gettime(CLOCK_MONOTONIC, &now);
  long long ms = now.tv_sec * 1000LL + now.tv_nsec / 1000000;
  if (!blind_since) blind_since = ms;
  if (ms - blind_since > PATIENCE_MS) give_up(error);
  nanosleep(&pause, NULL);
}

void *resized(void *memory, size_t bytes) {
  void *other;
  while (!(other = realloc(memory, bytes))) wait_out(ENOMEM);
  return other;
}

int read_text(const char *path, char *text, size_t size) {
  for (;;) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);
    int error = errno;
    if (fd >= 0) close(fd);
    if (n >= 0) {
      text[n] = 0;
      return (int)n;
    }
    if (error != EMFILE && error != ENFILE && error != ENOMEM) return -1;
    wait_out(error);
  }
}

int read_member(pid_t pid, struct member *m) {
  char path[64], text[1024];
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  if (read_text(path, text, sizeof text) <= 0) return -1;
  /* The name in parentheses may itself contain spaces and parentheses. */
  char *rest = strrchr(text, ')');
  int parent, group;
  unsigned long long user, kernel, children_user, children_kernel;
  if (!rest) return -1;
  if (sscanf(rest + 1, " %c %d %d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu %*d %*d %d %*d %llu", &m->state,
             &parent, &group, &user, &kernel, &children_user, &children_kernel, &m->threads, &m->start) != 9)
    return -1;
  m->pid = pid;
  m->own = user + kernel;
  m->ticks = m->own + children_user + children_kernel;
  m->parent = (pid_t)parent;
  m->group = (pid_t)group;
  return 0;
}

/* A zombie with more threads than its dead main thread is alive. */
static int is_dead(const struct member *m) { return m->state == 'X' || (m->state == 'Z' && m->threads <= 1); }

static int by_pid(const void *a, const void *b) {
  pid_t x = ((const struct member *)a)->pid, y = ((const struct member *)b)->pid;
  return (x > y) - (x < y);
}

static int is_descendant(const struct member *m, size_t n, pid_t self) {
  pid_t parent = m->parent;
  for (size_t steps = 0; steps <= n; steps++) {
    if (parent == self) return 1;
    struct member key = {.pid = parent};
    const struct member *up = bsearch(&key, table, n, sizeof *table, by_pid);
    if (!up) return 0;
    parent = up->parent;
  }
  return 0;
}

static void list(struct pids *pids) {
  DIR *proc;
  while (!(proc = opendir("/proc"))) wait_out(errno);
  pids->count = 0;
  for (struct dirent *e; (e = readdir(proc));) {
    if (!isdigit((unsigned char)e->d_name[0])) continue;
    if (pids->count == pids->room) {
      pids->room = pids->room ? pids->room * 2 : 256;
      pids->pid = resized(pids->pid, pids->room * sizeof *pids->pid);
    }
    pids->pid[pids->count++] = (pid_t)atoi(e->d_name);
  }
  closedir(proc);
}

static size_t count_new(const struct pids *now) {
  size_t new = 0;
  for (size_t i = 0, j = 0; i < now->count; i++) {
    while (j < last.count && last.pid[j] < now->pid[i]) j++;
    if (j == last.count || last.pid[j] != now->pid[i]) new++;
  }
  return new;
}

void may_hold_all(size_t new_at_once) {
  crowd = new_at_once;
  list(&last);
}

/*
 * Stops all processes at once, so that no fork gets away. Reading each process takes time that grows with their number,
 * while they use the CPU.
 */
static void hold_all(void) {
  if (!crowd) return;
  kill(-1, SIGSTOP);
  held = 1;
}

int let_go(void) {
  int was_held = held;
  if (held) kill(-1, SIGCONT);
  held = 0;
  return was_held;
}

size_t family(struct member **members) {
  blind_since = 0;
  static struct pids now;
  list(&now);
  if (crowd && !held && count_new(&now) > crowd) {
    hold_all();
    list(&now);
  }
  struct pids before = last;
  last = now;
  now = before;
  if (table_room < last.count) {
    table = resized(table, last.count * sizeof *table);
    table_room = last.count;
  }
  size_t n = 0;
  for (size_t i = 0; i < last.count; i++)
    if (read_member(last.pid[i], &table[n]) == 0) n++;
  qsort(table, n, sizeof *table, by_pid);

  static struct member *found;
  static size_t found_room;
  size_t count = 0;
  pid_t self = getpid();
  if (found_room < n) {
    found = resized(found, n * sizeof *found);
    found_room = n;
  }
  for (size_t i = 0; i < n; i++)
    if (!is_dead(&table[i]) && is_descendant(&table[i], n, self)) found[count++] = table[i];
  *members = found;
  return count;
}

void signal_member(const struct member *m, int sig) {
  int fd = (int)syscall(SYS_pidfd_open, m->pid, 0);
  if (fd < 0) {
    kill(m->pid, sig);
    return;
  }
  struct member now;
  if (read_member(m->pid, &now) == 0 && now.start == m->start) syscall(SYS_pidfd_send_signal, fd, sig, NULL, 0);
  close(fd);
}

/*
 * Signals a whole process group at once: the kernel lets no fork slip between, unlike two scans of /proc. Groups of the
 * agent's sessions have members of the family only.
 */
static void signal_group(pid_t group, int sig) {
  if (group > 1 && group != getpgrp()) kill(-group, sig);
}

int signal_member_group(pid_t group, int sig) {
  struct member *members;
  size_t n = family(&members);
  for (size_t i = 0; i < n; i++) {
    if (members[i].group != group) continue;
    signal_group(group, sig);
    return 1;
  }
  return 0;
}

void signal_family(int sig) {
  struct member *seen = NULL;
  size_t seen_count = 0, seen_room = 0;
  /*
   * SIGSTOP and SIGKILL are sent in several passes, to reach processes that were forked meanwhile. Other signals are
   * sent in one pass: a process that a program starts at SIGTERM, for example to save its work, must not get it.
   */
  int passes = sig == SIGSTOP || sig == SIGKILL ? MAX_PASSES : 1;
  for (int pass = 0; pass < passes; pass++) {
    struct member *members;
    if (pass == SOME_PASSES) hold_all();
    size_t n = family(&members), fresh = 0;
    pid_t group = 0;
    for (size_t i = 0; i < n; i++) {
      size_t known = 0;
      while (known < seen_count && (seen[known].pid != members[i].pid || seen[known].start != members[i].start)) known++;
      if (known < seen_count) continue;
      /*
       * A group signal sends some processes the signal twice. Only a program that handles the signal would notice, and
       * none can handle these two.
       */
      if ((sig == SIGSTOP || sig == SIGKILL) && members[i].group != group) signal_group(group = members[i].group, sig);
      signal_member(&members[i], sig);
      fresh++;
      if (seen_count == seen_room) {
        seen_room = seen_room ? seen_room * 2 : 64;
        seen = resized(seen, seen_room * sizeof *seen);
      }
      seen[seen_count++] = members[i];
    }
    if (!fresh) break;
  }
  free(seen);
}

void describe(pid_t pid, char *text, size_t size) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
  int n = read_text(path, text, size);
  if (n <= 0) {
    snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    n = read_text(path, text, size);
  }
  if (n < 0) n = 0;
  while (n > 0 && (text[n - 1] == 0 || text[n - 1] == '\n')) n--;
  for (int i = 0; i < n; i++) {
    unsigned char c = (unsigned char)text[i];
    if (c < 0x20 || c == 0x7f) text[i] = ' ';
  }
  text[n] = 0;
}
