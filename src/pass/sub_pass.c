/*-------------------------------------------------------------------------
 *
 * sub_pass.c
 *	  One sub-pass over the TTL indexes of a worker.
 *
 * A sub-pass first prepares each index: it lists the indexes that hold its rows, and the
 * partitions to make or drop, if these belong to the owner as which the worker is connected.
 * Each is prepared in a subtransaction, so that an error is that of one index.  Then it
 * visits one index after another (visit.c), in the order of schedule.c.
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

#include "definition/definition.h"
#include "partition/partition.h"
#include "pass/pass.h"
#include "pass/schedule.h"
#include "shared/state_file.h"
#include "state/state.h"
#include "ttl_index.h"

/* How many indexes are prepared in one transaction. */
#define PREPARE_SHARED 50

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

/* The arguments and the result of the preparation of an index. */
typedef struct PrepareWork
{
	TtlRun	   *run;
	Oid			root;
	TtlTarget  *target;			/* result */
} PrepareWork;

/* Finds what a visit to a TTL index has to do. */
static void
target_work(void *arg)
{
	PrepareWork *work = arg;
	TtlRun	   *run = work->run;
	Oid			root = work->root;
	List	   *leaves = ttl_leaves_by_row(root);
	List	   *partitions = NIL;
	TtlIndex	index;
	bool		active;
	TtlTarget  *target;
	ListCell   *lc;

	active = ttl_state_describe(root, false, &index) &&
		(index.state == TTL_ACTIVE || index.state == TTL_TABLE_LOCKED);
	if (active && index.state == TTL_ACTIVE)
		partitions = ttl_sub_pass_partitions(run, &index);

	MemoryContextSwitchTo(run->context);
	target = palloc0(sizeof(TtlTarget));
	target->root = root;
	target->relid = active ? index.relid : InvalidOid;
	foreach(lc, ttl_citus_deletes_elsewhere(&index.citus) ? NIL : leaves)
	{
		if (ttl_owner_of(lfirst_oid(lc)) == GetUserId())
			target->leaves = lappend_oid(target->leaves, lfirst_oid(lc));
		else
			target->others = lappend_oid(target->others, lfirst_oid(lc));
	}
	target->partitions = partitions;
	target->active = active;
	work->target = target;
	MemoryContextSwitchTo(run->batch_context);
}

/* Reads the clock, and finds what there is to do at each of the TTL indexes. */
static void
prepare_targets(TtlRun *run)
{
	TtlFunctions functions;
	TtlStateFile file;
	int			shared = 0;
	bool		timed_out;
	ListCell   *lc;

	run->targets = NIL;
	ttl_work_begin(run);
	run->at = GetCurrentTimestamp();
	ttl_hold_check_clock(&file, run->at, false);
	run->stop = ttl_work_is_held(run, &file) || !ttl_function_lookup(&functions);
	/* a clock that was set back must not keep the pass going */
	run->kept->pass_at = Min(run->kept->pass_at, run->at);
	foreach(lc, run->roots)
	{
		PrepareWork work = {.run = run,.root = lfirst_oid(lc)};
		ErrorData  *edata;

		if (ttl_work_must_stop(run))
			break;
		if (ttl_kept_is_left_out(run->kept, work.root, run->at))
			continue;

		run->shared->current_index = work.root;
		ttl_crash_mark(work.root);
		edata = ttl_work_retry(target_work, &work, &timed_out);
		ttl_crash_mark(InvalidOid);
		run->shared->current_index = InvalidOid;
		MemoryContextSwitchTo(run->context);
		if (edata != NULL)
			ttl_tally_failure(run, work.root, edata, timed_out);
		else if (work.target->leaves != NIL || work.target->partitions != NIL)
			run->targets = lappend(run->targets, work.target);
		ttl_work_forget(run);

		if (++shared % PREPARE_SHARED == 0)
		{
			(void) ttl_work_try_commit(run, &timed_out);
			ttl_work_begin(run);
		}
	}
	(void) ttl_work_try_commit(run, &timed_out);
}

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
 * Runs one sub-pass over the TTL indexes of the worker.  Sets shared->more if another one is
 * needed before the pass is over.  Begins with the index that the last one did not reach, or
 * the next one in the order of OIDs.  Called outside of a transaction.
 */
void
ttl_sub_pass_run(TtlRun *run, Oid *resume_at)
{
	TtlSubPass	sub;
	TtlLimits	limits = ttl_settings_limits();
	int			first = 0;

	run->shared->more = false;
	show_pass(run, GetCurrentTimestamp());
	prepare_targets(run);
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
