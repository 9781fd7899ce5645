/* Preloaded into an agent's programs: their time is always the first of January 1971. */
#include <sys/time.h>
#include <time.h>

enum { THEN = 365 * 24 * 3600 };

time_t time(time_t *now) {
  if (now) *now = THEN;
  return THEN;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  (void)clock;
  *now = (struct timespec){.tv_sec = THEN};
  return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  (void)zone;
  *now = (struct timeval){.tv_sec = THEN};
  return 0;
}
