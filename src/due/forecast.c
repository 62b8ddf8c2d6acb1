/*-------------------------------------------------------------------------
 *
 * forecast.c
 *	  How many rows will fall due, and when, as far as statistics tell.
 *
 * Nothing is read but what ANALYZE has found (see expire/look.c), the sizes of the tables, and
 * whether a row is due now.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/xlog.h"
#include "catalog/pg_class.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "due/due.h"
#include "partition/partition.h"
#include "ttl_index.h"

PG_FUNCTION_INFO_V1(ttl_forecast);

#define MAX_STEPS 10000

/* How many pages of an index are read to find a row that is due now. */
#define MAX_PAGES 32

/* What falls due up to a time, and after the boundary before it. */
typedef struct Boundary
{
	TimestampTz at;
	double		rows;
	double		bytes;
} Boundary;

/* Makes the boundaries: now, and after each step. */
static Boundary *
make_boundaries(Interval *step, int steps)
{
	Boundary   *boundaries = palloc0(sizeof(Boundary) * (steps + 1));

	boundaries[0].at = GetCurrentTimestamp();
	for (int i = 1; i <= steps; i++)
	{
		Datum		span = DirectFunctionCall2(interval_mul, IntervalPGetDatum(step),
											   Float8GetDatum(i));

		boundaries[i].at = DatumGetTimestampTz(DirectFunctionCall2(timestamptz_pl_interval,
																   TimestampTzGetDatum(boundaries[0].at),
																   span));
		if (boundaries[i].at <= boundaries[i - 1].at)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("step must be greater than zero")));
	}
	return boundaries;
}

/* Adds the rows of a table, which is locked; false if there are no statistics. */
static bool
add_leaf(Boundary *boundaries, int count, const TtlDueLeaf *due, const TtlIndex *leaf)
{
	bool		whole = due->since != DT_NOBEGIN;
	double		rows;
	double		bytes;
	double		before = 0;
	TtlEstimate estimate;
	TtlLook		look = {.max_rows = 1,.max_pages = MAX_PAGES};

	/* a query of the table raises the same error */
	if (RecoveryInProgress() && get_rel_persistence(leaf->relid) != RELPERSISTENCE_PERMANENT)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access temporary or unlogged relations during recovery")));
	rows = ttl_look_rows(leaf->relid);
	if (rows < 0 || (!whole && !ttl_look_estimate(leaf, &estimate)))
		return false;
	bytes = DatumGetInt64(DirectFunctionCall1(pg_total_relation_size,
											  ObjectIdGetDatum(leaf->relid)));
	/* rows that a pass has deleted since ANALYZE are not due now */
	if (!whole)
	{
		ttl_look_at(leaf, boundaries[0].at, &look);
		if (look.count == 0 && !look.stopped)
			before = ttl_look_estimate_due(&estimate, leaf, boundaries[0].at);
	}
	for (int i = 0; i < count; i++)
	{
		double		until;

		/* each looks at all that ANALYZE has found */
		CHECK_FOR_INTERRUPTS();
		if (!whole)
			until = ttl_look_estimate_due(&estimate, leaf, boundaries[i].at);
		else
			until = due->since <= boundaries[i].at ? rows : 0;
		boundaries[i].rows += Max(until - before, 0);
		boundaries[i].bytes += Max(until - before, 0) * bytes / Max(rows, 1);
		before = Max(until, before);
	}
	if (!whole)
		ttl_look_estimate_free(&estimate);
	return true;
}

/* forecast(index regclass, step interval, steps integer) returns setof record */
Datum
ttl_forecast(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	int			steps = PG_GETARG_INT32(2);
	Boundary   *boundaries;
	TtlIndex	index;
	bool		known;
	ListCell   *lc;

	if (steps < 0 || steps > MAX_STEPS)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("steps must be between 0 and %d", MAX_STEPS)));
	boundaries = make_boundaries(PG_GETARG_INTERVAL_P(1), steps);
	ttl_due_describe(PG_GETARG_OID(0), true, &index);

	/* the statistics of shards are on other nodes */
	known = index.citus.kind != TTL_CITUS_SHELL;
	foreach(lc, index.option.seconds < 0 ? NIL :
			ttl_leaves_due(&index, boundaries[steps].at))
	{
		TtlDueLeaf *due = lfirst(lc);
		TtlIndex	leaf;

		if (ttl_due_lock_leaf(due->indexrelid, &leaf) &&
			!add_leaf(boundaries, steps + 1, due, &leaf))
			known = false;
	}

	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i <= steps; i++)
	{
		Datum		values[4];
		bool		nulls[4] = {false, false, !known, !known};

		values[0] = TimestampTzGetDatum(i == 0 ? DT_NOBEGIN : boundaries[i - 1].at);
		values[1] = TimestampTzGetDatum(boundaries[i].at);
		values[2] = Int64GetDatum((int64) rint(boundaries[i].rows));
		values[3] = Int64GetDatum((int64) rint(boundaries[i].bytes));
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}
