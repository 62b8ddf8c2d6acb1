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

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/namespace.h"
#include "catalog/partition.h"
#include "catalog/pg_class.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_proc.h"
#include "miscadmin.h"
#include "tcop/deparse_utility.h"
#include "utils/acl.h"
#include "utils/aclchk_internal.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "compat.h"
#include "ddl/ddl.h"
#include "definition/archive.h"
#include "definition/definition.h"
#include "definition/key.h"
#include "definition/option.h"
#include "ttl_index.h"

/* Does any index of this database move rows? */
static bool
has_archives(void)
{
	TtlFunctions functions;

	return ttl_function_lookup(&functions) &&
		ttl_catalog_dependents_of(ProcedureRelationId, functions.archive_to, 1) != NIL;
}

/* Of more indexes nobody reads, and whoever looks at them all has the table locked. */
#define MAX_WARNINGS 10

/* What a command is told. */
typedef struct Report
{
	int			said;
	int			left;			/* and not looked at */
} Report;

/* Warns if rows of an index cannot move now.  It is said of the main one of a pair. */
static void
report_index(Oid indexrelid, void *arg)
{
	Report	   *report = arg;
	TtlIndex	index;

	if (report->said >= MAX_WARNINGS)
	{
		report->left++;
		return;
	}
	if (!ttl_catalog_describe(indexrelid, true, &index) ||
		OidIsValid(ttl_pair_main(indexrelid)))
		return;
	if (index.state == TTL_ACTIVE)
		index.state = ttl_archive_rights(&index);
	if (index.state != TTL_ARCHIVE_MISMATCH)
		return;
	report->said++;
	ereport(WARNING,
			(errmsg("rows of table \"%s\" will not be moved when they are due",
					get_rel_name(index.relid)),
			 errdetail("TTL index \"%s\" deletes nothing: %s.", get_rel_name(indexrelid),
					   ttl_state_reason(&index)),
			 errhint("%s", ttl_state_hint(&index))));
}

/* Warns of those of some indexes whose rows cannot move now. */
static void
report_indexes(List *indexes)
{
	Report		report = {0};

	ttl_catalog_each(indexes, report_index, &report);
	if (report.left > 0)
		ereport(WARNING,
				(errmsg_plural("rows of %d more TTL index may not be moved either",
							   "rows of %d more TTL indexes may not be moved either",
							   report.left, report.left),
				 errhint("The view ttl_index.indexes shows which these are, with the state archive_mismatch.")));
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

/* Who had which rights on an archive before the command. */
typedef struct Rights
{
	Oid			target;
	Oid			owner;
	Acl		   *acl;
} Rights;

/*
 * Reads the rights on a table as the command found them, by its snapshot.  False where the
 * table was not there.
 */
static bool
read_rights(Oid target, Snapshot before, Rights *rights)
{
	HeapTuple	tuple = ttl_event_class_before(target, before);
	Datum		acl;
	bool		is_default;

	if (!HeapTupleIsValid(tuple))
		return false;
	rights->target = target;
	rights->owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
	acl = SysCacheGetAttr(RELOID, tuple, Anum_pg_class_relacl, &is_default);
	rights->acl = is_default ? acldefault(OBJECT_TABLE, rights->owner) : DatumGetAclPCopy(acl);
	return true;
}

/*
 * Could the owner of an index move rows to a table before the command?  Anybody can name a
 * table of somebody else as an archive, to which nothing moves then; whoever changes that
 * table is neither told of it nor waits for it.
 */
static bool
could_move(Oid indexrelid, const Rights *rights)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(indexrelid));
	Oid			schema = get_rel_namespace(rights->target);
	bool		is_missing = false;
	Oid			owner;

	if (!HeapTupleIsValid(tuple))
		return false;
	owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
	ReleaseSysCache(tuple);
	if (!OidIsValid(schema) || !has_privs_of_role(rights->owner, owner))
		return false;
	/* a superuser, or a member of pg_write_all_data, has it of no list */
	if (aclmask(rights->acl, owner, rights->owner, ACL_INSERT, ACLMASK_ANY) == 0 &&
		pg_class_aclcheck_ext(rights->target, owner, ACL_INSERT, &is_missing) != ACLCHECK_OK)
		return false;
	return !is_missing && object_aclcheck(NamespaceRelationId, schema, owner, ACL_USAGE) == ACLCHECK_OK;
}

/* The indexes that moved rows to a table before the command; of partitioned ones the topmost. */
static List *
indexes_to(Oid target, Snapshot before)
{
	List	   *indexes = NIL;
	Rights		rights;
	ListCell   *lc;

	if (!read_rights(target, before, &rights))
		return NIL;
	foreach(lc, ttl_catalog_dependents_of(RelationRelationId, target, INT_MAX))
	{
		Oid			governor;

		CHECK_FOR_INTERRUPTS();
		if (!could_move(lfirst_oid(lc), &rights))
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
report_tables(List *relids, Snapshot before)
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
		indexes = list_concat(indexes, indexes_to(lfirst_oid(lc), before));
	sort_unique(indexes);
	report_indexes(indexes);
}

static void
report_table(Oid relid, Snapshot before)
{
	report_tables(list_make1_oid(relid), before);
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
		report_indexes(sources_of(partition));
}

/* Warns where a command, which began with this snapshot, keeps rows from being moved. */
void
ttl_mismatch_report(const CollectedCommand *command, Snapshot before)
{
	Node	   *tree = command->parsetree;
	Oid			relid = command->d.simple.address.objectId;

	if (client_min_messages > NOTICE)
		return;
	if (command->type == SCT_Grant && command->d.grant.istmt->objtype == OBJECT_TABLE)
	{
		if (!command->d.grant.istmt->is_grant)
			report_tables(command->d.grant.istmt->objects, before);
	}
	else if (command->type == SCT_AlterTable)
	{
		report_table(command->d.alterTable.objectId, before);
		report_attached(command);
	}
	else if (command->type != SCT_Simple)
		return;
	else if (IsA(tree, RenameStmt) && ((RenameStmt *) tree)->renameType == OBJECT_COLUMN)
		report_table(relid, before);
	else if (IsA(tree, RuleStmt))
		report_table(RangeVarGetRelid(((RuleStmt *) tree)->relation, NoLock, true), before);
	else if (IsA(tree, CreateStmt) && get_rel_relispartition(relid))
		report_table(relid, before);
}
