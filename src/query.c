/*-------------------------------------------------------------------------
 *
 * query.c
 *	  Queries over one table that are made as trees, not as text.
 *
 * Text would name the table and the functions of its index, and the owner of a schema can
 * make a name mean something else (see name.c).  The trees of the key and of the filter
 * are in pg_index, by OIDs; a query that is made of them calls the functions with which
 * the index was built.  expire/delete.c deletes by such queries, ddl/notice.c samples.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/query.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

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

/*
 * Runs a query, with what rules and triggers add to it, and returns how many rows it
 * processed.  The plan is made without the values of the parameters.  The name is shown
 * where the text of a query would be.
 */
int64
ttl_query_run(Query *query, ParamListInfo params, const char *name,
			  DestReceiver *dest)
{
	CommandTag	tag = query->commandType == CMD_SELECT ? CMDTAG_SELECT : CMDTAG_DELETE;
	List	   *plans = pg_plan_queries(QueryRewrite(query), name, 0, NULL);
	Portal		portal = CreateNewPortal();
	QueryCompletion completion;

	portal->visible = false;
	PortalDefineQuery(portal, NULL, name, tag, plans, NULL);
	PortalStart(portal, params, 0, InvalidSnapshot);
	(void) ttl_portal_run(portal, dest, &completion);
	PortalDrop(portal, false);
	return completion.nprocessed;
}
