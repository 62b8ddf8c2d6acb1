/*-------------------------------------------------------------------------
 *
 * notice.c
 *	  How many rows are due at once, told to whoever declares a TTL.
 *
 * A TTL index on an old table deletes its whole past within a minute, and one
 * on the wrong column deletes nothing for ever.  Both are worth a line before it
 * is too late.  The numbers come from a sample of the table's blocks (all of
 * them where the table is small), read as the table's owner.
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
#include "catalog/pg_class.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "executor/tuptable.h"
#include "nodes/makefuncs.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "ddl/ddl.h"
#include "definition/definition.h"
#include "definition/key.h"
#include "definition/option.h"
#include "expire/index_scan.h"
#include "partition/partition.h"
#include "ttl_index.h"

#define SAMPLE_BLOCKS 2000

/*
 * The number of blocks of a table and its partitions; 0 where one of them is a
 * foreign table, which cannot be sampled.
 */
static int64
count_blocks(Oid relid)
{
	int64		blocks = 0;
	List	   *rels = list_make1_oid(relid);
	ListCell   *lc;

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

/* What a sample holds. */
typedef struct Sample
{
	double		percent;
	TimestampTz at;
	int64		rows;
	int64		dates;
	int64		due;
	const char *instead;		/* of dates, where there are none, or NULL */
	int64		instead_rows;	/* of the table that this is about */
} Sample;

/* Counts the rows of a sample of one table. */
typedef struct SampleReceiver
{
	DestReceiver pub;
	TtlCutoff	cutoff;
	bool		has_kind;		/* beside the key */
	int64		rows;
	int64		dates;
	int64		due;
	int64		kinds[lengthof(kinds)];
} SampleReceiver;

static void
start_sample(DestReceiver *self, int operation, TupleDesc desc)
{
}

static void
end_sample(DestReceiver *self)
{
}

static void
count_kind(SampleReceiver *receiver, TupleTableSlot *slot)
{
	bool		isnull;
	Datum		type = slot_getattr(slot, 2, &isnull);
	int			i = 0;

	while (kinds[i].type != NULL &&
		   (isnull || strcmp(TextDatumGetCString(type), kinds[i].type) != 0))
		i++;
	receiver->kinds[i]++;
}

static bool
count_row(TupleTableSlot *slot, DestReceiver *self)
{
	SampleReceiver *receiver = (SampleReceiver *) self;
	bool		isnull;
	Datum		key = slot_getattr(slot, 1, &isnull);

	receiver->rows++;
	if (receiver->has_kind)
		count_kind(receiver, slot);
	if (isnull)
		return true;
	receiver->dates++;
	if (ttl_cutoff_is_due(&receiver->cutoff,
						  ttl_index_scan_key(receiver->cutoff.keytype, key)))
		receiver->due++;
	return true;
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
sample_leaf(const TtlIndex *leaf, Sample *sample)
{
	SampleReceiver receiver = {.pub = {count_row, start_sample, end_sample, end_sample, DestNone}};
	TtlUser		saved;
	Relation	rel;
	Node	   *kind;
	int			most = 0;

	if (!ConditionalLockRelationOid(leaf->relid, AccessShareLock) ||
		!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(leaf->relid)))
		return;
	ttl_cutoff_init(&receiver.cutoff, leaf, sample->at);
	ttl_owner_become(leaf->owner, &saved);
	PushActiveSnapshot(GetTransactionSnapshot());
	rel = table_open(leaf->relid, NoLock);
	kind = kind_expression(leaf);
	receiver.has_kind = kind != NULL;
	(void) ttl_query_run(sample_query(leaf, rel, sample->percent, kind), NULL,
						 "sample of a TTL index", &receiver.pub);
	table_close(rel, NoLock);
	PopActiveSnapshot();
	ttl_owner_restore(&saved);

	sample->rows += receiver.rows;
	sample->dates += receiver.dates;
	sample->due += receiver.due;
	if (receiver.dates > 0 || receiver.rows <= sample->instead_rows)
		return;
	for (int i = 1; i < lengthof(kinds); i++)
	{
		if (receiver.kinds[i] > receiver.kinds[most])
			most = i;
	}
	sample->instead = kind != NULL ? kinds[most].text : NULL;
	sample->instead_rows = receiver.rows;
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

		if (get_rel_relkind(lfirst_oid(lc)) != RELKIND_INDEX ||
			!ttl_catalog_describe(lfirst_oid(lc), true, &leaf) ||
			leaf.state != TTL_ACTIVE ||
			!ttl_option_read(lfirst_oid(lc), &own))
			continue;
		/* a partition can number its columns otherwise */
		leaf.option.filter = own.filter;
		sample_leaf(&leaf, sample);
	}
}

/* Tells the client how many partitions are due now, where they go as a whole. */
static void
report_partitions_due(const TtlIndex *index)
{
	int			due = list_length(ttl_drop_due(index, GetCurrentTimestamp()));

	if (due > 0)
		ereport(NOTICE,
				(errmsg_plural("%d partition of table \"%s\" is due at once",
							   "%d partitions of table \"%s\" are due at once",
							   due, due, get_rel_name(index->relid)),
				 ttl_monitor_enabled ?
				 errdetail("The next pass begins to drop them.") :
				 errdetail("ttl_index.monitor_enabled is off here: ttl_index.run_pass() drops them."),
				 errhint("ttl_index.due_count() counts their rows.")));
}

/*
 * Tells the client how many rows are due now by this TTL index, and warns where
 * no row has a date.
 */
void
ttl_notice_report_due(Oid indexrelid)
{
	TtlIndex	index;
	Sample		sample = {0};
	int64		blocks;
	int64		due;

	if (!ttl_catalog_describe(indexrelid, true, &index) ||
		index.state != TTL_ACTIVE || !index.option.present ||
		index.option.seconds < 0)
		return;
	if (index.option.drop_partitions && !index.option.boundary_rows)
	{
		report_partitions_due(&index);
		return;
	}
	blocks = count_blocks(index.relid);
	if (blocks == 0)
		return;
	sample.percent = Min(100.0, 100.0 * SAMPLE_BLOCKS / blocks);
	sample.at = GetCurrentTimestamp();
	sample_index(indexrelid, &sample);
	due = sample.due * 100.0 / sample.percent;
	if (due > 0)
		ereport(NOTICE,
				(errmsg_plural("about %lld row of table \"%s\" is due at once",
							   "about %lld rows of table \"%s\" are due at once",
							   (unsigned long) due,
							   (long long) due, get_rel_name(index.relid)),
				 ttl_monitor_enabled ?
				 errdetail("The next pass begins to delete them.") :
				 errdetail("ttl_index.monitor_enabled is off here: ttl_index.run_pass() deletes them."),
				 errhint("ttl_index.due_count() counts them exactly.")));
	/* there is none under the second key of a pair where all TTLs are -1 */
	if (sample.rows > 0 && sample.dates == 0 && !OidIsValid(ttl_pair_main(indexrelid)))
		ereport(WARNING,
				(errmsg("no row in a sample of table \"%s\" has a date under the key of TTL index \"%s\"",
						get_rel_name(index.relid), get_rel_name(indexrelid)),
				 sample.instead ?
				 errdetail("%lld rows were looked at. Most of them hold %s there. Rows without a date never expire.",
						   (long long) sample.rows, sample.instead) :
				 errdetail("%lld rows were looked at. Rows without a date never expire.",
						   (long long) sample.rows)));
}
