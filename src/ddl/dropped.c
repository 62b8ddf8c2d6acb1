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
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "ddl/ddl.h"
#include "definition/option.h"
#include "ttl_index.h"

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

/*
 * Tells which TTL indexes a command has dropped that only altered their table.  Not those that another
 * transaction dropped, for which the command had to wait.
 */
void
ttl_dropped_report(const CollectedCommand *command, Snapshot before)
{
	Oid			relid = command->d.alterTable.objectId;
	TtlFunctions functions;
	Relation	indexes;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	if (client_min_messages > NOTICE || before == NULL || command->type != SCT_AlterTable ||
		get_rel_name(relid) == NULL || !ttl_function_lookup(&functions))
		return;
	indexes = table_open(IndexRelationId, AccessShareLock);
	ScanKeyInit(&key, Anum_pg_index_indrelid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(relid));
	scan = systable_beginscan(indexes, IndexIndrelidIndexId, true, before, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		if (ttl_event_has_deleted(tuple) &&
			ttl_option_is_within(ttl_option_stored_tree(tuple, Anum_pg_index_indpred), &functions))
			report(((Form_pg_index) GETSTRUCT(tuple))->indexrelid, relid, before);
	}
	systable_endscan(scan);
	table_close(indexes, AccessShareLock);
}
