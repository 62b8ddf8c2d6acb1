/*-------------------------------------------------------------------------
 *
 * report.c
 *	  What a pass says of itself: by NOTICE in a session, in the log by the monitor.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/monitor/report.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "commands/dbcommands.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/timestamp.h"

#include "monitor/pass.h"
#include "monitor/schedule.h"
#include "ttl_index.h"

/* The monitor writes a line for each pass that has deleted more rows than this. */
#define MANY_ROWS 1000000

/* Appends "5 rows deleted", say, with a comma before it where it is not the first. */
static void
append_count(StringInfo text, int64 n, const char *one, const char *many,
			 const char *what)
{
	appendStringInfo(text, "%s%lld %s %s", text->len > 0 ? ", " : "",
					 (long long) n, n == 1 ? one : many, what);
}

/* What a pass did, in one line, and what it left. */
static char *
pass_text(const TtlPassSum *sum)
{
	StringInfoData text;

	initStringInfo(&text);
	append_count(&text, sum->indexes, "TTL index", "TTL indexes", "visited");
	append_count(&text, sum->deleted, "row", "rows", "deleted");
	if (sum->partitions > 0)
		append_count(&text, sum->partitions, "partition", "partitions", "dropped");
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

/* Says what a pass that has ended did: run_pass() always, the monitor if that was much. */
void
ttl_report_pass(TtlRun *run)
{
	const TtlPassSum *sum = &run->kept->sum;

	if (!run->driver->is_worker)
		ereport(NOTICE, (errmsg_internal("%s", pass_text(sum))));
	else if (sum->deleted > MANY_ROWS)
	{
		ttl_work_begin(run);
		ereport(LOG,
				(errmsg("TTL pass over database \"%s\": %s, %lld s",
						get_database_name(MyDatabaseId), pass_text(sum),
						(long long) ((GetCurrentTimestamp() - run->kept->pass_at) / USECS_PER_SEC))));
		ttl_work_commit(run);
	}
}
