/*-------------------------------------------------------------------------
 *
 * index_scan.c
 *	  The entries of a TTL index, oldest first, from any position on.
 *
 * A batch must begin at a key and a tuple ID, because many rows can have the same key.
 * index_beginscan() can begin only at a key.  So this file uses nbtree below its interface:
 * since format version 4 it is ordered by key and tuple ID, and _bt_search() descends to both
 * (see ttl_bt_search() in compat.h).  src/expire/README lists what the code relies on.
 *
 * As in core, a page is locked only while its entries are copied.  The pin is released with
 * the lock, so vacuum may remove a row and reuse its tuple ID: a caller that fetches the row
 * must check it.  Entries of dead rows are returned, and are not marked as killed, because the
 * page is no longer pinned when a row is found dead.  A descending index is scanned backward,
 * oldest entries first.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "catalog/pg_index.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"

#include "compat.h"
#include "definition/key.h"
#include "expire/look.h"
#include "ttl_index.h"

/* The position before all entries of a key. */
TtlScanPosition
ttl_index_scan_from(int64 key)
{
	TtlScanPosition position = {.key = key - 1,.set = true};

	ItemPointerSet(&position.tid, 0, FirstOffsetNumber);
	return position;
}

/* The position after the entries of -infinity.  No date can have the next key. */
TtlScanPosition
ttl_index_scan_finite(Oid keytype)
{
	return ttl_index_scan_from(ttl_keytype_least(keytype) + 2);
}

/* Does the entry come after the position, in the direction of the scan? */
static bool
is_after(const TtlIndexScan *scan, int64 key, uint64 rest, ItemPointer tid)
{
	ItemPointerData last;
	int			order;

	if (!scan->after.set || key > scan->after.key)
		return true;
	if (key < scan->after.key)
		return false;
	if (rest != scan->after.rest)
		return rest > scan->after.rest;
	last = scan->after.tid;
	order = ItemPointerCompare(tid, &last);
	return scan->backward ? order < 0 : order > 0;
}

/*
 * Descends to the leaf page after the position, or to the first non-NULL key.  Returns it
 * pinned and locked, or an invalid buffer if the index is empty.
 */
static Buffer
descend(TtlIndexScan *scan)
{
	BTScanInsert skey = _bt_mkscankey(scan->index, NULL);
	Buffer		buffer;

	/* before version 4 of the format, equal keys are in no order */
	if (!skey->heapkeyspace)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" has the format of PostgreSQL 11 or earlier",
						RelationGetRelationName(scan->index)),
				 errhint("REINDEX INDEX %s;",
						 ttl_name_qualified(RelationGetRelid(scan->index)))));
	skey->keysz = 1;
	skey->anynullkeys = false;
	skey->scankeys[0].sk_flags &= ~SK_ISNULL;
	/* a scan of numbers begins after 0 */
	skey->scankeys[0].sk_argument = scan->after.set ?
		ttl_keytype_datum(scan->keytype, scan->after.key, scan->after.rest) :
		ttl_keytype_datum(scan->keytype, ttl_keytype_least(scan->keytype), 1);
	if (scan->after.set)
		skey->scantid = &scan->after.tid;
	else
		skey->nextkey = scan->backward;
	pgstat_count_index_scan(scan->index);
	buffer = ttl_bt_search(scan->index, scan->heap, skey);
	pfree(skey);
	return buffer;
}

/* Copies the entries of one index tuple; false if its key lies beyond the bound. */
static bool
read_tuple(TtlIndexScan *scan, IndexTuple tuple)
{
	int			ntids = BTreeTupleIsPosting(tuple) ? BTreeTupleGetNPosting(tuple) : 1;
	bool		isnull;
	Datum		datum = index_getattr(tuple, 1, RelationGetDescr(scan->index), &isnull);
	bool		is_date;
	int64		key;
	uint64		rest;

	/* NULL keys come either all before the others or all after them */
	if (isnull)
		return scan->nulls_come_first;
	is_date = ttl_keytype_read(scan->keytype, datum, &key, &rest);
	if (key > scan->bound)
		return false;
	if (!is_date)
		return true;
	for (int i = 0; i < ntids; i++)
	{
		ItemPointer tid = &tuple->t_tid;

		if (BTreeTupleIsPosting(tuple))
			tid = BTreeTupleGetPostingN(tuple,
										scan->backward ? ntids - 1 - i : i);
		if (!is_after(scan, key, rest, tid))
			continue;
		scan->entries[scan->count++] = (TtlScanPosition) {
			.key = key,.rest = rest,.tid = *tid,.set = true
		};
	}
	return true;
}

/* Reads the key and the last tuple ID of an index tuple; false if the key is NULL. */
static bool
read_position(const TtlIndexScan *scan, IndexTuple tuple, TtlScanPosition *position)
{
	bool		isnull;
	Datum		key = index_getattr(tuple, 1, RelationGetDescr(scan->index), &isnull);

	if (isnull)
		return false;
	position->set = true;
	(void) ttl_keytype_read(scan->keytype, key, &position->key, &position->rest);
	position->tid = scan->backward ? *BTreeTupleGetHeapTID(tuple) :
		*BTreeTupleGetMaxHeapTID(tuple);
	return true;
}

/*
 * Skips a leaf page whose entries need not be looked at: it has not changed since the LSN
 * that the caller gave, and none of its keys is in the range that is to be read again.
 */
static bool
skip_leaf(TtlIndexScan *scan, Buffer buffer, IndexTuple nearest, IndexTuple farthest)
{
	TtlScanPosition near = {.key = PG_INT64_MIN};	/* if the keys are NULL */
	TtlScanPosition far = {.key = PG_INT64_MAX};

	(void) read_position(scan, nearest, &near);
	if (XLogRecPtrIsInvalid(scan->unchanged_since) ||
		BufferGetLSNAtomic(buffer) > scan->unchanged_since ||
		(!read_position(scan, farthest, &far) && scan->nulls_come_first) ||
		(scan->reread.set && near.key <= scan->reread.last &&
		 far.key >= scan->reread.first))
		return false;
	if (far.key > scan->bound)
		scan->finished = true;
	else
		scan->after = far;
	return true;
}

/* Copies the entries of a leaf page, and notes which page is next. */
static void
read_leaf(TtlIndexScan *scan, Buffer buffer)
{
	Page		page = BufferGetPage(buffer);
	BTPageOpaque opaque = BTPageGetOpaque(page);
	OffsetNumber first = P_FIRSTDATAKEY(opaque);
	OffsetNumber last = PageGetMaxOffsetNumber(page);
	IndexTuple	nearest;
	IndexTuple	farthest;
	TtlScanPosition end;

	scan->block = BufferGetBlockNumber(buffer);
	scan->next_block = scan->backward ? opaque->btpo_prev : opaque->btpo_next;
	scan->finished = scan->next_block == P_NONE;
	scan->next = scan->count = 0;
	if (P_IGNORE(opaque) || last < first)
		return;
	scan->pages++;
	nearest = (IndexTuple) PageGetItem(page, PageGetItemId(page, scan->backward ? last : first));
	farthest = (IndexTuple) PageGetItem(page, PageGetItemId(page, scan->backward ? first : last));
	if (skip_leaf(scan, buffer, nearest, farthest))
		return;
	for (int i = 0; i <= last - first; i++)
	{
		ItemId		item = PageGetItemId(page, scan->backward ? last - i : first + i);

		/* On a standby, an entry marked as dead may still be visible to a snapshot. */
		if ((!ItemIdIsDead(item) || TransactionStartedDuringRecovery()) &&
			!read_tuple(scan, (IndexTuple) PageGetItem(page, item)))
		{
			scan->finished = true;
			break;
		}
	}
	/* a scan that is interrupted here continues after this page */
	if (scan->count == 0 && !scan->finished && read_position(scan, farthest, &end) &&
		end.key <= scan->bound)
		scan->after = end;
	pgstat_count_index_tuples(scan->index, scan->count);
}

/*
 * Returns the next leaf page, pinned and locked.  If the left sibling was split or deleted, it
 * descends again to the last entry that it returned.
 */
static Buffer
next_leaf(TtlIndexScan *scan)
{
	Buffer		buffer;
	BTPageOpaque opaque;

	if (scan->block == InvalidBlockNumber)
		return descend(scan);
	buffer = _bt_getbuf(scan->index, scan->next_block, BT_READ);
	if (!scan->backward)
		return buffer;
	opaque = BTPageGetOpaque(BufferGetPage(buffer));
	if (!P_ISDELETED(opaque) && opaque->btpo_next == scan->block)
		return buffer;
	_bt_relbuf(scan->index, buffer);
	return descend(scan);
}

/* Begins a scan of the entries after a position whose keys are not later than the bound. */
void
ttl_index_scan_begin(TtlIndexScan *scan, Relation heap, Relation index, Oid keytype,
					 int64 bound, const TtlScanPosition *after)
{
	*scan = (TtlIndexScan) {
		.heap = heap,.index = index,.keytype = keytype,.bound = bound,.after = *after,
		.block = InvalidBlockNumber,.max_pages = PG_INT64_MAX
	};
	scan->backward = (index->rd_indoption[0] & INDOPTION_DESC) != 0;
	scan->nulls_come_first = scan->backward !=
		((index->rd_indoption[0] & INDOPTION_NULLS_FIRST) != 0);
	scan->entries = palloc(sizeof(TtlScanPosition) * MaxTIDsPerBTreePage);
}

/* Returns the next entry, valid until the next call; NULL at the end or after max_pages. */
const TtlScanPosition *
ttl_index_scan_next(TtlIndexScan *scan)
{
	while (scan->next == scan->count)
	{
		Buffer		buffer;

		if (scan->finished || scan->pages >= scan->max_pages)
			return NULL;
		CHECK_FOR_INTERRUPTS();
		buffer = next_leaf(scan);
		if (!BufferIsValid(buffer))
		{
			scan->finished = true;
			return NULL;
		}
		read_leaf(scan, buffer);
		_bt_relbuf(scan->index, buffer);
	}
	scan->after = scan->entries[scan->next];
	return &scan->entries[scan->next++];
}

/* Has the scan returned all entries up to its bound? */
bool
ttl_index_scan_is_over(const TtlIndexScan *scan)
{
	return scan->finished && scan->next == scan->count;
}

void
ttl_index_scan_end(TtlIndexScan *scan)
{
	pfree(scan->entries);
}
