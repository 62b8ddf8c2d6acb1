/*-------------------------------------------------------------------------
 *
 * index_scan.c
 *	  The entries of a TTL index, oldest first, from any place on.
 *
 * A pass deletes in many transactions, so it needs to go on where the last one
 * ended: at a key and a tuple id.  An index scan can begin at a key only.  From
 * there it walks all the equal ones again, and rows loaded together often carry
 * the same date by the hundred thousand.  But the tree is ordered by key and
 * tuple id, and its own search goes down to both.  So the descent is nbtree's,
 * and the walk from leaf to leaf is ours: a page at a time, each locked only
 * while its entries are copied, as an index scan does it.
 *
 * The heap is not looked at here: an entry may well be that of a dead row.  Nor
 * are entries marked dead; the one who finds a row gone is not on the page
 * anymore.
 *
 * A descending index is read backward, so that the oldest come first there too.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/expire/index_scan.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/nbtree.h"
#include "access/xact.h"
#include "catalog/pg_index.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/bufmgr.h"
#include "utils/date.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "expire/index_scan.h"
#include "ttl_index.h"

Datum
ttl_index_scan_datum(Oid keytype, int64 key)
{
	return keytype == DATEOID ? DateADTGetDatum((DateADT) key) :
		TimestampTzGetDatum(key);
}

int64
ttl_index_scan_key(Oid keytype, Datum datum)
{
	return keytype == DATEOID ? (int64) DatumGetDateADT(datum) :
		(int64) DatumGetTimestampTz(datum);
}

int64
ttl_index_scan_least_key(Oid keytype)
{
	return keytype == DATEOID ? DATEVAL_NOBEGIN : DT_NOBEGIN;
}

/* Does the entry come after the place, in the direction of the walk? */
static bool
is_after(const TtlIndexScan *walk, int64 key, ItemPointer tid)
{
	ItemPointerData last;
	int			order;

	if (!walk->after.set || key > walk->after.key)
		return true;
	if (key < walk->after.key)
		return false;
	last = walk->after.tid;
	order = ItemPointerCompare(tid, &last);
	return walk->backward ? order < 0 : order > 0;
}

/*
 * Goes down to the leaf on which the entries after the place begin, or all but
 * those with a NULL key where there is no place.  Returns it pinned and locked;
 * no buffer where the index is empty.
 */
static Buffer
descend(TtlIndexScan *walk)
{
	BTScanInsert skey = _bt_mkscankey(walk->index, NULL);
	int64		start = walk->after.set ? walk->after.key :
	ttl_index_scan_least_key(walk->keytype);
	Buffer		buffer;

	/* before version 4 of the tree equal keys are in no order */
	if (!skey->heapkeyspace)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" has the format of PostgreSQL 11 or earlier",
						RelationGetRelationName(walk->index)),
				 errhint("REINDEX it.")));
	skey->keysz = 1;
	skey->anynullkeys = false;
	skey->scankeys[0].sk_flags &= ~SK_ISNULL;
	skey->scankeys[0].sk_argument = ttl_index_scan_datum(walk->keytype, start);
	if (walk->after.set)
		skey->scantid = &walk->after.tid;
	else
		skey->nextkey = walk->backward;
	pgstat_count_index_scan(walk->index);
	buffer = ttl_bt_search(walk->index, walk->heap, skey);
	pfree(skey);
	return buffer;
}

/* Takes over the entries of one index tuple; false where nothing more is due. */
static bool
read_tuple(TtlIndexScan *walk, IndexTuple tuple)
{
	int			ntids = BTreeTupleIsPosting(tuple) ? BTreeTupleGetNPosting(tuple) : 1;
	bool		isnull;
	int64		key;

	key = ttl_index_scan_key(walk->keytype,
							 index_getattr(tuple, 1, RelationGetDescr(walk->index),
										   &isnull));
	/* those with a NULL key are all before the others or all behind them */
	if (isnull)
		return walk->nulls_come_first;
	if (key > walk->bound)
		return false;
	for (int i = 0; i < ntids; i++)
	{
		ItemPointer tid = &tuple->t_tid;

		if (BTreeTupleIsPosting(tuple))
			tid = BTreeTupleGetPostingN(tuple,
										walk->backward ? ntids - 1 - i : i);
		if (!is_after(walk, key, tid))
			continue;
		walk->entries[walk->count].key = key;
		walk->entries[walk->count].tid = *tid;
		walk->count++;
	}
	return true;
}

/* Key and tuple id of an entry; false where the key is NULL. */
static bool
read_place(const TtlIndexScan *walk, IndexTuple tuple, TtlScanPosition *place)
{
	bool		isnull;
	Datum		key = index_getattr(tuple, 1, RelationGetDescr(walk->index), &isnull);

	if (isnull)
		return false;
	place->set = true;
	place->key = ttl_index_scan_key(walk->keytype, key);
	place->tid = walk->backward ? *BTreeTupleGetHeapTID(tuple) :
		*BTreeTupleGetMaxHeapTID(tuple);
	return true;
}

/*
 * Goes behind all entries of a leaf that need not be looked at: nothing was changed
 * there since, and no key of it is in the range.
 */
static bool
skip_leaf(TtlIndexScan *walk, Buffer buffer, IndexTuple nearest, IndexTuple farthest)
{
	TtlScanPosition near = {.key = PG_INT64_MIN};	/* where they are NULL */
	TtlScanPosition far = {.key = PG_INT64_MAX};

	(void) read_place(walk, nearest, &near);
	if (XLogRecPtrIsInvalid(walk->since) ||
		BufferGetLSNAtomic(buffer) > walk->since ||
		(!read_place(walk, farthest, &far) && walk->nulls_come_first) ||
		(walk->again.set && near.key <= walk->again.last &&
		 far.key >= walk->again.first))
		return false;
	if (far.key > walk->bound)
		walk->over = true;
	else
		walk->after = far;
	return true;
}

/* Copies the entries of a leaf; notes which one is next. */
static void
read_leaf(TtlIndexScan *walk, Buffer buffer)
{
	Page		page = BufferGetPage(buffer);
	BTPageOpaque opaque = BTPageGetOpaque(page);
	OffsetNumber first = P_FIRSTDATAKEY(opaque);
	OffsetNumber last = PageGetMaxOffsetNumber(page);
	IndexTuple	nearest;
	IndexTuple	farthest;
	TtlScanPosition end;

	walk->block = BufferGetBlockNumber(buffer);
	walk->next_block = walk->backward ? opaque->btpo_prev : opaque->btpo_next;
	walk->over = walk->next_block == P_NONE;
	walk->position = walk->count = 0;
	if (P_IGNORE(opaque) || last < first)
		return;
	walk->pages++;
	nearest = (IndexTuple) PageGetItem(page, PageGetItemId(page, walk->backward ? last : first));
	farthest = (IndexTuple) PageGetItem(page, PageGetItemId(page, walk->backward ? first : last));
	if (skip_leaf(walk, buffer, nearest, farthest))
		return;
	for (int i = 0; i <= last - first; i++)
	{
		ItemId		item = PageGetItemId(page, walk->backward ? last - i : first + i);

		/*
		 * a hint that a primary gave does not hold for the snapshots of a
		 * standby
		 */
		if ((!ItemIdIsDead(item) || TransactionStartedDuringRecovery()) &&
			!read_tuple(walk, (IndexTuple) PageGetItem(page, item)))
		{
			walk->over = true;
			break;
		}
	}
	/* so that a walk which is interrupted goes on behind the leaf */
	if (walk->count == 0 && !walk->over && read_place(walk, farthest, &end) &&
		end.key <= walk->bound)
		walk->after = end;
	pgstat_count_index_tuples(walk->index, walk->count);
}

/*
 * Returns the next leaf to read, pinned and locked.  To the left, the sibling can
 * have been split or deleted since its number was read: then the search begins
 * anew at the last entry.
 */
static Buffer
next_leaf(TtlIndexScan *walk)
{
	Buffer		buffer;
	BTPageOpaque opaque;

	if (walk->block == InvalidBlockNumber)
		return descend(walk);
	buffer = _bt_getbuf(walk->index, walk->next_block, BT_READ);
	if (!walk->backward)
		return buffer;
	opaque = BTPageGetOpaque(BufferGetPage(buffer));
	if (!P_ISDELETED(opaque) && opaque->btpo_next == walk->block)
		return buffer;
	_bt_relbuf(walk->index, buffer);
	return descend(walk);
}

/* Begins a walk over what is not later than the bound. */
void
ttl_index_scan_begin(TtlIndexScan *walk, Relation heap, Relation index, Oid keytype,
					 int64 bound, const TtlScanPosition *after)
{
	walk->heap = heap;
	walk->index = index;
	walk->keytype = keytype;
	walk->bound = bound;
	walk->backward = (index->rd_indoption[0] & INDOPTION_DESC) != 0;
	walk->nulls_come_first = walk->backward !=
		((index->rd_indoption[0] & INDOPTION_NULLS_FIRST) != 0);
	walk->after = *after;
	walk->block = InvalidBlockNumber;
	walk->over = false;
	walk->since = InvalidXLogRecPtr;
	walk->again.set = false;
	walk->pages = 0;
	walk->max_pages = PG_INT64_MAX;
	walk->position = walk->count = 0;
	walk->entries = palloc(sizeof(TtlIndexEntry) * MaxTIDsPerBTreePage);
}

/*
 * Returns the next entry, valid until the next call; NULL at the end, and from
 * then on, or where so many leaves were read.
 */
const TtlIndexEntry *
ttl_index_scan_next(TtlIndexScan *walk)
{
	const TtlIndexEntry *entry;

	while (walk->position == walk->count)
	{
		Buffer		buffer;

		if (walk->over || walk->pages >= walk->max_pages)
			return NULL;
		CHECK_FOR_INTERRUPTS();
		buffer = next_leaf(walk);
		if (!BufferIsValid(buffer))
		{
			walk->over = true;
			return NULL;
		}
		read_leaf(walk, buffer);
		_bt_relbuf(walk->index, buffer);
	}
	entry = &walk->entries[walk->position++];
	walk->after.set = true;
	walk->after.key = entry->key;
	walk->after.tid = entry->tid;
	return entry;
}

/* Has it returned all there is? */
bool
ttl_index_scan_is_over(const TtlIndexScan *walk)
{
	return walk->over && walk->position == walk->count;
}

void
ttl_index_scan_end(TtlIndexScan *walk)
{
	pfree(walk->entries);
}
