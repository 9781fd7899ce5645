#define _GNU_SOURCE
#include "usage.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { SOON_MS = 50, BUSY_MS = 200, QUIET_MS = 1000, COST_PARTS = 50 };

static long long microseconds(struct timeval time) { return time.tv_sec * 1000000LL + time.tv_usec; }

static int read_file(pid_t pid, const char *name, char *text, size_t size) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
  return read_text(path, text, size) > 0 ? 0 : -1;
}

/*
 * Returns the sum in bytes of two lines `name: N kB`; -1 when one is missing. A name must begin a line, because a
 * program chooses its own name.
 */
static long long sum_lines(const char *text, const char *one, const char *other) {
  const char *first = strstr(text, one), *second = strstr(text, other);
  if (!first || !second) return -1;
  return (atoll(first + strlen(one)) + atoll(second + strlen(other))) * 1024;
}

/*
 * Returns the /proc entry with the process's memory: its main thread's, or another thread's once the main thread has
 * ended.
 */
static pid_t entry_of(const struct member *m) {
  char path[64], text[128];
  if (m->state != 'Z') return m->pid;
  snprintf(path, sizeof path, "/proc/%d/task", (int)m->pid);
  DIR *threads = opendir(path);
  pid_t found = m->pid;
  for (struct dirent *e; threads && found == m->pid && (e = readdir(threads));) {
    pid_t thread = (pid_t)atoi(e->d_name);
    if (thread > 0 && read_file(thread, "statm", text, sizeof text) == 0 && text[0] != '0') found = thread;
  }
  if (threads) closedir(threads);
  return found;
}

/* Memory without pages of files and of the program: its own, and memory shared with other processes. */
static long long memory_of(const struct member *m) {
  char text[4096];
  long long resident, shared, bytes;
  pid_t entry = entry_of(m);
  if (read_file(entry, "status", text, sizeof text)) return 0;
  bytes = sum_lines(text, "\nRssAnon:", "\nRssShmem:");
  if (bytes >= 0) return bytes;
  if (read_file(entry, "statm", text, sizeof text) || sscanf(text, "%*d %lld %lld", &resident, &shared) != 2) return 0;
  return (resident - shared) * sysconf(_SC_PAGESIZE);
}

/*
 * Memory with a proportional part of shared memory. The kernel walks the page tables for this, so it is read in a close
 * check only.
 */
static long long proportional(const struct member *m) {
  char text[4096];
  long long bytes = -1;
  if (read_file(entry_of(m), "smaps_rollup", text, sizeof text) == 0) bytes = sum_lines(text, "\nPss_Anon:", "\nPss_Shmem:");
  return bytes < 0 ? memory_of(m) : bytes;
}

/*
 * CPU ticks of all processes ever seen, as of their last scan. Processes whose parent ignores SIGCHLD are missing in
 * the kernel's sums.
 */
static unsigned long long ticks_seen(const struct member *members, size_t n) {
  static struct member *last;
  static size_t last_count, last_room;
  static unsigned long long of_the_gone;
  unsigned long long sum = 0;
  for (size_t i = 0, j = 0; i < last_count; i++) {
    while (j < n && members[j].pid < last[i].pid) j++;
    if (j == n || members[j].pid != last[i].pid || members[j].start != last[i].start) of_the_gone += last[i].own;
  }
  if (last_room < n) {
    last = resized(last, n * sizeof *last);
    last_room = n;
  }
  if (n) memcpy(last, members, n * sizeof *last);
  last_count = n;
  for (size_t i = 0; i < n; i++) sum += members[i].own;
  return sum + of_the_gone;
}

static void of_the_dead(struct usage *usage) {
  struct rusage dead;
  getrusage(RUSAGE_CHILDREN, &dead);
  usage->cpu_us = microseconds(dead.ru_utime) + microseconds(dead.ru_stime);
  if (dead.ru_maxrss * 1024LL > usage->peak) usage->peak = dead.ru_maxrss * 1024LL;
}

void sum_up(struct usage *usage) {
  long long before = usage->cpu_us;
  of_the_dead(usage);
  /* Processes whose parent ignored their end are missing in the kernel's sums, but were seen. */
  if (before > usage->cpu_us) usage->cpu_us = before;
  usage->memory = usage->processes = 0;
}

size_t look(struct usage *usage, struct member **members) {
  size_t n = family(members);
  long long before = usage->cpu_us, tick_us = 1000000 / sysconf(_SC_CLK_TCK);
  usage->memory = 0;
  usage->processes = (long long)n;
  of_the_dead(usage);
  for (size_t i = 0; i < n; i++) {
    usage->memory += memory_of(&(*members)[i]);
    usage->cpu_us += (long long)(*members)[i].ticks * tick_us;
  }
  long long seen = (long long)ticks_seen(*members, n) * tick_us;
  if (seen > usage->cpu_us) usage->cpu_us = seen;
  if (before > usage->cpu_us) usage->cpu_us = before;
  if (usage->memory > usage->peak) usage->peak = usage->memory;
  if (usage->processes > usage->most_processes) usage->most_processes = usage->processes;
  return n;
}

const char *over_limit(const struct usage *usage, const struct member *members, const struct limits *limits, long long *value) {
  if (limits->processes && usage->processes > limits->processes) {
    *value = usage->processes;
    return "processes";
  }
  if (limits->cpu_us && usage->cpu_us > limits->cpu_us) {
    *value = usage->cpu_us;
    return "cpu";
  }
  if (!limits->memory || usage->memory <= limits->memory) return NULL;
  *value = 0;
  for (long long i = 0; i < usage->processes; i++) *value += proportional(&members[i]);
  return *value > limits->memory ? "memory" : NULL;
}

int next_look(const struct usage *now, const struct usage *before, const struct limits *limits, int last_ms, long cost_us) {
  int much = (limits->memory && now->memory * 2 > limits->memory) ||
             (limits->processes && now->processes * 2 > limits->processes);
  int most = now->cpu_us == before->cpu_us ? QUIET_MS : BUSY_MS;
  int wait = much ? SOON_MS : last_ms * 2 < most ? last_ms * 2 : most;
  long least = cost_us * COST_PARTS / 1000;
  return least > wait ? (int)least : wait;
}
