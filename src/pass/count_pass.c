/*-------------------------------------------------------------------------
 *
 * count_pass.c
 *	  Counting passes and sub-passes, and folding the counters.
 *
 * The survey does what needs rights beyond an owner's: it counts passes and sub-passes of
 * all workers, and folds the rows that they have added (counters.c).
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/pass/count_pass.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "stats/stats.h"
#include "pass/pass.h"
#include "ttl_index.h"

/* Passes in which nothing happened are written to the counters this often, or less. */
#define IDLE_FLUSH_MS (60 * 1000)

typedef struct FoldWork
{
	int64		rows;
	bool		new_hour;
	bool		folded;			/* the result */
} FoldWork;

static void
fold_work(void *arg)
{
	FoldWork   *work = arg;

	work->folded = ttl_counters_fold(work->rows, work->new_hour);
}

static void
trim_work(void *arg)
{
	ttl_history_trim(GetCurrentTimestamp());
}

/*
 * Folds the counters if it is time to.  If the disk is full, the next survey tries again.
 * Trimming the history is a piece of work of its own, because it reads all of that table.
 */
static void
fold_counters(TtlRun *run)
{
	TtlPassState    *kept = run->kept;
	TimestampTz hour = ttl_history_hour(GetCurrentTimestamp());
	FoldWork	work = {.rows = kept->unfolded_rows,.new_hour = hour != kept->folded_hour};
	bool		timed_out;
	ErrorData  *edata = ttl_work_run(fold_work, &work, &timed_out);

	if (edata == NULL && work.folded)
	{
		kept->unfolded_rows = 0;
		kept->folded_hour = hour;
		edata = ttl_work_run(trim_work, NULL, &timed_out);
	}
	if (edata != NULL &&
		ERRCODE_TO_CATEGORY(edata->sqlerrcode) != ERRCODE_INSUFFICIENT_RESOURCES)
		ereport(WARNING,
				(errcode(edata->sqlerrcode),
				 errmsg("could not write ttl_index.history: %s", edata->message)));
}

/*
 * Counts the sub-passes since the last survey, and the pass if it has ended: at once if
 * this pass wrote anything, else once a minute.  A pass over no index does not count, but
 * that a session serves the database is remembered.
 */
void
ttl_count_pass(TtlRun *run, bool has_indexes)
{
	TtlShared  *shared = run->shared;
	TtlPassState    *kept = run->kept;
	Oid			caller = run->common->caller;
	int			sleep_ms = Min(ttl_monitor_sleep * INT64CONST(1000), IDLE_FLUSH_MS);
	TimestampTz now = GetCurrentTimestamp();
	TtlCount	count = {0};

	/* a sub-pass is counted when it has ended */
	if (shared->begins && shared->more)
		return;
	if (has_indexes)
	{
		kept->idle_sub_passes += shared->begins ? 1 : shared->rounds;
		kept->idle_passes += shared->more ? 0 : 1;
		count.passes = kept->idle_passes;
		count.sub_passes = kept->idle_sub_passes;
		count.last_pass_start = kept->pass_at;
		count.last_pass_end = shared->more ? 0 : now;
		count.last_cutoff = run->at;
		count.lag_pauses = kept->lag_pauses;
	}
	else if (!OidIsValid(caller))
		return;
	/* if the next sub-pass is in time, an idle one waits for it; the clock may have gone back */
	if (!OidIsValid(caller) && !kept->counted && now >= kept->last_flush &&
		!TimestampDifferenceExceeds(kept->last_flush, now, IDLE_FLUSH_MS - sleep_ms))
		return;
	if (OidIsValid(caller))
	{
		count.relid = caller;
		count.last_call = now;
	}
	ttl_work_begin(run);
	if (!ttl_counters_lock(OidIsValid(caller)))
	{
		/* the extension has just been dropped, or will be */
		ttl_work_commit(run);
		return;
	}
	ttl_outcome_add(run, &count);
	kept->unfolded_rows++;
	fold_counters(run);
	ttl_work_commit(run);
	kept->idle_passes = kept->idle_sub_passes = kept->lag_pauses = 0;
	kept->last_flush = now;
	if (!shared->more)
		kept->counted = false;
}
