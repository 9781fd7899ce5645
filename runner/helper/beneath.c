#define _GNU_SOURCE
#include "beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#ifndef MQUEUE_MAGIC
#define MQUEUE_MAGIC 0x19800202 /* ipc/mqueue.c */
#endif

/* Attempts where a rename elsewhere keeps the kernel from knowing that ".." stays below (EAGAIN of openat2). */
enum { ATTEMPTS = 64 };
/* Limits of the walk: links in one path, as the kernel's; folders in one path. */
enum { MAX_LINKS = 40, MAX_DEPTH = 512 };

/* Folders from the root down to the present one, and the rest of the path. */
struct walk {
  int folders[MAX_DEPTH];
  int depth;
  char rest[2 * PATH_MAX];
};

static void leave(struct walk *walk, int depth) {
  for (; walk->depth > depth; walk->depth--) close(walk->folders[walk->depth]);
}

/* Puts the target of a link before the rest of the path; returns false with errno. */
static bool follow(struct walk *walk, int link) {
  char target[PATH_MAX];
  size_t rest = strlen(walk->rest);
  ssize_t count = readlinkat(link, "", target, sizeof target);
  if (count < 0) return false;
  size_t length = (size_t)count;
  if (length == 0 || length == sizeof target || length + rest >= sizeof walk->rest) {
    errno = ENAMETOOLONG;
    return false;
  }
  if (target[0] == '/') {
    errno = EXDEV;
    return false;
  }
  /* The rest is empty or begins with '/'. */
  memmove(walk->rest + length, walk->rest, rest + 1);
  memcpy(walk->rest, target, length);
  return true;
}

/* Takes the first name off the rest of the path; returns false at its end. */
static bool next_name(struct walk *walk, char name[NAME_MAX + 2]) {
  const char *at = walk->rest + strspn(walk->rest, "/");
  size_t length = strcspn(at, "/");
  size_t kept = length > NAME_MAX ? NAME_MAX + 1 : length;
  memcpy(name, at, kept);
  name[kept] = 0;
  memmove(walk->rest, at + length, strlen(at + length) + 1);
  return length > 0;
}

/* The walk for kernels and sandboxes without openat2: one name at a time, no link followed by the kernel. */
static int walk_beneath(int root, const char *path) {
  struct walk walk = {.folders = {root}};
  char name[NAME_MAX + 2];
  int links = 0, at = -1;
  if (path[0] == '/' || strlen(path) >= PATH_MAX) {
    errno = path[0] == '/' ? EXDEV : ENAMETOOLONG;
    return -1;
  }
  strcpy(walk.rest, path);
  while (next_name(&walk, name)) {
    if (strcmp(name, ".") == 0) continue;
    if (strcmp(name, "..") == 0) {
      if (walk.depth == 0) {
        errno = EXDEV;
        goto failed;
      }
      leave(&walk, walk.depth - 1);
      continue;
    }
    struct stat found;
    int fd = openat(walk.folders[walk.depth], name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) goto failed;
    if (fstat(fd, &found) == 0 && S_ISLNK(found.st_mode)) {
      bool followed = ++links <= MAX_LINKS;
      if (!followed) errno = ELOOP;
      followed = followed && follow(&walk, fd);
      close(fd);
      if (!followed) goto failed;
      continue;
    }
    if (S_ISDIR(found.st_mode)) {
      if (walk.depth + 1 == MAX_DEPTH) {
        close(fd);
        errno = ENAMETOOLONG;
        goto failed;
      }
      walk.folders[++walk.depth] = fd;
      continue;
    }
    /* A file ends the path; what follows it can only be an error. */
    if (walk.rest[0] != 0) {
      close(fd);
      errno = ENOTDIR;
      goto failed;
    }
    at = fd;
    break;
  }
  if (at < 0) at = walk.depth > 0 ? fcntl(walk.folders[walk.depth], F_DUPFD_CLOEXEC, 0) : openat(root, ".", O_PATH | O_CLOEXEC);
  leave(&walk, 0);
  return at;
failed:;
  int error = errno;
  leave(&walk, 0);
  errno = error;
  return -1;
}

int open_beneath(int root, const char *path) {
  if (path[0] == 0) path = ".";
#ifndef WITHOUT_OPENAT2
  struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
  for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
    int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof how);
    /* A sandbox's filter that does not know the call answers with EPERM. Where a right is missing, the walk fails with EPERM again. */
    if (fd < 0 && (errno == ENOSYS || errno == EPERM)) break;
    if (fd >= 0 || errno != EAGAIN) return fd;
  }
#endif
  return walk_beneath(root, path);
}

int reopen(int fd, bool is_folder) {
  if (is_folder) return openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  char own[40];
  snprintf(own, sizeof own, "/proc/self/fd/%d", fd);
  return open(own, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

static bool is_within(const char *path, const char *folder) {
  size_t length = strlen(folder);
  return strncmp(path, folder, length) == 0 && (path[length] == 0 || path[length] == '/');
}

bool is_system(int fd, bool by_path) {
  static const unsigned long kinds[] = {PROC_SUPER_MAGIC, SYSFS_MAGIC,     CGROUP_SUPER_MAGIC,  CGROUP2_SUPER_MAGIC, DEVPTS_SUPER_MAGIC, DEBUGFS_MAGIC,
                                        TRACEFS_MAGIC,    SECURITYFS_MAGIC, BPF_FS_MAGIC,       SELINUX_MAGIC,       MQUEUE_MAGIC};
  struct statfs system;
  if (fstatfs(fd, &system)) return true;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if ((unsigned long)system.f_type == kinds[i]) return true;
  if (!by_path) return false;
  char own[40], path[PATH_MAX];
  snprintf(own, sizeof own, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(own, path, sizeof path - 1);
  /* A path that is too long to be told is none of these. */
  if (length < 0) return errno != ENAMETOOLONG;
  path[length] = 0;
  return is_within(path, "/proc") || is_within(path, "/sys") || is_within(path, "/dev");
}
