/*-------------------------------------------------------------------------
 *
 * detach.c
 *	  A partition that is due and stays: as a table of its own, or in the archive.
 *
 * It is detached, in one transaction with all that follows, so that a crash leaves either
 * nothing or all of it done.  The TTL does not act on it any more: what its indexes have
 * of the option is removed.  Where rows are to be archived and the archive is partitioned
 * by the same key, the partition is attached there; else it moves to the archive's schema.
 *
 * To attach a table, core reads all of it, to find out whether its rows are within the
 * bounds, unless a constraint of the table says so.  They are, as the partition had the
 * same bounds until now.  So such a constraint is made as one that is valid, which is what
 * DETACH CONCURRENTLY of core does, and dropped again behind the command.  The locks last
 * for as long as the catalogs take, whatever the size of the partition.
 *
 * What else would take long is found out before: an index that core would have to build,
 * foreign keys to be checked, a DEFAULT partition to be read.  Then the partition stays
 * where it is, with an error that says why.
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
#include "nodes/makefuncs.h"
#include "optimizer/optimizer.h"
#include "rewrite/rewriteManip.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "compat.h"
#include "compute.h"
#include "definition/archive.h"
#include "definition/definition.h"
#include "definition/key.h"
#include "definition/option.h"
#include "partition/partition.h"
#include "ttl_index.h"

/*
 * A DEFAULT partition of the archive that is larger is not read while others wait: core
 * does that when it attaches another partition.
 */
#define MAX_DEFAULT_BLOCKS 1024

/* The partition that a command at hand detaches or attaches, or invalid. */
static Oid	moving = InvalidOid;

/* Is this what becomes of a partition right now? */
bool
ttl_detach_is_running(Oid relid)
{
	return OidIsValid(moving) && moving == relid;
}

/* Is this done with any partition right now? */
bool
ttl_detach_is_any_running(void)
{
	return OidIsValid(moving);
}

/* Is a partition that is due kept as a table? */
bool
ttl_detach_is_wanted(const TtlOption *option)
{
	return option->detach_partitions || OidIsValid(option->archive_to);
}

/* Is the archive on another server, so that no table can move there? */
bool
ttl_detach_by_row_only(const TtlOption *option)
{
	return OidIsValid(option->archive_to) &&
		get_rel_relkind(option->archive_to) == RELKIND_FOREIGN_TABLE;
}

/* Raises an error that says why a partition stays where it is. */
void
ttl_detach_refuse(const TtlIndex *root, Oid relid, const char *reason, const char *hint)
{
	if (OidIsValid(root->option.archive_to))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("partition \"%s\" cannot be moved to table %s: %s",
						get_rel_name(relid), ttl_archive_name(root->option.archive_to),
						reason),
				 hint ? errhint("%s", hint) : 0));
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("partition \"%s\" cannot be detached: %s", get_rel_name(relid), reason),
			 hint ? errhint("%s", hint) : 0));
}

/* Raises an error if a partition of the archive holds a part of this one's range. */
static void
check_bounds(const TtlIndex *root, Oid relid)
{
	TtlPartition own;
	ListCell   *lc;

	ttl_bounds_read_one(relid, &own);
	foreach(lc, ttl_bounds_read(root->option.archive_to))
	{
		const TtlPartition *other = lfirst(lc);

		/* another pass has just moved it */
		if (other->relid != relid && !other->is_default &&
			(!other->has_upper || !own.has_lower || other->upper > own.lower) &&
			(!other->has_lower || !own.has_upper || other->lower < own.upper))
			ttl_detach_refuse(root, relid,
							  psprintf("partition \"%s\" there is for a part of the same range",
									   get_rel_name(other->relid)),
							  TTL_ROW_BY_ROW_HINT);
	}
}

/* How many pages have a table and all below it? */
static BlockNumber
count_blocks(Oid relid)
{
	BlockNumber blocks = 0;
	ListCell   *lc;

	foreach(lc, ttl_inherit_tree(relid))
	{
		Relation	rel;

		if (get_rel_relkind(lfirst_oid(lc)) != RELKIND_RELATION)
			continue;
		rel = try_relation_open(lfirst_oid(lc), AccessShareLock);
		if (rel == NULL)
			continue;
		blocks += RelationGetNumberOfBlocks(rel);
		relation_close(rel, AccessShareLock);
	}
	return blocks;
}

/* Is this table a partition of that one? */
static bool
is_partition_of(Oid relid, Oid parent)
{
	return ttl_inherit_parent(relid, NULL) == parent;
}

/* Raises that others have locked a table, which is no error of the visit. */
void
ttl_detach_raise_busy(Oid relid)
{
	ereport(ERROR,
			(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
			 errmsg("could not obtain lock on relation with OID %u", relid)));
}

/* Raises an error if a table is another role's than the whole. */
static void
check_owner(const TtlIndex *root, Oid relid, Oid table)
{
	/* where somebody has just given all of it away, that has to be read again */
	if (ttl_owner_of(root->relid) != root->owner)
		ttl_detach_raise_busy(root->relid);
	if (ttl_owner_of(table) != root->owner)
		ttl_detach_refuse(root, relid, psprintf("\"%s\" belongs to another role than the whole table",
												get_rel_name(table)),
						  "Give both the same owner with ALTER TABLE ... OWNER TO.");
}

/*
 * Raises an error if not all of these belong to one role: the table and what it is a
 * partition of, the archive, and all of that one's DEFAULT partition.  What decides where
 * a row belongs, and whether there is one of this partition in DEFAULT, is computed in one
 * piece, with the partition keys and CHECK constraints of all of them.  What is below the
 * table is looked at by check_tables().
 */
static void
check_owners(const TtlIndex *root, Oid relid)
{
	Oid			rest = get_default_partition_oid(root->option.archive_to);
	List	   *tables = list_make1_oid(root->option.archive_to);
	ListCell   *lc;

	if (get_rel_relispartition(root->relid))
		tables = list_concat(tables, get_partition_ancestors(root->relid));
	if (OidIsValid(rest))
		tables = list_concat(tables, ttl_inherit_tree(rest));
	foreach(lc, tables)
	{
		/* so that the owner stays the same */
		if (!ConditionalLockRelationOid(lfirst_oid(lc), AccessShareLock))
			ttl_detach_raise_busy(lfirst_oid(lc));
		check_owner(root, relid, lfirst_oid(lc));
	}
}

/* Maps the columns of one table to those of another one, by name; 0 for none. */
static AttrMap *
map_columns(Relation from, Relation to)
{
	TupleDesc	desc = RelationGetDescr(from);
	AttrMap    *map = make_attrmap(desc->natts);

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute column = TupleDescAttr(desc, i);

		if (!column->attisdropped)
			map->attnums[i] = get_attnum(RelationGetRelid(to), NameStr(column->attname));
	}
	return map;
}

/*
 * Makes the query for one row of a table that is within the bounds of a partition.  Its
 * bounds are a tree, never text: the keys of the tables above it can call functions of
 * others, who could make a name mean something else.
 */
static Query *
row_within_query(Relation rel, Relation partition)
{
	AttrMap    *map = map_columns(partition, rel);
	bool		whole_row;
	Node	   *bounds = map_variable_attnos((Node *) ttl_compute_bounds(partition),
											 1, 0, map, RelationGetForm(rel)->reltype,
											 &whole_row);
	Query	   *query = ttl_query_make(CMD_SELECT, rel, (List *) bounds);

	ttl_query_limit(query, 0, 1);
	return query;
}

/* Has a table without partitions a row that is within the bounds of a partition? */
static bool
has_row_within(Oid relid, Relation partition)
{
	TtlUser		saved;
	Relation	rel;
	bool		found;

	LockRelationOid(relid, AccessShareLock);
	ttl_owner_become(ttl_owner_of(relid), &saved);
	/* an index can be locked when its table is not */
	ttl_lock_limit_waits();
	/* a snapshot that is later than the lock */
	PushActiveSnapshot(GetTransactionSnapshot());
	rel = relation_open(relid, NoLock);
	found = ttl_query_run(row_within_query(rel, partition), NULL, NULL,
						  "look at a DEFAULT partition", None_Receiver) > 0;
	relation_close(rel, NoLock);
	PopActiveSnapshot();
	ttl_owner_restore(&saved);
	return found;
}

/*
 * Raises an error if the DEFAULT partition of the archive holds rows of this partition, or
 * is too large to be read with the locks in hand.  Runs as the owner.
 */
static void
check_default(const TtlIndex *root, Oid relid)
{
	Oid			rest = get_default_partition_oid(root->option.archive_to);
	Relation	partition;
	ListCell   *lc;

	if (!OidIsValid(rest))
		return;
	/* they are opened for the bounds, and that must not wait for a lock */
	if (!ConditionalLockRelationOid(root->relid, AccessShareLock))
		ttl_detach_raise_busy(root->relid);
	if (!ConditionalLockRelationOid(relid, AccessShareLock) ||
		!is_partition_of(relid, root->relid))
		ttl_detach_raise_busy(relid);
	partition = relation_open(relid, NoLock);
	foreach(lc, ttl_inherit_tree(rest))
	{
		if (get_rel_relkind(lfirst_oid(lc)) != RELKIND_PARTITIONED_TABLE &&
			has_row_within(lfirst_oid(lc), partition))
			ttl_detach_refuse(root, relid,
							  psprintf("partition \"%s\" there holds rows of the same range",
									   get_rel_name(rest)),
							  "Move them out of the DEFAULT partition.");
	}
	relation_close(partition, NoLock);
	if (count_blocks(rest) > MAX_DEFAULT_BLOCKS)
		ttl_detach_refuse(root, relid,
						  psprintf("partition \"%s\" there is too large to be read meanwhile",
								   get_rel_name(rest)),
						  "Keep the DEFAULT partition of an archive small, or have none.");
}

/* Has a partition all columns that an expression over the archive names? */
static bool
has_columns(Node *expression, AttrMap *map)
{
	Bitmapset  *columns = NULL;
	int			column = -1;

	pull_varattnos(expression, 1, &columns);
	while ((column = bms_next_member(columns, column)) >= 0)
	{
		AttrNumber	attnum = column + FirstLowInvalidHeapAttributeNumber;

		if (attnum > 0 && map->attnums[attnum - 1] == 0)
			return false;
	}
	return true;
}

/* Is there an index of the partition that can be a part of this one of the archive? */
static bool
has_match(Relation index, Relation partition, AttrMap *map)
{
	IndexInfo  *wanted = ttl_compute_index_info(index);
	bool		constraint = OidIsValid(get_index_constraint(RelationGetRelid(index)));
	bool		found = false;
	ListCell   *lc;

	/* where it has not, core would raise an internal error */
	if (!has_columns((Node *) wanted->ii_Expressions, map) ||
		!has_columns((Node *) wanted->ii_Predicate, map))
		return false;
	foreach(lc, RelationGetIndexList(partition))
	{
		Relation	own = index_open(lfirst_oid(lc), AccessShareLock);

		found = own->rd_index->indisvalid &&
			(!constraint || OidIsValid(get_index_constraint(lfirst_oid(lc)))) &&
			CompareIndexInfo(ttl_compute_index_info(own), wanted, own->rd_indcollation,
							 index->rd_indcollation, own->rd_opfamily,
							 index->rd_opfamily, map);
		index_close(own, NoLock);
		if (found)
			break;
	}
	return found;
}

/*
 * Raises an error if core would have to build an index or check foreign keys to attach the
 * partition.  Both tables are locked.
 */
static void
check_attaching(const TtlIndex *root, Oid relid)
{
	Relation	target = table_open(root->option.archive_to, NoLock);
	Relation	partition = table_open(relid, NoLock);
	AttrMap    *map = map_columns(target, partition);
	ListCell   *lc;

	ttl_columns_check(root, relid, target);
	if (RelationGetFKeyList(target) != NIL)
		ttl_detach_refuse(root, relid, "that table has foreign keys, which would be checked meanwhile",
						  TTL_ROW_BY_ROW_HINT);
	foreach(lc, RelationGetIndexList(target))
	{
		Relation	index = index_open(lfirst_oid(lc), AccessShareLock);

		if (!has_match(index, partition, map))
			ttl_detach_refuse(root, relid,
							  psprintf("it has no index like \"%s\" there",
									   RelationGetRelationName(index)),
							  "Create one on the table that the rows are in.");
		index_close(index, NoLock);
	}
	table_close(partition, NoLock);
	table_close(target, NoLock);
}

/*
 * Raises an error if a partition, or one below it, is not the owner's own table, or would
 * be one of the archive that a crash empties: nothing more would be moved there then.
 */
static void
check_tables(const TtlIndex *root, Oid relid)
{
	bool		logged = ttl_archive_is_attachable(root) &&
	get_rel_persistence(root->relid) == RELPERSISTENCE_PERMANENT;
	ListCell   *lc;

	foreach(lc, ttl_inherit_tree(relid))
	{
		if (get_rel_relkind(lfirst_oid(lc)) == RELKIND_FOREIGN_TABLE)
			ttl_detach_refuse(root, relid, psprintf("\"%s\" is a foreign table",
													get_rel_name(lfirst_oid(lc))),
							  "Detach it by hand.");
		check_owner(root, relid, lfirst_oid(lc));
		if (logged && get_rel_persistence(lfirst_oid(lc)) == RELPERSISTENCE_UNLOGGED)
			ttl_detach_refuse(root, relid, psprintf("\"%s\" is unlogged",
													get_rel_name(lfirst_oid(lc))),
							  "Make it a logged one with ALTER TABLE ... SET LOGGED.");
	}
}

/*
 * Raises an error if a partition, or one below it, would go to another schema, where a
 * subscription that writes to it would not find it, and stop for good.
 */
static void
check_subscriptions(const TtlIndex *root, Oid relid)
{
	Oid			target = root->option.archive_to;
	ListCell   *lc;

	if (!OidIsValid(target) || ttl_archive_is_attachable(root))
		return;
	foreach(lc, ttl_inherit_tree(relid))
	{
		ObjectAddress subscription;

		if (get_rel_namespace(lfirst_oid(lc)) != get_rel_namespace(target) &&
			ttl_drop_find_subscription(lfirst_oid(lc), &subscription))
			ttl_detach_refuse(root, relid,
							  psprintf("%s writes to \"%s\" in its schema",
									   getObjectDescription(&subscription, true),
									   get_rel_name(lfirst_oid(lc))),
							  "Let the publisher set publish_via_partition_root, or archive to a table that is partitioned in the same way.");
	}
}

/*
 * Raises an error if the partition cannot be kept as it is wanted, as far as that can be
 * found out without a strong lock.
 */
void
ttl_detach_check(const TtlIndex *root, Oid relid)
{
	ObjectAddress reference;
	TtlUser		saved;

	check_tables(root, relid);
	if (ttl_drop_find_reference(relid, &reference))
		ttl_detach_refuse(root, relid, psprintf("%s would have to be checked meanwhile",
												getObjectDescription(&reference, true)),
						  psprintf("%s;", ttl_drop_detach_command(root->relid, relid)));
	if (ttl_detach_by_row_only(&root->option))
		ttl_detach_refuse(root, relid, "that is a foreign table",
						  TTL_ROW_BY_ROW_HINT);
	check_subscriptions(root, relid);
	if (!ttl_archive_is_attachable(root))
		return;
	check_owners(root, relid);
	check_bounds(root, relid);
	ttl_owner_become(root->owner, &saved);
	ttl_owner_write_exactly();
	check_default(root, relid);
	ttl_owner_restore(&saved);
}

/*
 * Locks the archive for a partition that moves there, before the table of the partition is
 * locked.  Returns false if the locks are not free soon.
 */
bool
ttl_detach_lock(const TtlIndex *root, Oid relid)
{
	Oid			target = root->option.archive_to;
	Oid			rest;
	TtlUser		saved;

	if (!OidIsValid(target))
		return true;
	if (!ttl_lock_soon(target, ShareUpdateExclusiveLock) || !ttl_name_lock(target, false))
		return false;
	if (!ttl_archive_is_attachable(root))
		return true;
	rest = get_default_partition_oid(target);
	if ((OidIsValid(rest) && !ttl_lock_soon(rest, AccessExclusiveLock)) ||
		!ConditionalLockRelationOid(relid, AccessShareLock))
		return false;
	/* again: there may be another DEFAULT partition by now */
	check_owners(root, relid);
	ttl_owner_become(root->owner, &saved);
	/* an index can be locked when its table is not */
	ttl_lock_limit_waits();
	check_attaching(root, relid);
	ttl_owner_restore(&saved);
	return true;
}

/* Lists the indexes that a partition, with all below it, has as a part of its table. */
static List *
inherited_indexes(Oid relid)
{
	List	   *indexes = NIL;
	ListCell   *lc;

	foreach(lc, ttl_catalog_table_indexes(relid))
	{
		if (get_rel_relispartition(lfirst_oid(lc)))
			indexes = list_concat(indexes, ttl_inherit_tree(lfirst_oid(lc)));
	}
	return indexes;
}

/* Makes the indexes plain ones.  A malformed option expires nothing, and is left. */
static void
remove_options(List *indexes)
{
	ListCell   *lc;

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

/* Adds a constraint that says what the bounds of a partition say, as valid; returns it. */
static ObjectAddress *
keep_bounds_of(Oid relid)
{
	Relation	rel = table_open(relid, NoLock);
	Constraint *constraint = makeNode(Constraint);
	List	   *made;
	ObjectAddress *address = palloc(sizeof(ObjectAddress));

	constraint->contype = CONSTR_CHECK;
	constraint->location = -1;
	constraint->cooked_expr = nodeToString(make_ands_explicit(ttl_compute_bounds(rel)));
	constraint->initially_valid = true;
	constraint->skip_validation = true;
	TTL_ENFORCE(constraint);
	made = AddRelationNewConstraints(rel, NIL, list_make1(constraint), false, true,
									 true, NULL);
	table_close(rel, NoLock);
	ObjectAddressSet(*address, ConstraintRelationId,
					 ((CookedConstraint *) linitial(made))->conoid);
	CommandCounterIncrement();
	return address;
}

/*
 * Does so for a partition and all below it: code of the owner can write to each of them by
 * itself.  Core checks what is written there, and takes the constraint of the first one for a
 * proof of what is in all.
 */
static List *
keep_bounds(List *tree)
{
	List	   *constraints = NIL;
	ListCell   *lc;

	foreach(lc, tree)
		constraints = lappend(constraints, keep_bounds_of(lfirst_oid(lc)));
	return constraints;
}

/* Drops these constraints again. */
static void
drop_kept_bounds(List *constraints, List *tree)
{
	Oid			relid = linitial_oid(tree);
	bool		kept = equal(tree, ttl_inherit_tree(relid));
	ListCell   *lc;

	foreach(lc, constraints)
		kept = kept && SearchSysCacheExists1(CONSTROID,
											 ObjectIdGetDatum(((ObjectAddress *) lfirst(lc))->objectId));

	/*
	 * a default of the archive was computed meanwhile, by functions that may
	 * do anything
	 */
	if (!kept)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("a constraint that was made to move partition \"%s\" has been dropped meanwhile, or what is below the partition has changed",
						get_rel_name(relid)),
				 errhint("Let no default of the archive call a function that alters the partition.")));
	foreach(lc, constraints)
		performDeletion(lfirst(lc), DROP_RESTRICT, PERFORM_DELETION_INTERNAL);
}

/* Raises an error unless a command had its effect: names may have changed meanwhile. */
static void
check_effect(bool had_effect, Oid relid)
{
	if (!had_effect)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("partition \"%s\" was not moved", get_rel_name(relid))));
}

static void
detach(const TtlIndex *root, Oid relid)
{
	List	   *indexes = inherited_indexes(relid);

	ttl_citus_run_command(psprintf("ALTER TABLE %s DETACH PARTITION %s",
								   ttl_name_qualified(root->relid),
								   ttl_name_qualified(relid)));
	check_effect(!is_partition_of(relid, root->relid), relid);
	remove_options(indexes);
}

static void
detach_and_attach(const TtlIndex *root, Oid relid)
{
	Oid			target = root->option.archive_to;
	Datum		bound;
	char	   *bounds;
	bool		isnull;
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	List	   *tree = ttl_inherit_tree(relid);
	List	   *constraints;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for relation %u", relid);
	bound = SysCacheGetAttr(RELOID, tuple, Anum_pg_class_relpartbound, &isnull);
	bounds = TextDatumGetCString(DirectFunctionCall2(pg_get_expr, bound,
													 ObjectIdGetDatum(relid)));
	ReleaseSysCache(tuple);
	constraints = keep_bounds(tree);
	detach(root, relid);
	ttl_columns_add(root, relid);
	ttl_citus_run_command(psprintf("ALTER TABLE %s ATTACH PARTITION %s %s",
								   ttl_name_qualified(target), ttl_name_qualified(relid),
								   bounds));
	check_effect(is_partition_of(relid, target), relid);
	drop_kept_bounds(constraints, tree);
}

static bool
is_type(const char *name, Oid schema)
{
	return SearchSysCacheExists2(TYPENAMENSP, PointerGetDatum(name),
								 ObjectIdGetDatum(schema));
}

/*
 * Is there a relation of this name in a schema, or, for a table, a type like that of its
 * rows or of arrays of them?
 */
static bool
is_taken(const char *name, Oid schema, bool for_table)
{
	return OidIsValid(get_relname_relid(name, schema)) ||
		(for_table && (is_type(name, schema) ||
					   is_type(makeArrayTypeName(name, InvalidOid), schema)));
}

/* Gives a table, an index or a sequence a name that is free in a schema, if it needs one. */
static void
take_free_name(Oid relid, Oid schema)
{
	char		relkind = get_rel_relkind(relid);
	char	   *name = get_rel_name(relid);
	char	   *free_name = name;
	bool		is_table = relkind == RELKIND_RELATION || relkind == RELKIND_PARTITIONED_TABLE;

	/* a sequence that no default uses is not locked with its table */
	if (name == NULL)
		return;
	for (int i = 2; is_taken(free_name, schema, is_table) ||
		 (i > 2 && is_taken(free_name, get_rel_namespace(relid), is_table)); i++)
		free_name = ttl_name_with_suffix(name, psprintf("_%d", i));
	if (free_name != name)
		ttl_citus_run_command(psprintf("ALTER %s %s RENAME TO %s",
									   relkind == RELKIND_SEQUENCE ? "SEQUENCE" :
									   relkind == RELKIND_INDEX ||
									   relkind == RELKIND_PARTITIONED_INDEX ? "INDEX" : "TABLE",
									   ttl_name_qualified(relid),
									   quote_identifier(free_name)));
}

/*
 * The name of the archive's schema, for SQL text.  Event triggers run with each command, and
 * may drop or move the archive.
 */
static const char *
schema_name(const TtlIndex *root, Oid schema)
{
	const char *name = get_namespace_name(schema);

	if (name == NULL || get_rel_namespace(root->option.archive_to) != schema)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the table to which partitions of \"%s\" move has been dropped or moved meanwhile",
						get_rel_name(root->relid)),
				 errhint("Let no event trigger do that in ALTER TABLE.")));
	return quote_identifier(name);
}

/*
 * Moves a table that is no partition any more, with all below it, to the schema of the
 * archive.
 */
static void
move_to_archive(const TtlIndex *root, Oid relid)
{
	Oid			schema = get_rel_namespace(root->option.archive_to);
	ListCell   *lc;

	foreach(lc, ttl_inherit_tree(relid))
	{
		Oid			table = lfirst_oid(lc);
		List	   *along;
		ListCell   *lc2;

		if (get_rel_namespace(table) == schema)
			continue;
		/* one further below can be in another schema than those above it */
		ttl_name_keep_now(table);
		along = list_concat(ttl_catalog_table_indexes(table), getOwnedSequences(table));
		take_free_name(table, schema);
		foreach(lc2, along)
			take_free_name(lfirst_oid(lc2), schema);
		ttl_citus_run_command(psprintf("ALTER TABLE %s SET SCHEMA %s",
									   ttl_name_qualified(table),
									   schema_name(root, schema)));
		check_effect(get_rel_namespace(table) == schema, table);
	}
}

/*
 * Detaches a partition, or moves it to the archive, with all locks in hand, as the owner of
 * both tables.
 */
void
ttl_detach_partition(const TtlIndex *root, Oid relid)
{
	/* again, with the locks */
	check_tables(root, relid);
	moving = relid;
	PG_TRY();
	{
		ttl_owner_write_exactly();
		if (ttl_archive_is_attachable(root))
			detach_and_attach(root, relid);
		else
		{
			detach(root, relid);
			if (OidIsValid(root->option.archive_to))
				move_to_archive(root, relid);
		}
	}
	PG_FINALLY();
	{
		moving = InvalidOid;
	}
	PG_END_TRY();
}
