/*-------------------------------------------------------------------------
 *
 * work.c
 *	  A piece of work in a transaction: its time limit and its errors.
 *
 * Everything that can call code of users, or fail, is run by ttl_work_run().  It is a
 * subtransaction, so that an error rolls back that work alone, and can be counted in the
 * transaction around it.  A timer cancels it after ttl_index.batch_timeout: statement_timeout
 * is not armed in a background worker.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_database.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/interrupt.h"
#include "storage/latch.h"
#include "storage/lock.h"
#include "storage/procarray.h"
#include "utils/guc.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/portal.h"
#include "utils/snapmgr.h"
#include "utils/timeout.h"
#include "utils/timestamp.h"

#include "pass/pass.h"

/*
 * The timer fires again after this time.  Then the code has caught the cancellation and gone
 * on, and the process ends.
 */
#define CANCEL_GRACE_MS 5000

/* Longer texts of errors are cut off after so many bytes. */
#define MAX_ERROR_TEXT 1000

static TimeoutId batch_timer = MAX_TIMEOUTS;
static volatile sig_atomic_t timer_fired = 0;
static volatile sig_atomic_t in_batch = false;
static TtlShared *work_shared;	/* of this process */

/* Handles SIGINT of pg_cancel_backend(): cancels the batch, if there is one. */
void
ttl_work_cancel(SIGNAL_ARGS)
{
	if (!in_batch)
		return;
	QueryCancelPending = true;
	InterruptPending = true;
	SetLatch(MyLatch);
}

/* Handles the timer: cancels the batch, or ends the process if that did not help. */
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

static void
arm_batch_timer(void)
{
	timer_fired = 0;
	in_batch = true;
	work_shared->works++;
	work_shared->time_limit = ttl_limits.batch_timeout;
	work_shared->limited = true;
	if (ttl_limits.batch_timeout == 0)
		return;
	if (batch_timer == MAX_TIMEOUTS)
		batch_timer = RegisterTimeout(USER_TIMEOUT, batch_timer_handler);
	enable_timeout_every(batch_timer,
						 TimestampTzPlusMilliseconds(GetCurrentTimestamp(),
													 ttl_limits.batch_timeout),
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

/* Did the timer cancel a batch that has not ended?  For a worker that ends. */
bool
ttl_work_is_canceled(void)
{
	return timer_fired > 0;
}

/* Initializes a run, and switches to its memory context. */
void
ttl_work_init(TtlRun *run, TtlCommon *common, TtlShared *shared, TtlPassState *kept)
{
	*run = (TtlRun) {.common = common,.shared = shared,.kept = kept};
	work_shared = shared;
	run->context = AllocSetContextCreate(CurrentMemoryContext, "ttl_index pass",
										 ALLOCSET_DEFAULT_SIZES);
	run->batch_context = AllocSetContextCreate(run->context, "ttl_index batch",
											   ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(run->context);
}

/*
 * Begins a transaction.  Before, resets the cursors, advisory locks and settings of the
 * session: code of the owner can have left some in the last one.
 */
void
ttl_work_begin(TtlRun *run)
{
	PortalHashTableDeleteAll();
	LockReleaseSession(USER_LOCKMETHOD);
	ResetAllOptions();
	/* RESET ALL does not reset the role, which a deferred trigger can have set */
	SetConfigOption("role", "none", PGC_USERSET, PGC_S_SESSION);
	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	/* for the catalogs and the counters; a batch takes its own snapshot */
	PushActiveSnapshot(GetTransactionSnapshot());
	MemoryContextSwitchTo(run->batch_context);
}

void
ttl_work_commit(TtlRun *run)
{
	MemoryContextSwitchTo(run->context);
	PopActiveSnapshot();
	CommitTransactionCommand();
	pgstat_report_stat(true);
	/* if the commit fails, what the batch found is still counted */
	MemoryContextReset(run->batch_context);
	MemoryContextSwitchTo(run->context);
}

/*
 * Do others hold the lock on a database that every connection takes?  DROP DATABASE and
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
 * Should the sub-pass end now?  This is asked in a transaction, before each batch.
 * monitor_enabled = off stops neither run_pass() nor a survey, which deletes nothing.
 *
 * This locks the table of the counters before any table of a user, because DROP EXTENSION
 * ... CASCADE locks it before it locks their indexes.  The monitor does not wait for the lock.
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
		/* else the extension was dropped */
		if (ttl_counters_are_locked())
			ttl_report_no_pass(run, &edata);
	}
	return run->stop;
}

/* Is deletion held?  Then a session gets the error. */
bool
ttl_work_is_held(TtlRun *run, const TtlStateFile *file)
{
	run->shared->held = ttl_hold_is_held(file,
										 OidIsValid(run->common->caller) ? ERROR : WARNING,
										 &run->kept->reported);
	return run->shared->held;
}

/* Has the pass lasted for longer than the monitor sleeps? */
bool
ttl_work_is_long(const TtlRun *run, TimestampTz now)
{
	return now - run->kept->pass_at >= ttl_monitor_sleep * USECS_PER_SEC;
}

/*
 * Makes a text of an error one that can be kept, and sent to any client.  Users can raise
 * one of any length, and a message can break off within a character, as that of to_date().
 */
static void
tidy(char *text)
{
	int			encoding = GetDatabaseEncoding();
	int			length = text ? strlen(text) : 0;
	int			valid = 0;

	while ((valid += pg_encoding_verifymbstr(encoding, text + valid, length - valid)) < length)
		text[valid++] = '?';
	for (int i = 0; encoding == PG_SQL_ASCII && i < length; i++)
	{
		if (IS_HIGHBIT_SET(text[i]))
			text[i] = '?';
	}
	if (length > MAX_ERROR_TEXT)
		text[pg_mbcliplen(text, length, MAX_ERROR_TEXT)] = '\0';
}

/* Tidies the texts of an error. */
void
ttl_work_tidy(ErrorData *edata)
{
	tidy(edata->message);
	tidy(edata->detail);
	tidy(edata->hint);
	tidy(edata->context);
}

/* Completes an error.  *timed_out was the timer, and becomes any cancellation. */
static ErrorData *
complete_error(ErrorData *edata, bool *timed_out)
{
	ttl_work_tidy(edata);
	if (*timed_out)
		edata->message = pstrdup("canceled after ttl_index.batch_timeout");
	*timed_out = *timed_out || ttl_error_is_interrupt(edata, ERRCODE_QUERY_CANCELED);
	return edata;
}

/*
 * Runs a function within the time of a batch.  Returns its error, or NULL.  Sets *timed_out
 * if it was canceled, by the timer or by a user.
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
	/* advisory locks can have filled the lock table */
	LockReleaseSession(USER_LOCKMETHOD);
	return complete_error(edata, timed_out);
}

/* Runs a function in the same way, twice if it fails: concurrent DDL can be the cause. */
ErrorData *
ttl_work_retry(void (*function) (void *), void *arg, bool *timed_out)
{
	ErrorData  *edata = ttl_work_run(function, arg, timed_out);

	if (edata == NULL || *timed_out)
		return edata;
	AcceptInvalidationMessages();
	return ttl_work_run(function, arg, timed_out);
}

/*
 * Commits, and returns the error that prevented it, or NULL.  If rows were moved to another
 * server, that one commits its part first, and may refuse or never answer.
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
		MemoryContextSwitchTo(run->batch_context);
		edata = CopyErrorData();
		FlushErrorState();
		AbortCurrentTransaction();
		MemoryContextSwitchTo(run->context);
	}
	PG_END_TRY();
	*timed_out = disarm_batch_timer();
	return edata ? complete_error(edata, timed_out) : NULL;
}

/*
 * Runs a function in a transaction of its own, within the time of a batch.  `count` is
 * called in the transaction with the error, or NULL.  If the commit fails, it is called
 * again in another transaction.  Returns false, with nothing done, if the sub-pass ends.
 */
bool
ttl_work_transaction(TtlRun *run, void (*function) (void *),
					 void (*count) (void *, ErrorData *, bool), void *arg)
{
	ErrorData  *edata;
	bool		timed_out;

	ttl_work_begin(run);
	if (ttl_work_must_stop(run))
	{
		ttl_work_commit(run);
		return false;
	}
	edata = ttl_work_run(function, arg, &timed_out);
	count(arg, edata, timed_out);
	edata = ttl_work_try_commit(run, &timed_out);
	if (edata != NULL)
	{
		ttl_work_begin(run);
		(void) ttl_work_must_stop(run);
		count(arg, edata, timed_out);
		ttl_work_commit(run);
	}
	return true;
}
