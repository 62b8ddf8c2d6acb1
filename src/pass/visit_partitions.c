/*-------------------------------------------------------------------------
 *
 * visit_partitions.c
 *	  Partitions that a visit makes and drops, each in a transaction of its own.
 *
 * What is due of a time series is dropped as a whole partition, without a look at its rows,
 * and new partitions are made ahead of time.  Both have the time of a visit, before the
 * batches of rows have theirs (visit.c).
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/pass/visit_partitions.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/index.h"
#include "utils/timestamp.h"

#include "pass/pass.h"
#include "partition/partition.h"

/* A visit tries no more partitions after so many that needed a lock which others need, too. */
#define MAX_BUSY_PARTITIONS 3

/* The arguments and the result of making or dropping one partition. */
typedef struct PartitionWork
{
	TtlRun	   *run;
	const TtlTarget *target;
	const TtlPartition *partition;
	TtlBatch   *batch;
} PartitionWork;

/* Under what is it kept that this hangs?  Making partitions counts for the whole table. */
static Oid
partition_key(const TtlTarget *target, const TtlPartition *partition)
{
	return OidIsValid(partition->relid) ? partition->relid : target->relid;
}

static void
partition_work(void *arg)
{
	PartitionWork *work = arg;
	Oid			root = work->target->root;
	Oid			partition = work->partition->relid;
	Oid			relid = OidIsValid(partition) ? partition : IndexGetRelation(root, true);

	/* it may just have been dropped, or given to somebody else */
	if (!OidIsValid(relid) || !ttl_prepare_is_own(relid))
		return;
	if (OidIsValid(partition))
		ttl_drop_partition(root, partition, work->run->at, work->batch);
	else
		ttl_make_partition(root, work->partition, work->batch);
}

/*
 * Notes what became of a partition, and counts it.  Returns whether there was anything to
 * count.
 */
static bool
count_partition(const PartitionWork *work, TtlVisit *visit, bool first_error,
				const ErrorData *edata, bool timed_out, TimestampTz begun)
{
	TtlRun	   *run = work->run;
	TtlBatch   *batch = work->batch;
	Oid			key = partition_key(work->target, work->partition);

	if (edata != NULL)
	{
		memset(batch, 0, sizeof(*batch));
		batch->busy = ttl_error_is_of_lock(edata);
	}
	if (batch->busy)
		batch->skipped_locked = 1;
	if (edata != NULL && !batch->busy)
		ttl_outcome_note_error(run, work->target->root, work->target->root, edata, false);
	if (edata != NULL && timed_out)
	{
		ttl_kept_canceled(run->kept, work->target->root, key, run->at);
		visit->put_off = true;
	}
	else if (ttl_outcome_hangs(run, key))
		ttl_kept_index(run->kept, key)->hangs = false;
	return ttl_outcome_count(run, work->target->root, visit, batch, false,
							 batch->busy || !first_error ? NULL : edata,
							 (GetCurrentTimestamp() - begun) / 1000.0);
}

/*
 * Makes or drops a partition in a transaction of its own.  Returns false if that failed;
 * locks that are not free are no failure.
 */
static bool
run_partition(TtlRun *run, const TtlTarget *target, const TtlPartition *partition,
			  TtlVisit *visit, bool first_error, TtlBatch *batch)
{
	TimestampTz begun = GetCurrentTimestamp();
	PartitionWork work = {.run = run,.target = target,.partition = partition,.batch = batch};
	ErrorData  *edata;
	ErrorData  *commit_error;
	bool		timed_out;
	bool		counted;

	ttl_work_begin(run);
	if (ttl_work_must_stop(run))
	{
		ttl_work_commit(run);
		return true;
	}
	edata = ttl_work_run(partition_work, &work, &timed_out);
	counted = count_partition(&work, visit, first_error, edata, timed_out, begun);
	commit_error = ttl_work_try_commit(run, &timed_out);
	if (commit_error != NULL)
	{
		edata = commit_error;
		ttl_work_begin(run);
		counted = !ttl_work_must_stop(run) &&
			count_partition(&work, visit, first_error, edata, timed_out, begun);
		ttl_work_commit(run);
	}
	if (counted)
		ttl_outcome_counted(run, visit, batch);
	return edata == NULL || batch->busy;
}

/*
 * Makes or drops the partitions of a time series, within the time of a visit each, so that
 * an error of one does not prevent the other.  Returns whether some of them remain for the
 * next sub-pass.  A partition that was locked is tried once more there, and no more in this
 * pass, because the lock may be held for hours.  A partition that could not be dropped
 * waits for the next pass, so that it does not use up the time of the others.
 */
bool
ttl_visit_partitions(TtlRun *run, const TtlTarget *target, TtlVisit *visit, bool makes)
{
	TimestampTz begun = GetCurrentTimestamp();
	int			failed = 0;
	int			locked = 0;
	bool		progress = false;
	bool		again = false;
	ListCell   *lc;

	foreach(lc, target->partitions)
	{
		int64		took = (GetCurrentTimestamp() - begun) / 1000;
		TtlPartition *partition = lfirst(lc);
		TtlBatch	batch = {0};

		if (run->stop || locked >= MAX_BUSY_PARTITIONS)
			break;
		if (OidIsValid(partition->relid) == makes ||
			ttl_outcome_is_skipped(run, partition->relid))
			continue;
		if (visit->waits && ttl_outcome_hangs(run, partition_key(target, partition)))
		{
			visit->put_off = true;
			continue;
		}
		if (visit->limits.index_time > 0 && took >= visit->limits.index_time)
			return progress;
		if (!run_partition(run, target, partition, visit, failed == 0, &batch))
		{
			failed++;
			if (OidIsValid(partition->relid))
			{
				(void) ttl_outcome_note_failed(run, partition->relid, true);
				progress = true;
			}
		}
		else if (batch.busy)
		{
			locked += batch.busy_alone ? 0 : 1;
			if (ttl_outcome_note_failed(run, partition->relid, false))
			{
				progress = true;
				/* a pass that lasts is not to last longer by these tries */
				again = again || !ttl_outcome_is_long(run, run->at);
			}
			else if (batch.busy_alone)
			{
				(void) ttl_outcome_note_failed(run, partition->relid, true);
				progress = true;
			}
		}
		else
			progress = true;
	}
	return again;
}
