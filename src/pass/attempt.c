/*-------------------------------------------------------------------------
 *
 * attempt.c
 *	  One batch, tried.
 *
 * Each batch is a transaction, in which the work itself is a subtransaction (work.c).  If
 * it fails, its error is counted in the same transaction, and the next batch has a tenth of
 * the rows, down to the single row that cannot be deleted: that row is skipped.
 *
 * A batch that is canceled because it takes too long ends the visit, and the next visit
 * takes its rows one by one.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/pass/attempt.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/index.h"
#include "miscadmin.h"
#include "storage/proc.h"
#include "utils/timestamp.h"

#include "definition/definition.h"
#include "expire/expire.h"
#include "partition/partition.h"
#include "pass/pass.h"
#include "state/state.h"

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
	bool		gives_up;		/* it was canceled: the index waits */
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

	/* it may have changed since it was prepared, before the lock */
	if (!ttl_state_describe(work->leaf, false, &index) ||
		index.state == TTL_TABLE_LOCKED)
	{
		/* others wait for the table, or it was dropped */
		work->batch.busy = index.state == TTL_TABLE_LOCKED;
		work->batch.inactive = !work->batch.busy;
		return;
	}
	if (index.state != TTL_ACTIVE || index.governor != work->root ||
		index.owner != GetUserId() ||
		ttl_citus_deletes_elsewhere(&index.citus) || index.citus.shard != shard ||
		!ttl_option_expires(&index.option) || !ttl_leaves_is_by_row(&index) ||
		!ttl_state_owners_above(&index))
	{
		work->batch.inactive = true;
		return;
	}

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
	bool		busy;

	/* all copies of a table are locked; Citus says only that a lock elsewhere failed */
	busy = (work->locks_shard && is_lock) ||
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

	if (edata != NULL && work->edata == NULL && !batch->busy && !is_of_lock(work, edata))
	{
		batch->deleted = batch->archived = batch->skipped_locked = 0;
		if (is_transient_error(batch, edata))
			batch->candidates = 0;
		work->edata = edata;
		work->skipped = work->size == 1 && batch->candidates > 0;

		/*
		 * The monitor leaves the rest of the index to the next pass, which
		 * knows what was canceled.  run_pass() knows nothing of earlier
		 * passes, so it continues, unless it has lasted for long.
		 */
		work->gives_up = timed_out && !(is_session && work->skipped);
		work->visit->skipped = work->gives_up &&
			(!is_session || ttl_work_is_long(run, GetCurrentTimestamp()));
		ttl_report_error(run, work->root, work->leaf, edata);
		if (work->gives_up)
			ttl_kept_canceled(run->kept, work->leaf, run->at);
	}
	if (batch->busy)
	{
		/* that is counted once in a pass */
		TtlResumeState *kept = ttl_kept_index(run->kept, work->leaf);

		batch->skipped_locked = kept->busy ? 0 : 1;
		kept->busy = true;
	}
	work->counted = !run->stop &&
		ttl_report_batch(run, work->root, work->visit, batch, work->skipped,
						work->edata, work->begun);
}

/* Moves the cursor after a batch that failed, and keeps it for the next visit. */
static void
follow_failure(const BatchWork *work, TtlCursor *cursor)
{
	TtlResumeState *kept = ttl_kept_index(work->run->kept, work->leaf);

	if (work->skipped)
		ttl_cursor_row_failed(cursor, &work->batch, work->run->at);
	ttl_schedule_batch_failed(work->visit, &work->batch, work->size, work->gives_up,
							  work->begun);
	kept->cursor = *cursor;
	kept->single_docs = work->visit->single_docs;
}

/*
 * Called when the worker ends.  If a batch was canceled and has not ended, notes that like
 * a batch that has, and returns true.
 */
bool
ttl_attempt_died(void)
{
	BatchWork  *work = at_work;
	TtlCursor	cursor;

	if (work == NULL || !(work->gives_up || ttl_work_is_canceled()))
		return false;
	ttl_kept_canceled(work->run->kept, work->leaf, work->run->at);
	cursor = *work->cursor;
	work->skipped = work->size == 1 && work->batch.candidates > 0;
	work->gives_up = work->visit->skipped = true;
	follow_failure(work, &cursor);
	return true;
}

/* Runs one batch in a transaction of its own, and moves the cursor. */
void
ttl_attempt_batch(TtlRun *run, Oid root, Oid leaf, TtlVisit *visit, TtlCursor *cursor, int size)
{
	BatchWork	work = {.run = run,.root = root,.leaf = leaf,.visit = visit,
	.cursor = cursor,.size = size,.begun = GetCurrentTimestamp()};
	TtlBatch   *batch = &work.batch;
	volatile bool ran = false;
	bool		over;
	TtlResumeState *kept;

	batch->cursor = *cursor;
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
	 * longer than the monitor sleeps: a trigger may write them again.
	 */
	if (!batch->from_before && ttl_work_is_long(run, run->at))
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
