/*-------------------------------------------------------------------------
 *
 * by_value.c
 *	  Deleting rows of a table of Citus that is on several nodes, in all copies at once.
 *
 * The copies of a row have nothing in common but their values.  So the coordinator alone
 * deletes from such a table, with a DELETE of the table itself, which Citus runs on all
 * copies in one two-phase commit:
 *
 *		DELETE FROM ref WHERE at >= '2026-01-31 09:00:00+00' AND at <= '2026-01-31 10:00:00+00'
 *
 * A batch is a range of keys, with all rows that have the last one.  A query of the table finds
 * its first and its last key.  Then all who write to the table are locked out, and the DELETE
 * repeats with constants what is due, so that no copy reads a clock of its own.
 *
 * The lock is what keeps the copies equal.  Citus lets those who change such a table wait
 * for each other, but one who has waited goes by a snapshot from before the wait on its own
 * node, and by later ones on the others.  A row that was inserted meanwhile, and is due,
 * would go everywhere but here.  It does not keep out a transaction that is prepared on a
 * node and lost its way to the commit there, in a crash say: until Citus commits it, its rows
 * are in some copies and not in others, and nothing is deleted.
 *
 * The position of a cursor (cursor.c) has no tuple ID here: in its place is whether the rows
 * with that key are passed over, because one of them could not be deleted.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/expire/by_value.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/catalog.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "executor/tstoreReceiver.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "parser/parse_clause.h"
#include "parser/parse_oper.h"
#include "parser/parser.h"
#include "utils/acl.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "definition/option.h"
#include "expire/expirer.h"
#include "expire/look.h"
#include "ttl_index.h"

/* In place of a block number: the rows with the key of a position are passed over. */
#define ALL_OF_KEY MaxBlockNumber

/* Rows that follow each other in the order of their keys. */
typedef struct Range
{
	Relation	rel;
	Oid			keytype;
	Node	   *key;
	List	   *filter;
	int64		count;			/* rows that were found */
	int64		first;			/* the key of the first one */
	int64		last;
} Range;

/* Compares the key with a constant. */
static Node *
compare(const Range *range, const char *operator, int64 key)
{
	ParseState *pstate = make_parsestate(NULL);
	Const	   *value = makeConst(range->keytype, -1, InvalidOid, get_typlen(range->keytype),
								  ttl_index_scan_datum(range->keytype, key), false,
								  get_typbyval(range->keytype));
	Node	   *result = (Node *) make_op(pstate, SystemFuncName(pstrdup(operator)),
										  copyObject(range->key), (Node *) value, NULL, -1);

	free_parsestate(pstate);
	return result;
}

/* The query for rows that meet conditions. */
static Query *
make_query(const Range *range, List *conditions)
{
	return ttl_query_make(CMD_SELECT, range->rel,
						  list_concat(copyObject(range->filter), conditions));
}

/* The query for rows of a range, in its order: their keys, or these targets. */
static Query *
make_select(const Range *range, List *targets, List *conditions, int64 max)
{
	ParseState *pstate = make_parsestate(NULL);
	Query	   *query = make_query(range, conditions);
	TargetEntry *key = makeTargetEntry((Expr *) copyObject(range->key), list_length(targets) + 1,
									   pstrdup("key"), targets != NIL);

	query->targetList = lappend(targets, key);
	query->sortClause = addTargetToSortList(pstate, key, NIL, query->targetList,
											makeNode(SortBy));
	ttl_query_limit(query, 0, max);
	free_parsestate(pstate);
	return query;
}

/* Runs a query, and sets a slot for the rows that it has found. */
static Tuplestorestate *
run_select(Query *query, TupleTableSlot **slot)
{
	Tuplestorestate *rows = tuplestore_begin_heap(false, false, maintenance_work_mem);
	DestReceiver *receiver = CreateTuplestoreDestReceiver();

	*slot = MakeSingleTupleTableSlot(BlessTupleDesc(ExecCleanTypeFromTL(query->targetList)),
									 &TTSOpsMinimalTuple);
	SetTuplestoreDestReceiverParams(receiver, rows, CurrentMemoryContext, false, NULL, NULL);
	(void) ttl_query_run(query, NULL, NULL, "SELECT by a TTL index", receiver);
	return rows;
}

static void
end_select(Tuplestorestate *rows, TupleTableSlot *slot)
{
	ExecDropSingleTupleTableSlot(slot);
	tuplestore_end(rows);
}

/* The key of a row that was found. */
static int64
key_of(const Range *range, TupleTableSlot *slot)
{
	bool		isnull;
	Datum		key = slot_getattr(slot, 1, &isnull);

	if (isnull)
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("the key of a row of table \"%s\" that is due is NULL",
						RelationGetRelationName(range->rel)),
				 errhint("A function that the key calls is not immutable.")));
	return ttl_index_scan_key(range->keytype, key);
}

/* Finds the first rows of a range, so many, that meet these conditions. */
static void
find_rows(Range *range, List *conditions, int64 max)
{
	TupleTableSlot *slot;
	Tuplestorestate *rows = run_select(make_select(range, NIL, conditions, max), &slot);

	range->count = tuplestore_tuple_count(rows);
	if (tuplestore_gettupleslot(rows, true, false, slot))
		range->first = range->last = key_of(range, slot);
	if (range->count > 1 && tuplestore_skiptuples(rows, range->count - 2, true) &&
		tuplestore_gettupleslot(rows, true, false, slot))
		range->last = key_of(range, slot);
	end_select(rows, slot);
}

static void
begin_range(Range *range, Relation rel, const TtlIndex *index)
{
	TtlOption	own;

	if (!ttl_option_read(index->indexrelid, &own))
		elog(ERROR, "cache lookup failed for index %u", index->indexrelid);
	memset(range, 0, sizeof(*range));
	range->rel = rel;
	range->keytype = index->keytype;
	range->key = ttl_query_key(index->indexrelid, rel, index->keytype);
	range->filter = own.filter;
}

/* Are the rows with the key of a position passed over? */
static bool
skips_key(const TtlScanPosition *position)
{
	return position->set && ItemPointerGetBlockNumberNoCheck(&position->tid) == ALL_OF_KEY;
}

/* The conditions that a row is due, and not before a position. */
static List *
due_conditions(const Range *range, const TtlScanPosition *after, int64 bound)
{
	List	   *conditions = list_make1(compare(range, "<=", bound));

	if (after->set)
		conditions = lappend(conditions,
							 compare(range, skips_key(after) ? ">" : ">=", after->key));
	return conditions;
}

/* Deletes the rows of the range from all copies. */
static int64
delete_rows(const Range *range, const TtlIndex *index)
{
	List	   *conditions = list_make2(compare(range, ">=", range->first),
										compare(range, "<=", range->last));

	conditions = list_concat(conditions, copyObject(range->filter));
	return ttl_query_run(ttl_query_make(CMD_DELETE, range->rel, conditions), NULL, NULL,
						 psprintf("DELETE by TTL index \"%s\"",
								  get_rel_name(index->indexrelid)),
						 None_Receiver);
}

/* Moves a position to the last key of a range, or after it if that failed. */
static void
move_position(TtlScanPosition *position, const Range *range, bool failed)
{
	position->set = true;
	position->key = range->last;
	ItemPointerSet(&position->tid, failed ? ALL_OF_KEY : 0, FirstOffsetNumber);
}

/*
 * Forced row security does not apply here, but it does on the other nodes, where no more is
 * known than who owns the table: they would keep rows that go here.
 */
static void
check_row_security(Relation rel)
{
	if (rel->rd_rel->relrowsecurity && rel->rd_rel->relforcerowsecurity &&
		!has_bypassrls_privilege(rel->rd_rel->relowner))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("row security of table \"%s\", which has copies on other nodes, is forced for its owner",
						RelationGetRelationName(rel)),
				 errhint("ALTER TABLE ... NO FORCE ROW LEVEL SECURITY.")));
}

/* Lets constants be written so that each node reads the same, for this level of settings. */
static void
write_exactly(void)
{
	ttl_settings_set("datestyle", "ISO, YMD");
	ttl_settings_set("intervalstyle", "postgres");
	ttl_settings_set("extra_float_digits", "1");
	ttl_settings_set("array_nulls", "on");
	ttl_settings_set("xmloption", "content");
}

/* Takes so many rows from the cursor on, and all others with the last key. */
void
ttl_by_value_take(TtlExpirer *x, const TtlIndex *index, int max_docs)
{
	TtlBatch   *batch = x->batch;
	TtlCursor  *cursor = &batch->cursor;
	bool		forward = cursor->phase != TTL_CATCH_UP;
	TtlScanPosition *position = forward ? &cursor->forward : &cursor->catch_up;
	int64		bound = x->cutoff->sure;
	Range		range;

	batch->by_value = batch->elsewhere = true;
	check_row_security(x->heap);
	/* each row that is due from now on is behind the position */
	ttl_cursor_pull_back(cursor, bound);
	if (!forward)
		bound = Min(bound, cursor->forward.key);
	/* those before it that failed are tried again by a round that is thorough */
	batch->exhausted = !forward && !cursor->thorough && cursor->nfailures > 0;
	if (batch->exhausted)
		return;
	write_exactly();
	begin_range(&range, x->heap, index);
	find_rows(&range, due_conditions(&range, position, bound), max_docs);
	batch->candidates = batch->live = range.count;
	batch->exhausted = range.count < max_docs;
	batch->from_before = true;
	if (range.count == 0)
		return;
	move_position(position, &range, true);
	batch->locks_copies = true;
	ttl_citus_lock_copies(RelationGetRelid(x->heap));
	batch->locks_copies = false;
	if (RelationIsLogicallyLogged(x->heap))
		ttl_announce_to_wal(x->root, NULL, NULL);
	batch->deleted = delete_rows(&range, index);
	move_position(position, &range, false);
}

/* Counts the rows that meet conditions, without sorting them. */
static int64
count_rows(const Range *range, List *conditions)
{
	Query	   *query = make_query(range, conditions);
	Aggref	   *count = makeNode(Aggref);
	TupleTableSlot *slot;
	Tuplestorestate *rows;
	int64		result = 0;
	bool		isnull;

	count->aggfnoid = F_COUNT_;
	count->aggtype = INT8OID;
	count->aggstar = true;
	count->aggkind = AGGKIND_NORMAL;
	count->aggno = count->aggtransno = -1;
	count->location = -1;
	query->hasAggs = true;
	query->targetList = list_make1(makeTargetEntry((Expr *) count, 1, pstrdup("count"), false));
	rows = run_select(query, &slot);
	if (tuplestore_gettupleslot(rows, true, false, slot))
		result = DatumGetInt64(slot_getattr(slot, 1, &isnull));
	end_select(rows, slot);
	return result;
}

/* What a query for whole rows returns: it cannot send columns that were dropped. */
static List *
list_targets(Relation rel)
{
	List	   *targets = NIL;
	ListCell   *lc;

	foreach(lc, ttl_query_columns(rel))
	{
		TargetEntry *entry = lfirst_node(TargetEntry, lc);

		if (TupleDescAttr(RelationGetDescr(rel), entry->resno - 1)->attisdropped)
			continue;
		entry->resno = list_length(targets) + 1;
		targets = lappend(targets, entry);
	}
	return targets;
}

/* Shows rows that were found to the caller of a look, in memory for one row. */
static void
show_rows(Tuplestorestate *rows, TupleTableSlot *slot, TtlLook *look)
{
	MemoryContext for_row = AllocSetContextCreate(CurrentMemoryContext, "ttl_index row",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(for_row);

	while (tuplestore_gettupleslot(rows, true, false, slot))
	{
		look->row(slot, look->arg);
		look->count++;
		MemoryContextReset(for_row);
	}
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(for_row);
}

/* Finds the first row that is due, and counts up to so many. */
static void
look_at_range(Range *range, List *conditions, const TtlCutoff *cutoff, TtlLook *look)
{
	find_rows(range, conditions, look->max_rows);
	look->count = range->count;
	if (range->count > 0)
		look->oldest = ttl_cutoff_instant(cutoff, range->first);
}

/* Looks at the rows that are due, as the owner. */
void
ttl_by_value_look(Relation rel, const TtlIndex *index, const TtlCutoff *cutoff,
				  TtlLook *look)
{
	/* between this and the first date is nothing that could be written */
	int64		infinite = ttl_index_scan_finite(cutoff->keytype).key - 1;
	TtlScanPosition after = {.key = infinite,.set = look->after.set};
	int			level = NewGUCNestLevel();
	Tuplestorestate *rows = NULL;
	TupleTableSlot *slot = NULL;
	List	   *conditions;
	Range		range;

	ItemPointerSet(&after.tid, ALL_OF_KEY, FirstOffsetNumber);
	write_exactly();
	begin_range(&range, rel, index);
	conditions = due_conditions(&range, &after,
								look->only_infinite ? infinite : cutoff->sure);
	if (look->row != NULL)
		rows = run_select(make_select(&range, list_targets(rel), conditions,
									  look->max_rows), &slot);
	else if (look->max_rows == PG_INT64_MAX)
		look->count = count_rows(&range, conditions);
	else
		look_at_range(&range, conditions, cutoff, look);
	AtEOXact_GUC(false, level);
	if (rows != NULL)
	{
		/* who looks at them has settings of their own */
		show_rows(rows, slot, look);
		end_select(rows, slot);
	}
}
