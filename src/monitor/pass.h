/*-------------------------------------------------------------------------
 *
 * pass.h
 *	  A pass over the TTL indexes of a database: its sub-passes, visits and batches.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/monitor/pass.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_PASS_H
#define TTL_PASS_H

#include "access/xlogdefs.h"
#include "monitor/monitor.h"
#include "monitor/schedule.h"

/*
 * How long deletion has to wait (see throttle.c), in all databases, because the rate and
 * the standbys are the server's.  The times are readings of ttl_hold_machine_clock().
 */
typedef struct TtlThrottle
{
	int64		batch_begun;
	int64		next_batch_at;	/* by the rate limit */
	int64		lag_since;		/* when the pause for replication began, or 0 */
	XLogRecPtr	not_awaited;	/* who has not got here is not awaited */
	TtlSaid		said;			/* that it is no longer waited for */
} TtlThrottle;

/*
 * What the launcher tells a worker, and what the worker tells the launcher.  It is in
 * shared memory (see launcher.c); run_pass() uses one in its own memory.
 */
typedef struct TtlShared
{
	/* written by the launcher before it starts a worker */
	int			launcher_pid;
	int64		pass;			/* its number, for pg_stat_activity */
	TtlTold		told;			/* of this database */
	TtlThrottle throttle;		/* handed on, also from database to database */
	/* written by the worker */
	bool		answered;
	bool		held;			/* nothing may be deleted in any database */
	bool		more;			/* the pass needs another sub-pass here */
	bool		canceled;		/* the worker ended within a canceled batch */
	Oid			current_index;	/* the index that is being visited */
	Oid			current_leaf;	/* the last one that was, of those with rows */
	bool		limited;		/* work.c limits the time of what it does: */
	uint32		works;			/* the number of that piece of work */
	int			time_limit;		/* for it, in milliseconds; 0: none */
	int64		lag_pauses;		/* not yet added to TtlKept */
	dsa_pointer kept_next;		/* in place of TtlTold's, when it has ended */
} TtlShared;

/* What a worker gets beside its argument, the handle of the shared memory. */
typedef struct TtlWorkerExtra
{
	Oid			database;
	dsa_pointer shared;
} TtlWorkerExtra;

/* What differs between the worker and run_pass() (see sub_pass.c). */
typedef struct TtlDriver
{
	void		(*begin) (void);
	void		(*commit) (void);
	bool		is_worker;
	Oid			role;			/* for a session: only tables whose owner's
								 * rights this role has are visited */
} TtlDriver;

/* A TTL index to visit, and the indexes of it that hold rows. */
typedef struct TtlTarget
{
	Oid			root;
	Oid			relid;			/* its table, where it is active */
	List	   *leaves;			/* OIDs, in the order of the partitions */
	List	   *partitions;		/* TtlPartition: to be made, or dropped */
	bool		active;			/* or was locked when it was prepared */
	bool		busy;			/* something was locked at the last visit */
} TtlTarget;

typedef struct TtlRun
{
	const TtlDriver *driver;
	TtlShared  *shared;
	TtlKept    *kept;
	MemoryContext context;		/* lives as long as the sub-pass */
	MemoryContext batch_context;	/* reset before each batch */
	TimestampTz at;				/* the clock reading of this sub-pass */
	bool		stop;			/* end now: the monitor was disabled, the
								 * extension dropped, or the launcher has gone */
	List	   *targets;
	int			others;			/* TTL indexes of others, left out */
} TtlRun;

/* work.c */
extern bool ttl_work_is_canceled(void);
extern void ttl_work_cancel(void);
extern void ttl_work_init(TtlRun *run, const TtlDriver *driver, TtlShared *shared,
						  TtlKept *kept);
extern void ttl_work_forget(TtlRun *run);
extern void ttl_work_begin(TtlRun *run);
extern void ttl_work_commit(TtlRun *run);
extern ErrorData *ttl_work_try_commit(TtlRun *run, bool *timed_out);
extern bool ttl_work_is_unwanted(const TtlRun *run);
extern bool ttl_work_must_stop(TtlRun *run);
extern bool ttl_work_wait(TtlRun *run, TtlWait wait, long milliseconds);
extern bool ttl_work_wait_for_batch(TtlRun *run);
extern ErrorData *ttl_work_run(const TtlDriver *driver, void (*function) (void *), void *arg,
							   bool *timed_out);

/* prepare.c */
extern bool ttl_prepare_is_allowed(const TtlRun *run, Oid root);
extern bool ttl_prepare_may_act_on(const TtlRun *run, Oid relid);
extern void ttl_prepare_targets(TtlRun *run);

/* report.c */
extern void ttl_report_error(TtlRun *run, Oid root, Oid indexrelid, const ErrorData *edata);
extern void ttl_report_no_pass(TtlRun *run, const ErrorData *edata);
extern void ttl_report_put_aside(TtlRun *run, Oid root, const char *reason);
extern void ttl_report_lost(TtlRun *run, Oid indexrelid);
extern void ttl_report_pass(TtlRun *run);

/* sub_pass.c */
extern void ttl_sub_pass_run(const TtlDriver *driver, TtlShared *shared, TtlKept *kept);

/* throttle.c */
extern void ttl_throttle_deleted(TtlThrottle *throttle, int64 rows);
extern int	ttl_throttle_batch_size(int size);
extern TtlWait ttl_throttle_wait(TtlShared *shared, long *milliseconds);

#endif							/* TTL_PASS_H */
