/*-------------------------------------------------------------------------
 *
 * kept.h
 *	  State of a database that is kept from one sub-pass to the next.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_KEPT_H
#define TTL_KEPT_H

#include "datatype/timestamp.h"
#include "expire/expire.h"
#include "lib/dshash.h"
#include "stats/progress.h"
#include "utils/dsa.h"
#include "utils/hsearch.h"

/* The last report of a problem in the log (see kept.c). */
typedef struct TtlReported
{
	uint32		reason;
	TimestampTz at;				/* 0: none, or the problem is over */
} TtlReported;

/* How a worker ended in the middle of a visit. */
typedef enum TtlDeath
{
	TTL_NOT_DEAD,
	TTL_DEAD_CRASHED,			/* it crashed the server */
	TTL_DEAD_TERMINATED,
	TTL_DEAD_CANCELED			/* its batch did not let itself be canceled */
} TtlDeath;

typedef struct TtlResumeKey
{
	Oid			database;
	Oid			relid;
} TtlResumeKey;

/*
 * What is kept of a TTL index, of an index that holds rows of it, or of a table: a partition
 * that is to be dropped, or the table of which partitions are to be made.
 */
typedef struct TtlResumeState
{
	TtlResumeKey key;
	TtlDeath	death;			/* of a worker that was at it, not yet counted */
	/* in this pass */
	TimestampTz failed_until;	/* until then its last error counts; 0: none */
	bool		skipped;		/* and it is not visited */
	int64		deleted;		/* rows, one by one */
	bool		estimated;
	int64		due;			/* about so many were due when the pass began;
								 * -1: not known */
	/* from pass to pass */
	int			first_docs;		/* size of the first batch of a visit, if it
								 * is not as usual, or 0 */
	int64		single_docs;	/* so many rows are to be taken one by one */
	int			delay;			/* minutes that it waits because it was
								 * canceled, or 0 */
	TimestampTz retry_at;		/* when that is over */
	Oid			last_leaf;		/* at which the last visit ended early */
	TtlReported reported;		/* its last error in the log */
	bool		failing;		/* a good visit is to be counted */
	TtlCursor	cursor;
} TtlResumeState;

/* What a pass has done so far, and what it left (see pass/report.c). */
typedef struct TtlPassSum
{
	int64		deleted;
	int64		rows;			/* one by one: without those of dropped partitions */
	double		weighted;		/* these, each by the time at which it was
								 * deleted, in microseconds since the pass began */
	int64		left;			/* about so many remain of those that were due
								 * when it began, where that was estimated */
	bool		estimated;		/* somewhere it was */
	bool		not_estimated;	/* somewhere it could not be */
	int64		partitions;		/* dropped */
	int64		estimated_rows; /* of these, where they were not counted */
	int64		archived;		/* of the deleted rows, and */
	int64		archived_partitions;	/* of these, those that are kept
										 * elsewhere */
	int64		locked;			/* locks of others that were met */
	int			indexes;		/* visited */
	int			failed;			/* with an error */
	int			inactive;
	int			others;			/* of owners for whom the caller cannot act */
} TtlPassSum;

/* What is known of a database and its pass.  Each process has a copy (see kept.c). */
typedef struct TtlPassState
{
	TimestampTz pass_at;		/* clock reading when the pass began; 0: not
								 * yet */
	TransactionId pass_xid;		/* the next one then */
	TtlPassSum	sum;			/* of this pass */
	int64		lag_pauses;		/* since the last survey */
	TtlReported reported;		/* why nothing can be deleted here */
	TtlReported uncounted;		/* that the counters cannot grow */
	TtlSurvey	survey;			/* for ttl_index.databases */
	int64		unfolded_rows;	/* rows added to the counters since the last
								 * fold */
	TimestampTz folded_hour;	/* the hour in which that was, or 0 */
	uint32		indexes_hash;	/* of the TTL indexes that the survey has found */
	dshash_table *shared;		/* of all indexes of the server */
	HTAB	   *indexes;		/* of TtlResumeState: those that this process uses */
} TtlPassState;

/* kept.c */
extern dshash_table *ttl_kept_create(dsa_area *area);
extern void ttl_kept_init(TtlPassState *kept);
extern void ttl_kept_open(TtlPassState *kept, dsa_area *area, dshash_table_handle handle);
extern void ttl_kept_store(const TtlPassState *kept);
extern void ttl_kept_add(TtlPassState *kept, const TtlPassState *before, const TtlPassState *after);
extern void ttl_kept_died(dshash_table *shared, Oid database, Oid relid, TtlDeath death);
extern void ttl_kept_forget(dshash_table *shared, Oid database);
extern TtlResumeState *ttl_kept_find(const TtlPassState *kept, Oid relid);
extern TtlResumeState *ttl_kept_index(TtlPassState *kept, Oid relid);
extern void ttl_kept_load(TtlPassState *kept);
extern void ttl_kept_begin_pass(TtlPassState *kept, TimestampTz now);
extern void ttl_kept_set_failing(TtlPassState *kept, HTAB *failing);
extern bool ttl_kept_failed(TtlPassState *kept, Oid relid, bool skipped, TimestampTz now);
extern void ttl_kept_canceled(TtlPassState *kept, Oid relid, TimestampTz now);
extern bool ttl_kept_is_left_out(const TtlPassState *kept, Oid relid, TimestampTz now);
extern void ttl_kept_deleted(TtlPassState *kept, Oid root, int64 rows, TimestampTz now);
extern void ttl_kept_estimated(TtlPassState *kept, Oid root, int64 due);
extern void ttl_kept_progress(const TtlPassState *kept, Oid root, TtlProgress *progress);
extern void ttl_kept_position(dsa_area *area, dshash_table_handle handle, Oid indexrelid,
							  TtlScanPosition *position);
extern bool ttl_kept_is_news(TtlReported *reported, int sqlerrcode, const char *text);

#endif							/* TTL_KEPT_H */
