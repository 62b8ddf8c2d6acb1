/*-------------------------------------------------------------------------
 *
 * move.c
 *	  Moving the rows of a batch to another table instead of only deleting them.
 *
 * Rows that were deleted are inserted at the end of the batch, in the same transaction.  So a
 * row is always in one of the two tables, and a row that was not deleted is not inserted.
 *
 * Rows are inserted into a plain table without a command: many rows at a time, with one WAL
 * record for each block.  NOT NULL and unique indexes are checked by the same functions as
 * in core, in the same order.  Other tables get the rows by INSERT, so triggers, rules, row
 * security and defaults act as for any INSERT.  If INSERT adds fewer rows, as when a trigger
 * returns NULL, the batch fails, and the row is found like one that cannot be deleted.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/xact.h"
#include "catalog/pg_am.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "compat.h"
#include "definition/definition.h"
#include "expire/expirer.h"
#include "state/state.h"
#include "ttl_index.h"

/* What the rows are called in the query. */
#define MOVED_ROWS "moved"

/* So many rows, or bytes of them, are inserted at a time, like in COPY. */
#define ROWS_AT_A_TIME 1000
#define BYTES_AT_A_TIME 65536

/*
 * Makes the target list of the archive's columns that have a value: that of the column with
 * the same name in the query's second table.
 */
static List *
make_values(Relation to, Relation from)
{
	List	   *values = NIL;

	for (AttrNumber i = 1; i <= RelationGetNumberOfAttributes(to); i++)
	{
		Form_pg_attribute attr = TupleDescAttr(RelationGetDescr(to), i - 1);
		Form_pg_attribute source;
		int			number = SPI_fnumber(RelationGetDescr(from), NameStr(attr->attname));
		Expr	   *value;

		if (attr->attisdropped || attr->attgenerated != '\0' || number <= 0)
			continue;
		source = TupleDescAttr(RelationGetDescr(from), number - 1);

		/* it was checked, but a wrong type would crash the server */
		if (source->atttypid != attr->atttypid)
			elog(ERROR, "column \"%s\" of the archive has another type", NameStr(attr->attname));
		value = (Expr *) makeVar(2, number, source->atttypid, source->atttypmod,
								 source->attcollation, 0);
		values = lappend(values,
						 makeTargetEntry(value, i, pstrdup(NameStr(attr->attname)), false));
	}
	return values;
}

/*
 * Opens and locks the archive, if there is one; false if that needs waiting.  While it is
 * open, core refuses to alter it, except for renaming columns.
 */
bool
ttl_move_begin(TtlExpirer *x, const TtlIndex *index)
{
	Oid			target = index->option.archive_to;
	TtlIndex	now = *index;

	if (!OidIsValid(target))
		return true;
	if (!ttl_lock_now(target, RowExclusiveLock))
		return false;
	x->archive = try_relation_open(target, NoLock);
	x->batch->inactive = x->archive == NULL || ttl_archive_state_now(&now) != TTL_ACTIVE;
	if (x->batch->inactive)
		return true;
	x->batch->moves = true;
	x->batch->elsewhere = ttl_inherit_foreign_tables(target) != NIL;
	x->moved = tuplestore_begin_heap(false, false, maintenance_work_mem);
	x->values = make_values(x->archive, x->heap);
	return true;
}

/* Inserts the rows by a command, and checks that the table has taken them all. */
static void
insert_by_query(TtlExpirer *x)
{
	EphemeralNamedRelationData rows = {
		.md = {
			.name = MOVED_ROWS,
			.reliddesc = RelationGetRelid(x->heap),
			.enrtype = ENR_NAMED_TUPLESTORE,
			.enrtuples = tuplestore_tuple_count(x->moved)
		},
		.reldata = x->moved
	};
	QueryEnvironment *env = create_queryEnv();
	char	   *name = psprintf("INSERT by TTL index \"%s\"",
								RelationGetRelationName(x->index));
	int64		count;

	register_ENR(env, &rows);
	count = ttl_query_run(ttl_query_plan(ttl_query_make_insert(x->archive, x->values, env, MOVED_ROWS), name),
						  CMDTAG_INSERT, NULL, env, name, None_Receiver);
	if (count != x->batch->archived)
		ereport(ERROR,
				(errcode(ERRCODE_TRIGGERED_ACTION_EXCEPTION),
				 errmsg("table \"%s\" did not take %lld of %lld rows that were to be moved to it",
						RelationGetRelationName(x->archive),
						(long long) (x->batch->archived - count),
						(long long) x->batch->archived),
				 errhint("A trigger BEFORE INSERT there that returns NULL would lose these rows.")));
}

/* Can rows be inserted into a table, whose indexes are locked, without a command? */
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
 * Makes the target list of a complete row of a plain table from the values.  NIL if the table
 * is not plain, or if a column has a default that must be computed.
 */
static List *
make_row(Relation to, List *values)
{
	List	   *row = NIL;

	if (!is_plain(to))
		return NIL;
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

/* Inserts the rows into a plain table without a command. */
static void
insert_directly(TtlExpirer *x, List *row)
{
	Relation	to = x->archive;
	CommandId	cid = GetCurrentCommandId(true);
	EState	   *estate = CreateExecutorState();
	ExprContext *econtext = GetPerTupleExprContext(estate);
	MemoryContext caller = MemoryContextSwitchTo(estate->es_query_cxt);
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

	InitResultRelInfo(table, to, 0, NULL, 0);
	ExecOpenIndices(table, false);
	/* a thousand references to that of the relation would be slow to keep */
	desc = CreateTupleDescCopyConstr(RelationGetDescr(to));
	source = MakeSingleTupleTableSlot(CreateTupleDescCopyConstr(RelationGetDescr(x->heap)),
									  &TTSOpsMinimalTuple);
	result = MakeSingleTupleTableSlot(desc, &TTSOpsVirtual);
	projection = ExecBuildProjectionInfo(row, econtext, result, NULL, source->tts_tupleDescriptor);
	while (tuplestore_gettupleslot(x->moved, true, false, source))
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
}

/*
 * Inserts the deleted rows.  Which partitions the command locks is unknown before, and others
 * can hold a row that a unique index or a foreign key needs.  So waits are limited.
 */
void
ttl_move_end(TtlExpirer *x)
{
	List	   *row;

	if (x->moved == NULL)
		return;
	x->batch->archived = tuplestore_tuple_count(x->moved);
	if (x->batch->archived > 0)
	{
		/* triggers and functions there see that the rows are deleted here */
		CommandCounterIncrement();
		ttl_lock_limit_waits();
		x->batch->inserts = true;
		PushActiveSnapshot(GetTransactionSnapshot());
		row = make_row(x->archive, x->values);
		if (row != NIL)
			insert_directly(x, row);
		else
			insert_by_query(x);
		PopActiveSnapshot();
	}
	tuplestore_end(x->moved);
	x->moved = NULL;
}
