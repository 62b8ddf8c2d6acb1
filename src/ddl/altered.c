/*-------------------------------------------------------------------------
 *
 * altered.c
 *	  Telling what an altered table has done to its TTL indexes.
 *
 * Core drops an index together with a column that its key or its filter names, and does not
 * report it.  If that was a TTL index, expiry would end silently, so this file reports it.
 *
 * A column that is added to a table but not to its archive causes the state archive_mismatch.
 * That is reported, but it is no error, because migrations change one table after the other.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/ddl/altered.c
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

#include "ddl/ddl.h"
#include "definition/definition.h"
#include "state/state.h"
#include "ttl_index.h"

/*
 * Reports a dropped index, unless another has its name now: ALTER COLUMN TYPE rebuilds
 * indexes.
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
					(errmsg("TTL index \"%s\" of table \"%s\" is dropped with a column that it named",
							NameStr(form->relname), get_rel_name(relid)),
					 errdetail("Rows do not expire by it any more."),
					 errhint("Create it without that column, if they are to.")));
	}
	systable_endscan(scan);
	table_close(classes, AccessShareLock);
}

/*
 * Tells which TTL indexes a command has dropped that only altered their table.  Not those that
 * another transaction dropped, for which the command had to wait.
 */
static void
find_dropped(Oid relid, Snapshot before)
{
	TtlFunctions functions;
	Relation	indexes;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	if (before == NULL || get_rel_name(relid) == NULL || !ttl_function_lookup(&functions))
		return;
	indexes = table_open(IndexRelationId, AccessShareLock);
	ScanKeyInit(&key, Anum_pg_index_indrelid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(relid));
	scan = systable_beginscan(indexes, IndexIndrelidIndexId, true, before, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		if (ttl_event_has_deleted(tuple) &&
			ttl_option_is_within(ttl_option_stored_tree(tuple, Anum_pg_index_indpred), &functions))
			report_dropped(((Form_pg_index) GETSTRUCT(tuple))->indexrelid, relid, before);
	}
	systable_endscan(scan);
	table_close(indexes, AccessShareLock);
}

/* Warns of the indexes of a table whose rows cannot move to their archive now. */
static void
find_mismatch(Oid relid)
{
	ListCell   *lc;

	foreach(lc, ttl_catalog_table_indexes(relid))
	{
		Oid			governor;
		TtlIndex	index;

		if (!OidIsValid(ttl_archive_of(lfirst_oid(lc), &governor)) ||
			!ttl_state_describe(lfirst_oid(lc), true, &index))
			continue;
		if (index.state == TTL_ACTIVE)
			(void) ttl_archive_rights(&index);
		if (index.state == TTL_ARCHIVE_MISMATCH)
			ereport(WARNING,
					(errmsg("rows of table \"%s\" will not be moved when they are due",
							get_rel_name(relid)),
					 errdetail("TTL index \"%s\" deletes nothing: %s.",
							   get_rel_name(index.indexrelid), index.reason),
					 errhint("%s", index.hint)));
	}
}

/* Reports what a command did since this snapshot, unless the session wants no notices. */
void
ttl_altered_report(const CollectedCommand *command, Snapshot before)
{
	if (client_min_messages > NOTICE)
		return;
	if (command->type == SCT_AlterTable)
	{
		find_dropped(command->d.alterTable.objectId, before);
		find_mismatch(command->d.alterTable.objectId);
	}
	else if (command->type == SCT_Simple && IsA(command->parsetree, RenameStmt) &&
			 ((RenameStmt *) command->parsetree)->renameType == OBJECT_COLUMN)
		find_mismatch(command->d.simple.address.objectId);
}
