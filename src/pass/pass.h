/*-------------------------------------------------------------------------
 *
 * pass.h
 *	  A pass over the TTL indexes of a database: its sub-passes, visits and batches.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_PASS_H
#define TTL_PASS_H

#include "shared/shared.h"
#include "shared/state_file.h"
#include "stats/stats.h"
#include "ttl_index.h"

/* What a process of a pass works with. */
typedef struct TtlRun
{
	TtlCommon  *common;
	TtlShared  *shared;
	TtlPassState *kept;
	MemoryContext context;		/* lives as long as the process */
	MemoryContext batch_context;	/* reset after each transaction */
	List	   *roots;			/* the TTL indexes of a worker */
	List	   *locked;			/* of these, those that were locked by others */
	bool		again;			/* that was counted, and they are tried again */
	TimestampTz at;				/* the clock reading of this sub-pass */
	bool		stop;			/* end now: the monitor was disabled, the
								 * extension dropped, or the launcher ended */
} TtlRun;

/*
 * The first batch of a visit is small: if a trigger is slow, a large one would be canceled
 * in every pass.  If this is too large for an index, the right size is kept for its next visit.
 */
#define TTL_FIRST_BATCH_DOCS 100

/* For schedule.c: a visit. */
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
	int			batches;
	int			failures;
	bool		careful;		/* a batch has failed */
	bool		rows_wait;		/* for others of the table, in larger batches */
	bool		skipped;		/* the index is not visited again in this pass */
	bool		counted;		/* the visit is in the counters */
	bool		busy;			/* something was locked by others */
	bool		left_out;		/* a partition is left out (kept.c) */
	bool		rows_first;		/* a partition waits for its rows to go */
	bool		over;			/* nothing more can be done here now */
	bool		more;			/* it was ended by a limit */
} TtlVisit;

/* report.c */
extern void ttl_report_error(TtlRun *run, Oid root, Oid indexrelid, const ErrorData *edata);
extern void ttl_report_no_pass(TtlRun *run, const ErrorData *edata);
extern void ttl_report_skipped(TtlRun *run, Oid root, const char *reason, const char *hint);
extern char *ttl_report_pass_text(const TtlPassSum *sum);
extern void ttl_report_failure(TtlRun *run, Oid root, const ErrorData *edata, bool timed_out);
extern void ttl_report_count(TtlRun *run, const TtlCount *count);
extern bool ttl_report_batch(TtlRun *run, Oid root, const TtlVisit *visit, const TtlBatch *batch,
							 const ErrorData *edata, TimestampTz begun);
extern void ttl_report_committed(TtlRun *run, TtlVisit *visit, const TtlBatch *batch);
extern void ttl_report_pass(TtlRun *run, bool has_indexes);

/* schedule.c */
extern void ttl_schedule_visit_begin(TtlVisit *visit, const TtlLimits *limits,
									 const TtlResumeState *kept, TimestampTz now);
extern int	ttl_schedule_batch_size(const TtlVisit *visit, TimestampTz now);
extern void ttl_schedule_batch_done(TtlVisit *visit, const TtlBatch *batch,
									int size, bool over, TimestampTz begun,
									TimestampTz now);
extern void ttl_schedule_batch_failed(TtlVisit *visit, const TtlBatch *batch,
									  int size, bool canceled, bool gives_up,
									  TimestampTz begun);

/* throttle.c */
extern void ttl_throttle_deleted(TtlThrottle *throttle, int64 rows);
extern int	ttl_throttle_batch_size(int size);
extern TtlWait ttl_throttle_wait(TtlRun *run, long *milliseconds);

/* visit.c */
extern bool ttl_visit_died(void);
extern List *ttl_visit_partitions(TtlRun *run, const TtlIndex *index);
extern void ttl_visit_all(TtlRun *run, Oid *resume_at);

/* work.c */
extern bool ttl_work_is_canceled(void);
extern void ttl_work_cancel(SIGNAL_ARGS);
extern void ttl_work_init(TtlRun *run, TtlCommon *common, TtlShared *shared,
						  TtlPassState *kept);
extern void ttl_work_begin(TtlRun *run);
extern void ttl_work_commit(TtlRun *run);
extern ErrorData *ttl_work_try_commit(TtlRun *run, bool *timed_out);
extern bool ttl_work_is_wanted(Oid database);
extern bool ttl_work_must_stop(TtlRun *run);
extern bool ttl_work_is_held(TtlRun *run, const TtlStateFile *file);
extern bool ttl_work_is_long(const TtlRun *run, TimestampTz now);
extern void ttl_work_tidy(ErrorData *edata);
extern ErrorData *ttl_work_run(void (*function) (void *), void *arg, bool *timed_out);
extern ErrorData *ttl_work_retry(void (*function) (void *), void *arg, bool *timed_out);
extern bool ttl_work_transaction(TtlRun *run, void (*function) (void *),
								 void (*count) (void *, ErrorData *, bool), void *arg);

#endif							/* TTL_PASS_H */
