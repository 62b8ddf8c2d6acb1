/*-------------------------------------------------------------------------
 *
 * schedule.h
 *	  What to do next in a pass.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/pass/schedule.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_SCHEDULE_H
#define TTL_SCHEDULE_H

#include "datatype/timestamp.h"
#include "expire/expire.h"
#include "shared/kept.h"
#include "ttl_index.h"

typedef struct TtlSubPass
{
	TtlLimits	limits;
	TimestampTz started;
	int			count;			/* of indexes */
	int			current;		/* the position of the one to visit */
	int			remaining;		/* visits not yet begun */
	bool		cut;			/* its time was over before the current one */
	bool		more;			/* rows that were due at the beginning of the
								 * pass remain */
	bool		busy;			/* some remain because something was locked */
} TtlSubPass;

typedef struct TtlVisit
{
	TtlLimits	limits;
	TimestampTz begun;
	TimestampTz started;		/* when the batch with the first candidate
								 * began */
	int64		deleted;
	int			batch_size;
	int64		single_docs;	/* so many rows are taken one by one */
	int64		batch_entries;	/* how many a batch may look at, or more */
	int64		larger_rows;	/* the rows of an earlier, larger batch */
	int64		larger_us;		/* and the time that it took */
	int64		fixed_us;		/* what a batch takes without its rows, or 0 */
	double		row_us;			/* and for each row */
	int			batches;
	int			failures;
	bool		narrowing;		/* searching for the row that failed */
	bool		skipped;		/* the index is not visited again in this pass */
	bool		counted;		/* the visit is in the counters */
	bool		busy;			/* something was locked by others */
	bool		left_out;		/* a partition is left out (kept.c) */
	bool		over;			/* nothing more can be done here now */
	bool		more;			/* it was ended by a limit */
} TtlVisit;

/* schedule.c */
extern void ttl_schedule_begin(TtlSubPass *sub, const TtlLimits *limits, int count,
							   int first, TimestampTz now);
extern bool ttl_schedule_next(TtlSubPass *sub, TimestampTz now);
extern void ttl_schedule_visit_begin(TtlVisit *visit, const TtlLimits *limits,
									 const TtlResumeState *kept, TimestampTz now);
extern int	ttl_schedule_first_docs(const TtlVisit *visit);
extern int	ttl_schedule_batch_size(const TtlVisit *visit, TimestampTz now);
extern int64 ttl_schedule_batch_entries(const TtlVisit *visit, int size);
extern void ttl_schedule_batch_done(TtlVisit *visit, const TtlBatch *batch,
									int size, bool over, TimestampTz begun,
									TimestampTz now);
extern void ttl_schedule_batch_failed(TtlVisit *visit, const TtlBatch *batch,
									  int size, bool gives_up, TimestampTz begun);
extern void ttl_schedule_visit_end(TtlSubPass *sub, TtlVisit *visit);

#endif							/* TTL_SCHEDULE_H */
