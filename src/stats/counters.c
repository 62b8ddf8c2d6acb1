/*-------------------------------------------------------------------------
 *
 * counters.c
 *	  The counters: the tables behind the views stats, index_stats and history.
 *
 * Each batch adds a row in its own transaction, and each survey one for the passes.  So the
 * counters are exact after a crash, and the cost of a batch does not depend on the versions
 * of a row that an old snapshot keeps.  A survey folds the rows of each index into one for
 * its sum and one for the current hour.
 *
 * Once an hour is over, a fold moves its row of each index to ttl_index.past_hours, in the
 * transaction that adds it to the sum of the index.  So each row that was deleted is in one of
 * the two tables at any time, and the counters, which each fold reads, stay small.  Past hours
 * are never changed.  Those older than ttl_index.history_retention are deleted, once an hour.
 *
 * The tables have no index, so rows are inserted into the heap directly, without privileges
 * and triggers.  Their triggers are for subscriptions to all tables of another server.
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
#include "catalog/index.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/hsearch.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "state/state.h"
#include "stats/stats.h"
#include "ttl_index.h"

PG_FUNCTION_INFO_V1(ttl_stats_reset);
PG_FUNCTION_INFO_V1(ttl_stats_reset_index);

/* Fewer rows are not folded: it would write more than it saves. */
#define FOLD_ROWS 100

/* Assumed rows per page: about half of what fits. */
#define ROWS_PER_BLOCK 25

/* The rows of an index, its table and an hour add up to one. */
#define KEY_SIZE (offsetof(TtlCount, hour) + sizeof(TimestampTz))

/* Rows that are being added up. */
typedef struct Sums
{
	HTAB	   *found;			/* of TtlCount */
	List	   *list;			/* the same ones, in order */
	int64		rows;			/* that were read */
	TimestampTz now;
	TimestampTz move_before;	/* hours before this are moved to past_hours */
} Sums;

/* The hour of a moment, in UTC. */
static TimestampTz
hour_of(TimestampTz at)
{
	return at - at % USECS_PER_HOUR;
}

/*
 * Tries to lock the table of past hours: DROP EXTENSION locks it before the counters, which the
 * caller has.
 */
static bool
lock_past_hours(LOCKMODE lockmode)
{
	return ConditionalLockRelationOid(ttl_count_relid("past_hours"), lockmode);
}

/* Raises an error if the tables do not fit this library. */
void
ttl_counters_check(void)
{
	table_close(ttl_count_open("counters", AccessShareLock), AccessShareLock);
	if (lock_past_hours(AccessShareLock))
		table_close(ttl_count_open("past_hours", NoLock), NoLock);
}

/*
 * Locks the table before anything is counted in this transaction, and that of saved options
 * before it is read.  DROP EXTENSION locks one of them, then indexes of users, then the other:
 * a session that waits for either while it has such an index locked would be in a deadlock.
 * Returns false if a table is gone or, unless the caller waits, locked by others.
 */
bool
ttl_counters_lock(bool wait)
{
	Oid			relid = ttl_count_relid("counters");
	Oid			saved = ttl_count_relid("saved_options");

	if (!OidIsValid(relid) || !OidIsValid(saved))
		return false;
	if (wait)
		LockRelationOid(relid, RowExclusiveLock);
	else if (!ConditionalLockRelationOid(relid, RowExclusiveLock))
		return false;
	/* only whoever drops the extension locks it so that this fails */
	if (!ConditionalLockRelationOid(saved, AccessShareLock))
		return false;
	return SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relid)) &&
		SearchSysCacheExists1(RELOID, ObjectIdGetDatum(saved));
}

/* Does a lock that others hold or await on the table keep passes from beginning? */
bool
ttl_counters_are_locked(void)
{
	Oid			relid = ttl_count_relid("counters");

	if (!OidIsValid(relid))
		return false;
	if (!ConditionalLockRelationOid(relid, RowExclusiveLock))
		return true;
	UnlockRelationOid(relid, RowExclusiveLock);
	return false;
}

/* Are the rows of this hour moved? */
static bool
is_moved(const Sums *sums, TimestampTz hour)
{
	return hour != 0 && hour < sums->move_before;
}

/* Is an hour older than ttl_index.history_retention? */
static bool
is_old(TimestampTz hour, TimestampTz now)
{
	return hour + USECS_PER_HOUR <= now - ttl_history_retention * USECS_PER_SEC;
}

/* Adds a row to the sum for this index and hour, or begins one. */
static void
add_to_sum(Sums *sums, const TtlCount *row, TimestampTz hour)
{
	TtlCount	key = {.indexrelid = row->indexrelid,.relid = row->relid,.hour = hour};
	TtlCount	added = *row;
	TtlCount   *sum;
	bool		known;

	/* the sum of an index that is gone, or of a role, belongs to the database */
	if (hour == 0 &&
		(OidIsValid(row->indexrelid) ?
		 !SearchSysCacheExists1(INDEXRELID, ObjectIdGetDatum(row->indexrelid)) :
		 OidIsValid(row->relid) &&
		 !SearchSysCacheExists1(AUTHOID, ObjectIdGetDatum(row->relid))))
	{
		key.indexrelid = key.relid = InvalidOid;
		added.stats_reset = 0;
	}
	sum = hash_search(sums->found, &key, HASH_ENTER, &known);
	if (!known)
	{
		*sum = key;
		sums->list = lappend(sums->list, sum);
	}
	ttl_count_add(sum, &added, sums->now);
}

/*
 * Sums up all rows that a snapshot sees, in the current memory context, and deletes them if
 * `take` is set.  What is moved is added to the sum of its index, too.
 */
static void
sum_rows(Relation rel, Snapshot snapshot, bool take, TimestampTz move_before, Sums *sums)
{
	HASHCTL		ctl = {.keysize = KEY_SIZE,.entrysize = sizeof(TtlCount),.hcxt = CurrentMemoryContext};
	TupleDesc	desc = RelationGetDescr(rel);
	TableScanDesc scan;
	HeapTuple	tuple;

	memset(sums, 0, sizeof(*sums));
	sums->found = hash_create("ttl_index sums", 64, &ctl,
							  HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	sums->now = GetCurrentTimestamp();
	sums->move_before = move_before;
	snapshot = RegisterSnapshot(snapshot);
	scan = ttl_table_beginscan(rel, snapshot);
	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		TtlCount	row;

		ttl_count_read(tuple, desc, &row);
		add_to_sum(sums, &row, row.hour);
		if (is_moved(sums, row.hour))
			add_to_sum(sums, &row, 0);
		sums->rows++;
		if (take)
			simple_heap_delete(rel, &tuple->t_self);
	}
	table_endscan(scan);
	UnregisterSnapshot(snapshot);
}

/*
 * Takes all rows out of the table, and moves what is to be moved.  A query that resets one
 * index after another does so several times in the same command.
 */
static void
take_rows(Relation rel, TimestampTz move_before, Sums *sums)
{
	Relation	past_hours;
	ListCell   *lc;

	CommandCounterIncrement();
	sum_rows(rel, GetLatestSnapshot(), true, move_before, sums);
	foreach(lc, sums->list)
	{
		const TtlCount *sum = lfirst(lc);

		if (!is_moved(sums, sum->hour) || is_old(sum->hour, sums->now))
			continue;
		past_hours = ttl_count_open("past_hours", RowExclusiveLock);
		ttl_count_insert(past_hours, sum);
		table_close(past_hours, NoLock);
	}
}

/*
 * Sums up the table for a view or a message.  Returns false if it is locked, or does not fit
 * this library.
 */
static bool
look(Sums *sums)
{
	Oid			relid = ttl_count_relid("counters");
	Relation	rel;
	bool		fits;

	if (!OidIsValid(relid) || !ConditionalLockRelationOid(relid, AccessShareLock))
		return false;
	rel = table_open(relid, NoLock);
	fits = RelationGetDescr(rel)->natts == TTL_COUNTERS_COLUMNS;
	if (fits)
		sum_rows(rel, GetActiveSnapshot(), false, DT_NOEND, sums);
	table_close(rel, AccessShareLock);
	return fits;
}

/* Returns what the counters say of TTL indexes: a hash table of TtlFailing in the current context. */
HTAB *
ttl_counters_failing(void)
{
	HASHCTL		ctl = {.keysize = sizeof(Oid),.entrysize = sizeof(TtlFailing),.hcxt = CurrentMemoryContext};
	HTAB	   *failing = hash_create("ttl_index failing", 64, &ctl,
									  HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	TimestampTz pass_start = 0;
	Sums		sums;
	ListCell   *lc;

	if (!look(&sums))
		return failing;
	foreach(lc, sums.list)
		pass_start = Max(pass_start, ((TtlCount *) lfirst(lc))->last_pass_start);
	foreach(lc, sums.list)
	{
		const TtlCount *sum = lfirst(lc);

		if (sum->hour == 0 && OidIsValid(sum->indexrelid))
		{
			TtlFailing *entry = hash_search(failing, &sum->indexrelid, HASH_ENTER, NULL);

			entry->at = sum->last_error_time > sum->recovered ? sum->last_error_time : 0;
			entry->keeps = sum->last_kept > sum->last_deleted && sum->last_kept >= pass_start;
			entry->approved = sum->approved > sum->shortened;
			entry->held = entry->at != 0 && !entry->approved && sum->last_error != NULL &&
				strstr(sum->last_error, "ttl_index.max_due_fraction") ? pstrdup(sum->last_error) : NULL;
		}
	}
	return failing;
}

/*
 * Notes that the first deletion by an index is approved, or has to be since its seconds were
 * shortened.  Returns whether it was held.
 */
bool
ttl_counters_note(Oid indexrelid, bool approved)
{
	TtlCount	count = {.indexrelid = indexrelid,.relid = IndexGetRelation(indexrelid, true)};
	TimestampTz now = GetCurrentTimestamp();
	TtlFailing *known;

	/* else the extension is being dropped */
	if (!ttl_counters_lock(false))
		return false;
	known = hash_search(ttl_counters_failing(), &indexrelid, HASH_FIND, NULL);
	if (approved)
		count.approved = now;
	else
		count.shortened = now;
	if (known != NULL && known->held != NULL)
		count.recovered = now;
	(void) ttl_counters_add(&count);
	return known != NULL && known->held != NULL;
}

/* Returns the roles that have called run_pass() since this time. */
List *
ttl_counters_roles_since(TimestampTz since)
{
	List	   *roles = NIL;
	Sums		sums;
	ListCell   *lc;

	if (!look(&sums))
		return NIL;
	foreach(lc, sums.list)
	{
		const TtlCount *sum = lfirst(lc);

		if (OidIsValid(sum->relid) && sum->last_call != 0 && sum->last_call >= since)
			roles = lappend_oid(roles, sum->relid);
	}
	return roles;
}

static void
add_work(void *arg)
{
	Relation	rel = ttl_count_open("counters", RowExclusiveLock);

	ttl_count_insert(rel, arg);
	table_close(rel, NoLock);
}

/*
 * Adds to the counters what was done by an index or by none, in the current transaction.
 * Returns false if the disk is full: rows have to be deleted there all the same.
 */
bool
ttl_counters_add(const TtlCount *count)
{
	TtlCount	row = *count;
	ErrorData  *edata;

	if (OidIsValid(row.indexrelid) && (row.batches > 0 || row.errors > 0))
	{
		row.hour = hour_of(GetCurrentTimestamp());
		row.indexrelname = get_rel_name(row.indexrelid);
		row.relname = get_rel_name(row.relid);
		row.schemaname = get_namespace_name(get_rel_namespace(row.relid));
	}
	edata = ttl_error_catch(add_work, &row, true);
	if (edata != NULL && edata->sqlerrcode != ERRCODE_DISK_FULL)
		ReThrowError(edata);
	return edata == NULL;
}

/*
 * Folds the rows of each index into one, in the current transaction, unless somebody else
 * does (or a vacuum).  The caller has added so many rows since the last time, which was in that
 * hour; both are set.  Past hours are moved to the history, unless others have locked it.
 *
 * A fold reads the whole table, also what an old snapshot keeps of earlier folds.  So it
 * waits until about as many rows have come as it has to read, but is made in each hour.
 */
void
ttl_counters_fold(int64 *rows, TimestampTz *folded_hour)
{
	Oid			relid = ttl_count_relid("counters");
	TimestampTz hour = hour_of(GetCurrentTimestamp());
	bool		is_new_hour = hour != *folded_hour;
	Relation	rel;

	if ((*rows < FOLD_ROWS && !is_new_hour) ||
		!ConditionalLockRelationOid(relid, ShareUpdateExclusiveLock))
		return;
	rel = ttl_count_open("counters", RowExclusiveLock);
	if (is_new_hour ||
		*rows >= FOLD_ROWS + ROWS_PER_BLOCK * (int64) RelationGetNumberOfBlocks(rel))
	{
		TimestampTz move_before = lock_past_hours(RowExclusiveLock) ? hour : DT_NOBEGIN;
		bool		past = false;
		Sums		sums;
		ListCell   *lc;

		/* a pass of run_pass() does not know about earlier folds */
		sum_rows(rel, GetLatestSnapshot(), false, move_before, &sums);
		foreach(lc, sums.list)
			past = past || is_moved(&sums, ((TtlCount *) lfirst(lc))->hour);
		if (past || sums.rows - list_length(sums.list) > FOLD_ROWS)
		{
			take_rows(rel, move_before, &sums);
			foreach(lc, sums.list)
			{
				const TtlCount *sum = lfirst(lc);

				if (!is_moved(&sums, sum->hour))
					ttl_count_insert(rel, sum);
			}
		}
		*rows = 0;
		*folded_hour = hour;
	}
	table_close(rel, NoLock);
}

/*
 * Deletes the old ones of the past hours, unless others have locked the table.  A DELETE would fail
 * where a publication has all tables, as this one has no replica identity.
 */
void
ttl_counters_trim(void *unused)
{
	TimestampTz now = GetCurrentTimestamp();
	Relation	rel;
	Snapshot	snapshot;
	TableScanDesc scan;
	HeapTuple	tuple;

	if (!lock_past_hours(RowExclusiveLock))
		return;
	rel = ttl_count_open("past_hours", NoLock);
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	scan = ttl_table_beginscan(rel, snapshot);
	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		bool		null;
		Datum		hour = heap_getattr(tuple, TTL_COUNT_ATTNUM_HOUR, RelationGetDescr(rel), &null);

		CHECK_FOR_INTERRUPTS();
		if (is_old(DatumGetTimestampTz(hour), now))
			simple_heap_delete(rel, &tuple->t_self);
	}
	table_endscan(scan);
	UnregisterSnapshot(snapshot);
	table_close(rel, NoLock);
}

/*
 * Resets the counters of an index, or all of them if root is invalid.  The counts of the index
 * stay in the sums of the database.
 */
static void
reset(Oid root)
{
	TtlCount	zero = {.indexrelid = root,
		.relid = OidIsValid(root) ? IndexGetRelation(root, true) : InvalidOid};
	Relation	rel;
	Sums		sums;
	ListCell   *lc;

	PreventCommandIfReadOnly("ttl_index.stats_reset()");
	PreventCommandIfParallelMode("ttl_index.stats_reset()");
	/* nobody folds the rows meanwhile */
	LockRelationOid(ttl_count_relid("counters"), ShareUpdateExclusiveLock);
	rel = ttl_count_open("counters", RowExclusiveLock);
	take_rows(rel, DT_NOEND, &sums);
	foreach(lc, sums.list)
	{
		TtlCount   *sum = lfirst(lc);
		TtlCount	call = {.relid = sum->relid,.last_call = sum->last_call};

		if (sum->hour != 0)
			continue;
		if (!OidIsValid(root))
		{
			/* the time of the last run_pass() of a role is no count */
			if (call.last_call != 0)
				ttl_count_insert(rel, &call);
			continue;
		}
		if (sum->indexrelid == root)
		{
			sum->indexrelid = sum->relid = InvalidOid;
			sum->stats_reset = sum->last_error_time = sum->recovered = 0;
			sum->last_error = sum->last_error_sqlstate = NULL;
			sum->last_error_role = InvalidOid;
		}
		ttl_count_insert(rel, sum);
	}
	zero.stats_reset = sums.now;
	ttl_count_insert(rel, &zero);
	table_close(rel, NoLock);
}

/* stats_reset() returns void */
Datum
ttl_stats_reset(PG_FUNCTION_ARGS)
{
	reset(InvalidOid);
	PG_RETURN_VOID();
}

/* stats_reset(index regclass) returns void; for a partition, of the TTL index above it */
Datum
ttl_stats_reset_index(PG_FUNCTION_ARGS)
{
	Oid			indexrelid = PG_GETARG_OID(0);
	Oid			root;

	ttl_state_check_is_index(indexrelid);
	root = ttl_catalog_root(indexrelid);
	reset(OidIsValid(root) ? root : indexrelid);
	PG_RETURN_VOID();
}
