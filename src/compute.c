/*-------------------------------------------------------------------------
 *
 * compute.c
 *	  What core computes for this extension in the midst of code of others.
 *
 * Folding, planning and running resolve names: the bodies of functions in SQL are parsed then,
 * by the search_path of that moment.  It can be anybody's.  What an owner's table calls may be a
 * SECURITY DEFINER function of another role, which leaves the settings that it likes, and
 * folding alone calls functions.  So the safe settings are set anew before each step, not once
 * for all of them; and nothing else calls these functions of core, which test 051_layout reads.
 *
 * Where no role's code is being run, as in a command of the session, nothing is set.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/compute.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/index.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "rewrite/rewriteHandler.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/partcache.h"
#include "utils/rel.h"

#include "compute.h"
#include "ttl_index.h"

/* Makes an expression one that can be executed. */
Expr *
ttl_compute_planned(Expr *expression)
{
	ttl_settings_renew_safe();
	return expression_planner(expression);
}

/* Computes an expression without variables. */
Const *
ttl_compute_value(Expr *expression, Oid typid, int32 typmod, Oid collation)
{
	Expr	   *value = ttl_compute_planned(expression);

	if (!IsA(value, Const))
	{
		ttl_settings_renew_safe();
		value = evaluate_expr(value, typid, typmod, collation);
	}
	return castNode(Const, value);
}

/* Prepares expressions for rows. */
List *
ttl_compute_states(List *expressions, EState *estate)
{
	ttl_settings_renew_safe();
	return ExecPrepareExprList(expressions, estate);
}

/* Prepares a condition for rows. */
ExprState *
ttl_compute_qual(List *qual, EState *estate)
{
	ttl_settings_renew_safe();
	return ExecPrepareQual(qual, estate);
}

/* Has core compute what it keeps of an index for as long as that is open. */
void
ttl_compute_index(Relation index)
{
	ttl_settings_renew_safe();
	(void) RelationGetIndexExpressions(index);
	ttl_settings_renew_safe();
	(void) RelationGetIndexPredicate(index);
}

/* What an index says. */
IndexInfo *
ttl_compute_index_info(Relation index)
{
	ttl_compute_index(index);
	return BuildIndexInfo(index);
}

/* The key by which a table is partitioned, which core keeps for as long as that is open. */
PartitionKey
ttl_compute_partition_key(Relation rel)
{
	ttl_settings_renew_safe();
	return RelationGetPartitionKey(rel);
}

/* The conditions that the rows of a partition meet. */
List *
ttl_compute_bounds(Relation partition)
{
	ttl_settings_renew_safe();
	return RelationGetPartitionQual(partition);
}

/*
 * Adds what rules and policies say.  Forced row security does not apply to what is deleted, but to
 * what an archive takes, as in an INSERT by its owner; and which it does is decided here.
 */
static List *
rewrite(Query *query)
{
	Oid			user;
	int			sec_context;
	List	   *queries;

	GetUserIdAndSecContext(&user, &sec_context);
	if (query->commandType == CMD_INSERT)
		SetUserIdAndSecContext(user, sec_context & ~SECURITY_NOFORCE_RLS);
	queries = QueryRewrite(query);
	SetUserIdAndSecContext(user, sec_context);
	return queries;
}

/*
 * Plans a query by settings by which rows are found by where they lie, or by an index: not by
 * those of a session, or of the owner of a database, by which each batch would read all of the
 * table.
 */
List *
ttl_compute_plans(Query *query, const char *name)
{
	int			level;
	List	   *plans;

	ttl_settings_renew_safe();
	level = NewGUCNestLevel();
	ttl_settings_set("enable_tidscan", "on");
	ttl_settings_each_cost(ttl_settings_set);
	ttl_settings_set("jit", "off");
	plans = pg_plan_queries(rewrite(query), name, 0, NULL);
	AtEOXact_GUC(false, level);
	return plans;
}

/* Runs a command. */
void
ttl_compute_command(const char *command)
{
	ttl_settings_renew_safe();
	SPI_connect();
	if (SPI_execute(command, false, 0) != SPI_OK_UTILITY)
		elog(ERROR, "could not run: %s", command);
	SPI_finish();
}

/*
 * Runs a query that returns one row, which is in SPI_tuptable until the caller says
 * SPI_finish().
 */
void
ttl_compute_select(const char *query, bool read_only)
{
	ttl_settings_renew_safe();
	SPI_connect();
	if (SPI_execute(query, read_only, 0) != SPI_OK_SELECT || SPI_processed != 1)
		elog(ERROR, "could not run: %s", query);
}
