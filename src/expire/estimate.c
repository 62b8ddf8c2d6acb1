/*-------------------------------------------------------------------------
 *
 * estimate.c
 *	  About how many rows are due, without a look at them.
 *
 * It uses the most common values and the histogram of ANALYZE, which are the table's for a
 * column and the index's for an expression, and reltuples of the index, which reflects the
 * filter.  The planner uses no statistics of an index with a filter.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/expire/estimate.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "catalog/pg_class.h"
#include "catalog/pg_statistic.h"
#include "storage/bufmgr.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "definition/key.h"
#include "expire/look.h"

/* No table has more rows. */
#define MAX_TUPLES ((double) MaxBlockNumber * MaxHeapTuplesPerPage)

/*
 * The number of rows or entries at the last ANALYZE, or -1.  From 18 on, owners can write any
 * statistics, also NaN and lists of different lengths.
 */
double
ttl_estimate_tuples(Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	double		tuples = -1;

	if (HeapTupleIsValid(tuple))
	{
		tuples = ((Form_pg_class) GETSTRUCT(tuple))->reltuples;
		ReleaseSysCache(tuple);
	}
	return tuples >= 0 && tuples <= MAX_TUPLES ? tuples : -1;
}

/* Has a table no pages?  It is locked. */
bool
ttl_estimate_is_empty(Oid relid)
{
	Relation	rel = relation_open(relid, NoLock);
	bool		empty = RelationGetNumberOfBlocks(rel) == 0;

	relation_close(rel, NoLock);
	return empty;
}

/* Reads what is known of the key of an index that holds rows; false where that is nothing. */
bool
ttl_estimate_read(const TtlIndex *leaf, TtlEstimate *estimate)
{
	AttrNumber	attnum;
	Node	   *expression;
	HeapTuple	tuple;

	memset(estimate, 0, sizeof(*estimate));
	estimate->entries = ttl_estimate_tuples(leaf->indexrelid);
	if (estimate->entries < 0 ||
		!ttl_key_read(leaf->indexrelid, &attnum, &expression))
		return false;
	tuple = SearchSysCache3(STATRELATTINH,
							ObjectIdGetDatum(expression ? leaf->indexrelid : leaf->relid),
							Int16GetDatum(expression ? 1 : attnum), BoolGetDatum(false));
	if (!HeapTupleIsValid(tuple))
		return false;
	estimate->keytype = leaf->keytype;
	estimate->others = 1 - ((Form_pg_statistic) GETSTRUCT(tuple))->stanullfrac;
	(void) get_attstatsslot(&estimate->common, tuple, STATISTIC_KIND_MCV, InvalidOid,
							ATTSTATSSLOT_VALUES | ATTSTATSSLOT_NUMBERS);
	(void) get_attstatsslot(&estimate->histogram, tuple, STATISTIC_KIND_HISTOGRAM,
							InvalidOid, ATTSTATSSLOT_VALUES);
	for (int i = 0; i < estimate->common.nnumbers; i++)
		estimate->others -= estimate->common.numbers[i];
	ReleaseSysCache(tuple);
	return true;
}

static int64
known_key(const TtlEstimate *estimate, const AttStatsSlot *slot, int i)
{
	return ttl_index_scan_key(estimate->keytype, slot->values[i]);
}

/* What share of the rows that a histogram is of have a key up to this one? */
static double
histogram_share(const TtlEstimate *estimate, int64 key)
{
	const AttStatsSlot *histogram = &estimate->histogram;
	int			bins = histogram->nvalues - 1;
	int			i = 0;
	double		lower;
	double		upper;

	while (i <= bins && known_key(estimate, histogram, i) <= key)
		i++;
	if (i == 0 || i > bins)
		return i == 0 ? 0 : 1;
	lower = known_key(estimate, histogram, i - 1);
	upper = known_key(estimate, histogram, i);
	return (i - 1 + (key - lower) / (upper - lower)) / bins;
}

/* What share of the entries of an index has a key up to this one? */
static double
share_until(const TtlEstimate *estimate, int64 key)
{
	double		share = 0;

	for (int i = 0; i < Min(estimate->common.nvalues, estimate->common.nnumbers); i++)
	{
		if (known_key(estimate, &estimate->common, i) <= key)
			share += estimate->common.numbers[i];
	}
	if (estimate->histogram.nvalues > 1)
		share += Max(estimate->others, 0) * histogram_share(estimate, key);
	return share > 0 ? Min(share, 1) : 0;
}

/* About how many rows have a key that is due at this time? */
double
ttl_estimate_due(const TtlEstimate *estimate, const TtlIndex *leaf, TimestampTz at)
{
	TtlCutoff	cutoff;

	ttl_cutoff_init(&cutoff, leaf, at);
	return estimate->entries * share_until(estimate, cutoff.bound);
}

/* Frees what was read: an index may have many partitions. */
void
ttl_estimate_free(TtlEstimate *estimate)
{
	free_attstatsslot(&estimate->common);
	free_attstatsslot(&estimate->histogram);
}
