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
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/index.h"
#include "catalog/pg_type.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/lsyscache.h"
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

/* Dates outside of these, in days since 2000-01-01, are probably mistakes. */
#define FEBRUARY_1970 (-10926)
#define YEAR_10000 2921940

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
	int64		odd;			/* of the dates */
} Found;

/* Counts the rows of an index tuple, and dates that are far from today. */
static void
count_entry(const int64 *date, int rows, void *arg)
{
	Found	   *found = arg;
	bool		is_date = found->cutoff.keytype == DATEOID;
	int64		day = is_date ? 1 : USECS_PER_DAY;

	found->rows += rows;
	if (date == NULL)
		return;
	found->dates += rows;
	if (is_date ? DATE_NOT_FINITE(*date) : TIMESTAMP_NOT_FINITE(*date))
		return;
	if (*date < FEBRUARY_1970 * day || *date >= YEAR_10000 * day)
		found->odd += rows;
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
 * Returns in detail and hint what happens to due rows, or to due partitions, and whose work
 * that is.  Returns false if nobody deletes them until somebody changes something; a lock, or
 * a snapshot that is older than the index, does not count.
 */
static bool
describe_deletion(const TtlIndex *index, bool partitions, const char **detail, const char **hint)
{
	bool		archive = OidIsValid(index->option.archive_to);
	const char *verb = archive ? "move" : !partitions ? "delete" :
		index->option.detach_partitions ? "detach" : "drop";
	const char *verb_s = psprintf("%s%s", verb, strcmp(verb, "detach") == 0 ? "es" : "s");
	TtlIndex	now;
	TtlVisitor	visitor;
	const char *why = NULL;

	if (index->option.paused)
	{
		*detail = psprintf("Nothing %s them while the index is paused.", verb_s);
		*hint = psprintf("SELECT ttl_index.unpause_index(%s);",
						 quote_literal_cstr(ttl_name_qualified(index->indexrelid)));
		return false;
	}
	if (ttl_state_describe(index->indexrelid, false, &now) &&
		(now.state == TTL_NO_REPLICA_IDENTITY || now.state == TTL_OWNER_LACKS_PRIVILEGE ||
		 now.state == TTL_ARCHIVE_MISMATCH))
	{
		why = now.reason;
		*hint = now.hint;
	}
	else
	{
		ttl_visitor_find(MyDatabaseId, &visitor);
		why = ttl_visitor_why_none(&visitor, index->owner);
		if (why != NULL)
			*hint = visitor.hint;
	}
	if (why != NULL)
		*detail = psprintf("Nobody %s them: %s.", verb_s, why);
	else if (archive)
		*detail = psprintf("The next pass begins to move them to table %s.",
						   ttl_archive_name(index->option.archive_to));
	else
		*detail = psprintf("The next pass begins to %s them.", verb);
	return why == NULL;
}

/* Counts the partitions that are due as a whole: of all, or the one of the index. */
static int
count_due_partitions(const TtlIndex *index)
{
	TtlPartition partition;
	TtlCutoff	cutoff;

	if (index->governor == index->indexrelid)
		return list_length(ttl_drop_due(index, GetCurrentTimestamp()));
	if (index->parent != index->governor)
		return 0;
	ttl_bounds_read_one(index->relid, &partition);
	ttl_cutoff_init(&cutoff, index, GetCurrentTimestamp());
	return ttl_leaves_partition_is_due(&partition, &cutoff) ? 1 : 0;
}

/* Warns where no row has a date, or a quarter of the dates or more are far from today. */
static void
report_dates(const TtlIndex *index, const Found *found)
{
	if (found->dates == 0)
		ereport(WARNING,
				(errmsg("no row in a sample of table \"%s\" has a date under the key of TTL index \"%s\"",
						get_rel_name(index->relid), get_rel_name(index->indexrelid)),
				 errdetail("The sample had %lld rows. Rows without a date never expire.",
						   (long long) found->rows),
				 OidIsValid(index->keyattnum) ? 0 :
				 errhint("In a document, a date is {\"$date\": ...}, or a string that is an RFC 3339 date-time with an offset.")));
	else if (found->odd > 0 && found->odd >= found->dates / 4)
		ereport(WARNING,
				(errmsg("dates under the key of TTL index \"%s\" are far from today",
						get_rel_name(index->indexrelid)),
				 errdetail("%lld of %lld sampled dates are before February 1970 or after the year 9999.",
						   (long long) found->odd, (long long) found->dates),
				 errhint("Check their unit: to_timestamp() takes seconds, {\"$date\": ...} takes milliseconds.")));
}

/*
 * Tells the client what is due now by a TTL index, and what happens to it, and warns where
 * dates are missing or odd.
 */
void
ttl_notice_report_due(Oid indexrelid, bool is_new)
{
	TtlIndex	index;
	Found		found = {.at = GetCurrentTimestamp()};
	bool		partitions;
	bool		deletes;
	const char *detail;
	const char *hint;

	if (!message_level_is_interesting(WARNING) ||
		!ttl_state_describe(indexrelid, true, &index) ||
		index.state != TTL_ACTIVE || !index.option.present || index.option.seconds < 0)
		return;
	partitions = index.option.drop_partitions && !index.option.boundary_rows;
	if (partitions)
		found.due = count_due_partitions(&index);
	else
		look_at_leaves(indexrelid, &found);
	hint = partitions ? "ttl_index.due_count() counts their rows." :
		"ttl_index.due_count() counts them exactly.";
	deletes = describe_deletion(&index, partitions, &detail, &hint);
	if (found.due > 0)
	{
		Oid			relid = partitions ? IndexGetRelation(index.governor, false) : index.relid;
		const char *count = psprintf("%s%lld", partitions ? "" :
									 found.more_due ? "at least " : "about ",
									 (long long) found.due);

		ereport(NOTICE,
				(partitions ?
				 errmsg_plural("%s partition of table \"%s\" is due at once",
							   "%s partitions of table \"%s\" are due at once",
							   (unsigned long) found.due, count, get_rel_name(relid)) :
				 errmsg_plural("%s row of table \"%s\" is due at once",
							   "%s rows of table \"%s\" are due at once",
							   (unsigned long) found.due, count, get_rel_name(relid)),
				 errdetail_internal("%s", detail),
				 errhint("%s", hint)));
	}
	/* of documents with a TTL of their own, it is said of the main index */
	if (ttl_own_ttl_main(indexrelid) != indexrelid)
		return;
	if (is_new && found.due == 0 && !deletes)
		ereport(NOTICE,
				(errmsg("rows of table \"%s\" will not be %s when they are due",
						get_rel_name(index.relid),
						OidIsValid(index.option.archive_to) ? "moved" : "deleted"),
				 errdetail_internal("%s", detail),
				 errhint("%s", hint)));
	if (found.rows > 0)
		report_dates(&index, &found);
}
