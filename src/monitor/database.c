/*-------------------------------------------------------------------------
 *
 * database.c
 *	  Which databases the launcher looks after.
 *
 * The list follows pg_database at each look.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/monitor/database.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_database.h"
#include "utils/rel.h"

#include "monitor/tasks.h"
#include "ttl_index.h"

/*
 * Brings the list of databases up to date.  At the beginning of a pass one begins in each of
 * them; later in the pass only in those that are new, or whose last one ended as long ago
 * as the sleep, so that one that drains for hours does not keep the others waiting.
 */
void
ttl_database_read(bool begins)
{
	Relation	rel;
	TableScanDesc scan;
	HeapTuple	tuple;
	ListCell   *lc;

	foreach(lc, ttl_tasks_databases())
		((TtlDatabase *) lfirst(lc))->seen = false;

	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	rel = table_open(DatabaseRelationId, AccessShareLock);
	scan = table_beginscan_catalog(rel, 0, NULL);
	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		Form_pg_database form = (Form_pg_database) GETSTRUCT(tuple);
		TtlDatabase *db;

		/* a limit of -2 marks a database whose DROP was interrupted */
		if (form->datistemplate || !form->datallowconn ||
			form->datconnlimit == -2)
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
