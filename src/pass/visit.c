/*-------------------------------------------------------------------------
 *
 * visit.c
 *	  One visit to a TTL index: batches of its leaves, and whole partitions.
 *
 * A visit first makes and drops partitions of a time series (visit_partitions.c), then
 * deletes rows from the indexes that hold them, batch by batch (attempt.c), until
 * schedule.c says that its limits are reached.  outcome.c notes and counts what became of
 * either.
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
#include "storage/lmgr.h"
#include "utils/timestamp.h"

#include "definition/definition.h"
#include "expire/expire.h"
#include "expire/look.h"
#include "pass/pass.h"
#include "pass/schedule.h"
#include "state/state.h"
#include "stats/stats.h"
#include "ttl_index.h"

/* The arguments and the result of an estimate. */
typedef struct EstimateWork
{
	const TtlRun *run;
	const TtlTarget *target;
	double		due;			/* -1: not known */
} EstimateWork;

static void
estimate_work(void *arg)
{
	EstimateWork *work = arg;
	double		due = 0;
	ListCell   *lc;

	foreach(lc, work->target->leaves)
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
		/* it may have changed since the batch; of Citus, shards have statistics */
		if (index.state != TTL_ACTIVE || index.citus.kind == TTL_CITUS_SHELL)
			return;
		if (!ttl_look_estimate(&index, &estimate))
			return;
		due += ttl_look_estimate_due(&estimate, &index, work->run->kept->pass_at);
		ttl_look_estimate_free(&estimate);
	}
	work->due = due;
}

/*
 * Estimates how many rows were due when the pass began, once in it.  The statistics still
 * count those that it has deleted since.
 */
static void
estimate_due(TtlRun *run, const TtlTarget *target)
{
	EstimateWork work = {.run = run,.target = target,.due = -1};
	bool		timed_out;

	if (!ttl_kept_lacks_estimate(run->kept, target->root, list_length(target->leaves)))
		return;
	ttl_work_begin(run);
	if (!ttl_work_must_stop(run))
	{
		/* an error is not reported: a batch will meet it */
		(void) ttl_work_run(estimate_work, &work, &timed_out);
		ttl_kept_estimated(run->kept, target->root, (int64) rint(work.due));
	}
	(void) ttl_work_try_commit(run, &timed_out);
}

/* Runs the batches of one leaf, as far as the limits of the visit allow. */
static void
visit_leaf(TtlRun *run, const TtlTarget *target, Oid leaf, TtlVisit *visit)
{
	const TtlKeptIndex *kept = ttl_kept_find(run->kept, leaf);
	TtlCursor	cursor = {.indexrelid = leaf};
	int			size;

	if (kept != NULL)
		cursor = kept->cursor;
	ttl_cursor_begin_visit(&cursor);
	visit->single_docs = kept != NULL ? kept->single_docs : 0;
	visit->over = false;
	/* this holds if there is no time for a batch */
	visit->more = true;
	while (!run->stop &&
		   (size = ttl_schedule_batch_size(visit, GetCurrentTimestamp())) > 0 &&
		   ttl_work_wait_for_batch(run))
	{
		ttl_attempt_batch(run, target->root, leaf, visit, &cursor,
						  ttl_throttle_batch_size(size));
		estimate_due(run, target);
	}
}

/* Is all well with an index that was visited: no error in this pass, no row that failed? */
static bool
is_well(const TtlRun *run, const TtlTarget *target, const TtlVisit *visit)
{
	const TtlKeptIndex *kept = ttl_kept_find(run->kept, target->root);
	ListCell   *lc;

	if (!target->active || visit->busy || run->stop || visit->waits || visit->put_off ||
		(kept != NULL && kept->failed))
		return false;
	foreach(lc, list_concat_copy(target->leaves, target->others))
	{
		kept = ttl_kept_find(run->kept, lfirst_oid(lc));
		if (kept != NULL && (kept->hangs || ttl_cursor_rows_failed(&kept->cursor)))
			return false;
	}
	return true;
}

/* Notes a good visit to an index that failed before. */
static void
note_recovery(TtlRun *run, TtlKeptIndex *kept)
{
	TtlCount	count = {.indexrelid = kept->key.relid};

	kept->said.at = 0;
	if (!kept->failing)
		return;
	ttl_work_begin(run);
	if (!ttl_work_must_stop(run))
	{
		count.relid = IndexGetRelation(kept->key.relid, true);
		count.recovered = GetCurrentTimestamp();
		ttl_counters_add(&count);
		run->kept->unfolded_rows++;
		run->kept->counted = true;
		kept->failing = false;
	}
	ttl_work_commit(run);
}

/* Keeps what the next visit has to know: also the leaf after which it begins. */
static void
end_visit(TtlRun *run, TtlSubPass *sub, TtlTarget *target, TtlVisit *visit, Oid last_leaf)
{
	int			first_docs;
	TtlKeptIndex *kept;

	ttl_schedule_visit_end(sub, visit);
	first_docs = ttl_schedule_first_docs(visit);
	target->busy = visit->busy;
	if (visit->skipped)
		(void) ttl_outcome_note_failed(run, target->root, true);
	if (first_docs == 0 && !OidIsValid(last_leaf) &&
		ttl_kept_find(run->kept, target->root) == NULL)
		return;
	kept = ttl_kept_index(run->kept, target->root);
	if ((kept->failing || kept->said.at != 0) && is_well(run, target, visit))
		note_recovery(run, kept);
	kept->first_docs = first_docs;
	kept->last_leaf = last_leaf;
	kept->visited = kept->visited ||
		!(visit->busy || run->stop || visit->waits || visit->put_off);
}

/* Visits a TTL index: its leaves one after another, with one set of limits. */
void
ttl_visit_target(TtlRun *run, TtlSubPass *sub, TtlTarget *target)
{
	TtlKeptIndex *kept = ttl_kept_find(run->kept, target->root);
	int			count = list_length(target->leaves);
	int			first = 0;
	TtlVisit	visit;
	Oid			last_leaf = InvalidOid;
	bool		more_partitions;
	int64		took;
	ListCell   *lc;

	run->shared->current_index = target->root;
	ttl_crash_mark(target->root);
	ttl_schedule_visit_begin(&visit, &sub->limits, kept, GetCurrentTimestamp());
	if (kept != NULL)
	{
		kept->hangs = kept->rests = false;
		visit.waits = ttl_kept_waits(kept, run->at);
	}

	more_partitions = ttl_visit_partitions(run, target, &visit, true);
	more_partitions = ttl_visit_partitions(run, target, &visit, false) || more_partitions;

	/*
	 * Begin after the leaf at which the last visit ended early: its batches
	 * may be canceled each time, or its rows come due faster than they are
	 * deleted.
	 */
	foreach(lc, kept != NULL ? target->leaves : NIL)
	{
		if (lfirst_oid(lc) == kept->last_leaf)
			first = foreach_current_index(lc) + 1;
	}
	for (int i = 0; i < count && !run->stop && !visit.skipped; i++)
	{
		Oid			leaf = list_nth_oid(target->leaves, (first + i) % count);
		int			batches = visit.batches;

		if (ttl_outcome_is_skipped(run, leaf) || (visit.waits && ttl_outcome_hangs(run, leaf)))
			continue;
		/* the worker may not survive it */
		if (count > 1)
			ttl_kept_index(run->kept, target->root)->last_leaf = leaf;
		visit_leaf(run, target, leaf, &visit);
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
	end_visit(run, sub, target, &visit, last_leaf);
	ttl_crash_mark(InvalidOid);
	run->shared->current_index = InvalidOid;
	took = (GetCurrentTimestamp() - visit.begun) / 1000;
	if (ttl_log_min_duration >= 0 && took >= ttl_log_min_duration && visit.deleted > 0)
	{
		ttl_work_begin(run);
		ereport(LOG,
				(errmsg("TTL index %s: deleted %lld rows in %d batches, %lld ms",
						ttl_name_index(target->root), (long long) visit.deleted,
						visit.batches, (long long) took)));
		ttl_work_commit(run);
	}
}
