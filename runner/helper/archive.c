#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "beneath.h"
#include "files.h"
#include "frames.h"
#include "tar.h"

/* Bytes of the list of problems above which they are only counted: it has to fit into the frame `end`. */
enum { PROBLEM_BYTES = 32768 };

/* An archive that is being sent. */
struct archive {
  struct sending *sending;
  bool by_path;
  struct text out; /* not yet sent */
  struct text path; /* of the present entry, within the folder */
  struct text problems;
  unsigned long problem_count;
};

static void flush(struct archive *archive) {
  send_data(archive->sending, archive->out.bytes, archive->out.length);
  archive->out.length = 0;
}

/* Sends what fills whole frames. */
static void flush_whole(struct archive *archive) {
  struct text *out = &archive->out;
  size_t rest = out->length % DATA_BYTES, whole = out->length - rest;
  if (whole == 0) return;
  send_data(archive->sending, out->bytes, whole);
  memmove(out->bytes, out->bytes + whole, rest);
  out->length = rest;
}

/* Notes an entry that is not in the archive as it was in the folder. */
static void problem(struct archive *archive, const char *reason) {
  archive->problem_count++;
  if (archive->problems.length + archive->path.length * 2 > PROBLEM_BYTES) return;
  text_say(&archive->problems, archive->problems.length ? ",{\"name\":" : "{\"name\":");
  text_json(&archive->problems, archive->path.bytes, archive->path.length);
  text_format(&archive->problems, ",\"reason\":\"%s\"}", reason);
}

static void add_header(struct archive *archive, char type, const char *target, size_t length, const struct stat *found, uint64_t size) {
  tar_header(&archive->out, type, archive->path.bytes, archive->path.length, target, length, found, size);
  flush_whole(archive);
}

/*
 * Adds a file with the size that it has now. One that grows meanwhile is cut there, and one that shrinks is filled with
 * zeros: the header is sent by then.
 */
static void add_file(struct archive *archive, int fd) {
  static char bytes[MAX_PAYLOAD];
  struct stat before, after;
  int own = reopen(fd, false);
  if (own < 0 || fstat(own, &before)) {
    problem(archive, "Unreadable");
    if (own >= 0) close(own);
    return;
  }
  uint64_t size = (uint64_t)before.st_size, at = 0;
  bool ended = false, failed = false;
  add_header(archive, '0', "", 0, &before, size);
  while (at < size) {
    size_t wanted = size - at < MAX_PAYLOAD ? (size_t)(size - at) : MAX_PAYLOAD;
    ssize_t count = ended ? 0 : pread(own, bytes, wanted, (off_t)at);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      failed |= count < 0;
      ended = true;
      memset(bytes, 0, wanted);
      count = (ssize_t)wanted;
    }
    text_add(&archive->out, bytes, (size_t)count);
    flush_whole(archive);
    at += (uint64_t)count;
  }
  static const char zeros[TAR_BLOCK];
  text_add(&archive->out, zeros, tar_padding(size));
  if (failed) problem(archive, "Unreadable");
  else if (ended) problem(archive, "Shrank");
  else if (fstat(own, &after) == 0) {
    if (after.st_size > before.st_size) problem(archive, "Grew");
    else if (after.st_mtim.tv_sec != before.st_mtim.tv_sec || after.st_mtim.tv_nsec != before.st_mtim.tv_nsec) problem(archive, "Rewritten");
  }
  close(own);
}

static void add_link(struct archive *archive, int fd, const struct stat *found) {
  char target[PATH_MAX];
  ssize_t length = readlinkat(fd, "", target, sizeof target);
  if (length > 0) add_header(archive, '2', target, (size_t)length, found, 0);
}

static void add_folder(struct archive *archive, int folder);

/* Adds the entry of the present path, which `fd` is open at with O_PATH. */
static void add_entry(struct archive *archive, int fd) {
  struct stat found;
  if (fstat(fd, &found)) return;
  mode_t mode = found.st_mode;
  if (S_ISREG(mode) || S_ISDIR(mode)) {
    if (is_system(fd, archive->by_path)) problem(archive, "System");
    else if (S_ISREG(mode)) add_file(archive, fd);
    else {
      text_say(&archive->path, "/");
      add_header(archive, '5', "", 0, &found, 0);
      add_folder(archive, fd);
    }
  } else if (S_ISLNK(mode)) add_link(archive, fd, &found);
  else problem(archive, S_ISFIFO(mode) ? "Pipe" : S_ISSOCK(mode) ? "Socket" : "Device");
}

/* Adds what is in a folder; the present path is its own, with '/' at its end, or empty. */
static void add_folder(struct archive *archive, int folder) {
  int own = reopen(folder, true);
  DIR *names = own < 0 ? NULL : fdopendir(own);
  if (!names) {
    if (own >= 0) close(own);
    problem(archive, "Unreadable");
    return;
  }
  size_t length = archive->path.length;
  for (struct dirent *entry; (entry = readdir(names));) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    text_say(&archive->path, entry->d_name);
    int fd = openat(own, entry->d_name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0) {
      add_entry(archive, fd);
      close(fd);
      /* What has gone meanwhile is not told of. */
    } else if (errno != ENOENT) problem(archive, "Unreadable");
    archive->path.length = length;
  }
  closedir(names);
}

void archive(int folder, bool by_path, struct sending *sending, struct text *more) {
  struct archive archive = {.sending = sending, .by_path = by_path};
  static const char end[2 * TAR_BLOCK];
  add_folder(&archive, folder);
  text_add(&archive.out, end, sizeof end);
  flush(&archive);
  if (archive.problem_count == 0) return;
  text_format(more, ",\"problemCount\":%lu,\"problems\":[", archive.problem_count);
  text_add(more, archive.problems.bytes, archive.problems.length);
  text_say(more, "]");
}
