/*-------------------------------------------------------------------------
 *
 * parse.c
 *	  From the text of an expression to its tree.
 *
 * The filters and keys that users give as text end up in a CREATE INDEX command.
 * They are parsed here as that command will parse them: to compare them with the
 * indexes there are, and to make sure that the text is one whole expression,
 * which cannot break out of the parentheses that it is put into.
 *
 * Parsing calls the input functions of types for literals, and so the CHECK of a
 * domain in an array or a row.  That is done as the table's owner, also for the
 * command itself, which then runs as the caller.
 *
 * The grammar has no mode for a lone expression.  That of PL/pgSQL takes a list of
 * targets, and a target such as "*" is none: the functions that transform
 * expressions do not expect it, and crash.  So the text is parsed where CREATE
 * INDEX itself has its filter, behind which no other clause can stand.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/definition/parse.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/namespace.h"
#include "catalog/pg_namespace.h"
#include "miscadmin.h"
#include "parser/parse_clause.h"
#include "parser/parse_collate.h"
#include "parser/parse_expr.h"
#include "parser/parse_relation.h"
#include "parser/parse_utilcmd.h"
#include "parser/parser.h"
#include "storage/lockdefs.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

#include "compat.h"
#include "definition/key.h"
#include "ttl_index.h"

typedef struct ParseArg
{
	const char *name;			/* of the argument that holds the text */
	const char *text;
	const char *command;		/* what is parsed, with the text at its end */
} ParseArg;

#define BEFORE_TEXT "CREATE INDEX ON t (c) WHERE "

/* Makes a position in the text one of an internal query. */
static void
parse_error(void *arg)
{
	const ParseArg *source = arg;
	int			position = geterrposition() - strlen(BEFORE_TEXT);

	if (position > 0)
	{
		errposition(0);
		internalerrposition(position);
		internalerrquery(source->text);
	}
	errcontext("%s", source->name);
}

/* The raw tree of a text that is one expression. */
static Node *
parse_one(const ParseArg *source)
{
	List	   *raw = raw_parser(source->command, RAW_PARSE_DEFAULT);
	RawStmt    *statement = linitial_node(RawStmt, raw);

	/* it has a length where a semicolon ends it */
	if (list_length(raw) != 1 || statement->stmt_len != 0)
		ereport(ERROR,
				(errcode(ERRCODE_SYNTAX_ERROR),
				 errmsg("%s must be one expression: %s",
						source->name, source->text)));
	return castNode(IndexStmt, statement->stmt)->whereClause;
}

/*
 * Makes sure that the owner of a table, as whom a text of the caller is read, finds the names in
 * it where the caller does, who then runs the command.  The owner would pass over a schema that
 * is closed to it, for an operator of the same name in a later one.
 */
void
ttl_parse_check_path(Oid owner)
{
	int			count = fetch_search_path_array(NULL, 0);
	Oid		   *schemas = palloc(count * sizeof(Oid));

	(void) fetch_search_path_array(schemas, count);
	for (int i = 0; i < count; i++)
	{
		if (object_aclcheck(NamespaceRelationId, schemas[i], owner, ACL_USAGE) != ACLCHECK_OK)
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
					 errmsg("schema \"%s\" of search_path is closed to role \"%s\"",
							get_namespace_name(schemas[i]), GetUserNameFromId(owner, false)),
					 errdetail("Filters and expressions are read as the owner of the table, who would find other functions and operators by these names."),
					 errhint("Leave this schema out of search_path, or grant USAGE on it to the role.")));
	}
}

/* The arguments and the result of parsing something as the owner of a table. */
typedef struct ParseWork
{
	Relation	rel;
	const ParseArg *source;
	bool		is_filter;
	Node	   *node;
} ParseWork;

static void
expression_work(void *arg)
{
	ParseWork  *work = arg;
	Relation	rel = work->rel;
	ParseState *pstate = make_parsestate(NULL);
	Node	   *node;

	pstate->p_sourcetext = work->source->command;
	addNSItemToQuery(pstate,
					 addRangeTableEntryForRelation(pstate, rel,
												   AccessShareLock, NULL,
												   false, true),
					 false, true, true);
	node = parse_one(work->source);
	work->node = work->is_filter ?
		transformWhereClause(pstate, node, EXPR_KIND_INDEX_PREDICATE, "WHERE") :
		transformExpr(pstate, node, EXPR_KIND_INDEX_EXPRESSION);
	assign_expr_collations(pstate, work->node);
	free_parsestate(pstate);
}

/*
 * Parses an expression over the columns of a table: a filter, or else a key.  The
 * name is for errors.
 */
Node *
ttl_parse_expression(Relation rel, const char *text, bool is_filter,
					 const char *name)
{
	const ParseArg source = {name, text, psprintf(BEFORE_TEXT "%s", text)};
	ErrorContextCallback callback = {error_context_stack, parse_error, (void *) &source};
	ParseWork	work = {.rel = rel,.source = &source,.is_filter = is_filter};

	error_context_stack = &callback;
	ttl_owner_parse(rel->rd_rel->relowner, expression_work, &work);
	error_context_stack = callback.previous;
	return work.node;
}

/* The arguments and the result of parsing a command as the owner of a table. */
typedef struct CommandWork
{
	Oid			relid;
	const char *command;
	IndexStmt  *statement;
} CommandWork;

static void
command_work(void *arg)
{
	CommandWork *work = arg;

	work->statement = transformIndexStmt(work->relid, work->statement, work->command);
}

/* Parses a CREATE INDEX on a table that is locked, so that it can be run. */
IndexStmt *
ttl_parse_create_index(Oid relid, const char *command)
{
	List	   *raw = raw_parser(command, RAW_PARSE_DEFAULT);
	CommandWork work = {.relid = relid,.command = command,
	.statement = castNode(IndexStmt, linitial_node(RawStmt, raw)->stmt)};

	ttl_owner_parse(ttl_owner_of(relid), command_work, &work);
	return work.statement;
}
