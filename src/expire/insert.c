/*-------------------------------------------------------------------------
 *
 * insert.c
 *	  Inserting rows of one table into another one, without a command.
 *
 * It inserts many rows into a block at a time, with one WAL record, and checks NOT NULL and
 * unique indexes by the same functions as core, in the same order.  It is used for a plain
 * table without triggers, rules, row security, CHECK constraints, indexes with expressions or
 * a filter, and columns with a default that only this table has.  Others get the command
 * INSERT (move.c).
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
#include "access/xact.h"
#include "catalog/pg_am.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "compat.h"
#include "expire/expirer.h"
#include "ttl_index.h"

/* So many rows, or bytes of them, are inserted at a time: what COPY takes as well. */
#define ROWS_AT_A_TIME 1000
#define BYTES_AT_A_TIME 65536

/* Can rows be inserted into a table, whose indexes are locked, without the command? */
static bool
is_plain(Relation rel)
{
	TupleConstr *constr = RelationGetDescr(rel)->constr;
	bool		plain = rel->rd_rel->relkind == RELKIND_RELATION &&
		rel->rd_rel->relam == HEAP_TABLE_AM_OID &&
		!rel->rd_rel->relispartition && !rel->rd_rel->relrowsecurity &&
		ttl_query_is_plain(rel, CMD_INSERT) && (constr == NULL || constr->num_check == 0);
	ListCell   *lc;

	foreach(lc, RelationGetIndexList(rel))
	{
		Relation	index = index_open(lfirst_oid(lc), NoLock);

		plain = plain && RelationGetIndexExpressions(index) == NIL &&
			RelationGetIndexPredicate(index) == NIL;
		index_close(index, NoLock);
	}
	return plain;
}

/*
 * Makes the target list for a whole row of a table out of the values that there are, as a query
 * that inserts it would have it in the end.  NIL if something has to be computed.
 */
static List *
make_row(Relation to, List *values)
{
	List	   *row = NIL;

	for (AttrNumber i = 1; i <= RelationGetNumberOfAttributes(to); i++)
	{
		Form_pg_attribute attr = TupleDescAttr(RelationGetDescr(to), i - 1);
		TargetEntry *given = get_tle_by_resno(values, i);
		Expr	   *value;

		if (given != NULL)
			value = given->expr;
		else if (attr->attisdropped)
			value = (Expr *) makeNullConst(INT4OID, -1, InvalidOid);
		/* a generated column has a default; a domain may refuse NULL */
		else if (attr->atthasdef || attr->attidentity != '\0' ||
				 get_typdefault(attr->atttypid) != NULL ||
				 get_typtype(attr->atttypid) == TYPTYPE_DOMAIN)
			return NIL;
		else
			value = (Expr *) makeNullConst(attr->atttypid, attr->atttypmod, attr->attcollation);
		row = lappend(row, makeTargetEntry(value, i, NULL, false));
	}
	return row;
}

/* Inserts rows that are complete. */
static void
flush(ResultRelInfo *table, EState *estate, CommandId cid, TupleTableSlot **rows, int nrows)
{
	/* may leak memory */
	MemoryContext caller = MemoryContextSwitchTo(GetPerTupleMemoryContext(estate));

	table_multi_insert(table->ri_RelationDesc, rows, nrows, cid, 0, NULL);
	MemoryContextSwitchTo(caller);
	for (int i = 0; i < nrows; i++)
	{
		ResetPerTupleExprContext(estate);
		(void) TTL_INSERT_INDEX_ENTRIES(table, rows[i], estate);
		ExecClearTuple(rows[i]);
	}
}

/*
 * Inserts rows of a table into another one, which is locked, by the values for its columns; or
 * returns false, if that is left to the command.
 */
bool
ttl_insert_rows(Relation to, Relation from, List *values, Tuplestorestate *moved)
{
	List	   *row = is_plain(to) ? make_row(to, values) : NIL;
	CommandId	cid = GetCurrentCommandId(true);
	EState	   *estate;
	ExprContext *econtext;
	MemoryContext caller;
	ResultRelInfo *table = makeNode(ResultRelInfo);
	TupleDesc	desc;
	TupleTableSlot *source;
	TupleTableSlot *result;
	ProjectionInfo *projection;
	/* rows that are complete and not inserted yet */
	TupleTableSlot *rows[ROWS_AT_A_TIME];
	int			nslots = 0;
	int			nrows = 0;
	Size		size = 0;

	if (row == NIL)
		return false;
	estate = CreateExecutorState();
	econtext = GetPerTupleExprContext(estate);
	caller = MemoryContextSwitchTo(estate->es_query_cxt);
	InitResultRelInfo(table, to, 0, NULL, 0);
	ExecOpenIndices(table, false);
	/* a thousand references to that of the relation would be slow to keep */
	desc = CreateTupleDescCopyConstr(RelationGetDescr(to));
	source = MakeSingleTupleTableSlot(CreateTupleDescCopyConstr(RelationGetDescr(from)),
									  &TTSOpsMinimalTuple);
	result = MakeSingleTupleTableSlot(desc, &TTSOpsVirtual);
	projection = ExecBuildProjectionInfo(row, econtext, result, NULL, source->tts_tupleDescriptor);
	while (tuplestore_gettupleslot(moved, true, false, source))
	{
		CHECK_FOR_INTERRUPTS();
		ResetExprContext(econtext);
		econtext->ecxt_scantuple = source;
		(void) ExecProject(projection);
		result->tts_tableOid = RelationGetRelid(to);
		if (RelationGetDescr(to)->constr != NULL)
			ExecConstraints(table, result, estate);
		if (nrows == nslots)
			rows[nslots++] = MakeSingleTupleTableSlot(desc, &TTSOpsHeapTuple);
		ExecCopySlot(rows[nrows], result);
		size += ExecFetchSlotHeapTuple(rows[nrows++], false, NULL)->t_len;
		if (nrows == ROWS_AT_A_TIME || size >= BYTES_AT_A_TIME)
		{
			flush(table, estate, cid, rows, nrows);
			nrows = size = 0;
		}
	}
	if (nrows > 0)
		flush(table, estate, cid, rows, nrows);
	ExecCloseIndices(table);
	MemoryContextSwitchTo(caller);
	FreeExecutorState(estate);
	return true;
}
