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
 *	  src/definition/pair.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/index.h"
#include "catalog/pg_index.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
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
		if (ttl_state_is_copy(lfirst_oid(lc)))
			leftovers = lappend_oid(leftovers, lfirst_oid(lc));
		else
			indexes = lappend_oid(indexes, lfirst_oid(lc));
	}
	return list_concat(indexes, leftovers);
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

/* The row of an index in pg_index: as long as it is this one, its trees are the same. */
typedef struct IndexRow
{
	Oid			indexrelid;
	TransactionId xmin;
	ItemPointerData tid;
} IndexRow;

/* The pairs of a table, in the order of table_indexes() of their main indexes. */
typedef struct TablePairs
{
	Oid			relid;			/* key of the hash table */
	uint64		version;		/* of all definitions when they were looked
								 * at, or 0 */
	uint64		held;			/* in which hold that was, or 0 */
	TtlFunctions functions;		/* by which the trees were read */
	int			index_count;
	IndexRow   *indexes;		/* all of the table; NULL where they were not
								 * read */
	int			count;
	Pair	   *pairs;
} TablePairs;

/* After so many tables those that are gone are forgotten, with all others. */
#define MAX_TABLES 10000

static MemoryContext pairs_memory = NULL;
static HTAB *tables = NULL;

/* Another number whenever definitions of any table may have changed. */
static uint64 all_changes = 1;

/* How many holds there were, and which one goes on, or 0 (see ttl_pair_hold). */
static uint64 holds = 0;
static uint64 held = 0;

static uint64
current_version(void)
{
	return all_changes + ttl_function_version();
}

static void
relation_changed(Datum arg, Oid relid)
{
	all_changes++;
}

/* Forgets all pairs. */
static void
reset_pairs(void)
{
	HASHCTL		ctl = {.keysize = sizeof(Oid),.entrysize = sizeof(TablePairs)};

	if (pairs_memory == NULL)
	{
		pairs_memory = AllocSetContextCreate(TopMemoryContext, "ttl_index pairs",
											 ALLOCSET_SMALL_SIZES);
		CacheRegisterRelcacheCallback(relation_changed, 0);
	}
	tables = NULL;
	MemoryContextReset(pairs_memory);
	ctl.hcxt = pairs_memory;
	tables = hash_create("ttl_index pairs", 64, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

/* Lists the halves among the indexes of a table, each of which is read once. */
static void
read_halves(List *indexes, List **mains, List **others)
{
	ListCell   *lc;

	*mains = *others = NIL;
	foreach(lc, indexes)
	{
		Half	   *main = palloc(sizeof(Half));
		Half	   *other = palloc(sizeof(Half));

		CHECK_FOR_INTERRUPTS();
		if (read_main(lfirst_oid(lc), main))
			*mains = lappend(*mains, main);
		if (read_other(lfirst_oid(lc), other))
			*others = lappend(*others, other);
	}
}

static const Half *
find_other(const Half *main, List *others)
{
	ListCell   *lc;

	foreach(lc, others)
	{
		CHECK_FOR_INTERRUPTS();
		if (is_pair(main, lfirst(lc)))
			return lfirst(lc);
	}
	return NULL;
}

/* Lists the rows of the indexes of a table in pg_index. */
static IndexRow *
read_index_rows(Oid relid, int *count)
{
	Relation	rel = table_open(IndexRelationId, AccessShareLock);
	int			room = 8;
	IndexRow   *rows = palloc(room * sizeof(IndexRow));
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	*count = 0;
	ScanKeyInit(&key, Anum_pg_index_indrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(relid));
	scan = systable_beginscan(rel, IndexIndrelidIndexId, true, NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		IndexRow   *row;

		if (*count == room)
			rows = repalloc(rows, (room *= 2) * sizeof(IndexRow));
		row = &rows[(*count)++];
		/* all of it is compared */
		memset(row, 0, sizeof(*row));
		row->indexrelid = ((Form_pg_index) GETSTRUCT(tuple))->indexrelid;
		row->xmin = HeapTupleHeaderGetRawXmin(tuple->t_data);
		row->tid = tuple->t_self;
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	return rows;
}

/* The option functions, all invalid where the extension is not installed. */
static void
read_functions(TtlFunctions *functions)
{
	memset(functions, 0, sizeof(*functions));
	if (!ttl_function_lookup(functions))
		memset(functions, 0, sizeof(*functions));
}

/*
 * Would the pairs of a table be read from the same trees?  To ask that takes one scan, while
 * trees can be as long as users like, and core says only that definitions have changed: also
 * when others make temporary tables all the time.
 *
 * The name of an index, by which table_indexes() knows a copy, is not looked at: it counts
 * as soon as an index of the table has changed.
 */
static bool
is_unchanged(const TablePairs *table)
{
	TtlFunctions functions;
	IndexRow   *rows;
	int			count;
	bool		result;

	if (table->indexes == NULL)
		return false;
	read_functions(&functions);
	rows = read_index_rows(table->relid, &count);
	result = memcmp(&functions, &table->functions, sizeof(functions)) == 0 &&
		count == table->index_count &&
		memcmp(rows, table->indexes, count * sizeof(IndexRow)) == 0;
	pfree(rows);
	return result;
}

static void
forget_pairs(TablePairs *table)
{
	if (table->indexes != NULL)
		pfree(table->indexes);
	if (table->pairs != NULL)
		pfree(table->pairs);
	table->indexes = NULL;
	table->pairs = NULL;
	table->version = table->held = 0;
	table->count = 0;
}

/* Reads the pairs of a table.  What changes meanwhile makes them stale. */
static void
read_pairs(TablePairs *table)
{
	MemoryContext trees = AllocSetContextCreate(CurrentMemoryContext,
												"ttl_index trees",
												ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller = MemoryContextSwitchTo(trees);
	uint64		version = current_version();
	IndexRow   *rows;
	int			row_count;
	List	   *mains;
	List	   *others;
	ListCell   *lc;

	/* where an error ends this, they were not read */
	forget_pairs(table);
	read_functions(&table->functions);
	rows = read_index_rows(table->relid, &row_count);
	read_halves(table_indexes(table->relid), &mains, &others);
	table->pairs = MemoryContextAlloc(pairs_memory, sizeof(Pair) *
									  Max(list_length(mains), 1));
	foreach(lc, mains)
	{
		const Half *main = lfirst(lc);
		const Half *other = find_other(main, others);
		Pair	   *pair = &table->pairs[table->count];

		if (other == NULL)
			continue;
		pair->main = main->indexrelid;
		pair->main_present = main->present;
		pair->other = other->indexrelid;
		table->count++;
	}
	table->indexes = MemoryContextAlloc(pairs_memory, Max(row_count, 1) * sizeof(IndexRow));
	memcpy(table->indexes, rows, row_count * sizeof(IndexRow));
	table->index_count = row_count;
	table->version = version;
	table->held = held;
	MemoryContextSwitchTo(caller);
	MemoryContextDelete(trees);
}

/*
 * Does something that looks at many indexes, and changes none, with pairs that are those of
 * its beginning or later.  Else all indexes of a table would be read again for each of them,
 * where others change definitions all the time: n² of expressions as long as users like.
 */
void
ttl_pair_hold(void (*work) (void *arg), void *arg)
{
	uint64		before = held;

	held = ++holds;
	PG_TRY();
	{
		work(arg);
	}
	PG_FINALLY();
	{
		held = before;
	}
	PG_END_TRY();
}

static bool
is_good(const TablePairs *table)
{
	return table->version == current_version() ||
		(held != 0 && table->held == held);
}

/*
 * The pairs of a table.  Each index of a pair is asked for its partner, so they
 * are kept until one of them may have changed.  The result is good until the
 * next call.
 */
static const TablePairs *
pairs_of(Oid relid)
{
	uint64		version = current_version();
	TablePairs *table;
	bool		found;

	if (tables == NULL ||
		(held == 0 && hash_get_num_entries(tables) >= MAX_TABLES))
		reset_pairs();
	table = hash_search(tables, &relid, HASH_ENTER, &found);
	if (!found)
	{
		table->indexes = NULL;
		table->pairs = NULL;
		forget_pairs(table);
	}
	if (is_good(table))
		return table;
	if (is_unchanged(table))
	{
		table->version = version;
		table->held = held;
	}
	else
		read_pairs(table);
	return table;
}

/* The second index of the pair whose main one this is, or invalid. */
Oid
ttl_pair_other(Oid main)
{
	Half		half;
	Oid			relid = IndexGetRelation(main, true);
	const TablePairs *table;

	/* most are none, and need no look at the other indexes of their table */
	if (!OidIsValid(relid) || !read_main(main, &half))
		return InvalidOid;
	table = pairs_of(relid);
	for (int i = 0; i < table->count; i++)
	{
		if (table->pairs[i].main == main)
			return table->pairs[i].other;
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
	const TablePairs *table;

	if (!OidIsValid(relid) || !read_expire_at(indexrelid, &since, &ttl))
		return InvalidOid;
	table = pairs_of(relid);
	for (int i = 0; i < table->count; i++)
	{
		if (table->pairs[i].other == indexrelid && table->pairs[i].main_present)
			return table->pairs[i].main;
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
