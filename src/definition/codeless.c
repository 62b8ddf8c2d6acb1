/*-------------------------------------------------------------------------
 *
 * codeless.c
 *	  Can a row be inserted into a table, or a query of it planned, without any code of users?
 *
 * Code of users can change whatever it likes in the middle of an insertion: it renames
 * columns, drops the default or the constraint that calls it, makes the table a partition.
 * Core's INSERT is made for that.  What inserts rows directly would have to look again behind
 * each call, and has forgotten to more than once.  So it does so only where there is none:
 * what is known here is few kinds of expressions and functions, and all else is left to the
 * command.
 *
 * The planner computes what is constant in the definition of a table, with the rights of
 * whoever has the query planned, as core does itself for the foreign keys of a new partition.
 *
 * Definitions are read as they are stored.  Core computes constants in what it has cached of
 * them, which calls functions.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/definition/codeless.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/transam.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "catalog/pg_partitioned_table.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_statistic_ext.h"
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "compat.h"
#include "definition/codeless.h"
#include "leftover.h"

/* Is a type, with all that its functions call, core's? */
static bool
is_of_core(Oid type)
{
	return type < FirstGenbkiObjectId || get_typtype(type) == TYPTYPE_ENUM;
}

/* Has a type the values of a calendar or a clock? */
static bool
is_of_time(Oid type)
{
	return type == DATEOID || type == TIMEOID || type == TIMETZOID || type == TIMESTAMPOID ||
		type == TIMESTAMPTZOID || type == INTERVALOID;
}

/*
 * Does a function of core compute with dates and times, as to_char() and comparing a date with a time
 * do, by the zone or the language of the session?  None with such an argument runs a query.
 */
static bool
computes_with_time(Oid function)
{
	Oid		   *types;
	int			nargs;
	bool		found = false;

	(void) get_func_signature(function, &types, &nargs);
	for (int i = 0; i < nargs; i++)
		found = found || is_of_time(types[i]);
	return found && function < FirstGenbkiObjectId && func_volatile(function) == PROVOLATILE_STABLE;
}

/*
 * Can a function run code of users?  What is immutable computes its result from its arguments
 * alone, but for one that opens the table of which it has the OID and computes what is constant
 * in its partition key; of the others some run queries, as table_to_xml() does.
 */
static bool
can_run_code(Oid function, void *arg)
{
	if (ttl_code_is_of_user(function))
		return true;
	switch (function)
	{
		case F_CLOCK_TIMESTAMP:
		case F_GEN_RANDOM_UUID:
		case F_NEXTVAL:
		case F_NOW:
		case F_STATEMENT_TIMESTAMP:
		case F_TRANSACTION_TIMESTAMP:
			return false;
		case F_SATISFIES_HASH_PARTITION:
			return true;
	}
	return func_volatile(function) != PROVOLATILE_IMMUTABLE && !computes_with_time(function);
}

/*
 * Is this core's operator?  Else the planner can call the function of its commutator or negator
 * to estimate how many rows it selects.
 */
static bool
has_operator_of_core(Node *node)
{
	ListCell   *lc;

	switch (nodeTag(node))
	{
		case T_OpExpr:
		case T_DistinctExpr:
		case T_NullIfExpr:
			return ((OpExpr *) node)->opno < FirstGenbkiObjectId;
		case T_ScalarArrayOpExpr:
			return ((ScalarArrayOpExpr *) node)->opno < FirstGenbkiObjectId;
		case T_RowCompareExpr:
			foreach(lc, ((RowCompareExpr *) node)->opnos)
			{
				if (lfirst_oid(lc) >= FirstGenbkiObjectId)
					return false;
			}
			return true;
		default:
			return true;
	}
}

static bool
has_code(Node *node, void *arg)
{
	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_List:
			break;
		case T_ArrayExpr:
		case T_BooleanTest:
		case T_BoolExpr:
		case T_CaseExpr:
		case T_CaseTestExpr:
		case T_CoalesceExpr:
		case T_CoerceViaIO:
		case T_CollateExpr:
		case T_Const:
		case T_DistinctExpr:
		case T_FuncExpr:
		case T_MinMaxExpr:
		case T_NextValueExpr:
		case T_NullIfExpr:
		case T_NullTest:
		case T_OpExpr:
		case T_RelabelType:
		case T_RowCompareExpr:
		case T_ScalarArrayOpExpr:
		case T_SQLValueFunction:
		case T_SubscriptingRef:
		case T_Var:
			if (!is_of_core(exprType(node)) || !has_operator_of_core(node) ||
				check_functions_in_node(node, can_run_code, NULL))
				return true;
			break;
		case T_CaseWhen:
			break;
		default:
			return true;
	}
	return expression_tree_walker(node, has_code, arg);
}

/* Does no code of users run where this expression is planned or computed? */
bool
ttl_codeless_expression(Node *expression)
{
	return !has_code(expression, NULL);
}

/* Is that so for the expressions in a column of a catalog row? */
static bool
is_column_codeless(SysCacheIdentifier cache, Oid object, AttrNumber attnum)
{
	HeapTuple	tuple = SearchSysCache1(cache, ObjectIdGetDatum(object));
	Datum		stored;
	bool		isnull;
	bool		codeless;

	if (!HeapTupleIsValid(tuple))
		return false;
	stored = SysCacheGetAttr(cache, tuple, attnum, &isnull);
	codeless = isnull || ttl_codeless_expression(stringToNode(TextDatumGetCString(stored)));
	ReleaseSysCache(tuple);
	return codeless;
}

/* Is that so for the expressions and the filter of an index? */
static bool
is_definition_codeless(Oid indexrelid)
{
	return is_column_codeless(INDEXRELID, indexrelid, Anum_pg_index_indexprs) &&
		is_column_codeless(INDEXRELID, indexrelid, Anum_pg_index_indpred);
}

/* Is that so for the CHECK constraints of a locked table? */
bool
ttl_codeless_checks(Relation rel)
{
	TupleConstr *constr = RelationGetDescr(rel)->constr;

	for (int i = 0; constr != NULL && i < constr->num_check; i++)
	{
		if (!ttl_codeless_expression(stringToNode(constr->check[i].ccbin)))
			return false;
	}
	return true;
}

/*
 * Is that so for an entry in an index?  Of other access methods than these two the functions
 * of an operator class can call those of the type, as GiST does with ranges.
 */
static bool
is_index_codeless(Oid indexrelid)
{
	Relation	index = index_open(indexrelid, NoLock);
	bool		ordinary = index->rd_rel->relam == BTREE_AM_OID || index->rd_rel->relam == HASH_AM_OID;
	bool		codeless = true;

	for (int i = 0; i < RelationGetNumberOfAttributes(index) && !ordinary; i++)
		codeless = codeless && is_of_core(TupleDescAttr(RelationGetDescr(index), i)->atttypid);
	index_close(index, NoLock);
	return codeless && is_definition_codeless(indexrelid);
}

/*
 * Is that so for the constraints, the generated columns and the indexes of a table, which are
 * locked?
 */
bool
ttl_codeless_table(Relation rel)
{
	ListCell   *lc;

	for (int i = 0; i < RelationGetNumberOfAttributes(rel); i++)
	{
		if (TupleDescAttr(RelationGetDescr(rel), i)->attgenerated != '\0')
			return false;
	}
	if (!ttl_codeless_checks(rel))
		return false;
	foreach(lc, RelationGetIndexList(rel))
	{
		if (!is_index_codeless(lfirst_oid(lc)))
			return false;
	}
	return true;
}

/* Does no code of users run where a query of a table is planned, which is locked? */
bool
ttl_codeless_planning(Oid relid)
{
	Relation	rel = relation_open(relid, NoLock);
	bool		codeless = ttl_codeless_checks(rel);
	ListCell   *lc;

	foreach(lc, RelationGetIndexList(rel))
		codeless = codeless && is_definition_codeless(lfirst_oid(lc));
	foreach(lc, RelationGetStatExtList(rel))
		codeless = codeless &&
		is_column_codeless(STATEXTOID, lfirst_oid(lc), Anum_pg_statistic_ext_stxexprs);
	if (rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE)
		codeless = codeless &&
			is_column_codeless(PARTRELID, relid, Anum_pg_partitioned_table_partexprs);
	relation_close(rel, NoLock);
	return codeless;
}
