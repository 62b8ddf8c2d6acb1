/*-------------------------------------------------------------------------
 *
 * visit.c
 *	  A sub-pass: visits to one TTL index after another.
 *
 * A visit first finds what there is to do.  Then it creates and drops partitions of a time
 * series, each in a transaction of its own, without reading their rows.  Finally it deletes
 * rows from the leaves, the indexes that hold them, until schedule.c says that its limits are
 * reached.
 *
 * Each batch is a transaction, in which the work itself is a subtransaction (work.c).  If it
 * fails, its error is counted in the same transaction, and the next batch is smaller.  See the
 * README.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "catalog/index.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

#include "definition/definition.h"
#include "expire/expire.h"
#include "pass/pass.h"
#include "partition/partition.h"
#include "state/state.h"

/* What was due is estimated after so many deleted rows for each index that holds them. */
#define ESTIMATE_ROWS 1000

/* A TTL index, and what there is to do. */
typedef struct Target
{
	TtlRun	   *run;
	Oid			root;
	/* results of prepare_work() */
	Oid			relid;			/* its table, if the index is active, or was
								 * locked */
	List	   *all_leaves;		/* OIDs of indexes that hold its rows, in the
								 * order of the partitions */
	List	   *leaves;			/* those that belong to this owner */
	List	   *partitions;		/* TtlPartition, to make or to drop */
	/* result of estimate_work() */
	double		due;			/* rows; -1: not known */
} Target;

/*
 * Lists the partitions of a time series to make or drop, in the memory of the run: all in a
 * survey, and in a worker those that its owner may make or drop.
 */
List *
ttl_visit_partitions(TtlRun *run, const TtlIndex *index)
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

/* Finds what there is to do, as far as it belongs to the owner as which the worker is connected. */
static void
prepare_work(void *arg)
{
	Target	   *target = arg;
	List	   *all_leaves = ttl_leaves_by_row(target->root);
	TtlIndex	index;
	ListCell   *lc;

	target->relid = InvalidOid;
	target->partitions = NIL;
	if (ttl_state_describe(target->root, false, &index) &&
		(index.state == TTL_ACTIVE || index.state == TTL_TABLE_LOCKED))
	{
		target->relid = index.relid;
		if (index.state == TTL_ACTIVE)
			target->partitions = ttl_visit_partitions(target->run, &index);
	}

	MemoryContextSwitchTo(target->run->context);
	target->all_leaves = ttl_citus_deletes_elsewhere(&index.citus) ? NIL : list_copy(all_leaves);
	target->leaves = NIL;
	foreach(lc, target->all_leaves)
	{
		if (ttl_owner_of(lfirst_oid(lc)) == GetUserId())
			target->leaves = lappend_oid(target->leaves, lfirst_oid(lc));
	}
	MemoryContextSwitchTo(target->run->batch_context);
}

/* The arguments and the result of making or dropping one partition. */
typedef struct PartitionWork
{
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
		ttl_drop_partition(root, partition, work->target->run->at, &work->batch);
	else
		ttl_make_partition(root, work->partition, &work->batch);
}

/* Notes what became of a partition, and counts it.  Called once more if the commit fails. */
static void
count_partition(void *arg, ErrorData *edata, bool timed_out)
{
	PartitionWork *work = arg;
	TtlRun	   *run = work->target->run;
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
		ttl_report_batch(run, root, work->visit, batch,
						 work->failed && work->first_error ? edata : NULL, work->begun);
}

/*
 * Makes and drops partitions of a time series, for the time of a visit at most.  Returns
 * whether some of them remain for the next sub-pass.  A partition that is locked waits for
 * the next pass, because the lock may be held for hours, and so does one that could not be
 * dropped.
 */
static bool
visit_partitions(TtlRun *run, const Target *target, TtlVisit *visit)
{
	int			failed = 0;
	bool		progress = false;
	ListCell   *lc;

	foreach(lc, target->partitions)
	{
		TtlPartition *partition = lfirst(lc);
		bool		makes = !OidIsValid(partition->relid);
		PartitionWork work = {.target = target,.partition = partition,.visit = visit,
			.key = makes ? target->relid : partition->relid,
			.first_error = failed == 0,.begun = GetCurrentTimestamp()
		};

		if (run->stop)
			break;
		if (ttl_kept_is_left_out(run->kept, work.key, run->at))
		{
			visit->left_out = true;
			continue;
		}
		if (visit->limits.index_time > 0 &&
			(work.begun - visit->begun) / 1000 >= visit->limits.index_time)
			return progress;
		if (!ttl_work_transaction(run, partition_work, count_partition, &work))
			break;
		if (work.counted)
			ttl_report_committed(run, visit, &work.batch);

		visit->rows_first = visit->rows_first || work.batch.rows_first;
		failed += work.failed ? 1 : 0;
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

/* The arguments and the result of one batch. */
typedef struct BatchWork
{
	TtlRun	   *run;
	Oid			root;
	Oid			leaf;
	TtlVisit   *visit;
	const TtlCursor *cursor;
	int			size;
	TimestampTz begun;
	bool		locks_shard;	/* the placement of a shard is being locked */
	TtlBatch	batch;
	ErrorData  *edata;			/* NULL if it did not fail */
	bool		skipped;		/* it failed, and had a single row */
	bool		repeats;		/* it failed, and is repeated carefully */
	bool		canceled;
	bool		gives_up;		/* and the index waits */
	bool		counted;
} BatchWork;

/* The batch that is running. */
static BatchWork *at_work = NULL;

static void
batch_work(void *arg)
{
	BatchWork  *work = arg;
	TtlRun	   *run = work->run;
	Oid			relid = IndexGetRelation(work->leaf, true);
	int64		shard;
	bool		is_there;
	TtlIndex	index;
	TtlCutoff	cutoff;
	TtlCutoff	pass_cutoff;
	TtlProgress progress;

	work->locks_shard = true;
	shard = ttl_citus_lock(relid);
	work->locks_shard = false;
	if (OidIsValid(relid) && !ttl_batch_lock(relid, work->leaf))
	{
		work->batch.busy = true;
		return;
	}

	/* it may have changed since it was prepared, before the lock; others may wait for the table */
	is_there = ttl_state_describe(work->leaf, false, &index);
	work->batch.busy = is_there && index.state == TTL_TABLE_LOCKED;
	work->batch.inactive = !work->batch.busy &&
		(!is_there || index.state != TTL_ACTIVE || index.governor != work->root ||
		 index.owner != GetUserId() ||
		 ttl_citus_deletes_elsewhere(&index.citus) || index.citus.shard != shard ||
		 !ttl_option_expires(&index.option) || !ttl_leaves_is_by_row(&index) ||
		 !ttl_state_owners_above(&index));
	if (work->batch.busy || work->batch.inactive)
		return;

	ttl_cutoff_init(&cutoff, &index, run->at);
	ttl_cutoff_init(&pass_cutoff, &index, run->kept->pass_at);
	ttl_kept_progress(run->kept, work->root, &progress);
	ttl_progress_visit(&index, work->cursor, work->visit->begun, &progress);
	ttl_batch_run(&index, &cutoff, &pass_cutoff, run->kept->pass_xid, work->size,
				  Max(work->visit->batch_entries, 2 * (int64) work->size),
				  &work->batch);
}

/*
 * Is an error caused by what the batch locks as a whole, and not by a row?  Then the batch
 * did nothing: others hold the lock, or a shard of Citus was moved.
 */
static bool
is_of_lock(BatchWork *work, const ErrorData *edata)
{
	TtlBatch   *batch = &work->batch;
	LOCKMODE	mode = MyProc->waitLockMode;
	bool		is_lock = edata->sqlerrcode == ERRCODE_LOCK_NOT_AVAILABLE;
	/* all copies of a table are locked; Citus says only that a lock elsewhere failed */
	bool		busy = (work->locks_shard && is_lock) ||
		(batch->by_value &&
		 (is_lock || edata->sqlerrcode == ERRCODE_T_R_DEADLOCK_DETECTED ||
		  (edata->sqlerrcode == ERRCODE_INTERNAL_ERROR && batch->locks_copies)));

	/*
	 * An INSERT into the archive, and its foreign keys, take table locks of
	 * these modes.  If others hold only a row there, the other rows can be
	 * moved.
	 */
	busy = busy ||
		(batch->inserts && ttl_error_is_interrupt(edata, ERRCODE_LOCK_NOT_AVAILABLE) &&
		 (mode == RowExclusiveLock || mode == RowShareLock));
	if (!busy)
		return false;
	memset(batch, 0, sizeof(*batch));
	batch->cursor = *work->cursor;
	batch->busy = true;
	return true;
}

/*
 * Is an error not caused by a row?  The place to which rows are moved may be full, or on a
 * server that does not answer; or the tables were still being locked.
 */
static bool
is_transient_error(const TtlBatch *batch, const ErrorData *edata)
{
	if (batch->locks_copies || (batch->moves && edata->sqlerrcode == ERRCODE_DISK_FULL))
		return true;
	return batch->elsewhere &&
		(ERRCODE_TO_CATEGORY(edata->sqlerrcode) == ERRCODE_CONNECTION_EXCEPTION ||
		 edata->sqlerrcode == ERRCODE_ADMIN_SHUTDOWN ||
		 edata->sqlerrcode == ERRCODE_CRASH_SHUTDOWN ||
		 edata->sqlerrcode == ERRCODE_CANNOT_CONNECT_NOW);
}

/* Adds to an error that a foreign key without an index makes the deletes slow. */
static void
explain_cancellation(const BatchWork *work, ErrorData *edata)
{
	const TtlReference *reference =
		ttl_references_slow(IndexGetRelation(work->leaf, true));

	if (reference == NULL)
		return;
	edata->message = psprintf("%s, as each delete reads all of table \"%s\"", edata->message,
							  get_rel_name(reference->relid));
	edata->hint = psprintf("%s;", reference->missing_index);
}

/*
 * Counts a batch, and notes whether it has failed.  Called once more if the commit fails;
 * then an error that the batch had before is the one to report.
 */
static void
count_batch(void *arg, ErrorData *edata, bool timed_out)
{
	BatchWork  *work = arg;
	TtlRun	   *run = work->run;
	TtlBatch   *batch = &work->batch;
	bool		is_session = OidIsValid(run->common->caller);

	if (work->repeats)
		return;
	if (edata != NULL && work->edata == NULL && !batch->busy && !is_of_lock(work, edata))
	{
		batch->deleted = batch->archived = batch->skipped_locked = batch->skipped_kept = 0;
		if (is_transient_error(batch, edata))
			batch->candidates = 0;
		work->edata = edata;
		/* if it was counted, the commit has failed */
		work->repeats = !timed_out && !work->visit->careful && !work->counted &&
			batch->candidates > 0;
		if (work->repeats)
			return;
		work->skipped = work->size == 1 && batch->candidates > 0;
		batch->failed = work->skipped ? 1 : 0;

		/*
		 * If a single row takes too long, the monitor leaves the rest of the
		 * index to the next pass, which knows what was canceled.  run_pass()
		 * knows nothing of earlier passes, so it continues, unless it has
		 * lasted for long.
		 */
		work->canceled = timed_out;
		work->gives_up = timed_out && batch->live <= 1 && !(is_session && work->skipped);
		if (timed_out)
			explain_cancellation(work, edata);
		work->visit->skipped = work->gives_up &&
			(!is_session || ttl_work_is_long(run, GetCurrentTimestamp()));
		ttl_report_error(run, work->root, work->leaf, edata);
		if (work->gives_up)
			ttl_kept_canceled(run->kept, work->leaf, run->at);
	}
	else if (batch->failed > 0 && work->edata == NULL)
	{
		ttl_work_tidy(batch->edata);
		ttl_report_error(run, work->root, work->leaf, batch->edata);
	}
	if (batch->busy)
		batch->skipped_locked = run->again ? 0 : 1;
	work->counted = !run->stop &&
		ttl_report_batch(run, work->root, work->visit, batch,
						 work->edata ? work->edata : batch->edata, work->begun);
}

/* Moves the cursor after a batch that failed, and keeps it for the next visit. */
static void
follow_failure(const BatchWork *work, TtlCursor *cursor)
{
	TtlResumeState *kept = ttl_kept_index(work->run->kept, work->leaf);

	if (work->repeats)
	{
		work->visit->careful = true;
		return;
	}
	if (work->skipped)
		ttl_cursor_row_failed(cursor, &work->batch, work->run->at);
	ttl_schedule_batch_failed(work->visit, &work->batch, work->size, work->canceled,
							  work->gives_up, work->begun);
	kept->cursor = *cursor;
	kept->single_docs = work->visit->single_docs;
}

/*
 * Called when the worker ends.  If a batch was canceled and has not ended, notes that like
 * a batch that has, and returns true.
 */
bool
ttl_visit_died(void)
{
	BatchWork  *work = at_work;
	TtlCursor	cursor;

	if (work == NULL || !(work->gives_up || ttl_work_is_canceled()))
		return false;
	ttl_kept_canceled(work->run->kept, work->leaf, work->run->at);
	cursor = *work->cursor;
	work->skipped = work->size == 1 && work->batch.candidates > 0;
	work->canceled = work->gives_up = work->visit->skipped = true;
	follow_failure(work, &cursor);
	return true;
}

/* Runs one batch in a transaction of its own, and moves the cursor. */
static void
attempt_batch(TtlRun *run, Oid root, Oid leaf, TtlVisit *visit, TtlCursor *cursor, int size)
{
	BatchWork	work = {.run = run,.root = root,.leaf = leaf,.visit = visit,
	.cursor = cursor,.size = size,.begun = GetCurrentTimestamp()};
	TtlBatch   *batch = &work.batch;
	volatile bool ran = false;
	bool		over;
	TtlResumeState *kept;

	batch->cursor = *cursor;
	batch->careful = visit->careful;
	at_work = &work;
	PG_TRY();
	{
		ran = ttl_work_transaction(run, batch_work, count_batch, &work);
	}
	PG_FINALLY();
	{
		/* an error that ends the process leaves this function first */
		at_work = NULL;
	}
	PG_END_TRY();
	if (!ran)
	{
		visit->over = true;
		return;
	}
	if (work.counted)
		ttl_report_committed(run, visit, batch);
	if (work.edata != NULL)
	{
		follow_failure(&work, cursor);
		return;
	}

	over = ttl_cursor_batch_done(cursor, batch, run->at);

	/*
	 * Rows that were written since the pass began do not keep it going for
	 * longer than the monitor sleeps: a trigger may write them again.  Nor do
	 * rows that are tried again.
	 */
	if ((!batch->from_before || cursor->at_once) && ttl_work_is_long(run, run->at))
		batch->past_pass = true;
	ttl_throttle_deleted(&run->common->throttle, batch->deleted);
	ttl_kept_deleted(run->kept, root, batch->deleted, GetCurrentTimestamp());
	ttl_schedule_batch_done(visit, batch, size, over, work.begun, GetCurrentTimestamp());

	/* nothing is kept of an index in which no entry was found */
	if (cursor->forward.set || cursor->phase != TTL_FORWARD || visit->single_docs > 0 ||
		ttl_kept_find(run->kept, leaf) != NULL)
	{
		kept = ttl_kept_index(run->kept, leaf);
		kept->cursor = *cursor;
		kept->single_docs = visit->single_docs;
	}
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
			ttl_progress_wait(wait, milliseconds);
			ttl_work_begin(run);
			(void) ttl_work_must_stop(run);
			ttl_work_commit(run);
			if (run->stop)
				return;
		}
		attempt_batch(run, target->root, leaf, visit, &cursor,
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

	if (!OidIsValid(target->relid) || visit->busy || run->stop || visit->left_out ||
		run->at < kept->failed_until)
		return false;
	foreach(lc, target->all_leaves)
	{
		kept = ttl_kept_find(run->kept, lfirst_oid(lc));
		if (kept != NULL && (kept->delay > 0 || ttl_cursor_rows_failed(&kept->cursor)))
			return false;
	}
	return true;
}

/* Ends a visit: keeps what the next one has to know, and notes if all is well again. */
static void
end_visit(TtlRun *run, const Target *target, TtlVisit *visit, Oid last_leaf)
{
	int			first_docs = visit->batch_size < TTL_FIRST_BATCH_DOCS || visit->rows_wait ?
		visit->batch_size : 0;
	TtlResumeState *kept;

	/* errors alone do not keep the pass going for longer than the monitor sleeps */
	if (visit->failures > 0 && visit->deleted == 0 &&
		ttl_work_is_long(run, GetCurrentTimestamp()))
		visit->skipped = true;
	if (visit->skipped)
	{
		visit->more = false;
		(void) ttl_kept_failed(run->kept, target->root, true, run->at);
	}
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
		ttl_report_count(run, &count);
		kept->failing = false;
	}
	ttl_work_commit(run);
}

/*
 * Visits a TTL index: its partitions, then its leaves, which share the limits of the visit.
 * Returns whether rows that were due at the beginning of the pass remain.
 */
static bool
visit_index(TtlRun *run, Oid root)
{
	Target		target = {.run = run,.root = root};
	ErrorData  *edata = NULL;
	bool		timed_out;
	const TtlResumeState *kept;
	TtlVisit	visit;
	int			count;
	int			first = 0;
	Oid			last_leaf = InvalidOid;
	bool		more_partitions;
	int64		took;
	ListCell   *lc;

	/* find what there is to do */
	ttl_work_begin(run);
	if (!ttl_work_must_stop(run))
	{
		edata = ttl_work_retry(prepare_work, &target, &timed_out);
		if (edata != NULL)
			ttl_report_failure(run, root, edata, timed_out);
	}
	(void) ttl_work_try_commit(run, &timed_out);
	if (run->stop || edata != NULL ||
		(target.leaves == NIL && target.partitions == NIL))
		return false;
	kept = ttl_kept_find(run->kept, root);
	ttl_schedule_visit_begin(&visit, &ttl_limits, kept, GetCurrentTimestamp());
	more_partitions = visit_partitions(run, &target, &visit);

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
	/* the next sub-pass drops what is empty now */
	visit.more = visit.more || more_partitions ||
		(visit.rows_first && visit.deleted > 0 && !ttl_work_is_long(run, run->at));
	if (count == 1 || (visit.over && !visit.skipped))
		last_leaf = InvalidOid;
	if (visit.busy)
		run->locked = lappend_oid(run->locked, root);
	end_visit(run, &target, &visit, last_leaf);
	list_free(target.leaves);
	list_free(target.all_leaves);
	list_free_deep(target.partitions);

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
	return visit.more;
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
ttl_visit_all(TtlRun *run, Oid *resume_at)
{
	int			count = list_length(run->roots);
	int			first = 0;
	bool		more = false;
	TtlStateFile file;

	run->shared->more = false;
	run->locked = NIL;
	run->at = GetCurrentTimestamp();
	ttl_hold_check_clock(&file, run->at, false);
	run->stop = ttl_work_is_held(run, &file);
	/* a clock that was set back must not keep the pass going */
	run->kept->pass_at = Min(run->kept->pass_at, run->at);
	show_pass(run);

	while (first < count && list_nth_oid(run->roots, first) < *resume_at)
		first++;
	*resume_at = InvalidOid;
	for (int i = 0; i < count && !run->stop; i++)
	{
		Oid			root = list_nth_oid(run->roots, (first + i) % count);
		int64		elapsed = GetCurrentTimestamp() - run->at;

		/* the next sub-pass goes on here; the clock may have gone back */
		if (i > 0 && ttl_limits.sub_pass_time > 0 &&
			(elapsed < 0 || elapsed >= ttl_limits.sub_pass_time * USECS_PER_SEC))
		{
			*resume_at = root;
			more = true;
			break;
		}
		if (ttl_kept_is_left_out(run->kept, root, run->at))
			continue;
		run->shared->current_index = root;
		ttl_crash_mark(root);
		more = visit_index(run, root) || more;
		ttl_crash_mark(InvalidOid);
		run->shared->current_index = InvalidOid;
		show_pass(run);
	}
	run->shared->more = more && !run->stop;
}
