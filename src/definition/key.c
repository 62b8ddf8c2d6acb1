/*-------------------------------------------------------------------------
 *
 * key.c
 *	  Keys: what the name of a key means, which indexes have the key, and hints about it.
 *
 * A key is the name of a column; or a column of type jsonb and a path below it in MongoDB's
 * dotted notation, 'doc.meta.createdAt'; or an expression.  A column whose name has a dot wins
 * over a path, and a longer column name over a shorter one.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "catalog/pg_am.h"
#include "catalog/pg_index.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "nodes/parsenodes.h"
#include "parser/parse_clause.h"
#include "parser/parse_collate.h"
#include "parser/parse_expr.h"
#include "parser/parse_relation.h"
#include "parser/parser.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "definition/key.h"
#include "ttl_index.h"

/* The command that creates a TTL index on an expression, for hints. */
static char *
command(const char *table, const char *expression)
{
	return psprintf("CREATE INDEX ON %s (%s) WHERE ttl_index.expire_after_seconds(...)",
					table, expression);
}

/* What to do about a column (invalid: an expression) of a type that is no date. */
char *
ttl_key_hint(Oid relid, AttrNumber attnum, Oid type)
{
	char	   *name = attnum != InvalidAttrNumber ? get_attname(relid, attnum, true) : NULL;
	const char *column = name ? quote_identifier(name) : "...";
	char	   *found = ttl_name_find(relid);
	const char *table = found ? found : "...";

	switch (type)
	{
		case TEXTOID:
		case VARCHAROID:
		case BPCHAROID:
			return psprintf("Index an immutable function of it. A cast is none, as it depends on settings. "
							"For RFC 3339 text with an offset: "
							"CREATE FUNCTION text_date(text) RETURNS timestamptz LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE "
							"RETURN ttl_index.document_date(jsonb_build_object('date', $1), 'date'); %s.",
							command(table, psprintf("text_date(%s)", column)));
		case JSONBOID:
			return psprintf("Index a date in the documents: %s.",
							command(table, psprintf("ttl_index.document_date(%s, 'createdAt')",
													column)));
		case TIMESTAMPTZARRAYOID:
			return psprintf("Index its earliest date: %s.",
							command(table, psprintf("ttl_index.earliest(%s)", column)));
		case JSONOID:
			return psprintf("Make the column jsonb: ALTER TABLE %s ALTER COLUMN %s TYPE jsonb.",
							table, column);
		default:
			return pstrdup("The key must be of type timestamp with time zone, or an expression that is; "
						   "of type timestamp or date, with a time zone; or a number or uuid, with a unit.");
	}
}

#define BEFORE_TEXT "CREATE INDEX ON t (c) WHERE "

/* Makes a position in the command one of an internal query, which is the text. */
static void
add_context(void *arg)
{
	int			position = geterrposition() - strlen(BEFORE_TEXT);

	if (position > 0)
	{
		errposition(0);
		internalerrposition(position);
		internalerrquery(arg);
	}
}

/*
 * Parses the text of a filter or a key, which becomes part of a CREATE INDEX command, as that
 * command parses it, and makes sure that it is one whole expression.  The name is for errors.
 * The grammar has no mode for an expression, so it is parsed as the WHERE of a CREATE INDEX.
 */
Node *
ttl_key_parse(Relation rel, const char *text, bool is_filter, const char *name)
{
	ErrorContextCallback callback = {error_context_stack, add_context, unconstify(char *, text)};
	ParseState *pstate = make_parsestate(NULL);
	char	   *command = psprintf(BEFORE_TEXT "%s", text);
	List	   *raw;
	RawStmt    *statement;
	Node	   *node;

	if (text[strspn(text, " \n\t")] == '{')
		ereport(ERROR,
				(errcode(ERRCODE_SYNTAX_ERROR),
				 errmsg("%s is no SQL: %s", name, text),
				 is_filter ? errhint("Write a condition, such as doc->>'status' = 'done'.") :
				 errhint("Name a column, or a jsonb column and a path: 'doc.at'.")));
	error_context_stack = &callback;
	pstate->p_sourcetext = command;
	addNSItemToQuery(pstate,
					 addRangeTableEntryForRelation(pstate, rel, AccessShareLock, NULL,
												   false, true),
					 false, true, true);

	/* it has a length where a semicolon ends it */
	raw = raw_parser(command, RAW_PARSE_DEFAULT);
	statement = linitial_node(RawStmt, raw);
	if (list_length(raw) != 1 || statement->stmt_len != 0)
		ereport(ERROR,
				(errcode(ERRCODE_SYNTAX_ERROR),
				 errmsg("%s must be one expression: %s", name, text)));
	node = castNode(IndexStmt, statement->stmt)->whereClause;
	node = is_filter ?
		transformWhereClause(pstate, node, EXPR_KIND_INDEX_PREDICATE, "WHERE") :
		transformExpr(pstate, node, EXPR_KIND_INDEX_EXPRESSION);
	assign_expr_collations(pstate, node);
	free_parsestate(pstate);
	error_context_stack = callback.previous;
	return node;
}

/*
 * Splits a key into a column and the path after a dot, which is NULL if the whole key is a
 * column.  Returns NULL if the key begins with no column.
 */
static char *
split_key(Oid relid, const char *name, const char **path)
{
	char	   *column = pstrdup(name);

	*path = NULL;
	while (get_attnum(relid, column) <= 0)
	{
		char	   *dot = strrchr(column, '.');

		if (dot == NULL)
			return NULL;
		*path = name + (dot - column) + 1;
		*dot = '\0';
	}
	return column;
}

/* The key that is meant by one with quotes or in another case; NULL if there is none. */
char *
ttl_key_similar(Relation rel, const char *name)
{
	char	   *bare = pstrdup(name);
	char	   *to = bare;

	for (const char *from = name; *from != '\0'; from++)
	{
		if (*from != '"')
			*to++ = *from;
	}
	*to = '\0';
	for (int i = 0; i < RelationGetNumberOfAttributes(rel); i++)
	{
		Form_pg_attribute attr = TupleDescAttr(RelationGetDescr(rel), i);
		int			length = strlen(NameStr(attr->attname));

		if (!attr->attisdropped && pg_strncasecmp(NameStr(attr->attname), bare, length) == 0 &&
			(bare[length] == '\0' || bare[length] == '.'))
			return psprintf("%s%s", NameStr(attr->attname), bare + length);
	}
	return NULL;
}

/* The components of a dotted path as SQL literals, after commas. */
static char *
path_sql(const char *key, const char *path)
{
	StringInfoData sql;
	char	   *rest = pstrdup(path);

	initStringInfo(&sql);
	while (rest != NULL)
	{
		char	   *dot = strchr(rest, '.');

		if (dot != NULL)
			*dot = '\0';
		if (rest[0] == '\0' || strcmp(rest, "$") == 0 || strchr(rest, '[') != NULL)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_NAME),
					 errmsg("path of key \"%s\" has no field \"%s\"", key, rest),
					 errhint("Write column.field.field, with items.0.at for the first element of an array, or items.at for the earliest date of all.")));
		appendStringInfo(&sql, ", %s", quote_literal_cstr(rest));
		rest = dot != NULL ? dot + 1 : NULL;
	}
	return sql.data;
}

/* Reads a key that begins with no column; false if it can be no expression either. */
static bool
read_expression(Relation rel, const char *name, TtlKey *key)
{
	if (strpbrk(name, "\"([ :+-") == NULL)
		return false;
	key->expression = ttl_key_parse(rel, name, false, "key");
	if (IsA(key->expression, Var))
	{
		key->attnum = ((Var *) key->expression)->varattno;
		key->expression = NULL;
	}
	return true;
}

/*
 * What to index for a path in a jsonb column.  Its numbers count in the unit, or its strings
 * without an offset are in the zone; both may be missing.
 */
static void
resolve_path(const char *name, const char *path, TtlUnit unit, const char *time_zone, TtlKey *key)
{
	const char *format = unit != TTL_UNIT_NONE ? ttl_keytype_units[unit] : time_zone;
	char	   *problem = time_zone ? ttl_cutoff_zone_problem(time_zone) : NULL;

	if (unit == TTL_UNIT_UUIDV7 || (unit != TTL_UNIT_NONE && time_zone != NULL))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("a date in documents takes a unit of numbers or a time zone, and not both")));
	if (problem != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg_internal("%s", problem)));
	key->type = TIMESTAMPTZOID;
	key->has_format = format != NULL;
	key->sql = psprintf("(" TTL_SCHEMA ".document_date%s(%s%s%s%s))", format ? "_in" : "",
						quote_identifier(key->column), format ? ", " : "",
						format ? quote_literal_cstr(format) : "", path_sql(name, path));
}

/*
 * Finds what a key names, and what to index for it.  Raises an error if there is no such
 * column, or no date can be below it.  The unit and the zone are of dates in documents.
 */
void
ttl_key_resolve(Relation rel, const char *name, TtlUnit unit, const char *time_zone, TtlKey *key)
{
	Oid			relid = RelationGetRelid(rel);
	const char *path;
	char	   *similar;
	Oid			type;

	memset(key, 0, sizeof(*key));
	key->column = split_key(relid, name, &path);
	similar = key->column == NULL ? ttl_key_similar(rel, name) : NULL;
	if (key->column != NULL)
		key->attnum = get_attnum(relid, key->column);
	else if ((similar != NULL && (path != NULL || name[0] != '"')) || !read_expression(rel, name, key))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("column \"%s\" of relation \"%s\" does not exist",
						name, RelationGetRelationName(rel)),
				 similar != NULL ? errhint("Perhaps you meant %s.", quote_literal_cstr(similar)) :
				 strcmp(name, "_ts") == 0 ?
				 errhint("SELECT ttl_index.track_last_modified(%s);", quote_literal_cstr(ttl_name_qualified(relid))) :
				 errhint("The key of a TTL index is a column, a jsonb column and a path, such as 'doc.createdAt', or an expression.")));
	else
	{
		/* a dot was part of the expression */
		path = NULL;
		if (key->expression == NULL)
			key->column = get_attname(relid, key->attnum, false);
	}
	type = getBaseType(exprType(ttl_key_node(relid, key->attnum, key->expression)));

	if (key->expression != NULL)
	{
		key->type = type;
		/* it may end in a comment */
		key->sql = psprintf("(%s%s)", name, strstr(name, "--") ? "\n" : "");
	}
	else if (type == JSONBOID)
	{
		if (path == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_DATATYPE_MISMATCH),
					 errmsg("the key \"%s\" is a whole document", name),
					 errhint("Name the field that holds the date: %s.createdAt, say.",
							 name)));
		resolve_path(name, path, unit, time_zone, key);
	}
	else if (path != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("column \"%s\" of type %s has no path \"%s\"",
						key->column, format_type_be(type), path),
				 type == JSONOID ?
				 errhint("%s", ttl_key_hint(relid, key->attnum, type)) :
				 get_element_type(type) == JSONBOID ?
				 errhint("ALTER TABLE %s ALTER COLUMN %s TYPE jsonb USING to_jsonb(%s);",
						 ttl_name_qualified(relid), quote_identifier(key->column), quote_identifier(key->column)) :
				 get_typtype(type) == TYPTYPE_COMPOSITE ?
				 errhint("Write the expression '(%s).%s'.", quote_identifier(key->column), path) :
				 errhint("Dates in documents can be indexed in columns of type jsonb.")));
	else if (OidIsValid(get_element_type(type)) && getBaseType(get_element_type(type)) == TIMESTAMPTZOID)
	{
		key->type = TIMESTAMPTZOID;
		key->sql = psprintf("(" TTL_SCHEMA ".earliest(%s))",
							quote_identifier(key->column));
	}
	else
	{
		key->type = type;
		key->sql = pstrdup(quote_identifier(key->column));
	}
	if (key->expression == NULL && key->sql[0] == '(')
		key->expression = ttl_key_parse(rel, key->sql, false, "key");
}

/*
 * Strips coercions that leave values as they are, such as from a domain to its base type.
 * They are implicit after CREATE INDEX, and explicit after a restore.
 */
Node *
ttl_key_strip_coercions(Node *node)
{
	node = strip_implicit_coercions(node);
	while (node != NULL && IsA(node, RelabelType))
		node = strip_implicit_coercions((Node *) ((RelabelType *) node)->arg);
	return node;
}

/* The arguments of a call of document_date() or document_date_in(), which has one more; else NIL. */
static List *
document_arguments(Node *expression)
{
	TtlFunctions functions;
	FuncExpr   *call = (FuncExpr *) expression;

	if (expression == NULL || !IsA(expression, FuncExpr) || !ttl_option_functions(&functions) ||
		(call->funcid != functions.document_date && call->funcid != functions.document_date_in))
		return NIL;
	return ttl_option_arguments(call);
}

/* The unit or time zone by which a key reads documents; an empty string for none. */
char *
ttl_key_format(Node *expression)
{
	List	   *arguments = document_arguments(expression);
	Const	   *format = list_length(arguments) == 3 ? lsecond(arguments) : NULL;

	return format && IsA(format, Const) && !format->constisnull ?
		TextDatumGetCString(format->constvalue) : "";
}

/* A call of document_date() on a column, as the column and dotted path; else NULL. */
char *
ttl_key_path_text(Node *expression, Oid relid)
{
	List	   *arguments = document_arguments(expression);
	Var		   *column;
	ArrayExpr  *path;
	char	   *dotted;
	ListCell   *lc;

	if (list_length(arguments) < 2)
		return NULL;
	column = (Var *) ttl_key_strip_coercions(linitial(arguments));
	path = llast(arguments);
	if (!IsA(column, Var) || !IsA(path, ArrayExpr))
		return NULL;
	dotted = get_attname(relid, column->varattno, true);
	foreach(lc, path->elements)
	{
		Const	   *step = lfirst(lc);
		char	   *name;

		/* in an array of arrays, it is no dotted */
		if (!IsA(step, Const) || step->constisnull || step->consttype != TEXTOID)
			return NULL;
		name = TextDatumGetCString(step->constvalue);
		/* such a step cannot be written in a key */
		if (dotted == NULL || name[0] == '\0' || strchr(name, '.') != NULL)
			return NULL;
		dotted = psprintf("%s.%s", dotted, name);
	}
	return dotted;
}

/* A key as an expression over its table. */
Node *
ttl_key_node(Oid relid, AttrNumber attnum, Node *expression)
{
	Oid			type;
	int32		typmod;
	Oid			collation;

	if (expression != NULL)
		return expression;
	get_atttypetypmodcoll(relid, attnum, &type, &typmod, &collation);
	return (Node *) makeVar(1, attnum, type, typmod, collation, 0);
}

/* Reads the only key of an index: a column number, or an expression; false if it has more. */
bool
ttl_key_read(Oid indexrelid, AttrNumber *attnum, Node **expression)
{
	HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(indexrelid));
	Form_pg_index form;
	List	   *expressions;
	bool		single;

	*expression = NULL;
	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_index) GETSTRUCT(tuple);
	single = form->indnkeyatts == 1;
	*attnum = form->indkey.values[0];
	expressions = (List *) ttl_option_stored_tree(tuple, Anum_pg_index_indexprs);
	if (expressions != NIL)
		*expression = linitial(expressions);
	ReleaseSysCache(tuple);
	return single;
}

/*
 * Can an index of this kind have a TTL?  A unique one cannot, so that a TTL index can be
 * created in addition to a constraint on the same key.
 */
static bool
is_plain_btree(Oid indexrelid)
{
	HeapTuple	index = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(indexrelid));
	FormData_pg_class class;
	bool		result;

	if (!HeapTupleIsValid(index))
		return false;
	result = ttl_catalog_class(indexrelid, &class) && class.relam == BTREE_AM_OID &&
		!((Form_pg_index) GETSTRUCT(index))->indisunique &&
		!((Form_pg_index) GETSTRUCT(index))->indisexclusion;
	ReleaseSysCache(index);
	return result;
}

/* The indexes whose only key is the named one, or the same expression. */
List *
ttl_key_indexes(Relation rel, const char *name)
{
	Oid			relid = RelationGetRelid(rel);
	TtlKey		key = {0};
	const char *path;
	List	   *found = NIL;
	ListCell   *lc;

	/* the key of an index that coll_mod will refuse may be of any type */
	key.column = split_key(relid, name, &path);
	if (key.column != NULL)
	{
		Oid			type;

		key.attnum = get_attnum(relid, key.column);
		type = getBaseType(get_atttype(relid, key.attnum));
		if (path != NULL || type == TIMESTAMPTZARRAYOID || type == JSONBOID)
			ttl_key_resolve(rel, name, TTL_UNIT_NONE, NULL, &key);
	}
	else
		(void) read_expression(rel, name, &key);
	foreach(lc, RelationGetIndexList(rel))
	{
		AttrNumber	attnum;
		Node	   *expression;
		char	   *text;

		if (!ttl_key_read(lfirst_oid(lc), &attnum, &expression))
			continue;
		/* a call with arguments by name is another tree for the same path */
		text = ttl_key_path_text(expression, relid);
		if (expression == NULL ? key.expression == NULL && attnum == key.attnum :
			equal(expression, key.expression) || (text != NULL && strcmp(text, name) == 0))
			found = lappend_oid(found, lfirst_oid(lc));
	}
	return found;
}

/*
 * Returns the TTL indexes, else the plain ones, else the remnants of failed builds, else those
 * that cannot have a TTL.  An option that REINDEX CONCURRENTLY has lost counts.
 */
List *
ttl_key_prefer_ttl(List *indexes)
{
	List	   *ranked[4] = {NIL};
	ListCell   *lc;

	foreach(lc, indexes)
	{
		Oid			indexrelid = lfirst_oid(lc);
		int			rank = 1;

		if (!is_plain_btree(indexrelid))
			rank = 3;
		else if (ttl_catalog_is_leftover(indexrelid))
			rank = 2;
		else if (OidIsValid(ttl_catalog_root(indexrelid)) ||
				 ttl_saved_option_is_dependent(indexrelid))
			rank = 0;
		ranked[rank] = lappend_oid(ranked[rank], indexrelid);
	}
	for (int i = 0; i < lengthof(ranked); i++)
	{
		if (ranked[i] != NIL)
			return ranked[i];
	}
	return NIL;
}

/* The only index on a key: a TTL index, or a plain one unless only_ttl. */
Oid
ttl_key_index(Oid relid, const char *key, bool only_ttl)
{
	Relation	rel;
	List	   *found;

	rel = ttl_owner_open(relid, ShareUpdateExclusiveLock);
	found = ttl_key_prefer_ttl(ttl_key_indexes(rel, key));
	if (only_ttl && found != NIL && !OidIsValid(ttl_catalog_root(linitial_oid(found))))
		found = NIL;
	relation_close(rel, NoLock);
	if (found == NIL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("table \"%s\" has no %sindex with the only key \"%s\"",
						get_rel_name(relid), only_ttl ? "TTL " : "", key),
				 only_ttl ?
				 errhint("The view ttl_index.indexes lists the TTL indexes.") :
				 errhint("Create one with ttl_index.create_index().")));
	if (list_length(found) > 1)
		ereport(ERROR,
				(errcode(ERRCODE_AMBIGUOUS_PARAMETER),
				 errmsg("table \"%s\" has more than one %sindex with the only key \"%s\"",
						get_rel_name(relid), only_ttl ? "TTL " : "", key),
				 only_ttl ?
				 errhint("Name the index in DROP INDEX.") :
				 errhint("Name the index with ttl_index.coll_mod_index().")));
	return linitial_oid(found);
}
