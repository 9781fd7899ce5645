/*
 * berth-agent: sends one request to the runner over BERTH_SOCKET, for programs in any language. docs/agents/socket.md.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { APPROVED = 0, DENIED = 1, USAGE = 2, FAILED = 3 };

static const char usage[] =
    "usage: berth-agent event JSON          tell how far the work is\n"
    "       berth-agent approve PROMPT [JSON]  ask a person and wait; prints the decision\n"
    "       berth-agent result JSON         set the output of the turn\n"
    "       berth-agent result --error TEXT end the turn as failed\n"
    "       berth-agent touch               count as active\n"
    "JSON may be - for stdin. Exit codes: 0 done or approved, 1 denied, 2 wrong usage, 3 failed.\n";

struct text {
  char *bytes;
  size_t length, room;
};

static void end(int code, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("berth-agent: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  exit(code);
}

static void append(struct text *text, const char *bytes, size_t length) {
  if (text->length + length > text->room) {
    text->room = 2 * (text->length + length);
    text->bytes = realloc(text->bytes, text->room);
    if (!text->bytes) end(FAILED, "out of memory");
  }
  memcpy(text->bytes + text->length, bytes, length);
  text->length += length;
}

static void put(struct text *text, const char *string) { append(text, string, strlen(string)); }

/* Writes any text as a JSON string. */
static void put_string(struct text *text, const char *string) {
  put(text, "\"");
  for (const unsigned char *c = (const unsigned char *)string; *c; c++) {
    char escape[8];
    if (*c == '"' || *c == '\\') snprintf(escape, sizeof escape, "\\%c", *c);
    else if (*c < 0x20) snprintf(escape, sizeof escape, "\\u%04x", *c);
    else snprintf(escape, sizeof escape, "%c", *c);
    put(text, escape);
  }
  put(text, "\"");
}

/* Writes JSON as it is, on one line: a line feed in it stands between its tokens, where a space is allowed as well. */
static void put_json(struct text *text, const char *json) {
  size_t start = text->length;
  if (strcmp(json, "-") == 0) {
    char buffer[65536];
    size_t n;
    while ((n = fread(buffer, 1, sizeof buffer, stdin)) > 0) append(text, buffer, n);
    if (ferror(stdin)) end(FAILED, "stdin cannot be read: %s", strerror(errno));
  } else put(text, json);
  int some = 0;
  for (size_t i = start; i < text->length; i++) {
    if (text->bytes[i] == '\n' || text->bytes[i] == '\r') text->bytes[i] = ' ';
    if (text->bytes[i] != ' ' && text->bytes[i] != '\t') some = 1;
  }
  if (!some) end(USAGE, "the JSON is empty");
}

/*
 * Writes the request with the caller's JSON first. The last of two equal names counts, so a text that is not a single
 * value cannot change the request.
 */
static void request(struct text *line, int argc, char **argv) {
  const char *word = argc > 1 ? argv[1] : "";
  if (strcmp(word, "touch") == 0 && argc == 2) put(line, "{\"do\":\"touch\"");
  else if (strcmp(word, "event") == 0 && argc == 3) {
    put(line, "{\"event\":");
    put_json(line, argv[2]);
    put(line, ",\"do\":\"event\"");
  } else if (strcmp(word, "approve") == 0 && (argc == 3 || argc == 4)) {
    put(line, "{");
    if (argc == 4) {
      put(line, "\"payload\":");
      put_json(line, argv[3]);
      put(line, ",");
    }
    put(line, "\"do\":\"approve\",\"prompt\":");
    put_string(line, argv[2]);
  } else if (strcmp(word, "result") == 0 && argc == 4 && strcmp(argv[2], "--error") == 0) {
    put(line, "{\"do\":\"result\",\"result\":{\"status\":\"error\",\"error\":");
    put_string(line, argv[3]);
    put(line, "}");
  } else if (strcmp(word, "result") == 0 && argc == 3 && strcmp(argv[2], "--error") != 0) {
    put(line, "{\"result\":{\"output\":");
    put_json(line, argv[2]);
    put(line, ",\"status\":\"success\"},\"do\":\"result\"");
  } else {
    fputs(usage, strcmp(word, "--help") == 0 ? stdout : stderr);
    exit(strcmp(word, "--help") == 0 ? 0 : USAGE);
  }
  /* A process that outlives its turn tells nothing of a later one. */
  const char *turn = getenv("BERTH_TURN");
  if (turn && *turn) {
    put(line, ",\"turn\":");
    put_string(line, turn);
  }
  put(line, "}\n");
}

static int reach_runner(void) {
  const char *path = getenv("BERTH_SOCKET");
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  if (!path || !*path) end(FAILED, "BERTH_SOCKET is not set: this is no session of Berth");
  if (strlen(path) >= sizeof address.sun_path) end(FAILED, "BERTH_SOCKET is too long: %s", path);
  strcpy(address.sun_path, path);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
    end(FAILED, "the runner does not answer at %s: %s", path, strerror(errno));
  return fd;
}

static void send_all(int fd, const struct text *line) {
  for (size_t sent = 0; sent < line->length;) {
    ssize_t n = send(fd, line->bytes + sent, line->length - sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    /* The runner refused the request before its end: the reply says why. */
    if (n < 0) return;
    sent += (size_t)n;
  }
}

static void receive_line(int fd, struct text *line) {
  char buffer[65536];
  for (;;) {
    ssize_t n = recv(fd, buffer, sizeof buffer, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) end(FAILED, "the runner closed the connection without an answer");
    char *feed = memchr(buffer, '\n', (size_t)n);
    append(line, buffer, feed ? (size_t)(feed - buffer) : (size_t)n);
    if (feed) break;
  }
  append(line, "", 1);
}

static int starts(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

int main(int argc, char **argv) {
  struct text line = {0}, reply = {0};
  request(&line, argc, argv);
  int fd = reach_runner();
  send_all(fd, &line);
  receive_line(fd, &reply);
  /* The runner writes these keys first and without spaces. */
  if (!starts(reply.bytes, "{\"ok\":true")) end(FAILED, "%s", reply.bytes);
  char *approval = strstr(reply.bytes, ",\"approval\":");
  if (!approval) return 0;
  size_t length = strlen(approval);
  printf("%.*s\n", (int)(length - strlen(",\"approval\":") - 1), approval + strlen(",\"approval\":"));
  if (fflush(stdout) != 0) end(FAILED, "stdout cannot be written: %s", strerror(errno));
  return starts(reply.bytes, "{\"ok\":true,\"decision\":\"Approve\"") ? APPROVED : DENIED;
}
