/*-------------------------------------------------------------------------
 *
 * index_scan.h
 *	  A scan of a TTL index from any place on.
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

/* An entry of a TTL index: the key's datum, and where the row is. */
typedef struct TtlIndexEntry
{
	int64		key;
	ItemPointerData tid;
} TtlIndexEntry;

/* A place between two entries: behind this one, or before all. */
typedef struct TtlScanPosition
{
	int64		key;
	ItemPointerData tid;
	bool		set;			/* else it is before all */
} TtlScanPosition;

/* Keys from one to another. */
typedef struct TtlRange
{
	bool		set;			/* else it is empty */
	int64		first;
	int64		last;
} TtlRange;

/* A walk over the entries of a TTL index. */
typedef struct TtlIndexScan
{
	Relation	heap;
	Relation	index;
	Oid			keytype;
	int64		bound;			/* the greatest key of interest */
	bool		backward;		/* the index is descending */
	bool		nulls_come_first;
	TtlScanPosition after;		/* the last entry that was returned */
	BlockNumber block;			/* the leaf that was read last */
	BlockNumber next_block;
	bool		over;			/* no leaf after that one */
	XLogRecPtr	since;			/* skip leaves that have not changed since */
	TtlRange	again;			/* but for those that hold one of these keys */
	int64		pages;			/* leaves that were read */
	int64		max_pages;
	TtlIndexEntry *entries;		/* of that leaf */
	int			count;
	int			position;
} TtlIndexScan;

/* index_scan.c */
extern Datum ttl_index_scan_datum(Oid keytype, int64 key);
extern int64 ttl_index_scan_key(Oid keytype, Datum datum);
extern int64 ttl_index_scan_least_key(Oid keytype);
extern void ttl_index_scan_begin(TtlIndexScan *walk, Relation heap, Relation index,
								 Oid keytype, int64 bound, const TtlScanPosition *after);
extern const TtlIndexEntry *ttl_index_scan_next(TtlIndexScan *walk);
extern bool ttl_index_scan_is_over(const TtlIndexScan *walk);
extern void ttl_index_scan_end(TtlIndexScan *walk);

#endif							/* TTL_INDEX_SCAN_H */
