/*-------------------------------------------------------------------------
 *
 * counters.c
 *	  The counters.
 *
 * Table ttl_index.counters gets a row for what each batch did, in the batch's own
 * transaction: so the counters are exact whatever crashes, and the cost of a
 * batch does not depend on how many came before it.  (An update of one row would
 * have to walk all of its versions that an old snapshot keeps.)  The end of a
 * turn folds the rows of an index into one.
 *
 * On a full disk rows must go and be counted all the same.  So the table begins
 * with some pages that are empty and are never given back, and whoever adds a row
 * uses the space of rows that were folded, instead of letting the table grow.
 * Only an old snapshot, which keeps these, can make it.
 *
 * The table has no index and no trigger, so rows go straight into the heap.  That
 * also asks for no privilege: nobody but this file writes it.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/monitor/counters.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "monitor/monitor.h"
#include "ttl_index.h"

PG_FUNCTION_INFO_V1(ttl_stats_reset);

/* Fold when there is more than this, so that an idle table is left alone. */
#define FOLD_ROWS 100

/* About half of what fits. */
#define ROWS_PER_BLOCK 25

/* In so many pages room is looked for, each time that one is full. */
#define ROOM_BLOCKS 64

/*
 * A page has room while so much is free: two rows or so.  It is less than what
 * makes core remove dead rows when it reads a page.
 */
#define ROOM_SIZE 512

/* The columns of ttl_index.counters, in order. */
enum
{
	COL_INDEXRELID,
	COL_RELID,
	COL_VISITS,
	COL_BATCHES,
	COL_DELETED_DOCUMENTS,
	COL_DELETED_BUCKETS,
	COL_SKIPPED_LOCKED,
	COL_SKIPPED_FAILED,
	COL_ERRORS,
	COL_DELETE_TIME,
	COL_LAST_DELETED,
	COL_LAST_ERROR,
	COL_LAST_ERROR_SQLSTATE,
	COL_LAST_ERROR_TIME,
	COL_PASSES,
	COL_SUB_PASSES,
	COL_LAST_PASS_START,
	COL_LAST_PASS_END,
	COL_LAST_CUTOFF,
	COL_STATS_RESET,
	COL_LAG_PAUSES,
	NCOLS
};

/* Which field of TtlCount a column of a plain type is. */
typedef enum FieldType
{
	FIELD_INT64,
	FIELD_TIME
} FieldType;

typedef struct Field
{
	int			column;
	FieldType	type;
	size_t		offset;
} Field;

static const Field fields[] = {
	{COL_VISITS, FIELD_INT64, offsetof(TtlCount, visits)},
	{COL_BATCHES, FIELD_INT64, offsetof(TtlCount, batches)},
	{COL_DELETED_DOCUMENTS, FIELD_INT64, offsetof(TtlCount, deleted_documents)},
	{COL_DELETED_BUCKETS, FIELD_INT64, offsetof(TtlCount, deleted_buckets)},
	{COL_SKIPPED_LOCKED, FIELD_INT64, offsetof(TtlCount, skipped_locked)},
	{COL_SKIPPED_FAILED, FIELD_INT64, offsetof(TtlCount, skipped_failed)},
	{COL_ERRORS, FIELD_INT64, offsetof(TtlCount, errors)},
	{COL_PASSES, FIELD_INT64, offsetof(TtlCount, passes)},
	{COL_SUB_PASSES, FIELD_INT64, offsetof(TtlCount, sub_passes)},
	{COL_LAST_DELETED, FIELD_TIME, offsetof(TtlCount, last_deleted)},
	{COL_LAST_ERROR_TIME, FIELD_TIME, offsetof(TtlCount, last_error_time)},
	{COL_LAST_PASS_START, FIELD_TIME, offsetof(TtlCount, last_pass_start)},
	{COL_LAST_PASS_END, FIELD_TIME, offsetof(TtlCount, last_pass_end)},
	{COL_LAST_CUTOFF, FIELD_TIME, offsetof(TtlCount, last_cutoff)},
	{COL_STATS_RESET, FIELD_TIME, offsetof(TtlCount, stats_reset)},
	{COL_LAG_PAUSES, FIELD_INT64, offsetof(TtlCount, lag_pauses)},
};

#define FIELD(count, field) (*(int64 *) ((char *) (count) + (field)->offset))

static Oid
counters_relid(void)
{
	return get_relname_relid("counters", get_namespace_oid(TTL_SCHEMA, false));
}

static Relation
open_counters(LOCKMODE lockmode)
{
	Relation	rel = table_open(counters_relid(), lockmode);

	ttl_args_check_columns(RelationGetDescr(rel), NCOLS, "counters");
	return rel;
}

/* Raises an error where what is done could not be counted. */
void
ttl_counters_check(void)
{
	table_close(open_counters(AccessShareLock), AccessShareLock);
}

/*
 * Locks the counters for what is to be counted in this transaction.  False where
 * they are gone, or locked by others, unless that is waited for.
 */
bool
ttl_counters_lock(bool wait)
{
	Oid			schema = get_namespace_oid(TTL_SCHEMA, true);
	Oid			relid = OidIsValid(schema) ? get_relname_relid("counters", schema) : InvalidOid;

	if (!OidIsValid(relid))
		return false;
	if (wait)
		LockRelationOid(relid, RowExclusiveLock);
	else if (!ConditionalLockRelationOid(relid, RowExclusiveLock))
		return false;
	return SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relid));
}

static void
set_text(Datum *values, bool *nulls, int column, const char *text)
{
	nulls[column] = text == NULL;
	if (text != NULL)
		values[column] = CStringGetTextDatum(text);
}

/* Would a row of this size fit into a page? */
static bool
has_room(Relation rel, BlockNumber block, Size size)
{
	Buffer		buffer = ReadBuffer(rel, block);
	Page		page = BufferGetPage(buffer);
	bool		result;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	result = !PageIsNew(page) && PageGetHeapFreeSpace(page) >= size;
	UnlockReleaseBuffer(buffer);
	return result;
}

/*
 * Leads the next row to a page that has room for it, if there is one.  Core goes by
 * the free space map, which does not know what was freed since the last vacuum, and
 * would rather let the table grow; on a full disk it cannot.
 */
static void
find_room(Relation rel, Size size)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(rel);
	BlockNumber target = RelationGetTargetBlock(rel);

	if (target < nblocks && has_room(rel, target, size))
		return;
	for (BlockNumber block = 0; block < Min(nblocks, ROOM_BLOCKS); block++)
	{
		if (has_room(rel, block, size))
		{
			RelationSetTargetBlock(rel, block);
			return;
		}
	}
}

static void
insert_row(Relation rel, const TtlCount *count)
{
	Datum		values[NCOLS];
	bool		nulls[NCOLS] = {0};
	HeapTuple	tuple;

	values[COL_INDEXRELID] = ObjectIdGetDatum(count->indexrelid);
	values[COL_RELID] = ObjectIdGetDatum(count->relid);
	values[COL_DELETE_TIME] = Float8GetDatum(count->delete_time);
	set_text(values, nulls, COL_LAST_ERROR, count->last_error);
	set_text(values, nulls, COL_LAST_ERROR_SQLSTATE,
			 count->last_error_sqlstate);
	for (int i = 0; i < lengthof(fields); i++)
	{
		int64		value = FIELD(count, &fields[i]);

		values[fields[i].column] = Int64GetDatum(value);
		nulls[fields[i].column] = fields[i].type == FIELD_TIME && value == 0;
	}
	tuple = heap_form_tuple(RelationGetDescr(rel), values, nulls);
	find_room(rel, MAXALIGN(tuple->t_len));
	simple_heap_insert(rel, tuple);
	heap_freetuple(tuple);
}

/* The text of the later error stays. */
static void
add_error(TtlCount *sum, HeapTuple tuple, TupleDesc desc, TimestampTz when)
{
	Datum		datum;
	bool		isnull;

	if (when < sum->last_error_time)
		return;
	datum = heap_getattr(tuple, COL_LAST_ERROR + 1, desc, &isnull);
	sum->last_error = isnull ? NULL : TextDatumGetCString(datum);
	datum = heap_getattr(tuple, COL_LAST_ERROR_SQLSTATE + 1, desc, &isnull);
	sum->last_error_sqlstate = isnull ? NULL : TextDatumGetCString(datum);
}

/*
 * Adds a row.  A time that is in the future was written by a clock that has been set
 * back since: to keep it would hide the later ones until then.
 */
static void
add_row(TtlCount *sum, HeapTuple tuple, TupleDesc desc, TimestampTz now)
{
	bool		isnull;
	Datum		datum;

	datum = heap_getattr(tuple, COL_LAST_ERROR_TIME + 1, desc, &isnull);
	if (!isnull && DatumGetTimestampTz(datum) <= now)
		add_error(sum, tuple, desc, DatumGetTimestampTz(datum));
	sum->delete_time += DatumGetFloat8(heap_getattr(tuple, COL_DELETE_TIME + 1,
													desc, &isnull));
	for (int i = 0; i < lengthof(fields); i++)
	{
		int64	   *field = &FIELD(sum, &fields[i]);

		datum = heap_getattr(tuple, fields[i].column + 1, desc, &isnull);
		if (isnull)
			continue;
		if (fields[i].type == FIELD_TIME && DatumGetInt64(datum) > now &&
			fields[i].column != COL_STATS_RESET)
			continue;
		if (fields[i].type == FIELD_TIME)
			*field = Max(*field, DatumGetInt64(datum));
		else
			*field += DatumGetInt64(datum);
	}
}

/* The sum for an index among those found so far; new where it is not. */
static TtlCount *
find_sum(HTAB *found, List **sums, Oid indexrelid, Oid relid)
{
	TtlCount   *sum;
	bool		known;

	/* what was counted for an index that is gone belongs to none */
	if (!SearchSysCacheExists1(INDEXRELID, ObjectIdGetDatum(indexrelid)))
		indexrelid = relid = InvalidOid;
	sum = hash_search(found, &indexrelid, HASH_ENTER, &known);
	if (!known)
	{
		memset(sum, 0, sizeof(*sum));
		sum->indexrelid = indexrelid;
		sum->relid = relid;
		*sums = lappend(*sums, sum);
	}
	return sum;
}

/*
 * The sums of all rows that a snapshot sees, in the caller's memory, and the number
 * of these rows; takes them out where that is asked.
 */
static List *
sum_rows(Relation rel, Snapshot snapshot, bool take, int64 *rows)
{
	HASHCTL		ctl = {.keysize = sizeof(Oid),.entrysize = sizeof(TtlCount),.hcxt = CurrentMemoryContext};
	HTAB	   *found = hash_create("ttl_index sums", 64, &ctl,
									HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	List	   *sums = NIL;
	TupleDesc	desc = RelationGetDescr(rel);
	TableScanDesc scan = ttl_table_beginscan(rel, snapshot);
	TimestampTz now = GetCurrentTimestamp();
	HeapTuple	tuple;

	*rows = 0;
	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		bool		isnull;
		Oid			indexrelid = DatumGetObjectId(heap_getattr(tuple, COL_INDEXRELID + 1,
															   desc, &isnull));
		Oid			relid = DatumGetObjectId(heap_getattr(tuple, COL_RELID + 1,
														  desc, &isnull));

		add_row(find_sum(found, &sums, indexrelid, relid), tuple, desc, now);
		(*rows)++;
		if (take)
			simple_heap_delete(rel, &tuple->t_self);
	}
	table_endscan(scan);
	return sums;
}

/* Takes all rows out of the table and returns their sums. */
static List *
take_rows(Relation rel)
{
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	int64		rows;
	List	   *sums = sum_rows(rel, snapshot, true, &rows);

	UnregisterSnapshot(snapshot);
	return sums;
}

/*
 * One row an index instead of many, in a table that is locked for it.  It may be done
 * again in this transaction, which must see what this has taken.
 */
static void
fold_rows(Relation rel)
{
	ListCell   *lc;

	foreach(lc, take_rows(rel))
		insert_row(rel, lfirst(lc));
	CommandCounterIncrement();
}

/* What the counters say of each index, for a view. */
List *
ttl_counters_read(void)
{
	Relation	rel = open_counters(AccessShareLock);
	int64		rows;
	List	   *sums = sum_rows(rel, GetActiveSnapshot(), false, &rows);

	table_close(rel, AccessShareLock);
	return sums;
}

/*
 * Sees to it that some pages of a small table have room, before there is none: then
 * the sums of its rows would not fit either.  To read the table frees what older
 * folds have left, in pages that are full; where that is not enough, it is folded.
 */
static void
keep_room(Relation rel)
{
	BlockNumber nblocks = RelationGetNumberOfBlocks(rel);
	BlockNumber target = RelationGetTargetBlock(rel);
	BlockNumber with_room = 0;
	Snapshot	snapshot;
	int64		rows;
	List	   *sums;

	if (nblocks > ROOM_BLOCKS ||
		(target < nblocks && has_room(rel, target, ROOM_SIZE)))
		return;
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	sums = sum_rows(rel, snapshot, false, &rows);
	UnregisterSnapshot(snapshot);
	for (BlockNumber block = 0; block < nblocks; block++)
	{
		if (has_room(rel, block, ROOM_SIZE))
			with_room++;
	}
	if (with_room <= nblocks / 3 && rows >= 2 * list_length(sums) &&
		ConditionalLockRelationOid(RelationGetRelid(rel), ShareUpdateExclusiveLock))
		fold_rows(rel);
}

/* Adds to the counters, in the current transaction. */
void
ttl_counters_add(const TtlCount *count)
{
	Relation	rel = open_counters(RowExclusiveLock);

	keep_room(rel);
	insert_row(rel, count);
	table_close(rel, NoLock);
}

/* Are there more rows than a reader should have to add up? */
static bool
worth_folding(Relation rel)
{
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	TableScanDesc scan = ttl_table_beginscan(rel, snapshot);
	int			rows = 0;

	while (rows <= FOLD_ROWS && heap_getnext(scan, ForwardScanDirection) != NULL)
		rows++;
	table_endscan(scan);
	UnregisterSnapshot(snapshot);
	return rows > FOLD_ROWS;
}

/*
 * Folds the rows of each index into one, in the current transaction, unless
 * somebody else is at it (or a vacuum).  The caller has added so many rows since
 * the last time; it returns whether they count from zero again.
 *
 * To fold, the whole table is read, also what it held before earlier folds and an
 * old snapshot keeps.  So it waits until as many rows have come as it would have
 * to read, or nearly: that keeps the cost of a row the same however many came
 * before.
 */
bool
ttl_counters_fold(int64 rows)
{
	Oid			relid = counters_relid();
	Relation	rel;
	bool		due;

	if (rows < FOLD_ROWS ||
		!ConditionalLockRelationOid(relid, ShareUpdateExclusiveLock))
		return false;
	rel = open_counters(RowExclusiveLock);
	due = rows >= FOLD_ROWS + ROWS_PER_BLOCK * (int64) RelationGetNumberOfBlocks(rel);
	if (due && worth_folding(rel))
		fold_rows(rel);
	table_close(rel, NoLock);
	return due;
}

/* stats_reset() returns void */
Datum
ttl_stats_reset(PG_FUNCTION_ARGS)
{
	Relation	rel;
	TtlCount	zero = {0};

	PreventCommandIfReadOnly("ttl_index.stats_reset()");
	LockRelationOid(counters_relid(), ShareUpdateExclusiveLock);
	rel = open_counters(RowExclusiveLock);
	(void) take_rows(rel);
	zero.stats_reset = GetCurrentTimestamp();
	insert_row(rel, &zero);
	table_close(rel, NoLock);
	PG_RETURN_VOID();
}
