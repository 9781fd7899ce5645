#ifndef HELPER_BENEATH_H
#define HELPER_BENEATH_H

#include <stdbool.h>

/*
 * Opens a path below the folder `root` with O_PATH; links on the way and at its end are followed as long as they stay below the
 * folder. Returns -1 with errno; EXDEV: it leads out of the folder, or is an absolute link.
 */
int open_beneath(int root, const char *path);

/* Opens a file or a folder, known by a descriptor with O_PATH, to be read. Returns -1 with errno. */
int reopen(int fd, bool is_folder);

/*
 * Reports whether an open file or folder lies in a file system of the kernel's, such as proc. `by_path`: also whether it lies in
 * /proc, /sys or /dev, whatever is there.
 */
bool is_system(int fd, bool by_path);

#endif
