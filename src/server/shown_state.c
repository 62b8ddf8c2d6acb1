/*-------------------------------------------------------------------------
 *
 * shown_state.c
 *	  An index as the view ttl_index.indexes shows it.
 *
 * state/state.c decides the state by the definition and by the moment.  If that is active,
 * this file finds what else keeps rows or partitions from being deleted: a hold, a crash,
 * that no process visits the database, partitions that cannot be dropped or created, and
 * errors after which no visit has succeeded.
 *
 * Keys and filters are deparsed with the reader's search_path, as \d does, if a query asks for
 * them.  A query of all indexes must not wait because of one of them, so it waits for no locks.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/index.h"
#include "fmgr.h"
#include "funcapi.h"
#include "nodes/makefuncs.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/ruleutils.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "definition/definition.h"
#include "due/due.h"
#include "partition/partition.h"
#include "server/server.h"
#include "state/state.h"

PG_FUNCTION_INFO_V1(ttl_list_indexes);
PG_FUNCTION_INFO_V1(ttl_shown_state_key);
PG_FUNCTION_INFO_V1(ttl_shown_state_filter);
PG_FUNCTION_INFO_V1(ttl_shown_state_document_ttl);

/* Sets the state of an index that is still active, if there is a reason for it. */
static void
show_reason(TtlIndex *index, TtlState state, const char *reason)
{
	if (index->state != TTL_ACTIVE || reason == NULL)
		return;
	ttl_state_set(index, state, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, pstrdup(reason), NULL);
}

/* The foreign partitions, or tables that inherit, whose rows an index leaves out; NULL for none. */
static char *
left_out(const TtlIndex *index)
{
	bool		partitioned = index->relkind == RELKIND_PARTITIONED_INDEX;
	List	   *tables;
	char	   *name;

	if (index->governor != index->indexrelid)
		return NULL;
	tables = partitioned ? ttl_inherit_foreign_tables(index->relid) :
		ttl_inherit_children(index->relid);
	if (tables == NIL || (name = get_rel_name(linitial_oid(tables))) == NULL)
		return NULL;
	return psprintf("leaves out the rows of %s: \"%s\"%s",
					partitioned ? "foreign partitions" : "tables that inherit", name,
					list_length(tables) == 1 ? "" :
					psprintf(" and %d more", list_length(tables) - 1));
}

/*
 * Why an active index does not delete all rows, or slowly; NULL for neither.  This reads
 * catalogs and statistics, so only the view asks.
 */
static const char *
active_reason(const TtlIndex *index, HTAB *failing)
{
	bool		is_whole = index->governor == index->indexrelid;
	const TtlFailing *error = hash_search(failing, &index->governor, HASH_FIND, NULL);
	const char *reason = left_out(index);
	const TtlReference *reference;

	if (reason == NULL && is_whole && error != NULL && error->keeps)
		reason = "a trigger keeps the rows that are due: it returns NULL";
	if (reason == NULL)
		reason = ttl_share_doubt(index);
	if (reason == NULL && is_whole && (reference = ttl_references_slow(index->relid)) != NULL)
		reason = psprintf("each delete reads a whole table, for lack of an index: %s",
						  reference->missing_index);
	return reason;
}

/*
 * Completes the state of an index, for the view and the survey: what else keeps its rows from
 * being deleted.
 */
void
ttl_shown_state_complete(TtlIndex *index, TtlVisitor *visitor,
						 const TtlStateFile *file, HTAB *failing)
{
	/* errors are counted for the whole */
	const TtlFailing *error = hash_search(failing, &index->governor, HASH_FIND, NULL);
	/* else another node makes and drops them */
	bool		keeps_partitions = ttl_citus_keeps_partitions(&index->citus);

	/* what stops all comes before what concerns one partition */
	if (!index->option.paused)
	{
		show_reason(index, TTL_HELD, ttl_hold_reason(&file->hold));
		show_reason(index, TTL_HELD, error ? error->held : NULL);
		show_reason(index, TTL_CRASHED_SERVER, ttl_crash_reason(file, index->governor));
		show_reason(index, TTL_NO_MONITOR, ttl_visitor_why_none(visitor, index->owner));
	}
	if (index->state != TTL_ACTIVE ||
		(ttl_leaves_is_by_row(index) && !ttl_state_owners_above(index)))
		return;
	if (error != NULL && error->at == 0)
		error = NULL;

	if (keeps_partitions && index->option.drop_partitions &&
		ttl_inherit_parent(index->indexrelid, NULL) == index->governor)
	{
		/* a partition could not be dropped if it was due when an error was counted */
		if (index->option.seconds >= 0 && error != NULL &&
			ttl_leaves_table_is_due(index, index->relid, error->at))
			show_reason(index, TTL_BUCKET_FAILING,
						"the partition was due and could not be dropped, detached or moved: see last_error in ttl_index.index_stats");
	}
	else if (keeps_partitions && index->governor == index->indexrelid)
	{
		/* a later one may be missing only because its time has just come */
		List	   *missing = ttl_make_missing(index, GetCurrentTimestamp(),
											   index->option.bucket_seconds);
		char	   *name = missing != NIL ? ttl_make_name(index, linitial(missing)) : NULL;

		if (name != NULL)
			show_reason(index, TTL_BUCKET_MISSING,
						psprintf("partition \"%s\" is missing: see last_error in ttl_index.index_stats, or wait for the next pass",
								 name));
	}

	if (index->option.paused)
		show_reason(index, TTL_PAUSED, "the index is paused, until ttl_index.unpause_index()");
	if (index->governor == index->indexrelid && error != NULL)
		show_reason(index, TTL_FAILING,
					"the last visit ended in an error, or rows that cannot be deleted are left: see last_error in ttl_index.index_stats");
}

typedef struct IndexesView
{
	ReturnSetInfo *rsinfo;
	TtlVisitor	visitor;
	TtlStateFile file;
	HTAB	   *failing;
} IndexesView;

/* The number of columns of list_indexes(). */
#define NCOLUMNS 14

static void
show_index(Oid indexrelid, void *arg)
{
	IndexesView *view = arg;
	ReturnSetInfo *rsinfo = view->rsinfo;
	TtlIndex	index;
	TtlCitusTable citus;
	Datum		values[NCOLUMNS] = {0};
	bool		nulls[NCOLUMNS] = {0};

	if (!ttl_state_describe(indexrelid, false, &index))
		return;
	ttl_shown_state_complete(&index, &view->visitor, &view->file, view->failing);
	if (index.state == TTL_ACTIVE)
		index.reason = active_reason(&index, view->failing);
	values[0] = ObjectIdGetDatum(index.indexrelid);
	values[1] = ObjectIdGetDatum(index.relid);
	/* an index with an option of its own has no parent as far as TTLs go */
	nulls[2] = index.governor == index.indexrelid;
	if (!nulls[2])
		values[2] = ObjectIdGetDatum(ttl_inherit_parent(indexrelid, NULL));
	values[3] = Int32GetDatum(index.option.seconds);
	nulls[3] = !index.option.present || index.option.problem != NULL;
	nulls[4] = index.option.time_zone == NULL;
	if (!nulls[4])
		values[4] = CStringGetTextDatum(index.option.time_zone);
	values[5] = BoolGetDatum(index.option.drop_partitions && !index.option.detach_partitions);
	values[6] = CStringGetTextDatum(ttl_state_name(index.state));
	nulls[7] = index.reason == NULL;
	if (!nulls[7])
		values[7] = CStringGetTextDatum(index.reason);
	values[8] = ObjectIdGetDatum(index.option.archive_to);
	nulls[8] = !OidIsValid(index.option.archive_to);
	values[9] = BoolGetDatum(index.option.detach_partitions);
	ttl_citus_look(index.relid, &citus);
	values[10] = ObjectIdGetDatum(citus.shell);
	nulls[10] = !OidIsValid(citus.shell);
	values[11] = ObjectIdGetDatum(ttl_citus_shell_index(index.indexrelid, &citus));
	nulls[11] = !OidIsValid(DatumGetObjectId(values[11]));
	nulls[12] = index.option.unit == TTL_UNIT_NONE;
	values[12] = CStringGetTextDatum(ttl_keytype_units[index.option.unit]);
	values[13] = ObjectIdGetDatum(index.governor);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

/* list_indexes(): the rows of the view ttl_index.indexes, without the texts below */
Datum
ttl_list_indexes(PG_FUNCTION_ARGS)
{
	IndexesView view = {0};

	view.rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	ttl_state_file_read(&view.file);
	ttl_visitor_find(MyDatabaseId, &view.file.hold, &view.visitor);
	InitMaterializedSRF(fcinfo, 0);
	ttl_args_check_columns(view.rsinfo->setDesc, NCOLUMNS, "list_indexes()");
	view.failing = ttl_counters_failing();
	ttl_catalog_each(ttl_catalog_shown(), show_index, &view);
	return (Datum) 0;
}

/*
 * Deparses a filter, or the key of an index if there is no filter.  Returns NULL if the index is
 * locked or gone.
 */
static char *
deparse(Oid indexrelid, Oid relid, List *filter)
{
	char	   *text = NULL;

	if (!ConditionalLockRelationOid(relid, AccessShareLock))
		return NULL;
	if (ConditionalLockRelationOid(indexrelid, AccessShareLock))
	{
		if (SearchSysCacheExists1(RELOID, ObjectIdGetDatum(relid)) &&
			SearchSysCacheExists1(INDEXRELID, ObjectIdGetDatum(indexrelid)))
			text = filter == NIL ? pg_get_indexdef_columns(indexrelid, true) :
				deparse_expression((Node *) make_ands_explicit(filter),
								   deparse_context_for(get_rel_name(relid), relid), false, false);
		UnlockRelationOid(indexrelid, AccessShareLock);
	}
	UnlockRelationOid(relid, AccessShareLock);
	return text;
}

static Datum
return_text(FunctionCallInfo fcinfo, const char *text)
{
	if (text == NULL)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(text));
}

/* Finds the table of an index, and reads its own option; false where there is none. */
static bool
read_index(Oid indexrelid, Oid *relid, TtlOption *option)
{
	*relid = IndexGetRelation(indexrelid, true);
	return OidIsValid(*relid) && ttl_option_read(indexrelid, option);
}

/* index_filter(index regclass): the user's filter of an index whose option is its own */
Datum
ttl_shown_state_filter(PG_FUNCTION_ARGS)
{
	Oid			relid;
	TtlOption	option;
	List	   *filter;

	if (!read_index(PG_GETARG_OID(0), &relid, &option) ||
		(filter = ttl_own_ttl_plain_filter(option.filter)) == NIL)
		PG_RETURN_NULL();
	return return_text(fcinfo, deparse(PG_GETARG_OID(0), relid, filter));
}

/* index_document_ttl(index regclass): the field of the documents' own TTL, as the user named it */
Datum
ttl_shown_state_document_ttl(PG_FUNCTION_ARGS)
{
	Oid			relid;
	TtlOption	option;
	Node	   *call;

	if (!read_index(PG_GETARG_OID(0), &relid, &option) ||
		(call = ttl_own_ttl_asked_for(option.filter)) == NULL)
		PG_RETURN_NULL();
	return return_text(fcinfo, ttl_own_ttl_field_name(call, relid));
}

/* index_key(index regclass): the key as users write it */
Datum
ttl_shown_state_key(PG_FUNCTION_ARGS)
{
	Oid			indexrelid = PG_GETARG_OID(0);
	Oid			relid = IndexGetRelation(indexrelid, true);
	AttrNumber	attnum;
	Node	   *key;
	char	   *text = NULL;

	if (!OidIsValid(relid))
		PG_RETURN_NULL();
	if (ttl_key_read(indexrelid, &attnum, &key))
		text = key == NULL ? get_attname(relid, attnum, true) :
			ttl_key_format(key)[0] == '\0' ? ttl_key_path_text(key, relid) : NULL;
	return return_text(fcinfo, text != NULL ? text : deparse(indexrelid, relid, NIL));
}
