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
 * locked rows by their tuple IDs, so triggers and rules act as for any DELETE.  In a careful
 * batch it runs in a subtransaction.  If it fails, it is repeated for parts of the rows, down to
 * single rows.  Both ways skip a row that somebody else has locked or changed, and delete only
 * the version that was found due: if a trigger of the batch updates a row, the new version has
 * another tuple ID.
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
#include "catalog/namespace.h"
#include "catalog/partition.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "executor/tstoreReceiver.h"
#include "nodes/makefuncs.h"
#include "rewrite/rewriteHandler.h"
#include "storage/lock.h"
#include "utils/array.h"
#include "utils/lsyscache.h"
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
	if (x->scan != NULL)
		table_endscan(x->scan);
	ExecDropSingleTupleTableSlot(x->slot);
	FreeExecutorState(x->estate);
}

/* Begins to scan the rows from one tuple ID to another. */
void
ttl_row_scan(TtlExpirer *x, ItemPointer first, ItemPointer last)
{
	if (x->scan == NULL)
		x->scan = ttl_beginscan_tidrange(x->heap, x->snapshot, first, last);
	else
		table_rescan_tidrange(x->scan, first, last);
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
	uint64		rest;

	ResetExprContext(econtext);
	econtext->ecxt_scantuple = x->slot;
	if (!ExecQual(x->filter, econtext))
		return false;

	/* most keys are a column, which is faster to read */
	if (attnum != 0)
		values[0] = slot_getattr(x->slot, attnum, &isnull[0]);
	else
		FormIndexDatum(x->info, x->slot, x->estate, values, isnull);
	return !isnull[0] &&
		ttl_keytype_read(x->cutoff->keytype, values[0], &x->key, &rest) &&
		ttl_cutoff_is_due(x->cutoff, x->key);
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

/* A failed DELETE is repeated for each of so many parts of its rows. */
#define PARTS 50

/* A DELETE of locked rows. */
typedef struct Deletion
{
	TtlExpirer *x;
	List	   *plans;
	char	   *name;
	int			first;			/* of the rows */
	int			count;
	Tuplestorestate *moved;		/* the rows that it deleted, if they are to be moved */
	bool		only_wait;		/* rows that failed wait for others of the table */
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

/* Runs a DELETE of some of the rows. */
static void
run_delete(void *arg)
{
	const Deletion *deletion = arg;
	TtlExpirer *x = deletion->x;
	ParamListInfo params = makeParamList(1);
	Datum	   *tids = palloc(sizeof(Datum) * deletion->count);
	DestReceiver *receiver = None_Receiver;

	for (int i = 0; i < deletion->count; i++)
		tids[i] = PointerGetDatum(&x->rows[deletion->first + i].tid);
	params->params[0] = (ParamExternData) {
		.value = PointerGetDatum(construct_array(tids, deletion->count, TIDOID,
												 sizeof(ItemPointerData), false, TYPALIGN_SHORT)),
		.ptype = TIDARRAYOID
	};
	if (deletion->moved != NULL)
	{
		receiver = CreateTuplestoreDestReceiver();
		SetTuplestoreDestReceiverParams(receiver, deletion->moved, CurrentMemoryContext, false,
										NULL, NULL);
	}
	announce_once(x);
	PushActiveSnapshot(GetTransactionSnapshot());
	x->batch->deleted += ttl_query_run(deletion->plans, CMDTAG_DELETE, params, NULL,
									   deletion->name, receiver);
	PopActiveSnapshot();
}

/*
 * Tries the DELETE.  Returns its error if that is of rows.  If the batch was canceled, or may be
 * in a deadlock, its locks must be released, so this raises the error.
 */
static ErrorData *
try_delete(Deletion *deletion)
{
	TtlExpirer *x = deletion->x;
	const char *root = x->root;
	int64		deleted = x->batch->deleted;
	ErrorData  *edata;

	deletion->moved = x->moved == NULL ? NULL :
		tuplestore_begin_heap(false, false, maintenance_work_mem);
	edata = ttl_error_catch(run_delete, deletion, true);
	if (edata != NULL)
	{
		/* advisory locks of a session are not rolled back, and can have filled the lock table */
		LockReleaseSession(USER_LOCKMETHOD);
		/* its message and its rows were rolled back */
		x->root = root;
		x->batch->deleted = deleted;
		if (ERRCODE_TO_CATEGORY(edata->sqlerrcode) == ERRCODE_TRANSACTION_ROLLBACK ||
			ttl_error_is_interrupt(edata, edata->sqlerrcode))
			ReThrowError(edata);
	}
	else if (x->moved != NULL)
	{
		TupleTableSlot *slot = MakeSingleTupleTableSlot(RelationGetDescr(x->heap),
														&TTSOpsMinimalTuple);

		while (tuplestore_gettupleslot(deletion->moved, true, false, slot))
			tuplestore_puttupleslot(x->moved, slot);
		ExecDropSingleTupleTableSlot(slot);
	}
	if (x->moved != NULL)
		tuplestore_end(deletion->moved);
	return edata;
}

/* Is this error by a foreign key of the table itself? */
static bool
is_of_itself(const ErrorData *edata, Oid relid)
{
	Oid			namespace;
	Oid			table;

	if (edata->schema_name == NULL || edata->table_name == NULL)
		return false;
	namespace = get_namespace_oid(edata->schema_name, true);
	table = get_relname_relid(edata->table_name, namespace);
	return table == relid || list_member_oid(get_partition_ancestors(relid), table);
}

/*
 * Deletes some of the rows, as far as they can be deleted.  If the DELETE fails, each part of
 * them gets its own.  After the error of a foreign key, the last rows are deleted first: they
 * may reference those before them.
 */
static void
delete_rows(Deletion *deletion, int first, int count)
{
	TtlExpirer *x = deletion->x;
	TtlBatch   *batch = x->batch;
	int			size = (count + PARTS - 1) / PARTS;
	int			parts = (count + size - 1) / size;
	ErrorData  *edata;
	bool		referenced;

	deletion->first = first;
	deletion->count = count;
	edata = try_delete(deletion);
	if (edata == NULL)
		return;
	referenced = edata->sqlerrcode == ERRCODE_FOREIGN_KEY_VIOLATION ||
		edata->sqlerrcode == ERRCODE_RESTRICT_VIOLATION;
	if (count == 1)
	{
		bool		waits = referenced && is_of_itself(edata, RelationGetRelid(x->heap));

		ttl_cursor_note_failed(&batch->cursor, &x->rows[first].entry);
		batch->cursor.rows_wait = batch->cursor.rows_wait || waits;
		deletion->only_wait = deletion->only_wait && waits;
		batch->failed++;
	}
	if (batch->edata == NULL)
		batch->edata = edata;
	else
		FreeErrorData(edata);
	for (int i = 0; count > 1 && i < parts; i++)
	{
		int			start = size * (referenced ? parts - 1 - i : i);

		delete_rows(deletion, first + start, Min(size, count - start));
	}
}

/* How many of the rows are still there?  A DELETE of others may have taken some along. */
static int64
count_remaining(TtlExpirer *x)
{
	Snapshot	snapshot = RegisterSnapshot(GetLatestSnapshot());
	TupleTableSlot *slot = table_slot_create(x->heap, NULL);
	int64		count = 0;

	for (int i = 0; i < x->nrows; i++)
		count += table_tuple_fetch_row_version(x->heap, &x->rows[i].tid, snapshot, slot) ? 1 : 0;
	ExecDropSingleTupleTableSlot(slot);
	UnregisterSnapshot(snapshot);
	return count;
}

/* Deletes the rows that ttl_row_delete() locked, as far as they can be deleted. */
void
ttl_row_delete_locked(TtlExpirer *x)
{
	TtlBatch   *batch = x->batch;
	Deletion	deletion = {.x = x,.only_wait = true};

	deletion.name = psprintf("DELETE by TTL index \"%s\"", RelationGetRelationName(x->index));
	deletion.plans = plan_delete(&deletion);
	if (batch->careful)
		delete_rows(&deletion, 0, x->nrows);
	else
	{
		/* in a subtransaction, each row would get a multixact ID: it is locked by the transaction */
		deletion.count = x->nrows;
		deletion.moved = x->moved;
		run_delete(&deletion);
	}
	/* a trigger has kept the other rows */
	if (batch->deleted + batch->failed < x->nrows)
		batch->skipped_kept = Max(count_remaining(x) - batch->failed, 0);
	if (batch->deleted < x->nrows)
		batch->cursor.rows_remain = true;
	batch->waits = batch->failed > 0 && deletion.only_wait;
	/* it is no error as long as rows are tried again at once, when others are gone */
	if (batch->failed == 0 || (batch->waits && (!batch->cursor.thorough || batch->cursor.at_once)))
	{
		batch->failed = 0;
		batch->edata = NULL;
	}
}
