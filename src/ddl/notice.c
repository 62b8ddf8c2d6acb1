/*-------------------------------------------------------------------------
 *
 * notice.c
 *	  How many rows are due at once, told to whoever declares a TTL.
 *
 * A TTL index on an old table deletes its whole past within a minute, and one
 * on the wrong column deletes nothing for ever.  Both are worth a line before it
 * is too late.  The numbers come from a sample of the table's blocks (all of
 * them where the table is small), read as the table's owner, within a second.
 *
 * DDL says the same as our functions, but in a session that wants no notices nothing: a
 * restore would read samples of all its tables, and be told what was known before.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/ddl/notice.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/pg_class.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "portability/instr_time.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timeout.h"
#include "utils/timestamp.h"

#include "ddl/ddl.h"
#include "definition/archive.h"
#include "definition/citus.h"
#include "definition/definition.h"
#include "definition/key.h"
#include "definition/option.h"
#include "expire/index_scan.h"
#include "partition/partition.h"
#include "ttl_index.h"
#include "visitor.h"

/* How many blocks are sampled, from the first number to the last, and how long at most. */
#define FIRST_BLOCKS 20
#define SAMPLE_BLOCKS 2000
#define SAMPLE_MS 1000

/* Of shards: what part is sampled first, and when the sample is large enough. */
#define FIRST_PERCENT 0.01
#define ENOUGH_ROWS 5000

/*
 * The number of blocks of a table and its partitions; 0 where one of them is a
 * foreign table, which cannot be sampled, and -1 where it is not known here.
 */
static int64
count_blocks(Oid relid)
{
	int64		blocks = 0;
	List	   *rels = list_make1_oid(relid);
	ListCell   *lc;

	/* the rows are in shards, on other nodes */
	if (ttl_citus_kind(relid) == TTL_CITUS_SHELL)
		return -1;
	if (get_rel_relkind(relid) == RELKIND_PARTITIONED_TABLE)
		rels = find_all_inheritors(relid, AccessShareLock, NULL);
	foreach(lc, rels)
	{
		Relation	rel = table_open(lfirst_oid(lc), AccessShareLock);
		char		relkind = rel->rd_rel->relkind;

		if (relkind == RELKIND_RELATION)
			blocks += RelationGetNumberOfBlocks(rel);
		table_close(rel, NoLock);
		if (relkind == RELKIND_FOREIGN_TABLE)
			return 0;
	}
	return blocks;
}

/* What a document can hold where a date should be, by jsonb_typeof(). */
static const struct
{
	const char *type;
	const char *text;
}			kinds[] = {
	{"string", "strings that are no RFC 3339 date-time with an offset"},
	{"number", "numbers"},
	{"object", "objects without a valid $date"},
	{"array", "arrays without a date"},
	{"boolean", "booleans"},
	{"null", "nulls"},
	{NULL, "nothing"},
};

/* The first ones look as if a date was meant; null and nothing say that there is none. */
#define WRONG_KINDS 5

/* Dates that hardly anybody means, see count_odd(). */
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

/* What a sample holds. */
typedef struct Sample
{
	double		percent;
	const TtlIndex *leaf;		/* the one at hand */
	TimestampTz at;
	instr_time	begun;
	int64		ms;				/* how long it may take */
	bool		cut;			/* it took too long */
	int64		rows;
	int64		dates;
	int64		due;
	int64		odd[lengthof(odds)];
	bool		has_kinds;
	int64		kinds[lengthof(kinds)]; /* of rows without a date */
} Sample;

/* Counts the rows of a sample of one table. */
typedef struct SampleReceiver
{
	DestReceiver pub;
	TtlCutoff	cutoff;
	bool		has_kind;		/* beside the key */
	Sample	   *sample;
} SampleReceiver;

static void
start_sample(DestReceiver *self, int operation, TupleDesc desc)
{
}

static void
end_sample(DestReceiver *self)
{
}

static int64
elapsed_ms(instr_time since)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, since);
	return (int64) INSTR_TIME_GET_MILLISEC(now);
}

static void
count_kind(Sample *sample, TupleTableSlot *slot)
{
	bool		isnull;
	Datum		type = slot_getattr(slot, 2, &isnull);
	int			i = 0;

	while (kinds[i].type != NULL &&
		   (isnull || strcmp(TextDatumGetCString(type), kinds[i].type) != 0))
		i++;
	sample->kinds[i]++;
}

/* Counts a date that is far from today: somebody took one unit for another. */
static void
count_odd(Sample *sample, int64 key, bool due)
{
	if (TIMESTAMP_NOT_FINITE(key))
		return;
	if (key >= YEAR_10000 * USECS_PER_DAY)
		sample->odd[ODD_FUTURE]++;
	else if (due && key >= JANUARY_1970 * USECS_PER_DAY &&
			 key < FEBRUARY_1970 * USECS_PER_DAY)
		sample->odd[ODD_EPOCH]++;
	else if (due && key < YEAR_1900 * USECS_PER_DAY)
		sample->odd[ODD_PAST]++;
}

/* Counts a row; false when that has gone on for long enough. */
static bool
count_row(TupleTableSlot *slot, DestReceiver *self)
{
	SampleReceiver *receiver = (SampleReceiver *) self;
	Sample	   *sample = receiver->sample;
	bool		isnull;
	Datum		key = slot_getattr(slot, 1, &isnull);

	sample->rows++;
	if (!isnull)
	{
		int64		date = ttl_index_scan_key(receiver->cutoff.keytype, key);
		bool		due = ttl_cutoff_is_due(&receiver->cutoff, date);

		sample->dates++;
		sample->due += due;
		count_odd(sample, date, due);
	}
	else if (receiver->has_kind)
		count_kind(sample, slot);
	sample->cut = elapsed_ms(sample->begun) >= sample->ms;
	return !sample->cut;
}

/*
 * What documents hold where a date should be, as an expression; NULL where the key
 * is no path.
 */
static Node *
kind_expression(const TtlIndex *leaf)
{
	AttrNumber	attnum;
	Node	   *key;
	FuncExpr   *value;

	if (!ttl_key_read(leaf->indexrelid, &attnum, &key) ||
		ttl_key_path_text(key, leaf->relid) == NULL)
		return NULL;
	value = makeFuncExpr(F_JSONB_EXTRACT_PATH, JSONBOID, ((FuncExpr *) key)->args,
						 InvalidOid, InvalidOid, COERCE_EXPLICIT_CALL);
	/* other nodes are told so in words */
	value->funcvariadic = true;
	return (Node *) makeFuncExpr(F_JSONB_TYPEOF, TEXTOID, list_make1(value),
								 DEFAULT_COLLATION_OID, InvalidOid,
								 COERCE_EXPLICIT_CALL);
}

/* The query that samples a table: the key, and the kind where that is asked for. */
static Query *
sample_query(const TtlIndex *leaf, Relation rel, double percent, Node *kind)
{
	Query	   *query = ttl_query_make(CMD_SELECT, rel, leaf->option.filter);
	TableSampleClause *sample = makeNode(TableSampleClause);
	Const	   *argument = makeConst(FLOAT4OID, -1, InvalidOid, sizeof(float4),
									 Float4GetDatum((float4) percent), false, true);
	Node	   *key = ttl_query_key(leaf->indexrelid, rel, leaf->keytype);

	sample->tsmhandler = F_SYSTEM;
	sample->args = list_make1(argument);
	linitial_node(RangeTblEntry, query->rtable)->tablesample = sample;
	query->targetList = list_make1(makeTargetEntry((Expr *) key, 1, "key", false));
	if (kind != NULL)
		query->targetList = lappend(query->targetList,
									makeTargetEntry((Expr *) kind, 2, "kind", false));
	return query;
}

/*
 * Adds what a table without partitions holds.  Runs as its owner.  The caller has
 * locked it, unless it is being detached: its index is a part of the whole for longer
 * than itself.
 */
static void
sample_work(void *arg)
{
	Sample	   *sample = arg;
	const TtlIndex *leaf = sample->leaf;
	SampleReceiver receiver = {
		.pub = {count_row, start_sample, end_sample, end_sample, DestNone},
		.sample = sample
	};
	TtlUser		saved;
	Relation	rel;
	Node	   *kind;

	/* the caller can have bent what code of others calls */
	if (!has_privs_of_role(GetUserId(), leaf->owner) ||
		!ConditionalLockRelationOid(leaf->relid, AccessShareLock) ||
		!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(leaf->relid)) ||
		ttl_owner_of(leaf->relid) != leaf->owner)
		return;
	ttl_cutoff_init(&receiver.cutoff, leaf, sample->at);
	ttl_owner_become(leaf->owner, &saved);
	PushActiveSnapshot(GetTransactionSnapshot());
	rel = table_open(leaf->relid, NoLock);
	kind = kind_expression(leaf);
	receiver.has_kind = kind != NULL;
	sample->has_kinds = sample->has_kinds || receiver.has_kind;
	(void) ttl_query_run(sample_query(leaf, rel, sample->percent, kind), NULL, NULL,
						 "sample of a TTL index", &receiver.pub);
	table_close(rel, NoLock);
	PopActiveSnapshot();
	ttl_owner_restore(&saved);
}

/*
 * Samples all that a TTL index holds, each partition as its own owner: the planner
 * computes what stands in the definition of a table, and of its indexes.
 */
static void
sample_index(Oid indexrelid, Sample *sample)
{
	ListCell   *lc;

	foreach(lc, ttl_inherit_tree(indexrelid))
	{
		TtlIndex	leaf;
		TtlOption	own;

		sample->cut = sample->cut || elapsed_ms(sample->begun) >= sample->ms;
		if (sample->cut)
			return;
		if (get_rel_relkind(lfirst_oid(lc)) != RELKIND_INDEX ||
			!ttl_catalog_describe(lfirst_oid(lc), true, &leaf) ||
			leaf.state != TTL_ACTIVE ||
			!ttl_option_read(lfirst_oid(lc), &own))
			continue;
		/* a partition can number its columns otherwise */
		leaf.option.filter = own.filter;
		sample->leaf = &leaf;
		ttl_error_isolate(sample_work, sample);
	}
}

/*
 * How long sampling may take: what is declared must not fail because of it, so half of
 * what statement_timeout leaves is the end.
 */
static int64
time_to_sample(void)
{
	if (!get_timeout_active(STATEMENT_TIMEOUT))
		return SAMPLE_MS;
	return Min(SAMPLE_MS, TimestampDifferenceMilliseconds(GetCurrentTimestamp(),
														  get_timeout_finish_time(STATEMENT_TIMEOUT)) / 2);
}

/*
 * Samples so many blocks as the time allows.  A sample that is cut knows the beginning of
 * the table only, so a small one comes first, and a larger one as long as ten times the
 * time is left.  Where the number of blocks is not known (-1), the rows tell when there
 * are enough.
 */
static void
take_sample(Oid indexrelid, int64 blocks, Sample *sample)
{
	bool		is_known = blocks > 0;
	double		first = is_known ? 100.0 * FIRST_BLOCKS / blocks : FIRST_PERCENT;
	double		last = is_known ? 100.0 * SAMPLE_BLOCKS / blocks : 100.0;
	int64		ms = time_to_sample();
	instr_time	begun;

	INSTR_TIME_SET_CURRENT(begun);
	for (double percent = first;; percent *= 10)
	{
		Sample		next = {.at = sample->at,.begun = begun,.ms = ms};
		int64		before = elapsed_ms(begun);

		next.percent = Min(100.0, percent);
		sample_index(indexrelid, &next);
		if (next.cut && percent > first)
			return;
		*sample = next;
		if (next.cut || percent > Min(100.0, last) / 2 ||
			(!is_known && next.rows >= ENOUGH_ROWS) ||
			11 * elapsed_ms(begun) - 10 * before > ms)
			return;
	}
}

/* Who will delete what is due, as the end of a message. */
typedef struct Future
{
	bool		nobody;
	const char *detail;
	const char *hint;
} Future;

/*
 * What of the table itself keeps its rows from being deleted, until somebody changes that;
 * TTL_ACTIVE for nothing.  Fills in what its texts need.  A lock, or a snapshot that is
 * older than the index, passes.
 */
static void
find_obstacle(const TtlIndex *index, TtlIndex *now)
{
	if (!ttl_catalog_describe(index->indexrelid, false, now) ||
		(now->state != TTL_NO_REPLICA_IDENTITY &&
		 now->state != TTL_OWNER_LACKS_PRIVILEGE &&
		 now->state != TTL_OPTION_NOT_EXECUTABLE &&
		 now->state != TTL_ARCHIVE_MISMATCH))
		now->state = TTL_ACTIVE;
}

/* What becomes of rows that are due, or of partitions, and by whom. */
static Future
find_future(const TtlIndex *index, bool partitions, const char *hint)
{
	bool		archive = OidIsValid(index->option.archive_to);
	const char *to_do = archive ? "move" : !partitions ? "delete" :
	index->option.detach_partitions ? "detach" : "drop";
	const char *does = index->option.detach_partitions && partitions ? "detaches" :
	psprintf("%ss", to_do);
	TtlIndex	obstacle;
	TtlVisitor	visitor;
	const char *why;

	find_obstacle(index, &obstacle);
	if (index->option.paused)
		return (Future)
	{
		true, psprintf("Nothing %s them while the index is paused.", does),
			"ttl_index.unpause_index() lets it go on."
	};
	if (obstacle.state != TTL_ACTIVE)
		return (Future)
	{
		true, psprintf("Nobody %s them: %s.", does, ttl_state_reason(&obstacle)),
			ttl_state_hint(&obstacle)
	};
	ttl_visitor_find(&visitor);
	why = ttl_visitor_why_none(&visitor, index->owner, index->owner);
	if (why != NULL)
		return (Future)
	{
		true, psprintf("Nobody %s them: %s.", does, why), visitor.hint
	};
	return (Future)
	{
		false,
			psprintf("The next %s begins to %s them%s.",
					 ttl_visitor_is_session(&visitor, index->owner, index->owner) ?
					 "ttl_index.run_pass()" : "pass", to_do,
					 archive ? psprintf(" to table %s", ttl_archive_name(index->option.archive_to)) : ""),
			hint
	};
}

/* Tells the client if nobody will delete rows when they are due. */
static void
report_nobody(const TtlIndex *index)
{
	Future		future = find_future(index, false, NULL);

	/* it was said of the main one of a pair */
	if (future.nobody && !OidIsValid(ttl_pair_main(index->indexrelid)))
		ereport(NOTICE,
				(errmsg("rows of table \"%s\" will not be %s when they are due",
						get_rel_name(index->relid),
						OidIsValid(index->option.archive_to) ? "moved" : "deleted"),
				 errdetail_internal("%s", future.detail),
				 errhint("%s", future.hint)));
}

/* How many partitions are due: of the whole, or this one where the index is of one. */
static int
count_partitions_due(const TtlIndex *index, TimestampTz at)
{
	TtlPartition partition;
	TtlCutoff	cutoff;

	if (index->governor == index->indexrelid)
		return list_length(ttl_drop_due(index, at));
	if (index->parent != index->governor)
		return 0;
	ttl_bounds_read_one(index->relid, &partition);
	ttl_cutoff_init(&cutoff, index, at);
	return ttl_leaves_partition_is_due(&partition, &cutoff) ? 1 : 0;
}

/* Tells the client how many partitions are due now, where they go as a whole. */
static int64
report_partitions_due(const TtlIndex *index)
{
	int			due = count_partitions_due(index, GetCurrentTimestamp());
	Future		future;

	if (due == 0)
		return 0;
	future = find_future(index, true, "ttl_index.due_count() counts their rows.");
	ereport(NOTICE,
			(errmsg_plural("%d partition of table \"%s\" is due at once",
						   "%d partitions of table \"%s\" are due at once",
						   due, due, get_rel_name(IndexGetRelation(index->governor, false))),
			 errdetail_internal("%s", future.detail),
			 errhint("%s", future.hint)));
	return due;
}

/* Tells the client how many rows are due now. */
static int64
report_rows_due(const TtlIndex *index, const Sample *sample)
{
	int64		due = sample->cut ? sample->due :
	(int64) (sample->due * 100.0 / sample->percent);
	Future		future;

	if (due == 0)
		return 0;
	future = find_future(index, false, "ttl_index.due_count() counts them exactly.");
	ereport(NOTICE,
			(sample->cut ?
			 errmsg_plural("at least %lld row of table \"%s\" is due at once",
						   "at least %lld rows of table \"%s\" are due at once",
						   (unsigned long) due,
						   (long long) due, get_rel_name(index->relid)) :
			 errmsg_plural("about %lld row of table \"%s\" is due at once",
						   "about %lld rows of table \"%s\" are due at once",
						   (unsigned long) due,
						   (long long) due, get_rel_name(index->relid)),
			 errdetail_internal("%s", future.detail),
			 errhint("%s", future.hint)));
	return due;
}

/* Is a part of something worth a warning? */
static bool
is_much(int64 part, int64 whole)
{
	return part > 0 && part >= whole / 4;
}

/* The one of the first kinds, so many, that most rows without a date hold. */
static const char *
most_frequent_kind(const Sample *sample, int count)
{
	int			most = 0;

	for (int i = 1; i < count; i++)
	{
		if (sample->kinds[i] > sample->kinds[most])
			most = i;
	}
	return kinds[most].text;
}

/* Warns where no row has a date. */
static void
report_no_date(const TtlIndex *index, const Sample *sample)
{
	ereport(WARNING,
			(errmsg("no row in a sample of table \"%s\" has a date under the key of TTL index \"%s\"",
					get_rel_name(index->relid), get_rel_name(index->indexrelid)),
			 sample->has_kinds ?
			 errdetail("%lld rows were looked at. Most of them hold %s there. Rows without a date never expire.",
					   (long long) sample->rows,
					   most_frequent_kind(sample, lengthof(kinds))) :
			 errdetail("%lld rows were looked at. Rows without a date never expire.",
					   (long long) sample->rows)));
}

/* Warns of a filter that says which rows are not to expire: it leaves out all that have a date. */
static bool
report_never(const TtlIndex *index)
{
	AttrNumber	attnum;
	Node	   *expression;

	if (!ttl_key_read(index->indexrelid, &attnum, &expression) ||
		!ttl_filter_excludes_key(index->option.filter,
								 ttl_key_node(index->relid, attnum, expression)))
		return false;
	ereport(WARNING,
			(errmsg("no row of table \"%s\" can expire by TTL index \"%s\"",
					get_rel_name(index->relid), get_rel_name(index->indexrelid)),
			 errdetail("Its filter leaves out all rows that have a date under the key."),
			 errhint("A filter says which rows expire. Those without a date never do.")));
	return true;
}

/* Warns where many documents hold something else than a date. */
static void
report_other_kinds(const TtlIndex *index, const Sample *sample)
{
	int64		others = 0;

	for (int i = 0; i < WRONG_KINDS; i++)
		others += sample->kinds[i];
	if (is_much(others, sample->rows))
		ereport(WARNING,
				(errmsg("many rows of table \"%s\" never expire by TTL index \"%s\"",
						get_rel_name(index->relid), get_rel_name(index->indexrelid)),
				 errdetail("Of %lld rows that were looked at, %lld hold something else than a date under the key, most of them %s.",
						   (long long) sample->rows, (long long) others,
						   most_frequent_kind(sample, WRONG_KINDS)),
				 errhint("Write dates as {\"$date\": ...}, or with an offset as in \"2024-02-29T12:34:56Z\".")));
}

/* Warns of dates that are far from today. */
static void
report_odd(const TtlIndex *index, const Sample *sample)
{
	for (int i = 0; i < lengthof(odds); i++)
	{
		if (is_much(sample->odd[i], sample->dates))
			ereport(WARNING,
					(errmsg("dates under the key of TTL index \"%s\" %s",
							get_rel_name(index->indexrelid), odds[i].where),
					 errdetail("So do %lld of %lld dates that were looked at. %s",
							   (long long) sample->odd[i], (long long) sample->dates,
							   odds[i].detail),
					 errhint("%s", odds[i].hint)));
	}
}

/* What report() is to look at. */
typedef struct Report
{
	Oid			indexrelid;
	bool		is_new;
} Report;

/*
 * Tells the client how many rows are due now by this TTL index, if it is new who will delete
 * what, and warns where dates are missing or odd.
 */
static void
report(void *arg)
{
	Oid			indexrelid = ((Report *) arg)->indexrelid;
	bool		is_new = ((Report *) arg)->is_new;
	TtlIndex	index;
	Sample		sample = {.percent = 100.0,.at = GetCurrentTimestamp()};
	TtlIndex	obstacle;
	bool		is_readable;
	int64		blocks;
	int64		due;

	if (!ttl_catalog_describe(indexrelid, true, &index) ||
		index.state != TTL_ACTIVE || !index.option.present ||
		index.option.seconds < 0)
		return;
	find_obstacle(&index, &obstacle);
	is_readable = obstacle.state != TTL_OWNER_LACKS_PRIVILEGE &&
		obstacle.state != TTL_OPTION_NOT_EXECUTABLE;
	if (is_new && is_readable && !OidIsValid(ttl_pair_main(indexrelid)) && report_never(&index))
		return;
	if (index.option.drop_partitions && !index.option.boundary_rows)
		due = report_partitions_due(&index);
	else
	{
		blocks = is_readable ? count_blocks(index.relid) : 0;
		if (blocks != 0)
			take_sample(indexrelid, blocks, &sample);
		due = report_rows_due(&index, &sample);
	}
	if ((is_new || !is_readable) && due == 0)
		report_nobody(&index);
	/* there is none under the second key of a pair where all TTLs are -1 */
	if (sample.rows == 0 || OidIsValid(ttl_pair_main(indexrelid)))
		return;
	if (sample.dates == 0)
		report_no_date(&index, &sample);
	else
		report_other_kinds(&index, &sample);
	report_odd(&index, &sample);
}

/*
 * The same, but whatever fails in it, in code of users or beside DDL of others, is no
 * reason to refuse what was declared.
 */
void
ttl_notice_report_due(Oid indexrelid, bool is_new)
{
	Report		what = {.indexrelid = indexrelid,.is_new = is_new};
	ErrorData  *edata;

	if (!message_level_is_interesting(WARNING))
		return;
	edata = ttl_error_catch(report, &what, true);
	if (edata == NULL)
		return;
	/* who cancels means all of it; code of users can raise the same */
	if (ttl_error_is_interrupt(edata, ERRCODE_QUERY_CANCELED))
		ReThrowError(edata);
	ereport(NOTICE,
			(errmsg("could not count what is due at once by TTL index \"%s\"",
					get_rel_name(indexrelid)),
			 errdetail_internal("%s", edata->message)));
	FreeErrorData(edata);
}
