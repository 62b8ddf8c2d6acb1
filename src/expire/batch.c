/*-------------------------------------------------------------------------
 *
 * batch.c
 *	  One batch of one index: collect, check, delete.
 *
 * The entries of the TTL index that are due are walked (index_scan.c), oldest first,
 * from where the last batch ended, and sorted by block.  Then each row is fetched
 * under the batch's snapshot, a block at a time where many of them are in it, and
 * asked once more, whatever the index said: its key must be due and the filter
 * must hold.  So a damaged index, or a tuple id that has been used again, costs
 * no row.
 *
 * There are two ways to delete what passes:
 *
 *	direct	nothing is attached to DELETE: the table access method deletes the row
 *			unless that needs waiting, which fails if somebody else holds the row
 *			or has changed it since.
 *	SQL		a trigger (foreign keys are triggers) or a rule is: the rows are locked
 *			under the same condition, then DELETE FROM ONLY the table removes them,
 *			so that all of these behave as for any DELETE.  It repeats the expiry
 *			and the filter, because a trigger of the same batch can have changed
 *			another row of it.
 *
 * Both ways delete the very version that was found due, and count alike.
 *
 * Where most of a table is due and the heap does not follow the key, every batch
 * would touch nearly every block.  Then the rest of the pass goes over the heap
 * instead, block by block, with the same check.
 *
 * It all runs as the table's owner (owner.c), in a transaction of the caller's.
 * Nothing here reads a setting, a counter or a clock.
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
#include "access/relation.h"
#include "access/sysattr.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/index.h"
#include "catalog/pg_am.h"
#include "catalog/pg_inherits.h"
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
#include "tcop/dest.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
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
#include "ttl_index.h"

/* So many entries of dead rows may come on top of a batch. */
#define DEAD_ENTRIES 1000

/* A batch that says something about the order of the heap. */
#define ORDER_MIN_ENTRIES 1000

/* Scattered: that many times the blocks that the rows would fill. */
#define ORDER_SCATTERED 4

/* To find out how much of a table is due. */
#define ORDER_SAMPLE_BLOCKS 32
#define ORDER_MOST 0.4

/* Leaves that a batch may skip or read while it catches up. */
#define CATCH_UP_PAGES 2000

/* In block order, what lies between two looks at how far a batch is. */
#define BLOCKS_AT_A_TIME 32

/* A block with so many entries is looked at as a whole. */
#define DENSE_BLOCK 16

/* Stop prefetching where so many blocks were in the cache. */
#define PREFETCH_TRIAL 32

/* A batch at work. */
typedef struct Expirer
{
	Relation	heap;
	Relation	index;
	const TtlCutoff *cutoff;
	const TtlCursor *resume;
	Snapshot	snapshot;
	TupleTableSlot *slot;		/* the row at hand */
	int64		key;			/* and its key */
	TableScanDesc run;			/* over blocks with many rows that are due */
	bool		direct;
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

/* Gets ready to look at rows, under the active snapshot. */
static void
begin_rows(Expirer *x)
{
	x->snapshot = GetActiveSnapshot();
	x->slot = table_slot_create(x->heap, NULL);
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
	FreeExecutorState(x->estate);
}

/* The key of the row in the slot, of a column or an expression. */
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
 * Is the row in the slot due, by its own key and the filter?  The
 * filter comes first, as when the index is built: in block order there are rows
 * outside of it, and their key may well be an error.
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

/* Deletes or locks the row in the slot, unless that needs waiting. */
static void
take_row(Expirer *x)
{
	TM_FailureData failure;
	TM_Result	result;
	ItemPointerData tid = x->slot->tts_tid;
	CommandId	cid = GetCurrentCommandId(true);

	if (x->direct)
		result = ttl_tuple_delete(x->heap, &tid, cid, x->snapshot, &failure);
	else
		result = table_tuple_lock(x->heap, &tid, x->snapshot, x->slot, cid,
								  LockTupleExclusive, LockWaitSkip, 0,
								  &failure);
	if (result == TM_WouldBlock || result == TM_BeingModified)
		x->batch->skipped_locked++;
	/* what was changed meanwhile may be due as well */
	if (result != TM_Ok && result != TM_Deleted)
		ttl_cursor_range_add(&x->batch->resume.left_over, x->key);
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

/* A tuple id as a number: it is compared for each row, and more than once. */
static inline uint64
tid_number(const ItemPointerData *tid)
{
	return (uint64) ItemPointerGetBlockNumberNoCheck(tid) << 16 |
		ItemPointerGetOffsetNumberNoCheck(tid);
}

static int
compare_tids(const void *a, const void *b)
{
	uint64		left = tid_number(&((const TtlIndexEntry *) a)->tid);
	uint64		right = tid_number(&((const TtlIndexEntry *) b)->tid);

	return left < right ? -1 : left > right;
}

/*
 * Reads up to max entries that are due; returns how many.  Near a change of summer
 * time there are others between them, to be looked at later.
 */
static int
read_entries(TtlIndexScan *walk, const TtlCutoff *cutoff, TtlIndexEntry *entries, int max,
			 TtlRange *later)
{
	const TtlIndexEntry *entry;
	int			count = 0;

	while (count < max && (entry = ttl_index_scan_next(walk)) != NULL)
	{
		if (ttl_cutoff_is_due(cutoff, entry->key))
			entries[count++] = *entry;
		else
			ttl_cursor_range_add(later, entry->key);
	}
	return count;
}

/*
 * Asks for blocks ahead of their use, as many as the table's tablespace is set to,
 * until it turns out that they are all in the cache.
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
	p->block = InvalidBlockNumber;	/* block 0 follows it */
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

		/* the kernel reads ahead by itself what lies in order */
		p->block = block;
		if (follows)
			continue;
		p->tried++;
		if (BufferIsValid(PrefetchBuffer(p->heap, MAIN_FORKNUM, block).recent_buffer))
			p->cached++;
	}
}

/* Was the row in the slot there in the round before, so that it was left? */
static bool
was_left(Expirer *x)
{
	bool		isnull;
	Datum		xmin = slot_getsysattr(x->slot, MinTransactionIdAttributeNumber,
									   &isnull);

	return TransactionIdPrecedes(DatumGetTransactionId(xmin),
								 x->resume->seen.xmin);
}

/* The row in the slot is one that the index holds as due: takes it. */
static void
take_entry(Expirer *x)
{
	if (ttl_cursor_goes_by_age(x->resume) && was_left(x))
		return;
	x->batch->live++;
	if (!row_is_due(x))
		ereport(ERROR,
				(errcode(ERRCODE_INDEX_CORRUPTED),
				 errmsg("TTL index \"%s\" holds a row as due that is not",
						RelationGetRelationName(x->index)),
				 errhint("The index is damaged, or a function that it calls is not immutable: REINDEX it.")));
	take_row(x);
}

/* How many of the entries, sorted, are of the same block as the first? */
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

/* How many are of the same block, or of adjacent ones with many entries each? */
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
 * Takes the rows of a dense run: a scan looks at each block once, instead of once
 * for each row.  Returns how many entries it did not meet, and puts them first:
 * those of dead rows, and of rows that are further on in their HOT chain.
 */
static int
take_run(Expirer *x, TtlIndexEntry *entries, int count)
{
	int			left = 0;
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
			entries[left++] = entries[next++];
		if (next == count || tid_number(&entries[next].tid) != tid)
			continue;
		next++;
		if (!ttl_cursor_has_failed(x->resume, &x->slot->tts_tid))
			take_entry(x);
	}
	while (next < count)
		entries[left++] = entries[next++];
	return left;
}

/*
 * An entry without a row that the snapshot sees: will there be one?  There will, if
 * the transaction that wrote it goes on, or has just committed.
 */
static bool
is_undecided(Expirer *x, IndexFetchTableData *fetch, const TtlIndexEntry *entry)
{
	SnapshotData dirty;
	ItemPointerData tid = entry->tid;
	bool		call_again = false;

	InitDirtySnapshot(dirty);
	return table_index_fetch_tuple(fetch, &tid, &dirty, x->slot, &call_again,
								   NULL);
}

/* Takes the rows of entries that are looked up one by one. */
static void
take_single(Expirer *x, IndexFetchTableData *fetch, TtlIndexEntry *entries, int count)
{
	Prefetch	prefetch;

	prefetch_init(&prefetch, x->heap, entries, count);
	for (int i = 0; i < count; i++)
	{
		bool		call_again = false;

		CHECK_FOR_INTERRUPTS();
		if (ttl_cursor_has_failed(x->resume, &entries[i].tid))
			continue;
		prefetch_beyond(&prefetch, i);
		/* nothing for a dead row: the entry is older than the snapshot */
		if (table_index_fetch_tuple(fetch, &entries[i].tid, x->snapshot,
									x->slot, &call_again, NULL))
			take_entry(x);
		else if (is_undecided(x, fetch, &entries[i]))
			ttl_cursor_range_add(&x->batch->resume.left_over, entries[i].key);
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
	int			single = 0;		/* so many are for later, from the first on */
	int			blocks = 0;
	int			run;

	qsort(entries, count, sizeof(TtlIndexEntry), compare_tids);
	for (int i = 0; i < count; i += run)
	{
		int			left = run = dense_run(entries + i, count - i);

		/* a group that is not dense is of one block */
		blocks += 1 + ItemPointerGetBlockNumber(&entries[i + run - 1].tid) -
			ItemPointerGetBlockNumber(&entries[i].tid);
		if (run >= DENSE_BLOCK)
			left = take_run(x, entries + i, run);
		memmove(entries + single, entries + i, left * sizeof(TtlIndexEntry));
		single += left;
	}
	take_single(x, fetch, entries, single);
	ExecClearTuple(x->slot);
	table_index_fetch_end(fetch);
	return blocks;
}

/*
 * How much of the table is due, by a sample of its blocks?
 */
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
 * Would it be cheaper to go over the whole heap once?  It would where the entries
 * of a batch, sorted, lie in many more blocks than they would fill, and most of
 * the table is due.
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

/* Begins the walk of a batch, from where the one before it ended. */
static void
begin_walk(Expirer *x, TtlIndexScan *walk)
{
	TtlCursor  *resume = &x->batch->resume;
	const TtlCutoff *cutoff = x->cutoff;

	if (resume->phase == TTL_CATCH_UP)
	{
		ttl_index_scan_begin(walk, x->heap, x->index, cutoff->keytype,
							 Min(cutoff->bound, resume->at.key), &resume->left);
		walk->max_pages = CATCH_UP_PAGES;
		if (resume->thorough)
			return;
		walk->since = resume->seen.lsn;
		walk->again = resume->again;
		return;
	}
	if (resume->at.key > cutoff->bound)
		ttl_cursor_pull_back(resume, cutoff->sure);
	ttl_index_scan_begin(walk, x->heap, x->index, cutoff->keytype, cutoff->bound,
						 &resume->at);
}

/*
 * The next entries, from the resume point on, until max_docs rows were found.
 * Entries of dead rows cost time as well, so there is an end to them too.
 */
static void
take_in_index_order(Expirer *x, int max_docs)
{
	TtlBatch   *batch = x->batch;
	TtlCursor  *resume = &batch->resume;
	TtlIndexEntry *entries = palloc(sizeof(TtlIndexEntry) * max_docs);
	TtlScanPosition *place = resume->phase == TTL_CATCH_UP ? &resume->left : &resume->at;
	TtlIndexScan walk;
	int			wanted;
	int			count;
	int			blocks;

	begin_walk(x, &walk);
	do
	{
		wanted = max_docs - batch->live;
		count = read_entries(&walk, x->cutoff, entries, wanted,
							 &resume->left_over);
		batch->candidates += count;
		*place = walk.after;
		blocks = take_entries(x, entries, count);
	} while (count == wanted && batch->live < max_docs &&
			 batch->candidates < 2 * (int64) max_docs + DEAD_ENTRIES);
	batch->exhausted = count < wanted && ttl_index_scan_is_over(&walk);
	batch->pages = walk.pages;
	ttl_index_scan_end(&walk);

	if (count >= ORDER_MIN_ENTRIES && !resume->order_decided &&
		resume->phase == TTL_FORWARD)
	{
		resume->order_decided = true;
		if (prefers_block_order(x, blocks, count))
		{
			resume->phase = TTL_BLOCK_ORDER;
			batch->exhausted = false;
			place->set = false;
			/* what falls due on the way is found by the index afterwards */
			place->key = x->cutoff->sure;
		}
	}
}

/*
 * In the order of the heap
 */

/* The first tuple id behind a place. */
static void
first_behind(const TtlScanPosition *place, ItemPointer tid)
{
	ItemPointerSet(tid, 0, FirstOffsetNumber);
	if (place->set)
	{
		*tid = place->tid;
		ItemPointerInc(tid);
	}
}

/*
 * The next max_docs rows, due or not, from the resume point on.  So many blocks
 * at a time, and where there is no row in them, as after many deletes, they count
 * like rows: they are read as well, and a batch has to end.
 */
static void
take_in_block_order(Expirer *x, int max_docs)
{
	TtlBatch   *batch = x->batch;
	BlockNumber nblocks = RelationGetNumberOfBlocks(x->heap);
	TableScanDesc scan = NULL;
	ItemPointerData first;

	first_behind(&x->resume->at, &first);
	while (batch->candidates < max_docs &&
		   ItemPointerGetBlockNumber(&first) < nblocks)
	{
		BlockNumber begin = ItemPointerGetBlockNumber(&first);
		BlockNumber end = begin + Min(nblocks - begin, BLOCKS_AT_A_TIME);
		bool		empty = true;
		ItemPointerData last;

		ItemPointerSet(&last, end - 1, MaxOffsetNumber);
		if (scan == NULL)
			scan = ttl_beginscan_tidrange(x->heap, x->snapshot, &first, &last);
		else
			table_rescan_tidrange(scan, &first, &last);
		while (batch->candidates < max_docs &&
			   table_scan_getnextslot_tidrange(scan, ForwardScanDirection, x->slot))
		{
			CHECK_FOR_INTERRUPTS();
			empty = false;
			batch->candidates++;
			batch->resume.at.set = true;
			batch->resume.at.tid = x->slot->tts_tid;
			if (!ttl_cursor_has_failed(x->resume, &x->slot->tts_tid) &&
				row_is_due(x))
			{
				batch->live++;
				take_row(x);
			}
		}
		if (batch->candidates >= max_docs)
			break;
		if (empty)
			batch->candidates += end - begin;
		batch->resume.at.set = true;
		batch->resume.at.tid = last;
		ItemPointerSet(&first, end, FirstOffsetNumber);
	}
	ExecClearTuple(x->slot);
	if (scan != NULL)
		table_endscan(scan);

	/*
	 * what others write at the time it does not see; they may be long about
	 * it
	 */
	if (x->snapshot->xcnt > 0)
		batch->resume.rows_left = true;
	if (ItemPointerGetBlockNumber(&first) >= nblocks)
	{
		batch->resume.phase = TTL_FORWARD;
		ItemPointerSet(&batch->resume.at.tid, MaxBlockNumber, MaxOffsetNumber);
	}
}

/*
 * The SQL way
 */

/* A condition between the key of an index and the parameter of this number. */
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

/* A condition that a row is one of those in the parameter of this number. */
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
 * DELETE FROM ONLY the table: $1 are the tuple ids, $2 the greatest key that can be
 * due.  The exact check of a key near a change of summer time has been made on the
 * very version that is locked; the bound is enough here.
 */
static Query *
delete_query(const TtlIndex *target, Relation rel)
{
	List	   *conditions;
	TtlOption	own;

	/* not target->option: a partition can number its columns otherwise */
	if (!ttl_option_read(target->indexrelid, &own))
		elog(ERROR, "cache lookup failed for index %u", target->indexrelid);
	conditions = list_make2(tid_condition(1),
							key_condition(target->indexrelid, rel,
										  target->keytype, 2));
	return ttl_query_make(CMD_DELETE, rel,
						  list_concat(conditions, own.filter));
}

/*
 * Checks deferrable constraints within the batch: a deferred trigger cannot run
 * in a security-restricted operation, nor after it, as somebody else.
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
 * The plan is made for an array of unknown length, so it is a TID scan, where one
 * made for these thousands could be a sequential scan.
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
	return ttl_query_run(delete_query(target, rel), params, name, None_Receiver);
}

/* Deletes the rows that take_row() has locked. */
static void
delete_locked_rows(Expirer *x, const TtlIndex *index)
{
	ArrayType  *tids = construct_array(x->rows, x->nrows, TIDOID,
									   sizeof(ItemPointerData), false,
									   TYPALIGN_SHORT);

	PushActiveSnapshot(GetTransactionSnapshot());
	set_constraints_immediate();
	x->batch->deleted = delete_by_query(index, x->cutoff, x->heap, tids);
	/* a trigger kept the others */
	if (x->batch->deleted < x->nrows)
		x->batch->resume.rows_left = true;
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

/* The tables to which a DELETE goes on by foreign keys, and the lock for that. */
static List *
referencing_tables(Oid relid, LOCKMODE lockmode)
{
	Relation	rel = try_relation_open(relid, NoLock);
	List	   *tables = NIL;

	if (rel == NULL)
		return NIL;
	for (int i = 0; rel->trigdesc != NULL && i < rel->trigdesc->numtriggers; i++)
	{
		Trigger    *trigger = &rel->trigdesc->triggers[i];
		bool		reads = trigger->tgfoid == F_RI_FKEY_NOACTION_DEL ||
		trigger->tgfoid == F_RI_FKEY_RESTRICT_DEL;

		if (TRIGGER_FOR_DELETE(trigger->tgtype) &&
			RI_FKey_trigger_type(trigger->tgfoid) == RI_TRIGGER_PK &&
			reads == (lockmode == RowShareLock))
			tables = list_append_unique_oid(tables, trigger->tgconstrrelid);
	}
	relation_close(rel, NoLock);
	return tables;
}

/* Locks tables and their partitions, without waiting, and adds them to the list. */
static bool
lock_trees(List *tables, LOCKMODE lockmode, List **locked)
{
	ListCell   *lc;

	foreach(lc, tables)
	{
		ListCell   *lc2;

		foreach(lc2, find_all_inheritors(lfirst_oid(lc), NoLock, NULL))
		{
			if (!ConditionalLockRelationOid(lfirst_oid(lc2), lockmode))
				return false;
			*locked = list_append_unique_oid(*locked, lfirst_oid(lc2));
		}
	}
	return true;
}

/* Can this trigger be fired by what a foreign key does, when the command ends? */
static bool
is_fired_afterwards(const Trigger * trigger, bool in_partition)
{
	/* that of a deferrable constraint computes what its index is on */
	if (!TRIGGER_FOR_AFTER(trigger->tgtype) ||
		trigger->tgenabled == TRIGGER_DISABLED ||
		(trigger->tgisinternal && trigger->tgfoid != F_UNIQUE_KEY_RECHECK))
		return false;
	return TRIGGER_FOR_DELETE(trigger->tgtype) ||
		TRIGGER_FOR_UPDATE(trigger->tgtype) ||
		(in_partition && TRIGGER_FOR_INSERT(trigger->tgtype));
}

/*
 * Raises an error where a trigger of a table to which a foreign key leads would run
 * with rights that its owner does not have.  A foreign key acts as the owner of that
 * table, but what it leaves to the end of the command is run as our table's owner.
 */
static void
check_triggers(Oid relid, const TtlIndex *index)
{
	Relation	rel = relation_open(relid, NoLock);

	for (int i = 0; rel->trigdesc != NULL && i < rel->trigdesc->numtriggers; i++)
	{
		const		Trigger *trigger = &rel->trigdesc->triggers[i];

		if (is_fired_afterwards(trigger, rel->rd_rel->relispartition) &&
			!has_privs_of_role(rel->rd_rel->relowner, index->owner))
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
					 errmsg("trigger \"%s\" of table \"%s\" would run as the owner of table \"%s\"",
							trigger->tgname, RelationGetRelationName(rel),
							get_rel_name(index->relid)),
					 errdetail("A foreign key leads to a table of another owner, and AFTER triggers run as whoever deletes."),
					 errhint("Make it a BEFORE trigger, or give both tables the same owner.")));
	}
	relation_close(rel, NoLock);
}

/*
 * Locks all tables that the triggers of foreign keys will, without waiting.  They
 * would wait, with the locks of the batch in hand, for DDL that has come to them
 * first and waits for the batch; and it is for the batch to give way.  False where
 * one is locked by others.
 */
static bool
lock_referencing(const TtlIndex *index)
{
	List	   *deleting = list_make1_oid(index->relid);
	List	   *reading = NIL;

	/* the list grows by those that a cascade goes on to */
	for (int i = 0; i < list_length(deleting); i++)
	{
		Oid			table = list_nth_oid(deleting, i);

		if (TTL_AFTER_TRIGGERS_RUN_AS_OTHERS && i > 0)
			check_triggers(table, index);
		if (!lock_trees(referencing_tables(table, RowExclusiveLock),
						RowExclusiveLock, &deleting) ||
			!lock_trees(referencing_tables(table, RowShareLock),
						RowShareLock, &reading))
			return false;
	}
	return true;
}

/*
 * Locks the table ROW EXCLUSIVE and the index SHARE UPDATE EXCLUSIVE for a batch,
 * until the end of the transaction, if both can be had without waiting.  The lock
 * on the index keeps every other pass away from it, and coll_mod() too: what is
 * read of the definition after this stays true until the batch is done.
 */
bool
ttl_batch_lock(Oid relid, Oid indexrelid)
{
	return ConditionalLockRelationOid(relid, RowExclusiveLock) &&
		ConditionalLockRelationOid(indexrelid, ShareUpdateExclusiveLock);
}

/*
 * From here on the batch looks: what comes later is not in it.  Where the index was
 * built anew meanwhile, or the table emptied, it begins again.
 */
static void
begin_look(Expirer *x)
{
	TtlCursor  *resume = &x->batch->resume;
	Oid			filenode = x->index->rd_rel->relfilenode;

	if (resume->filenode != filenode)
		ttl_cursor_init(resume, RelationGetRelid(x->index), filenode);
	x->batch->horizon.set = true;
	x->batch->horizon.xmin = x->snapshot->xmin;
	if (RelationNeedsWAL(x->index))
		x->batch->horizon.lsn = GetXLogInsertRecPtr();
}

/*
 * One batch of up to max_docs rows of a locked index, in the caller's transaction,
 * from the resume point on.  Any code of a user may raise an error here.
 */
void
ttl_batch_run(const TtlIndex *index, const TtlCutoff *cutoff,
			  const TtlCutoff *pass_cutoff, const TtlCursor *resume,
			  int max_docs, TtlBatch *batch)
{
	Expirer		x = {.cutoff = cutoff,.resume = &batch->resume,.batch = batch};
	TtlPhase	phase;
	TtlUser		saved;

	memset(batch, 0, sizeof(*batch));
	batch->resume = *resume;
	if (!open_relations(index->relid, index->indexrelid, &x))
	{
		batch->exhausted = true;
		return;
	}
	x.direct = is_plain(x.heap);
	if (!x.direct && !lock_referencing(index))
	{
		batch->busy = true;
		close_relations(&x);
		return;
	}
	if (!x.direct)
		x.rows = palloc(sizeof(Datum) * max_docs);
	ttl_owner_become(index->owner, &saved);
	PushActiveSnapshot(GetTransactionSnapshot());
	begin_rows(&x);
	begin_look(&x);
	phase = batch->resume.phase;
	/* as for any DELETE of a table that is published with a row filter */
	CheckCmdReplicaIdentity(x.heap, CMD_DELETE);
	if (phase == TTL_BLOCK_ORDER)
		take_in_block_order(&x, max_docs);
	else
		take_in_index_order(&x, max_docs);
	end_rows(&x);
	PopActiveSnapshot();
	if (x.nrows > 0)
		delete_locked_rows(&x, index);
	ttl_owner_restore(&saved);
	close_relations(&x);
	batch->past_pass = phase == TTL_FORWARD &&
		batch->resume.at.set && batch->resume.at.key > pass_cutoff->bound;
}

/*
 * Counts what would be deleted at this clock reading, and finds the oldest date
 * among it (DT_NOEND where nothing is due).  Without *oldest it counts all, with
 * it only the first is looked at.  The caller may look at the table, and has locked
 * table and index.
 */
int64
ttl_batch_count_due(const TtlIndex *index, TimestampTz at, TimestampTz *oldest)
{
	TtlCutoff	cutoff;
	TtlScanPosition begin = {0};
	TtlIndexScan walk;
	TtlUser		saved;
	Expirer		x = {.cutoff = &cutoff};
	const TtlIndexEntry *entry;
	IndexFetchTableData *fetch;
	int64		count = 0;

	ttl_cutoff_init(&cutoff, index, at);
	if (!open_relations(index->relid, index->indexrelid, &x))
		return 0;
	/* as the planner says it */
	if (RecoveryInProgress() && !RelationIsPermanent(x.heap))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access temporary or unlogged relations during recovery")));
	ttl_owner_become(index->owner, &saved);
	PushActiveSnapshot(GetTransactionSnapshot());
	begin_rows(&x);
	fetch = ttl_index_fetch_begin(x.heap);
	ttl_index_scan_begin(&walk, x.heap, x.index, cutoff.keytype, cutoff.bound, &begin);
	while ((entry = ttl_index_scan_next(&walk)) != NULL)
	{
		ItemPointerData tid = entry->tid;
		bool		call_again = false;

		if (!ttl_cutoff_is_due(&cutoff, entry->key) ||
			!table_index_fetch_tuple(fetch, &tid, x.snapshot, x.slot,
									 &call_again, NULL))
			continue;
		count++;
		if (oldest != NULL)
		{
			*oldest = ttl_cutoff_instant(&cutoff, entry->key);
			break;
		}
	}
	ExecClearTuple(x.slot);
	table_index_fetch_end(fetch);
	ttl_index_scan_end(&walk);
	end_rows(&x);
	PopActiveSnapshot();
	ttl_owner_restore(&saved);
	close_relations(&x);
	return count;
}
