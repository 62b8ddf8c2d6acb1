/*-------------------------------------------------------------------------
 *
 * forecast.c
 *	  How many rows will fall due, and when, as far as statistics tell.
 *
 * Nothing is read but what ANALYZE has found (see expire/estimate.c), and the sizes of the
 * tables.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/due/forecast.c
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

#include "definition/definition.h"
#include "due/due.h"
#include "expire/look.h"
#include "partition/partition.h"
#include "ttl_index.h"

PG_FUNCTION_INFO_V1(ttl_forecast);

#define MAX_STEPS 10000

/* What falls due up to a time. */
typedef struct Boundary
{
	TimestampTz at;
	double		rows;
	double		bytes;
} Boundary;

typedef struct Forecast
{
	int			count;			/* boundaries, from now on */
	Boundary   *boundaries;
	bool		known;			/* there were statistics of all that holds
								 * rows */
} Forecast;

/* Adds rows of a table to a boundary, and what they take of its space. */
static void
add_rows(Boundary *boundary, double rows, double bytes_per_row)
{
	boundary->rows += rows;
	boundary->bytes += rows * bytes_per_row;
}

/* Adds the rows of one table. */
static void
add_by_row(Forecast *forecast, const TtlIndex *leaf, const TtlEstimate *estimate,
		   double bytes_per_row)
{
	double		before = 0;

	for (int i = 0; i < forecast->count; i++)
	{
		double		due;

		/* each looks at all that ANALYZE has found */
		CHECK_FOR_INTERRUPTS();
		due = ttl_estimate_due(estimate, leaf, forecast->boundaries[i].at);
		add_rows(&forecast->boundaries[i], Max(due - before, 0), bytes_per_row);
		before = Max(due, before);
	}
}

/* Adds a partition that goes as a whole, with all its rows. */
static void
add_whole(Forecast *forecast, TimestampTz since, double rows, double bytes_per_row)
{
	for (int i = 0; i < forecast->count; i++)
	{
		if (since <= forecast->boundaries[i].at)
		{
			add_rows(&forecast->boundaries[i], rows, bytes_per_row);
			return;
		}
	}
}

/* Adds what is in a table, which is locked. */
static void
add_leaf(Forecast *forecast, const TtlDueLeaf *due, const TtlIndex *leaf)
{
	double		rows = ttl_estimate_tuples(leaf->relid);
	Datum		bytes;
	double		bytes_per_row;
	TtlEstimate estimate = {0};

	/* as a query of it would say */
	if (RecoveryInProgress() && get_rel_persistence(leaf->relid) != RELPERSISTENCE_PERMANENT)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access temporary or unlogged relations during recovery")));
	bytes = DirectFunctionCall1(pg_total_relation_size, ObjectIdGetDatum(leaf->relid));
	bytes_per_row = DatumGetInt64(bytes) / Max(rows, 1);
	if (ttl_estimate_is_empty(leaf->relid))
		return;
	if (rows >= 0 && due->since != DT_NOBEGIN)
		add_whole(forecast, due->since, rows, bytes_per_row);
	else if (rows >= 0 && ttl_estimate_read(leaf, &estimate))
		add_by_row(forecast, leaf, &estimate, bytes_per_row);
	else
		forecast->known = false;
	ttl_estimate_free(&estimate);
}

static void
put_boundaries(const Forecast *forecast, ReturnSetInfo *rsinfo)
{
	TimestampTz from = DT_NOBEGIN;

	for (int i = 0; i < forecast->count; i++)
	{
		const Boundary *boundary = &forecast->boundaries[i];
		Datum		values[4];
		bool		nulls[4] = {false, false, !forecast->known, !forecast->known};

		values[0] = TimestampTzGetDatum(from);
		values[1] = TimestampTzGetDatum(boundary->at);
		values[2] = Int64GetDatum((int64) rint(boundary->rows));
		values[3] = Int64GetDatum((int64) rint(boundary->bytes));
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
		from = boundary->at;
	}
}

/* Sets the boundaries: now, and behind each step. */
static void
init_forecast(Forecast *forecast, TimestampTz now, Interval *step, int steps)
{
	forecast->known = true;
	forecast->count = steps + 1;
	forecast->boundaries = palloc0(sizeof(Boundary) * forecast->count);
	forecast->boundaries[0].at = now;
	for (int i = 1; i <= steps; i++)
	{
		Datum		span = DirectFunctionCall2(interval_mul, IntervalPGetDatum(step),
											   Float8GetDatum(i));
		TimestampTz at = DatumGetTimestampTz(DirectFunctionCall2(timestamptz_pl_interval,
																 TimestampTzGetDatum(now),
																 span));

		if (at <= forecast->boundaries[i - 1].at)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("step must be greater than zero")));
		forecast->boundaries[i].at = at;
	}
}

/* forecast(index regclass, step interval, steps integer) returns setof record */
Datum
ttl_forecast(PG_FUNCTION_ARGS)
{
	int			steps = PG_GETARG_INT32(2);
	TtlIndex	index;
	Forecast	forecast;
	ListCell   *lc;

	if (steps < 0 || steps > MAX_STEPS)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("steps must be between 0 and %d", MAX_STEPS)));
	init_forecast(&forecast, GetCurrentTimestamp(), PG_GETARG_INTERVAL_P(1), steps);
	ttl_due_describe(PG_GETARG_OID(0), &index);
	foreach(lc, index.option.seconds < 0 ? NIL :
			ttl_leaves_due(&index, forecast.boundaries[steps].at))
	{
		TtlDueLeaf *due = lfirst(lc);
		TtlIndex	leaf;

		if (ttl_due_lock_leaf(due->indexrelid, &leaf))
			add_leaf(&forecast, due, &leaf);
	}
	/* the statistics of shards are on other nodes */
	if (ttl_nodes_have(index.indexrelid))
		forecast.known = false;
	InitMaterializedSRF(fcinfo, 0);
	put_boundaries(&forecast, (ReturnSetInfo *) fcinfo->resultinfo);
	return (Datum) 0;
}
