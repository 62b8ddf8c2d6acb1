/*-------------------------------------------------------------------------
 *
 * run.c
 *	  One sub-pass over the TTL indexes of this database.
 *
 * The place where the scheduler (pass.c), the deletion (expire.c) and the
 * counters (stats.c) meet, and the only one that begins and ends transactions.
 * The monitor's worker and run_pass() both drive it; they differ in how a
 * transaction is ended, which is all that TtlDriver says.
 *
 * Each batch is a transaction.  The work runs in a subtransaction of it, so that
 * an error of a user's code takes back the batch alone, and is still counted.  A
 * batch that fails is tried again with a tenth of the rows, down to the one that
 * cannot be deleted: that one is skipped, and the visit goes on behind it.  An
 * index that gets nothing done that way waits for the next pass.
 *
 * A batch may spend ttl_index.batch_timeout, which is armed here: SPI arms no
 * statement_timeout in a background worker.  Code that catches the cancellation
 * and goes on costs the process its life, a session's a little later.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/run.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/pg_database.h"
#include "commands/dbcommands.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/interrupt.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "storage/procarray.h"
#include "utils/acl.h"
#include "utils/guc.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timeout.h"
#include "utils/timestamp.h"

#include "statefile.h"
#include "ttl_index.h"

/* A database with nothing to delete writes its passes this seldom. */
#define IDLE_FLUSH_MS (5 * 60 * 1000)

/* After a canceled batch went on for this long, end the process. */
#define CANCEL_GRACE_MS 5000

/* At the end of a pass, try what was locked so often, at such intervals. */
#define BUSY_TRIES 10
#define BUSY_WAIT_MS 100

/* So much of an error's text is kept. */
#define MAX_ERROR_TEXT 1000

/* After so many locks that could not be had, a table is in use. */
#define MAX_BUSY_BUCKETS 3

/* So often is an index prepared that others' DDL gets in the way of. */
#define PREPARE_TRIES 2

/* So many indexes are prepared in one transaction. */
#define PREPARE_SHARED 50

/* A TTL index and those of it that hold rows. */
typedef struct Target
{
	Oid			root;
	int			nleaves;
	Oid		   *leaves;
	List	   *buckets;		/* of a time series: to be made, or dropped */
	bool		busy;			/* something was locked at the last visit */
} Target;

typedef struct Run
{
	const TtlDriver *driver;
	TtlTurn    *turn;
	TtlKept    *kept;
	MemoryContext context;		/* of the turn */
	MemoryContext batch_context;	/* reset before each batch */
	TimestampTz at;				/* the clock reading of this sub-pass */
	bool		stop;			/* leave: disabled, dropped, launcher gone */
	List	   *targets;
} Run;

static TimeoutId batch_timer = MAX_TIMEOUTS;
static volatile sig_atomic_t timer_fired = 0;
static bool is_worker = false;
static volatile sig_atomic_t in_batch = false;

/* In a signal handler. */
static void
batch_timer_handler(void)
{
	timer_fired++;
	if (timer_fired > (is_worker ? 1 : 3))
		ProcDiePending = true;
	QueryCancelPending = true;
	InterruptPending = true;
	SetLatch(MyLatch);
}

/*
 * Somebody cancels what a worker does.  In a signal handler.  It ends a batch, as in a
 * session; what is between two batches is over before anybody could mean it.
 */
void
ttl_run_cancel(void)
{
	if (!in_batch)
		return;
	QueryCancelPending = true;
	InterruptPending = true;
	SetLatch(MyLatch);
}

static void
arm_batch_timer(const TtlDriver *driver)
{
	timer_fired = 0;
	is_worker = driver->is_worker;
	in_batch = true;
	if (ttl_batch_timeout == 0)
		return;
	if (batch_timer == MAX_TIMEOUTS)
		batch_timer = RegisterTimeout(USER_TIMEOUT, batch_timer_handler);
	enable_timeout_every(batch_timer,
						 TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
													 ttl_batch_timeout),
						 CANCEL_GRACE_MS);
}

/* Returns whether the timer had fired. */
static bool
disarm_batch_timer(void)
{
	bool		fired;

	in_batch = false;
	if (batch_timer != MAX_TIMEOUTS)
		disable_timeout(batch_timer, false);
	fired = timer_fired > 0;
	/* it may have come after the last check for interrupts */
	if (fired || is_worker)
		QueryCancelPending = false;
	timer_fired = 0;
	return fired;
}

/* Is a batch going on that was canceled?  For a process that ends. */
bool
ttl_run_is_canceled(void)
{
	return timer_fired > 0;
}

static void
begin(Run *run)
{
	run->driver->begin();
	/* for the catalogs and the counters; a batch takes its own */
	PushActiveSnapshot(GetTransactionSnapshot());
	MemoryContextReset(run->batch_context);
	MemoryContextSwitchTo(run->batch_context);
}

static void
commit(Run *run)
{
	MemoryContextSwitchTo(run->context);
	PopActiveSnapshot();
	run->driver->commit();
	MemoryContextSwitchTo(run->context);
}

/*
 * Can the lock on this database be had that every connection takes?  DROP
 * DATABASE and CREATE DATABASE ... TEMPLATE wait for us while they hold it.
 */
static bool
database_is_free(void)
{
	LOCKTAG		tag;

	SET_LOCKTAG_OBJECT(tag, InvalidOid, DatabaseRelationId, MyDatabaseId, 0);
	if (LockAcquire(&tag, RowExclusiveLock, false, true) == LOCKACQUIRE_NOT_AVAIL)
		return false;
	LockRelease(&tag, RowExclusiveLock, false);
	return true;
}

/*
 * Should the pass end now?  Asked in a transaction, before each batch.  A session
 * that runs a pass stays, as its user can cancel it, but not without the extension.
 *
 * The table of the counters is locked here, before anything of users: DROP
 * EXTENSION ... CASCADE comes to it before it comes to their indexes.
 */
static bool
must_stop(Run *run)
{
	bool		is_worker = run->driver->is_worker;

	CHECK_FOR_INTERRUPTS();
	if (run->stop)
		return true;
	if (is_worker && ConfigReloadPending)
	{
		ConfigReloadPending = false;
		ProcessConfigFile(PGC_SIGHUP);
	}
	if (is_worker)
		run->stop = !ttl_monitor_enabled ||
			BackendPidGetProc(run->turn->launcher_pid) == NULL ||
			!database_is_free();
	if (!run->stop)
		run->stop = !ttl_stats_lock(!is_worker);
	return run->stop;
}

/* Waits, outside of a transaction.  False where the turn is to end. */
static bool
wait_briefly(Run *run, TtlWait wait, long milliseconds)
{
	ttl_progress_wait(wait, milliseconds);
	begin(run);
	(void) must_stop(run);
	commit(run);
	return !run->stop;
}

/* Waits until the next batch may begin.  False where the turn is to end. */
static bool
wait_for_turn(Run *run)
{
	TtlWait		wait;
	long		milliseconds;

	while ((wait = ttl_throttle_wait(run->turn, &milliseconds)) != TTL_WAIT_NONE)
	{
		if (!wait_briefly(run, wait, milliseconds))
			return false;
	}
	return true;
}

/* Is it not to be visited again in this pass? */
static bool
is_aside(const Run *run, Oid relid)
{
	const TtlKeptIndex *index = ttl_kept_find(run->kept, relid);

	return index != NULL && index->aside;
}

/* Notes an error; false if that was done before in this pass. */
static bool
note_failed(Run *run, Oid relid, bool aside)
{
	TtlKeptIndex *index = ttl_kept_index(run->kept, relid);
	bool		new = !index->failed;

	index->failed = true;
	index->aside = index->aside || aside;
	return new;
}

/* A user's error can be of any length. */
static char *
clip(char *text)
{
	int			length = text ? strlen(text) : 0;

	if (length > MAX_ERROR_TEXT)
		text[pg_mbcliplen(text, length, MAX_ERROR_TEXT)] = '\0';
	return text;
}

/* One report an index and pass: the first error of it. */
static void
report_error(Oid indexrelid, const ErrorData *edata)
{
	char	   *name = get_rel_name(indexrelid);

	ereport(WARNING,
			(errcode(edata->sqlerrcode),
			 errmsg("could not expire rows by TTL index \"%s\": %s",
					name ? name : "?", edata->message),
			 edata->detail ? errdetail_internal("%s", edata->detail) : 0,
			 edata->hint ? errhint("%s", edata->hint) : 0,
			 edata->context ? errcontext("%s", edata->context) : 0));
}

/*
 * Notes an error of an index, and reports it if it is the first of this pass.
 * What had to be canceled is tried again after a growing delay.
 */
static void
note_error(Run *run, Oid root, Oid indexrelid, const ErrorData *edata,
		   bool timed_out)
{
	if (note_failed(run, root, timed_out))
		report_error(indexrelid, edata);
	if (timed_out)
		ttl_kept_canceled(ttl_kept_index(run->kept, root), run->at);
}

/*
 * Runs something in a subtransaction, so that an error takes back that alone.
 * Returns NULL or the error.
 */
static ErrorData *
protect(void (*work) (void *), void *arg)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	ErrorData  *volatile edata = NULL;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		work(arg);
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		edata = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	return edata;
}

/* A batch, for its subtransaction. */
typedef struct BatchWork
{
	Run		   *run;
	Oid			root;
	Oid			leaf;
	const TtlVisit *visit;
	const TtlResume *resume;
	int			size;
	TtlBatch	batch;
} BatchWork;

static void
batch_work(void *arg)
{
	BatchWork  *work = arg;
	Run		   *run = work->run;
	Oid			relid = IndexGetRelation(work->leaf, true);
	TtlIndex	index;
	TtlCutoff	cutoff;
	TtlCutoff	pass_cutoff;

	if (OidIsValid(relid) && !ttl_expire_lock(relid, work->leaf))
	{
		work->batch.busy = true;
		return;
	}
	/* behind the lock: it may have changed since the list was made */
	if (!ttl_catalog_describe(work->leaf, false, &index) ||
		index.state == TTL_TABLE_LOCKED)
	{
		/* somebody waits for it, or it is gone */
		work->batch.busy = index.state == TTL_TABLE_LOCKED;
		work->batch.exhausted = !work->batch.busy;
		return;
	}
	if (index.state != TTL_ACTIVE || index.root != work->root ||
		index.option.seconds < 0)
	{
		work->batch.exhausted = true;
		return;
	}
	ttl_cutoff_init(&cutoff, &index, run->at);
	ttl_cutoff_init(&pass_cutoff, &index, run->kept->pass_at);
	ttl_progress_visit(&index, cutoff.instant, work->visit->begun,
					   work->visit->deleted);
	ttl_expire_batch(&index, &cutoff, &pass_cutoff, work->resume, work->size,
					 &work->batch);
}

/* Did this process cancel its query?  A user's code can raise the same SQLSTATE. */
static bool
is_cancel(const ErrorData *edata)
{
	return edata->sqlerrcode == ERRCODE_QUERY_CANCELED &&
		edata->funcname != NULL &&
		strcmp(edata->funcname, "ProcessInterrupts") == 0;
}

/*
 * Runs a batch within its time.  Returns NULL or the error, with *timed_out if that
 * was canceled: by the timer, or in a worker by anybody.  What a user canceled in a
 * session ends the whole.
 */
static ErrorData *
timed_work(const TtlDriver *driver, void (*function) (void *), void *arg,
		   bool *timed_out)
{
	ErrorData  *edata;

	arm_batch_timer(driver);
	edata = protect(function, arg);
	*timed_out = disarm_batch_timer();
	if (edata == NULL)
		return NULL;
	if (is_cancel(edata) && !*timed_out && !driver->is_worker)
		ReThrowError(edata);
	edata->message = *timed_out ?
		pstrdup("canceled after ttl_index.batch_timeout") : clip(edata->message);
	edata->detail = clip(edata->detail);
	edata->hint = clip(edata->hint);
	edata->context = clip(edata->context);
	*timed_out = *timed_out || is_cancel(edata);
	return edata;
}

static void
set_error(TtlCount *count, const ErrorData *edata)
{
	count->errors = 1;
	count->last_error = edata->message;
	count->last_error_sqlstate = unpack_sql_state(edata->sqlerrcode);
	count->last_error_time = GetCurrentTimestamp();
}

/* Writes what a batch did, in its transaction.  Nothing for an idle one. */
static void
count_batch(Run *run, Oid root, TtlVisit *visit, const TtlBatch *batch,
			bool skipped, const ErrorData *edata, double milliseconds)
{
	TtlCount	count = {0};

	if (batch->live == 0 && edata == NULL && batch->skipped_locked == 0)
		return;
	count.indexrelid = root;
	count.relid = IndexGetRelation(root, true);
	count.visits = visit->counted ? 0 : 1;
	count.batches = 1;
	count.deleted_documents = batch->deleted;
	count.deleted_buckets = batch->buckets;
	count.skipped_locked = batch->skipped_locked;
	count.skipped_failed = skipped ? 1 : 0;
	count.delete_time = milliseconds;
	if (batch->deleted > 0)
		count.last_deleted = GetCurrentTimestamp();
	if (edata != NULL && visit->failures == 0)
		set_error(&count, edata);
	ttl_stats_add(&count);
	run->kept->unfolded_rows++;
	visit->counted = true;
	run->kept->counted = true;
}

/* Counts that an index is locked by others, once in a pass. */
static void
note_busy(Run *run, Oid leaf, TtlBatch *batch)
{
	TtlKeptIndex *kept = ttl_kept_index(run->kept, leaf);

	batch->skipped_locked = kept->busy ? 0 : 1;
	kept->busy = true;
}

/* One batch in a transaction of its own; moves the resume point. */
static void
run_batch(Run *run, Oid root, Oid leaf, TtlVisit *visit, TtlResume *resume,
		  int size)
{
	TimestampTz begun = GetCurrentTimestamp();
	BatchWork	work = {.run = run,.root = root,.leaf = leaf,.visit = visit,
	.size = size,.resume = resume};
	TtlBatch   *batch = &work.batch;
	ErrorData  *edata;
	bool		timed_out;
	bool		skipped = false;

	batch->resume = *resume;
	begin(run);
	if (must_stop(run))
	{
		visit->over = true;
		commit(run);
		return;
	}
	edata = timed_work(run->driver, batch_work, &work, &timed_out);
	if (edata != NULL)
	{
		batch->deleted = batch->skipped_locked = 0;
		/* a single row that failed is left behind; of more, fewer are tried */
		skipped = size == 1 && batch->candidates > 0 && !timed_out;
		visit->aside = timed_out;
		note_error(run, root, leaf, edata, timed_out);
	}
	if (batch->busy)
		note_busy(run, leaf, batch);
	count_batch(run, root, visit, batch, skipped, edata,
				(GetCurrentTimestamp() - begun) / 1000.0);
	commit(run);

	if (edata == NULL)
	{
		bool		over = ttl_resume_batch_done(resume, batch, run->at);

		ttl_throttle_deleted(&run->turn->throttle, batch->deleted);
		ttl_visit_batch_done(visit, batch, size, over, begun,
							 GetCurrentTimestamp());
	}
	else
	{
		if (skipped)
			ttl_resume_row_failed(resume, batch, run->at);
		ttl_visit_batch_failed(visit, size,
							   batch->candidates > 0 && !timed_out, begun);
	}
	/* of one where nothing was found there is nothing to keep */
	if (resume->at.set || resume->phase != TTL_FORWARD ||
		ttl_kept_find(run->kept, leaf) != NULL)
		ttl_kept_index(run->kept, leaf)->resume = *resume;
}

/* The batches of one leaf, as far as the budget of the visit goes. */
static void
visit_leaf(Run *run, Oid root, Oid leaf, TtlVisit *visit)
{
	const TtlKeptIndex *kept = ttl_kept_find(run->kept, leaf);
	TtlResume	resume = {.indexrelid = leaf};
	int			size;

	if (kept != NULL)
		resume = kept->resume;
	ttl_resume_begin_visit(&resume);
	visit->over = false;
	/* until a batch says otherwise: there may be no time for one */
	visit->more = true;
	while (!run->stop &&
		   (size = ttl_visit_batch_size(visit, GetCurrentTimestamp())) > 0 &&
		   wait_for_turn(run))
		run_batch(run, root, leaf, visit, &resume,
				  ttl_throttle_batch_size(size));
}

/* A bucket, for its subtransaction. */
typedef struct BucketWork
{
	Run		   *run;
	Oid			root;
	const TtlBucket *bucket;
	TtlBatch	batch;
} BucketWork;

static void
bucket_work(void *arg)
{
	BucketWork *work = arg;

	if (OidIsValid(work->bucket->relid))
		ttl_bucket_drop(work->root, work->bucket->relid, work->run->at,
						&work->batch);
	else
		ttl_bucket_make(work->root, work->bucket, &work->batch);
}

/*
 * Makes or drops a bucket in a transaction of its own.  Returns false where that
 * failed; where locks were missing, sets *busy.
 */
static bool
run_bucket(Run *run, Oid root, const TtlBucket *bucket, TtlVisit *visit,
		   bool first_error, bool *busy)
{
	TimestampTz begun = GetCurrentTimestamp();
	BucketWork	work = {.run = run,.root = root,.bucket = bucket};
	ErrorData  *edata;
	bool		timed_out;

	begin(run);
	if (must_stop(run))
	{
		commit(run);
		return true;
	}

	/*
	 * its locks are in everybody's way until a standby has answered, in a
	 * session too
	 */
	(void) set_config_option("synchronous_commit", "off", PGC_USERSET,
							 PGC_S_SESSION, GUC_ACTION_LOCAL, true, 0, false);
	edata = timed_work(run->driver, bucket_work, &work, &timed_out);
	if (edata != NULL)
	{
		memset(&work.batch, 0, sizeof(work.batch));
		work.batch.busy = edata->sqlerrcode == ERRCODE_LOCK_NOT_AVAILABLE;
	}
	*busy = work.batch.busy;
	if (*busy)
		work.batch.skipped_locked = 1;
	if (edata != NULL && !*busy)
		note_error(run, root, root, edata, false);
	count_batch(run, root, visit, &work.batch, false,
				*busy || !first_error ? NULL : edata,
				(GetCurrentTimestamp() - begun) / 1000.0);
	commit(run);
	return edata == NULL || *busy;
}

/*
 * Makes and drops the buckets of a time series, within the time of a visit.
 * Returns whether some are left for the next sub-pass.  There one that was locked
 * gets a second try in the pass, and no more: the lock may be held for hours.  One
 * that could not be dropped waits for the next pass, so that one which takes long
 * to fail leaves the time to the others.
 */
static bool
visit_buckets(Run *run, const Target *target, TtlVisit *visit)
{
	int			failed = 0;
	int			locked = 0;
	bool		progress = false;
	bool		again = false;
	ListCell   *lc;

	foreach(lc, target->buckets)
	{
		int64		took = (GetCurrentTimestamp() - visit->begun) / 1000;
		TtlBucket  *bucket = lfirst(lc);
		bool		busy = false;

		if (run->stop || locked >= MAX_BUSY_BUCKETS)
			break;
		if (is_aside(run, bucket->relid))
			continue;
		if (visit->limits.index_time > 0 && took >= visit->limits.index_time)
			return progress;
		if (!run_bucket(run, target->root, bucket, visit, failed == 0, &busy))
		{
			failed++;
			if (OidIsValid(bucket->relid))
			{
				(void) note_failed(run, bucket->relid, true);
				progress = true;
			}
		}
		else if (busy)
		{
			locked++;
			if (note_failed(run, bucket->relid, false))
				again = progress = true;
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
	char	   *name;

	if (ttl_log_min_duration < 0 || took < ttl_log_min_duration ||
		visit->deleted == 0)
		return;
	name = get_rel_name(root);
	ereport(LOG,
			(errmsg("TTL index \"%s\": deleted %lld rows in %d batches, %lld ms",
					name ? name : "?", (long long) visit->deleted,
					visit->batches, (long long) took)));
}

/* Keeps what the next visit has to know, if there is anything. */
static void
end_visit(Run *run, Target *target, TtlVisit *visit)
{
	int			first_docs;

	ttl_visit_end(visit);
	first_docs = ttl_visit_first_docs(visit);
	target->busy = visit->busy;
	if (visit->aside)
		(void) note_failed(run, target->root, true);
	if (first_docs > 0 || ttl_kept_find(run->kept, target->root) != NULL)
		ttl_kept_index(run->kept, target->root)->first_docs = first_docs;
}

/* One visit: the leaves in the order of their bounds, with one budget. */
static void
visit_target(Run *run, TtlSubPass *sub, Target *target)
{
	const TtlKeptIndex *kept = ttl_kept_find(run->kept, target->root);
	TtlVisit	visit;
	bool		more_buckets;

	run->turn->current_index = target->root;
	ttl_crash_mark(target->root);
	ttl_visit_begin(&visit, &sub->limits, kept ? kept->first_docs : 0,
					GetCurrentTimestamp());
	more_buckets = visit_buckets(run, target, &visit);
	for (int i = 0; i < target->nleaves && !run->stop && !visit.aside; i++)
	{
		visit_leaf(run, target->root, target->leaves[i], &visit);
		/* the budget is used up: this leaf or the next ones have more */
		if (!visit.over)
		{
			visit.more = visit.more || i + 1 < target->nleaves;
			break;
		}
	}
	visit.more = visit.more || more_buckets;
	end_visit(run, target, &visit);
	ttl_sub_pass_visited(sub, &visit);
	ttl_crash_mark(InvalidOid);
	run->turn->current_index = InvalidOid;
	if (ttl_log_min_duration >= 0 && visit.deleted > 0)
	{
		begin(run);
		log_visit(target->root, &visit);
		commit(run);
	}
}

/*
 * What to do: a list of the indexes to visit, each with its leaves
 */

/* One index, for its subtransaction. */
typedef struct PrepareWork
{
	Run		   *run;
	const TtlStateFile *file;
	bool		begins;			/* the pass */
	Oid			indexrelid;
	Oid			root;
	bool		locks;			/* it may have locked or changed something */
	Target	   *target;
} PrepareWork;

/*
 * May the driver's role delete as the owner of the index's table?  Asked of the
 * catalog alone: to describe an index may run users' code.
 */
static bool
is_allowed(const Run *run, Oid root)
{
	Oid			relid = IndexGetRelation(root, true);

	return OidIsValid(relid) &&
		(run->driver->is_worker ||
		 has_privs_of_role(run->driver->role, ttl_table_owner(relid)));
}

/* What is to be done about the buckets of a time series, in the turn's memory. */
static List *
list_buckets(Run *run, Oid root)
{
	TtlIndex	index;
	List	   *found;
	List	   *buckets = NIL;
	ListCell   *lc;

	if (!ttl_catalog_describe(root, false, &index) || index.state != TTL_ACTIVE)
		return NIL;
	found = list_concat(ttl_buckets_wanted(&index, run->at),
						ttl_buckets_due(&index, run->at));
	MemoryContextSwitchTo(run->context);
	foreach(lc, found)
	{
		TtlBucket  *bucket = palloc(sizeof(TtlBucket));

		*bucket = *(TtlBucket *) lfirst(lc);
		buckets = lappend(buckets, bucket);
	}
	MemoryContextSwitchTo(run->batch_context);
	return buckets;
}

/* Has the index taken the server down too often? */
static bool
is_put_aside(const TtlStateFile *file, Oid root, bool say_so)
{
	TtlIndex	index = {.state = TTL_ACTIVE,.root = root};
	char	   *name = get_rel_name(root);

	ttl_crash_show(file, &index);
	if (index.state != TTL_ACTIVE && say_so)
		ereport(WARNING,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("TTL index \"%s\" is put aside: %s",
						name ? name : "?", index.detail),
				 errhint("Find the cause, then SELECT ttl_index.resume().")));
	return index.state != TTL_ACTIVE;
}

/* Repairs the options of a dependent index, and finds the TTL index it is of. */
static void
repair_work(void *arg)
{
	PrepareWork *work = arg;

	if (is_put_aside(work->file, work->indexrelid, false))
	{
		/* to be said so in its turn */
		work->root = work->indexrelid;
		return;
	}
	if (ttl_option_is_amiss(work->indexrelid))
	{
		work->locks = true;
		ttl_option_restore(work->indexrelid);
	}
	work->root = ttl_catalog_root(work->indexrelid);
}

/* Gives the option of a partitioned TTL index to its partitions. */
static void
follow(PrepareWork *work, Oid indexrelid)
{
	if (!OidIsValid(indexrelid) ||
		get_rel_relkind(indexrelid) != RELKIND_PARTITIONED_INDEX)
		return;
	work->locks = true;
	ttl_children_follow(indexrelid);
}

/* Finds what a visit to a TTL index has to do, if there is to be one. */
static void
target_work(void *arg)
{
	PrepareWork *work = arg;
	Run		   *run = work->run;
	Oid			root = work->indexrelid;
	List	   *leaves;
	List	   *buckets;
	Target	   *target;

	if (!is_allowed(run, root) || is_put_aside(work->file, root, work->begins))
		return;
	follow(work, root);
	follow(work, ttl_pair_other(root));
	leaves = ttl_buckets_row_leaves(root);
	buckets = list_buckets(run, root);

	target = MemoryContextAlloc(run->context, sizeof(Target));
	target->root = root;
	target->buckets = buckets;
	target->nleaves = list_length(leaves);
	target->leaves = MemoryContextAllocHuge(run->context,
											sizeof(Oid) * Max(target->nleaves, 1));
	for (int i = 0; i < target->nleaves; i++)
		target->leaves[i] = list_nth_oid(leaves, i);
	work->target = target;
}

/*
 * Runs the preparation of one index by itself, within the limits of a batch: users'
 * code is in the definitions, and others' DDL goes on beside it, so it gets a second
 * try.  An error is that of this index alone.
 */
static void
prepare_index(PrepareWork *work, void (*function) (void *))
{
	Run		   *run = work->run;
	TtlCount	count = {0};
	ErrorData  *edata = NULL;
	bool		timed_out = false;

	run->turn->current_index = work->indexrelid;
	ttl_crash_mark(work->indexrelid);
	for (int i = 0; i < PREPARE_TRIES && !timed_out; i++)
	{
		edata = timed_work(run->driver, function, work, &timed_out);
		if (edata == NULL)
			break;
		AcceptInvalidationMessages();
	}
	ttl_crash_mark(InvalidOid);
	run->turn->current_index = InvalidOid;
	if (edata == NULL ||
		!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(work->indexrelid)))
		return;
	note_error(run, work->indexrelid, work->indexrelid, edata, timed_out);
	(void) note_failed(run, work->indexrelid, true);
	count.indexrelid = work->indexrelid;
	count.relid = IndexGetRelation(work->indexrelid, true);
	set_error(&count, edata);
	ttl_stats_add(&count);
	run->kept->counted = true;
	work->locks = true;
}

/* Has the index to wait for the next pass, or for longer? */
static bool
is_waiting(const Run *run, Oid indexrelid)
{
	const TtlKeptIndex *kept = ttl_kept_find(run->kept, indexrelid);

	return kept != NULL &&
		(kept->aside || (kept->delay > 0 && run->at < kept->retry_at));
}

/*
 * Prepares each of these indexes.  They share transactions, as long as they need no
 * locks: those of thousands would fill the lock table.  Returns what the TTL indexes
 * are that they belong to.
 */
static List *
prepare_indexes(PrepareWork *work, List *indexes, void (*function) (void *))
{
	Run		   *run = work->run;
	List	   *roots = NIL;
	int			shared = 0;
	ListCell   *lc;

	begin(run);
	foreach(lc, indexes)
	{
		if (work->locks || shared++ == PREPARE_SHARED)
		{
			commit(run);
			begin(run);
			shared = 0;
		}
		work->locks = false;
		work->indexrelid = lfirst_oid(lc);
		work->root = InvalidOid;
		work->target = NULL;
		if (must_stop(run))
			break;
		if (is_waiting(run, work->indexrelid))
			continue;
		prepare_index(work, function);
		MemoryContextSwitchTo(run->context);
		if (OidIsValid(work->root))
			roots = lappend_oid(roots, work->root);
		if (work->target != NULL)
			run->targets = lappend(run->targets, work->target);
		MemoryContextSwitchTo(run->batch_context);
	}
	commit(run);
	list_sort(roots, list_oid_cmp);
	list_deduplicate_oid(roots);
	return roots;
}

/*
 * Counts the error of a worker that could not do so itself: it was terminated, or
 * its index did not let itself be canceled.  The pass goes on behind that one.
 */
static void
count_death(Run *run)
{
	TtlTurn    *turn = run->turn;
	TtlCount	count = {0};

	if (!OidIsValid(turn->died_at))
		return;
	count.indexrelid = turn->died_at;
	count.relid = IndexGetRelation(count.indexrelid, true);
	count.errors = 1;
	count.last_error = turn->died_in_crash ?
		"the server crashed while the worker was at this index" :
		"the worker was terminated while it was at this index";
	count.last_error_sqlstate = unpack_sql_state(turn->died_in_crash ?
												 ERRCODE_CRASH_SHUTDOWN : ERRCODE_ADMIN_SHUTDOWN);
	count.last_error_time = GetCurrentTimestamp();
	ttl_stats_add(&count);
	run->kept->counted = true;
	/* its sub-pass ended there */
	run->kept->idle_sub_passes++;
	if (turn->died_in_crash)
		return;
	run->kept->resume_at = turn->died_at + 1;
	(void) note_failed(run, turn->died_at, true);
	if (turn->died_canceled)
		ttl_kept_canceled(ttl_kept_index(run->kept, turn->died_at), run->at);
}

/* Is there to be no deletion by this reading of the clock?  Reads the state file. */
static bool
is_held(Run *run, TtlStateFile *file)
{
	ttl_hold_check_clock(file, run->at);
	run->turn->held = ttl_is_held(file,
								  run->driver->is_worker ? WARNING : ERROR);
	return run->turn->held;
}

/* Repairs, then lists the indexes to visit. */
static void
prepare(Run *run)
{
	TtlFunctions functions;
	TtlStateFile file;
	PrepareWork work = {.run = run,.file = &file,.begins = run->kept->pass_at == 0};
	List	   *dependents = NIL;

	begin(run);
	run->at = GetCurrentTimestamp();
	if (is_held(run, &file))
	{
		run->stop = true;
		commit(run);
		return;
	}
	if (work.begins)
		ttl_kept_begin_pass(run->kept, run->at);
	if (ttl_functions(&functions))
	{
		ttl_stats_check();
		count_death(run);
		MemoryContextSwitchTo(run->context);
		dependents = list_copy(ttl_catalog_dependents());
	}
	commit(run);
	(void) prepare_indexes(&work,
						   prepare_indexes(&work, dependents, repair_work),
						   target_work);
}

/*
 * At the end of a pass some are left that were locked.  Most locks of a table are
 * held for a moment only, as by a vacuum that truncates it: so they are tried again,
 * for about a second.
 */
static void
visit_busy(Run *run, TtlSubPass *sub)
{
	for (int i = 0; i < BUSY_TRIES && sub->busy && !sub->more; i++)
	{
		ListCell   *lc;

		if (!wait_briefly(run, TTL_WAIT_LOCKS, BUSY_WAIT_MS))
			return;
		sub->busy = false;
		foreach(lc, run->targets)
		{
			Target	   *target = lfirst(lc);

			if (!target->busy || run->stop || is_aside(run, target->root))
				continue;
			/* partitions had their tries, and wait for locks by themselves */
			target->buckets = NIL;
			visit_target(run, sub, target);
		}
	}
}

/* Writes the passes, at once if there is anything else to write. */
static void
count_sub_pass(Run *run)
{
	TtlTurn    *turn = run->turn;
	TtlKept    *kept = run->kept;
	TimestampTz now = GetCurrentTimestamp();
	TtlCount	count = {0};

	kept->idle_sub_passes++;
	kept->lag_pauses += turn->lag_pauses;
	turn->lag_pauses = 0;
	if (!turn->more)
		kept->idle_passes++;
	if (run->driver->is_worker && !kept->counted &&
		now >= kept->last_flush &&
		!TimestampDifferenceExceeds(kept->last_flush, now, IDLE_FLUSH_MS))
		return;
	count.passes = kept->idle_passes;
	count.sub_passes = kept->idle_sub_passes;
	count.last_pass_start = kept->pass_at;
	count.last_pass_end = turn->more ? 0 : now;
	count.last_cutoff = run->at;
	count.lag_pauses = kept->lag_pauses;
	begin(run);
	if (!ttl_stats_lock(true))
	{
		/* the extension has just been dropped */
		commit(run);
		return;
	}
	ttl_stats_add(&count);
	kept->unfolded_rows++;
	if (ttl_stats_fold(kept->unfolded_rows))
		kept->unfolded_rows = 0;
	commit(run);
	kept->idle_passes = kept->idle_sub_passes = kept->lag_pauses = 0;
	kept->last_flush = now;
	if (!turn->more)
		kept->counted = false;
}

/*
 * One sub-pass: sets turn->more if another is needed before the pass is over.
 * Called outside of a transaction by a worker.
 */
void
ttl_run_turn(const TtlDriver *driver, TtlTurn *turn, TtlKept *kept)
{
	MemoryContext caller = CurrentMemoryContext;
	Run			run = {0};
	TtlSubPass	sub;
	TtlLimits	limits = ttl_guc_limits();
	Oid		   *roots;
	Oid			root;
	int			count;

	run.driver = driver;
	run.turn = turn;
	run.kept = kept;
	run.context = AllocSetContextCreate(caller, "ttl_index turn",
										ALLOCSET_DEFAULT_SIZES);
	run.batch_context = AllocSetContextCreate(run.context, "ttl_index batch",
											  ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(run.context);
	turn->more = false;
	if (turn->begins)
		kept->pass_at = 0;
	ttl_progress_pass(GetCurrentTimestamp());
	prepare(&run);

	count = list_length(run.targets);
	roots = palloc(sizeof(Oid) * Max(count, 1));
	for (int i = 0; i < count; i++)
		roots[i] = ((Target *) list_nth(run.targets, i))->root;
	ttl_sub_pass_begin(&sub, &limits, roots, count, kept->resume_at,
					   GetCurrentTimestamp());
	while (!run.stop && ttl_sub_pass_next(&sub, GetCurrentTimestamp(), &root))
	{
		visit_target(&run, &sub,
					 list_nth(run.targets, (sub.next - 1) % count));
		ttl_progress_pass(run.at);
	}
	visit_busy(&run, &sub);
	kept->resume_at = sub.resume_at;
	turn->more = sub.more && !run.stop;
	if ((count > 0 || hash_get_num_entries(kept->indexes) > 0) && !run.stop)
		count_sub_pass(&run);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(run.context);
}
