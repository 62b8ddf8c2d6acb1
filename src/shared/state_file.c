/*-------------------------------------------------------------------------
 *
 * state_file.c
 *	  A file for what must be known in the whole server and outlive a crash of it.
 *
 * A table cannot be used: a hold (hold.c) is for all databases, and what a worker writes
 * about the index at which it then crashes (crash.c) would be rolled back.  Shared memory
 * ends with the crash.
 *
 * The file is not mapped: if the disk is full, touching a mapped page can end the process.
 * Each part has one kind of writer, so nothing is locked.  A base backup contains the file:
 * a copy of a server whose deletion is held is held, too.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <unistd.h>

#include "storage/fd.h"

#include "shared/state_file.h"

/* The last byte is the version of the layout. */
#define MAGIC 0x74746c04

#define TEMPORARY TTL_STATE_FILE ".tmp"

/*
 * Raises an error about what could not be done.  Closes the file first, because the launcher
 * catches the error without a transaction that would close it.
 */
static void
fail(int elevel, int fd, const char *what, const char *path)
{
	int			save_errno = errno;

	if (fd >= 0)
		CloseTransientFile(fd);
	errno = save_errno;
	ereport(elevel,
			(errcode_for_file_access(),
			 errmsg("could not %s file \"%s\": %m", what, path)));
}

/* Writes into a file that is open, and closes it. */
static void
write_and_close(int fd, const char *path, const void *data, size_t size, off_t offset)
{
	errno = 0;
	if (pg_pwrite(fd, data, size, offset) != size)
	{
		/* if write didn't set errno, assume that the disk is full */
		if (errno == 0)
			errno = ENOSPC;
		fail(ERROR, fd, "write", path);
	}
	if (pg_fsync(fd) != 0)
		fail(data_sync_elevel(ERROR), fd, "fsync", path);
	if (CloseTransientFile(fd) != 0)
		fail(ERROR, -1, "close", path);
}

/*
 * Reads the file.  A missing file counts as empty.  If the file has another format or
 * length, what it said is unknown, so deletion is held.  It is also held while the file
 * cannot be read and written.  Neither is an error, because views that show why rows are
 * not deleted call this.
 */
void
ttl_state_file_read(TtlStateFile *file)
{
	int			fd = OpenTransientFile(TTL_STATE_FILE, O_RDWR | PG_BINARY);
	int			count = -1;
	int			save_errno = errno;

	if (fd >= 0)
	{
		count = read(fd, file, sizeof(TtlStateFile));
		save_errno = errno;
		CloseTransientFile(fd);
	}
	if (count == sizeof(TtlStateFile) && file->magic == MAGIC)
		return;

	memset(file, 0, sizeof(TtlStateFile));
	if (count >= 0)
		file->hold.reason = TTL_HOLD_DAMAGED_FILE;
	else if (fd >= 0 || save_errno != ENOENT)
	{
		file->hold.reason = TTL_HOLD_UNUSABLE_FILE;
		file->hold.error = save_errno;
	}
}

/* Writes the whole file, in the place of any other. */
void
ttl_state_file_create(TtlStateFile *file)
{
	int			fd = OpenTransientFile(TEMPORARY, O_RDWR | O_CREAT | O_TRUNC | PG_BINARY);

	if (fd < 0)
		fail(ERROR, -1, "create", TEMPORARY);
	file->magic = MAGIC;
	write_and_close(fd, TEMPORARY, file, sizeof(TtlStateFile), 0);
	(void) durable_rename(TEMPORARY, TTL_STATE_FILE, ERROR);
}

/* Writes a part of the file.  Only ttl_index.resume() replaces a damaged one. */
void
ttl_state_file_write(TtlStateFile *file, size_t offset, size_t size)
{
	int			fd = OpenTransientFile(TTL_STATE_FILE, O_RDWR | PG_BINARY);

	if (fd >= 0)
		write_and_close(fd, TTL_STATE_FILE, (char *) file + offset, size, offset);
	else if (errno == ENOENT)
		ttl_state_file_create(file);
	else
		fail(ERROR, -1, "open", TTL_STATE_FILE);
}
