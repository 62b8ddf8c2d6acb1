/*-------------------------------------------------------------------------
 *
 * look.h
 *	  What is due by an index, and what its keys are, for those who only look.
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

/* look.c */
extern void ttl_look_at(const TtlIndex *index, TimestampTz at, TtlLook *look);
extern void ttl_look_sample(const TtlIndex *index, int pages, TtlLookEntry entry, void *arg);

#endif							/* TTL_LOOK_H */
