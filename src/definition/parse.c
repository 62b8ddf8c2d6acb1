/*-------------------------------------------------------------------------
 *
 * parse.c
 *	  From the text of an expression to its tree.
 *
 * Filters and keys that users give as text become part of a CREATE INDEX command.  They are
 * parsed as that command will parse them, to compare them with existing indexes, and to make
 * sure that the text is one whole expression, which cannot end the parentheses around it.
 *
 * The grammar has no mode for a single expression, and PL/pgSQL's takes targets such as "*",
 * on which transformExpr() crashes.  So the text is parsed as the WHERE of a CREATE INDEX.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/definition/parse.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "nodes/parsenodes.h"
#include "parser/parse_clause.h"
#include "parser/parse_collate.h"
#include "parser/parse_expr.h"
#include "parser/parse_relation.h"
#include "parser/parser.h"

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

/* Parses a filter or a key of a table.  The name is for errors. */
Node *
ttl_parse_expression(Relation rel, const char *text, bool is_filter,
					 const char *name)
{
	const ParseArg source = {name, text, psprintf(BEFORE_TEXT "%s", text)};
	ErrorContextCallback callback = {error_context_stack, parse_error, (void *) &source};
	ParseState *pstate = make_parsestate(NULL);
	Node	   *node;

	error_context_stack = &callback;
	pstate->p_sourcetext = source.command;
	addNSItemToQuery(pstate,
					 addRangeTableEntryForRelation(pstate, rel, AccessShareLock, NULL,
												   false, true),
					 false, true, true);
	node = parse_one(&source);
	node = is_filter ?
		transformWhereClause(pstate, node, EXPR_KIND_INDEX_PREDICATE, "WHERE") :
		transformExpr(pstate, node, EXPR_KIND_INDEX_EXPRESSION);
	assign_expr_collations(pstate, node);
	free_parsestate(pstate);
	error_context_stack = callback.previous;
	return node;
}
