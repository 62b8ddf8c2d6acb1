/*-------------------------------------------------------------------------
 *
 * insert.c
 *	  Inserting rows of one table into another one, without a command.
 *
 * This is for an ordinary table to which nothing is attached that only the command INSERT
 * knows about.  It saves most of what that does for each row: many rows go into a block at
 * a time, with one record in the WAL.  Indexes, constraints, defaults and generated columns
 * are those of the command, by the same functions of core, in the same order, as the same
 * user.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/expire/insert.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_am.h"
#include "executor/executor.h"
#include "executor/nodeModifyTable.h"
#include "miscadmin.h"
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

/* Is a table one to which nothing is attached that only the command knows about? */
static bool
is_plain(Relation rel)
{
	return rel->rd_rel->relkind == RELKIND_RELATION &&
		rel->rd_rel->relam == HEAP_TABLE_AM_OID &&
		!rel->rd_rel->relispartition && !rel->rd_rel->relrowsecurity &&
		ttl_query_is_plain(rel, CMD_INSERT);
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
	TupleConstr *constr = RelationGetDescr(x->table->ri_RelationDesc)->constr;
	ExprContext *econtext = GetPerTupleExprContext(x->estate);
	TupleTableSlot *kept;

	ResetExprContext(econtext);
	econtext->ecxt_scantuple = x->from;
	(void) ExecProject(x->projection);
	x->row->tts_tableOid = RelationGetRelid(x->table->ri_RelationDesc);
	if (constr != NULL && constr->has_generated_stored)
		ExecComputeStoredGenerated(x->table, x->estate, x->row, CMD_INSERT);
	if (constr != NULL)
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
	List	   *row = is_plain(to) ? ttl_query_row(to, from) : NIL;
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
