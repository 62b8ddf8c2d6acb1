/*-------------------------------------------------------------------------
 *
 * delete.c
 *	  Deleting the rows of a batch that are due.
 *
 * There are two ways to delete the rows that pass the check:
 *
 * direct	Nothing is attached to DELETE.  The table access method deletes the row
 * 		unless that needs waiting.  The deletion fails if somebody else holds the
 * 		row or has changed it since.
 * SQL		A trigger (foreign keys are triggers) or a rule is attached.  The rows are
 * 		locked under the same condition, then DELETE FROM ONLY the table removes
 * 		them, so that triggers and rules behave as for any DELETE.  The command
 * 		repeats the expiry and the filter, because a trigger of the same batch can
 * 		have changed another row of it.
 *
 * Both ways delete the very version that was found due, and count alike.
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
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/catalog.h"
#include "catalog/pg_am.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "nodes/makefuncs.h"
#include "utils/array.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "compat.h"
#include "definition/option.h"
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
		ttl_move_take(x);
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

/* Makes the condition that the key of an index is not later than a parameter. */
static Node *
key_condition(Oid indexrelid, Relation rel, Oid keytype, int param)
{
	Oid			family = get_opclass_family(GetDefaultOpClass(keytype, BTREE_AM_OID));

	return (Node *) make_opclause(get_opfamily_member(family, keytype, keytype,
													  BTLessEqualStrategyNumber),
								  BOOLOID, false,
								  (Expr *) ttl_query_key(indexrelid, rel, keytype),
								  (Expr *) make_parameter(param, keytype),
								  InvalidOid, InvalidOid);
}

/* Makes the condition that the tuple ID of a row is in an array parameter. */
static Node *
tid_condition(int param)
{
	ScalarArrayOpExpr *condition = makeNode(ScalarArrayOpExpr);

	condition->opno = TIDEqualOperator;
	condition->useOr = true;
	condition->args = list_make2(makeVar(1, SelfItemPointerAttributeNumber,
										 TIDOID, -1, InvalidOid, 0),
								 make_parameter(param, TIDARRAYOID));
	condition->location = -1;
	return (Node *) condition;
}

/*
 * Makes the query DELETE FROM ONLY the table.  $1 holds the tuple IDs, $2 the greatest
 * key that can be due.  The exact check of a key near a change of summer time was made
 * on the very version that is locked, so the bound is enough here.
 */
static Query *
delete_query(const TtlIndex *target, Relation rel, bool returns_rows)
{
	Query	   *query;
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
	query = ttl_query_make_delete(rel, list_concat(conditions, own.filter));
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
 * Runs the query.  Its plan is made for an array of unknown length, so it is a TID scan;
 * a plan made for these thousands of tuple IDs could be a sequential scan.
 */
static int64
delete_by_query(TtlExpirer *x, const TtlIndex *target, ArrayType *tids)
{
	const TtlCutoff *cutoff = x->cutoff;
	char	   *name = psprintf("DELETE by TTL index \"%s\"",
								get_rel_name(target->indexrelid));
	ParamListInfo params = makeParamList(2);

	set_parameter(params, 1, TIDARRAYOID, PointerGetDatum(tids));
	set_parameter(params, 2, cutoff->keytype,
				  ttl_index_scan_datum(cutoff->keytype, cutoff->bound));
	return ttl_query_run(delete_query(target, x->heap, x->moved != NULL), params, NULL, name,
						 ttl_move_receiver(x));
}

/* Deletes the rows that ttl_delete_row() has locked. */
void
ttl_delete_locked(TtlExpirer *x, const TtlIndex *index)
{
	ArrayType  *tids = construct_array(x->rows, x->nrows, TIDOID,
									   sizeof(ItemPointerData), false,
									   TYPALIGN_SHORT);

	announce_once(x);
	PushActiveSnapshot(GetTransactionSnapshot());
	x->batch->deleted = delete_by_query(x, index, tids);
	/* a trigger has kept the other rows */
	if (x->batch->deleted < x->nrows)
		x->batch->cursor.rows_remain = true;
	PopActiveSnapshot();
}
