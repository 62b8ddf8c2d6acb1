/*-------------------------------------------------------------------------
 *
 * insert.c
 *	  Inserting rows of one table into another one, without a command.
 *
 * This is for an ordinary table without triggers, rules, row security, CHECK constraints,
 * generated columns, or indexes with expressions or a filter; all others get their rows by the
 * command INSERT (move.c).  It saves most of what that does for each row: many rows go into a
 * block at a time, with one record in the WAL.  NOT NULL and unique indexes are checked by the
 * same functions of core, in the same order.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/expire/insert.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_am.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "rewrite/rewriteHandler.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "compat.h"
#include "expire/expirer.h"
#include "ttl_index.h"

/* So many rows, or bytes of them, are inserted at a time: what COPY takes as well. */
#define ROWS_AT_A_TIME 1000
#define BYTES_AT_A_TIME 65536

typedef struct Insertion
{
	ResultRelInfo *table;
	EState	   *estate;
	CommandId	cid;
	TupleTableSlot *from;		/* the row at hand, of the other table */
	ProjectionInfo *projection; /* makes a row of this table out of it */
	TupleTableSlot *row;		/* the result */
	TupleDesc	desc;
	/* rows that are complete and not inserted yet */
	TupleTableSlot *rows[ROWS_AT_A_TIME];
	int			nslots;
	int			nrows;
	Size		size;
} Insertion;

/* Has a table a CHECK constraint or a generated column? */
static bool
computes_for_rows(Relation rel)
{
	TupleDesc	desc = RelationGetDescr(rel);
	bool		found = desc->constr != NULL && desc->constr->num_check > 0;

	for (int i = 0; i < desc->natts; i++)
		found = found || TupleDescAttr(desc, i)->attgenerated != '\0';
	return found;
}

/* Has a table, whose indexes are locked, one with an expression or a filter? */
static bool
computes_for_indexes(Relation rel)
{
	bool		found = false;
	ListCell   *lc;

	foreach(lc, RelationGetIndexList(rel))
	{
		Relation	index = index_open(lfirst_oid(lc), NoLock);

		found = found || RelationGetIndexExpressions(index) != NIL ||
			RelationGetIndexPredicate(index) != NIL;
		index_close(index, NoLock);
	}
	return found;
}

/* Can rows be inserted into a table without the command? */
static bool
is_plain(Relation rel)
{
	return rel->rd_rel->relkind == RELKIND_RELATION &&
		rel->rd_rel->relam == HEAP_TABLE_AM_OID &&
		!rel->rd_rel->relispartition && !rel->rd_rel->relrowsecurity &&
		ttl_query_is_plain(rel, CMD_INSERT) && !computes_for_rows(rel) &&
		!computes_for_indexes(rel);
}

/*
 * The value of a column for which the other table has none, if that is a constant; else NULL,
 * and the command computes it.
 */
static Expr *
value_by_default(Relation to, AttrNumber attnum)
{
	Form_pg_attribute attr = TupleDescAttr(RelationGetDescr(to), attnum - 1);
	Node	   *value;

	if (attr->attisdropped)
		return (Expr *) makeNullConst(INT4OID, -1, InvalidOid);
	value = build_column_default(to, attnum);
	if (value != NULL)
	{
		Expr	   *planned = expression_planner((Expr *) value);

		return IsA(planned, Const) ? planned : NULL;
	}
	/* a domain may refuse NULL */
	if (get_typtype(attr->atttypid) == TYPTYPE_DOMAIN)
		return NULL;
	return (Expr *) makeNullConst(attr->atttypid, attr->atttypmod, attr->attcollation);
}

/*
 * Makes the target list for a whole row of a table out of one of another table, as a query
 * that inserts it would have it in the end.  NIL where that is left to such a query.
 */
static List *
make_row(Relation to, List *values)
{
	List	   *row = NIL;

	for (AttrNumber i = 1; i <= RelationGetNumberOfAttributes(to); i++)
	{
		TargetEntry *given = get_tle_by_resno(values, i);
		Expr	   *value = given ? given->expr : value_by_default(to, i);

		if (value == NULL)
			return NIL;
		row = lappend(row, makeTargetEntry(value, i, NULL, false));
	}
	return row;
}

static void
begin(Insertion *x, Relation to, TupleDesc from, List *row)
{
	MemoryContext caller;

	x->cid = GetCurrentCommandId(true);
	x->estate = CreateExecutorState();
	caller = MemoryContextSwitchTo(x->estate->es_query_cxt);
	x->table = makeNode(ResultRelInfo);
	InitResultRelInfo(x->table, to, 0, NULL, 0);
	ExecOpenIndices(x->table, false);
	/* a thousand references to that of the relation would be slow to keep */
	x->desc = CreateTupleDescCopyConstr(RelationGetDescr(to));
	x->from = MakeSingleTupleTableSlot(CreateTupleDescCopyConstr(from), &TTSOpsMinimalTuple);
	x->row = MakeSingleTupleTableSlot(x->desc, &TTSOpsVirtual);
	x->projection = ExecBuildProjectionInfo(row, GetPerTupleExprContext(x->estate),
											x->row, NULL, x->from->tts_tupleDescriptor);
	MemoryContextSwitchTo(caller);
}

/* Inserts the rows that are complete. */
static void
flush(Insertion *x)
{
	/* may leak memory */
	MemoryContext caller = MemoryContextSwitchTo(GetPerTupleMemoryContext(x->estate));

	table_multi_insert(x->table->ri_RelationDesc, x->rows, x->nrows, x->cid, 0, NULL);
	MemoryContextSwitchTo(caller);
	for (int i = 0; i < x->nrows; i++)
	{
		ResetPerTupleExprContext(x->estate);
		(void) TTL_INSERT_INDEX_ENTRIES(x->table, x->rows[i], x->estate);
		ExecClearTuple(x->rows[i]);
	}
	x->nrows = 0;
	x->size = 0;
}

/* Completes the row in the slot, checks it, and keeps it. */
static void
add_row(Insertion *x)
{
	ExprContext *econtext = GetPerTupleExprContext(x->estate);
	TupleTableSlot *kept;

	ResetExprContext(econtext);
	econtext->ecxt_scantuple = x->from;
	(void) ExecProject(x->projection);
	x->row->tts_tableOid = RelationGetRelid(x->table->ri_RelationDesc);
	if (RelationGetDescr(x->table->ri_RelationDesc)->constr != NULL)
		ExecConstraints(x->table, x->row, x->estate);
	if (x->nrows == x->nslots)
	{
		MemoryContext caller = MemoryContextSwitchTo(x->estate->es_query_cxt);

		x->rows[x->nslots++] = MakeSingleTupleTableSlot(x->desc, &TTSOpsHeapTuple);
		MemoryContextSwitchTo(caller);
	}
	kept = x->rows[x->nrows++];
	ExecCopySlot(kept, x->row);
	x->size += ExecFetchSlotHeapTuple(kept, false, NULL)->t_len;
	if (x->nrows == ROWS_AT_A_TIME || x->size >= BYTES_AT_A_TIME)
		flush(x);
}

/*
 * Inserts rows of a table into another one, which is locked, by the values for its columns; or
 * returns false, if that is left to the command.
 */
bool
ttl_insert_rows(Relation to, Relation from, List *values, Tuplestorestate *rows)
{
	List	   *row = is_plain(to) ? make_row(to, values) : NIL;
	Insertion	x = {0};

	if (row == NIL)
		return false;
	begin(&x, to, RelationGetDescr(from), row);
	while (tuplestore_gettupleslot(rows, true, false, x.from))
	{
		CHECK_FOR_INTERRUPTS();
		add_row(&x);
	}
	if (x.nrows > 0)
		flush(&x);
	ExecCloseIndices(x.table);
	FreeExecutorState(x.estate);
	return true;
}
