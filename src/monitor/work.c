/*-------------------------------------------------------------------------
 *
 * work.c
 *	  A piece of work in a transaction: its time, its errors, and whether to go on.
 *
 * The work runs in a subtransaction, so that an error of a user's code takes back
 * that alone, and is still counted.  It may spend ttl_index.batch_timeout, which is
 * armed here: SPI arms no statement_timeout in a background worker.  Code that catches
 * the cancellation and goes on costs the process its life, a session's a little later.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/monitor/work.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_database.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "postmaster/interrupt.h"
#include "storage/latch.h"
#include "storage/lock.h"
#include "storage/procarray.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"
#include "utils/timeout.h"
#include "utils/timestamp.h"

#include "monitor/monitor.h"
#include "monitor/pass.h"
#include "ttl_index.h"

/* After a canceled batch went on for this long, end the process. */
#define CANCEL_GRACE_MS 5000

/* So much of an error's text is kept. */
#define MAX_ERROR_TEXT 1000

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
ttl_work_cancel(void)
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
ttl_work_is_canceled(void)
{
	return timer_fired > 0;
}

void
ttl_work_begin(TtlRun *run)
{
	run->driver->begin();
	/* for the catalogs and the counters; a batch takes its own */
	PushActiveSnapshot(GetTransactionSnapshot());
	MemoryContextReset(run->batch_context);
	MemoryContextSwitchTo(run->batch_context);
}

void
ttl_work_commit(TtlRun *run)
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
bool
ttl_work_must_stop(TtlRun *run)
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
			BackendPidGetProc(run->shared->launcher_pid) == NULL ||
			!database_is_free();
	if (!run->stop)
		run->stop = !ttl_counters_lock(!is_worker);
	return run->stop;
}

/* Waits, outside of a transaction.  False where the turn is to end. */
bool
ttl_work_wait(TtlRun *run, TtlWait wait, long milliseconds)
{
	ttl_progress_wait(wait, milliseconds);
	ttl_work_begin(run);
	(void) ttl_work_must_stop(run);
	ttl_work_commit(run);
	return !run->stop;
}

/* Waits until the next batch may begin.  False where the turn is to end. */
bool
ttl_work_wait_for_batch(TtlRun *run)
{
	TtlWait		wait;
	long		milliseconds;

	while ((wait = ttl_throttle_wait(run->shared, &milliseconds)) != TTL_WAIT_NONE)
	{
		if (!ttl_work_wait(run, wait, milliseconds))
			return false;
	}
	return true;
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
ErrorData *
ttl_work_run(const TtlDriver *driver, void (*function) (void *), void *arg,
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
