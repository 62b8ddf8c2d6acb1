/*-------------------------------------------------------------------------
 *
 * notice.c
 *	  The messages about a new TTL: how many rows are due at once, and which other
 *	  TTL indexes the table has.
 *
 * A TTL index on an old table deletes all old rows within a minute, and one on the wrong
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
#include "optimizer/optimizer.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/lsyscache.h"
#include "utils/timeout.h"
#include "utils/timestamp.h"

#include "ddl/ddl.h"
#include "due/due.h"
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
	bool		is_number = found->cutoff.unit != TTL_UNIT_NONE;
	int64		day = is_date ? 1 : USECS_PER_DAY;
	int64		key;

	found->rows += rows;
	if (date == NULL)
		return;
	found->dates += rows;
	key = is_number ? ttl_cutoff_instant(&found->cutoff, *date) : *date;
	if (!is_number && (is_date ? DATE_NOT_FINITE(key) : TIMESTAMP_NOT_FINITE(key)))
		return;
	if (key < FEBRUARY_1970 * day || key >= YEAR_10000 * day)
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
			!ttl_due_lock(leaf.relid, leaf.indexrelid))
			continue;
		ttl_look_at(&leaf, found->at, &look);
		found->due += look.count;
		found->more_due = found->more_due || look.stopped;
		ttl_cutoff_init(&found->cutoff, &leaf, found->at);
		ttl_look_sample(&leaf, SAMPLE_PAGES, count_entry, found);
	}
}

/*
 * Returns in detail and hint what a pass does to due rows, or to due partitions.  Returns false
 * if no pass does until somebody changes something; a lock, or a snapshot that is older than
 * the index, does not count.
 */
static bool
describe_deletion(const TtlIndex *index, bool partitions, const char **detail, const char **hint)
{
	const char *verb = OidIsValid(index->option.archive_to) ? "move" : !partitions ? "delete" :
		index->option.detach_partitions ? "detach" : "drop";
	TtlIndex	now;
	TtlStateFile file;
	TtlVisitor	visitor;
	const char *why;

	if (index->option.paused)
	{
		why = "the index is paused";
		*hint = psprintf("SELECT ttl_index.unpause_index(%s);",
						 quote_literal_cstr(ttl_name_qualified(index->indexrelid)));
	}
	else if (ttl_state_describe(index->indexrelid, false, &now) &&
			 (now.state == TTL_NO_REPLICA_IDENTITY || now.state == TTL_OWNER_LACKS_PRIVILEGE ||
			  now.state == TTL_ARCHIVE_MISMATCH))
	{
		why = now.reason;
		*hint = now.hint;
	}
	else
	{
		ttl_state_file_read(&file);
		ttl_visitor_find(MyDatabaseId, &file.hold, &visitor);
		why = ttl_visitor_why_none(&visitor, index->owner);
		if (why != NULL)
			*hint = visitor.hint;
	}
	*detail = why != NULL ? psprintf("No pass will %s them: %s.", verb, why) :
		psprintf("The next pass begins to %s them.", verb);
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
	if (ttl_inherit_parent(index->indexrelid, NULL) != index->governor)
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
				 errhint("In a document, a date is {\"$date\": ...}, or a string that is an RFC 3339 date-time with an offset. "
						 "For others give ttl_index.create_index() a unit, or a time_zone.")));
	else if (found->odd > 0 && found->odd >= found->dates / 4)
		ereport(WARNING,
				(errmsg("dates under the key of TTL index \"%s\" are far from today",
						get_rel_name(index->indexrelid)),
				 errdetail("%lld of %lld sampled dates are before February 1970 or after the year 9999.",
						   (long long) found->odd, (long long) found->dates),
				 index->option.unit != TTL_UNIT_NONE ?
				 errhint("Check their unit, which is %s here.", ttl_keytype_unit_name(index->option.unit)) :
				 errhint("Check their unit: to_timestamp() takes seconds, {\"$date\": ...} takes milliseconds.")));
}

/* Tells of foreign keys that make each delete read a whole table, for lack of an index. */
static void
report_missing_indexes(Oid relid)
{
	ListCell   *lc;

	foreach(lc, ttl_references_to(relid))
	{
		const TtlReference *reference = lfirst(lc);
		char	   *command = ttl_references_missing_index(reference);

		if (command != NULL)
			ereport(NOTICE,
					(errmsg("table \"%s\" is read as a whole for each row that is deleted from table \"%s\"",
							get_rel_name(reference->relid), get_rel_name(relid)),
					 errdetail("Foreign key \"%s\" has no index on its columns.",
							   get_constraint_name(reference->constraint)),
					 errhint("%s;", command)));
	}
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
				(errmsg("rows of table \"%s\" will not be deleted when they are due",
						get_rel_name(index.relid)),
				 errdetail_internal("%s", detail),
				 errhint("%s", hint)));
	if (is_new)
		report_missing_indexes(index.relid);
	if (found.rows > 0)
		report_dates(&index, &found);
}

/* What matters of an index to other TTL indexes. */
typedef struct Side
{
	TtlDate		date;
	bool		uses_own_ttl;
	List	   *filter;			/* without the condition on own TTLs */
} Side;

/* Reads an index, whether it has a TTL or not. */
static bool
read_side(Oid indexrelid, Side *side)
{
	TtlOption	option;

	if (!ttl_option_read(indexrelid, &option) || option.problem != NULL ||
		!ttl_own_ttl_date(indexrelid, &side->date))
		return false;
	side->uses_own_ttl = side->date.ttl != NULL ||
		ttl_own_ttl_asked_for(option.filter) != NULL;
	side->filter = ttl_own_ttl_plain_filter(option.filter);
	return true;
}

/*
 * Finds another TTL index of the table that can hold the same rows.  One of the same date that
 * ignores own TTLs which this one uses, or the other way round, is reported at elevel.
 */
static Oid
find_overlap(Oid relid, Oid itself, const Side *side, int elevel)
{
	Oid			found = InvalidOid;
	ListCell   *lc;

	foreach(lc, ttl_catalog_table_indexes(relid))
	{
		Oid			indexrelid = lfirst_oid(lc);
		TtlOption	option;
		Oid			governor;
		Side		other;
		bool		same_date;

		if (indexrelid == itself || !read_side(indexrelid, &other) ||
			!ttl_catalog_governor(indexrelid, &governor, &option) ||
			!option.present || option.problem != NULL)
			continue;
		same_date = side->date.attnum == other.date.attnum &&
			equal(side->date.expression, other.date.expression);

		/* The two indexes for documents with own TTLs are one TTL index. */
		if ((same_date && side->uses_own_ttl && other.uses_own_ttl) ||
			predicate_refuted_by(other.filter, side->filter, true))
			continue;
		found = OidIsValid(found) ? found : indexrelid;
		if (!same_date || side->uses_own_ttl == other.uses_own_ttl)
			continue;
		ereport(elevel,
				(errcode(ERRCODE_DUPLICATE_OBJECT),
				 side->uses_own_ttl ?
				 errmsg("TTL index \"%s\" on the same key ignores the documents' own TTLs",
						get_rel_name(indexrelid)) :
				 errmsg("TTL index \"%s\" on the same key uses the documents' own TTLs",
						get_rel_name(indexrelid)),
				 errdetail("TTL indexes are independent, so documents with a longer TTL of their own would be deleted."),
				 errhint("SELECT ttl_index.remove_ttl(%s);",
						 quote_literal_cstr(ttl_name_qualified(indexrelid)))));
		return InvalidOid;
	}
	return found;
}

/*
 * Raises an error if of a TTL index to be created and another one on the same date, one would
 * delete documents that must live longer by the other.
 */
void
ttl_notice_check_overlap(Oid relid, const TtlKey *key, List *filter)
{
	Side		side = {
		.date = {key->expression ? InvalidAttrNumber : key->attnum, key->expression},
		.uses_own_ttl = ttl_own_ttl_asked_for(filter) != NULL,
		.filter = ttl_own_ttl_plain_filter(filter)
	};

	(void) find_overlap(relid, InvalidOid, &side, ERROR);
}

/*
 * Tells the client of another TTL index on the table of a new one.  DDL, which also restores
 * dumps, only warns of indexes of which one ignores own TTLs that the other one uses.
 */
void
ttl_notice_report_overlap(Oid indexrelid, int elevel)
{
	Oid			relid = IndexGetRelation(indexrelid, false);
	Side		side;
	TtlOption	own;
	TtlOption	others;
	Oid			other;

	if (!read_side(indexrelid, &side))
		return;
	other = find_overlap(relid, indexrelid, &side, elevel);
	if (!OidIsValid(other) || side.date.ttl != NULL)
		return;

	/* rows that one of them would move can be deleted by the other one */
	if (ttl_option_read(indexrelid, &own) && ttl_option_read(other, &others) &&
		OidIsValid(own.archive_to) != OidIsValid(others.archive_to))
	{
		bool		moves = OidIsValid(own.archive_to);
		char	   *archive = ttl_name_find(moves ? own.archive_to : others.archive_to);

		ereport(WARNING,
				(errmsg("TTL index \"%s\" deletes rows that TTL index \"%s\" would move to an archive",
						get_rel_name(moves ? other : indexrelid),
						get_rel_name(moves ? indexrelid : other)),
				 errdetail("A row is deleted or moved by the index that makes it due first."),
				 errhint("SELECT * FROM ttl_index.coll_mod_index(%s, %d, archive_to => %s);",
						 quote_literal_cstr(ttl_name_qualified(moves ? other : indexrelid)),
						 moves ? others.seconds : own.seconds,
						 archive ? quote_literal_cstr(archive) : "...")));
	}
	else
		ereport(NOTICE,
				(errmsg("table \"%s\" already has TTL index \"%s\"",
						get_rel_name(relid), get_rel_name(other)),
				 errdetail("A row is deleted as soon as any of its TTL indexes makes it due.")));
}
