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

/* Sends a heartbeat where one is due: for what takes long without a frame. */
void client_alive(void);

/*
 * Notes that the client sends more than heartbeats: none of its frames is skipped from now on. `clean_up` is called before the process ends by
 * a call of this file.
 */
void client_sends(void (*clean_up)(void));

/* Waits for a frame of a client that sends, heartbeats excepted, and returns its length. */
size_t client_receive(unsigned char *frame);

/* Passes a frame of the runner on to the client, and ends the process. */
__attribute__((noreturn)) void client_pass_on(const unsigned char *frame, size_t length);

/* Sends a frame to the runner. */
void runner_tell(char kind, const void *bytes, size_t length);

/* Waits for the runner's answer at most `ms`; returns its length, 0 where none came. The client gets heartbeats meanwhile. */
size_t runner_answer(unsigned char *frame, int ms);

/* Sends a refusal and ends the process. */
__attribute__((noreturn, format(printf, 3, 4))) void client_refuse(const char *code, const char *field, const char *format, ...);

/* Reads exactly one frame of a descriptor into `frame`, before `ms` are over; returns its length, 0 where none came. */
size_t read_frame(int fd, unsigned char *frame, int ms);

#endif
