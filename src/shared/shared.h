/*-------------------------------------------------------------------------
 *
 * shared.h
 *	  What the processes of a pass share: the input and the output of each.
 *
 * Copyright (c) 2026, ttl_index contributors
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
	XLogRecPtr	not_awaited;	/* what has not reached this is not awaited */
	TtlReported reported;		/* that deletion goes on without it */
} TtlThrottle;

/* What all processes of a pass share. */
typedef struct TtlCommon
{
	int			starter_pid;	/* the launcher, or the session that runs the pass */
	Oid			caller;			/* of run_pass(), or invalid */
	int64		pass;			/* its number, for pg_stat_activity */
	dshash_table_handle kept;	/* of TtlResumeState */
	dshash_table_handle databases;	/* of TtlKnownDatabase; the launcher's */
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

/* The input and the output of a process, in shared memory (see server/tasks.c). */
typedef struct TtlShared
{
	/* written before it starts, and passed to it as an address */
	dsa_pointer common;			/* TtlCommon */
	Oid			database;
	Oid			owner;			/* invalid: it is a survey */
	bool		is_superuser;	/* the owner is one */
	int			mark;			/* the number of its mark (crash.c), or -1 */
	dsm_handle	messages;		/* a queue for its messages to a session, or 0 */
	bool		begins;			/* a survey: the pass begins */
	bool		ends;			/* a survey: the pass is over, but for its counters */
	int			rounds;			/* sub-passes since the last survey */
	Oid			resume_at;		/* a worker: the index to begin with */
	/* both ways */
	TtlPassState kept;			/* without its hash tables */
	/* written by the process */
	bool		answered;
	bool		held;			/* nothing may be deleted in any database */
	bool		more;			/* the pass needs another sub-pass here */
	bool		canceled;		/* the worker ended within a canceled batch */
	Oid			current_index;	/* the index that is being visited */
	bool		limited;		/* a piece of work has a time limit (work.c) */
	uint32		works;			/* the number of that piece of work */
	int			time_limit;		/* in milliseconds; 0: none */
	int			nwork;
	dsa_pointer work;			/* a survey: TtlWork */
	/* written before it starts: OIDs of the TTL indexes of a worker */
	int			nroots;
	Oid			roots[FLEXIBLE_ARRAY_MEMBER];
} TtlShared;

#endif							/* TTL_SHARED_H */
