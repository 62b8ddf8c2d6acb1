/*-------------------------------------------------------------------------
 *
 * look.h
 *	  Looking at an index without deleting: counts, samples and estimates.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/expire/look.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_LOOK_H
#define TTL_LOOK_H

#include "definition/definition.h"
#include "expire/index_scan.h"
#include "utils/lsyscache.h"

/* A count of the rows that are due, oldest first. */
typedef struct TtlLook
{
	/* where it begins, and ends; 0 stands for no limit */
	TtlScanPosition after;
	int64		max_rows;		/* rows that are due */
	int64		max_pages;		/* leaf pages of the index */
	int64		max_tuples;		/* tuples of the heap, also those of deleted
								 * rows */
	TimestampTz until;			/* when it has to be over */
	/* what was found */
	int64		count;			/* rows */
	TimestampTz oldest;			/* date of the first one */
	bool		stopped;		/* by a limit other than max_rows */
} TtlLook;

/* Called for each index tuple of a sample: its key, or NULL, of so many rows. */
typedef void (*TtlLookEntry) (const int64 *key, int rows, void *arg);

/* What ANALYZE has found of the key of an index. */
typedef struct TtlEstimate
{
	Oid			keytype;
	double		entries;		/* of the index */
	AttStatsSlot common;
	AttStatsSlot histogram;
	double		others;			/* the share of what the histogram is of */
} TtlEstimate;

/* look.c */
extern void ttl_look_at(const TtlIndex *index, TimestampTz at, TtlLook *look);
extern void ttl_look_sample(const TtlIndex *index, int pages, TtlLookEntry entry, void *arg);

/* estimate.c */
extern double ttl_estimate_tuples(Oid relid);
extern bool ttl_estimate_is_empty(Oid relid);
extern bool ttl_estimate_read(const TtlIndex *leaf, TtlEstimate *estimate);
extern double ttl_estimate_due(const TtlEstimate *estimate, const TtlIndex *leaf,
							   TimestampTz at);
extern void ttl_estimate_free(TtlEstimate *estimate);

#endif							/* TTL_LOOK_H */
