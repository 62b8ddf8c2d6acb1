/*-------------------------------------------------------------------------
 *
 * report.c
 *	  What a pass writes to the log, and to the session that called run_pass().
 *
 * The monitor repeats what lasts once an hour (shared/reported.c).
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/pass/report.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "commands/dbcommands.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

#include "pass/pass.h"
#include "state/state.h"
#include "ttl_index.h"

/* The monitor writes a line for each pass that has deleted more rows than this. */
#define MANY_ROWS 1000000

/*
 * Notes an error of an index, or of one that holds rows of it.  Reports it if it is the
 * first one in this pass.
 */
void
ttl_report_error(TtlRun *run, Oid root, Oid indexrelid, const ErrorData *edata)
{
	TtlResumeState *kept = ttl_kept_index(run->kept, root);
	const char *hint = edata->hint;

	if (kept->failed_until == 0)
		run->kept->sum.failed++;
	if (!ttl_kept_failed(run->kept, root, false, run->at))
		return;
	if (!ttl_reported_is_news(&kept->reported, edata->sqlerrcode, edata->message))
		return;

	/* a name that a function of users does not find is most often not qualified */
	if (edata->context != NULL &&
		(edata->sqlerrcode == ERRCODE_UNDEFINED_TABLE ||
		 edata->sqlerrcode == ERRCODE_UNDEFINED_FUNCTION ||
		 edata->sqlerrcode == ERRCODE_UNDEFINED_OBJECT))
		hint = "Functions run with search_path = pg_catalog, pg_temp here: qualify the name, "
			"or set it with ALTER FUNCTION ... SET search_path.";
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
	if (ttl_reported_is_news(&run->kept->reported, edata->sqlerrcode, edata->message))
		ereport(WARNING,
				(errcode(edata->sqlerrcode),
				 errmsg("could not make a TTL pass over database \"%s\": %s",
						get_database_name(MyDatabaseId), edata->message),
				 edata->detail ? errdetail_internal("%s", edata->detail) : 0,
				 edata->hint ? errhint("%s", edata->hint) : 0));
}

/* Reports an index that is skipped because it crashed the server. */
void
ttl_report_put_aside(TtlRun *run, Oid root, const char *reason)
{
	if (ttl_reported_is_news(&ttl_kept_index(run->kept, root)->reported,
						   ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, reason))
		ereport(WARNING,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("TTL index %s is put aside: %s", ttl_name_index(root), reason),
				 errhint("Find the cause, then SELECT ttl_index.resume().")));
}

/* Reports an index whose option is lost. */
void
ttl_report_lost(TtlRun *run, Oid indexrelid)
{
	if (ttl_saved_option_is_lost(indexrelid) &&
		ttl_reported_is_news(&ttl_kept_index(run->kept, indexrelid)->reported,
						   ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, "lost"))
		ereport(WARNING,
				(errmsg("the option of TTL index %s was lost, and no saved option was found",
						ttl_name_index(indexrelid)),
				 errhint("Set it again with ttl_index.coll_mod_index(), or make it a plain index with ttl_index.remove_ttl().")));
}

/* Appends, for example, "5 rows deleted", after a comma if it is not the first. */
static void
append_count(StringInfo text, int64 n, const char *one, const char *many,
			 const char *what)
{
	appendStringInfo(text, "%s%lld %s %s", text->len > 0 ? ", " : "",
					 (long long) n, n == 1 ? one : many, what);
}

/* Says in one line what a pass did. */
char *
ttl_report_pass_text(const TtlPassSum *sum)
{
	StringInfoData text;

	initStringInfo(&text);
	append_count(&text, sum->indexes, "TTL index", "TTL indexes", "visited");
	append_count(&text, sum->deleted - sum->archived, "row", "rows", "deleted");
	if (sum->archived > 0)
		append_count(&text, sum->archived, "row", "rows", "archived");
	if (sum->partitions > sum->archived_partitions)
		append_count(&text, sum->partitions - sum->archived_partitions,
					 "partition", "partitions", "dropped");
	if (sum->archived_partitions > 0)
		append_count(&text, sum->archived_partitions,
					 "partition", "partitions", "archived");
	if (sum->locked > 0)
		append_count(&text, sum->locked, "lock", "locks", "of others met");
	if (sum->failed > 0)
		append_count(&text, sum->failed, "index", "indexes", "with an error");
	if (sum->inactive > 0)
		append_count(&text, sum->inactive, "index", "indexes", "not active");
	if (sum->others > 0)
		append_count(&text, sum->others, "index", "indexes",
					 "of other owners left out");
	return text.data;
}

/* Writes a line to the log for a pass of the monitor that has deleted many rows. */
void
ttl_report_pass(TtlRun *run)
{
	const TtlPassSum *sum = &run->kept->sum;

	if (OidIsValid(run->common->caller) || sum->deleted <= MANY_ROWS)
		return;
	ttl_work_begin(run);
	ereport(LOG,
			(errmsg("TTL pass over database \"%s\": %s, %lld s",
					get_database_name(MyDatabaseId), ttl_report_pass_text(sum),
					(long long) ((GetCurrentTimestamp() - run->kept->pass_at) / USECS_PER_SEC))));
	ttl_work_commit(run);
}
