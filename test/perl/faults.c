/*
 * faults.c
 *	  To be preloaded into a server: a clock that jumps or stands still, and a disk
 *	  that is full.
 *
 * The file named by TTL_FAULTS says what is wrong at the moment: how far the wall
 * clock is ahead, where it stands, and below which path files cannot grow.  See
 * Faults.pm.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct faults
{
	int64_t		seconds_ahead;
	int64_t		standing_at;	/* microseconds since 1970, or 0 */
	char		full[1024];
};

static const struct faults none;
static const volatile struct faults *faults = &none;

__attribute__((constructor))
static void
attach(void)
{
	const char *name = getenv("TTL_FAULTS");
	int			fd = name ? open(name, O_RDONLY) : -1;
	void	   *map;

	if (fd < 0)
		return;
	map = mmap(NULL, sizeof(struct faults), PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (map != MAP_FAILED)
		faults = map;
}

#define REAL(name) \
	static __typeof__(name) *real; \
	if (real == NULL) \
		real = (__typeof__(name) *) dlsym(RTLD_NEXT, #name)

/* Would this write make a file grow that cannot? */
static int
is_full(int fd, off_t end)
{
	const char *full = (const char *) faults->full;
	char		link[64];
	char		path[4096];
	struct stat st;
	ssize_t		length;

	if (full[0] == '\0')
		return 0;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, path, sizeof(path) - 1);
	if (length < 0)
		return 0;
	path[length] = '\0';
	return strncmp(path, full, strlen(full)) == 0 && fstat(fd, &st) == 0 &&
		S_ISREG(st.st_mode) && end > st.st_size;
}

static off_t
total(const struct iovec *iov, int count)
{
	off_t		sum = 0;

	for (int i = 0; i < count; i++)
		sum += iov[i].iov_len;
	return sum;
}

#define CHECK(fd, end) \
	if (is_full(fd, end)) \
	{ \
		errno = ENOSPC; \
		return -1; \
	}

/*
 * Only this clock can stand still, which is the one of dates: others time what the
 * server does by the rest.
 */
int
gettimeofday(struct timeval *tv, void *tz)
{
	int64_t		standing_at = faults->standing_at;
	int			result;

	if (standing_at != 0)
	{
		tv->tv_sec = standing_at / 1000000;
		tv->tv_usec = standing_at % 1000000;
		return 0;
	}
	REAL(gettimeofday);
	result = real(tv, tz);
	tv->tv_sec += faults->seconds_ahead;
	return result;
}

int
clock_gettime(clockid_t id, struct timespec *ts)
{
	int			result;

	REAL(clock_gettime);
	result = real(id, ts);
	if (id == CLOCK_REALTIME)
		ts->tv_sec += faults->seconds_ahead;
	return result;
}

time_t
time(time_t *result)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (result)
		*result = now.tv_sec;
	return now.tv_sec;
}

ssize_t
write(int fd, const void *data, size_t size)
{
	REAL(write);
	CHECK(fd, lseek(fd, 0, SEEK_CUR) + size);
	return real(fd, data, size);
}

ssize_t
pwrite(int fd, const void *data, size_t size, off_t offset)
{
	REAL(pwrite);
	CHECK(fd, offset + size);
	return real(fd, data, size, offset);
}

ssize_t
pwrite64(int fd, const void *data, size_t size, off64_t offset)
{
	REAL(pwrite64);
	CHECK(fd, offset + size);
	return real(fd, data, size, offset);
}

ssize_t
pwritev(int fd, const struct iovec *iov, int count, off_t offset)
{
	REAL(pwritev);
	CHECK(fd, offset + total(iov, count));
	return real(fd, iov, count, offset);
}

ssize_t
pwritev64(int fd, const struct iovec *iov, int count, off64_t offset)
{
	REAL(pwritev64);
	CHECK(fd, offset + total(iov, count));
	return real(fd, iov, count, offset);
}

int
posix_fallocate(int fd, off_t offset, off_t size)
{
	REAL(posix_fallocate);
	return is_full(fd, offset + size) ? ENOSPC : real(fd, offset, size);
}

int
posix_fallocate64(int fd, off64_t offset, off64_t size)
{
	REAL(posix_fallocate64);
	return is_full(fd, offset + size) ? ENOSPC : real(fd, offset, size);
}
