#define _GNU_SOURCE
#include "write.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "beneath.h"
#include "client.h"
#include "frames.h"

/* Time for the runner's rename, which waits for a packing that is under way, milliseconds. */
enum { PLACE_MS = 60000 };
/* Bytes after which what was written goes to the disk: one sync of everything at the end could be longer than the client waits. */
enum { SYNC_BYTES = 32 * 1024 * 1024 };

/* What is being written; it is removed where the process ends before it has its name. */
static struct upload {
  const struct order *order;
  int root;
  char path[2 * PATH_MAX];
  /* Length of the part of the path that was there before. */
  size_t found;
  int folder, fd;
  bool is_named;
} upload = {.root = -1, .folder = -1, .fd = -1};

static unsigned char frame[MAX_FRAME];

/* Reports whether each name of a path below a root is one: neither empty nor "." nor "..". */
static bool is_plain_path(const char *path) {
  for (const char *at = path; *at; at += *at == '/') {
    size_t length = strcspn(at, "/");
    if (length == 0 || (length == 1 && at[0] == '.') || (length == 2 && at[0] == '.' && at[1] == '.')) return false;
    at += length;
    if (*at == '/' && at[1] == 0) return false;
  }
  return path[0] != 0;
}

void refuse_write(const struct order *order, const char *path, int error) {
  if (error == ENOSPC || error == EDQUOT || error == EFBIG)
    client_refuse("NoSpace", "path", "%s/%s: %s; remove something in the session first", order->root, path, strerror(error));
  if (error == EACCES || error == EPERM || error == EROFS)
    client_refuse("NotWritable", "path", "%s/%s cannot be written to: %s", order->root, path, strerror(error));
  if (error == ENOTDIR) client_refuse("NotAFolder", "path", "on the way to %s/%s is a file in place of a folder", order->root, path);
  refuse_path(order, path, error);
}

int open_parent(int root, const char *path, const char **name) {
  char parent[2 * PATH_MAX];
  const char *slash = strrchr(path, '/');
  size_t length = slash ? (size_t)(slash - path) : 0;
  if (length >= sizeof parent) {
    errno = ENAMETOOLONG;
    return -1;
  }
  memcpy(parent, path, length);
  parent[length] = 0;
  *name = slash ? slash + 1 : path;
  return open_beneath(root, parent);
}

__attribute__((noreturn)) static void fail(int error) { refuse_write(upload.order, upload.path, error); }

/* Removes folders that were made for a file that did not come, the deepest first. */
static void remove_folders(void) {
  char path[2 * PATH_MAX];
  strcpy(path, upload.path);
  for (char *slash; (slash = strrchr(path, '/')) && (size_t)(slash - path) > upload.found;) {
    const char *name;
    *slash = 0;
    int folder = open_parent(upload.root, path, &name);
    bool removed = folder >= 0 && unlinkat(folder, name, AT_REMOVEDIR) == 0;
    if (folder >= 0) close(folder);
    if (!removed) return;
  }
}

static void clean_up(void) {
  if (upload.fd < 0) return;
  if (upload.is_named) unlinkat(upload.folder, upload.order->upload, 0);
  remove_folders();
}

static const char *last_name(void) {
  const char *slash = strrchr(upload.path, '/');
  return slash ? slash + 1 : upload.path;
}

/* Opens the deepest folder of the path that is there. */
static int open_deepest(void) {
  char path[2 * PATH_MAX];
  strcpy(path, upload.path);
  for (;;) {
    char *slash = strrchr(path, '/');
    *(slash ? slash : path) = 0;
    int folder = open_beneath(upload.root, path);
    if (folder >= 0 || errno != ENOENT || !slash) {
      upload.found = strlen(path);
      return folder;
    }
  }
}

/* Makes the folders of the path that are missing; returns the last one, opened with O_PATH, or -1 with errno. */
static int make_folders(void) {
  int folder = openat(upload.folder, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  const char *at = upload.path + upload.found;
  for (at += *at == '/'; folder >= 0 && strchr(at, '/'); at = strchr(at, '/') + 1) {
    char name[NAME_MAX + 2];
    snprintf(name, sizeof name, "%.*s", (int)(strchr(at, '/') - at), at);
    if (mkdirat(folder, name, 0777) && errno != EEXIST) {
      int error = errno;
      close(folder);
      errno = error;
      return -1;
    }
    int inner = openat(folder, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    close(folder);
    folder = inner;
  }
  return folder;
}

/* Begins with a place that may be written to: `upload.folder` is where its bytes go until they are whole. */
static void begin(const struct order *order, int root, const char *path) {
  upload.order = order;
  upload.root = root;
  upload.is_named = false;
  upload.fd = -1;
  if (upload.folder >= 0) close(upload.folder);
  upload.folder = -1;
  snprintf(upload.path, sizeof upload.path, "%s", path);
  if (strlen(last_name()) > NAME_MAX) fail(ENAMETOOLONG);
  upload.folder = open_deepest();
  if (upload.folder < 0) fail(errno);
  struct stat found;
  if (fstat(upload.folder, &found) || !S_ISDIR(found.st_mode)) fail(ENOTDIR);
  if (is_system(upload.folder, order->by_path)) fail(EXDEV);
  bool is_there = upload.found + strlen(last_name()) + (upload.found > 0) == strlen(path);
  if (is_there && fstatat(upload.folder, last_name(), &found, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(found.st_mode))
    client_refuse("NotAFile", "path", "%s/%s is a folder; name the file in it", order->root, path);
}

/* Opens a file without a name, or with the upload's where the file system has no others. */
static void open_upload(void) {
  upload.fd = openat(upload.folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  if (upload.fd >= 0) return;
  if (errno == ENOSPC || errno == EDQUOT || errno == EACCES || errno == EROFS) fail(errno);
  upload.fd = openat(upload.folder, upload.order->upload, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY | O_CLOEXEC, 0600);
  if (upload.fd < 0) fail(errno);
  upload.is_named = true;
}

static void write_bytes(const unsigned char *bytes, size_t length) {
  while (length > 0) {
    ssize_t count = write(upload.fd, bytes, length);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(errno);
    bytes += count;
    length -= (size_t)count;
  }
}

void place(void) {
  runner_tell(PLACE, "", 0);
  size_t length = runner_answer(frame, PLACE_MS);
  if (length == 0) client_refuse("NotReady", NULL, "the session's runner gave no answer");
  if (frame[0] != READY) client_pass_on(frame, length);
}

/* Puts the upload's name beside the place, and has the runner rename it. */
static void name_and_place(void) {
  int folder = make_folders();
  if (folder < 0) fail(errno);
  char own[40];
  snprintf(own, sizeof own, "/proc/self/fd/%d", upload.fd);
  int failed = upload.is_named ? renameat(upload.folder, upload.order->upload, folder, upload.order->upload)
                               : linkat(AT_FDCWD, own, folder, upload.order->upload, AT_SYMLINK_FOLLOW);
  if (failed) fail(errno);
  close(upload.folder);
  upload.folder = folder;
  upload.is_named = true;
  place();
  close(upload.fd);
  upload.fd = -1;
}

static void set_facts(int64_t mode, const char *modified) {
  long long ms = strtoll(modified, NULL, 10);
  struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}};
  if (*modified && ms >= 0) futimens(upload.fd, times);
  if (fchmod(upload.fd, mode < 0 ? 0644 : (mode_t)mode & 0777) || fsync(upload.fd)) fail(errno);
}

void answer_kept(const struct order *order, struct sending *sent) {
  struct text more = {0};
  text_format(&more, ",\"kept\":\"%s\"", order->kept);
  send_end(sent, &more);
  _exit(0);
}

/* Counts a frame `data`. */
static void take(struct sending *sent, const unsigned char *bytes, size_t length) {
  uint64_t before = sent->bytes / SYNC_BYTES;
  write_bytes(bytes, length);
  sha256_add(&sent->hash, bytes, length);
  sent->bytes += length;
  if (sent->bytes / SYNC_BYTES > before && fdatasync(upload.fd)) fail(errno);
}

static void check_digest(const struct order *order, struct sha256 hash, const char *wanted, size_t length) {
  char digest[65];
  sha256_end(&hash, digest);
  if (length > 0 && (length != 64 || memcmp(digest, wanted, 64) != 0))
    client_refuse("ContentMismatch", "sha256", "the bytes that came for %s/%s have the SHA-256 %s, not the one that was told", order->root, order->path, digest);
}

void write_file(struct order *order) {
  struct sending sent = {0};
  int root = open_root(order);
  sha256_begin(&sent.hash);
  client_sends(clean_up);
  begin(order, root, order->path);
  open_upload();
  client_send(READY, "{}", 2);
  size_t length;
  while ((length = client_receive(frame)), frame[0] == DATA) {
    size_t bytes = length - FRAME_HEADER;
    if (order->length >= 0 && sent.bytes + bytes > (uint64_t)order->length)
      client_refuse("ContentMismatch", "length", "more than the %lld bytes came that were told for %s/%s", (long long)order->length, order->root, order->path);
    take(&sent, frame + FRAME_HEADER, bytes);
  }
  if (frame[0] != END) client_refuse("Invalid", NULL, "a frame came that is not of a file");
  if (order->length >= 0 && sent.bytes != (uint64_t)order->length)
    client_refuse("ContentMismatch", "length", "%llu of %lld bytes came for %s/%s", (unsigned long long)sent.bytes, (long long)order->length, order->root, order->path);
  check_digest(order, sent.hash, (char *)frame + FRAME_HEADER, length - FRAME_HEADER);
  check_digest(order, sent.hash, order->sha256, strlen(order->sha256));
  set_facts(order->offset, order->modified);
  name_and_place();
  answer_kept(order, &sent);
}

/* An entry of a folder, taken apart. */
struct entry {
  const char *type, *path, *modified, *rest;
  int64_t mode;
};

static bool parse_entry(unsigned char *bytes, size_t length, struct entry *entry) {
  const char *fields[5];
  if (split_fields((const char *)bytes, length, fields, 5) < 5) return false;
  *entry = (struct entry){fields[0], fields[1], fields[3], fields[4], strtoll(fields[2], NULL, 10)};
  return is_plain_path(entry->path);
}

static void take_content(const struct order *order, struct sending *sent, uint64_t length) {
  static unsigned char bytes[MAX_FRAME];
  for (uint64_t at = 0; at < length;) {
    size_t count = client_receive(bytes) - FRAME_HEADER;
    if (bytes[0] != DATA || count > length - at)
      client_refuse("ContentMismatch", "length", "%s/%s: not the %llu bytes came that were told", order->root, upload.path, (unsigned long long)length);
    take(sent, bytes + FRAME_HEADER, count);
    at += count;
  }
}

static void make_folder(int64_t mode) {
  int folder = make_folders();
  if (folder < 0) fail(errno);
  struct stat found;
  if (mkdirat(folder, last_name(), 0700 | (mode < 0 ? 0755 : (mode_t)mode & 0777))) {
    if (errno != EEXIST) fail(errno);
    if (fstatat(folder, last_name(), &found, 0) || !S_ISDIR(found.st_mode))
      client_refuse("NotAFolder", "path", "%s/%s is no folder there", upload.order->root, upload.path);
  }
  close(folder);
}

static void make_link(const char *target) {
  int folder = make_folders();
  if (folder < 0) fail(errno);
  if (symlinkat(target, folder, upload.order->upload)) fail(errno);
  close(upload.folder);
  upload.folder = folder;
  upload.fd = folder;
  upload.is_named = true;
  place();
  upload.fd = -1;
}

static void fill_one(const struct order *order, int root, struct entry *entry, struct sending *sent) {
  char path[2 * PATH_MAX];
  int length = snprintf(path, sizeof path, "%s%s%s", order->path, order->path[0] ? "/" : "", entry->path);
  if (length >= PATH_MAX) refuse_path(order, path, ENAMETOOLONG);
  runner_tell(ENTRY, path, (size_t)length);
  bool is_folder = strcmp(entry->type, "folder") == 0;
  /* A folder that is there already is no obstacle to a folder. */
  int found = is_folder ? open_beneath(root, path) : -1;
  struct stat there;
  if (found >= 0) {
    bool is_one = fstat(found, &there) == 0 && S_ISDIR(there.st_mode);
    close(found);
    if (is_one) return;
  }
  begin(order, root, path);
  if (is_folder) make_folder(entry->mode);
  else if (strcmp(entry->type, "link") == 0) make_link(entry->rest);
  else {
    /* The strings of the entry lie in the frame that the next answer overwrites. */
    char modified[24];
    snprintf(modified, sizeof modified, "%s", entry->modified);
    int64_t mode = entry->mode;
    uint64_t bytes = strtoull(entry->rest, NULL, 10);
    open_upload();
    take_content(order, sent, bytes);
    set_facts(mode, modified);
    name_and_place();
  }
}

void fill_folder(struct order *order) {
  struct sending sent = {0};
  struct stat found;
  int root = open_root(order);
  int there = open_beneath(root, order->path);
  if (there < 0 && errno != ENOENT) refuse_write(order, order->path, errno);
  if (there >= 0 && (fstat(there, &found) || !S_ISDIR(found.st_mode))) client_refuse("NotAFolder", "path", "%s/%s is no folder", order->root, order->path);
  if (there >= 0) close(there);
  sha256_begin(&sent.hash);
  client_sends(clean_up);
  client_send(READY, "{}", 2);
  size_t length;
  while ((length = client_receive(frame)), frame[0] == ENTRY) {
    struct entry entry;
    if (!parse_entry(frame + FRAME_HEADER, length - FRAME_HEADER, &entry)) client_refuse("OutsideRoot", "path", "an entry came whose path is none below the folder");
    fill_one(order, root, &entry, &sent);
  }
  if (frame[0] != END) client_refuse("Invalid", NULL, "a frame came that is not of a folder");
  answer_kept(order, &sent);
}
