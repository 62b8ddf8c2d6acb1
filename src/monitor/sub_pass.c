/*-------------------------------------------------------------------------
 *
 * sub_pass.c
 *	  One sub-pass over the TTL indexes of a database.
 *
 * Here the schedule (schedule.c) meets what it decides about.  The way of a batch goes
 * down one file a level: a sub-pass finds out what there is to do (prepare.c), visits
 * one index after another (visit.c), each batch of a visit is a piece of work in a
 * transaction (work.c), which deletes rows (expire/batch.c) or a partition
 * (partition/drop.c) and adds to the counters (counters.c).
 *
 * The monitor's worker and run_pass() both call it; they differ in how a transaction
 * is ended, which is all that TtlDriver says.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/monitor/sub_pass.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "monitor/monitor.h"
#include "monitor/pass.h"
#include "monitor/schedule.h"
#include "monitor/visit.h"
#include "ttl_index.h"

/* Passes in which nothing happened are written to the counters this often, or less. */
#define IDLE_FLUSH_MS (60 * 1000)

/* At the end of a pass, locked tables are tried so often, at such intervals. */
#define BUSY_TRIES 10
#define BUSY_WAIT_MS 100

static Oid
target_root(const List *targets, int position)
{
	return ((TtlTarget *) list_nth(targets, position))->root;
}

/*
 * Finds the position of the index that the previous sub-pass did not reach, or of the
 * next one in the order of OIDs, should that be gone.  The position behind the last one
 * stands for the first.
 */
static int
first_target(const List *targets, Oid resume_at)
{
	int			position = 0;

	while (position < list_length(targets) &&
		   target_root(targets, position) < resume_at)
		position++;
	return position;
}

/*
 * Visits again what was locked by others, when nothing else remains in the pass.  Most
 * locks on a table are held only briefly, as by a vacuum that truncates it, so this goes
 * on for about a second.
 */
static void
visit_busy(TtlRun *run, TtlSubPass *sub)
{
	for (int i = 0; i < BUSY_TRIES && sub->busy && !sub->more; i++)
	{
		ListCell   *lc;

		if (!ttl_work_wait(run, TTL_WAIT_LOCKS, BUSY_WAIT_MS))
			return;
		sub->busy = false;
		foreach(lc, run->targets)
		{
			TtlTarget  *target = lfirst(lc);

			if (!target->busy || run->stop || ttl_outcome_is_skipped(run, target->root))
				continue;
			/* partitions had their tries, which wait for locks by themselves */
			target->partitions = NIL;
			ttl_visit_target(run, sub, target);
		}
	}
}

/* Notes how many indexes the pass visits: an index may come or go before it is over. */
static void
count_indexes(TtlRun *run)
{
	TtlPassSum *sum = &run->kept->sum;
	int			active = 0;
	ListCell   *lc;

	foreach(lc, run->targets)
		active += ((TtlTarget *) lfirst(lc))->active ? 1 : 0;
	sum->indexes = Max(sum->indexes, active);
	sum->inactive = Max(sum->inactive, list_length(run->targets) - active);
	sum->others = Max(sum->others, run->others);
}

/*
 * Would the counters be older than a minute if this sub-pass was written with the next one
 * only?  What is known of a database for the first time is written at once.
 */
static bool
must_flush(const TtlKept *kept, TimestampTz now)
{
	int64		sleep_ms = Min(ttl_monitor_sleep * INT64CONST(1000), IDLE_FLUSH_MS);

	/* the clock may have gone back */
	return now < kept->last_flush ||
		TimestampDifferenceExceeds(kept->last_flush, now,
								   IDLE_FLUSH_MS - (int) sleep_ms);
}

/* The arguments and the result of a fold. */
typedef struct FoldWork
{
	int64		rows;
	bool		new_hour;
	bool		folded;
} FoldWork;

static void
fold_work(void *arg)
{
	FoldWork   *work = arg;

	work->folded = ttl_counters_fold(work->rows, work->new_hour, true);
}

static void
trim_work(void *arg)
{
	ttl_history_trim(GetCurrentTimestamp());
}

/* Reports what keeps the history from being written, but for room that there may be later. */
static void
report_history(const ErrorData *edata)
{
	if (edata != NULL &&
		ERRCODE_TO_CATEGORY(edata->sqlerrcode) != ERRCODE_INSUFFICIENT_RESOURCES)
		ereport(WARNING,
				(errcode(edata->sqlerrcode),
				 errmsg("could not write ttl_index.history: %s", edata->message)));
}

/*
 * Folds the counters where it is time to.  On a full disk there may be no room for the
 * hours that are over: these stay in the counters until the next time, and no row is
 * missing in any view.  Those that are too long ago go by themselves: all of them are read
 * for that, which must not cost the others their turn where it takes too long.
 */
static void
fold_counters(TtlRun *run)
{
	TtlKept    *kept = run->kept;
	TimestampTz hour = ttl_history_hour(GetCurrentTimestamp());
	FoldWork	work = {.rows = kept->unfolded_rows,.new_hour = hour != kept->folded_hour};
	bool		timed_out;
	ErrorData  *edata = ttl_work_run(run->driver, fold_work, &work, &timed_out);

	report_history(edata);
	if (edata != NULL)
		work.folded = ttl_counters_fold(work.rows, work.new_hour, false);
	else if (work.folded)
		report_history(ttl_work_run(run->driver, trim_work, NULL, &timed_out));
	if (!work.folded)
		return;
	kept->unfolded_rows = 0;
	kept->folded_hour = hour;
}

/* Adds a sub-pass to those that are not counted yet. */
static void
add_sub_pass(TtlRun *run)
{
	run->kept->idle_sub_passes++;
	run->kept->lag_pauses += run->shared->lag_pauses;
	run->shared->lag_pauses = 0;
	if (!run->shared->more)
		run->kept->idle_passes++;
}

/*
 * Counts the sub-pass: at once if this pass wrote anything, else once a minute.  One over
 * no index does not count, but that a session serves the database is remembered.
 */
static void
count_sub_pass(TtlRun *run)
{
	TtlShared  *shared = run->shared;
	TtlKept    *kept = run->kept;
	TimestampTz now = GetCurrentTimestamp();
	TtlCount	count = {0};

	if (run->targets != NIL || hash_get_num_entries(kept->indexes) > 0)
	{
		add_sub_pass(run);
		count.passes = kept->idle_passes;
		count.sub_passes = kept->idle_sub_passes;
		count.last_pass_start = kept->pass_at;
		count.last_pass_end = shared->more ? 0 : now;
		count.last_cutoff = run->at;
		count.lag_pauses = kept->lag_pauses;
	}
	else if (run->driver->is_worker)
		return;
	if (run->driver->is_worker && !kept->counted && !must_flush(kept, now))
		return;
	if (!run->driver->is_worker)
	{
		count.relid = run->driver->role;
		count.last_call = now;
	}
	ttl_work_begin(run);
	if (!ttl_counters_lock(!run->driver->is_worker))
	{
		/* the extension has just been dropped, or is about to be */
		ttl_work_commit(run);
		return;
	}
	ttl_counters_add(&count);
	kept->unfolded_rows++;
	fold_counters(run);
	ttl_work_commit(run);
	kept->idle_passes = kept->idle_sub_passes = kept->lag_pauses = 0;
	kept->last_flush = now;
	if (!shared->more)
		kept->counted = false;
}

/* Shows that the process is at no index of the pass. */
static void
show_pass(const TtlRun *run, TimestampTz begun)
{
	TtlProgress progress;

	ttl_kept_progress(run->kept, InvalidOid, GetCurrentTimestamp(), &progress);
	ttl_progress_pass(&progress, begun);
}

/*
 * Runs one sub-pass, and sets shared->more if another one is needed before the pass is
 * over.  A worker calls it outside of a transaction.
 */
void
ttl_sub_pass_run(const TtlDriver *driver, TtlShared *shared, TtlKept *kept)
{
	MemoryContext caller = CurrentMemoryContext;
	TtlRun		run;
	TtlSubPass	sub;
	TtlLimits	limits = ttl_settings_limits();

	ttl_work_init(&run, driver, shared, kept);
	shared->more = false;
	if (shared->told.begins)
		kept->pass_at = 0;
	show_pass(&run, GetCurrentTimestamp());
	ttl_prepare_targets(&run);
	/* 0 where it could not begin */
	if (kept->pass_at != 0)
		kept->survey.pass_start = kept->pass_at;
	show_pass(&run, run.at);

	ttl_schedule_begin(&sub, &limits, list_length(run.targets),
					   first_target(run.targets, kept->resume_at),
					   GetCurrentTimestamp());
	while (!run.stop && ttl_schedule_next(&sub, GetCurrentTimestamp()))
	{
		ttl_visit_target(&run, &sub, list_nth(run.targets, sub.current));
		show_pass(&run, run.at);
	}
	visit_busy(&run, &sub);
	kept->resume_at = sub.cut ? target_root(run.targets, sub.current) : InvalidOid;
	shared->more = sub.more && !run.stop;
	count_indexes(&run);
	if (!run.stop)
		count_sub_pass(&run);
	if (!shared->more && !run.stop)
	{
		kept->survey.pass_end = GetCurrentTimestamp();
		ttl_report_pass(&run);
	}
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(run.context);
}
