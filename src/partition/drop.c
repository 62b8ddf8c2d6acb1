/*-------------------------------------------------------------------------
 *
 * drop.c
 *	  Dropping a partition that is due.
 *
 * DROP TABLE ... RESTRICT is used, so that event triggers fire and dependent objects prevent
 * it.  It needs ACCESS EXCLUSIVE on the partitioned table and on its DEFAULT partition.
 * (DETACH CONCURRENTLY would need less, but is impossible with a DEFAULT partition and inside a
 * function.)  Locks that are likely to be waited for are taken before the command, and
 * lock_timeout limits the wait for all others.  All that was read before the locks is read
 * again.  A partition that is kept is detached under the same locks (detach.c).
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/table.h"
#include "access/tableam.h"
#include "catalog/partition.h"
#include "catalog/pg_class.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "compat.h"
#include "partition/partition.h"
#include "state/state.h"
#include "ttl_index.h"

/* The rows of a partition of at most so many pages are counted, those of others estimated. */
#define COUNTED_PAGES 100

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

/* Describes the TTL index of a partition that is due; false if the partition cannot be dropped now. */
static bool
describe_due(Oid indexrelid, Oid relid, TimestampTz at, TtlIndex *root, TtlBatch *batch)
{
	TtlIndex	part = {0};
	bool		found = false;
	ListCell   *lc;

	foreach(lc, ttl_catalog_table_indexes(relid))
	{
		if (ttl_inherit_parent(lfirst_oid(lc), NULL) == indexrelid)
			found = ttl_state_describe(lfirst_oid(lc), false, &part);
	}
	batch->busy = part.state == TTL_TABLE_LOCKED;

	/*
	 * The partition may have been given to another role since this process connected as its
	 * owner.  Two states concern only rows that are deleted one by one.
	 */
	if (!found || part.owner != GetUserId() ||
		(part.state != TTL_ACTIVE && part.state != TTL_NO_REPLICA_IDENTITY &&
		 part.state != TTL_OLD_SNAPSHOTS))
		return false;
	if (!ttl_state_describe(indexrelid, false, root) || root->state != TTL_ACTIVE ||
		root->governor != indexrelid || !root->option.drop_partitions ||
		!ttl_option_expires(&root->option) || !ttl_citus_keeps_partitions(&root->citus))
		return false;
	return ttl_leaves_table_is_due(root, relid, at);
}

/* The OIDs of a partition and all tables below it, for SQL. */
static char *
select_tree(Oid relid)
{
	return psprintf("SELECT relid FROM pg_partition_tree(%u)", relid);
}

/*
 * Raises an error if a partition must stay although core would drop or detach it:
 *
 * - It, or one below it, has a pending DETACH CONCURRENTLY.  DROP TABLE would still drop it.
 * - It is or contains a foreign table, whose rows were never compared with the bounds.
 * - A subscription writes to it by name, and would stop at what the publisher has yet to send.
 *
 * The hint is DETACH, because DROP ... CASCADE would drop foreign keys to the whole table.
 */
static void
check_obstacles(const TtlIndex *root, Oid relid, bool keep)
{
	Oid			target = root->option.archive_to;
	bool		renames = !keep || (OidIsValid(target) && !ttl_detach_is_attachable(root));
	char	   *tree = select_tree(relid);
	List	   *foreign = ttl_inherit_foreign_tables(relid);
	char	   *pending = ttl_select_value(psprintf("SELECT inhrelid FROM pg_inherits WHERE inhdetachpending AND "
												   "(inhrelid = %u OR inhparent IN (%s)) LIMIT 1",
												   relid, tree));
	Oid			detached = pending ? atooid(pending) : relid;
	char	   *obstacle = NULL;

	if (pending != NULL)
		obstacle = psprintf("the pending DETACH of partition \"%s\"", get_rel_name(detached));
	else if (foreign != NIL)
		obstacle = psprintf("foreign table \"%s\"", get_rel_name(linitial_oid(foreign)));
	else if (renames)
		obstacle = ttl_select_value(psprintf("SELECT pg_describe_object('pg_subscription'::regclass, srsubid, 0) "
											"FROM pg_subscription_rel WHERE srrelid IN (%s) LIMIT 1", tree));
	if (obstacle != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST),
				 errmsg("partition \"%s\" cannot be %s because of %s", get_rel_name(relid),
						!keep ? "dropped" : OidIsValid(target) ? "archived" : "detached", obstacle),
				 errhint("%s%s;", ttl_drop_detach_command(ttl_inherit_parent(detached, NULL), detached),
						 pending ? " FINALIZE" : "")));
	if (keep)
		ttl_detach_check(root, relid);
}

/* The command that takes a partition out of its table. */
char *
ttl_drop_detach_command(Oid parent, Oid relid)
{
	return psprintf("ALTER TABLE %s DETACH PARTITION %s", ttl_name_qualified(parent), ttl_name_qualified(relid));
}

/*
 * Counts the rows of a locked table and its subtree up to a limit.  A query would be subject
 * to row security.  A foreign table counts as one row, because its rows can change at any time.
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

/* For ttl_error_catch(). */
static void
run_command(void *command)
{
	ttl_citus_run_command(command);
}

/* Drops a partition; puts what depends on it into the message of the error. */
static void
drop_table(const TtlIndex *root, Oid relid)
{
	char	   *name = get_rel_name(relid);
	char	   *hint = psprintf("%s;", ttl_drop_detach_command(root->relid, relid));
	/* DROP TABLE would need CASCADE for a foreign key to the whole table */
	char	   *command = psprintf("%s DROP TABLE %s", ttl_detach_is_referenced(relid, false) ? hint : "",
								   ttl_name_qualified(relid));
	ErrorData  *edata = ttl_error_catch(run_command, command, true);

	if (edata != NULL && edata->sqlerrcode == ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST &&
		edata->detail != NULL)
		ereport(ERROR,
				(errcode(edata->sqlerrcode),
				 errmsg("partition \"%s\" cannot be dropped: %s", name, edata->detail),
				 errhint("%s", hint)));
	if (edata != NULL)
		ReThrowError(edata);

	/* a schema may have been renamed, and another table dropped */
	if (SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relid)))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("DROP TABLE did not drop partition \"%s\"", name)));
}

/* Drops, detaches or archives a partition that is due, in the caller's transaction. */
void
ttl_drop_partition(Oid indexrelid, Oid relid, TimestampTz at, TtlBatch *batch)
{
	TtlIndex	before;
	TtlIndex	root;
	bool		keep;
	bool		by_row;
	bool		referenced;
	Oid			rest;
	int64		rows = -1;
	char	   *estimate = NULL;
	TimestampTz locked_since;
	char	   *archive = NULL;

	if (!describe_due(indexrelid, relid, at, &before, batch))
		return;
	keep = before.option.detach_partitions || OidIsValid(before.option.archive_to);
	referenced = ttl_detach_is_referenced(relid, false);
	by_row = (keep || referenced) && before.option.boundary_rows;
	ttl_batch_set_immediate();

	/* the command locks more: TOAST, referenced tables, the archive */
	ttl_lock_limit_waits();

	/* rows are counted under a lock against writers; readers are not blocked */
	if (ttl_count_dropped_documents || by_row)
	{
		batch->busy = !ttl_lock_tree(relid, ShareLock);
		if (batch->busy)
			return;
	}

	/* rows are archived, or deleted with what references them; the empty partition is dropped */
	if (by_row && count_rows(relid, 1) == 0)
	{
		keep = false;
		rows = 0;
	}
	else if (by_row && (ttl_detach_by_row_only(&before.option) ||
						(referenced && !before.option.detach_partitions)))
	{
		batch->rows_first = true;
		return;
	}
	if (ttl_count_dropped_documents)
		rows = count_rows(relid, PG_INT64_MAX);

	/* check without a lock on the whole table first */
	check_obstacles(&before, relid, keep);
	(void) ttl_detach_is_referenced(relid, true);

	/* nobody waits for the table while this waits for the archive */
	batch->busy = true;
	if (keep && ttl_detach_is_attachable(&before) &&
		!ttl_lock_soon(before.option.archive_to, ShareUpdateExclusiveLock))
		return;

	/* under the lock on the partitioned table, no query through it is running */
	if (!ttl_lock_soon(before.relid, AccessExclusiveLock))
		return;
	rest = get_default_partition_oid(before.relid);
	if (OidIsValid(rest) && !ttl_lock_tree(rest, AccessExclusiveLock))
		return;
	if (!ttl_lock_tree(relid, AccessExclusiveLock))
		return;
	locked_since = GetCurrentTimestamp();

	/* anything may have changed before the locks were granted */
	if (!describe_due(indexrelid, relid, at, &root, batch) ||
		!ttl_option_same(&root.option, &before.option))
		return;
	check_obstacles(&root, relid, keep);

	/*
	 * Counting a few pages takes no longer than the command; of more, statistics tell.  These are
	 * lost in a crash, and reltuples is unknown before ANALYZE and, since 18, is what the owner
	 * has set it to.  So the estimate is limited to what fits.
	 */
	if (rows < 0)
		estimate = ttl_select_value(psprintf("SELECT sum(least(greatest(pg_stat_get_live_tuples(oid), "
											 "least(reltuples, most)), most))::bigint "
											 "FROM pg_class, LATERAL (SELECT pg_relation_size(oid) / %d * %d AS most) AS m "
											 "WHERE oid IN (%s) AND relkind = 'r' HAVING sum(most) > %d",
											 BLCKSZ, (int) MaxHeapTuplesPerPage, select_tree(relid),
											 COUNTED_PAGES * (int) MaxHeapTuplesPerPage));
	if (estimate != NULL)
		batch->estimated = pg_strtoint64(estimate);
	else if (rows < 0)
		rows = count_rows(relid, PG_INT64_MAX);

	if (keep)
		archive = ttl_name_qualified(OidIsValid(root.option.archive_to) ? root.option.archive_to : relid);
	ttl_batch_announce_to_session(ttl_name_qualified(indexrelid));
	ttl_batch_announce_to_wal(ttl_name_qualified(indexrelid), ttl_name_qualified(relid), archive);
	if (keep)
		ttl_detach_partition(&root, relid);
	else
		drop_table(&root, relid);

	batch->partitions = 1;
	batch->deleted = Max(rows, 0);
	if (keep)
	{
		batch->archived_partitions = 1;
		batch->archived = batch->deleted;
	}
	batch->live = Max(batch->deleted + batch->estimated, 1);	/* an empty one counts too */
	/* for bench/buckets */
	ereport(DEBUG1,
			(errmsg_internal("table %u was locked for %.3f ms, for a partition to go", root.relid,
							 (GetCurrentTimestamp() - locked_since) / 1000.0)));
}
