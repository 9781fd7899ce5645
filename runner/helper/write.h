#ifndef HELPER_WRITE_H
#define HELPER_WRITE_H

#include "files.h"

/*
 * Writes the file that the client sends after `ready`, in frames `data` up to an `end`, whose payload is the SHA-256 in hex or
 * nothing. It lies beside its place without a name, or under the upload's, until the runner renames it. Answers `end` and ends the process.
 */
__attribute__((noreturn)) void write_file(struct order *order);

/*
 * Fills a folder. Each `entry` of the client has NUL-ended fields: file, folder or link; its path below the folder; permissions in decimal; time
 * in ms or nothing; its length, or a link's target. A file's bytes follow in frames `data`. Every file gets its name when it is whole.
 */
__attribute__((noreturn)) void fill_folder(struct order *order);

/* Deletes a file, a link or a folder: the runner renames it to the upload's name, and the helper removes that. */
__attribute__((noreturn)) void delete_entry(struct order *order);

/* Splits a path: opens the folder that has its last name, with O_PATH, and sets the name. Returns -1 with errno. */
int open_parent(int root, const char *path, const char **name);

/* Has the runner rename what is under the upload's name or at the place; passes its refusal on. */
void place(void);

/* Refuses a path that cannot be written to, by the error of a call. */
__attribute__((noreturn)) void refuse_write(const struct order *order, const char *path, int error);

/* Answers `end` with what becomes of the place, and ends the process. */
__attribute__((noreturn)) void answer_kept(const struct order *order, struct sending *sent);

#endif
