/*-------------------------------------------------------------------------
 *
 * worker.c
 *	  The process of one sub-pass in one database.
 *
 * Started by the launcher (launcher.c), it connects to its database as the
 * bootstrap superuser, runs one sub-pass, writes its answer into the memory of the
 * launcher, and leaves.  What users wrote it runs as the owner of the
 * table only (owner.c).
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/monitor/worker.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "commands/dbcommands.h"
#include "commands/extension.h"
#include "libpq/pqsignal.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "tcop/tcopprot.h"
#include "utils/dsa.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "monitor/monitor.h"
#include "monitor/pass.h"
#include "monitor/schedule.h"
#include "ttl_index.h"

PGDLLEXPORT void ttl_worker_main(Datum arg);

static dsa_area *area;
static TtlShared *shared;		/* in that area */
static TtlKept kept;			/* a copy, until the end */

static void
force_setting(const char *name, const char *value)
{
	/* transaction_timeout came with 17 */
	if (GetConfigOption(name, true, false) != NULL)
		SetConfigOption(name, value, PGC_SUSET, PGC_S_OVERRIDE);
}

/*
 * Settings that nobody's ALTER DATABASE or ALTER ROLE may change under a worker.
 * A lost delete is repeated, so no batch waits for the disk or for a standby.
 */
static void
force_settings(void)
{
	force_setting("search_path", "");
	force_setting("session_replication_role", "origin");
	force_setting("statement_timeout", "0");
	force_setting("lock_timeout", "0");
	force_setting("idle_in_transaction_session_timeout", "0");
	force_setting("transaction_timeout", "0");
	force_setting("default_transaction_isolation", "read committed");
	force_setting("default_transaction_deferrable", "off");
	force_setting("synchronous_commit", "off");
}

static void
worker_begin(void)
{
	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
}

static void
worker_commit(void)
{
	CommitTransactionCommand();
	pgstat_report_stat(true);
}

/* Idle where deletes are not wanted; says so once. */
static bool
is_read_only(void)
{
	bool		read_only = DefaultXactReadOnly;

	if (read_only && !kept.said_read_only)
	{
		worker_begin();
		ereport(LOG,
				(errmsg("ttl_index is idle in database \"%s\"",
						get_database_name(MyDatabaseId)),
				 errdetail("The database is read-only by default."),
				 errhint("Turn default_transaction_read_only off to let rows expire.")));
		worker_commit();
	}
	kept.said_read_only = read_only;
	return read_only;
}

/*
 * The worker ends, by itself or not: the launcher gets what is to be kept.  If
 * there is no memory for it, it goes on with what it had.
 */
static void
answer(int code, Datum arg)
{
	dsa_pointer packed = dsa_allocate_extended(area, ttl_kept_size(&kept),
											   DSA_ALLOC_HUGE | DSA_ALLOC_NO_OOM);

	shared->canceled = ttl_work_is_canceled();
	if (!DsaPointerIsValid(packed))
		return;
	ttl_kept_pack(&kept, dsa_get_address(area, packed));
	if (DsaPointerIsValid(shared->kept))
		dsa_free(area, shared->kept);
	shared->kept = packed;
}

/* Attaches to the launcher's memory, which has the turn and what is kept. */
static void
attach(dsa_handle handle, dsa_pointer turn_pointer)
{
	area = dsa_attach(handle);
	dsa_pin_mapping(area);
	shared = dsa_get_address(area, turn_pointer);
	if (DsaPointerIsValid(shared->kept))
		ttl_kept_unpack(&kept, dsa_get_address(area, shared->kept));
	else
		ttl_kept_init(&kept);
	before_shmem_exit(answer, (Datum) 0);
}

/* pg_cancel_backend() */
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
	ttl_crash_watch();

	if (ttl_monitor_enabled && !is_read_only())
	{
		snprintf(activity, sizeof(activity), "ttl_index: pass %lld",
				 (long long) shared->pass);
		pgstat_report_activity(STATE_RUNNING, activity);
		ttl_sub_pass_run(&driver, shared, &kept);
	}
	shared->answered = true;
	proc_exit(0);
}
