/*-------------------------------------------------------------------------
 *
 * progress.c
 *	  What a process is doing, for pg_stat_activity and ttl_index.current_op.
 *
 * The numbers are in the progress fields that the status entry of every backend has,
 * without starting one of core's progress commands.  So no shared memory is requested, an
 * entry disappears with its process, and core's change count lets readers see either all
 * or nothing of an update.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "utils/backend_progress.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "compat.h"
#include "stats/progress.h"
#include "ttl_index.h"

PG_FUNCTION_INFO_V1(ttl_list_operations);

/* What a process of a pass shows. */
typedef struct ShownWork
{
	TtlShownHeader header;
	int64		operation;
	int64		relid;
	int64		indexrelid;
	int64		begun;			/* the visit, or the sub-pass */
	int64		has_key;
	int64		key;			/* the index was read up to there */
	TtlProgress progress;
} ShownWork;

StaticAssertDecl(sizeof(ShownWork) <= PGSTAT_NUM_PROGRESS_PARAM * sizeof(int64) &&
				 sizeof(TtlLauncher) % sizeof(int64) == 0,
				 "what is shown fits into the progress fields");

#define WORK_MAGIC INT64CONST(0x74746c5f696e6478)	/* "ttl_indx" */
#define LAUNCHER_MAGIC INT64CONST(0x74746c5f6c61756e)	/* "ttl_laun" */

enum
{
	OPERATION_PASS,
	OPERATION_VISIT				/* those of TtlWait follow */
};

typedef struct Operation
{
	const char *name;
	const char *activity;		/* of a worker that waits */
	const char *wait_event;
} Operation;

static const Operation operations[] = {
	{"pass"},
	{"visit"},
	{"wait for rate limit", "ttl_index: waiting for delete_rate_limit", "TtlIndexDeleteRateLimit"},
	{"wait for replication", "ttl_index: waiting for replication to catch up", "TtlIndexReplicationLag"},
};

static ShownWork shown;			/* by this process */

/* Writes a struct of this size, which begins with a header, to the progress fields. */
static void
show(TtlShownHeader *header, int64 magic, Size size)
{
	int			fields[PGSTAT_NUM_PROGRESS_PARAM];

	header->magic = magic;
	header->pid = MyProcPid;
	for (int i = 0; i < lengthof(fields); i++)
		fields[i] = i;
	pgstat_progress_update_multi_param(size / sizeof(int64), fields, (int64 *) header);
}

static void
show_work(int operation, TimestampTz begun, const TtlProgress *progress)
{
	shown.operation = operation;
	shown.begun = begun;
	shown.progress = *progress;
	show(&shown.header, WORK_MAGIC, sizeof(shown));
}

/* Shows that the process is in a pass, at no index. */
void
ttl_progress_pass(const TtlProgress *progress, TimestampTz begun)
{
	shown.relid = shown.indexrelid = InvalidOid;
	shown.has_key = false;
	show_work(OPERATION_PASS, begun, progress);
}

/* Shows the visit whose next batch begins.  The activity of the worker names the index. */
void
ttl_progress_visit(const TtlIndex *index, const TtlCursor *cursor, TimestampTz begun,
				   const TtlProgress *progress)
{
	char	   *activity = psprintf("ttl_index: %s rows of %s by index %s",
									OidIsValid(index->option.archive_to) ? "archiving" : "expiring",
									ttl_name_qualified(index->relid),
									quote_identifier(get_rel_name(index->indexrelid)));

	shown.relid = index->relid;
	shown.indexrelid = index->indexrelid;
	shown.has_key = ttl_cursor_read_to(cursor, &shown.key);
	show_work(OPERATION_VISIT, begun, progress);
	pgstat_report_activity(STATE_RUNNING, activity);
}

/* Waits between two batches for so many milliseconds, or until a signal, and shows that. */
void
ttl_progress_wait(TtlWait wait, long milliseconds)
{
	const Operation *waiting = &operations[OPERATION_VISIT + wait];

	shown.operation = OPERATION_VISIT + wait;
	show(&shown.header, WORK_MAGIC, sizeof(shown));
	pgstat_report_activity(STATE_RUNNING, waiting->activity);
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
					 milliseconds, ttl_wait_event(waiting->wait_event));
	ResetLatch(MyLatch);
}

/* What the next backend, from number *i on, shows with this magic; NULL for none. */
static const void *
next_shown(int *i, int64 magic, Oid *database)
{
	while (*i <= pgstat_fetch_stat_numbackends())
	{
		LocalPgBackendStatus *local = pgstat_get_local_beentry_by_index((*i)++);
		const PgBackendStatus *entry = local ? &local->backendStatus : NULL;
		const TtlShownHeader *header = entry ? (const TtlShownHeader *) entry->st_progress_param : NULL;

		if (header == NULL || header->magic != magic || header->pid != entry->st_procpid ||
			entry->st_progress_command != PROGRESS_COMMAND_INVALID)
			continue;
		*database = entry->st_databaseid;
		return header;
	}
	return NULL;
}

/* Shows what the launcher knows of itself. */
void
ttl_progress_launcher(TtlLauncher *launcher)
{
	show(&launcher->header, LAUNCHER_MAGIC, sizeof(*launcher));
}

/* Reads what the launcher shows; false if there is none. */
bool
ttl_progress_find_launcher(TtlLauncher *launcher)
{
	int			i = 1;
	Oid			database;
	const TtlLauncher *known = next_shown(&i, LAUNCHER_MAGIC, &database);

	if (known != NULL)
		*launcher = *known;
	return known != NULL;
}

/* How far a pass has read an index at which it is at work; false for none. */
bool
ttl_progress_position(Oid indexrelid, TtlScanPosition *position)
{
	const ShownWork *work;
	Oid			database;
	int			i = 1;

	while ((work = next_shown(&i, WORK_MAGIC, &database)) != NULL)
	{
		if (database != MyDatabaseId || work->indexrelid != indexrelid || !work->has_key)
			continue;
		*position = ttl_index_scan_from(work->key);
		return true;
	}
	return false;
}

/* A time that is left, in microseconds, as an interval of whole seconds; NULL for -1. */
Datum
ttl_progress_interval(int64 time_left, bool *isnull)
{
	Interval   *interval = palloc0(sizeof(Interval));

	*isnull = time_left < 0;
	interval->time = rint((double) time_left / USECS_PER_SEC) * USECS_PER_SEC;
	return IntervalPGetDatum(interval);
}

/* list_operations(): one row for each process at work on a pass */
Datum
ttl_list_operations(PG_FUNCTION_ARGS)
{
#define NCOLUMNS 11
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	const ShownWork *work;
	Oid			database;
	int			i = 1;

	InitMaterializedSRF(fcinfo, 0);
	ttl_args_check_columns(rsinfo->setDesc, NCOLUMNS, "list_operations()");
	while ((work = next_shown(&i, WORK_MAGIC, &database)) != NULL)
	{
		const TtlProgress *progress = &work->progress;
		bool		is_visit = OidIsValid(work->indexrelid);
		Datum		values[NCOLUMNS];
		bool		nulls[NCOLUMNS] = {0};

		values[0] = Int32GetDatum((int32) work->header.pid);
		values[1] = CStringGetTextDatum(operations[work->operation].name);
		values[2] = ObjectIdGetDatum((Oid) work->relid);
		values[3] = ObjectIdGetDatum((Oid) work->indexrelid);
		nulls[2] = nulls[3] = !is_visit;
		values[4] = TimestampTzGetDatum(work->begun);
		values[5] = TimestampTzGetDatum(progress->begun);
		values[6] = Int64GetDatum(progress->deleted);
		values[7] = Int64GetDatum(progress->left);
		nulls[7] = progress->left < 0;
		values[8] = ttl_progress_interval(progress->time_left, &nulls[8]);
		values[9] = Int64GetDatum(progress->index_deleted);
		nulls[9] = !is_visit;
		values[10] = Int64GetDatum(progress->index_left);
		nulls[10] = !is_visit || progress->index_left < 0;
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
#undef NCOLUMNS
}
