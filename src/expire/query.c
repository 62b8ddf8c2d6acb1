/*-------------------------------------------------------------------------
 *
 * query.c
 *	  The commands of a batch, made as query trees instead of text.
 *
 * Text would name the table, and the owner of its schema could give that name to another table
 * between the lookup and the parsing (see name.c).
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_trigger.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "parser/parse_relation.h"
#include "rewrite/prs2lock.h"
#include "rewrite/rewriteHandler.h"
#include "tcop/dest.h"
#include "tcop/tcopprot.h"
#include "tcop/utility.h"
#include "utils/portal.h"
#include "utils/rel.h"

#include "compat.h"
#include "expire/expirer.h"

/*
 * Is nothing attached to a command that changes rows of a table?  A trigger that is disabled
 * counts as well: it depends on the session whether it fires.
 */
bool
ttl_query_is_plain(Relation rel, CmdType command)
{
	int			event = command == CMD_INSERT ? TRIGGER_TYPE_INSERT : TRIGGER_TYPE_DELETE;

	for (int i = 0; rel->trigdesc != NULL && i < rel->trigdesc->numtriggers; i++)
	{
		if (rel->trigdesc->triggers[i].tgtype & event)
			return false;
	}
	for (int i = 0; rel->rd_rules != NULL && i < rel->rd_rules->numLocks; i++)
	{
		if (rel->rd_rules->rules[i]->event == command)
			return false;
	}
	return true;
}

/* Completes a query whose first table, which is locked, is changed. */
static Query *
make_query(CmdType command, ParseState *pstate, ParseNamespaceItem *target, AclMode needed,
		   Node *condition)
{
	Query	   *query = makeNode(Query);

	ttl_query_take_table(query, pstate, target, needed);
	query->commandType = command;
	query->querySource = QSRC_ORIGINAL;
	query->canSetTag = true;
	query->resultRelation = 1;
	query->jointree = makeFromExpr(pstate->p_joinlist, condition);
	free_parsestate(pstate);
	return query;
}

/* Makes a query that deletes rows of this table alone, and may return them. */
Query *
ttl_query_make_delete(Relation rel, Node *condition, bool returns_rows)
{
	ParseState *pstate = make_parsestate(NULL);
	TupleDesc	desc = RelationGetDescr(rel);
	ParseNamespaceItem *target;
	Query	   *query;

	target = addRangeTableEntryForRelation(pstate, rel, RowExclusiveLock, NULL, false, false);
	addNSItemToQuery(pstate, target, true, false, false);
	query = make_query(CMD_DELETE, pstate, target, ACL_SELECT | ACL_DELETE, condition);

	/* a returned row has each column, also a dropped one, in its place */
	for (int i = 0; returns_rows && i < desc->natts; i++)
	{
		Form_pg_attribute attr = TupleDescAttr(desc, i);
		Expr	   *value;

		if (attr->attisdropped)
			value = (Expr *) makeNullConst(INT4OID, -1, InvalidOid);
		else
			value = (Expr *) makeVar(1, i + 1, attr->atttypid, attr->atttypmod,
									 attr->attcollation, 0);
		query->returningList = lappend(query->returningList,
									   makeTargetEntry(value, i + 1, pstrdup(NameStr(attr->attname)),
													   false));
	}
	/* a virtual column is returned as its expression */
	query->returningList = (List *) TTL_EXPAND_VIRTUAL((Node *) query->returningList, rel);
	return query;
}

/*
 * Makes a query that inserts rows into a table.  The rows are an ephemeral relation of the
 * environment.  The rewriter adds defaults for columns that have no value.
 */
Query *
ttl_query_make_insert(Relation to, List *values, QueryEnvironment *env, char *rows)
{
	ParseState *pstate = make_parsestate(NULL);
	ParseNamespaceItem *target;
	Query	   *query;

	pstate->p_queryEnv = env;
	target = addRangeTableEntryForRelation(pstate, to, RowExclusiveLock, NULL, false, false);
	addNSItemToQuery(pstate, addRangeTableEntryForENR(pstate, makeRangeVar(NULL, rows, -1), true),
					 true, false, false);
	query = make_query(CMD_INSERT, pstate, target, ACL_INSERT, NULL);
	query->targetList = copyObject(values);
	/* an identity column keeps the values of the rows */
	query->override = OVERRIDING_SYSTEM_VALUE;
	return query;
}

/* Plans a query with its rules.  The plan is generic. */
List *
ttl_query_plan(Query *query, const char *name)
{
	return pg_plan_queries(QueryRewrite(query), name, 0, NULL);
}

/*
 * Runs a query that was planned, with its triggers, and returns how many rows it processed.
 * The name is shown instead of a query text.  The environment may be NULL.
 */
int64
ttl_query_run(List *plans, CommandTag tag, ParamListInfo params, QueryEnvironment *env,
			  const char *name, DestReceiver *dest)
{
	Portal		portal = CreateNewPortal();
	QueryCompletion completion;

	portal->visible = false;
	portal->queryEnv = env;
	PortalDefineQuery(portal, NULL, name, tag, plans, NULL);
	PortalStart(portal, params, 0, InvalidSnapshot);
	(void) ttl_portal_run(portal, dest, &completion);
	PortalDrop(portal, false);
	return completion.nprocessed;
}
