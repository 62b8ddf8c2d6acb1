/*-------------------------------------------------------------------------
 *
 * lock.c
 *	  Strong locks that hardly delay other sessions.
 *
 * A session that waits for a strong lock blocks all sessions after it.  A worker that waits for
 * a query of an hour, to drop a partition, would block the table for an hour.  A worker that
 * never waits may never get the lock on a busy table, because short queries overlap.
 *
 * lock_timeout alone would block others for all of ttl_index.bucket_lock_timeout in each try,
 * in vain if a query is long.  So the worker first watches the holders (GetLockConflicts()),
 * for up to the timeout and without queueing.  Once the transaction of each of them has ended,
 * it queues after their successors, again for up to the timeout.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "storage/lock.h"

#include "ttl_index.h"

/* The interval between two looks at the holders of a lock. */
#define WATCH_MS 5

/* Releasing all locks at the end of a transaction takes less time than this. */
#define RELEASE_TRIES 5
#define RELEASE_US 1000

/*
 * Limits each wait for a lock until the caller's GUC level ends, for commands that may take
 * more locks than their caller knows.  They raise lock_not_available.
 */
void
ttl_lock_limit_waits(void)
{
	char		value[16];

	snprintf(value, sizeof(value), "%d", ttl_bucket_lock_timeout);
	ttl_settings_set("lock_timeout", value);
}

/*
 * Locks a relation soon, or returns false or raises lock_not_available.  The caller has limited
 * its waits.
 */
bool
ttl_lock_soon(Oid relid, LOCKMODE lockmode)
{
	LOCKTAG		tag;
	VirtualTransactionId *holders;
	int			waited = 0;

	if (ConditionalLockRelationOid(relid, lockmode))
		return true;

	/* watch the holders without queueing */
	SET_LOCKTAG_RELATION(tag, MyDatabaseId, relid);
	holders = GetLockConflicts(&tag, lockmode, NULL);
	while (VirtualTransactionIdIsValid(*holders))
	{
		if (VirtualXactLock(*holders, false))
			holders++;
		else if (waited >= ttl_bucket_lock_timeout)
			return false;
		else
		{
			pg_usleep(WATCH_MS * 1000);
			CHECK_FOR_INTERRUPTS();
			waited += WATCH_MS;
		}
	}

	/* queue after their successors */
	LockRelationOid(relid, lockmode);
	return true;
}

/*
 * Locks a table and its indexes without waiting; false if a lock is not free.  An index can be
 * locked when its table is not, as by ALTER INDEX ... SET TABLESPACE, and a command opens all
 * indexes.
 */
bool
ttl_lock_now(Oid relid, LOCKMODE lockmode)
{
	Relation	rel;
	bool		locked = true;
	ListCell   *lc;

	if (!ConditionalLockRelationOid(relid, lockmode))
		return false;
	rel = try_relation_open(relid, NoLock);
	if (rel == NULL)
		return true;
	foreach(lc, RelationGetIndexList(rel))
		locked = locked && ConditionalLockRelationOid(lfirst_oid(lc), lockmode);
	relation_close(rel, NoLock);
	return locked;
}

/*
 * Locks a partition of a locked table, and all tables below it.  Waits only for queries that
 * have ended and are releasing their locks.
 */
bool
ttl_lock_tree(Oid relid, LOCKMODE lockmode)
{
	ListCell   *lc;

	foreach(lc, ttl_inherit_tree(relid))
	{
		int			tries = 0;

		while (!ConditionalLockRelationOid(lfirst_oid(lc), lockmode))
		{
			if (++tries == RELEASE_TRIES)
				return false;
			pg_usleep(RELEASE_US);
		}
	}
	return true;
}
