#ifndef HELPER_CLIENT_H
#define HELPER_CLIENT_H

#include <stddef.h>

#include "text.h"

/*
 * The client of this helper, where the helper itself answers it: frames to fd 1, heartbeats both ways. Each call ends the
 * process where the client or the runner is gone, or the client has been silent for SILENCE_MS.
 */

/* Sets the socket whose end is that of the session's runner; -1: none yet. */
void client_watch(int runner);

/* Sends a frame once there is room for it, with at most MAX_PAYLOAD bytes. */
void client_send(char kind, const void *bytes, size_t length);

/* Sends a refusal and ends the process. */
__attribute__((noreturn, format(printf, 3, 4))) void client_refuse(const char *code, const char *field, const char *format, ...);

/* Reads exactly one frame of a descriptor into `frame`, before `ms` are over; returns its length, 0 where none came. */
size_t read_frame(int fd, unsigned char *frame, int ms);

#endif
