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
 *	  src/notice.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "nodes/makefuncs.h"
#include "storage/bufmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/ruleutils.h"
#include "utils/timestamp.h"

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

/* The FROM and WHERE of a sample: what the index holds of so many blocks. */
static char *
sample_source(const TtlIndex *index, double percent)
{
	char	   *filter = "true";

	if (index->option.filter != NIL)
		filter = deparse_expression((Node *) make_ands_explicit(index->option.filter),
									deparse_context_for(get_rel_name(index->relid),
														index->relid),
									false, false);
	return psprintf("FROM ONLY %s TABLESAMPLE pg_catalog.system (%f) WHERE (%s)",
					ttl_qualified_name(index->relid), percent, filter);
}

/* The text that samples the table: rows, rows with a date, rows that are due. */
static char *
sample_query(const TtlIndex *index, double percent)
{
	char	   *due = "k OPERATOR(pg_catalog.<=) $1";

	if (index->keytype != TIMESTAMPTZOID)
		due = psprintf("k OPERATOR(pg_catalog.<=) pg_catalog.timezone(%s, $1)",
					   quote_literal_cstr(index->option.time_zone));
	return psprintf("SELECT pg_catalog.count(*), pg_catalog.count(k), "
					"pg_catalog.count(*) FILTER (WHERE %s) "
					"FROM (SELECT %s AS k %s) AS s",
					due, pg_get_indexdef_columns(index->indexrelid, false),
					sample_source(index, percent));
}

/*
 * The text that finds what most documents of a sample hold where a date should
 * be; NULL where the key is no path.
 */
static char *
kinds_query(const TtlIndex *index, double percent)
{
	AttrNumber	attnum;
	Node	   *expression;
	List	   *context;
	List	   *args;

	if (!ttl_index_key(index->indexrelid, &attnum, &expression) ||
		ttl_key_path_text(expression, index->relid) == NULL)
		return NULL;
	args = ((FuncExpr *) expression)->args;
	context = deparse_context_for(get_rel_name(index->relid), index->relid);
	return psprintf("SELECT CASE kind WHEN 'string' THEN 'strings that are no RFC 3339 date-time with an offset' "
					"WHEN 'number' THEN 'numbers' WHEN 'object' THEN 'objects without a valid $date' "
					"WHEN 'array' THEN 'arrays without a date' WHEN 'boolean' THEN 'booleans' "
					"WHEN 'null' THEN 'nulls' ELSE 'nothing' END "
					"FROM (SELECT pg_catalog.jsonb_typeof(%s OPERATOR(pg_catalog.#>) %s) AS kind "
					"%s) AS s GROUP BY kind ORDER BY pg_catalog.count(*) DESC LIMIT 1",
					deparse_expression(linitial(args), context, false, false),
					deparse_expression(lsecond(args), context, false, false),
					sample_source(index, percent));
}

/* What is there instead of dates, in the caller's memory; NULL if unknown. */
static char *
what_instead(const TtlIndex *index, double percent)
{
	char	   *query = kinds_query(index, percent);

	if (query == NULL)
		return NULL;
	if (SPI_execute(query, true, 0) != SPI_OK_SELECT || SPI_processed == 0)
		return NULL;
	return SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);
}

static int64
spi_int64(int column)
{
	bool		isnull;

	return DatumGetInt64(SPI_getbinval(SPI_tuptable->vals[0],
									   SPI_tuptable->tupdesc, column,
									   &isnull));
}

/* What a sample holds. */
typedef struct Sample
{
	double		percent;
	Datum		due_at;			/* since then, a timestamptz */
	int64		rows;
	int64		dates;
	int64		due;
	char	   *instead;		/* of dates, where there are none, or NULL */
	int64		instead_rows;	/* of the table that this is about */
}			Sample;

/* Adds what a table without partitions holds.  Runs as its owner. */
static void
sample_leaf(const TtlIndex *leaf, Sample * sample)
{
	TtlUser		saved;
	MemoryContext caller = CurrentMemoryContext;
	Oid			argtype = TIMESTAMPTZOID;
	int64		rows;
	int64		dates;

	/* the caller declares something there, and holds a lock */
	ttl_keep_name(leaf->relid);
	ttl_become_owner(leaf->owner, &saved);
	SPI_connect();
	if (SPI_execute_with_args(sample_query(leaf, sample->percent), 1, &argtype,
							  &sample->due_at, NULL, true, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not sample table %u", leaf->relid);
	rows = spi_int64(1);
	dates = spi_int64(2);
	sample->rows += rows;
	sample->dates += dates;
	sample->due += spi_int64(3);
	if (dates == 0 && rows > sample->instead_rows)
	{
		char	   *instead = what_instead(leaf, sample->percent);

		sample->instead = instead ? MemoryContextStrdup(caller, instead) : NULL;
		sample->instead_rows = rows;
	}
	SPI_finish();
	ttl_restore_user(&saved);
}

/*
 * Samples all that a TTL index holds, each partition as its own owner: the planner
 * computes what stands in the definition of a table, and of its indexes.
 */
static void
sample_index(Oid indexrelid, Sample * sample)
{
	ListCell   *lc;

	foreach(lc, find_all_inheritors(indexrelid, NoLock, NULL))
	{
		TtlIndex	leaf;
		TtlOption	own;

		if (get_rel_relkind(lfirst_oid(lc)) != RELKIND_INDEX ||
			!ttl_catalog_describe(lfirst_oid(lc), true, &leaf) ||
			!ttl_option_read(lfirst_oid(lc), &own))
			continue;
		/* a partition can number its columns otherwise */
		leaf.option.filter = own.filter;
		sample_leaf(&leaf, sample);
	}
}

/* Tells the client how many partitions are due now, where they go as a whole. */
static void
report_buckets_due(const TtlIndex *index)
{
	int			due = list_length(ttl_buckets_due(index, GetCurrentTimestamp()));

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
ttl_report_due(Oid indexrelid)
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
		report_buckets_due(&index);
		return;
	}
	blocks = count_blocks(index.relid);
	if (blocks == 0)
		return;
	sample.percent = Min(100.0, 100.0 * SAMPLE_BLOCKS / blocks);
	sample.due_at = TimestampTzGetDatum(GetCurrentTimestamp() -
										(int64) index.option.seconds * USECS_PER_SEC);
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
