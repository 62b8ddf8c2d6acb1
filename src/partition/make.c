/*-------------------------------------------------------------------------
 *
 * make.c
 *	  Making partitions of a time series ahead of the clock.
 *
 * The span of the partitions is an option of the TTL index, so nothing else has to be
 * stored.  Partitions begin at multiples of the span, counted from a Monday, in the key's
 * own time: UTC for timestamptz.  They are made for the present and a while ahead of it
 * (see horizon()), so that rows which are on time find their partition, also after the
 * monitor was off for a while.
 *
 * A partition is made as a table of its own and then attached.  That takes SHARE
 * UPDATE EXCLUSIVE on the partitioned table, behind which reads and writes go on,
 * where CREATE TABLE ... PARTITION OF would take ACCESS EXCLUSIVE.  Both need ACCESS
 * EXCLUSIVE on the DEFAULT partition, to make sure that it holds no row of the new
 * one.  If it does, the new one is not made until those rows have expired.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/partition/make.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "catalog/index.h"
#include "catalog/partition.h"
#include "catalog/pg_index.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "commands/tablespace.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "compute.h"
#include "definition/definition.h"
#include "definition/key.h"
#include "expire/expire.h"
#include "partition/partition.h"
#include "ttl_index.h"

/* Monday, 2001-01-01 */
#define ORIGIN (INT64CONST(366) * USECS_PER_DAY)

int64
ttl_make_span(const TtlIndex *root)
{
	return root->option.bucket_seconds * USECS_PER_SEC;
}

/* Finds where the partition begins to which a key belongs. */
static int64
partition_start(int64 key, int64 span)
{
	int64		past = (key - ORIGIN) % span;

	return key - (past < 0 ? past + span : past);
}

/* How far ahead partitions are made: 24 spans, but at most a day, and at least 2 spans. */
static int64
horizon(int64 span)
{
	return Max(2 * span, Min(24 * span, USECS_PER_DAY));
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
	List	   *missing = NIL;
	List	   *partitions;
	ListCell   *lc;

	if (span == 0)
		return NIL;
	partitions = ttl_bounds_read(root->relid);
	now = ttl_cutoff_clock(root, at);
	for (int64 start = partition_start(now, span); start <= now + ahead; start += span)
		missing = add_missing(missing, partitions, start, start + span);
	/* what is left of the past is for the DEFAULT partition */
	foreach(lc, missing)
	{
		if (((TtlPartition *) lfirst(lc))->upper <= now)
			missing = foreach_delete_current(missing, lc);
	}
	return missing;
}

/* Lists the partitions of a time series that are to be made at this clock reading. */
List *
ttl_make_wanted(const TtlIndex *root, TimestampTz at)
{
	return ttl_make_missing(root, at, horizon(ttl_make_span(root)));
}

/* A key as a literal of its type. */
static char *
key_literal(const TtlIndex *root, int64 key)
{
	struct pg_tm tm;
	fsec_t		fsec;

	if (timestamp2tm(key, NULL, &tm, &fsec, NULL, NULL) != 0)
		elog(ERROR, "timestamp out of range");
	return psprintf("'%04d-%02d-%02d %02d:%02d:%02d.%06d%s'",
					tm.tm_year, tm.tm_mon, tm.tm_mday,
					tm.tm_hour, tm.tm_min, tm.tm_sec, fsec,
					root->keytype == TIMESTAMPTZOID ? "+00" : "");
}

/*
 * Makes the name of a partition: the name of the table, and where it begins.  NULL if the
 * table is gone.
 */
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

/* The index of a partition for its replica identity, where the table has one. */
static Oid
replica_index(Oid parent, Oid relid)
{
	ListCell   *lc;

	foreach(lc, ttl_catalog_table_indexes(parent))
	{
		if (get_index_isreplident(lfirst_oid(lc)))
			return ttl_leaves_index_of(lfirst_oid(lc), relid);
	}
	return InvalidOid;
}

/*
 * The subcommands of ALTER TABLE that give a partition the row security and the
 * replica identity of its table; NULL where there is nothing to do.  Row security
 * without a policy denies all to those who read the partition by itself: policies
 * are for those who go through the table.
 */
static char *
table_subcommands(Oid parent, Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(parent));
	Form_pg_class form;
	StringInfoData sql;
	Oid			index;

	if (!HeapTupleIsValid(tuple))
		return NULL;
	form = (Form_pg_class) GETSTRUCT(tuple);
	initStringInfo(&sql);
	if (form->relrowsecurity)
		appendStringInfoString(&sql, ", ENABLE ROW LEVEL SECURITY");
	if (form->relforcerowsecurity)
		appendStringInfoString(&sql, ", FORCE ROW LEVEL SECURITY");
	if (form->relreplident == REPLICA_IDENTITY_FULL)
		appendStringInfoString(&sql, ", REPLICA IDENTITY FULL");
	else if (form->relreplident == REPLICA_IDENTITY_NOTHING)
		appendStringInfoString(&sql, ", REPLICA IDENTITY NOTHING");
	else if (form->relreplident == REPLICA_IDENTITY_INDEX &&
			 OidIsValid(index = replica_index(parent, relid)))
		appendStringInfo(&sql, ", REPLICA IDENTITY USING INDEX %s",
						 quote_identifier(get_rel_name(index)));
	ReleaseSysCache(tuple);
	return sql.len > 0 ? sql.data + strlen(", ") : NULL;
}

/*
 * The commands that take privileges from a partition which its table does not grant, or the
 * option to grant them, NULL for none: ALTER DEFAULT PRIVILEGES gives them to every new table.
 */
static char *
revoke_commands(Oid parent, Oid relid)
{
	MemoryContext caller = CurrentMemoryContext;
	char	   *commands;

	/* all names are those of pg_catalog */
	ttl_compute_select(psprintf("SELECT string_agg(format('REVOKE %%s%%s ON %%s FROM %%s', "
								"CASE WHEN g.granted THEN 'GRANT OPTION FOR ' END, a.privilege_type, %s, "
								"CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END), '; ') "
								"FROM pg_class AS c, LATERAL aclexplode(c.relacl) AS a, LATERAL ("
								"SELECT count(*) > 0 AS granted, coalesce(bool_or(b.is_grantable), false) AS grantable "
								"FROM pg_class AS p, LATERAL aclexplode(p.relacl) AS b "
								"WHERE p.oid = %u AND b.grantee IN (a.grantee, 0) AND b.privilege_type = a.privilege_type) AS g "
								"WHERE c.oid = %u AND a.grantee <> c.relowner "
								"AND (NOT g.granted OR (a.is_grantable AND NOT g.grantable))",
								quote_literal_cstr(ttl_name_qualified(relid)),
								parent, relid),
					   false);
	commands = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);
	if (commands != NULL)
		commands = MemoryContextStrdup(caller, commands);
	SPI_finish();
	return commands;
}

/* Lets a new partition be guarded and replicated as its table is. */
void
ttl_make_follow_table(Oid parent, const char *name)
{
	Oid			relid = get_relname_relid(name, get_rel_namespace(parent));
	char	   *command;

	if (!OidIsValid(relid) || ttl_inherit_parent(relid, NULL) != parent)
		elog(ERROR, "could not find partition \"%s\"", name);
	command = table_subcommands(parent, relid);
	if (command != NULL)
		ttl_citus_run_command(psprintf("ALTER TABLE %s %s", ttl_name_qualified(relid), command));
	command = revoke_commands(parent, relid);
	if (command != NULL)
		ttl_citus_run_command(command);
}

/*
 * Raises an error where the name of a partition is taken: by one that was detached, say,
 * or by another table of the user.
 */
static void
check_name_is_free(Oid parent, const char *name)
{
	if (!OidIsValid(get_relname_relid(name, get_rel_namespace(parent))))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_DUPLICATE_TABLE),
			 errmsg("partition \"%s\" cannot be made because another relation has its name",
					name),
			 errhint("Rename that relation. One that was detached from table \"%s\" can be attached again.",
					 get_rel_name(parent))));
}

void
ttl_make_attach(const TtlIndex *root, const TtlPartition *partition)
{
	char	   *table = ttl_name_qualified(root->relid);
	char	   *relname = ttl_make_name(root, partition);
	char	   *name = ttl_make_name_beside(root->relid, relname);

	check_name_is_free(root->relid, relname);
	ttl_citus_run_command(psprintf("CREATE %sTABLE %s (LIKE %s INCLUDING DEFAULTS INCLUDING CONSTRAINTS "
								   "INCLUDING GENERATED INCLUDING STORAGE INCLUDING COMPRESSION) USING heap%s",
								   get_rel_persistence(root->relid) == RELPERSISTENCE_UNLOGGED ?
								   "UNLOGGED " : "",
								   name, table, ttl_make_tablespace_clause(root->relid)));
	ttl_citus_run_command(psprintf("ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM (%s) TO (%s)",
								   table, name, key_literal(root, partition->lower),
								   key_literal(root, partition->upper)));
	ttl_make_follow_table(root->relid, relname);
}

/*
 * Raises an error where the DEFAULT partition holds rows of a partition.  ATTACH
 * would too, but only after reading all of it, with the partition locked.
 */
static void
check_default(const TtlIndex *root, Oid rest, const TtlPartition *partition)
{
	AttrNumber	attnum;
	Node	   *expression;
	const char *column;
	char	   *condition;

	ttl_key_read(root->indexrelid, &attnum, &expression);
	column = quote_identifier(get_attname(root->relid, attnum, false));
	condition = psprintf("%s OPERATOR(pg_catalog.>=) %s AND %s OPERATOR(pg_catalog.<) %s",
						 column, key_literal(root, partition->lower), column,
						 key_literal(root, partition->upper));
	if (ttl_leaves_count_rows(rest, condition, 1) > 0)
		ereport(ERROR,
				(errcode(ERRCODE_CHECK_VIOLATION),
				 errmsg("partition \"%s\" holds rows that belong into \"%s\"",
						get_rel_name(rest), ttl_make_name(root, partition)),
				 errdetail("The bucket will be made when they have expired.")));
}

/*
 * Raises an error where ATTACH would compute, as the owner of the series, what somebody else
 * wrote into the definition of the DEFAULT partition.
 */
static void
check_default_owner(const TtlIndex *root, Oid rest)
{
	ListCell   *lc;

	foreach(lc, ttl_inherit_tree(rest))
	{
		Oid			relid = lfirst_oid(lc);

		if (!has_privs_of_role(ttl_owner_of(relid), root->owner))
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
					 errmsg("partition \"%s\" belongs to another role than table \"%s\"",
							get_rel_name(relid), get_rel_name(root->relid)),
					 errdetail("To make a partition, CHECK constraints and partition keys below DEFAULT are computed as the owner of the table."),
					 errhint("Give both the same owner with ALTER TABLE ... OWNER TO, or let these definitions call no functions of users.")));
	}
}

/* The tables that foreign keys of a locked table reference. */
static List *
referenced_tables(Oid relid)
{
	Relation	rel = relation_open(relid, NoLock);
	List	   *referenced = NIL;
	ListCell   *lc;

	/* the list lasts no longer than the next message about the table */
	foreach(lc, RelationGetFKeyList(rel))
	{
		const		ForeignKeyCacheInfo *key = lfirst_node(ForeignKeyCacheInfo, lc);

		if (TTL_IS_ENFORCED(key))
			referenced = list_append_unique_oid(referenced, key->confrelid);
	}
	relation_close(rel, NoLock);
	return referenced;
}

/*
 * Raises an error where ATTACH would compute, as the owner of the series, the partition key
 * of somebody else above.  The locks are those that it takes itself.
 */
static void
check_above(Oid relid, Oid owner)
{
	Oid			above;

	if (!ttl_partition_key_lock_above(relid))
		ttl_detach_raise_busy(relid);
	above = ttl_partition_key_of_stranger(relid, owner);
	if (OidIsValid(above))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("table \"%s\", of which \"%s\" is a partition, belongs to another role",
						get_rel_name(above), get_rel_name(relid)),
				 errdetail("To make a partition, the partition keys above it are computed as the owner of the table."),
				 errhint("Give both the same owner with ALTER TABLE ... OWNER TO.")));
}

/* Does the planner compute for a role what somebody else wrote into the definition of a table? */
static bool
computes_of_stranger(Oid relid, Oid role)
{
	/* in a query of a partitioned table, the keys above that as well */
	if (get_rel_relkind(relid) == RELKIND_PARTITIONED_TABLE &&
		OidIsValid(ttl_partition_key_of_stranger(relid, role)))
		return true;
	if (has_privs_of_role(ttl_owner_of(relid), role))
		return false;
	return OidIsValid(ttl_partition_key_of_stranger(relid, role));
}

/*
 * Raises an error where ATTACH would do so for the owner of the series, with a table that a
 * foreign key references, or a partition of that: it checks the rows of the new partition by
 * a query, although there are none.  The locks are those that it takes itself, and that a
 * pass has taken before.
 */
static void
check_referenced(Oid relid, Oid owner)
{
	ListCell   *lc;
	ListCell   *lc2;

	foreach(lc, referenced_tables(relid))
	{
		LockRelationOid(lfirst_oid(lc), ShareRowExclusiveLock);
		foreach(lc2, ttl_inherit_partitions(lfirst_oid(lc), ShareRowExclusiveLock))
		{
			if (computes_of_stranger(lfirst_oid(lc2), owner))
				ereport(ERROR,
						(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
						 errmsg("table \"%s\", which a foreign key of \"%s\" references, belongs to another role",
								get_rel_name(lfirst_oid(lc2)), get_rel_name(relid)),
						 errdetail("To make a partition, what is constant in its partition key, indexes, statistics and CHECK constraints is computed as the owner of the referencing table."),
						 errhint("Give both the same owner with ALTER TABLE ... OWNER TO, or let these definitions call no functions of users.")));
		}
	}
}

/* Raises an error where ATTACH would compute, as this role, what others wrote. */
void
ttl_make_check(Oid relid, Oid owner)
{
	check_above(relid, owner);
	check_referenced(relid, owner);
}

/*
 * Locks what ATTACH PARTITION will lock, also the tables that foreign keys reference: their
 * writers must not wait behind this session for a transaction that takes long.
 */
static bool
lock_for_attach(const TtlIndex *root, Oid rest)
{
	ListCell   *lc;
	ListCell   *lc2;

	if (!ttl_lock_soon(root->relid, ShareUpdateExclusiveLock))
		return false;
	foreach(lc, referenced_tables(root->relid))
	{
		foreach(lc2, ttl_inherit_partitions(lfirst_oid(lc), NoLock))
		{
			if (!ttl_lock_soon(lfirst_oid(lc2), ShareRowExclusiveLock))
				return false;
		}
	}
	return !OidIsValid(rest) || ttl_lock_soon(rest, AccessExclusiveLock);
}

/* Is all of a partition still missing?  Another pass, or a user, may have made it meanwhile. */
static bool
is_missing(const TtlIndex *root, const TtlPartition *partition)
{
	List	   *missing = add_missing(NIL, ttl_bounds_read(root->relid),
									  partition->lower, partition->upper);
	const TtlPartition *first = missing == NIL ? NULL : linitial(missing);

	return first != NULL && first->lower == partition->lower && first->upper == partition->upper;
}

/*
 * Makes a partition, as the owner of the time series, which the caller has described.
 * Returns false if the locks are not free soon.
 */
static bool
make_missing_partition(const TtlIndex *root, Oid rest, const TtlPartition *partition)
{
	TtlIndex	now;

	ttl_settings_set("default_tablespace", "");
	if (!lock_for_attach(root, rest) || !ttl_name_lock(root->relid, false))
		return false;
	/* read again, because the locks may have taken a while */
	if (!ttl_catalog_describe(root->indexrelid, true, &now) ||
		now.state != TTL_ACTIVE || now.owner != root->owner ||
		now.option.bucket_seconds != root->option.bucket_seconds)
		return false;
	/* what is left of it is for the next pass */
	if (!is_missing(root, partition))
		return true;
	ttl_make_check(root->relid, root->owner);
	/* another one may be there by now, or none, which nobody has looked into */
	if (get_default_partition_oid(root->relid) != rest)
		return false;
	if (OidIsValid(rest))
		check_default_owner(root, rest);
	ttl_make_attach(root, partition);
	return true;
}

/*
 * Makes a partition of a time series that is missing, in the caller's transaction, if the
 * locks are free soon.
 */
void
ttl_make_partition(Oid root, const TtlPartition *partition, TtlBatch *batch)
{
	TtlIndex	index;
	Oid			rest;
	TtlUser		saved;

	memset(batch, 0, sizeof(*batch));
	if (!ttl_catalog_describe(root, false, &index) ||
		index.state != TTL_ACTIVE || index.option.bucket_seconds == 0 ||
		!ttl_citus_keeps_partitions(&index.citus))
		return;
	rest = get_default_partition_oid(index.relid);
	/* all of it is read, each table as its owner, who cannot change any more */
	batch->busy = OidIsValid(rest) && !ttl_drop_lock_tree(rest, AccessShareLock);
	if (batch->busy)
		return;
	if (OidIsValid(rest))
		check_default(&index, rest, partition);
	ttl_owner_become(index.owner, &saved);
	ttl_batch_set_immediate();
	/* there may be more to lock, such as tables below a partitioned DEFAULT */
	ttl_lock_limit_waits();
	batch->busy = !make_missing_partition(&index, rest, partition);
	ttl_owner_restore(&saved);
}
