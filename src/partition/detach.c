/*-------------------------------------------------------------------------
 *
 * detach.c
 *	  A partition that is due and stays: as a table of its own, or in the archive.
 *
 * The partition is detached, and then attached to the archive if that is partitioned by the
 * same key, or else moved to the archive's schema, in one transaction.  Its indexes lose the
 * option.
 *
 * ATTACH reads the whole table unless a constraint proves its rows within the bounds.  It had
 * the same bounds, so a constraint is added as valid, as DETACH CONCURRENTLY does, and dropped
 * after the command.  Whatever else would take long is an error before the strong locks are
 * taken: an index to be built, foreign keys to be checked, a large DEFAULT partition to be
 * read.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/partition/detach.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/attmap.h"
#include "access/genam.h"
#include "access/relation.h"
#include "access/sysattr.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/heap.h"
#include "catalog/index.h"
#include "catalog/partition.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
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
#include "definition/definition.h"
#include "partition/partition.h"
#include "state/state.h"
#include "ttl_index.h"

/* A larger DEFAULT partition of the archive is an error, because ATTACH reads it. */
#define MAX_DEFAULT_BLOCKS 1024

#define ROW_BY_ROW_HINT "Let the rows move one by one: set delete_boundary_rows => true."

/* The partition that a command at hand detaches or attaches, or invalid. */
static Oid	moving = InvalidOid;

/* Does a command of this file detach or attach a partition right now? */
bool
ttl_detach_is_running(Oid relid)
{
	return OidIsValid(moving) && moving == relid;
}

/* Is the archive on another server, so that no table can move there? */
bool
ttl_detach_by_row_only(const TtlOption *option)
{
	return OidIsValid(option->archive_to) &&
		get_rel_relkind(option->archive_to) == RELKIND_FOREIGN_TABLE;
}

/* Raises an error that says why a partition stays where it is. */
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

/* Raises an error if a table at or below a partition cannot go where the partition goes. */
static void
check_tree(const TtlIndex *root, Oid relid, bool attach)
{
	Oid			target = root->option.archive_to;
	ListCell   *lc;

	foreach(lc, ttl_inherit_tree(relid))
	{
		Oid			table = lfirst_oid(lc);
		char	   *subscription;

		if (get_rel_relkind(table) == RELKIND_FOREIGN_TABLE)
			refuse(root, relid, psprintf("\"%s\" is a foreign table", get_rel_name(table)),
				   "Detach it by hand.");
		if (attach && get_rel_persistence(table) == RELPERSISTENCE_UNLOGGED &&
			get_rel_persistence(root->relid) == RELPERSISTENCE_PERMANENT)
			refuse(root, relid, psprintf("\"%s\" is unlogged", get_rel_name(table)),
				   "Make it a logged one with ALTER TABLE ... SET LOGGED.");

		/* a subscription finds its table by schema and name, and would stop */
		if (OidIsValid(target) && !attach &&
			get_rel_namespace(table) != get_rel_namespace(target) &&
			(subscription = ttl_drop_find_subscription(table)) != NULL)
			refuse(root, relid,
				   psprintf("%s writes to \"%s\" in its schema", subscription, get_rel_name(table)),
				   "Let the publisher set publish_via_partition_root, or archive to a table that is partitioned in the same way.");
	}
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
				   psprintf("to add column \"%s\", all of it would be rewritten", NameStr(column->attname)),
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

/* Is there an index of the partition that ATTACH can take for this one of the archive? */
static bool
has_match(Relation index, Relation partition, AttrMap *map)
{
	IndexInfo  *wanted = BuildIndexInfo(index);
	bool		constraint = OidIsValid(get_index_constraint(RelationGetRelid(index)));
	bool		found = false;
	Bitmapset  *columns = NULL;
	int			column = -1;
	ListCell   *lc;

	/* CompareIndexInfo() raises an internal error for a missing column */
	pull_varattnos((Node *) wanted->ii_Expressions, 1, &columns);
	pull_varattnos((Node *) wanted->ii_Predicate, 1, &columns);
	while ((column = bms_next_member(columns, column)) >= 0)
	{
		AttrNumber	attnum = column + FirstLowInvalidHeapAttributeNumber;

		if (attnum > 0 && map->attnums[attnum - 1] == 0)
			return false;
	}
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

/* Raises an error if core would build an index, check foreign keys, or read a large DEFAULT. */
static void
check_attaching(const TtlIndex *root, Relation target, Relation partition)
{
	Oid			relid = RelationGetRelid(partition);
	Oid			rest = get_default_partition_oid(RelationGetRelid(target));
	TupleDesc	desc = RelationGetDescr(target);
	AttrMap    *map = make_attrmap(desc->natts);
	ListCell   *lc;

	if (RelationGetFKeyList(target) != NIL)
		refuse(root, relid, "that table has foreign keys, which would be checked meanwhile",
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
		*ttl_make_select(psprintf("SELECT coalesce(sum(pg_relation_size(relid)) > %d, false) FROM pg_partition_tree(%u)",
								  MAX_DEFAULT_BLOCKS * BLCKSZ, rest)) == 't')
		refuse(root, relid, psprintf("partition \"%s\" there is too large to be read meanwhile",
									 get_rel_name(rest)),
			   "Keep the DEFAULT partition of an archive small, or have none.");
}

/*
 * Raises an error if the partition cannot be kept as it is wanted, as far as that can be found
 * out without a strong lock.  What is left is for core to refuse.
 */
void
ttl_detach_check(const TtlIndex *root, Oid relid)
{
	bool		attach = ttl_archive_is_attachable(root);
	Relation	partition;

	ttl_owner_check_tree(root->relid, root->owner);
	if (ttl_detach_by_row_only(&root->option))
		refuse(root, relid, "that is a foreign table",
			   ROW_BY_ROW_HINT);
	check_tree(root, relid, attach);
	partition = relation_open(relid, AccessShareLock);
	for (int i = 0; partition->trigdesc != NULL && i < partition->trigdesc->numtriggers; i++)
	{
		Trigger    *trigger = &partition->trigdesc->triggers[i];

		/* core would check all rows that reference the partition through its table */
		if (trigger->tgisclone && RI_FKey_trigger_type(trigger->tgfoid) == RI_TRIGGER_PK)
			refuse(root, relid,
				   psprintf("foreign key \"%s\" of table \"%s\" would have to be checked meanwhile",
							get_constraint_name(trigger->tgconstraint),
							get_rel_name(trigger->tgconstrrelid)),
				   psprintf("%s;", ttl_drop_detach_command(root->relid, relid)));
	}
	if (attach)
	{
		Relation	target = table_open(root->option.archive_to, AccessShareLock);

		ttl_owner_check_tree(RelationGetRelid(target), root->owner);
		(void) missing_columns(root, target, relid);
		check_attaching(root, target, partition);
		table_close(target, NoLock);
	}
	relation_close(partition, NoLock);
}

/*
 * Locks the archive for a partition that moves there, before the table of the partition is
 * locked.  Returns false if the locks are not free soon.
 */
bool
ttl_detach_lock(const TtlIndex *root)
{
	Oid			target = root->option.archive_to;
	Oid			rest;

	if (!OidIsValid(target))
		return true;
	if (!ttl_lock_soon(target, ShareUpdateExclusiveLock))
		return false;
	ttl_name_keep(target);
	rest = ttl_archive_is_attachable(root) ? get_default_partition_oid(target) : InvalidOid;
	return !OidIsValid(rest) || ttl_lock_soon(rest, AccessExclusiveLock);
}

/* Raises an error if a command acted on another table, because names have changed meanwhile. */
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
	ttl_citus_run_command(psprintf("ALTER TABLE %s DETACH PARTITION %s",
								   ttl_name_qualified(root->relid),
								   ttl_name_qualified(relid)));
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

/* Adds a CHECK constraint that says what the bounds of a partition say, as valid. */
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

/* Attaches a table to the archive that was a partition with these bounds. */
static void
attach(const TtlIndex *root, Oid relid, const TtlPartition *bounds)
{
	Oid			target = root->option.archive_to;
	Relation	rel = table_open(target, NoLock);
	char	   *columns = missing_columns(root, rel, relid);

	table_close(rel, NoLock);
	if (*columns != '\0')
		ttl_citus_run_command(psprintf("ALTER TABLE %s%s", ttl_name_qualified(relid), columns));
	ttl_citus_run_command(psprintf("ALTER TABLE %s ATTACH PARTITION %s %s",
								   ttl_name_qualified(target), ttl_name_qualified(relid),
								   ttl_make_bounds(root, bounds)));
	check_effect(ttl_inherit_parent(relid, NULL) == target, relid);
}

/* Moves a table that was a partition, with all below it, to the schema of the archive. */
static void
move_to_archive(const TtlIndex *root, Oid relid)
{
	Oid			schema = get_rel_namespace(root->option.archive_to);
	char	   *name = get_namespace_name(schema);
	ListCell   *lc;

	/* an event trigger may have dropped the archive */
	check_effect(name != NULL, relid);
	foreach(lc, ttl_inherit_tree(relid))
	{
		Oid			table = lfirst_oid(lc);

		if (get_rel_namespace(table) == schema)
			continue;
		ttl_citus_run_command(psprintf("ALTER TABLE %s SET SCHEMA %s", ttl_name_qualified(table),
									   quote_identifier(name)));
		check_effect(get_rel_namespace(table) == schema, table);
	}
}

/* Detaches a partition, or moves it to the archive, with all locks in hand. */
void
ttl_detach_partition(const TtlIndex *root, Oid relid)
{
	/* who meets this after an error detaches the same partition */
	moving = relid;
	if (ttl_archive_is_attachable(root))
	{
		ObjectAddress constraint = keep_bounds(relid);
		TtlPartition bounds;

		ttl_bounds_read_one(relid, &bounds);
		detach(root, relid);
		attach(root, relid, &bounds);
		performDeletion(&constraint, DROP_RESTRICT, PERFORM_DELETION_INTERNAL);
	}
	else
	{
		detach(root, relid);
		if (OidIsValid(root->option.archive_to))
			move_to_archive(root, relid);
	}
	moving = InvalidOid;
}
