/*-------------------------------------------------------------------------
 *
 * inherit.c
 *	  Children and parents of a relation that is not locked.
 *
 * Views and the survey read all TTL indexes and must not wait for locks.  Without a lock,
 * core's find_all_inheritors() raises an error if a relation is dropped concurrently; here
 * such a relation has no children.
 *
 * Copyright (c) 2026, ttl_index contributors
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
 * The children of a relation, without those being detached.  No invalidation is processed
 * between the two reads of the cache, because no lock is taken.
 */
List *
ttl_inherit_children(Oid relid)
{
	if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relid)))
		return NIL;
	return find_inheritance_children_extended(relid, true, NoLock, NULL, NULL);
}

/* A relation and all relations below it, parents first. */
List *
ttl_inherit_tree(Oid relid)
{
	List	   *tree = list_make1_oid(relid);
	ListCell   *lc;

	/* the list grows while it is read; only a plain table can have two parents */
	foreach(lc, tree)
	{
		List	   *children = ttl_inherit_children(lfirst_oid(lc));

		tree = get_rel_relkind(lfirst_oid(lc)) == RELKIND_RELATION ?
			list_concat_unique_oid(tree, children) : list_concat(tree, children);
	}
	return tree;
}

/* The foreign tables in the tree of a table. */
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

/*
 * The first parent, or invalid.  Unless NULL, *detaching tells whether DETACH CONCURRENTLY is
 * under way.  Core's get_partition_parent() raises an error if the relation is dropped or
 * detached concurrently.
 */
Oid
ttl_inherit_parent(Oid relid, bool *detaching)
{
	Relation	inherits = table_open(InheritsRelationId, AccessShareLock);
	Oid			parent = InvalidOid;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	if (detaching)
		*detaching = false;
	ScanKeyInit(&key, Anum_pg_inherits_inhrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(relid));
	scan = systable_beginscan(inherits, InheritsRelidSeqnoIndexId, true, NULL, 1, &key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
	{
		Form_pg_inherits form = (Form_pg_inherits) GETSTRUCT(tuple);

		parent = form->inhparent;
		if (detaching)
			*detaching = form->inhdetachpending;
	}
	systable_endscan(scan);
	table_close(inherits, AccessShareLock);
	return parent;
}

/*
 * The topmost partitioned table or index above a relation, or the relation itself.  A partition
 * being detached has no ancestors, although pg_class still says that it is a partition.
 */
Oid
ttl_inherit_top(Oid relid)
{
	List	   *ancestors = get_rel_relispartition(relid) ? get_partition_ancestors(relid) : NIL;

	return ancestors == NIL ? relid : llast_oid(ancestors);
}
