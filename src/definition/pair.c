/*-------------------------------------------------------------------------
 *
 * pair.c
 *	  Documents with a TTL of their own: two indexes that are one TTL index.
 *
 * The main index is on the date, and holds the documents without a valid TTL:
 *		(key) WHERE document_ttl(d) IS NULL AND expire_after_seconds(n)
 * The other one is on the date plus the TTL of the documents that have one:
 *		(expire_at(key, document_ttl(d))) WHERE document_ttl(d) IS NOT NULL
 *			AND expire_after_seconds(0)
 * A change of n, also to -1 ("only documents with a TTL expire"), concerns the main index
 * alone.
 *
 * Only their trees make them a pair: the other one has the key and the TTL of the main one.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/definition/pair.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/index.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

#include "definition/definition.h"
#include "definition/key.h"
#include "definition/option.h"
#include "ttl_index.h"

/* One of the two indexes, as far as it takes to find the other. */
typedef struct Half
{
	Oid			indexrelid;
	bool		present;		/* with the option */
	AttrNumber	attnum;			/* of the main one */
	Node	   *key;			/* the date: NULL where it is that column */
	Node	   *ttl;			/* of a document */
	List	   *filter;			/* of both */
} Half;

static bool
read_option(Half *half, List **members)
{
	TtlOption	option;

	if (!ttl_option_read(half->indexrelid, &option))
		return false;
	half->present = option.present;
	half->filter = ttl_own_ttl_plain_filter(option.filter);
	*members = option.filter;
	return true;
}

/* False where the index is not the main one of a pair. */
static bool
read_main(Oid indexrelid, Half *half)
{
	List	   *members;

	half->indexrelid = indexrelid;
	if (!read_option(half, &members))
		return false;
	half->ttl = ttl_own_ttl_asked_for(members);
	return half->ttl != NULL &&
		ttl_key_read(indexrelid, &half->attnum, &half->key);
}

/* The two arguments of expire_at(), if that is the key of the index. */
static bool
read_expire_at(Oid indexrelid, Node **since, Node **ttl)
{
	TtlFunctions functions;
	AttrNumber	attnum;
	Node	   *expression;
	List	   *arguments;

	if (!ttl_key_read(indexrelid, &attnum, &expression) ||
		expression == NULL || !IsA(expression, FuncExpr) ||
		!ttl_function_lookup(&functions) ||
		((FuncExpr *) expression)->funcid != functions.expire_at)
		return false;
	arguments = ttl_function_arguments((FuncExpr *) expression);
	if (list_length(arguments) != 2)
		return false;
	*since = linitial(arguments);
	*ttl = lsecond(arguments);
	if (IsA(*ttl, FuncExpr))
		*ttl = ttl_own_ttl_complete_call((FuncExpr *) *ttl, &functions);
	return true;
}

/* The date in the only key of an index; false where it has more than one key. */
bool
ttl_pair_date(Oid indexrelid, TtlDate *date)
{
	Node	   *since;
	Node	   *ttl;

	if (!ttl_key_read(indexrelid, &date->attnum, &date->expression))
		return false;
	date->own_ttl_added = read_expire_at(indexrelid, &since, &ttl);
	if (!date->own_ttl_added)
		return true;
	date->expression = since;
	/* a domain has a coercion around the column */
	since = ttl_key_strip_coercions(since);
	if (IsA(since, Var))
	{
		date->attnum = ((Var *) since)->varattno;
		date->expression = NULL;
	}
	return true;
}

/* False where the index is not the other one of a pair. */
static bool
read_other(Oid indexrelid, Half *half)
{
	List	   *members;

	half->indexrelid = indexrelid;
	return read_expire_at(indexrelid, &half->key, &half->ttl) &&
		read_option(half, &members);
}

static bool
is_pair(const Half *main, const Half *other)
{
	Node	   *since = other->key;

	if (main->key != NULL)
	{
		if (!equal(since, main->key))
			return false;
	}
	else
	{
		/* a domain has a coercion around the column */
		since = ttl_key_strip_coercions(since);
		if (!IsA(since, Var) || ((Var *) since)->varattno != main->attnum)
			return false;
	}
	return equal(main->ttl, other->ttl) && equal(main->filter, other->filter);
}

/*
 * The indexes of a table, in the order of their OIDs, but what a failed build or REINDEX
 * CONCURRENTLY has left behind comes last: it is no part of a pair that is whole without it.
 */
static List *
table_indexes(Oid relid)
{
	List	   *indexes = NIL;
	List	   *leftovers = NIL;
	ListCell   *lc;

	foreach(lc, ttl_catalog_table_indexes(relid))
	{
		if (ttl_catalog_is_copy(lfirst_oid(lc)))
			leftovers = lappend_oid(leftovers, lfirst_oid(lc));
		else
			indexes = lappend_oid(indexes, lfirst_oid(lc));
	}
	return list_concat(indexes, leftovers);
}

/*
 * Finds the second index of a pair by the key, the TTL and the filter of the main one.  It may
 * have no option, after remove_ttl().
 */
Oid
ttl_pair_find(Oid relid, AttrNumber attnum, Node *expression, Node *ttl,
			  List *plain_filter)
{
	Half		main = {InvalidOid, true, attnum, expression, ttl, plain_filter};
	ListCell   *lc;

	foreach(lc, table_indexes(relid))
	{
		Half		other;

		CHECK_FOR_INTERRUPTS();
		if (read_other(lfirst_oid(lc), &other) && is_pair(&main, &other))
			return other.indexrelid;
	}
	return InvalidOid;
}

typedef struct Pair
{
	Oid			main;
	bool		main_present;
	Oid			other;
} Pair;

/* The pairs of a table, in the order of table_indexes() of their main indexes. */
typedef struct TablePairs
{
	Oid			relid;			/* key of the hash table */
	int			count;
	Pair	   *pairs;
} TablePairs;

/*
 * Each index of a pair is asked for its partner, and to find that takes the trees of all
 * indexes of the table.  So the pairs of a table are kept until one of its indexes changes.
 */
static HTAB *tables = NULL;

/* The table whose pairs are being read, or invalid if it changed since. */
static Oid	reading = InvalidOid;

static void
forget_pairs(TablePairs *table)
{
	pfree(table->pairs);
	hash_search(tables, &table->relid, HASH_REMOVE, NULL);
}

/* Forgets the pairs of a table, or of all. */
static void
relation_changed(Datum arg, Oid relid)
{
	HASH_SEQ_STATUS scan;
	TablePairs *table;

	if (!OidIsValid(relid))
	{
		reading = InvalidOid;
		hash_seq_init(&scan, tables);
		while ((table = hash_seq_search(&scan)) != NULL)
			forget_pairs(table);
		return;
	}
	if (reading == relid)
		reading = InvalidOid;
	table = hash_search(tables, &relid, HASH_FIND, NULL);
	if (table != NULL)
		forget_pairs(table);
}

/* Reads the pairs of a table, in the caller's memory. */
static void
read_pairs(TablePairs *table)
{
	List	   *mains = NIL;
	List	   *others = NIL;
	ListCell   *lc;
	ListCell   *lc2;

	foreach(lc, table_indexes(table->relid))
	{
		Half	   *main = palloc(sizeof(Half));
		Half	   *other = palloc(sizeof(Half));

		CHECK_FOR_INTERRUPTS();
		if (read_main(lfirst_oid(lc), main))
			mains = lappend(mains, main);
		if (read_other(lfirst_oid(lc), other))
			others = lappend(others, other);
	}
	table->count = 0;
	table->pairs = palloc(sizeof(Pair) * Max(list_length(mains), 1));
	foreach(lc, mains)
	{
		const Half *main = lfirst(lc);

		foreach(lc2, others)
		{
			const Half *other = lfirst(lc2);
			Pair	   *pair = &table->pairs[table->count];

			CHECK_FOR_INTERRUPTS();
			if (!is_pair(main, other))
				continue;
			pair->main = main->indexrelid;
			pair->main_present = main->present;
			pair->other = other->indexrelid;
			table->count++;
			break;
		}
	}
}

/* The pairs of a table.  The result is good until catalogs are read. */
static TablePairs
pairs_of(Oid relid)
{
	HASHCTL		ctl = {.keysize = sizeof(Oid),.entrysize = sizeof(TablePairs)};
	TablePairs *kept;
	TablePairs	table = {.relid = relid};
	MemoryContext caller = CurrentMemoryContext;
	MemoryContext trees;

	if (tables == NULL)
	{
		tables = hash_create("ttl_index pairs", 64, &ctl, HASH_ELEM | HASH_BLOBS);
		CacheRegisterRelcacheCallback(relation_changed, 0);
	}
	kept = hash_search(tables, &relid, HASH_FIND, NULL);
	if (kept != NULL)
		return *kept;
	trees = AllocSetContextCreate(caller, "ttl_index trees", ALLOCSET_DEFAULT_SIZES);
	MemoryContextSwitchTo(trees);
	reading = relid;
	read_pairs(&table);
	/* memory of the transaction is enough for one look */
	MemoryContextSwitchTo(reading == relid ? TopMemoryContext : caller);
	table.pairs = memcpy(palloc(sizeof(Pair) * Max(table.count, 1)), table.pairs,
						 sizeof(Pair) * table.count);
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(trees);
	if (reading == relid)
		*(TablePairs *) hash_search(tables, &relid, HASH_ENTER, NULL) = table;
	return table;
}

/* The second index of the pair whose main one this is, or invalid. */
Oid
ttl_pair_other(Oid main)
{
	Half		half;
	Oid			relid = IndexGetRelation(main, true);
	TablePairs	table;

	/* most are none, and need no look at the other indexes of their table */
	if (!OidIsValid(relid) || !read_main(main, &half))
		return InvalidOid;
	table = pairs_of(relid);
	for (int i = 0; i < table.count; i++)
	{
		if (table.pairs[i].main == main)
			return table.pairs[i].other;
	}
	return InvalidOid;
}

/* The main TTL index of the pair that this one is the second of, or invalid. */
Oid
ttl_pair_main(Oid indexrelid)
{
	Oid			relid = IndexGetRelation(indexrelid, true);
	Node	   *since;
	Node	   *ttl;
	TablePairs	table;

	if (!OidIsValid(relid) || !read_expire_at(indexrelid, &since, &ttl))
		return InvalidOid;
	table = pairs_of(relid);
	for (int i = 0; i < table.count; i++)
	{
		if (table.pairs[i].other == indexrelid && table.pairs[i].main_present)
			return table.pairs[i].main;
	}
	return InvalidOid;
}

/* Is a call the cast of an integer column to bigint, as a dump writes it out? */
static bool
is_integer_cast(Node *node)
{
	FuncExpr   *call = (FuncExpr *) node;

	return IsA(node, FuncExpr) && call->funcformat == COERCE_EXPLICIT_CAST &&
		call->funcresulttype == INT8OID && list_length(call->args) == 1;
}

/* Can a column of this type hold the TTL of a document by itself? */
static bool
is_integer(Oid type)
{
	return type == INT2OID || type == INT4OID || type == INT8OID;
}

/* document_ttl() as users name it: 'doc.ttl', or the integer column. */
char *
ttl_pair_field_name(Node *call, Oid relid)
{
	List	   *args = ((FuncExpr *) call)->args;
	Node	   *node = ttl_key_strip_coercions(linitial(args));
	Const	   *field = list_length(args) > 1 ? lsecond(args) : NULL;
	Oid			type;
	char	   *name;

	if (is_integer_cast(node))
		node = ttl_key_strip_coercions(linitial(((FuncExpr *) node)->args));
	type = getBaseType(exprType(node));
	if (!IsA(node, Var) || !(is_integer(type) || type == JSONBOID))
		return NULL;
	name = get_attname(relid, ((Var *) node)->varattno, true);
	if (name == NULL || type != JSONBOID)
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
				 errhint("Write 'doc.ttl' for the property ttl at the root of the documents in column doc.")));
	return psprintf(TTL_SCHEMA ".document_ttl(%s, %s)",
					quote_identifier(column), quote_literal_cstr(field));
}
