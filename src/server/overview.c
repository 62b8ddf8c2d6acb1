/*-------------------------------------------------------------------------
 *
 * overview.c
 *	  What the launcher knows of each database, for the view ttl_index.databases and lag().
 *
 * The launcher writes it into a dynamic shared memory segment, whose handle it shows in its
 * progress fields (progress.c).  So no shared memory is requested at the start of the
 * server, and there is no limit to the number of databases.
 *
 * There is one writer, and nothing is locked: as in the status entries of backends, a
 * counter is odd while the contents change, and a reader that finds it changed reads again.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/index.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/dsm.h"
#include "utils/backend_status.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "due/due.h"
#include "server/server.h"
#include "state/state.h"
#include "stats/stats.h"
#include "stats/progress.h"
#include "ttl_index.h"

PG_FUNCTION_INFO_V1(ttl_list_databases);
PG_FUNCTION_INFO_V1(ttl_lag);

#define INITIAL_DATABASES 64
#define INITIAL_INDEXES 256

/* The databases follow, and after the room for these the indexes. */
typedef struct Overview
{
	pg_atomic_uint32 changes;	/* odd while the rest is written */
	int32		max;			/* so many have room */
	int32		count;
	int32		max_indexes;
	int32		index_count;
	TtlKnownDatabase databases[FLEXIBLE_ARRAY_MEMBER];
} Overview;

static Size
overview_size(const Overview *overview)
{
	return offsetof(Overview, databases) + overview->max * sizeof(TtlKnownDatabase) +
		overview->max_indexes * sizeof(TtlKnownIndex);
}

static TtlKnownIndex *
known_indexes(Overview *overview)
{
	return (TtlKnownIndex *) &overview->databases[overview->max];
}

static dsm_segment *segment = NULL;
static TtlReported failure_reported;

static void
create_work(void *arg)
{
	Overview   *empty = arg;
	dsm_segment *made = dsm_create(overview_size(empty), 0);
	Overview   *overview = dsm_segment_address(made);

	dsm_pin_mapping(made);
	*overview = *empty;
	pg_atomic_init_u32(&overview->changes, 0);
	/* a reader of the old one keeps it until then */
	if (segment != NULL)
		dsm_detach(segment);
	segment = made;
}

/*
 * Shows what the launcher knows.  Called by the launcher.  If there is no memory for a larger
 * segment, some are not shown.
 */
void
ttl_overview_write(const TtlKnownDatabase *databases, int count,
				   const TtlKnownIndex *indexes, int index_count)
{
	Overview   *overview = segment ? dsm_segment_address(segment) : NULL;

	if (overview == NULL || overview->max < count || overview->max_indexes < index_count)
	{
		Overview	empty = {
			.max = Max(INITIAL_DATABASES, count * 2),
			.max_indexes = Max(INITIAL_INDEXES, index_count * 2)
		};
		ErrorData  *edata;

		StartTransactionCommand();
		edata = ttl_error_catch(create_work, &empty, true);
		if (edata == NULL)
			failure_reported.at = 0;
		else if (ttl_kept_is_news(&failure_reported, edata->sqlerrcode, edata->message))
			ereport(WARNING,
					(errcode(edata->sqlerrcode),
					 errmsg("ttl_index.databases does not show all databases: %s", edata->message)));
		CommitTransactionCommand();
	}
	if (segment == NULL)
		return;
	overview = dsm_segment_address(segment);
	pg_atomic_fetch_add_u32(&overview->changes, 1);
	overview->count = Min(count, overview->max);
	overview->index_count = Min(index_count, overview->max_indexes);
	memcpy(overview->databases, databases, overview->count * sizeof(TtlKnownDatabase));
	memcpy(known_indexes(overview), indexes, overview->index_count * sizeof(TtlKnownIndex));
	pg_write_barrier();
	pg_atomic_fetch_add_u32(&overview->changes, 1);
}

/* The handle of the segment, for the progress fields of the launcher; 0 for none. */
dsm_handle
ttl_overview_handle(void)
{
	return segment ? dsm_segment_handle(segment) : 0;
}

/* Copies what the launcher shows; NULL if there is no launcher. */
static Overview *
read_overview(void)
{
	TtlLauncher launcher;
	dsm_segment *attached = NULL;
	Overview   *overview;
	Overview   *copy;
	Size		size;
	uint32		before;

	for (int tries = 0; tries < 2 && attached == NULL; tries++)
	{
		/* this transaction may have looked at the backends long ago */
		if (tries > 0)
			pgstat_clear_backend_activity_snapshot();
		if (!ttl_progress_find_launcher(&launcher) || launcher.overview == 0)
			return NULL;
		attached = dsm_attach(launcher.overview);
	}
	if (attached == NULL)
		return NULL;
	overview = dsm_segment_address(attached);
	size = overview_size(overview);
	copy = palloc(size);
	for (;;)
	{
		before = pg_atomic_read_u32(&overview->changes);
		pg_read_barrier();
		memcpy(copy, overview, size);
		pg_read_barrier();
		if (before % 2 == 0 && pg_atomic_read_u32(&overview->changes) == before)
			break;
		CHECK_FOR_INTERRUPTS();
		pg_usleep(100);
	}
	dsm_detach(attached);
	return copy;
}

/* list_databases(): one row for each database in which the monitor has found TTL indexes */
Datum
ttl_list_databases(PG_FUNCTION_ARGS)
{
#define NCOLUMNS 11
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Overview   *overview = read_overview();
	int			count = overview ? overview->count : 0;
	TtlVisitor	visitor;

	InitMaterializedSRF(fcinfo, 0);
	ttl_args_check_columns(rsinfo->setDesc, NCOLUMNS, "list_databases()");
	for (int i = 0; i < count; i++)
	{
		const TtlSurvey *survey = &overview->databases[i].survey;
		Datum		values[NCOLUMNS] = {0};
		bool		nulls[NCOLUMNS] = {0};

		ttl_visitor_find(overview->databases[i].oid, &visitor);
		values[0] = ObjectIdGetDatum(overview->databases[i].oid);
		values[1] = TimestampTzGetDatum(survey->pass_start);
		nulls[1] = survey->pass_start == 0;
		values[2] = TimestampTzGetDatum(survey->pass_end);
		nulls[2] = survey->pass_end == 0;
		values[3] = Int32GetDatum(survey->indexes);
		values[4] = Int32GetDatum(survey->not_active);
		values[5] = Int32GetDatum(survey->failing);
		values[6] = Int32GetDatum(survey->paused);
		nulls[7] = survey->worst_lag < 0;
		if (!nulls[7])
			values[7] = DirectFunctionCall2(timestamp_mi, TimestampTzGetDatum(survey->at),
											TimestampTzGetDatum(survey->at - survey->worst_lag));
		/* where nothing is deleted, a pass was cut short */
		nulls[8] = survey->left < 0 || visitor.reason != NULL;
		values[8] = Int64GetDatum(survey->left);
		values[9] = ttl_progress_interval(nulls[8] ? -1 : survey->time_left, &nulls[9]);
		nulls[10] = visitor.reason == NULL;
		if (!nulls[10])
			values[10] = CStringGetTextDatum(visitor.reason);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	if (count > 0)
		return (Datum) 0;

	ttl_visitor_find(InvalidOid, &visitor);
	if (visitor.reason != NULL)
		ereport(NOTICE,
				(errmsg("the monitor has visited no database with TTL indexes: %s", visitor.reason),
				 errhint("%s", visitor.hint)));
	else
		ereport(NOTICE,
				(errmsg("the monitor has found no database with TTL indexes since it has started"),
				 errdetail("Its first pass begins ttl_index.monitor_sleep after the start.")));
	return (Datum) 0;
#undef NCOLUMNS
}

/* How far a pass has got: of one at work, or the last of the monitor. */
static bool
find_position(Oid indexrelid, void *arg, TtlScanPosition *position)
{
	Overview   *overview;

	if (ttl_progress_position(indexrelid, position))
		return true;
	overview = read_overview();
	for (int i = 0; overview != NULL && i < overview->index_count; i++)
	{
		const TtlKnownIndex *index = &known_indexes(overview)[i];

		if (index->database != MyDatabaseId || index->indexrelid != indexrelid)
			continue;
		*position = ttl_index_scan_from(index->key);
		return true;
	}
	return false;
}

/* lag(index regclass) returns interval */
Datum
ttl_lag(PG_FUNCTION_ARGS)
{
	TtlLag		lag = {.at = GetCurrentTimestamp(),.elevel = NOTICE,.find_position = find_position};
	TimestampTz since;
	bool		may_be_due;

	if (!ttl_due_since(PG_GETARG_OID(0), &lag, &since, &may_be_due))
		PG_RETURN_NULL();
	/* the rows are in shards: it is unknown if that of one shard is */
	if (ttl_citus_kind(IndexGetRelation(PG_GETARG_OID(0), true)) == TTL_CITUS_SHELL)
		return ttl_due_ask_nodes(PG_GETARG_OID(0), "pg_catalog.extract('epoch', ttl_index.lag(i.indexrelid))",
								 "CASE WHEN pg_catalog.bool_or(e.n IS NOT NULL AND e.v IS NULL) THEN NULL ELSE "
								 "pg_catalog.make_interval(secs => coalesce(pg_catalog.max(e.v::pg_catalog.float8), 0)) END",
								 NOTICE, &fcinfo->isnull);
	return DirectFunctionCall2(timestamp_mi, TimestampTzGetDatum(lag.at),
							   TimestampTzGetDatum(since));
}
