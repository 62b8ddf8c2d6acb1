/*-------------------------------------------------------------------------
 *
 * launcher.c
 *	  The launcher: passes over all databases of the server, with a sleep between them.
 *
 * The launcher is one background worker for the whole server, which core restarts if
 * it dies.  A pass of it begins in each database of pg_database, and is over when nothing
 * is left in any; the processes that it takes are started and reaped by tasks.c.  The
 * launcher never waits for one of them: its loop waits for a signal, and goes on with
 * whatever has ended.
 *
 * It begins its own transactions, to read pg_database and to see whether somebody waits
 * for a database.  It is connected to no database, so it can open shared catalogs only.
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
#include "libpq/pqsignal.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#include "monitor/pass.h"
#include "monitor/progress.h"
#include "monitor/state_file.h"
#include "monitor/tasks.h"
#include "ttl_index.h"

PGDLLEXPORT void ttl_launcher_main(Datum arg);

#define LAUNCHER_TYPE "ttl_index launcher"
#define RESTART_SECONDS 5

/* While the launcher waits for anything, it looks at the clock this often. */
#define LOOK_MS (60 * 1000)

/* While a pass goes on, the launcher looks this often for what it has to do. */
#define WAIT_MS 500

static int64 pass_number = 0;
static TtlSaid hold_said;
static TtlSaid file_said;
static bool registered = false;
static instr_time last_look;	/* when nap() last looked at the clock */

static void
end_processes(int code, Datum arg)
{
	ttl_tasks_end();
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
		.no_slot = ttl_tasks_lack_slot(),
		.overview = ttl_overview_handle()
	};

	ttl_progress_launcher(&launcher);
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

static int64
sleep_ms(void)
{
	return (int64) ttl_monitor_sleep * 1000;
}

/* Takes note of the indexes at which workers have crashed the server, if some have. */
static void
take_crashes(void)
{
	TtlMark		mark;

	while (ttl_crash_take_mark(&mark))
	{
		ereport(WARNING,
				(errcode(ERRCODE_CRASH_SHUTDOWN),
				 errmsg("the server crashed during a visit to the TTL index with OID %u of the database with OID %u",
						mark.indexrelid, mark.database)));
		ttl_tasks_note_crash(mark.database, mark.indexrelid);
	}
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
			take_crashes();
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
	if (ttl_tasks_elapsed(last_look) < LOOK_MS)
		return;
	INSTR_TIME_SET_CURRENT(last_look);
	(void) check_clock(&file, false);
}

/* Makes a pass over all databases. */
static void
run_pass(void)
{
	char		activity[64];
	TtlStateFile file;
	instr_time	read_at;

	if (!check_clock(&file, false) || ttl_hold_is_held(&file, WARNING, &hold_said))
		return;
	hold_said.at = 0;
	ttl_tasks_set_pass(++pass_number);
	snprintf(activity, sizeof(activity), "ttl_index: pass %lld",
			 (long long) pass_number);
	pgstat_report_activity(STATE_RUNNING, activity);
	ttl_database_read(true);
	INSTR_TIME_SET_CURRENT(read_at);
	while (ttl_tasks_step(ttl_monitor_enabled))
	{
		show_launcher();
		nap(WAIT_MS);
		if (ttl_tasks_elapsed(read_at) >= WAIT_MS && ttl_monitor_enabled)
		{
			ttl_database_read(false);
			INSTR_TIME_SET_CURRENT(read_at);
		}
	}
	show_launcher();
	pgstat_report_activity(STATE_IDLE, NULL);
}

/* Sleeps; a change of monitor_sleep during the sleep takes effect at once. */
static void
sleep_between_passes(void)
{
	instr_time	since;
	int64		remaining;

	INSTR_TIME_SET_CURRENT(since);
	while ((remaining = sleep_ms() - ttl_tasks_elapsed(since)) > 0)
		nap(Min(remaining, LOOK_MS));
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
	ttl_tasks_init(InvalidOid);
	before_shmem_exit(end_processes, (Datum) 0);
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
