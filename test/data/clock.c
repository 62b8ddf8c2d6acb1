/*
 * A clock for tests, to be preloaded into a server with LD_PRELOAD.  The file that
 * TTL_TEST_CLOCK names holds the time, in microseconds since 1970; 0 is the real
 * time.  The clock stands still until the file is written again.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile const int64_t *set_time;

static void
open_clock(void)
{
	static const int64_t zero;
	const char *path = getenv("TTL_TEST_CLOCK");
	int			fd = path ? open(path, O_RDONLY) : -1;
	void	   *map = MAP_FAILED;

	if (fd >= 0)
	{
		map = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
		close(fd);
	}
	set_time = map == MAP_FAILED ? &zero : map;
}

int
gettimeofday(struct timeval *restrict tv, void *restrict tz)
{
	struct timespec now;
	int64_t		time;

	if (set_time == NULL)
		open_clock();
	time = *set_time;
	if (time != 0)
	{
		tv->tv_sec = time / 1000000;
		tv->tv_usec = time % 1000000;
		return 0;
	}
	clock_gettime(CLOCK_REALTIME, &now);
	tv->tv_sec = now.tv_sec;
	tv->tv_usec = now.tv_nsec / 1000;
	return 0;
}
