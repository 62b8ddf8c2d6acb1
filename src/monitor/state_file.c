/*-------------------------------------------------------------------------
 *
 * state_file.c
 *	  What must be known in the whole server and outlive its crash.
 *
 * A small file of fixed size beside core's own statistics.  Tables would not do:
 * a hold (hold.c) is for all databases, and which index a worker was at when it
 * took the server down (crash.c) is lost with its transaction.  Shared memory
 * would not do either, it ends with the crash.
 *
 * It is read and written, not mapped: with a full disk a mapped page can end the
 * process that touches it, and with it the server.  Each part has one kind of
 * writer, so a part is written by itself and nothing is locked; the time of the last
 * look at the clock has many, which write much the same.
 *
 * A base backup takes the file along: a copy of a server that is held is held.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/monitor/state_file.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <unistd.h>

#include "pgstat.h"
#include "storage/fd.h"

#include "monitor/monitor.h"
#include "monitor/state_file.h"
#include "ttl_index.h"

/* The last byte is the version of the layout. */
#define MAGIC 0x74746c02

#define TEMPORARY TTL_STATE_FILE ".tmp"

static void
report_failure(int elevel, const char *what, const char *path)
{
	ereport(elevel,
			(errcode_for_file_access(),
			 errmsg("could not %s file \"%s\": %m", what, path)));
}

static void
write_at(int fd, const char *path, const void *data, size_t size, off_t offset,
		 bool durable)
{
	errno = 0;
	if (pg_pwrite(fd, data, size, offset) != size)
	{
		/* if write didn't set errno, assume that the disk is full */
		if (errno == 0)
			errno = ENOSPC;
		report_failure(ERROR, "write", path);
	}
	if (durable && pg_fsync(fd) != 0)
		report_failure(data_sync_elevel(ERROR), "fsync", path);
	if (CloseTransientFile(fd) != 0)
		report_failure(ERROR, "close", path);
}

/*
 * Reads the file.  One that is not there is empty; one that is not ours, or only
 * a part of ours, is damaged, and what it said is unknown.
 */
void
ttl_state_file_read(TtlStateFile *file)
{
	int			fd = OpenTransientFile(TTL_STATE_FILE, O_RDONLY | PG_BINARY);
	int			count;

	memset(file, 0, sizeof(TtlStateFile));
	if (fd < 0)
	{
		if (errno != ENOENT)
			report_failure(ERROR, "open", TTL_STATE_FILE);
		return;
	}
	count = read(fd, file, sizeof(TtlStateFile));
	if (count < 0)
		report_failure(ERROR, "read", TTL_STATE_FILE);
	CloseTransientFile(fd);
	if (count != sizeof(TtlStateFile) || file->magic != MAGIC)
	{
		memset(file, 0, sizeof(TtlStateFile));
		file->hold.reason = TTL_HOLD_DAMAGED_FILE;
	}
}

/* Writes the whole file, whatever there is. */
void
ttl_state_file_create(TtlStateFile *file)
{
	int			fd;

	file->magic = MAGIC;
	fd = OpenTransientFile(TEMPORARY,
						   O_RDWR | O_CREAT | O_TRUNC | PG_BINARY);
	if (fd < 0)
		report_failure(ERROR, "create", TEMPORARY);
	write_at(fd, TEMPORARY, file, sizeof(TtlStateFile), 0, true);
	(void) durable_rename(TEMPORARY, TTL_STATE_FILE, ERROR);
}

/*
 * Writes a part of it: for good, or so that the next crash of the machine may take
 * it back.  A damaged file stays: only ttl_index.resume() writes a new one.
 */
void
ttl_state_file_write(TtlStateFile *file, size_t offset, size_t size,
					 bool durable)
{
	int			fd = OpenTransientFile(TTL_STATE_FILE, O_RDWR | PG_BINARY);

	if (fd >= 0)
		write_at(fd, TTL_STATE_FILE, (char *) file + offset, size, offset,
				 durable);
	else if (errno == ENOENT)
		ttl_state_file_create(file);
	else
		report_failure(ERROR, "open", TTL_STATE_FILE);
}
