/*-------------------------------------------------------------------------
 *
 * coll_mod.c
 *	  coll_mod(), pause_index(), unpause_index() and remove_ttl().
 *
 * They change the stored predicate of an index without a rebuild.  That is allowed because an
 * option is always true: the folded predicate, by which the index was built, does not change.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/index.h"
#include "catalog/pg_inherits.h"
#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "ddl/ddl.h"
#include "state/state.h"
#include "stats/stats.h"
#include "ttl_index.h"

PG_FUNCTION_INFO_V1(ttl_coll_mod);
PG_FUNCTION_INFO_V1(ttl_coll_mod_index);
PG_FUNCTION_INFO_V1(ttl_pause_index);
PG_FUNCTION_INFO_V1(ttl_unpause_index);
PG_FUNCTION_INFO_V1(ttl_remove_ttl);
PG_FUNCTION_INFO_V1(ttl_remove_all_ttl);

/*
 * Locks the table, then the index, with their partitions, and describes the index.  Raises an
 * error unless the user owns the table.  If one of the two does not exist, returns false, or
 * raises an error unless missing_ok.
 */
static bool
lock_for_change(Oid indexrelid, bool missing_ok, TtlIndex *index)
{
	Oid			relid = IndexGetRelation(indexrelid, true);

	if (OidIsValid(relid) && ttl_owner_lock(relid, ShareUpdateExclusiveLock))
	{
		(void) find_all_inheritors(relid, ShareUpdateExclusiveLock, NULL);
		LockRelationOid(indexrelid, ShareUpdateExclusiveLock);
		if (SearchSysCacheExists1(INDEXRELID, ObjectIdGetDatum(indexrelid)))
		{
			(void) find_all_inheritors(indexrelid, ShareUpdateExclusiveLock, NULL);
			/* an option that REINDEX CONCURRENTLY has lost is changed, too */
			ttl_saved_option_restore(indexrelid);
			return ttl_state_describe(indexrelid, true, index);
		}
	}
	if (missing_ok)
		return false;
	ttl_state_check_is_index(indexrelid);
	elog(ERROR, "cache lookup failed for index %u", indexrelid);
}

/* Raises an error if the index is a part of a TTL index: only the whole can be changed. */
static void
check_not_part(const TtlIndex *index)
{
	Oid			whole = ttl_inherit_top(index->indexrelid);

	if (whole == index->indexrelid)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_WRONG_OBJECT_TYPE),
			 errmsg("index \"%s\" is a part of index \"%s\"",
					get_rel_name(index->indexrelid), get_rel_name(whole)),
			 errhint("Change index \"%s\".", get_rel_name(whole))));
}

/*
 * An interrupted REINDEX CONCURRENTLY leaves an invalid copy of the index with the old option.
 * A plain REINDEX would make the copy valid, so it gets each change.
 */
static void
change_leftovers(Oid indexrelid, const TtlOption *changed)
{
	AttrNumber	attnum;
	Node	   *key;
	ListCell   *lc;

	(void) ttl_key_read(indexrelid, &attnum, &key);
	foreach(lc, ttl_catalog_table_indexes(IndexGetRelation(indexrelid, false)))
	{
		Oid			other = lfirst_oid(lc);
		AttrNumber	other_attnum;
		Node	   *other_key;
		TtlOption	option;

		if (other == indexrelid || !ttl_catalog_is_copy(other) ||
			!ttl_key_read(other, &other_attnum, &other_key) ||
			other_attnum != attnum || !equal(other_key, key) ||
			!ttl_option_read(other, &option) || !option.present ||
			!equal(option.filter, changed->filter))
			continue;
		LockRelationOid(other, ShareUpdateExclusiveLock);
		ttl_saved_option_put(other, changed);
	}
}

/*
 * Sets or removes the option of an index and of its partitions.  Raises an error if that would
 * change which rows an index holds.
 */
static void
change_here(Oid indexrelid, const TtlOption *new)
{
	ListCell   *lc;

	LockRelationOid(indexrelid, ShareUpdateExclusiveLock);
	foreach(lc, find_all_inheritors(indexrelid, ShareUpdateExclusiveLock, NULL))
	{
		Oid			member = lfirst_oid(lc);
		TtlOption	option;
		List	   *filter;

		if (!ttl_option_read(member, &option))
			continue;
		/* an option without a problem is always true, the old one as the new one */
		if (option.problem != NULL)
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("the change would alter which rows index \"%s\" holds",
							get_rel_name(member)),
					 errhint("Drop the index, and create it with the new options.")));
		filter = option.filter;
		option = member == indexrelid ? *new : ttl_option_of_part(new, NIL);
		option.filter = filter;
		ttl_saved_option_put(member, &option);
		change_leftovers(member, &option);
	}
}

/* Does the same, on all nodes if it is the index of a table of Citus. */
static void
change_option(Oid indexrelid, const TtlOption *new)
{
	TtlCitusTable table;

	ttl_citus_look(IndexGetRelation(indexrelid, false), &table);
	if (table.kind == TTL_CITUS_SHELL)
		ttl_cluster_change(indexrelid, new);
	else if (!OidIsValid(table.shell))
		change_here(indexrelid, new);
	else
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("index \"%s\" belongs to a shard of a table of Citus",
						get_rel_name(indexrelid)),
				 errhint("Change the index of the whole table, on the coordinator.")));
}

/*
 * Applies a change of a table of Citus on this node.  The option lacks only the filter.  Users
 * can write such a command by hand, so the result is checked.
 */
void
ttl_coll_mod_here(Oid indexrelid, const TtlOption *option)
{
	TtlIndex	index;
	TtlIndex	after;

	(void) lock_for_change(indexrelid, false, &index);
	if (index.governor != indexrelid)
		check_not_part(&index);
	change_here(indexrelid, option);

	/* A problem from before the change is no error, so that the index can be paused. */
	if (option->present && ttl_state_describe(indexrelid, true, &after) &&
		TTL_STATE_IS_WRONG(after.state) &&
		(!index.option.present || after.state != index.state))
		ttl_state_raise(&after);
}

/*
 * Merges what was given into the option of an index, which may be a plain one or one to be
 * created, and checks the result.  Such an index starts with what its sibling has.
 */
void
ttl_coll_mod_merge(TtlIndex *index, Oid sibling, const TtlChange *change)
{
	TtlOption  *option = &index->option;
	TtlOption	own;
	bool		drop = option->drop_partitions && !option->detach_partitions;
	bool		detach = option->detach_partitions;

	if (!option->present && OidIsValid(sibling) && ttl_option_read(sibling, &own))
	{
		option->paused = own.paused;
		option->archive_to = own.archive_to;
	}
	option->present = true;
	if (change->seconds != NULL)
		option->seconds = *change->seconds;
	/* a key of this type takes no time zone; every change removes one */
	if (change->time_zone != NULL || index->keytype == TIMESTAMPTZOID)
		option->time_zone = change->time_zone;
	if (change->unit != TTL_UNIT_NONE)
		option->unit = change->unit;
	if (change->paused != NULL)
		option->paused = *change->paused;
	if (change->archive_to != NULL)
		option->archive_to = *change->archive_to;
	if (change->bucket_seconds != 0)
		option->bucket_seconds = change->bucket_seconds;

	/* to set one of these two unsets the other */
	if (change->drop_partitions != NULL)
		drop = *change->drop_partitions;
	if (change->detach_partitions != NULL)
		detach = *change->detach_partitions;
	if (change->drop_partitions == NULL)
		drop = drop && !detach;
	if (change->detach_partitions == NULL)
		detach = detach && !drop;
	option->drop_partitions = drop || detach;
	option->detach_partitions = detach;
	if (change->boundary_rows != NULL)
		option->boundary_rows = *change->boundary_rows;
	else if (!drop)
		option->boundary_rows = false;

	if (drop && detach)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg_internal("%s", TTL_DROP_OR_DETACH)));
	if (detach && OidIsValid(option->archive_to))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg_internal("%s", TTL_ARCHIVE_OR_DETACH),
				 errhint("With drop_expired_partitions and archive_to, partitions move to the archive.")));
	if (option->boundary_rows && !drop)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("delete_boundary_rows needs drop_expired_partitions")));
	ttl_state_check_option(index);
	if (OidIsValid(option->archive_to) &&
		(change->archive_to != NULL || change->drop_partitions != NULL))
	{
		/* it must not be dropped before the index depends on it */
		LockRelationOid(option->archive_to, AccessShareLock);
		if (ttl_archive_state_now(index) != TTL_ACTIVE)
			ttl_state_raise(index);
	}
}

/* Reads an argument that is a unit; none if it is NULL. */
TtlUnit
ttl_coll_mod_read_unit(FunctionCallInfo fcinfo, int i)
{
	const char *name = ttl_args_text(fcinfo, i);
	TtlUnit		unit = name ? ttl_keytype_find_unit(name) : TTL_UNIT_NONE;

	if (name != NULL && unit == TTL_UNIT_NONE)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("unit must be " TTL_UNIT_NAMES)));
	return unit;
}

/* Gives the sibling of an index the options that count for both. */
static void
change_sibling(Oid sibling, bool was_ttl, const TtlOption *main)
{
	TtlOption	option;

	if (!ttl_option_read(sibling, &option) || (was_ttl && !option.present))
		return;
	if (option.problem != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("TTL index \"%s\", for documents with a TTL of their own, cannot be changed: %s",
						get_rel_name(sibling), option.problem),
				 errhint("REINDEX INDEX %s;", ttl_name_qualified(sibling))));
	option.present = true;
	option.paused = main->paused;
	option.archive_to = main->archive_to;
	change_option(sibling, &option);
}

/* Changes an index.  Sets *old to its former seconds.  Returns false if it was a plain index. */
bool
ttl_coll_mod_apply(Oid indexrelid, const TtlChange *change, int32 *old)
{
	TtlIndex	index;
	Oid			sibling;
	bool		was_ttl;
	bool		was_paused;

	/* the seconds of documents with a TTL of their own are always 0 */
	indexrelid = ttl_own_ttl_main(indexrelid);
	(void) lock_for_change(indexrelid, false, &index);
	ttl_state_check_seconds(*change->seconds,
							ttl_own_ttl_asked_for(index.option.filter) != NULL ||
							index.option.bucket_seconds != 0);
	check_not_part(&index);
	ttl_state_check_usable(indexrelid);
	was_ttl = index.option.present && index.option.problem == NULL;
	was_paused = index.option.paused;
	*old = index.option.seconds;

	/* Raise no error about what the new option repairs. */
	if (TTL_STATE_IS_WRONG(index.state) &&
		index.state != TTL_WRONG_TIME_ZONE && index.state != TTL_WRONG_UNIT &&
		index.state != TTL_UNSUITABLE_PARTITIONS && index.state != TTL_ARCHIVE_MISMATCH)
		ttl_state_raise(&index);
	sibling = ttl_own_ttl_sibling(indexrelid);
	ttl_coll_mod_merge(&index, sibling, change);
	change_option(indexrelid, &index.option);
	if (OidIsValid(sibling) &&
		(!was_ttl || change->paused != NULL || change->archive_to != NULL))
		change_sibling(sibling, was_ttl, &index.option);
	if (!was_ttl)
		ttl_notice_report_overlap(indexrelid, ERROR);
	if (!was_ttl || *change->seconds < *old || *old < 0)
		(void) ttl_counters_note(indexrelid, false);
	if (!was_ttl || *change->seconds < *old || *old < 0 || change->archive_to != NULL ||
		change->unit != TTL_UNIT_NONE ||
		(was_paused && !index.option.paused))
		ttl_notice_report_due(indexrelid, true);
	return was_ttl;
}

/* Changes an index by the arguments from the seconds on; returns the old and new seconds. */
static Datum
change_index(FunctionCallInfo fcinfo, Oid indexrelid, int first)
{
	TtlChange	change = {
		.seconds = ttl_state_read_seconds(fcinfo, first),
		.time_zone = ttl_args_text(fcinfo, first + 1),
		.drop_partitions = ttl_args_bool(fcinfo, first + 2),
		.boundary_rows = ttl_args_bool(fcinfo, first + 3),
		.archive_to = ttl_args_oid(fcinfo, first + 4),
		.detach_partitions = ttl_args_bool(fcinfo, first + 5),
		.paused = ttl_args_bool(fcinfo, first + 6),
		.unit = ttl_coll_mod_read_unit(fcinfo, first + 7)
	};
	TupleDesc	desc;
	int32		old;
	Datum		values[2];
	bool		nulls[2] = {false, false};

	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	nulls[0] = !ttl_coll_mod_apply(indexrelid, &change, &old);
	values[0] = Int32GetDatum(old);
	values[1] = Int32GetDatum(*change.seconds);
	return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), values, nulls));
}

/*
 * coll_mod(relation, key, expire_after_seconds, time_zone,
 * drop_expired_partitions, delete_boundary_rows, archive_to, detach_expired_partitions, paused, unit)
 */
Datum
ttl_coll_mod(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"relation", "key", "expire_after_seconds"};

	PreventCommandIfReadOnly("ttl_index.coll_mod()");
	ttl_args_require(fcinfo, 3, names);
	return change_index(fcinfo, ttl_key_index(PG_GETARG_OID(0), ttl_args_text(fcinfo, 1), false), 2);
}

/* coll_mod_index(index, expire_after_seconds, ...) */
Datum
ttl_coll_mod_index(PG_FUNCTION_ARGS)
{
	static const char *const names[] = {"index", "expire_after_seconds"};

	PreventCommandIfReadOnly("ttl_index.coll_mod_index()");
	ttl_args_require(fcinfo, 2, names);
	return change_index(fcinfo, PG_GETARG_OID(0), 1);
}

/* Locks a TTL index, to change its option. */
static void
lock_ttl_index(Oid indexrelid, TtlIndex *index)
{
	(void) lock_for_change(indexrelid, false, index);
	/* an index below a plain parent has an option of its own */
	if (index->governor != indexrelid)
		check_not_part(index);
	ttl_state_check_is_ttl(index);
}

/* Pauses or unpauses an index and its sibling. */
static void
set_paused(Oid indexrelid, bool paused)
{
	TtlIndex	index;
	Oid			sibling;
	bool		was_held = false;

	indexrelid = ttl_own_ttl_main(indexrelid);
	lock_ttl_index(indexrelid, &index);
	if ((index.option.problem != NULL || !index.option.present) &&
		ttl_state_describe(indexrelid, false, &index) && index.state != TTL_ACTIVE)
		ttl_state_raise(&index);
	sibling = ttl_own_ttl_sibling(indexrelid);
	if (!paused)
	{
		was_held = ttl_counters_note(indexrelid, true);
		if (OidIsValid(sibling))
			was_held = ttl_counters_note(sibling, true) || was_held;
	}
	if (index.option.paused == paused && !was_held)
	{
		ereport(NOTICE,
				(errmsg(paused ? "TTL index \"%s\" is already paused" :
						"TTL index \"%s\" is not paused", get_rel_name(indexrelid))));
		return;
	}
	if (index.option.paused != paused)
	{
		index.option.paused = paused;
		change_option(indexrelid, &index.option);
		if (OidIsValid(sibling))
			change_sibling(sibling, true, &index.option);
	}
	if (!paused)
		ttl_notice_report_due(indexrelid, true);
}

/* pause_index(index) returns void */
Datum
ttl_pause_index(PG_FUNCTION_ARGS)
{
	PreventCommandIfReadOnly("ttl_index.pause_index()");
	set_paused(PG_GETARG_OID(0), true);
	PG_RETURN_VOID();
}

/* unpause_index(index) returns void */
Datum
ttl_unpause_index(PG_FUNCTION_ARGS)
{
	PreventCommandIfReadOnly("ttl_index.unpause_index()");
	set_paused(PG_GETARG_OID(0), false);
	PG_RETURN_VOID();
}

/* Removes the option of a TTL index, if it can be read. */
static void
remove_option(const TtlIndex *index, int elevel)
{
	static const TtlOption none = {0};

	if (index->option.problem != NULL)
	{
		ereport(elevel,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot remove the TTL of index \"%s\": %s",
						get_rel_name(index->indexrelid),
						index->option.problem),
				 errhint("Create another index without the option, then drop this one.")));
		return;
	}
	change_option(index->indexrelid, &none);
}

/* remove_ttl(index) returns void */
Datum
ttl_remove_ttl(PG_FUNCTION_ARGS)
{
	Oid			indexrelid = ttl_own_ttl_main(PG_GETARG_OID(0));
	Oid			sibling;
	TtlIndex	index;
	TtlIndex	other;

	PreventCommandIfReadOnly("ttl_index.remove_ttl()");
	lock_ttl_index(indexrelid, &index);
	sibling = ttl_own_ttl_sibling(indexrelid);
	if (index.option.bucket_seconds != 0 && index.option.problem == NULL)
	{
		/* It stays a time series, or all new rows would go to the DEFAULT partition. */
		index.option.seconds = -1;
		change_option(indexrelid, &index.option);
		ereport(NOTICE,
				(errmsg("time series \"%s\" no longer expires",
						get_rel_name(index.relid)),
				 errdetail("Its partitions are still created ahead of the clock."),
				 errhint("To end the time series: DROP INDEX %s;",
						 ttl_name_qualified(indexrelid))));
	}
	else
	{
		remove_option(&index, ERROR);
		if (OidIsValid(index.option.archive_to) || index.option.drop_partitions)
			ereport(NOTICE,
					(index.option.drop_partitions ?
					 errmsg("index \"%s\" no longer drops partitions", get_rel_name(indexrelid)) :
					 errmsg("index \"%s\" no longer moves rows to an archive", get_rel_name(indexrelid)),
					 errdetail("If a TTL is set on it again, rows are deleted unless the option is given again."),
					 errhint("To stop deletion for a while, use ttl_index.pause_index().")));
		if (OidIsValid(sibling) && lock_for_change(sibling, true, &other))
			remove_option(&other, ERROR);
	}
	PG_RETURN_VOID();
}

/* Removes the option of an index, unless that is inherited or the index belongs to a shard. */
static void
remove_one(Oid indexrelid, void *arg)
{
	int64	   *count = arg;
	TtlCitusTable table;
	TtlIndex	index;
	TtlOption	option;
	Oid			governor;

	ttl_citus_look(IndexGetRelation(indexrelid, true), &table);
	if (OidIsValid(table.shell) || !ttl_saved_option_is_dependent(indexrelid) ||
		(ttl_catalog_governor(indexrelid, &governor, &option) && governor != indexrelid) ||
		!lock_for_change(indexrelid, true, &index))
		return;
	remove_option(&index, WARNING);
	if (index.option.problem == NULL)
		(*count)++;
}

/* remove_all_ttl() returns bigint */
Datum
ttl_remove_all_ttl(PG_FUNCTION_ARGS)
{
	int64		count = 0;

	PreventCommandIfReadOnly("ttl_index.remove_all_ttl()");
	ttl_catalog_each(ttl_catalog_dependents(), remove_one, &count);
	PG_RETURN_INT64(count);
}
