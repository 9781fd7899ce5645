/* Holds the family still while the runner reads the files that it writes. */
#ifndef HOLD_H
#define HOLD_H

#include "family.h"

/*
 * Stops every descendant and waits until each of their threads stands, HOLD_MS at most. A process is stopped once its parent stands: so
 * no parent sees its child stop, and none is stopped in a vfork, where the parent could not stand before its child runs on. Returns the
 * number of processes that still run, in `moving`, an array that is valid until the next call.
 */
size_t hold_family(struct member **moving);

/* Continues what hold_family stopped, children first. What stood before stays so. */
void release_family(void);

/* Makes release_family continue every process, also what stood before. Returns 1 while the family is held. */
int continue_all_at_release(void);

#endif
