/*-------------------------------------------------------------------------
 *
 * survey.c
 *	  What a worker finds out about the TTL indexes of its database, for the view
 *	  ttl_index.databases.
 *
 * Who looks from another database can read no table here.  So the worker, which is
 * connected anyway, looks when a pass is over, and once a minute in one that goes on: how
 * many TTL indexes are in which state, by the same rules as the view ttl_index.indexes, and
 * how far behind the worst of them is.  It looks also where it is not to delete.
 *
 * The worker has answered the launcher before it looks, so that nothing depends on how that
 * ends.  Like the preparation of a sub-pass (prepare.c), each index is looked at in a
 * subtransaction, within the limits of a batch, and what crashed the server or had to be
 * canceled is left out.  There is a limit for the whole, too: behind it no lag is read.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/monitor/survey.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "definition/definition.h"
#include "definition/key.h"
#include "definition/option.h"
#include "due/due.h"
#include "monitor/monitor.h"
#include "monitor/pace.h"
#include "monitor/pass.h"
#include "monitor/schedule.h"
#include "monitor/survey.h"
#include "ttl_index.h"

/* In a pass that goes on, it looks this often. */
#define LOOK_EVERY_MS (60 * 1000)

/* After this time it reads no more lags. */
#define LAG_TIME_MS 1000

/* Of the lag of an index it looks at so many tuples of the table at most, in each place. */
#define LAG_TUPLES 500

/* How many indexes are looked at in one transaction. */
#define LOOK_SHARED 50

typedef struct Look
{
	TtlRun	   *run;
	TtlSurvey	found;
	TtlVisitor	visitor;
	TtlStateFile file;
	List	   *crashed;
	List	   *failing;
	List	   *indexes;
	Oid			indexrelid;		/* the one to look at */
	int64		lag;			/* result: microseconds; -1: unknown */
	TtlIndex	index;			/* result */
	bool		is_root;		/* result: it counts */
	bool		complete;		/* result: the worker need not leave */
} Look;

/* Reads what the states of all indexes depend on, and lists the indexes. */
static void
begin_work(void *arg)
{
	Look	   *look = arg;

	/* no code of users is called, so the launcher may end a wait for a lock */
	look->run->shared->limited = false;
	MemoryContextSwitchTo(look->run->context);
	ttl_state_file_read(&look->file);
	look->crashed = ttl_crash_skipped(&look->file);
	ttl_visitor_find(&look->visitor);
	look->failing = ttl_counters_failing();
	look->indexes = ttl_catalog_shown();
}

/* Has it crashed the server, or was it canceled not long ago? */
static bool
is_put_aside(const Look *look)
{
	return ttl_crash_reason(look->crashed, look->indexrelid) != NULL ||
		ttl_kept_is_put_off(look->run->kept, look->indexrelid, look->found.at);
}

/* Is there time to read one more lag? */
static bool
has_time(const Look *look)
{
	TimestampTz now = GetCurrentTimestamp();

	/* the clock may have gone back */
	return now >= look->found.at &&
		!TimestampDifferenceExceeds(look->found.at, now, LAG_TIME_MS);
}

/* How far the passes have got in an index: the rows before that place were seen. */
static bool
find_position(Oid indexrelid, void *arg, TtlScanPosition *position)
{
	const TtlKeptIndex *kept = ttl_kept_find(arg, indexrelid);
	int64		key;

	if (kept == NULL || !ttl_cursor_read_to(&kept->cursor, &key))
		return false;
	*position = ttl_index_scan_from(key);
	return true;
}

static void
index_work(void *arg)
{
	Look	   *look = arg;
	TtlLag		lag = {.at = look->found.at,.elevel = DEBUG1,.max_tuples = LAG_TUPLES,
	.find_position = find_position,.arg = look->run->kept};
	TimestampTz since;

	/* there can be thousands of these, and most belong to another one */
	if (get_rel_relispartition(look->indexrelid) &&
		ttl_catalog_root(look->indexrelid) != look->indexrelid)
		return;
	if (!ttl_catalog_describe(look->indexrelid, false, &look->index) ||
		look->index.root != look->indexrelid)
		return;
	/* the coordinator looks at a table that has copies, for all nodes */
	if (look->index.citus.replicated && ttl_citus_goes_elsewhere(&look->index.citus))
		return;
	look->is_root = true;
	ttl_shown_state_complete(&look->index, &look->visitor, &look->file, look->crashed,
							 look->failing);
	if (has_time(look) && ttl_due_since(look->indexrelid, &lag, &since))
		look->lag = lag.at - since;
}

static void
count_index(Look *look)
{
	TtlSurvey  *found = &look->found;
	TtlState	state = look->index.state;

	found->indexes++;
	if (state == TTL_PAUSED)
	{
		/* its rows stay because somebody wants it */
		found->paused++;
		return;
	}
	if (state >= TTL_FAILING)
		found->failing++;
	else if (state != TTL_ACTIVE)
		found->not_active++;
	if (look->lag < 0)
		found->lag_unknown++;
	found->worst_lag = Max(found->worst_lag, look->lag);
}

static void
look_at(Look *look)
{
	TtlRun	   *run = look->run;
	bool		timed_out;

	look->lag = -1;
	look->is_root = false;
	if (is_put_aside(look))
	{
		look->is_root = !get_rel_relispartition(look->indexrelid);
		look->index.state = TTL_CRASHED_SERVER;
	}
	else
	{
		ttl_crash_mark(look->indexrelid);
		if (ttl_work_run(run->driver, index_work, look, &timed_out) != NULL)
		{
			/* a pass says what is wrong, unless it is that the index is gone */
			look->is_root = !get_rel_relispartition(look->indexrelid) &&
				SearchSysCacheExists1(INDEXRELID, ObjectIdGetDatum(look->indexrelid));
			look->index.state = TTL_FAILING;
		}
		ttl_crash_mark(InvalidOid);
	}
	if (look->is_root)
		count_index(look);
}

/* Begins a transaction.  False if the worker is to leave: then there is none. */
static bool
begin(TtlRun *run)
{
	ttl_work_begin(run);
	/* who drops the extension has locked the counters */
	if (!ttl_work_is_unwanted(run) && ttl_counters_lock(false))
		return true;
	ttl_work_commit(run);
	return false;
}

/* Looks at all indexes.  False if the worker is to leave. */
static bool
look_at_all(Look *look)
{
	TtlRun	   *run = look->run;
	bool		timed_out;
	int			shared = 0;
	ListCell   *lc;

	if (!begin(run))
		return false;
	if (ttl_work_run(run->driver, begin_work, look, &timed_out) != NULL)
	{
		/*
		 * the objects of the extension are of another version: the pass says
		 * so
		 */
		ttl_work_commit(run);
		return false;
	}
	foreach(lc, look->indexes)
	{
		if (shared++ == LOOK_SHARED)
		{
			(void) ttl_work_try_commit(run, &timed_out);
			if (!begin(run))
				return false;
			shared = 0;
		}
		if (ttl_work_is_unwanted(run))
		{
			(void) ttl_work_try_commit(run, &timed_out);
			return false;
		}
		look->indexrelid = lfirst_oid(lc);
		look_at(look);
		ttl_work_forget(run);
	}

	/*
	 * nothing is to be kept, so that it does not matter if code of users has
	 * it fail
	 */
	(void) ttl_work_try_commit(run, &timed_out);
	return true;
}

static void
look_work(void *arg)
{
	Look	   *look = arg;

	look->complete = look_at_all(look);
}

static bool
has_extension(TtlRun *run)
{
	TtlFunctions functions;
	bool		result;

	ttl_work_begin(run);
	result = ttl_function_lookup(&functions);
	ttl_work_commit(run);
	return result;
}

/* Was the last look not long ago, in the same pass? */
static bool
is_recent(const TtlShared *shared, const TtlKept *kept, TimestampTz now)
{
	TimestampTz last = kept->survey.at;

	return shared->more && last >= kept->pass_at && now >= last &&
		!TimestampDifferenceExceeds(last, now, LOOK_EVERY_MS);
}

/* Notes how much is left of a pass that goes on, for as long as it does. */
static void
note_progress(const TtlShared *shared, TtlKept *kept, TimestampTz now)
{
	TtlProgress progress;

	kept->survey.left = kept->survey.time_left = -1;
	if (!shared->more)
		return;
	ttl_kept_progress(kept, InvalidOid, now, &progress);
	kept->survey.left = progress.left;
	kept->survey.time_left = ttl_pace_time_left(progress.left, progress.deleted,
												progress.paced, now - progress.begun);
}

/* Looks at the TTL indexes of the database, if it is time.  Called outside of a transaction. */
void
ttl_survey_run(const TtlDriver *driver, TtlShared *shared, TtlKept *kept)
{
	MemoryContext caller = CurrentMemoryContext;
	TimestampTz now = GetCurrentTimestamp();
	TtlRun		run;
	Look	   *look;

	note_progress(shared, kept, now);
	if (is_recent(shared, kept, now))
		return;
	ttl_work_init(&run, driver, shared, kept);
	look = palloc0(sizeof(Look));
	look->run = &run;
	look->found = (TtlSurvey)
	{
		.at = now,.worst_lag = -1
	};
	look->complete = true;
	if (has_extension(&run))
		ttl_pair_hold(look_work, look);
	if (look->complete)
	{
		look->found.pass_start = kept->survey.pass_start;
		look->found.pass_end = kept->survey.pass_end;
		look->found.deleted = kept->survey.deleted;
		look->found.partitions = kept->survey.partitions;
		look->found.left = kept->survey.left;
		look->found.time_left = kept->survey.time_left;
		kept->survey = look->found;
	}
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(run.context);
}
