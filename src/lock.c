/*-------------------------------------------------------------------------
 *
 * lock.c
 *	  Strong locks that stand in nobody's way.
 *
 * Whoever waits for a lock blocks all who come behind him and would conflict with
 * it.  Behind a query that takes an hour, a worker that waits to drop a partition
 * would stop all work on the table for an hour.  One that never waits, on the
 * other hand, may never get the lock of a busy table, where one short query begins
 * before the other has ended.  So it waits where it is sure to be short: those who
 * hold the lock are watched for ttl_index.bucket_lock_timeout, and once all of them
 * have gone, it queues behind their successors, for as long at most.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/lock.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/guc.h"

#include "ttl_index.h"

/* Watching others, look this often. */
#define WATCH_MS 5

/* Releasing all locks at the end of a transaction takes less. */
#define RELEASE_TRIES 5
#define RELEASE_US 1000

/* Is one transaction in both lists?  Each ends with an invalid one. */
static bool
have_common(const VirtualTransactionId *a, const VirtualTransactionId *b)
{
	for (; VirtualTransactionIdIsValid(*a); a++)
	{
		for (const VirtualTransactionId *c = b; VirtualTransactionIdIsValid(*c); c++)
		{
			if (VirtualTransactionIdEquals(*a, *c))
				return true;
		}
	}
	return false;
}

/* Does one transaction hold a lock against this one for longer than a moment? */
static bool
is_held_for_long(Oid relid, LOCKMODE lockmode)
{
	LOCKTAG		tag;
	VirtualTransactionId *holders;

	SET_LOCKTAG_RELATION(tag, MyDatabaseId, relid);
	holders = GetLockConflicts(&tag, lockmode, NULL);
	for (int waited = 0; waited < ttl_bucket_lock_timeout; waited += WATCH_MS)
	{
		VirtualTransactionId *others;
		bool		common;

		pg_usleep(WATCH_MS * 1000);
		CHECK_FOR_INTERRUPTS();
		others = GetLockConflicts(&tag, lockmode, NULL);
		common = have_common(holders, others);
		pfree(others);
		if (!common)
			return false;
	}
	return true;
}

/*
 * From now on, until the caller leaves this level of settings, no lock is waited
 * for longer than a moment: for commands that may take more of them than their
 * caller knows.  They raise lock_not_available after it.
 */
void
ttl_lock_limit_waits(void)
{
	char		value[16];

	snprintf(value, sizeof(value), "%d", ttl_bucket_lock_timeout);
	(void) set_config_option("lock_timeout", value, PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
}

/* Waits for a moment; raises lock_not_available after it. */
static void
lock_briefly(Oid relid, LOCKMODE lockmode)
{
	int			level = NewGUCNestLevel();

	ttl_lock_limit_waits();
	LockRelationOid(relid, lockmode);
	AtEOXact_GUC(false, level);
}

/*
 * Locks a relation, if that is possible within a moment.  False, or an error with
 * the SQLSTATE lock_not_available, where it is not.
 */
bool
ttl_lock_soon(Oid relid, LOCKMODE lockmode)
{
	if (ConditionalLockRelationOid(relid, lockmode))
		return true;
	if (is_held_for_long(relid, lockmode))
		return false;
	lock_briefly(relid, lockmode);
	return true;
}

/*
 * Locks a partition of a table that is locked already, so that no query through
 * the table is left.  One that has just ended may still be releasing its locks, in
 * no order; nothing else is waited for.
 */
bool
ttl_lock_below(Oid relid, LOCKMODE lockmode)
{
	for (int i = 0; i < RELEASE_TRIES; i++)
	{
		if (ConditionalLockRelationOid(relid, lockmode))
			return true;
		pg_usleep(RELEASE_US);
	}
	return false;
}
