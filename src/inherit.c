/*-------------------------------------------------------------------------
 *
 * inherit.c
 *	  What is below and above a relation, for those who hold no lock on it.
 *
 * Views, the launcher and the survey look at all TTL indexes and must not wait for locks.
 * Without a lock, core's find_all_inheritors() raises an error if a relation is dropped
 * concurrently; here such a relation has no children.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/inherit.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/partition.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "ttl_index.h"

/*
 * The children of a relation, if asked for also those being detached.  No lock is taken
 * between the look into the cache and core's, so no invalidation is processed.
 */
List *
ttl_inherit_children(Oid relid, bool detaching)
{
	if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relid)))
		return NIL;
	return find_inheritance_children_extended(relid, !detaching, NoLock, NULL, NULL);
}

/* A relation and all below it, those above first. */
List *
ttl_inherit_tree(Oid relid)
{
	List	   *tree = list_make1_oid(relid);
	ListCell   *lc;

	/* the list grows while it is read; only inheritance has two ways up */
	foreach(lc, tree)
	{
		List	   *children = ttl_inherit_children(lfirst_oid(lc), false);

		tree = get_rel_relkind(lfirst_oid(lc)) == RELKIND_RELATION ?
			list_concat_unique_oid(tree, children) : list_concat(tree, children);
	}
	return tree;
}

/*
 * A table and its partitions without other inheritors: what a foreign key or INSERT can reach.
 * With a lock mode, the partitions are locked; the table is already.
 */
List *
ttl_inherit_partitions(Oid relid, LOCKMODE lockmode)
{
	if (get_rel_relkind(relid) != RELKIND_PARTITIONED_TABLE)
		return list_make1_oid(relid);
	return lockmode == NoLock ? ttl_inherit_tree(relid) : find_all_inheritors(relid, lockmode, NULL);
}

/* The foreign tables among a table and all below it. */
List *
ttl_inherit_foreign_tables(Oid relid)
{
	List	   *foreign = NIL;
	ListCell   *lc;

	foreach(lc, ttl_inherit_tree(relid))
	{
		if (get_rel_relkind(lfirst_oid(lc)) == RELKIND_FOREIGN_TABLE)
			foreign = lappend_oid(foreign, lfirst_oid(lc));
	}
	return foreign;
}

/* The direct parents; unless NULL, *detaching tells whether a partition is being detached. */
List *
ttl_inherit_parents(Oid relid, bool *detaching)
{
	Relation	inherits = table_open(InheritsRelationId, AccessShareLock);
	List	   *parents = NIL;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	if (detaching)
		*detaching = false;
	ScanKeyInit(&key, Anum_pg_inherits_inhrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(relid));
	scan = systable_beginscan(inherits, InheritsRelidSeqnoIndexId, true, NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_inherits form = (Form_pg_inherits) GETSTRUCT(tuple);

		parents = lappend_oid(parents, form->inhparent);
		if (detaching)
			*detaching = form->inhdetachpending;
	}
	systable_endscan(scan);
	table_close(inherits, AccessShareLock);
	return parents;
}

/*
 * The first parent, or invalid.  Core's get_partition_parent() raises an error if the relation
 * is dropped or detached concurrently.
 */
Oid
ttl_inherit_parent(Oid relid, bool *detaching)
{
	List	   *parents = ttl_inherit_parents(relid, detaching);

	return parents == NIL ? InvalidOid : linitial_oid(parents);
}

/*
 * The topmost relation that this one is a part of, or itself.  A partition that is being
 * detached is a part of nothing any more, although pg_class says so still.
 */
Oid
ttl_inherit_top(Oid relid)
{
	List	   *ancestors = get_rel_relispartition(relid) ? get_partition_ancestors(relid) : NIL;

	return ancestors == NIL ? relid : llast_oid(ancestors);
}
