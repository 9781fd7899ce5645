#ifndef HELPER_FRAMES_H
#define HELPER_FRAMES_H

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

#endif
