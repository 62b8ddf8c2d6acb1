/*-------------------------------------------------------------------------
 *
 * query.c
 *	  Queries that are made as trees, not as text.
 *
 * Text would name the table and the functions of its index, and the owner of a schema can make
 * these names mean something else (name.c).  The trees in pg_index refer to functions by OID,
 * so a query made of them calls the functions with which the index was built.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/expire/query.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_trigger.h"
#include "executor/spi.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "parser/parse_relation.h"
#include "rewrite/prs2lock.h"
#include "rewrite/rewriteHandler.h"
#include "tcop/dest.h"
#include "tcop/tcopprot.h"
#include "tcop/utility.h"
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
	key = ttl_key_node(RelationGetRelid(rel), attnum, key);
	if (exprType(key) != keytype)	/* a domain */
		key = (Node *) makeRelabelType((Expr *) key, keytype, -1, InvalidOid,
									   COERCE_IMPLICIT_CAST);
	return key;
}

/* Makes a query that deletes rows of this table alone, which is locked, that meet conditions. */
Query *
ttl_query_make_delete(Relation rel, List *conditions)
{
	ParseState *pstate = make_parsestate(NULL);
	Query	   *query = makeNode(Query);
	ParseNamespaceItem *item =
	addRangeTableEntryForRelation(pstate, rel, RowExclusiveLock, NULL, false, false);

	addNSItemToQuery(pstate, item, true, false, false);
	ttl_query_take_table(query, pstate, item, ACL_SELECT | ACL_DELETE);
	query->commandType = CMD_DELETE;
	query->querySource = QSRC_ORIGINAL;
	query->canSetTag = true;
	query->resultRelation = 1;
	query->jointree = makeFromExpr(pstate->p_joinlist,
								   (Node *) make_ands_explicit(conditions));
	free_parsestate(pstate);
	return query;
}

/*
 * The column of the same name in the query's second table; NULL if there is none, or if the
 * column is generated.
 */
static Expr *
value_by_name(Relation to, AttrNumber attnum, Relation from)
{
	Form_pg_attribute attr = TupleDescAttr(RelationGetDescr(to), attnum - 1);
	Form_pg_attribute source;
	int			number;

	if (attr->attisdropped || attr->attgenerated != '\0')
		return NULL;
	number = SPI_fnumber(RelationGetDescr(from), NameStr(attr->attname));
	if (number <= 0)
		return NULL;
	source = TupleDescAttr(RelationGetDescr(from), number - 1);

	/* it was checked, but a wrong type would crash the server */
	if (source->atttypid != attr->atttypid)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("column \"%s\" of table \"%s\" has another type than that of table \"%s\"",
						NameStr(attr->attname), RelationGetRelationName(to),
						RelationGetRelationName(from))));
	return (Expr *) makeVar(2, number, source->atttypid, source->atttypmod,
							source->attcollation, 0);
}

/* The values for the columns of a table that have one in a row of another table. */
List *
ttl_query_values(Relation to, Relation from)
{
	List	   *values = NIL;

	for (AttrNumber i = 1; i <= RelationGetNumberOfAttributes(to); i++)
	{
		Form_pg_attribute attr = TupleDescAttr(RelationGetDescr(to), i - 1);
		Expr	   *value = value_by_name(to, i, from);

		if (value != NULL)
			values = lappend(values,
							 makeTargetEntry(value, i, pstrdup(NameStr(attr->attname)), false));
	}
	return values;
}

/*
 * Makes a query that inserts rows into a table, which is locked.  The rows are an ephemeral
 * relation of the environment; the rewriter adds defaults to the values.
 */
Query *
ttl_query_make_insert(Relation to, List *values, QueryEnvironment *env, char *rows)
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
	query->targetList = copyObject(values);
	query->jointree = makeFromExpr(pstate->p_joinlist, NULL);
	free_parsestate(pstate);
	return query;
}

/*
 * Makes the target list for whole rows of a table as a query shows them, each column in its
 * place: in that of a virtual column is its expression, which is not planned yet.
 */
List *
ttl_query_columns(Relation rel)
{
	TupleDesc	desc = RelationGetDescr(rel);
	List	   *columns = NIL;

	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute attr = TupleDescAttr(desc, i);
		Expr	   *value;

		if (attr->attisdropped)
			value = (Expr *) makeNullConst(INT4OID, -1, InvalidOid);
		else
			value = (Expr *) makeVar(1, i + 1, attr->atttypid, attr->atttypmod,
									 attr->attcollation, 0);
		columns = lappend(columns, makeTargetEntry(value, i + 1,
												   pstrdup(NameStr(attr->attname)), false));
	}
	return (List *) TTL_EXPAND_VIRTUAL((Node *) columns, rel);
}

/*
 * Is nothing attached to a command that changes rows of a table?  A trigger that is disabled
 * counts as well: it depends on the session whether it fires.
 */
bool
ttl_query_is_plain(Relation rel, CmdType command)
{
	int			event = command == CMD_INSERT ? TRIGGER_TYPE_INSERT : TRIGGER_TYPE_DELETE;
	TriggerDesc *triggers = rel->trigdesc;

	for (int i = 0; triggers != NULL && i < triggers->numtriggers; i++)
	{
		if (triggers->triggers[i].tgtype & event)
			return false;
	}
	for (int i = 0; rel->rd_rules != NULL && i < rel->rd_rules->numLocks; i++)
	{
		if (rel->rd_rules->rules[i]->event == command)
			return false;
	}
	return true;
}

/*
 * Runs a query with its rules and triggers, and returns how many rows it processed.  The plan
 * is generic.  The name is shown instead of a query text.  The environment may be NULL.
 */
int64
ttl_query_run(Query *query, ParamListInfo params, QueryEnvironment *env,
			  const char *name, DestReceiver *dest)
{
	CommandTag	tag = CreateCommandTag((Node *) query);
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
