/*-------------------------------------------------------------------------
 *
 * mistake.c
 *	  Hints on CREATE INDEX commands with an option that core refuses.
 *
 * Some mistakes never reach the event trigger: core raises an error that is about functions
 * and types, while the user wrote a time to live.  Where the library is loaded, such
 * an error gets a hint that is about TTL indexes.  And a command with IF NOT EXISTS that
 * finds an index of the name does nothing, whatever seconds that has: this is said, too.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/ddl/mistake.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/index.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "parser/parse_expr.h"
#include "tcop/utility.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"

#include "ddl/ddl.h"
#include "definition/definition.h"
#include "definition/key.h"
#include "definition/option.h"
#include "ttl_index.h"

#define OPTION_HINT "The option is ttl_index.expire_after_seconds(seconds), with a whole number from 0 to 2147483647, or with ttl_index.seconds('30 days')."

#define ARCHIVE_HINT "The option is ttl_index.archive_to('schema.table'), with the name of a table that is there, in quotes. " \
	"CREATE TABLE schema.table (LIKE ...) makes one."

/* A CREATE INDEX command that names an option, and where in its text. */
typedef struct Declaration
{
	const char *source;
	bool		has_option;
	bool		has_clock;		/* the filter names the current time */
	char	   *json_hint;		/* where a key is of type json */
	Oid			relid;			/* what is to be indexed, or invalid */
	char		relkind;		/* of that */
	Oid			existing;		/* with IF NOT EXISTS, what has the name */
	Node	   *seconds;		/* the argument of the option, or NULL */
	List	   *locations;		/* of the calls of options, and of their
								 * constants, in bytes */
	List	   *archive_locations;	/* the same of archive_to() alone, also of
									 * columns */
	bool		archives_to_column;
} Declaration;

/* Does this call name the function, with our schema or none? */
static bool
is_call_of(const FuncCall * call, const char *function)
{
	return strcmp(strVal(llast(call->funcname)), function) == 0 &&
		(list_length(call->funcname) == 1 ||
		 strcmp(strVal(linitial(call->funcname)), TTL_SCHEMA) == 0);
}

/*
 * The value of an expression of numbers alone, as it was written; false for any other.
 * What is out of the range of an integer is not out of that of a double.
 */
static bool
read_number(Node *node, double *value)
{
	double		left = 0;
	double		right;
	A_Expr	   *expr = (A_Expr *) node;

	check_stack_depth();
	if (IsA(node, A_Const) && !((A_Const *) node)->isnull)
	{
		union ValUnion *constant = &((A_Const *) node)->val;

		if (!IsA(constant, Integer) && !IsA(constant, Float))
			return false;
		*value = IsA(constant, Integer) ? intVal(constant) : floatVal(constant);
		return true;
	}
	if (!IsA(node, A_Expr) || expr->kind != AEXPR_OP ||
		list_length(expr->name) != 1 || expr->rexpr == NULL ||
		!read_number(expr->rexpr, &right) ||
		(expr->lexpr && !read_number(expr->lexpr, &left)))
		return false;
	switch (strVal(linitial(expr->name))[0])
	{
		case '+':
			*value = left + right;
			return true;
		case '-':
			*value = left - right;
			return true;
		case '*':
			*value = left * right;
			return true;
		default:
			return false;
	}
}

/* A place in the text, as errors count them: in characters. */
static int
position_of(const Declaration *command, int location)
{
	return location < 0 ? 0 : pg_mbstrlen_with_len(command->source, location) + 1;
}

/* Is the error at hand at one of these? */
static bool
is_at(const Declaration *command, const List *locations)
{
	int			position = geterrposition();

	return position > 0 &&
		list_member_int(locations,
						pg_mbcharcliplen(command->source, strlen(command->source),
										 position - 1));
}

/* Says the range of seconds where core would say that an integer is out of its own. */
static void
check_seconds(const Declaration *command, const FuncCall * call)
{
	Node	   *argument = linitial(call->args);
	double		value;

	if (IsA(argument, NamedArgExpr))
		argument = (Node *) ((NamedArgExpr *) argument)->arg;
	if (read_number(argument, &value) &&
		(value > PG_INT32_MAX || value < PG_INT32_MIN))
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg_internal("%s", TTL_SECONDS_RANGE),
				 errhint(TTL_SECONDS_HINT),
				 errposition(position_of(command, call->location))));
}

/* Is this the current time? */
static bool
is_clock(const Node *node)
{
	static const char *const names[] = {"now", "clock_timestamp",
	"statement_timestamp", "transaction_timestamp"};

	if (IsA(node, SQLValueFunction))
		return ((const SQLValueFunction *) node)->op <= SVFOP_LOCALTIMESTAMP_N;
	for (int i = 0; i < lengthof(names) && IsA(node, FuncCall); i++)
	{
		if (strcmp(strVal(llast(((const FuncCall *) node)->funcname)), names[i]) == 0)
			return true;
	}
	return false;
}

/* Does an expression name a column? */
static bool
names_column(Node *node, void *context)
{
	if (node == NULL)
		return false;
	return IsA(node, ColumnRef) ||
		raw_expression_tree_walker(node, names_column, context);
}

/* Notes a call of archive_to(). */
static void
note_archive(const FuncCall * call, Declaration *command)
{
	List	  **locations = &command->archive_locations;
	ListCell   *lc;

	*locations = lappend_int(*locations, call->location);
	foreach(lc, call->args)
	{
		Node	   *argument = lfirst(lc);

		if (IsA(argument, NamedArgExpr))
			argument = (Node *) ((NamedArgExpr *) argument)->arg;
		/* as pg_dump writes it */
		if (IsA(argument, TypeCast))
			argument = ((TypeCast *) argument)->arg;
		if (IsA(argument, A_Const) || IsA(argument, ColumnRef))
			*locations = lappend_int(*locations, exprLocation(argument));
		command->archives_to_column = command->archives_to_column ||
			names_column(argument, NULL);
	}
}

/* Notes what is of interest in the WHERE of the command, before it is analyzed. */
static bool
note_where(Node *node, void *context)
{
	static const char *const names[] = {"expire_after_seconds", "time_zone",
		"drop_expired_partitions", "bucket_max_span_seconds", "archive_to",
	"detach_expired_partitions", "seconds"};
	Declaration *command = context;
	FuncCall   *call = (FuncCall *) node;

	if (node == NULL)
		return false;
	command->has_clock = command->has_clock || is_clock(node);
	for (int i = 0; i < lengthof(names) && IsA(node, FuncCall); i++)
	{
		ListCell   *lc;

		if (!is_call_of(call, names[i]))
			continue;
		command->has_option = command->has_option || i == 0;
		if (strcmp(names[i], "archive_to") == 0)
			note_archive(call, command);
		command->locations = lappend_int(command->locations, call->location);
		foreach(lc, call->args)
		{
			if (IsA(lfirst(lc), A_Const))
				command->locations = lappend_int(command->locations,
												 ((A_Const *) lfirst(lc))->location);
		}
		/* a name alone may mean a function of the user's own */
		if (i == 0 && call->args != NIL && list_length(call->funcname) > 1)
		{
			check_seconds(command, call);
			command->seconds = linitial(call->args);
		}
	}
	return raw_expression_tree_walker(node, note_where, context);
}

/* Notes what is to be indexed, while there is no error yet. */
static void
note_table(const IndexStmt *statement, Declaration *command)
{
	Oid			relid = RangeVarGetRelid(statement->relation, NoLock, true);
	ListCell   *lc;

	if (!OidIsValid(relid))
		return;
	command->relid = relid;
	command->relkind = get_rel_relkind(relid);
	if (statement->if_not_exists && statement->idxname != NULL)
		command->existing = get_relname_relid(statement->idxname,
											  get_rel_namespace(relid));
	/* the command is analyzed in place */
	command->seconds = OidIsValid(command->existing) ?
		copyObject(command->seconds) : NULL;
	foreach(lc, statement->indexParams)
	{
		IndexElem  *key = lfirst(lc);
		AttrNumber	attnum = key->name ? get_attnum(relid, key->name) : InvalidAttrNumber;

		if (attnum > 0 && get_atttype(relid, attnum) == JSONOID)
			command->json_hint = ttl_hint_key_type(relid, attnum, JSONOID, NULL);
	}
}

/* The seconds of a command that core has accepted; false where they are none. */
static bool
read_seconds(const Declaration *command, int32 *seconds)
{
	ParseState *pstate;
	Node	   *node = command->seconds;

	if (node != NULL && IsA(node, NamedArgExpr))
		node = (Node *) ((NamedArgExpr *) node)->arg;
	if (node == NULL || names_column(node, NULL))
		return false;
	pstate = make_parsestate(NULL);
	node = transformExpr(pstate, node, EXPR_KIND_INDEX_PREDICATE);
	free_parsestate(pstate);
	return ttl_option_read_seconds(node, seconds);
}

/*
 * Says what an index that IF NOT EXISTS has found is, if that is not what the command
 * would have made: a TTL that was changed in code alone is none.
 */
static void
report_existing(const Declaration *command)
{
	const char *name = get_rel_name(command->existing);
	const char *qualified = ttl_name_find(command->existing);
	char		relkind = get_rel_relkind(command->existing);
	TtlIndex	index;
	int32		seconds;

	if (!message_level_is_interesting(NOTICE) || name == NULL || qualified == NULL)
		return;
	if ((relkind != RELKIND_INDEX && relkind != RELKIND_PARTITIONED_INDEX) ||
		IndexGetRelation(command->existing, true) != command->relid ||
		!ttl_catalog_describe(command->existing, true, &index) ||
		!index.option.present)
		ereport(NOTICE,
				(errmsg("relation \"%s\" is no TTL index of table \"%s\"",
						name, get_rel_name(command->relid)),
				 errhint("Rename it, or give another name.")));
	else if (index.option.problem == NULL && read_seconds(command, &seconds) &&
			 seconds != index.option.seconds)
		ereport(NOTICE,
				(errmsg("TTL index \"%s\" is left as it is: expire_after_seconds is %d instead of %d",
						name, index.option.seconds, seconds),
				 errhint("ttl_index.coll_mod_index(%s, %d) changes it. ttl_index.create_index(..., or_change => true) creates or changes it.",
						 quote_literal_cstr(qualified), seconds)));
}

/* Adds a hint to an error, if it is about what is special in the command. */
static void
add_hint(void *arg)
{
	Declaration *command = arg;

	switch (geterrcode())
	{
		case ERRCODE_UNDEFINED_TABLE:
		case ERRCODE_UNDEFINED_SCHEMA:
		case ERRCODE_UNDEFINED_COLUMN:
		case ERRCODE_INVALID_NAME:
			if (is_at(command, command->archive_locations))
				errhint(ARCHIVE_HINT);
			break;
		case ERRCODE_UNDEFINED_FUNCTION:
		case ERRCODE_INVALID_TEXT_REPRESENTATION:
			if (is_at(command, command->archive_locations))
				errhint(ARCHIVE_HINT);
			else if (is_at(command, command->locations))
				errhint(OPTION_HINT);
			break;
		case ERRCODE_INVALID_OBJECT_DEFINITION:
			if (command->archives_to_column)
				errhint(ARCHIVE_HINT);
			else if (command->has_clock)
				errhint(TTL_FILTER_HINT);
			else
				errhint("What is indexed must not depend on settings, as a cast to timestamp with time zone does. "
						"A column of type timestamp or date is a key itself, with AND ttl_index.time_zone('...'). "
						"For text, the recipe \"Dates in text\" of the manual has an immutable function.");
			break;
		case ERRCODE_UNDEFINED_OBJECT:
			if (command->json_hint != NULL)
				errhint("%s", command->json_hint);
			break;
		case ERRCODE_WRONG_OBJECT_TYPE:
			if (command->relkind == RELKIND_VIEW)
				errhint("Create it on the table that the view reads.");
			else if (command->relkind == RELKIND_FOREIGN_TABLE)
				errhint("Let the rows expire on the server that has them.");
			break;
		default:
			break;
	}
}

static ProcessUtility_hook_type next_process_utility = NULL;

static void
process_utility(PlannedStmt *pstmt, const char *queryString, bool readOnlyTree,
				ProcessUtilityContext context, ParamListInfo params,
				QueryEnvironment *queryEnv, DestReceiver *dest,
				QueryCompletion *qc)
{
	IndexStmt  *statement = (IndexStmt *) pstmt->utilityStmt;
	Declaration command = {queryString};
	ErrorContextCallback callback = {error_context_stack, add_hint, &command};

	/* what LIKE and create_index() make is analyzed already */
	if (IsA(statement, IndexStmt) && !statement->transformed)
		note_where(statement->whereClause, &command);
	if (command.has_option)
	{
		note_table(statement, &command);
		error_context_stack = &callback;
	}
	if (next_process_utility)
		next_process_utility(pstmt, queryString, readOnlyTree, context, params,
							 queryEnv, dest, qc);
	else
		standard_ProcessUtility(pstmt, queryString, readOnlyTree, context,
								params, queryEnv, dest, qc);
	if (command.has_option)
		error_context_stack = callback.previous;
	if (OidIsValid(command.existing) && command.seconds != NULL)
		report_existing(&command);
}

void
ttl_mistake_init(void)
{
	next_process_utility = ProcessUtility_hook;
	ProcessUtility_hook = process_utility;
}
