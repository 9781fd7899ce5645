/* The pseudo-terminal of a program that runs on one. The keeper has its master, and passes the bytes on. */
#ifndef TERMINAL_H
#define TERMINAL_H

#include <stddef.h>

#include "pump.h"

struct terminal {
  int master; /* -1: the program has no terminal, or none any more */
  int slave;  /* kept open, so that the terminal lives while no process has it open */
};

/* Opens a terminal of this size, whose master does not block. Returns -1 with the reason in errno. */
int open_terminal(struct terminal *t, unsigned short rows, unsigned short columns);

/* Makes the slave the controlling terminal of this process, which must lead a session without one. Returns -1 with the reason in errno. */
int take_terminal(int slave);

/* Sets the size; the kernel sends SIGWINCH to the foreground group if it is another one. */
void resize_terminal(const struct terminal *t, unsigned short rows, unsigned short columns);

/* Returns the foreground process group; 0 when there is none. */
int foreground_group(const struct terminal *t);

/*
 * Writes what ends the input of a program that reads lines from the terminal `fd`: its end-of-file character, which only passes a line on
 * that has begun, and so is needed twice then. Returns the number of bytes.
 */
size_t end_of_input(int fd, int line_has_begun, char bytes[2]);

/*
 * Takes the terminal away from the processes that still have it, after `out` has read every byte that was written to it before. For the
 * end of the program.
 */
void hang_up(struct terminal *t, struct pump *in, struct pump *out);

#endif
