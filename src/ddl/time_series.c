/*-------------------------------------------------------------------------
 *
 * time_series.c
 *	  create_time_series: from an empty partitioned table to a time series.
 *
 * It makes a DEFAULT partition, the TTL index with the options about partitions
 * (create.c), an index for queries of one source, and the first partitions
 * (partition/make.c).  From then on the monitor makes them.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/ddl/time_series.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/relation.h"
#include "catalog/pg_index.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"

#include "ddl/ddl.h"
#include "definition/definition.h"
#include "definition/key.h"
#include "definition/option.h"
#include "partition/partition.h"
#include "state/state.h"
#include "ttl_index.h"

PG_FUNCTION_INFO_V1(ttl_create_time_series);

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
	char	   *granularity = ttl_args_text(fcinfo, 3);

	ttl_args_require(fcinfo, 2, names);
	memset(args, 0, sizeof(*args));
	args->create.relid = PG_GETARG_OID(0);
	args->create.key = ttl_args_text(fcinfo, 1);
	args->meta_field = ttl_args_text(fcinfo, 2);
	args->create.change.seconds = ttl_state_read_seconds(fcinfo, 4);
	args->create.change.time_zone = ttl_args_text(fcinfo, 6);
	args->create.change.boundary_rows = ttl_args_bool(fcinfo, 7);
	if (args->create.change.seconds != NULL)
		ttl_state_check_seconds(*args->create.change.seconds, true);

	if (args->meta_field != NULL &&
		strcmp(args->meta_field, args->create.key) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("meta_field and time_field must not be the same column"),
				 errhint("meta_field is what tells the sources of the series apart; it can be left out.")));

	if (granularity != NULL)
		args->create.change.bucket_seconds = granularity_seconds(granularity);
	if (PG_ARGISNULL(5))
		return;
	if (granularity != NULL && PG_GETARG_INT32(5) != args->create.change.bucket_seconds)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("bucket_max_span_seconds of granularity %s is %d",
						granularity, args->create.change.bucket_seconds),
				 errhint("Give one of the two.")));
	args->create.change.bucket_seconds = PG_GETARG_INT32(5);
	if (args->create.change.bucket_seconds < TTL_MIN_BUCKET_SECONDS ||
		args->create.change.bucket_seconds > TTL_MAX_BUCKET_SECONDS)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg_internal("%s", TTL_BUCKET_SECONDS_RANGE)));
}

/* Can this table become a time series? */
static void
check_series(Relation rel, const SeriesArgs *args)
{
	TtlKey		key;

	ttl_state_check_table(args->create.relid);
	if (rel->rd_rel->relkind != RELKIND_PARTITIONED_TABLE)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("table \"%s\" is not partitioned",
						RelationGetRelationName(rel)),
				 errhint("Create a table PARTITION BY RANGE (%s), make that one the time series, and insert the rows of this one.",
						 quote_identifier(args->create.key))));
	ttl_key_resolve(rel, args->create.key, &key);
	ttl_state_check_partitions(args->create.relid, key.attnum, getBaseType(key.type), false);
	if (args->meta_field != NULL &&
		get_attnum(args->create.relid, args->meta_field) == InvalidAttrNumber)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("column \"%s\" of table \"%s\" does not exist",
						args->meta_field, RelationGetRelationName(rel))));
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

/* create_time_series(relation, time_field, ...) returns regclass */
Datum
ttl_create_time_series(PG_FUNCTION_ARGS)
{
	static const bool drop = true;
	SeriesArgs	args;
	Oid			relid;
	Relation	rel;
	Oid			indexrelid;
	TtlIndex	index;
	bool		made = false;	/* by an earlier call */
	bool		again;
	ListCell   *lc;

	PreventCommandIfReadOnly("ttl_index.create_time_series()");
	read_series_args(fcinfo, &args);
	relid = args.create.relid;
	rel = ttl_owner_open(relid, AccessExclusiveLock);
	check_series(rel, &args);
	foreach(lc, ttl_key_indexes(rel, args.create.key))
	{
		TtlOption	option;

		made = made || (ttl_option_read(lfirst_oid(lc), &option) && option.bucket_seconds != 0);
	}
	if (!made)
	{
		args.create.change.drop_partitions = &drop;
		if (args.create.change.bucket_seconds == 0)
			args.create.change.bucket_seconds = SECS_PER_HOUR;
	}
	if (getBaseType(get_atttype(relid, get_attnum(relid, args.create.key))) == DATEOID &&
		args.create.change.bucket_seconds % SECS_PER_DAY != 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("partitions of a key of type date must span whole days"),
				 errhint("Take the granularity minutes or hours, or a multiple of 86400 for bucket_max_span_seconds.")));
	again = ttl_inherit_children(relid, false) != NIL;
	if (again && !made)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table \"%s\" has partitions",
						RelationGetRelationName(rel)),
				 errhint("ttl_index.create_index() with drop_expired_partitions => true lets those expire that somebody else makes.")));
	if (!again)
		ttl_owner_check_tree(relid, rel->rd_rel->relowner);
	ttl_name_keep(relid);
	relation_close(rel, NoLock);

	if (!again)
	{
		char	   *name = ChooseRelationName(get_rel_name(relid), NULL, "default",
											  get_rel_namespace(relid), false);

		ttl_citus_run_command(psprintf("CREATE TABLE %s PARTITION OF %s DEFAULT%s",
									   ttl_make_name_beside(relid, name), ttl_name_qualified(relid),
									   ttl_make_tablespace_clause(relid)));
		ttl_make_follow_table(relid, name);
	}
	/* of an earlier call: a notice, or an error where the options differ */
	indexrelid = ttl_create_index_for(&args.create);
	/* queries for one source of the series use it */
	if (args.meta_field != NULL &&
		!has_index_on(relid, get_attnum(relid, args.meta_field),
					  get_attnum(relid, args.create.key)))
		ttl_citus_run_command(psprintf("CREATE INDEX ON %s (%s, %s)",
									   ttl_name_qualified(relid),
									   quote_identifier(args.meta_field),
									   quote_identifier(args.create.key)));
	if (again)
		PG_RETURN_OID(indexrelid);
	if (!ttl_state_describe(indexrelid, true, &index))
		elog(ERROR, "could not describe index %u", indexrelid);
	foreach(lc, ttl_make_wanted(&index, GetCurrentTimestamp()))
		ttl_make_attach(&index, lfirst(lc));
	PG_RETURN_OID(indexrelid);
}
