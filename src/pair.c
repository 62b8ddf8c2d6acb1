/*-------------------------------------------------------------------------
 *
 * pair.c
 *	  Documents with a TTL of their own: two indexes that are one TTL index.
 *
 * A document's own TTL needs no engine of its own.  The main index is on the date
 * and holds the documents without a valid TTL:
 *		(key) WHERE document_ttl(d) IS NULL AND expire_after_seconds(n)
 * the other is on the date plus the TTL of those that have one:
 *		(expire_at(key, document_ttl(d))) WHERE document_ttl(d) IS NOT NULL
 *			AND expire_after_seconds(0)
 * So a change of n, also to -1 ("only documents with a TTL of their own expire")
 * and back, concerns the main index alone and rebuilds nothing.
 *
 * Nothing but their trees makes them a pair: the key of the other names the key
 * and the TTL that the main one has.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/pair.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/index.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "ttl_index.h"

/* document_ttl(d) is document_ttl(d, 'ttl'): with the argument that it omits. */
static Node *
complete_call(FuncExpr *call, const TtlFunctions *functions)
{
	if (call->funcid != functions->document_ttl || list_length(call->args) != 1)
		return (Node *) call;
	call = copyObject(call);
	call->inputcollid = DEFAULT_COLLATION_OID;
	call->args = lappend(call->args,
						 makeConst(TEXTOID, -1, DEFAULT_COLLATION_OID, -1,
								   CStringGetTextDatum("ttl"), false, false));
	return (Node *) call;
}

/* The TTL of a document, if the node asks whether it has none. */
static Node *
ttl_of_null_test(Node *node, const TtlFunctions *functions, NullTestType type)
{
	NullTest   *test = (NullTest *) node;
	FuncExpr   *call;

	if (!IsA(node, NullTest) || test->nulltesttype != type ||
		!IsA(test->arg, FuncExpr))
		return NULL;
	call = (FuncExpr *) test->arg;
	if (call->funcid != functions->document_ttl &&
		call->funcid != functions->column_ttl)
		return NULL;
	return complete_call(call, functions);
}

/*
 * The call of document_ttl() that the AND members of a predicate ask to be NULL;
 * NULL where there is none.
 */
Node *
ttl_pair_document_ttl(List *members)
{
	TtlFunctions functions;
	ListCell   *lc;

	if (!ttl_functions(&functions))
		return NULL;
	foreach(lc, members)
	{
		Node	   *call = ttl_of_null_test(lfirst(lc), &functions, IS_NULL);

		if (call != NULL)
			return call;
	}
	return NULL;
}

/* The members but those that ask for a document's TTL, for the view. */
List *
ttl_pair_plain_filter(List *members)
{
	TtlFunctions functions;
	List	   *plain = NIL;
	ListCell   *lc;

	if (!ttl_functions(&functions))
		return members;
	foreach(lc, members)
	{
		if (ttl_of_null_test(lfirst(lc), &functions, IS_NULL) == NULL &&
			ttl_of_null_test(lfirst(lc), &functions, IS_NOT_NULL) == NULL)
			plain = lappend(plain, lfirst(lc));
	}
	return plain;
}

/* Is the node this key: the column, or the expression? */
static bool
is_key(Node *node, AttrNumber attnum, Node *expression)
{
	if (expression != NULL)
		return equal(node, expression);
	/* a domain has a coercion around the column */
	node = strip_implicit_coercions(node);
	return IsA(node, Var) && ((Var *) node)->varattno == attnum;
}

/* The two arguments of expire_at(), if that is the key of the index. */
static bool
read_expire_at(Oid indexrelid, Node **since, Node **ttl)
{
	TtlFunctions functions;
	AttrNumber	attnum;
	Node	   *expression;
	FuncExpr   *call;

	if (!ttl_index_key(indexrelid, &attnum, &expression) ||
		expression == NULL || !IsA(expression, FuncExpr) ||
		!ttl_functions(&functions))
		return false;
	call = (FuncExpr *) expression;
	if (call->funcid != functions.expire_at || list_length(call->args) != 2)
		return false;
	*since = linitial(call->args);
	*ttl = lsecond(call->args);
	if (IsA(*ttl, FuncExpr))
		*ttl = complete_call((FuncExpr *) *ttl, &functions);
	return true;
}

/*
 * The second index of a pair on this table, by what the main one has: its key, the
 * TTL of a document, and the filter of both.  It may be without the option, after
 * remove_ttl().
 */
Oid
ttl_pair_find(Oid relid, AttrNumber attnum, Node *expression, Node *ttl,
			  List *plain_filter)
{
	ListCell   *lc;

	foreach(lc, ttl_catalog_table_indexes(relid))
	{
		TtlOption	option;
		Node	   *since;
		Node	   *own_ttl;

		if (read_expire_at(lfirst_oid(lc), &since, &own_ttl) &&
			is_key(since, attnum, expression) && equal(own_ttl, ttl) &&
			ttl_option_read(lfirst_oid(lc), &option) &&
			equal(ttl_pair_plain_filter(option.filter), plain_filter))
			return lfirst_oid(lc);
	}
	return InvalidOid;
}

/* The second index of the pair whose main one this is, or invalid. */
Oid
ttl_pair_other(Oid main)
{
	TtlOption	option;
	AttrNumber	attnum;
	Node	   *expression;
	Node	   *ttl;
	Oid			relid = IndexGetRelation(main, true);

	if (!OidIsValid(relid) || !ttl_option_read(main, &option) ||
		!ttl_index_key(main, &attnum, &expression))
		return InvalidOid;
	ttl = ttl_pair_document_ttl(option.filter);
	if (ttl == NULL)
		return InvalidOid;
	return ttl_pair_find(relid, attnum, expression, ttl,
						 ttl_pair_plain_filter(option.filter));
}

/* The main TTL index of the pair that this one is the second of, or invalid. */
Oid
ttl_pair_main(Oid indexrelid)
{
	Node	   *since;
	Node	   *ttl;
	ListCell   *lc;

	if (!read_expire_at(indexrelid, &since, &ttl))
		return InvalidOid;
	foreach(lc, ttl_catalog_table_indexes(IndexGetRelation(indexrelid, false)))
	{
		TtlOption	option;

		if (ttl_option_read(lfirst_oid(lc), &option) && option.present &&
			ttl_pair_other(lfirst_oid(lc)) == indexrelid)
			return lfirst_oid(lc);
	}
	return InvalidOid;
}

/* document_ttl() as users name it: 'doc.ttl', or the integer column. */
char *
ttl_pair_field_name(Node *call, Oid relid)
{
	List	   *args = ((FuncExpr *) call)->args;
	Var		   *column = (Var *) strip_implicit_coercions(linitial(args));
	Const	   *field = list_length(args) > 1 ? lsecond(args) : NULL;
	char	   *name;

	if (!IsA(column, Var))
		return NULL;
	name = get_attname(relid, column->varattno, true);
	if (name == NULL || getBaseType(exprType((Node *) column)) != JSONBOID)
		return name;
	if (field == NULL)
		return psprintf("%s.ttl", name);
	if (!IsA(field, Const) || field->constisnull)
		return NULL;
	return psprintf("%s.%s", name, TextDatumGetCString(field->constvalue));
}

/*
 * The SQL of document_ttl() for a field that a user named: a jsonb column and one
 * property at the root of its documents, or an integer column.
 */
char *
ttl_pair_field_sql(Relation rel, const char *name)
{
	Oid			relid = RelationGetRelid(rel);
	AttrNumber	attnum = get_attnum(relid, name);
	Oid			type = attnum > 0 ? getBaseType(get_atttype(relid, attnum)) : InvalidOid;
	char	   *column = pstrdup(name);
	char	   *field;

	if (type == INT2OID || type == INT4OID || type == INT8OID)
		return psprintf(TTL_SCHEMA ".column_ttl(%s)", quote_identifier(name));
	field = strchr(column, '.');
	if (field != NULL)
		*field++ = '\0';
	attnum = get_attnum(relid, column);
	if (field == NULL || field[0] == '\0' || strchr(field, '.') != NULL ||
		attnum <= 0 || getBaseType(get_atttype(relid, attnum)) != JSONBOID)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("document_ttl_field \"%s\" is neither a property of a jsonb column nor an integer column",
						name),
				 errhint("Write 'doc.ttl' for the property ttl at the root of the documents in column doc.")));
	return psprintf(TTL_SCHEMA ".document_ttl(%s, %s)",
					quote_identifier(column), quote_literal_cstr(field));
}
