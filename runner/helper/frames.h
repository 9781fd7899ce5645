#ifndef HELPER_FRAMES_H
#define HELPER_FRAMES_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

/*
 * Frames of core/enter/frames.ts: a letter, the payload's length (32 bits, big-endian), the payload.
 */
enum { FRAME_HEADER = 5, MAX_PAYLOAD = 65536, MAX_FRAME = FRAME_HEADER + MAX_PAYLOAD };

#define HELLO 'H'
#define READY 'R'
#define REFUSED 'X'
#define DATA 'D'
#define END 'F'
#define BEAT 'B'
#define ORDER 'G'
#define CONNECT 'C'
#define CONNECTED 'N'
#define BYTES 'P'
#define HALF_CLOSE 'U'
#define CLOSED 'Z'
#define CREDIT 'M'
#define MOVED 'V'
#define ENTRY 'T'
#define PLACE 'Y'

/* Bytes of a connection to a port that may come before credit for more is given, and connections at a time. */
enum { PORT_WINDOW = 262144, MAX_PORT_CONNECTIONS = 128 };

/* Times of the client's connection, milliseconds. */
enum { BEAT_MS = 10000, SILENCE_MS = 30000 };

/* Numbers of frames have 32 bits, big-endian. */
static inline uint32_t number_at(const unsigned char *at) { return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3]; }

static inline void put_number(unsigned char *at, uint32_t number) {
  for (int i = 0; i < 4; i++) at[i] = (unsigned char)(number >> (24 - 8 * i));
}

/* Writes what stands before a payload of this length: FRAME_HEADER bytes. */
static inline void put_header(unsigned char *at, char kind, size_t length) {
  at[0] = (unsigned char)kind;
  put_number(at + 1, (uint32_t)length);
}

static inline int64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

#endif
