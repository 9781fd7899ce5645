/*
 * signals.node: what Node has no call for. `ignoreSignals()` makes the process ignore every signal that nothing in it
 * handles. `peerPid(fd)` returns the pid of the process at the other end of a unix socket.
 *
 * The kernel keeps from PID 1 what has the default disposition, but only while its first thread does not block the
 * signal: a thread that does not block it may then take it, and the process ends. A libuv handler runs with all signals
 * blocked. An ignored signal ends nothing in any case.
 *
 * Node resets signals that are ignored at its start, so what starts Node cannot do this. Signals of hardware faults still
 * end the process: the kernel resets them where they are ignored.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
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

static void *ignore_signals(void *env, void *info) {
  const struct kernel_sigaction ignored = {.handler = SIG_IGN};
  (void)env;
  (void)info;
  /* libc's sigaction refuses the two signals that libc reserves. SIGKILL and SIGSTOP cannot be changed. */
  for (int sig = 1; sig < NSIG; sig++) {
    struct kernel_sigaction present = {0};
    if (is_harmless(sig) || syscall(SYS_rt_sigaction, sig, NULL, &present, NSIG / 8)) continue;
    if (present.handler == SIG_DFL) syscall(SYS_rt_sigaction, sig, &ignored, NULL, NSIG / 8);
  }
  return NULL;
}

/*
 * The functions of Node-API that are used; a value, an environment and a call are opaque pointers. Each returns 0 where it
 * has done its work.
 */
int napi_create_function(void *env, const char *name, size_t length, void *(*called)(void *, void *), void *data, void **result);
int napi_set_named_property(void *env, void *object, const char *name, void *value);
int napi_get_cb_info(void *env, void *info, size_t *count, void **arguments, void **self, void **data);
int napi_get_value_int32(void *env, void *value, int *result);
int napi_create_int32(void *env, int value, void **result);

/*
 * Returns the pid of the process that called connect, as it is in this PID namespace; 0 where it has none here, or the
 * descriptor is no connected unix socket.
 */
static void *peer_pid(void *env, void *info) {
  struct ucred peer = {0};
  unsigned size = sizeof peer;
  size_t count = 1;
  void *argument = NULL, *result = NULL;
  int fd = -1;
  if (napi_get_cb_info(env, info, &count, &argument, NULL, NULL) || napi_get_value_int32(env, argument, &fd)) fd = -1;
  if (syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_PEERCRED, &peer, &size)) peer.pid = 0;
  napi_create_int32(env, peer.pid, &result);
  return result;
}

/* Node calls this function, as it finds it by its name; see Node-API, "Module registration". */
void *napi_register_module_v1(void *env, void *exports);

void *napi_register_module_v1(void *env, void *exports) {
  const struct {
    const char *name;
    void *(*called)(void *, void *);
  } functions[] = {{"ignoreSignals", ignore_signals}, {"peerPid", peer_pid}};
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    void *function = NULL;
    /* The length that stands for "up to the NUL". */
    if (napi_create_function(env, functions[i].name, SIZE_MAX, functions[i].called, NULL, &function)) continue;
    napi_set_named_property(env, exports, functions[i].name, function);
  }
  return exports;
}
