/*-------------------------------------------------------------------------
 *
 * look.h
 *	  What a batch would delete, for those who only look.
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
#include "definition/key.h"
#include "executor/tuptable.h"
#include "expire/index_scan.h"

/* A look at the rows that are due, which deletes none. */
typedef struct TtlLook
{
	int64		max_rows;		/* it ends behind so many */
	int64		max_pages;		/* or so many leaf pages of the index */
	TtlScanPosition after;		/* it begins here */
	bool		only_infinite;	/* and ends behind the rows at -infinity */
	void		(*row) (TupleTableSlot *slot, void *arg);	/* or NULL */
	void	   *arg;
	/* what was found */
	int64		count;			/* rows */
	TimestampTz oldest;			/* date of the first one */
	bool		stopped;		/* by max_pages */
} TtlLook;

/* batch.c */
extern void ttl_batch_look(const TtlIndex *index, TimestampTz at, TtlLook *look);

/* by_value.c */
extern void ttl_by_value_look(Relation rel, const TtlIndex *index,
							  const TtlCutoff *cutoff, TtlLook *look);

#endif							/* TTL_LOOK_H */
