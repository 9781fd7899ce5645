#define _GNU_SOURCE
#include "terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

/* Opens the other end without its name, which needs no /dev/pts; by its name where the kernel is no Linux of 4.13 or later. */
static int open_slave(int master) {
  int fd = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (fd >= 0) return fd;
  char name[64];
  int error = ptsname_r(master, name, sizeof name);
  if (error) {
    errno = error;
    return -1;
  }
  return open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
}

int open_terminal(struct terminal *t, unsigned short rows, unsigned short columns) {
  t->slave = -1;
  t->master = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
  if (t->master < 0) return -1;
  if (unlockpt(t->master) || (t->slave = open_slave(t->master)) < 0) {
    int error = errno;
    close(t->master);
    t->master = -1;
    errno = error;
    return -1;
  }
  resize_terminal(t, rows, columns);
  struct termios modes;
  if (tcgetattr(t->slave, &modes) == 0) {
    modes.c_iflag |= IUTF8; /* a backspace takes a character away, not a byte of it */
    tcsetattr(t->slave, TCSANOW, &modes);
  }
  return 0;
}

int take_terminal(int slave) { return ioctl(slave, TIOCSCTTY, 0); }

void resize_terminal(const struct terminal *t, unsigned short rows, unsigned short columns) {
  struct winsize size = {.ws_row = rows, .ws_col = columns};
  if (t->master >= 0) ioctl(t->master, TIOCSWINSZ, &size);
}

int foreground_group(const struct terminal *t) {
  pid_t group;
  if (t->master < 0 || ioctl(t->master, TIOCGPGRP, &group)) return 0;
  return group;
}

size_t end_of_input(int fd, int line_has_begun, char bytes[2]) {
  struct termios modes;
  if (tcgetattr(fd, &modes) || modes.c_cc[VEOF] == _POSIX_VDISABLE) return 0;
  bytes[0] = bytes[1] = (char)modes.c_cc[VEOF];
  return line_has_begun ? 2 : 1;
}

void hang_up(struct terminal *t, struct pump *in, struct pump *out) {
  if (t->master < 0) return;
  close(t->slave);
  pump_read_rest(out);
  pump_discard(in);
  close(t->master);
  t->master = t->slave = -1;
}
