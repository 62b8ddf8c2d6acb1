/*-------------------------------------------------------------------------
 *
 * leaves.c
 *	  Which partitions are due as a whole, and whose rows go one by one.
 *
 * This is about tables partitioned by RANGE of the key of a TTL index alone, and their
 * immediate partitions.  A partition is due as a whole once a row at its upper bound would be
 * due.  Without an upper bound (DEFAULT, MAXVALUE) its rows expire one by one.
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
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "utils/date.h"

#include "partition/partition.h"
#include "state/state.h"
#include "ttl_index.h"

/*
 * Is the upper bound of a partition due?  Near a change of the zone's offset a partition waits
 * until all of its keys are due.
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

/* Reads the partition of a table in which a leaf index lies; false where that is none. */
static bool
read_partition(Oid indexrelid, Oid table, TtlPartition *partition)
{
	Oid			relid = IndexGetRelation(indexrelid, true);
	bool		detaching;

	while (OidIsValid(relid))
	{
		Oid			parent = ttl_inherit_parent(relid, &detaching);

		if (detaching || !OidIsValid(parent))
			break;
		if (parent == table)
		{
			ttl_bounds_read_one(relid, partition);
			return true;
		}
		relid = parent;
	}
	return false;
}

/* The indexes of a TTL index whose rows are to be deleted one by one. */
List *
ttl_leaves_by_row(Oid root)
{
	List	   *leaves = ttl_catalog_leaves(root);
	TtlIndex	index;
	TtlPartition partition;
	ListCell   *lc;

	if (!ttl_state_describe(root, true, &index) ||
		!index.option.drop_partitions || index.option.boundary_rows ||
		index.state != TTL_ACTIVE || index.relkind != RELKIND_PARTITIONED_INDEX)
		return leaves;
	foreach(lc, leaves)
	{
		if (!read_partition(lfirst_oid(lc), index.relid, &partition) ||
			!go_by_row(&partition, &index.option))
			leaves = foreach_delete_current(leaves, lc);
	}
	return leaves;
}

/*
 * Do the rows of this locked leaf expire one by one?  The option can have changed since it was
 * listed.
 */
bool
ttl_leaves_goes_by_row(const TtlIndex *leaf)
{
	TtlPartition partition;

	return !leaf->option.drop_partitions ||
		(read_partition(leaf->indexrelid, IndexGetRelation(leaf->governor, true), &partition) &&
		 go_by_row(&partition, &leaf->option));
}

/* The leaves of which a pass would delete rows: a list of TtlDueLeaf. */
List *
ttl_leaves_due(const TtlIndex *index, TimestampTz at)
{
	List	   *due = NIL;
	TtlIndex	root;
	TtlCutoff	cutoff;
	bool		whole = index->option.drop_partitions && !index->option.boundary_rows &&
		ttl_state_describe(index->governor, true, &root) && root.state == TTL_ACTIVE;
	ListCell   *lc;

	if (whole)
		ttl_cutoff_init(&cutoff, &root, at);
	foreach(lc, ttl_catalog_leaves(index->indexrelid))
	{
		TtlDueLeaf *leaf = palloc(sizeof(TtlDueLeaf));
		TtlPartition partition;

		leaf->indexrelid = lfirst_oid(lc);
		leaf->since = DT_NOBEGIN;
		if (whole && !read_partition(lfirst_oid(lc), root.relid, &partition))
			continue;
		if (whole && !go_by_row(&partition, &root.option))
		{
			int64		key = partition.upper;

			if (!ttl_leaves_partition_is_due(&partition, &cutoff))
				continue;
			if (cutoff.keytype == DATEOID)
				key = key == DT_NOBEGIN ? DATEVAL_NOBEGIN : key / USECS_PER_DAY;
			leaf->since = ttl_cutoff_instant(&cutoff, key) + root.option.seconds * USECS_PER_SEC;
		}
		due = lappend(due, leaf);
	}
	return due;
}
