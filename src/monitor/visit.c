/*-------------------------------------------------------------------------
 *
 * visit.c
 *	  One visit to a TTL index: batches of its leaves, and whole partitions.
 *
 * sub_pass.c calls ttl_visit_target() for one TTL index after another.  A visit first
 * makes and drops partitions of a time series (visit_partitions.c), then deletes rows from the
 * indexes that hold them, batch by batch (attempt.c), until schedule.c says that its limits
 * are reached.  What became of either is noted and counted by outcome.c.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/monitor/visit.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "catalog/index.h"
#include "storage/lmgr.h"
#include "utils/timestamp.h"

#include "definition/definition.h"
#include "expire/estimate.h"
#include "expire/expire.h"
#include "monitor/monitor.h"
#include "monitor/pass.h"
#include "monitor/schedule.h"
#include "monitor/visit.h"
#include "ttl_index.h"

/* The arguments and the result of an estimate. */
typedef struct EstimateWork
{
	const TtlRun *run;
	const TtlTarget *target;
	double		due;			/* -1: not known */
} EstimateWork;

/* Estimates what was due by one of the indexes that hold rows; false if that is not known. */
static bool
estimate_leaf(EstimateWork *work, Oid leaf)
{
	Oid			relid = IndexGetRelation(leaf, true);
	TtlIndex	index;
	TtlEstimate estimate;

	if (!OidIsValid(relid) || !ConditionalLockRelationOid(relid, AccessShareLock) ||
		!ttl_catalog_describe(leaf, false, &index))
		return false;
	if (!ttl_option_expires(&index.option))
		return true;

	/*
	 * it may have lost its options since the batch; the statistics are of the
	 * shards
	 */
	if (index.state != TTL_ACTIVE || index.citus.kind == TTL_CITUS_SHELL)
		return false;
	if (ttl_estimate_is_empty(relid))
		return true;
	if (!ttl_estimate_read(&index, &estimate))
		return false;
	work->due += ttl_estimate_due(&estimate, &index, work->run->kept->pass_at);
	ttl_estimate_free(&estimate);
	return true;
}

static void
estimate_work(void *arg)
{
	EstimateWork *work = arg;
	ListCell   *lc;

	foreach(lc, work->target->leaves)
	{
		if (!estimate_leaf(work, lfirst_oid(lc)))
		{
			work->due = -1;
			return;
		}
	}
}

/*
 * Estimates how many rows were due when the pass began, once in it.  The statistics still
 * tell of those that it has deleted since.
 */
static void
estimate_due(TtlRun *run, const TtlTarget *target)
{
	EstimateWork work = {.run = run,.target = target};
	bool		timed_out;

	if (!ttl_kept_lacks_estimate(run->kept, target->root, list_length(target->leaves)))
		return;
	ttl_work_begin(run);
	if (!ttl_work_must_stop(run))
	{
		/* an error is not worth a word: a batch will meet it */
		if (ttl_work_run(estimate_work, &work, &timed_out) != NULL)
			work.due = -1;
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

static void
log_visit(Oid root, const TtlVisit *visit)
{
	int64		took = (GetCurrentTimestamp() - visit->begun) / 1000;

	if (ttl_log_min_duration < 0 || took < ttl_log_min_duration ||
		visit->deleted == 0)
		return;
	ereport(LOG,
			(errmsg("TTL index %s: deleted %lld rows in %d batches, %lld ms",
					ttl_name_index(root), (long long) visit->deleted,
					visit->batches, (long long) took)));
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
	foreach(lc, target->leaves)
	{
		kept = ttl_kept_find(run->kept, lfirst_oid(lc));
		if (kept != NULL && ttl_cursor_rows_failed(&kept->cursor))
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

/* Keeps what the next visit has to know: also the leaf that it is to begin behind. */
static void
end_visit(TtlRun *run, TtlTarget *target, TtlVisit *visit, Oid last_leaf)
{
	int			first_docs;
	TtlKeptIndex *kept;

	ttl_schedule_visit_end(visit);
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

/*
 * With which of the leaves does a visit begin?  With the one behind that at which the
 * visit before ended early: its batches may be canceled each time, or its rows come due
 * faster than they can be deleted.
 */
static int
first_leaf(const TtlTarget *target, const TtlKeptIndex *kept)
{
	int			position = 0;
	ListCell   *lc;

	foreach(lc, target->leaves)
	{
		position++;
		if (kept != NULL && lfirst_oid(lc) == kept->last_leaf)
			return position;
	}
	return 0;
}

/* Visits a TTL index: its leaves one after another, with one set of limits. */
void
ttl_visit_target(TtlRun *run, TtlSubPass *sub, TtlTarget *target)
{
	TtlKeptIndex *kept = ttl_kept_find(run->kept, target->root);
	int			count = list_length(target->leaves);
	int			first = first_leaf(target, kept);
	TtlVisit	visit;
	Oid			last_leaf = InvalidOid;
	bool		more_partitions;

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
	for (int i = 0; i < count && !run->stop && !visit.skipped; i++)
	{
		Oid			leaf = list_nth_oid(target->leaves, (first + i) % count);
		int			batches = visit.batches;

		if (ttl_outcome_is_skipped(run, leaf) || (visit.waits && ttl_outcome_hangs(run, leaf)))
			continue;
		/* it is noted beforehand, as the worker may not survive it */
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
	end_visit(run, target, &visit, last_leaf);
	ttl_schedule_visited(sub, &visit);
	ttl_crash_mark(InvalidOid);
	run->shared->current_index = InvalidOid;
	if (ttl_log_min_duration >= 0 && visit.deleted > 0)
	{
		ttl_work_begin(run);
		log_visit(target->root, &visit);
		ttl_work_commit(run);
	}
}
