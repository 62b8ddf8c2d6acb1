/*-------------------------------------------------------------------------
 *
 * crash.c
 *	  Indexes whose visits crash the server.
 *
 * A function of a user in C, or a damaged page, can crash a worker, and with it the server,
 * and the next visit crashes it again.  So a worker marks in the state file (state_file.c)
 * the index that it works on.  It removes the mark when it exits normally, and also at the
 * SIGQUIT by which the postmaster ends all other processes.  The launcher counts the marks
 * that are left.  An index that left two within a day is skipped until ttl_index.resume(),
 * or until the server is restarted.  A mark of another postmaster, as after a loss of power
 * or in a base backup, is ignored.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "miscadmin.h"
#include "storage/fd.h"
#include "utils/elog.h"
#include "utils/timestamp.h"

#include "shared/state_file.h"

#define SKIPPED_AFTER 2

/* Crashes that are further apart are not counted together. */
#define FORGET_MS (24 * 60 * 60 * 1000)

static int	mark_number = -1;	/* position of the mark of this process; -1: none */
static int	mark_fd = -1;		/* while there is a mark */
static emit_log_hook_type prev_emit_log_hook = NULL;

/* Writes the mark.  Also called in a signal handler, so a failure is ignored. */
static void
write_mark(Oid indexrelid, TimestampTz begun)
{
	TtlMark		mark = {.server_start = PgStartTime,.pid = MyProcPid,.database = MyDatabaseId,
	.indexrelid = indexrelid,.begun = begun};

	if (mark_fd >= 0 &&
		pwrite(mark_fd, &mark, sizeof(mark),
			   offsetof(TtlStateFile, marks) + mark_number * sizeof(TtlMark)) < 0)
		return;
}

/* Handles SIGQUIT: another process has crashed, or the shutdown is immediate. */
static void
quit_handler(SIGNAL_ARGS)
{
	write_mark(InvalidOid, 0);
	_exit(2);
}

/* Removes the mark before a PANIC for lack of disk space: the index did not cause it. */
static void
log_hook(ErrorData *edata)
{
	if (edata->elevel == PANIC &&
		ERRCODE_TO_CATEGORY(edata->sqlerrcode) == ERRCODE_INSUFFICIENT_RESOURCES)
		write_mark(InvalidOid, 0);
	if (prev_emit_log_hook)
		prev_emit_log_hook(edata);
}

/* Called by a worker when it starts, with the number of its mark (tasks.c), or -1. */
void
ttl_crash_watch(int mark)
{
	mark_number = mark;
	if (mark < 0)
		return;
	pqsignal(SIGQUIT, quit_handler);
	prev_emit_log_hook = emit_log_hook;
	emit_log_hook = log_hook;
}

/*
 * Marks the index at which the worker is, or removes the mark.  Opens the file each time,
 * because resume() makes a new one.
 */
void
ttl_crash_mark(Oid indexrelid)
{
	int			fd = mark_fd;

	if (mark_number < 0)
		return;
	if (fd >= 0)
	{
		write_mark(InvalidOid, 0);
		/* quit_handler() must not write to a closed file */
		mark_fd = -1;
		close(fd);
	}
	if (!OidIsValid(indexrelid))
		return;
	mark_fd = BasicOpenFile(TTL_STATE_FILE, O_RDWR | PG_BINARY);
	write_mark(indexrelid, GetCurrentTimestamp());
}

/*
 * Counts the crash of a worker that left its mark, and removes the mark.  The launcher calls
 * this when it starts, until it returns false.
 */
bool
ttl_crash_take_mark(TtlMark *mark)
{
	TtlStateFile file;

	ttl_state_file_read(&file);
	if (file.magic == 0)
	{
		/* workers need a file to write to; a damaged one stays */
		if (file.hold.reason == TTL_NOT_HELD)
			ttl_state_file_create(&file);
		return false;
	}
	for (int i = 0; i < TTL_MARKS; i++)
	{
		TtlCrash   *slot = NULL;

		*mark = file.marks[i];
		/* the worker of a launcher that ended before can still be there */
		if (!OidIsValid(mark->indexrelid) || mark->server_start != PgStartTime ||
			kill(mark->pid, 0) == 0 || errno != ESRCH)
			continue;

		/* find the entry of this index, else a free one, else the oldest one */
		for (int j = 0; j < TTL_CRASHES; j++)
		{
			TtlCrash   *crash = &file.crashes[j];

			if (crash->server_start != PgStartTime)
				memset(crash, 0, sizeof(TtlCrash));
			if (crash->database == mark->database && crash->indexrelid == mark->indexrelid)
			{
				slot = crash;
				break;
			}
			if (slot == NULL || crash->last < slot->last)
				slot = crash;
		}
		if (slot->database != mark->database || slot->indexrelid != mark->indexrelid ||
			(slot->count < SKIPPED_AFTER &&
			 TimestampDifferenceExceeds(slot->last, mark->begun, FORGET_MS)))
			slot->count = 0;
		slot->server_start = PgStartTime;
		slot->database = mark->database;
		slot->indexrelid = mark->indexrelid;
		slot->count++;
		slot->last = mark->begun;
		ttl_state_file_write(&file, TTL_STATE_FILE_PART(crashes));
		memset(&file.marks[i], 0, sizeof(TtlMark));
		ttl_state_file_write(&file, TTL_STATE_FILE_PART(marks));
		return true;
	}
	return false;
}

/* Says in one line why an index of this database is skipped; NULL if it is not. */
char *
ttl_crash_reason(const TtlStateFile *file, Oid root)
{
	for (int i = 0; i < TTL_CRASHES; i++)
	{
		const TtlCrash *crash = &file->crashes[i];

		if (crash->server_start == PgStartTime && crash->count >= SKIPPED_AFTER &&
			crash->database == MyDatabaseId && crash->indexrelid == root)
			return psprintf("the server crashed in " INT64_FORMAT " visits to it, the last of which began at %s",
							crash->count, timestamptz_to_str(crash->last));
	}
	return NULL;
}
