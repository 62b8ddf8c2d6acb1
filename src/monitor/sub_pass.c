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
 * A worker (worker.c) calls it for the TTL indexes that it was told.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/monitor/sub_pass.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "monitor/monitor.h"
#include "monitor/pass.h"
#include "monitor/schedule.h"
#include "monitor/visit.h"
#include "ttl_index.h"

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

/* Shows that the process is at no index of the pass. */
static void
show_pass(const TtlRun *run, TimestampTz begun)
{
	TtlProgress progress;

	ttl_kept_progress(run->kept, InvalidOid, GetCurrentTimestamp(), &progress);
	ttl_progress_pass(&progress, begun);
}

/*
 * Runs one sub-pass over the TTL indexes that the worker was told, beginning with one of
 * them, and sets shared->more if another one is needed before the pass is over.  Called
 * outside of a transaction.
 */
void
ttl_sub_pass_run(TtlRun *run, Oid *resume_at)
{
	TtlSubPass	sub;
	TtlLimits	limits = ttl_settings_limits();

	run->shared->more = false;
	show_pass(run, GetCurrentTimestamp());
	ttl_prepare_targets(run, run->roots);
	show_pass(run, run->at);

	ttl_schedule_begin(&sub, &limits, list_length(run->targets),
					   first_target(run->targets, *resume_at),
					   GetCurrentTimestamp());
	while (!run->stop && ttl_schedule_next(&sub, GetCurrentTimestamp()))
	{
		ttl_visit_target(run, &sub, list_nth(run->targets, sub.current));
		show_pass(run, run->at);
	}
	visit_busy(run, &sub);
	*resume_at = sub.cut ? target_root(run->targets, sub.current) : InvalidOid;
	run->shared->more = sub.more && !run->stop;
}
