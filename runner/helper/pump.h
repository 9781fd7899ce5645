#ifndef HELPER_PUMP_H
#define HELPER_PUMP_H

#include <stddef.h>

/*
 * Copies from fd 0 to the runner and from the runner to fd 1, beginning with `first` to fd 1, until either side is
 * over. A side that is behind holds the other: nothing is kept but one buffer for each direction.
 */
void pump(int runner, const unsigned char *first, size_t length);

#endif
