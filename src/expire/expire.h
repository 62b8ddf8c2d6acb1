/*-------------------------------------------------------------------------
 *
 * expire.h
 *	  Deleting the rows of one index.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/expire/expire.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_EXPIRE_H
#define TTL_EXPIRE_H

#include "access/xlogdefs.h"
#include "definition/key.h"
#include "expire/index_scan.h"
#include "storage/itemptr.h"
#include "utils/relcache.h"

/* So many rows that could not be deleted are remembered. */
#define TTL_KNOWN_FAILURES 16

/* The beginning of a look at an index: what came later is not in it. */
typedef struct TtlHorizon
{
	bool		set;
	XLogRecPtr	lsn;			/* of changed pages; invalid where they have
								 * none */
	TransactionId xmin;			/* of rows: all before that had ended */
} TtlHorizon;

/* What an index is at (see cursor.c). */
typedef enum TtlPhase
{
	TTL_FORWARD,
	TTL_BLOCK_ORDER,
	TTL_CATCH_UP
} TtlPhase;

/* Where the next batch of an index goes on (see cursor.c). */
typedef struct TtlCursor
{
	Oid			indexrelid;
	Oid			filenode;		/* in another file no place means anything */
	TtlPhase	phase;
	bool		keep;			/* it is worth it, in the next pass too */
	/* FORWARD, and in BLOCK ORDER at.tid; at.key was due when that began */
	TtlScanPosition at;
	int64		walked;			/* entries that were looked at in this pass */
	bool		order_decided;	/* or not, for this pass */
	bool		exhausted;		/* in this visit nothing more is due */
	bool		caught_up;		/* and that was done, or has to rest */
	/* CATCH UP */
	TtlHorizon	seen;			/* all before `at` has been looked at since */
	TtlHorizon	round;			/* the same, at the end of this round */
	TtlScanPosition left;		/* how far it is */
	TtlRange	again;			/* to be looked at, changed or not */
	TtlRange	left_over;		/* the same in the next round */
	bool		thorough;		/* it looks at all */
	bool		found;			/* it has deleted something */
	int64		pages;			/* it has read */
	int64		steps;			/* and entries */
	TimestampTz rest_until;
	/* rows that could not be deleted, or that a trigger kept */
	bool		rows_left;
	int			nfailures;
	ItemPointerData failures[TTL_KNOWN_FAILURES];	/* the first of them */
	TimestampTz retry_at;		/* by a round that is thorough */
	int			delay;			/* minutes between that and the last time */
} TtlCursor;

/* What a batch did. */
typedef struct TtlBatch
{
	bool		busy;			/* table or index locked by others */
	bool		exhausted;		/* nothing more up to the cutoff */
	bool		past_pass;		/* what may be left was not due at the pass's
								 * beginning */
	int64		candidates;		/* entries that were looked at */
	int64		live;			/* rows that were found */
	int64		deleted;
	int64		partitions;		/* dropped */
	int64		skipped_locked;
	int64		pages;			/* leaves of the index that were read */
	TtlHorizon	horizon;		/* of its look */
	TtlCursor	resume;			/* where to go on */
} TtlBatch;

/* batch.c */
extern bool ttl_batch_lock(Oid relid, Oid indexrelid);
extern void ttl_batch_run(const TtlIndex *index, const TtlCutoff *cutoff,
						  const TtlCutoff *pass_cutoff,
						  const TtlCursor *resume, int max_docs,
						  TtlBatch *batch);
extern int64 ttl_batch_count_due(const TtlIndex *index, TimestampTz at,
								 TimestampTz *oldest);

/* cursor.c */
extern void ttl_cursor_init(TtlCursor *resume, Oid indexrelid, Oid filenode);
extern void ttl_cursor_range_add(TtlRange *range, int64 key);
extern void ttl_cursor_pull_back(TtlCursor *resume, int64 key);
extern bool ttl_cursor_begin_pass(TtlCursor *resume, TimestampTz now);
extern void ttl_cursor_begin_visit(TtlCursor *resume);
extern bool ttl_cursor_has_failed(const TtlCursor *resume, ItemPointer tid);
extern bool ttl_cursor_goes_by_age(const TtlCursor *resume);
extern bool ttl_cursor_batch_done(TtlCursor *resume, TtlBatch *batch,
								  TimestampTz now);
extern void ttl_cursor_row_failed(TtlCursor *resume, const TtlBatch *batch,
								  TimestampTz now);

#endif							/* TTL_EXPIRE_H */
