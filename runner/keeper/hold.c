#define _GNU_SOURCE
#include "hold.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/*
 * Longest time of hold_family, and the time after which a process is stopped although its parent still runs: one that waits for a disk
 * may take that long.
 */
enum { HOLD_MS = 2000, ORDERLY_MS = 1000 };
/* Looks at a process right after its SIGSTOP, and pauses between two scans: most processes stand within microseconds. */
enum { LOOKS = 10, LOOK_PAUSE_NS = 20 * 1000, FIRST_PAUSE_NS = 100 * 1000, LAST_PAUSE_NS = 5 * 1000 * 1000 };

struct stopped {
  struct member member;
  int depth;        /* number of ancestors in the family */
  int stood_before; /* true if somebody else had stopped it */
  int runs;         /* true if it ran at the last look */
};
static struct stopped *list;
static size_t count, room;
static int holding, all_at_release;

static long long now_ms(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000LL + time.tv_nsec / 1000000;
}

static void pause_ns(long ns) {
  struct timespec time = {.tv_nsec = ns};
  nanosleep(&time, NULL);
}

/* T: stopped by a signal; t: by a tracer, which is stopped itself; Z and X: dead. */
static int is_still(char state) { return strchr("TtZX", state) != NULL; }

/* Reports whether no thread of the process runs. One that has gone runs no more. */
static int stands(const struct member *m) {
  struct member now;
  if (read_member(m->pid, &now) || now.start != m->start) return 1;
  if (!is_still(now.state)) return 0;
  if (now.threads <= 1) return 1;
  char path[64], text[1024];
  snprintf(path, sizeof path, "/proc/%d/task", (int)m->pid);
  DIR *threads = opendir(path);
  if (!threads) return 0;
  int still = 1;
  for (struct dirent *e; still && (e = readdir(threads));) {
    if (e->d_name[0] == '.') continue;
    char thread[sizeof path + sizeof e->d_name + 8];
    snprintf(thread, sizeof thread, "%s/%s/stat", path, e->d_name);
    if (read_text(thread, text, sizeof text) <= 0) continue;
    const char *rest = strrchr(text, ')');
    still = rest && rest[1] && is_still(rest[2]);
  }
  closedir(threads);
  return still;
}

static int by_pid(const void *a, const void *b) {
  pid_t x = ((const struct member *)a)->pid, y = ((const struct member *)b)->pid;
  return (x > y) - (x < y);
}

static int by_depth(const void *a, const void *b) {
  return ((const struct stopped *)a)->depth - ((const struct stopped *)b)->depth;
}

static int depth_of(const struct member *m, const struct member *members, size_t n) {
  int depth = 0;
  struct member key = {.pid = m->parent};
  for (const struct member *up; (up = bsearch(&key, members, n, sizeof *members, by_pid)) && depth <= (int)n; depth++) key.pid = up->parent;
  return depth;
}

static struct stopped *find(pid_t pid, unsigned long long start) {
  for (size_t i = 0; i < count; i++)
    if (list[i].member.pid == pid && (!start || list[i].member.start == start)) return &list[i];
  return NULL;
}

/* Adds the members that are new, and orders all by their depth. Returns the number of new ones. */
static size_t note(const struct member *members, size_t n) {
  size_t fresh = 0;
  for (size_t i = 0; i < n; i++) {
    struct stopped *known = find(members[i].pid, members[i].start);
    if (!known) {
      if (count == room) {
        room = room ? room * 2 : 64;
        list = resized(list, room * sizeof *list);
      }
      known = &list[count++];
      known->member = members[i];
      known->stood_before = members[i].state == 'T';
      fresh++;
    }
    known->depth = depth_of(&members[i], members, n);
    known->member.parent = members[i].parent;
  }
  qsort(list, count, sizeof *list, by_depth);
  return fresh;
}

/*
 * Stops all processes, level by level, and looks a few times whether those of a level stand. With `in_order` the children of a process
 * that runs are left alone. Returns the number of processes that did not stand in the end.
 */
static size_t stop_all(int in_order) {
  size_t running = 0;
  for (size_t from = 0, to; from < count; from = to) {
    for (to = from; to < count && list[to].depth == list[from].depth; to++) {
      struct stopped *s = &list[to];
      const struct stopped *parent = in_order && from ? find(s->member.parent, 0) : NULL;
      s->runs = !stands(&s->member);
      if (s->runs && !(parent && parent->runs)) signal_member(&s->member, SIGSTOP);
    }
    size_t level;
    for (int look = 0;; look++) {
      level = 0;
      for (size_t i = from; i < to; i++) level += list[i].runs = list[i].runs && !stands(&list[i].member);
      if (!level || look == LOOKS) break;
      pause_ns(LOOK_PAUSE_NS);
    }
    running += level;
  }
  return running;
}

size_t hold_family(struct member **moving) {
  long long began = now_ms();
  long pause = FIRST_PAUSE_NS;
  int stood = 0, settled = 0;
  count = 0;
  holding = 1;
  all_at_release = 0;
  for (;;) {
    struct member *members;
    size_t n = family(&members);
    size_t fresh = note(members, n);
    /* A scan that had to stop the whole container is followed by another one: what was stopped by it goes on now. */
    int crowded = let_go();
    size_t running = stop_all(now_ms() - began < ORDERLY_MS);
    /*
     * A process that is listed before its parent's fork is missing in this scan. Where all stood already when the scan began, nothing
     * could fork any more: only such a scan has every process.
     */
    settled = stood && !fresh && !crowded && !running;
    stood = !crowded && !running;
    long long spent = now_ms() - began;
    if (settled || spent >= HOLD_MS) break;
    if (stood) continue;
    pause_ns(pause);
    if (pause < LAST_PAUSE_NS) pause *= 2;
  }
  static struct member *left;
  static size_t left_room;
  size_t still_running = 0;
  if (left_room < count) {
    left = resized(left, count * sizeof *left);
    left_room = count;
  }
  for (size_t i = 0; !settled && i < count; i++)
    if (!stands(&list[i].member)) left[still_running++] = list[i].member;
  *moving = left;
  return still_running;
}

void release_family(void) {
  if (!holding) return;
  holding = 0;
  for (size_t i = count; i > 0; i--)
    if (all_at_release || !list[i - 1].stood_before) signal_member(&list[i - 1].member, SIGCONT);
  count = 0;
}

int continue_all_at_release(void) {
  if (holding) all_at_release = 1;
  return holding;
}
