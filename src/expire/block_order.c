/*-------------------------------------------------------------------------
 *
 * block_order.c
 *	  The rows of a batch in the order of the heap.
 *
 * If most of a table is due and the heap does not follow the key, every batch in index order
 * would read nearly every block.  Then the pass scans the heap block by block, with the same
 * checks.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"

#include "expire/expirer.h"

/* Entries are scattered if they lie in so many times the blocks that they would fill. */
#define ORDER_SCATTERED 4

/* How many blocks are sampled, and what part of their rows must be due. */
#define ORDER_SAMPLE_BLOCKS 32
#define ORDER_MOST 0.4

/* So many blocks are scanned at a time. */
#define BLOCKS_AT_A_TIME 32

/* A batch of so many rows or more ends at the end of a block. */
#define WHOLE_BLOCKS 100

/*
 * Is a heap scan cheaper?  Yes if a batch's entries are in far more blocks than its rows would
 * fill, and if much is due, by a sample of the table's blocks.
 */
bool
ttl_block_order_is_better(TtlExpirer *x, int blocks, int count)
{
	int64		sampled = 0;
	int64		due = 0;
	BlockNumber nblocks;
	double		rows;
	double		all_visible;

	table_relation_estimate_size(x->heap, NULL, &nblocks, &rows, &all_visible);
	if (blocks < ORDER_SCATTERED * count * (nblocks / Max(rows, 1)))
		return false;
	for (int i = 0; i < ORDER_SAMPLE_BLOCKS; i++)
	{
		BlockNumber block = (uint64) nblocks * i / ORDER_SAMPLE_BLOCKS;
		ItemPointerData first;
		ItemPointerData last;

		ItemPointerSet(&first, block, FirstOffsetNumber);
		ItemPointerSet(&last, block, MaxOffsetNumber);
		ttl_row_scan(x, &first, &last);
		while (table_scan_getnextslot_tidrange(x->scan, ForwardScanDirection, x->slot))
		{
			sampled++;
			if (ttl_row_is_due(x))
				due++;
		}
	}
	return sampled > 0 && (double) due / sampled >= ORDER_MOST;
}

/* Has a batch in block order done enough? */
static bool
is_full(const TtlBatch *batch, int max_docs, int64 max_entries)
{
	return batch->live >= max_docs || batch->candidates >= max_entries;
}

/*
 * Takes rows of a scan until the batch is full; true at the end.  It continues to the end of
 * the block, because an update could move a row to before the position.  Only a batch of a few
 * rows ends at any row; then the whole index is read once more.
 */
static bool
take_rows_of_scan(TtlExpirer *x, int max_docs, int64 max_entries)
{
	TtlBatch   *batch = x->batch;
	TtlScanPosition *position = &batch->cursor.forward;

	while (table_scan_getnextslot_tidrange(x->scan, ForwardScanDirection, x->slot))
	{
		CHECK_FOR_INTERRUPTS();
		if (is_full(batch, max_docs, max_entries) &&
			ItemPointerGetBlockNumber(&x->slot->tts_tid) != ItemPointerGetBlockNumber(&position->tid))
			return false;
		batch->candidates++;
		position->set = true;
		position->tid = x->slot->tts_tid;
		batch->row = (TtlScanPosition) {.tid = position->tid};
		/* computing the key may be what failed */
		if (!ttl_cursor_has_failed(&x->batch->cursor, NULL, &position->tid) && ttl_row_is_due(x) &&
			!ttl_cursor_has_failed(&x->batch->cursor, &x->key, &position->tid))
		{
			batch->row.key = x->key;
			batch->row.set = true;
			batch->live++;
			x->entry = position->tid;
			ttl_row_delete(x);
		}
		if (max_docs < WHOLE_BLOCKS && is_full(batch, max_docs, max_entries))
		{
			batch->cursor.rows_remain = true;
			return false;
		}
	}
	return true;
}

/*
 * Looks at the next rows from the cursor on, until max_docs were due or max_entries were
 * looked at.  BLOCKS_AT_A_TIME blocks are read at a time.  Blocks without rows count like
 * rows, so that a batch ends also after many deletes.
 */
void
ttl_block_order_take(TtlExpirer *x, int max_docs, int64 max_entries)
{
	TtlBatch   *batch = x->batch;
	BlockNumber nblocks = RelationGetNumberOfBlocks(x->heap);
	TtlScanPosition *position = &batch->cursor.forward;
	ItemPointerData first;

	/* these rows need not be due: coll_mod() may have made the time longer */
	position->key = Min(position->key, x->cutoff->sure);
	ItemPointerSet(&first, 0, FirstOffsetNumber);
	if (position->set)
	{
		first = position->tid;
		ItemPointerInc(&first);
	}
	while (!is_full(batch, max_docs, max_entries) &&
		   ItemPointerGetBlockNumber(&first) < nblocks)
	{
		BlockNumber begin = ItemPointerGetBlockNumber(&first);
		BlockNumber end = begin + Min(nblocks - begin, BLOCKS_AT_A_TIME);
		int64		before = batch->candidates;
		ItemPointerData last;

		ItemPointerSet(&last, end - 1, MaxOffsetNumber);
		ttl_row_scan(x, &first, &last);
		if (!take_rows_of_scan(x, max_docs, max_entries))
			break;
		if (batch->candidates == before)
			batch->candidates += end - begin;
		position->set = true;
		position->tid = last;
		ItemPointerSet(&first, end, FirstOffsetNumber);
	}
	ExecClearTuple(x->slot);

	/*
	 * The snapshot does not see what transactions write that are running now,
	 * and they may run for long.
	 */
	if (x->snapshot->xcnt > 0)
		batch->cursor.rows_remain = true;
	if (ItemPointerGetBlockNumber(&first) >= nblocks)
	{
		batch->cursor.phase = TTL_FORWARD;
		ItemPointerSet(&position->tid, MaxBlockNumber, MaxOffsetNumber);
	}
}
