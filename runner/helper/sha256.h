#ifndef HELPER_SHA256_H
#define HELPER_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* SHA-256 of bytes that come in pieces (FIPS 180-4). */
struct sha256 {
  uint32_t state[8];
  uint64_t length;
  unsigned char block[64];
  /* True where the processor has instructions for it. */
  bool is_built_in;
};

void sha256_begin(struct sha256 *hash);
void sha256_add(struct sha256 *hash, const void *bytes, size_t length);

/* Writes the digest as 64 lower-case hex digits and a NUL. */
void sha256_end(struct sha256 *hash, char hex[65]);

/* Constants of the 64 rounds. */
extern const uint32_t SHA256_K[64];

/* Reports whether sha256_add_blocks works on this processor. */
bool sha256_is_built_in(void);

/* Adds blocks of 64 bytes to the state by the processor's own instructions. */
void sha256_add_blocks(uint32_t state[8], const unsigned char *at, size_t count);

#endif
