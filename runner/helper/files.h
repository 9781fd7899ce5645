#ifndef HELPER_FILES_H
#define HELPER_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "frames.h"
#include "sha256.h"
#include "text.h"

/* An order, taken apart. */
struct order {
  const char *operation, *root, *folder, *path;
  /* offset: for a write the permissions, or -1; for a delete 1 where folders go with what is in them. */
  int64_t offset, length;
  /* For what is written or deleted: the name beside its place, what becomes of the place, time in ms or "", SHA-256 or "". */
  const char *upload, *kept, *modified, *sha256;
  /* False where the root lies in /dev or the like itself. */
  bool by_path;
};

/* Opens the root of the order with O_PATH, and sees whether it lies in /dev or the like; refuses where it cannot. */
int open_root(struct order *order);

/* Refuses a path below the root by the error of a call. */
__attribute__((noreturn)) void refuse_path(const struct order *order, const char *path, int error);

/*
 * Carries out the runner's order, which is NUL-ended fields: stat, list, read, archive, write, fill or delete; the root's name; its absolute path; the path
 * below it; and what struct order has further. Answers the client, and ends the process.
 */
__attribute__((noreturn)) void carry_out(const char *order, size_t length);

/* What goes to the client in frames `data`, with its length and digest. */
struct sending {
  struct sha256 hash;
  uint64_t bytes;
};

/* Bytes of a frame of data, which with its header is as long as what is read from a pipe at once: such a frame comes in one piece. */
enum { DATA_BYTES = 65536 - FRAME_HEADER };

void send_data(struct sending *sending, const void *bytes, size_t length);

/* Sends the frame `end`; `more`: further members of its JSON, each with a comma before it. */
void send_end(struct sending *sending, const struct text *more);

/*
 * Adds the JSON object of an entry without its last brace: name, type, bytes, mode, modified, for a link its target. `fd` has O_PATH.
 */
void describe(struct text *out, const char *name, int fd, const struct stat *found);

/* Sends the archive of an open folder. `by_path`: as is_system takes it. */
void archive(int folder, bool by_path, struct sending *sending, struct text *more);

#endif
