/*-------------------------------------------------------------------------
 *
 * visit.c
 *	  One visit to a TTL index: whole partitions, and batches of its leaves.
 *
 * A visit first finds what there is to do, in a subtransaction, so that an error is that of
 * this index.  Then it makes and drops partitions of a time series, each in a transaction of
 * its own, without a look at their rows.  At last it deletes rows from the leaves, the
 * indexes that hold them, batch by batch (attempt.c), until schedule.c says that its limits
 * are reached.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/pass/visit.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "catalog/index.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/timestamp.h"

#include "definition/definition.h"
#include "expire/expire.h"
#include "pass/pass.h"
#include "partition/partition.h"
#include "state/state.h"
#include "stats/stats.h"
#include "ttl_index.h"

/* After so many partitions that were locked, and not by themselves, a visit tries no more. */
#define MAX_BUSY_PARTITIONS 3

/* What was due is estimated after so many deleted rows for each index that holds them. */
#define ESTIMATE_ROWS 1000

/* A TTL index, and what there is to do. */
typedef struct Target
{
	TtlRun	   *run;
	Oid			root;
	bool		with_partitions;
	/* results of prepare_work() */
	Oid			relid;			/* its table, if the index is active */
	List	   *leaves;			/* OIDs of indexes that hold its rows, in the
								 * order of the partitions */
	List	   *others;			/* those that belong to other owners */
	List	   *partitions;		/* TtlPartition, to make or to drop */
	bool		active;			/* or locked at that time */
	/* result of estimate_work() */
	double		due;			/* rows; -1: not known */
} Target;

/* Finds what there is to do, as far as it belongs to the owner as which the worker is connected. */
static void
prepare_work(void *arg)
{
	Target	   *target = arg;
	List	   *leaves = ttl_leaves_by_row(target->root);
	TtlIndex	index;
	ListCell   *lc;

	target->active = ttl_state_describe(target->root, false, &index) &&
		(index.state == TTL_ACTIVE || index.state == TTL_TABLE_LOCKED);
	target->relid = target->active ? index.relid : InvalidOid;
	target->partitions = NIL;
	if (target->active && index.state == TTL_ACTIVE && target->with_partitions)
		target->partitions = ttl_sub_pass_partitions(target->run, &index);

	MemoryContextSwitchTo(target->run->context);
	target->leaves = target->others = NIL;
	foreach(lc, ttl_citus_deletes_elsewhere(&index.citus) ? NIL : leaves)
	{
		if (ttl_owner_of(lfirst_oid(lc)) == GetUserId())
			target->leaves = lappend_oid(target->leaves, lfirst_oid(lc));
		else
			target->others = lappend_oid(target->others, lfirst_oid(lc));
	}
	MemoryContextSwitchTo(target->run->batch_context);
}

/* Prepares a visit in a transaction of its own.  Returns false if there is nothing to do. */
static bool
prepare(TtlRun *run, Target *target)
{
	ErrorData  *edata = NULL;
	bool		timed_out;

	ttl_work_begin(run);
	if (!ttl_work_must_stop(run))
	{
		edata = ttl_work_retry(prepare_work, target, &timed_out);
		if (edata != NULL)
			ttl_tally_failure(run, target->root, edata, timed_out);
	}
	(void) ttl_work_try_commit(run, &timed_out);
	return !run->stop && edata == NULL &&
		(target->leaves != NIL || target->partitions != NIL);
}

/* The arguments and the result of making or dropping one partition. */
typedef struct PartitionWork
{
	TtlRun	   *run;
	const Target *target;
	const TtlPartition *partition;
	TtlVisit   *visit;
	Oid			key;			/* the partition, or the table if one is made */
	bool		first_error;	/* errors are counted once in a visit */
	TimestampTz begun;
	TtlBatch	batch;
	bool		failed;
	bool		counted;
} PartitionWork;

static void
partition_work(void *arg)
{
	PartitionWork *work = arg;
	Oid			root = work->target->root;
	Oid			partition = work->partition->relid;
	Oid			relid = OidIsValid(partition) ? partition : IndexGetRelation(root, true);

	/* it may have been dropped, or have another owner now */
	if (!OidIsValid(relid) || ttl_owner_of(relid) != GetUserId())
		return;
	if (OidIsValid(partition))
		ttl_drop_partition(root, partition, work->run->at, &work->batch);
	else
		ttl_make_partition(root, work->partition, &work->batch);
}

/* Notes what became of a partition, and counts it.  Called once more if the commit fails. */
static void
count_partition(void *arg, ErrorData *edata, bool timed_out)
{
	PartitionWork *work = arg;
	TtlRun	   *run = work->run;
	Oid			root = work->target->root;
	TtlBatch   *batch = &work->batch;
	TtlResumeState *kept = ttl_kept_find(run->kept, work->key);

	if (edata != NULL)
	{
		memset(batch, 0, sizeof(*batch));
		batch->busy = ttl_error_is_of_lock(edata);
	}
	if (batch->busy)
		batch->skipped_locked = 1;
	work->failed = edata != NULL && !batch->busy;
	if (work->failed)
		ttl_report_error(run, root, root, edata);
	if (edata != NULL && timed_out)
	{
		ttl_kept_canceled(run->kept, work->key, run->at);
		work->visit->left_out = true;
	}
	else if (kept != NULL)
		kept->delay = 0;
	work->counted = !run->stop &&
		ttl_tally_batch(run, root, work->visit, batch, false,
						work->failed && work->first_error ? edata : NULL, work->begun);
}

/*
 * Makes or drops partitions of a time series, for the time of a visit at most.  Returns
 * whether some of them remain for the next sub-pass.  A partition that is locked waits for
 * the next pass, because the lock may be held for hours, and so does one that could not be
 * dropped.
 */
static bool
visit_partitions(TtlRun *run, const Target *target, TtlVisit *visit, bool makes)
{
	TimestampTz begun = GetCurrentTimestamp();
	int			failed = 0;
	int			locked = 0;
	bool		progress = false;
	ListCell   *lc;

	foreach(lc, target->partitions)
	{
		TtlPartition *partition = lfirst(lc);
		PartitionWork work = {.run = run,.target = target,.partition = partition,.visit = visit,
			.key = makes ? target->relid : partition->relid,
			.first_error = failed == 0,.begun = GetCurrentTimestamp()
		};

		if (run->stop || locked >= MAX_BUSY_PARTITIONS)
			break;
		if (OidIsValid(partition->relid) == makes)
			continue;
		if (ttl_kept_is_left_out(run->kept, work.key, run->at))
		{
			visit->left_out = true;
			continue;
		}
		if (visit->limits.index_time > 0 &&
			(work.begun - begun) / 1000 >= visit->limits.index_time)
			return progress;
		if (!ttl_work_transaction(run, partition_work, count_partition, &work))
			break;
		if (work.counted)
			ttl_tally_committed(run, visit, &work.batch);

		failed += work.failed ? 1 : 0;
		if (work.batch.busy && !work.batch.busy_alone)
			locked++;
		if (work.batch.busy || (work.failed && !makes))
			(void) ttl_kept_failed(run->kept, work.key, true, run->at);
		progress = progress || !(work.failed && makes);
	}
	return false;
}

static void
estimate_work(void *arg)
{
	Target	   *target = arg;
	double		due = 0;
	ListCell   *lc;

	foreach(lc, target->leaves)
	{
		Oid			leaf = lfirst_oid(lc);
		Oid			relid = IndexGetRelation(leaf, true);
		TtlIndex	index;
		TtlEstimate estimate;

		if (!OidIsValid(relid) || !ConditionalLockRelationOid(relid, AccessShareLock) ||
			!ttl_state_describe(leaf, false, &index))
			return;
		if (!ttl_option_expires(&index.option))
			continue;
		/* it may have changed since the batch; in Citus, only shards have statistics */
		if (index.state != TTL_ACTIVE || index.citus.kind == TTL_CITUS_SHELL)
			return;
		if (!ttl_look_estimate(&index, &estimate))
			return;
		due += ttl_look_estimate_due(&estimate, &index, target->run->kept->pass_at);
		ttl_look_estimate_free(&estimate);
	}
	target->due = due;
}

/*
 * Estimates once in a pass how many rows were due when it began.  The statistics of the
 * tables still include the rows that it has deleted since.
 */
static void
estimate_due(TtlRun *run, Target *target)
{
	const TtlResumeState *kept = ttl_kept_find(run->kept, target->root);
	bool		timed_out;

	if (kept == NULL || kept->estimated ||
		kept->deleted < ESTIMATE_ROWS * (int64) list_length(target->leaves))
		return;
	ttl_work_begin(run);
	if (!ttl_work_must_stop(run))
	{
		/* an error is not reported: a batch will meet it */
		target->due = -1;
		(void) ttl_work_run(estimate_work, target, &timed_out);
		ttl_kept_estimated(run->kept, target->root, (int64) rint(target->due));
	}
	(void) ttl_work_try_commit(run, &timed_out);
}

/* Runs the batches of one leaf, as far as the limits of the visit allow. */
static void
visit_leaf(TtlRun *run, Target *target, Oid leaf, TtlVisit *visit)
{
	TtlResumeState *kept = ttl_kept_find(run->kept, leaf);
	TtlCursor	cursor = {.indexrelid = leaf};
	int			size;

	if (kept != NULL)
		cursor = kept->cursor;
	ttl_cursor_begin_visit(&cursor);
	visit->single_docs = kept != NULL ? kept->single_docs : 0;
	visit->over = false;
	/* if there is no time for a batch, there may be more */
	visit->more = true;
	while (!run->stop && (size = ttl_schedule_batch_size(visit, GetCurrentTimestamp())) > 0)
	{
		TtlWait		wait;
		long		milliseconds;

		while ((wait = ttl_throttle_wait(run, &milliseconds)) != TTL_WAIT_NONE)
		{
			if (!ttl_work_wait(run, wait, milliseconds))
				return;
		}
		ttl_attempt_batch(run, target->root, leaf, visit, &cursor,
						  ttl_throttle_batch_size(size));
		estimate_due(run, target);
	}
	if (kept != NULL && visit->over && !visit->busy && !run->stop &&
		!ttl_kept_is_left_out(run->kept, leaf, run->at))
		kept->delay = 0;
}

/* Was the visit good: no error in this pass, no row that failed, and nothing left out? */
static bool
is_well(const TtlRun *run, const Target *target, const TtlVisit *visit)
{
	const TtlResumeState *kept = ttl_kept_find(run->kept, target->root);
	ListCell   *lc;

	if (!target->active || visit->busy || run->stop || visit->left_out ||
		run->at < kept->failed_until)
		return false;
	foreach(lc, list_concat_copy(target->leaves, target->others))
	{
		kept = ttl_kept_find(run->kept, lfirst_oid(lc));
		if (kept != NULL && (kept->delay > 0 || ttl_cursor_rows_failed(&kept->cursor)))
			return false;
	}
	return true;
}

/* Ends a visit: keeps what the next one has to know, and notes if all is well again. */
static void
end_visit(TtlRun *run, TtlSubPass *sub, const Target *target, TtlVisit *visit, Oid last_leaf)
{
	int			first_docs;
	TtlResumeState *kept;

	ttl_schedule_visit_end(sub, visit);
	first_docs = ttl_schedule_first_docs(visit);
	if (visit->skipped)
		(void) ttl_kept_failed(run->kept, target->root, true, run->at);
	if (first_docs == 0 && !OidIsValid(last_leaf) &&
		ttl_kept_find(run->kept, target->root) == NULL)
		return;
	kept = ttl_kept_index(run->kept, target->root);
	kept->first_docs = first_docs;
	kept->last_leaf = last_leaf;
	if (!(visit->more || visit->busy || run->stop) &&
		!ttl_kept_is_left_out(run->kept, target->root, run->at))
		kept->delay = 0;

	/* the first good visit after an error is counted */
	if ((!kept->failing && kept->reported.at == 0) || !is_well(run, target, visit))
		return;
	kept->reported.at = 0;
	if (!kept->failing)
		return;
	ttl_work_begin(run);
	if (!ttl_work_must_stop(run))
	{
		TtlCount	count = {.indexrelid = target->root};

		count.relid = IndexGetRelation(target->root, true);
		count.recovered = GetCurrentTimestamp();
		ttl_tally_add(run, &count);
		run->kept->unfolded_rows++;
		run->kept->counted = true;
		kept->failing = false;
	}
	ttl_work_commit(run);
}

/*
 * Visits a TTL index: its partitions, then its leaves, which share the limits of the visit.
 * Returns whether something was locked by others.
 */
bool
ttl_visit_index(TtlRun *run, TtlSubPass *sub, Oid root, bool with_partitions)
{
	Target		target = {.run = run,.root = root,.with_partitions = with_partitions};
	const TtlResumeState *kept;
	TtlVisit	visit;
	int			count;
	int			first = 0;
	Oid			last_leaf = InvalidOid;
	bool		more_partitions;
	int64		took;
	ListCell   *lc;

	if (ttl_kept_is_left_out(run->kept, root, run->at))
		return false;
	run->shared->current_index = root;
	ttl_crash_mark(root);
	if (!prepare(run, &target))
	{
		ttl_crash_mark(InvalidOid);
		run->shared->current_index = InvalidOid;
		return false;
	}
	kept = ttl_kept_find(run->kept, root);
	ttl_schedule_visit_begin(&visit, &sub->limits, kept, GetCurrentTimestamp());
	more_partitions = visit_partitions(run, &target, &visit, true);
	more_partitions = visit_partitions(run, &target, &visit, false) || more_partitions;

	/*
	 * Begin after the leaf at which the last visit ended early: its batches
	 * may be canceled each time, or its rows come due faster than they are
	 * deleted.
	 */
	count = list_length(target.leaves);
	foreach(lc, kept != NULL ? target.leaves : NIL)
	{
		if (lfirst_oid(lc) == kept->last_leaf)
			first = foreach_current_index(lc) + 1;
	}
	for (int i = 0; i < count && !run->stop && !visit.skipped; i++)
	{
		Oid			leaf = list_nth_oid(target.leaves, (first + i) % count);
		int			batches = visit.batches;

		if (ttl_kept_is_left_out(run->kept, leaf, run->at))
		{
			visit.left_out = true;
			continue;
		}
		/* noted now, because the worker may not survive the visit */
		if (count > 1)
			ttl_kept_index(run->kept, root)->last_leaf = leaf;
		visit_leaf(run, &target, leaf, &visit);
		if (visit.batches > batches)
			last_leaf = leaf;
		/* the limits of the visit are reached: this leaf or others have more */
		if (!visit.over)
		{
			visit.more = visit.more || i + 1 < count;
			break;
		}
	}
	visit.more = visit.more || more_partitions;
	if (count == 1 || (visit.over && !visit.skipped))
		last_leaf = InvalidOid;
	end_visit(run, sub, &target, &visit, last_leaf);
	list_free(target.leaves);
	list_free(target.others);
	list_free_deep(target.partitions);
	ttl_crash_mark(InvalidOid);
	run->shared->current_index = InvalidOid;

	took = (GetCurrentTimestamp() - visit.begun) / 1000;
	if (ttl_log_min_duration >= 0 && took >= ttl_log_min_duration && visit.deleted > 0)
	{
		ttl_work_begin(run);
		ereport(LOG,
				(errmsg("TTL index %s: deleted %lld rows in %d batches, %lld ms",
						ttl_name_index(root), (long long) visit.deleted,
						visit.batches, (long long) took)));
		ttl_work_commit(run);
	}
	return visit.busy;
}
