/*-------------------------------------------------------------------------
 *
 * tally.c
 *	  Counting what a pass does: batches, errors, passes and sub-passes.
 *
 * A batch, and the work on a partition, are counted in the transaction that does them.  The
 * survey does what needs rights beyond an owner's: it counts the passes and sub-passes of
 * all workers, and folds the rows that they have added (stats/counters.c).
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/pass/tally.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/index.h"
#include "commands/dbcommands.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "stats/stats.h"
#include "pass/pass.h"
#include "ttl_index.h"

/* Passes in which nothing happened are written to the counters this often, or less. */
#define IDLE_FLUSH_MS (60 * 1000)

/*
 * Counts an error that was met as a role; invalid for the survey.  The text is shown only
 * to those with the privileges of that role, because it can be about rows that others may
 * not see.
 */
static void
set_error(TtlCount *count, Oid role, const ErrorData *edata)
{
	count->errors = 1;
	count->last_error = edata->message;
	count->last_error_role = role;
	if (OidIsValid(role) &&
		SearchSysCacheExists1(RELOID, ObjectIdGetDatum(count->relid)) &&
		!has_privs_of_role(ttl_owner_of(count->relid), role))
	{
		const char *name = GetUserNameFromId(role, true);

		count->last_error = name == NULL ?
			pstrdup("an error in what belongs to other roles: the server log has it") :
			psprintf("an error in what belongs to another role, \"%s\": the server log has it", name);
		count->last_error_role = InvalidOid;
	}
	count->last_error_sqlstate = unpack_sql_state(edata->sqlerrcode);
	count->last_error_time = GetCurrentTimestamp();
}

/*
 * Adds to the counters in the current transaction.  On a full disk they cannot grow, and what
 * was done is not counted: the rows have to be deleted all the same.
 */
void
ttl_tally_add(TtlRun *run, const TtlCount *count)
{
	if (!ttl_counters_add(count) &&
		ttl_reported_is_news(&run->kept->uncounted, ERRCODE_DISK_FULL, ""))
		ereport(WARNING,
				(errcode(ERRCODE_DISK_FULL),
				 errmsg("ttl_index cannot count what it deletes in database \"%s\"",
						get_database_name(MyDatabaseId)),
				 errdetail("The disk is full, and the table ttl_index.counters cannot grow. Rows are deleted all the same.")));
}

/* Counts and reports an error that an index has outside of its batches. */
void
ttl_tally_failure(TtlRun *run, Oid root, const ErrorData *edata, bool timed_out)
{
	TtlCount	count = {.indexrelid = root};

	if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(root)))
		return;
	ttl_report_error(run, root, root, edata);
	(void) ttl_kept_failed(run->kept, root, true, run->at);
	if (timed_out)
		ttl_kept_canceled(run->kept, root, run->at);
	count.relid = IndexGetRelation(root, true);
	set_error(&count, run->shared->owner, edata);
	ttl_tally_add(run, &count);
	run->kept->counted = true;
}

/* Counts what a batch did, in its transaction.  Returns false if it did nothing. */
bool
ttl_tally_batch(TtlRun *run, Oid root, const TtlVisit *visit, const TtlBatch *batch,
				bool skipped, const ErrorData *edata, TimestampTz begun)
{
	TtlCount	count = {0};
	TimestampTz now = GetCurrentTimestamp();

	if (batch->live == 0 && edata == NULL && batch->skipped_locked == 0)
		return false;
	count.indexrelid = root;
	count.relid = IndexGetRelation(root, true);
	count.visits = visit->counted ? 0 : 1;
	count.batches = 1;
	count.deleted_documents = batch->deleted;
	count.deleted_buckets = batch->partitions;
	count.archived_documents = batch->archived;
	count.archived_buckets = batch->archived_partitions;
	count.skipped_locked = batch->skipped_locked;
	count.skipped_failed = skipped ? 1 : 0;
	count.delete_time = (now - begun) / 1000.0;
	if (batch->deleted > 0)
		count.last_deleted = now;
	if (edata != NULL && visit->failures == 0)
		set_error(&count, GetUserId(), edata);
	ttl_tally_add(run, &count);
	return true;
}

/* Adds a batch that was counted to the sums of the pass, once it is committed. */
void
ttl_tally_committed(TtlRun *run, TtlVisit *visit, const TtlBatch *batch)
{
	TtlPassState *kept = run->kept;

	kept->unfolded_rows++;
	kept->sum.deleted += batch->deleted;
	kept->sum.partitions += batch->partitions;
	kept->sum.archived += batch->archived;
	kept->sum.archived_partitions += batch->archived_partitions;
	kept->sum.locked += batch->skipped_locked;
	kept->counted = true;
	visit->counted = true;
}

/* Folds the counters if it is time to. */
static void
fold_work(void *arg)
{
	TtlPassState *kept = arg;
	TimestampTz hour = ttl_history_hour(GetCurrentTimestamp());

	if (!ttl_counters_fold(kept->unfolded_rows, hour != kept->folded_hour))
		return;
	kept->unfolded_rows = 0;
	kept->folded_hour = hour;
}

static void
trim_work(void *arg)
{
	ttl_history_trim(GetCurrentTimestamp());
}

/*
 * Counts the sub-passes since the last survey, and the pass if it has ended: at once if
 * this pass wrote anything, else once a minute.  A pass over no index does not count, but
 * that a session serves the database is remembered.
 */
void
ttl_tally_pass(TtlRun *run, bool has_indexes)
{
	TtlShared  *shared = run->shared;
	TtlPassState *kept = run->kept;
	Oid			caller = run->common->caller;
	int			sleep_ms = Min(ttl_monitor_sleep * INT64CONST(1000), IDLE_FLUSH_MS);
	TimestampTz now = GetCurrentTimestamp();
	TtlCount	count = {0};
	ErrorData  *edata;
	bool		timed_out;

	/* a sub-pass is counted when it has ended */
	if (shared->begins && shared->more)
		return;
	if (has_indexes)
	{
		kept->idle_sub_passes += shared->begins ? 1 : shared->rounds;
		kept->idle_passes += shared->more ? 0 : 1;
		count.passes = kept->idle_passes;
		count.sub_passes = kept->idle_sub_passes;
		count.last_pass_start = kept->pass_at;
		count.last_pass_end = shared->more ? 0 : now;
		count.last_cutoff = run->at;
		count.lag_pauses = kept->lag_pauses;
	}
	else if (!OidIsValid(caller))
		return;

	/* an idle pass waits for the next one if that is in time; the clock may have gone back */
	if (!OidIsValid(caller) && !kept->counted && now >= kept->last_flush &&
		!TimestampDifferenceExceeds(kept->last_flush, now, IDLE_FLUSH_MS - sleep_ms))
		return;
	if (OidIsValid(caller))
	{
		count.relid = caller;
		count.last_call = now;
	}
	ttl_work_begin(run);
	if (!ttl_counters_lock(OidIsValid(caller)))
	{
		/* the extension has just been dropped, or will be */
		ttl_work_commit(run);
		return;
	}
	ttl_tally_add(run, &count);
	kept->unfolded_rows++;

	/* fold; trimming is a piece of work of its own, because it reads all of the history */
	edata = ttl_work_run(fold_work, kept, &timed_out);
	if (edata == NULL && kept->unfolded_rows == 0)
		edata = ttl_work_run(trim_work, NULL, &timed_out);
	/* on a full disk, the next survey tries again */
	if (edata != NULL &&
		ERRCODE_TO_CATEGORY(edata->sqlerrcode) != ERRCODE_INSUFFICIENT_RESOURCES)
		ereport(WARNING,
				(errcode(edata->sqlerrcode),
				 errmsg("could not write ttl_index.history: %s", edata->message)));
	ttl_work_commit(run);
	kept->idle_passes = kept->idle_sub_passes = kept->lag_pauses = 0;
	kept->last_flush = now;
	if (!shared->more)
		kept->counted = false;
}
