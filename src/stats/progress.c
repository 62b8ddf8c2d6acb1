/*-------------------------------------------------------------------------
 *
 * progress.c
 *	  What a process is doing, for pg_stat_activity and ttl_index.current_op.
 *
 * The numbers are in the progress fields that the status entry of every backend has,
 * without starting one of core's progress commands.  So no shared memory is requested, and
 * an entry disappears with its process.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/stats/progress.c
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
#include "definition/definition.h"
#include "stats/progress.h"
#include "ttl_index.h"

PG_FUNCTION_INFO_V1(ttl_list_operations);

/*
 * The progress fields.  The first two tell the entries of this file from those of core's
 * commands, and from what a process that has ended left in the slot of another.
 */
enum
{
	FIELD_MAGIC,
	FIELD_PID,
	FIELD_OPERATION,
	FIELD_INDEX,
	FIELD_TABLE,
	FIELD_CUTOFF,
	FIELD_START,
	FIELD_DELETED,
	FIELD_HAS_KEY,
	FIELD_KEY,
	FIELD_PASS_START,
	FIELD_PASS_DELETED,
	FIELD_PASS_LEFT,
	FIELD_INDEX_DELETED,
	FIELD_INDEX_DUE,
	FIELD_PASS_PACED,
	FIELD_INDEX_PACED
};

/* The launcher shows these instead, after the same two. */
enum
{
	FIELD_ENABLED = FIELD_OPERATION,
	FIELD_READ_ONLY,
	FIELD_NO_SLOT,
	FIELD_OVERVIEW
};

#define MAGIC INT64CONST(0x74746c5f696e6478)	/* "ttl_indx" */
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

/* The rate of a pass counts after the first seconds, or the first tenth of the rows. */
#define FIRST_US INT64CONST(5000000)
#define FIRST_PART 10

static const Operation operations[] = {
	{"pass"},
	{"visit"},
	{"wait for rate limit", "ttl_index: waiting for delete_rate_limit", "TtlIndexDeleteRateLimit"},
	{"wait for replication", "ttl_index: waiting for replication to catch up", "TtlIndexReplicationLag"},
	{"wait for locks", "ttl_index: waiting for locks", "TtlIndexLocks"},
};

static void
set_fields(int operation, const TtlIndex *index, TimestampTz cutoff,
		   TimestampTz begun, int64 deleted, const TtlProgress *progress)
{
	pgstat_progress_update_param(FIELD_OPERATION, operation);
	pgstat_progress_update_param(FIELD_INDEX, index ? index->indexrelid : 0);
	pgstat_progress_update_param(FIELD_TABLE, index ? index->relid : 0);
	pgstat_progress_update_param(FIELD_CUTOFF, cutoff);
	pgstat_progress_update_param(FIELD_START, begun);
	pgstat_progress_update_param(FIELD_DELETED, deleted);
	pgstat_progress_update_param(FIELD_PASS_START, progress->begun);
	pgstat_progress_update_param(FIELD_PASS_DELETED, progress->deleted);
	pgstat_progress_update_param(FIELD_PASS_LEFT, progress->left);
	pgstat_progress_update_param(FIELD_INDEX_DELETED, progress->index_deleted);
	pgstat_progress_update_param(FIELD_INDEX_DUE, progress->index_due);
	pgstat_progress_update_param(FIELD_PASS_PACED, progress->paced);
	pgstat_progress_update_param(FIELD_INDEX_PACED, progress->index_paced);
	pgstat_progress_update_param(FIELD_PID, MyProcPid);
	pgstat_progress_update_param(FIELD_MAGIC, MAGIC);
}

/* Shows that the process is in a pass, at no index. */
void
ttl_progress_pass(const TtlProgress *progress, TimestampTz begun)
{
	set_fields(OPERATION_PASS, NULL, 0, begun, 0, progress);
}

/* Shows the visit whose next batch begins.  The activity of the worker names the index. */
void
ttl_progress_visit(const TtlIndex *index, TimestampTz cutoff, const TtlCursor *cursor,
				   TimestampTz begun, int64 deleted, const TtlProgress *progress)
{
	int64		key;
	char	   *activity;

	pgstat_progress_update_param(FIELD_HAS_KEY, ttl_cursor_read_to(cursor, &key));
	pgstat_progress_update_param(FIELD_KEY, key);
	set_fields(OPERATION_VISIT, index, cutoff, begun, deleted, progress);
	activity = psprintf("ttl_index: %s rows of %s by index %s",
						OidIsValid(index->option.archive_to) ? "archiving" : "expiring",
						ttl_name_qualified(index->relid),
						quote_identifier(get_rel_name(index->indexrelid)));
	pgstat_report_activity(STATE_RUNNING, activity);
}

/* Waits between two batches for so many milliseconds, or until a signal, and shows that. */
void
ttl_progress_wait(TtlWait wait, long milliseconds)
{
	int			operation = OPERATION_VISIT + wait;
	const Operation *waiting = &operations[operation];

	pgstat_progress_update_param(FIELD_OPERATION, operation);
	pgstat_report_activity(STATE_RUNNING, waiting->activity);
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
					 milliseconds, ttl_wait_event(waiting->wait_event));
	ResetLatch(MyLatch);
}

/* The next backend, from number *i on, that shows fields of this magic; NULL for none. */
static const PgBackendStatus *
next_entry(int *i, int64 magic)
{
	while (*i <= pgstat_fetch_stat_numbackends())
	{
		LocalPgBackendStatus *local = pgstat_get_local_beentry_by_index((*i)++);
		const PgBackendStatus *entry = local ? &local->backendStatus : NULL;

		if (entry != NULL && entry->st_progress_param[FIELD_MAGIC] == magic &&
			entry->st_progress_param[FIELD_PID] == entry->st_procpid &&
			entry->st_progress_command == PROGRESS_COMMAND_INVALID)
			return entry;
	}
	return NULL;
}

/* Shows what the launcher knows of itself. */
void
ttl_progress_launcher(const TtlLauncher *launcher)
{
	pgstat_progress_update_param(FIELD_ENABLED, launcher->enabled);
	pgstat_progress_update_param(FIELD_READ_ONLY, launcher->read_only);
	pgstat_progress_update_param(FIELD_NO_SLOT, launcher->no_slot);
	pgstat_progress_update_param(FIELD_OVERVIEW, launcher->overview);
	pgstat_progress_update_param(FIELD_PID, MyProcPid);
	pgstat_progress_update_param(FIELD_MAGIC, LAUNCHER_MAGIC);
}

/* Reads what the launcher shows; false if there is none. */
bool
ttl_progress_find_launcher(TtlLauncher *launcher)
{
	int			i = 1;
	const PgBackendStatus *entry = next_entry(&i, LAUNCHER_MAGIC);

	if (entry == NULL)
		return false;
	launcher->enabled = entry->st_progress_param[FIELD_ENABLED];
	launcher->read_only = entry->st_progress_param[FIELD_READ_ONLY];
	launcher->no_slot = entry->st_progress_param[FIELD_NO_SLOT];
	launcher->overview = entry->st_progress_param[FIELD_OVERVIEW];
	return true;
}

/* How far a pass has read an index at which it is at work; false for none. */
bool
ttl_progress_position(Oid indexrelid, TtlScanPosition *position)
{
	const PgBackendStatus *entry;
	int			i = 1;

	while ((entry = next_entry(&i, MAGIC)) != NULL)
	{
		const int64 *param = entry->st_progress_param;

		if (entry->st_databaseid != MyDatabaseId || param[FIELD_INDEX] != indexrelid ||
			!param[FIELD_HAS_KEY])
			continue;
		*position = ttl_index_scan_from(param[FIELD_KEY]);
		return true;
	}
	return false;
}

/* of list_operations() */
enum
{
	COLUMN_PID,
	COLUMN_OPERATION,
	COLUMN_RELID,
	COLUMN_INDEXRELID,
	COLUMN_CUTOFF,
	COLUMN_OP_START,
	COLUMN_DELETED_DOCUMENTS,
	COLUMN_PASS_START,
	COLUMN_PASS_DELETED,
	COLUMN_PASS_LEFT,
	COLUMN_PASS_TIME_LEFT,
	COLUMN_INDEX_DELETED,
	COLUMN_INDEX_DUE,
	COLUMN_INDEX_LEFT,
	COLUMN_INDEX_TIME_LEFT,
	NCOLUMNS
};

/*
 * The time in microseconds for the rows that are left of a pass, at the rate of so many others
 * (paced) in the time since it began; -1 if it is not known.
 */
int64
ttl_progress_time_left(int64 left, int64 deleted, int64 paced, int64 took)
{
	double		time;

	if (left < 0 || paced <= 0 || took <= 0 ||
		(took < FIRST_US && deleted < (deleted + left) / FIRST_PART))
		return -1;
	time = (double) left / paced * took;
	return time < (double) PG_INT64_MAX / 2 ? (int64) rint(time) : -1;
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

/* Fills the columns about rows that are left, and the time for them; NULL if not known. */
static void
put_left(Datum *values, bool *nulls, int column, int64 left, int64 deleted, int64 paced,
		 int64 took)
{
	nulls[column] = left < 0;
	values[column] = Int64GetDatum(left);
	values[column + 1] = ttl_progress_interval(ttl_progress_time_left(left, deleted, paced, took),
											   &nulls[column + 1]);
}

/* list_operations(): one row for each process at work on a pass */
Datum
ttl_list_operations(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	const PgBackendStatus *entry;
	int			i = 1;

	InitMaterializedSRF(fcinfo, 0);
	ttl_args_check_columns(rsinfo->setDesc, NCOLUMNS, "list_operations()");
	while ((entry = next_entry(&i, MAGIC)) != NULL)
	{
		const int64 *param = entry->st_progress_param;
		Datum		values[NCOLUMNS] = {0};
		bool		nulls[NCOLUMNS] = {0};
		bool		is_visit = param[FIELD_INDEX] != 0;
		int64		took = GetCurrentTimestamp() - param[FIELD_PASS_START];
		int64		deleted = param[FIELD_INDEX_DELETED];
		int64		due = param[FIELD_INDEX_DUE];

		values[COLUMN_PID] = Int32GetDatum((int32) param[FIELD_PID]);
		values[COLUMN_OPERATION] = CStringGetTextDatum(operations[param[FIELD_OPERATION]].name);
		values[COLUMN_RELID] = ObjectIdGetDatum((Oid) param[FIELD_TABLE]);
		values[COLUMN_INDEXRELID] = ObjectIdGetDatum((Oid) param[FIELD_INDEX]);
		values[COLUMN_CUTOFF] = TimestampTzGetDatum(param[FIELD_CUTOFF]);
		values[COLUMN_OP_START] = TimestampTzGetDatum(param[FIELD_START]);
		values[COLUMN_DELETED_DOCUMENTS] = Int64GetDatum(param[FIELD_DELETED]);
		nulls[COLUMN_RELID] = nulls[COLUMN_INDEXRELID] = nulls[COLUMN_CUTOFF] = !is_visit;

		memset(&nulls[COLUMN_PASS_START], true, NCOLUMNS - COLUMN_PASS_START);
		if (param[FIELD_PASS_START] != 0)
		{
			nulls[COLUMN_PASS_START] = nulls[COLUMN_PASS_DELETED] = false;
			values[COLUMN_PASS_START] = TimestampTzGetDatum(param[FIELD_PASS_START]);
			values[COLUMN_PASS_DELETED] = Int64GetDatum(param[FIELD_PASS_DELETED]);
			put_left(values, nulls, COLUMN_PASS_LEFT, param[FIELD_PASS_LEFT],
					 param[FIELD_PASS_DELETED], param[FIELD_PASS_PACED], took);
		}
		if (param[FIELD_PASS_START] != 0 && is_visit)
		{
			nulls[COLUMN_INDEX_DELETED] = false;
			values[COLUMN_INDEX_DELETED] = Int64GetDatum(deleted);
			nulls[COLUMN_INDEX_DUE] = due < 0;
			values[COLUMN_INDEX_DUE] = Int64GetDatum(due);
			/* more than was expected: it is not known how many more */
			put_left(values, nulls, COLUMN_INDEX_LEFT, due < deleted ? -1 : due - deleted,
					 deleted, param[FIELD_INDEX_PACED], took);
		}
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}
