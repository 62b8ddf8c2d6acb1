/*-------------------------------------------------------------------------
 *
 * query.c
 *	  Queries that are made as trees, not as text.
 *
 * Text would name the table and the functions of its index, and the owner of a schema can
 * make a name mean something else (see name.c).  The trees of the key and of the filter
 * are in pg_index, by OIDs; a query that is made of them calls the functions with which
 * the index was built.  expire/delete.c deletes by such queries,
 * expire/move.c inserts, ddl/notice.c samples.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/query.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "parser/parse_relation.h"
#include "rewrite/rewriteHandler.h"
#include "tcop/dest.h"
#include "tcop/tcopprot.h"
#include "utils/portal.h"
#include "utils/rel.h"

#include "compat.h"
#include "definition/key.h"
#include "ttl_index.h"

/* Returns the key of an index on this table, as an expression of its base type. */
Node *
ttl_query_key(Oid indexrelid, Relation rel, Oid keytype)
{
	AttrNumber	attnum;
	Node	   *key;

	(void) ttl_key_read(indexrelid, &attnum, &key);
	if (key == NULL)
	{
		Form_pg_attribute attr = TupleDescAttr(RelationGetDescr(rel), attnum - 1);

		key = (Node *) makeVar(1, attnum, attr->atttypid, attr->atttypmod,
							   attr->attcollation, 0);
	}
	if (exprType(key) != keytype)	/* a domain */
		key = (Node *) makeRelabelType((Expr *) key, keytype, -1, InvalidOid,
									   COERCE_IMPLICIT_CAST);
	return key;
}

/* Makes a query for the rows of this table alone, which is locked, that meet conditions. */
Query *
ttl_query_make(CmdType command, Relation rel, List *conditions)
{
	bool		selects = command == CMD_SELECT;
	ParseState *pstate = make_parsestate(NULL);
	Query	   *query = makeNode(Query);
	ParseNamespaceItem *item =
	addRangeTableEntryForRelation(pstate, rel,
								  selects ? AccessShareLock : RowExclusiveLock,
								  NULL, false, selects);

	addNSItemToQuery(pstate, item, true, false, false);
	ttl_query_take_table(query, pstate, item,
						 selects ? ACL_SELECT : ACL_SELECT | ACL_DELETE);
	query->commandType = command;
	query->querySource = QSRC_ORIGINAL;
	query->canSetTag = true;
	query->resultRelation = selects ? 0 : 1;
	query->jointree = makeFromExpr(pstate->p_joinlist,
								   (Node *) make_ands_explicit(conditions));
	free_parsestate(pstate);
	return query;
}

/* The column of a table with this name, or invalid. */
static AttrNumber
find_column(TupleDesc desc, const char *name)
{
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute attr = TupleDescAttr(desc, i);

		if (!attr->attisdropped && strcmp(NameStr(attr->attname), name) == 0)
			return i + 1;
	}
	return InvalidAttrNumber;
}

/*
 * The values for the columns of a table: those of the same names in rows of another one,
 * which are the second table of a query.  What is generated is computed anew, and what has
 * no value there gets its default, from the rewriter.
 */
static List *
values_by_name(TupleDesc to, TupleDesc from)
{
	List	   *values = NIL;

	for (int i = 0; i < to->natts; i++)
	{
		Form_pg_attribute attr = TupleDescAttr(to, i);
		char	   *name = pstrdup(NameStr(attr->attname));
		AttrNumber	attnum;
		Form_pg_attribute source;

		if (attr->attisdropped || attr->attgenerated != '\0')
			continue;
		attnum = find_column(from, name);
		if (attnum == InvalidAttrNumber)
			continue;
		source = TupleDescAttr(from, attnum - 1);
		values = lappend(values,
						 makeTargetEntry((Expr *) makeVar(2, attnum, source->atttypid,
														  source->atttypmod,
														  source->attcollation, 0),
										 i + 1, name, false));
	}
	return values;
}

/*
 * Makes a query that inserts rows of one table into another one, which is locked.  The
 * rows are an ephemeral relation of the environment.
 */
Query *
ttl_query_make_insert(Relation to, Relation from, QueryEnvironment *env, char *rows)
{
	ParseState *pstate = make_parsestate(NULL);
	Query	   *query = makeNode(Query);
	ParseNamespaceItem *target;
	ParseNamespaceItem *source;

	pstate->p_queryEnv = env;
	target = addRangeTableEntryForRelation(pstate, to, RowExclusiveLock, NULL, false,
										   false);
	source = addRangeTableEntryForENR(pstate, makeRangeVar(NULL, rows, -1), true);
	addNSItemToQuery(pstate, source, true, false, false);
	ttl_query_take_table(query, pstate, target, ACL_INSERT);
	query->commandType = CMD_INSERT;
	query->querySource = QSRC_ORIGINAL;
	query->canSetTag = true;
	query->resultRelation = 1;
	/* the rows keep what an identity column gave them */
	query->override = OVERRIDING_SYSTEM_VALUE;
	query->targetList = values_by_name(RelationGetDescr(to), RelationGetDescr(from));
	query->jointree = makeFromExpr(pstate->p_joinlist, NULL);
	free_parsestate(pstate);
	return query;
}

/* Lets a DELETE return whole rows, each column in its place. */
void
ttl_query_return_rows(Query *query, Relation rel)
{
	TupleDesc	desc = RelationGetDescr(rel);

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute attr = TupleDescAttr(desc, i);
		Expr	   *value;

		if (attr->attisdropped)
			value = (Expr *) makeNullConst(INT4OID, -1, InvalidOid);
		else
			value = (Expr *) makeVar(1, i + 1, attr->atttypid, attr->atttypmod,
									 attr->attcollation, 0);
		query->returningList = lappend(query->returningList,
									   makeTargetEntry(value, i + 1,
													   pstrdup(NameStr(attr->attname)),
													   false));
	}
}

static CommandTag
command_tag(const Query *query)
{
	switch (query->commandType)
	{
		case CMD_SELECT:
			return CMDTAG_SELECT;
		case CMD_INSERT:
			return CMDTAG_INSERT;
		default:
			return CMDTAG_DELETE;
	}
}

/*
 * Runs a query, with what rules and triggers add to it, and returns how many rows it
 * processed.  The plan is made without the values of the parameters.  The name is shown
 * where the text of a query would be.  The environment, or NULL, has the ephemeral relations.
 */
int64
ttl_query_run(Query *query, ParamListInfo params, QueryEnvironment *env,
			  const char *name, DestReceiver *dest)
{
	CommandTag	tag = command_tag(query);
	List	   *plans = pg_plan_queries(QueryRewrite(query), name, 0, NULL);
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
