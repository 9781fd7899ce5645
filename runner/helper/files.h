#ifndef HELPER_FILES_H
#define HELPER_FILES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "sha256.h"
#include "text.h"

/*
 * Carries out the runner's order, which is NUL-ended fields: stat, list, read or archive; the root's name; its absolute path; the path
 * below it; for read the offset, and the length or -1. Answers the client, and ends the process.
 */
__attribute__((noreturn)) void carry_out(const char *order, size_t length);

/* What goes to the client in frames `data`, with its length and digest. */
struct sending {
  struct sha256 hash;
  uint64_t bytes;
};

void send_data(struct sending *sending, const void *bytes, size_t length);

/* Sends the frame `end`; `more`: further members of its JSON, each with a comma before it. */
void send_end(struct sending *sending, const struct text *more);

/*
 * Adds the JSON object of an entry: name, type, bytes, mode, modified, for a link its target. `fd` has O_PATH.
 */
void describe(struct text *out, const char *name, int fd, const struct stat *found);

/* Sends the archive of an open folder. `by_path`: as is_system takes it. */
void archive(int folder, bool by_path, struct sending *sending, struct text *more);

#endif
