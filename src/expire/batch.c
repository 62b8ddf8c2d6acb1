/*-------------------------------------------------------------------------
 *
 * batch.c
 *	  One batch of one index: collect, check, delete.
 *
 * A batch is one transaction's worth of deletes by one index.  monitor/visit.c calls
 * ttl_batch_lock() and ttl_batch_run() for it, in a transaction and a subtransaction
 * that it began.
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
 * A batch runs in a process of the table's owner (monitor/worker.c).  Core is used through
 * its interfaces for table access methods, for index expressions and for queries; of the
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
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "compat.h"
#include "definition/archive.h"
#include "definition/definition.h"
#include "expire/expirer.h"
#include "expire/index_scan.h"
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
 * Sets deferrable constraints immediate for the transaction: the row that a constraint keeps
 * is found only if the batch itself fails, and not the commit.
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

	return (x->direct || ttl_cascade_lock(x->heap)) &&
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
 * Takes the rows of a batch, and deletes them.  Returns in which phase that was: the cursor
 * may be in the next one.
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
	 * REINDEX CONCURRENTLY may drop the main index of a pair, which is not
	 * locked
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
 * Forced row security does not apply to what is deleted, but to what an archive takes, as to
 * an INSERT by its owner.  SET ROLE is refused, as the next batch would run as that role.  A
 * superuser's batch is a security-restricted operation, as triggers of other roles may act
 * in it.
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
	Oid			user;
	int			saved_context;
	int			sec_context;
	int			level = NewGUCNestLevel();

	memset(batch, 0, sizeof(*batch));
	batch->cursor = *cursor;
	GetUserIdAndSecContext(&user, &saved_context);
	sec_context = saved_context | SECURITY_LOCAL_USERID_CHANGE;
	if (superuser())
		sec_context |= SECURITY_RESTRICTED_OPERATION;
	SetUserIdAndSecContext(user, sec_context | SECURITY_NOFORCE_RLS);
	if (begin_batch(&x, index))
	{
		if (!x.direct)
			x.rows = palloc(sizeof(Datum) * (max_docs + MaxHeapTuplesPerPage));
		ttl_announce_to_session(x.root);
		phase = take_rows(&x, index, max_docs, max_entries);
		SetUserIdAndSecContext(user, sec_context);
		ttl_move_end(&x);
		close_relations(&x);
		batch->past_pass = phase == TTL_FORWARD &&
			batch->cursor.forward.set && batch->cursor.forward.key > pass_cutoff->bound;
		/* the rows of dead entries are of any age */
		batch->from_before = phase != TTL_CATCH_UP &&
			(batch->from_before || batch->live == 0);
	}
	AtEOXact_GUC(false, level);
	SetUserIdAndSecContext(user, saved_context);

	/*
	 * Another server commits before this one does.  If this server then lost
	 * its commit in a crash, the rows would be there twice, so it is not left
	 * to be written later.
	 */
	if (batch->elsewhere)
		(void) set_config_option("synchronous_commit", "local", PGC_USERSET,
								 PGC_S_SESSION, GUC_ACTION_LOCAL, true, 0, false);
}
