/*-------------------------------------------------------------------------
 *
 * report.c
 *	  What a pass did: the log, and the counters.
 *
 * A condition that lasts is logged again once an hour (ttl_kept_is_news()).
 *
 * A batch, and the work on a partition, are counted in the transaction that does them.  The
 * survey does what needs rights beyond an owner's: it counts the passes and sub-passes of
 * all workers, and folds the rows that they have added (stats/counters.c).
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/index.h"
#include "commands/dbcommands.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "pass/pass.h"

#define MAX_LAST_ERROR 1500

/* A name that a function of users does not find is most often not qualified. */
static const char *
error_hint(const ErrorData *edata)
{
	if (edata->context != NULL &&
		(edata->sqlerrcode == ERRCODE_UNDEFINED_TABLE ||
		 edata->sqlerrcode == ERRCODE_UNDEFINED_FUNCTION ||
		 edata->sqlerrcode == ERRCODE_UNDEFINED_OBJECT))
		return "Functions run with search_path = pg_catalog, pg_temp here: qualify the name, "
			"or set it with ALTER FUNCTION ... SET search_path.";
	return edata->hint;
}

/*
 * Notes an error of an index, or of one that holds rows of it.  Reports it if it is the
 * first one in this pass.
 */
void
ttl_report_error(TtlRun *run, Oid root, Oid indexrelid, const ErrorData *edata)
{
	TtlResumeState *kept = ttl_kept_index(run->kept, root);
	const char *hint = error_hint(edata);

	if (kept->failed_until == 0)
		run->kept->sum.failed++;
	if (!ttl_kept_failed(run->kept, root, false, run->at))
		return;
	if (!ttl_kept_is_news(&kept->reported, edata->sqlerrcode, edata->message))
		return;

	ereport(WARNING,
			(errcode(edata->sqlerrcode),
			 errmsg("could not expire rows by TTL index %s: %s",
					ttl_name_index(indexrelid), edata->message),
			 edata->detail ? errdetail_internal("%s", edata->detail) : 0,
			 hint ? errhint("%s", hint) : 0,
			 edata->context ? errcontext("%s", edata->context) : 0));
}

/* Reports why there can be no pass over a database. */
void
ttl_report_no_pass(TtlRun *run, const ErrorData *edata)
{
	if (ttl_kept_is_news(&run->kept->reported, edata->sqlerrcode, edata->message))
		ereport(WARNING,
				(errcode(edata->sqlerrcode),
				 errmsg("could not make a TTL pass over database \"%s\": %s",
						get_database_name(MyDatabaseId), edata->message),
				 edata->detail ? errdetail_internal("%s", edata->detail) : 0,
				 edata->hint ? errhint("%s", edata->hint) : 0));
}

/* Reports why an index is skipped. */
void
ttl_report_skipped(TtlRun *run, Oid root, const char *reason, const char *hint)
{
	if (ttl_kept_is_news(&ttl_kept_index(run->kept, root)->reported,
						 ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, reason))
		ereport(WARNING,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("TTL index %s is skipped: %s", ttl_name_index(root), reason),
				 errhint("%s", hint)));
}

/* Appends, for example, ", 5 rows archived", unless there are none. */
static void
append_count(StringInfo text, int64 n, const char *one, const char *many, const char *what)
{
	if (n > 0)
		appendStringInfo(text, ", %lld %s %s", (long long) n, n == 1 ? one : many, what);
}

/* Says in one line what a pass did. */
char *
ttl_report_pass_text(const TtlPassSum *sum)
{
	int64		deleted = sum->deleted - sum->archived;
	StringInfoData text;

	initStringInfo(&text);
	appendStringInfo(&text, "%d TTL %s visited, %lld %s deleted",
					 sum->indexes, sum->indexes == 1 ? "index" : "indexes",
					 (long long) deleted, deleted == 1 ? "row" : "rows");
	append_count(&text, sum->archived, "row", "rows", "archived");
	append_count(&text, sum->partitions - sum->archived_partitions,
				 "partition", "partitions", "dropped");
	append_count(&text, sum->archived_partitions, "partition", "partitions", "archived");
	if (sum->estimated_rows > 0)
		appendStringInfo(&text, " (about %lld %s)", (long long) sum->estimated_rows,
						 sum->estimated_rows == 1 ? "row" : "rows");
	append_count(&text, sum->locked, "lock", "locks", "of others met");
	append_count(&text, sum->failed, "index", "indexes", "with an error");
	append_count(&text, sum->inactive, "index", "indexes", "not active");
	append_count(&text, sum->others, "index", "indexes", "of other owners left out");
	return text.data;
}

/*
 * Counts an error that was met as a role; invalid for the survey.  The text has the detail and
 * the hint, as psql shows them, but is no longer than MAX_LAST_ERROR.  It is shown only to those
 * with the privileges of that role, because it can be about rows that others may not see.
 */
static void
set_error(TtlCount *count, Oid role, const ErrorData *edata)
{
	const char *hint = error_hint(edata);
	char	   *text = psprintf("%s%s%s%s%s", edata->message,
								edata->detail ? "\nDETAIL:  " : "", edata->detail ? edata->detail : "",
								hint ? "\nHINT:  " : "", hint ? hint : "");

	text[pg_mbcliplen(text, strlen(text), MAX_LAST_ERROR)] = '\0';
	count->errors = 1;
	count->last_error = text;
	count->last_error_role = role;
	if (OidIsValid(role) &&
		SearchSysCacheExists1(RELOID, ObjectIdGetDatum(count->relid)) &&
		!has_privs_of_role(ttl_owner_of(count->relid), role))
	{
		count->last_error = pstrdup("an error in what belongs to other roles: the server log has it");
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
ttl_report_count(TtlRun *run, const TtlCount *count)
{
	run->kept->unfolded_rows++;
	if (!ttl_counters_add(count) &&
		ttl_kept_is_news(&run->kept->uncounted, ERRCODE_DISK_FULL, ""))
		ereport(WARNING,
				(errcode(ERRCODE_DISK_FULL),
				 errmsg("ttl_index cannot count what it deletes in database \"%s\"",
						get_database_name(MyDatabaseId)),
				 errdetail("The disk is full, and the table ttl_index.counters cannot grow. Rows are deleted all the same.")));
}

/* Counts and reports an error that an index has outside of its batches. */
void
ttl_report_failure(TtlRun *run, Oid root, const ErrorData *edata, bool timed_out)
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
	ttl_report_count(run, &count);
}

/* Counts what a batch did, in its transaction.  Returns false if it did nothing. */
bool
ttl_report_batch(TtlRun *run, Oid root, const TtlVisit *visit, const TtlBatch *batch,
				 const ErrorData *edata, TimestampTz begun)
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
	count.estimated_documents = batch->estimated;
	count.archived_documents = batch->archived;
	count.archived_buckets = batch->archived_partitions;
	count.skipped_locked = batch->skipped_locked;
	count.skipped_failed = batch->failed;
	count.skipped_kept = batch->skipped_kept;
	count.delete_time = (now - begun) / 1000.0;
	if (batch->deleted > 0 || batch->estimated > 0)
		count.last_deleted = now;
	if (batch->skipped_kept > 0)
		count.last_kept = now;
	if (edata != NULL && visit->failures == 0)
		set_error(&count, GetUserId(), edata);
	ttl_report_count(run, &count);
	return true;
}

/* Adds a batch that was counted to the sums of the pass, once it is committed. */
void
ttl_report_committed(TtlRun *run, TtlVisit *visit, const TtlBatch *batch)
{
	TtlPassState *kept = run->kept;

	kept->sum.deleted += batch->deleted;
	kept->sum.partitions += batch->partitions;
	kept->sum.estimated_rows += batch->estimated;
	kept->sum.archived += batch->archived;
	kept->sum.archived_partitions += batch->archived_partitions;
	kept->sum.locked += batch->skipped_locked;
	visit->counted = true;
}

/* Folds the counters if it is time to. */
static void
fold_work(void *arg)
{
	TtlPassState *kept = arg;

	ttl_counters_fold(&kept->unfolded_rows, &kept->folded_hour);
}

/*
 * Counts the sub-passes since the last survey, and the pass if it has ended.  A pass over no
 * index does not count, but that a session serves the database is remembered.
 */
void
ttl_report_pass(TtlRun *run, bool has_indexes)
{
	TtlShared  *shared = run->shared;
	TtlPassState *kept = run->kept;
	Oid			caller = run->common->caller;
	TimestampTz now = GetCurrentTimestamp();
	TtlCount	count = {0};
	ErrorData  *edata;
	bool		timed_out;

	/* a sub-pass is counted when it has ended */
	if (shared->begins && shared->more)
		return;
	if (has_indexes)
	{
		count.passes = shared->more ? 0 : 1;
		count.sub_passes = shared->begins ? 1 : shared->rounds;
		count.last_pass_start = kept->pass_at;
		count.last_pass_end = shared->more ? 0 : now;
		count.last_cutoff = run->at;
		count.lag_pauses = kept->lag_pauses;
	}
	else if (!OidIsValid(caller))
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
	ttl_report_count(run, &count);

	/* fold; trimming is a piece of work of its own, because it reads all of the history */
	edata = ttl_work_run(fold_work, kept, &timed_out);
	if (edata == NULL && kept->unfolded_rows == 0)
		edata = ttl_work_run(ttl_counters_trim, NULL, &timed_out);
	/* on a full disk, the next survey tries again */
	if (edata != NULL &&
		ERRCODE_TO_CATEGORY(edata->sqlerrcode) != ERRCODE_INSUFFICIENT_RESOURCES)
		ereport(WARNING,
				(errcode(edata->sqlerrcode),
				 errmsg("could not write ttl_index.history: %s", edata->message)));
	ttl_work_commit(run);
	kept->lag_pauses = 0;
}
