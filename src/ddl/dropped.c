/*-------------------------------------------------------------------------
 *
 * dropped.c
 *	  Telling that TTL indexes have gone with a column.
 *
 * Core drops an index with a column that its key or its filter names, and says nothing of it.
 * Of an ordinary index a query is slower; of a TTL index nothing expires any more, and no
 * view has a row that would say so.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/ddl/dropped.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/dependency.h"
#include "catalog/pg_class.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_index.h"
#include "catalog/pg_proc.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "ddl/ddl.h"
#include "definition/option.h"
#include "ttl_index.h"

/*
 * The indexes that a table had before the command, which this transaction has dropped since: for the
 * lock of a table it can have waited for another one that dropped some.
 */
static List *
dropped_indexes(Oid relid, Snapshot before)
{
	Relation	indexes = table_open(IndexRelationId, AccessShareLock);
	List	   *dropped = NIL;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_index_indrelid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(relid));
	scan = systable_beginscan(indexes, IndexIndrelidIndexId, true, before, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Oid			indexrelid = ((Form_pg_index) GETSTRUCT(tuple))->indexrelid;

		if (ttl_event_has_deleted(tuple) &&
			!SearchSysCacheExists1(INDEXRELID, ObjectIdGetDatum(indexrelid)))
			dropped = lappend_oid(dropped, indexrelid);
	}
	systable_endscan(scan);
	table_close(indexes, AccessShareLock);
	list_sort(dropped, list_oid_cmp);
	return dropped;
}

/* Did an index call a function before the command? */
static bool
called(Oid indexrelid, Oid function, Snapshot before)
{
	Relation	depends = table_open(DependRelationId, AccessShareLock);
	bool		found = false;
	ScanKeyData keys[2];
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&keys[0], Anum_pg_depend_classid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(RelationRelationId));
	ScanKeyInit(&keys[1], Anum_pg_depend_objid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(indexrelid));
	scan = systable_beginscan(depends, DependDependerIndexId, true, before, 2, keys);
	while (!found && HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_depend depend = (Form_pg_depend) GETSTRUCT(tuple);

		found = depend->refclassid == ProcedureRelationId && depend->refobjid == function;
	}
	systable_endscan(scan);
	table_close(depends, AccessShareLock);
	return found;
}

/*
 * Tells of an index by the name that it had, unless another one has that now: a column that changes
 * its type has its indexes made anew.
 */
static void
report(Oid indexrelid, Oid relid, Snapshot before)
{
	HeapTuple	tuple = ttl_event_class_before(indexrelid, before);
	Form_pg_class form;

	if (!HeapTupleIsValid(tuple))
		return;
	form = (Form_pg_class) GETSTRUCT(tuple);
	if (OidIsValid(get_relname_relid(NameStr(form->relname), form->relnamespace)))
		return;
	ereport(NOTICE,
			(errmsg("TTL index \"%s\" of table \"%s\" is dropped with a column that it named",
					NameStr(form->relname), get_rel_name(relid)),
			 errdetail("Rows do not expire by it any more."),
			 errhint("Create it without that column, if they are to.")));
}

/* Tells which TTL indexes a command has dropped that only altered their table. */
void
ttl_dropped_report(const CollectedCommand *command, Snapshot before)
{
	Oid			relid = command->d.alterTable.objectId;
	TtlFunctions functions;
	List	   *dropped;
	ListCell   *lc;

	if (client_min_messages > NOTICE || before == NULL || command->type != SCT_AlterTable)
		return;
	dropped = dropped_indexes(relid, before);
	if (dropped == NIL || get_rel_name(relid) == NULL || !ttl_function_lookup(&functions))
		return;
	foreach(lc, dropped)
	{
		if (called(lfirst_oid(lc), functions.expire_after_seconds, before))
			report(lfirst_oid(lc), relid, before);
	}
}
