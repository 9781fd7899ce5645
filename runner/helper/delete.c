#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "beneath.h"
#include "client.h"
#include "frames.h"
#include "write.h"

/* Removes an entry of a folder with all below it; returns false with errno. What has gone meanwhile is removed. */
static bool remove_all(int folder, const char *name) {
  client_alive();
  if (unlinkat(folder, name, 0) == 0 || errno == ENOENT) return true;
  int error = errno;
  struct stat found;
  if (fstatat(folder, name, &found, AT_SYMLINK_NOFOLLOW)) return errno == ENOENT;
  errno = error;
  if (!S_ISDIR(found.st_mode)) return false;
  if ((found.st_mode & 0700) != 0700) fchmodat(folder, name, 0700, 0);
  int own = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  DIR *names = own < 0 ? NULL : fdopendir(own);
  if (!names) return false;
  bool removed = true;
  for (struct dirent *entry; removed && (entry = readdir(names));) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    removed = remove_all(own, entry->d_name);
  }
  error = errno;
  closedir(names);
  errno = error;
  return removed && unlinkat(folder, name, AT_REMOVEDIR) == 0;
}

void delete_entry(struct order *order) {
  struct sending none = {0};
  struct text json = {0};
  const char *name;
  struct stat found;
  int root = open_root(order);
  int folder = open_parent(root, order->path, &name);
  if (folder < 0) refuse_path(order, order->path, errno);
  if (is_system(folder, order->by_path)) refuse_path(order, order->path, EXDEV);
  int fd = openat(folder, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &found)) refuse_path(order, order->path, errno);
  if (S_ISDIR(found.st_mode) && order->offset != 1)
    client_refuse("NotAFile", "path", "%s/%s is a folder; it is deleted with all that is in it only where that is asked for", order->root, order->path);
  describe(&json, name, fd, &found);
  text_say(&json, "}");
  close(fd);
  client_send(READY, json.bytes, json.length);
  place();
  if (!remove_all(folder, order->upload))
    client_refuse("NotWritable", "path", "%s/%s is gone from its place, but what is left of it as %s beside it cannot be removed: %s", order->root, order->path, order->upload,
                  strerror(errno));
  sha256_begin(&none.hash);
  answer_kept(order, &none);
}
