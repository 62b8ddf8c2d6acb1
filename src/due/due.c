/*-------------------------------------------------------------------------
 *
 * due.c
 *	  What is due by a TTL index, for those who look and delete nothing.
 *
 * due_count() and oldest_due() read what a pass would delete, and raise an error where
 * they cannot.  ttl_due_since() is for those who watch many indexes again and again, lag()
 * and the monitor: it waits for nobody, reads little, and says where it cannot tell.  cutoff() is for queries that
 * are to leave out what is due, and looks at the definition alone.
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
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

#include "definition/definition.h"
#include "definition/option.h"
#include "due/due.h"
#include "expire/look.h"
#include "leftover.h"
#include "partition/partition.h"
#include "ttl_index.h"

TTL_FUNCTION(ttl_due_count);
TTL_FUNCTION(ttl_oldest_due);
PG_FUNCTION_INFO_V1(ttl_cutoff);
TTL_FUNCTION(ttl_preview);

/* lag() reads so many leaf pages of an index in one place before it gives up. */
#define LAG_PAGES 32

static bool
may_look(const TtlIndex *index)
{
	return has_privs_of_role(GetUserId(), index->owner) ||
		has_privs_of_role(GetUserId(), ROLE_PG_MONITOR);
}

/*
 * Describes a TTL index, and raises an error unless the user may count its rows.  Its table
 * stays locked, if that takes no waiting, so that its owner stays the same.
 */
void
ttl_due_describe(Oid indexrelid, TtlIndex *index)
{
	Oid			relid;
	bool		locked;

	ttl_state_check_is_index(indexrelid);
	relid = IndexGetRelation(indexrelid, true);
	locked = OidIsValid(relid) &&
		ConditionalLockRelationOid(relid, AccessShareLock);
	if (!ttl_catalog_describe(indexrelid, false, index))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("index with OID %u does not exist", indexrelid)));
	if (!may_look(index))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_INDEX,
					   get_rel_name(indexrelid));
	if (!index->option.present && !ttl_saved_option_is_dependent(indexrelid))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("index \"%s\" is not a TTL index",
						get_rel_name(indexrelid))));
	if (!locked && index->state == TTL_ACTIVE)
		index->state = TTL_TABLE_LOCKED;
	if (index->state != TTL_ACTIVE)
		ttl_state_raise(index);
}

/* Locks an index and its table for a look.  False where others have locked one of them. */
static bool
lock_for_look(Oid relid, Oid indexrelid)
{
	return ConditionalLockRelationOid(relid, AccessShareLock) &&
		ConditionalLockRelationOid(indexrelid, AccessShareLock);
}

/*
 * Locks and describes an index that holds rows.  False if it is gone or would be skipped;
 * an error where others have locked it.
 */
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
	/* with the locks in hand: it may have changed since the list was made */
	return ttl_catalog_describe(indexrelid, false, index) &&
		index->state == TTL_ACTIVE && index->option.seconds >= 0;
}

/* Looks at what is due in an index that holds rows. */
static void
look_at_leaf(Oid indexrelid, TimestampTz at, TtlLook *look)
{
	TtlIndex	index;

	look->count = 0;
	if (ttl_due_lock_leaf(indexrelid, &index))
		ttl_batch_look(&index, at, look);
}

/* due_count(index regclass) returns bigint */
static Datum
ttl_due_count_called(PG_FUNCTION_ARGS)
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
		TtlLook		look = {.max_rows = PG_INT64_MAX,.max_pages = PG_INT64_MAX};

		look_at_leaf(((TtlDueLeaf *) lfirst(lc))->indexrelid, at, &look);
		count += look.count;
	}
	PG_RETURN_INT64(count);
}

/* oldest_due(index regclass) returns timestamptz */
static Datum
ttl_oldest_due_called(PG_FUNCTION_ARGS)
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
		TtlLook		look = {.max_rows = 1,.max_pages = PG_INT64_MAX};

		look_at_leaf(((TtlDueLeaf *) lfirst(lc))->indexrelid, at, &look);
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

/* Puts a row into the result of preview(). */
static void
preview_row(TupleTableSlot *slot, void *arg)
{
	ReturnSetInfo *rsinfo = arg;
	Datum		json = DirectFunctionCall1(row_to_json, ExecFetchSlotHeapTupleDatum(slot));
	Datum		value = DirectFunctionCall1(jsonb_in,
											CStringGetDatum(text_to_cstring(DatumGetTextPP(json))));
	bool		isnull = false;

	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, &value, &isnull);
}

/* The arguments of a look at one leaf, and its result. */
typedef struct LookWork
{
	const TtlIndex *index;
	TimestampTz at;
	TtlLook		look;
} LookWork;

static void
look_work(void *arg)
{
	LookWork   *work = arg;

	ttl_batch_look(work->index, work->at, &work->look);
}

/*
 * preview(index regclass, max_rows integer) returns setof jsonb
 *
 * Rows are for those who may read them; pg_monitor is not enough.
 */
static Datum
ttl_preview_called(PG_FUNCTION_ARGS)
{
	Oid			indexrelid = PG_GETARG_OID(0);
	int64		max_rows = PG_GETARG_INT32(1);
	TimestampTz at = GetCurrentTimestamp();
	TtlIndex	index;
	ListCell   *lc;

	ttl_due_describe(indexrelid, &index);
	if (!has_privs_of_role(GetUserId(), index.owner))
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_INDEX, get_rel_name(indexrelid));
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
		Oid			leaf = ((TtlDueLeaf *) lfirst(lc))->indexrelid;
		TtlIndex	part;
		LookWork	work = {
			.index = &part,.at = at,
			.look = {.max_rows = max_rows,.max_pages = PG_INT64_MAX,
				.row = preview_row,.arg = fcinfo->resultinfo
			}
		};

		if (max_rows == 0)
			break;

		/*
		 * the code of a partition's owner runs for nobody else: who that is
		 * is looked at with the lock in hand, too
		 */
		(void) ttl_owner_check(IndexGetRelation(leaf, true));
		if (!ttl_due_lock_leaf(leaf, &part))
			continue;
		(void) ttl_owner_check(part.relid);
		ttl_error_isolate(look_work, &work);
		max_rows -= work.look.count;
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
}			Since;

/* A leaf that is asked for that, and what is found. */
typedef struct LeafLag
{
	const TtlDueLeaf *leaf;
	const TtlLag *lag;
	TimestampTz since;
	Since		known;
} LeafLag;

/*
 * Finds since when the oldest row of an index that holds rows has been due, and stores the
 * current time where none is.
 *
 * Behind a drain lie the entries of the rows that it has deleted.  What a pass has got to is
 * looked at where there are too many of them: rows that it left behind are not.
 */
static Since
leaf_due_since(const TtlDueLeaf *leaf, const TtlLag *lag, TimestampTz *since)
{
	TimestampTz at = lag->at;
	Oid			relid = IndexGetRelation(leaf->indexrelid, true);
	TtlLook		look = {.max_rows = 1,.max_pages = LAG_PAGES};
	TtlIndex	index;

	*since = at;
	if (!OidIsValid(relid))
		return SINCE_KNOWN;
	if (!lock_for_look(relid, leaf->indexrelid) ||
		!ttl_catalog_describe(leaf->indexrelid, false, &index) || !can_look(&index))
		return SINCE_UNKNOWN;
	if (index.option.seconds < 0)
		return SINCE_KNOWN;

	/*
	 * All copies of a table are asked by a query, which runs code of its
	 * owner for as long as that likes: who watches the indexes of others does
	 * not wait for it.
	 */
	if (index.citus.replicated && !has_privs_of_role(GetUserId(), index.owner))
		return SINCE_UNKNOWN;
	look.after = ttl_index_scan_finite(index.keytype);
	ttl_batch_look(&index, at, &look);
	if (look.stopped && lag->find_position(leaf->indexrelid, lag->arg, &look.after))
		ttl_batch_look(&index, at, &look);
	if (look.count > 0)
	{
		*since = Max(look.oldest + index.option.seconds * USECS_PER_SEC, leaf->since);
		*since = Min(*since, at);
		return SINCE_KNOWN;
	}
	if (look.stopped)
	{
		ereport(lag->elevel,
				(errmsg("the lag of TTL index \"%s\" cannot be told: too many entries of deleted rows",
						get_rel_name(leaf->indexrelid)),
				 errhint("VACUUM the table; a pass reads behind them.")));
		return SINCE_UNKNOWN;
	}
	/* nobody knows how long a row at -infinity has been due */
	look.after.set = false;
	look.only_infinite = true;
	ttl_batch_look(&index, at, &look);
	if (look.count > 0)
		return SINCE_EVER;
	return look.stopped ? SINCE_UNKNOWN : SINCE_KNOWN;
}

static void
ask_leaf(void *arg)
{
	LeafLag    *asked = arg;

	asked->known = leaf_due_since(asked->leaf, asked->lag, &asked->since);
}

/*
 * Does so in a subtransaction that is rolled back, so that no more locks are held at a time
 * than those of one leaf.  A damaged index, or DDL of others, can raise an error: then the
 * lag cannot be told, and who watches all indexes still gets those of the others.
 */
static Since
try_leaf(const TtlDueLeaf *leaf, const TtlLag *lag, TimestampTz *since)
{
	LeafLag		asked = {.leaf = leaf,.lag = lag};
	ErrorData  *edata = ttl_error_catch(ask_leaf, &asked, false);

	if (edata == NULL)
	{
		*since = asked.since;
		return asked.known;
	}
	/* who cancels the query means all of it */
	if (ttl_error_is_interrupt(edata, ERRCODE_QUERY_CANCELED))
		ReThrowError(edata);
	return SINCE_UNKNOWN;
}

/*
 * Finds since when the oldest row of a TTL index has been due, and stores the current time
 * where none is.  False where that cannot be told.
 */
bool
ttl_due_since(Oid indexrelid, const TtlLag *lag, TimestampTz *since)
{
	TtlIndex	index;
	bool		ever = false;
	ListCell   *lc;

	*since = lag->at;
	if (!ttl_catalog_describe(indexrelid, false, &index) || !can_look(&index))
		return false;
	foreach(lc, ttl_leaves_due(&index, lag->at))
	{
		TimestampTz leaf;
		Since		known = try_leaf(lfirst(lc), lag, &leaf);

		if (known == SINCE_UNKNOWN)
			return false;
		ever = ever || known == SINCE_EVER;
		*since = Min(*since, leaf);
	}
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
