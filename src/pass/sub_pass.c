/*-------------------------------------------------------------------------
 *
 * sub_pass.c
 *	  One sub-pass over the TTL indexes of a worker.
 *
 * A sub-pass reads the clock and visits one TTL index after another (visit.c), in the order
 * of schedule.c.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/pass/sub_pass.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/timestamp.h"

#include "partition/partition.h"
#include "pass/pass.h"
#include "shared/state_file.h"
#include "state/state.h"
#include "ttl_index.h"

/* At the end of a pass, locked tables are tried this often, at this interval. */
#define BUSY_TRIES 10
#define BUSY_WAIT_MS 100

/*
 * Lists the partitions of a time series to make or drop, in the memory of the run: all in a
 * survey, and in a worker those that its owner may make or drop.
 */
List *
ttl_sub_pass_partitions(TtlRun *run, const TtlIndex *index)
{
	bool		is_survey = !OidIsValid(run->shared->owner);
	List	   *found;
	List	   *partitions = NIL;
	ListCell   *lc;

	if (!ttl_citus_keeps_partitions(&index->citus))
		return NIL;
	found = list_concat(ttl_make_wanted(index, run->at), ttl_drop_due(index, run->at));
	MemoryContextSwitchTo(run->context);
	foreach(lc, found)
	{
		TtlPartition *partition;
		Oid			relid = ((TtlPartition *) lfirst(lc))->relid;

		if (!is_survey &&
			ttl_owner_of(OidIsValid(relid) ? relid : index->relid) != GetUserId())
			continue;
		partition = palloc(sizeof(TtlPartition));
		*partition = *(TtlPartition *) lfirst(lc);
		partitions = lappend(partitions, partition);
	}
	MemoryContextSwitchTo(run->batch_context);
	return partitions;
}

/* Shows that the process is between two visits. */
static void
show_pass(const TtlRun *run)
{
	TtlProgress progress;

	ttl_kept_progress(run->kept, InvalidOid, &progress);
	ttl_progress_pass(&progress, run->at);
}

/*
 * Runs one sub-pass over the TTL indexes of the worker.  Sets shared->more if another one is
 * needed before the pass is over.  Begins with the index that the last one did not reach, or
 * the next one in the order of OIDs.  Called outside of a transaction.
 */
void
ttl_sub_pass_run(TtlRun *run, Oid *resume_at)
{
	TtlSubPass	sub;
	TtlLimits	limits = ttl_settings_limits();
	TtlStateFile file;
	List	   *busy = NIL;
	int			first = 0;

	run->shared->more = false;
	run->at = GetCurrentTimestamp();
	ttl_hold_check_clock(&file, run->at, false);
	run->stop = ttl_work_is_held(run, &file);
	/* a clock that was set back must not keep the pass going */
	run->kept->pass_at = Min(run->kept->pass_at, run->at);
	show_pass(run);

	while (first < list_length(run->roots) && list_nth_oid(run->roots, first) < *resume_at)
		first++;
	ttl_schedule_begin(&sub, &limits, list_length(run->roots), first, GetCurrentTimestamp());
	while (!run->stop && ttl_schedule_next(&sub, GetCurrentTimestamp()))
	{
		Oid			root = list_nth_oid(run->roots, sub.current);

		if (ttl_visit_index(run, &sub, root, true))
			busy = lappend_oid(busy, root);
		show_pass(run);
	}

	/*
	 * When nothing else remains in the pass, visit again what was locked by
	 * others, for about a second: most locks on a table are held only
	 * briefly.
	 */
	for (int i = 0; i < BUSY_TRIES && busy != NIL && !sub.more; i++)
	{
		ListCell   *lc;

		if (!ttl_work_wait(run, TTL_WAIT_LOCKS, BUSY_WAIT_MS))
			break;
		foreach(lc, busy)
		{
			/* partitions wait for locks by themselves, so they are not tried again */
			if (!run->stop && !ttl_visit_index(run, &sub, lfirst_oid(lc), false))
				busy = foreach_delete_current(busy, lc);
		}
	}
	*resume_at = sub.cut ? list_nth_oid(run->roots, sub.current) : InvalidOid;
	run->shared->more = sub.more && !run->stop;
}
