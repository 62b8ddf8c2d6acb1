/*-------------------------------------------------------------------------
 *
 * prepare.c
 *	  What there is to do at each TTL index.
 *
 * A worker prepares its TTL indexes at the beginning of a sub-pass: it lists the indexes
 * that hold their rows, and the partitions to make or drop, if these belong to the owner as
 * which it is connected.  Each is prepared in a subtransaction, so that an error is that of
 * one index.  The survey uses parts of this.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/pass/prepare.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/index.h"
#include "miscadmin.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "definition/definition.h"
#include "definition/key.h"
#include "definition/option.h"
#include "partition/partition.h"
#include "pass/pass.h"
#include "shared/state_file.h"
#include "state/state.h"
#include "stats/stats.h"
#include "ttl_index.h"

/* How many indexes are prepared in one transaction. */
#define PREPARE_SHARED 50

/* Does a table or index belong to the owner as which the worker is connected? */
bool
ttl_prepare_is_own(Oid relid)
{
	return ttl_owner_of(relid) == GetUserId();
}

/*
 * Lists the partitions of a time series to make or drop, in the memory of the run: all in a
 * survey, and in a worker those that its owner may make or drop.
 */
List *
ttl_prepare_partitions(TtlRun *run, const TtlIndex *index)
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

		if (!is_survey && !ttl_prepare_is_own(OidIsValid(relid) ? relid : index->relid))
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
		partitions = ttl_prepare_partitions(run, &index);

	MemoryContextSwitchTo(run->context);
	target = palloc0(sizeof(TtlTarget));
	target->root = root;
	target->relid = active ? index.relid : InvalidOid;
	foreach(lc, ttl_citus_deletes_elsewhere(&index.citus) ? NIL : leaves)
	{
		if (ttl_prepare_is_own(lfirst_oid(lc)))
			target->leaves = lappend_oid(target->leaves, lfirst_oid(lc));
		else
			target->others = lappend_oid(target->others, lfirst_oid(lc));
	}
	target->partitions = partitions;
	target->active = active;
	work->target = target;
	MemoryContextSwitchTo(run->batch_context);
}

/* Notes, and counts, that an index could not be prepared. */
void
ttl_prepare_failed(TtlRun *run, Oid root, const ErrorData *edata, bool timed_out)
{
	TtlCount	count = {.indexrelid = root};

	if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(root)))
		return;
	ttl_report_error(run, root, root, edata);
	(void) ttl_kept_failed(run->kept, root, true);
	if (timed_out)
		ttl_kept_canceled(run->kept, root, run->at);
	count.relid = IndexGetRelation(root, true);
	ttl_tally_error(&count, run->shared->owner, edata);
	ttl_tally_add(run, &count);
	run->kept->counted = true;
}

/* Is deletion held, also by this reading of the clock?  Reads the state file. */
bool
ttl_prepare_is_held(TtlRun *run, TtlStateFile *file)
{
	ttl_hold_check_clock(file, run->at, false);
	run->shared->held = ttl_hold_is_held(file,
										 OidIsValid(run->common->caller) ? ERROR : WARNING,
										 &run->kept->reported);
	return run->shared->held;
}

static void
check_work(void *arg)
{
	TtlRun	   *run = arg;

	/* no code of users is called: the launcher may end a wait for a lock */
	run->shared->limited = false;
	ttl_counters_check();
}

/* Do the objects of the extension match the library?  If not, a session gets the error. */
bool
ttl_prepare_objects_fit(TtlRun *run)
{
	bool		timed_out;
	ErrorData  *edata = ttl_work_run(check_work, run, &timed_out);

	if (edata == NULL)
	{
		run->kept->reported.at = 0;
		return true;
	}
	if (OidIsValid(run->common->caller))
		ReThrowError(edata);
	ttl_report_no_pass(run, edata);
	run->stop = true;
	return false;
}

/* Reads the clock, and finds what there is to do at each of the TTL indexes. */
void
ttl_prepare_targets(TtlRun *run, const List *roots)
{
	TtlFunctions functions;
	TtlStateFile file;
	int			shared = 0;
	bool		timed_out;
	ListCell   *lc;

	run->targets = NIL;
	ttl_work_begin(run);
	run->at = GetCurrentTimestamp();
	run->stop = ttl_prepare_is_held(run, &file) || !ttl_function_lookup(&functions);
	/* a clock that was set back must not keep the pass going */
	run->kept->pass_at = Min(run->kept->pass_at, run->at);
	foreach(lc, roots)
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
			ttl_prepare_failed(run, work.root, edata, timed_out);
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
