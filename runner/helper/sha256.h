#ifndef HELPER_SHA256_H
#define HELPER_SHA256_H

#include <stddef.h>
#include <stdint.h>

/* SHA-256 of bytes that come in pieces (FIPS 180-4). */
struct sha256 {
  uint32_t state[8];
  uint64_t length;
  unsigned char block[64];
};

void sha256_begin(struct sha256 *hash);
void sha256_add(struct sha256 *hash, const void *bytes, size_t length);

/* Writes the digest as 64 lower-case hex digits and a NUL. */
void sha256_end(struct sha256 *hash, char hex[65]);

#endif
