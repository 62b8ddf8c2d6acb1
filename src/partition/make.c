/*-------------------------------------------------------------------------
 *
 * make.c
 *	  Making partitions of a time series ahead of the clock.
 *
 * The span is an option of the TTL index.  Partitions begin at multiples of it, counted from a
 * Monday, in the key's own time (UTC for timestamptz), and are made ahead of the clock.
 *
 * A partition is created as a table and then attached, which needs SHARE UPDATE EXCLUSIVE on
 * the partitioned table instead of ACCESS EXCLUSIVE.  Both need ACCESS EXCLUSIVE on the
 * DEFAULT partition.  If that has rows of the new one, it is not made until those rows have
 * expired.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/partition/make.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "catalog/partition.h"
#include "catalog/pg_type.h"
#include "commands/tablespace.h"
#include "executor/spi.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "partition/partition.h"
#include "state/state.h"
#include "ttl_index.h"

/* Monday, 2001-01-01 */
#define ORIGIN (INT64CONST(366) * USECS_PER_DAY)

int64
ttl_make_span(const TtlIndex *root)
{
	return root->option.bucket_seconds * USECS_PER_SEC;
}

/* Lists, as partitions to be made, what none covers between two keys. */
static List *
add_missing(List *missing, List *partitions, int64 from, int64 to)
{
	ListCell   *lc;

	foreach(lc, partitions)
	{
		const TtlPartition *partition = lfirst(lc);
		int64		lower = partition->has_lower ? partition->lower : PG_INT64_MIN;
		int64		upper = partition->has_upper ? partition->upper : PG_INT64_MAX;

		if (partition->is_default || upper <= from || lower >= to)
			continue;
		if (lower > from)
			missing = add_missing(missing, NIL, from, lower);
		from = upper;
	}
	if (from < to)
	{
		TtlPartition *partition = palloc0(sizeof(TtlPartition));

		partition->has_lower = partition->has_upper = true;
		partition->lower = from;
		partition->upper = to;
		missing = lappend(missing, partition);
	}
	return missing;
}

/* Lists the partitions that are missing from now up to so far ahead. */
List *
ttl_make_missing(const TtlIndex *root, TimestampTz at, int64 ahead)
{
	int64		span = ttl_make_span(root);
	int64		now;
	int64		past;
	List	   *missing = NIL;
	List	   *partitions;
	ListCell   *lc;

	if (span == 0)
		return NIL;
	partitions = ttl_bounds_read(root->relid);
	now = ttl_cutoff_clock(root, at);
	past = (now - ORIGIN) % span;
	for (int64 start = now - (past < 0 ? past + span : past); start <= now + ahead; start += span)
		missing = add_missing(missing, partitions, start, start + span);
	/* what is left of the past is for the DEFAULT partition */
	foreach(lc, missing)
	{
		if (((TtlPartition *) lfirst(lc))->upper <= now)
			missing = foreach_delete_current(missing, lc);
	}
	return missing;
}

/*
 * Lists the partitions of a time series that are to be made at this clock reading: for 24 spans
 * ahead, but at most for a day, and at least for 2 spans.
 */
List *
ttl_make_wanted(const TtlIndex *root, TimestampTz at)
{
	int64		span = ttl_make_span(root);

	return ttl_make_missing(root, at, Max(2 * span, Min(24 * span, USECS_PER_DAY)));
}

/* A key as a literal of its type. */
static char *
key_literal(const TtlIndex *root, int64 key)
{
	struct pg_tm tm;
	fsec_t		fsec;
	char		text[MAXDATELEN + 1];

	if (key == DT_NOBEGIN)
		return "'-infinity'";
	if (timestamp2tm(key, NULL, &tm, &fsec, NULL, NULL) != 0)
		elog(ERROR, "timestamp out of range");
	tm.tm_isdst = 0;
	EncodeDateTime(&tm, fsec, root->keytype == TIMESTAMPTZOID, 0, NULL, USE_ISO_DATES, text);
	return psprintf("'%s'", text);
}

/* The bounds of a partition, for CREATE TABLE and ATTACH PARTITION. */
char *
ttl_make_bounds(const TtlIndex *root, const TtlPartition *partition)
{
	return psprintf("FOR VALUES FROM (%s) TO (%s)",
					partition->has_lower ? key_literal(root, partition->lower) : "MINVALUE",
					partition->has_upper ? key_literal(root, partition->upper) : "MAXVALUE");
}

/* The name of a partition: that of the table, and its lower bound; NULL if it is gone. */
char *
ttl_make_name(const TtlIndex *root, const TtlPartition *partition)
{
	struct pg_tm tm;
	fsec_t		fsec;
	int64		unit = Min(ttl_make_span(root), partition->upper - partition->lower);
	char	   *table = get_rel_name(root->relid);
	char		label[64];
	int			length;

	if (table == NULL)
		return NULL;
	if (timestamp2tm(partition->lower, NULL, &tm, &fsec, NULL, NULL) != 0)
		elog(ERROR, "timestamp out of range");
	length = snprintf(label, sizeof(label), "_%04d_%02d_%02d",
					  tm.tm_year, tm.tm_mon, tm.tm_mday);
	if (unit % USECS_PER_DAY != 0 || partition->lower % USECS_PER_DAY != 0)
		length += snprintf(label + length, sizeof(label) - length, "_%02d",
						   tm.tm_hour);
	if (unit % USECS_PER_HOUR != 0 || partition->lower % USECS_PER_HOUR != 0)
		length += snprintf(label + length, sizeof(label) - length, "_%02d",
						   tm.tm_min);
	if (unit % USECS_PER_MINUTE != 0 || partition->lower % USECS_PER_MINUTE != 0)
		snprintf(label + length, sizeof(label) - length, "_%02d", tm.tm_sec);
	return ttl_name_with_suffix(table, label);
}

/* A name of the table's schema, for SQL text. */
char *
ttl_make_name_beside(Oid relid, const char *name)
{
	return quote_qualified_identifier(get_namespace_name(get_rel_namespace(relid)),
									  name);
}

/* " TABLESPACE ..." where the table has one that new partitions are to have. */
char *
ttl_make_tablespace_clause(Oid relid)
{
	Oid			tablespace = get_rel_tablespace(relid);

	return OidIsValid(tablespace) ?
		psprintf(" TABLESPACE %s",
				 quote_identifier(get_tablespace_name(tablespace))) : "";
}

/* The value that a query returns, or NULL; all functions in it are those of pg_catalog. */
char *
ttl_make_select(const char *query)
{
	MemoryContext caller = CurrentMemoryContext;
	char	   *value = NULL;
	int			level = NewGUCNestLevel();

	ttl_settings_set("search_path", "pg_catalog, pg_temp");
	SPI_connect();
	if (SPI_execute(query, false, 1) != SPI_OK_SELECT)
		elog(ERROR, "could not run: %s", query);
	if (SPI_processed > 0)
		value = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);
	if (value != NULL)
		value = MemoryContextStrdup(caller, value);
	SPI_finish();
	AtEOXact_GUC(false, level);
	return value;
}

/*
 * Gives a new partition the owner, privileges, row security and replication of its table.
 * create_time_series() makes it as the caller.  Without policies of its own, row security
 * denies direct reads.  Privileges by ALTER DEFAULT PRIVILEGES that the table does not grant
 * are revoked.
 */
void
ttl_make_follow_table(Oid parent, const char *name)
{
	Oid			relid = get_relname_relid(name, get_rel_namespace(parent));
	char	   *commands;

	if (!OidIsValid(relid) || ttl_inherit_parent(relid, NULL) != parent)
		elog(ERROR, "could not find partition \"%s\"", name);
	commands = ttl_make_select(psprintf("SELECT nullif(concat_ws(', ', "
										"CASE WHEN p.relowner <> c.relowner THEN format('OWNER TO %%I', pg_get_userbyid(p.relowner)) END, "
										"CASE WHEN p.relrowsecurity THEN 'ENABLE ROW LEVEL SECURITY' END, "
										"CASE WHEN p.relforcerowsecurity THEN 'FORCE ROW LEVEL SECURITY' END, "
										"CASE p.relreplident WHEN 'f' THEN 'REPLICA IDENTITY FULL' WHEN 'n' THEN 'REPLICA IDENTITY NOTHING' "
										"WHEN 'i' THEN (SELECT format('REPLICA IDENTITY USING INDEX %%I', own.relname) FROM pg_index AS i "
										"JOIN pg_inherits ON inhparent = i.indexrelid JOIN pg_index AS o ON o.indexrelid = inhrelid "
										"JOIN pg_class AS own ON own.oid = inhrelid "
										"WHERE i.indrelid = p.oid AND i.indisreplident AND o.indrelid = c.oid) END), '') "
										"FROM pg_class AS p, pg_class AS c WHERE p.oid = %u AND c.oid = %u",
										parent, relid));
	if (commands != NULL)
		ttl_citus_run_command(psprintf("ALTER TABLE %s %s", ttl_name_qualified(relid), commands));
	commands = ttl_make_select(psprintf("SELECT string_agg(format('REVOKE %%s%%s ON %%s FROM %%s', "
										"CASE WHEN g.granted THEN 'GRANT OPTION FOR ' END, a.privilege_type, %s, "
										"CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END), '; ') "
										"FROM pg_class AS c, LATERAL aclexplode(c.relacl) AS a, LATERAL ("
										"SELECT count(*) > 0 AS granted, coalesce(bool_or(b.is_grantable), false) AS grantable "
										"FROM pg_class AS p, LATERAL aclexplode(p.relacl) AS b "
										"WHERE p.oid = %u AND b.grantee IN (a.grantee, 0) AND b.privilege_type = a.privilege_type) AS g "
										"WHERE c.oid = %u AND a.grantee <> c.relowner "
										"AND (NOT g.granted OR (a.is_grantable AND NOT g.grantable))",
										quote_literal_cstr(ttl_name_qualified(relid)), parent, relid));
	if (commands != NULL)
		ttl_citus_run_command(commands);
}

void
ttl_make_attach(const TtlIndex *root, const TtlPartition *partition)
{
	char	   *table = ttl_name_qualified(root->relid);
	char	   *relname = ttl_make_name(root, partition);
	char	   *name = ttl_make_name_beside(root->relid, relname);

	if (OidIsValid(get_relname_relid(relname, get_rel_namespace(root->relid))))
		ereport(ERROR,
				(errcode(ERRCODE_DUPLICATE_TABLE),
				 errmsg("partition \"%s\" cannot be made because another relation has its name",
						relname),
				 errhint("Rename that relation. One that was detached from table \"%s\" can be attached again.",
						 get_rel_name(root->relid))));
	ttl_citus_run_command(psprintf("CREATE %sTABLE %s (LIKE %s INCLUDING DEFAULTS INCLUDING CONSTRAINTS "
								   "INCLUDING GENERATED INCLUDING STORAGE INCLUDING COMPRESSION) USING heap%s",
								   get_rel_persistence(root->relid) == RELPERSISTENCE_UNLOGGED ?
								   "UNLOGGED " : "",
								   name, table, ttl_make_tablespace_clause(root->relid)));
	ttl_citus_run_command(psprintf("ALTER TABLE %s ATTACH PARTITION %s %s", table, name,
								   ttl_make_bounds(root, partition)));
	ttl_make_follow_table(root->relid, relname);
}

/*
 * Raises an error if the DEFAULT partition holds rows of a partition.  ATTACH would do so,
 * too, but only after it has read all of DEFAULT, with DEFAULT locked.
 */
static void
check_default(const TtlIndex *root, Oid rest, const TtlPartition *partition)
{
	AttrNumber	attnum;
	Node	   *expression;
	const char *column;

	ttl_key_read(root->indexrelid, &attnum, &expression);
	column = quote_identifier(get_attname(root->relid, attnum, false));
	if (ttl_make_select(psprintf("SELECT 1 FROM %s WHERE %s >= %s AND %s < %s",
								 ttl_name_qualified(rest), column,
								 key_literal(root, partition->lower), column,
								 key_literal(root, partition->upper))) != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_CHECK_VIOLATION),
				 errmsg("partition \"%s\" holds rows that belong into \"%s\"",
						get_rel_name(rest), ttl_make_name(root, partition)),
				 errdetail("The bucket will be made when they have expired.")));
}

/*
 * Locks what ATTACH PARTITION will lock, also the tables that foreign keys reference: their
 * writers must not wait behind this session for a transaction that takes long.
 */
static bool
lock_for_attach(const TtlIndex *root, Oid rest)
{
	Relation	rel;
	List	   *referenced = NIL;
	ListCell   *lc;

	if (!ttl_lock_soon(root->relid, ShareUpdateExclusiveLock))
		return false;
	rel = relation_open(root->relid, NoLock);
	/* the list lasts no longer than the next message about the table */
	foreach(lc, RelationGetFKeyList(rel))
	{
		const		ForeignKeyCacheInfo *key = lfirst_node(ForeignKeyCacheInfo, lc);

		if (TTL_IS_ENFORCED(key))
			referenced = list_concat_unique_oid(referenced, ttl_inherit_partitions(key->confrelid, NoLock));
	}
	relation_close(rel, NoLock);
	foreach(lc, referenced)
	{
		if (!ttl_lock_soon(lfirst_oid(lc), ShareRowExclusiveLock))
			return false;
	}
	return !OidIsValid(rest) || ttl_lock_soon(rest, AccessExclusiveLock);
}

/* Makes a missing partition in the caller's transaction, if the locks are free soon. */
void
ttl_make_partition(Oid indexrelid, const TtlPartition *partition, TtlBatch *batch)
{
	TtlIndex	root;
	TtlIndex	now;
	Oid			rest;
	List	   *missing;
	ListCell   *lc;

	if (!ttl_state_describe(indexrelid, false, &root) ||
		root.state != TTL_ACTIVE || root.option.bucket_seconds == 0 ||
		!ttl_citus_keeps_partitions(&root.citus))
		return;
	ttl_batch_set_immediate();
	/* there may be more to lock, such as tables below a partitioned DEFAULT */
	ttl_lock_limit_waits();
	ttl_owner_check_tree(root.relid, root.owner);
	batch->busy = true;
	rest = get_default_partition_oid(root.relid);
	foreach(lc, OidIsValid(rest) ? ttl_inherit_tree(rest) : NIL)
	{
		if (!ConditionalLockRelationOid(lfirst_oid(lc), AccessShareLock))
			return;
	}
	if (OidIsValid(rest))
		check_default(&root, rest, partition);
	if (!lock_for_attach(&root, rest))
		return;
	/* read again, because the locks may have taken a while */
	if (!ttl_state_describe(indexrelid, true, &now) ||
		now.state != TTL_ACTIVE || now.owner != root.owner ||
		now.option.bucket_seconds != root.option.bucket_seconds ||
		get_default_partition_oid(root.relid) != rest)
		return;
	batch->busy = false;
	ttl_name_keep(root.relid);
	ttl_owner_check_tree(root.relid, root.owner);

	/* another pass or a user may have made it; the next pass makes the rest */
	missing = add_missing(NIL, ttl_bounds_read(root.relid), partition->lower, partition->upper);
	if (list_length(missing) == 1 &&
		((TtlPartition *) linitial(missing))->lower == partition->lower &&
		((TtlPartition *) linitial(missing))->upper == partition->upper)
		ttl_make_attach(&root, partition);
}
