/*-------------------------------------------------------------------------
 *
 * look.c
 *	  Counts, samples and estimates of what is due by an index.
 *
 * The key is read from the index tuple.  The filter was applied when that tuple was written.
 * Of a row, only the visibility is read.  No expression is evaluated, so no user's function is
 * called, and a superuser can look at the indexes of all roles.
 *
 * Estimates use the most common values and the histogram of ANALYZE, which are the table's for
 * a column and the index's for an expression, and reltuples of the index, which reflects the
 * filter.  The planner uses no statistics of an index with a filter.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/nbtree.h"
#include "access/relation.h"
#include "access/tableam.h"
#include "access/xlog.h"
#include "catalog/pg_class.h"
#include "catalog/pg_statistic.h"
#include "catalog/pg_type.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "definition/key.h"
#include "expire/look.h"

/* No table has more rows. */
#define MAX_TUPLES ((double) MaxBlockNumber * MaxHeapTuplesPerPage)

/*
 * Counts the rows that are due by an index at this clock reading.  The caller has locked the
 * table and the index, and has checked that its user may look at them.
 */
void
ttl_look_at(const TtlIndex *index, TimestampTz at, TtlLook *look)
{
	Relation	heap = try_relation_open(index->relid, NoLock);
	Relation	rel = heap == NULL ? NULL : try_relation_open(index->indexrelid, NoLock);
	int64		tuples = 0;
	TtlCutoff	cutoff;
	TtlIndexScan scan;
	const TtlScanPosition *entry;
	TupleTableSlot *slot;
	IndexFetchTableData *fetch;

	look->count = 0;
	look->stopped = false;
	if (rel == NULL)			/* it was dropped before it was locked */
	{
		if (heap != NULL)
			relation_close(heap, NoLock);
		return;
	}
	/* the planner raises the same error */
	if (RecoveryInProgress() && !RelationIsPermanent(heap))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access temporary or unlogged relations during recovery")));
	ttl_cutoff_init(&cutoff, index, at);
	PushActiveSnapshot(GetTransactionSnapshot());
	slot = table_slot_create(heap, NULL);
	fetch = ttl_index_fetch_begin(heap);
	ttl_index_scan_begin(&scan, heap, rel, cutoff.keytype, cutoff.bound, &look->after);
	if (look->max_pages > 0)
		scan.max_pages = look->max_pages;
	while ((look->max_rows == 0 || look->count < look->max_rows) && !look->stopped &&
		   (entry = ttl_index_scan_next(&scan)) != NULL)
	{
		ItemPointerData tid = entry->tid;
		bool		call_again = false;

		if (!ttl_cutoff_is_due(&cutoff, entry->key))
			continue;
		look->stopped = (look->max_tuples > 0 && tuples++ >= look->max_tuples) ||
			(look->until != 0 && GetCurrentTimestamp() >= look->until);
		if (!look->stopped &&
			table_index_fetch_tuple(fetch, &tid, GetActiveSnapshot(), slot, &call_again, NULL) &&
			look->count++ == 0)
			look->oldest = ttl_cutoff_instant(&cutoff, entry->key);
	}
	if (look->max_rows == 0 || look->count < look->max_rows)
		look->stopped = look->stopped || !ttl_index_scan_is_over(&scan);
	ttl_index_scan_end(&scan);
	ExecClearTuple(slot);
	table_index_fetch_end(fetch);
	ExecDropSingleTupleTableSlot(slot);
	PopActiveSnapshot();
	relation_close(rel, NoLock);
	relation_close(heap, NoLock);
}

/*
 * Calls a function with all keys on about so many pages of an index, which is locked.  The
 * pages are at equal distances.  Entries of deleted rows are among them.
 */
void
ttl_look_sample(const TtlIndex *index, int pages, TtlLookEntry entry, void *arg)
{
	Relation	rel = relation_open(index->indexrelid, NoLock);
	BlockNumber blocks = RelationGetNumberOfBlocks(rel);
	BlockNumber step = Max(1, blocks / pages);

	for (BlockNumber block = BTREE_METAPAGE + 1; block < blocks; block += step)
	{
		Buffer		buffer;
		Page		page;
		BTPageOpaque opaque;

		CHECK_FOR_INTERRUPTS();
		buffer = ReadBuffer(rel, block);
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		page = BufferGetPage(buffer);
		opaque = BTPageGetOpaque(page);
		if (PageIsNew(page) || !P_ISLEAF(opaque) || P_IGNORE(opaque))
		{
			UnlockReleaseBuffer(buffer);
			continue;
		}
		for (OffsetNumber i = P_FIRSTDATAKEY(opaque); i <= PageGetMaxOffsetNumber(page); i++)
		{
			ItemId		item = PageGetItemId(page, i);
			IndexTuple	tuple = (IndexTuple) PageGetItem(page, item);
			bool		isnull;
			Datum		datum = index_getattr(tuple, 1, RelationGetDescr(rel), &isnull);
			int64		key;
			uint64		rest;
			bool		is_date = !isnull && ttl_keytype_read(index->keytype, datum, &key, &rest);

			if (!ItemIdIsDead(item))
				entry(is_date ? &key : NULL,
					  BTreeTupleIsPosting(tuple) ? BTreeTupleGetNPosting(tuple) : 1, arg);
		}
		UnlockReleaseBuffer(buffer);
	}
	relation_close(rel, NoLock);
}

/* A day since 2000-01-01 as a key of this type. */
int64
ttl_look_day(Oid keytype, TtlUnit unit, int64 day)
{
	if (unit != TTL_UNIT_NONE)
		return ttl_keytype_bound(unit, day * USECS_PER_DAY);
	return keytype == DATEOID ? day : day * USECS_PER_DAY;
}

/*
 * The number of rows or entries at the last ANALYZE, or -1.  From 18 on, owners can write any
 * statistics, also NaN and lists of different lengths.
 */
static double
known_tuples(Oid relid)
{
	FormData_pg_class form;
	double		tuples = ttl_catalog_class(relid, &form) ? form.reltuples : -1;

	return tuples >= 0 && tuples <= MAX_TUPLES ? tuples : -1;
}

/* About how many rows are in a table, which is locked?  -1 if that is unknown. */
double
ttl_look_rows(Oid relid)
{
	Relation	rel = relation_open(relid, NoLock);
	bool		is_empty = RelationGetNumberOfBlocks(rel) == 0;

	relation_close(rel, NoLock);
	return is_empty ? 0 : known_tuples(relid);
}

/* Reads what is known of the key of an index, whose table is locked; false if nothing is. */
bool
ttl_look_estimate(const TtlIndex *leaf, TtlEstimate *estimate)
{
	AttrNumber	attnum;
	Node	   *expression;
	HeapTuple	tuple;

	memset(estimate, 0, sizeof(*estimate));
	estimate->keytype = leaf->keytype;
	if (ttl_look_rows(leaf->relid) == 0)
		return true;
	estimate->entries = known_tuples(leaf->indexrelid);
	if (estimate->entries < 0 ||
		!ttl_key_read(leaf->indexrelid, &attnum, &expression))
		return false;
	tuple = SearchSysCache3(STATRELATTINH,
							ObjectIdGetDatum(expression ? leaf->indexrelid : leaf->relid),
							Int16GetDatum(expression ? 1 : attnum), BoolGetDatum(false));
	if (!HeapTupleIsValid(tuple))
		return false;
	estimate->nulls = ((Form_pg_statistic) GETSTRUCT(tuple))->stanullfrac;
	estimate->others = 1 - estimate->nulls;
	(void) get_attstatsslot(&estimate->common, tuple, STATISTIC_KIND_MCV, InvalidOid,
							ATTSTATSSLOT_VALUES | ATTSTATSSLOT_NUMBERS);
	(void) get_attstatsslot(&estimate->histogram, tuple, STATISTIC_KIND_HISTOGRAM,
							InvalidOid, ATTSTATSSLOT_VALUES);
	for (int i = 0; i < estimate->common.nnumbers; i++)
		estimate->others -= estimate->common.numbers[i];
	ReleaseSysCache(tuple);
	return true;
}

static int64
read_key(const TtlEstimate *estimate, Datum value)
{
	int64		key;
	uint64		rest;

	(void) ttl_keytype_read(estimate->keytype, value, &key, &rest);
	return key;
}

/* What share of the rows that a histogram is of have a key up to this one? */
static double
histogram_share(const TtlEstimate *estimate, int64 key)
{
	const Datum *values = estimate->histogram.values;
	int			bins = estimate->histogram.nvalues - 1;
	int			i = 0;
	double		lower;
	double		upper;

	if (bins < 1)
		return 0;
	while (i <= bins && read_key(estimate, values[i]) <= key)
		i++;
	if (i == 0 || i > bins)
		return i == 0 ? 0 : 1;
	lower = read_key(estimate, values[i - 1]);
	upper = read_key(estimate, values[i]);
	return (i - 1 + (key - lower) / (upper - lower)) / bins;
}

/* About what share of the entries has a key up to this one? */
double
ttl_look_estimate_share(const TtlEstimate *estimate, int64 key)
{
	const AttStatsSlot *common = &estimate->common;
	double		share = Max(estimate->others, 0) * histogram_share(estimate, key);

	for (int i = 0; i < Min(common->nvalues, common->nnumbers); i++)
	{
		if (read_key(estimate, common->values[i]) <= key)
			share += common->numbers[i];
	}
	return share > 0 ? Min(share, 1) : 0;
}

/* About how many rows have a key that is due at this time? */
double
ttl_look_estimate_due(const TtlEstimate *estimate, const TtlIndex *leaf, TimestampTz at)
{
	TtlCutoff	cutoff;

	ttl_cutoff_init(&cutoff, leaf, at);
	return estimate->entries *
		(ttl_look_estimate_share(estimate, cutoff.bound) -
		 (cutoff.unit != TTL_UNIT_NONE ? ttl_look_estimate_share(estimate, cutoff.least - 1) : 0));
}

/* Frees what was read: an index may have many partitions. */
void
ttl_look_estimate_free(TtlEstimate *estimate)
{
	free_attstatsslot(&estimate->common);
	free_attstatsslot(&estimate->histogram);
}
