/*-------------------------------------------------------------------------
 *
 * run_pass.c
 *	  CALL ttl_index.run_pass(): a pass over one database, on demand.
 *
 * The session runs no pass itself.  It starts the processes that the launcher would start
 * (see README), waits for them, relays their messages, and ends them if it is canceled.
 * That needs no preload.
 *
 * It holds no snapshot and no lock while it waits: a worker that waited for a lock of the
 * session would be in a deadlock that is not detected.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "commands/dbcommands.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "storage/ipc.h"
#include "utils/snapmgr.h"

#include "server/server.h"

PG_FUNCTION_INFO_V1(ttl_run_pass);

/* The session looks this often for what it has to do, if no signal comes. */
#define WAIT_MS 100

/* CALL run_pass() */
Datum
ttl_run_pass(PG_FUNCTION_ARGS)
{
	PreventCommandDuringRecovery("ttl_index.run_pass()");
	if (!(fcinfo->context && IsA(fcinfo->context, CallContext)) ||
		castNode(CallContext, fcinfo->context)->atomic)
		ereport(ERROR,
				(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				 errmsg("ttl_index.run_pass() cannot run inside a transaction block"),
				 errhint("Each batch is a transaction of its own. Call it as a statement by itself.")));
	PreventCommandIfReadOnly("ttl_index.run_pass()");
	if (!IsUnderPostmaster)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("ttl_index.run_pass() cannot run in single-user mode"),
				 errhint("Start the server.")));

	SPI_connect_ext(SPI_OPT_NONATOMIC);
	/* this begins a transaction that has no snapshot yet */
	SPI_commit();
	PG_ENSURE_ERROR_CLEANUP(ttl_tasks_end, (Datum) 0);
	{
		TtlDatabase *db;

		ttl_tasks_init(GetUserId());
		db = ttl_tasks_add_database(MyDatabaseId);
		strlcpy(db->name, get_database_name(MyDatabaseId), NAMEDATALEN);
		ttl_tasks_begin_pass(db);
		while (ttl_tasks_step(true))
		{
			InvalidateCatalogSnapshot();
			ttl_tasks_nap(WAIT_MS);
		}
		ereport(NOTICE, (errmsg_internal("%s", ttl_report_pass_text(&db->kept.sum))));
	}
	PG_END_ENSURE_ERROR_CLEANUP(ttl_tasks_end, (Datum) 0);
	ttl_tasks_end(0, (Datum) 0);
	SPI_finish();
	PG_RETURN_VOID();
}
