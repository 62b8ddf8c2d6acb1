/*-------------------------------------------------------------------------
 *
 * worker.c
 *	  The process of one database's turn.
 *
 * Started by the launcher (launcher.c), it connects to its database as the
 * bootstrap superuser, runs one sub-pass, writes its answer into the DSM segment
 * of the launcher, and leaves.  What users wrote it runs as the owner of the
 * table only (owner.c).
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/worker.c
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
#include "storage/dsm.h"
#include "storage/ipc.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#include "ttl_index.h"

PGDLLEXPORT void ttl_worker_main(Datum arg);

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
is_read_only(TtlTurn *turn)
{
	bool		read_only = DefaultXactReadOnly;

	if (read_only && !turn->said_read_only)
	{
		worker_begin();
		ereport(LOG,
				(errmsg("ttl_index is idle in database \"%s\"",
						get_database_name(MyDatabaseId)),
				 errdetail("The database is read-only by default."),
				 errhint("Turn default_transaction_read_only off to let rows expire.")));
		worker_commit();
	}
	turn->said_read_only = read_only;
	return read_only;
}

void
ttl_worker_main(Datum arg)
{
	static const TtlDriver driver = {worker_begin, worker_commit, true, InvalidOid};
	dsm_segment *segment;
	TtlTurn    *turn;
	Oid			database;
	char		activity[64];

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();

	segment = dsm_attach(DatumGetUInt32(arg));
	if (segment == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the ttl_index launcher is gone")));
	turn = dsm_segment_address(segment);
	memcpy(&database, MyBgworkerEntry->bgw_extra, sizeof(database));
	BackgroundWorkerInitializeConnectionByOid(database, InvalidOid, 0);
	force_settings();
	ttl_crash_watch();

	if (ttl_monitor_enabled && !is_read_only(turn))
	{
		snprintf(activity, sizeof(activity), "ttl_index: pass %lld",
				 (long long) turn->pass);
		pgstat_report_activity(STATE_RUNNING, activity);
		ttl_run_turn(&driver, turn);
	}
	turn->answered = true;
	proc_exit(0);
}
