/*-------------------------------------------------------------------------
 *
 * insert.c
 *	  Inserting rows of one table into another one, without a command.
 *
 * This is for an ordinary table without triggers, rules, row security, CHECK constraints,
 * generated columns, and indexes on expressions or with a predicate.  It saves most of what the
 * command does for each row: many rows are inserted into a block at a time, with one record in the
 * WAL.
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
#include "catalog/pg_index.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
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

/* Have the indexes of a table neither expressions nor predicates? */
static bool
are_indexes_plain(Relation rel)
{
	bool		plain = true;
	ListCell   *lc;

	foreach(lc, RelationGetIndexList(rel))
	{
		Relation	index = index_open(lfirst_oid(lc), NoLock);

		plain = plain &&
			heap_attisnull(index->rd_indextuple, Anum_pg_index_indexprs, NULL) &&
			heap_attisnull(index->rd_indextuple, Anum_pg_index_indpred, NULL);
		index_close(index, NoLock);
	}
	return plain;
}

/* Is nothing attached to a table but NOT NULL constraints, defaults and indexes on columns? */
static bool
is_plain(Relation rel)
{
	TupleConstr *constr = RelationGetDescr(rel)->constr;

	if (rel->rd_rel->relkind != RELKIND_RELATION || rel->rd_rel->relam != HEAP_TABLE_AM_OID ||
		rel->rd_rel->relispartition || rel->rd_rel->relrowsecurity ||
		(constr != NULL && constr->num_check > 0) || !ttl_query_is_plain(rel, CMD_INSERT))
		return false;
	for (int i = 0; i < RelationGetNumberOfAttributes(rel); i++)
	{
		if (TupleDescAttr(RelationGetDescr(rel), i)->attgenerated != '\0')
			return false;
	}
	return are_indexes_plain(rel);
}

/*
 * The value of a column that the other table does not have.  It is the same for all rows; NULL if
 * it may not be, as with a sequence, and for the NULL of a domain.
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
		return contain_volatile_functions(value) ? NULL :
			evaluate_expr(expression_planner((Expr *) value), attr->atttypid, attr->atttypmod,
						  attr->attcollation);
	if (get_typtype(attr->atttypid) == TYPTYPE_DOMAIN)
		return NULL;
	return (Expr *) makeNullConst(attr->atttypid, attr->atttypmod, attr->attcollation);
}

/*
 * Makes the target list for a whole row of a table out of one of another table, as a query
 * that inserts it would have it in the end.  NIL where that is left to such a query.
 */
static List *
make_row(Relation to, Relation from)
{
	List	   *row = NIL;

	for (AttrNumber i = 1; i <= RelationGetNumberOfAttributes(to); i++)
	{
		Expr	   *value = ttl_query_value(to, i, from);

		if (value == NULL)
			value = value_by_default(to, i);
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
 * Inserts rows of a table into another one, which is locked; or returns false, if that is
 * left to the command.
 */
bool
ttl_insert_rows(Relation to, Relation from, Tuplestorestate *rows)
{
	List	   *row = is_plain(to) ? make_row(to, from) : NIL;
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
