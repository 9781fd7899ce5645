#define _GNU_SOURCE
#include "limits.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const struct {
  const char *name;
  int resource;
} kinds[RLIMITS] = {
    {"data", RLIMIT_DATA},   {"cpu", RLIMIT_CPU},       {"fsize", RLIMIT_FSIZE},
    {"nproc", RLIMIT_NPROC}, {"nofile", RLIMIT_NOFILE}, {"core", RLIMIT_CORE},
};

/*
 * Seconds between the soft and the hard limit: the kernel kills at the hard limit; at the soft one a program is told
 * first.
 */
enum { CPU_GRACE_SECONDS = 5 };

static int store(struct limits *limits, const char *name, size_t length, long long value) {
  for (int i = 0; i < RLIMITS; i++)
    if (strlen(kinds[i].name) == length && memcmp(kinds[i].name, name, length) == 0) {
      limits->of_process[i] = (rlim_t)value;
      if (kinds[i].resource == RLIMIT_CPU) limits->cpu_us = value * 1000000;
      return 0;
    }
  if (length == 6 && memcmp(name, "memory", 6) == 0) limits->memory = value;
  else if (length == 9 && memcmp(name, "processes", 9) == 0) limits->processes = value;
  else if (length == 9 && memcmp(name, "contained", 9) == 0) limits->contained = value != 0;
  else return -1;
  return 0;
}

/* Reads `RxC`. Returns the rest of the text; NULL for another text. */
static const char *read_size(const char *text, struct limits *limits) {
  char *end;
  unsigned long rows = strtoul(text, &end, 10);
  if (end == text || *end != 'x') return NULL;
  text = end + 1;
  unsigned long columns = strtoul(text, &end, 10);
  if (end == text || rows > USHRT_MAX || columns > USHRT_MAX) return NULL;
  limits->has_terminal = 1;
  limits->rows = (unsigned short)rows;
  limits->columns = (unsigned short)columns;
  return end;
}

/* Reads a number and stores it. Returns the rest of the text; NULL for another text or name. */
static const char *read_number(const char *name, size_t length, const char *text, struct limits *limits) {
  char *end;
  errno = 0;
  long long value = strtoll(text, &end, 10);
  if (end == text || errno || value < 0 || store(limits, name, length, value)) return NULL;
  return end;
}

int read_limits(const char *text, struct limits *limits) {
  memset(limits, 0, sizeof *limits);
  for (int i = 0; i < RLIMITS; i++) limits->of_process[i] = RLIM_INFINITY;
  if (strcmp(text, "-") == 0) return 0;
  for (;;) {
    const char *equals = strchr(text, '=');
    if (!equals) return -1;
    size_t length = (size_t)(equals - text);
    int is_size = length == 3 && memcmp(text, "tty", 3) == 0;
    const char *end = is_size ? read_size(equals + 1, limits) : read_number(text, length, equals + 1, limits);
    if (!end) return -1;
    if (*end == 0) return 0;
    if (*end != ',') return -1;
    text = end + 1;
  }
}

const char *set_limits(const struct limits *limits) {
  for (int i = 0; i < RLIMITS; i++) {
    struct rlimit now;
    rlim_t value = limits->of_process[i];
    if (value == RLIM_INFINITY) continue;
    if (getrlimit(kinds[i].resource, &now)) return kinds[i].name;
    struct rlimit wanted = {.rlim_cur = value, .rlim_max = value};
    if (kinds[i].resource == RLIMIT_CPU) {
      wanted.rlim_max = value + CPU_GRACE_SECONDS;
      if (now.rlim_max < wanted.rlim_max && now.rlim_max >= value) wanted.rlim_max = now.rlim_max;
    }
    /*
     * The rlimit is only a backstop, because the keeper counts the exact number. A lower one that is set already is
     * good enough.
     */
    if (kinds[i].resource == RLIMIT_NPROC && now.rlim_max < value) wanted.rlim_cur = wanted.rlim_max = now.rlim_max;
    if (setrlimit(kinds[i].resource, &wanted)) return kinds[i].name;
  }
  return NULL;
}
