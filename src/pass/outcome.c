/*-------------------------------------------------------------------------
 *
 * outcome.c
 *	  What became of a batch, or of work on a partition: noted for the pass, and counted.
 *
 * A batch and the work on a partition are counted alike, in the transaction that does them.
 * What the pass has to know of an index or a partition that failed, or was locked, is in
 * kept.c.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/pass/outcome.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/index.h"
#include "commands/dbcommands.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "stats/stats.h"
#include "pass/pass.h"
#include "ttl_index.h"

/* Is the index or partition not to be visited again in this pass? */
bool
ttl_outcome_is_skipped(const TtlRun *run, Oid relid)
{
	const TtlResumeState *index = ttl_kept_find(run->kept, relid);

	return index != NULL && index->skipped;
}

/* Notes that an index or partition has failed; false if that is known in this pass. */
bool
ttl_outcome_note_failed(TtlRun *run, Oid relid, bool skipped)
{
	TtlResumeState *index = ttl_kept_index(run->kept, relid);
	bool		new = !index->failed;

	index->failed = true;
	index->skipped = index->skipped || skipped;
	return new;
}

/*
 * Notes an error of an index, or of one that holds rows of it, and reports it if it is the
 * first one in this pass.  What had to be canceled is tried again after a growing delay.
 */
void
ttl_outcome_note_error(TtlRun *run, Oid root, Oid indexrelid, const ErrorData *edata,
					 bool timed_out)
{
	if (ttl_outcome_note_failed(run, root, timed_out))
	{
		TtlResumeState *index = ttl_kept_index(run->kept, root);

		run->kept->sum.failed += index->summed ? 0 : 1;
		index->summed = true;
		ttl_report_error(run, root, indexrelid, edata);
	}
	if (timed_out)
		ttl_kept_canceled(run->kept, root, indexrelid, run->at);
}

/*
 * Counts an error that was met as a role, or as none of users.  The text is shown to those
 * with the rights of that role only: it can be about rows that only they may see.
 */
void
ttl_outcome_set_error(TtlCount *count, Oid role, const ErrorData *edata)
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
ttl_outcome_add(TtlRun *run, const TtlCount *count)
{
	if (!ttl_counters_add(count) &&
		ttl_reported_is_news(&run->kept->uncounted, ERRCODE_DISK_FULL, ""))
		ereport(WARNING,
				(errcode(ERRCODE_DISK_FULL),
				 errmsg("ttl_index cannot count what it deletes in database \"%s\"",
						get_database_name(MyDatabaseId)),
				 errdetail("The disk is full, and the table ttl_index.counters cannot grow. Rows are deleted all the same.")));
}

/* Counts what a batch did, in its transaction.  One that did nothing is not counted: false. */
bool
ttl_outcome_count(TtlRun *run, Oid root, const TtlVisit *visit, const TtlBatch *batch, bool skipped,
				  const ErrorData *edata, double milliseconds)
{
	TtlCount	count = {0};

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
	count.delete_time = milliseconds;
	if (batch->deleted > 0)
		count.last_deleted = GetCurrentTimestamp();
	if (edata != NULL && visit->failures == 0)
		ttl_outcome_set_error(&count, GetUserId(), edata);
	ttl_outcome_add(run, &count);
	return true;
}

/* Notes that a batch was counted, once that is committed. */
void
ttl_outcome_counted(TtlRun *run, TtlVisit *visit, const TtlBatch *batch)
{
	run->kept->unfolded_rows++;
	run->kept->sum.deleted += batch->deleted;
	run->kept->sum.partitions += batch->partitions;
	run->kept->sum.archived += batch->archived;
	run->kept->sum.archived_partitions += batch->archived_partitions;
	run->kept->sum.locked += batch->skipped_locked;
	visit->counted = true;
	run->kept->counted = true;
}

/* Has the pass lasted for longer than the monitor sleeps? */
bool
ttl_outcome_is_long(const TtlRun *run, TimestampTz now)
{
	return now - run->kept->pass_at >= ttl_monitor_sleep * USECS_PER_SEC;
}

/* Had the last work on an index that holds rows, or on a partition, to be canceled? */
bool
ttl_outcome_hangs(const TtlRun *run, Oid relid)
{
	const TtlResumeState *kept = ttl_kept_find(run->kept, relid);

	return kept != NULL && kept->hangs;
}
