/*-------------------------------------------------------------------------
 *
 * schedule.h
 *	  What to do next in a pass, and what is kept of a database between sub-passes.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/monitor/schedule.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_SCHEDULE_H
#define TTL_SCHEDULE_H

#include "datatype/timestamp.h"
#include "expire/expire.h"
#include "monitor/monitor.h"
#include "monitor/survey.h"
#include "ttl_index.h"

typedef struct TtlSubPass
{
	TtlLimits	limits;
	TimestampTz started;
	int			count;			/* of indexes */
	int			current;		/* the position of the one to visit */
	int			remaining;		/* visits not yet begun */
	bool		cut;			/* ended before the current one, for its time */
	bool		more;			/* rows that were due at the beginning of the
								 * pass remain */
	bool		busy;			/* likewise, for want of a lock */
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
	bool		narrowing;		/* a batch failed, its row is not found yet */
	bool		skipped;		/* the index is not visited again in this pass */
	bool		counted;		/* the visit is in the counters */
	bool		busy;			/* something was locked by others */
	bool		over;			/* nothing more can be done here now */
	bool		more;			/* a limit has ended it */
} TtlVisit;

/* For a database whose counters no worker has read yet: many enough to fold. */
#define TTL_UNFOLDED_UNKNOWN (PG_INT64_MAX / 2)

/* What is kept of an index, or of a partition that is to be dropped (see kept.c). */
typedef struct TtlKeptIndex
{
	Oid			relid;
	/* in this pass */
	bool		failed;			/* an error of it was reported */
	bool		skipped;		/* it is not to be visited again */
	bool		busy;			/* that it was locked is counted */
	bool		visited;		/* to the end of a visit */
	/* from pass to pass */
	int			first_docs;		/* size of the first batch of a visit; 0:
								 * usual */
	int64		single_docs;	/* so many rows are to be taken one by one */
	int			delay;			/* minutes to wait after it was canceled, or
								 * 0; until a pass gets through it */
	TimestampTz retry_at;		/* when that is over */
	Oid			last_leaf;		/* at which the last visit ended early */
	TtlSaid		said;			/* its last error in the log */
	bool		failing;		/* a good visit is to be counted */
	bool		still_failing;	/* for ttl_kept_set_failing() */
	TtlCursor	cursor;
} TtlKeptIndex;

/* What a pass has done so far, and what it left (see report.c). */
typedef struct TtlPassSum
{
	int64		deleted;
	int64		partitions;		/* dropped */
	int64		locked;			/* locks of others that were met */
	int			indexes;		/* visited */
	int			failed;			/* with an error */
	int			inactive;
	int			others;			/* of owners whose rights the session lacks */
} TtlPassSum;

/* What is kept of a database from sub-pass to sub-pass (see kept.c). */
typedef struct TtlKept
{
	TimestampTz pass_at;		/* clock reading when the pass began; 0: not
								 * yet */
	TransactionId pass_xid;		/* the next one then */
	TtlPassSum	sum;			/* of this pass */
	TimestampTz last_flush;		/* when the following three were last counted */
	int64		idle_passes;
	int64		idle_sub_passes;
	int64		lag_pauses;
	Oid			resume_at;		/* the index with which to begin */
	bool		counted;		/* this pass added to the counters */
	TtlSaid		said;			/* why nothing can be deleted here */
	TtlSurvey	survey;			/* for ttl_index.databases */
	int64		unfolded_rows;	/* rows added to the counters since the last
								 * fold */
	TimestampTz folded_hour;	/* the hour in which that was, or 0 */
	int64		nindexes;		/* packed: so many TtlKeptIndex follow */
	struct HTAB *indexes;		/* not packed: of TtlKeptIndex */
} TtlKept;

/* schedule.c */
extern void ttl_schedule_begin(TtlSubPass *sub, const TtlLimits *limits, int count,
							   int first, TimestampTz now);
extern bool ttl_schedule_next(TtlSubPass *sub, TimestampTz now);
extern void ttl_schedule_visit_begin(TtlVisit *visit, const TtlLimits *limits,
									 const TtlKeptIndex *kept, TimestampTz now);
extern int	ttl_schedule_first_docs(const TtlVisit *visit);
extern int	ttl_schedule_batch_size(const TtlVisit *visit, TimestampTz now);
extern int64 ttl_schedule_batch_entries(const TtlVisit *visit, int size);
extern void ttl_schedule_batch_done(TtlVisit *visit, const TtlBatch *batch,
									int size, bool over, TimestampTz begun,
									TimestampTz now);
extern void ttl_schedule_batch_failed(TtlVisit *visit, const TtlBatch *batch,
									  int size, bool gives_up, TimestampTz begun);
extern void ttl_schedule_visit_end(TtlVisit *visit);
extern void ttl_schedule_visited(TtlSubPass *sub, const TtlVisit *visit);

/* kept.c */
extern void ttl_kept_init(TtlKept *kept);
extern TtlKeptIndex *ttl_kept_find(const TtlKept *kept, Oid relid);
extern TtlKeptIndex *ttl_kept_index(TtlKept *kept, Oid relid);
extern void ttl_kept_begin_pass(TtlKept *kept, TimestampTz now);
extern void ttl_kept_set_failing(TtlKept *kept, const List *failing);
extern void ttl_kept_canceled(TtlKeptIndex *index, TimestampTz now);
extern Size ttl_kept_size(const TtlKept *kept);
extern void ttl_kept_pack(const TtlKept *kept, void *packed);
extern void ttl_kept_unpack(TtlKept *kept, const void *packed);

#endif							/* TTL_SCHEDULE_H */
