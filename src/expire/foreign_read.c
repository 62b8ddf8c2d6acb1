/*-------------------------------------------------------------------------
 *
 * foreign_read.c
 *	  Code in tables of other roles that foreign keys of a batch only read.
 *
 * Where a foreign key looks whether a row is referenced, or whether there is one that a row
 * of the archive references, core plans a query as the owner of the table that it reads, in the
 * middle of what runs as the owner of the rows.  Code in the definition of that
 * table could leave to the latter what it leaves to others: settings, what is cached, what is
 * compiled; and none of that can be dropped for certain there, as core keeps the
 * partition key of a relation that is open, such as the archive.  Where the owner of the table has more
 * privileges, the code of the batch could leave all that to it.
 *
 * So nothing is read where there is any, whether it would be called or not: the planner calls
 * functions of types and operators of which no hook tells, core reads what functions in SQL
 * say before anything is planned, and the executor checks the filter of an index again for
 * rows that are changed meanwhile.  The definition can change between the look at it and
 * the planning, so calls and queries are refused during the latter as well.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/expire/foreign_read.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/planner.h"
#include "parser/parsetree.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"

#include "compat.h"
#include "definition/codeless.h"
#include "expire/cascade.h"
#include "leftover.h"
#include "ttl_index.h"

/* the table that a foreign key reads, while that is planned */
static Oid	planned = InvalidOid;

static planner_hook_type next_planner = NULL;
static needs_fmgr_hook_type next_needs_fmgr = NULL;
static fmgr_hook_type next_fmgr = NULL;

static void
raise_code(void)
{
	const char *name = get_rel_name(planned);
	const char *beside = GetUserNameFromId(ttl_leftover_beside(), true);

	ttl_leftover_become_nobody();
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("a foreign key reads table \"%s\" of another owner, whose definition may call functions of users",
					name ? name : "?"),
			 errdetail("What is constant in its partition key, indexes, statistics and CHECK constraints, and casts of its keys, would be computed beside code of role \"%s\".",
					   beside ? beside : "?"),
			 errhint("Let this role own the table as well, or let these definitions and casts call no functions of users.")));
}

/* Refuses a function that is about to be called. */
static void
refuse_code(Oid function)
{
	if (OidIsValid(planned) && ttl_code_is_of_user(function))
		raise_code();
}

/* Core asks before it looks up a function to call it, and before it inlines one, in SQL. */
static bool
refuse_lookup(Oid function)
{
	refuse_code(function);
	return next_needs_fmgr && next_needs_fmgr(function);
}

/* For functions with settings of their own, or another role's rights, it only tells of calls. */
static void
refuse_call(FmgrHookEventType event, FmgrInfo *function, Datum *arg)
{
	if (event == FHET_START)
		refuse_code(function->fn_oid);
	if (next_fmgr)
		next_fmgr(event, function, arg);
}

/*
 * Is this the text of a query of a foreign key?  Nothing else tells one from a query of the code that
 * runs.  Core quotes all names, writes operators with their schemas, and the values of the keys as
 * parameters; who writes the same is refused the same.
 */
static bool
is_text_of_foreign_key(const char *text)
{
	/* the last one is that of a period */
	static const char *const begins[] = {
		"DELETE FROM ONLY \"", "DELETE FROM \"", "UPDATE ONLY \"", "UPDATE \"",
		"SELECT 1 FROM ONLY \"", "SELECT 1 FROM \"", "SELECT 1 FROM (SELECT \""
	};

	for (int i = 0; i < lengthof(begins) && text != NULL; i++)
	{
		if (strncmp(text, begins[i], strlen(begins[i])) == 0)
			return strstr(text, " OPERATOR(") != NULL && strstr(text, "$1") != NULL;
	}
	return false;
}

/*
 * The table in which a foreign key is to find out by this whether rows are referenced, or are
 * there that are; invalid where it is another query.  Others hardly ever ask for such locks, of
 * a table that they call "x".
 */
static Oid
table_of_foreign_key(const Query *query)
{
	ListCell   *lc;
	Oid			relid = InvalidOid;

	foreach(lc, query->rowMarks)
	{
		const RowMarkClause *mark = lfirst_node(RowMarkClause, lc);
		const RangeTblEntry *rte = rt_fetch(mark->rti, query->rtable);

		if (mark->strength == LCS_FORKEYSHARE && strcmp(rte->eref->aliasname, "x") == 0)
			return rte->relid;
	}
	/* that of a period has them a level below */
	foreach(lc, query->rtable)
	{
		const RangeTblEntry *rte = lfirst_node(RangeTblEntry, lc);

		if (rte->rtekind == RTE_SUBQUERY && !OidIsValid(relid))
			relid = table_of_foreign_key(rte->subquery);
	}
	return relid;
}

static bool
refuse_function(Oid function, void *arg)
{
	refuse_code(function);
	return false;
}

/* Refuses code that is called for each row, as a cast of a key is. */
static bool
refuse_code_in_query(Node *node, void *arg)
{
	if (node == NULL)
		return false;
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, refuse_code_in_query, NULL, 0);
	(void) check_functions_in_node(node, refuse_function, NULL);
	return expression_tree_walker(node, refuse_code_in_query, NULL);
}

/* Refuses a table, or a partition of it, in whose definition there is code. */
static void
refuse_code_in_table(Oid relid)
{
	uint64		since;
	ListCell   *lc;

	if (ttl_checked_find(relid, InvalidOid, TTL_CHECK_CODE, &since))
		return;
	foreach(lc, ttl_inherit_partitions(relid, RowShareLock))
	{
		if (!ttl_codeless_planning(lfirst_oid(lc)))
			raise_code();
	}
	ttl_checked_add(relid, InvalidOid, TTL_CHECK_CODE, since);
}

/*
 * Plans what a foreign key reads in a table, of another role or not.  The settings of what runs do
 * not matter there: the path by which is found what is inlined, which is kept, and whether the
 * partition keys above the table are computed.
 */
static PlannedStmt *
plan_read(planner_hook_type plan, Oid relid, Query *parse, const char *query_string,
		  int options, ParamListInfo params ttl_and_explain(struct ExplainState *es))
{
	int			level = ttl_settings_begin_safe();
	PlannedStmt *result;

	planned = OidIsValid(ttl_leftover_beside()) ? relid : InvalidOid;
	PG_TRY();
	{
		if (!OidIsValid(planned))
			ttl_cascade_check_read(relid);
		else
		{
			(void) refuse_code_in_query((Node *) parse, NULL);
			refuse_code_in_table(relid);
		}
		result = plan(parse, query_string, options, params ttl_and_explain(es));
	}
	PG_FINALLY();
	{
		planned = InvalidOid;
	}
	PG_END_TRY();
	AtEOXact_GUC(false, level);
	return result;
}

static PlannedStmt *
plan_query(Query *parse, const char *query_string, int options,
		   ParamListInfo params ttl_and_explain(struct ExplainState *es))
{
	planner_hook_type plan = next_planner ? next_planner : standard_planner;
	Oid			relid;

	/*
	 * planning calls nothing that plans but code, be it of a type, which was
	 * looked up before
	 */
	if (OidIsValid(planned))
		raise_code();
	if (OidIsValid(ttl_leftover_commander()) && is_text_of_foreign_key(query_string))
	{
		relid = table_of_foreign_key(parse);
		if (OidIsValid(relid))
			return plan_read(plan, relid, parse, query_string, options,
							 params ttl_and_explain(es));
		ttl_cascade_check_change(parse);
	}
	return plan(parse, query_string, options, params ttl_and_explain(es));
}

void
ttl_foreign_read_init(void)
{
	next_planner = planner_hook;
	planner_hook = plan_query;
	next_needs_fmgr = needs_fmgr_hook;
	needs_fmgr_hook = refuse_lookup;
	next_fmgr = fmgr_hook;
	fmgr_hook = refuse_call;
}
