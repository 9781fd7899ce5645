#define _GNU_SOURCE
#include "pump.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <string.h>
#include <unistd.h>

void pump_open(struct pump *p, int from, int to) {
  p->from = from;
  p->to = to;
  p->last_bytes = NULL;
  p->start = p->end = 0;
  p->taken = 0;
  fcntl(from, F_SETFL, fcntl(from, F_GETFL) | O_NONBLOCK);
  fcntl(to, F_SETFL, fcntl(to, F_GETFL) | O_NONBLOCK);
}

void pump_none(struct pump *p, int to) {
  close(to);
  p->from = p->to = -1;
}

static void close_fd(int *fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

void pump_wants(const struct pump *p, struct pollfd wants[2]) {
  int pending = p->end > p->start;
  /*
   * poll always reports a hang-up, so an entry that is not wanted must have no descriptor: otherwise poll would return
   * at once each time.
   */
  wants[0] = (struct pollfd){.fd = pending ? -1 : p->from, .events = POLLIN};
  wants[1] = (struct pollfd){.fd = pending ? p->to : -1, .events = POLLOUT};
}

static int again(void) { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

int pump_take(struct pump *p) {
  if (p->end > p->start || p->from < 0) return 0;
  ssize_t n = read(p->from, p->bytes, PUMP_BYTES);
  if (n > 0) {
    p->start = 0;
    p->end = (size_t)n;
    p->taken += n;
    return 1;
  }
  if (n < 0 && again()) return 0;
  close_fd(&p->from);
  if (p->last_bytes && p->to >= 0) {
    int line_has_begun = p->end > 0 && p->bytes[p->end - 1] != '\n';
    p->start = 0;
    p->end = p->last_bytes(p->to, line_has_begun, p->bytes);
  }
  return 0;
}

int pump_give(struct pump *p) {
  int moved = 0;
  while (p->end > p->start) {
    if (p->to < 0) {
      p->start = p->end;
      break;
    }
    ssize_t n = write(p->to, p->bytes + p->start, p->end - p->start);
    if (n > 0) {
      p->start += (size_t)n;
      moved = 1;
    } else if (n < 0 && again()) {
      break;
    } else {
      close_fd(&p->to);
    }
  }
  if (p->from < 0 && p->end == p->start) close_fd(&p->to);
  return moved;
}

int pump_run(struct pump *p) {
  int taken = pump_take(p), given = pump_give(p);
  return taken || given;
}

long long pump_given(const struct pump *p) {
  int waiting = 0;
  if (p->from >= 0 && ioctl(p->from, FIONREAD, &waiting)) waiting = 0;
  return p->taken + waiting;
}

void pump_read_rest(struct pump *p) {
  if (p->from < 0) return;
  p->end -= p->start;
  memmove(p->bytes, p->bytes + p->start, p->end);
  p->start = 0;
  while (p->end < sizeof p->bytes) {
    ssize_t n = read(p->from, p->bytes + p->end, sizeof p->bytes - p->end);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    p->end += (size_t)n;
    p->taken += n;
  }
  close_fd(&p->from);
}

void pump_discard(struct pump *p) { close_fd(&p->to); }

void pump_finish(struct pump *p) {
  while (pump_run(p)) continue;
  if (p->end == p->start) {
    close_fd(&p->from);
    close_fd(&p->to);
  }
}

int pump_done(const struct pump *p) { return p->from < 0 && p->to < 0; }
