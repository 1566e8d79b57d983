/* Preloaded into a process, shifts its wall clock by the nanoseconds in the file that SHIFTED_CLOCK names, at any time.
   The monotonic clock is left alone, as it is on a host whose clock somebody sets. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *offset;

/* Called once more by a process that was forked, and has an environment of its own since. */
__attribute__((constructor)) void follow_clock(void) {
  const char *path = getenv("SHIFTED_CLOCK");
  int file = path ? open(path, O_RDONLY) : -1;
  if (file < 0) return;
  void *found = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
  if (found != MAP_FAILED) offset = found;
  close(file);
}

int clock_gettime(clockid_t which, struct timespec *now) {
  int failed = (int)syscall(SYS_clock_gettime, which, now);
  if (!failed && offset && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE)) {
    int64_t shifted = (int64_t)now->tv_sec * 1000000000 + now->tv_nsec + *offset;
    now->tv_sec = shifted / 1000000000;
    now->tv_nsec = shifted % 1000000000;
  }
  return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  (void)zone;
  struct timespec found;
  if (clock_gettime(CLOCK_REALTIME, &found)) return -1;
  now->tv_sec = found.tv_sec;
  now->tv_usec = found.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *into) {
  struct timespec found;
  clock_gettime(CLOCK_REALTIME, &found);
  if (into) *into = found.tv_sec;
  return found.tv_sec;
}

/* Waits until an instant of the wall clock go to the kernel, whose clock is right: they are told in its terms, or a
   server whose clock is fast would sleep so much longer. What is too small for a date is of the monotonic clock. */
static const struct timespec *right(const struct timespec *until, struct timespec *into) {
  if (!offset || !until || until->tv_sec < 1000000000) return until;
  int64_t told = (int64_t)until->tv_sec * 1000000000 + until->tv_nsec - *offset;
  into->tv_sec = told / 1000000000;
  into->tv_nsec = told % 1000000000;
  return into;
}

int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict lock,
                           const struct timespec *restrict until) {
  static int (*real)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
  struct timespec told;
  /* By version: the name alone may find the condition variables of long ago. */
  if (!real) *(void **)&real = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
  return real(cond, lock, right(until, &told));
}

int sem_timedwait(sem_t *restrict sem, const struct timespec *restrict until) {
  static int (*real)(sem_t *, const struct timespec *);
  struct timespec told;
  if (!real) *(void **)&real = dlsym(RTLD_NEXT, "sem_timedwait");
  return real(sem, right(until, &told));
}
