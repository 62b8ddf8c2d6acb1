/*-------------------------------------------------------------------------
 *
 * history.c
 *	  What was done in each hour that is over, behind the view history.
 *
 * The counters (counters.c) have the hour at hand.  Once it is over, a fold moves its row
 * of each index here, in the transaction that adds it to the sum of the index.  So each row
 * that was deleted is in one of the two tables at any time, and the counters, which each
 * fold reads, stay small.
 *
 * Rows here are never changed.  Those older than ttl_index.history_retention are deleted,
 * once an hour.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "storage/lmgr.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "stats/stats.h"
#include "ttl_index.h"

/* The columns of ttl_index.past_hours, in order. */
static const TtlCountColumn columns[] = {
	{TTL_COUNT_HOUR, offsetof(TtlCount, hour)},
	{TTL_COUNT_OID, offsetof(TtlCount, indexrelid)},
	{TTL_COUNT_OID, offsetof(TtlCount, relid)},
	{TTL_COUNT_NAME, offsetof(TtlCount, schemaname)},
	{TTL_COUNT_NAME, offsetof(TtlCount, relname)},
	{TTL_COUNT_NAME, offsetof(TtlCount, indexrelname)},
	{TTL_COUNT_COUNT, offsetof(TtlCount, deleted_documents)},
	{TTL_COUNT_COUNT, offsetof(TtlCount, deleted_buckets)},
	{TTL_COUNT_COUNT, offsetof(TtlCount, archived_documents)},
	{TTL_COUNT_COUNT, offsetof(TtlCount, archived_buckets)},
	{TTL_COUNT_COUNT, offsetof(TtlCount, batches)},
	{TTL_COUNT_MILLISECONDS, offsetof(TtlCount, delete_time)},
	{TTL_COUNT_COUNT, offsetof(TtlCount, errors)},
	{TTL_COUNT_COUNT, offsetof(TtlCount, skipped_locked)},
	{TTL_COUNT_COUNT, offsetof(TtlCount, skipped_failed)},
};

#define NCOLUMNS lengthof(columns)
#define ATTNUM_HOUR 1

/* The hour of a moment, in UTC. */
TimestampTz
ttl_history_hour(TimestampTz at)
{
	return at - at % USECS_PER_HOUR;
}

/*
 * Tries to lock the table: DROP EXTENSION locks it before the counters, which the caller
 * has.
 */
bool
ttl_history_lock(LOCKMODE lockmode)
{
	return ConditionalLockRelationOid(ttl_count_relid("past_hours"), lockmode);
}

/* Raises an error if the table does not fit this library. */
void
ttl_history_check(void)
{
	if (ttl_history_lock(AccessShareLock))
		table_close(ttl_count_open("past_hours", NCOLUMNS, NoLock), NoLock);
}

/* Is an hour older than ttl_index.history_retention? */
static bool
is_old(TimestampTz hour, TimestampTz now)
{
	return hour + USECS_PER_HOUR <= now - ttl_history_retention * USECS_PER_SEC;
}

/* Adds what an index did in an hour, in the current transaction. */
void
ttl_history_add(const TtlCount *sum, TimestampTz now)
{
	Relation	rel;

	if (is_old(sum->hour, now))
		return;
	rel = ttl_count_open("past_hours", NCOLUMNS, RowExclusiveLock);
	ttl_count_insert(rel, sum, columns);
	table_close(rel, NoLock);
}

/* Deletes the old hours, unless others have locked the table. */
void
ttl_history_trim(TimestampTz now)
{
	Relation	rel;
	Snapshot	snapshot;
	TableScanDesc scan;
	HeapTuple	tuple;

	if (!ttl_history_lock(RowExclusiveLock))
		return;
	rel = ttl_count_open("past_hours", NCOLUMNS, NoLock);
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	scan = ttl_table_beginscan(rel, snapshot);
	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		bool		null;
		Datum		hour = heap_getattr(tuple, ATTNUM_HOUR, RelationGetDescr(rel), &null);

		CHECK_FOR_INTERRUPTS();
		if (null || is_old(DatumGetTimestampTz(hour), now))
			simple_heap_delete(rel, &tuple->t_self);
	}
	table_endscan(scan);
	UnregisterSnapshot(snapshot);
	table_close(rel, NoLock);
}
