/*-------------------------------------------------------------------------
 *
 * batch.c
 *	  One batch of one index: collect, check, delete.
 *
 * A batch is one transaction's worth of deletes by one index.  monitor/visit.c calls
 * ttl_batch_lock() and ttl_batch_run() for it, in a transaction and a subtransaction
 * that it began; due/due.c calls ttl_batch_look(), which looks and deletes nothing.
 *
 * The index entries that are due are read (index_scan.c), oldest first, from where the
 * last batch ended (cursor.c), and sorted by block.  Then each row is fetched under
 * the batch's snapshot, a block at a time where many of the rows are in it, and is
 * checked once more, whatever the index said: its key must be due and the filter must
 * hold.  So a damaged index, or a tuple ID that has been used again, costs no row.
 *
 * A plain DELETE command for each batch would be simpler.  It would trust the index,
 * read again the entries of all rows that were deleted before, and wait for locked
 * rows.
 *
 * There are two ways to delete the rows that pass the check:
 *
 *	direct	Nothing is attached to DELETE.  The table access method deletes the row
 *			unless that needs waiting.  The deletion fails if somebody else holds the
 *			row or has changed it since.
 *	SQL		A trigger (foreign keys are triggers) or a rule is attached.  The rows are
 *			locked under the same condition, then DELETE FROM ONLY the table removes
 *			them, so that triggers and rules behave as for any DELETE.  The command
 *			repeats the expiry and the filter, because a trigger of the same batch can
 *			have changed another row of it.
 *
 * Both ways delete the very version that was found due, and count alike.
 *
 * Where most of a table is due and the heap does not follow the key, every batch would
 * touch nearly every block.  Then the rest of the pass goes over the heap instead,
 * block by block, with the same check.
 *
 * All of this runs as the table's owner (owner.c).  Core is used through its
 * interfaces for table access methods, for index expressions and for queries; of the
 * heap, the code relies on tuple IDs that are ordered by block, on how many rows are in
 * one, and on xmin.  Nothing here reads a setting, a counter or a clock.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/expire/batch.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/sysattr.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/catalog.h"
#include "catalog/index.h"
#include "catalog/pg_am.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_trigger.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "commands/trigger.h"
#include "executor/executor.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "nodes/makefuncs.h"
#include "rewrite/prs2lock.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/spccache.h"

#include "compat.h"
#include "definition/definition.h"
#include "definition/key.h"
#include "definition/option.h"
#include "expire/expire.h"
#include "expire/index_scan.h"
#include "expire/look.h"
#include "ttl_index.h"

/* A batch of so many entries says something about the order of the heap. */
#define ORDER_MIN_ENTRIES 1000

/* Entries are scattered if they lie in so many times the blocks that they would fill. */
#define ORDER_SCATTERED 4

/* How many blocks are sampled, and what part of their rows must be due. */
#define ORDER_SAMPLE_BLOCKS 32
#define ORDER_MOST 0.4

/* A batch that catches up may skip or read so many leaf pages. */
#define CATCH_UP_PAGES 2000

/* In block order, a batch looks after so many blocks how far it has come. */
#define BLOCKS_AT_A_TIME 32

/* Of so many rows or more, it ends at the end of a block. */
#define WHOLE_BLOCKS 100

/* A block with so many entries is read as a whole. */
#define DENSE_BLOCK 16

/* Prefetching stops if the first so many blocks were all in the cache. */
#define PREFETCH_TRIAL 32

/* The state of one batch while it runs. */
typedef struct Expirer
{
	Relation	heap;
	Relation	index;
	const TtlCutoff *cutoff;
	TransactionId pass_xid;		/* those before it are older than the pass */
	const TtlCursor *cursor;
	Snapshot	snapshot;
	TupleTableSlot *slot;		/* the row at hand */
	int64		key;			/* and its key */
	TableScanDesc run;			/* scan of blocks with many rows that are due */
	TtlIndexEntry *found;		/* if not NULL, rows are only looked for */
	int			nfound;
	bool		direct;
	Oid			root;			/* the TTL index to announce, invalid once
								 * done */
	/* to compute the key and the filter of a row */
	IndexInfo  *info;
	EState	   *estate;
	ExprState  *filter;
	/* the SQL way: locked rows */
	int			nrows;
	Datum	   *rows;
	TtlBatch   *batch;
} Expirer;

static bool
open_relations(Oid relid, Oid indexrelid, Expirer *x)
{
	x->heap = try_relation_open(relid, NoLock);
	if (x->heap == NULL)
		return false;
	x->index = try_relation_open(indexrelid, NoLock);
	if (x->index == NULL)
		relation_close(x->heap, NoLock);
	return x->index != NULL;
}

static void
close_relations(Expirer *x)
{
	relation_close(x->index, NoLock);
	relation_close(x->heap, NoLock);
}

/* Prepares to fetch rows under the active snapshot. */
static void
begin_rows(Expirer *x)
{
	x->snapshot = GetActiveSnapshot();
	x->slot = table_slot_create(x->heap, NULL);
}

/* Prepares to check them: this alone runs code that a user wrote. */
static void
begin_checks(Expirer *x)
{
	x->info = BuildIndexInfo(x->index);
	x->estate = CreateExecutorState();
	x->filter = ExecPrepareQual(x->info->ii_Predicate, x->estate);
}

static void
end_rows(Expirer *x)
{
	if (x->run != NULL)
		table_endscan(x->run);
	ExecDropSingleTupleTableSlot(x->slot);
	if (x->estate != NULL)
		FreeExecutorState(x->estate);
}

/* Computes the key of the row in the slot, which is a column or an expression. */
static Datum
row_key(Expirer *x, bool *isnull)
{
	AttrNumber	attnum = x->info->ii_IndexAttrNumbers[0];
	Datum		values[INDEX_MAX_KEYS];
	bool		isnulls[INDEX_MAX_KEYS];

	/* the common case is worth a short cut */
	if (attnum != 0)
		return slot_getattr(x->slot, attnum, isnull);
	FormIndexDatum(x->info, x->slot, x->estate, values, isnulls);
	*isnull = isnulls[0];
	return values[0];
}

/*
 * Is the row in the slot due, by its own key and the filter?  The filter comes first,
 * as when the index is built: in block order there are rows outside of it, and
 * computing the key of such a row may well raise an error.
 */
static bool
row_is_due(Expirer *x)
{
	ExprContext *econtext = GetPerTupleExprContext(x->estate);
	Datum		key;
	bool		isnull;

	ResetExprContext(econtext);
	econtext->ecxt_scantuple = x->slot;
	if (!ExecQual(x->filter, econtext))
		return false;
	key = row_key(x, &isnull);
	if (isnull)
		return false;
	x->key = ttl_index_scan_key(x->cutoff->keytype, key);
	return ttl_cutoff_is_due(x->cutoff, x->key);
}

/* Was the row in the slot written by a transaction older than this one? */
static bool
is_older(Expirer *x, TransactionId xid)
{
	bool		isnull;
	Datum		xmin = slot_getsysattr(x->slot, MinTransactionIdAttributeNumber,
									   &isnull);

	return TransactionIdPrecedes(DatumGetTransactionId(xmin), xid);
}

/* Says in the WAL, before the first row of the batch, which TTL index deletes it. */
static void
announce_once(Expirer *x)
{
	if (OidIsValid(x->root) && RelationIsLogicallyLogged(x->heap))
		ttl_announce_to_wal(x->root, InvalidOid);
	x->root = InvalidOid;
}

/* Deletes or locks the row in the slot, unless that needs waiting. */
static void
take_row(Expirer *x)
{
	TM_FailureData failure;
	TM_Result	result;
	ItemPointerData tid = x->slot->tts_tid;
	CommandId	cid = GetCurrentCommandId(true);

	if (!x->batch->from_before)
		x->batch->from_before = is_older(x, x->pass_xid);
	if (x->direct)
	{
		announce_once(x);
		result = ttl_tuple_delete(x->heap, &tid, cid, x->snapshot, &failure);
	}
	else
		result = table_tuple_lock(x->heap, &tid, x->snapshot, x->slot, cid,
								  LockTupleExclusive, LockWaitSkip, 0,
								  &failure);
	if (result == TM_WouldBlock || result == TM_BeingModified)
		x->batch->skipped_locked++;
	/* a row that was changed in the meantime may still be due */
	if (result != TM_Ok && result != TM_Deleted)
		ttl_cursor_reread(&x->batch->cursor, x->key, &x->slot->tts_tid);
	if (result != TM_Ok)
		return;
	if (x->direct)
		x->batch->deleted++;
	else
	{
		ItemPointer row = palloc(sizeof(ItemPointerData));

		*row = tid;
		x->rows[x->nrows++] = PointerGetDatum(row);
	}
}

/*
 * In the order of the index
 */

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
	uint64		x = tid_number(&((const TtlIndexEntry *) a)->tid);
	uint64		y = tid_number(&((const TtlIndexEntry *) b)->tid);

	return x < y ? -1 : x > y;
}

/*
 * Reads up to max entries that are due and returns how many.  Near a change of summer
 * time there are entries between them that are not due yet; these are read again later.
 */
static int
read_entries(TtlIndexScan *scan, const TtlCutoff *cutoff, TtlIndexEntry *entries, int max,
			 TtlCursor *cursor)
{
	const TtlIndexEntry *entry;
	int			count = 0;

	while (count < max && (entry = ttl_index_scan_next(scan)) != NULL)
	{
		if (ttl_cutoff_is_due(cutoff, entry->key))
			entries[count++] = *entry;
		else
			ttl_cursor_reread(cursor, entry->key, &entry->tid);
	}
	return count;
}

/*
 * Prefetching asks for blocks ahead of their use, as far ahead as the table's tablespace
 * is set to, until it turns out that all of them are in the cache.
 */
typedef struct Prefetch
{
	Relation	heap;
	const TtlIndexEntry *entries;
	int			count;
	int			next;
	int			distance;		/* in entries */
	int			tried;
	int			cached;
	BlockNumber block;
} Prefetch;

static void
prefetch_init(Prefetch *p, Relation heap, const TtlIndexEntry *entries, int count)
{
	memset(p, 0, sizeof(*p));
	p->heap = heap;
	p->entries = entries;
	p->count = count;
	p->distance = get_tablespace_maintenance_io_concurrency(heap->rd_rel->reltablespace);
	p->block = InvalidBlockNumber;	/* block 0 follows this one */
}

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

/*
 * Takes the row in the slot, which the index holds as due.  The entry may point to an
 * older version of it.
 */
static void
take_entry(Expirer *x, const TtlIndexEntry *entry)
{
	/* the previous round saw it, and could not delete it */
	if (ttl_cursor_goes_by_age(x->cursor, &entry->tid) &&
		ttl_cursor_goes_by_age(x->cursor, &x->slot->tts_tid) &&
		is_older(x, x->cursor->seen.xmin))
		return;
	if (x->found != NULL)
	{
		x->found[x->nfound++] = *entry;
		return;
	}
	x->batch->live++;
	if (!row_is_due(x))
		ereport(ERROR,
				(errcode(ERRCODE_INDEX_CORRUPTED),
				 errmsg("TTL index \"%s\" holds a row as due that is not",
						RelationGetRelationName(x->index)),
				 errhint("The index is damaged, or a function that it calls is not immutable: REINDEX it.")));
	take_row(x);
}

/* How many of the entries, which are sorted, point to the same block as the first? */
static int
block_group(const TtlIndexEntry *entries, int count)
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
dense_run(const TtlIndexEntry *entries, int count)
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
 * Takes the rows of a dense run: a scan reads each block once, instead of once for each
 * row.  Returns how many entries the scan did not meet, and moves these to the front:
 * entries of dead rows, and of rows that are further on in their HOT chain.
 */
static int
take_run(Expirer *x, TtlIndexEntry *entries, int count)
{
	int			unmet = 0;
	int			next = 0;

	if (x->run == NULL)
		x->run = ttl_beginscan_tidrange(x->heap, x->snapshot, &entries[0].tid,
										&entries[count - 1].tid);
	else
		table_rescan_tidrange(x->run, &entries[0].tid, &entries[count - 1].tid);
	while (table_scan_getnextslot_tidrange(x->run, ForwardScanDirection, x->slot))
	{
		uint64		tid = tid_number(&x->slot->tts_tid);

		CHECK_FOR_INTERRUPTS();
		while (next < count && tid_number(&entries[next].tid) < tid)
			entries[unmet++] = entries[next++];
		if (next == count || tid_number(&entries[next].tid) != tid)
			continue;
		if (!ttl_cursor_has_failed(x->cursor, &x->slot->tts_tid))
			take_entry(x, &entries[next]);
		next++;
	}
	while (next < count)
		entries[unmet++] = entries[next++];
	return unmet;
}

/*
 * Fetches the row of an entry into the slot; false where the snapshot sees none.
 * There may be one soon, if the transaction that wrote the row is still running or
 * has just committed: then the key has to be read again.  So the row is fetched as it
 * is now, and the snapshot is asked afterwards.  Most entries without a row are those
 * of rows that are gone for good, and one fetch is enough to know that.
 */
static bool
fetch_row(Expirer *x, IndexFetchTableData *fetch, const TtlIndexEntry *entry)
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

/* Takes the rows of entries that are looked up one by one. */
static void
take_single(Expirer *x, IndexFetchTableData *fetch, TtlIndexEntry *entries, int count)
{
	Prefetch	prefetch;

	prefetch_init(&prefetch, x->heap, entries, count);
	for (int i = 0; i < count; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (ttl_cursor_has_failed(x->cursor, &entries[i].tid))
			continue;
		prefetch_beyond(&prefetch, i);
		if (fetch_row(x, fetch, &entries[i]))
			take_entry(x, &entries[i]);
	}
}

/*
 * Fetches the rows of the entries and takes those that are due.  Returns in how
 * many blocks they lie.
 */
static int
take_entries(Expirer *x, TtlIndexEntry *entries, int count)
{
	IndexFetchTableData *fetch = ttl_index_fetch_begin(x->heap);
	int			single = 0;		/* the first so many are looked up one by one */
	int			blocks = 0;
	int			run;

	qsort(entries, count, sizeof(TtlIndexEntry), compare_tids);
	for (int i = 0; i < count; i += run)
	{
		int			unmet = run = dense_run(entries + i, count - i);

		/* a group that is not dense lies in one block */
		blocks += 1 + ItemPointerGetBlockNumber(&entries[i + run - 1].tid) -
			ItemPointerGetBlockNumber(&entries[i].tid);
		if (run >= DENSE_BLOCK)
			unmet = take_run(x, entries + i, run);
		memmove(entries + single, entries + i, unmet * sizeof(TtlIndexEntry));
		single += unmet;
	}
	take_single(x, fetch, entries, single);
	ExecClearTuple(x->slot);
	table_index_fetch_end(fetch);
	return blocks;
}

/* What part of the rows is due, by a sample of the table's blocks? */
static double
sample_due(Expirer *x, BlockNumber nblocks)
{
	TableScanDesc scan = NULL;
	int64		rows = 0;
	int64		due = 0;

	for (int i = 0; i < ORDER_SAMPLE_BLOCKS; i++)
	{
		BlockNumber block = (uint64) nblocks * i / ORDER_SAMPLE_BLOCKS;
		ItemPointerData first;
		ItemPointerData last;

		ItemPointerSet(&first, block, FirstOffsetNumber);
		ItemPointerSet(&last, block, MaxOffsetNumber);
		if (scan == NULL)
			scan = ttl_beginscan_tidrange(x->heap, x->snapshot, &first, &last);
		else
			table_rescan_tidrange(scan, &first, &last);
		while (table_scan_getnextslot_tidrange(scan, ForwardScanDirection, x->slot))
		{
			rows++;
			if (row_is_due(x))
				due++;
		}
	}
	table_endscan(scan);
	return rows == 0 ? 0 : (double) due / rows;
}

/*
 * Would it be cheaper to go over the whole heap once?  It would if the entries of a
 * batch lie in many more blocks than their rows would fill, and much of the table is
 * due.
 */
static bool
prefers_block_order(Expirer *x, int blocks, int count)
{
	BlockNumber nblocks;
	double		rows;
	double		all_visible;

	table_relation_estimate_size(x->heap, NULL, &nblocks, &rows, &all_visible);
	return blocks >= ORDER_SCATTERED * count * (nblocks / Max(rows, 1)) &&
		sample_due(x, nblocks) >= ORDER_MOST;
}

/* Begins the index scan of a batch where the previous batch ended. */
static void
begin_scan(Expirer *x, TtlIndexScan *scan)
{
	TtlCursor  *cursor = &x->batch->cursor;
	const TtlCutoff *cutoff = x->cutoff;

	/* also in CATCH UP, whose round would else count as one up to that key */
	if (cursor->forward.key > cutoff->bound)
		ttl_cursor_pull_back(cursor, cutoff->sure);
	if (cursor->phase == TTL_CATCH_UP)
	{
		ttl_index_scan_begin(scan, x->heap, x->index, cutoff->keytype,
							 Min(cutoff->bound, cursor->forward.key), &cursor->catch_up);
		scan->max_pages = CATCH_UP_PAGES;
		if (cursor->thorough)
			return;
		scan->unchanged_since = cursor->seen.lsn;
		scan->reread = cursor->reread.keys;
		return;
	}
	ttl_index_scan_begin(scan, x->heap, x->index, cutoff->keytype, cutoff->bound,
						 &cursor->forward);
}

/* Orders entries as the scan returns them. */
static int
compare_entries(const void *a, const void *b, void *backward)
{
	const TtlIndexEntry *x = a;
	const TtlIndexEntry *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return *(bool *) backward ? compare_tids(b, a) : compare_tids(a, b);
}

/*
 * Takes the first rows that the entries lead to, up to max of them.  Most entries lead to
 * none, so the rows are looked for first.  Where there are more rows, the position goes
 * back to the last one that is taken.  Returns in how many blocks the entries lie.
 */
static int
take_first(Expirer *x, bool backward, TtlIndexEntry *entries, int count, int max,
		   TtlScanPosition *position, bool *more)
{
	TtlIndexEntry *found = palloc(sizeof(TtlIndexEntry) * count);
	int			blocks;

	x->found = found;
	x->nfound = 0;
	blocks = take_entries(x, entries, count);
	x->found = NULL;
	*more = x->nfound > max;
	if (*more)
	{
		qsort_arg(found, x->nfound, sizeof(TtlIndexEntry), compare_entries, &backward);
		position->key = found[max - 1].key;
		position->tid = found[max - 1].tid;
		x->nfound = max;
	}
	(void) take_entries(x, found, x->nfound);
	pfree(found);
	return blocks;
}

/*
 * Takes the next entries, from the cursor on, until max_docs rows were found.  Entries
 * of dead rows cost time as well, so their number is limited too.
 *
 * The entries are read by so many as rows are still wanted.  If most of these lead to no
 * row, the next ones are read all at once, because the more there are, the more of them lie
 * in the same block; and then it is found out first which of them lead to a row.
 */
static void
take_in_index_order(Expirer *x, int max_docs, int64 max_entries)
{
	TtlBatch   *batch = x->batch;
	TtlCursor  *cursor = &batch->cursor;
	TtlIndexEntry *entries = palloc(sizeof(TtlIndexEntry) * Max(max_docs, max_entries));
	TtlScanPosition *position = cursor->phase == TTL_CATCH_UP ?
	&cursor->catch_up : &cursor->forward;
	TtlIndexScan scan;
	int			next = max_docs;
	int			size;
	int			count;
	int			blocks;
	bool		more = false;

	begin_scan(x, &scan);
	do
	{
		int			wanted = max_docs - batch->live;

		size = next;
		count = read_entries(&scan, x->cutoff, entries, size, cursor);
		batch->candidates += count;
		*position = scan.after;
		if (size <= wanted)
			blocks = take_entries(x, entries, count);
		else
			blocks = take_first(x, scan.backward, entries, count, wanted, position, &more);
		next = max_docs - batch->live;
		/* a single row may be one that fails, which is where the batch ends */
		if (max_docs > 1 && 2 * (wanted - next) < count)
			next = max_entries - batch->candidates;
	} while (count == size && !more && batch->live < max_docs &&
			 batch->candidates < max_entries);
	batch->exhausted = count < size && !more && ttl_index_scan_is_over(&scan);
	batch->pages = scan.pages;
	ttl_index_scan_end(&scan);

	if (Min(count, max_docs) >= ORDER_MIN_ENTRIES && !cursor->order_decided &&
		cursor->phase == TTL_FORWARD)
	{
		cursor->order_decided = true;
		if (prefers_block_order(x, blocks, count))
		{
			cursor->phase = TTL_BLOCK_ORDER;
			batch->exhausted = false;
			position->set = false;
			/* what falls due in the meantime is found by the index afterwards */
			position->key = x->cutoff->sure;
		}
	}
}

/*
 * In the order of the heap
 */

/* Finds the first tuple ID behind a position. */
static void
first_behind(const TtlScanPosition *position, ItemPointer tid)
{
	ItemPointerSet(tid, 0, FirstOffsetNumber);
	if (position->set)
	{
		*tid = position->tid;
		ItemPointerInc(tid);
	}
}

/* Has a batch in block order done enough? */
static bool
is_full(const TtlBatch *batch, int max_docs, int64 max_entries)
{
	return batch->live >= max_docs || batch->candidates >= max_entries;
}

/*
 * Looks at the rows of a scan until the batch is full, and returns whether it has come to
 * the end.  It goes on to the end of the block: else an update could put the newer version
 * of one of the next rows before the place where the batch ends, and no index entry would
 * tell.  Only a batch of a few rows ends at any row, because one of them fails or takes
 * long; then the whole index is read once more.
 */
static bool
take_rows_of_scan(Expirer *x, TableScanDesc scan, int max_docs, int64 max_entries)
{
	TtlBatch   *batch = x->batch;
	TtlScanPosition *position = &batch->cursor.forward;

	while (table_scan_getnextslot_tidrange(scan, ForwardScanDirection, x->slot))
	{
		CHECK_FOR_INTERRUPTS();
		if (is_full(batch, max_docs, max_entries) &&
			ItemPointerGetBlockNumber(&x->slot->tts_tid) != ItemPointerGetBlockNumber(&position->tid))
			return false;
		batch->candidates++;
		position->set = true;
		position->tid = x->slot->tts_tid;
		if (!ttl_cursor_has_failed(x->cursor, &x->slot->tts_tid) && row_is_due(x))
		{
			batch->live++;
			take_row(x);
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
 * Looks at the next rows, due or not, from the cursor on, until max_docs of them were
 * due or max_entries were looked at.  BLOCKS_AT_A_TIME blocks are read at a time.  Where
 * there is no row in these, as after many deletes, the blocks count like rows: they are
 * read as well, and a batch has to end.
 */
static void
take_in_block_order(Expirer *x, int max_docs, int64 max_entries)
{
	TtlBatch   *batch = x->batch;
	BlockNumber nblocks = RelationGetNumberOfBlocks(x->heap);
	TtlScanPosition *position = &batch->cursor.forward;
	TableScanDesc scan = NULL;
	ItemPointerData first;

	/*
	 * what is passed here need not be due: coll_mod() may have made the time
	 * longer
	 */
	position->key = Min(position->key, x->cutoff->sure);
	first_behind(position, &first);
	while (!is_full(batch, max_docs, max_entries) &&
		   ItemPointerGetBlockNumber(&first) < nblocks)
	{
		BlockNumber begin = ItemPointerGetBlockNumber(&first);
		BlockNumber end = begin + Min(nblocks - begin, BLOCKS_AT_A_TIME);
		int64		before = batch->candidates;
		ItemPointerData last;

		ItemPointerSet(&last, end - 1, MaxOffsetNumber);
		if (scan == NULL)
			scan = ttl_beginscan_tidrange(x->heap, x->snapshot, &first, &last);
		else
			table_rescan_tidrange(scan, &first, &last);
		if (!take_rows_of_scan(x, scan, max_docs, max_entries))
			break;
		if (batch->candidates == before)
			batch->candidates += end - begin;
		position->set = true;
		position->tid = last;
		ItemPointerSet(&first, end, FirstOffsetNumber);
	}
	ExecClearTuple(x->slot);
	if (scan != NULL)
		table_endscan(scan);

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

/*
 * The SQL way
 */

/* Makes the condition that the key of an index is not later than a parameter. */
static Node *
key_condition(Oid indexrelid, Relation rel, Oid keytype, int param)
{
	Oid			family = get_opclass_family(GetDefaultOpClass(keytype, BTREE_AM_OID));
	Param	   *bound = makeNode(Param);

	bound->paramkind = PARAM_EXTERN;
	bound->paramid = param;
	bound->paramtype = keytype;
	bound->paramtypmod = -1;
	bound->location = -1;
	return (Node *) make_opclause(get_opfamily_member(family, keytype, keytype,
													  BTLessEqualStrategyNumber),
								  BOOLOID, false,
								  (Expr *) ttl_query_key(indexrelid, rel, keytype),
								  (Expr *) bound, InvalidOid, InvalidOid);
}

/* Makes the condition that the tuple ID of a row is in an array parameter. */
static Node *
tid_condition(int param)
{
	ScalarArrayOpExpr *condition = makeNode(ScalarArrayOpExpr);
	Param	   *tids = makeNode(Param);

	tids->paramkind = PARAM_EXTERN;
	tids->paramid = param;
	tids->paramtype = TIDARRAYOID;
	tids->paramtypmod = -1;
	tids->location = -1;
	condition->opno = TIDEqualOperator;
	condition->useOr = true;
	condition->args = list_make2(makeVar(1, SelfItemPointerAttributeNumber,
										 TIDOID, -1, InvalidOid, 0), tids);
	condition->location = -1;
	return (Node *) condition;
}

/*
 * Makes the query DELETE FROM ONLY the table.  $1 holds the tuple IDs, $2 the greatest
 * key that can be due.  The exact check of a key near a change of summer time was made
 * on the very version that is locked, so the bound is enough here.
 */
static Query *
delete_query(const TtlIndex *target, Relation rel)
{
	List	   *conditions;
	TtlOption	own;

	/*
	 * target->option is of no use: a partition can number its columns
	 * otherwise
	 */
	if (!ttl_option_read(target->indexrelid, &own))
		elog(ERROR, "cache lookup failed for index %u", target->indexrelid);
	conditions = list_make2(tid_condition(1),
							key_condition(target->indexrelid, rel,
										  target->keytype, 2));
	return ttl_query_make(CMD_DELETE, rel,
						  list_concat(conditions, own.filter));
}

/*
 * Makes deferrable constraints be checked within the batch: a deferred trigger could run
 * only after the security-restricted operation has ended, and as another user.
 */
static void
set_constraints_immediate(void)
{
	ConstraintsSetStmt *stmt = makeNode(ConstraintsSetStmt);

	stmt->constraints = NIL;
	stmt->deferred = false;
	AfterTriggerSetState(stmt);
}

static void
set_parameter(ParamListInfo params, int number, Oid type, Datum value)
{
	ParamExternData *param = &params->params[number - 1];

	memset(param, 0, sizeof(*param));
	param->value = value;
	param->ptype = type;
}

/*
 * Runs the query.  Its plan is made for an array of unknown length, so it is a TID scan;
 * a plan made for these thousands of tuple IDs could be a sequential scan.
 */
static int64
delete_by_query(const TtlIndex *target, const TtlCutoff *cutoff, Relation rel,
				ArrayType *tids)
{
	char	   *name = psprintf("DELETE by TTL index \"%s\"",
								get_rel_name(target->indexrelid));
	ParamListInfo params = makeParamList(2);

	set_parameter(params, 1, TIDARRAYOID, PointerGetDatum(tids));
	set_parameter(params, 2, cutoff->keytype,
				  ttl_index_scan_datum(cutoff->keytype, cutoff->bound));
	return ttl_cascade_run(delete_query(target, rel), params, name);
}

/* Deletes the rows that take_row() has locked. */
static void
delete_locked_rows(Expirer *x, const TtlIndex *index)
{
	ArrayType  *tids = construct_array(x->rows, x->nrows, TIDOID,
									   sizeof(ItemPointerData), false,
									   TYPALIGN_SHORT);

	announce_once(x);
	PushActiveSnapshot(GetTransactionSnapshot());
	set_constraints_immediate();
	x->batch->deleted = delete_by_query(index, x->cutoff, x->heap, tids);
	/* a trigger has kept the other rows */
	if (x->batch->deleted < x->nrows)
		x->batch->cursor.rows_remain = true;
	PopActiveSnapshot();
}

/*
 * Is anything attached to DELETE?  A trigger that is disabled counts as well: it
 * depends on the session whether it fires.
 */
static bool
is_plain(Relation rel)
{
	TriggerDesc *triggers = rel->trigdesc;

	for (int i = 0; triggers != NULL && i < triggers->numtriggers; i++)
	{
		if (TRIGGER_FOR_DELETE(triggers->triggers[i].tgtype))
			return false;
	}
	for (int i = 0; rel->rd_rules != NULL && i < rel->rd_rules->numLocks; i++)
	{
		if (rel->rd_rules->rules[i]->event == CMD_DELETE)
			return false;
	}
	return true;
}

/*
 * Locks the table ROW EXCLUSIVE and the index SHARE UPDATE EXCLUSIVE for a batch, until
 * the end of the transaction, unless one of the two needs waiting.  The lock on the
 * index keeps every other pass and coll_mod() away from it: what the caller reads of the
 * definition after this stays true until the batch is done.
 */
bool
ttl_batch_lock(Oid relid, Oid indexrelid)
{
	return ConditionalLockRelationOid(relid, RowExclusiveLock) &&
		ConditionalLockRelationOid(indexrelid, ShareUpdateExclusiveLock);
}

/*
 * Notes what the batch can see: what is written later is not in it.  If the index was
 * built anew, or the table was emptied, since the last batch, the cursor begins again.
 */
static void
note_horizon(Expirer *x)
{
	TtlCursor  *cursor = &x->batch->cursor;
	Oid			filenode = x->index->rd_rel->relfilenode;

	if (cursor->filenode != filenode)
		ttl_cursor_init(cursor, RelationGetRelid(x->index), filenode);
	x->batch->horizon.set = true;
	x->batch->horizon.xmin = x->snapshot->xmin;
	if (RelationNeedsWAL(x->index))
		x->batch->horizon.lsn = GetXLogInsertRecPtr();
}

/*
 * Runs one batch of up to max_docs rows of a locked index, in the caller's transaction,
 * from the cursor on.  Code of users runs here and may raise any error.
 */
void
ttl_batch_run(const TtlIndex *index, const TtlCutoff *cutoff,
			  const TtlCutoff *pass_cutoff, TransactionId pass_xid,
			  const TtlCursor *cursor, int max_docs, int64 max_entries,
			  TtlBatch *batch)
{
	Expirer		x = {.cutoff = cutoff,.pass_xid = pass_xid,
	.cursor = &batch->cursor,.batch = batch,.root = index->root};
	TtlPhase	phase;
	TtlUser		saved;

	memset(batch, 0, sizeof(*batch));
	batch->cursor = *cursor;
	if (!open_relations(index->relid, index->indexrelid, &x))
	{
		batch->inactive = true;
		return;
	}
	x.direct = is_plain(x.heap);
	if (!x.direct && !ttl_cascade_lock(index->relid, index->owner))
	{
		batch->busy = true;
		close_relations(&x);
		return;
	}
	if (!x.direct)
		x.rows = palloc(sizeof(Datum) * (max_docs + MaxHeapTuplesPerPage));
	ttl_owner_become(index->owner, &saved);
	ttl_announce_to_session(index->root);
	PushActiveSnapshot(GetTransactionSnapshot());
	begin_rows(&x);
	begin_checks(&x);
	note_horizon(&x);
	phase = batch->cursor.phase;

	/*
	 * as core does for any DELETE of a table that is published with a row
	 * filter
	 */
	CheckCmdReplicaIdentity(x.heap, CMD_DELETE);
	if (phase == TTL_BLOCK_ORDER)
		take_in_block_order(&x, max_docs, max_entries);
	else
		take_in_index_order(&x, max_docs, max_entries);
	end_rows(&x);
	PopActiveSnapshot();
	if (x.nrows > 0)
		delete_locked_rows(&x, index);
	ttl_owner_restore(&saved);
	close_relations(&x);
	batch->past_pass = phase == TTL_FORWARD &&
		batch->cursor.forward.set && batch->cursor.forward.key > pass_cutoff->bound;
	/* the rows of dead entries are of any age */
	batch->from_before = phase != TTL_CATCH_UP &&
		(batch->from_before || batch->live == 0);
}

/* Shows the row in the slot to the caller of a look, in memory for one row, if it is due. */
static bool
show_row(Expirer *x, const TtlLook *look)
{
	MemoryContext caller = CurrentMemoryContext;

	if (!row_is_due(x))
		return false;
	MemoryContextSwitchTo(GetPerTupleMemoryContext(x->estate));
	look->row(x->slot, look->arg);
	MemoryContextSwitchTo(caller);
	return true;
}

/*
 * Counts the rows that would be deleted at this clock reading, the oldest first, and keeps
 * the date of the first.  The caller has checked that its user may look at the table, and
 * has locked the table and the index.
 */
void
ttl_batch_look(const TtlIndex *index, TimestampTz at, TtlLook *look)
{
	TtlCutoff	cutoff;
	TtlIndexScan scan;
	TtlUser		saved;
	Expirer		x = {.cutoff = &cutoff};
	const TtlIndexEntry *entry;
	IndexFetchTableData *fetch;

	look->count = 0;
	look->stopped = false;
	ttl_cutoff_init(&cutoff, index, at);
	if (!open_relations(index->relid, index->indexrelid, &x))
		return;
	/* in the words of the planner */
	if (RecoveryInProgress() && !RelationIsPermanent(x.heap))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access temporary or unlogged relations during recovery")));
	ttl_owner_become(index->owner, &saved);
	PushActiveSnapshot(GetTransactionSnapshot());
	begin_rows(&x);
	/* who only counts waits for no code of users, and gets no error of it */
	if (look->row != NULL)
		begin_checks(&x);
	fetch = ttl_index_fetch_begin(x.heap);
	ttl_index_scan_begin(&scan, x.heap, x.index, cutoff.keytype, cutoff.bound,
						 &look->after);
	scan.max_pages = look->max_pages;
	while (look->count < look->max_rows &&
		   (entry = ttl_index_scan_next(&scan)) != NULL)
	{
		ItemPointerData tid = entry->tid;
		bool		call_again = false;

		if (!ttl_cutoff_is_due(&cutoff, entry->key) ||
			!table_index_fetch_tuple(fetch, &tid, x.snapshot, x.slot,
									 &call_again, NULL))
			continue;
		if (look->row != NULL && !show_row(&x, look))
			continue;
		if (look->count++ == 0)
			look->oldest = ttl_cutoff_instant(&cutoff, entry->key);
	}
	look->stopped = look->count < look->max_rows && !ttl_index_scan_is_over(&scan);
	ExecClearTuple(x.slot);
	table_index_fetch_end(fetch);
	ttl_index_scan_end(&scan);
	end_rows(&x);
	PopActiveSnapshot();
	ttl_owner_restore(&saved);
	close_relations(&x);
}
