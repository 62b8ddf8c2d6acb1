/*-------------------------------------------------------------------------
 *
 * shared.h
 *	  What the processes of a pass share: what each is told, and what it answers.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/shared/shared.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_SHARED_H
#define TTL_SHARED_H

#include "access/xlogdefs.h"
#include "lib/dshash.h"
#include "port/atomics.h"
#include "shared/kept.h"
#include "storage/spin.h"
#include "utils/dsa.h"

/*
 * How long deletion has to wait (see throttle.c), in all databases, because the rate and
 * the standbys are the server's.  The times are readings of ttl_hold_machine_clock().
 */
typedef struct TtlThrottle
{
	slock_t		mutex;			/* for all of it */
	int64		next_batch_at;	/* by the rate limit */
	int64		lag_since;		/* when the pause for replication began, or 0 */
	XLogRecPtr	not_awaited;	/* who has not got here is not awaited */
	TtlReported reported;		/* that it is no longer waited for */
} TtlThrottle;

/* What all processes of a pass share. */
typedef struct TtlCommon
{
	int			starter_pid;	/* the launcher, or the session that runs the pass */
	Oid			caller;			/* of run_pass(), or invalid */
	int64		pass;			/* its number, for pg_stat_activity */
	dshash_table_handle kept;	/* of TtlResumeState */
	pg_atomic_uint32 waiting;	/* others wait: a worker leaves after its round */
	TtlThrottle throttle;
	dsa_pointer settings;		/* those of a session, or invalid (settings.c) */
} TtlCommon;

/* A TTL index that has something to do for an owner. */
typedef struct TtlWork
{
	Oid			owner;
	bool		is_superuser;	/* that owner */
	Oid			root;
} TtlWork;

/* What a process is told, and what it answers.  It is in shared memory (see tasks.c). */
typedef struct TtlShared
{
	/* written by whoever starts it, which passes the address of this to it */
	dsa_pointer common;			/* TtlCommon */
	Oid			database;
	Oid			owner;			/* invalid: it is a survey */
	bool		is_superuser;	/* the owner is one */
	int			mark;			/* which mark of crash.c is its, or -1 */
	dsm_handle	messages;		/* a queue for what it says to a session, or 0 */
	bool		begins;			/* a survey: the pass begins */
	bool		ends;			/* a survey: the pass is over, but for its counters */
	int			rounds;			/* a survey: that there were since the last one */
	Oid			resume_at;		/* a worker: the index to begin with */
	int			nroots;
	dsa_pointer roots;			/* a worker: OIDs of TTL indexes */
	/* both ways */
	TtlPassState kept;			/* without its hash tables */
	/* written by the process */
	bool		answered;
	bool		held;			/* nothing may be deleted in any database */
	bool		more;			/* the pass needs another sub-pass here */
	bool		canceled;		/* the worker ended within a canceled batch */
	Oid			current_index;	/* the index that is being visited */
	bool		limited;		/* work.c limits the time of what it does: */
	uint32		works;			/* the number of that piece of work */
	int			time_limit;		/* for it, in milliseconds; 0: none */
	int			nwork;
	dsa_pointer work;			/* a survey: TtlWork */
} TtlShared;

#endif							/* TTL_SHARED_H */
