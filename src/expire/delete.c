/*-------------------------------------------------------------------------
 *
 * delete.c
 *	  Deleting the rows of a batch that are due.
 *
 * Without a trigger or rule on DELETE, the table access method deletes a row.  If somebody
 * else holds or has changed the row, it is left.  Otherwise the rows are locked under the same
 * condition, and then DELETE FROM ONLY removes them, so triggers and rules act as for any
 * DELETE.  The command repeats the expiry and the filter, because a trigger of the same batch
 * can have changed another row of it.  Both ways delete the version that was found due, and
 * count alike.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/expire/delete.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "access/xact.h"
#include "catalog/catalog.h"
#include "catalog/pg_am.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "executor/tstoreReceiver.h"
#include "nodes/makefuncs.h"
#include "utils/array.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "compat.h"
#include "expire/expirer.h"
#include "ttl_index.h"

/* Says in the WAL, before the first row of the batch, which TTL index deletes it. */
static void
announce_once(TtlExpirer *x)
{
	if (x->root != NULL && RelationIsLogicallyLogged(x->heap))
		ttl_announce_to_wal(x->root, NULL, x->archive != NULL ?
							ttl_name_qualified(RelationGetRelid(x->archive)) : NULL);
	x->root = NULL;
}

/* Deletes or locks the row in the slot, unless that needs waiting. */
void
ttl_delete_row(TtlExpirer *x)
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
	{
		ItemPointer row = palloc(sizeof(ItemPointerData));

		*row = tid;
		x->rows[x->nrows++] = PointerGetDatum(row);
	}
}

static Param *
make_parameter(int number, Oid type)
{
	Param	   *parameter = makeNode(Param);

	parameter->paramkind = PARAM_EXTERN;
	parameter->paramid = number;
	parameter->paramtype = type;
	parameter->paramtypmod = -1;
	parameter->location = -1;
	return parameter;
}

/*
 * Makes the query DELETE FROM ONLY the table: $1 is the tuple IDs, $2 the greatest key that
 * can be due.  The locked version has passed the exact check already.
 */
static Query *
delete_query(const TtlIndex *target, Relation rel, bool returns_rows)
{
	Oid			keytype = target->keytype;
	Oid			family = get_opclass_family(GetDefaultOpClass(keytype, BTREE_AM_OID));
	ScalarArrayOpExpr *tids = makeNode(ScalarArrayOpExpr);
	Expr	   *key;
	Query	   *query;
	TtlOption	own;

	/* not target->option: a partition can number its columns otherwise */
	if (!ttl_option_read(target->indexrelid, &own))
		elog(ERROR, "cache lookup failed for index %u", target->indexrelid);
	tids->opno = TIDEqualOperator;
	tids->useOr = true;
	tids->args = list_make2(makeVar(1, SelfItemPointerAttributeNumber, TIDOID, -1, InvalidOid, 0),
							make_parameter(1, TIDARRAYOID));
	tids->location = -1;
	key = make_opclause(get_opfamily_member(family, keytype, keytype, BTLessEqualStrategyNumber),
						BOOLOID, false,
						(Expr *) ttl_query_key(target->indexrelid, rel, keytype),
						(Expr *) make_parameter(2, keytype), InvalidOid, InvalidOid);
	query = ttl_query_make_delete(rel, list_concat(list_make2(tids, key), own.filter));
	if (returns_rows)
		query->returningList = ttl_query_columns(rel);
	return query;
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
 * Deletes the rows that ttl_delete_row() locked.  The generic plan is a TID scan; a plan for
 * these tuple IDs could be a sequential scan.
 */
void
ttl_delete_locked(TtlExpirer *x, const TtlIndex *index)
{
	const TtlCutoff *cutoff = x->cutoff;
	ArrayType  *tids = construct_array(x->rows, x->nrows, TIDOID,
									   sizeof(ItemPointerData), false,
									   TYPALIGN_SHORT);
	ParamListInfo params = makeParamList(2);
	DestReceiver *receiver = None_Receiver;

	set_parameter(params, 1, TIDARRAYOID, PointerGetDatum(tids));
	set_parameter(params, 2, cutoff->keytype,
				  ttl_index_scan_datum(cutoff->keytype, cutoff->bound));
	if (x->moved != NULL)
	{
		receiver = CreateTuplestoreDestReceiver();
		SetTuplestoreDestReceiverParams(receiver, x->moved, CurrentMemoryContext, false,
										NULL, NULL);
	}
	announce_once(x);
	PushActiveSnapshot(GetTransactionSnapshot());
	x->batch->deleted = ttl_query_run(delete_query(index, x->heap, x->moved != NULL), params, NULL,
									  psprintf("DELETE by TTL index \"%s\"", RelationGetRelationName(x->index)),
									  receiver);
	/* a trigger has kept the other rows */
	if (x->batch->deleted < x->nrows)
		x->batch->cursor.rows_remain = true;
	PopActiveSnapshot();
}
