/*-------------------------------------------------------------------------
 *
 * notice.c
 *	  How many rows are due at once, told to whoever declares a TTL.
 *
 * A TTL index on an old table deletes all of the past within a minute, and one on the wrong
 * column never deletes anything.  To show this, the due rows in the new index are counted, for
 * a second at most, and a sample of its pages shows which dates it has.  DDL does the same,
 * but not in a session that wants no notices, such as a restore.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/ddl/notice.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/index.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "storage/lmgr.h"
#include "utils/date.h"
#include "utils/lsyscache.h"
#include "utils/ruleutils.h"
#include "utils/timeout.h"
#include "utils/timestamp.h"

#include "ddl/ddl.h"
#include "definition/definition.h"
#include "definition/key.h"
#include "definition/option.h"
#include "expire/look.h"
#include "partition/partition.h"
#include "server/server.h"
#include "state/state.h"
#include "ttl_index.h"

/* How long rows are counted at most, and how many pages of an index are sampled. */
#define COUNT_MS 1000
#define SAMPLE_PAGES 100

/* Dates that hardly anybody means, see count_entry(). */
typedef enum Odd
{
	ODD_FUTURE,
	ODD_EPOCH,
	ODD_PAST
} Odd;

static const struct
{
	const char *where;
	const char *detail;
	const char *hint;
}			odds[] = {

	{"lie after the year 9999", "Such rows are never due.",
	"Milliseconds that are read as seconds look like that: to_timestamp() takes seconds, so divide by 1000.0."},
	{"lie in January 1970", "Such rows are due at once.",
	"Seconds that are read as milliseconds look like that: {\"$date\": ...} takes milliseconds."},
	{"lie before the year 1900", "Such rows are due at once.",
	"A date that was never set looks like that in some languages; NULL never expires."},
};

/* In days since 2000-01-01. */
#define YEAR_10000 2921940
#define FEBRUARY_1970 (-10926)
#define JANUARY_1970 (-10957)
#define YEAR_1900 (-36524)

/* What a TTL index holds: all rows that are due, and a sample of all dates. */
typedef struct Found
{
	TimestampTz at;
	TimestampTz until;			/* counting ends then */
	TtlCutoff	cutoff;			/* of the leaf at hand */
	int64		due;
	bool		more_due;		/* there was no time to count all of them */
	int64		rows;
	int64		dates;
	int64		odd[lengthof(odds)];
} Found;

/* Counts the rows of an index tuple, and dates that are far from today. */
static void
count_entry(const int64 *date, int rows, void *arg)
{
	Found	   *found = arg;
	int64		day = found->cutoff.keytype == DATEOID ? 1 : USECS_PER_DAY;
	bool		due;

	found->rows += rows;
	if (date == NULL)
		return;
	found->dates += rows;
	due = ttl_cutoff_is_due(&found->cutoff, *date);
	if (found->cutoff.keytype == DATEOID ? DATE_NOT_FINITE(*date) : TIMESTAMP_NOT_FINITE(*date))
		return;
	if (*date >= YEAR_10000 * day)
		found->odd[ODD_FUTURE] += rows;
	else if (due && *date >= JANUARY_1970 * day && *date < FEBRUARY_1970 * day)
		found->odd[ODD_EPOCH] += rows;
	else if (due && *date < YEAR_1900 * day)
		found->odd[ODD_PAST] += rows;
}

/*
 * Looks at all leaves of a TTL index.  The rows of a table of Citus are on other nodes.  What is
 * declared must not fail for a count: that ends when half of what statement_timeout leaves is over.
 */
static void
look_at_leaves(Oid indexrelid, Found *found)
{
	int64		ms = COUNT_MS;
	ListCell   *lc;

	if (get_timeout_active(STATEMENT_TIMEOUT))
		ms = Min(ms, TimestampDifferenceMilliseconds(found->at,
													 get_timeout_finish_time(STATEMENT_TIMEOUT)) / 2);
	found->until = TimestampTzPlusMilliseconds(found->at, ms);
	foreach(lc, ttl_inherit_tree(indexrelid))
	{
		TtlLook		look = {.until = found->until};
		TtlIndex	leaf;

		found->more_due = found->more_due || GetCurrentTimestamp() >= found->until;
		if (found->more_due && found->rows > 0)
			return;
		if (get_rel_relkind(lfirst_oid(lc)) != RELKIND_INDEX ||
			!ttl_state_describe(lfirst_oid(lc), true, &leaf) ||
			leaf.state != TTL_ACTIVE || leaf.citus.kind == TTL_CITUS_SHELL ||
			!ConditionalLockRelationOid(leaf.relid, AccessShareLock) ||
			!ConditionalLockRelationOid(leaf.indexrelid, AccessShareLock))
			continue;
		ttl_look_at(&leaf, found->at, &look);
		found->due += look.count;
		found->more_due = found->more_due || look.stopped;
		ttl_cutoff_init(&found->cutoff, &leaf, found->at);
		ttl_look_sample(&leaf, SAMPLE_PAGES, count_entry, found);
	}
}

/*
 * Says what becomes of rows that are due, or of partitions, and by whom, as the end of a message
 * that has this hint.  False where nobody deletes them until somebody changes that.  A lock, or a
 * snapshot that is older than the index, passes.
 */
static bool
find_future(const TtlIndex *index, bool partitions, const char **detail, const char **hint)
{
	bool		archive = OidIsValid(index->option.archive_to);
	const char *to_do = archive ? "move" : !partitions ? "delete" :
	index->option.detach_partitions ? "detach" : "drop";
	const char *does = index->option.detach_partitions && partitions ? "detaches" :
	psprintf("%ss", to_do);
	TtlIndex	now;
	TtlVisitor	visitor;
	const char *why;

	if (index->option.paused)
	{
		*detail = psprintf("Nothing %s them while the index is paused.", does);
		*hint = "ttl_index.unpause_index() lets it go on.";
		return false;
	}
	if (ttl_state_describe(index->indexrelid, false, &now) &&
		(now.state == TTL_NO_REPLICA_IDENTITY || now.state == TTL_OWNER_LACKS_PRIVILEGE ||
		 now.state == TTL_ARCHIVE_MISMATCH))
	{
		*detail = psprintf("Nobody %s them: %s.", does, now.reason);
		*hint = now.hint;
		return false;
	}
	ttl_visitor_find(&visitor);
	why = ttl_visitor_why_none(&visitor, index->owner);
	if (why != NULL)
	{
		*detail = psprintf("Nobody %s them: %s.", does, why);
		*hint = visitor.hint;
		return false;
	}
	*detail = psprintf("The next %s begins to %s them%s.",
					   ttl_visitor_is_session(&visitor, index->owner) ?
					   "ttl_index.run_pass()" : "pass", to_do,
					   archive ? psprintf(" to table %s", ttl_archive_name(index->option.archive_to)) : "");
	return true;
}

/* Reports how many partitions are due as a whole: of all, or of the index's own one. */
static int64
report_partitions_due(const TtlIndex *index)
{
	const char *detail;
	const char *hint = "ttl_index.due_count() counts their rows.";
	int			due = 0;

	if (index->governor == index->indexrelid)
		due = list_length(ttl_drop_due(index, GetCurrentTimestamp()));
	else if (index->parent == index->governor)
	{
		TtlPartition partition;
		TtlCutoff	cutoff;

		ttl_bounds_read_one(index->relid, &partition);
		ttl_cutoff_init(&cutoff, index, GetCurrentTimestamp());
		due = ttl_leaves_partition_is_due(&partition, &cutoff) ? 1 : 0;
	}
	if (due == 0)
		return 0;
	(void) find_future(index, true, &detail, &hint);
	ereport(NOTICE,
			(errmsg_plural("%d partition of table \"%s\" is due at once",
						   "%d partitions of table \"%s\" are due at once",
						   due, due, get_rel_name(IndexGetRelation(index->governor, false))),
			 errdetail_internal("%s", detail),
			 errhint("%s", hint)));
	return due;
}

/* Tells the client how many rows are due now. */
static void
report_rows_due(const TtlIndex *index, const Found *found)
{
	const char *detail;
	const char *hint = "ttl_index.due_count() counts them exactly.";

	(void) find_future(index, false, &detail, &hint);
	ereport(NOTICE,
			(found->more_due ?
			 errmsg_plural("at least %lld row of table \"%s\" is due at once",
						   "at least %lld rows of table \"%s\" are due at once",
						   (unsigned long) found->due,
						   (long long) found->due, get_rel_name(index->relid)) :
			 errmsg_plural("about %lld row of table \"%s\" is due at once",
						   "about %lld rows of table \"%s\" are due at once",
						   (unsigned long) found->due,
						   (long long) found->due, get_rel_name(index->relid)),
			 errdetail_internal("%s", detail),
			 errhint("%s", hint)));
}

/* A query for what documents hold where a date should be; NULL if the key is no path. */
static char *
kinds_query(const TtlIndex *index)
{
	AttrNumber	attnum;
	Node	   *key;
	List	   *arguments;
	List	   *context;

	if (!ttl_key_read(index->indexrelid, &attnum, &key) ||
		ttl_key_path_text(key, index->relid) == NULL)
		return NULL;
	arguments = ttl_function_arguments((FuncExpr *) key);
	context = deparse_context_for(get_rel_name(index->relid), index->relid);
	return psprintf("SELECT jsonb_typeof(jsonb_extract_path(%s, VARIADIC %s)), count(*) FROM %s GROUP BY 1;",
					deparse_expression(linitial(arguments), context, false, false),
					deparse_expression(lsecond(arguments), context, false, false),
					ttl_name_qualified(index->relid));
}

/* Warns of a filter that keeps all rows with a date, as "deleted_at IS NULL" does. */
static bool
report_never(const TtlIndex *index)
{
	AttrNumber	attnum;
	Node	   *key;
	ListCell   *lc;

	if (!ttl_key_read(index->indexrelid, &attnum, &key))
		return false;
	key = ttl_key_node(index->relid, attnum, key);
	foreach(lc, index->option.filter)
	{
		NullTest   *test = lfirst(lc);

		if (!IsA(test, NullTest) || test->nulltesttype != IS_NULL || !equal(test->arg, key))
			continue;
		ereport(WARNING,
				(errmsg("no row of table \"%s\" can expire by TTL index \"%s\"",
						get_rel_name(index->relid), get_rel_name(index->indexrelid)),
				 errdetail("Its filter leaves out all rows that have a date under the key."),
				 errhint("A filter says which rows expire. Those without a date never do.")));
		return true;
	}
	return false;
}

/* Warns where no row has a date, or a quarter of the dates or more are far from today. */
static void
report_dates(const TtlIndex *index, const Found *found)
{
	if (found->dates == 0)
	{
		char	   *query = kinds_query(index);

		ereport(WARNING,
				(errmsg("no row in a sample of table \"%s\" has a date under the key of TTL index \"%s\"",
						get_rel_name(index->relid), get_rel_name(index->indexrelid)),
				 errdetail("%lld rows were looked at. Rows without a date never expire.",
						   (long long) found->rows),
				 query ? errhint("See what is there: %s", query) : 0));
	}
	for (int i = 0; i < lengthof(odds); i++)
	{
		if (found->odd[i] > 0 && found->odd[i] >= found->dates / 4)
			ereport(WARNING,
					(errmsg("dates under the key of TTL index \"%s\" %s",
							get_rel_name(index->indexrelid), odds[i].where),
					 errdetail("So do %lld of %lld dates that were looked at. %s",
							   (long long) found->odd[i], (long long) found->dates,
							   odds[i].detail),
					 errhint("%s", odds[i].hint)));
	}
}

/*
 * Tells the client how many rows are due now by a TTL index, if it is new who will delete
 * what, and warns where dates are missing or odd.
 */
void
ttl_notice_report_due(Oid indexrelid, bool is_new)
{
	TtlIndex	index;
	Found		found = {.at = GetCurrentTimestamp()};
	const char *detail;
	const char *hint = NULL;

	if (!message_level_is_interesting(WARNING) ||
		!ttl_state_describe(indexrelid, true, &index) ||
		index.state != TTL_ACTIVE || !index.option.present || index.option.seconds < 0)
		return;
	if (is_new && report_never(&index))
		return;
	if (index.option.drop_partitions && !index.option.boundary_rows)
		found.due = report_partitions_due(&index);
	else
	{
		look_at_leaves(indexrelid, &found);
		if (found.due > 0)
			report_rows_due(&index, &found);
	}
	/* of documents with a TTL of their own, it is said of the main index */
	if (ttl_own_ttl_main(indexrelid) != indexrelid)
		return;
	if (is_new && found.due == 0 && !find_future(&index, false, &detail, &hint))
		ereport(NOTICE,
				(errmsg("rows of table \"%s\" will not be %s when they are due",
						get_rel_name(index.relid),
						OidIsValid(index.option.archive_to) ? "moved" : "deleted"),
				 errdetail_internal("%s", detail),
				 errhint("%s", hint)));
	if (found.rows > 0)
		report_dates(&index, &found);
}
