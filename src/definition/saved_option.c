/*-------------------------------------------------------------------------
 *
 * saved_option.c
 *	  The memory of an option, for REINDEX CONCURRENTLY, and its repair.
 *
 * REINDEX CONCURRENTLY copies a predicate only if the folded one is not empty, so the
 * new index has lost an option that stands alone.  index_concurrently_swap() gives it the
 * name and the pg_depend rows of the old one.  So the table saved_options has the option of
 * each index by table and name, and a dependency on the option functions without a call
 * in the predicate tells such an index from one that was created under an old name.
 *
 * The next pass puts the option back; until then the state is option_remembered.  Without
 * a row, or if the dependencies contradict it, the state is option_lost: expiry stops
 * visibly, and never goes on with another value.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/definition/saved_option.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/index.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_index.h"
#include "catalog/pg_proc.h"
#include "nodes/makefuncs.h"
#include "storage/lmgr.h"
#include "storage/procarray.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "definition/definition.h"
#include "definition/option.h"
#include "ttl_index.h"

/* The columns of ttl_index.saved_options. */
enum
{
	COLUMN_RELID,
	COLUMN_INDEXNAME,
	COLUMN_SECONDS,
	COLUMN_TIME_ZONE,
	COLUMN_PAUSED,
	COLUMN_ARCHIVE_TO,
	NCOLUMNS
};

static Oid
own_relation(const char *name)
{
	return get_relname_relid(name, get_namespace_oid(TTL_SCHEMA, false));
}

/* Returns a copy of the row of an index, or NULL. */
static HeapTuple
find_row(Relation rel, Oid relid, const char *indexname)
{
	NameData	name;
	ScanKeyData key[2];
	SysScanDesc scan;
	HeapTuple	tuple;

	ttl_args_check_columns(RelationGetDescr(rel), NCOLUMNS, "saved_options");
	namestrcpy(&name, indexname);
	ScanKeyInit(&key[0], COLUMN_RELID + 1, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(relid));
	ScanKeyInit(&key[1], COLUMN_INDEXNAME + 1, BTEqualStrategyNumber,
				F_NAMEEQ, NameGetDatum(&name));
	scan = systable_beginscan(rel, own_relation("saved_options_pkey"), true, NULL,
							  2, key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
		tuple = heap_copytuple(tuple);
	systable_endscan(scan);
	return tuple;
}

/* Reads the row of an index; without one, the option is not present. */
static TtlOption
read_row(Oid relid, const char *indexname)
{
	Relation	rel = table_open(own_relation("saved_options"), AccessShareLock);
	HeapTuple	tuple = find_row(rel, relid, indexname);
	TtlOption	option = {0};
	Datum		values[NCOLUMNS];
	bool		nulls[NCOLUMNS];

	if (HeapTupleIsValid(tuple))
	{
		heap_deform_tuple(tuple, RelationGetDescr(rel), values, nulls);
		option.present = true;
		option.seconds = DatumGetInt32(values[COLUMN_SECONDS]);
		if (!nulls[COLUMN_TIME_ZONE])
			option.time_zone = TextDatumGetCString(values[COLUMN_TIME_ZONE]);
		option.paused = DatumGetBool(values[COLUMN_PAUSED]);
		option.archive_to = DatumGetObjectId(values[COLUMN_ARCHIVE_TO]);
	}
	table_close(rel, AccessShareLock);
	return option;
}

/*
 * Writes the row of an index that the caller has locked, or deletes it if the option is not
 * present.  The lock on the table is kept, for ttl_saved_option_trim().
 */
static void
write_row(Oid relid, const char *indexname, const TtlOption *option)
{
	Relation	rel = table_open(own_relation("saved_options"), RowExclusiveLock);
	HeapTuple	old = find_row(rel, relid, indexname);
	NameData	name;
	Datum		values[NCOLUMNS] = {0};
	bool		nulls[NCOLUMNS] = {0};
	HeapTuple	new;

	namestrcpy(&name, indexname);
	values[COLUMN_RELID] = ObjectIdGetDatum(relid);
	values[COLUMN_INDEXNAME] = NameGetDatum(&name);
	values[COLUMN_SECONDS] = Int32GetDatum(option->seconds);
	nulls[COLUMN_TIME_ZONE] = option->time_zone == NULL;
	if (option->time_zone != NULL)
		values[COLUMN_TIME_ZONE] = CStringGetTextDatum(option->time_zone);
	values[COLUMN_PAUSED] = BoolGetDatum(option->paused);
	values[COLUMN_ARCHIVE_TO] = ObjectIdGetDatum(option->archive_to);
	new = heap_form_tuple(RelationGetDescr(rel), values, nulls);
	if (option->present && old != NULL)
		CatalogTupleUpdate(rel, &old->t_self, new);
	else if (option->present)
		CatalogTupleInsert(rel, new);
	else if (old != NULL)
		CatalogTupleDelete(rel, &old->t_self);
	table_close(rel, NoLock);
	CommandCounterIncrement();
}

/* The option that is saved for the table and the name of an index. */
static TtlOption
saved_option(Oid indexrelid)
{
	Oid			relid = IndexGetRelation(indexrelid, true);
	const char *name = get_rel_name(indexrelid);

	return OidIsValid(relid) && name ? read_row(relid, name) : (TtlOption) {0};
}

/* ALTER INDEX ... RENAME: the row follows, over what a dropped index has left. */
void
ttl_saved_option_rename(Oid indexrelid, const char *old)
{
	static const TtlOption none = {0};
	Oid			relid = IndexGetRelation(indexrelid, false);
	TtlOption	option;

	if (!ttl_saved_option_is_dependent(indexrelid))
		return;
	option = read_row(relid, old);
	write_row(relid, old, &none);
	write_row(relid, get_rel_name(indexrelid), &option);
}

/*
 * Deletes the rows of indexes that were dropped, unless a transaction is open that has written
 * rows: CREATE INDEX may have taken over the row of an old index.
 */
void
ttl_saved_option_trim(void)
{
	Oid			table = own_relation("saved_options");
	Relation	rel;
	SysScanDesc scan;
	HeapTuple	tuple;

	if (!ConditionalLockRelationOid(table, ShareRowExclusiveLock))
		return;
	rel = table_open(table, NoLock);
	ttl_args_check_columns(RelationGetDescr(rel), NCOLUMNS, "saved_options");
	scan = systable_beginscan(rel, InvalidOid, false, NULL, 0, NULL);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Datum		values[NCOLUMNS];
		bool		nulls[NCOLUMNS];
		Oid			relid;
		Oid			indexrelid;

		heap_deform_tuple(tuple, RelationGetDescr(rel), values, nulls);
		relid = DatumGetObjectId(values[COLUMN_RELID]);
		/* an index is in the schema of its table */
		indexrelid = get_relname_relid(NameStr(*DatumGetName(values[COLUMN_INDEXNAME])),
									   get_rel_namespace(relid));
		if (!OidIsValid(indexrelid) || IndexGetRelation(indexrelid, true) != relid)
			CatalogTupleDelete(rel, &tuple->t_self);
	}
	systable_endscan(scan);
	table_close(rel, NoLock);
}

/* The objects of a class, as a whole, that an index depends on. */
static List *
dependencies(Oid indexrelid, Oid classid)
{
	Relation	depend = table_open(DependRelationId, AccessShareLock);
	List	   *objects = NIL;
	ScanKeyData key[2];
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key[0], Anum_pg_depend_classid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(RelationRelationId));
	ScanKeyInit(&key[1], Anum_pg_depend_objid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(indexrelid));
	scan = systable_beginscan(depend, DependDependerIndexId, true, NULL, 2, key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_depend row = (Form_pg_depend) GETSTRUCT(tuple);

		if (row->refclassid == classid && row->refobjsubid == 0)
			objects = lappend_oid(objects, row->refobjid);
	}
	systable_endscan(scan);
	table_close(depend, AccessShareLock);
	return objects;
}

/* Does the index depend on an option function, whatever its predicate says? */
bool
ttl_saved_option_is_dependent(Oid indexrelid)
{
	TtlFunctions functions;
	List	   *found;

	if (!ttl_function_lookup(&functions))
		return false;
	found = dependencies(indexrelid, ProcedureRelationId);
	for (int i = 0; i < TTL_OPTION_FUNCTIONS; i++)
	{
		if (list_member_oid(found, ttl_function_option(&functions, i)))
			return true;
	}
	return false;
}

/* Gives a lost option the values that are saved; false without any. */
bool
ttl_saved_option_apply(Oid indexrelid, TtlOption *option)
{
	TtlOption	saved = saved_option(indexrelid);
	bool		archives = OidIsValid(saved.archive_to);
	TtlFunctions functions;
	List	   *called;

	if (!saved.present || !ttl_function_lookup(&functions))
		return false;
	called = dependencies(indexrelid, ProcedureRelationId);
	if (!list_member_oid(called, functions.expire_after_seconds) ||
		list_member_oid(called, functions.time_zone) != (saved.time_zone != NULL) ||
		list_member_oid(called, functions.paused) != saved.paused ||
		list_member_oid(called, functions.archive_to) != archives ||
		(archives && !list_member_oid(dependencies(indexrelid, RelationRelationId),
									  saved.archive_to)))
		return false;
	option->present = true;
	option->seconds = saved.seconds;
	option->time_zone = saved.time_zone;
	option->paused = saved.paused;
	option->archive_to = saved.archive_to;
	return true;
}

/*
 * Makes an index depend on the option functions, seconds() and the tables that its trees name,
 * and on no others.  A function can occur elsewhere than as an option, too: without the
 * dependency, DROP EXTENSION would leave an index behind that cannot be opened.
 */
static void
follow_trees(Oid indexrelid)
{
	HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(indexrelid));
	ObjectAddresses *wanted = new_object_addresses();
	ObjectAddress index;
	ObjectAddress object;
	TtlFunctions functions;
	List	   *trees;
	ListCell   *lc;

	if (!HeapTupleIsValid(tuple))
		return;
	trees = list_make2(ttl_option_stored_tree(tuple, Anum_pg_index_indexprs),
					   ttl_option_stored_tree(tuple, Anum_pg_index_indpred));
	ReleaseSysCache(tuple);
	ttl_function_lookup(&functions);
	for (int i = 0; i < TTL_REMOVED_FUNCTIONS; i++)
	{
		TtlFunctions only = {.expire_after_seconds = ttl_function_option(&functions, i)};

		deleteDependencyRecordsForSpecific(RelationRelationId, indexrelid, DEPENDENCY_NORMAL,
										   ProcedureRelationId, only.expire_after_seconds);
		ObjectAddressSet(object, ProcedureRelationId, only.expire_after_seconds);
		if (ttl_option_is_within((Node *) trees, &only))
			add_exact_object_address(&object, wanted);
	}
	deleteDependencyRecordsForClass(RelationRelationId, indexrelid, RelationRelationId,
									DEPENDENCY_NORMAL);
	foreach(lc, ttl_option_named_relations((Node *) trees))
	{
		ObjectAddressSet(object, RelationRelationId, lfirst_oid(lc));
		if (SearchSysCacheExists1(RELOID, ObjectIdGetDatum(lfirst_oid(lc))))
			add_exact_object_address(&object, wanted);
	}
	ObjectAddressSet(index, RelationRelationId, indexrelid);
	record_object_address_dependencies(&index, wanted, DEPENDENCY_NORMAL);
	free_object_addresses(wanted);
	CommandCounterIncrement();
}

/*
 * Makes the dependencies of an index say what its predicate says, and saves its option.  Options
 * about partitions stand in partitioned indexes alone, which are not rebuilt.
 */
void
ttl_saved_option_write(Oid indexrelid, const TtlOption *option)
{
	TtlOption	part = ttl_option_of_part(option, NIL);

	Assert(!option->present || option->problem == NULL);
	follow_trees(indexrelid);
	write_row(IndexGetRelation(indexrelid, false), get_rel_name(indexrelid), &part);
}

/*
 * Puts the option, with the filter that the index has, into pg_index.indpred,
 * and saves it.  The caller holds SHARE UPDATE EXCLUSIVE on the index, and some lock
 * on the table that keeps it from changing, and has made sure that the folded
 * predicate stays the same, so the index needs no rebuild.
 */
void
ttl_saved_option_put(Oid indexrelid, const TtlOption *option)
{
	Relation	pg_index = table_open(IndexRelationId, RowExclusiveLock);
	HeapTuple	old;
	HeapTuple	tuple;
	Form_pg_index form;
	List	   *members = ttl_option_members(option);
	Datum		values[Natts_pg_index] = {0};
	bool		nulls[Natts_pg_index] = {0};
	bool		replace[Natts_pg_index] = {0};

	old = SearchSysCacheCopy1(INDEXRELID, ObjectIdGetDatum(indexrelid));
	if (!HeapTupleIsValid(old))
		elog(ERROR, "cache lookup failed for index %u", indexrelid);
	form = (Form_pg_index) GETSTRUCT(old);

	replace[Anum_pg_index_indpred - 1] = true;
	if (members == NIL)
		nulls[Anum_pg_index_indpred - 1] = true;
	else
		values[Anum_pg_index_indpred - 1] =
			CStringGetTextDatum(nodeToString(make_ands_explicit(members)));

	/* CLUSTER without a name would stop at an index with a predicate. */
	if (form->indisclustered && members != NIL)
	{
		replace[Anum_pg_index_indisclustered - 1] = true;
		values[Anum_pg_index_indisclustered - 1] = BoolGetDatum(false);
		ereport(NOTICE,
				(errmsg("index \"%s\" is no longer marked for CLUSTER",
						get_rel_name(indexrelid)),
				 errdetail("A TTL index cannot be clustered on.")));
	}

	/*
	 * The planner compares the xmin of this row with its snapshot where
	 * indcheckxmin is set.  The new row gets a new xmin, so an index that was
	 * good for everybody would be lost for a while to those with an older
	 * snapshot.
	 */
	if (form->indcheckxmin &&
		TransactionIdPrecedes(HeapTupleHeaderGetXmin(old->t_data),
							  GetOldestNonRemovableTransactionId(NULL)))
	{
		replace[Anum_pg_index_indcheckxmin - 1] = true;
		values[Anum_pg_index_indcheckxmin - 1] = BoolGetDatum(false);
	}

	tuple = heap_modify_tuple(old, RelationGetDescr(pg_index), values, nulls,
							  replace);
	/* nothing would read it, not even to take the option out again */
	if (members != NIL && ttl_option_is_long(tuple))
	{
		const TtlIndex index = {.indexrelid = indexrelid,.state = TTL_LONG_DEFINITION};

		ttl_state_raise(&index);
	}
	CatalogTupleUpdate(pg_index, &old->t_self, tuple);
	CacheInvalidateRelcacheByRelid(form->indrelid);
	CacheInvalidateRelcacheByRelid(indexrelid);
	table_close(pg_index, RowExclusiveLock);
	CommandCounterIncrement();

	ttl_saved_option_write(indexrelid, option);
}

/* Locks an index and its table for a repair, if that takes no waiting. */
bool
ttl_saved_option_lock(Oid indexrelid)
{
	Oid			relid = IndexGetRelation(indexrelid, true);

	if (!OidIsValid(relid) ||
		!ConditionalLockRelationOid(relid, ShareUpdateExclusiveLock))
		return false;
	if (ConditionalLockRelationOid(indexrelid, ShareUpdateExclusiveLock))
		return true;
	UnlockRelationOid(relid, ShareUpdateExclusiveLock);
	return false;
}

/*
 * What an interrupted REINDEX CONCURRENTLY has left still calls the option, but has given its
 * dependencies away.  DROP EXTENSION must not miss it.
 */
static void
keep_leftover(Oid indexrelid, void *arg)
{
	TtlOption	option;

	if (ttl_option_read(indexrelid, &option) && option.present)
		follow_trees(indexrelid);
}

/* Puts back what REINDEX CONCURRENTLY has lost of a locked index, if it is saved. */
void
ttl_saved_option_restore(Oid indexrelid)
{
	TtlOption	option;

	if (!ttl_option_read(indexrelid, &option) || option.present ||
		!ttl_saved_option_apply(indexrelid, &option))
		return;
	ttl_saved_option_put(indexrelid, &option);
	ttl_catalog_each(ttl_catalog_table_indexes(IndexGetRelation(indexrelid, false)),
					 keep_leftover, NULL);
	ereport(LOG,
			(errmsg("restored expire_after_seconds(%d) of TTL index %s",
					option.seconds, ttl_name_index(indexrelid)),
			 errdetail("REINDEX CONCURRENTLY had lost it.")));
}

/*
 * Repairs what REINDEX CONCURRENTLY lost of an index, if the locks can be had at
 * once, and makes its saved option complete.
 */
void
ttl_saved_option_repair(Oid indexrelid)
{
	TtlOption	option;

	if (!ttl_saved_option_lock(indexrelid))
		return;
	ttl_saved_option_restore(indexrelid);
	if (ttl_option_read(indexrelid, &option) && option.present &&
		option.problem == NULL)
		ttl_saved_option_write(indexrelid, &option);
}

/*
 * Was the option of an index lost for good?  Not where it has just been removed, or the
 * partition moved to an archive, beside whoever has a list of indexes.
 */
bool
ttl_saved_option_is_lost(Oid indexrelid)
{
	TtlIndex	index;

	return ttl_catalog_describe(indexrelid, false, &index) &&
		index.state == TTL_OPTION_LOST && ttl_saved_option_is_dependent(indexrelid);
}

/* Warns of a TTL that has stopped: it must not stop silently. */
void
ttl_saved_option_warn(Oid indexrelid)
{
	ereport(WARNING,
			(errmsg("the option of TTL index %s was lost, and no saved option was found",
					ttl_name_index(indexrelid)),
			 errhint("Set it again with ttl_index.coll_mod_index(), or make it a plain index with ttl_index.remove_ttl().")));
}

/* Does an index need a repair?  This is cheap and takes no lock. */
bool
ttl_saved_option_needs_repair(Oid indexrelid)
{
	TtlOption	saved = saved_option(indexrelid);
	TtlOption	option;

	if (!ttl_option_read(indexrelid, &option) || option.problem != NULL)
		return false;
	option = ttl_option_of_part(&option, NIL);
	return !option.present || !ttl_children_same(&saved, &option);
}
