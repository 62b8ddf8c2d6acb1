/*-------------------------------------------------------------------------
 *
 * attempt.c
 *	  One batch, tried.
 *
 * Each batch is a transaction, in which the work itself is a subtransaction (work.c):
 * if it fails, its error is counted in the same transaction.  A batch that fails is
 * tried again with a tenth of the rows, down to the single row that cannot be deleted:
 * that row is skipped, and the visit goes on behind it.  An index for which a visit
 * gets nothing done in that way waits for the next pass.  A batch that is canceled
 * because it takes too long ends the visit, and the next one takes its rows one by one.
 * The monitor leaves all else of that index to the next pass, which knows what hangs; a
 * pass of run_pass(), which knows nothing of earlier ones, goes on after it, as long as it
 * is short.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/monitor/attempt.c
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
#include "monitor/monitor.h"
#include "monitor/pass.h"
#include "monitor/schedule.h"
#include "monitor/visit.h"
#include "partition/partition.h"
#include "ttl_index.h"

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
	/* with the lock in hand: it may have changed since it was prepared */
	if (!ttl_catalog_describe(work->leaf, false, &index) ||
		index.state == TTL_TABLE_LOCKED)
	{
		/* somebody waits for the table, or it is gone */
		work->batch.busy = index.state == TTL_TABLE_LOCKED;
		work->batch.inactive = !work->batch.busy;
		return;
	}
	if (index.state != TTL_ACTIVE || index.root != work->root ||
		index.owner != GetUserId() ||
		ttl_citus_goes_elsewhere(&index.citus) || index.citus.shard != shard ||
		!ttl_option_expires(&index.option) || !ttl_leaves_goes_by_row(&index))
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

/* Notes that others have locked an index, which is counted once in a pass. */
static void
note_busy(TtlRun *run, Oid leaf, TtlBatch *batch)
{
	TtlKeptIndex *kept = ttl_kept_index(run->kept, leaf);

	batch->skipped_locked = kept->busy ? 0 : 1;
	kept->busy = true;
}

/*
 * What was written since the pass began goes in the pass too, but does not keep it
 * going for longer than the monitor sleeps: a trigger may write the rows again without
 * end.
 */
static bool
is_for_next_pass(const TtlRun *run, const TtlBatch *batch)
{
	return !batch->from_before && ttl_outcome_is_long(run, run->at);
}

/*
 * Is no row to blame?  Where rows are moved to, there may be no room for any of them, or
 * another server does not answer.  Nor was any row touched while their table was locked.
 */
static bool
is_blameless(const TtlBatch *batch, const ErrorData *edata)
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

	batch->deleted = batch->archived = batch->skipped_locked = 0;
	if (is_blameless(batch, edata))
		batch->candidates = 0;
	work->edata = edata;
	work->skipped = has_row_failed(work);
	/* a pass of run_pass() keeps nothing for the next one: it has to get by */
	work->gives_up = timed_out && (!OidIsValid(run->common->caller) || !work->skipped);
	work->visit->skipped = work->gives_up &&
		(!OidIsValid(run->common->caller) || ttl_outcome_is_long(run, GetCurrentTimestamp()));
	ttl_outcome_note_error(run, work->root, work->leaf, edata, false);
	if (!work->gives_up)
		return;
	ttl_kept_canceled(run->kept, work->root, work->leaf, run->at);
	(void) ttl_outcome_note_failed(run, work->leaf, true);
}

/* Keeps what is counted of an error for longer than the memory of a batch. */
static const ErrorData *
keep_error(MemoryContext context, const ErrorData *edata)
{
	ErrorData  *kept = MemoryContextAllocZero(context, sizeof(ErrorData));

	kept->sqlerrcode = edata->sqlerrcode;
	kept->message = MemoryContextStrdup(context, edata->message);
	return kept;
}

/*
 * Counts a batch and commits it, which can fail.  It does so after a batch that has failed
 * on another node, and says less then.
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
		work->edata = keep_error(run->context, work->edata);
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

/* Moves the cursor, and what is known of the visit, behind a batch that failed. */
static void
follow_failure(const BatchWork *work, TtlCursor *cursor, TimestampTz begun)
{
	TtlVisit   *visit = work->visit;

	if (work->skipped)
		ttl_cursor_row_failed(cursor, &work->batch, work->run->at);
	/* where no row goes beside what hangs already, it may be all that does */
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
 * Notes that the worker ends within a batch that did not let itself be canceled, as if it
 * had, or behind it.  Returns whether there is one.
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

/* Moves the cursor, and what is known of the visit, by what a batch did. */
static void
follow_batch(BatchWork *work, TtlCursor *cursor, TimestampTz begun)
{
	TtlRun	   *run = work->run;
	TtlVisit   *visit = work->visit;
	TtlBatch   *batch = &work->batch;

	if (work->edata == NULL)
	{
		bool		over = ttl_cursor_batch_done(cursor, batch, run->at);

		batch->past_pass = batch->past_pass || is_for_next_pass(run, batch);
		ttl_throttle_deleted(&run->common->throttle, batch->deleted);
		ttl_kept_deleted(run->kept, work->root, batch->deleted, GetCurrentTimestamp());
		ttl_schedule_batch_done(visit, batch, work->size, over, begun,
								GetCurrentTimestamp());
	}
	else
		follow_failure(work, cursor, begun);
}

/*
 * Is an error only that others write to a table, all copies of which the batch was to
 * lock?  Of a lock on another node, Citus says no more than that it failed.
 */
static bool
is_of_writers(const TtlBatch *batch, const ErrorData *edata)
{
	return batch->by_value &&
		(edata->sqlerrcode == ERRCODE_LOCK_NOT_AVAILABLE ||
		 edata->sqlerrcode == ERRCODE_T_R_DEADLOCK_DETECTED ||
		 (edata->sqlerrcode == ERRCODE_INTERNAL_ERROR && batch->locks_copies));
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
	bool		by_value = work->batch.by_value;

	if (!is_of_writers(&work->batch, edata) && !is_of_archive(&work->batch, edata))
		return false;
	memset(&work->batch, 0, sizeof(work->batch));
	work->batch.cursor = *work->cursor;
	work->batch.by_value = by_value;
	work->batch.busy = true;
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

/* Does the work of a batch, counts it, and commits it. */
static void
do_batch(BatchWork *work, TimestampTz begun)
{
	bool		timed_out;
	const ErrorData *edata = ttl_work_run(batch_work, work, &timed_out);

	if (edata != NULL && (is_of_move(work, edata) || is_of_lock(work, edata)))
		edata = NULL;
	if (edata != NULL)
		fail_batch(work, edata, timed_out);
	if (work->batch.busy)
		note_busy(work->run, work->leaf, &work->batch);
	end_batch(work, begun);
}

/* Runs one batch in a transaction of its own, and moves the cursor. */
void
ttl_attempt_batch(TtlRun *run, Oid root, Oid leaf, TtlVisit *visit, TtlCursor *cursor, int size)
{
	TimestampTz begun = GetCurrentTimestamp();
	BatchWork	work = {.run = run,.root = root,.leaf = leaf,.visit = visit,
	.size = size,.cursor = cursor};

	work.batch.cursor = *cursor;
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
		do_batch(&work, begun);
	}
	PG_FINALLY();
	{
		/* who ends the process by an error leaves this function first */
		at_work = NULL;
	}
	PG_END_TRY();
	follow_batch(&work, cursor, begun);
	/* nothing is kept of an index in which no entry was found */
	if (cursor->forward.set || cursor->phase != TTL_FORWARD || visit->single_docs > 0 ||
		ttl_kept_find(run->kept, leaf) != NULL)
		keep_leaf(&work, cursor);
}
