/*-------------------------------------------------------------------------
 *
 * overview.c
 *	  What the launcher knows of each database, for the view ttl_index.databases and lag().
 *
 * The launcher writes it into a dynamic shared memory segment, whose handle it shows in its
 * progress fields (progress.c).  So no shared memory is requested at the start of the
 * server, and there is no limit to the number of databases.  The area that the launcher
 * shares with its workers would not do: attaching to one that has just gone is an error.
 *
 * There is one writer, which readers must not delay.  So nothing is locked: as in the
 * status entries of backends, a counter is odd while the contents change, and a reader that
 * finds it changed reads again.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/server/overview.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/index.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/dsm.h"
#include "storage/lwlock.h"
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

/* Without memory for a segment, the launcher tries again this often. */
#define RETRY_US USECS_PER_MINUTE

#define INITIAL_DATABASES 64
#define INITIAL_INDEXES 256

/* The indexes follow behind the room for the databases. */
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
overview_size(int max, int max_indexes)
{
	return offsetof(Overview, databases) + max * sizeof(TtlKnownDatabase) +
		max_indexes * sizeof(TtlKnownIndex);
}

static TtlKnownIndex *
known_indexes(Overview *overview)
{
	return (TtlKnownIndex *) &overview->databases[overview->max];
}

static dsm_segment * segment = NULL;
static TimestampTz failed_at = 0;	/* the last try, or 0 */
static TtlReported failure_said;

/*
 * Makes a segment with room for so many, in the place of the one before.  If there is no
 * memory, the launcher goes on, and some databases are not shown.
 */
static void
make_segment(int max, int max_indexes)
{
	MemoryContext caller = CurrentMemoryContext;
	dsm_segment *volatile made = NULL;
	ErrorData  *volatile edata = NULL;
	Overview   *overview;

	PG_TRY();
	{
		made = dsm_create(overview_size(max, max_indexes), DSM_CREATE_NULL_IF_MAXSEGMENTS);
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(caller);
		LWLockReleaseAll();
		edata = CopyErrorData();
		FlushErrorState();
	}
	PG_END_TRY();
	if (made == NULL)
	{
		int			sqlerrcode = edata ? edata->sqlerrcode : ERRCODE_INSUFFICIENT_RESOURCES;
		const char *message = edata ? edata->message : "too many dynamic shared memory segments";

		failed_at = GetCurrentTimestamp();
		if (ttl_reported_is_news(&failure_said, sqlerrcode, message))
			ereport(WARNING,
					(errcode(sqlerrcode),
					 errmsg("ttl_index.databases does not show all databases: %s", message)));
		if (edata != NULL)
			FreeErrorData(edata);
		return;
	}
	failed_at = failure_said.at = 0;
	dsm_pin_mapping(made);
	overview = dsm_segment_address(made);
	pg_atomic_init_u32(&overview->changes, 0);
	overview->max = max;
	overview->max_indexes = max_indexes;
	overview->count = overview->index_count = 0;
	/* a reader of the old one keeps it until then */
	if (segment != NULL)
		dsm_detach(segment);
	segment = made;
}

/* Shows what the launcher knows.  Called by the launcher. */
void
ttl_overview_write(const TtlKnownDatabase *databases, int count,
				   const TtlKnownIndex *indexes, int index_count)
{
	Overview   *overview = segment ? dsm_segment_address(segment) : NULL;
	TimestampTz now = GetCurrentTimestamp();

	/* the clock may have gone back */
	if ((overview == NULL || overview->max < count || overview->max_indexes < index_count) &&
		(failed_at == 0 || now < failed_at || now - failed_at >= RETRY_US))
		make_segment(Max(INITIAL_DATABASES, count * 2), Max(INITIAL_INDEXES, index_count * 2));
	if (segment == NULL)
		return;
	overview = dsm_segment_address(segment);
	count = Min(count, overview->max);
	index_count = Min(index_count, overview->max_indexes);
	pg_atomic_fetch_add_u32(&overview->changes, 1);
	overview->count = count;
	overview->index_count = index_count;
	memcpy(overview->databases, databases, count * sizeof(TtlKnownDatabase));
	memcpy(known_indexes(overview), indexes, index_count * sizeof(TtlKnownIndex));
	pg_write_barrier();
	pg_atomic_fetch_add_u32(&overview->changes, 1);
}

/* The handle of the segment, for the progress fields of the launcher; 0 for none. */
dsm_handle
ttl_overview_handle(void)
{
	return segment ? dsm_segment_handle(segment) : 0;
}

/* Copies what the launcher of this server shows; NULL if there is no launcher. */
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
	size = overview_size(overview->max, overview->max_indexes);
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

/* Up to which key has the monitor read an index of this database?  False if unknown. */
static bool
read_to(Oid indexrelid, int64 *key)
{
	Overview   *overview = read_overview();

	for (int i = 0; overview != NULL && i < overview->index_count; i++)
	{
		TtlKnownIndex *index = &known_indexes(overview)[i];

		if (index->database != MyDatabaseId || index->indexrelid != indexrelid)
			continue;
		*key = index->key;
		return true;
	}
	return false;
}

/* Of list_databases(): this many columns. */
#define NCOLUMNS 16

static void
put_database(ReturnSetInfo *rsinfo, const TtlKnownDatabase *database, const char *hold)
{
	const TtlSurvey *survey = &database->survey;
	Datum		values[NCOLUMNS] = {0};
	bool		nulls[NCOLUMNS] = {0};
	bool		enabled;
	const char *reason = ttl_visitor_why_no_monitor(database->oid, &enabled, NULL);

	if (reason == NULL)
		reason = hold;
	values[0] = ObjectIdGetDatum(database->oid);
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
	values[8] = Int32GetDatum(survey->lag_unknown);
	values[9] = Int64GetDatum(survey->deleted);
	values[10] = Int64GetDatum(survey->partitions);
	/* where nothing is deleted, a pass was cut short */
	nulls[11] = survey->left < 0 || reason != NULL;
	values[11] = Int64GetDatum(survey->left);
	values[12] = ttl_progress_interval(survey->time_left, &nulls[12]);
	nulls[12] = nulls[12] || nulls[11];
	values[13] = BoolGetDatum(enabled);
	values[14] = BoolGetDatum(hold != NULL);
	nulls[15] = reason == NULL;
	if (!nulls[15])
		values[15] = CStringGetTextDatum(reason);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

/* list_databases(): one row for each database in which the monitor has found TTL indexes */
Datum
ttl_list_databases(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	TtlStateFile file;
	char	   *hold;
	Overview   *overview;
	bool		enabled;
	const char *hint;
	const char *reason;

	InitMaterializedSRF(fcinfo, 0);
	ttl_args_check_columns(rsinfo->setDesc, NCOLUMNS, "list_databases()");
	ttl_state_file_read(&file);
	hold = ttl_hold_reason(&file.hold);
	overview = read_overview();
	for (int i = 0; overview != NULL && i < overview->count; i++)
		put_database(rsinfo, &overview->databases[i], hold);
	if (overview != NULL && overview->count > 0)
		return (Datum) 0;

	reason = ttl_visitor_why_no_monitor(InvalidOid, &enabled, &hint);
	if (reason != NULL)
		ereport(NOTICE,
				(errmsg("the monitor has visited no database with TTL indexes: %s", reason),
				 errhint("%s", hint)));
	else if (hold != NULL)
		ereport(NOTICE,
				(errmsg("the monitor has visited no database with TTL indexes: it is held, %s", hold),
				 errhint("%s", ttl_hold_hint(&file.hold))));
	else
		ereport(NOTICE,
				(errmsg("the monitor has found no database with TTL indexes since it has started"),
				 errdetail("Its first pass begins ttl_index.monitor_sleep after the start.")));
	return (Datum) 0;
}

/* How far a pass has got: of one at work, or the last of the monitor. */
static bool
find_position(Oid indexrelid, void *arg, TtlScanPosition *position)
{
	int64		key;

	if (ttl_progress_position(indexrelid, position))
		return true;
	if (!read_to(indexrelid, &key))
		return false;
	*position = ttl_index_scan_from(key);
	return true;
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
