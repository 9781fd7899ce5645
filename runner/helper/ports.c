#define _GNU_SOURCE
#include "ports.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "frames.h"
#include "text.h"

/* Id before the bytes of a frame. */
enum { ID = 4 };
/* Bytes on their way to the client above which no port is read, and above which the client is not read either. */
enum { OUT_PORTS = 2 * MAX_FRAME, OUT_CLIENT = 8 * MAX_FRAME };
/* Bytes that a server has taken after which the client is given credit for as many. */
enum { CREDIT_BYTES = PORT_WINDOW / 4 };
/* Limit for a server whose queue is full to answer, and interval at which the runner is told that bytes move; milliseconds. */
enum { CONNECT_MS = 10000, MOVED_MS = 1000 };

struct connection {
  uint32_t id;
  uint16_t port;
  /* -1: this entry is free. */
  int fd;
  bool is_connecting, is_ipv6;
  /* Why 127.0.0.1 was not reached. */
  int error;
  int64_t until;
  /* The server sends no more; the client sends no more; the server was told so. */
  bool server_ended, client_ended, is_shut;
  /* Bytes that the client still takes. */
  size_t credit;
  /* Ring of bytes for the server; NULL while it is empty. */
  unsigned char *bytes;
  size_t start, length;
  /* Bytes that the server took since credit was given. */
  size_t taken;
};

static struct connection connections[MAX_PORT_CONNECTIONS];
/* Frames on their way to the client, sent up to `sent`. */
static struct text out;
static size_t sent;
static int runner_fd;
static bool has_moved;

static size_t out_length(void) { return out.length - sent; }

static void say(char kind, uint32_t id, const void *bytes, size_t length) {
  unsigned char head[FRAME_HEADER + ID];
  put_header(head, kind, ID + length);
  put_number(head + FRAME_HEADER, id);
  text_add(&out, head, sizeof head);
  text_add(&out, bytes, length);
}

static void say_plain(char kind, const char *payload) {
  unsigned char head[FRAME_HEADER];
  put_header(head, kind, strlen(payload));
  text_add(&out, head, sizeof head);
  text_say(&out, payload);
}

/* Has the end of a socket's descriptor reset the connection, or not. */
static void reset_at_close(int fd, bool resets) {
  struct linger linger = {.l_onoff = resets};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
}

static void release(struct connection *connection) {
  if (connection->fd >= 0) close(connection->fd);
  free(connection->bytes);
  *connection = (struct connection){.fd = -1};
}

/* Ends a connection that the client has not reset. NULL: both sides had ended it. */
static void finish(struct connection *connection, const char *why) {
  if (!why) reset_at_close(connection->fd, false);
  say(CLOSED, connection->id, why ? why : "", why ? strlen(why) : 0);
  release(connection);
}

/* Begins to connect to localhost; returns an errno. */
static int begin(struct connection *connection) {
  struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(connection->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(connection->port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
  bool is_ipv6 = connection->is_ipv6;
  int fd = socket(is_ipv6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return errno;
  const struct sockaddr *address = is_ipv6 ? (const struct sockaddr *)&six : (const struct sockaddr *)&four;
  if (connect(fd, address, is_ipv6 ? sizeof six : sizeof four) && errno != EINPROGRESS) {
    int error = errno;
    close(fd);
    return error;
  }
  int yes = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  reset_at_close(fd, true);
  connection->fd = fd;
  connection->is_connecting = true;
  return 0;
}

/* Tries ::1 after 127.0.0.1, or gives up with the error of the first. */
static void try_next(struct connection *connection, int error) {
  if (connection->fd >= 0) close(connection->fd);
  connection->fd = -1;
  while (error && !connection->is_ipv6) {
    connection->error = error;
    connection->is_ipv6 = true;
    error = begin(connection);
  }
  if (!error) return;
  finish(connection, strerror(connection->error));
}

static void open_port(uint32_t id, uint16_t port) {
  for (int i = 0; i < MAX_PORT_CONNECTIONS; i++) {
    struct connection *connection = &connections[i];
    if (connection->fd >= 0) continue;
    *connection = (struct connection){.id = id, .port = port, .fd = -1, .credit = PORT_WINDOW, .until = now_ms() + CONNECT_MS};
    int error = begin(connection);
    if (error) try_next(connection, error);
    return;
  }
  static const char why[] = "there are too many connections";
  say(CLOSED, id, why, sizeof why - 1);
}

static struct connection *find(uint32_t id) {
  for (int i = 0; i < MAX_PORT_CONNECTIONS; i++)
    if (connections[i].fd >= 0 && connections[i].id == id) return &connections[i];
  return NULL;
}

/* Notes bytes that the server took, and gives the client credit for them. */
static void take(struct connection *connection, size_t count) {
  has_moved = true;
  connection->taken += count;
  if (connection->taken < CREDIT_BYTES) return;
  unsigned char number[4];
  put_number(number, (uint32_t)connection->taken);
  say(CREDIT, connection->id, number, sizeof number);
  connection->taken = 0;
}

static bool may_pass(int error) { return error == EAGAIN || error == EINTR; }

/* Tells the server the client's end once it has all bytes before it; ends a connection that both sides have ended. */
static void settle(struct connection *connection) {
  if (connection->client_ended && connection->length == 0 && !connection->is_connecting && !connection->is_shut) {
    shutdown(connection->fd, SHUT_WR);
    connection->is_shut = true;
  }
  if (connection->is_shut && connection->server_ended) finish(connection, NULL);
}

/* Gives the server what waits for it. */
static void drain(struct connection *connection) {
  while (connection->length > 0) {
    size_t whole = PORT_WINDOW - connection->start, piece = connection->length < whole ? connection->length : whole;
    ssize_t count = write(connection->fd, connection->bytes + connection->start, piece);
    if (count < 0 && may_pass(errno)) return;
    if (count < 0) {
      finish(connection, strerror(errno));
      return;
    }
    connection->start = (connection->start + (size_t)count) % PORT_WINDOW;
    connection->length -= (size_t)count;
    take(connection, (size_t)count);
  }
  free(connection->bytes);
  connection->bytes = NULL;
  settle(connection);
}

/* Gives the server bytes of the client, or keeps them for it. */
static void forward(struct connection *connection, const unsigned char *at, size_t length) {
  if (connection->client_ended || connection->length + length > PORT_WINDOW) {
    finish(connection, "the client sent more than it may");
    return;
  }
  if (connection->length == 0 && !connection->is_connecting) {
    ssize_t count = write(connection->fd, at, length);
    if (count < 0 && !may_pass(errno)) {
      finish(connection, strerror(errno));
      return;
    }
    if (count > 0) {
      take(connection, (size_t)count);
      at += count;
      length -= (size_t)count;
    }
  }
  if (length == 0) return;
  if (!connection->bytes && !(connection->bytes = malloc(PORT_WINDOW))) {
    finish(connection, strerror(ENOMEM));
    return;
  }
  size_t end = (connection->start + connection->length) % PORT_WINDOW, whole = PORT_WINDOW - end;
  size_t first = length < whole ? length : whole;
  memcpy(connection->bytes + end, at, first);
  memcpy(connection->bytes, at + first, length - first);
  connection->length += length;
}

/* Sends the client a piece of what the server sends. */
static void receive(struct connection *connection) {
  static unsigned char piece[MAX_PAYLOAD - ID];
  size_t room = connection->credit < sizeof piece ? connection->credit : sizeof piece;
  ssize_t count = read(connection->fd, piece, room);
  if (count < 0 && may_pass(errno)) return;
  if (count < 0) {
    finish(connection, strerror(errno));
  } else if (count == 0) {
    connection->server_ended = true;
    say(HALF_CLOSE, connection->id, NULL, 0);
    settle(connection);
  } else {
    connection->credit -= (size_t)count;
    has_moved = true;
    say(BYTES, connection->id, piece, (size_t)count);
  }
}

static int error_of(int fd) {
  int error = 0;
  socklen_t size = sizeof error;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size)) return errno;
  return error;
}

static void serve(struct connection *connection, short events) {
  if (connection->is_connecting) {
    int error = error_of(connection->fd);
    if (error) {
      try_next(connection, error);
      return;
    }
    connection->is_connecting = false;
    say(CONNECTED, connection->id, NULL, 0);
    drain(connection);
    return;
  }
  uint32_t id = connection->id;
  if (events & POLLOUT) drain(connection);
  if (connection->fd < 0 || connection->id != id) return;
  if (!connection->server_ended) {
    if (events & (POLLIN | POLLHUP | POLLERR) && connection->credit > 0 && out_length() < OUT_PORTS) receive(connection);
  } else if (events & (POLLERR | POLLHUP)) {
    int error = error_of(connection->fd);
    finish(connection, strerror(error ? error : ECONNRESET));
  }
}

/* Carries out a frame of the client; ends the process where it is none of ports. */
static void obey(const unsigned char *frame, size_t length) {
  const unsigned char *payload = frame + FRAME_HEADER;
  if (frame[0] == BEAT) return;
  if (length < ID) _exit(1);
  uint32_t id = number_at(payload);
  if (frame[0] == CONNECT) {
    if (length != ID + 2) _exit(1);
    open_port(id, (uint16_t)(payload[ID] << 8 | payload[ID + 1]));
    return;
  }
  struct connection *connection = find(id);
  /* Frames of a connection that has ended meanwhile cross with the word of it. */
  if (!connection) return;
  switch (frame[0]) {
    case BYTES:
      forward(connection, payload + ID, length - ID);
      return;
    case HALF_CLOSE:
      connection->client_ended = true;
      settle(connection);
      return;
    case CLOSED:
      release(connection);
      return;
    case CREDIT:
      if (length != ID + 4) _exit(1);
      connection->credit += number_at(payload + ID);
      return;
    default:
      _exit(1);
  }
}

/* Reads the client; ends the process at its end. */
static void hear(void) {
  static unsigned char in[4 * MAX_FRAME];
  static size_t filled;
  ssize_t count = read(0, in + filled, sizeof in - filled);
  if (count < 0 && may_pass(errno)) return;
  if (count <= 0) _exit(0);
  filled += (size_t)count;
  size_t at = 0;
  while (filled - at >= FRAME_HEADER) {
    size_t length = number_at(in + at + 1);
    if (length > MAX_PAYLOAD) _exit(1);
    if (filled - at < FRAME_HEADER + length) break;
    obey(in + at, length);
    at += FRAME_HEADER + length;
  }
  memmove(in, in + at, filled - at);
  filled -= at;
}

static void flush(void) {
  ssize_t count = write(1, out.bytes + sent, out_length());
  if (count < 0 && !may_pass(errno)) _exit(0);
  if (count > 0) sent += (size_t)count;
  if (out_length() > 0 && sent < OUT_PORTS) return;
  memmove(out.bytes, out.bytes + sent, out_length());
  out.length -= sent;
  sent = 0;
}

/* Tells the runner; one that does not read has been told already. */
static void tell_moved(void) {
  static const unsigned char frame[FRAME_HEADER] = {MOVED};
  has_moved = false;
  if (send(runner_fd, frame, sizeof frame, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 && !may_pass(errno)) _exit(0);
}

static short wanted_of(const struct connection *connection) {
  if (connection->is_connecting) return POLLOUT;
  bool reads = !connection->server_ended && connection->credit > 0 && out_length() < OUT_PORTS;
  return (short)((reads ? POLLIN : 0) | (connection->length > 0 ? POLLOUT : 0));
}

/* Gives up connections to servers that have not answered in time; returns when the next one is. */
static int64_t expire(int64_t now, int64_t until) {
  for (int i = 0; i < MAX_PORT_CONNECTIONS; i++) {
    struct connection *connection = &connections[i];
    if (connection->fd < 0 || !connection->is_connecting) continue;
    if (connection->until <= now) finish(connection, strerror(ETIMEDOUT));
    else if (connection->until < until) until = connection->until;
  }
  return until;
}

void serve_ports(int runner) {
  enum { CLIENT, TO_CLIENT, RUNNER, OTHERS };
  int64_t heard_at = now_ms(), beat_at = heard_at, moved_at = heard_at - MOVED_MS;
  unsigned first = 0;
  runner_fd = runner;
  for (int i = 0; i < MAX_PORT_CONNECTIONS; i++) connections[i].fd = -1;
  say_plain(READY, "{}");
  for (;;) {
    struct pollfd polled[OTHERS + MAX_PORT_CONNECTIONS];
    int64_t now = now_ms();
    if (now - heard_at >= SILENCE_MS) _exit(1);
    if (now - beat_at >= BEAT_MS) {
      beat_at = now;
      /* What waits to be sent is a sign of life by itself. */
      if (out_length() == 0) say_plain(BEAT, "");
    }
    if (has_moved && now - moved_at >= MOVED_MS) {
      moved_at = now;
      tell_moved();
    }
    int64_t until = expire(now, beat_at + BEAT_MS);
    if (heard_at + SILENCE_MS < until) until = heard_at + SILENCE_MS;
    if (has_moved && moved_at + MOVED_MS < until) until = moved_at + MOVED_MS;
    polled[CLIENT] = (struct pollfd){.fd = out_length() < OUT_CLIENT ? 0 : -1, .events = POLLIN};
    /* Without an event asked for, poll still tells that the reader has gone. */
    polled[TO_CLIENT] = (struct pollfd){.fd = 1, .events = out_length() > 0 ? POLLOUT : 0};
    polled[RUNNER] = (struct pollfd){.fd = runner, .events = POLLIN};
    for (int i = 0; i < MAX_PORT_CONNECTIONS; i++) {
      const struct connection *connection = &connections[i];
      short events = connection->fd < 0 ? 0 : wanted_of(connection);
      /* poll tells of an error as long as nobody reads it: only what can be read is looked at. */
      bool is_watched = events || (connection->fd >= 0 && connection->server_ended);
      polled[OTHERS + i] = (struct pollfd){.fd = is_watched ? connection->fd : -1, .events = events};
    }
    if (poll(polled, OTHERS + MAX_PORT_CONNECTIONS, (int)(until > now ? until - now : 0)) < 0) {
      if (errno == EINTR) continue;
      _exit(1);
    }
    if (polled[RUNNER].revents) {
      char bytes[256];
      ssize_t count = read(runner, bytes, sizeof bytes);
      if (count == 0 || (count < 0 && !may_pass(errno))) _exit(0);
    }
    if (polled[TO_CLIENT].revents & (POLLERR | POLLHUP | POLLNVAL)) _exit(0);
    /* Each has its turn to be first, so that none is starved where the client is slow. */
    first = (first + 1) % MAX_PORT_CONNECTIONS;
    for (unsigned i = 0; i < MAX_PORT_CONNECTIONS; i++) {
      unsigned at = (first + i) % MAX_PORT_CONNECTIONS;
      if (connections[at].fd < 0 || !polled[OTHERS + at].revents) continue;
      serve(&connections[at], polled[OTHERS + at].revents);
    }
    if (polled[CLIENT].revents) {
      heard_at = now_ms();
      hear();
    }
    if (out_length() > 0) flush();
  }
}
