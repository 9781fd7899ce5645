#define _GNU_SOURCE
#include "tar.h"

#include <stdio.h>
#include <string.h>

/* Largest values of the fields of 12 octal digits and of the names of a ustar header. */
#define MAX_OCTAL 077777777777ULL
enum { NAME_BYTES = 100, PREFIX_BYTES = 155 };

/* A header of POSIX ustar. */
struct header {
  char name[NAME_BYTES], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, target[NAME_BYTES], magic[8], owner[32], group[32], major[8],
      minor[8], prefix[PREFIX_BYTES], unused[12];
};

size_t tar_padding(uint64_t size) { return (size_t)((TAR_BLOCK - size % TAR_BLOCK) % TAR_BLOCK); }

static void add_zeros(struct text *out, size_t length) {
  static const char zeros[TAR_BLOCK];
  text_add(out, zeros, length);
}

/*
 * Puts the name into the header, in two parts at a '/' where it has to be; returns false where it does not fit.
 */
static bool put_name(struct header *header, const char *name, size_t length) {
  if (length <= NAME_BYTES) {
    memcpy(header->name, name, length);
    return true;
  }
  /* The first part as long as it can be: what is behind the '/' is at most NAME_BYTES then, or nowhere. */
  for (size_t at = length < PREFIX_BYTES + 2 ? length - 2 : PREFIX_BYTES; at > 0; at--) {
    if (name[at] != '/') continue;
    if (length - at - 1 > NAME_BYTES) return false;
    memcpy(header->prefix, name, at);
    memcpy(header->name, name + at + 1, length - at - 1);
    return true;
  }
  return false;
}

static void put_octal(char *field, size_t digits, uint64_t value) {
  for (size_t at = digits; at > 0; at--, value >>= 3) field[at - 1] = (char)('0' + (value & 7));
}

static void add(struct text *out, struct header *header, char type, unsigned mode, uint64_t size, uint64_t mtime) {
  header->type = type;
  put_octal(header->mode, 7, mode & 0777);
  put_octal(header->uid, 7, 0);
  put_octal(header->gid, 7, 0);
  put_octal(header->size, 11, size <= MAX_OCTAL ? size : 0);
  put_octal(header->mtime, 11, mtime <= MAX_OCTAL ? mtime : 0);
  memcpy(header->magic, "ustar\00000", 8);
  memset(header->checksum, ' ', sizeof header->checksum);
  unsigned sum = 0;
  for (size_t i = 0; i < sizeof *header; i++) sum += ((unsigned char *)header)[i];
  put_octal(header->checksum, 6, sum);
  header->checksum[6] = 0;
  text_add(out, header, sizeof *header);
}

/* Adds a record of pax: its own length in digits, a space, the key, "=", the value and a line feed. */
static void add_record(struct text *records, const char *key, const char *value, size_t length) {
  size_t rest = strlen(key) + length + 3, total = rest + 1;
  char digits[24];
  while ((size_t)snprintf(digits, sizeof digits, "%zu", total) + rest != total) total = rest + strlen(digits);
  text_format(records, "%s %s=", digits, key);
  text_add(records, value, length);
  text_say(records, "\n");
}

/* Adds an entry that tells something about the next one. */
static void add_extension(struct text *out, char type, const char *name, const char *bytes, size_t length) {
  struct header header = {0};
  strcpy(header.name, name);
  add(out, &header, type, 0644, length, 0);
  text_add(out, bytes, length);
  add_zeros(out, tar_padding(length));
}

/* GNU's record of a long name has its NUL. */
static void add_long(struct text *out, char type, const char *name, size_t length) {
  struct text bytes = {0};
  text_add(&bytes, name, length);
  text_add(&bytes, "", 1);
  add_extension(out, type, "././@LongLink", bytes.bytes, bytes.length);
  text_free(&bytes);
}

void tar_header(struct text *out, char type, const char *name, size_t name_length, const char *target, size_t target_length, const struct stat *found, uint64_t size) {
  struct header header = {0};
  struct text records = {0};
  if (!put_name(&header, name, name_length)) {
    if (is_utf8(name, name_length)) add_record(&records, "path", name, name_length);
    else add_long(out, 'L', name, name_length);
    memcpy(header.name, name, NAME_BYTES);
  }
  if (target_length > NAME_BYTES) {
    if (is_utf8(target, target_length)) add_record(&records, "linkpath", target, target_length);
    else add_long(out, 'K', target, target_length);
  }
  memcpy(header.target, target, target_length < NAME_BYTES ? target_length : NAME_BYTES);
  if (size > MAX_OCTAL) {
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)size);
    add_record(&records, "size", digits, (size_t)length);
  }
  if (records.length > 0) add_extension(out, 'x', "pax", records.bytes, records.length);
  text_free(&records);
  add(out, &header, type, found->st_mode, size, found->st_mtime > 0 ? (uint64_t)found->st_mtime : 0);
}
