/*-------------------------------------------------------------------------
 *
 * time_series.c
 *	  create_time_series(): turns an empty partitioned table into a time series.
 *
 * It creates the TTL index with the options about partitions (create.c), a DEFAULT partition,
 * an index for queries of one source, and the first partitions (partition/make.c).  The monitor
 * creates the following ones.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/relation.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/timestamp.h"

#include "ddl/ddl.h"
#include "partition/partition.h"
#include "state/state.h"
#include "ttl_index.h"

PG_FUNCTION_INFO_V1(ttl_create_time_series);

/* Reads granularity and bucket_max_span_seconds; returns 0 if neither was given. */
static int32
read_bucket_seconds(FunctionCallInfo fcinfo)
{
	const char *granularity = ttl_args_text(fcinfo, 3);
	bool		has_seconds = !PG_ARGISNULL(5);
	int32		seconds = has_seconds ? PG_GETARG_INT32(5) : 0;
	int32		span = 0;

	if (granularity != NULL)
	{
		if (strcmp(granularity, "seconds") == 0)
			span = SECS_PER_HOUR;
		else if (strcmp(granularity, "minutes") == 0)
			span = SECS_PER_DAY;
		else if (strcmp(granularity, "hours") == 0)
			span = 30 * SECS_PER_DAY;
		else
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("granularity must be seconds, minutes or hours"),
					 errdetail("Partitions then span one hour, one day or 30 days.")));
		if (has_seconds && seconds != span)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("bucket_max_span_seconds of granularity %s is %d", granularity, span)));
		return span;
	}
	if (has_seconds &&
		(seconds < TTL_MIN_BUCKET_SECONDS || seconds > TTL_MAX_BUCKET_SECONDS))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg_internal("%s", TTL_BUCKET_SECONDS_RANGE)));
	return seconds;
}

/* create_time_series(relation, time_field, ...) returns regclass */
Datum
ttl_create_time_series(PG_FUNCTION_ARGS)
{
	static const bool drop = true;
	static const char *const names[] = {"relation", "time_field"};
	Oid			relid = PG_GETARG_OID(0);
	char	   *meta_field = ttl_args_text(fcinfo, 2);
	TtlCreate	args = {
		.relid = relid,
		.key = ttl_args_text(fcinfo, 1),
		.change.seconds = ttl_state_read_seconds(fcinfo, 4),
		.change.time_zone = ttl_args_text(fcinfo, 6),
		.change.boundary_rows = ttl_args_bool(fcinfo, 7),
		.change.unit = ttl_coll_mod_read_unit(fcinfo, 8)
	};
	Relation	rel;
	Oid			indexrelid;
	char	   *name;
	TtlIndex	index;
	bool		is_series = false;
	bool		has_partitions;
	ListCell   *lc;

	PreventCommandIfReadOnly("ttl_index.create_time_series()");
	ttl_args_require(fcinfo, 2, names);
	args.change.bucket_seconds = read_bucket_seconds(fcinfo);
	if (args.change.seconds != NULL)
		ttl_state_check_seconds(*args.change.seconds, true);
	rel = ttl_owner_open(relid, AccessExclusiveLock);
	ttl_state_check_table(relid);
	if (rel->rd_rel->relkind != RELKIND_PARTITIONED_TABLE)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("table \"%s\" is not partitioned",
						RelationGetRelationName(rel)),
				 errhint("Create a table PARTITION BY RANGE (%s), make that one the time series, and insert the rows of this one.",
						 quote_identifier(args.key))));

	/* A second call keeps the options that are not given. */
	foreach(lc, ttl_key_indexes(rel, args.key))
	{
		TtlOption	option;

		if (ttl_option_read(lfirst_oid(lc), &option) && option.bucket_seconds != 0)
			is_series = true;
	}
	if (!is_series)
	{
		args.change.drop_partitions = &drop;
		if (args.change.bucket_seconds == 0)
			args.change.bucket_seconds = SECS_PER_HOUR;
	}
	has_partitions = ttl_inherit_children(relid) != NIL;
	if (has_partitions && !is_series)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table \"%s\" already has partitions",
						RelationGetRelationName(rel)),
				 errhint("If something else makes the partitions, use ttl_index.create_index() with drop_expired_partitions => true.")));
	if (!has_partitions)
		ttl_owner_check_tree(relid, rel->rd_rel->relowner);
	relation_close(rel, NoLock);

	/* If it exists, this is a NOTICE, or an error if its options differ. */
	indexrelid = ttl_create_index_for(&args);
	if (!ttl_state_describe(indexrelid, true, &index))
		elog(ERROR, "could not describe index %u", indexrelid);
	if (index.keytype == DATEOID && index.option.bucket_seconds % SECS_PER_DAY != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("partitions of a key of type date must span whole days"),
				 errhint("Use granularity => 'minutes', which makes partitions of one day.")));
	if (has_partitions)
		PG_RETURN_OID(indexrelid);

	name = ChooseRelationName(get_rel_name(relid), NULL, "default", get_rel_namespace(relid), false);
	ttl_citus_run_command(psprintf("CREATE TABLE %s PARTITION OF %s DEFAULT",
								   quote_qualified_identifier(get_namespace_name(get_rel_namespace(relid)), name),
								   ttl_name_qualified(relid)));
	ttl_make_follow_table(relid, name);

	/* Queries for one source of the series use this index. */
	if (meta_field != NULL)
		ttl_citus_run_command(psprintf("CREATE INDEX ON %s (%s, %s)",
									   ttl_name_qualified(relid),
									   quote_identifier(meta_field),
									   quote_identifier(args.key)));
	foreach(lc, ttl_make_wanted(&index, GetCurrentTimestamp()))
		ttl_make_attach(&index, lfirst(lc));
	PG_RETURN_OID(indexrelid);
}
