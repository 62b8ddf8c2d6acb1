/*-------------------------------------------------------------------------
 *
 * by_value.c
 *	  Deleting rows of a table of Citus that is on several nodes, in all copies at once.
 *
 * The copies of a row have nothing in common but their values.  So the coordinator alone
 * deletes from such a table, with a DELETE of the table itself, which Citus runs on all
 * copies in one two-phase commit:
 *
 *		DELETE FROM ref WHERE at <= '2026-01-31 10:00:00+00' AND at >= '...' AND ...
 *
 * A batch is a range of rows in the order of the key and, where keys are equal, of the
 * primary key; without a primary key, rows with the same key are in one batch.  A query of
 * the table finds the first and the last row of the range.  Then all who write to the table
 * are locked out, and the DELETE says once more what is due, with constants: no copy reads
 * a clock of its own, or any order but that of bytes.
 *
 * The lock is what keeps the copies equal.  Citus lets those who change such a table wait
 * for each other, but one who has waited goes by a snapshot from before the wait on its own
 * node, and by later ones on the others.  A row that was inserted meanwhile, and is due,
 * would go everywhere but here.  It does not keep out a transaction that is prepared on a
 * node and lost its way to the commit there, in a crash say: until Citus commits it, its rows
 * are in some copies and not in others, and nothing is deleted.
 *
 * The position of a cursor (cursor.c) has no tuple ID here: in its place is how many of the
 * rows with that key could not be deleted, and are passed over.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/expire/by_value.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "access/transam.h"
#include "catalog/catalog.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "executor/tstoreReceiver.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "parser/parse_clause.h"
#include "parser/parse_collate.h"
#include "parser/parse_oper.h"
#include "parser/parser.h"
#include "utils/acl.h"
#include "utils/datum.h"
#include "utils/fmgroids.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "definition/option.h"
#include "expire/expirer.h"
#include "ttl_index.h"

/* In place of a block number: all rows with the key of a position are passed over. */
#define ALL_OF_KEY MaxBlockNumber

/* Rows in an order that is the same in all copies. */
typedef struct Range
{
	Relation	rel;
	List	   *columns;		/* the key, and the primary key */
	List	   *filter;
	int64		count;			/* rows that were found */
	List	   *first;			/* the values of the first one, as constants */
	List	   *last;
} Range;

/*
 * Can rows be put in order by a column, alike on all nodes?  Other types than those of core
 * can differ from node to node, and so can the order of an enum, or what a domain allows;
 * of numbers, the OID that regclass stands for, and how money is written.
 */
static bool
has_common_order(Oid type)
{
	char		category;
	bool		preferred;

	switch (type)
	{
		case INT2OID:
		case INT4OID:
		case INT8OID:
		case FLOAT4OID:
		case FLOAT8OID:
		case NUMERICOID:
		case OIDOID:
		case UUIDOID:
			return true;
	}
	if (type >= FirstGenbkiObjectId)
		return false;
	get_type_category_preferred(type, &category, &preferred);
	return strchr("BDIST", category) != NULL;
}

/* Makes an expression for a column of the primary key. */
static Node *
make_column(Relation rel, AttrNumber attnum)
{
	Form_pg_attribute attr = TupleDescAttr(RelationGetDescr(rel), attnum - 1);
	Node	   *column = (Node *) makeVar(1, attnum, attr->atttypid, attr->atttypmod,
										  attr->attcollation, 0);
	CollateExpr *collate;

	if (!OidIsValid(attr->attcollation))
		return column;
	collate = makeNode(CollateExpr);
	collate->arg = (Expr *) column;
	collate->collOid = C_COLLATION_OID;
	collate->location = -1;
	return (Node *) collate;
}

/* The key of an index, and the columns of the primary key if these can be put in order. */
static List *
list_columns(Relation rel, const TtlIndex *index)
{
	List	   *key = list_make1(ttl_query_key(index->indexrelid, rel, index->keytype));
	List	   *columns = list_copy(key);
	Oid			constraint;
	Bitmapset  *primary = get_primary_key_attnos(RelationGetRelid(rel), true, &constraint);
	int			member = -1;

	while ((member = bms_next_member(primary, member)) >= 0)
	{
		Node	   *column = make_column(rel, member + FirstLowInvalidHeapAttributeNumber);

		if (!has_common_order(exprType(column)))
			return key;
		columns = lappend(columns, column);
	}
	return columns;
}

/* Compares a column with a constant. */
static Node *
compare(Node *column, const char *operator, Node *value)
{
	ParseState *pstate = make_parsestate(NULL);
	Node	   *result = (Node *) make_op(pstate, SystemFuncName(pstrdup(operator)),
										  copyObject(column), copyObject(value), NULL, -1);

	assign_expr_collations(pstate, result);
	free_parsestate(pstate);
	return result;
}

/*
 * Makes the condition that a row is not behind these values, or not before them.  The
 * operators are those for columns that decide, and for the last one.
 */
static Node *
compare_row(const Range *range, const List *values, int i, const char *decides,
			const char *last)
{
	Node	   *column = list_nth(range->columns, i);
	Node	   *value = list_nth(values, i);
	Node	   *rest;

	if (i == list_length(range->columns) - 1)
		return compare(column, last, value);
	rest = compare_row(range, values, i + 1, decides, last);
	return (Node *) makeBoolExpr(OR_EXPR,
								 list_make2(compare(column, decides, value),
											makeBoolExpr(AND_EXPR,
														 list_make2(compare(column, "=", value), rest),
														 -1)),
								 -1);
}

static Node *
make_key(const TtlIndex *index, int64 key)
{
	return (Node *) makeConst(index->keytype, -1, InvalidOid,
							  get_typlen(index->keytype),
							  ttl_index_scan_datum(index->keytype, key), false,
							  get_typbyval(index->keytype));
}

/* The query for rows that meet conditions. */
static Query *
make_query(const Range *range, List *conditions)
{
	return ttl_query_make(CMD_SELECT, range->rel,
						  list_concat(copyObject(range->filter), conditions));
}

/*
 * The query for rows of a range, in its order: what it returns comes first, and then the
 * columns of the range, which are for sorting alone if there is something.
 */
static Query *
make_select(const Range *range, List *targets, List *conditions, int64 skip, int64 max)
{
	ParseState *pstate = make_parsestate(NULL);
	Query	   *query = make_query(range, conditions);
	SortBy	   *ascending = makeNode(SortBy);
	bool		junk = targets != NIL;
	ListCell   *lc;

	query->targetList = targets;
	foreach(lc, range->columns)
	{
		int			number = list_length(query->targetList) + 1;
		TargetEntry *entry = makeTargetEntry(copyObject(lfirst(lc)), number,
											 psprintf("column%d", number), junk);

		query->targetList = lappend(query->targetList, entry);
		query->sortClause = addTargetToSortList(pstate, entry, query->sortClause,
												query->targetList, ascending);
	}
	ttl_query_limit(query, skip, max);
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

/* The values of a row that was found, as constants. */
static List *
copy_values(const Range *range, TupleTableSlot *slot)
{
	List	   *values = NIL;
	ListCell   *lc;

	foreach(lc, range->columns)
	{
		Node	   *column = lfirst(lc);
		Oid			type = exprType(column);
		int16		length;
		bool		byval;
		bool		isnull;
		Datum		value = slot_getattr(slot, list_length(values) + 1, &isnull);

		if (isnull)
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("the key of a row of table \"%s\" that is due is NULL",
							RelationGetRelationName(range->rel)),
					 errhint("A function that the key calls is not immutable.")));
		get_typlenbyval(type, &length, &byval);
		values = lappend(values,
						 makeConst(type, -1, exprCollation(column), length,
								   datumCopy(value, byval, length), false, byval));
	}
	return values;
}

/* Finds the first rows of a range, so many, that meet these conditions. */
static void
find_rows(Range *range, List *conditions, int64 skip, int64 max)
{
	TupleTableSlot *slot;
	Tuplestorestate *rows = run_select(make_select(range, NIL, conditions, skip, max), &slot);

	range->count = tuplestore_tuple_count(rows);
	if (tuplestore_gettupleslot(rows, true, false, slot))
		range->first = range->last = copy_values(range, slot);
	if (range->count > 1 && tuplestore_skiptuples(rows, range->count - 2, true) &&
		tuplestore_gettupleslot(rows, true, false, slot))
		range->last = copy_values(range, slot);
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
	range->columns = list_columns(rel, index);
	range->filter = own.filter;
}

/* How many of the rows with the key of a position are passed over. */
static BlockNumber
skip_of(const TtlScanPosition *position)
{
	return position->set ? ItemPointerGetBlockNumberNoCheck(&position->tid) : 0;
}

/* The conditions that a row is due, and not before a position. */
static List *
due_conditions(const Range *range, const TtlIndex *index, const TtlScanPosition *after,
			   int64 bound)
{
	Node	   *key = linitial(range->columns);
	List	   *conditions = list_make1(compare(key, "<=", make_key(index, bound)));

	if (after->set)
		conditions = lappend(conditions,
							 compare(key, skip_of(after) == ALL_OF_KEY ? ">" : ">=",
									 make_key(index, after->key)));
	return conditions;
}

/* Finds the next rows that are due, from a position on. */
static void
find_due(Range *range, const TtlIndex *index, const TtlScanPosition *after, int64 bound,
		 int64 max)
{
	BlockNumber skip = skip_of(after);

	find_rows(range, due_conditions(range, index, after, bound),
			  skip == ALL_OF_KEY ? 0 : skip, max);
}

/*
 * The conditions that a row is in the range, by the columns from this one on; those before
 * it are equal in all of the range.  First come those that the planner finds an index for.
 */
static List *
within(const Range *range, int i)
{
	Node	   *column = list_nth(range->columns, i);
	Node	   *first = list_nth(range->first, i);
	Node	   *last = list_nth(range->last, i);
	List	   *conditions = list_make2(compare(column, ">=", first),
										compare(column, "<=", last));

	if (i == list_length(range->columns) - 1)
		return conditions;
	if (equal(first, last))
		return list_concat(conditions, within(range, i + 1));
	return lappend(lappend(conditions, compare_row(range, range->first, i, ">", ">=")),
				   compare_row(range, range->last, i, "<", "<="));
}

/* Deletes the rows of the range from all copies. */
static int64
delete_rows(const Range *range, const TtlIndex *index)
{
	List	   *conditions = list_concat(copyObject(range->filter), within(range, 0));

	return ttl_query_run(ttl_query_make(CMD_DELETE, range->rel, conditions), NULL, NULL,
						 psprintf("DELETE by TTL index \"%s\"",
								  get_rel_name(index->indexrelid)),
						 None_Receiver);
}

/* Moves a position behind a range; its last row may have failed. */
static void
move_position(TtlScanPosition *position, const Range *range, const TtlIndex *index,
			  bool failed)
{
	const Const *last = linitial(range->last);
	int64		key = ttl_index_scan_key(index->keytype, last->constvalue);
	BlockNumber skip = position->key == key ? skip_of(position) : 0;

	if (failed)
		skip = list_length(range->columns) > 1 ? skip + 1 : ALL_OF_KEY;
	position->set = true;
	position->key = key;
	ItemPointerSet(&position->tid, skip, FirstOffsetNumber);
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

/* Writes values as each node reads them, whatever is set there, until the level of settings ends. */
static void
write_exactly(void)
{
	static const char *const settings[][2] = {
		{"datestyle", "ISO, YMD"}, {"intervalstyle", "postgres"}, {"extra_float_digits", "1"},
		{"array_nulls", "on"}, {"xmloption", "content"}
	};

	for (int i = 0; i < lengthof(settings); i++)
		ttl_settings_set(settings[i][0], settings[i][1]);
}

/* Takes up to so many rows from the cursor on. */
void
ttl_by_value_take(TtlExpirer *x, const TtlIndex *index, int max_docs)
{
	TtlBatch   *batch = x->batch;
	TtlCursor  *cursor = &batch->cursor;
	bool		forward = cursor->phase != TTL_CATCH_UP;
	TtlScanPosition *position = forward ? &cursor->forward : &cursor->catch_up;
	TtlScanPosition before;
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
	find_due(&range, index, position, bound, max_docs);
	batch->candidates = batch->live = range.count;
	batch->exhausted = range.count < max_docs;
	batch->from_before = true;
	if (range.count == 0)
		return;
	before = *position;
	move_position(position, &range, index, true);
	batch->locks_copies = true;
	ttl_citus_lock_copies(RelationGetRelid(x->heap));
	batch->locks_copies = false;
	if (RelationIsLogicallyLogged(x->heap))
		ttl_announce_to_wal(x->root, NULL, NULL);
	batch->deleted = delete_rows(&range, index);
	*position = before;
	move_position(position, &range, index, false);
}
