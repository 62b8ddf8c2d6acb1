/*-------------------------------------------------------------------------
 *
 * mistake.c
 *	  Hints on CREATE INDEX commands with an option that core refuses.
 *
 * Some mistakes never reach the event trigger: core raises an error that is about functions
 * and types, while the user wrote a time to live.  Where the library is loaded, such
 * an error gets a hint that is about TTL indexes.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/ddl/mistake.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "tcop/utility.h"
#include "utils/lsyscache.h"

#include "ddl/ddl.h"
#include "definition/option.h"
#include "ttl_index.h"

#define OPTION_HINT "The option is ttl_index.expire_after_seconds(seconds), with a whole number from 0 to 2147483647, or with ttl_index.seconds('30 days')."

/* A CREATE INDEX command that names an option, and where in its text. */
typedef struct Declaration
{
	const char *source;
	bool		has_option;
	bool		has_json_key;
	char		relkind;		/* of what is to be indexed */
	List	   *locations;		/* of the calls of options, and of their
								 * constants, in bytes */
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

/* Is the error at hand at an option? */
static bool
is_at_option(const Declaration *command)
{
	int			position = geterrposition();

	return position > 0 &&
		list_member_int(command->locations,
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

/* Notes the calls of options in the WHERE of the command, before it is analyzed. */
static bool
note_options(Node *node, void *context)
{
	static const char *const names[] = {"expire_after_seconds", "time_zone",
	"drop_expired_partitions", "bucket_max_span_seconds", "seconds"};
	Declaration *command = context;
	FuncCall   *call = (FuncCall *) node;

	if (node == NULL)
		return false;
	for (int i = 0; i < lengthof(names) && IsA(node, FuncCall); i++)
	{
		ListCell   *lc;

		if (!is_call_of(call, names[i]))
			continue;
		command->has_option = command->has_option || i == 0;
		command->locations = lappend_int(command->locations, call->location);
		foreach(lc, call->args)
		{
			if (IsA(lfirst(lc), A_Const))
				command->locations = lappend_int(command->locations,
												 ((A_Const *) lfirst(lc))->location);
		}
		/* a name alone may mean a function of the user's own */
		if (i == 0 && call->args != NIL && list_length(call->funcname) > 1)
			check_seconds(command, call);
	}
	return raw_expression_tree_walker(node, note_options, context);
}

/* Notes what is to be indexed, while there is no error yet. */
static void
note_table(const IndexStmt *statement, Declaration *command)
{
	Oid			relid = RangeVarGetRelid(statement->relation, NoLock, true);
	ListCell   *lc;

	if (!OidIsValid(relid))
		return;
	command->relkind = get_rel_relkind(relid);
	foreach(lc, statement->indexParams)
	{
		IndexElem  *key = lfirst(lc);

		if (key->name != NULL &&
			get_atttype(relid, get_attnum(relid, key->name)) == JSONOID)
			command->has_json_key = true;
	}
}

/* Adds a hint to an error, if it is about what is special in the command. */
static void
add_hint(void *arg)
{
	Declaration *command = arg;

	switch (geterrcode())
	{
		case ERRCODE_UNDEFINED_FUNCTION:
		case ERRCODE_INVALID_TEXT_REPRESENTATION:
			if (is_at_option(command))
				errhint(OPTION_HINT);
			break;
		case ERRCODE_INVALID_OBJECT_DEFINITION:
			errhint("What is indexed must not depend on settings, as a cast to timestamp with time zone does. "
					"A column of type timestamp or date is a key itself, with AND ttl_index.time_zone('...'). "
					"For text, the recipe \"Dates in text\" of the manual has an immutable function.");
			break;
		case ERRCODE_UNDEFINED_OBJECT:
			if (command->has_json_key)
				errhint("Index a date in the documents: ttl_index.document_date(column::jsonb, 'createdAt').");
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
		note_options(statement->whereClause, &command);
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
}

void
ttl_mistake_init(void)
{
	next_process_utility = ProcessUtility_hook;
	ProcessUtility_hook = process_utility;
}
