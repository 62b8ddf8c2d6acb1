/*-------------------------------------------------------------------------
 *
 * crash.c
 *	  Indexes whose visit takes the server down.
 *
 * A user's function in C, or a damaged page, can end the worker in a way that
 * makes the postmaster restart all processes; and the next visit does it again.
 * So a worker marks in the state file (statefile.c) which index it is at.  An
 * orderly end takes the mark away, and so does the SIGQUIT by which the
 * postmaster ends all others when one has crashed: only a worker that crashed
 * itself leaves its mark.  The launcher finds it when it starts.  An index that
 * did this twice within a day is put aside until ttl_index.resume(), or until it
 * is made anew.
 *
 * What this cannot tell apart: a machine that is switched off, a container that
 * is killed with all of its processes, and send_abort_for_crash leave a mark too.
 * Within a day that is rarely twice at the same index.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/crash.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "libpq/pqsignal.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "utils/elog.h"
#include "utils/timestamp.h"

#include "ttl_index.h"
#include "statefile.h"

#define PUT_ASIDE_AFTER 2

/* Crashes that are further apart have nothing to do with each other. */
#define FORGET_MS (24 * 60 * 60 * 1000)

static int	mark_fd = -1;
static emit_log_hook_type prev_emit_log_hook = NULL;

/*
 * Also in a signal handler.  If it cannot be written, a crash here goes
 * unnoticed or counts once too often, which is no reason to stop.
 */
static void
write_mark(Oid indexrelid, TimestampTz begun)
{
	TtlMark		mark = {.database = MyDatabaseId,.indexrelid = indexrelid,
		.begun = begun
	};

	if (mark_fd >= 0 &&
		pwrite(mark_fd, &mark, sizeof(mark), offsetof(TtlStateFile, mark)) < 0)
		return;
}

/* Another process has crashed, or an immediate shutdown. */
static void
quit_handler(SIGNAL_ARGS)
{
	write_mark(InvalidOid, 0);
	_exit(2);
}

static void
exit_callback(int code, Datum arg)
{
	write_mark(InvalidOid, 0);
}

/* A disk that is full of WAL is a PANIC, of whoever comes first. */
static void
log_hook(ErrorData *edata)
{
	if (edata->elevel == PANIC &&
		ERRCODE_TO_CATEGORY(edata->sqlerrcode) == ERRCODE_INSUFFICIENT_RESOURCES)
		write_mark(InvalidOid, 0);
	if (prev_emit_log_hook)
		prev_emit_log_hook(edata);
}

/* For a worker, when it starts: from here on ttl_crash_mark() leaves marks. */
void
ttl_crash_watch(void)
{
	mark_fd = BasicOpenFile(TTL_STATE_FILE, O_RDWR | PG_BINARY);
	pqsignal(SIGQUIT, quit_handler);
	on_proc_exit(exit_callback, (Datum) 0);
	prev_emit_log_hook = emit_log_hook;
	emit_log_hook = log_hook;
}

/* A visit begins, or ends with InvalidOid.  Does nothing outside of a worker. */
void
ttl_crash_mark(Oid indexrelid)
{
	write_mark(indexrelid, OidIsValid(indexrelid) ? GetCurrentTimestamp() : 0);
}

/* The entry of this index, or the one that is missed least. */
static TtlCrash *
find_crash(TtlStateFile *file, const TtlMark *mark)
{
	TtlCrash   *oldest = &file->crashes[0];

	for (int i = 0; i < TTL_MAX_CRASHES; i++)
	{
		TtlCrash   *crash = &file->crashes[i];

		if (crash->count > 0 && crash->database == mark->database &&
			crash->indexrelid == mark->indexrelid)
			return crash;
		if (Min(crash->count, PUT_ASIDE_AFTER) < Min(oldest->count, PUT_ASIDE_AFTER) ||
			(Min(crash->count, PUT_ASIDE_AFTER) == Min(oldest->count, PUT_ASIDE_AFTER) &&
			 crash->last < oldest->last))
			oldest = crash;
	}
	memset(oldest, 0, sizeof(TtlCrash));
	oldest->database = mark->database;
	oldest->indexrelid = mark->indexrelid;
	return oldest;
}

/*
 * For the launcher, when it starts: takes the mark of a worker that crashed, and
 * counts it.  Returns the index, or InvalidOid.
 */
Oid
ttl_crash_take_mark(Oid *database)
{
	TtlStateFile file;
	TtlMark		mark;
	TtlCrash   *crash;

	ttl_state_file_read(&file);
	if (file.magic == 0)
	{
		/* so that there is one for the workers; a damaged one stays */
		if (file.hold.reason == TTL_NOT_HELD)
			ttl_state_file_create(&file);
		return InvalidOid;
	}
	mark = file.mark;
	if (!OidIsValid(mark.indexrelid))
		return InvalidOid;

	crash = find_crash(&file, &mark);
	if (crash->count < PUT_ASIDE_AFTER &&
		TimestampDifferenceExceeds(crash->last, mark.begun, FORGET_MS))
		crash->count = 0;
	crash->count++;
	crash->last = mark.begun;
	ttl_state_file_write(&file, TTL_STATE_FILE_PART(crashes));
	memset(&file.mark, 0, sizeof(TtlMark));
	ttl_state_file_write(&file, TTL_STATE_FILE_PART(mark));
	*database = mark.database;
	return mark.indexrelid;
}

/* Shows that an index of this database, active otherwise, is put aside. */
void
ttl_crash_show(const TtlStateFile *file, TtlIndex *index)
{
	for (int i = 0; i < TTL_MAX_CRASHES; i++)
	{
		const TtlCrash *crash = &file->crashes[i];

		if (index->state != TTL_ACTIVE || crash->count < PUT_ASIDE_AFTER ||
			crash->database != MyDatabaseId ||
			crash->indexrelid != index->root)
			continue;
		index->state = TTL_CRASHED_SERVER;
		index->detail = psprintf("the server crashed in " INT64_FORMAT " visits to it, the last of which began at %s",
								 crash->count, timestamptz_to_str(crash->last));
	}
}
