/*-------------------------------------------------------------------------
 *
 * batch.c
 *	  One batch of one index: collect, check, delete.
 *
 * It runs in a process of the table's owner (server/worker.c), in one transaction.  A DELETE
 * command for each batch would be simpler, but it would trust the index, read again the
 * entries of all rows that were deleted before, and wait for locked rows.
 *
 * Of the heap, the code uses only that tuple IDs are ordered by block, the number of rows in a
 * block, and xmin.  Nothing here reads a counter or a clock.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "access/xlog.h"
#include "catalog/catalog.h"
#include "commands/trigger.h"
#include "executor/executor.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/guc.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "compat.h"
#include "expire/expirer.h"
#include "ttl_index.h"

#define MESSAGE_PREFIX "ttl_index"

/*
 * Sets ttl_index.expiring to the name of the index, so that a trigger can recognize the
 * delete.  The context PGC_INTERNAL keeps users from setting it.  It ends with the caller's
 * GUC nesting level, also after an error.  The index is that of the whole table, which has a
 * row in the view index_stats.
 */
void
ttl_batch_announce_to_session(const char *root)
{
	(void) set_config_option("ttl_index.expiring", root, PGC_INTERNAL,
							 PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
}

/*
 * Writes a message of logical decoding, if anybody could decode it.  Its lines are the index,
 * the partition that is dropped or moved (or an empty line), and the archive if there is one.
 * It comes before the rows, in the same subtransaction, so it is decoded if and only if the
 * deletes are.  A replication origin would make subscribers with origin = none omit the
 * deletes.
 */
void
ttl_batch_announce_to_wal(const char *root, const char *partition, const char *archive)
{
	StringInfoData message;

	if (!ttl_logical_messages || !XLogLogicalInfoActive())
		return;
	initStringInfo(&message);
	appendStringInfoString(&message, root);
	if (partition != NULL || archive != NULL)
		appendStringInfo(&message, "\n%s", partition ? partition : "");
	if (archive != NULL)
		appendStringInfo(&message, "\n%s", archive);
	ttl_log_logical_message(MESSAGE_PREFIX, message.data, message.len);
	pfree(message.data);
}

/*
 * Locks the table ROW EXCLUSIVE and the index SHARE UPDATE EXCLUSIVE, or returns false.  The
 * lock on the index excludes other passes and coll_mod(), so the definition cannot change.
 */
bool
ttl_batch_lock(Oid relid, Oid indexrelid)
{
	return ConditionalLockRelationOid(relid, RowExclusiveLock) &&
		ConditionalLockRelationOid(indexrelid, ShareUpdateExclusiveLock);
}

/*
 * Sets deferrable constraints immediate for the transaction: the row that a constraint keeps
 * is found only if the batch itself fails, and not the commit.
 */
void
ttl_batch_set_immediate(void)
{
	/* one that names none is of all constraints */
	AfterTriggerSetState(makeNode(ConstraintsSetStmt));
}

static void
close_relations(TtlExpirer *x)
{
	if (x->archive != NULL)
		relation_close(x->archive, NoLock);
	relation_close(x->index, NoLock);
	relation_close(x->heap, NoLock);
}

/* Opens and locks what a batch needs; false with the reason in the batch. */
static bool
begin_batch(TtlExpirer *x, const TtlIndex *index)
{
	TtlBatch   *batch = x->batch;
	Oid			toast;

	batch->inactive = true;
	/* the index of the whole table is not locked, so it may be gone */
	if (x->root == NULL || (x->heap = try_relation_open(index->relid, NoLock)) == NULL)
		return false;
	x->index = try_relation_open(index->indexrelid, NoLock);
	if (x->index == NULL)
	{
		relation_close(x->heap, NoLock);
		return false;
	}
	batch->inactive = false;
	x->direct = ttl_query_is_plain(x->heap, CMD_DELETE);
	toast = x->heap->rd_rel->reltoastrelid;

	/*
	 * Without a command, TOAST and the other indexes are opened only for a
	 * replica identity, but with a buffer locked, where waiting cannot be
	 * canceled.
	 */
	batch->busy = (OidIsValid(toast) && !ttl_lock_now(toast, RowExclusiveLock)) ||
		(!x->direct ? !ttl_cascade_lock(x->heap) :
		 RelationIsLogicallyLogged(x->heap) && !ttl_lock_now(index->relid, RowExclusiveLock)) ||
		!ttl_move_begin(x, index);
	if (batch->busy || batch->inactive)
		close_relations(x);
	return !batch->busy && !batch->inactive;
}

/*
 * Runs one batch of up to max_docs rows of a locked index from its cursor on.  Code of users
 * runs here and may raise any error.  Forced row security applies to INSERT into an archive,
 * not to deletes.  SET ROLE is refused, because the next batch would run as that role.  A
 * superuser's batch is a security-restricted operation, because other roles' triggers may run
 * in it.
 */
void
ttl_batch_run(const TtlIndex *index, const TtlCutoff *cutoff,
			  const TtlCutoff *pass_cutoff, TransactionId pass_xid,
			  int max_docs, int64 max_entries, TtlBatch *batch)
{
	TtlExpirer	x = {.cutoff = cutoff,.pass_xid = pass_xid,.batch = batch,
	.root = ttl_name_find(index->governor)};
	TtlCursor  *cursor = &batch->cursor;
	TtlPhase	phase;
	Oid			user;
	int			saved_context;
	int			sec_context;
	int			level = NewGUCNestLevel();

	GetUserIdAndSecContext(&user, &saved_context);
	sec_context = saved_context | SECURITY_LOCAL_USERID_CHANGE;
	if (superuser())
		sec_context |= SECURITY_RESTRICTED_OPERATION;
	SetUserIdAndSecContext(user, sec_context | SECURITY_NOFORCE_RLS);
	if (begin_batch(&x, index))
	{
		if (!x.direct)
			x.rows = palloc(sizeof(TtlLockedRow) * (max_docs + MaxHeapTuplesPerPage));
		ttl_batch_announce_to_session(x.root);

		PushActiveSnapshot(GetTransactionSnapshot());
		if (!x.direct || x.archive != NULL)
			ttl_batch_set_immediate();
		ttl_row_begin(&x);

		/* if the index was rebuilt or the table was truncated, the cursor begins again */
		if (cursor->filenode != x.index->rd_rel->relfilenode)
			ttl_cursor_init(cursor, index->indexrelid, x.index->rd_rel->relfilenode);

		/* what is written later is not in the batch */
		batch->horizon.set = true;
		batch->horizon.xmin = x.snapshot->xmin;
		if (RelationNeedsWAL(x.index))
			batch->horizon.lsn = GetXLogInsertRecPtr();

		/* as core does for any DELETE of a published table with a row filter */
		CheckCmdReplicaIdentity(x.heap, CMD_DELETE);
		phase = cursor->phase;	/* the cursor may be in the next one afterwards */
		/* only the coordinator gets here, for a table that has copies */
		if (index->citus.kind == TTL_CITUS_SHELL)
			ttl_by_value_take(&x, index, max_docs);
		else if (phase == TTL_BLOCK_ORDER)
			ttl_block_order_take(&x, max_docs, max_entries);
		else
			ttl_index_order_take(&x, max_docs, max_entries);
		ttl_row_end(&x);
		PopActiveSnapshot();
		if (x.nrows > 0)
			ttl_row_delete_locked(&x);

		SetUserIdAndSecContext(user, sec_context);
		ttl_move_end(&x);
		close_relations(&x);
		batch->past_pass = phase == TTL_FORWARD &&
			cursor->forward.set && cursor->forward.key > pass_cutoff->bound;
		/* the rows of dead entries are of any age */
		batch->from_before = phase != TTL_CATCH_UP &&
			(batch->from_before || batch->live == 0);
	}
	AtEOXact_GUC(false, level);
	SetUserIdAndSecContext(user, saved_context);

	/*
	 * The other server commits first.  If a crash lost the commit here, the
	 * rows would be in both places, so the commit waits for the disk.
	 */
	if (batch->elsewhere)
		(void) set_config_option("synchronous_commit", "local", PGC_USERSET,
								 PGC_S_SESSION, GUC_ACTION_LOCAL, true, 0, false);
}
