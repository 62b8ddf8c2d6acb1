/*-------------------------------------------------------------------------
 *
 * detach.c
 *	  Detaching a due partition, which becomes an independent table or moves to the archive.
 *
 * The partition is detached, and then attached to the archive if that is partitioned by the
 * same key, or else moved to the archive's schema, in one transaction.  Its indexes lose the
 * option.
 *
 * ATTACH reads the whole table unless a constraint proves its rows within the bounds.  The
 * table had the same bounds before, so a constraint is added as valid, as DETACH CONCURRENTLY
 * does, and dropped after the command.  Whatever else takes long under the strong locks is an
 * error: building an index, checking a foreign key, rewriting the table, reading a large
 * DEFAULT partition.  All other errors are left to core.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/attmap.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/heap.h"
#include "catalog/index.h"
#include "catalog/partition.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_trigger.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "optimizer/optimizer.h"
#include "rewrite/rewriteHandler.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/partcache.h"
#include "utils/rel.h"
#include "utils/ruleutils.h"

#include "compat.h"
#include "partition/partition.h"
#include "state/state.h"
#include "ttl_index.h"

/* A larger DEFAULT partition of the archive is an error, because ATTACH reads it. */
#define MAX_DEFAULT_BLOCKS 1024

#define ROW_BY_ROW_HINT "Let the rows move one by one: set delete_boundary_rows => true."

/* Is the archive on another server, so that no table can move there? */
bool
ttl_detach_by_row_only(const TtlOption *option)
{
	return OidIsValid(option->archive_to) &&
		get_rel_relkind(option->archive_to) == RELKIND_FOREIGN_TABLE;
}

/* Is the archive partitioned by the same key, so that partitions can be attached there? */
bool
ttl_detach_is_attachable(const TtlIndex *root)
{
	Oid			target = root->option.archive_to;
	char	   *column = get_attname(root->relid, root->keyattnum, true);
	AttrNumber	attnum;

	if (!OidIsValid(target) || get_rel_relispartition(target) || column == NULL)
		return false;
	attnum = get_attnum(target, column);
	return attnum > 0 &&
		ttl_bounds_possible(target, attnum, root->keytype);
}

/* Raises an error with the reason why a partition cannot be detached or moved. */
static void
refuse(const TtlIndex *root, Oid relid, const char *reason, const char *hint)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 OidIsValid(root->option.archive_to) ?
			 errmsg("partition \"%s\" cannot be moved to table %s: %s", get_rel_name(relid),
					ttl_archive_name(root->option.archive_to), reason) :
			 errmsg("partition \"%s\" cannot be detached: %s", get_rel_name(relid), reason),
			 errhint("%s", hint)));
}

/*
 * The ALTER TABLE subcommands that add the archive's missing columns, or an empty string.
 * Raises an error if core would rewrite the table for one.  A stable default is evaluated
 * once.
 */
static char *
missing_columns(const TtlIndex *root, Relation target, Oid relid)
{
	TupleDesc	desc = RelationGetDescr(target);
	StringInfoData sql;

	initStringInfo(&sql);
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute column = TupleDescAttr(desc, i);
		Node	   *value;

		if (column->attisdropped || get_attnum(relid, NameStr(column->attname)) > 0)
			continue;
		value = column->atthasdef ? build_column_default(target, column->attnum) : NULL;
		if (column->attgenerated != '\0' || column->attidentity != '\0' ||
			get_typtype(column->atttypid) == TYPTYPE_DOMAIN || contain_volatile_functions(value))
			refuse(root, relid,
				   psprintf("adding column \"%s\" would rewrite the partition", NameStr(column->attname)),
				   ROW_BY_ROW_HINT);
		appendStringInfo(&sql, "%s ADD COLUMN %s %s", sql.len > 0 ? "," : "",
						 quote_identifier(NameStr(column->attname)),
						 ttl_archive_column_type(column));
		if (value != NULL)
			appendStringInfo(&sql, " DEFAULT (%s)", deparse_expression(value, NIL, false, false));
		if (column->attnotnull)
			appendStringInfoString(&sql, " NOT NULL");
	}
	return sql.data;
}

/* Does the partition have an index that ATTACH can use for this one of the archive? */
static bool
has_match(Relation index, Relation partition, AttrMap *map)
{
	IndexInfo  *wanted = BuildIndexInfo(index);
	bool		constraint = OidIsValid(get_index_constraint(RelationGetRelid(index)));
	bool		found = false;
	ListCell   *lc;

	foreach(lc, RelationGetIndexList(partition))
	{
		Relation	own = index_open(lfirst_oid(lc), AccessShareLock);

		found = found ||
			(own->rd_index->indisvalid &&
			 (!constraint || OidIsValid(get_index_constraint(lfirst_oid(lc)))) &&
			 CompareIndexInfo(BuildIndexInfo(own), wanted, own->rd_indcollation,
							  index->rd_indcollation, own->rd_opfamily,
							  index->rd_opfamily, map));
		index_close(own, NoLock);
	}
	return found;
}

/* Raises an error if ATTACH would build an index, check foreign keys, or read a large DEFAULT. */
static void
check_attach(const TtlIndex *root, Relation target, Relation partition)
{
	Oid			relid = RelationGetRelid(partition);
	Oid			rest = get_default_partition_oid(RelationGetRelid(target));
	TupleDesc	desc = RelationGetDescr(target);
	AttrMap    *map = make_attrmap(desc->natts);
	ListCell   *lc;

	if (RelationGetFKeyList(target) != NIL)
		refuse(root, relid, "foreign keys of that table would be checked under a lock",
			   ROW_BY_ROW_HINT);
	for (int i = 0; i < desc->natts; i++)
	{
		if (!TupleDescAttr(desc, i)->attisdropped)
			map->attnums[i] = get_attnum(relid, NameStr(TupleDescAttr(desc, i)->attname));
	}
	foreach(lc, RelationGetIndexList(target))
	{
		Relation	index = index_open(lfirst_oid(lc), AccessShareLock);

		if (!has_match(index, partition, map))
			refuse(root, relid, psprintf("it has no index like \"%s\" there",
										 RelationGetRelationName(index)),
				   "Create one on the table that the rows are in.");
		index_close(index, NoLock);
	}
	if (OidIsValid(rest) &&
		*ttl_select_value(psprintf("SELECT coalesce(sum(pg_relation_size(relid)) > %d, false) FROM pg_partition_tree(%u)",
								  MAX_DEFAULT_BLOCKS * BLCKSZ, rest)) == 't')
		refuse(root, relid, psprintf("partition \"%s\" there is too large to be read under a lock",
									 get_rel_name(rest)),
			   "Keep the DEFAULT partition of an archive small, or have none.");
}

/*
 * Raises an error if the partition cannot be detached quickly, or not by its owner, or cannot
 * move to the archive.
 */
void
ttl_detach_check(const TtlIndex *root, Oid relid)
{
	/* the tree may have been given to another role since this process connected as its owner */
	ttl_owner_check_tree(root->relid, GetUserId());
	if (ttl_detach_is_attachable(root))
		ttl_owner_check_tree(root->option.archive_to, GetUserId());
	if (ttl_detach_by_row_only(&root->option))
		refuse(root, relid, "that is a foreign table", ROW_BY_ROW_HINT);
}

/*
 * Is a partition referenced by a foreign key to the whole table?  Then it has to be detached,
 * also to be dropped: DROP TABLE would need CASCADE, which drops the foreign key.  If `check`,
 * raises an error if rows reference it.  DETACH does the same, but under a lock on the whole
 * table.
 */
bool
ttl_detach_is_referenced(Oid relid, bool check)
{
	Relation	partition = relation_open(relid, AccessShareLock);
	bool		found = false;

	for (int i = 0; partition->trigdesc != NULL && i < partition->trigdesc->numtriggers; i++)
	{
		Trigger		trigger = partition->trigdesc->triggers[i];
		Relation	referencing;

		if (!trigger.tgisclone || !TRIGGER_FOR_DELETE(trigger.tgtype) ||
			RI_FKey_trigger_type(trigger.tgfoid) != RI_TRIGGER_PK)
			continue;
		found = true;
		if (!check)
			continue;
		referencing = relation_open(trigger.tgconstrrelid, AccessShareLock);
		trigger.tgname = get_constraint_name(trigger.tgconstraint);
		trigger.tgconstrrelid = relid;
		RI_PartitionRemove_Check(&trigger, referencing, partition);
		relation_close(referencing, NoLock);
	}
	relation_close(partition, NoLock);
	return found;
}

/* Raises an error if a command has changed another table, because a schema was renamed. */
static void
check_effect(bool had_effect, Oid relid)
{
	if (!had_effect)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("partition \"%s\" was not moved", get_rel_name(relid))));
}

/*
 * Detaches a partition, and removes the option from the indexes that were parts of those of its
 * table.  A malformed option expires nothing, and stays.
 */
static void
detach(const TtlIndex *root, Oid relid)
{
	List	   *indexes = NIL;
	ListCell   *lc;

	foreach(lc, ttl_catalog_table_indexes(relid))
	{
		if (get_rel_relispartition(lfirst_oid(lc)))
			indexes = list_concat(indexes, ttl_inherit_tree(lfirst_oid(lc)));
	}
	ttl_citus_run_command(ttl_drop_detach_command(root->relid, relid));
	check_effect(ttl_inherit_parent(relid, NULL) != root->relid, relid);
	foreach(lc, indexes)
	{
		TtlOption	option;

		if (!ttl_option_read(lfirst_oid(lc), &option) || option.problem != NULL ||
			(!option.present && !ttl_saved_option_is_dependent(lfirst_oid(lc))))
			continue;
		LockRelationOid(lfirst_oid(lc), ShareUpdateExclusiveLock);
		option.present = false;
		ttl_saved_option_put(lfirst_oid(lc), &option);
	}
}

/* Adds a CHECK constraint on the bounds of a partition, marked as valid without a check. */
static ObjectAddress
keep_bounds(Oid relid)
{
	Relation	rel = table_open(relid, NoLock);
	Constraint *constraint = makeNode(Constraint);
	List	   *made;
	ObjectAddress address;

	constraint->contype = CONSTR_CHECK;
	constraint->location = -1;
	constraint->cooked_expr = nodeToString(make_ands_explicit(RelationGetPartitionQual(rel)));
	constraint->initially_valid = true;
	constraint->skip_validation = true;
	TTL_ENFORCE(constraint);
	made = AddRelationNewConstraints(rel, NIL, list_make1(constraint), false, true,
									 true, NULL);
	table_close(rel, NoLock);
	ObjectAddressSet(address, ConstraintRelationId,
					 ((CookedConstraint *) linitial(made))->conoid);
	CommandCounterIncrement();
	return address;
}

/* Moves a partition to the archive that is partitioned by the same key. */
static void
move_by_attach(const TtlIndex *root, Oid relid)
{
	Oid			target = root->option.archive_to;
	ObjectAddress constraint = keep_bounds(relid);
	Relation	archive = table_open(target, ShareUpdateExclusiveLock);
	TtlPartition bounds;
	Relation	partition;
	char	   *columns;

	ttl_bounds_read_one(relid, &bounds);
	detach(root, relid);
	columns = missing_columns(root, archive, relid);
	if (*columns != '\0')
		ttl_citus_run_command(psprintf("ALTER TABLE %s%s", ttl_name_qualified(relid), columns));
	partition = table_open(relid, NoLock);
	check_attach(root, archive, partition);
	table_close(partition, NoLock);
	table_close(archive, NoLock);
	ttl_citus_run_command(psprintf("ALTER TABLE %s ATTACH PARTITION %s %s",
								   ttl_name_qualified(target), ttl_name_qualified(relid),
								   ttl_make_bounds(root, &bounds)));
	check_effect(ttl_inherit_parent(relid, NULL) == target, relid);
	performDeletion(&constraint, DROP_RESTRICT, PERFORM_DELETION_INTERNAL);
}

/* Detaches a partition, or moves it to the archive, with all locks held. */
void
ttl_detach_partition(const TtlIndex *root, Oid relid)
{
	Oid			target = root->option.archive_to;
	List	   *tree = OidIsValid(target) ? ttl_inherit_tree(relid) : NIL;
	Oid			schema;
	char	   *name;
	ListCell   *lc;

	if (ttl_detach_is_attachable(root))
	{
		move_by_attach(root, relid);
		return;
	}
	detach(root, relid);

	/* SET SCHEMA moves a table without those below it */
	schema = get_rel_namespace(target);
	name = get_namespace_name(schema);
	foreach(lc, tree)
	{
		Oid			table = lfirst_oid(lc);

		if (get_rel_namespace(table) == schema)
			continue;
		/* an event trigger may have dropped the archive */
		check_effect(name != NULL, table);
		ttl_citus_run_command(psprintf("ALTER TABLE %s SET SCHEMA %s", ttl_name_qualified(table),
									   quote_identifier(name)));
		check_effect(get_rel_namespace(table) == schema, table);
	}
}
