/*-------------------------------------------------------------------------
 *
 * make.c
 *	  Creating partitions of a time series ahead of the clock.
 *
 * Their span is an option of the TTL index.  They begin at multiples of it, counted from a
 * Monday, in the key's own time (UTC for timestamptz and numbers).
 *
 * A partition is created as a table and then attached, which needs SHARE UPDATE EXCLUSIVE on
 * the partitioned table instead of ACCESS EXCLUSIVE.  Both need ACCESS EXCLUSIVE on the
 * DEFAULT partition.  While DEFAULT holds rows of a partition, that partition is not
 * created.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <ctype.h>

#include "catalog/index.h"
#include "catalog/partition.h"
#include "catalog/pg_type.h"
#include "commands/tablespace.h"
#include "common/hashfn.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/json.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"

#include "partition/partition.h"
#include "state/state.h"
#include "ttl_index.h"

/* Monday, 2001-01-01, in seconds since 2000 and since 1970 */
#define ORIGIN (INT64CONST(366) * SECS_PER_DAY)
#define ORIGIN_OF_NUMBERS INT64CONST(978307200)

/* Appends the ranges between two keys that no partition covers, as partitions to be made. */
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

/* Lists the partitions that are missing between now and a time ahead, in seconds. */
List *
ttl_make_missing(const TtlIndex *root, TimestampTz at, int64 ahead)
{
	int64		second = ttl_keytype_per_second[root->option.unit];
	int64		span = root->option.bucket_seconds * second;
	int64		now;
	int64		past;
	List	   *missing = NIL;
	List	   *partitions;
	ListCell   *lc;

	if (span == 0)
		return NIL;
	partitions = ttl_bounds_read(root->relid);
	now = ttl_cutoff_clock(root, at);
	past = (now - (root->option.unit == TTL_UNIT_NONE ? ORIGIN : ORIGIN_OF_NUMBERS) * second) % span;
	for (int64 start = now - (past < 0 ? past + span : past); start <= now + ahead * second; start += span)
		missing = add_missing(missing, partitions, start, start + span);
	/* rows of the past are inserted into the DEFAULT partition */
	foreach(lc, missing)
	{
		if (((TtlPartition *) lfirst(lc))->upper <= now)
			missing = foreach_delete_current(missing, lc);
	}
	return missing;
}

/* Lists the partitions to be made at this clock reading: 24 spans, at most a day, at least 2 spans. */
List *
ttl_make_wanted(const TtlIndex *root, TimestampTz at)
{
	int64		span = root->option.bucket_seconds;

	return ttl_make_missing(root, at, Max(2 * span, Min(24 * span, SECS_PER_DAY)));
}

/* A key as a literal of its type. */
static char *
key_literal(const TtlIndex *root, int64 key)
{
	static const int utc = 0;
	bool		has_zone = root->keytype == TIMESTAMPTZOID;
	char		text[MAXDATELEN + 1];

	if (root->option.unit != TTL_UNIT_NONE)
		return psprintf("%lld", (long long) key);
	return psprintf("'%s'", JsonEncodeDateTime(text, Int64GetDatum(key), has_zone ? TIMESTAMPTZOID : TIMESTAMPOID,
											   has_zone ? &utc : NULL));
}

/* The bounds of a partition, for CREATE TABLE and ATTACH PARTITION. */
char *
ttl_make_bounds(const TtlIndex *root, const TtlPartition *partition)
{
	return psprintf("FOR VALUES FROM (%s) TO (%s)",
					partition->has_lower ? key_literal(root, partition->lower) : "MINVALUE",
					partition->has_upper ? key_literal(root, partition->upper) : "MAXVALUE");
}

/* The name of a partition: the table's name and the lower bound; NULL if the table is gone. */
char *
ttl_make_name(const TtlIndex *root, const TtlPartition *partition)
{
	static const int64 parts[] = {SECS_PER_DAY, SECS_PER_HOUR, SECS_PER_MINUTE};
	int64		second = ttl_keytype_per_second[root->option.unit];
	int64		span = Min(root->option.bucket_seconds * second, partition->upper - partition->lower);
	int64		lower = root->option.unit == TTL_UNIT_NONE ? partition->lower :
		ttl_keytype_instant(root->option.unit, partition->lower);
	char	   *table = get_rel_name(root->relid);
	char		label[MAXDATELEN + 2] = "_";
	char	   *end;
	int			length;
	int			room;

	if (table == NULL)
		return NULL;

	/* _YYYY_MM_DD, and as many pairs of digits of the time as the bounds need */
	JsonEncodeDateTime(label + 1, Int64GetDatum(lower), TIMESTAMPOID, NULL);
	end = strchr(label, 'T');
	for (int i = 0; i < lengthof(parts); i++)
	{
		if (span % (parts[i] * second) != 0 || partition->lower % (parts[i] * second) != 0)
			end += strlen("_00");
	}
	*end = '\0';
	for (char *c = label; *c != '\0'; c++)
	{
		if (!isdigit((unsigned char) *c))
			*c = '_';
	}

	/* similar names that are cut differ by a hash of the whole */
	length = strlen(table);
	room = NAMEDATALEN - 1 - strlen(label);
	if (length > room)
		table = psprintf("%.*s_%08x", pg_mbcliplen(table, length, room - 9), table,
						 hash_bytes((const unsigned char *) table, length));
	return psprintf("%s%s", table, label);
}

/*
 * Gives a new partition the owner, row security and replica identity of its table, because
 * create_time_series() makes it as the caller.  Row security without policies denies direct
 * reads.
 */
void
ttl_make_follow_table(Oid parent, const char *name)
{
	Oid			relid = get_relname_relid(name, get_rel_namespace(parent));
	char	   *commands;

	if (!OidIsValid(relid) || ttl_inherit_parent(relid, NULL) != parent)
		elog(ERROR, "could not find partition \"%s\"", name);
	commands = ttl_select_value(psprintf("SELECT nullif(concat_ws(', ', "
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
}

/* Makes a partition: creates a table and attaches it. */
void
ttl_make_attach(const TtlIndex *root, const TtlPartition *partition)
{
	char	   *table = ttl_name_qualified(root->relid);
	char	   *relname = ttl_make_name(root, partition);
	char	   *name = quote_qualified_identifier(get_namespace_name(get_rel_namespace(root->relid)),
												  relname);
	Oid			tablespace = get_rel_tablespace(root->relid);
	char	   *clause = "";

	if (OidIsValid(tablespace))
		clause = psprintf(" TABLESPACE %s", quote_identifier(get_tablespace_name(tablespace)));
	ttl_citus_run_command(psprintf("CREATE %sTABLE %s (LIKE %s INCLUDING DEFAULTS INCLUDING CONSTRAINTS "
								   "INCLUDING GENERATED INCLUDING STORAGE INCLUDING COMPRESSION) USING heap%s",
								   get_rel_persistence(root->relid) == RELPERSISTENCE_UNLOGGED ?
								   "UNLOGGED " : "",
								   name, table, clause));
	ttl_citus_run_command(psprintf("ALTER TABLE %s ATTACH PARTITION %s %s", table, name,
								   ttl_make_bounds(root, partition)));
	ttl_make_follow_table(root->relid, relname);
}

/* Makes a missing partition in the caller's transaction, if the locks are free soon. */
void
ttl_make_partition(Oid indexrelid, const TtlPartition *partition, TtlBatch *batch)
{
	Oid			relid = IndexGetRelation(indexrelid, true);
	Oid			rest;
	TtlIndex	root;
	List	   *missing;
	ListCell   *lc;

	ttl_batch_set_immediate();
	/* ATTACH locks more, such as tables that foreign keys reference */
	ttl_lock_limit_waits();
	batch->busy = !ttl_lock_soon(relid, ShareUpdateExclusiveLock);

	/* the tables whose rows ATTACH reads keep their owners from now on */
	rest = get_default_partition_oid(relid);
	foreach(lc, OidIsValid(rest) ? ttl_inherit_tree(rest) : NIL)
		batch->busy = batch->busy || !ConditionalLockRelationOid(lfirst_oid(lc), AccessShareLock);
	if (batch->busy || !ttl_state_describe(indexrelid, false, &root) ||
		root.state != TTL_ACTIVE || root.option.bucket_seconds == 0 ||
		!ttl_citus_keeps_partitions(&root.citus))
		return;
	ttl_owner_check_tree(relid, GetUserId());

	/* another pass or a user may have made it; the next pass makes what still is missing */
	missing = add_missing(NIL, ttl_bounds_read(relid), partition->lower, partition->upper);
	if (list_length(missing) != 1 ||
		((TtlPartition *) linitial(missing))->lower != partition->lower ||
		((TtlPartition *) linitial(missing))->upper != partition->upper)
		return;

	/*
	 * Rows in DEFAULT prevent ATTACH, too, but only after it has read all of DEFAULT under a
	 * strong lock.
	 */
	if (OidIsValid(rest))
	{
		const char *column = quote_identifier(get_attname(relid, root.keyattnum, false));

		if (ttl_select_value(psprintf("SELECT 1 FROM %s WHERE %s >= %s AND %s < %s",
									 ttl_name_qualified(rest), column,
									 key_literal(&root, partition->lower), column,
									 key_literal(&root, partition->upper))) != NULL)
			ereport(ERROR,
					(errcode(ERRCODE_CHECK_VIOLATION),
					 errmsg("partition \"%s\" holds rows that belong into \"%s\"",
							get_rel_name(rest), ttl_make_name(&root, partition)),
					 errdetail("The bucket will be made when they have expired.")));
		batch->busy = !ttl_lock_soon(rest, AccessExclusiveLock);
		if (batch->busy)
			return;
	}
	ttl_make_attach(&root, partition);
}
