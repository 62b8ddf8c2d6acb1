/*-------------------------------------------------------------------------
 *
 * look.c
 *	  What is due by an index, and what its keys are, for those who only look.
 *
 * The key is read from the index tuple, to which the filter was applied when it was written,
 * and of a row only the visibility is read.  No expression is evaluated, so no user's function
 * is called: a superuser can look at the indexes of everybody.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/expire/look.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "access/relation.h"
#include "access/tableam.h"
#include "access/xlog.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "definition/key.h"
#include "expire/look.h"
#include "ttl_index.h"

static void
count_due(Relation heap, Relation index, const TtlCutoff *cutoff, TtlLook *look)
{
	Snapshot	snapshot = GetActiveSnapshot();
	TupleTableSlot *slot = table_slot_create(heap, NULL);
	IndexFetchTableData *fetch = ttl_index_fetch_begin(heap);
	int64		tuples = 0;
	TtlIndexScan scan;
	const TtlIndexEntry *entry;

	ttl_index_scan_begin(&scan, heap, index, cutoff->keytype, cutoff->bound, &look->after);
	if (look->max_pages > 0)
		scan.max_pages = look->max_pages;
	while ((look->max_rows == 0 || look->count < look->max_rows) && !look->stopped &&
		   (entry = ttl_index_scan_next(&scan)) != NULL)
	{
		ItemPointerData tid = entry->tid;
		bool		call_again = false;

		if (!ttl_cutoff_is_due(cutoff, entry->key))
			continue;
		look->stopped = (look->max_tuples > 0 && tuples++ >= look->max_tuples) ||
			(look->until != 0 && GetCurrentTimestamp() >= look->until);
		if (!look->stopped &&
			table_index_fetch_tuple(fetch, &tid, snapshot, slot, &call_again, NULL) &&
			look->count++ == 0)
			look->oldest = ttl_cutoff_instant(cutoff, entry->key);
	}
	if (look->max_rows == 0 || look->count < look->max_rows)
		look->stopped = look->stopped || !ttl_index_scan_is_over(&scan);
	ttl_index_scan_end(&scan);
	ExecClearTuple(slot);
	table_index_fetch_end(fetch);
	ExecDropSingleTupleTableSlot(slot);
}

/*
 * Counts the rows that are due by an index at this clock reading.  The caller has locked the
 * table and the index, and has checked that its user may look at them.
 */
void
ttl_look_at(const TtlIndex *index, TimestampTz at, TtlLook *look)
{
	Relation	heap = try_relation_open(index->relid, NoLock);
	Relation	rel = try_relation_open(index->indexrelid, NoLock);
	TtlCutoff	cutoff;

	look->count = 0;
	look->stopped = false;
	if (heap != NULL && rel != NULL)
	{
		/* in the words of the planner */
		if (RecoveryInProgress() && !RelationIsPermanent(heap))
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("cannot access temporary or unlogged relations during recovery")));
		ttl_cutoff_init(&cutoff, index, at);
		PushActiveSnapshot(GetTransactionSnapshot());
		count_due(heap, rel, &cutoff, look);
		PopActiveSnapshot();
	}
	if (rel != NULL)
		relation_close(rel, NoLock);
	if (heap != NULL)
		relation_close(heap, NoLock);
}

/* Passes on the keys of a leaf page, which is locked. */
static void
read_page(Relation index, Oid keytype, Page page, TtlLookEntry entry, void *arg)
{
	BTPageOpaque opaque = BTPageGetOpaque(page);

	if (!P_ISLEAF(opaque) || P_IGNORE(opaque))
		return;
	for (OffsetNumber i = P_FIRSTDATAKEY(opaque); i <= PageGetMaxOffsetNumber(page); i++)
	{
		ItemId		item = PageGetItemId(page, i);
		IndexTuple	tuple = (IndexTuple) PageGetItem(page, item);
		bool		isnull;
		Datum		datum = index_getattr(tuple, 1, RelationGetDescr(index), &isnull);
		int64		key = isnull ? 0 : ttl_index_scan_key(keytype, datum);

		if (!ItemIdIsDead(item))
			entry(isnull ? NULL : &key,
				  BTreeTupleIsPosting(tuple) ? BTreeTupleGetNPosting(tuple) : 1, arg);
	}
}

/*
 * Passes on all keys on about so many pages of an index, which is locked.  The pages are at
 * equal distances.  Entries of deleted rows are among them.
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

		CHECK_FOR_INTERRUPTS();
		buffer = ReadBuffer(rel, block);
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		if (!PageIsNew(BufferGetPage(buffer)))
			read_page(rel, index->keytype, BufferGetPage(buffer), entry, arg);
		UnlockReleaseBuffer(buffer);
	}
	relation_close(rel, NoLock);
}
