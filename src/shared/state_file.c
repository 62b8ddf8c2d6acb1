/*-------------------------------------------------------------------------
 *
 * state_file.c
 *	  A file for what must be known in the whole server and outlive a crash of it.
 *
 * It is a small file beside core's statistics.  A table would not do: a hold (hold.c) is
 * for all databases, and what a worker writes about the index at which it then crashes
 * (crash.c) would be rolled back.  Shared memory ends with the crash.
 *
 * The file is not mapped: if the disk is full, touching a mapped page can end the process.
 * Each part has one kind of writer, so nothing is locked.  A base backup contains the file:
 * a copy of a server whose deletion is held is held, too.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/shared/state_file.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pgstat.h"
#include "storage/fd.h"

#include "shared/reported.h"
#include "shared/state_file.h"

/* The last byte is the version of the layout. */
#define MAGIC 0x74746c03

#define TEMPORARY TTL_STATE_FILE ".tmp"

static void
report_failure(int elevel, const char *what, const char *path)
{
	ereport(elevel,
			(errcode_for_file_access(),
			 errmsg("could not %s file \"%s\": %m", what, path)));
}

/* Closes the file first: who catches the error may have no transaction to do so. */
static void
report_and_close(int elevel, int fd, const char *what, const char *path)
{
	int			save_errno = errno;

	CloseTransientFile(fd);
	errno = save_errno;
	report_failure(elevel, what, path);
}

static void
write_at(int fd, const char *path, const void *data, size_t size, off_t offset, bool durable)
{
	errno = 0;
	if (pg_pwrite(fd, data, size, offset) != size)
	{
		/* if write didn't set errno, assume that the disk is full */
		if (errno == 0)
			errno = ENOSPC;
		report_and_close(ERROR, fd, "write", path);
	}
	if (durable && pg_fsync(fd) != 0)
		report_and_close(data_sync_elevel(ERROR), fd, "fsync", path);
	if (CloseTransientFile(fd) != 0)
		report_failure(ERROR, "close", path);
}

/*
 * Reads the file.  A missing file counts as empty.  A file of another format, or a part of
 * one, is damaged: what it said is unknown, so deletion is held, and so it is while the
 * file cannot be read or written.  That is no error, because views that show why rows are
 * not deleted call this.
 */
void
ttl_state_file_read(TtlStateFile *file)
{
	int			fd = OpenTransientFile(TTL_STATE_FILE, O_RDWR | PG_BINARY);
	int			failed = errno;
	int			count = 0;

	memset(file, 0, sizeof(TtlStateFile));
	if (fd < 0 && failed == ENOENT)
		return;
	if (fd >= 0)
	{
		count = read(fd, file, sizeof(TtlStateFile));
		failed = errno;
		CloseTransientFile(fd);
	}
	if (fd >= 0 && count == sizeof(TtlStateFile) && file->magic == MAGIC)
		return;
	memset(file, 0, sizeof(TtlStateFile));
	file->hold.reason = TTL_HOLD_DAMAGED_FILE;
	if (fd < 0 || count < 0)
	{
		file->hold.reason = TTL_HOLD_UNUSABLE_FILE;
		file->hold.error = failed;
	}
}

/*
 * Reads the crashes that follow, in the current memory context, and returns how many there
 * are.  A crash of the machine can leave a part of one at the end.
 */
int
ttl_state_file_read_crashes(TtlCrash **crashes)
{
	int			fd = OpenTransientFile(TTL_STATE_FILE, O_RDONLY | PG_BINARY);
	struct stat st;
	size_t		size;
	int			count;

	*crashes = NULL;
	if (fd < 0)
	{
		if (errno != ENOENT)
			report_failure(ERROR, "open", TTL_STATE_FILE);
		return 0;
	}
	if (fstat(fd, &st) != 0)
		report_and_close(ERROR, fd, "stat", TTL_STATE_FILE);
	size = Max(st.st_size - (off_t) sizeof(TtlStateFile), 0);
	*crashes = palloc(size);
	count = pg_pread(fd, *crashes, size, sizeof(TtlStateFile));
	if (count < 0)
		report_and_close(ERROR, fd, "read", TTL_STATE_FILE);
	CloseTransientFile(fd);
	return count / sizeof(TtlCrash);
}

/* Writes one of them, or one more. */
void
ttl_state_file_write_crash(int position, const TtlCrash *crash)
{
	int			fd = OpenTransientFile(TTL_STATE_FILE, O_RDWR | PG_BINARY);

	if (fd < 0)
		report_failure(ERROR, "open", TTL_STATE_FILE);
	write_at(fd, TTL_STATE_FILE, crash, sizeof(TtlCrash),
			 sizeof(TtlStateFile) + position * sizeof(TtlCrash), true);
}

/* Writes the whole file without any crashes, in the place of any other. */
void
ttl_state_file_create(TtlStateFile *file)
{
	int			fd;

	file->magic = MAGIC;
	fd = OpenTransientFile(TEMPORARY, O_RDWR | O_CREAT | O_TRUNC | PG_BINARY);
	if (fd < 0)
		report_failure(ERROR, "create", TEMPORARY);
	write_at(fd, TEMPORARY, file, sizeof(TtlStateFile), 0, true);
	(void) durable_rename(TEMPORARY, TTL_STATE_FILE, ERROR);
}

/*
 * Writes a part of the file; if that is not durable, a crash of the machine may undo it.  A
 * damaged file stays as it is: only ttl_index.resume() writes a new one.
 */
void
ttl_state_file_write(TtlStateFile *file, size_t offset, size_t size, bool durable)
{
	int			fd = OpenTransientFile(TTL_STATE_FILE, O_RDWR | PG_BINARY);

	if (fd >= 0)
		write_at(fd, TTL_STATE_FILE, (char *) file + offset, size, offset, durable);
	else if (errno == ENOENT)
		ttl_state_file_create(file);
	else
		report_failure(ERROR, "open", TTL_STATE_FILE);
}
