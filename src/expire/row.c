/*-------------------------------------------------------------------------
 *
 * row.c
 *	  The rows of a batch: fetched, and checked once more.
 *
 * Whatever the index said, the row itself must be due and match the filter, in the version
 * that the snapshot of the batch sees.  So a damaged index, or a reused tuple ID, costs no
 * row.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/expire/row.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/index.h"
#include "executor/executor.h"
#include "rewrite/rewriteHandler.h"
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
 * key of a row outside of it may raise an error.
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
	/* the common case is worth a short cut */
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
