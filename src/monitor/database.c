/*-------------------------------------------------------------------------
 *
 * database.c
 *	  The databases that the launcher knows, and what is kept of each.
 *
 * The list follows pg_database at each look.  What the workers keep of a database is in the
 * dynamic shared memory area that they share with the launcher, which frees it with the
 * database.
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
#include "utils/memutils.h"
#include "utils/rel.h"

#include "monitor/launcher.h"
#include "ttl_index.h"

static List *databases = NIL;

/* Finds what is known of a database; NULL if nothing is. */
TtlDatabase *
ttl_database_find(Oid oid)
{
	ListCell   *lc;

	foreach(lc, databases)
	{
		TtlDatabase *db = lfirst(lc);

		if (db->oid == oid)
			return db;
	}
	return NULL;
}

/* Finds it, or adds it to the list. */
TtlDatabase *
ttl_database_add(Oid oid)
{
	TtlDatabase *db = ttl_database_find(oid);
	MemoryContext caller;

	if (db != NULL)
		return db;
	caller = MemoryContextSwitchTo(TopMemoryContext);
	db = palloc0(sizeof(TtlDatabase));
	db->oid = oid;
	databases = lappend(databases, db);
	MemoryContextSwitchTo(caller);
	return db;
}

/*
 * Brings the list of databases up to date.  At the beginning of a pass each of them
 * becomes pending; later in the pass only those that are new, or that had no sub-pass
 * for as long as the sleep.  Returns the list.
 */
List *
ttl_database_read(dsa_area *area, bool begins)
{
	Relation	rel;
	TableScanDesc scan;
	HeapTuple	tuple;
	ListCell   *lc;

	foreach(lc, databases)
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
		db = ttl_database_add(form->oid);
		strlcpy(db->name, NameStr(form->datname), NAMEDATALEN);
		db->seen = true;
		if (db->pending || !(begins || !db->had_sub_pass ||
							 ttl_launcher_elapsed(db->last_sub_pass) >= ttl_monitor_sleep * INT64CONST(1000)))
			continue;
		db->pending = true;
		db->told.begins = true;
	}
	table_endscan(scan);
	table_close(rel, AccessShareLock);
	CommitTransactionCommand();

	foreach(lc, databases)
	{
		TtlDatabase *db = lfirst(lc);

		if (!db->seen)
		{
			databases = foreach_delete_current(databases, lc);
			if (DsaPointerIsValid(db->told.kept))
				dsa_free(area, db->told.kept);
			pfree(db);
		}
	}
	return databases;
}

/* Keeps of a database what has been written for the next sub-pass, if anything was. */
void
ttl_database_keep(TtlDatabase *db, dsa_area *area, dsa_pointer next)
{
	if (!DsaPointerIsValid(next))
		return;
	if (DsaPointerIsValid(db->told.kept))
		dsa_free(area, db->told.kept);
	db->told.kept = next;
}

/* Shows other processes what is known of the databases that have TTL indexes. */
void
ttl_database_show(dsa_area *area)
{
	TtlKnownIndex *indexes;
	TtlKnownDatabase *known = palloc0(Max(list_length(databases), 1) * sizeof(TtlKnownDatabase));
	int			count = 0;
	int			index_count = 0;
	ListCell   *lc;

	foreach(lc, databases)
	{
		TtlDatabase *db = lfirst(lc);

		if (DsaPointerIsValid(db->told.kept))
			index_count += ttl_kept_read(dsa_get_address(area, db->told.kept), InvalidOid, NULL);
	}
	indexes = palloc(Max(index_count, 1) * sizeof(TtlKnownIndex));
	index_count = 0;
	foreach(lc, databases)
	{
		TtlDatabase *db = lfirst(lc);
		TtlKept    *kept = NULL;
		TtlSurvey	survey = {.left = -1,.time_left = -1,.worst_lag = -1};

		if (DsaPointerIsValid(db->told.kept))
		{
			/* packed, it begins with what it is unpacked to */
			kept = dsa_get_address(area, db->told.kept);
			survey = kept->survey;
		}
		if (survey.indexes == 0 && !db->hangs)
			continue;
		known[count++] = (TtlKnownDatabase)
		{
			.oid = db->oid,.hangs = db->hangs,.survey = survey
		};
		if (kept != NULL)
			index_count += ttl_kept_read(kept, db->oid, indexes + index_count);
	}
	ttl_overview_write(known, count, indexes, index_count);
	pfree(known);
	pfree(indexes);
}
