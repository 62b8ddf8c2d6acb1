/*-------------------------------------------------------------------------
 *
 * drop.c
 *	  Dropping a partition that is due.
 *
 * DROP TABLE is used, so that event triggers fire and dependent objects prevent it.  It needs
 * ACCESS EXCLUSIVE on the partitioned table and on its DEFAULT partition.  (DETACH
 * CONCURRENTLY would need less, but is impossible with a DEFAULT partition and inside a
 * function.)  All locks are taken before the command, so they are held for milliseconds; what
 * was read before is read again.  A partition that is kept is detached with the same locks
 * (detach.c).
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/partition/drop.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/table.h"
#include "access/tableam.h"
#include "catalog/dependency.h"
#include "catalog/partition.h"
#include "catalog/pg_class.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "compat.h"
#include "partition/partition.h"
#include "state/state.h"
#include "ttl_index.h"

/* Lists the partitions that are due at this clock reading, oldest first. */
List *
ttl_drop_due(const TtlIndex *root, TimestampTz at)
{
	List	   *due = NIL;
	TtlCutoff	cutoff;
	ListCell   *lc;

	if (!root->option.drop_partitions || !ttl_option_expires(&root->option))
		return NIL;
	ttl_cutoff_init(&cutoff, root, at);
	foreach(lc, ttl_bounds_read(root->relid))
	{
		if (ttl_leaves_partition_is_due(lfirst(lc), &cutoff))
			due = lappend(due, lfirst(lc));
	}
	return due;
}

/*
 * The subscription that writes to a table by itself, or NULL.  If the table were gone, the
 * subscription would stop for good at what the publisher has yet to send.
 */
char *
ttl_drop_find_subscription(Oid relid)
{
	return ttl_make_select(psprintf("SELECT pg_describe_object('pg_subscription'::regclass, srsubid, 0) "
									"FROM pg_subscription_rel WHERE srrelid = %u LIMIT 1", relid));
}

/* A partition and all below it, with their sequences, as a list of OIDs for SQL. */
static char *
list_tree(Oid relid)
{
	StringInfoData list;
	ListCell   *lc;
	ListCell   *lc2;

	initStringInfo(&list);
	foreach(lc, ttl_inherit_tree(relid))
	{
		appendStringInfo(&list, "%s%u", list.len > 0 ? ", " : "", lfirst_oid(lc));
		foreach(lc2, getOwnedSequences(lfirst_oid(lc)))
			appendStringInfo(&list, ", %u", lfirst_oid(lc2));
	}
	return list.data;
}

/*
 * What prevents DROP TABLE for a partition, its subtree, row types and sequences, or which
 * subscription or publication would lose it; NULL for nothing.  DROP TABLE itself checks only
 * after it has locked out all users of the partitioned table.
 */
static char *
find_dependent(Oid relid)
{
	char	   *list = list_tree(relid);
	ListCell   *lc;

	foreach(lc, ttl_inherit_tree(relid))
	{
		char	   *subscription = ttl_drop_find_subscription(lfirst_oid(lc));

		if (subscription != NULL)
			return subscription;
	}
	return ttl_make_select(psprintf("SELECT pg_describe_object(d.classid, d.objid, d.objsubid) FROM pg_depend AS d "
									"WHERE ((d.refclassid = 'pg_class'::regclass AND d.refobjid IN (%s)) OR "
									"(d.refclassid = 'pg_type'::regclass AND d.refobjid IN "
									"(SELECT unnest(ARRAY[oid, typarray]) FROM pg_type WHERE typrelid IN (%s)))) "
									"AND (d.classid = 'pg_publication_rel'::regclass OR (d.deptype = 'n' "
									"AND NOT (d.classid = 'pg_class'::regclass AND d.objid IN (%s)) "
									"AND NOT EXISTS (SELECT FROM pg_depend AS a WHERE a.classid = d.classid AND a.objid = d.objid "
									"AND a.refclassid = 'pg_class'::regclass AND a.refobjid IN (%s) AND a.deptype <> 'n'))) LIMIT 1",
									list, list, list, list));
}

/*
 * The partition at or below this one whose DETACH CONCURRENTLY waits or was interrupted, or
 * invalid.  DROP TABLE would still drop it.
 */
static Oid
find_pending_detach(Oid relid)
{
	char	   *pending = ttl_make_select(psprintf("SELECT inhrelid FROM pg_inherits WHERE inhdetachpending AND "
												   "(inhrelid = %u OR inhparent IN (%s)) LIMIT 1",
												   relid, list_tree(relid)));

	return pending ? atooid(pending) : InvalidOid;
}

/* The command that takes a partition out of its table, and nothing from what depends on it. */
char *
ttl_drop_detach_command(Oid parent, Oid relid)
{
	return psprintf("ALTER TABLE %s DETACH PARTITION %s", ttl_name_qualified(parent), ttl_name_qualified(relid));
}

/*
 * Raises an error if something prevents dropping a partition.  CASCADE would drop a foreign
 * key to the whole table, so the hint is DETACH.  Takes no strong lock.
 */
static void
check_obstacles(const TtlIndex *root, Oid relid)
{
	List	   *foreign = ttl_inherit_foreign_tables(relid);
	Oid			pending = find_pending_detach(relid);
	char	   *obstacle;

	if (OidIsValid(pending))
		obstacle = psprintf("the pending DETACH of partition \"%s\"", get_rel_name(pending));
	/* nobody has compared the rows of a foreign table with its bounds */
	else if (foreign != NIL)
		obstacle = psprintf("foreign table \"%s\"", get_rel_name(linitial_oid(foreign)));
	else
		obstacle = find_dependent(relid);
	if (obstacle != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST),
				 errmsg("partition \"%s\" cannot be dropped because of %s",
						get_rel_name(relid), obstacle),
				 errhint("%s%s;", OidIsValid(pending) ?
						 ttl_drop_detach_command(ttl_inherit_parent(pending, NULL), pending) :
						 ttl_drop_detach_command(root->relid, relid),
						 OidIsValid(pending) ? " FINALIZE" : "")));
}

/* Locks a partition and all below it, with their TOAST tables, unless others hold a lock there. */
static bool
lock_tree(Oid relid, LOCKMODE lockmode)
{
	ListCell   *lc;

	foreach(lc, ttl_inherit_tree(relid))
	{
		Relation	rel;
		Oid			toast;

		if (!ttl_lock_below(lfirst_oid(lc), lockmode))
			return false;
		rel = try_relation_open(lfirst_oid(lc), NoLock);
		if (rel == NULL)
			continue;
		toast = rel->rd_rel->reltoastrelid;
		relation_close(rel, NoLock);
		if (OidIsValid(toast) && !ttl_lock_below(toast, lockmode))
			return false;
	}
	return true;
}

/*
 * Locks all that DROP TABLE will lock.  Only the lock on the partitioned table is waited
 * for, and briefly: with that lock, no query through the table is running.
 */
static bool
lock_for_drop(Oid parent, Oid relid, TtlBatch *batch)
{
	Oid			rest;

	if (!ttl_lock_soon(parent, AccessExclusiveLock))
		return false;
	rest = get_default_partition_oid(parent);
	if (OidIsValid(rest) && !ttl_lock_below(rest, AccessExclusiveLock))
		return false;
	batch->busy_alone = !lock_tree(relid, AccessExclusiveLock);
	return !batch->busy_alone;
}

/* Does a partition have a part of the index, in a state that allows dropping? */
static bool
is_droppable(Oid root, Oid relid, TtlIndex *part)
{
	Oid			indexrelid = ttl_leaves_index_of(root, relid);

	memset(part, 0, sizeof(*part));
	return OidIsValid(indexrelid) &&
		ttl_state_describe(indexrelid, false, part) &&
	/* states of rows that are deleted one by one */
		(part->state == TTL_ACTIVE || part->state == TTL_NO_REPLICA_IDENTITY ||
		 part->state == TTL_OLD_SNAPSHOTS);
}

/* Is the partition still due, and as described?  Called with the locks held. */
static bool
is_still_due(const TtlIndex *root, Oid relid, TimestampTz at)
{
	TtlIndex	now;
	TtlPartition partition;
	TtlCutoff	cutoff;

	if (!is_droppable(root->indexrelid, relid, &now) || OidIsValid(find_pending_detach(relid)) ||
		!ttl_state_describe(root->indexrelid, false, &now) ||
		now.state != TTL_ACTIVE || now.governor != root->indexrelid ||
		!now.option.drop_partitions || !ttl_option_expires(&now.option) ||
		now.option.detach_partitions != root->option.detach_partitions ||
		now.option.archive_to != root->option.archive_to ||
		now.option.boundary_rows != root->option.boundary_rows ||
		!ttl_citus_keeps_partitions(&now.citus))
		return false;
	ttl_cutoff_init(&cutoff, &now, at);
	ttl_bounds_read_one(relid, &partition);
	return ttl_leaves_partition_is_due(&partition, &cutoff);
}

/*
 * Counts the rows of a locked table and its subtree up to a limit.  A query would be subject
 * to row security.  The rows of a foreign table can change at any time, so it is never empty.
 */
static int64
count_rows(Oid relid, int64 max)
{
	int64		rows = 0;
	ListCell   *lc;

	foreach(lc, ttl_inherit_tree(relid))
	{
		Relation	rel = table_open(lfirst_oid(lc), NoLock);

		if (rel->rd_rel->relkind == RELKIND_FOREIGN_TABLE)
			rows++;
		if (rel->rd_rel->relkind == RELKIND_RELATION)
		{
			TupleTableSlot *slot = table_slot_create(rel, NULL);
			Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
			TableScanDesc scan = ttl_table_beginscan(rel, snapshot);

			while (rows < max && table_scan_getnextslot(scan, ForwardScanDirection, slot))
				rows++;
			table_endscan(scan);
			UnregisterSnapshot(snapshot);
			ExecDropSingleTupleTableSlot(slot);
		}
		table_close(rel, NoLock);
	}
	return rows;
}

/*
 * Estimates the rows of a locked partition without reading them.  Statistics are lost in a
 * crash, and reltuples is unknown before ANALYZE and, from 18 on, can be set to any number by
 * the owner.  So the estimate is limited to what fits.
 */
static int64
estimate_rows(Oid relid)
{
	return pg_strtoint64(ttl_make_select(psprintf("SELECT coalesce(sum(least(greatest(pg_stat_get_live_tuples(oid), "
												  "least(reltuples, most)), most)), 0)::bigint "
												  "FROM pg_class, LATERAL (SELECT pg_relation_size(oid) / %d * %d AS most) AS m "
												  "WHERE oid IN (%s) AND relkind = 'r'",
												  BLCKSZ, (int) MaxHeapTuplesPerPage, list_tree(relid))));
}

/* Drops, detaches or archives a partition that is due, in the caller's transaction. */
void
ttl_drop_partition(Oid indexrelid, Oid relid, TimestampTz at, TtlBatch *batch)
{
	TtlIndex	index;
	TtlIndex	part;
	const TtlIndex *root = &index;
	bool		keep;
	char	   *table;
	int64		rows = -1;
	TimestampTz locked_since;

	if (!is_droppable(indexrelid, relid, &part) || !ttl_state_describe(indexrelid, false, &index))
	{
		batch->busy = part.state == TTL_TABLE_LOCKED;
		return;
	}
	ttl_batch_set_immediate();

	/* a foreign key has triggers on another table, which DROP TABLE locks */
	ttl_lock_limit_waits();
	keep = root->option.detach_partitions || OidIsValid(root->option.archive_to);

	/* rows can be counted while nobody writes there; readers go on */
	if (ttl_count_dropped_documents || (keep && root->option.boundary_rows))
	{
		batch->busy = batch->busy_alone = !lock_tree(relid, ShareLock);
		if (batch->busy)
			return;
	}

	/* rows are archived one by one; the empty partition is dropped */
	if (keep && root->option.boundary_rows)
	{
		if (count_rows(relid, 1) == 0)
		{
			keep = false;
			rows = 0;
		}
		else if (ttl_detach_by_row_only(&root->option))
			return;
	}
	/* what keeps it is found out without a lock on the whole table */
	keep ? ttl_detach_check(root, relid) : check_obstacles(root, relid);
	if (ttl_count_dropped_documents)
		rows = count_rows(relid, PG_INT64_MAX);
	batch->busy = (keep && !ttl_detach_lock(root)) || !lock_for_drop(root->relid, relid, batch);
	if (batch->busy)
		return;
	locked_since = GetCurrentTimestamp();
	if (!is_still_due(root, relid, at))
		return;
	ttl_name_keep(root->relid);
	ttl_name_keep(relid);
	/* an obstacle may have come while the locks were waited for */
	keep ? ttl_detach_check(root, relid) : check_obstacles(root, relid);
	if (rows < 0)
		rows = estimate_rows(relid);

	table = ttl_name_qualified(relid);
	ttl_batch_announce_to_session(ttl_name_qualified(indexrelid));
	ttl_batch_announce_to_wal(ttl_name_qualified(indexrelid), table, !keep ? NULL :
							  ttl_name_qualified(OidIsValid(root->option.archive_to) ?
												 root->option.archive_to : relid));
	if (keep)
		ttl_detach_partition(root, relid);
	else
	{
		ttl_citus_run_command(psprintf("DROP TABLE %s", table));

		/* an event trigger may have renamed it, and another table was dropped */
		if (SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relid)))
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("DROP TABLE %s did not drop partition \"%s\"",
							table, get_rel_name(relid))));
	}
	batch->partitions = 1;
	batch->deleted = rows;
	if (keep)
	{
		batch->archived_partitions = 1;
		batch->archived = rows;
	}
	batch->live = Max(rows, 1); /* an empty one counts too */
	/* bench/buckets reads this: nobody else sees exact times */
	ereport(DEBUG1,
			(errmsg_internal("table %u was locked for %.3f ms, for a partition to go", root->relid,
							 (GetCurrentTimestamp() - locked_since) / 1000.0)));
}
