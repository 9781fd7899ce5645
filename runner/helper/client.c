#define _GNU_SOURCE
#include "client.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "frames.h"

static int runner_fd = -1;
static int64_t heard_at, sent_at;
/* True where the client sends more than heartbeats: none of its frames is skipped then. */
static bool receives;
static void (*clean_up)(void);

void client_watch(int runner) {
  runner_fd = runner;
  heard_at = sent_at = now_ms();
}

void client_sends(void (*fn)(void)) {
  receives = true;
  clean_up = fn;
}

__attribute__((noreturn)) static void leave(int code) {
  if (clean_up) clean_up();
  _exit(code);
}

/* Reads what is there; ends the process at an end. What comes is a heartbeat, whatever it is. */
static void hear(int fd) {
  char bytes[4096];
  ssize_t count = read(fd, bytes, sizeof bytes);
  if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) leave(0);
}

/* Listens to both sides until fd 1 has room, or just once. */
static void listen_both(bool until_room) {
  for (;;) {
    struct pollfd polled[3] = {{.fd = receives ? -1 : 0, .events = POLLIN}, {.fd = runner_fd, .events = POLLIN}, {.fd = 1, .events = POLLOUT}};
    int64_t left = heard_at + SILENCE_MS - now_ms();
    if (left <= 0) leave(1);
    if (poll(polled, 3, until_room ? (int)left : 0) < 0 && errno != EINTR) leave(1);
    if (polled[0].revents) {
      hear(0);
      heard_at = now_ms();
    }
    if (polled[1].revents) hear(runner_fd);
    if (polled[2].revents & (POLLERR | POLLHUP | POLLNVAL)) leave(0);
    if (!until_room || polled[2].revents & POLLOUT) return;
  }
}

static void write_parts(struct iovec *parts, int count) {
  while (count > 0) {
    ssize_t written = writev(1, parts, count);
    if (written < 0 && errno != EAGAIN && errno != EINTR) leave(0);
    if (written < 0) listen_both(true);
    else {
      for (; count > 0 && (size_t)written >= parts->iov_len; parts++, count--) written -= (ssize_t)parts->iov_len;
      if (count > 0) *parts = (struct iovec){(char *)parts->iov_base + written, parts->iov_len - (size_t)written};
    }
  }
}

static void put(char kind, const void *bytes, size_t length) {
  unsigned char header[FRAME_HEADER];
  put_header(header, kind, length);
  write_parts((struct iovec[]){{header, sizeof header}, {(void *)bytes, length}}, 2);
}

static void beat_if_due(void) {
  int64_t now = now_ms();
  if (now - sent_at < BEAT_MS) return;
  sent_at = now;
  put(BEAT, NULL, 0);
}

void client_alive(void) {
  listen_both(false);
  beat_if_due();
}

void client_send(char kind, const void *bytes, size_t length) {
  client_alive();
  sent_at = now_ms();
  put(kind, bytes, length);
}

void client_refuse(const char *code, const char *field, const char *format, ...) {
  struct text json = {0};
  char *message;
  va_list arguments;
  va_start(arguments, format);
  int length = vasprintf(&message, format, arguments);
  va_end(arguments);
  if (length < 0) leave(1);
  text_format(&json, "{\"code\":\"%s\",\"message\":", code);
  text_json(&json, message, (size_t)length);
  if (field) text_format(&json, ",\"field\":\"%s\"", field);
  text_say(&json, "}");
  put(REFUSED, json.bytes, json.length);
  leave(0);
}

void client_pass_on(const unsigned char *frame, size_t length) {
  write_parts((struct iovec[]){{(void *)frame, length}}, 1);
  leave(0);
}

/* Milliseconds until a heartbeat is due, or `until` is there, whichever is first; at least 0. */
static int wait_ms(int64_t until) {
  int64_t due = sent_at + BEAT_MS < until ? sent_at + BEAT_MS : until, left = due - now_ms();
  return left > 0 ? (int)left : 0;
}

/* Waits for bytes of the client and reads what is there; the client gets heartbeats meanwhile. Returns their number, at least 1. */
static size_t read_client(unsigned char *bytes, size_t size) {
  for (;;) {
    struct pollfd polled[3] = {{.fd = 0, .events = POLLIN}, {.fd = runner_fd, .events = POLLIN}, {.fd = 1}};
    beat_if_due();
    if (now_ms() - heard_at >= SILENCE_MS) leave(1);
    if (poll(polled, 3, wait_ms(heard_at + SILENCE_MS)) < 0 && errno != EINTR) leave(1);
    if (polled[1].revents) hear(runner_fd);
    if (polled[2].revents) leave(0);
    if (!polled[0].revents) continue;
    ssize_t count = read(0, bytes, size);
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) leave(0);
    if (count < 0) continue;
    heard_at = now_ms();
    return (size_t)count;
  }
}

/* Takes exactly `length` bytes of the client, which may come with bytes after them. */
static void take_client(unsigned char *bytes, size_t length) {
  static unsigned char ahead[MAX_FRAME];
  static size_t start, end;
  while (length > 0) {
    if (start == end) {
      start = 0;
      end = read_client(ahead, sizeof ahead);
    }
    size_t count = length < end - start ? length : end - start;
    memcpy(bytes, ahead + start, count);
    start += count;
    bytes += count;
    length -= count;
  }
}

size_t client_receive(unsigned char *frame) {
  heard_at = now_ms();
  for (;;) {
    take_client(frame, FRAME_HEADER);
    size_t length = number_at(frame + 1);
    if (length > MAX_PAYLOAD) leave(0);
    take_client(frame + FRAME_HEADER, length);
    if (frame[0] != BEAT) return FRAME_HEADER + length;
  }
}

void runner_tell(char kind, const void *bytes, size_t length) {
  struct text all = {0};
  unsigned char header[FRAME_HEADER];
  put_header(header, kind, length);
  text_add(&all, header, sizeof header);
  text_add(&all, bytes, length);
  for (size_t at = 0; at < all.length;) {
    ssize_t count = write(runner_fd, all.bytes + at, all.length - at);
    if (count > 0) at += (size_t)count;
    else if (errno == EAGAIN) {
      struct pollfd polled = {.fd = runner_fd, .events = POLLOUT};
      if (poll(&polled, 1, SILENCE_MS) == 0) leave(1);
    } else if (errno != EINTR) leave(1);
  }
  text_free(&all);
}

size_t runner_answer(unsigned char *frame, int ms) {
  int64_t until = now_ms() + ms;
  for (;;) {
    struct pollfd polled[3] = {{.fd = runner_fd, .events = POLLIN}, {.fd = 0}, {.fd = 1}};
    beat_if_due();
    if (now_ms() >= until) return 0;
    if (poll(polled, 3, wait_ms(until)) < 0 && errno != EINTR) leave(1);
    if (polled[1].revents & (POLLERR | POLLNVAL) || polled[2].revents) leave(0);
    if (!polled[0].revents) continue;
    size_t length = read_frame(runner_fd, frame, SILENCE_MS);
    if (length == 0) leave(1);
    if (frame[0] != BEAT) return length;
  }
}

size_t read_frame(int fd, unsigned char *frame, int ms) {
  size_t filled = 0, wanted = FRAME_HEADER;
  int64_t until = now_ms() + ms;
  while (filled < wanted) {
    struct pollfd polled = {.fd = fd, .events = POLLIN};
    int64_t left = until - now_ms();
    if (left <= 0 || (poll(&polled, 1, (int)left) < 0 && errno != EINTR)) return 0;
    if (!polled.revents) continue;
    /* No byte of the next frame is read. */
    ssize_t count = read(fd, frame + filled, wanted - filled);
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) return 0;
    if (count > 0) filled += (size_t)count;
    if (filled == FRAME_HEADER) {
      size_t length = number_at(frame + 1);
      if (length > MAX_PAYLOAD) return 0;
      wanted = FRAME_HEADER + length;
    }
  }
  return filled;
}
