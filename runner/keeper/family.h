/* The processes that descend from this one, however they detached: this process is their sub-reaper. */
#ifndef FAMILY_H
#define FAMILY_H

#include <stddef.h>
#include <sys/types.h>

struct member {
  pid_t pid;
  pid_t parent;
  char state;                /* as in /proc/PID/stat; Z is dead already */
  unsigned long long start;  /* with pid it names one process for ever, a pid alone is given again */
};

/* Reads /proc. The array belongs to the next call. Returns the number of living descendants. */
size_t family(struct member **members);

/* Sends a signal to every descendant once, looking again until a pass finds nobody new. */
void signal_family(int sig);

/* Writes the process's command line (or its name) as printable text, at most size - 1 bytes. */
void describe(pid_t pid, char *text, size_t size);

#endif
