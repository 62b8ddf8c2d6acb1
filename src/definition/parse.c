/*-------------------------------------------------------------------------
 *
 * parse.c
 *	  From the text of an expression to its tree.
 *
 * Filters and keys that users give as text become part of a CREATE INDEX command.  They are
 * parsed as that command will parse them, to compare them with existing indexes, and to make
 * sure that the text is one whole expression, which cannot end the parentheses around it.
 *
 * The grammar has no mode for a single expression, so the text is parsed as the WHERE of a
 * CREATE INDEX.
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

#define BEFORE_TEXT "CREATE INDEX ON t (c) WHERE "

/* A text that is being parsed, and the name of the argument that it comes from. */
typedef struct ParseSource
{
	const char *name;
	const char *text;
} ParseSource;

/* Makes a position in the command one of an internal query, which is the text. */
static void
add_context(void *arg)
{
	const ParseSource *source = arg;
	int			position = geterrposition() - strlen(BEFORE_TEXT);

	if (position > 0)
	{
		errposition(0);
		internalerrposition(position);
		internalerrquery(source->text);
	}
	errcontext("%s", source->name);
}

/* Parses a filter or a key of a table.  The name is for errors. */
Node *
ttl_parse_expression(Relation rel, const char *text, bool is_filter, const char *name)
{
	ParseSource source = {name, text};
	ErrorContextCallback callback = {error_context_stack, add_context, &source};
	ParseState *pstate = make_parsestate(NULL);
	char	   *command = psprintf(BEFORE_TEXT "%s", text);
	List	   *raw;
	RawStmt    *statement;
	Node	   *node;

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
