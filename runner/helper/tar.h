#ifndef HELPER_TAR_H
#define HELPER_TAR_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "text.h"

/* Blocks of a tar archive (POSIX.1-2017, pax). */
enum { TAR_BLOCK = 512 };

/*
 * Adds the header of an entry to `out`: ustar, with pax records before it where a name, a target or a size does not fit.
 * `type` is '0' (file), '2' (link) or '5' (folder); a folder's name ends with '/'. Names are bytes; a long one that is not
 * UTF-8, which pax has no place for, gets GNU's record.
 */
void tar_header(struct text *out, char type, const char *name, size_t name_length, const char *target, size_t target_length, const struct stat *found, uint64_t size);

/* Returns the zeros that follow a content of `size` bytes. */
size_t tar_padding(uint64_t size);

#endif
