/*-------------------------------------------------------------------------
 *
 * index_scan.h
 *	  A scan of a TTL index that can begin at any entry.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/expire/index_scan.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_INDEX_SCAN_H
#define TTL_INDEX_SCAN_H

#include "access/xlogdefs.h"
#include "storage/itemptr.h"
#include "utils/relcache.h"

/* An entry of a TTL index: the key as an integer, and the tuple ID of the row. */
typedef struct TtlIndexEntry
{
	int64		key;
	ItemPointerData tid;
} TtlIndexEntry;

/* A scan position lies behind an entry, or before all of them. */
typedef struct TtlScanPosition
{
	int64		key;
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
	TtlIndexEntry *entries;		/* a copy of those of the page */
	int			count;			/* how many there are */
	int			next;			/* which of them is returned next */
} TtlIndexScan;

/* index_scan.c */
extern Datum ttl_index_scan_datum(Oid keytype, int64 key);
extern int64 ttl_index_scan_key(Oid keytype, Datum datum);
extern TtlScanPosition ttl_index_scan_finite(Oid keytype);
extern TtlScanPosition ttl_index_scan_from(int64 key);
extern void ttl_index_scan_begin(TtlIndexScan *scan, Relation heap, Relation index,
								 Oid keytype, int64 bound, const TtlScanPosition *after);
extern const TtlIndexEntry *ttl_index_scan_next(TtlIndexScan *scan);
extern bool ttl_index_scan_is_over(const TtlIndexScan *scan);
extern void ttl_index_scan_end(TtlIndexScan *scan);

#endif							/* TTL_INDEX_SCAN_H */
