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

/* The text that samples the table: rows, rows with a date, rows that are due. */
static char *
sample_query(const TtlIndex *index, double percent)
{
	bool		partitioned = index->relkind == RELKIND_PARTITIONED_INDEX;
	char	   *relname = quote_qualified_identifier(get_namespace_name(get_rel_namespace(index->relid)),
													 get_rel_name(index->relid));
	char	   *filter = "true";
	char	   *due = "k OPERATOR(pg_catalog.<=) $1";

	if (index->option.filter != NIL)
		filter = deparse_expression((Node *) make_ands_explicit(index->option.filter),
									deparse_context_for(get_rel_name(index->relid),
														index->relid),
									false, false);
	if (index->keytype != TIMESTAMPTZOID)
		due = psprintf("k OPERATOR(pg_catalog.<=) pg_catalog.timezone(%s, $1)",
					   quote_literal_cstr(index->option.time_zone));
	return psprintf("SELECT pg_catalog.count(*), pg_catalog.count(k), "
					"pg_catalog.count(*) FILTER (WHERE %s) "
					"FROM (SELECT %s AS k FROM %s%s TABLESAMPLE pg_catalog.system (%f) "
					"WHERE (%s)) AS s",
					due, pg_get_indexdef_columns(index->indexrelid, false),
					partitioned ? "" : "ONLY ", relname, percent, filter);
}

static int64
spi_int64(int column)
{
	bool		isnull;

	return DatumGetInt64(SPI_getbinval(SPI_tuptable->vals[0],
									   SPI_tuptable->tupdesc, column,
									   &isnull));
}

/*
 * Tells the client how many rows are due now by this TTL index, and warns where
 * no row has a date.
 */
void
ttl_report_due(Oid indexrelid)
{
	TtlIndex	index;
	TtlUser		saved;
	Oid			argtype = TIMESTAMPTZOID;
	Datum		arg;
	double		percent;
	int64		blocks;
	int64		rows;
	int64		dates;
	int64		due;

	if (!ttl_catalog_describe(indexrelid, true, &index) ||
		index.state != TTL_ACTIVE || !index.option.present)
		return;
	blocks = count_blocks(index.relid);
	if (blocks == 0)
		return;
	percent = Min(100.0, 100.0 * SAMPLE_BLOCKS / blocks);
	arg = TimestampTzGetDatum(GetCurrentTimestamp() -
							  (int64) index.option.seconds * USECS_PER_SEC);

	ttl_become_owner(index.owner, &saved);
	SPI_connect();
	if (SPI_execute_with_args(sample_query(&index, percent), 1, &argtype, &arg,
							  NULL, true, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not sample table %u", index.relid);
	rows = spi_int64(1);
	dates = spi_int64(2);
	due = spi_int64(3) * 100.0 / percent;
	SPI_finish();
	ttl_restore_user(&saved);

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
	if (rows > 0 && dates == 0)
		ereport(WARNING,
				(errmsg("no row in a sample of table \"%s\" has a date under the key of TTL index \"%s\"",
						get_rel_name(index.relid), get_rel_name(indexrelid)),
				 errdetail("%lld rows were looked at. Rows without a date never expire.",
						   (long long) rows)));
}
