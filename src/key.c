/*-------------------------------------------------------------------------
 *
 * key.c
 *	  From the name of a key to a column, and to the indexes on it.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/key.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_index.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "parser/parse_func.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/ruleutils.h"
#include "utils/syscache.h"

#include "ttl_index.h"

/* earliest(column), where the column is an array of dates; else NULL. */
static Node *
array_key(Form_pg_attribute attr)
{
	Oid			type = TIMESTAMPTZARRAYOID;
	Oid			function;

	if (attr->atttypid != type)
		return NULL;
	function = LookupFuncName(list_make2(makeString(TTL_SCHEMA),
										 makeString("earliest")),
							  1, &type, false);
	return (Node *)
		makeFuncExpr(function, TIMESTAMPTZOID,
					 list_make1(makeVar(1, attr->attnum, type, attr->atttypmod,
										attr->attcollation, 0)),
					 InvalidOid, InvalidOid, COERCE_EXPLICIT_CALL);
}

/*
 * Finds the column that a key names, and what is to be indexed for it.  Raises
 * an error where the column is missing or holds no dates.
 */
void
ttl_key_resolve(Relation rel, const char *name, TtlKey *key)
{
	Form_pg_attribute attr;
	Oid			type;

	memset(key, 0, sizeof(*key));
	if (strcmp(name, "_id") == 0)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("the key \"_id\" cannot have a TTL index"),
				 errhint("A TTL index is on a date.")));
	key->attnum = get_attnum(RelationGetRelid(rel), name);
	if (key->attnum <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("column \"%s\" of relation \"%s\" does not exist",
						name, RelationGetRelationName(rel)),
				 errhint("The key of a TTL index is the name of a column; for an expression, use CREATE INDEX.")));
	attr = TupleDescAttr(RelationGetDescr(rel), key->attnum - 1);
	key->column = pstrdup(NameStr(attr->attname));
	type = getBaseType(attr->atttypid);

	if (ttl_key_type_ok(type))
	{
		key->type = type;
		key->sql = pstrdup(quote_identifier(key->column));
		return;
	}
	key->expression = array_key(attr);
	if (key->expression != NULL)
	{
		key->type = TIMESTAMPTZOID;
		key->sql = psprintf("(" TTL_SCHEMA ".earliest(%s))",
							quote_identifier(key->column));
		return;
	}
	key->type = attr->atttypid;
	ttl_check_key(key->type, NULL);
}

/* Is this the only key of the index: the column, or what is made of it? */
static bool
is_on_key(Oid indexrelid, Relation rel, const char *name, AttrNumber attnum)
{
	HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(indexrelid));
	Form_pg_index form;
	Datum		exprs;
	bool		isnull;
	bool		single;
	AttrNumber	column;
	Node	   *expression = NULL;

	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_index) GETSTRUCT(tuple);
	single = form->indnkeyatts == 1;
	column = form->indkey.values[0];
	exprs = SysCacheGetAttr(INDEXRELID, tuple, Anum_pg_index_indexprs, &isnull);
	if (!isnull)
		expression = linitial(castNode(List,
									   stringToNode(TextDatumGetCString(exprs))));
	ReleaseSysCache(tuple);

	if (!single)
		return false;
	if (column != 0)
		return column == attnum;
	if (strcmp(pg_get_indexdef_columns(indexrelid, true), name) == 0)
		return true;
	return attnum > 0 &&
		equal(expression,
			  array_key(TupleDescAttr(RelationGetDescr(rel), attnum - 1)));
}

/*
 * The indexes whose only key is the named column or expression; btrees only,
 * unless there are none.
 */
List *
ttl_key_indexes(Relation rel, const char *name)
{
	AttrNumber	attnum = get_attnum(RelationGetRelid(rel), name);
	List	   *btrees = NIL;
	List	   *others = NIL;
	ListCell   *lc;

	foreach(lc, RelationGetIndexList(rel))
	{
		Oid			indexrelid = lfirst_oid(lc);
		HeapTuple	tuple;

		if (!is_on_key(indexrelid, rel, name, attnum))
			continue;
		tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(indexrelid));
		if (!HeapTupleIsValid(tuple))
			continue;
		if (((Form_pg_class) GETSTRUCT(tuple))->relam == BTREE_AM_OID)
			btrees = lappend_oid(btrees, indexrelid);
		else
			others = lappend_oid(others, indexrelid);
		ReleaseSysCache(tuple);
	}
	return btrees != NIL ? btrees : others;
}
