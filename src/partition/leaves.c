/*-------------------------------------------------------------------------
 *
 * leaves.c
 *	  Which partitions are due as a whole, and which rows are deleted one by one.
 *
 * The table is partitioned by RANGE of the key of a TTL index alone.  An immediate partition is
 * due as a whole once a row at its upper bound would be due.  If it has no upper bound (DEFAULT,
 * MAXVALUE), or can hold the number 0, which never expires, its rows are deleted one by one.
 *
 * Copyright (c) 2026, ttl_index contributors
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

/* Can a partition be due as a whole? */
static bool
can_be_due(const TtlPartition *partition, TtlUnit unit)
{
	return partition->has_upper &&
		(unit == TTL_UNIT_NONE || (partition->has_lower && partition->lower > 0));
}

/*
 * Is the upper bound of a partition due?  Near a change of the time zone's offset, all keys of
 * the partition must be due.
 */
bool
ttl_leaves_partition_is_due(const TtlPartition *partition, const TtlCutoff *cutoff)
{
	int64		sure = cutoff->sure;

	if (cutoff->keytype == DATEOID)
		sure *= USECS_PER_DAY;
	return can_be_due(partition, cutoff->unit) && partition->upper <= sure;
}

/* The same of a table, by an index that has the option which governs it. */
bool
ttl_leaves_table_is_due(const TtlIndex *index, Oid relid, TimestampTz at)
{
	TtlPartition partition;
	TtlCutoff	cutoff;

	ttl_bounds_read_one(relid, &partition);
	ttl_cutoff_init(&cutoff, index, at);
	return ttl_leaves_partition_is_due(&partition, &cutoff);
}

/* Are the rows of a partition deleted one by one?  Not if all partitions are to be kept. */
static bool
is_by_row(const TtlPartition *partition, const TtlOption *option)
{
	return !option->detach_partitions &&
		(!option->drop_partitions || option->boundary_rows ||
		 !can_be_due(partition, option->unit));
}

/* Reads the bounds of the immediate partition that contains a leaf index; false if there is none. */
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
			!is_by_row(&partition, &index.option))
			leaves = foreach_delete_current(leaves, lc);
	}
	return leaves;
}

/* Are the rows of this locked leaf deleted one by one?  The option can have changed since it was listed. */
bool
ttl_leaves_is_by_row(const TtlIndex *leaf)
{
	TtlPartition partition;

	return !leaf->option.drop_partitions ||
		(read_partition(leaf->indexrelid, IndexGetRelation(leaf->governor, true), &partition) &&
		 is_by_row(&partition, &leaf->option));
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
		if (whole && !is_by_row(&partition, &root.option))
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
