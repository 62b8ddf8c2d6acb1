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
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/parse.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "parser/parse_clause.h"
#include "parser/parse_collate.h"
#include "parser/parse_expr.h"
#include "parser/parse_relation.h"
#include "parser/parser.h"
#include "storage/lockdefs.h"

#include "ttl_index.h"

typedef struct ParseArg
{
	const char *name;			/* of the argument that holds the text */
	const char *text;
} ParseArg;

/* Makes a position in the text one of an internal query. */
static void
parse_error(void *arg)
{
	const ParseArg *source = arg;
	int			position = geterrposition();

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
	List	   *raw = raw_parser(source->text, RAW_PARSE_PLPGSQL_EXPR);
	SelectStmt *select = (SelectStmt *) linitial_node(RawStmt, raw)->stmt;

	if (!IsA(select, SelectStmt) || list_length(select->targetList) != 1 ||
		linitial_node(ResTarget, select->targetList)->name != NULL ||
		select->distinctClause || select->fromClause || select->whereClause ||
		select->groupClause || select->havingClause || select->windowClause ||
		select->sortClause || select->limitOffset || select->limitCount ||
		select->lockingClause || select->op != SETOP_NONE)
		ereport(ERROR,
				(errcode(ERRCODE_SYNTAX_ERROR),
				 errmsg("%s must be one expression: %s",
						source->name, source->text)));
	return linitial_node(ResTarget, select->targetList)->val;
}

/*
 * Parses an expression over the columns of a table: a filter, or else a key.  The
 * name is for errors.
 */
Node *
ttl_parse_expression(Relation rel, const char *text, bool is_filter,
					 const char *name)
{
	ParseArg	source = {name, text};
	ErrorContextCallback callback = {error_context_stack, parse_error, &source};
	ParseState *pstate = make_parsestate(NULL);
	Node	   *node;

	error_context_stack = &callback;
	pstate->p_sourcetext = text;
	addNSItemToQuery(pstate,
					 addRangeTableEntryForRelation(pstate, rel,
												   AccessShareLock, NULL,
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
