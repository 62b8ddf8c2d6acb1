/*-------------------------------------------------------------------------
 *
 * dropped.c
 *	  Telling of TTL indexes that ALTER TABLE has dropped.
 *
 * Core drops an index together with a column that its key or its filter names, and does not
 * report it.  If that was a TTL index, expiry would end silently.
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
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

#include "ddl/ddl.h"
#include "ttl_index.h"

/*
 * Reports a dropped index by its former row of pg_class, unless another index has its name
 * now: ALTER COLUMN TYPE rebuilds indexes.
 */
static void
report_dropped(Oid indexrelid, Oid relid, Snapshot before)
{
	Relation	classes = table_open(RelationRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_class_oid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(indexrelid));
	scan = systable_beginscan(classes, ClassOidIndexId, true, before, 1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
	{
		Form_pg_class form = (Form_pg_class) GETSTRUCT(tuple);

		if (!OidIsValid(get_relname_relid(NameStr(form->relname), form->relnamespace)))
			ereport(NOTICE,
					(errmsg("TTL index \"%s\" of table \"%s\" was dropped with a column",
							NameStr(form->relname), get_rel_name(relid)),
					 errdetail("Its key or its filter used the column. Rows no longer expire by it.")));
	}
	systable_endscan(scan);
	table_close(classes, AccessShareLock);
}

/*
 * Reports the TTL indexes that a command has dropped that only altered their table.  The
 * snapshot is from before the command.  Indexes that another transaction dropped in the
 * meantime are not reported.
 */
void
ttl_dropped_report(Oid relid, Snapshot before)
{
	TtlFunctions functions;
	Relation	indexes;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	if (get_rel_name(relid) == NULL || !ttl_function_lookup(&functions))
		return;
	indexes = table_open(IndexRelationId, AccessShareLock);
	ScanKeyInit(&key, Anum_pg_index_indrelid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(relid));
	scan = systable_beginscan(indexes, IndexIndrelidIndexId, true, before, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		if ((tuple->t_data->t_infomask & HEAP_XMAX_INVALID) == 0 &&
			TransactionIdIsCurrentTransactionId(HeapTupleHeaderGetUpdateXid(tuple->t_data)) &&
			ttl_option_is_within(ttl_option_stored_tree(tuple, Anum_pg_index_indpred), &functions))
			report_dropped(((Form_pg_index) GETSTRUCT(tuple))->indexrelid, relid, before);
	}
	systable_endscan(scan);
	table_close(indexes, AccessShareLock);
}
