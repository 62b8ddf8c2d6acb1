/*-------------------------------------------------------------------------
 *
 * own_ttl.c
 *	  Documents with a TTL of their own.
 *
 * Such documents need two TTL indexes.  The main one is on the date, and holds the documents
 * without a valid TTL; its sibling is on the date plus the TTL of the documents that have
 * one:
 *		(key) WHERE document_ttl(d) IS NULL AND expire_after_seconds(n)
 *		(expire_at(key, document_ttl(d))) WHERE document_ttl(d) IS NOT NULL
 *			AND expire_after_seconds(0)
 * Each expires its rows by itself.  Only the functions that change or remove one of them look
 * for the other, by the key, the TTL and the filter, which are the same.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/index.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "definition/key.h"
#include "ttl_index.h"

/* Completes document_ttl(d) to document_ttl(d, 'ttl'), all arguments in their order. */
static Node *
complete_call(FuncExpr *call, const TtlFunctions *functions)
{
	call = copyObject(call);
	call->args = ttl_option_arguments(call);
	if (call->funcid != functions->document_ttl || list_length(call->args) != 1)
		return (Node *) call;
	call->inputcollid = DEFAULT_COLLATION_OID;
	call->args = lappend(call->args,
						 makeConst(TEXTOID, -1, DEFAULT_COLLATION_OID, -1,
								   CStringGetTextDatum("ttl"), false, false));
	return (Node *) call;
}

/* The TTL of a document, if the node tests whether it is NULL, or NOT NULL; else NULL. */
static Node *
tested_ttl(Node *node, const TtlFunctions *functions, NullTestType type)
{
	NullTest   *test = (NullTest *) node;
	FuncExpr   *call;

	if (!IsA(node, NullTest) || test->nulltesttype != type || !IsA(test->arg, FuncExpr))
		return NULL;
	call = (FuncExpr *) test->arg;
	if (call->funcid != functions->document_ttl && call->funcid != functions->column_ttl)
		return NULL;
	return complete_call(call, functions);
}

/* The TTL that the AND members require to be NULL, as in a main index; NULL if there is none. */
Node *
ttl_own_ttl_asked_for(List *members)
{
	TtlFunctions functions;
	ListCell   *lc;

	if (!ttl_option_functions(&functions))
		return NULL;
	foreach(lc, members)
	{
		Node	   *ttl = tested_ttl(lfirst(lc), &functions, IS_NULL);

		if (ttl != NULL)
			return ttl;
	}
	return NULL;
}

/* The members except those that test the TTL of a document: the filter of the user. */
List *
ttl_own_ttl_plain_filter(List *members)
{
	TtlFunctions functions;
	List	   *plain = NIL;
	ListCell   *lc;

	if (!ttl_option_functions(&functions))
		return members;
	foreach(lc, members)
	{
		if (tested_ttl(lfirst(lc), &functions, IS_NULL) == NULL &&
			tested_ttl(lfirst(lc), &functions, IS_NOT_NULL) == NULL)
			plain = lappend(plain, lfirst(lc));
	}
	return plain;
}

/* Reads an index, whether it has a TTL or not; false if it has more than one key. */
bool
ttl_own_ttl_read(Oid indexrelid, TtlSide *side)
{
	TtlFunctions functions;
	TtlOption	option;
	FuncExpr   *call;
	List	   *arguments;
	Node	   *date;

	if (!ttl_option_read(indexrelid, &option) ||
		!ttl_key_read(indexrelid, &side->attnum, &side->expression))
		return false;
	side->filter = ttl_own_ttl_plain_filter(option.filter);
	call = (FuncExpr *) side->expression;
	side->is_main = call == NULL || !IsA(call, FuncExpr) ||
		!ttl_option_functions(&functions) || call->funcid != functions.expire_at;
	if (side->is_main)
	{
		side->ttl = ttl_own_ttl_asked_for(option.filter);
		return true;
	}

	/* the key is expire_at(date, TTL) */
	arguments = ttl_option_arguments(call);
	side->expression = linitial(arguments);
	side->ttl = lsecond(arguments);
	if (IsA(side->ttl, FuncExpr))
		side->ttl = complete_call((FuncExpr *) side->ttl, &functions);
	/* a domain has a coercion around the column */
	date = ttl_key_strip_coercions(side->expression);
	if (IsA(date, Var))
	{
		side->attnum = ((Var *) date)->varattno;
		side->expression = NULL;
	}
	return true;
}

/* Finds the other one of two indexes, preferably one that no REINDEX CONCURRENTLY has left. */
Oid
ttl_own_ttl_find(Oid relid, const TtlSide *side)
{
	Oid			found = InvalidOid;
	ListCell   *lc;

	foreach(lc, side->ttl != NULL ? ttl_catalog_table_indexes(relid) : NIL)
	{
		TtlSide		other;

		CHECK_FOR_INTERRUPTS();
		if (!ttl_own_ttl_read(lfirst_oid(lc), &other) || other.is_main == side->is_main ||
			other.attnum != side->attnum ||
			!equal(other.expression, side->expression) ||
			!equal(other.ttl, side->ttl) || !equal(other.filter, side->filter))
			continue;
		if (!ttl_catalog_is_copy(lfirst_oid(lc)))
			return lfirst_oid(lc);
		if (!OidIsValid(found))
			found = lfirst_oid(lc);
	}
	return found;
}

/* The sibling of a main index, which may be a plain index; invalid for none. */
Oid
ttl_own_ttl_sibling(Oid main)
{
	TtlSide		side;
	Oid			relid = IndexGetRelation(main, true);

	if (!OidIsValid(relid) || !ttl_own_ttl_read(main, &side) || !side.is_main)
		return InvalidOid;
	return ttl_own_ttl_find(relid, &side);
}

/* The main TTL index whose sibling this index is; the index itself for any other one. */
Oid
ttl_own_ttl_main(Oid indexrelid)
{
	TtlSide		side;
	Oid			relid = IndexGetRelation(indexrelid, true);
	Oid			main;
	TtlOption	option;

	if (!OidIsValid(relid) || !ttl_own_ttl_read(indexrelid, &side) || side.is_main)
		return indexrelid;
	main = ttl_own_ttl_find(relid, &side);
	/* of two that match the main one, only one is its sibling */
	if (!OidIsValid(main) || !ttl_option_read(main, &option) || !option.present ||
		ttl_own_ttl_sibling(main) != indexrelid)
		return indexrelid;
	return main;
}

/* Can a column of this type be the TTL of a document? */
static bool
is_integer(Oid type)
{
	return type == INT2OID || type == INT4OID || type == INT8OID;
}

/* A document's TTL, a completed call, as users name it: 'doc.ttl', or the integer column. */
char *
ttl_own_ttl_field_name(Node *call, Oid relid)
{
	List	   *args = ((FuncExpr *) call)->args;
	Node	   *node = ttl_key_strip_coercions(linitial(args));
	FuncExpr   *cast = (FuncExpr *) node;
	Const	   *field = list_length(args) > 1 ? lsecond(args) : NULL;
	Oid			type;
	char	   *name;

	/* a dump writes out the cast of an integer column to bigint */
	if (IsA(node, FuncExpr) && cast->funcformat == COERCE_EXPLICIT_CAST &&
		cast->funcresulttype == INT8OID && list_length(cast->args) == 1)
		node = ttl_key_strip_coercions(linitial(cast->args));
	type = getBaseType(exprType(node));
	if (!IsA(node, Var) || !(is_integer(type) || type == JSONBOID))
		return NULL;
	name = get_attname(relid, ((Var *) node)->varattno, true);
	if (name == NULL || type != JSONBOID)
		return name;
	if (field == NULL || !IsA(field, Const) || field->constisnull)
		return NULL;
	return psprintf("%s.%s", name, TextDatumGetCString(field->constvalue));
}

/*
 * The SQL of document_ttl() for a field that a user named: a jsonb column and one
 * property at the root of its documents, or an integer column.
 */
char *
ttl_own_ttl_field_sql(Relation rel, const char *name)
{
	Oid			relid = RelationGetRelid(rel);
	AttrNumber	attnum = get_attnum(relid, name);
	Oid			type = attnum > 0 ? getBaseType(get_atttype(relid, attnum)) : InvalidOid;
	char	   *column = pstrdup(name);
	char	   *similar = ttl_key_similar(rel, name);
	char	   *field;

	if (is_integer(type))
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
				 similar != NULL && strcmp(similar, name) != 0 ?
				 errhint("Perhaps you meant %s.", quote_literal_cstr(similar)) :
				 errhint("Write 'doc.ttl' for the property ttl at the root of the documents in column doc.")));
	return psprintf(TTL_SCHEMA ".document_ttl(%s, %s)",
					quote_identifier(column), quote_literal_cstr(field));
}
