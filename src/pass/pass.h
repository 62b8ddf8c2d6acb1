/*-------------------------------------------------------------------------
 *
 * pass.h
 *	  A pass over the TTL indexes of a database: its sub-passes, visits and batches.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/pass/pass.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_PASS_H
#define TTL_PASS_H

#include "pass/schedule.h"
#include "shared/shared.h"
#include "shared/state_file.h"
#include "stats/stats.h"

/* A TTL index to visit, and what there is to do. */
typedef struct TtlTarget
{
	Oid			root;
	Oid			relid;			/* its table, if the index is active */
	List	   *leaves;			/* OIDs of indexes that hold its rows, in the
								 * order of the partitions */
	List	   *others;			/* those that belong to other owners */
	List	   *partitions;		/* TtlPartition, to make or to drop */
	bool		active;			/* or locked when it was prepared */
	bool		busy;			/* something was locked at the last visit */
} TtlTarget;

typedef struct TtlRun
{
	TtlCommon  *common;
	TtlShared  *shared;
	TtlPassState    *kept;
	MemoryContext context;		/* lives as long as the sub-pass */
	MemoryContext batch_context;	/* reset before each batch */
	List	   *roots;			/* the TTL indexes of a worker */
	TimestampTz at;				/* the clock reading of this sub-pass */
	bool		stop;			/* end now: the monitor was disabled, the
								 * extension dropped, or the launcher ended */
	List	   *targets;		/* TtlTarget */
} TtlRun;

/* attempt.c */
extern void ttl_attempt_batch(TtlRun *run, Oid root, Oid leaf, TtlVisit *visit, TtlCursor *cursor,
							  int size);
extern bool ttl_attempt_died(void);

/* report.c */
extern void ttl_report_error(TtlRun *run, Oid root, Oid indexrelid, const ErrorData *edata);
extern void ttl_report_no_pass(TtlRun *run, const ErrorData *edata);
extern void ttl_report_put_aside(TtlRun *run, Oid root, const char *reason);
extern void ttl_report_lost(TtlRun *run, Oid indexrelid);
extern char *ttl_report_pass_text(const TtlPassSum *sum);
extern void ttl_report_pass(TtlRun *run);

/* sub_pass.c */
extern List *ttl_sub_pass_partitions(TtlRun *run, const TtlIndex *index);
extern void ttl_sub_pass_run(TtlRun *run, Oid *resume_at);

/* tally.c */
extern void ttl_tally_failure(TtlRun *run, Oid root, const ErrorData *edata, bool timed_out);
extern void ttl_tally_add(TtlRun *run, const TtlCount *count);
extern bool ttl_tally_batch(TtlRun *run, Oid root, const TtlVisit *visit, const TtlBatch *batch,
							bool skipped, const ErrorData *edata, TimestampTz begun);
extern void ttl_tally_committed(TtlRun *run, TtlVisit *visit, const TtlBatch *batch);
extern void ttl_tally_pass(TtlRun *run, bool has_indexes);

/* throttle.c */
extern void ttl_throttle_deleted(TtlThrottle *throttle, int64 rows);
extern int	ttl_throttle_batch_size(int size);
extern TtlWait ttl_throttle_wait(TtlRun *run, long *milliseconds);

/* visit.c */
extern void ttl_visit_target(TtlRun *run, TtlSubPass *sub, TtlTarget *target);

/* work.c */
extern bool ttl_work_is_canceled(void);
extern void ttl_work_cancel(SIGNAL_ARGS);
extern void ttl_work_init(TtlRun *run, TtlCommon *common, TtlShared *shared,
						  TtlPassState *kept);
extern void ttl_work_forget(TtlRun *run);
extern void ttl_work_begin(TtlRun *run);
extern void ttl_work_commit(TtlRun *run);
extern ErrorData *ttl_work_try_commit(TtlRun *run, bool *timed_out);
extern bool ttl_work_is_wanted(Oid database);
extern bool ttl_work_must_stop(TtlRun *run);
extern bool ttl_work_is_held(TtlRun *run, const TtlStateFile *file);
extern bool ttl_work_is_long(const TtlRun *run, TimestampTz now);
extern bool ttl_work_wait(TtlRun *run, TtlWait wait, long milliseconds);
extern void ttl_work_tidy(ErrorData *edata);
extern ErrorData *ttl_work_run(void (*function) (void *), void *arg, bool *timed_out);
extern ErrorData *ttl_work_retry(void (*function) (void *), void *arg, bool *timed_out);
extern bool ttl_work_transaction(TtlRun *run, void (*function) (void *),
								 void (*count) (void *, ErrorData *, bool), void *arg);

#endif							/* TTL_PASS_H */
