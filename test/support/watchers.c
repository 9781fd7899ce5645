/*
 * watchers N: starts N processes, each of a session of its own, that watch one another: a process that sees one die
 * reports it and starts another in its place.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MOST = 64 };
static _Atomic int *slots;
static int n;

static void live(int own) {
  int fds[MOST], pids[MOST] = {0};
  setsid();
  atomic_store(&slots[own], getpid());
  for (;;) {
    struct pollfd wants[MOST];
    for (int i = 0; i < n; i++) {
      int pid = atomic_load(&slots[i]);
      if (i != own && pid > 0 && pid != pids[i]) {
        if (pids[i]) close(fds[i]);
        fds[i] = (int)syscall(SYS_pidfd_open, pid, 0);
        pids[i] = pid;
      }
      wants[i] = (struct pollfd){.fd = i != own && pids[i] ? fds[i] : -1, .events = POLLIN};
    }
    poll(wants, (nfds_t)n, 1);
    for (int i = 0; i < n; i++) {
      int dead = pids[i];
      /* A process that was gone before it could be watched has no descriptor. */
      if (i == own || !dead || (fds[i] >= 0 && !(wants[i].revents & POLLIN))) continue;
      if (!atomic_compare_exchange_strong(&slots[i], &dead, -1)) continue;
      if (write(1, "x", 1) < 0) _exit(1);
      int pid = fork();
      if (pid == 0) {
        for (int j = 0; j < n; j++)
          if (pids[j] && fds[j] >= 0) close(fds[j]);
        live(i);
      }
      if (pid < 0) atomic_store(&slots[i], dead);
    }
  }
}

int main(int argc, char *argv[]) {
  n = argc > 1 ? atoi(argv[1]) : 2;
  for (int sig = 1; sig < NSIG; sig++)
    if (sig != SIGKILL && sig != SIGSTOP) signal(sig, SIG_IGN);
  slots = mmap(NULL, MOST * sizeof *slots, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  for (int i = 1; i < n; i++)
    if (fork() == 0) live(i);
  live(0);
}
