/*-------------------------------------------------------------------------
 *
 * forecast.c
 *	  How many rows will fall due, and when, as far as statistics tell.
 *
 * ANALYZE gathers the most common keys and a histogram of the others: of a column with the
 * table, of an expression with the index.  Nothing is read but these, and the number of
 * entries that the index had then, which knows its filter.  The planner would not do: of an
 * index with a filter it takes no statistics.
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

#include "access/htup_details.h"
#include "access/relation.h"
#include "catalog/pg_class.h"
#include "catalog/pg_statistic.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "definition/definition.h"
#include "definition/key.h"
#include "due/due.h"
#include "expire/index_scan.h"
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

/* What ANALYZE has found of the key of an index. */
typedef struct KeyStatistics
{
	Oid			keytype;
	AttStatsSlot common;
	AttStatsSlot histogram;
	double		others;			/* the share of what the histogram is of */
} KeyStatistics;

/* Reads what is known of a key; false where that is nothing. */
static bool
read_statistics(const TtlIndex *leaf, KeyStatistics *statistics)
{
	AttrNumber	attnum;
	Node	   *expression;
	HeapTuple	tuple;

	if (!ttl_key_read(leaf->indexrelid, &attnum, &expression))
		return false;
	tuple = SearchSysCache3(STATRELATTINH,
							ObjectIdGetDatum(expression ? leaf->indexrelid : leaf->relid),
							Int16GetDatum(expression ? 1 : attnum), BoolGetDatum(false));
	if (!HeapTupleIsValid(tuple))
		return false;
	statistics->keytype = leaf->keytype;
	statistics->others = 1 - ((Form_pg_statistic) GETSTRUCT(tuple))->stanullfrac;
	(void) get_attstatsslot(&statistics->common, tuple, STATISTIC_KIND_MCV, InvalidOid,
							ATTSTATSSLOT_VALUES | ATTSTATSSLOT_NUMBERS);
	(void) get_attstatsslot(&statistics->histogram, tuple, STATISTIC_KIND_HISTOGRAM,
							InvalidOid, ATTSTATSSLOT_VALUES);
	for (int i = 0; i < statistics->common.nnumbers; i++)
		statistics->others -= statistics->common.numbers[i];
	ReleaseSysCache(tuple);
	return true;
}

static int64
statistics_key(const KeyStatistics *statistics, const AttStatsSlot *slot, int i)
{
	return ttl_index_scan_key(statistics->keytype, slot->values[i]);
}

/* What share of the rows that a histogram is of have a key up to this one? */
static double
histogram_share(const KeyStatistics *statistics, int64 key)
{
	const AttStatsSlot *histogram = &statistics->histogram;
	int			bins = histogram->nvalues - 1;
	int			i = 0;
	double		lower;
	double		upper;

	while (i <= bins && statistics_key(statistics, histogram, i) <= key)
		i++;
	if (i == 0 || i > bins)
		return i == 0 ? 0 : 1;
	lower = statistics_key(statistics, histogram, i - 1);
	upper = statistics_key(statistics, histogram, i);
	return (i - 1 + (key - lower) / (upper - lower)) / bins;
}

/* What share of the entries of an index has a key up to this one? */
static double
share_until(const KeyStatistics *statistics, int64 key)
{
	double		share = 0;

	for (int i = 0; i < statistics->common.nvalues; i++)
	{
		if (statistics_key(statistics, &statistics->common, i) <= key)
			share += statistics->common.numbers[i];
	}
	if (statistics->histogram.nvalues > 1)
		share += Max(statistics->others, 0) * histogram_share(statistics, key);
	return share;
}

/* The number of rows of a table, or of entries of an index, at the last ANALYZE; or -1. */
static double
known_tuples(Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	double		tuples = -1;

	if (HeapTupleIsValid(tuple))
	{
		tuples = ((Form_pg_class) GETSTRUCT(tuple))->reltuples;
		ReleaseSysCache(tuple);
	}
	return tuples;
}

/* Adds rows of a table to a boundary, and what they take of its space. */
static void
add_rows(Boundary *boundary, double rows, double bytes_per_row)
{
	boundary->rows += rows;
	boundary->bytes += rows * bytes_per_row;
}

/* Adds the rows of one table, of which the index has so many entries. */
static void
add_by_row(Forecast *forecast, const TtlIndex *leaf, const KeyStatistics *statistics,
		   double entries, double bytes_per_row)
{
	double		before = 0;

	for (int i = 0; i < forecast->count; i++)
	{
		TtlCutoff	cutoff;
		double		share;

		/* each looks at all that ANALYZE has found */
		CHECK_FOR_INTERRUPTS();
		ttl_cutoff_init(&cutoff, leaf, forecast->boundaries[i].at);
		share = share_until(statistics, cutoff.bound);
		add_rows(&forecast->boundaries[i], entries * (share - before), bytes_per_row);
		before = share;
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

static bool
is_empty(Oid relid)
{
	Relation	rel = relation_open(relid, NoLock);
	bool		empty = RelationGetNumberOfBlocks(rel) == 0;

	relation_close(rel, NoLock);
	return empty;
}

/* Adds what is in a table, which is locked. */
static void
add_leaf(Forecast *forecast, const TtlDueLeaf *due, const TtlIndex *leaf)
{
	double		rows = known_tuples(leaf->relid);
	double		entries = known_tuples(leaf->indexrelid);
	Datum		bytes = DirectFunctionCall1(pg_total_relation_size,
											ObjectIdGetDatum(leaf->relid));
	double		bytes_per_row = DatumGetInt64(bytes) / Max(rows, 1);
	KeyStatistics statistics = {0};

	if (is_empty(leaf->relid))
		return;
	if (rows >= 0 && due->since != DT_NOBEGIN)
		add_whole(forecast, due->since, rows, bytes_per_row);
	else if (rows >= 0 && entries >= 0 && read_statistics(leaf, &statistics))
		add_by_row(forecast, leaf, &statistics, entries, bytes_per_row);
	else
		forecast->known = false;
	free_attstatsslot(&statistics.common);
	free_attstatsslot(&statistics.histogram);
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
init_forecast(Forecast *forecast, TimestampTz now, Interval * step, int steps)
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
	InitMaterializedSRF(fcinfo, 0);
	put_boundaries(&forecast, (ReturnSetInfo *) fcinfo->resultinfo);
	return (Datum) 0;
}
