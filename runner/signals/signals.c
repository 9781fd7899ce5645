/*
 * signals.node: an addon that makes the process that loads it ignore every signal that nothing in it handles.
 *
 * The kernel keeps from PID 1 what has the default disposition, but only while its first thread does not block the
 * signal: a thread that does not block it may then take it, and the process ends. A libuv handler runs with all signals
 * blocked. An ignored signal ends nothing in any case.
 *
 * Node resets signals that are ignored at its start, so what starts Node cannot do this; Node has no call that ignores a
 * signal. Signals of hardware faults still end the process: the kernel resets them where they are ignored.
 */
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The first field of the kernel's struct sigaction is the handler on x86-64 and arm64. */
struct kernel_sigaction {
  void (*handler)(int);
  unsigned long others[7];
};

/*
 * Returns 1 for signals whose default does nothing. SIGCHLD must keep it: the kernel reaps the children of a process that
 * ignores it.
 */
static int is_harmless(int sig) { return sig == SIGCHLD || sig == SIGCONT || sig == SIGURG || sig == SIGWINCH; }

/* Node calls this function, as it finds it by its name; see Node-API, "Module registration". */
void *napi_register_module_v1(void *env, void *exports);

void *napi_register_module_v1(void *env, void *exports) {
  const struct kernel_sigaction ignored = {.handler = SIG_IGN};
  (void)env;
  /* libc's sigaction refuses the two signals that libc reserves. SIGKILL and SIGSTOP cannot be changed. */
  for (int sig = 1; sig < NSIG; sig++) {
    struct kernel_sigaction present = {0};
    if (is_harmless(sig) || syscall(SYS_rt_sigaction, sig, NULL, &present, NSIG / 8)) continue;
    if (present.handler == SIG_DFL) syscall(SYS_rt_sigaction, sig, &ignored, NULL, NSIG / 8);
  }
  return exports;
}
