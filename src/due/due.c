/*-------------------------------------------------------------------------
 *
 * due.c
 *	  What is due by a TTL index, for those who look and delete nothing.
 *
 * due_count() and oldest_due() read what a pass would delete, and raise an error if they
 * cannot.  lag() and the monitor call ttl_due_since() for many indexes: it waits for nobody,
 * reads little, and says if it cannot tell.  All of these read index tuples and the visibility
 * of rows (expire/look.c).  preview() is a query of the caller.  cutoff() reads the definition
 * alone.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/due/due.c
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

#include "definition/definition.h"
#include "definition/key.h"
#include "definition/option.h"
#include "due/due.h"
#include "expire/look.h"
#include "partition/partition.h"
#include "state/state.h"
#include "ttl_index.h"

PG_FUNCTION_INFO_V1(ttl_due_count);
PG_FUNCTION_INFO_V1(ttl_oldest_due);
PG_FUNCTION_INFO_V1(ttl_cutoff);
PG_FUNCTION_INFO_V1(ttl_preview);

/* ttl_due_since() reads so many leaf pages of an index in one place before it gives up. */
#define LAG_PAGES 32

/* May the user know what is due?  Whoever may read all rows can count them. */
static bool
may_look(const TtlIndex *index)
{
	bool		gone = false;

	return has_privs_of_role(GetUserId(), index->owner) ||
		has_privs_of_role(GetUserId(), ROLE_PG_MONITOR) ||
		(pg_class_aclcheck_ext(index->relid, GetUserId(), ACL_SELECT, &gone) == ACLCHECK_OK &&
		 check_enable_rls(index->relid, InvalidOid, true) != RLS_ENABLED);
}

/* Describes a TTL index, and raises an error unless rows expire by it. */
static void
describe(Oid indexrelid, TtlIndex *index)
{
	ttl_state_check_is_index(indexrelid);
	if (!ttl_state_describe(indexrelid, false, index))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("index with OID %u does not exist", indexrelid)));
	if (!index->option.present && !ttl_saved_option_is_dependent(indexrelid))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("index \"%s\" is not a TTL index",
						get_rel_name(indexrelid))));
	if (index->state != TTL_ACTIVE)
		ttl_state_raise(index);
}

/* Does the same, and raises an error unless the user may count the rows that are due. */
void
ttl_due_describe(Oid indexrelid, TtlIndex *index)
{
	describe(indexrelid, index);
	if (!may_look(index))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_INDEX, get_rel_name(indexrelid));
}

/* Locks an index and its table for a look.  False if others have locked one of them. */
static bool
lock_for_look(Oid relid, Oid indexrelid)
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
	if (!lock_for_look(relid, indexrelid))
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

/*
 * Selects expressions over the due rows of a leaf, "t", as the caller, into SPI_tuptable.  In
 * the expressions %s stands for the key.
 */
static void
select_due(const TtlIndex *leaf, TimestampTz at, const char *target, bool by_key, int64 max)
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
	values[0] = ttl_index_scan_datum(leaf->keytype, cutoff.bound);
	values[1] = ttl_index_scan_datum(leaf->keytype, cutoff.sure);
	values[2] = CStringGetTextDatum(leaf->option.time_zone ? leaf->option.time_zone : "");
	values[3] = TimestampTzGetDatum(cutoff.instant);

	initStringInfo(&query);
	appendStringInfoString(&query, "SELECT ");
	appendStringInfo(&query, target, key);
	appendStringInfo(&query, " FROM ONLY %s AS t WHERE %s OPERATOR(pg_catalog.<=) $1",
					 ttl_name_qualified(leaf->relid), key);

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
	if (by_key)
		appendStringInfo(&query, " ORDER BY %s", key);
	/* Citus writes parameters as text, which a node reads by its own setting */
	level = NewGUCNestLevel();
	if (leaf->citus.replicated)
		ttl_settings_set("datestyle", "ISO, YMD");
	if (SPI_execute_with_args(query.data, cutoff.zone != NULL ? 4 : 1, types, values, NULL,
							  true, max) != SPI_OK_SELECT)
		elog(ERROR, "could not select what is due by index %u", leaf->indexrelid);
	AtEOXact_GUC(false, level);
}

/* Asks a Citus table with copies for one value, as the caller; false if NULL. */
static bool
select_value(const TtlIndex *leaf, TimestampTz at, const char *target, Datum *value)
{
	bool		isnull;

	SPI_connect();
	select_due(leaf, at, target, false, 1);
	/* neither a number nor a date is by reference */
	*value = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull);
	SPI_finish();
	return !isnull;
}

/* due_count(index regclass) returns bigint */
Datum
ttl_due_count(PG_FUNCTION_ARGS)
{
	TtlIndex	index;
	TimestampTz at = GetCurrentTimestamp();
	int64		count = 0;
	ListCell   *lc;

	ttl_due_describe(PG_GETARG_OID(0), &index);
	if (ttl_nodes_know(index.indexrelid))
		return ttl_nodes_ask(index.indexrelid, "ttl_index.due_count(i.indexrelid)",
							 "coalesce(pg_catalog.sum(e.v::pg_catalog.int8), 0)::pg_catalog.int8",
							 ERROR, &fcinfo->isnull);
	foreach(lc, ttl_leaves_due(&index, at))
	{
		TtlIndex	leaf;
		TtlLook		look = {0};
		Datum		value;

		if (!ttl_due_lock_leaf(((TtlDueLeaf *) lfirst(lc))->indexrelid, &leaf))
			continue;
		if (!leaf.citus.replicated)
			ttl_look_at(&leaf, at, &look);
		else if (select_value(&leaf, at, "pg_catalog.count(*)", &value))
			look.count = DatumGetInt64(value);
		count += look.count;
	}
	PG_RETURN_INT64(count);
}

/* oldest_due(index regclass) returns timestamptz */
Datum
ttl_oldest_due(PG_FUNCTION_ARGS)
{
	TtlIndex	index;
	TimestampTz at = GetCurrentTimestamp();
	TimestampTz oldest = DT_NOEND;
	bool		found = false;
	ListCell   *lc;

	ttl_due_describe(PG_GETARG_OID(0), &index);
	if (ttl_nodes_know(index.indexrelid))
		return ttl_nodes_ask(index.indexrelid, "ttl_index.oldest_due(i.indexrelid)",
							 "pg_catalog.min(e.v::pg_catalog.timestamptz)",
							 ERROR, &fcinfo->isnull);
	foreach(lc, ttl_leaves_due(&index, at))
	{
		TtlIndex	leaf;
		TtlLook		look = {.max_rows = 1};
		TtlCutoff	cutoff;
		Datum		key;

		if (!ttl_due_lock_leaf(((TtlDueLeaf *) lfirst(lc))->indexrelid, &leaf))
			continue;
		if (!leaf.citus.replicated)
			ttl_look_at(&leaf, at, &look);
		else if (select_value(&leaf, at, "pg_catalog.min(%s)", &key))
		{
			ttl_cutoff_init(&cutoff, &leaf, at);
			look.oldest = ttl_cutoff_instant(&cutoff, ttl_index_scan_key(leaf.keytype, key));
			look.count = 1;
		}
		if (look.count > 0)
		{
			oldest = Min(oldest, look.oldest);
			found = true;
		}
	}
	if (!found)
		PG_RETURN_NULL();
	PG_RETURN_TIMESTAMPTZ(oldest);
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

	describe(indexrelid, &index);
	if (ttl_nodes_know(indexrelid))
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
		select_due(&leaf, at, "pg_catalog.to_jsonb(t.*)", true, max_rows);
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

/* An index that is skipped for what its owner lacks can still be looked at. */
static bool
can_look(const TtlIndex *index)
{
	return index->option.present && may_look(index) &&
		(index->state == TTL_ACTIVE ||
		 index->state == TTL_OWNER_LACKS_PRIVILEGE ||
		 index->state == TTL_NO_REPLICA_IDENTITY);
}

/* What is known of how long the oldest row that is due has been so. */
typedef enum Since
{
	SINCE_UNKNOWN,
	SINCE_EVER,					/* only rows at -infinity are due */
	SINCE_KNOWN
} Since;

/* A leaf that is looked at, and what is found. */
typedef struct LeafWork
{
	const TtlDueLeaf *leaf;
	const TtlLag *lag;
	Since		known;
	TimestampTz since;			/* the clock reading if nothing is due */
	bool		may_be_due;
} LeafWork;

/*
 * Looks for the oldest due row in a leaf, except -infinity, which has no lag.  If too many
 * entries of deleted rows come first, it looks where the last pass has got to.  Rows before
 * that place may be due even if nothing is found.
 */
static void
look_at_leaf(const TtlIndex *leaf, LeafWork *work)
{
	const TtlLag *lag = work->lag;
	TtlLook		look = {.max_rows = 1,.max_pages = LAG_PAGES,.max_tuples = lag->max_tuples};
	bool		ever;

	ttl_look_at(leaf, lag->at, &look);
	work->may_be_due = look.stopped || look.count > 0;
	ever = look.count > 0 && TIMESTAMP_IS_NOBEGIN(look.oldest);
	if (ever)
	{
		look.after = ttl_index_scan_finite(leaf->keytype);
		ttl_look_at(leaf, lag->at, &look);
	}
	if (look.stopped && lag->find_position(leaf->indexrelid, lag->arg, &look.after))
		ttl_look_at(leaf, lag->at, &look);
	if (look.stopped)
	{
		ereport(lag->elevel,
				(errmsg("the lag of TTL index \"%s\" cannot be told: too many entries of deleted rows",
						get_rel_name(leaf->indexrelid)),
				 errhint("VACUUM the table; a pass reads behind them.")));
		return;
	}
	if (look.count > 0)
		work->since = Min(Max(look.oldest + leaf->option.seconds * USECS_PER_SEC,
							  work->leaf->since), lag->at);
	work->known = ever && look.count == 0 ? SINCE_EVER : SINCE_KNOWN;
}

static void
leaf_work(void *arg)
{
	LeafWork   *work = arg;
	Oid			indexrelid = work->leaf->indexrelid;
	Oid			relid = IndexGetRelation(indexrelid, true);
	TtlIndex	index;
	bool		is_there = OidIsValid(relid);

	/* a query of the copies of a Citus table would run code of the owner */
	if (is_there &&
		(!lock_for_look(relid, indexrelid) ||
		 !ttl_state_describe(indexrelid, false, &index) || !can_look(&index) ||
		 index.citus.replicated))
		return;
	if (is_there && index.option.seconds >= 0)
	{
		look_at_leaf(&index, work);
		return;
	}
	work->known = SINCE_KNOWN;
	work->may_be_due = false;
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
	bool		ever = false;
	bool		due = false;
	ListCell   *lc;

	*since = lag->at;
	*may_be_due = true;
	if (!ttl_state_describe(indexrelid, false, &index) || !can_look(&index))
		return false;
	foreach(lc, ttl_leaves_due(&index, lag->at))
	{
		LeafWork	work = {.leaf = lfirst(lc),.lag = lag,.since = lag->at,.may_be_due = true};
		ErrorData  *edata = ttl_error_catch(leaf_work, &work, false);

		if (edata != NULL && ttl_error_is_interrupt(edata, ERRCODE_QUERY_CANCELED))
			ReThrowError(edata);
		if (edata != NULL || work.known == SINCE_UNKNOWN)
			return false;
		ever = ever || work.known == SINCE_EVER;
		due = due || work.may_be_due;
		*since = Min(*since, work.since);
	}
	*may_be_due = due;
	/* it is known where some of the rows that are due have a date */
	return !ever || *since < lag->at;
}

/* What cutoff() keeps from row to row of a query. */
typedef struct Cutoff
{
	Oid			indexrelid;
	TimestampTz statement;
	TimestampTz at;
} Cutoff;

/*
 * cutoff(index regclass) returns timestamptz
 *
 * Where nothing expires, nothing is to be left out either: that is -infinity, also after
 * remove_ttl() and for an index that is dropped while a query uses it.  An option that REINDEX
 * CONCURRENTLY has lost until the next pass counts.
 */
Datum
ttl_cutoff(PG_FUNCTION_ARGS)
{
	Oid			indexrelid = PG_GETARG_OID(0);
	TimestampTz statement = GetCurrentStatementStartTimestamp();
	Cutoff	   *kept = fcinfo->flinfo->fn_extra;
	Oid			parent;
	Oid			governor;
	TtlOption	option;

	if (kept == NULL)
		kept = fcinfo->flinfo->fn_extra =
			MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, sizeof(Cutoff));
	if (kept->indexrelid != indexrelid || kept->statement != statement)
	{
		ttl_state_check_is_index(indexrelid);
		kept->at = DT_NOBEGIN;
		if (ttl_catalog_governor(indexrelid, &parent, &governor, &option) &&
			(option.present || ttl_saved_option_apply(indexrelid, &option)) &&
			option.problem == NULL && option.seconds >= 0)
			kept->at = statement - option.seconds * USECS_PER_SEC;
		kept->indexrelid = indexrelid;
		kept->statement = statement;
	}
	PG_RETURN_TIMESTAMPTZ(kept->at);
}
