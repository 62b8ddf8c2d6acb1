/*-------------------------------------------------------------------------
 *
 * estimate.h
 *	  About how many rows are due, without a look at them.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/expire/estimate.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_ESTIMATE_H
#define TTL_ESTIMATE_H

#include "definition/definition.h"
#include "utils/lsyscache.h"

/* What ANALYZE has found of the key of an index. */
typedef struct TtlEstimate
{
	Oid			keytype;
	double		entries;		/* of the index */
	AttStatsSlot common;
	AttStatsSlot histogram;
	double		others;			/* the share of what the histogram is of */
} TtlEstimate;

/* estimate.c */
extern double ttl_estimate_tuples(Oid relid);
extern bool ttl_estimate_is_empty(Oid relid);
extern bool ttl_estimate_read(const TtlIndex *leaf, TtlEstimate *estimate);
extern double ttl_estimate_due(const TtlEstimate *estimate, const TtlIndex *leaf,
							   TimestampTz at);
extern void ttl_estimate_free(TtlEstimate *estimate);

#endif							/* TTL_ESTIMATE_H */
