/*-------------------------------------------------------------------------
 *
 * mismatch.c
 *	  Warnings of DDL after which rows cannot move to their archive.
 *
 * A column that is added to a table, and not to its archive, ends expiry there: the next
 * pass deletes nothing, with the state archive_mismatch.  Whoever adds it is told at once,
 * and how to go on.  It is no error: migrations change one table after the other.
 *
 * A session that wants no notices is told nothing, as with other notices of DDL.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/ddl/mismatch.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <limits.h>

#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/partition.h"
#include "catalog/pg_class.h"
#include "catalog/pg_proc.h"
#include "miscadmin.h"
#include "tcop/deparse_utility.h"
#include "utils/acl.h"
#include "utils/aclchk_internal.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "ddl/ddl.h"
#include "definition/archive.h"
#include "definition/definition.h"
#include "definition/option.h"
#include "partition/partition.h"
#include "ttl_index.h"

/* Does any index of this database move rows? */
static bool
has_archives(void)
{
	TtlFunctions functions;

	return ttl_function_lookup(&functions) &&
		ttl_catalog_dependents_of(ProcedureRelationId, functions.archive_to, 1) != NIL;
}

/* Warns if rows of an index cannot move now.  It is said of the main one of a pair. */
static void
report_index(Oid indexrelid, void *arg)
{
	const RenameStmt *renamed = arg;
	TtlIndex	index;

	if (!ttl_catalog_describe(indexrelid, true, &index) ||
		OidIsValid(ttl_pair_main(indexrelid)))
		return;
	if (index.state == TTL_ACTIVE)
		index.state = ttl_archive_rights(&index);
	if (index.state != TTL_ARCHIVE_MISMATCH)
		return;
	if (renamed != NULL)
		ttl_archive_mend_renamed(&index, renamed->subname, renamed->newname);
	ereport(WARNING,
			(errmsg("rows of table \"%s\" will not be moved when they are due",
					get_rel_name(index.relid)),
			 errdetail("TTL index \"%s\" deletes nothing: %s.", get_rel_name(indexrelid),
					   ttl_state_reason(&index)),
			 errhint("%s", ttl_state_hint(&index))));
}

/* The indexes of a table whose rows move. */
static List *
sources_of(Oid relid)
{
	List	   *indexes = NIL;
	ListCell   *lc;

	foreach(lc, ttl_catalog_table_indexes(relid))
	{
		Oid			governor;

		if (OidIsValid(ttl_archive_of(lfirst_oid(lc), &governor)))
			indexes = lappend_oid(indexes, lfirst_oid(lc));
	}
	return indexes;
}

/*
 * May the owner of an index insert into a table?  Anybody can name a table of somebody else
 * as an archive, to which nothing moves then.
 */
static bool
may_insert(Oid indexrelid, Oid target)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(indexrelid));
	bool		is_missing = false;
	bool		result;

	if (!HeapTupleIsValid(tuple))
		return false;
	result = pg_class_aclcheck_ext(target, ((Form_pg_class) GETSTRUCT(tuple))->relowner,
								   ACL_INSERT, &is_missing) == ACLCHECK_OK;
	ReleaseSysCache(tuple);
	return result && !is_missing;
}

/*
 * The indexes that move rows to a table; of partitioned ones the topmost.  Those that move
 * nothing because of their owner concern others only if a command may have taken the right.
 */
static List *
indexes_to(Oid target, bool takes_rights)
{
	List	   *indexes = NIL;
	ListCell   *lc;

	foreach(lc, ttl_catalog_dependents_of(RelationRelationId, target, INT_MAX))
	{
		Oid			governor;

		CHECK_FOR_INTERRUPTS();
		if (!takes_rights && !may_insert(lfirst_oid(lc), target))
			continue;
		if (ttl_archive_of(lfirst_oid(lc), &governor) == target && governor == lfirst_oid(lc))
			indexes = lappend_oid(indexes, governor);
	}
	return indexes;
}

static void
sort_unique(List *oids)
{
	list_sort(oids, list_oid_cmp);
	list_deduplicate_oid(oids);
}

/*
 * Warns of all indexes that move rows from or to one of these tables, where they cannot
 * now.  A REVOKE can name all partitions of a table, which have the same archive.
 */
static void
report_tables(List *relids, bool takes_rights, const RenameStmt *renamed)
{
	List	   *targets = list_copy(relids);
	List	   *indexes = NIL;
	ListCell   *lc;

	if (!has_archives())
		return;
	foreach(lc, relids)
	{
		CHECK_FOR_INTERRUPTS();
		indexes = list_concat(indexes, sources_of(lfirst_oid(lc)));
		if (get_rel_relispartition(lfirst_oid(lc)))
			targets = list_concat(targets, get_partition_ancestors(lfirst_oid(lc)));
	}
	sort_unique(targets);
	foreach(lc, targets)
		indexes = list_concat(indexes, indexes_to(lfirst_oid(lc), takes_rights));
	sort_unique(indexes);
	ttl_catalog_each(indexes, report_index, unconstify(RenameStmt *, renamed));
}

static void
report_table(Oid relid, const RenameStmt *renamed)
{
	report_tables(list_make1_oid(relid), false, renamed);
}

/* The first subcommand of a type of an ALTER TABLE, or NULL. */
static const AlterTableCmd *
find_subcommand(const CollectedCommand *command, AlterTableType type)
{
	ListCell   *lc;

	foreach(lc, command->d.alterTable.subcmds)
	{
		AlterTableCmd *cmd = (AlterTableCmd *) ((CollectedATSubcmd *) lfirst(lc))->parsetree;

		if (IsA(cmd, AlterTableCmd) && cmd->subtype == type)
			return cmd;
	}
	return NULL;
}

/*
 * The same of a partition that was attached: a circle may have been closed.  ATTACH PARTITION
 * is the only subcommand of its command.
 */
static void
report_attached(const CollectedCommand *command)
{
	const AlterTableCmd *cmd = find_subcommand(command, AT_AttachPartition);
	Oid			partition;

	if (cmd == NULL)
		return;
	partition = RangeVarGetRelid(castNode(PartitionCmd, cmd->def)->name, NoLock, true);
	if (OidIsValid(partition) && has_archives())
		ttl_catalog_each(sources_of(partition), report_index, NULL);
}

/* Warns where a command keeps rows from being moved. */
void
ttl_mismatch_report(const CollectedCommand *command)
{
	Node	   *tree = command->parsetree;
	Oid			relid = command->d.simple.address.objectId;

	if (client_min_messages > NOTICE || ttl_detach_is_any_running())
		return;
	if (command->type == SCT_Grant && command->d.grant.istmt->objtype == OBJECT_TABLE)
		report_tables(command->d.grant.istmt->objects, true, NULL);
	else if (command->type == SCT_AlterTable)
	{
		report_tables(list_make1_oid(command->d.alterTable.objectId),
					  find_subcommand(command, AT_ChangeOwner) != NULL, NULL);
		report_attached(command);
	}
	else if (command->type != SCT_Simple)
		return;
	else if (IsA(tree, RenameStmt) && ((RenameStmt *) tree)->renameType == OBJECT_COLUMN)
		report_table(relid, (RenameStmt *) tree);
	else if (IsA(tree, RuleStmt))
		report_table(RangeVarGetRelid(((RuleStmt *) tree)->relation, NoLock, true), NULL);
	else if (IsA(tree, CreateStmt) && get_rel_relispartition(relid))
		report_table(relid, NULL);
}
