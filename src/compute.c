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
#include "utils/guc.h"
#include "utils/partcache.h"
#include "utils/rel.h"

#include "compute.h"
#include "ttl_index.h"

/* Folds the constant parts of an expression, of which the caller keeps the original. */
Node *
ttl_compute_folded(Node *expression)
{
	ttl_settings_renew_safe();
	return eval_const_expressions(NULL, copyObject(expression));
}

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

/* The conditions that the rows of a partition meet. */
List *
ttl_compute_bounds(Relation partition)
{
	ttl_settings_renew_safe();
	return RelationGetPartitionQual(partition);
}

/* Runs a command for the caller, which means the same by any settings. */
void
ttl_compute_command_of_caller(const char *command)
{
	SPI_connect();
	if (SPI_execute(command, false, 0) != SPI_OK_UTILITY)
		elog(ERROR, "could not run: %s", command);
	SPI_finish();
}

/* Runs a command as an owner. */
void
ttl_compute_command(const char *command)
{
	ttl_settings_renew_safe();
	ttl_compute_command_of_caller(command);
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
