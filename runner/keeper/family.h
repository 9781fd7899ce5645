/* The processes that descend from this one, however they detached: this process is their sub-reaper. */
#ifndef FAMILY_H
#define FAMILY_H

#include <stddef.h>
#include <sys/types.h>

struct member {
  pid_t pid;
  pid_t parent;
  pid_t group;
  char state;                /* as in /proc/PID/stat, of the main thread: with Z the others live */
  int threads;
  unsigned long long start;  /* with pid it names one process for ever, a pid alone is given again */
  unsigned long long own;    /* ticks of the CPU */
  unsigned long long ticks;  /* with those of its ended children */
};

/*
 * Says so and ends this process where it can see its family no longer: to find nobody would say that nobody is left. Of a
 * keeper that ends without having said that the runner kills whoever is there.
 */
_Noreturn void give_up(int error);

/* Waits a little for the end of a shortage: of the node, or that an agent made of its keeper's own. Gives up one that lasts. */
void wait_out(int error);

/* As realloc, but waits for memory. */
void *resized(void *memory, size_t bytes);

/* What a file says, its length returned; -1 when it cannot be read. Waits where no file can be opened. */
int read_text(const char *path, char *text, size_t size);

/*
 * Nobody is in this PID namespace but the runner, as PID 1, and what it started: all of them may be stopped for as long as a
 * look takes, where there are more than so many new ones at once or stopping them one by one does not win.
 */
void may_hold_all(size_t new_at_once);

/* Continues whom looks stopped. Before this process sleeps. */
void let_go(void);

/* Reads /proc. The array is sorted by pid and belongs to the next call. Returns the number of living descendants. */
size_t family(struct member **members);

/* Sends a signal to every descendant once; SIGSTOP and SIGKILL look again until a pass finds nobody new. */
void signal_family(int sig);

/* Writes the process's command line (or its name) as printable text, at most size - 1 bytes. */
void describe(pid_t pid, char *text, size_t size);

#endif
