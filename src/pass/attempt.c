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
 * takes its rows one by one.  The monitor leaves the rest of that index to the next pass,
 * which knows what hangs.  A pass of run_pass(), which knows nothing of earlier ones, goes
 * on after it until it has lasted for long.
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
#include "pass/schedule.h"
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
	bool		locks_shard;	/* the placement of a shard is being locked */
	TtlBatch	batch;
	const ErrorData *edata;		/* NULL where it did not fail; and then: */
	bool		skipped;		/* one row was to blame */
	bool		gives_up;		/* the index waits */
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
		/* somebody waits for the table, or it is gone */
		work->batch.busy = index.state == TTL_TABLE_LOCKED;
		work->batch.inactive = !work->batch.busy;
		return;
	}
	if (index.state != TTL_ACTIVE || index.governor != work->root ||
		index.owner != GetUserId() ||
		ttl_citus_goes_elsewhere(&index.citus) || index.citus.shard != shard ||
		!ttl_option_expires(&index.option) || !ttl_leaves_goes_by_row(&index) ||
		!ttl_state_owners_above(&index))
	{
		work->batch.inactive = true;
		return;
	}
	ttl_cutoff_init(&cutoff, &index, run->at);
	ttl_cutoff_init(&pass_cutoff, &index, run->kept->pass_at);
	ttl_kept_progress(run->kept, work->root, GetCurrentTimestamp(), &progress);
	ttl_progress_visit(&index, cutoff.instant, work->cursor, work->visit->begun,
					   work->visit->deleted, &progress);
	ttl_batch_run(&index, &cutoff, &pass_cutoff, run->kept->pass_xid, work->size,
				  ttl_schedule_batch_entries(work->visit, work->size),
				  &work->batch);
}

/*
 * Is no row to blame for an error?  The place to which rows are moved may be full, or on a
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

/* A single row that failed is skipped; of more rows, fewer are tried. */
static bool
has_row_failed(const BatchWork *work)
{
	return work->size == 1 && work->batch.candidates > 0;
}

/* Notes that a batch has failed and is rolled back. */
static void
fail_batch(BatchWork *work, const ErrorData *edata, bool timed_out)
{
	TtlRun	   *run = work->run;
	TtlBatch   *batch = &work->batch;
	bool		is_session = OidIsValid(run->common->caller);

	batch->deleted = batch->archived = batch->skipped_locked = 0;
	if (is_transient_error(batch, edata))
		batch->candidates = 0;
	work->edata = edata;
	work->skipped = has_row_failed(work);
	/* a pass of run_pass() keeps nothing for the next one */
	work->gives_up = timed_out && (!is_session || !work->skipped);
	work->visit->skipped = work->gives_up &&
		(!is_session || ttl_outcome_is_long(run, GetCurrentTimestamp()));
	ttl_outcome_note_error(run, work->root, work->leaf, edata, false);
	if (!work->gives_up)
		return;
	ttl_kept_canceled(run->kept, work->root, work->leaf, run->at);
	(void) ttl_outcome_note_failed(run, work->leaf, true);
}

/*
 * Counts a batch and commits it.  If the commit fails, which needs another server, the
 * failure is counted in a transaction of its own.
 */
static void
end_batch(BatchWork *work, TimestampTz begun)
{
	TtlRun	   *run = work->run;
	bool		counted = ttl_outcome_count(work->root, work->visit, &work->batch,
											work->skipped, work->edata,
											(GetCurrentTimestamp() - begun) / 1000.0);
	bool		timed_out;
	const ErrorData *edata;

	if (work->edata != NULL)
	{
		/* what is counted of an error outlives the memory of the batch */
		ErrorData  *copy = MemoryContextAllocZero(run->context, sizeof(ErrorData));

		copy->sqlerrcode = work->edata->sqlerrcode;
		copy->message = MemoryContextStrdup(run->context, work->edata->message);
		work->edata = copy;
	}
	edata = ttl_work_try_commit(run, &timed_out);
	if (edata != NULL)
	{
		ttl_work_begin(run);
		if (!work->batch.by_value || (!work->batch.busy && work->edata == NULL))
			fail_batch(work, edata, timed_out);
		counted = !ttl_work_must_stop(run) &&
			ttl_outcome_count(work->root, work->visit, &work->batch, work->skipped,
							  work->edata, (GetCurrentTimestamp() - begun) / 1000.0);
		ttl_work_commit(run);
	}
	if (counted)
		ttl_outcome_counted(run, work->visit, &work->batch);
}

/* Moves the cursor after a batch that failed. */
static void
follow_failure(const BatchWork *work, TtlCursor *cursor, TimestampTz begun)
{
	TtlVisit   *visit = work->visit;

	if (work->skipped)
		ttl_cursor_row_failed(cursor, &work->batch, work->run->at);
	/* if no row is deleted beside what hangs already, all of the index may hang */
	if (work->visit->skipped && visit->waits && visit->deleted == 0)
		ttl_kept_index(work->run->kept, work->root)->rests = true;
	ttl_schedule_batch_failed(visit, &work->batch, work->size, work->gives_up, begun);
}

/* Keeps what the next visit has to know of the index of a batch that is over. */
static void
keep_leaf(const BatchWork *work, const TtlCursor *cursor)
{
	TtlKeptIndex *kept = ttl_kept_index(work->run->kept, work->leaf);

	kept->cursor = *cursor;
	kept->single_docs = work->visit->single_docs;
	kept->hangs = work->gives_up;
}

/*
 * Called when the worker ends: if that is because a batch could not be canceled, notes it
 * like one that was.  Returns whether there is one.
 */
bool
ttl_attempt_died(void)
{
	BatchWork  *work = at_work;
	TtlCursor	cursor;

	if (work == NULL || !(work->gives_up || ttl_work_is_canceled()))
		return false;
	cursor = *work->cursor;
	work->skipped = has_row_failed(work);
	work->gives_up = work->visit->skipped = true;
	follow_failure(work, &cursor, work->run->at);
	ttl_kept_canceled(work->run->kept, work->root, work->leaf, work->run->at);
	keep_leaf(work, &cursor);
	return true;
}

/*
 * Is an error that others have locked a table or index to which the batch moves rows, or one
 * that all of these reference?  An INSERT and a foreign key take locks of these modes.  Where
 * others hold a row there, all rows but those that need it can be moved.
 */
static bool
is_of_archive(const TtlBatch *batch, const ErrorData *edata)
{
	LOCKMODE	mode = MyProc->waitLockMode;

	return batch->inserts && ttl_error_is_interrupt(edata, ERRCODE_LOCK_NOT_AVAILABLE) &&
		(mode == RowExclusiveLock || mode == RowShareLock);
}

/* Is an error only that others hold a lock that the batch needs?  Then it did nothing. */
static bool
is_of_lock(BatchWork *work, const ErrorData *edata)
{
	TtlBatch   *batch = &work->batch;
	bool		by_value = batch->by_value;

	/* all copies of a table are locked; Citus says no more than that a lock elsewhere failed */
	if (!(by_value &&
		  (edata->sqlerrcode == ERRCODE_LOCK_NOT_AVAILABLE ||
		   edata->sqlerrcode == ERRCODE_T_R_DEADLOCK_DETECTED ||
		   (edata->sqlerrcode == ERRCODE_INTERNAL_ERROR && batch->locks_copies))) &&
		!is_of_archive(batch, edata))
		return false;
	memset(batch, 0, sizeof(*batch));
	batch->cursor = *work->cursor;
	batch->by_value = by_value;
	batch->busy = true;
	return true;
}

/*
 * Is an error only that the shard is being moved or split, or was just now?  Citus raises
 * one if somebody locks a shard that is no longer there.
 */
static bool
is_of_move(BatchWork *work, const ErrorData *edata)
{
	if (!work->locks_shard)
		return false;
	work->batch.busy = edata->sqlerrcode == ERRCODE_LOCK_NOT_AVAILABLE;
	if (!work->batch.busy)
		work->batch.inactive =
			ttl_citus_kind(IndexGetRelation(work->leaf, true)) != TTL_CITUS_SHARD;
	return work->batch.busy || work->batch.inactive;
}

/* Runs one batch in a transaction of its own, and moves the cursor. */
void
ttl_attempt_batch(TtlRun *run, Oid root, Oid leaf, TtlVisit *visit, TtlCursor *cursor, int size)
{
	TimestampTz begun = GetCurrentTimestamp();
	BatchWork	work = {.run = run,.root = root,.leaf = leaf,.visit = visit,
	.size = size,.cursor = cursor};
	TtlBatch   *batch = &work.batch;

	batch->cursor = *cursor;
	ttl_work_begin(run);
	if (ttl_work_must_stop(run))
	{
		visit->over = true;
		ttl_work_commit(run);
		return;
	}
	at_work = &work;
	PG_TRY();
	{
		bool		timed_out;
		const ErrorData *edata = ttl_work_run(batch_work, &work, &timed_out);

		if (edata != NULL && !is_of_move(&work, edata) && !is_of_lock(&work, edata))
			fail_batch(&work, edata, timed_out);
		if (batch->busy)
		{
			/* that is counted once in a pass */
			TtlKeptIndex *kept = ttl_kept_index(run->kept, leaf);

			batch->skipped_locked = kept->busy ? 0 : 1;
			kept->busy = true;
		}
		end_batch(&work, begun);
	}
	PG_FINALLY();
	{
		/* an error that ends the process leaves this function first */
		at_work = NULL;
	}
	PG_END_TRY();

	if (work.edata == NULL)
	{
		bool		over = ttl_cursor_batch_done(cursor, batch, run->at);

		/*
		 * Rows that were written since the pass began do not keep it going for
		 * longer than the monitor sleeps: a trigger may write them again.
		 */
		if (!batch->from_before && ttl_outcome_is_long(run, run->at))
			batch->past_pass = true;
		ttl_throttle_deleted(&run->common->throttle, batch->deleted);
		ttl_kept_deleted(run->kept, root, batch->deleted, GetCurrentTimestamp());
		ttl_schedule_batch_done(visit, batch, size, over, begun, GetCurrentTimestamp());
	}
	else
		follow_failure(&work, cursor, begun);
	/* nothing is kept of an index in which no entry was found */
	if (cursor->forward.set || cursor->phase != TTL_FORWARD || visit->single_docs > 0 ||
		ttl_kept_find(run->kept, leaf) != NULL)
		keep_leaf(&work, cursor);
}
