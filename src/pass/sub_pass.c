/*-------------------------------------------------------------------------
 *
 * sub_pass.c
 *	  One sub-pass over the TTL indexes of a database.
 *
 * A sub-pass finds what there is to do (prepare.c), and visits one index after another
 * (visit.c), in the order of schedule.c.
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

/* At the end of a pass, locked tables are tried this often, at this interval. */
#define BUSY_TRIES 10
#define BUSY_WAIT_MS 100

/*
 * When nothing else remains in the pass, visits again what was locked by others, for about
 * a second: most locks on a table are held only briefly.
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

			if (!target->busy || run->stop ||
				ttl_kept_is_left_out(run->kept, target->root, run->at))
				continue;
			/* partitions wait for locks by themselves, so they are not tried again */
			target->partitions = NIL;
			ttl_visit_target(run, sub, target);
		}
	}
}

/* Shows that the process is between two visits. */
static void
show_pass(const TtlRun *run, TimestampTz begun)
{
	TtlProgress progress;

	ttl_kept_progress(run->kept, InvalidOid, &progress);
	ttl_progress_pass(&progress, begun);
}

/*
 * Runs one sub-pass over the TTL indexes that the worker was told.  Sets shared->more if
 * another one is needed before the pass is over.  Begins with the index that the last one
 * did not reach, or the next one in the order of OIDs.  Called outside of a transaction.
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
