/*-------------------------------------------------------------------------
 *
 * due.c
 *	  What is due by a TTL index, for readers that delete nothing.
 *
 * due_count() and oldest_due() read what a pass would delete, and raise an error if they
 * cannot.  lag() and the survey call ttl_due_since() for many indexes.  It does not wait for
 * locks, reads little, and returns false if the answer is unknown.  All of these read index
 * tuples and the visibility of rows (expire/look.c).  preview() is a query of the caller.
 * cutoff() reads the definition alone.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/index.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rls.h"
#include "utils/ruleutils.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "due/due.h"
#include "partition/partition.h"
#include "state/state.h"
#include "ttl_index.h"

PG_FUNCTION_INFO_V1(ttl_due_count);
PG_FUNCTION_INFO_V1(ttl_oldest_due);
PG_FUNCTION_INFO_V1(ttl_cutoff);
PG_FUNCTION_INFO_V1(ttl_cutoff_number);
PG_FUNCTION_INFO_V1(ttl_preview);

/* ttl_due_since() reads so many leaf pages of an index in one place before it gives up. */
#define LAG_PAGES 32

/* May the user know what is due?  A role that may read all rows can count them. */
bool
ttl_due_may_look(const TtlIndex *index)
{
	bool		gone = false;

	return has_privs_of_role(GetUserId(), index->owner) ||
		has_privs_of_role(GetUserId(), ROLE_PG_MONITOR) ||
		(pg_class_aclcheck_ext(index->relid, GetUserId(), ACL_SELECT, &gone) == ACLCHECK_OK &&
		 check_enable_rls(index->relid, InvalidOid, true) != RLS_ENABLED);
}

/*
 * Describes a TTL index.  Raises an error unless rows expire by it, and unless the user may
 * count the rows that are due, if that is to be checked.
 */
void
ttl_due_describe(Oid indexrelid, bool check_user, TtlIndex *index)
{
	bool		found = ttl_state_describe(indexrelid, false, index);

	ttl_state_check_is_index(indexrelid);
	if (!found)
		elog(ERROR, "cache lookup failed for index %u", indexrelid);
	ttl_state_check_is_ttl(index);
	if (index->state != TTL_ACTIVE)
		ttl_state_raise(index);
	if (check_user && !ttl_due_may_look(index))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_INDEX, get_rel_name(indexrelid));
}

/* Locks an index and its table for a look.  False if others have locked one of them. */
bool
ttl_due_lock(Oid relid, Oid indexrelid)
{
	return ConditionalLockRelationOid(relid, AccessShareLock) &&
		ConditionalLockRelationOid(indexrelid, AccessShareLock);
}

/* Locks and describes a leaf; false if a pass would skip it; an error if it is locked. */
bool
ttl_due_lock_leaf(Oid indexrelid, TtlIndex *index)
{
	Oid			relid = IndexGetRelation(indexrelid, true);

	if (!OidIsValid(relid))
		return false;
	if (!ttl_due_lock(relid, indexrelid))
	{
		char	   *name = get_rel_name(relid);

		if (name == NULL)
			return false;
		ereport(ERROR,
				(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
				 errmsg("could not obtain lock on table \"%s\"", name)));
	}
	/* it may have changed since the list was made */
	return ttl_state_describe(indexrelid, false, index) &&
		index->state == TTL_ACTIVE && index->option.seconds >= 0;
}

/* Describes an index whose due rows are to be counted here. */
static void
describe_for_count(Oid indexrelid, TtlIndex *index)
{
	ttl_due_describe(indexrelid, true, index);
	if (index->citus.replicated)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("table \"%s\" has copies on several nodes of Citus",
						get_rel_name(index->relid)),
				 errhint("SELECT count(*) FROM ttl_index.preview(%s, 2147483647);",
						 quote_literal_cstr(ttl_name_qualified(indexrelid)))));
}

/*
 * Asks all nodes for their shards of an index: calls a function there for each of them ("i", a
 * row of ttl_index.indexes), and aggregates the values "e.v" with the numbers "e.n".  Each node
 * is asked as the caller, in a transaction of its own, so what the caller has not committed is
 * not counted: no pass would delete it either.  If a node does not answer, reports it at elevel
 * and returns NULL.
 */
Datum
ttl_due_ask_nodes(Oid indexrelid, const char *call, const char *aggregate, int elevel,
				  bool *isnull)
{
	char	   *query;
	char	   *problem;
	Datum		result;

	/* a shard that is being moved is on two nodes, and belongs to one of them */
	query = psprintf("SELECT coalesce(pg_catalog.jsonb_agg(%s), '[]') FROM ttl_index.indexes AS i "
					 "WHERE i.logical_indexrelid::pg_catalog.oid OPERATOR(pg_catalog.=) "
					 "%s::pg_catalog.regclass::pg_catalog.oid "
					 "AND i.state OPERATOR(pg_catalog.<>) 'shard_elsewhere'",
					 call, quote_literal_cstr(ttl_name_qualified(indexrelid)));
	SPI_connect();
	if (SPI_execute(psprintf("SELECT %s, pg_catalog.min(pg_catalog.format('node %%s:%%s: %%s', "
							 "a.nodename, a.nodeport, a.error)) FILTER (WHERE a.error IS NOT NULL) "
							 "FROM ttl_index.ask_nodes(%s) AS a LEFT JOIN LATERAL "
							 "pg_catalog.jsonb_array_elements_text(a.answer) WITH ORDINALITY AS e (v, n) ON true",
							 aggregate, quote_literal_cstr(query)),
					false, 0) != SPI_OK_SELECT)
		elog(ERROR, "could not ask the nodes for index %u", indexrelid);
	problem = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 2);
	result = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, isnull);
	if (problem != NULL)
	{
		ereport(elevel,
				(errcode(ERRCODE_CONNECTION_FAILURE),
				 errmsg("could not ask all nodes for the shards of index \"%s\"",
						get_rel_name(indexrelid)),
				 errdetail_internal("%s", problem)));
		*isnull = true;
	}
	else if (!*isnull && !TupleDescAttr(SPI_tuptable->tupdesc, 0)->attbyval)
		result = SPI_datumTransfer(result, false, TupleDescAttr(SPI_tuptable->tupdesc, 0)->attlen);
	SPI_finish();
	return result;
}

/* Counts the rows that are due by an index, up to so many in each leaf, and finds the oldest. */
static void
look_at_leaves(const TtlIndex *index, int64 max_rows, TtlLook *all)
{
	TimestampTz at = GetCurrentTimestamp();
	ListCell   *lc;

	all->count = 0;
	all->oldest = DT_NOEND;
	foreach(lc, ttl_leaves_due(index, at))
	{
		TtlLook		look = {.max_rows = max_rows};
		TtlIndex	leaf;

		if (!ttl_due_lock_leaf(((TtlDueLeaf *) lfirst(lc))->indexrelid, &leaf))
			continue;
		ttl_look_at(&leaf, at, &look);
		all->count += look.count;
		if (look.count > 0)
			all->oldest = Min(all->oldest, look.oldest);
	}
}

/* due_count(index regclass) returns bigint */
Datum
ttl_due_count(PG_FUNCTION_ARGS)
{
	TtlIndex	index;
	TtlLook		all;

	describe_for_count(PG_GETARG_OID(0), &index);
	if (index.citus.kind == TTL_CITUS_SHELL)
		return ttl_due_ask_nodes(index.indexrelid, "ttl_index.due_count(i.indexrelid)",
								 "coalesce(pg_catalog.sum(e.v::pg_catalog.int8), 0)::pg_catalog.int8",
								 ERROR, &fcinfo->isnull);
	look_at_leaves(&index, 0, &all);
	PG_RETURN_INT64(all.count);
}

/* oldest_due(index regclass) returns timestamptz */
Datum
ttl_oldest_due(PG_FUNCTION_ARGS)
{
	TtlIndex	index;
	TtlLook		all;

	describe_for_count(PG_GETARG_OID(0), &index);
	if (index.citus.kind == TTL_CITUS_SHELL)
		return ttl_due_ask_nodes(index.indexrelid, "ttl_index.oldest_due(i.indexrelid)",
								 "pg_catalog.min(e.v::pg_catalog.timestamptz)",
								 ERROR, &fcinfo->isnull);
	look_at_leaves(&index, 1, &all);
	if (all.count == 0)
		PG_RETURN_NULL();
	PG_RETURN_TIMESTAMPTZ(all.oldest);
}

/* Selects up to so many due rows of a leaf as the caller, oldest first, into SPI_tuptable. */
static void
select_due(const TtlIndex *leaf, TimestampTz at, int64 max_rows)
{
	static Oid	types[] = {InvalidOid, InvalidOid, TEXTOID, TIMESTAMPTZOID};
	List	   *context = deparse_context_for("t", leaf->relid);
	TtlCutoff	cutoff;
	TtlOption	own;
	AttrNumber	attnum;
	Node	   *expression;
	char	   *key;
	Datum		values[4];
	StringInfoData query;
	int			level;

	if (!ttl_key_read(leaf->indexrelid, &attnum, &expression) ||
		!ttl_option_read(leaf->indexrelid, &own))
		elog(ERROR, "cache lookup failed for index %u", leaf->indexrelid);
	key = psprintf("(%s)", deparse_expression(ttl_key_node(leaf->relid, attnum, expression),
											  context, true, false));
	ttl_cutoff_init(&cutoff, leaf, at);
	types[0] = types[1] = leaf->keytype;
	values[0] = ttl_keytype_datum(leaf->keytype, cutoff.bound, TTL_KEYTYPE_WHOLE);
	values[1] = ttl_keytype_datum(leaf->keytype, cutoff.sure, TTL_KEYTYPE_WHOLE);
	values[2] = CStringGetTextDatum(leaf->option.time_zone ? leaf->option.time_zone : "");
	values[3] = TimestampTzGetDatum(cutoff.instant);

	initStringInfo(&query);
	appendStringInfo(&query,
					 "SELECT pg_catalog.to_jsonb(t.*) FROM ONLY %s AS t "
					 "WHERE %s OPERATOR(pg_catalog.<=) $1",
					 ttl_name_qualified(leaf->relid), key);

	if (ttl_keytype_condition(leaf->keytype, key) != NULL)
		appendStringInfo(&query, " AND %s", ttl_keytype_condition(leaf->keytype, key));

	/* near a change of summer time, keys are not in the order of instants */
	if (cutoff.zone != NULL)
		appendStringInfo(&query,
						 " AND (%s OPERATOR(pg_catalog.<=) $2 OR "
						 "pg_catalog.timezone($3, %s::pg_catalog.timestamp) OPERATOR(pg_catalog.<=) $4)",
						 key, key);
	if (own.filter != NIL)
		appendStringInfo(&query, " AND (%s)",
						 deparse_expression((Node *) make_ands_explicit(own.filter),
											context, true, false));
	appendStringInfo(&query, " ORDER BY %s", key);

	/* Citus writes parameters as text, which a node reads by its own setting */
	level = NewGUCNestLevel();
	if (leaf->citus.replicated)
		ttl_settings_set("datestyle", "ISO, YMD");
	if (SPI_execute_with_args(query.data, cutoff.zone != NULL ? 4 : 1, types, values, NULL,
							  true, max_rows) != SPI_OK_SELECT)
		elog(ERROR, "could not select what is due by index %u", leaf->indexrelid);
	AtEOXact_GUC(false, level);
}

/*
 * preview(index regclass, max_rows integer) returns setof jsonb
 *
 * A query of the caller, whose privileges and row security hold.
 */
Datum
ttl_preview(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	Oid			indexrelid = PG_GETARG_OID(0);
	int64		max_rows = PG_GETARG_INT32(1);
	TimestampTz at = GetCurrentTimestamp();
	TtlIndex	index;
	ListCell   *lc;

	ttl_due_describe(indexrelid, false, &index);
	if (index.citus.kind == TTL_CITUS_SHELL && !index.citus.replicated)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("the rows of index \"%s\" are in shards of Citus",
						get_rel_name(indexrelid)),
				 errhint("Preview the indexes of the shards on their nodes, see ttl_index.indexes there.")));
	if (max_rows < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("max_rows must not be negative")));
	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	foreach(lc, ttl_leaves_due(&index, at))
	{
		TtlIndex	leaf;

		if (max_rows == 0)
			break;
		if (!ttl_due_lock_leaf(((TtlDueLeaf *) lfirst(lc))->indexrelid, &leaf))
			continue;
		SPI_connect();
		select_due(&leaf, at, max_rows);
		for (uint64 i = 0; i < SPI_processed; i++)
		{
			bool		isnull;
			Datum		row = SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1,
											&isnull);

			tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, &row, &isnull);
		}
		max_rows -= SPI_processed;
		SPI_finish();
	}
	return (Datum) 0;
}

/* May lag() look at an index?  It may also be one that is skipped for what its owner lacks. */
static bool
can_look(const TtlIndex *index)
{
	return index->option.present && ttl_due_may_look(index) &&
		(index->state == TTL_ACTIVE ||
		 index->state == TTL_OWNER_LACKS_PRIVILEGE ||
		 index->state == TTL_NO_REPLICA_IDENTITY);
}

/* A leaf that is looked at, and what is found. */
typedef struct LeafWork
{
	const TtlDueLeaf *leaf;
	const TtlLag *lag;
	bool		known;			/* false: it cannot be told */
	TimestampTz since;			/* the clock reading if nothing is due */
	bool		may_be_due;
} LeafWork;

/*
 * Looks for the oldest due row in a leaf.  If too many entries of deleted rows come first, it
 * looks where the last pass has got to; rows before that place may be due even if nothing is
 * found.  A row at -infinity says nothing about since when it is due.
 */
static void
look_at_leaf(void *arg)
{
	LeafWork   *work = arg;
	const TtlLag *lag = work->lag;
	Oid			indexrelid = work->leaf->indexrelid;
	Oid			relid = IndexGetRelation(indexrelid, true);
	TtlLook		look = {.max_rows = 1,.max_pages = LAG_PAGES,.max_tuples = lag->max_tuples};
	bool		is_there = OidIsValid(relid);
	bool		infinite;
	TtlIndex	index;

	/* of a table with copies, the rows are in shards */
	if (is_there &&
		(!ttl_due_lock(relid, indexrelid) ||
		 !ttl_state_describe(indexrelid, false, &index) || !can_look(&index) ||
		 index.citus.replicated))
		return;
	if (!is_there || index.option.seconds < 0)
	{
		work->known = true;
		work->may_be_due = false;
		return;
	}

	ttl_look_at(&index, lag->at, &look);
	work->may_be_due = look.stopped || look.count > 0;
	infinite = look.count > 0 && TIMESTAMP_IS_NOBEGIN(look.oldest);
	if (infinite)
	{
		look.after = ttl_index_scan_finite(index.keytype);
		ttl_look_at(&index, lag->at, &look);
	}
	if (look.stopped && lag->find_position(indexrelid, lag->arg, &look.after))
		ttl_look_at(&index, lag->at, &look);
	if (look.stopped)
		ereport(lag->elevel,
				(errmsg("the lag of TTL index \"%s\" cannot be told: too many entries of deleted rows",
						get_rel_name(indexrelid)),
				 errhint("VACUUM %s;", ttl_name_qualified(relid))));
	else if (look.count > 0)
		work->since = Min(Max(look.oldest + index.option.seconds * USECS_PER_SEC,
							  work->leaf->since), lag->at);
	work->known = !look.stopped && (look.count > 0 || !infinite);
}

/*
 * Finds since when the oldest row of a TTL index has been due; the current time if none is.
 * False if unknown.  In may_be_due it returns false only if all entries up to the cutoff were
 * looked at.  The survey calls this as a superuser for everybody's indexes: it runs no code of
 * users, evaluates no expression and waits for no lock.  Each leaf is read in a subtransaction
 * that is rolled back, to release its locks.  An error in it costs only this lag.
 */
bool
ttl_due_since(Oid indexrelid, const TtlLag *lag, TimestampTz *since, bool *may_be_due)
{
	TtlIndex	index;
	bool		due = false;
	ListCell   *lc;

	*since = lag->at;
	*may_be_due = true;
	if (!ttl_state_describe(indexrelid, false, &index) || !can_look(&index))
		return false;
	foreach(lc, ttl_leaves_due(&index, lag->at))
	{
		LeafWork	work = {.leaf = lfirst(lc),.lag = lag,.since = lag->at,.may_be_due = true};
		ErrorData  *edata = ttl_error_catch(look_at_leaf, &work, false);

		if (edata != NULL && ttl_error_is_interrupt(edata, ERRCODE_QUERY_CANCELED))
			ReThrowError(edata);
		if (edata != NULL || !work.known)
			return false;
		due = due || work.may_be_due;
		*since = Min(*since, work.since);
	}
	*may_be_due = due;
	return true;
}

/* What cutoff() keeps from row to row of a query. */
typedef struct Cutoff
{
	Oid			indexrelid;
	TimestampTz statement;
	TimestampTz at;
	int64		number;
} Cutoff;

/*
 * The cutoff of the index in the first argument.  If no row expires by it, that is -infinity and 0,
 * also after remove_ttl() and for an index that is dropped while a query uses it.  Until the next
 * pass, an option that REINDEX CONCURRENTLY has lost still counts.
 */
static const Cutoff *
find_cutoff(FunctionCallInfo fcinfo)
{
	Oid			indexrelid = PG_GETARG_OID(0);
	TimestampTz statement = GetCurrentStatementStartTimestamp();
	Cutoff	   *kept = fcinfo->flinfo->fn_extra;
	Oid			governor;
	TtlOption	option;

	if (kept == NULL)
		kept = fcinfo->flinfo->fn_extra =
			MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, sizeof(Cutoff));
	if (kept->indexrelid != indexrelid || kept->statement != statement)
	{
		ttl_state_check_is_index(indexrelid);
		kept->at = DT_NOBEGIN;
		kept->number = 0;
		if (ttl_catalog_governor(indexrelid, &governor, &option) &&
			(option.present || ttl_saved_option_apply(indexrelid, &option)) &&
			option.problem == NULL && option.seconds >= 0)
			kept->at = statement - option.seconds * USECS_PER_SEC;
		if (kept->at != DT_NOBEGIN && option.unit != TTL_UNIT_NONE && option.unit != TTL_UNIT_UUIDV7)
			kept->number = ttl_keytype_bound(option.unit, kept->at);
		kept->indexrelid = indexrelid;
		kept->statement = statement;
	}
	return kept;
}

/* cutoff(index regclass) returns timestamptz */
Datum
ttl_cutoff(PG_FUNCTION_ARGS)
{
	PG_RETURN_TIMESTAMPTZ(find_cutoff(fcinfo)->at);
}

/* cutoff_number(index regclass) returns bigint: in the unit of the key */
Datum
ttl_cutoff_number(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT64(find_cutoff(fcinfo)->number);
}
