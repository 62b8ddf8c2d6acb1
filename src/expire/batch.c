/*-------------------------------------------------------------------------
 *
 * batch.c
 *	  One batch of one index: collect, check, delete.
 *
 * A batch is one transaction's worth of deletes by one index.  monitor/visit.c calls
 * ttl_batch_lock() and ttl_batch_run() for it, in a transaction and a subtransaction
 * that it began; due/due.c calls ttl_batch_look(), which looks and deletes nothing.
 *
 * The rows are looked for in the order of the index (index_order.c), or of the heap
 * (block_order.c), fetched and checked (row.c), and deleted (delete.c), or moved (move.c,
 * insert.c).  Those of a table of Citus that is on several nodes go another way
 * (by_value.c).
 *
 * A plain DELETE command for each batch would be simpler.  It would trust the index,
 * read again the entries of all rows that were deleted before, and wait for locked
 * rows.
 *
 * All of this runs as the table's owner.  Core is used through its
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

#include "access/relation.h"
#include "access/tableam.h"
#include "access/xlog.h"
#include "catalog/catalog.h"
#include "commands/trigger.h"
#include "executor/executor.h"
#include "storage/lmgr.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "compat.h"
#include "compute.h"
#include "definition/archive.h"
#include "definition/definition.h"
#include "expire/cascade.h"
#include "expire/expirer.h"
#include "expire/index_scan.h"
#include "expire/look.h"
#include "ttl_index.h"

static bool
open_relations(Oid relid, Oid indexrelid, TtlExpirer *x)
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
close_relations(TtlExpirer *x)
{
	if (x->archive != NULL)
		relation_close(x->archive, NoLock);
	relation_close(x->index, NoLock);
	relation_close(x->heap, NoLock);
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
note_horizon(TtlExpirer *x)
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
 * Lets deferrable constraints be checked at once, so that an error belongs to the batch, and to the
 * row, that causes it.
 */
void
ttl_batch_set_immediate(void)
{
	ConstraintsSetStmt *stmt = makeNode(ConstraintsSetStmt);

	stmt->constraints = NIL;
	stmt->deferred = false;
	AfterTriggerSetState(stmt);
}

/*
 * Locks where the long values of rows are, and the other indexes of the table, unless that needs
 * waiting or nothing opens them.  Without a command, indexes are opened only where the WAL is to
 * say which row was deleted; but with its block locked, so that who waited could not even be
 * canceled.
 */
static bool
lock_parts(TtlExpirer *x)
{
	Oid			toast = x->heap->rd_rel->reltoastrelid;

	if (OidIsValid(toast) && !ttl_lock_now(toast, RowExclusiveLock))
		return false;
	return (x->direct && !RelationIsLogicallyLogged(x->heap)) ||
		ttl_lock_now(RelationGetRelid(x->heap), RowExclusiveLock);
}

/*
 * Locks what a batch goes on to, unless that needs waiting: the tables to which foreign keys
 * lead, and the one to which rows are moved.
 */
static bool
lock_others(TtlExpirer *x, const TtlIndex *index)
{
	Oid			archive = index->option.archive_to;

	return (x->direct || ttl_cascade_lock(index->relid, index->owner)) &&
		(!OidIsValid(archive) || ttl_move_lock(x, archive));
}

/* Can the rows still be moved, with the lock in hand? */
static bool
may_move(const TtlIndex *index)
{
	TtlIndex	now = *index;

	return ttl_archive_state_now(&now) == TTL_ACTIVE;
}

/*
 * Takes the rows of a batch, and deletes or moves them, as the owner.  Returns in which
 * phase that was: the cursor may be in the next one.
 */
static TtlPhase
take_rows(TtlExpirer *x, const TtlIndex *index, int max_docs, int64 max_entries)
{
	TtlPhase	phase;

	PushActiveSnapshot(GetTransactionSnapshot());
	if (!x->direct || x->archive != NULL)
		ttl_batch_set_immediate();
	ttl_row_begin(x);
	ttl_row_begin_checks(x);
	note_horizon(x);
	ttl_move_begin(x);
	phase = x->batch->cursor.phase;

	/*
	 * as core does for any DELETE of a table that is published with a row
	 * filter
	 */
	CheckCmdReplicaIdentity(x->heap, CMD_DELETE);
	if (ttl_citus_goes_by_value(&index->citus))
		ttl_by_value_take(x, index, max_docs);
	else if (phase == TTL_BLOCK_ORDER)
		ttl_block_order_take(x, max_docs, max_entries);
	else
		ttl_index_order_take(x, max_docs, max_entries);
	ttl_row_end(x);
	PopActiveSnapshot();
	if (x->nrows > 0)
		ttl_delete_locked(x, index);
	ttl_move_end(x);
	return phase;
}

/*
 * Opens and locks what a batch needs.  Returns false, and why in the batch, where that needs
 * waiting or something is gone.
 */
static bool
begin_batch(TtlExpirer *x, const TtlIndex *index)
{
	TtlBatch   *batch = x->batch;

	/*
	 * the main index of a pair is not locked: REINDEX CONCURRENTLY may just
	 * drop it
	 */
	batch->inactive = x->root == NULL ||
		!open_relations(index->relid, index->indexrelid, x);
	if (batch->inactive)
		return false;
	x->direct = ttl_query_is_plain(x->heap, CMD_DELETE);
	batch->busy = !lock_parts(x) || !lock_others(x, index);
	batch->inactive = !batch->busy && OidIsValid(index->option.archive_to) &&
		(x->archive == NULL || !may_move(index));
	if (batch->busy || batch->inactive)
		close_relations(x);
	return !batch->busy && !batch->inactive;
}

/*
 * Runs one batch of up to max_docs rows of a locked index, in the caller's transaction,
 * from the cursor on.  Code of users runs here and may raise any error.
 *
 * What the code sets, and ttl_index.expiring, ends with the level of settings.
 */
void
ttl_batch_run(const TtlIndex *index, const TtlCutoff *cutoff,
			  const TtlCutoff *pass_cutoff, TransactionId pass_xid,
			  const TtlCursor *cursor, int max_docs, int64 max_entries,
			  TtlBatch *batch)
{
	TtlExpirer	x = {.cutoff = cutoff,.pass_xid = pass_xid,
	.cursor = &batch->cursor,.batch = batch,.root = ttl_name_find(index->root)};
	TtlPhase	phase;
	TtlUser		saved;
	int			level;

	memset(batch, 0, sizeof(*batch));
	batch->cursor = *cursor;
	/* until workers connect as the owner */
	ttl_owner_become(index->owner, &saved);
	level = NewGUCNestLevel();
	if (begin_batch(&x, index))
	{
		if (!x.direct)
			x.rows = palloc(sizeof(Datum) * (max_docs + MaxHeapTuplesPerPage));
		ttl_announce_to_session(x.root);
		phase = take_rows(&x, index, max_docs, max_entries);
		close_relations(&x);
		batch->past_pass = phase == TTL_FORWARD &&
			batch->cursor.forward.set && batch->cursor.forward.key > pass_cutoff->bound;
		/* the rows of dead entries are of any age */
		batch->from_before = phase != TTL_CATCH_UP &&
			(batch->from_before || batch->live == 0);
	}
	AtEOXact_GUC(false, level);
	ttl_owner_restore(&saved);

	/*
	 * Another server commits before this one does.  If this server then lost
	 * its commit in a crash, the rows would be there twice, so it is not left
	 * to be written later.
	 */
	if (batch->elsewhere)
		(void) set_config_option("synchronous_commit", "local", PGC_USERSET,
								 PGC_S_SESSION, GUC_ACTION_LOCAL, true, 0, false);
}

/* Prepares to show rows as a query does. */
static ProjectionInfo *
begin_shown_rows(TtlExpirer *x)
{
	MemoryContext caller = MemoryContextSwitchTo(x->estate->es_query_cxt);
	TupleDesc	desc = CreateTupleDescCopy(RelationGetDescr(x->heap));
	TupleTableSlot *slot = MakeSingleTupleTableSlot(desc, &TTSOpsVirtual);
	Expr	   *row = ttl_compute_planned((Expr *) ttl_query_columns(x->heap));
	ProjectionInfo *shown = ExecBuildProjectionInfo((List *) row,
													GetPerTupleExprContext(x->estate),
													slot, NULL, RelationGetDescr(x->heap));

	MemoryContextSwitchTo(caller);
	return shown;
}

/* Shows the row in the slot to the caller of a look, in memory for one row, if it is due. */
static bool
show_row(TtlExpirer *x, ProjectionInfo *shown, const TtlLook *look)
{
	MemoryContext caller = CurrentMemoryContext;

	if (!ttl_row_is_due(x))
		return false;
	MemoryContextSwitchTo(GetPerTupleMemoryContext(x->estate));
	look->row(ExecProject(shown), look->arg);
	MemoryContextSwitchTo(caller);
	return true;
}

/* Looks at the entries of an index, and at their rows. */
static void
look_at_entries(TtlExpirer *x, TtlLook *look)
{
	const TtlCutoff *cutoff = x->cutoff;
	TtlIndexScan scan;
	const TtlIndexEntry *entry;
	IndexFetchTableData *fetch;
	ProjectionInfo *shown = NULL;

	ttl_row_begin(x);
	/* who only counts waits for no code of users, and gets no error of it */
	if (look->row != NULL)
	{
		ttl_row_begin_checks(x);
		shown = begin_shown_rows(x);
	}
	fetch = ttl_index_fetch_begin(x->heap);
	ttl_index_scan_begin(&scan, x->heap, x->index, cutoff->keytype,
						 look->only_infinite ? ttl_index_scan_finite(cutoff->keytype).key :
						 cutoff->bound, &look->after);
	scan.max_pages = look->max_pages;
	while (look->count < look->max_rows &&
		   (entry = ttl_index_scan_next(&scan)) != NULL)
	{
		ItemPointerData tid = entry->tid;
		bool		call_again = false;

		if (!ttl_cutoff_is_due(cutoff, entry->key) ||
			!table_index_fetch_tuple(fetch, &tid, x->snapshot, x->slot,
									 &call_again, NULL))
			continue;
		if (look->row != NULL && !show_row(x, shown, look))
			continue;
		if (look->count++ == 0)
			look->oldest = ttl_cutoff_instant(cutoff, entry->key);
	}
	look->stopped = look->count < look->max_rows && !ttl_index_scan_is_over(&scan);
	ExecClearTuple(x->slot);
	table_index_fetch_end(fetch);
	ttl_index_scan_end(&scan);
	ttl_row_end(x);
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
	TtlUser		saved;
	TtlExpirer	x = {.cutoff = &cutoff};

	look->count = 0;
	look->stopped = false;
	ttl_cutoff_init(&cutoff, index, at);
	if (look->row != NULL || index->citus.replicated)
		ttl_owner_become(index->owner, &saved);
	else
		ttl_owner_become_to_count(index->owner, &saved);
	if (open_relations(index->relid, index->indexrelid, &x))
	{
		/* in the words of the planner */
		if (RecoveryInProgress() && !RelationIsPermanent(x.heap))
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("cannot access temporary or unlogged relations during recovery")));
		PushActiveSnapshot(GetTransactionSnapshot());
		if (index->citus.replicated)
			ttl_by_value_look(x.heap, index, &cutoff, look);
		else
			look_at_entries(&x, look);
		PopActiveSnapshot();
		close_relations(&x);
	}
	ttl_owner_restore(&saved);
}
