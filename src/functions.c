/*-------------------------------------------------------------------------
 *
 * functions.c
 *	  SQL functions that need more than one folder: lag(), the view of indexes.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/functions.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_class.h"
#include "fmgr.h"
#include "funcapi.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "definition/citus.h"
#include "definition/definition.h"
#include "definition/key.h"
#include "definition/option.h"
#include "due/due.h"
#include "monitor/monitor.h"
#include "monitor/progress.h"
#include "monitor/state_file.h"
#include "monitor/survey.h"
#include "ttl_index.h"
#include "visitor.h"

PG_FUNCTION_INFO_V1(ttl_earliest);
PG_FUNCTION_INFO_V1(ttl_list_indexes);
PG_FUNCTION_INFO_V1(ttl_relation_name);
PG_FUNCTION_INFO_V1(ttl_lag);

/* earliest(dates timestamptz[]) returns timestamptz */
Datum
ttl_earliest(PG_FUNCTION_ARGS)
{
	ArrayIterator dates = array_create_iterator(PG_GETARG_ARRAYTYPE_P(0), 0,
												NULL);
	TimestampTz earliest = 0;
	bool		found = false;
	Datum		date;
	bool		isnull;

	while (array_iterate(dates, &date, &isnull))
	{
		if (isnull || (found && DatumGetTimestampTz(date) >= earliest))
			continue;
		earliest = DatumGetTimestampTz(date);
		found = true;
	}
	array_free_iterator(dates);
	if (!found)
		PG_RETURN_NULL();
	PG_RETURN_TIMESTAMPTZ(earliest);
}

/* The number of columns of list_indexes(). */
#define NCOLUMNS 12

static void
put_index(ReturnSetInfo *rsinfo, const TtlIndex *index)
{
	Datum		values[NCOLUMNS] = {0};
	bool		nulls[NCOLUMNS] = {0};
	char	   *reason = ttl_state_reason(index);
	TtlCitusTable citus;

	values[0] = ObjectIdGetDatum(index->indexrelid);
	values[1] = ObjectIdGetDatum(index->relid);
	/* an index with an option of its own has no parent as far as TTLs go */
	values[2] = ObjectIdGetDatum(index->parent);
	nulls[2] = index->root == index->indexrelid;
	values[3] = Int32GetDatum(index->option.seconds);
	nulls[3] = !index->option.present || index->option.problem != NULL;
	nulls[4] = index->option.time_zone == NULL;
	if (!nulls[4])
		values[4] = CStringGetTextDatum(index->option.time_zone);
	values[5] = BoolGetDatum(index->option.drop_partitions && !index->option.detach_partitions);
	values[6] = CStringGetTextDatum(ttl_state_name(index->state));
	nulls[7] = reason == NULL;
	if (!nulls[7])
		values[7] = CStringGetTextDatum(reason);
	values[8] = ObjectIdGetDatum(index->option.archive_to);
	nulls[8] = !OidIsValid(index->option.archive_to);
	values[9] = BoolGetDatum(index->option.detach_partitions);
	ttl_citus_look(index->relid, &citus);
	values[10] = ObjectIdGetDatum(citus.shell);
	nulls[10] = !OidIsValid(citus.shell);
	values[11] = ObjectIdGetDatum(ttl_citus_shell_index(index->indexrelid, &citus));
	nulls[11] = !OidIsValid(DatumGetObjectId(values[11]));
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

typedef struct IndexesView
{
	ReturnSetInfo *rsinfo;
	TtlVisitor	visitor;
	TtlStateFile file;
	List	   *crashed;
	List	   *failing;
} IndexesView;

static void
show_index(Oid indexrelid, void *arg)
{
	IndexesView *view = arg;
	TtlIndex	index;

	if (!ttl_catalog_describe(indexrelid, false, &index))
		return;
	ttl_shown_state_complete(&index, &view->visitor, &view->file, view->crashed,
							 view->failing);
	put_index(view->rsinfo, &index);
}

/* list_indexes(): the rows of the view ttl_index.indexes, without what shown_text.c writes */
Datum
ttl_list_indexes(PG_FUNCTION_ARGS)
{
	IndexesView view = {0};

	view.rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	ttl_state_file_read(&view.file);
	view.crashed = ttl_crash_skipped(&view.file);
	ttl_visitor_find(&view.visitor);
	InitMaterializedSRF(fcinfo, 0);
	ttl_args_check_columns(view.rsinfo->setDesc, NCOLUMNS, "list_indexes()");
	view.failing = ttl_counters_failing();
	ttl_catalog_each(ttl_catalog_shown(), show_index, &view);
	return (Datum) 0;
}

/*
 * relation_name(relation oid) returns record (schemaname, relname, relowner)
 *
 * Citus hides shards from queries of pg_class.  All columns are NULL for a relation that is
 * gone.
 */
Datum
ttl_relation_name(PG_FUNCTION_ARGS)
{
	Oid			relid = PG_GETARG_OID(0);
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	TupleDesc	desc;
	Datum		values[3] = {0};
	bool		nulls[3] = {true, true, true};
	NameData	schema;
	NameData	name;

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	if (HeapTupleIsValid(tuple))
	{
		Form_pg_class form = (Form_pg_class) GETSTRUCT(tuple);
		char	   *nspname = get_namespace_name(form->relnamespace);

		name = form->relname;
		namestrcpy(&schema, nspname ? nspname : "");
		values[0] = NameGetDatum(&schema);
		values[1] = NameGetDatum(&name);
		values[2] = ObjectIdGetDatum(form->relowner);
		memset(nulls, false, sizeof(nulls));
		nulls[0] = nspname == NULL;
		ReleaseSysCache(tuple);
	}
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls));
}

/* How far a pass has got: of one at work, or the last of the monitor. */
static bool
find_position(Oid indexrelid, void *arg, TtlScanPosition *position)
{
	int64		key;

	if (ttl_progress_position(indexrelid, position))
		return true;
	if (!ttl_overview_read_to(indexrelid, &key))
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
	/* it cannot be told where that of one shard cannot */
	if (ttl_nodes_know(PG_GETARG_OID(0)))
		return ttl_nodes_ask(PG_GETARG_OID(0), "pg_catalog.extract('epoch', ttl_index.lag(i.indexrelid))",
							 "CASE WHEN pg_catalog.bool_or(e.n IS NOT NULL AND e.v IS NULL) THEN NULL ELSE "
							 "pg_catalog.make_interval(secs => coalesce(pg_catalog.max(e.v::pg_catalog.float8), 0)) END",
							 NOTICE, &fcinfo->isnull);
	return DirectFunctionCall2(timestamp_mi, TimestampTzGetDatum(lag.at),
							   TimestampTzGetDatum(since));
}
