/*-------------------------------------------------------------------------
 *
 * shown_text.c
 *	  The keys and filters of TTL indexes, as the views show them.
 *
 * Core opens and locks a table to write an expression of it, and calls the output functions of
 * types.  So it is done as the table's owner, but with the search_path of the reader.
 *
 * These are functions of their own, which the view ttl_index.indexes calls for columns that are
 * asked for: who watches the states of all indexes has no text of strangers written.
 *
 * Who looks at all indexes must not get an error of one, nor wait for it: the views are what
 * tells whether anything fails.  So an expression is looked at before it is written, and "..." stands
 * for one that is nested too deeply, or would be too long.  A number of ten bytes can be written
 * as one of 131,072 digits, so a filter that anybody may have can be larger than the memory.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/monitor/shown_text.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/index.h"
#include "catalog/pg_index.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "storage/lmgr.h"
#include "tcop/tcopprot.h"
#include "utils/builtins.h"
#include "utils/catcache.h"
#include "utils/datum.h"
#include "utils/fmgrprotos.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"
#include "utils/ruleutils.h"
#include "utils/syscache.h"

#include "definition/definition.h"
#include "definition/key.h"
#include "definition/option.h"
#include "leftover.h"
#include "ttl_index.h"

TTL_FUNCTION(ttl_shown_text_key);
TTL_FUNCTION(ttl_shown_text_filter);
PG_FUNCTION_INFO_V1(ttl_shown_text_document_ttl);

/* What stands for an expression that is not written. */
#define NOT_WRITTEN "..."

/* To write one level of an expression core takes less of the stack than this. */
#define STACK_PER_LEVEL 4096

/*
 * How long a text may be, about, and what a node, or a byte of a constant, comes to in it: a NULL
 * in an array takes a bit, and five characters.  A view shows the texts of thousands of indexes.
 */
#define MAX_TEXT (256 * 1024)
#define TEXT_PER_NODE 64
#define TEXT_PER_BYTE 40

/*
 * A call counts as longer than it is.  To write its name core looks at all functions, or
 * operators, of that name in all schemas, and there can be tens of thousands.  So it does for names
 * in constants, of which a few are enough.  VARIADIC functions it compares with each other: of this
 * many, each counts twice, of ten times as many eleven times.
 */
#define TEXT_PER_NAMESAKE 4
#define NAMESAKES_SQUARED 256
#define TEXT_PER_NAME (MAX_TEXT / 8)

/*
 * A range, or an array, doubles the quotes in what it consists of, and so does one that consists of
 * such: that is what these levels of types can make of a byte.
 */
#define MAX_LEVELS 4

/* How many digits a number has for each step of its weight. */
#define DIGITS_PER_WEIGHT 4

/* Else a constant with numbers in it is written to see how long it is, up to this size. */
#define MAX_SWELLING 128

/*
 * Prepares to write expressions of a table.  Returns false if the view would have to wait, or if
 * the table is gone.
 */
static bool
begin_text(Oid relid, TtlUser *reader)
{
	if (!ConditionalLockRelationOid(relid, AccessShareLock))
		return false;
	if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relid)))
	{
		UnlockRelationOid(relid, AccessShareLock);
		return false;
	}
	ttl_owner_write_as(ttl_owner_of(relid), reader);
	return true;
}

static void
end_text(Oid relid, const TtlUser *reader)
{
	ttl_owner_restore(reader);
	UnlockRelationOid(relid, AccessShareLock);
}

/* Has an expression more than so many levels? */
static bool
is_deeper_than(Node *node, void *arg)
{
	int			below = *(int *) arg - 1;

	return node != NULL &&
		(below < 0 || expression_tree_walker(node, is_deeper_than, &below));
}

/* What the values of a type consist of in the end, and how many types are between. */
static Oid
innermost_type(Oid type, int *levels)
{
	for (*levels = 0;; (*levels)++)
	{
		Oid			within;

		CHECK_FOR_INTERRUPTS();
		type = getBaseType(type);
		within = get_element_type(type);
		if (!OidIsValid(within))
			within = get_range_subtype(type);
		if (!OidIsValid(within))
			within = get_range_subtype(get_multirange_range(type));
		if (!OidIsValid(within))
			return type;
		type = within;
	}
}

/*
 * Are values of a type about as long as text?  Not numbers, nor what has numbers in it, nor what
 * is written by the names that objects have; and nobody knows of types of users.
 */
static bool
is_plain(Oid type)
{
	static const Oid plain[] = {
		BOOLOID, CHAROID, NAMEOID, TEXTOID, VARCHAROID, BPCHAROID, BYTEAOID,
		INT2OID, INT4OID, INT8OID, FLOAT4OID, FLOAT8OID, OIDOID, CASHOID,
		DATEOID, TIMEOID, TIMETZOID, TIMESTAMPOID, TIMESTAMPTZOID, INTERVALOID,
		UUIDOID, INETOID, CIDROID, MACADDROID, MACADDR8OID, BITOID, VARBITOID,
		JSONOID, XMLOID, TSVECTOROID, TSQUERYOID, POINTOID, BOXOID, PATHOID, POLYGONOID
	};

	for (int i = 0; i < lengthof(plain); i++)
	{
		if (type == plain[i])
			return true;
	}
	return false;
}

/* How long a number is as text, by what of it is sent to other servers: the digits that are not 0. */
static int64
length_of_number(Datum number)
{
	bytea	   *sent = DatumGetByteaPP(DirectFunctionCall1(numeric_send, number));
	const uint8 *bytes = (const uint8 *) VARDATA_ANY(sent);
	int16		weight = (int16) (bytes[2] << 8 | bytes[3]);
	uint16		scale = bytes[6] << 8 | bytes[7];

	return TEXT_PER_NODE + Max(weight + 1, 1) * DIGITS_PER_WEIGHT + scale;
}

/* How long a document is as text, or at most. */
static int64
length_of_document(Jsonb *document)
{
	JsonbIterator *iterator = JsonbIteratorInit(&document->root);
	int64		length = TEXT_PER_NODE + (int64) VARSIZE(document) * TEXT_PER_BYTE;
	JsonbIteratorToken token;
	JsonbValue	value;

	while ((token = JsonbIteratorNext(&iterator, &value, false)) != WJB_DONE)
	{
		CHECK_FOR_INTERRUPTS();
		if ((token == WJB_VALUE || token == WJB_ELEM) && value.type == jbvNumeric)
			length += length_of_number(NumericGetDatum(value.val.numeric));
	}
	return length;
}

/*
 * How long a constant is as text, or at most.  Not a row, which core would read by what its type
 * is now: it does not look for constants where it alters one, and crashes.
 */
static int64
length_of(const Const *constant)
{
	int			levels;
	Oid			type = innermost_type(constant->consttype, &levels);
	int64		size;
	Oid			function;
	bool		is_varlena;
	char	   *text;

	if (type_is_rowtype(type) || levels > MAX_LEVELS)
		return MAX_TEXT;
	if (constant->constisnull)
		return TEXT_PER_NODE;
	size = datumGetSize(constant->constvalue, constant->constbyval, constant->constlen);
	if (is_plain(type))
		return TEXT_PER_NODE + size * TEXT_PER_BYTE;
	if (type_is_enum(type))
		return TEXT_PER_NODE + size * TEXT_PER_BYTE;
	/* a name is looked for as that of a call is, in each element */
	if (type != NUMERICOID && type != JSONBOID && type != JSONPATHOID)
		return TEXT_PER_NAME * (1 + size / (int64) sizeof(Oid));
	if (levels == 0 && type == NUMERICOID)
		return length_of_number(constant->constvalue);
	if (levels == 0 && type == JSONBOID)
		return length_of_document(DatumGetJsonbP(constant->constvalue));
	if (size > MAX_SWELLING)
		return MAX_TEXT;
	getTypeOutputInfo(constant->consttype, &function, &is_varlena);
	text = OidOutputFunctionCall(function, constant->constvalue);
	size = strlen(text);
	pfree(text);
	return TEXT_PER_NODE + size;
}

/* What a call adds, by how many functions, or operators, have its name. */
static int64
length_of_call(int by_name, const char *name)
{
	CatCList   *list;
	int64		namesakes;

	if (name == NULL)
		return TEXT_PER_NODE;
	list = SearchSysCacheList1(by_name, CStringGetDatum(name));
	namesakes = list->n_members;
	ReleaseSysCacheList(list);
	return TEXT_PER_NODE + namesakes * TEXT_PER_NAMESAKE * (1 + namesakes / NAMESAKES_SQUARED);
}

/* What a node adds to the length of an expression, without those below it. */
static int64
weight_of(Node *node)
{
	switch (nodeTag(node))
	{
		case T_Const:
			return length_of((Const *) node);
		case T_FuncExpr:
			return length_of_call(PROCNAMEARGSNSP, get_func_name(((FuncExpr *) node)->funcid));
		case T_OpExpr:
		case T_DistinctExpr:
		case T_NullIfExpr:
			return length_of_call(OPERNAMENSP, get_opname(((OpExpr *) node)->opno));
		case T_ScalarArrayOpExpr:
			return length_of_call(OPERNAMENSP, get_opname(((ScalarArrayOpExpr *) node)->opno));
		case T_RowCompareExpr:
			return length_of_call(OPERNAMENSP,
								  get_opname(linitial_oid(((RowCompareExpr *) node)->opnos)));
		default:
			return TEXT_PER_NODE;
	}
}

/* Is an expression longer than what is left? */
static bool
is_longer_than(Node *node, void *arg)
{
	int64	   *left = arg;

	if (node == NULL)
		return false;
	CHECK_FOR_INTERRUPTS();
	*left -= weight_of(node);
	return *left <= 0 || expression_tree_walker(node, is_longer_than, arg);
}

/*
 * Would writing an expression run out of stack, or of memory?  It takes more of the stack than
 * what CREATE INDEX does.
 */
static bool
can_be_written(Node *expression)
{
	int			levels = max_stack_depth * 1024L / STACK_PER_LEVEL;
	int64		left = MAX_TEXT;

	return !is_deeper_than(expression, &levels) && !is_longer_than(expression, &left);
}

static Datum
return_text(FunctionCallInfo fcinfo, const char *text)
{
	if (text == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(text));
}

/* Finds the index whose option governs this one; false where there is none. */
static bool
find_governor(Oid indexrelid, Oid *governor, Oid *relid, TtlOption *option)
{
	Oid			parent;

	if (get_rel_relkind(indexrelid) == '\0' ||
		!ttl_catalog_governor(indexrelid, &parent, governor, option))
		return false;
	*relid = IndexGetRelation(*governor, true);
	return OidIsValid(*relid);
}

static char *
text_of_filter(Oid indexrelid)
{
	Oid			governor;
	Oid			relid;
	TtlOption	option;
	List	   *filter;
	TtlUser		reader;
	char	   *text = NOT_WRITTEN;

	if (!find_governor(indexrelid, &governor, &relid, &option))
		return NULL;
	if (option.is_long)
		return NOT_WRITTEN;
	filter = ttl_own_ttl_plain_filter(option.filter);
	if (filter == NIL || !begin_text(relid, &reader))
		return NULL;
	if (can_be_written((Node *) filter))
		text = deparse_expression((Node *) make_ands_explicit(filter),
								  deparse_context_for(get_rel_name(relid), relid),
								  false, false);
	end_text(relid, &reader);
	return text;
}

/* index_filter(index regclass): the user's filter, from the index whose option governs this one */
static Datum
ttl_shown_text_filter_called(PG_FUNCTION_ARGS)
{
	return return_text(fcinfo, text_of_filter(PG_GETARG_OID(0)));
}

/* index_document_ttl(index regclass): where documents have a TTL of their own, as the user named it */
Datum
ttl_shown_text_document_ttl(PG_FUNCTION_ARGS)
{
	Oid			governor;
	Oid			relid;
	TtlOption	option;
	Node	   *call;

	if (!find_governor(PG_GETARG_OID(0), &governor, &relid, &option))
		PG_RETURN_NULL();
	call = ttl_own_ttl_asked_for(option.filter);
	return return_text(fcinfo, call != NULL ? ttl_pair_field_name(call, relid) : NULL);
}

/* The expressions that an index has in its keys; NIL for none. */
static List *
expressions_of(Oid indexrelid)
{
	HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(indexrelid));
	List	   *expressions;

	if (!HeapTupleIsValid(tuple))
		return NIL;
	expressions = (List *) ttl_option_stored_tree(tuple, Anum_pg_index_indexprs);
	ReleaseSysCache(tuple);
	return expressions;
}

static char *
text_of_key(Oid indexrelid)
{
	Oid			relid = IndexGetRelation(indexrelid, true);
	Oid			governor;
	Oid			governed;
	TtlOption	option;
	AttrNumber	attnum;
	Node	   *expression;
	TtlUser		reader;
	char	   *text = NULL;

	if (!OidIsValid(relid) || !find_governor(indexrelid, &governor, &governed, &option))
		return NULL;
	if (option.is_long)
		return NOT_WRITTEN;
	if (ttl_key_read(indexrelid, &attnum, &expression))
	{
		text = attnum != 0 ? get_attname(relid, attnum, true) :
			ttl_key_path_text(expression, relid);
		if (attnum != 0 || text != NULL)
			return text == NULL || strlen(text) <= MAX_TEXT ? text : NOT_WRITTEN;
	}

	/*
	 * the index, too: REINDEX CONCURRENTLY drops the old one beside readers
	 * of the table
	 */
	if (!ConditionalLockRelationOid(indexrelid, AccessShareLock))
		return NULL;
	if (begin_text(relid, &reader))
	{
		if (SearchSysCacheExists1(INDEXRELID, ObjectIdGetDatum(indexrelid)))
			text = can_be_written((Node *) expressions_of(indexrelid)) ?
				pg_get_indexdef_columns(indexrelid, true) : NOT_WRITTEN;
		end_text(relid, &reader);
	}
	UnlockRelationOid(indexrelid, AccessShareLock);
	return text;
}

/* index_key(index regclass): the key as users write it */
static Datum
ttl_shown_text_key_called(PG_FUNCTION_ARGS)
{
	return return_text(fcinfo, text_of_key(PG_GETARG_OID(0)));
}
