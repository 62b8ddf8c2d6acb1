/*-------------------------------------------------------------------------
 *
 * launcher.c
 *	  The launcher: passes over all databases of the server, with a sleep between them.
 *
 * The launcher is one background worker for the whole server (see README).  It is connected
 * to no database, so it can open shared catalogs only.
 *
 * It starts when recovery has finished, so a standby has none until it is promoted.  It
 * sleeps before its first pass, so that there is time to turn it off on a restored server.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_database.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "server/server.h"

PGDLLEXPORT void ttl_launcher_main(Datum arg);

#define LAUNCHER_TYPE "ttl_index launcher"
#define RESTART_SECONDS 5

/* While the launcher waits for anything, it looks at the clock this often. */
#define LOOK_MS (60 * 1000)

/* While a pass goes on, the launcher looks this often for what it has to do. */
#define WAIT_MS 500

/* Was the library preloaded when the server started?  Every process inherits that. */
bool		ttl_launcher_registered = false;

static TtlStateFile file;		/* as it was read last */
static TtlReported hold_reported;
static TtlReported file_reported;
static instr_time last_look;	/* when nap() last looked at the clock */

/*
 * Looks at the clock, and at the start for indexes at which workers have crashed the server.
 * If the state file cannot be read or written, it is unknown whether rows may be deleted:
 * reports that, and returns false.
 */
static bool
check_clock(bool starts)
{
	MemoryContext caller = CurrentMemoryContext;
	ErrorData  *edata;
	TtlMark		mark;

	PG_TRY();
	{
		while (starts && ttl_crash_take_mark(&mark))
		{
			ereport(WARNING,
					(errcode(ERRCODE_CRASH_SHUTDOWN),
					 errmsg("the server crashed during a visit to the TTL index with OID %u of the database with OID %u",
							mark.indexrelid, mark.database)));
			ttl_tasks_note_crash(mark.database, mark.indexrelid);
		}
		ttl_hold_check_clock(&file, GetCurrentTimestamp(), starts);
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(caller);
		edata = CopyErrorData();
		FlushErrorState();
		if (ttl_kept_is_news(&file_reported, edata->sqlerrcode, edata->message))
			ereport(WARNING,
					(errcode(edata->sqlerrcode),
					 errmsg("ttl_index deletes nothing on this server: %s", edata->message),
					 errhint("Let the server read and write that file.")));
		FreeErrorData(edata);
		return false;
	}
	PG_END_TRY();
	file_reported.at = 0;
	return true;
}

/* Waits for so many milliseconds, or until a signal, and looks at settings and clock. */
static void
nap(long milliseconds)
{
	ttl_tasks_nap(milliseconds);
	if (ConfigReloadPending)
	{
		ConfigReloadPending = false;
		ProcessConfigFile(PGC_SIGHUP);
		ttl_tasks_show();
	}
	/* the time of the last look tells since when the server has been down */
	if (ttl_tasks_elapsed(last_look) < LOOK_MS)
		return;
	INSTR_TIME_SET_CURRENT(last_look);
	(void) check_clock(false);
}

/*
 * Updates the list of databases.  At the beginning, a pass begins in each of them.  Later, a
 * pass begins in databases that are new, or whose last pass ended ttl_index.monitor_sleep
 * ago, so that a database that drains for hours does not keep the others waiting.
 */
static void
read_databases(bool begins)
{
	Relation	rel;
	TableScanDesc scan;
	HeapTuple	tuple;

	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	rel = table_open(DatabaseRelationId, AccessShareLock);
	scan = table_beginscan_catalog(rel, 0, NULL);
	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		Form_pg_database form = (Form_pg_database) GETSTRUCT(tuple);
		TtlDatabase *db;

		/* a limit of -2 marks a database whose DROP was interrupted */
		if (form->datistemplate || !form->datallowconn || form->datconnlimit == -2)
			continue;
		db = ttl_tasks_add_database(form->oid);
		strlcpy(db->name, NameStr(form->datname), NAMEDATALEN);
		db->seen = true;
		if (begins ? db->running == 0 :
			db->stage == TTL_STAGE_DONE &&
			(!db->had_pass ||
			 ttl_tasks_elapsed(db->last_pass) >= ttl_monitor_sleep * INT64CONST(1000)))
			ttl_tasks_begin_pass(db);
	}
	table_endscan(scan);
	table_close(rel, AccessShareLock);
	CommitTransactionCommand();
	ttl_tasks_forget_unseen();
}

/* Makes a pass over all databases. */
static void
run_pass(void)
{
	char		activity[64];
	instr_time	read_at;

	if (!check_clock(false) || ttl_hold_is_held(&file, WARNING, &hold_reported))
		return;
	hold_reported.at = 0;
	snprintf(activity, sizeof(activity), "ttl_index: pass %lld", (long long) ttl_tasks_next_pass());
	pgstat_report_activity(STATE_RUNNING, activity);
	read_databases(true);
	INSTR_TIME_SET_CURRENT(read_at);
	while (ttl_tasks_step(ttl_monitor_enabled))
	{
		ttl_tasks_show();
		nap(WAIT_MS);
		if (ttl_tasks_elapsed(read_at) >= WAIT_MS && ttl_monitor_enabled)
		{
			read_databases(false);
			INSTR_TIME_SET_CURRENT(read_at);
		}
	}
	ttl_tasks_show();
	pgstat_report_activity(STATE_IDLE, NULL);
}

void
ttl_launcher_main(Datum arg)
{
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	/* pg_cancel_backend() has nothing to cancel here */
	pqsignal(SIGINT, PG_SIG_IGN);
	BackgroundWorkerUnblockSignals();

	/* shared catalogs only */
	BackgroundWorkerInitializeConnection(NULL, NULL, 0);
	ttl_tasks_init(InvalidOid);
	before_shmem_exit(ttl_tasks_end, (Datum) 0);
	/* else the status entry of this process, which others read, stays empty */
	SetConfigOption("track_activities", "on", PGC_SUSET, PGC_S_OVERRIDE);
	ereport(LOG, (errmsg("ttl_index launcher started")));
	(void) check_clock(true);
	/* a session that sees the launcher sees the crashes as well */
	ttl_tasks_show();
	INSTR_TIME_SET_CURRENT(last_look);

	for (;;)
	{
		instr_time	since;
		int64		remaining;

		/* a change of monitor_sleep takes effect at once */
		INSTR_TIME_SET_CURRENT(since);
		while ((remaining = ttl_monitor_sleep * INT64CONST(1000) - ttl_tasks_elapsed(since)) > 0)
			nap(Min(remaining, LOOK_MS));
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
	ttl_launcher_registered = true;
	entry.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	entry.bgw_start_time = BgWorkerStart_RecoveryFinished;
	entry.bgw_restart_time = RESTART_SECONDS;
	snprintf(entry.bgw_library_name, sizeof(entry.bgw_library_name), "ttl_index");
	snprintf(entry.bgw_function_name, sizeof(entry.bgw_function_name), "ttl_launcher_main");
	snprintf(entry.bgw_name, sizeof(entry.bgw_name), LAUNCHER_TYPE);
	snprintf(entry.bgw_type, sizeof(entry.bgw_type), LAUNCHER_TYPE);
	RegisterBackgroundWorker(&entry);
}
