/*-------------------------------------------------------------------------
 *
 * crash.c
 *	  Indexes whose visits crash the server.
 *
 * A function of a user in C, or a damaged page, can crash the worker, and the postmaster
 * restarts all processes; and the next visit does it again.  So a worker marks in the state
 * file (state_file.c) which index it is at, and when its postmaster started.  An orderly
 * end removes the mark, and so does the SIGQUIT by which the postmaster ends all other
 * processes.  An index that left its mark twice within a day is skipped until
 * ttl_index.resume(), a restart of the server, or until it is created anew.
 *
 * A mark of another postmaster, as after a loss of power or in a base backup, is ignored.
 * Each worker of the monitor has a mark of its own, by a number that tasks.c gives it.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/shared/crash.c
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

#include "compat.h"
#include "shared/reported.h"
#include "shared/state_file.h"

#define SKIPPED_AFTER 2

/* Crashes that are further apart have nothing to do with each other. */
#define FORGET_MS (24 * 60 * 60 * 1000)

static int	mark_number = -1;	/* which mark is that of this process; -1: none */
static int	mark_fd = -1;		/* while there is a mark */
static emit_log_hook_type prev_emit_log_hook = NULL;

/* Writes the mark; also called in a signal handler, so that a failure is ignored. */
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

/* Removes the mark before a PANIC for want of disk space, which is not the index's. */
static void
log_hook(ErrorData *edata)
{
	if (edata->elevel == PANIC &&
		ERRCODE_TO_CATEGORY(edata->sqlerrcode) == ERRCODE_INSUFFICIENT_RESOURCES)
		write_mark(InvalidOid, 0);
	if (prev_emit_log_hook)
		prev_emit_log_hook(edata);
}

/* Called by a worker when it starts: ttl_crash_mark() writes the mark with this number. */
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
 * Marks the index at which the worker is, or none.  Without a number it does nothing.  The
 * file can be another one each time: resume() makes a new one.
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
		/* a signal handler writes to it as well */
		mark_fd = -1;
		close(fd);
	}
	if (!OidIsValid(indexrelid))
		return;
	mark_fd = BasicOpenFile(TTL_STATE_FILE, O_RDWR | PG_BINARY);
	write_mark(indexrelid, GetCurrentTimestamp());
}

/* Is this an entry of the postmaster that is running? */
static bool
is_ours(const TtlCrash *crash)
{
	return crash->count > 0 && crash->server_start == PgStartTime;
}

/*
 * Called by the launcher when it starts, until it returns false: counts the crash of a
 * worker that left its mark, and removes the mark.
 */
bool
ttl_crash_take_mark(TtlMark *mark)
{
	TtlStateFile file;
	TtlCrash   *crashes;
	TtlCrash	crash;
	int			count;
	int			position;

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
		*mark = file.marks[i];
		/* the worker of a launcher that ended before can still be there */
		if (!OidIsValid(mark->indexrelid) || mark->server_start != PgStartTime ||
			kill(mark->pid, 0) == 0 || errno != ESRCH)
			continue;

		/* find the entry of this index; else a free one, or one more */
		crash = (TtlCrash)
		{
			.server_start = PgStartTime,.database = mark->database,
				.indexrelid = mark->indexrelid
		};
		position = count = ttl_state_file_read_crashes(&crashes);
		for (int j = 0; j < count; j++)
		{
			if (!is_ours(&crashes[j]))
				position = Min(position, j);
			else if (crashes[j].database == mark->database &&
					 crashes[j].indexrelid == mark->indexrelid)
			{
				crash = crashes[j];
				position = j;
				break;
			}
		}
		if (crash.count < SKIPPED_AFTER &&
			TimestampDifferenceExceeds(crash.last, mark->begun, FORGET_MS))
			crash.count = 0;
		crash.count++;
		crash.last = mark->begun;
		ttl_state_file_write_crash(position, &crash);
		memset(&file.marks[i], 0, sizeof(TtlMark));
		ttl_state_file_write(&file, TTL_STATE_FILE_PART(marks), true);
		return true;
	}
	return false;
}

/*
 * Lists, as TtlCrash, the indexes of this database that are skipped.  An unusable file has
 * none.
 */
List *
ttl_crash_skipped(const TtlStateFile *file)
{
	List	   *skipped = NIL;
	TtlCrash   *crashes;
	int			count;

	if (file->hold.reason == TTL_HOLD_UNUSABLE_FILE)
		return NIL;
	count = ttl_state_file_read_crashes(&crashes);
	for (int i = 0; i < count; i++)
	{
		if (is_ours(&crashes[i]) && crashes[i].count >= SKIPPED_AFTER &&
			crashes[i].database == MyDatabaseId)
			skipped = lappend(skipped, &crashes[i]);
	}
	return skipped;
}

/* Says in one line why an index is skipped; NULL if it is not in this list. */
char *
ttl_crash_reason(const List *skipped, Oid root)
{
	ListCell   *lc;

	foreach(lc, skipped)
	{
		const TtlCrash *crash = lfirst(lc);

		if (crash->indexrelid == root)
			return psprintf("the server crashed in " INT64_FORMAT " visits to it, the last of which began at %s",
							crash->count, timestamptz_to_str(crash->last));
	}
	return NULL;
}
