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
#include "utils/dsa.h"

/*
 * How long deletion has to wait.  One for all databases, as the rate and the standbys
 * are.  Its times are of the machine's clock (see ttl_hold_machine_clock()).
 */
typedef struct TtlThrottle
{
	int64		batch_begun;
	int64		next_batch_at;	/* by the rate limit */
	int64		lag_since;		/* deletion has paused for replication; or 0 */
	XLogRecPtr	not_awaited;	/* what has not got here was awaited in vain */
} TtlThrottle;

/*
 * One turn of a database: what the launcher tells its worker and what it hears
 * back, in shared memory; run_pass() uses one in its own.
 */
typedef struct TtlShared
{
	/* the launcher asks */
	int			launcher_pid;
	int64		pass;			/* number, for pg_stat_activity */
	bool		begins;			/* the pass does, for this database */
	Oid			died_at;		/* where the worker before this one died */
	bool		died_in_crash;	/* and took the server down */
	bool		died_canceled;	/* it did not let itself be canceled there */
	/* kept for the server, from turn to turn */
	TtlThrottle throttle;
	/* the worker answers */
	bool		answered;
	bool		held;			/* nothing more in any database */
	bool		more;
	bool		canceled;		/* current_index did not let itself be */
	Oid			current_index;	/* being visited, should the worker die */
	int64		lag_pauses;		/* in this turn */
	/* kept for the database, packed; in shared memory only */
	dsa_pointer kept;
} TtlShared;

/* How a driver of sub_pass.c ends a transaction and begins the next. */
typedef struct TtlDriver
{
	void		(*begin) (void);
	void		(*commit) (void);
	bool		is_worker;
	Oid			role;			/* visit what this role may delete as owner */
} TtlDriver;

/* A TTL index and those of it that hold rows. */
typedef struct TtlTarget
{
	Oid			root;
	List	   *leaves;			/* OIDs, in the order of the partitions */
	List	   *partitions;		/* of a time series: to be made, or dropped */
	bool		busy;			/* something was locked at the last visit */
} TtlTarget;

typedef struct TtlRun
{
	const TtlDriver *driver;
	TtlShared  *shared;
	TtlKept    *kept;
	MemoryContext context;		/* of the turn */
	MemoryContext batch_context;	/* reset before each batch */
	TimestampTz at;				/* the clock reading of this sub-pass */
	bool		stop;			/* leave: disabled, dropped, launcher gone */
	List	   *targets;
} TtlRun;

/* work.c */
extern bool ttl_work_is_canceled(void);
extern void ttl_work_cancel(void);
extern void ttl_work_begin(TtlRun *run);
extern void ttl_work_commit(TtlRun *run);
extern bool ttl_work_must_stop(TtlRun *run);
extern bool ttl_work_wait(TtlRun *run, TtlWait wait, long milliseconds);
extern bool ttl_work_wait_for_batch(TtlRun *run);
extern ErrorData *ttl_work_run(const TtlDriver *driver, void (*function) (void *), void *arg,
							   bool *timed_out);

/* prepare.c */
extern void ttl_prepare_targets(TtlRun *run);

/* visit.c */
extern bool ttl_visit_note_failed(TtlRun *run, Oid relid, bool skipped);
extern void ttl_visit_note_error(TtlRun *run, Oid root, Oid indexrelid, const ErrorData *edata,
								 bool timed_out);
extern void ttl_visit_set_error(TtlCount *count, const ErrorData *edata);
extern bool ttl_visit_is_skipped(const TtlRun *run, Oid relid);
extern void ttl_visit_target(TtlRun *run, TtlSubPass *sub, TtlTarget *target);

/* sub_pass.c */
extern void ttl_sub_pass_run(const TtlDriver *driver, TtlShared *shared,
							 TtlKept *kept);

/* throttle.c */
extern void ttl_throttle_deleted(TtlThrottle *throttle, int64 rows);
extern int	ttl_throttle_batch_size(int size);
extern TtlWait ttl_throttle_wait(TtlShared *shared, long *milliseconds);

#endif							/* TTL_PASS_H */
