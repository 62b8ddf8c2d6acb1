/*-------------------------------------------------------------------------
 *
 * inherit.c
 *	  What is below a relation, for those who hold no lock on it.
 *
 * The views, the launcher and the choice of what to visit look at all TTL indexes and
 * must not wait for anybody.  Core's find_all_inheritors() raises an error without a lock
 * where a relation of the tree is dropped meanwhile; here it has nothing below it.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/inherit.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "ttl_index.h"

/*
 * The relations that inherit from one, or are its partitions; on demand also partitions
 * that somebody has begun to detach.
 *
 * Between the look into the cache and the one that core makes, nothing takes a lock, and
 * so nothing is told to the cache.
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

	/*
	 * the list grows while it is read; only a table that inherits has two
	 * ways up
	 */
	foreach(lc, tree)
	{
		List	   *children = ttl_inherit_children(lfirst_oid(lc), false);

		tree = get_rel_relkind(lfirst_oid(lc)) == RELKIND_RELATION ?
			list_concat_unique_oid(tree, children) : list_concat(tree, children);
	}
	return tree;
}
