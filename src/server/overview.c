/*-------------------------------------------------------------------------
 *
 * overview.c
 *	  What the launcher knows of each database, for the view ttl_index.databases and lag().
 *
 * It is in the dynamic shared memory that the launcher shares with the processes of a pass
 * (tasks.c), whose address it shows in its progress fields (progress.c).  A session attaches
 * that memory for as long as it reads.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/index.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/backend_status.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "compat.h"
#include "due/due.h"
#include "server/server.h"
#include "state/state.h"

PG_FUNCTION_INFO_V1(ttl_list_databases);
PG_FUNCTION_INFO_V1(ttl_lag);

static const dshash_parameters parameters = TTL_DSHASH_PARAMETERS(Oid, TtlKnownDatabase);

/* Creates the hash table of TtlKnownDatabase. */
dshash_table *
ttl_overview_create(dsa_area *area)
{
	return dshash_create(area, &parameters, NULL);
}

/* Notes what a survey has found in a database; one without TTL indexes is not shown. */
void
ttl_overview_note(dshash_table *known, Oid database, const TtlSurvey *survey)
{
	TtlKnownDatabase *entry;
	bool		found;

	if (survey->indexes == 0)
	{
		(void) dshash_delete_key(known, &database);
		return;
	}
	entry = dshash_find_or_insert(known, &database, &found);
	entry->survey = *survey;
	dshash_release_lock(known, entry);
}

/* What is read: how far an index was read, or if that is invalid, all databases. */
typedef struct ReadWork
{
	TtlLauncher launcher;
	Oid			indexrelid;
	TtlScanPosition position;
	List	   *databases;		/* TtlKnownDatabase */
} ReadWork;

static void
read_work(void *arg)
{
	ReadWork   *work = arg;
	dsa_area   *area = dsa_attach(work->launcher.area);
	TtlCommon  *common = dsa_get_address(area, work->launcher.common);

	if (OidIsValid(work->indexrelid))
		ttl_kept_position(area, common->kept, work->indexrelid, &work->position);
	else
	{
		dshash_table *known = dshash_attach(area, &parameters, common->databases, NULL);
		TtlKnownDatabase *entry;
		dshash_seq_status scan;

		dshash_seq_init(&scan, known, false);
		while ((entry = dshash_seq_next(&scan)) != NULL)
		{
			TtlKnownDatabase *copy = palloc(sizeof(TtlKnownDatabase));

			*copy = *entry;
			work->databases = lappend(work->databases, copy);
		}
		dshash_seq_term(&scan);
		dshash_detach(known);
	}
	dsa_detach(area);
}

/* Reads what the launcher knows: nothing if there is none, or in a worker of it. */
static void
read_launcher(ReadWork *work)
{
	for (int tries = 0; tries < 2; tries++)
	{
		if (!ttl_progress_find_launcher(&work->launcher) ||
			ttl_error_catch(read_work, work, true) == NULL)
			return;
		/* it has ended since this transaction looked at the backends */
		pgstat_clear_backend_activity_snapshot();
	}
}

/* list_databases(): one row for each database in which the monitor has found TTL indexes */
Datum
ttl_list_databases(PG_FUNCTION_ARGS)
{
#define NCOLUMNS 11
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	ReadWork	work = {.indexrelid = InvalidOid};
	TtlStateFile file;
	TtlVisitor	visitor;
	ListCell   *lc;

	InitMaterializedSRF(fcinfo, 0);
	ttl_args_check_columns(rsinfo->setDesc, NCOLUMNS, "list_databases()");
	ttl_state_file_read(&file);
	read_launcher(&work);
	foreach(lc, work.databases)
	{
		const TtlKnownDatabase *database = lfirst(lc);
		const TtlSurvey *survey = &database->survey;
		Datum		values[NCOLUMNS] = {0};
		bool		nulls[NCOLUMNS] = {0};

		ttl_visitor_find(database->oid, &file.hold, &visitor);
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
		/* where nothing is deleted, a pass was cut short */
		nulls[8] = survey->left < 0 || visitor.reason != NULL;
		values[8] = Int64GetDatum(survey->left);
		values[9] = ttl_progress_interval(nulls[8] ? -1 : survey->time_left, &nulls[9]);
		nulls[10] = visitor.reason == NULL;
		if (!nulls[10])
			values[10] = CStringGetTextDatum(visitor.reason);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	if (work.databases != NIL)
		return (Datum) 0;

	ttl_visitor_find(InvalidOid, &file.hold, &visitor);
	if (visitor.reason != NULL)
		ereport(NOTICE,
				(errmsg("the monitor has visited no database with TTL indexes: %s", visitor.reason),
				 errhint("%s", visitor.hint)));
	return (Datum) 0;
#undef NCOLUMNS
}

/* How far a pass has got: of one at work, or the last of the monitor. */
static bool
find_position(Oid indexrelid, void *arg, TtlScanPosition *position)
{
	ReadWork	work = {.indexrelid = indexrelid};

	if (ttl_progress_position(indexrelid, position))
		return true;
	read_launcher(&work);
	*position = work.position;
	return position->set;
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
