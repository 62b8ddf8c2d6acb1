/*-------------------------------------------------------------------------
 *
 * series.c
 *	  create_time_series, and making buckets ahead of the clock.
 *
 * The span of the buckets is an option of the TTL index, so nothing else has to be
 * remembered.  Buckets begin at multiples of the span, counted from a Monday, in
 * the key's own time: UTC for timestamptz.  They are made for the clock and a while
 * ahead of it (see horizon()), so that rows which are on time find theirs, also
 * after the monitor was away for a while.
 *
 * A bucket is made as a table of its own and then attached.  That takes SHARE
 * UPDATE EXCLUSIVE on the partitioned table, behind which reads and writes go on,
 * where CREATE TABLE ... PARTITION OF would take ACCESS EXCLUSIVE.  Both need ACCESS
 * EXCLUSIVE on the DEFAULT partition, to make sure that it holds no row of the
 * bucket.  If it does, the bucket is not made until those rows have expired.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/series.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "catalog/partition.h"
#include "catalog/pg_index.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "commands/tablespace.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/datetime.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "compat.h"
#include "ttl_index.h"

PG_FUNCTION_INFO_V1(ttl_create_time_series);

/* Monday, 2001-01-01 */
#define ORIGIN (INT64CONST(366) * USECS_PER_DAY)

static int64
span_of(const TtlIndex *root)
{
	return root->option.bucket_seconds * USECS_PER_SEC;
}

/* Where the bucket begins that a key belongs to. */
static int64
bucket_start(int64 key, int64 span)
{
	int64		past = (key - ORIGIN) % span;

	return key - (past < 0 ? past + span : past);
}

/* How far ahead of the clock: 24 buckets, but at most a day, and at least two. */
static int64
horizon(int64 span)
{
	return Max(2 * span, Min(24 * span, USECS_PER_DAY));
}

/* Adds what no bucket covers from one key to another, as buckets to be made. */
static List *
add_missing(List *missing, List *buckets, int64 from, int64 to)
{
	ListCell   *lc;

	foreach(lc, buckets)
	{
		const TtlBucket *bucket = lfirst(lc);
		int64		lower = bucket->has_lower ? bucket->lower : PG_INT64_MIN;
		int64		upper = bucket->has_upper ? bucket->upper : PG_INT64_MAX;

		if (bucket->is_default || upper <= from || lower >= to)
			continue;
		if (lower > from)
			missing = add_missing(missing, NIL, from, lower);
		from = upper;
	}
	if (from < to)
	{
		TtlBucket  *bucket = palloc0(sizeof(TtlBucket));

		bucket->has_lower = bucket->has_upper = true;
		bucket->lower = from;
		bucket->upper = to;
		missing = lappend(missing, bucket);
	}
	return missing;
}

/* The buckets that are missing from the clock up to so far ahead. */
static List *
missing_buckets(const TtlIndex *root, TimestampTz at, int64 ahead)
{
	int64		span = span_of(root);
	int64		now;
	List	   *missing = NIL;
	List	   *buckets;
	ListCell   *lc;

	if (span == 0)
		return NIL;
	buckets = ttl_buckets_read(root->relid);
	now = ttl_key_clock(root, at);
	for (int64 start = bucket_start(now, span); start <= now + ahead; start += span)
		missing = add_missing(missing, buckets, start, start + span);
	/* what is left of the past is for the DEFAULT partition */
	foreach(lc, missing)
	{
		if (((TtlBucket *) lfirst(lc))->upper <= now)
			missing = foreach_delete_current(missing, lc);
	}
	return missing;
}

/* The buckets of a time series that should be there at this clock reading. */
List *
ttl_buckets_wanted(const TtlIndex *root, TimestampTz at)
{
	return missing_buckets(root, at, horizon(span_of(root)));
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

/* The name that a bucket gets: the table's, and where it begins. */
static char *
bucket_name(const TtlIndex *root, const TtlBucket *bucket)
{
	struct pg_tm tm;
	fsec_t		fsec;
	int64		unit = Min(span_of(root), bucket->upper - bucket->lower);
	char		label[64];
	int			length;

	if (timestamp2tm(bucket->lower, NULL, &tm, &fsec, NULL, NULL) != 0)
		elog(ERROR, "timestamp out of range");
	length = snprintf(label, sizeof(label), "_%04d_%02d_%02d",
					  tm.tm_year, tm.tm_mon, tm.tm_mday);
	if (unit % USECS_PER_DAY != 0 || bucket->lower % USECS_PER_DAY != 0)
		length += snprintf(label + length, sizeof(label) - length, "_%02d",
						   tm.tm_hour);
	if (unit % USECS_PER_HOUR != 0 || bucket->lower % USECS_PER_HOUR != 0)
		length += snprintf(label + length, sizeof(label) - length, "_%02d",
						   tm.tm_min);
	if (unit % USECS_PER_MINUTE != 0 || bucket->lower % USECS_PER_MINUTE != 0)
		snprintf(label + length, sizeof(label) - length, "_%02d", tm.tm_sec);
	return ttl_name_with_suffix(get_rel_name(root->relid), label);
}

/* A name of the table's schema, for SQL text. */
static char *
name_beside(Oid relid, const char *name)
{
	return quote_qualified_identifier(get_namespace_name(get_rel_namespace(relid)),
									  name);
}

static void
run_command(const char *command)
{
	SPI_connect();
	if (SPI_execute(command, false, 0) != SPI_OK_UTILITY)
		elog(ERROR, "could not run: %s", command);
	SPI_finish();
}

/* " TABLESPACE ..." where the table has one that new partitions are to have. */
static char *
tablespace_clause(Oid relid)
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
			return ttl_bucket_index(lfirst_oid(lc), relid);
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
 * The commands that take privileges from a partition which its table does not
 * grant, NULL for none: ALTER DEFAULT PRIVILEGES gives them to every new table.
 */
static char *
revoke_commands(Oid parent, Oid relid)
{
	MemoryContext caller = CurrentMemoryContext;
	char	   *commands;

	SPI_connect();
	/* in pg_catalog, see owner.c */
	if (SPI_execute(psprintf("SELECT string_agg(format('REVOKE %%s ON %%s FROM %%s', a.privilege_type, %s, "
							 "CASE WHEN a.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END), '; ') "
							 "FROM pg_class AS c, LATERAL aclexplode(c.relacl) AS a "
							 "WHERE c.oid = %u AND a.grantee <> c.relowner AND NOT EXISTS ("
							 "SELECT FROM pg_class AS p, LATERAL aclexplode(p.relacl) AS b "
							 "WHERE p.oid = %u AND b.grantee IN (a.grantee, 0) AND b.privilege_type = a.privilege_type)",
							 quote_literal_cstr(ttl_qualified_name(relid)),
							 relid, parent),
					false, 1) != SPI_OK_SELECT || SPI_processed != 1)
		elog(ERROR, "could not read the privileges of table %u", relid);
	commands = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1);
	if (commands != NULL)
		commands = MemoryContextStrdup(caller, commands);
	SPI_finish();
	return commands;
}

/* Lets a new partition be guarded and replicated as its table is. */
static void
follow_table(Oid parent, const char *name)
{
	Oid			relid = get_relname_relid(name, get_rel_namespace(parent));
	char	   *command;

	if (!OidIsValid(relid) || !get_rel_relispartition(relid) ||
		get_partition_parent(relid, false) != parent)
		elog(ERROR, "could not find partition \"%s\"", name);
	command = table_subcommands(parent, relid);
	if (command != NULL)
		run_command(psprintf("ALTER TABLE %s %s", ttl_qualified_name(relid), command));
	command = revoke_commands(parent, relid);
	if (command != NULL)
		run_command(command);
}

static void
attach_bucket(const TtlIndex *root, const TtlBucket *bucket)
{
	char	   *table = ttl_qualified_name(root->relid);
	char	   *name = name_beside(root->relid, bucket_name(root, bucket));

	run_command(psprintf("CREATE %sTABLE %s (LIKE %s INCLUDING DEFAULTS INCLUDING CONSTRAINTS "
						 "INCLUDING GENERATED INCLUDING STORAGE INCLUDING COMPRESSION) USING heap%s",
						 get_rel_persistence(root->relid) == RELPERSISTENCE_UNLOGGED ?
						 "UNLOGGED " : "",
						 name, table, tablespace_clause(root->relid)));
	run_command(psprintf("ALTER TABLE %s ATTACH PARTITION %s FOR VALUES FROM (%s) TO (%s)",
						 table, name, key_literal(root, bucket->lower),
						 key_literal(root, bucket->upper)));
	follow_table(root->relid, bucket_name(root, bucket));
}

/*
 * Raises an error where the DEFAULT partition holds rows of a bucket.  ATTACH
 * would too, but only after reading all of it, with the partition locked.
 */
static void
check_default(const TtlIndex *root, Oid rest, const TtlBucket *bucket)
{
	AttrNumber	attnum;
	Node	   *expression;
	const char *column;
	char	   *condition;

	ttl_index_key(root->indexrelid, &attnum, &expression);
	column = quote_identifier(get_attname(root->relid, attnum, false));
	condition = psprintf("%s OPERATOR(pg_catalog.>=) %s AND %s OPERATOR(pg_catalog.<) %s",
						 column, key_literal(root, bucket->lower), column,
						 key_literal(root, bucket->upper));
	if (ttl_count_rows(rest, condition, 1) > 0)
		ereport(ERROR,
				(errcode(ERRCODE_CHECK_VIOLATION),
				 errmsg("partition \"%s\" holds rows that belong into \"%s\"",
						get_rel_name(rest), bucket_name(root, bucket)),
				 errdetail("The bucket will be made when they have expired.")));
}

/*
 * Raises an error where ATTACH would compute, as the owner of the series, what
 * somebody else wrote into the definition of the DEFAULT partition.
 */
static void
check_default_owner(const TtlIndex *root, Oid rest)
{
	ListCell   *lc;

	foreach(lc, find_all_inheritors(rest, NoLock, NULL))
	{
		Oid			relid = lfirst_oid(lc);
		HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
		Form_pg_class form;
		bool		computes;

		if (!HeapTupleIsValid(tuple))
			continue;
		form = (Form_pg_class) GETSTRUCT(tuple);
		computes = form->relowner != root->owner &&
			(form->relchecks > 0 || form->relkind == RELKIND_PARTITIONED_TABLE);
		ReleaseSysCache(tuple);
		if (computes)
			ereport(ERROR,
					(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
					 errmsg("partition \"%s\" belongs to another role than table \"%s\"",
							get_rel_name(relid), get_rel_name(root->relid)),
					 errdetail("To make a partition, CHECK constraints and partition keys below DEFAULT are computed as the owner of the table."),
					 errhint("Give both the same owner with ALTER TABLE ... OWNER TO.")));
	}
}

/* The tables that foreign keys of a locked table reference, with partitions. */
static List *
referenced_tables(Oid relid)
{
	Relation	rel = relation_open(relid, NoLock);
	List	   *referenced = NIL;
	List	   *tables = NIL;
	ListCell   *lc;

	/* the list lasts no longer than the next message about the table */
	foreach(lc, RelationGetFKeyList(rel))
		referenced = list_append_unique_oid(referenced,
											((ForeignKeyCacheInfo *) lfirst(lc))->confrelid);
	relation_close(rel, NoLock);
	foreach(lc, referenced)
		tables = list_concat(tables,
							 find_all_inheritors(lfirst_oid(lc), NoLock, NULL));
	return tables;
}

/*
 * Locks what ATTACH PARTITION will: also the tables that foreign keys reference,
 * whose writers must not wait behind us for one who takes his time.
 */
static bool
lock_for_attach(const TtlIndex *root, Oid rest)
{
	ListCell   *lc;

	if (!ttl_lock_soon(root->relid, ShareUpdateExclusiveLock))
		return false;
	foreach(lc, referenced_tables(root->relid))
	{
		if (!ttl_lock_soon(lfirst_oid(lc), ShareRowExclusiveLock))
			return false;
	}
	return !OidIsValid(rest) || ttl_lock_soon(rest, AccessExclusiveLock);
}

/*
 * Makes a bucket, as the owner of the time series.  The caller has described that.
 * False where the locks cannot be had; most errors are somebody's settings.
 */
static bool
make_bucket(const TtlIndex *root, const TtlBucket *bucket)
{
	Oid			rest = get_default_partition_oid(root->relid);
	TtlIndex	now;

	(void) set_config_option("default_tablespace", "", PGC_USERSET,
							 PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
	if (OidIsValid(rest))
	{
		if (!ConditionalLockRelationOid(rest, AccessShareLock))
			return false;
		check_default(root, rest, bucket);
	}
	if (!lock_for_attach(root, rest) || !ttl_lock_name(root->relid, false))
		return false;
	/* behind the locks, which may have taken a while */
	if (!ttl_catalog_describe(root->indexrelid, true, &now) ||
		now.state != TTL_ACTIVE || now.owner != root->owner ||
		now.option.bucket_seconds != root->option.bucket_seconds)
		return false;
	if (OidIsValid(rest))
		check_default_owner(root, rest);
	attach_bucket(root, bucket);
	return true;
}

/*
 * Makes a bucket of a time series that is missing, in the caller's transaction, if
 * the locks can be had.
 */
void
ttl_bucket_make(Oid root, const TtlBucket *bucket, TtlBatch *batch)
{
	TtlIndex	index;
	TtlUser		saved;

	memset(batch, 0, sizeof(*batch));
	if (!ttl_catalog_describe(root, false, &index) ||
		index.state != TTL_ACTIVE || index.option.bucket_seconds == 0)
		return;
	ttl_become_owner(index.owner, &saved);
	/* should there be more to lock, below a partitioned DEFAULT for one */
	ttl_lock_limit_waits();
	batch->busy = !make_bucket(&index, bucket);
	ttl_restore_user(&saved);
}

/* Why a bucket is not there, as far as can be said without looking at rows. */
static char *
why_missing(const TtlIndex *root, const TtlBucket *bucket)
{
	char	   *name = bucket_name(root, bucket);
	Oid			schema = get_rel_namespace(root->relid);

	if (OidIsValid(get_relname_relid(name, schema)))
		return psprintf("partition \"%s\" is missing: another relation has the name",
						name);
	if (object_aclcheck(NamespaceRelationId, schema, root->owner,
						ACL_CREATE) != ACLCHECK_OK)
		return psprintf("partition \"%s\" is missing: the owner may not create tables in schema \"%s\"",
						name, get_namespace_name(schema));
	return psprintf("partition \"%s\" is missing: see last_error in ttl_index.index_stats, "
					"or wait for the next pass",
					name);
}

/*
 * Is a bucket still there for which an error came between?  It was due when the
 * last one was counted.  The counts are read when they are needed first.
 */
static bool
is_failing(const TtlIndex *index, const TtlBucket *bucket, TtlCounts *counts)
{
	TtlCutoff	cutoff;
	ListCell   *lc;

	if (index->option.seconds < 0)
		return false;
	ttl_cutoff_init(&cutoff, index, GetCurrentTimestamp());
	if (!ttl_bucket_due(bucket, &cutoff))
		return false;
	if (!counts->read)
	{
		MemoryContext own = MemoryContextSwitchTo(counts->context);

		counts->list = ttl_stats_read();
		counts->read = true;
		MemoryContextSwitchTo(own);
	}
	foreach(lc, counts->list)
	{
		const TtlCount *count = lfirst(lc);

		if (count->indexrelid != index->root || count->last_error_time == 0)
			continue;
		ttl_cutoff_init(&cutoff, index, count->last_error_time);
		return ttl_bucket_due(bucket, &cutoff);
	}
	return false;
}

/* The state of a bucket that is to be dropped in its time. */
static void
show_bucket(TtlIndex *index, TtlCounts *counts)
{
	TtlBucket	bucket;

	ttl_bucket_read(index->relid, &bucket);
	if (!bucket.has_upper)
		return;
	index->detail = ttl_bucket_dependent(index->relid);
	if (index->detail != NULL)
		index->state = TTL_BUCKET_HAS_DEPENDENTS;
	else if (is_failing(index, &bucket, counts))
		index->state = TTL_BUCKET_FAILING;
}

/*
 * What the view shows of an active index: what that leaves out, and the state of a
 * bucket that cannot be dropped, or of a time series that lacks one.
 */
void
ttl_series_show(TtlIndex *index, TtlCounts *counts)
{
	List	   *missing;

	if (index->state != TTL_ACTIVE)
		return;
	index->left_out = ttl_left_out(index);
	if (index->option.drop_partitions && index->parent == index->governor)
		show_bucket(index, counts);
	else if (index->governor == index->indexrelid)
	{
		/* the next one but one may just have come into sight */
		missing = missing_buckets(index, GetCurrentTimestamp(), span_of(index));
		if (missing != NIL)
		{
			index->detail = why_missing(index, linitial(missing));
			index->state = TTL_BUCKET_MISSING;
		}
	}
}

/* The span that a granularity stands for, in seconds. */
static int32
granularity_seconds(const char *granularity)
{
	if (strcmp(granularity, "seconds") == 0)
		return SECS_PER_HOUR;
	if (strcmp(granularity, "minutes") == 0)
		return SECS_PER_DAY;
	if (strcmp(granularity, "hours") == 0)
		return 30 * SECS_PER_DAY;
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("granularity must be seconds, minutes or hours"),
			 errhint("Partitions are of one hour, one day or 30 days. "
					 "bucket_max_span_seconds sets another span.")));
	return 0;
}

/* The arguments of create_time_series, beside those of create_index. */
typedef struct SeriesArgs
{
	TtlCreate	create;
	char	   *meta_field;
} SeriesArgs;

static void
read_series_args(FunctionCallInfo fcinfo, SeriesArgs *args)
{
	static const char *const names[] = {"relation", "time_field"};
	char	   *granularity = ttl_text_argument(fcinfo, 3);

	ttl_require_arguments(fcinfo, 2, names);
	memset(args, 0, sizeof(*args));
	args->create.relid = PG_GETARG_OID(0);
	args->create.key = ttl_text_argument(fcinfo, 1);
	args->meta_field = ttl_text_argument(fcinfo, 2);
	args->create.seconds = PG_ARGISNULL(4) ? -1 : PG_GETARG_INT32(4);
	args->create.time_zone = ttl_text_argument(fcinfo, 6);
	args->create.drop_partitions = true;
	args->create.boundary_rows = !PG_ARGISNULL(7) && PG_GETARG_BOOL(7);
	ttl_check_seconds(args->create.seconds, true);

	if (args->meta_field != NULL &&
		strcmp(args->meta_field, args->create.key) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("meta_field and time_field must not be the same column"),
				 errhint("meta_field is what tells the sources of the series apart; it can be left out.")));

	if (granularity != NULL || PG_ARGISNULL(5))
		args->create.bucket_seconds = granularity_seconds(granularity ? granularity : "seconds");
	if (PG_ARGISNULL(5))
		return;
	if (granularity != NULL && PG_GETARG_INT32(5) != args->create.bucket_seconds)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("bucket_max_span_seconds of granularity %s is %d",
						granularity, args->create.bucket_seconds),
				 errhint("Give one of the two.")));
	args->create.bucket_seconds = PG_GETARG_INT32(5);
	if (args->create.bucket_seconds < TTL_MIN_BUCKET_SECONDS ||
		args->create.bucket_seconds > TTL_MAX_BUCKET_SECONDS)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg_internal("%s", TTL_BUCKET_SECONDS_RANGE)));
}

/* Can this table become a time series? */
static void
check_series(Relation rel, const SeriesArgs *args)
{
	TtlIndex	index = {0};
	TtlKey		key;

	ttl_key_resolve(rel, args->create.key, &key);
	ttl_check_key(key.type, args->create.time_zone);
	index.state = ttl_buckets_possible(args->create.relid, key.attnum,
									   getBaseType(key.type), false);
	if (index.state != TTL_ACTIVE)
		ttl_state_raise(&index);
	if (getBaseType(key.type) == DATEOID &&
		args->create.bucket_seconds % SECS_PER_DAY != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("partitions of a key of type date must span whole days"),
				 errhint("Take the granularity minutes or hours, or a multiple of 86400 for bucket_max_span_seconds.")));
	if (args->meta_field != NULL &&
		get_attnum(args->create.relid, args->meta_field) == InvalidAttrNumber)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("column \"%s\" of table \"%s\" does not exist",
						args->meta_field, RelationGetRelationName(rel))));
}

/* Is this the work of an earlier call?  Raises an error for other partitions. */
static bool
is_series(Relation rel, const SeriesArgs *args)
{
	ListCell   *lc;

	if (find_inheritance_children(RelationGetRelid(rel), NoLock) == NIL)
		return false;
	foreach(lc, ttl_key_indexes(rel, args->create.key))
	{
		TtlOption	option;

		if (ttl_option_read(lfirst_oid(lc), &option) &&
			option.bucket_seconds != 0)
			return true;
	}
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("table \"%s\" has partitions",
					RelationGetRelationName(rel)),
			 errhint("ttl_index.create_index() with drop_expired_partitions => true lets those expire that somebody else makes.")));
	return false;
}

/* Has the table an index on these columns, or one that begins with them? */
static bool
has_index_on(Oid relid, AttrNumber first, AttrNumber second)
{
	bool		found = false;
	ListCell   *lc;

	foreach(lc, ttl_catalog_table_indexes(relid))
	{
		HeapTuple	tuple = SearchSysCache1(INDEXRELID, lfirst_oid(lc));
		Form_pg_index form;

		if (!HeapTupleIsValid(tuple))
			continue;
		form = (Form_pg_index) GETSTRUCT(tuple);
		found = found || (form->indnkeyatts > 1 &&
						  form->indkey.values[0] == first &&
						  form->indkey.values[1] == second);
		ReleaseSysCache(tuple);
	}
	return found;
}

/* The index that queries for one source of the series use. */
static void
create_meta_index(const SeriesArgs *args)
{
	Oid			relid = args->create.relid;

	if (args->meta_field != NULL &&
		!has_index_on(relid, get_attnum(relid, args->meta_field),
					  get_attnum(relid, args->create.key)))
		run_command(psprintf("CREATE INDEX ON %s (%s, %s)",
							 ttl_qualified_name(args->create.relid),
							 quote_identifier(args->meta_field),
							 quote_identifier(args->create.key)));
}

static void
create_default(Oid relid)
{
	char	   *name = ChooseRelationName(get_rel_name(relid), NULL, "default",
										  get_rel_namespace(relid), false);

	run_command(psprintf("CREATE TABLE %s PARTITION OF %s DEFAULT%s",
						 name_beside(relid, name), ttl_qualified_name(relid),
						 tablespace_clause(relid)));
	follow_table(relid, name);
}

/* create_time_series(relation, time_field, ...) returns regclass */
Datum
ttl_create_time_series(PG_FUNCTION_ARGS)
{
	SeriesArgs	args;
	Relation	rel;
	Oid			indexrelid;
	TtlIndex	index;
	Oid			owner;
	bool		again;
	TtlUser		saved;
	ListCell   *lc;

	PreventCommandIfReadOnly("ttl_index.create_time_series()");
	read_series_args(fcinfo, &args);
	rel = ttl_open_table(args.create.relid, AccessExclusiveLock);
	check_series(rel, &args);
	again = is_series(rel, &args);
	owner = rel->rd_rel->relowner;
	ttl_keep_name(args.create.relid);
	relation_close(rel, NoLock);

	/* like those to come, the partitions belong to the owner of the table */
	if (!again)
	{
		ttl_become_owner(owner, &saved);
		create_default(args.create.relid);
		ttl_restore_user(&saved);
	}
	/* of an earlier call: a notice, or an error where the options differ */
	indexrelid = ttl_create(&args.create);
	create_meta_index(&args);
	if (again)
		PG_RETURN_OID(indexrelid);
	if (!ttl_catalog_describe(indexrelid, true, &index))
		elog(ERROR, "could not describe index %u", indexrelid);
	ttl_become_owner(owner, &saved);
	foreach(lc, ttl_buckets_wanted(&index, GetCurrentTimestamp()))
		attach_bucket(&index, lfirst(lc));
	ttl_restore_user(&saved);
	PG_RETURN_OID(indexrelid);
}
