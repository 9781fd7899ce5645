#include "sha256.h"

#include <stdio.h>
#include <string.h>

const uint32_t SHA256_K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
    0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
    0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
    0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
    0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
    0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotated(uint32_t word, int bits) { return word >> bits | word << (32 - bits); }

static void add_block(uint32_t state[8], const unsigned char *at) {
  uint32_t w[64];
  for (int i = 0; i < 16; i++, at += 4) w[i] = (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
  for (int i = 16; i < 64; i++) {
    uint32_t s0 = rotated(w[i - 15], 7) ^ rotated(w[i - 15], 18) ^ w[i - 15] >> 3;
    uint32_t s1 = rotated(w[i - 2], 17) ^ rotated(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4], f = state[5], g = state[6], h = state[7];
  for (int i = 0; i < 64; i++) {
    uint32_t t1 = h + (rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)) + ((e & f) ^ (~e & g)) + SHA256_K[i] + w[i];
    uint32_t t2 = (rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  state[0] += a, state[1] += b, state[2] += c, state[3] += d, state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

void sha256_begin(struct sha256 *hash) {
  static const uint32_t first[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  memcpy(hash->state, first, sizeof first);
  hash->length = 0;
  hash->is_built_in = sha256_is_built_in();
}

static void add_blocks(struct sha256 *hash, const unsigned char *at, size_t count) {
  if (hash->is_built_in) sha256_add_blocks(hash->state, at, count);
  else for (; count > 0; count--, at += 64) add_block(hash->state, at);
}

void sha256_add(struct sha256 *hash, const void *bytes, size_t length) {
  const unsigned char *at = bytes;
  size_t held = hash->length % 64;
  hash->length += length;
  if (held > 0) {
    size_t taken = length < 64 - held ? length : 64 - held;
    memcpy(hash->block + held, at, taken);
    at += taken;
    length -= taken;
    if (held + taken < 64) return;
    add_blocks(hash, hash->block, 1);
  }
  add_blocks(hash, at, length / 64);
  memcpy(hash->block, at + length / 64 * 64, length % 64);
}

void sha256_end(struct sha256 *hash, char hex[65]) {
  static const unsigned char padding[64] = {0x80};
  uint64_t bits = hash->length * 8;
  size_t held = hash->length % 64;
  unsigned char length[8];
  for (int i = 0; i < 8; i++) length[i] = (unsigned char)(bits >> (56 - 8 * i));
  sha256_add(hash, padding, (held < 56 ? 56 : 120) - held);
  sha256_add(hash, length, sizeof length);
  for (int i = 0; i < 8; i++) sprintf(hex + 8 * i, "%08x", hash->state[i]);
}
