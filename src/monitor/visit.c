/*-------------------------------------------------------------------------
 *
 * visit.c
 *	  One visit to a TTL index: batches of its leaves, and whole partitions.
 *
 * sub_pass.c calls ttl_visit_target() for one TTL index after another.  A visit first
 * makes and drops partitions of a time series, then deletes rows from the indexes that
 * hold them, until schedule.c says that its limits are reached.
 *
 * Each batch is a transaction, in which the work itself is a subtransaction (work.c):
 * if it fails, its error is counted in the same transaction.  A batch that fails is
 * tried again with a tenth of the rows, down to the single row that cannot be deleted:
 * that row is skipped, and the visit goes on behind it.  An index for which a visit
 * gets nothing done in that way waits for the next pass.  A batch that is canceled
 * because it takes too long ends the visit, and the next one takes its rows one by one.
 * The worker leaves all else of that index to the next pass, which knows what hangs; a
 * session, which knows nothing of earlier passes, goes on behind it, as long as its pass
 * is short.
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
#include "catalog/partition.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "utils/acl.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "definition/definition.h"
#include "definition/key.h"
#include "expire/cascade.h"
#include "expire/estimate.h"
#include "expire/expire.h"
#include "monitor/monitor.h"
#include "monitor/pass.h"
#include "monitor/schedule.h"
#include "partition/partition.h"
#include "ttl_index.h"

/*
 * After so many partitions for which a lock is not free that others need as well, a visit
 * tries no more of them.
 */
#define MAX_BUSY_PARTITIONS 3

/* Is the index or partition not to be visited again in this pass? */
bool
ttl_visit_is_skipped(const TtlRun *run, Oid relid)
{
	const TtlKeptIndex *index = ttl_kept_find(run->kept, relid);

	return index != NULL && index->skipped;
}

/* Notes that an index or partition has failed; false if that is known in this pass. */
bool
ttl_visit_note_failed(TtlRun *run, Oid relid, bool skipped)
{
	TtlKeptIndex *index = ttl_kept_index(run->kept, relid);
	bool		new = !index->failed;

	index->failed = true;
	index->skipped = index->skipped || skipped;
	return new;
}

/*
 * Notes an error of an index, or of one that holds rows of it, and reports it if it is the
 * first one in this pass.  What had to be canceled is tried again after a growing delay.
 */
void
ttl_visit_note_error(TtlRun *run, Oid root, Oid indexrelid, const ErrorData *edata,
					 bool timed_out)
{
	if (ttl_visit_note_failed(run, root, timed_out))
	{
		TtlKeptIndex *index = ttl_kept_index(run->kept, root);

		run->kept->sum.failed += index->summed ? 0 : 1;
		index->summed = true;
		ttl_report_error(run, root, indexrelid, edata);
	}
	if (timed_out)
		ttl_kept_canceled(run->kept, root, indexrelid, run->at);
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
		!ttl_prepare_is_allowed(run, work->root) ||
		!ttl_prepare_is_allowed(run, work->leaf) ||
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
	ttl_batch_run(&index, &cutoff, &pass_cutoff, run->kept->pass_xid,
				  work->cursor, work->size,
				  ttl_schedule_batch_entries(work->visit, work->size),
				  &work->batch);
}

/*
 * Counts an error that was met in a table of the index, which ttl_work_run() has returned.
 * What code of another role says, be it that of a partition, can be what is in other tables
 * of that role, and is not for the owner of the whole, now or later: the table can be given away.
 */
void
ttl_visit_set_error(TtlCount *count, Oid table, const ErrorData *edata)
{
	Oid			role = ttl_leftover_failed();

	if (!OidIsValid(role) && SearchSysCacheExists1(RELOID, ObjectIdGetDatum(table)))
		role = ttl_owner_of(table);
	count->errors = 1;
	count->last_error = edata->message;
	count->last_error_role = role;
	if (OidIsValid(role) &&
		SearchSysCacheExists1(RELOID, ObjectIdGetDatum(count->relid)) &&
		!has_privs_of_role(ttl_owner_of(count->relid), role))
	{
		const char *name = GetUserNameFromId(role, true);

		count->last_error = name == NULL ?
			pstrdup("an error in what belongs to other roles: the server log has it") :
			psprintf("an error in what belongs to another role, \"%s\": the server log has it", name);
		count->last_error_role = InvalidOid;
	}
	count->last_error_sqlstate = unpack_sql_state(edata->sqlerrcode);
	count->last_error_time = GetCurrentTimestamp();
}

/*
 * Counts what a batch did, in its transaction.  Returns false for a batch that did
 * nothing, which is not counted.
 */
static bool
count_batch(Oid root, Oid table, const TtlVisit *visit, const TtlBatch *batch, bool skipped,
			const ErrorData *edata, double milliseconds)
{
	TtlCount	count = {0};

	if (batch->live == 0 && edata == NULL && batch->skipped_locked == 0)
		return false;
	count.indexrelid = root;
	count.relid = IndexGetRelation(root, true);
	count.visits = visit->counted ? 0 : 1;
	count.batches = 1;
	count.deleted_documents = batch->deleted;
	count.deleted_buckets = batch->partitions;
	count.archived_documents = batch->archived;
	count.archived_buckets = batch->archived_partitions;
	count.skipped_locked = batch->skipped_locked;
	count.skipped_failed = skipped ? 1 : 0;
	count.delete_time = milliseconds;
	if (batch->deleted > 0)
		count.last_deleted = GetCurrentTimestamp();
	if (edata != NULL && visit->failures == 0)
		ttl_visit_set_error(&count, table, edata);
	ttl_counters_add(&count);
	return true;
}

/* Notes that a batch was counted, once that is committed. */
static void
note_counted(TtlRun *run, TtlVisit *visit, const TtlBatch *batch)
{
	run->kept->unfolded_rows++;
	run->kept->sum.deleted += batch->deleted;
	run->kept->sum.partitions += batch->partitions;
	run->kept->sum.archived += batch->archived;
	run->kept->sum.archived_partitions += batch->archived_partitions;
	run->kept->sum.locked += batch->skipped_locked;
	run->kept->survey.deleted += batch->deleted;
	run->kept->survey.partitions += batch->partitions;
	visit->counted = true;
	run->kept->counted = true;
}

/* Notes that others have locked an index, which is counted once in a pass. */
static void
note_busy(TtlRun *run, Oid leaf, TtlBatch *batch)
{
	TtlKeptIndex *kept = ttl_kept_index(run->kept, leaf);

	batch->skipped_locked = kept->busy ? 0 : 1;
	kept->busy = true;
}

/* Has the pass lasted for longer than the monitor sleeps? */
static bool
is_long(const TtlRun *run, TimestampTz now)
{
	return now - run->kept->pass_at >= ttl_monitor_sleep * USECS_PER_SEC;
}

/*
 * What was written since the pass began goes in the pass too, but does not keep it
 * going for longer than the monitor sleeps: a trigger may write the rows again without
 * end.
 */
static bool
is_for_next_pass(const TtlRun *run, const TtlBatch *batch)
{
	return !batch->from_before && is_long(run, run->at);
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
	/* a session keeps nothing for its next pass: this one has to get by */
	work->gives_up = timed_out && (run->driver->is_worker || !work->skipped);
	work->visit->skipped = work->gives_up && (run->driver->is_worker ||
											  is_long(run, GetCurrentTimestamp()));
	ttl_visit_note_error(run, work->root, work->leaf, edata, false);
	if (!work->gives_up)
		return;
	ttl_kept_canceled(run->kept, work->root, work->leaf, run->at);
	(void) ttl_visit_note_failed(run, work->leaf, true);
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
	Oid			table = IndexGetRelation(work->leaf, true);
	bool		counted = count_batch(work->root, table, work->visit, &work->batch, work->skipped,
									  work->edata, (GetCurrentTimestamp() - begun) / 1000.0);
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
			count_batch(work->root, table, work->visit, &work->batch, work->skipped, work->edata,
						(GetCurrentTimestamp() - begun) / 1000.0);
		ttl_work_commit(run);
	}
	if (counted)
		note_counted(run, work->visit, &work->batch);
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
ttl_visit_died(void)
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
		ttl_throttle_deleted(&run->shared->throttle, batch->deleted);
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
 * that all of these lead to?  Where others hold a row there, all rows but those that need it can go.
 * An INSERT alone takes a lock in the mode of the first.  That of a foreign key is also how core
 * awaits a row in the place of a second session, for a trigger: so these tables are looked at.
 */
static bool
is_of_archive(const TtlBatch *batch, const ErrorData *edata)
{
	LOCKMODE	mode = MyProc->waitLockMode;

	if (!OidIsValid(batch->inserts_into) ||
		!ttl_error_is_interrupt(edata, ERRCODE_LOCK_NOT_AVAILABLE))
		return false;
	return mode == RowExclusiveLock ||
		(mode == RowShareLock && ttl_cascade_is_locked(batch->inserts_into));
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
	const ErrorData *edata = ttl_work_run(work->run->driver, batch_work, work, &timed_out);

	if (edata != NULL && (is_of_move(work, edata) || is_of_lock(work, edata)))
		edata = NULL;
	if (edata != NULL)
		fail_batch(work, edata, timed_out);
	if (work->batch.busy)
		note_busy(work->run, work->leaf, &work->batch);
	end_batch(work, begun);
}

/* Runs one batch in a transaction of its own, and moves the cursor. */
static void
run_batch(TtlRun *run, Oid root, Oid leaf, TtlVisit *visit, TtlCursor *cursor,
		  int size)
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
		if (ttl_work_run(run->driver, estimate_work, &work, &timed_out) != NULL)
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
	run->shared->current_leaf = leaf;
	visit->over = false;
	/* this holds if there is no time for a batch */
	visit->more = true;
	while (!run->stop &&
		   (size = ttl_schedule_batch_size(visit, GetCurrentTimestamp())) > 0 &&
		   ttl_work_wait_for_batch(run))
	{
		run_batch(run, target->root, leaf, visit, &cursor,
				  ttl_throttle_batch_size(size));
		estimate_due(run, target);
	}
}

/* Had the last work on an index that holds rows, or on a partition, to be canceled? */
static bool
hangs(const TtlRun *run, Oid relid)
{
	const TtlKeptIndex *kept = ttl_kept_find(run->kept, relid);

	return kept != NULL && kept->hangs;
}

/* The arguments and the result of making or dropping one partition. */
typedef struct PartitionWork
{
	TtlRun	   *run;
	const TtlTarget *target;
	Oid			root;
	const TtlPartition *partition;
	TtlBatch   *batch;
} PartitionWork;

/* Under what is it kept that this hangs?  Making partitions counts for the whole table. */
static Oid
partition_key(const TtlTarget *target, const TtlPartition *partition)
{
	return OidIsValid(partition->relid) ? partition->relid : target->relid;
}

/* A partition is made with a look at the rows of the DEFAULT partition, as its owner. */
static bool
may_act(const PartitionWork *work)
{
	Oid			table = IndexGetRelation(work->root, true);
	Oid			relid = work->partition->relid;

	if (!OidIsValid(relid) && OidIsValid(table))
		relid = get_default_partition_oid(table);
	if (!OidIsValid(relid) || ttl_prepare_may_act_on(work->run, relid))
		return true;
	if (!OidIsValid(work->partition->relid))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("partition \"%s\" belongs to a role whose privileges the caller lacks",
						get_rel_name(relid)),
				 errhint("Leave it to the monitor, or give the partition the owner of its table.")));
	return false;
}

static void
partition_work(void *arg)
{
	PartitionWork *work = arg;

	if (!ttl_prepare_is_allowed(work->run, work->root) || !may_act(work))
		return;
	if (OidIsValid(work->partition->relid))
		ttl_drop_partition(work->root, work->partition->relid, work->run->at,
						   work->batch);
	else
		ttl_make_partition(work->root, work->partition, work->batch);
	/* while locks were waited for, the table may have got another owner */
	if (OidIsValid(IndexGetRelation(work->root, true)) &&
		!ttl_prepare_is_allowed(work->run, work->root))
		ereport(ERROR,
				(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
				 errmsg("the table of index with OID %u has another owner now",
						work->root)));
}

/*
 * Notes what became of a partition, and counts it, in the transaction at hand.  Returns whether
 * there was anything to count.
 */
static bool
count_partition(const PartitionWork *work, TtlVisit *visit, bool first_error,
				const ErrorData *edata, bool timed_out, TimestampTz begun)
{
	TtlRun	   *run = work->run;
	TtlBatch   *batch = work->batch;
	Oid			key = partition_key(work->target, work->partition);

	if (edata != NULL)
	{
		memset(batch, 0, sizeof(*batch));
		batch->busy = ttl_error_is_of_lock(edata);
	}
	if (batch->busy)
		batch->skipped_locked = 1;
	if (edata != NULL && !batch->busy)
		ttl_visit_note_error(run, work->root, work->root, edata, false);
	if (edata != NULL && timed_out)
	{
		ttl_kept_canceled(run->kept, work->root, key, run->at);
		visit->put_off = true;
	}
	else if (hangs(run, key))
		ttl_kept_index(run->kept, key)->hangs = false;
	return count_batch(work->root, key, visit, batch, false,
					   batch->busy || !first_error ? NULL : edata,
					   (GetCurrentTimestamp() - begun) / 1000.0);
}

/*
 * Makes or drops a partition in a transaction of its own.  Returns false if that failed;
 * the locks that were not free are no failure.
 */
static bool
run_partition(TtlRun *run, const TtlTarget *target, const TtlPartition *partition,
			  TtlVisit *visit, bool first_error, TtlBatch *batch)
{
	TimestampTz begun = GetCurrentTimestamp();
	PartitionWork work = {.run = run,.target = target,.root = target->root,
	.partition = partition,.batch = batch};
	ErrorData  *edata;
	ErrorData  *commit_error;
	bool		timed_out;
	bool		counted;

	ttl_work_begin(run);
	if (ttl_work_must_stop(run))
	{
		ttl_work_commit(run);
		return true;
	}

	/*
	 * All others who use the table wait for its locks, which would last until
	 * a standby has answered, also in a session.
	 */
	(void) set_config_option("synchronous_commit", "off", PGC_USERSET,
							 PGC_S_SESSION, GUC_ACTION_LOCAL, true, 0, false);
	edata = ttl_work_run(run->driver, partition_work, &work, &timed_out);
	counted = count_partition(&work, visit, first_error, edata, timed_out, begun);
	commit_error = ttl_work_try_commit(run, &timed_out);
	if (commit_error != NULL)
	{
		edata = commit_error;
		ttl_work_begin(run);
		counted = !ttl_work_must_stop(run) &&
			count_partition(&work, visit, first_error, edata, timed_out, begun);
		ttl_work_commit(run);
	}
	if (counted)
		note_counted(run, visit, batch);
	return edata == NULL || batch->busy;
}

/*
 * Makes or drops the partitions of a time series, within the time of a visit each.  What
 * keeps those from being made, a lock on their names, say, need not keep others from being
 * dropped.  Returns whether some of them remain for the next sub-pass.  A partition that
 * was locked gets a second try there and no third one in this pass, because the lock may be
 * held for hours; the others go on, unless they need that lock, too.  A partition that could
 * not be dropped waits for the next pass, so that one that takes long to fail does not use
 * up the time of the others.
 */
static bool
visit_partitions(TtlRun *run, const TtlTarget *target, TtlVisit *visit, bool makes)
{
	TimestampTz begun = GetCurrentTimestamp();
	int			failed = 0;
	int			locked = 0;
	bool		progress = false;
	bool		again = false;
	ListCell   *lc;

	foreach(lc, target->partitions)
	{
		int64		took = (GetCurrentTimestamp() - begun) / 1000;
		TtlPartition *partition = lfirst(lc);
		TtlBatch	batch = {0};

		if (run->stop || locked >= MAX_BUSY_PARTITIONS)
			break;
		if (OidIsValid(partition->relid) == makes ||
			ttl_visit_is_skipped(run, partition->relid))
			continue;
		if (visit->waits && hangs(run, partition_key(target, partition)))
		{
			visit->put_off = true;
			continue;
		}
		if (visit->limits.index_time > 0 && took >= visit->limits.index_time)
			return progress;
		if (!run_partition(run, target, partition, visit, failed == 0, &batch))
		{
			failed++;
			if (OidIsValid(partition->relid))
			{
				(void) ttl_visit_note_failed(run, partition->relid, true);
				progress = true;
			}
		}
		else if (batch.busy)
		{
			locked += batch.busy_alone ? 0 : 1;
			if (ttl_visit_note_failed(run, partition->relid, false))
			{
				progress = true;
				/* a pass that lasts is not to last longer by these tries */
				again = again || !is_long(run, run->at);
			}
			else if (batch.busy_alone)
			{
				(void) ttl_visit_note_failed(run, partition->relid, true);
				progress = true;
			}
		}
		else
			progress = true;
	}
	return again;
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
	TtlCount	count = {.indexrelid = kept->relid};

	kept->said.at = 0;
	if (!kept->failing)
		return;
	ttl_work_begin(run);
	if (!ttl_work_must_stop(run))
	{
		count.relid = IndexGetRelation(kept->relid, true);
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
		(void) ttl_visit_note_failed(run, target->root, true);
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
	more_partitions = visit_partitions(run, target, &visit, true);
	more_partitions = visit_partitions(run, target, &visit, false) || more_partitions;
	for (int i = 0; i < count && !run->stop && !visit.skipped; i++)
	{
		Oid			leaf = list_nth_oid(target->leaves, (first + i) % count);
		int			batches = visit.batches;

		if (ttl_visit_is_skipped(run, leaf) || (visit.waits && hangs(run, leaf)))
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
