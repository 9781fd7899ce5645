/* The descendants of this process, however they detached: this process is their sub-reaper. */
#ifndef FAMILY_H
#define FAMILY_H

#include <stddef.h>
#include <sys/types.h>

struct member {
  pid_t pid;
  pid_t parent;
  pid_t group;
  char state;                /* main thread's, as in /proc/PID/stat; with Z other threads may live */
  int threads;
  unsigned long long start;  /* identifies the process together with pid, which can be reused */
  unsigned long long own;    /* CPU ticks */
  unsigned long long ticks;  /* CPU ticks with those of its ended children */
};

/*
 * Reports `blind` and ends this process when it cannot see its family any more: an empty scan would wrongly say that no
 * process is left. The runner kills the rest of a family whose keeper ends without having reported `empty`.
 */
_Noreturn void give_up(int error);

/*
 * Waits a little for the end of a shortage, of the node or one that an agent caused for its keeper. Gives up when the
 * shortage lasts.
 */
void wait_out(int error);

/* Reallocates memory like realloc, but waits until there is enough. */
void *resized(void *memory, size_t bytes);

/* Reads a file and returns the length of its text; -1 when it cannot be read. Waits while no file can be opened. */
int read_text(const char *path, char *text, size_t size);

/*
 * Allows stopping all processes at once. It requires that this PID namespace has no processes but the runner, as PID 1,
 * and its descendants. They are stopped for the time of a scan if there are more than `new_at_once` new ones, or if
 * stopping them one by one fails.
 */
void may_hold_all(size_t new_at_once);

/* Continues the processes that a scan stopped, and returns 1 if there were some. Must be called before this process sleeps. */
int let_go(void);

/* Reads /proc/PID/stat. Returns -1 for a process that has gone. */
int read_member(pid_t pid, struct member *m);

/* Signals through a pidfd, so that a process that got the pid since the scan of /proc is not hit. */
void signal_member(const struct member *m, int sig);

/* Reads /proc. The array is sorted by pid and valid until the next call. Returns the number of living descendants. */
size_t family(struct member **members);

/* Sends a signal to every descendant once; SIGSTOP and SIGKILL repeat until a pass finds no new process. */
void signal_family(int sig);

/* Sends a signal to a process group that has a member among the descendants. Returns 0 for another one, which is left alone. */
int signal_member_group(pid_t group, int sig);

/* Writes the process's command line (or its name) as printable text, at most size - 1 bytes. */
void describe(pid_t pid, char *text, size_t size);

#endif
