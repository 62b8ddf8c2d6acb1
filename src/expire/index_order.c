/*-------------------------------------------------------------------------
 *
 * index_order.c
 *	  The rows of a batch in the order of the index.
 *
 * Due entries are read, oldest first (index_scan.c), from where the last batch ended
 * (cursor.c), and sorted by block.  Then the rows are fetched, a block at a time if many are
 * in it.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/spccache.h"

#include "compat.h"
#include "expire/expirer.h"
#include "ttl_index.h"

/* Batches of fewer entries are too small to judge the order of the heap by. */
#define ORDER_MIN_ENTRIES 1000

/* A batch that catches up may skip or read so many leaf pages. */
#define CATCH_UP_PAGES 2000

/* A block with so many entries is read as a whole. */
#define DENSE_BLOCK 16

/* Prefetching stops if the first so many blocks were all in the cache. */
#define PREFETCH_TRIAL 32

/* Makes a tuple ID a number: it is compared for each row, and more than once. */
static inline uint64
tid_number(const ItemPointerData *tid)
{
	return (uint64) ItemPointerGetBlockNumberNoCheck(tid) << 16 |
		ItemPointerGetOffsetNumberNoCheck(tid);
}

static int
compare_tids(const void *a, const void *b)
{
	uint64		x = tid_number(&((const TtlScanPosition *) a)->tid);
	uint64		y = tid_number(&((const TtlScanPosition *) b)->tid);

	return x < y ? -1 : x > y;
}

/*
 * Prefetching asks for blocks ahead of their use, as far ahead as the table's tablespace
 * is set to, until it turns out that all of them are in the cache.
 */
typedef struct Prefetch
{
	Relation	heap;
	const TtlScanPosition *entries;
	int			count;
	int			next;
	int			distance;		/* in entries */
	int			tried;
	int			cached;
	BlockNumber block;
} Prefetch;

static void
prefetch_beyond(Prefetch *p, int current)
{
	if (p->tried >= PREFETCH_TRIAL && p->cached == p->tried)
		return;
	for (p->next = Max(p->next, current);
		 p->next < p->count && p->next < current + p->distance; p->next++)
	{
		BlockNumber block = ItemPointerGetBlockNumber(&p->entries[p->next].tid);
		bool		follows = block == p->block || block == p->block + 1;

		/* the kernel reads adjacent blocks ahead by itself */
		p->block = block;
		if (follows)
			continue;
		p->tried++;
		if (BufferIsValid(PrefetchBuffer(p->heap, MAIN_FORKNUM, block).recent_buffer))
			p->cached++;
	}
}

/* Takes the row in the slot.  The entry may point to an older version of it. */
static void
take_entry(TtlExpirer *x, const TtlScanPosition *entry)
{
	/* the previous round saw it, and could not delete it */
	if (ttl_cursor_judges_by_age(&x->batch->cursor, &entry->tid) &&
		ttl_cursor_judges_by_age(&x->batch->cursor, &x->slot->tts_tid) &&
		ttl_row_is_older(x, x->batch->cursor.seen.xmin))
		return;
	x->batch->live++;
	x->entry = entry->tid;
	if (!ttl_row_is_due(x))
		ereport(ERROR,
				(errcode(ERRCODE_INDEX_CORRUPTED),
				 errmsg("TTL index \"%s\" holds a row as due that is not",
						RelationGetRelationName(x->index)),
				 errdetail("The index is damaged, or a function in it is not immutable."),
				 errhint("REINDEX INDEX %s;", ttl_name_qualified(RelationGetRelid(x->index)))));
	ttl_row_delete(x);
}

/* How many of the entries, which are sorted, point to the same block as the first? */
static int
block_group(const TtlScanPosition *entries, int count)
{
	BlockNumber block = ItemPointerGetBlockNumber(&entries[0].tid);
	int			group = 1;

	while (group < count &&
		   ItemPointerGetBlockNumber(&entries[group].tid) == block)
		group++;
	return group;
}

/* How many point to the same block, or to adjacent ones with many entries each? */
static int
dense_run(const TtlScanPosition *entries, int count)
{
	int			run = 0;
	int			group = block_group(entries, count);

	while (group >= DENSE_BLOCK)
	{
		BlockNumber block = ItemPointerGetBlockNumber(&entries[run].tid);

		run += group;
		if (run == count ||
			ItemPointerGetBlockNumber(&entries[run].tid) != block + 1)
			return run;
		group = block_group(entries + run, count - run);
	}
	return run > 0 ? run : group;
}

/*
 * Takes a dense run by a scan, which reads each block once.  Moves the entries that it did not
 * meet to the front (dead rows, later HOT tuples) and returns their number.
 */
static int
take_run(TtlExpirer *x, TtlScanPosition *entries, int count)
{
	int			unmet = 0;
	int			next = 0;

	ttl_row_scan(x, &entries[0].tid, &entries[count - 1].tid);
	while (table_scan_getnextslot_tidrange(x->scan, ForwardScanDirection, x->slot))
	{
		uint64		tid = tid_number(&x->slot->tts_tid);

		CHECK_FOR_INTERRUPTS();
		while (next < count && tid_number(&entries[next].tid) < tid)
			entries[unmet++] = entries[next++];
		if (next == count || tid_number(&entries[next].tid) != tid)
			continue;
		if (!ttl_cursor_has_failed(&x->batch->cursor, &entries[next].key, &x->slot->tts_tid))
			take_entry(x, &entries[next]);
		next++;
	}
	while (next < count)
		entries[unmet++] = entries[next++];
	return unmet;
}

/*
 * Fetches the row of an entry; false if the snapshot sees none.  If its transaction is running
 * or just committed, its key must be read again.  So the current row is fetched, and checked
 * against the snapshot afterwards: for most entries of deleted rows one fetch is enough.
 */
static bool
fetch_row(TtlExpirer *x, IndexFetchTableData *fetch, const TtlScanPosition *entry)
{
	SnapshotData dirty;
	ItemPointerData tid = entry->tid;
	bool		call_again = false;

	InitDirtySnapshot(dirty);
	if (!table_index_fetch_tuple(fetch, &tid, &dirty, x->slot, &call_again,
								 NULL))
		return false;
	if (table_tuple_satisfies_snapshot(x->heap, x->slot, x->snapshot))
		return true;
	ttl_cursor_reread(&x->batch->cursor, entry->key, &entry->tid);
	return false;
}

/* Takes the due rows of the entries.  Returns in how many blocks they lie. */
static int
take_entries(TtlExpirer *x, TtlScanPosition *entries, int count)
{
	IndexFetchTableData *fetch = ttl_index_fetch_begin(x->heap);
	int			single = 0;		/* the first so many are looked up one by one */
	int			blocks = 0;
	int			run;
	Prefetch	prefetch = {
		.heap = x->heap,
		.entries = entries,
		.distance = get_tablespace_maintenance_io_concurrency(x->heap->rd_rel->reltablespace),
		.block = InvalidBlockNumber /* block 0 follows this one */
	};

	qsort(entries, count, sizeof(TtlScanPosition), compare_tids);
	for (int i = 0; i < count; i += run)
	{
		int			unmet = run = dense_run(entries + i, count - i);

		/* a group that is not dense lies in one block */
		blocks += 1 + ItemPointerGetBlockNumber(&entries[i + run - 1].tid) -
			ItemPointerGetBlockNumber(&entries[i].tid);
		if (run >= DENSE_BLOCK)
			unmet = take_run(x, entries + i, run);
		memmove(entries + single, entries + i, unmet * sizeof(TtlScanPosition));
		single += unmet;
	}

	prefetch.count = single;
	for (int i = 0; i < single; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (ttl_cursor_has_failed(&x->batch->cursor, &entries[i].key, &entries[i].tid))
			continue;
		prefetch_beyond(&prefetch, i);
		if (fetch_row(x, fetch, &entries[i]))
			take_entry(x, &entries[i]);
	}
	ExecClearTuple(x->slot);
	table_index_fetch_end(fetch);
	return blocks;
}

/*
 * Takes entries from the cursor on.  Many of them may be of deleted rows, so it reads as many
 * at a time as rows are wanted, until half of these were found, or max_entries entries were
 * read.
 */
void
ttl_index_order_take(TtlExpirer *x, int max_docs, int64 max_entries)
{
	TtlBatch   *batch = x->batch;
	TtlCursor  *cursor = &batch->cursor;
	bool		catches_up = cursor->phase == TTL_CATCH_UP;
	TtlScanPosition *position = catches_up ? &cursor->catch_up : &cursor->forward;
	const TtlCutoff *cutoff = x->cutoff;
	int64		bound = cutoff->bound;
	TtlScanPosition *entries = palloc(sizeof(TtlScanPosition) * max_docs);
	const TtlScanPosition *entry;
	TtlIndexScan scan;
	int			wanted;
	int			count;
	int			blocks;

	/* also in CATCH UP, whose round would else count as one up to that key */
	if (cursor->forward.key > bound)
		ttl_cursor_pull_back(cursor, cutoff->sure);
	if (catches_up)
		bound = Min(bound, cursor->forward.key);
	ttl_index_scan_begin(&scan, x->heap, x->index, cutoff->keytype, bound, position);
	if (catches_up)
		scan.max_pages = CATCH_UP_PAGES;
	if (catches_up && !cursor->thorough)
	{
		scan.unchanged_since = cursor->seen.lsn;
		scan.reread = cursor->reread.keys;
	}

	do
	{
		/* near a change of summer time, not all entries up to the bound are due */
		wanted = max_docs - batch->live;
		count = 0;
		while (count < wanted && (entry = ttl_index_scan_next(&scan)) != NULL)
		{
			if (ttl_cutoff_is_due(cutoff, entry->key))
				entries[count++] = *entry;
			else
				ttl_cursor_reread(cursor, entry->key, &entry->tid);
		}
		batch->candidates += count;
		*position = scan.after;
		blocks = take_entries(x, entries, count);
	} while (count == wanted && batch->live <= max_docs / 2 && batch->candidates < max_entries);
	batch->exhausted = count < wanted && ttl_index_scan_is_over(&scan);
	batch->pages = scan.pages;
	ttl_index_scan_end(&scan);

	if (count >= ORDER_MIN_ENTRIES && !cursor->order_decided && cursor->phase == TTL_FORWARD)
	{
		cursor->order_decided = true;
		if (ttl_block_order_is_better(x, blocks, count))
		{
			cursor->phase = TTL_BLOCK_ORDER;
			batch->exhausted = false;
			position->set = false;
			/* what becomes due in the meantime is found by the index afterwards */
			position->key = cutoff->sure;
		}
	}
}
