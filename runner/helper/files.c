#define _GNU_SOURCE
#include "files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "beneath.h"
#include "client.h"
#include "frames.h"
#include "write.h"

void send_data(struct sending *sending, const void *bytes, size_t length) {
  const char *at = bytes;
  while (length > 0) {
    size_t piece = length < DATA_BYTES ? length : DATA_BYTES;
    sha256_add(&sending->hash, at, piece);
    sending->bytes += piece;
    client_send(DATA, at, piece);
    at += piece;
    length -= piece;
  }
}

void send_end(struct sending *sending, const struct text *more) {
  char digest[65];
  struct text json = {0};
  sha256_end(&sending->hash, digest);
  text_format(&json, "{\"bytes\":%llu,\"sha256\":\"%s\"", (unsigned long long)sending->bytes, digest);
  text_add(&json, more->bytes, more->length);
  text_say(&json, "}");
  client_send(END, json.bytes, json.length);
}

static const char *type_of(mode_t mode) {
  return S_ISREG(mode) ? "file" : S_ISDIR(mode) ? "folder" : S_ISLNK(mode) ? "link" : "other";
}

void describe(struct text *out, const char *name, int fd, const struct stat *found) {
  size_t length = strlen(name);
  text_say(out, "{\"name\":");
  text_json(out, name, length);
  if (!is_utf8(name, length)) {
    text_say(out, ",\"nameBytes\":\"");
    text_base64(out, name, length);
    text_say(out, "\"");
  }
  struct tm when;
  char seconds[40] = "1970-01-01T00:00:00";
  if (gmtime_r(&found->st_mtim.tv_sec, &when)) strftime(seconds, sizeof seconds, "%Y-%m-%dT%H:%M:%S", &when);
  text_format(out, ",\"type\":\"%s\",\"bytes\":%lld,\"mode\":\"%04o\",\"modified\":\"%s.%03ldZ\"", type_of(found->st_mode),
              S_ISREG(found->st_mode) ? (long long)found->st_size : 0, (unsigned)(found->st_mode & 07777), seconds, found->st_mtim.tv_nsec / 1000000);
  if (S_ISLNK(found->st_mode)) {
    char target[PATH_MAX];
    ssize_t count = readlinkat(fd, "", target, sizeof target);
    if (count > 0) {
      text_say(out, ",\"target\":");
      text_json(out, target, (size_t)count);
    }
  }
}

/* Takes the fields of an order apart. Those after the first six may be missing; returns false where another one is. */
static bool parse(const char *bytes, size_t length, struct order *order) {
  enum { NEEDED = 6, ALL = 10 };
  const char *fields[ALL];
  if (split_fields(bytes, length, fields, ALL) < NEEDED) return false;
  *order = (struct order){.operation = fields[0], .root = fields[1], .folder = fields[2], .path = fields[3]};
  order->upload = fields[6];
  order->kept = fields[7];
  order->modified = fields[8];
  order->sha256 = fields[9];
  order->offset = strtoll(fields[4], NULL, 10);
  order->length = strtoll(fields[5], NULL, 10);
  return true;
}

void refuse_path(const struct order *order, const char *path, int error) {
  const char *slash = path[0] ? "/" : "";
  if (error == ENOENT || error == ENOTDIR) client_refuse("FileNotFound", "path", "there is no %s%s%s", order->root, slash, path);
  if (error == EXDEV) {
    client_refuse("OutsideRoot", "path", "%s%s%s leads out of %s; links that are absolute are not followed", order->root, slash, path, order->root);
  }
  if (error == ENAMETOOLONG) client_refuse("Invalid", "path", "%s%s%s is longer than the file system takes, or a name in it is", order->root, slash, path);
  client_refuse("FileFailed", "path", "%s%s%s cannot be opened: %s", order->root, slash, path, strerror(error));
}

int open_root(struct order *order) {
  int root = open(order->folder, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (root < 0 && errno == ENOENT) client_refuse("FileNotFound", "root", "the session has no %s yet", order->root);
  if (root < 0) client_refuse("FileFailed", "root", "%s cannot be opened: %s", order->root, strerror(errno));
  order->by_path = !is_system(root, true);
  return root;
}

/* Opens the path of the order with O_PATH and looks at it. */
static int find(struct order *order, struct stat *found) {
  int root = open_root(order);
  int fd = open_beneath(root, order->path);
  if (fd < 0 || fstat(fd, found)) refuse_path(order, order->path, errno);
  if (is_system(fd, order->by_path)) refuse_path(order, order->path, EXDEV);
  return fd;
}

/* Answers `ready` with the description of what was found, under its own name. */
static void say_ready(const struct order *order, int fd, const struct stat *found) {
  struct text json = {0};
  const char *last = order->path + strlen(order->path);
  char name[NAME_MAX + 1];
  while (last > order->path && last[-1] == '/') last--;
  const char *first = last;
  while (first > order->path && first[-1] != '/') first--;
  snprintf(name, sizeof name, "%.*s", (int)(last - first), first);
  describe(&json, first < last ? name : order->root, fd, found);
  /* The time of the last change of the inode counts, which nobody can set back. */
  text_format(&json, ",\"version\":\"%llx-%llx-%llx.%lx\"}", (unsigned long long)found->st_ino, (unsigned long long)found->st_size,
              (unsigned long long)found->st_ctim.tv_sec, (unsigned long)found->st_ctim.tv_nsec);
  client_send(READY, json.bytes, json.length);
}

static void list(const struct order *order, int fd, struct sending *sending) {
  int own = reopen(fd, true);
  DIR *folder = own < 0 ? NULL : fdopendir(own);
  if (!folder) refuse_path(order, order->path, errno);
  struct text rows = {0};
  for (struct dirent *entry; (entry = readdir(folder));) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    struct stat found;
    int child = openat(own, entry->d_name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    /* What has gone meanwhile is not told of. */
    if (child < 0) continue;
    if (fstat(child, &found) == 0) {
      describe(&rows, entry->d_name, child, &found);
      text_say(&rows, "}\n");
    }
    close(child);
    if (rows.length < MAX_PAYLOAD / 2) continue;
    send_data(sending, rows.bytes, rows.length);
    rows.length = 0;
  }
  send_data(sending, rows.bytes, rows.length);
}

static void read_file(const struct order *order, int fd, const struct stat *found, struct sending *sending, struct text *more) {
  static char bytes[DATA_BYTES];
  int64_t size = found->st_size, offset = order->offset < size ? order->offset : size;
  int64_t left = order->length < 0 || order->length > size - offset ? size - offset : order->length;
  const char *name = order->path;
  int own = reopen(fd, false);
  if (own < 0) refuse_path(order, order->path, errno);
  posix_fadvise(own, offset, left, POSIX_FADV_SEQUENTIAL);
  while (left > 0) {
    ssize_t count = pread(own, bytes, left < DATA_BYTES ? (size_t)left : DATA_BYTES, offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) client_refuse("FileFailed", "path", "%s cannot be read: %s", name, strerror(errno));
    if (count == 0) client_refuse("FileChanged", NULL, "%s shrank from %lld to %lld bytes while it was read", name, (long long)size, (long long)offset);
    send_data(sending, bytes, (size_t)count);
    offset += count;
    left -= count;
  }
  struct stat now;
  if (fstat(own, &now)) return;
  if (now.st_size > size) text_say(more, ",\"changed\":\"Grew\"");
  else if (now.st_size < size || now.st_mtim.tv_sec != found->st_mtim.tv_sec || now.st_mtim.tv_nsec != found->st_mtim.tv_nsec)
    text_say(more, ",\"changed\":\"Rewritten\"");
}

void carry_out(const char *bytes, size_t length) {
  struct order order;
  struct sending sending = {0};
  struct stat found;
  struct text more = {0};
  if (!parse(bytes, length, &order)) client_refuse("FileFailed", NULL, "the runner's order cannot be read");
  if (strcmp(order.operation, "write") == 0) write_file(&order);
  if (strcmp(order.operation, "fill") == 0) fill_folder(&order);
  if (strcmp(order.operation, "delete") == 0) delete_entry(&order);
  bool reads = strcmp(order.operation, "read") == 0, archives = strcmp(order.operation, "archive") == 0;
  bool lists = strcmp(order.operation, "list") == 0;
  int fd = find(&order, &found);
  if (reads && !S_ISREG(found.st_mode)) {
    const char *what = S_ISDIR(found.st_mode) ? "is a folder" : "is neither a file nor a folder";
    client_refuse("NotAFile", "path", "%s/%s %s", order.root, order.path, what);
  }
  if ((archives || lists) && !S_ISDIR(found.st_mode)) client_refuse("NotAFolder", "path", "%s/%s is no folder", order.root, order.path);
  sha256_begin(&sending.hash);
  say_ready(&order, fd, &found);
  if (lists) list(&order, fd, &sending);
  if (reads) read_file(&order, fd, &found, &sending, &more);
  if (archives) archive(fd, order.by_path, &sending, &more);
  send_end(&sending, &more);
  _exit(0);
}
