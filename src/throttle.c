/*-------------------------------------------------------------------------
 *
 * throttle.c
 *	  How long deletion has to wait: for its rate, or for replication.
 *
 * Both are off by default, and both wait between two batches, outside of any
 * transaction.
 *
 * ttl_index.delete_rate_limit spreads the rows over time: after a batch of n rows
 * the next one waits until n / limit seconds have gone by since that one began.
 * No batch that was made for the limit takes longer than a second; one that was
 * made for another limit, or a clock that was set back, makes nothing wait longer.
 *
 * ttl_index.max_replication_lag and max_retained_wal pause deletion while a standby
 * or a replication slot is behind, since deletes would put it further behind.
 * A slot that nobody reads any more must not stop expiry for ever: after
 * ttl_index.max_lag_pause there is a WARNING, and deletion goes on until all
 * have caught up.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/throttle.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xlog.h"
#include "replication/slot.h"
#include "replication/walsender.h"
#include "replication/walsender_private.h"
#include "storage/lwlock.h"
#include "storage/spin.h"
#include "utils/timestamp.h"

#include "ttl_index.h"

/* A batch deletes no more than is allowed in a tenth of a second. */
#define BATCHES_PER_SECOND 10

/* Notes that a batch has deleted so many rows. */
void
ttl_throttle_deleted(TtlTurn *turn, int64 rows, TimestampTz begun)
{
	if (ttl_delete_rate_limit > 0)
		turn->next_batch_at = Max(turn->next_batch_at, begun) +
			rows * USECS_PER_SEC / ttl_delete_rate_limit;
}

/* The greatest batch that the rate allows. */
int
ttl_throttle_batch_size(int size)
{
	if (ttl_delete_rate_limit > 0)
		size = Min(size, Max(ttl_delete_rate_limit / BATCHES_PER_SECOND, 1));
	return size;
}

/* The longest replay lag of all standbys that report one, in microseconds. */
static int64
replay_lag(void)
{
	int64		longest = 0;

	for (int i = 0; i < max_wal_senders; i++)
	{
		WalSnd	   *sender = &WalSndCtl->walsnds[i];
		int64		lag = -1;

		SpinLockAcquire(&sender->mutex);
		if (sender->pid != 0)
			lag = sender->applyLag;
		SpinLockRelease(&sender->mutex);
		longest = Max(longest, lag);
	}
	return longest;
}

/* The most WAL that a replication slot keeps from being removed, in bytes. */
static int64
retained_wal(void)
{
	XLogRecPtr	now = GetXLogInsertRecPtr();
	int64		most = 0;

	LWLockAcquire(ReplicationSlotControlLock, LW_SHARED);
	for (int i = 0; i < max_replication_slots; i++)
	{
		ReplicationSlot *slot = &ReplicationSlotCtl->replication_slots[i];
		XLogRecPtr	restart_lsn = InvalidXLogRecPtr;

		SpinLockAcquire(&slot->mutex);
		if (slot->in_use)
			restart_lsn = slot->data.restart_lsn;
		SpinLockRelease(&slot->mutex);
		if (!XLogRecPtrIsInvalid(restart_lsn) && restart_lsn < now)
			most = Max(most, (int64) (now - restart_lsn));
	}
	LWLockRelease(ReplicationSlotControlLock);
	return most;
}

static bool
is_behind(void)
{
	return (ttl_max_replication_lag > 0 &&
			replay_lag() > (int64) ttl_max_replication_lag * 1000) ||
		(ttl_max_retained_wal > 0 &&
		 retained_wal() > (int64) ttl_max_retained_wal * 1024 * 1024);
}

/* Has deletion waited for replication long enough?  Says so once. */
static bool
has_waited_enough(TtlTurn *turn, TimestampTz now)
{
	if (turn->lag_ignored)
		return true;
	if (ttl_max_lag_pause == 0 ||
		now - turn->lag_since < (int64) ttl_max_lag_pause * USECS_PER_SEC)
		return false;
	turn->lag_ignored = true;
	ereport(WARNING,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("ttl_index goes on deleting although replication is behind"),
			 errdetail("It has paused for %d s.", ttl_max_lag_pause),
			 errhint("See pg_stat_replication and pg_replication_slots; a slot that nobody needs should be dropped.")));
	return true;
}

/*
 * What the next batch has to wait for, if anything.  Counts the pauses.
 */
TtlWait
ttl_throttle_wait(TtlTurn *turn, TimestampTz now)
{
	if (!is_behind())
	{
		turn->lag_since = 0;
		turn->lag_ignored = false;
	}
	else
	{
		if (turn->lag_since == 0)
		{
			turn->lag_since = now;
			turn->lag_pauses++;
		}
		if (!has_waited_enough(turn, now))
			return TTL_WAIT_REPLICATION;
	}
	turn->next_batch_at = Min(turn->next_batch_at, now + USECS_PER_SEC);
	if (ttl_delete_rate_limit > 0 && turn->next_batch_at > now)
		return TTL_WAIT_RATE;
	return TTL_WAIT_NONE;
}
