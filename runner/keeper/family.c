#define _GNU_SOURCE
#include "family.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A fork bomb is stopped pass by pass; this many passes without an end mean that stopping alone does not win. */
enum { MAX_PASSES = 64 };

static struct member *table;
static size_t table_room;

static int read_text(const char *path, char *text, size_t size) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  ssize_t n = read(fd, text, size - 1);
  close(fd);
  if (n < 0) return -1;
  text[n] = 0;
  return (int)n;
}

static int read_member(pid_t pid, struct member *m) {
  char path[64], text[1024];
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  if (read_text(path, text, sizeof text) <= 0) return -1;
  /* The name in parentheses may itself hold spaces and parentheses. */
  char *rest = strrchr(text, ')');
  int parent;
  if (!rest) return -1;
  if (sscanf(rest + 1, " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu", &m->state,
             &parent, &m->start) != 3)
    return -1;
  m->pid = pid;
  m->parent = (pid_t)parent;
  return 0;
}

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

size_t family(struct member **members) {
  size_t n = 0;
  DIR *proc = opendir("/proc");
  *members = table;
  if (!proc) return 0;
  for (struct dirent *e; (e = readdir(proc));) {
    if (!isdigit((unsigned char)e->d_name[0])) continue;
    if (n == table_room) {
      size_t room = table_room ? table_room * 2 : 256;
      struct member *bigger = realloc(table, room * sizeof *table);
      if (!bigger) break;
      table = bigger;
      table_room = room;
    }
    if (read_member((pid_t)atoi(e->d_name), &table[n]) == 0) n++;
  }
  closedir(proc);
  qsort(table, n, sizeof *table, by_pid);

  static struct member *found;
  static size_t found_room;
  size_t count = 0;
  pid_t self = getpid();
  if (found_room < n) {
    struct member *bigger = realloc(found, n * sizeof *found);
    if (!bigger) return 0;
    found = bigger;
    found_room = n;
  }
  for (size_t i = 0; i < n; i++)
    if (table[i].state != 'Z' && table[i].state != 'X' && is_descendant(&table[i], n, self)) found[count++] = table[i];
  *members = found;
  return count;
}

/* Through a pidfd, so that a pid given to somebody else since the look at /proc is not hit. */
static void signal_member(const struct member *m, int sig) {
  int fd = (int)syscall(SYS_pidfd_open, m->pid, 0);
  if (fd < 0) {
    kill(m->pid, sig);
    return;
  }
  struct member now;
  if (read_member(m->pid, &now) == 0 && now.start == m->start) syscall(SYS_pidfd_send_signal, fd, sig, NULL, 0);
  close(fd);
}

void signal_family(int sig) {
  struct member *seen = NULL;
  size_t seen_count = 0, seen_room = 0;
  for (int pass = 0; pass < MAX_PASSES; pass++) {
    struct member *members;
    size_t n = family(&members), fresh = 0;
    for (size_t i = 0; i < n; i++) {
      size_t known = 0;
      while (known < seen_count && (seen[known].pid != members[i].pid || seen[known].start != members[i].start)) known++;
      if (known < seen_count) continue;
      signal_member(&members[i], sig);
      fresh++;
      if (seen_count == seen_room) {
        size_t room = seen_room ? seen_room * 2 : 64;
        struct member *bigger = realloc(seen, room * sizeof *seen);
        if (!bigger) break;
        seen = bigger;
        seen_room = room;
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
