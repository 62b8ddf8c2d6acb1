/*-------------------------------------------------------------------------
 *
 * work.c
 *	  A piece of work in a transaction: its time, its errors, and whether to go on.
 *
 * All that can call code of users, or fail, is run by ttl_work_run().  It is a
 * subtransaction, so that an error rolls back that work alone, and can be counted in the
 * transaction around it.
 *
 * The work may take ttl_index.batch_timeout.  A timer of this file ends it, because
 * statement_timeout is not armed in a background worker.  Code that catches the
 * cancellation and goes on ends the process at the second signal of the timer.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/pass/work.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_database.h"
#include "common/hashfn.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/interrupt.h"
#include "storage/latch.h"
#include "storage/lock.h"
#include "storage/procarray.h"
#include "utils/guc.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/portal.h"
#include "utils/snapmgr.h"
#include "utils/timeout.h"
#include "utils/timestamp.h"

#include "stats/stats.h"
#include "pass/pass.h"
#include "stats/progress.h"
#include "ttl_index.h"

/* The timer fires again at these intervals while a canceled batch goes on. */
#define CANCEL_GRACE_MS 5000

/* So many bytes of each text of an error are kept. */
#define MAX_ERROR_TEXT 1000

/* How often work is tried that DDL of others can make fail. */
#define TRIES 2

static TimeoutId batch_timer = MAX_TIMEOUTS;
static volatile sig_atomic_t timer_fired = 0;
static volatile sig_atomic_t in_batch = false;
static TtlShared *work_shared;	/* of the run that is going on */

/* Cancels the batch, or ends the process if that did not help.  A signal handler. */
static void
batch_timer_handler(void)
{
	timer_fired++;
	if (timer_fired > 1)
		ProcDiePending = true;
	QueryCancelPending = true;
	InterruptPending = true;
	SetLatch(MyLatch);
}

/* Handles SIGINT of pg_cancel_backend(): cancels the batch.  Between two it does nothing. */
void
ttl_work_cancel(SIGNAL_ARGS)
{
	if (!in_batch)
		return;
	QueryCancelPending = true;
	InterruptPending = true;
	SetLatch(MyLatch);
}

static void
arm_batch_timer(void)
{
	timer_fired = 0;
	in_batch = true;
	work_shared->works++;
	work_shared->time_limit = ttl_batch_timeout;
	work_shared->limited = true;
	if (ttl_batch_timeout == 0)
		return;
	if (batch_timer == MAX_TIMEOUTS)
		batch_timer = RegisterTimeout(USER_TIMEOUT, batch_timer_handler);
	enable_timeout_every(batch_timer,
						 TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
													 ttl_batch_timeout),
						 CANCEL_GRACE_MS);
}

/* Stops the timer, and returns whether it had fired. */
static bool
disarm_batch_timer(void)
{
	bool		fired;

	in_batch = false;
	work_shared->limited = false;
	if (batch_timer != MAX_TIMEOUTS)
		disable_timeout(batch_timer, false);
	fired = timer_fired > 0;
	/* the signal may have come after the last check for interrupts */
	QueryCancelPending = false;
	timer_fired = 0;
	return fired;
}

/* Did the timer cancel a batch that is still going on?  For a worker that ends. */
bool
ttl_work_is_canceled(void)
{
	return timer_fired > 0;
}

/* Initializes a run, and switches to its memory, which the caller deletes. */
void
ttl_work_init(TtlRun *run, TtlCommon *common, TtlShared *shared, TtlPassState *kept)
{
	memset(run, 0, sizeof(*run));
	run->common = common;
	run->shared = shared;
	run->kept = kept;
	work_shared = shared;
	run->context = AllocSetContextCreate(CurrentMemoryContext, "ttl_index sub-pass",
										 ALLOCSET_DEFAULT_SIZES);
	run->batch_context = AllocSetContextCreate(run->context, "ttl_index batch",
											   ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(run->context);
}

/* Frees what one index, or batch, needed: several indexes can share a transaction. */
void
ttl_work_forget(TtlRun *run)
{
	MemoryContextReset(run->batch_context);
	MemoryContextSwitchTo(run->batch_context);
}

/*
 * Begins a transaction.  Resets the settings of the session, its cursors and its advisory
 * locks, which code of the owner can have left from the one before.
 */
void
ttl_work_begin(TtlRun *run)
{
	PortalHashTableDeleteAll();
	LockReleaseSession(USER_LOCKMETHOD);
	ResetAllOptions();
	/* RESET ALL leaves it, and a trigger that was deferred can have set it */
	SetConfigOption("role", "none", PGC_USERSET, PGC_S_SESSION);
	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	/* for the catalogs and the counters; a batch takes its own snapshot */
	PushActiveSnapshot(GetTransactionSnapshot());
	ttl_work_forget(run);
}

void
ttl_work_commit(TtlRun *run)
{
	MemoryContextSwitchTo(run->context);
	PopActiveSnapshot();
	CommitTransactionCommand();
	pgstat_report_stat(true);
	MemoryContextSwitchTo(run->context);
}

/*
 * Does somebody hold the lock on a database that every connection takes?  DROP DATABASE and
 * CREATE DATABASE ... TEMPLATE hold it while they wait for connections to end.
 */
bool
ttl_work_is_wanted(Oid database)
{
	LOCKTAG		tag;

	SET_LOCKTAG_OBJECT(tag, InvalidOid, DatabaseRelationId, database, 0);
	if (LockAcquire(&tag, RowExclusiveLock, false, true) == LOCKACQUIRE_NOT_AVAIL)
		return true;
	LockRelease(&tag, RowExclusiveLock, false);
	return false;
}

/*
 * Should the sub-pass end now?  This is asked in a transaction, before each batch.  A pass
 * of run_pass() goes on whatever the settings say, and a survey because it deletes nothing.
 *
 * This locks the table of the counters, before any table of a user: DROP EXTENSION ...
 * CASCADE locks it before it locks their indexes.  The monitor does not wait for that lock.
 */
bool
ttl_work_must_stop(TtlRun *run)
{
	bool		is_session = OidIsValid(run->common->caller);

	CHECK_FOR_INTERRUPTS();
	if (run->stop)
		return true;
	if (ConfigReloadPending)
	{
		ConfigReloadPending = false;
		ProcessConfigFile(PGC_SIGHUP);
	}
	run->stop = BackendPidGetProc(run->common->starter_pid) == NULL ||
		ttl_work_is_wanted(MyDatabaseId) ||
		(!ttl_monitor_enabled && OidIsValid(run->shared->owner) && !is_session);
	if (!run->stop && !ttl_counters_lock(is_session))
	{
		ErrorData	edata = {.sqlerrcode = ERRCODE_LOCK_NOT_AVAILABLE,
		.message = TTL_COUNTERS_LOCKED,.hint = TTL_COUNTERS_LOCKED_HINT};

		run->stop = true;
		/* else the extension has gone */
		if (ttl_counters_are_locked())
			ttl_report_no_pass(run, &edata);
	}
	return run->stop;
}

/*
 * A number that tells one list of TTL indexes from another.  Those of partitions do not
 * count: a pass makes and drops them itself.
 */
uint32
ttl_work_hash(const List *indexes)
{
	uint32		hash = 0;
	ListCell   *lc;

	foreach(lc, indexes)
	{
		if (!get_rel_relispartition(lfirst_oid(lc)))
			hash = hash_combine(hash, murmurhash32(lfirst_oid(lc)));
	}
	return hash;
}

/* Waits, outside of a transaction.  Returns false if the sub-pass is to end. */
bool
ttl_work_wait(TtlRun *run, TtlWait wait, long milliseconds)
{
	ttl_progress_wait(wait, milliseconds);
	ttl_work_begin(run);
	(void) ttl_work_must_stop(run);
	ttl_work_commit(run);
	return !run->stop;
}

/* Waits until the next batch may begin.  Returns false if the sub-pass is to end. */
bool
ttl_work_wait_for_batch(TtlRun *run)
{
	TtlWait		wait;
	long		milliseconds;

	while ((wait = ttl_throttle_wait(run, &milliseconds)) != TTL_WAIT_NONE)
	{
		if (!ttl_work_wait(run, wait, milliseconds))
			return false;
	}
	return true;
}

/*
 * Makes a text of an error one that can be kept, and sent to any client: users can raise
 * one of any length, and core's own messages can break off within a character, as that of
 * to_date().
 */
static char *
tidy(char *text)
{
	int			length;
	int			valid = 0;

	if (text == NULL)
		return NULL;
	length = strlen(text);
	while ((valid += pg_encoding_verifymbstr(GetDatabaseEncoding(), text + valid, length - valid)) < length)
		text[valid++] = '?';
	for (int i = 0; GetDatabaseEncoding() == PG_SQL_ASCII && i < length; i++)
	{
		if (IS_HIGHBIT_SET(text[i]))
			text[i] = '?';
	}
	if (length > MAX_ERROR_TEXT)
		text[pg_mbcliplen(text, length, MAX_ERROR_TEXT)] = '\0';
	return text;
}

/* Tidies the texts of an error. */
void
ttl_work_tidy(ErrorData *edata)
{
	edata->message = tidy(edata->message);
	edata->detail = tidy(edata->detail);
	edata->hint = tidy(edata->hint);
	edata->context = tidy(edata->context);
}

/* Tidies an error, and says whether it was a cancellation. */
static ErrorData *
judge(ErrorData *edata, bool *timed_out)
{
	ttl_work_tidy(edata);
	if (*timed_out)
		edata->message = pstrdup("canceled after ttl_index.batch_timeout");
	*timed_out = *timed_out || ttl_error_is_interrupt(edata, ERRCODE_QUERY_CANCELED);
	return edata;
}

/*
 * Runs a function within the time of a batch.  Returns the error, or NULL.  *timed_out
 * says whether it was canceled, by the timer or by anybody.
 */
ErrorData *
ttl_work_run(void (*function) (void *), void *arg, bool *timed_out)
{
	ErrorData  *edata;

	arm_batch_timer();
	edata = ttl_error_catch(function, arg, true);
	*timed_out = disarm_batch_timer();
	if (edata == NULL)
		return NULL;
	/* what code took before it failed can be all that the lock table has room for */
	LockReleaseSession(USER_LOCKMETHOD);
	return judge(edata, timed_out);
}

/* Runs a function likewise, and once more if it fails: DDL of others can be the cause. */
ErrorData *
ttl_work_retry(void (*function) (void *), void *arg, bool *timed_out)
{
	ErrorData  *edata = NULL;

	*timed_out = false;
	for (int i = 0; i < TRIES && !*timed_out; i++)
	{
		edata = ttl_work_run(function, arg, timed_out);
		if (edata == NULL)
			break;
		AcceptInvalidationMessages();
	}
	return edata;
}

/*
 * Commits like ttl_work_commit().  Returns the error that prevented it, or NULL: another
 * server, to which rows were moved, commits its part first, and may refuse or never answer.
 */
ErrorData *
ttl_work_try_commit(TtlRun *run, bool *timed_out)
{
	ErrorData  *volatile edata = NULL;

	arm_batch_timer();
	PG_TRY();
	{
		ttl_work_commit(run);
	}
	PG_CATCH();
	{
		/* the memory of the batch is reset before this is counted */
		MemoryContextSwitchTo(run->context);
		edata = CopyErrorData();
		FlushErrorState();
		AbortCurrentTransaction();
		MemoryContextSwitchTo(run->context);
	}
	PG_END_TRY();
	*timed_out = disarm_batch_timer();
	return edata == NULL ? NULL : judge(edata, timed_out);
}
