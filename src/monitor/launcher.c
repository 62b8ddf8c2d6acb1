/*-------------------------------------------------------------------------
 *
 * launcher.c
 *	  The cluster-wide process: one pass over all databases, sleep, again.
 *
 * The launcher reads pg_database and starts one worker (worker.c) after another,
 * a single thread over the whole cluster.  A worker takes one turn in its
 * database, a sub-pass of at most 60 seconds; databases with more left get
 * another turn in the next round, and those without one when the time of a sleep
 * has gone by.  The pass is over when none has more.
 *
 * A worker is short-lived because a connection blocks DROP DATABASE, and because
 * a database that gets the extension, or loses it, then needs no attention here.
 * Launcher and worker speak through a dynamic shared memory area, whose handle is
 * the worker's argument: hooks to ask for shared memory differ from major to major.
 * There the launcher also stores what the workers of a database keep from turn to
 * turn (kept.c), of any size.
 *
 * It starts when recovery has finished, so on a standby there is none until it
 * is promoted.  It sleeps before its first pass, as MongoDB's monitor does: who
 * starts a restored server has that long to think again.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/monitor/launcher.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_database.h"
#include "libpq/pqsignal.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "portability/instr_time.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "tcop/tcopprot.h"
#include "utils/dsa.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#include "compat.h"
#include "monitor/monitor.h"
#include "monitor/pass.h"
#include "monitor/state_file.h"
#include "ttl_index.h"

PGDLLEXPORT void ttl_launcher_main(Datum arg);

#define RESTART_SECONDS 5

/* However long it waits, look this often at the clock. */
#define LOOK_MS (60 * 1000)

/* While waiting for a worker, look this often whether somebody waits for it. */
#define WAIT_MS 500

/* How often to ask for a worker slot in vain, a second apart. */
#define SLOT_TRIES 10

/* What the launcher knows of a database. */
typedef struct Database
{
	Oid			oid;
	char		name[NAMEDATALEN];
	bool		seen;			/* in pg_database at the last look */
	bool		pending;		/* wants another turn */
	bool		had_turn;
	instr_time	last_turn;		/* when its last turn ended */
	bool		begins;			/* has had no turn in this pass */
	/* as in TtlShared */
	Oid			died_at;
	bool		died_in_crash;
	bool		died_canceled;
	dsa_pointer kept;
} Database;

static List *databases = NIL;
static dsa_area *area = NULL;
static TtlShared *shared = NULL;	/* in that area */
static dsa_pointer turn_pointer;
static BackgroundWorkerHandle *worker = NULL;
static int64 pass_number = 0;

static TtlThrottle throttle;
static int	slot_tries;			/* in vain, since the last worker of this pass */
static bool warned_about_slots;
static instr_time last_look;	/* at the clock, in a nap */

static void
end_worker(int code, Datum arg)
{
	if (worker != NULL)
		TerminateBackgroundWorker(worker);
}

/* pg_cancel_backend(): there is nothing to cancel, a worker is to be asked. */
static void
cancel_handler(SIGNAL_ARGS)
{
}

static void
handle_interrupts(void)
{
	CHECK_FOR_INTERRUPTS();
	if (ConfigReloadPending)
	{
		ConfigReloadPending = false;
		ProcessConfigFile(PGC_SIGHUP);
	}
}

/*
 * Milliseconds since then, by a clock that nobody can set: where the wall clock
 * is set back, the monitor must not sleep until it has caught up.
 */
static int64
elapsed(instr_time since)
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

/*
 * Waits; any signal ends it early.  The clock is looked at once a minute, so that the
 * time of the last look tells since when the server has been down.
 */
static void
nap(long milliseconds)
{
	TtlStateFile file;

	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
					 milliseconds, PG_WAIT_EXTENSION);
	ResetLatch(MyLatch);
	handle_interrupts();
	if (elapsed(last_look) < LOOK_MS)
		return;
	INSTR_TIME_SET_CURRENT(last_look);
	ttl_hold_check_clock(&file, GetCurrentTimestamp());
}

static Database *
find_database(Oid oid)
{
	ListCell   *lc;
	Database   *db;
	MemoryContext caller;

	foreach(lc, databases)
	{
		db = lfirst(lc);
		if (db->oid == oid)
			return db;
	}
	caller = MemoryContextSwitchTo(TopMemoryContext);
	db = palloc0(sizeof(Database));
	db->oid = oid;
	databases = lappend(databases, db);
	MemoryContextSwitchTo(caller);
	return db;
}

/*
 * Brings the list of databases up to date.  Pending becomes each of them at the
 * beginning of a pass; later in it what is new, and what had no turn for as long
 * as the sleep: a database that drains for hours must not keep the others
 * waiting.
 */
static void
read_databases(bool begin)
{
	Relation	rel;
	TableScanDesc scan;
	HeapTuple	tuple;
	ListCell   *lc;

	foreach(lc, databases)
		((Database *) lfirst(lc))->seen = false;

	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	rel = table_open(DatabaseRelationId, AccessShareLock);
	scan = table_beginscan_catalog(rel, 0, NULL);
	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		Form_pg_database form = (Form_pg_database) GETSTRUCT(tuple);
		Database   *db;

		/* -2 marks one whose DROP was interrupted */
		if (form->datistemplate || !form->datallowconn ||
			form->datconnlimit == -2)
			continue;
		db = find_database(form->oid);
		strlcpy(db->name, NameStr(form->datname), NAMEDATALEN);
		db->seen = true;
		if (db->pending || !(begin || !db->had_turn ||
							 elapsed(db->last_turn) >= sleep_ms()))
			continue;
		db->pending = true;
		db->begins = true;
	}
	table_endscan(scan);
	table_close(rel, AccessShareLock);
	CommitTransactionCommand();

	foreach(lc, databases)
	{
		Database   *db = lfirst(lc);

		if (!db->seen)
		{
			databases = foreach_delete_current(databases, lc);
			if (DsaPointerIsValid(db->kept))
				dsa_free(area, db->kept);
			pfree(db);
		}
	}
}

/*
 * Does somebody hold the database for a DROP, a CREATE ... TEMPLATE or the like?
 * They wait for its connections to end.
 */
static bool
database_is_wanted(Oid oid)
{
	LOCKTAG		tag;
	bool		wanted;

	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	SET_LOCKTAG_OBJECT(tag, InvalidOid, DatabaseRelationId, oid, 0);
	wanted = LockAcquire(&tag, RowExclusiveLock, false, true) == LOCKACQUIRE_NOT_AVAIL;
	CommitTransactionCommand();
	return wanted;
}

/* Starts a worker for the database; false where there is no slot for one. */
static bool
start_worker(const Database *db)
{
	BackgroundWorker entry = {0};
	TtlWorkerExtra extra = {.database = db->oid,.shared = turn_pointer};

	entry.bgw_flags = BGWORKER_SHMEM_ACCESS |
		BGWORKER_BACKEND_DATABASE_CONNECTION | BGWORKER_INTERRUPTIBLE;
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
 * Starts a worker, trying again for a while: parallel queries use up the slots
 * and give them back.  Where they do not, one wait is for all the databases of the
 * pass, each of which tries once more.  One WARNING a pass.
 */
static bool
start_worker_patiently(const Database *db)
{
	while (!start_worker(db))
	{
		if (!warned_about_slots)
			ereport(WARNING,
					(errcode(ERRCODE_INSUFFICIENT_RESOURCES),
					 errmsg("no background worker slot is free for ttl_index"),
					 errhint("Consider increasing the configuration parameter \"%s\".",
							 "max_worker_processes")));
		warned_about_slots = true;
		if (slot_tries >= SLOT_TRIES || !ttl_monitor_enabled)
			return false;
		slot_tries++;
		nap(1000);
	}
	slot_tries = 0;
	return true;
}

static void
wait_for_worker(const Database *db)
{
	pid_t		pid;
	instr_time	looked;

	INSTR_TIME_SET_CURRENT(looked);
	while (GetBackgroundWorkerPid(worker, &pid) != BGWH_STOPPED)
	{
		nap(WAIT_MS);
		if (elapsed(looked) < WAIT_MS)
			continue;
		INSTR_TIME_SET_CURRENT(looked);
		/* one that is in a batch leaves only when the batch is done */
		if (database_is_wanted(db->oid))
			TerminateBackgroundWorker(worker);
	}
	pfree(worker);
	worker = NULL;
}

/* Takes the answer of a worker that has ended. */
static void
take_answer(Database *db)
{
	throttle = shared->throttle;
	db->kept = shared->kept;
	db->begins = false;
	/* one that died at an index is followed by one that goes on behind it */
	db->died_at = shared->answered ? InvalidOid : shared->current_index;
	db->died_in_crash = false;
	db->died_canceled = shared->canceled;
	db->pending = shared->answered ? shared->more : OidIsValid(db->died_at);
}

/* One turn of a database. */
static void
give_turn(Database *db)
{
	memset(shared, 0, sizeof(TtlShared));
	shared->launcher_pid = MyProcPid;
	shared->pass = pass_number;
	shared->begins = db->begins;
	shared->died_at = db->died_at;
	shared->died_in_crash = db->died_in_crash;
	shared->died_canceled = db->died_canceled;
	shared->throttle = throttle;
	shared->kept = db->kept;

	/* One that is being dropped or copied waits. */
	db->pending = false;
	INSTR_TIME_SET_CURRENT(db->last_turn);
	db->had_turn = true;
	if (database_is_wanted(db->oid) || !start_worker_patiently(db))
		return;
	wait_for_worker(db);
	take_answer(db);
	INSTR_TIME_SET_CURRENT(db->last_turn);
}

static void
run_pass(void)
{
	bool		more = true;
	char		activity[64];
	TtlStateFile file;

	ttl_hold_check_clock(&file, GetCurrentTimestamp());
	if (ttl_hold_is_held(&file, WARNING))
		return;
	shared->held = false;
	pass_number++;
	warned_about_slots = false;
	slot_tries = 0;
	snprintf(activity, sizeof(activity), "ttl_index: pass %lld",
			 (long long) pass_number);
	pgstat_report_activity(STATE_RUNNING, activity);
	read_databases(true);
	while (more && ttl_monitor_enabled)
	{
		ListCell   *lc;

		more = false;
		foreach(lc, databases)
		{
			Database   *db = lfirst(lc);

			handle_interrupts();
			if (db->pending && ttl_monitor_enabled)
				give_turn(db);
			if (shared->held)
				break;
			more = more || db->pending;
		}
		more = more && !shared->held;
		if (more)
			read_databases(false);
	}
	pgstat_report_activity(STATE_IDLE, NULL);
}

/* Sleeps, counted from now; a reload during the sleep takes effect at once. */
static void
sleep_between_passes(void)
{
	instr_time	since;
	int64		remaining;

	INSTR_TIME_SET_CURRENT(since);
	while ((remaining = sleep_ms() - elapsed(since)) > 0)
		nap(Min(remaining, LOOK_MS));
}

/* A worker that took the server down: to be counted at its index. */
static void
take_crash(void)
{
	Oid			database;
	Oid			indexrelid = ttl_crash_take_mark(&database);
	Database   *db;

	if (!OidIsValid(indexrelid))
		return;
	ereport(WARNING,
			(errcode(ERRCODE_CRASH_SHUTDOWN),
			 errmsg("the server crashed during a visit to the TTL index with OID %u of the database with OID %u",
					indexrelid, database)));
	db = find_database(database);
	db->died_at = indexrelid;
	db->died_in_crash = true;
}

/*
 * The memory that is shared with the workers.  As there is one at a time, its
 * lock is never waited for; a tranche of one's own would be used up by each start.
 */
static void
create_area(void)
{
	area = dsa_create(LWTRANCHE_PARALLEL_QUERY_DSA);
	dsa_pin_mapping(area);
	turn_pointer = dsa_allocate0(area, sizeof(TtlShared));
	shared = dsa_get_address(area, turn_pointer);
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
	ereport(LOG, (errmsg("ttl_index launcher started")));
	take_crash();
	ttl_hold_check_start();
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

	/* pg_upgrade moves the rows: none may expire meanwhile */
	if (IsBinaryUpgrade)
		return;
	entry.bgw_flags = BGWORKER_SHMEM_ACCESS |
		BGWORKER_BACKEND_DATABASE_CONNECTION;
	entry.bgw_start_time = BgWorkerStart_RecoveryFinished;
	entry.bgw_restart_time = RESTART_SECONDS;
	snprintf(entry.bgw_library_name, sizeof(entry.bgw_library_name),
			 "ttl_index");
	snprintf(entry.bgw_function_name, sizeof(entry.bgw_function_name),
			 "ttl_launcher_main");
	snprintf(entry.bgw_name, sizeof(entry.bgw_name), TTL_LAUNCHER_TYPE);
	snprintf(entry.bgw_type, sizeof(entry.bgw_type), TTL_LAUNCHER_TYPE);
	RegisterBackgroundWorker(&entry);
}
