/*-------------------------------------------------------------------------
 *
 * sub_pass.c
 *	  One sub-pass over the TTL indexes of a database.
 *
 * A sub-pass finds what there is to do (prepare.c), and visits one index after another
 * (visit.c) as the schedule says (schedule.c).  Each batch of a visit is a piece of work in
 * a transaction (work.c), which deletes rows (expire/batch.c) or a partition
 * (partition/drop.c) and adds to the counters (counters.c).
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/pass/sub_pass.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/timestamp.h"

#include "pass/pass.h"
#include "pass/schedule.h"
#include "ttl_index.h"

/* At the end of a pass, locked tables are tried so often, at such intervals. */
#define BUSY_TRIES 10
#define BUSY_WAIT_MS 100

/*
 * Visits again what was locked by others, when nothing else remains in the pass.  Most
 * locks on a table are held only briefly, so this continues for about a second.
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

	ttl_kept_progress(run->kept, InvalidOid, &progress);
	ttl_progress_pass(&progress, begun);
}

/*
 * Runs one sub-pass over the TTL indexes that the worker was told, and sets shared->more if
 * another one is needed before the pass is over.  It begins with the index that the last
 * one did not reach, or the next one in the order of OIDs.  Called outside of a
 * transaction.
 */
void
ttl_sub_pass_run(TtlRun *run, Oid *resume_at)
{
	TtlSubPass	sub;
	TtlLimits	limits = ttl_settings_limits();
	int			first = 0;

	run->shared->more = false;
	show_pass(run, GetCurrentTimestamp());
	ttl_prepare_targets(run, run->roots);
	show_pass(run, run->at);

	while (first < list_length(run->targets) &&
		   ((TtlTarget *) list_nth(run->targets, first))->root < *resume_at)
		first++;
	ttl_schedule_begin(&sub, &limits, list_length(run->targets), first, GetCurrentTimestamp());
	while (!run->stop && ttl_schedule_next(&sub, GetCurrentTimestamp()))
	{
		ttl_visit_target(run, &sub, list_nth(run->targets, sub.current));
		show_pass(run, run->at);
	}
	visit_busy(run, &sub);
	*resume_at = InvalidOid;
	if (sub.cut)
		*resume_at = ((TtlTarget *) list_nth(run->targets, sub.current))->root;
	run->shared->more = sub.more && !run->stop;
}
