/*-------------------------------------------------------------------------
 *
 * notice.c
 *	  The messages about a new TTL: how many rows are due at once, and which other
 *	  TTL indexes the table has.
 *
 * A TTL index on an old table deletes all old rows within a minute, and one on the wrong
 * column never deletes anything.  To show this, the due rows in the new index are counted, for
 * a second at most, and a sample of its pages shows which dates it has.  Foreign keys that delete
 * other rows with them are named.  CREATE INDEX does the same; a session that shows no notices,
 * such as a restore, is warned.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/sysattr.h"
#include "catalog/dependency.h"
#include "catalog/index.h"
#include "catalog/pg_class.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "optimizer/optimizer.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/timeout.h"
#include "utils/timestamp.h"

#include "ddl/ddl.h"
#include "due/due.h"
#include "partition/partition.h"
#include "server/server.h"
#include "state/state.h"
#include "ttl_index.h"

/* How long rows are counted at most, also in a session that shows no notices, such as a restore. */
#define COUNT_MS 1000
#define COUNT_MS_IN_RESTORE 20

/* So many rows at once are worth a warning, and so is half of a table. */
#define MANY_ROWS 1e6

/* How many rows are read to tell why none has a date, and how many fields of their documents. */
#define READ_ROWS 200
#define READ_FIELDS 100000

/*
 * Says when a pass begins to delete due rows, or drops due partitions; in detail and hint, how
 * that is.  Returns NULL if no pass does until somebody changes something; a lock, or a snapshot
 * that is older than the index, does not count.
 */
static const char *
describe_deletion(const TtlIndex *index, const char *verb, const char *them,
				  const char **detail, const char **hint)
{
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
	*detail = why != NULL ? psprintf("No pass will %s %s: %s.", verb, them, why) :
		psprintf("The next pass begins to %s %s.", verb, them);
	if (why != NULL)
		return NULL;
	return strcmp(visitor.status, "monitor") == 0 && ttl_monitor_sleep <= 60 ?
		"within a minute" : "by the next pass";
}

/* Tells how many rows, or partitions, are due at once; warns if that is much of the table. */
static void
report_share(const TtlIndex *index, const TtlShare *share, const char *verb, const char *when,
			 const char *detail, const char *hint)
{
	bool		whole = share->partitions > 0;
	unsigned long count = whole ? share->partitions : (unsigned long) rint(share->due);
	const char *name = get_rel_name(whole ? IndexGetRelation(index->governor, false) : index->relid);

	if (when != NULL &&
		(share->due > MANY_ROWS ||
		 (share->due > share->total / 2 && share->total > TTL_SHARE_ROWS)))
		ereport(WARNING,
				(errmsg_internal("%s will be %s%s %s", ttl_share_text(index, share), verb,
								 strcmp(verb, "drop") == 0 ? "ped" :
								 strcmp(verb, "detach") == 0 ? "ed" : "d", when),
				 errhint("SELECT ttl_index.pause_index(%s);",
						 quote_literal_cstr(ttl_name_qualified(index->governor)))));
	else if (count > 0)
		ereport(NOTICE,
				(whole ?
				 errmsg_plural("%lu partition of table \"%s\" is due at once",
							   "%lu partitions of table \"%s\" are due at once",
							   count, count, name) :
				 errmsg_plural("about %lu row of table \"%s\" is due at once",
							   "about %lu rows of table \"%s\" are due at once",
							   count, count, name),
				 errdetail_internal("%s", detail),
				 errhint("%s", hint)));
}

/* What is asked of the table itself. */
typedef struct Question
{
	const char *query;
	Oid			owner;
	char	   *answer;
} Question;

/* As CREATE INDEX does, this runs code of the table with the owner's rights, not the user's. */
static void
ask(void *arg)
{
	Question   *question = arg;
	Oid			user;
	int			context;

	GetUserIdAndSecContext(&user, &context);
	SetUserIdAndSecContext(question->owner, context | SECURITY_RESTRICTED_OPERATION | SECURITY_NOFORCE_RLS);
	question->answer = ttl_select_value(question->query);
	SetUserIdAndSecContext(user, context);
}

/* The first value of a query as the owner, or NULL; also after an error, such as a lack of rights. */
static char *
answer_to(const char *query, Oid owner)
{
	Question	question = {.query = query,.owner = owner};
	ErrorData  *edata = ttl_error_catch(ask, &question, false);

	if (edata != NULL && edata->sqlerrcode == ERRCODE_QUERY_CANCELED)
		ReThrowError(edata);
	return edata != NULL ? NULL : question.answer;
}

/*
 * Warns where no row has a date under an expression, a number or a UUID, unless what it is made of is
 * NULL: that may be for what has not happened yet.  Of documents, it tells whether there is a
 * number, or which path with dates is most like this one.
 */
static void
report_no_date(const TtlIndex *index, Node *key, int64 sampled)
{
	Oid			relid = index->relid;
	char	   *table = ttl_name_qualified(relid);
	char	   *rows = psprintf("(SELECT * FROM %s LIMIT %d) AS t", table, READ_ROWS);
	char	   *dotted = ttl_key_path_text(key, relid);
	bool		has_format = ttl_key_format(key)[0] != '\0';
	char	   *name = NULL;
	const char *column = NULL;
	const char *path = NULL;
	char	   *query = psprintf("FROM %s WHERE true", rows);
	Bitmapset  *attnums = NULL;
	int			i = -1;
	char	   *found;
	bool		is_number;

	pull_varattnos(key, 1, &attnums);
	while ((i = bms_next_member(attnums, i)) >= 0)
	{
		name = get_attname(relid, i + FirstLowInvalidHeapAttributeNumber, true);
		/* it can be the whole row */
		if (name == NULL)
			continue;
		column = quote_identifier(name);
		query = psprintf("%s AND %s IS NOT NULL", query, column);
	}
	if (dotted != NULL)
	{
		path = quote_literal_cstr(dotted + strlen(name) + 1);
		query = psprintf("WITH RECURSIVE nested (path, value) AS (SELECT '', %s FROM %s UNION ALL "
						 "SELECT path || '.' || key, e.value FROM nested, "
						 "jsonb_each(CASE jsonb_typeof(nested.value) WHEN 'object' THEN nested.value END) AS e "
						 "WHERE strpos(key, '.') = 0 AND path NOT LIKE '%%.%%.%%.%%.%%.%%.%%'), "
						 "field AS MATERIALIZED (SELECT * FROM nested LIMIT %d) "
						 "SELECT coalesce((SELECT min(CASE WHEN ttl_index.document_date_in(jsonb_build_object('date', value), 'UTC', 'date') IS NULL "
						 "THEN jsonb_typeof(value) ELSE 'local' END) FROM field WHERE path = '.' || %s AND value <> 'null'), "
						 "(SELECT path FROM field WHERE path NOT LIKE '%%$%%' "
						 "AND ttl_index.document_date(jsonb_build_object('date', value), 'date') IS NOT NULL "
						 "ORDER BY abs(length(path) - length(%s) - 1) + (SELECT count(*) FROM string_to_table(lower(path), NULL) AS c "
						 "WHERE strpos(lower(%s), c) = 0), path LIMIT 1), '') %s",
						 column, rows, READ_FIELDS, path, path, path, query);
	}
	else
		query = psprintf("SELECT '' %s", query);
	found = answer_to(query, index->owner);
	is_number = found != NULL && strcmp(found, "number") == 0;
	if (found != NULL)
		ereport(WARNING,
				(errmsg("no row in a sample of table \"%s\" has a date under the key of TTL index \"%s\"",
						get_rel_name(relid), get_rel_name(index->indexrelid)),
				 errdetail("The sample had %lld rows. Rows without a date never expire.",
						   (long long) sampled),
				 dotted == NULL ? 0 :
				 found[0] == '.' ? errhint("The nearest path that has dates is %s%s.", column, found) :
				 !has_format && (is_number || strcmp(found, "local") == 0) ?
				 errhint("A %s: DROP INDEX %s; SELECT ttl_index.create_index(%s, %s, %d, %s);",
						 is_number ? "number needs a unit" : "string without an offset needs a time zone",
						 ttl_name_qualified(index->indexrelid), quote_literal_cstr(table),
						 quote_literal_cstr(dotted), index->option.seconds,
						 is_number ? "unit => 'seconds'" : "time_zone => 'UTC'") :
				 errhint("In a document, a date is {\"$date\": ...}, or a string that is an RFC 3339 date-time with an offset. "
						 "%s",
						 has_format ? "Index an expression that reads another form." :
						 "For others give ttl_index.create_index() a unit, or a time_zone.")));
}

/* Warns where no row has a date, or dates are far from today. */
static void
report_dates(const TtlIndex *index, const TtlShare *share)
{
	AttrNumber	attnum;
	Node	   *key;

	if (!ttl_key_read(index->indexrelid, &attnum, &key))
		return;
	/* a column without dates is one for what has not happened yet */
	if (share->dates == 0 && (key != NULL || index->option.unit != TTL_UNIT_NONE))
		report_no_date(index, ttl_key_node(index->relid, attnum, key), share->rows);
	if (share->past > 0 || (share->future > 0 && share->future >= share->dates / 4))
		ereport(WARNING,
				(errmsg("dates under the key of TTL index \"%s\" are far from today",
						get_rel_name(index->indexrelid)),
				 errdetail("Of %lld sampled dates, %lld are before February 1970 and %lld after the year 9999.",
						   (long long) share->dates, (long long) share->past, (long long) share->future),
				 index->option.unit != TTL_UNIT_NONE ?
				 errhint("Check their unit, which is %s here.", ttl_keytype_units[index->option.unit]) :
				 ttl_key_format(key)[0] != '\0' ?
				 errhint("Check their unit or time zone, which is %s here.", ttl_key_format(key)) :
				 ttl_key_path_text(key, index->relid) != NULL ?
				 errhint("Check their unit: {\"$date\": ...} takes milliseconds.") :
				 key != NULL ?
				 errhint("Check their unit: to_timestamp() takes seconds. If 0 stands for none, leave it out by a filter.") :
				 share->past == 0 ? 0 :
				 errhint("If such a date stands for none, leave it out by a filter, such as %s > '1970-02-01', or make it NULL.",
						 quote_identifier(get_attname(index->relid, attnum, false)))));
}

/* Tells what else happens when rows of a table are deleted: by foreign keys, and by triggers. */
static void
report_attached(const TtlIndex *index)
{
	List	   *references = ttl_references_to(index->relid);
	char	   *tables = psprintf("%u", index->relid);
	StringInfoData detail;
	char	   *functions;
	ListCell   *lc;

	initStringInfo(&detail);
	foreach(lc, references)
	{
		const TtlReference *reference = lfirst(lc);
		bool		deletes = reference->action == FKCONSTR_ACTION_CASCADE;
		bool		keeps = reference->action == FKCONSTR_ACTION_NOACTION ||
			reference->action == FKCONSTR_ACTION_RESTRICT;

		appendStringInfo(&detail, "%s of %s %s", detail.len == 0 ? "Rows" : ", rows",
						 ttl_name_qualified(reference->relid),
						 deletes ? "are deleted with them" : keeps ? "keep them" : "are changed");
		if (deletes)
			tables = psprintf("%s, %u", tables, reference->relid);
	}
	if (references != NIL)
		ereport(NOTICE,
				(errmsg("rows of table \"%s\" are referenced by foreign keys",
						get_rel_name(index->relid)),
				 errdetail_internal("%s.", detail.data),
				 errhint("ttl_index.due_count() and ttl_index.preview() count table \"%s\" alone.",
						 get_rel_name(index->relid))));
	foreach(lc, references)
	{
		const TtlReference *reference = lfirst(lc);

		if (reference->missing_index != NULL)
			ereport(NOTICE,
					(errmsg("table \"%s\" is read as a whole for each row that is deleted from table \"%s\"",
							get_rel_name(reference->relid), get_rel_name(index->relid)),
					 errdetail("Foreign key \"%s\" has no index on its columns.",
							   get_constraint_name(reference->constraint)),
					 errhint("%s;", reference->missing_index)));
	}
	functions = answer_to(psprintf(
		"SELECT string_agg(DISTINCT format('ALTER FUNCTION %%s SET search_path = %%I, pg_temp;', p.oid::regprocedure, n.nspname), ' ') "
		"FROM pg_trigger AS t JOIN pg_proc AS p ON p.oid = tgfoid JOIN pg_namespace AS n ON n.oid = pronamespace "
		"JOIN pg_language AS l ON l.oid = prolang AND lanname NOT IN ('c', 'internal') "
		"WHERE tgrelid IN (%s) AND NOT tgisinternal AND tgenabled <> 'D' AND tgtype & 8 <> 0 "
		"AND NOT EXISTS (SELECT FROM unnest(proconfig) AS c WHERE c LIKE 'search\\_path=%%')",
		tables), index->owner);
	if (OidIsValid(getExtensionOfObject(RelationRelationId, index->relid)))
		ereport(NOTICE,
				(errmsg("pg_dump leaves out TTL index \"%s\"", get_rel_name(index->indexrelid)),
				 errdetail("Table \"%s\" belongs to an extension, so CREATE EXTENSION makes it, without this index.",
						   get_rel_name(index->relid))));
	if (functions != NULL)
		ereport(NOTICE,
				(errmsg("triggers for rows of table \"%s\" run with search_path = pg_catalog, pg_temp",
						get_rel_name(index->relid)),
				 errdetail("A function that sets no search_path fails here if it names a table without its schema."),
				 errhint("%s", functions)));
}

/*
 * Tells the client what is due now by a TTL index, and what happens to it, and warns where
 * dates are missing or odd.  The count ends when half of what statement_timeout leaves is over:
 * what is declared must not fail for it.
 */
void
ttl_notice_report_due(Oid indexrelid, bool is_new)
{
	TtlIndex	index;
	TtlShare	share;
	TimestampTz at = GetCurrentTimestamp();
	bool		shows_notices = message_level_is_interesting(NOTICE);
	int64		ms = shows_notices ? COUNT_MS : COUNT_MS_IN_RESTORE;
	bool		partitions;
	const char *verb;
	const char *when;
	const char *detail;
	const char *hint;

	if (!message_level_is_interesting(WARNING) ||
		!ttl_state_describe(indexrelid, true, &index) ||
		index.state != TTL_ACTIVE || !index.option.present || index.option.seconds < 0)
		return;
	if (get_timeout_active(STATEMENT_TIMEOUT))
		ms = Min(ms, TimestampDifferenceMilliseconds(at, get_timeout_finish_time(STATEMENT_TIMEOUT)) / 2);
	ttl_share_find(&index, at, TimestampTzPlusMilliseconds(at, ms), &share);
	partitions = index.option.drop_partitions && !index.option.boundary_rows;
	if (partitions && index.governor != indexrelid)
		share.partitions = ttl_inherit_parent(indexrelid, NULL) == index.governor &&
			ttl_leaves_table_is_due(&index, index.relid, at) ? 1 : 0;
	/* there is nothing to warn of */
	if (!shows_notices && share.due == 0 && share.partitions == 0 && share.rows == 0)
		return;
	verb = OidIsValid(index.option.archive_to) ? "move" : !partitions ? "delete" :
		index.option.detach_partitions ? "detach" : "drop";
	hint = psprintf("To count %s: SELECT ttl_index.due_count(%s);",
					partitions ? "their rows" : "them exactly",
					quote_literal_cstr(ttl_name_qualified(indexrelid)));
	when = describe_deletion(&index, verb,
							 (partitions ? share.partitions : rint(share.due)) == 1 ? "it" : "them",
							 &detail, &hint);
	report_share(&index, &share, verb, when, detail, hint);
	/* of documents with a TTL of their own, it is said of the main index */
	if (ttl_own_ttl_main(indexrelid) != indexrelid)
		return;
	if (is_new && share.due == 0 && share.partitions == 0 && when == NULL)
		ereport(NOTICE,
				(errmsg("rows of table \"%s\" will not be deleted when they are due",
						get_rel_name(index.relid)),
				 errdetail_internal("%s", detail),
				 errhint("%s", hint)));
	if (is_new && !partitions && shows_notices)
		report_attached(&index);
	if (share.rows > 0)
		report_dates(&index, &share);
}

/* Is a row that matches one filter known not to match the other one? */
static bool
excludes(List *filter, List *other)
{
	ListCell   *lc;

	if (predicate_refuted_by(other, filter, true))
		return true;
	/* core proves nothing of these: does the filter demand the opposite? */
	foreach(lc, other)
	{
		Node	   *opposite = copyObject(lfirst(lc));

		if (IsA(opposite, DistinctExpr))
			((DistinctExpr *) opposite)->xpr.type = T_OpExpr;
		else if (IsA(opposite, BooleanTest) && ((BooleanTest *) opposite)->booltesttype == IS_NOT_TRUE)
			opposite = (Node *) ((BooleanTest *) opposite)->arg;
		else if (IsA(opposite, BooleanTest) && ((BooleanTest *) opposite)->booltesttype == IS_NOT_FALSE)
			opposite = (Node *) make_notclause(((BooleanTest *) opposite)->arg);
		else
			continue;
		if (predicate_implied_by(list_make1(opposite), filter, false))
			return true;
	}
	return false;
}

/*
 * Finds another TTL index of the table that can hold the same rows.  One of the same date, of which
 * not both use the same own TTLs, is reported at elevel.
 */
Oid
ttl_notice_find_overlap(Oid relid, Oid itself, const TtlSide *side, int elevel)
{
	Oid			found = InvalidOid;
	bool		found_same = false;
	ListCell   *lc;

	foreach(lc, ttl_catalog_table_indexes(relid))
	{
		Oid			indexrelid = lfirst_oid(lc);
		TtlOption	option;
		Oid			governor;
		TtlSide		other;
		bool		same_date;
		bool		same_ttl;

		if (indexrelid == itself || !ttl_own_ttl_read(indexrelid, &other) ||
			!ttl_catalog_governor(indexrelid, &governor, &option) ||
			!option.present || option.problem != NULL)
			continue;
		same_date = side->attnum == other.attnum &&
			equal(side->expression, other.expression);
		same_ttl = equal(side->ttl, other.ttl);

		/* The two indexes for documents with own TTLs are one TTL index. */
		if ((same_date && same_ttl && side->ttl != NULL) ||
			excludes(side->filter, other.filter) || excludes(other.filter, side->filter))
			continue;
		if (!OidIsValid(found) || (same_date && !found_same))
			found = indexrelid;
		found_same = found_same || same_date;
		if (!same_date || same_ttl)
			continue;
		ereport(elevel,
				(errcode(ERRCODE_DUPLICATE_OBJECT),
				 other.ttl == NULL ?
				 errmsg("TTL index \"%s\" on the same key ignores the documents' own TTLs",
						get_rel_name(indexrelid)) :
				 side->ttl == NULL ?
				 errmsg("TTL index \"%s\" on the same key uses the documents' own TTLs",
						get_rel_name(indexrelid)) :
				 errmsg("TTL index \"%s\" on the same key takes the documents' own TTLs from another field",
						get_rel_name(indexrelid)),
				 errdetail("TTL indexes are independent, so documents with a longer TTL of their own would be deleted."),
				 errhint("SELECT ttl_index.remove_ttl(%s);",
						 quote_literal_cstr(ttl_name_qualified(indexrelid)))));
		return InvalidOid;
	}
	return found;
}

/*
 * Tells the client of another TTL index on the table of a new one.  DDL, which also restores
 * dumps, only warns of indexes of which one ignores own TTLs that the other one uses.
 */
void
ttl_notice_report_overlap(Oid indexrelid, int elevel)
{
	Oid			relid = IndexGetRelation(indexrelid, false);
	TtlSide		side;
	TtlOption	own;
	TtlOption	others;
	Oid			other;
	bool		moves;

	if (!ttl_own_ttl_read(indexrelid, &side))
		return;
	other = ttl_notice_find_overlap(relid, indexrelid, &side, elevel);
	if (!OidIsValid(other) || !side.is_main)
		return;

	/* rows that one of them would move can be deleted by the other one */
	moves = ttl_option_read(indexrelid, &own) && ttl_option_read(other, &others) &&
		OidIsValid(own.archive_to) != OidIsValid(others.archive_to);
	ereport(moves ? WARNING : NOTICE,
			(errmsg("table \"%s\" already has TTL index \"%s\"",
					get_rel_name(relid), get_rel_name(other)),
			 moves ?
			 errdetail("A row is deleted or moved by the index that makes it due first. Give both the same archive.") :
			 errdetail("A row is deleted as soon as any of its TTL indexes makes it due.")));
}
