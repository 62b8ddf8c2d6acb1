/*-------------------------------------------------------------------------
 *
 * worker.c
 *	  The worker: the process of one sub-pass in one database.
 *
 * The launcher (launcher.c) starts it as a dynamic background worker and waits until
 * it has ended.  It connects to its database as the bootstrap superuser, runs one
 * sub-pass (sub_pass.c), writes its answer into the launcher's memory, and ends.  It
 * does not stay for the next sub-pass; launcher.c says why.
 *
 * It has to be a superuser because it deletes in the tables of all owners; what users
 * wrote runs only as the owner of the table (owner.c).  The settings that could change
 * what a delete does, or keep it from ending, are forced here, whatever ALTER DATABASE
 * and ALTER ROLE say; all others are those of the database, so that ttl_index's own
 * can be set there.
 *
 * What is kept of the database from one sub-pass to the next (kept.c) is copied from
 * the launcher's memory at the start, and written anew at the end.  The end is a callback of
 * before_shmem_exit(), so that it also happens when the worker is terminated, or ends
 * because a batch did not let itself be canceled.  If the process crashes, core
 * restarts all processes, the memory is gone, and crash.c has the index.  Behind that,
 * when core has given back what the process shared, it ends at once.
 *
 * A worker that finds the extension missing has nothing to do: ttl_prepare_targets()
 * finds that out, so a database without it costs one short connection a pass.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/monitor/worker.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <unistd.h>

#include "access/xact.h"
#include "commands/dbcommands.h"
#include "commands/extension.h"
#include "libpq/pqsignal.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/lock.h"
#include "tcop/tcopprot.h"
#include "utils/dsa.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "monitor/monitor.h"
#include "monitor/pass.h"
#include "monitor/schedule.h"
#include "monitor/visit.h"
#include "ttl_index.h"

PGDLLEXPORT void ttl_worker_main(Datum arg);

static dsa_area *area;
static TtlShared *shared;		/* in that area */
static TtlKept kept;			/* a copy of what shared->told.kept points to */

static void
force_setting(const char *name, const char *value)
{
	/* there is no transaction_timeout before PostgreSQL 17 */
	if (GetConfigOption(name, true, false) != NULL)
		SetConfigOption(name, value, PGC_SUSET, PGC_S_OVERRIDE);
}

/*
 * Sets what no ALTER DATABASE or ALTER ROLE may change for a worker.  A delete that a
 * crash has lost is repeated, so no batch waits for the disk or for a standby.
 */
static void
force_settings(void)
{
	force_setting("application_name", TTL_EXTENSION);
	force_setting("search_path", "");
	force_setting("session_replication_role", "origin");
	force_setting("statement_timeout", "0");
	force_setting("lock_timeout", "0");
	force_setting("idle_in_transaction_session_timeout", "0");
	force_setting("transaction_timeout", "0");
	force_setting("default_transaction_isolation", "read committed");
	force_setting("default_transaction_deferrable", "off");
	/* an error of an index must not end the process */
	force_setting("exit_on_error", "off");
	/* nor how foreign keys find rows: each would read all of a table, or all partitions */
	force_setting("enable_indexscan", "on");
	force_setting("enable_indexonlyscan", "on");
	force_setting("enable_bitmapscan", "on");
	force_setting("enable_partition_pruning", "on");
	ttl_settings_each_cost(force_setting);
	force_setting("synchronous_commit", "off");
}

/*
 * Is a superuser again, as who the worker was started, whoever ALTER DATABASE says: the owner of
 * the database is not who acts for all others there.
 */
static void
force_user(void)
{
	if (GetSessionUserId() != GetAuthenticatedUserId())
	{
		StartTransactionCommand();
		force_setting("session_authorization",
					  GetUserNameFromId(GetAuthenticatedUserId(), false));
		CommitTransactionCommand();
	}
	force_setting("role", "none");
}

/*
 * Advisory locks that code of an owner took for the session end with its transaction: the next
 * owner's code would have them, and they can be all that the lock table has room for.
 */
static void
worker_begin(void)
{
	LockReleaseSession(USER_LOCKMETHOD);
	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
}

static void
worker_commit(void)
{
	CommitTransactionCommand();
	pgstat_report_stat(true);
}

/* Is the database read-only by default?  Says so now and then. */
static bool
is_read_only(void)
{
	bool		read_only = DefaultXactReadOnly;

	if (read_only &&
		ttl_report_is_news(&kept.said, ERRCODE_READ_ONLY_SQL_TRANSACTION, ""))
	{
		worker_begin();
		ereport(LOG,
				(errmsg("ttl_index is idle in database \"%s\"",
						get_database_name(MyDatabaseId)),
				 errdetail("The database is read-only by default."),
				 errhint("Turn default_transaction_read_only off to let rows expire.")));
		worker_commit();
	}
	return read_only;
}

/*
 * Ends the process.  What else is called when a process ends would free nothing that its end
 * does not free; but PL/Perl runs the END blocks of users' code then, which nothing cancels
 * while the launcher waits.  Codes other than these, as where a function of a user
 * calls exit(), are a crash for the postmaster, and the mark of that stays.
 */
static void
leave(int code, Datum arg)
{
	if (code != 0 && code != 1)
		return;
	ttl_crash_mark(InvalidOid);
	_exit(code);
}

/*
 * Hands over to the launcher what is to be kept, when the worker ends, in whatever way.
 * If there is no memory for it, the launcher keeps what it had.
 */
static void
answer(int code, Datum arg)
{
	/* it is called before what others have registered until now */
	on_proc_exit(leave, (Datum) 0);
	shared->canceled = !ttl_attempt_died() && ttl_work_is_canceled();
	shared->kept_next = ttl_kept_store(&kept, area);
}

/* Attaches to the launcher's memory, and copies what is kept of the database. */
static void
attach(dsa_handle handle, dsa_pointer shared_pointer)
{
	area = dsa_attach(handle);
	dsa_pin_mapping(area);
	shared = dsa_get_address(area, shared_pointer);
	ttl_kept_load(&kept, area, shared->told.kept);
	before_shmem_exit(answer, (Datum) 0);
}

/* Handles pg_cancel_backend(). */
static void
cancel_handler(SIGNAL_ARGS)
{
	ttl_work_cancel();
}

void
ttl_worker_main(Datum arg)
{
	static const TtlDriver driver = {worker_begin, worker_commit, true, InvalidOid};
	TtlWorkerExtra extra;
	char		activity[64];

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	pqsignal(SIGINT, cancel_handler);
	BackgroundWorkerUnblockSignals();

	memcpy(&extra, MyBgworkerEntry->bgw_extra, sizeof(extra));
	BackgroundWorkerInitializeConnectionByOid(extra.database, InvalidOid, 0);
	MemoryContextSwitchTo(TopMemoryContext);
	attach(DatumGetUInt32(arg), extra.shared);
	force_settings();
	force_user();
	ttl_crash_watch();

	if (ttl_monitor_enabled && !is_read_only())
	{
		snprintf(activity, sizeof(activity), "ttl_index: pass %lld",
				 (long long) shared->pass);
		pgstat_report_activity(STATE_RUNNING, activity);
		ttl_sub_pass_run(&driver, shared, &kept);
	}
	shared->answered = true;
	ttl_survey_run(&driver, shared, &kept);
	proc_exit(0);
}
