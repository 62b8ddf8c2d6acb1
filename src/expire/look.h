/*-------------------------------------------------------------------------
 *
 * look.h
 *	  Reading a TTL index: from any entry on, counts, samples and estimates.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_LOOK_H
#define TTL_LOOK_H

#include "access/xlogdefs.h"
#include "definition/definition.h"
#include "storage/itemptr.h"
#include "utils/lsyscache.h"
#include "utils/relcache.h"

/*
 * An entry of a TTL index: the key as an integer (keytype.c), and the tuple ID of the row.  As
 * a scan position it lies after that entry, or before all of them.
 */
typedef struct TtlScanPosition
{
	int64		key;
	uint64		rest;
	ItemPointerData tid;
	bool		set;			/* false: before all entries */
} TtlScanPosition;

/* A range of keys; both ends belong to it. */
typedef struct TtlRange
{
	bool		set;			/* false: the range is empty */
	int64		first;
	int64		last;
} TtlRange;

/* The state of a scan. */
typedef struct TtlIndexScan
{
	Relation	heap;
	Relation	index;
	Oid			keytype;
	int64		bound;			/* the greatest key of interest */
	bool		backward;		/* the index is descending */
	bool		nulls_come_first;
	TtlScanPosition after;		/* the last entry that was returned */
	BlockNumber block;			/* the leaf page that was read last */
	BlockNumber next_block;		/* its sibling */
	bool		finished;		/* no other page has entries up to the bound */
	XLogRecPtr	unchanged_since;	/* skip pages that are; invalid: skip none */
	TtlRange	reread;			/* but do not skip pages with these keys */
	int64		pages;			/* leaf pages that were read or skipped */
	int64		max_pages;		/* stop after so many */
	TtlScanPosition *entries;	/* a copy of those of the page */
	int			count;			/* how many there are */
	int			next;			/* which of them is returned next */
} TtlIndexScan;

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

/* Dates outside of these, in days since 2000-01-01, are probably mistakes. */
#define TTL_FEBRUARY_1970 (-10926)
#define TTL_YEAR_10000 2921940

/* Called for each index tuple of a sample: its key, NULL for no date, of so many rows. */
typedef void (*TtlLookEntry) (const int64 *key, int rows, void *arg);

/* What ANALYZE has found of the key of an index. */
typedef struct TtlEstimate
{
	Oid			keytype;
	double		entries;		/* of the index */
	AttStatsSlot common;
	AttStatsSlot histogram;
	double		nulls;			/* the share of entries without a date */
	double		others;			/* the share of what the histogram is of */
} TtlEstimate;

/* index_scan.c */
extern TtlScanPosition ttl_index_scan_finite(Oid keytype);
extern TtlScanPosition ttl_index_scan_from(int64 key);
extern void ttl_index_scan_begin(TtlIndexScan *scan, Relation heap, Relation index,
								 Oid keytype, int64 bound, const TtlScanPosition *after);
extern const TtlScanPosition *ttl_index_scan_next(TtlIndexScan *scan);
extern bool ttl_index_scan_is_over(const TtlIndexScan *scan);
extern void ttl_index_scan_end(TtlIndexScan *scan);

/* look.c */
extern void ttl_look_at(const TtlIndex *index, TimestampTz at, TtlLook *look);
extern void ttl_look_sample(const TtlIndex *index, int pages, TtlLookEntry entry, void *arg);
extern int64 ttl_look_day(Oid keytype, TtlUnit unit, int64 day);
extern double ttl_look_rows(Oid relid);
extern bool ttl_look_estimate(const TtlIndex *leaf, TtlEstimate *estimate);
extern double ttl_look_estimate_share(const TtlEstimate *estimate, int64 key);
extern double ttl_look_estimate_due(const TtlEstimate *estimate, const TtlIndex *leaf,
									TimestampTz at);
extern void ttl_look_estimate_free(TtlEstimate *estimate);

#endif							/* TTL_LOOK_H */
