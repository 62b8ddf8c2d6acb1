/*-------------------------------------------------------------------------
 *
 * leaves.c
 *	  Which partitions are due as a whole, and whose rows go one by one.
 *
 * This is about tables that are partitioned by RANGE of the key of a TTL index alone, and
 * about their immediate partitions, whatever is below these.  A partition holds only keys
 * below its upper bound.  So all of it is due once a row at that bound would be due.
 *
 * A partition without an upper bound, DEFAULT or TO (MAXVALUE), is never due as a whole.
 * Its rows expire one by one.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/partition/leaves.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/index.h"
#include "catalog/partition.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "utils/date.h"
#include "utils/lsyscache.h"

#include "definition/definition.h"
#include "definition/key.h"
#include "definition/option.h"
#include "partition/partition.h"
#include "ttl_index.h"

/*
 * Has the upper bound of a partition come to the cutoff?  Near a change of the zone's
 * offset, keys are not in the order of their instants: there a partition waits until all
 * of them are due.
 */
bool
ttl_leaves_partition_is_due(const TtlPartition *partition, const TtlCutoff *cutoff)
{
	int64		sure = cutoff->sure;

	if (cutoff->keytype == DATEOID)
		sure *= USECS_PER_DAY;
	return partition->has_upper && partition->upper <= sure;
}

/* Do the rows of a partition expire one by one? */
static bool
go_by_row(const TtlPartition *partition, const TtlOption *option)
{
	/* who keeps partitions keeps their rows */
	if (option->detach_partitions)
		return false;
	return !option->drop_partitions || option->boundary_rows ||
		!partition->has_upper;
}

/* The index of a partition that is the child of this one, or invalid. */
Oid
ttl_leaves_index_of(Oid root, Oid relid)
{
	ListCell   *lc;

	foreach(lc, ttl_catalog_table_indexes(relid))
	{
		if (ttl_inherit_parent(lfirst_oid(lc), NULL) == root)
			return lfirst_oid(lc);
	}
	return InvalidOid;
}

/* Adds leaves to those that are due. */
static List *
add_leaves(List *due, List *leaves, TimestampTz since)
{
	ListCell   *lc;

	foreach(lc, leaves)
	{
		TtlDueLeaf *leaf = palloc(sizeof(TtlDueLeaf));

		leaf->indexrelid = lfirst_oid(lc);
		leaf->since = since;
		due = lappend(due, leaf);
	}
	return due;
}

/* Since when has a partition that goes as a whole been due? */
static TimestampTz
due_since(const TtlPartition *partition, const TtlIndex *root, const TtlCutoff *cutoff)
{
	int64		key = partition->upper;

	if (cutoff->keytype == DATEOID)
		key = key == DT_NOBEGIN ? DATEVAL_NOBEGIN : key / USECS_PER_DAY;
	return ttl_cutoff_instant(cutoff, key) + root->option.seconds * USECS_PER_SEC;
}

/*
 * Do the rows of a partition expire one by one, or, with a cutoff, is it due as a whole?  Then
 * *since says since when, and else that this is told by the rows.
 */
static bool
is_due(const TtlPartition *partition, const TtlIndex *root, const TtlCutoff *cutoff, TimestampTz *since)
{
	*since = DT_NOBEGIN;
	if (go_by_row(partition, &root->option))
		return true;
	if (cutoff == NULL || !ttl_leaves_partition_is_due(partition, cutoff))
		return false;
	*since = due_since(partition, root, cutoff);
	return true;
}

/* Finds the leaves of the partitions of which that is so. */
static List *
find_leaves(const TtlIndex *root, const TtlCutoff *cutoff)
{
	List	   *leaves = NIL;
	ListCell   *lc;

	foreach(lc, ttl_bounds_read(root->relid))
	{
		TtlPartition *partition = lfirst(lc);
		TimestampTz since;
		Oid			indexrelid;

		if (!is_due(partition, root, cutoff, &since))
			continue;
		indexrelid = ttl_leaves_index_of(root->indexrelid, partition->relid);
		if (OidIsValid(indexrelid))
			leaves = add_leaves(leaves, ttl_catalog_leaves(indexrelid), since);
	}
	return leaves;
}

/* The indexes of a TTL index whose rows are to be deleted one by one. */
List *
ttl_leaves_by_row(Oid root)
{
	TtlIndex	index;
	List	   *leaves = NIL;
	ListCell   *lc;

	if (!ttl_catalog_describe(root, true, &index) ||
		!index.option.drop_partitions || index.option.boundary_rows ||
		index.state != TTL_ACTIVE || index.relkind != RELKIND_PARTITIONED_INDEX)
		return ttl_catalog_leaves(root);
	foreach(lc, find_leaves(&index, NULL))
		leaves = lappend_oid(leaves, ((TtlDueLeaf *) lfirst(lc))->indexrelid);
	return leaves;
}

/* The partition of a table in which a leaf lies, or invalid. */
static Oid
partition_above(Oid relid, Oid table)
{
	ListCell   *lc;

	if (!get_rel_relispartition(relid))
		return InvalidOid;
	foreach(lc, get_partition_ancestors(relid))
	{
		if (lfirst_oid(lc) == table)
			return relid;
		relid = lfirst_oid(lc);
	}
	return InvalidOid;
}

/*
 * Do the rows of this index, which holds them, expire one by one?  Asked of one that is
 * locked: since it was listed, the option can have become that partitions go as a whole,
 * or are kept.
 */
bool
ttl_leaves_goes_by_row(const TtlIndex *leaf)
{
	Oid			table;
	Oid			relid;
	TtlPartition partition;

	if (!leaf->option.drop_partitions)
		return true;
	table = IndexGetRelation(leaf->governor, true);
	relid = OidIsValid(table) ? partition_above(leaf->relid, table) : InvalidOid;
	if (!OidIsValid(relid))
		return false;
	ttl_bounds_read_one(relid, &partition);
	return go_by_row(&partition, &leaf->option);
}

/*
 * Those of an index, or of a part of one, of which a pass would delete rows: a list of
 * TtlDueLeaf.  Of a part only its own partition is read: whoever asks for all parts, one by
 * one, would else read all of them for each.
 */
List *
ttl_leaves_due(const TtlIndex *index, TimestampTz at)
{
	List	   *leaves = ttl_catalog_leaves(index->indexrelid);
	List	   *due = NIL;
	TtlIndex	root;
	TtlCutoff	cutoff;
	ListCell   *lc;

	if (!index->option.drop_partitions || index->option.boundary_rows ||
		!ttl_catalog_describe(index->governor, true, &root) ||
		root.state != TTL_ACTIVE)
		return add_leaves(NIL, leaves, DT_NOBEGIN);
	ttl_cutoff_init(&cutoff, &root, at);
	if (root.indexrelid == index->indexrelid)
		return find_leaves(&root, &cutoff);
	foreach(lc, leaves)
	{
		Oid			relid = IndexGetRelation(lfirst_oid(lc), true);
		TtlPartition partition;
		TimestampTz since;

		relid = OidIsValid(relid) ? partition_above(relid, root.relid) : InvalidOid;
		if (!OidIsValid(relid))
			continue;
		ttl_bounds_read_one(relid, &partition);
		if (is_due(&partition, &root, &cutoff, &since))
			due = add_leaves(due, list_make1_oid(lfirst_oid(lc)), since);
	}
	return due;
}
