/*-------------------------------------------------------------------------
 *
 * throttle.c
 *	  How long deletion has to wait: for its rate, for replication, or for the disk.
 *
 * delete_rate_limit spreads the rows over time: after a batch of n rows the next one waits
 * until n / limit seconds have passed since that one began, but no longer than a second.
 *
 * max_replication_lag and max_retained_wal pause deletion while a standby or a replication
 * slot is behind.  A standby or slot that is stuck must not stop deletion forever: after
 * max_lag_pause there is a WARNING, and from then on deletion waits only for standbys and
 * slots that have reached the end of WAL of that moment.
 *
 * Both hold for all workers together.  Time is measured by the machine's clock.
 *
 * Deletion can write more WAL than the disk takes, and commits of others wait for all of it.  So
 * while others write, batches are small, and the next one waits until the WAL of the last one is
 * on disk.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "executor/instrument.h"
#include "replication/slot.h"
#include "replication/walsender.h"
#include "replication/walsender_private.h"
#include "storage/lwlock.h"
#include "storage/spin.h"

#include "compat.h"
#include "pass/pass.h"

/* A batch deletes no more than is allowed in a tenth of a second. */
#define BATCHES_PER_SECOND 10

/* A worker that waits checks this often whether the wait is over. */
#define LOOK_MS 200

/* While others write, a batch writes about so much WAL: some milliseconds of a disk. */
#define WAL_BYTES (512 * 1024)

/* A worker looks this often whether others write. */
#define LOOK_AT_OTHERS_US (100 * 1000)

/* Of this process. */
static int64 batch_begun;		/* the last one */
static bool others_write;		/* according to the last look */
static int64 shared_rows;		/* so many rows of the last batch write WAL_BYTES */
static uint64 wal_on_disk;		/* that has been waited for */

/*
 * Notes how much WAL the rows of a batch took, and whether others write more transactions than
 * workers do.  A batch takes three transaction IDs, with those of its subtransactions.
 */
static void
look_at_others(int64 rows)
{
	static TransactionId next_xid = InvalidTransactionId;
	static int64 looked = 0;
	static uint64 wal = 0;
	static uint32 batches = 0;
	TransactionId begun;

	shared_rows = rows == 0 ? INT_MAX :
		Max(rows * WAL_BYTES / Max(pgWalUsage.wal_bytes - wal, 1), 1);
	wal = pgWalUsage.wal_bytes;
	batches++;
	if (batch_begun < looked + LOOK_AT_OTHERS_US)
		return;
	begun = ReadNextTransactionId() - next_xid;
	others_write = looked > 0 && begun > 4 * batches * ttl_max_workers;
	looked = batch_begun;
	next_xid += begun;
	batches = 0;
}

/* Waits until what this process has committed is on disk, if that is much and others wait for it. */
static void
share_disk(void)
{
	if (!others_write || pgWalUsage.wal_bytes - wal_on_disk < WAL_BYTES / 2)
		return;
	XLogFlush(XactLastCommitEnd);
	wal_on_disk = pgWalUsage.wal_bytes;
}

/* Notes how many rows the last batch has deleted. */
void
ttl_throttle_deleted(TtlThrottle *throttle, int64 rows)
{
	look_at_others(rows);
	if (ttl_delete_rate_limit == 0)
		return;
	SpinLockAcquire(&throttle->mutex);
	throttle->next_batch_at = Max(throttle->next_batch_at, batch_begun) +
		rows * USECS_PER_SEC / ttl_delete_rate_limit;
	SpinLockRelease(&throttle->mutex);
}

/* Limits the size of a batch to what the rate, and the disk, allow. */
int
ttl_throttle_batch_size(int size)
{
	if (others_write)
		size = Min(size, shared_rows);
	if (ttl_delete_rate_limit > 0)
		size = Min(size, Max(ttl_delete_rate_limit / BATCHES_PER_SECOND, 1));
	return size;
}

/*
 * Returns the longest replay lag, in microseconds, of all standbys and subscribers that have
 * reached this position.  A receiver that applies nothing, such as pg_receivewal, reports
 * none.
 */
static int64
replay_lag(XLogRecPtr awaited)
{
	int64		longest = 0;

	for (int i = 0; i < max_wal_senders; i++)
	{
		WalSnd	   *sender = &WalSndCtl->walsnds[i];
		int64		lag = -1;

		SpinLockAcquire(&sender->mutex);
		if (sender->pid != 0 && !XLogRecPtrIsInvalid(sender->apply) &&
			sender->apply >= awaited)
			lag = sender->applyLag;
		SpinLockRelease(&sender->mutex);
		longest = Max(longest, lag);
	}
	return longest;
}

/* Returns the most WAL, in bytes, that a slot retains which has reached this position. */
static int64
retained_wal(XLogRecPtr awaited)
{
	XLogRecPtr	now = GetXLogInsertRecPtr();
	int64		most = 0;

	LWLockAcquire(ReplicationSlotControlLock, LW_SHARED);
	for (int i = 0; i < max_replication_slots; i++)
	{
		ReplicationSlot *slot = &ReplicationSlotCtl->replication_slots[i];
		XLogRecPtr	restart_lsn = InvalidXLogRecPtr;

		SpinLockAcquire(&slot->mutex);
		if (slot->in_use && !ttl_slot_is_invalidated(slot))
			restart_lsn = slot->data.restart_lsn;
		SpinLockRelease(&slot->mutex);
		if (!XLogRecPtrIsInvalid(restart_lsn) && restart_lsn >= awaited &&
			restart_lsn < now)
			most = Max(most, (int64) (now - restart_lsn));
	}
	LWLockRelease(ReplicationSlotControlLock);
	return most;
}

/* Must deletion wait for replication?  Counts the pauses. */
static bool
must_pause(TtlRun *run, int64 now)
{
	TtlThrottle *throttle = &run->common->throttle;
	XLogRecPtr	not_awaited;
	bool		behind;
	bool		begins;
	bool		gives_up;

	SpinLockAcquire(&throttle->mutex);
	not_awaited = throttle->not_awaited;
	SpinLockRelease(&throttle->mutex);
	behind = (ttl_max_replication_lag > 0 &&
			  replay_lag(not_awaited) > (int64) ttl_max_replication_lag * 1000) ||
		(ttl_max_retained_wal > 0 &&
		 retained_wal(not_awaited) > (int64) ttl_max_retained_wal * 1024 * 1024);
	not_awaited = behind ? GetXLogInsertRecPtr() : InvalidXLogRecPtr;

	SpinLockAcquire(&throttle->mutex);
	begins = behind && throttle->lag_since == 0;
	if (begins || !behind)
		throttle->lag_since = behind ? now : 0;
	gives_up = behind && ttl_max_lag_pause > 0 &&
		now - throttle->lag_since >= (int64) ttl_max_lag_pause * USECS_PER_SEC;
	if (gives_up)
	{
		throttle->lag_since = 0;
		throttle->not_awaited = not_awaited;
	}
	SpinLockRelease(&throttle->mutex);

	if (begins)
		run->kept->lag_pauses++;
	if (gives_up &&
		ttl_kept_is_news(&throttle->reported, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, ""))
		ereport(WARNING,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("ttl_index goes on deleting although replication is behind"),
				 errdetail("It has paused for %d s, and no longer waits for what is stuck.",
						   ttl_max_lag_pause),
				 errhint("See pg_stat_replication and pg_replication_slots. Drop a slot that is not needed: SELECT pg_drop_replication_slot(slot_name).")));
	return behind && !gives_up;
}

/* Returns what the next batch has to wait for, and for how long at most. */
TtlWait
ttl_throttle_wait(TtlRun *run, long *milliseconds)
{
	TtlThrottle *throttle = &run->common->throttle;
	int64		now = ttl_hold_machine_clock();
	int64		remaining;

	if (must_pause(run, now))
	{
		*milliseconds = LOOK_MS;
		return TTL_WAIT_REPLICATION;
	}
	SpinLockAcquire(&throttle->mutex);
	throttle->next_batch_at = Min(throttle->next_batch_at, now + USECS_PER_SEC);
	remaining = throttle->next_batch_at - now;
	SpinLockRelease(&throttle->mutex);
	if (ttl_delete_rate_limit > 0 && remaining > 0)
	{
		*milliseconds = Min(remaining / 1000 + 1, LOOK_MS);
		return TTL_WAIT_RATE;
	}
	share_disk();
	batch_begun = now;
	return TTL_WAIT_NONE;
}
