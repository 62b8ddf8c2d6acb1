/*-------------------------------------------------------------------------
 *
 * row.c
 *	  The rows of a batch: each is checked once more, and deleted.
 *
 * Whatever the index says, the row itself must be due and match the filter, in the version
 * that the snapshot of the batch sees.  So a damaged index or a reused tuple ID costs no row.
 *
 * If the table has no trigger or rule on DELETE, the table access method deletes the row.
 * Otherwise the row is locked, and at the end of the batch one DELETE FROM ONLY removes the
 * locked rows by their tuple IDs, so triggers and rules act as for any DELETE.  If it fails in a
 * careful batch, the rows that foreign keys keep are left out (referenced.c).  If it fails again,
 * each row is deleted by a DELETE of its own, in a subtransaction.  Both ways skip
 * a row that somebody else has locked or changed, and delete only the version that was found
 * due: if a trigger of the batch updates a row, the new version has another tuple ID.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/sysattr.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/catalog.h"
#include "catalog/index.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "executor/tstoreReceiver.h"
#include "nodes/makefuncs.h"
#include "rewrite/rewriteHandler.h"
#include "storage/lock.h"
#include "utils/array.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "compat.h"
#include "expire/expirer.h"
#include "ttl_index.h"

/*
 * Prepares to fetch rows under the active snapshot and to check them, which runs code of
 * users.  Key and filter are read as stored, because the relation cache keeps the inlined
 * bodies of SQL functions after they are replaced.  Virtual columns in a whole-row reference
 * are NULL in the index, but not in queries.
 */
void
ttl_row_begin(TtlExpirer *x)
{
	Oid			indexrelid = RelationGetRelid(x->index);
	TtlOption	own;
	AttrNumber	attnum;
	Node	   *key;

	x->snapshot = GetActiveSnapshot();
	x->slot = table_slot_create(x->heap, NULL);
	if (!ttl_key_read(indexrelid, &attnum, &key) || !ttl_option_read(indexrelid, &own))
		elog(ERROR, "cache lookup failed for index %u", indexrelid);
	x->info = BuildIndexInfo(x->index);
	if (key != NULL)
		x->info->ii_Expressions = list_make1(TTL_EXPAND_VIRTUAL(key, x->heap));
	x->estate = CreateExecutorState();
	x->filter = ExecPrepareQual((List *) TTL_EXPAND_VIRTUAL((Node *) own.filter, x->heap),
								x->estate);
}

void
ttl_row_end(TtlExpirer *x)
{
	if (x->run != NULL)
		table_endscan(x->run);
	ExecDropSingleTupleTableSlot(x->slot);
	FreeExecutorState(x->estate);
}

/*
 * Is the row due, by its own key and the filter?  The filter comes first, as in the index: the
 * key of a row that does not match it may raise an error.
 */
bool
ttl_row_is_due(TtlExpirer *x)
{
	ExprContext *econtext = GetPerTupleExprContext(x->estate);
	AttrNumber	attnum = x->info->ii_IndexAttrNumbers[0];
	Datum		values[INDEX_MAX_KEYS];
	bool		isnull[INDEX_MAX_KEYS];

	ResetExprContext(econtext);
	econtext->ecxt_scantuple = x->slot;
	if (!ExecQual(x->filter, econtext))
		return false;

	/* most keys are a column, which is faster to read */
	if (attnum != 0)
		values[0] = slot_getattr(x->slot, attnum, &isnull[0]);
	else
		FormIndexDatum(x->info, x->slot, x->estate, values, isnull);
	if (isnull[0])
		return false;
	x->key = ttl_index_scan_key(x->cutoff->keytype, values[0]);
	return ttl_cutoff_is_due(x->cutoff, x->key);
}

/*
 * Was the row written by a transaction older than this one?  A frozen row's xmin may be too
 * old to compare, and seem to be in the future.
 */
bool
ttl_row_is_older(TtlExpirer *x, TransactionId xid)
{
	HeapTuple	tuple = ExecFetchSlotHeapTuple(x->slot, false, NULL);
	TransactionId xmin = HeapTupleHeaderGetRawXmin(tuple->t_data);

	return TransactionIdPrecedes(xmin, xid) ||
		(HeapTupleHeaderXminFrozen(tuple->t_data) &&
		 TransactionIdFollowsOrEquals(xmin, ReadNextTransactionId()));
}

/* Writes to the WAL, before the first row of the batch, which TTL index deletes it. */
static void
announce_once(TtlExpirer *x)
{
	if (x->root != NULL && RelationIsLogicallyLogged(x->heap))
		ttl_batch_announce_to_wal(x->root, NULL, x->archive == NULL ? NULL :
								  ttl_name_qualified(RelationGetRelid(x->archive)));
	x->root = NULL;
}

/* Deletes or locks the row in the slot, unless that needs waiting. */
void
ttl_row_delete(TtlExpirer *x)
{
	TM_FailureData failure;
	TM_Result	result;
	ItemPointerData tid = x->slot->tts_tid;
	CommandId	cid = GetCurrentCommandId(true);

	if (!x->batch->from_before)
		x->batch->from_before = ttl_row_is_older(x, x->pass_xid);
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
	{
		x->batch->deleted++;
		if (x->moved != NULL)
			tuplestore_puttupleslot(x->moved, x->slot);
	}
	else
		x->rows[x->nrows++] = (TtlLockedRow) {
			.tid = tid,.entry = {.key = x->key,.tid = x->entry,.set = true}
		};
}

/* A DELETE of locked rows. */
typedef struct Deletion
{
	TtlExpirer *x;
	List	   *plans;
	char	   *name;
	int			first;			/* of the rows */
	int			count;
} Deletion;

/*
 * Plans a DELETE of locked rows.  Their tuple IDs are a parameter of a generic plan, which is a
 * TID scan: a plan for these tuple IDs could be a sequential scan.
 */
static List *
plan_delete(const Deletion *deletion)
{
	TtlExpirer *x = deletion->x;
	Param	   *parameter = makeNode(Param);
	ScalarArrayOpExpr *is_locked = makeNode(ScalarArrayOpExpr);

	parameter->paramkind = PARAM_EXTERN;
	parameter->paramid = 1;
	parameter->paramtype = TIDARRAYOID;
	parameter->paramtypmod = -1;
	parameter->location = -1;
	is_locked->opno = TIDEqualOperator;
	is_locked->useOr = true;
	is_locked->args = list_make2(makeVar(1, SelfItemPointerAttributeNumber, TIDOID, -1,
										 InvalidOid, 0),
								 parameter);
	is_locked->location = -1;
	return ttl_query_plan(ttl_query_make_delete(x->heap, (Node *) is_locked, x->moved != NULL),
						  deletion->name);
}

/* Runs a DELETE of those of the rows that are not known to be kept. */
static void
run_delete(void *arg)
{
	const Deletion *deletion = arg;
	TtlExpirer *x = deletion->x;
	TtlBatch   *batch = x->batch;
	ParamListInfo params = makeParamList(1);
	Datum	   *tids = palloc(sizeof(Datum) * deletion->count);
	int			ntids = 0;
	DestReceiver *receiver = None_Receiver;

	for (int i = deletion->first; i < deletion->first + deletion->count; i++)
	{
		if (!x->rows[i].kept)
			tids[ntids++] = PointerGetDatum(&x->rows[i].tid);
	}
	if (ntids == 0)
		return;
	params->params[0] = (ParamExternData) {
		.value = PointerGetDatum(construct_array(tids, ntids, TIDOID, sizeof(ItemPointerData),
												 false, TYPALIGN_SHORT)),
		.ptype = TIDARRAYOID
	};
	if (x->moved != NULL)
	{
		receiver = CreateTuplestoreDestReceiver();
		SetTuplestoreDestReceiverParams(receiver, x->moved, CurrentMemoryContext, false,
										NULL, NULL);
	}
	announce_once(x);
	PushActiveSnapshot(GetTransactionSnapshot());
	batch->deleted += ttl_query_run(deletion->plans, CMDTAG_DELETE, params, NULL, deletion->name,
									receiver);
	PopActiveSnapshot();
}

/*
 * Tries a DELETE in a subtransaction.  Returns its error if that is of rows.  If the batch was canceled, or may be in
 * a deadlock, its locks must be released, so this raises the error.
 */
static ErrorData *
try_delete(Deletion *deletion)
{
	const char *root = deletion->x->root;
	ErrorData  *edata = ttl_error_catch(run_delete, deletion, true);

	if (edata == NULL)
		return NULL;
	/* advisory locks of a session are not rolled back, and can have filled the lock table */
	LockReleaseSession(USER_LOCKMETHOD);
	deletion->x->root = root;	/* its message was rolled back */
	if (ERRCODE_TO_CATEGORY(edata->sqlerrcode) == ERRCODE_TRANSACTION_ROLLBACK ||
		ttl_error_is_interrupt(edata, edata->sqlerrcode))
		ReThrowError(edata);
	if (deletion->x->moved != NULL)
		tuplestore_clear(deletion->x->moved);
	return edata;
}

/* Deletes the rows that ttl_row_delete() locked, as far as they can be deleted. */
void
ttl_row_delete_locked(TtlExpirer *x)
{
	TtlBatch   *batch = x->batch;
	Deletion	deletion = {.x = x,.count = x->nrows};
	ErrorData  *edata;
	bool		only_wait = false;

	deletion.name = psprintf("DELETE by TTL index \"%s\"", RelationGetRelationName(x->index));
	deletion.plans = plan_delete(&deletion);

	/* a row that is locked by a transaction and deleted by a subtransaction gets a multixact ID */
	if (batch->careful)
		edata = batch->edata = try_delete(&deletion);
	else
	{
		edata = NULL;
		run_delete(&deletion);
	}
	if (edata != NULL &&
		(edata->sqlerrcode == ERRCODE_FOREIGN_KEY_VIOLATION ||
		 edata->sqlerrcode == ERRCODE_RESTRICT_VIOLATION))
	{
		only_wait = ttl_referenced_mark(x);
		edata = try_delete(&deletion);
		only_wait = only_wait && edata == NULL;
	}
	/* the rows of an archive cannot be told apart */
	if (edata != NULL && x->nrows > 1 && x->moved != NULL)
		ReThrowError(edata);
	for (int i = 0; i < x->nrows && batch->edata != NULL; i++)
	{
		TtlLockedRow *row = &x->rows[i];

		deletion.first = i;
		deletion.count = 1;
		if (edata != NULL && !row->kept)
		{
			ErrorData  *own = x->nrows > 1 ? try_delete(&deletion) : edata;

			row->kept = own != NULL;
			if (own != NULL && own != edata)
				FreeErrorData(own);
		}
		if (row->kept)
		{
			ttl_cursor_note_failed(&batch->cursor, &row->entry);
			batch->failed++;
		}
	}
	/* it is no error as long as rows are tried again at once, when others are gone */
	batch->waits = only_wait && batch->failed > 0;
	if (only_wait && (!batch->cursor.thorough || batch->cursor.at_once))
	{
		batch->failed = 0;
		batch->edata = NULL;
	}
	/* a trigger has kept the other rows */
	if (batch->deleted < x->nrows)
		batch->cursor.rows_remain = true;
}
