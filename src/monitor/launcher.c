/*-------------------------------------------------------------------------
 *
 * launcher.c
 *	  The launcher: passes over all databases of the server, with a sleep between them.
 *
 * The launcher is one background worker for the whole server, which core restarts if
 * it dies.  A pass of it reads pg_database and starts one worker (worker.c) after
 * another, so that at most one worker deletes at any time.  Each worker runs one
 * sub-pass in its database, of 60 seconds by default.  A database in which more is due
 * gets another sub-pass in the next round; a database that had none for the time of a
 * sleep gets one, too, so that one that drains for hours does not keep the others
 * waiting.  The pass is over when no database has more.
 *
 * autovacuum's launcher could not be followed in everything.  Several workers at once
 * would multiply the load that the limits are meant for.  A worker that stays
 * connected would block DROP DATABASE, and would have to notice when the extension is
 * created or dropped in its database; one that ends after a sub-pass sees both when
 * the next starts.
 *
 * Launcher and worker share a dynamic shared memory area, whose handle is the worker's
 * argument: the hooks to ask for shared memory at server start differ between the
 * major versions.  It holds a TtlShared (pass.h), which has what the launcher asks and
 * what the worker answers, and what the workers keep of each database from one
 * sub-pass to the next (kept.c), of any size.  There is one worker at a time, and the
 * launcher touches that memory only while there is none, so nothing is locked.  A worker
 * reads what is kept when it starts, and writes another copy when it ends: one that is left
 * disturbs nobody.
 *
 * The launcher begins its own transactions, to read pg_database and to see whether
 * somebody waits for a database.  It is connected to no database, so it can open
 * shared catalogs only.
 *
 * A worker that nothing ends is left alone with its memory (left.c), and the next one gets
 * memory of its own.
 *
 * It starts when recovery has finished, so there is none on a standby until it is
 * promoted.  It sleeps before its first pass, as MongoDB's monitor does: whoever
 * starts a restored server has that long to turn it off.  While it waits, it looks at
 * the clock once a minute (hold.c), and after a crash it takes note of the index at
 * which the worker was (crash.c).
 *
 * ttl_index.c registers it; postmaster calls ttl_launcher_main().
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/monitor/launcher.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_database.h"
#include "libpq/pqsignal.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#include "compat.h"
#include "monitor/launcher.h"
#include "monitor/pass.h"
#include "monitor/progress.h"
#include "monitor/state_file.h"
#include "ttl_index.h"

PGDLLEXPORT void ttl_launcher_main(Datum arg);

#define LAUNCHER_TYPE "ttl_index launcher"
#define RESTART_SECONDS 5

/* While the launcher waits for anything, it looks at the clock this often. */
#define LOOK_MS (60 * 1000)

/* While a worker runs, the launcher looks this often whether its database is wanted. */
#define WAIT_MS 500

/*
 * For so long a worker may wait for a lock where its work has no time limit, as while it
 * connects, for a system catalog that somebody rewrites, or waits to rewrite.  Then its
 * database waits, for minutes that double each time, and the others go on.
 */
#define MAX_LOCK_WAIT_MS (10 * 1000)
#define MAX_DELAY 8

/*
 * So long after the time of its work is over a worker counts as one that cannot be ended:
 * its own timer has tried to 10 seconds before (work.c).
 */
#define MAX_OVERDUE_MS (15 * 1000)

/* How often a worker slot is asked for in vain, at intervals of a second. */
#define SLOT_TRIES 10

static dsa_area *area = NULL;
static TtlShared *shared = NULL;	/* in that area */
static dsa_pointer shared_pointer;
static BackgroundWorkerHandle *worker = NULL;
static int64 pass_number = 0;

static TtlThrottle throttle;
static int	slot_tries;			/* in vain, since a worker was last started */
static bool lacked_slots;		/* in this pass */
static TtlSaid slots_said;
static TtlSaid hold_said;
static TtlSaid file_said;
static bool no_slot;			/* for the last worker */
static bool registered = false;
static instr_time last_look;	/* when nap() last looked at the clock */

static void
end_worker(int code, Datum arg)
{
	if (worker != NULL)
		TerminateBackgroundWorker(worker);
}

/* Ignores pg_cancel_backend(): there is nothing to cancel here, but in the worker. */
static void
cancel_handler(SIGNAL_ARGS)
{
}

/* Shows other processes what they need to know whether the monitor visits a database. */
static void
show_launcher(void)
{
	TtlLauncher launcher = {
		.enabled = ttl_monitor_enabled,
		.read_only = DefaultXactReadOnly,
		.no_slot = no_slot,
		.overview = ttl_overview_handle()
	};

	ttl_progress_launcher(&launcher);
}

/* Shows them what is known of the databases, and of itself. */
static void
show_databases(void)
{
	ttl_database_show(area);
	show_launcher();
}

static void
handle_interrupts(void)
{
	CHECK_FOR_INTERRUPTS();
	if (ConfigReloadPending)
	{
		ConfigReloadPending = false;
		ProcessConfigFile(PGC_SIGHUP);
		show_launcher();
	}
}

/*
 * Returns the milliseconds since a moment, by a clock that nobody can set: if the wall
 * clock is set back, the monitor must not sleep until it has caught up.
 */
int64
ttl_launcher_elapsed(instr_time since)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, since);
	return (int64) INSTR_TIME_GET_MILLISEC(now);
}

static int64
sleep_ms(void)
{
	return (int64) ttl_monitor_sleep * 1000;
}

/* Takes note of the index at which a worker has crashed the server, if one has. */
static void
take_crash(void)
{
	Oid			database;
	Oid			indexrelid = ttl_crash_take_mark(ttl_left_adopt(), &database);
	TtlDatabase *db;

	if (!OidIsValid(indexrelid))
		return;
	ereport(WARNING,
			(errcode(ERRCODE_CRASH_SHUTDOWN),
			 errmsg("the server crashed during a visit to the TTL index with OID %u of the database with OID %u",
					indexrelid, database)));
	db = ttl_database_add(database);
	db->told.died_at = indexrelid;
	db->told.died_in_crash = true;
}

/*
 * Looks at the clock.  If the file in which a hold is kept cannot be read or written, it is
 * not known whether rows may be deleted: the launcher stays, says so now and then, and
 * returns false.
 */
static bool
check_clock(TtlStateFile *file, bool starts)
{
	MemoryContext caller = CurrentMemoryContext;
	ErrorData  *volatile edata = NULL;

	PG_TRY();
	{
		if (starts)
		{
			take_crash();
			ttl_hold_check_start();
		}
		else
			ttl_hold_check_clock(file, GetCurrentTimestamp());
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(caller);
		edata = CopyErrorData();
		FlushErrorState();
	}
	PG_END_TRY();
	if (edata == NULL)
	{
		file_said.at = 0;
		return true;
	}
	if (ttl_report_is_news(&file_said, edata->sqlerrcode, edata->message))
		ereport(WARNING,
				(errcode(edata->sqlerrcode),
				 errmsg("ttl_index deletes nothing on this server: %s", edata->message),
				 errhint("Mend what keeps the server from reading and writing that file.")));
	FreeErrorData(edata);
	return false;
}

/*
 * Waits for so many milliseconds, or until a signal.  It looks at the clock once a minute,
 * so that the time of the last look tells since when the server has been down.
 */
static void
nap(long milliseconds)
{
	TtlStateFile file;

	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
					 milliseconds, PG_WAIT_EXTENSION);
	ResetLatch(MyLatch);
	handle_interrupts();
	if (ttl_launcher_elapsed(last_look) < LOOK_MS)
		return;
	INSTR_TIME_SET_CURRENT(last_look);
	(void) check_clock(&file, false);
}

/* The argument and the result of the question whether a database is wanted. */
typedef struct WantedWork
{
	Oid			database;
	bool		wanted;
} WantedWork;

static void
wanted_work(void *arg)
{
	WantedWork *work = arg;
	LOCKTAG		tag;

	SET_LOCKTAG_OBJECT(tag, InvalidOid, DatabaseRelationId, work->database, 0);
	work->wanted = LockAcquire(&tag, RowExclusiveLock, false, true) == LOCKACQUIRE_NOT_AVAIL;
}

/*
 * Does somebody hold the lock on the database that DROP DATABASE, CREATE DATABASE ...
 * TEMPLATE and their like take?  These commands wait for its connections to end.  Where the lock
 * table is full, which the worker itself may have done, that is not known.
 */
static bool
database_is_wanted(Oid oid)
{
	WantedWork	work = {.database = oid};

	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	(void) ttl_error_catch(wanted_work, &work, false);
	CommitTransactionCommand();
	return work.wanted;
}

/* Starts a worker for the database; false if there is no slot for one. */
static bool
start_worker(const TtlDatabase *db)
{
	BackgroundWorker entry = {0};
	TtlWorkerExtra extra = {.database = db->oid,.shared = shared_pointer};

	/*
	 * Not BGWORKER_INTERRUPTIBLE, which 19 has: core would end the worker a
	 * little sooner, and nobody could tell that from a termination by hand.
	 */
	entry.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	entry.bgw_start_time = BgWorkerStart_RecoveryFinished;
	entry.bgw_restart_time = BGW_NEVER_RESTART;
	snprintf(entry.bgw_library_name, sizeof(entry.bgw_library_name),
			 "ttl_index");
	snprintf(entry.bgw_function_name, sizeof(entry.bgw_function_name),
			 "ttl_worker_main");
	snprintf(entry.bgw_name, sizeof(entry.bgw_name),
			 "ttl_index worker for database %s", db->name);
	snprintf(entry.bgw_type, sizeof(entry.bgw_type), TTL_WORKER_TYPE);
	entry.bgw_main_arg = UInt32GetDatum(dsa_get_handle(area));
	entry.bgw_notify_pid = MyProcPid;
	memcpy(entry.bgw_extra, &extra, sizeof(extra));
	return RegisterDynamicBackgroundWorker(&entry, &worker);
}

/*
 * Starts a worker, and tries again for a while if there is no slot: parallel queries use
 * up the slots and give them back.  The databases of a pass share the number of tries;
 * when these are used up, each database tries once.
 */
static bool
start_worker_patiently(const TtlDatabase *db)
{
	while (!start_worker(db))
	{
		if (!lacked_slots &&
			ttl_report_is_news(&slots_said, ERRCODE_INSUFFICIENT_RESOURCES, ""))
			ereport(WARNING,
					(errcode(ERRCODE_INSUFFICIENT_RESOURCES),
					 errmsg("no background worker slot is free for ttl_index"),
					 errhint("%s", TTL_SLOTS_HINT)));
		lacked_slots = true;
		if (slot_tries >= SLOT_TRIES || !ttl_monitor_enabled)
			return false;
		slot_tries++;
		nap(1000);
	}
	slot_tries = 0;
	return true;
}

/* Does the worker wait for a lock with nothing that limits the time? */
static bool
waits_without_limit(pid_t pid)
{
	PGPROC	   *proc = BackendPidGetProc(pid);

	return proc != NULL && !shared->limited &&
		(proc->wait_event_info & 0xFF000000U) == PG_WAIT_LOCK;
}

/* Ends a worker that has waited for too long, and puts its database off. */
static void
put_off(TtlDatabase *db)
{
	TerminateBackgroundWorker(worker);
	db->delay = db->delay == 0 ? 1 : Min(2 * db->delay, MAX_DELAY);
	ereport(WARNING,
			(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
			 errmsg("could not make a TTL pass over database \"%s\"", db->name),
			 errdetail("The worker waited for a lock that any session there needs, as on a system catalog; the next one comes in %d min at the earliest.",
					   db->delay),
			 errhint("VACUUM FULL and REINDEX SYSTEM hold such locks, and wait for transactions that use the catalog.")));
}

/* Has the worker been at a piece of work, which it began then, for longer than it may? */
static bool
is_overdue(uint32 *work, instr_time *begun)
{
	if (!shared->limited || shared->works != *work || shared->time_limit == 0)
	{
		*work = shared->works;
		INSTR_TIME_SET_CURRENT(*begun);
		return false;
	}
	return ttl_launcher_elapsed(*begun) >= (int64) shared->time_limit + MAX_OVERDUE_MS;
}

/*
 * Leaves the worker alone, with the memory that it shares.  The next one gets memory of its
 * own, and goes on behind the index at which this one is.  False if there is none.
 */
static bool
leave_worker(TtlDatabase *db)
{
	dsa_pointer next = dsa_allocate_extended(area, sizeof(TtlShared),
											 DSA_ALLOC_ZERO | DSA_ALLOC_NO_OOM);

	if (!DsaPointerIsValid(next))
		return false;
	TerminateBackgroundWorker(worker);
	ttl_left_add(db, worker, shared_pointer);
	throttle = shared->throttle;
	db->told.died_at = shared->current_index;
	db->told.died_in_crash = db->told.died_wanted = false;
	db->told.died_canceled = true;
	db->pending = OidIsValid(db->told.died_at);
	worker = NULL;
	shared_pointer = next;
	shared = dsa_get_address(area, next);
	db->hangs = ttl_left_is_full(db, area);
	show_databases();
	return true;
}

/*
 * Waits until the worker has ended, or is left.  Returns whether it has ended.  *finished is
 * whether it was let finish: false where somebody wanted its database, or the catalogs of it.
 */
static bool
wait_for_worker(TtlDatabase *db, bool *finished)
{
	pid_t		pid = 0;
	instr_time	looked;
	instr_time	went_on;
	instr_time	begun;
	uint32		work = 0;
	bool		stuck = false;

	INSTR_TIME_SET_CURRENT(looked);
	went_on = begun = looked;
	*finished = true;
	while (GetBackgroundWorkerPid(worker, &pid) != BGWH_STOPPED)
	{
		nap(WAIT_MS);
		if (ttl_launcher_elapsed(looked) < WAIT_MS)
			continue;
		INSTR_TIME_SET_CURRENT(looked);
		/* a worker that is within a batch would end only after it */
		if (database_is_wanted(db->oid))
		{
			TerminateBackgroundWorker(worker);
			*finished = false;
		}
		if (is_overdue(&work, &begun) && leave_worker(db))
			return false;
		if (!waits_without_limit(pid))
			INSTR_TIME_SET_CURRENT(went_on);
		else if (!stuck && ttl_launcher_elapsed(went_on) >= MAX_LOCK_WAIT_MS)
		{
			put_off(db);
			stuck = true;
			*finished = false;
		}
	}
	if (!stuck)
		db->delay = 0;
	pfree(worker);
	worker = NULL;
	return true;
}

/* Takes over what a worker that has ended left in the shared memory. */
static void
take_answer(TtlDatabase *db, bool finished)
{
	throttle = shared->throttle;
	ttl_database_keep(db, area, shared->kept_next);
	db->told.begins = false;
	/* if it died at an index, the next worker goes on behind that index */
	db->told.died_at = shared->answered ? InvalidOid : shared->current_index;
	db->told.died_in_crash = false;
	db->told.died_wanted = !finished && !shared->canceled;
	db->told.died_canceled = shared->canceled;
	db->pending = shared->answered ? shared->more : OidIsValid(db->told.died_at);
	show_databases();
}

/* Runs one sub-pass in a database, by a worker. */
static void
run_sub_pass(TtlDatabase *db)
{
	bool		finished;

	db->hangs = ttl_left_is_full(db, area);
	if (db->hangs)
	{
		db->pending = false;
		return;
	}
	memset(shared, 0, sizeof(TtlShared));
	shared->launcher_pid = MyProcPid;
	shared->pass = pass_number;
	shared->told = db->told;
	shared->throttle = throttle;

	/* a database that is being dropped or copied waits for the next round */
	db->pending = false;
	if (db->delay > 0 && ttl_launcher_elapsed(db->last_sub_pass) < db->delay * INT64CONST(60000))
		return;
	INSTR_TIME_SET_CURRENT(db->last_sub_pass);
	db->had_sub_pass = true;
	if (database_is_wanted(db->oid))
		return;
	no_slot = !start_worker_patiently(db);
	show_launcher();
	if (no_slot)
		return;
	if (wait_for_worker(db, &finished))
		take_answer(db, finished);
	INSTR_TIME_SET_CURRENT(db->last_sub_pass);
}

/* Brings the list of databases up to date, and shows it. */
static List *
read_databases(bool begins)
{
	List	   *databases = ttl_database_read(area, begins);

	show_databases();
	return databases;
}

static void
run_pass(void)
{
	List	   *databases;
	bool		more = true;
	char		activity[64];
	TtlStateFile file;

	if (!check_clock(&file, false) || ttl_hold_is_held(&file, WARNING, &hold_said))
		return;
	hold_said.at = 0;
	shared->held = false;
	pass_number++;
	lacked_slots = false;
	slot_tries = 0;
	snprintf(activity, sizeof(activity), "ttl_index: pass %lld",
			 (long long) pass_number);
	pgstat_report_activity(STATE_RUNNING, activity);
	databases = read_databases(true);
	while (more && ttl_monitor_enabled)
	{
		ListCell   *lc;

		more = false;
		foreach(lc, databases)
		{
			TtlDatabase *db = lfirst(lc);

			handle_interrupts();
			if (db->pending && ttl_monitor_enabled)
				run_sub_pass(db);
			if (shared->held)
				break;
			more = more || db->pending;
		}
		more = more && !shared->held;
		if (more)
			databases = read_databases(false);
	}
	if (!lacked_slots)
		slots_said.at = 0;
	pgstat_report_activity(STATE_IDLE, NULL);
}

/* Sleeps; a change of monitor_sleep during the sleep takes effect at once. */
static void
sleep_between_passes(void)
{
	instr_time	since;
	int64		remaining;

	INSTR_TIME_SET_CURRENT(since);
	while ((remaining = sleep_ms() - ttl_launcher_elapsed(since)) > 0)
		nap(Min(remaining, LOOK_MS));
}

/*
 * Creates the memory that is shared with the workers.  Its lock is hardly ever waited for,
 * because one worker is at work at a time.  So it takes the tranche of another user: each
 * start of a launcher would use up a tranche of its own.
 */
static void
create_area(void)
{
	area = dsa_create(LWTRANCHE_PARALLEL_QUERY_DSA);
	dsa_pin_mapping(area);
	shared_pointer = dsa_allocate0(area, sizeof(TtlShared));
	shared = dsa_get_address(area, shared_pointer);
}

void
ttl_launcher_main(Datum arg)
{
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	pqsignal(SIGINT, cancel_handler);
	BackgroundWorkerUnblockSignals();

	/* shared catalogs only */
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	create_area();
	before_shmem_exit(end_worker, (Datum) 0);
	/* else the status entry of this process, which others read, stays empty */
	SetConfigOption("track_activities", "on", PGC_SUSET, PGC_S_OVERRIDE);
	ereport(LOG, (errmsg("ttl_index launcher started")));
	(void) check_clock(NULL, true);
	/* who sees that there is a monitor again sees what has crashed as well */
	show_launcher();
	INSTR_TIME_SET_CURRENT(last_look);

	for (;;)
	{
		sleep_between_passes();
		if (ttl_monitor_enabled)
			run_pass();
	}
}

/* To be called while shared_preload_libraries are loaded. */
void
ttl_launcher_register(void)
{
	BackgroundWorker entry = {0};

	/* no rows may expire while pg_upgrade moves them */
	if (IsBinaryUpgrade)
		return;
	registered = true;
	entry.bgw_flags = BGWORKER_SHMEM_ACCESS |
		BGWORKER_BACKEND_DATABASE_CONNECTION;
	entry.bgw_start_time = BgWorkerStart_RecoveryFinished;
	entry.bgw_restart_time = RESTART_SECONDS;
	snprintf(entry.bgw_library_name, sizeof(entry.bgw_library_name),
			 "ttl_index");
	snprintf(entry.bgw_function_name, sizeof(entry.bgw_function_name),
			 "ttl_launcher_main");
	snprintf(entry.bgw_name, sizeof(entry.bgw_name), LAUNCHER_TYPE);
	snprintf(entry.bgw_type, sizeof(entry.bgw_type), LAUNCHER_TYPE);
	RegisterBackgroundWorker(&entry);
}

/* Was the library preloaded when the server started?  Every process inherits that. */
bool
ttl_launcher_is_registered(void)
{
	return registered;
}
