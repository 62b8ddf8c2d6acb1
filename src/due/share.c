/*-------------------------------------------------------------------------
 *
 * share.c
 *	  What share of a table is due by a TTL index.
 *
 * The due rows are counted for a limited time, and a sample of the index shows which dates it
 * has.  If there was no time to count all, the sample says how many are due.  No expression is
 * evaluated, so that a survey can do this for indexes of all roles.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/relation.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "optimizer/plancat.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/date.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "due/due.h"
#include "partition/partition.h"
#include "state/state.h"
#include "ttl_index.h"

/* How many pages of an index are sampled. */
#define SAMPLE_PAGES 100

/* A sample of the index at hand. */
typedef struct Sample
{
	TtlShare   *share;
	TtlCutoff	cutoff;
	int64		due;
	int64		rows;
} Sample;

/* Counts the rows of an index tuple, and dates that are far from today. */
static void
count_entry(const int64 *date, int rows, void *arg)
{
	Sample	   *sample = arg;
	TtlShare   *share = sample->share;
	Oid			keytype = sample->cutoff.keytype;
	TtlUnit		unit = sample->cutoff.unit;

	sample->rows += rows;
	if (date == NULL)
		return;
	share->dates += rows;
	if (ttl_cutoff_is_due(&sample->cutoff, *date))
		sample->due += rows;
	if (keytype == DATEOID ? DATE_NOT_FINITE(*date) : TIMESTAMP_NOT_FINITE(*date))
		return;
	if (*date < ttl_look_day(keytype, unit, TTL_FEBRUARY_1970))
		share->past += rows;
	else if (*date >= ttl_look_day(keytype, unit, TTL_YEAR_10000))
		share->future += rows;
}

/* About how many rows are in a table and in the partitions below it, or entries in an index? */
static double
count_rows(Oid relid)
{
	double		rows = 0;
	ListCell   *lc;

	foreach(lc, ttl_inherit_tree(relid))
	{
		char		relkind = get_rel_relkind(lfirst_oid(lc));
		Relation	rel = (relkind != RELKIND_RELATION && relkind != RELKIND_INDEX) ||
			!ConditionalLockRelationOid(lfirst_oid(lc), AccessShareLock) ? NULL :
			try_relation_open(lfirst_oid(lc), NoLock);
		BlockNumber pages;
		double		tuples;
		double		visible;

		if (rel == NULL)
			continue;
		estimate_rel_size(rel, NULL, &pages, &tuples, &visible);
		/* it assumes 10 pages of a small table that was never vacuumed */
		if (pages > 0)
			rows += tuples * RelationGetNumberOfBlocks(rel) / pages;
		relation_close(rel, AccessShareLock);
	}
	return rows;
}

/* Looks at one leaf: counts its due rows, and samples its dates. */
static void
look_at_leaf(const TtlIndex *leaf, TimestampTz at, TimestampTz until, TtlShare *share)
{
	TtlLook		look = {.until = until};
	Sample		sample = {.share = share};

	ttl_look_at(leaf, at, &look);
	ttl_cutoff_init(&sample.cutoff, leaf, at);
	ttl_look_sample(leaf, SAMPLE_PAGES, count_entry, &sample);
	share->rows += sample.rows;
	share->looked += Max(count_rows(leaf->relid), look.count);
	share->due += !look.stopped || sample.rows == 0 ? look.count :
		Max(look.count, count_rows(leaf->indexrelid) * sample.due / sample.rows);
}

/*
 * Finds what share of a table is due by an index, which is described.  Rows of a table of Citus
 * are on other nodes.  Partitions that are due as a whole are not looked into.
 */
void
ttl_share_find(const TtlIndex *index, TimestampTz at, TimestampTz until, TtlShare *share)
{
	ListCell   *lc;

	memset(share, 0, sizeof(*share));
	share->total = count_rows(index->relid);
	if (index->option.drop_partitions && !index->option.boundary_rows)
	{
		foreach(lc, index->governor == index->indexrelid ? ttl_drop_due(index, at) : NIL)
		{
			share->partitions++;
			share->due += count_rows(((TtlPartition *) lfirst(lc))->relid);
		}
		return;
	}
	foreach(lc, ttl_inherit_tree(index->indexrelid))
	{
		TtlIndex	leaf;

		if (share->rows > 0 && GetCurrentTimestamp() >= until)
			break;
		if (get_rel_relkind(lfirst_oid(lc)) == RELKIND_INDEX &&
			ttl_state_describe(lfirst_oid(lc), true, &leaf) &&
			leaf.state == TTL_ACTIVE && leaf.citus.kind != TTL_CITUS_SHELL &&
			ttl_due_lock(leaf.relid, leaf.indexrelid))
			look_at_leaf(&leaf, at, until, share);
	}
	/* there was no time for the other partitions */
	if (lc != NULL && share->looked > 0 && share->looked < share->total)
		share->due *= share->total / share->looked;
	share->total = Max(share->total, share->due);
}

/* Says which share of which table is due, such as: 98 % of table "events" (about 2.0 million rows). */
char *
ttl_share_text(const TtlIndex *index, const TtlShare *share)
{
	double		rows = rint(share->due);

	return psprintf("%d %% of table \"%s\" (about %.*f %srows)",
					(int) (100 * share->due / share->total), get_rel_name(index->relid),
					rows < 1e6 ? 0 : 1, rows < 1e6 ? rows : rows / 1e6,
					rows < 1e6 ? "" : "million ");
}

/*
 * What is odd about the dates of an active index by the statistics of ANALYZE, for those who may
 * count its rows; NULL for nothing.  A column without dates is one for what has not happened yet.
 */
char *
ttl_share_doubt(const TtlIndex *index)
{
	char	   *doubt = NULL;
	Oid			keytype = index->keytype;
	TtlUnit		unit = index->option.unit;
	TtlEstimate estimate;
	double		past;
	double		future;

	if (index->relkind != RELKIND_INDEX || !ttl_due_may_look(index) ||
		!ConditionalLockRelationOid(index->relid, AccessShareLock))
		return NULL;
	if (SearchSysCacheExists1(RELOID, ObjectIdGetDatum(index->relid)) &&
		ttl_look_estimate(index, &estimate))
	{
		/* without -infinity and infinity, or numbers that are no dates */
		past = ttl_look_estimate_share(&estimate, ttl_look_day(keytype, unit, TTL_FEBRUARY_1970) - 1) -
			ttl_look_estimate_share(&estimate, ttl_keytype_least(keytype));
		future = ttl_look_estimate_share(&estimate, (keytype == DATEOID ? DATEVAL_NOEND : PG_INT64_MAX) - 1) -
			ttl_look_estimate_share(&estimate, ttl_look_day(keytype, unit, TTL_YEAR_10000) - 1);
		if (estimate.entries <= 0)
			doubt = NULL;
		else if (estimate.nulls == 1 && index->keyattnum == InvalidAttrNumber)
			doubt = pstrdup("no row has a date under the key, by the last ANALYZE");
		else if (past > 0)
			doubt = psprintf("about %.0f %% of the rows have a date before February 1970, by the last ANALYZE",
							 Max(rint(100 * past), 1));
		else if (future >= 0.25)
			doubt = psprintf("about %.0f %% of the rows have a date after the year 9999, by the last ANALYZE",
							 rint(100 * future));
		ttl_look_estimate_free(&estimate);
	}
	UnlockRelationOid(index->relid, AccessShareLock);
	return doubt;
}
