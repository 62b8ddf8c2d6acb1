/*-------------------------------------------------------------------------
 *
 * counters.c
 *	  The counters: the table behind the views stats and index_stats.
 *
 * Each batch adds a row for what it did, in its own transaction (visit.c), and each
 * sub-pass one for itself (sub_pass.c).  So the counters are exact whatever crashes,
 * and the cost of a batch does not depend on how many came before it.  An update of
 * one row for each index would have to read all versions of it that an old snapshot
 * keeps.  The cumulative statistics system of core does not survive a crash.  At the
 * end of a sub-pass the rows of each index are folded into one.
 *
 * Rows have to be deleted and counted on a full disk, too.  So the table begins with
 * pages that are empty and are never given back, and whoever adds a row uses the space
 * of rows that were folded, instead of letting the table grow.  Only an old snapshot,
 * which keeps these, makes it grow.
 *
 * The table has no index and no trigger, so rows are inserted into the heap directly.
 * That also asks for no privilege: nobody but this file writes the table.
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
#include "catalog/index.h"
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
#include "definition/definition.h"
#include "monitor/monitor.h"
#include "ttl_index.h"

PG_FUNCTION_INFO_V1(ttl_stats_reset);
PG_FUNCTION_INFO_V1(ttl_stats_reset_index);

/* Fewer rows are not folded, so that an idle table is left alone. */
#define FOLD_ROWS 100

/* How many rows a page is taken to hold: about half of what fits. */
#define ROWS_PER_BLOCK 25

/* When a page is full, room is looked for in so many pages. */
#define ROOM_BLOCKS 64

/*
 * A page has room while so much is free, which is about two rows.  It is less than what
 * makes core remove dead rows when it reads a page.
 */
#define ROOM_SIZE 512

/* How a column is stored, and how two rows of an index become one. */
typedef enum ColumnKind
{
	COLUMN_OID,					/* says what the row is about */
	COLUMN_COUNT,				/* an int64, added up */
	COLUMN_MILLISECONDS,		/* a double, added up */
	COLUMN_TIME,				/* the latest one that is not in the future */
	COLUMN_RESET_TIME,			/* the latest one */
	COLUMN_ERROR_TEXT			/* belongs to the latest last_error_time */
} ColumnKind;

typedef struct Column
{
	ColumnKind	kind;
	size_t		offset;			/* in TtlCount */
} Column;

/* The columns of ttl_index.counters, in order. */
static const Column columns[] = {
	{COLUMN_OID, offsetof(TtlCount, indexrelid)},
	{COLUMN_OID, offsetof(TtlCount, relid)},
	{COLUMN_COUNT, offsetof(TtlCount, visits)},
	{COLUMN_COUNT, offsetof(TtlCount, batches)},
	{COLUMN_COUNT, offsetof(TtlCount, deleted_documents)},
	{COLUMN_COUNT, offsetof(TtlCount, deleted_buckets)},
	{COLUMN_COUNT, offsetof(TtlCount, skipped_locked)},
	{COLUMN_COUNT, offsetof(TtlCount, skipped_failed)},
	{COLUMN_COUNT, offsetof(TtlCount, errors)},
	{COLUMN_MILLISECONDS, offsetof(TtlCount, delete_time)},
	{COLUMN_TIME, offsetof(TtlCount, last_deleted)},
	{COLUMN_ERROR_TEXT, offsetof(TtlCount, last_error)},
	{COLUMN_ERROR_TEXT, offsetof(TtlCount, last_error_sqlstate)},
	{COLUMN_TIME, offsetof(TtlCount, last_error_time)},
	{COLUMN_COUNT, offsetof(TtlCount, passes)},
	{COLUMN_COUNT, offsetof(TtlCount, sub_passes)},
	{COLUMN_TIME, offsetof(TtlCount, last_pass_start)},
	{COLUMN_TIME, offsetof(TtlCount, last_pass_end)},
	{COLUMN_TIME, offsetof(TtlCount, last_cutoff)},
	{COLUMN_RESET_TIME, offsetof(TtlCount, stats_reset)},
	{COLUMN_COUNT, offsetof(TtlCount, lag_pauses)},
	{COLUMN_TIME, offsetof(TtlCount, last_call)},
	{COLUMN_TIME, offsetof(TtlCount, recovered)},
};

#define NCOLUMNS lengthof(columns)

/* The field of a TtlCount for a column. */
#define FIELD(type, count, column) (*(type *) ((char *) (count) + (column)->offset))

static Oid
counters_relid(void)
{
	return get_relname_relid("counters", get_namespace_oid(TTL_SCHEMA, false));
}

static Relation
open_counters(LOCKMODE lockmode)
{
	Relation	rel = table_open(counters_relid(), lockmode);

	ttl_args_check_columns(RelationGetDescr(rel), NCOLUMNS, "counters");
	return rel;
}

/* Raises an error if the table does not fit this library. */
void
ttl_counters_check(void)
{
	table_close(open_counters(AccessShareLock), AccessShareLock);
}

/*
 * Locks the table for what is to be counted in this transaction.  Returns false if it is
 * gone or, unless the caller waits, if others have locked it.
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
 * Makes core insert the next row into a page that has room for it, if there is one.  Core
 * itself asks the free space map, which does not know what was freed since the last
 * vacuum, and would let the table grow, which it cannot on a full disk.
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

/* The value of a column; false for NULL, as which no time and no text are stored. */
static bool
column_datum(const TtlCount *count, const Column *column, Datum *datum)
{
	const char *text;

	switch (column->kind)
	{
		case COLUMN_OID:
			*datum = ObjectIdGetDatum(FIELD(Oid, count, column));
			return true;
		case COLUMN_COUNT:
			*datum = Int64GetDatum(FIELD(int64, count, column));
			return true;
		case COLUMN_MILLISECONDS:
			*datum = Float8GetDatum(FIELD(double, count, column));
			return true;
		case COLUMN_TIME:
		case COLUMN_RESET_TIME:
			*datum = TimestampTzGetDatum(FIELD(TimestampTz, count, column));
			return FIELD(TimestampTz, count, column) != 0;
		case COLUMN_ERROR_TEXT:
			text = FIELD(const char *, count, column);
			if (text != NULL)
				*datum = CStringGetTextDatum(text);
			return text != NULL;
	}
	return false;
}

static void
insert_row(Relation rel, const TtlCount *count)
{
	Datum		values[NCOLUMNS] = {0};
	bool		nulls[NCOLUMNS];
	HeapTuple	tuple;

	for (int i = 0; i < NCOLUMNS; i++)
		nulls[i] = !column_datum(count, &columns[i], &values[i]);
	tuple = heap_form_tuple(RelationGetDescr(rel), values, nulls);
	find_room(rel, MAXALIGN(tuple->t_len));
	simple_heap_insert(rel, tuple);
	heap_freetuple(tuple);
}

static void
read_row(HeapTuple tuple, TupleDesc desc, TtlCount *count)
{
	Datum		values[NCOLUMNS];
	bool		nulls[NCOLUMNS];

	memset(count, 0, sizeof(*count));
	heap_deform_tuple(tuple, desc, values, nulls);
	for (int i = 0; i < NCOLUMNS; i++)
	{
		const Column *column = &columns[i];

		if (nulls[i])
			continue;
		switch (column->kind)
		{
			case COLUMN_OID:
				FIELD(Oid, count, column) = DatumGetObjectId(values[i]);
				break;
			case COLUMN_COUNT:
				FIELD(int64, count, column) = DatumGetInt64(values[i]);
				break;
			case COLUMN_MILLISECONDS:
				FIELD(double, count, column) = DatumGetFloat8(values[i]);
				break;
			case COLUMN_TIME:
			case COLUMN_RESET_TIME:
				FIELD(TimestampTz, count, column) = DatumGetTimestampTz(values[i]);
				break;
			case COLUMN_ERROR_TEXT:
				FIELD(const char *, count, column) = TextDatumGetCString(values[i]);
				break;
		}
	}
}

/*
 * Adds a row to the sum of its index.  A time that is in the future was written by a
 * clock that has been set back since: it would hide the later ones until then.
 */
static void
add_row(TtlCount *sum, const TtlCount *row, TimestampTz now)
{
	bool		has_last_error = row->last_error_time != 0 &&
	row->last_error_time <= now &&
	row->last_error_time >= sum->last_error_time;

	for (int i = 0; i < NCOLUMNS; i++)
	{
		const Column *column = &columns[i];

		switch (column->kind)
		{
			case COLUMN_OID:
				break;
			case COLUMN_COUNT:
				FIELD(int64, sum, column) += FIELD(int64, row, column);
				break;
			case COLUMN_MILLISECONDS:
				FIELD(double, sum, column) += FIELD(double, row, column);
				break;
			case COLUMN_TIME:
			case COLUMN_RESET_TIME:
				if (column->kind == COLUMN_RESET_TIME ||
					FIELD(TimestampTz, row, column) <= now)
					FIELD(TimestampTz, sum, column) = Max(FIELD(TimestampTz, sum, column),
														  FIELD(TimestampTz, row, column));
				break;
			case COLUMN_ERROR_TEXT:
				if (has_last_error)
					FIELD(const char *, sum, column) = FIELD(const char *, row, column);
				break;
		}
	}
}

/*
 * Finds the sum of an index, or of a role that has called run_pass(), among those made so
 * far, or makes a new one.
 */
static TtlCount *
find_sum(HTAB *found, List **sums, Oid indexrelid, Oid relid)
{
	Oid			key[2] = {indexrelid, relid};
	TtlCount   *sum;
	bool		known;

	/*
	 * what was counted for an index, or of a role, that is gone belongs to
	 * none
	 */
	if (OidIsValid(indexrelid) ?
		!SearchSysCacheExists1(INDEXRELID, ObjectIdGetDatum(indexrelid)) :
		!SearchSysCacheExists1(AUTHOID, ObjectIdGetDatum(relid)))
		key[0] = key[1] = InvalidOid;
	sum = hash_search(found, key, HASH_ENTER, &known);
	if (!known)
	{
		memset(sum, 0, sizeof(*sum));
		sum->indexrelid = key[0];
		sum->relid = key[1];
		*sums = lappend(*sums, sum);
	}
	return sum;
}

/*
 * Sums up all rows that a snapshot sees, and deletes them if `take` is set.  Returns a
 * list of TtlCount in the current memory context, and the number of rows.
 */
static List *
sum_rows(Relation rel, Snapshot snapshot, bool take, int64 *rows)
{
	HASHCTL		ctl = {.keysize = 2 * sizeof(Oid),.entrysize = sizeof(TtlCount),.hcxt = CurrentMemoryContext};
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
		TtlCount	row;
		TtlCount   *sum;

		read_row(tuple, desc, &row);
		sum = find_sum(found, &sums, row.indexrelid, row.relid);
		/* an index that is gone was reset, not the database */
		if (sum->indexrelid != row.indexrelid)
			row.stats_reset = 0;
		add_row(sum, &row, now);
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
 * Replaces the rows of each index by one, in a table that is locked for it.  This may
 * happen again in the same transaction, which must see what was deleted here.
 */
static void
fold_rows(Relation rel)
{
	ListCell   *lc;

	foreach(lc, take_rows(rel))
		insert_row(rel, lfirst(lc));
	CommandCounterIncrement();
}

static int
failing_cmp(const ListCell *a, const ListCell *b)
{
	Oid			root_a = ((TtlFailing *) lfirst(a))->root;
	Oid			root_b = ((TtlFailing *) lfirst(b))->root;

	return root_a < root_b ? -1 : root_a > root_b;
}

/*
 * Lists the TTL indexes that fail: those with an error that no good visit has followed.  A
 * list of TtlFailing in the order of OIDs.
 */
List *
ttl_counters_failing(void)
{
	Relation	rel = open_counters(AccessShareLock);
	List	   *failing = NIL;
	int64		rows;
	ListCell   *lc;

	foreach(lc, sum_rows(rel, GetActiveSnapshot(), false, &rows))
	{
		const TtlCount *sum = lfirst(lc);
		TtlFailing *entry;

		if (!OidIsValid(sum->indexrelid) || sum->last_error_time <= sum->recovered)
			continue;
		entry = palloc(sizeof(TtlFailing));
		entry->root = sum->indexrelid;
		entry->at = sum->last_error_time;
		failing = lappend(failing, entry);
	}
	list_sort(failing, failing_cmp);
	table_close(rel, AccessShareLock);
	return failing;
}

/*
 * Returns the roles that have called run_pass() since this time; none if the table is
 * locked exclusively, or does not fit this library: only views and messages depend on it.
 */
List *
ttl_counters_roles_since(TimestampTz since)
{
	Oid			relid = counters_relid();
	TimestampTz now = GetCurrentTimestamp();
	List	   *roles = NIL;
	Relation	rel;
	TableScanDesc scan;
	HeapTuple	tuple;

	if (!OidIsValid(relid) ||
		!ConditionalLockRelationOid(relid, AccessShareLock))
		return NIL;
	rel = table_open(relid, NoLock);
	scan = ttl_table_beginscan(rel, GetActiveSnapshot());
	while (RelationGetDescr(rel)->natts == NCOLUMNS &&
		   (tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		TtlCount	row;

		read_row(tuple, RelationGetDescr(rel), &row);
		if (row.last_call >= since && row.last_call <= now)
			roles = list_append_unique_oid(roles, row.relid);
	}
	table_endscan(scan);
	table_close(rel, AccessShareLock);
	return roles;
}

/*
 * Keeps some pages of a small table from filling up: once all are full, the sums of its
 * rows would not fit either.  Reading the table frees what older folds have deleted in
 * pages that are full; if that is not enough, the table is folded.
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

/* Opens the table for a reset, with nobody else who folds its rows. */
static Relation
open_for_reset(void)
{
	PreventCommandIfReadOnly("ttl_index.stats_reset()");
	LockRelationOid(counters_relid(), ShareUpdateExclusiveLock);
	return open_counters(RowExclusiveLock);
}

/* stats_reset() returns void */
Datum
ttl_stats_reset(PG_FUNCTION_ARGS)
{
	Relation	rel = open_for_reset();
	TtlCount	zero = {0};
	ListCell   *lc;

	/* that a role calls run_pass() is no count */
	foreach(lc, take_rows(rel))
	{
		TtlCount   *sum = lfirst(lc);
		TtlCount	call = {.relid = sum->relid,.last_call = sum->last_call};

		if (call.last_call != 0)
			insert_row(rel, &call);
	}
	zero.stats_reset = GetCurrentTimestamp();
	insert_row(rel, &zero);
	table_close(rel, NoLock);
	PG_RETURN_VOID();
}

/*
 * stats_reset(index regclass) returns void: of a part, the TTL index that it belongs to.
 * What was counted for it stays in the sums of the database.
 */
Datum
ttl_stats_reset_index(PG_FUNCTION_ARGS)
{
	Oid			indexrelid = PG_GETARG_OID(0);
	TtlCount	zero = {0};
	Relation	rel;
	Oid			root;
	ListCell   *lc;

	ttl_state_check_is_index(indexrelid);
	root = ttl_catalog_root(indexrelid);
	if (!OidIsValid(root))
		root = indexrelid;
	rel = open_for_reset();
	foreach(lc, take_rows(rel))
	{
		TtlCount   *sum = lfirst(lc);

		if (sum->indexrelid == root)
		{
			sum->indexrelid = sum->relid = InvalidOid;
			sum->stats_reset = sum->last_error_time = sum->recovered = 0;
			sum->last_error = sum->last_error_sqlstate = NULL;
		}
		insert_row(rel, sum);
	}
	zero.indexrelid = root;
	zero.relid = IndexGetRelation(root, true);
	zero.stats_reset = GetCurrentTimestamp();
	insert_row(rel, &zero);
	table_close(rel, NoLock);
	PG_RETURN_VOID();
}
