#define _GNU_SOURCE
#include "pump.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "frames.h"

/* Bytes on their way from one descriptor to another. */
struct direction {
  int from, to;
  bool ended; /* `from` gives no more */
  size_t start, length;
  unsigned char bytes[MAX_FRAME];
};

/* Returns false where the direction can carry nothing more. */
static bool read_into(struct direction *way) {
  ssize_t count = read(way->from, way->bytes, sizeof way->bytes);
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  way->ended = count == 0;
  way->start = 0;
  way->length = (size_t)count;
  return true;
}

static bool write_from(struct direction *way) {
  ssize_t count = write(way->to, way->bytes + way->start, way->length);
  if (count < 0) return errno == EAGAIN || errno == EINTR;
  way->start += (size_t)count;
  way->length -= (size_t)count;
  return true;
}

void pump(int runner, const unsigned char *first, size_t length) {
  static struct direction down = {.from = 0}, up = {.to = 1};
  bool runner_takes = true;
  down.to = up.from = runner;
  up.length = length;
  memcpy(up.bytes, first, length);
  for (;;) {
    if (up.ended && up.length == 0) return;
    if (down.ended && down.length == 0) return;
    struct pollfd polled[4] = {
        {.fd = runner_takes && down.length == 0 ? 0 : -1, .events = POLLIN},
        {.fd = runner_takes && down.length > 0 ? runner : -1, .events = POLLOUT},
        {.fd = up.length == 0 ? runner : -1, .events = POLLIN},
        /* Without an event asked for, poll still tells that the reader has gone. */
        {.fd = 1, .events = up.length > 0 ? POLLOUT : 0},
    };
    int ready = poll(polled, 4, runner_takes ? -1 : SILENCE_MS);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return;
    if (polled[0].revents && !read_into(&down)) return;
    /* A runner that takes nothing more may have said its last words before, which still go to the client. */
    if (polled[1].revents && !write_from(&down)) runner_takes = false;
    if (polled[2].revents && !read_into(&up)) return;
    if (polled[3].revents & POLLOUT) {
      if (!write_from(&up)) return;
    } else if (polled[3].revents) return;
  }
}
