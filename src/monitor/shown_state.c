/*-------------------------------------------------------------------------
 *
 * shown_state.c
 *	  The state of an index as the view shows it.
 *
 * The definition and the moment decide a state first (catalog.c).  Of what is
 * active by them, the view shows what else keeps rows or partitions from going.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/monitor/shown_state.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "definition/definition.h"
#include "definition/key.h"
#include "monitor/monitor.h"
#include "partition/partition.h"
#include "ttl_index.h"

/* Why a bucket is not there, as far as can be said without looking at rows. */
static char *
why_missing(const TtlIndex *root, const TtlPartition *partition)
{
	char	   *name = ttl_make_name(root, partition);
	Oid			schema = get_rel_namespace(root->relid);

	if (OidIsValid(get_relname_relid(name, schema)))
		return psprintf("partition \"%s\" is missing: another relation has the name",
						name);
	if (object_aclcheck(NamespaceRelationId, schema, root->owner,
						ACL_CREATE) != ACLCHECK_OK)
		return psprintf("partition \"%s\" is missing: the owner may not create tables in schema \"%s\"",
						name, get_namespace_name(schema));
	return psprintf("partition \"%s\" is missing: see last_error in ttl_index.index_stats, "
					"or wait for the next pass",
					name);
}

/*
 * Is a bucket still there for which an error came between?  It was due when the
 * last one was counted.  The counts are read when they are needed first.
 */
static bool
is_failing(const TtlIndex *index, const TtlPartition *partition, TtlCounts *counts)
{
	TtlCutoff	cutoff;
	ListCell   *lc;

	if (index->option.seconds < 0)
		return false;
	ttl_cutoff_init(&cutoff, index, GetCurrentTimestamp());
	if (!ttl_leaves_partition_is_due(partition, &cutoff))
		return false;
	if (!counts->read)
	{
		MemoryContext own = MemoryContextSwitchTo(counts->context);

		counts->list = ttl_counters_read();
		counts->read = true;
		MemoryContextSwitchTo(own);
	}
	foreach(lc, counts->list)
	{
		const TtlCount *count = lfirst(lc);

		if (count->indexrelid != index->root || count->last_error_time == 0)
			continue;
		ttl_cutoff_init(&cutoff, index, count->last_error_time);
		return ttl_leaves_partition_is_due(partition, &cutoff);
	}
	return false;
}

/* The state of a bucket that is to be dropped in its time. */
static void
show_partition(TtlIndex *index, TtlCounts *counts)
{
	TtlPartition partition;

	ttl_bounds_read_one(index->relid, &partition);
	if (!partition.has_upper)
		return;
	index->detail = ttl_drop_obstacle(index->relid);
	if (index->detail != NULL)
		index->state = TTL_BUCKET_HAS_DEPENDENTS;
	else if (is_failing(index, &partition, counts))
		index->state = TTL_BUCKET_FAILING;
}

/* The state of a partition, or of a time series that lacks one. */
static void
show_partitions(TtlIndex *index, TtlCounts *counts)
{
	List	   *missing;

	if (index->option.drop_partitions && index->parent == index->governor)
		show_partition(index, counts);
	else if (index->governor == index->indexrelid)
	{
		/* the next one but one may just have come into sight */
		missing = ttl_make_missing(index, GetCurrentTimestamp(), ttl_make_span(index));
		if (missing != NIL)
		{
			index->detail = why_missing(index, linitial(missing));
			index->state = TTL_BUCKET_MISSING;
		}
	}
}

/* Gives an index that is active otherwise the state for which there is a reason. */
static void
show_reason(TtlIndex *index, TtlState state, char *reason)
{
	if (index->state != TTL_ACTIVE || reason == NULL)
		return;
	index->state = state;
	index->detail = reason;
}

/*
 * Completes the description of an index for the view: what else keeps it from what
 * it says, and what an active one leaves out.
 */
void
ttl_shown_state_complete(TtlIndex *index, const TtlStateFile *file,
						 TtlCounts *counts)
{
	if (index->state != TTL_ACTIVE)
		return;
	index->left_out = ttl_reach_left_out(index);
	show_partitions(index, counts);
	show_reason(index, TTL_HELD, ttl_hold_reason(&file->hold));
	show_reason(index, TTL_CRASHED_SERVER, ttl_crash_reason(file, index->root));
}
