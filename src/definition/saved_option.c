/*-------------------------------------------------------------------------
 *
 * saved_option.c
 *	  Saving the option of an index, and restoring what REINDEX CONCURRENTLY has lost.
 *
 * REINDEX CONCURRENTLY copies a predicate only if the folded one is not empty, so an option
 * that stands alone is lost.  The table saved_options keeps such options, and the next pass
 * restores them.
 *
 * index_concurrently_swap() transfers the pg_depend rows of the old index to the new one.  So
 * a TTL index depends on one column of saved_options, and its row has its table, its key and
 * the number of that column.  A new index on the same key has no such dependency.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/transam.h"
#include "catalog/dependency.h"
#include "catalog/index.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_index.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "storage/lmgr.h"
#include "storage/procarray.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "definition/definition.h"
#include "ttl_index.h"

/* The columns of ttl_index.saved_options, whose primary key is the first three. */
enum
{
	COLUMN_RELID,
	COLUMN_KEY_HASH,
	COLUMN_SLOT,
	COLUMN_INDEXRELID,
	COLUMN_SECONDS,
	COLUMN_TIME_ZONE,
	COLUMN_UNIT,
	COLUMN_PAUSED,
	COLUMN_ARCHIVE_TO,
	NCOLUMNS
};

/* A row of that table. */
typedef struct SavedRow
{
	Oid			relid;
	int64		key_hash;
	int			slot;			/* number of the column that the index depends
								 * on; 0 for none */
	Oid			indexrelid;		/* as of the last write */
	TtlOption	option;
	ItemPointerData tid;
} SavedRow;

static Oid
own_relation(const char *name)
{
	return get_relname_relid(name, get_namespace_oid(TTL_SCHEMA, false));
}

static SavedRow *
read_row(HeapTuple tuple, TupleDesc desc)
{
	SavedRow   *row = palloc0(sizeof(SavedRow));
	Datum		values[NCOLUMNS];
	bool		nulls[NCOLUMNS];

	ttl_args_check_columns(desc, NCOLUMNS, "saved_options");
	heap_deform_tuple(tuple, desc, values, nulls);
	row->relid = DatumGetObjectId(values[COLUMN_RELID]);
	row->key_hash = DatumGetInt64(values[COLUMN_KEY_HASH]);
	row->slot = DatumGetInt32(values[COLUMN_SLOT]);
	row->indexrelid = DatumGetObjectId(values[COLUMN_INDEXRELID]);
	row->option.present = true;
	row->option.seconds = DatumGetInt32(values[COLUMN_SECONDS]);
	if (!nulls[COLUMN_TIME_ZONE])
		row->option.time_zone = TextDatumGetCString(values[COLUMN_TIME_ZONE]);
	if (!nulls[COLUMN_UNIT])
		row->option.unit = ttl_keytype_find_unit(TextDatumGetCString(values[COLUMN_UNIT]));
	row->option.paused = DatumGetBool(values[COLUMN_PAUSED]);
	row->option.archive_to = DatumGetObjectId(values[COLUMN_ARCHIVE_TO]);
	row->tid = tuple->t_self;
	return row;
}

/* The row of this table, key and slot, or NULL; in the last snapshot, or in this one. */
static SavedRow *
find_row(Relation rel, const SavedRow *like, Snapshot snapshot)
{
	ScanKeyData key[3];
	SysScanDesc scan;
	HeapTuple	tuple;
	SavedRow   *row = NULL;

	ScanKeyInit(&key[0], COLUMN_RELID + 1, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(like->relid));
	ScanKeyInit(&key[1], COLUMN_KEY_HASH + 1, BTEqualStrategyNumber,
				F_INT8EQ, Int64GetDatum(like->key_hash));
	ScanKeyInit(&key[2], COLUMN_SLOT + 1, BTEqualStrategyNumber,
				F_INT4EQ, Int32GetDatum(like->slot));
	scan = systable_beginscan(rel, own_relation("saved_options_pkey"), true,
							  snapshot, lengthof(key), key);
	tuple = systable_getnext(scan);
	if (HeapTupleIsValid(tuple))
		row = read_row(tuple, RelationGetDescr(rel));
	systable_endscan(scan);
	return row;
}

/* Reads from pg_depend whether an index depends on an option function, and on which slot. */
static void
read_dependencies(Oid indexrelid, bool *is_dependent, int *slot)
{
	Relation	depend;
	Oid			table;
	TtlFunctions functions;
	ScanKeyData key[2];
	SysScanDesc scan;
	HeapTuple	tuple;

	*is_dependent = false;
	*slot = 0;
	if (!ttl_option_functions(&functions))
		return;
	depend = table_open(DependRelationId, AccessShareLock);
	table = own_relation("saved_options");
	ScanKeyInit(&key[0], Anum_pg_depend_classid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(RelationRelationId));
	ScanKeyInit(&key[1], Anum_pg_depend_objid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(indexrelid));
	scan = systable_beginscan(depend, DependDependerIndexId, true, NULL, 2, key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_depend row = (Form_pg_depend) GETSTRUCT(tuple);

		if (row->refclassid == RelationRelationId && row->refobjid == table)
			*slot = row->refobjsubid;
		for (int i = 0; i < TTL_OPTION_FUNCTIONS; i++)
		{
			if (row->refclassid == ProcedureRelationId &&
				row->refobjid == ttl_option_function(&functions, i))
				*is_dependent = true;
		}
	}
	systable_endscan(scan);
	table_close(depend, AccessShareLock);
}

/* Does the index depend on an option function, even if its predicate has none? */
bool
ttl_saved_option_is_dependent(Oid indexrelid)
{
	bool		is_dependent;
	int			slot;

	read_dependencies(indexrelid, &is_dependent, &slot);
	return is_dependent;
}

/*
 * Fills in the row of an index, except the option; false if the index is gone.  REINDEX copies
 * the tree of an expression, but not the locations in it, which stringToNode() ignores.
 */
static bool
identify(Oid indexrelid, SavedRow *row)
{
	HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(indexrelid));
	Form_pg_index form;
	char	   *trees;
	bool		is_dependent;

	memset(row, 0, sizeof(*row));
	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_index) GETSTRUCT(tuple);
	trees = nodeToString(ttl_option_stored_tree(tuple, Anum_pg_index_indexprs));
	row->relid = form->indrelid;
	row->key_hash = hash_bytes_extended((unsigned char *) form->indkey.values,
										form->indnatts * sizeof(int16),
										hash_bytes_extended((unsigned char *) trees,
															strlen(trees), 0));
	row->indexrelid = indexrelid;
	read_dependencies(indexrelid, &is_dependent, &row->slot);
	ReleaseSysCache(tuple);
	return true;
}

/* Does a row belong to the index for which it was written? */
static bool
is_in_use(const SavedRow *row)
{
	SavedRow	now;

	return identify(row->indexrelid, &now) && now.relid == row->relid &&
		now.key_hash == row->key_hash && now.slot == row->slot;
}

/*
 * The row that is saved for an index, or NULL.  If rows were deleted by hand, an index can
 * depend on a slot that another one uses.
 */
static SavedRow *
saved_row(const SavedRow *index)
{
	Relation	rel;
	SavedRow   *row;

	if (index->slot == 0)
		return NULL;
	rel = table_open(own_relation("saved_options"), AccessShareLock);
	row = find_row(rel, index, NULL);
	table_close(rel, AccessShareLock);
	return row && (row->indexrelid == index->indexrelid || !is_in_use(row)) ? row : NULL;
}

/* Gives a lost option the values that are saved; false without any. */
bool
ttl_saved_option_apply(Oid indexrelid, TtlOption *option)
{
	SavedRow	index;
	SavedRow   *row;

	if (!identify(indexrelid, &index) || (row = saved_row(&index)) == NULL)
		return false;
	*option = row->option;
	return true;
}

/* What to save of an option: nothing with a filter, or of a partitioned index. */
static TtlOption
option_to_save(Oid indexrelid, const TtlOption *option)
{
	if (!option->present || option->filter != NIL ||
		get_rel_relkind(indexrelid) != RELKIND_INDEX)
		return (TtlOption) {0};
	return ttl_option_of_part(option, NIL);
}

/* Inserts a row, not for logical decoding, like ttl_count_insert(). */
static void
insert_row(Relation rel, const SavedRow *row)
{
	Relation	pkey = index_open(own_relation("saved_options_pkey"), RowExclusiveLock);
	const char *time_zone = row->option.time_zone;
	Datum		values[NCOLUMNS];
	bool		nulls[NCOLUMNS] = {0};
	HeapTuple	tuple;

	values[COLUMN_RELID] = ObjectIdGetDatum(row->relid);
	values[COLUMN_KEY_HASH] = Int64GetDatum(row->key_hash);
	values[COLUMN_SLOT] = Int32GetDatum(row->slot);
	values[COLUMN_INDEXRELID] = ObjectIdGetDatum(row->indexrelid);
	values[COLUMN_SECONDS] = Int32GetDatum(row->option.seconds);
	nulls[COLUMN_TIME_ZONE] = time_zone == NULL;
	values[COLUMN_TIME_ZONE] = time_zone ? CStringGetTextDatum(time_zone) : (Datum) 0;
	nulls[COLUMN_UNIT] = row->option.unit == TTL_UNIT_NONE;
	values[COLUMN_UNIT] = CStringGetTextDatum(ttl_keytype_units[row->option.unit]);
	values[COLUMN_PAUSED] = BoolGetDatum(row->option.paused);
	values[COLUMN_ARCHIVE_TO] = ObjectIdGetDatum(row->option.archive_to);
	tuple = heap_form_tuple(RelationGetDescr(rel), values, nulls);
	heap_insert(rel, tuple, GetCurrentCommandId(true), HEAP_INSERT_NO_LOGICAL, NULL);
	index_insert(pkey, values, nulls, &tuple->t_self, rel, UNIQUE_CHECK_YES, false,
				 BuildIndexInfo(pkey));
	index_close(pkey, NoLock);
}

/*
 * Replaces the row of a locked index, and returns the slot; 0 if nothing is to be saved or no
 * slot is free.  Keeps the lock on the table for ttl_saved_option_trim().
 */
static int
write_row(Oid indexrelid, const TtlOption *option)
{
	Relation	rel = table_open(own_relation("saved_options"), RowExclusiveLock);
	SavedRow	index;
	SavedRow   *old;
	SnapshotData dirty;

	InitDirtySnapshot(dirty);
	if (identify(indexrelid, &index))
	{
		/* two sessions can build indexes of a table at a time: see what the other has taken */
		LockDatabaseObject(RelationGetRelid(rel), index.relid, 0, ExclusiveLock);
		old = saved_row(&index);
		if (old != NULL)
			simple_heap_delete(rel, &old->tid);
		else
			index.slot = 1;
		/* another index on the same key has a slot of its own */
		while (old == NULL && index.slot != 0 && find_row(rel, &index, &dirty) != NULL)
			index.slot = index.slot < NCOLUMNS ? index.slot + 1 : 0;
		index.option = option_to_save(indexrelid, option);
		if (!index.option.present)
			index.slot = 0;
		if (index.slot != 0)
			insert_row(rel, &index);
		UnlockDatabaseObject(RelationGetRelid(rel), index.relid, 0, ExclusiveLock);
	}
	table_close(rel, NoLock);
	CommandCounterIncrement();
	return index.slot;
}

/*
 * Deletes the rows on which no index depends.  Does nothing while a transaction is open that
 * has written rows.
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
	scan = systable_beginscan(rel, InvalidOid, false, NULL, 0, NULL);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		SavedRow   *row = read_row(tuple, RelationGetDescr(rel));
		bool		keep = is_in_use(row);
		ListCell   *lc;

		/* REINDEX CONCURRENTLY may have given the slot to another index of the table */
		foreach(lc, keep ? NIL : ttl_catalog_table_indexes(row->relid))
		{
			SavedRow	index;

			CHECK_FOR_INTERRUPTS();
			keep = identify(lfirst_oid(lc), &index) && index.key_hash == row->key_hash &&
				index.slot == row->slot;
			if (keep)
				break;
		}
		if (!keep)
			simple_heap_delete(rel, &row->tid);
	}
	systable_endscan(scan);
	table_close(rel, NoLock);
}

/* Adds each relation that a tree names, as '...'::regclass. */
static bool
add_relations(Node *node, void *wanted)
{
	const Const *value = (const Const *) node;
	ObjectAddress object;

	if (node == NULL)
		return false;
	if (IsA(node, Const) && value->consttype == REGCLASSOID && !value->constisnull)
	{
		ObjectAddressSet(object, RelationRelationId, DatumGetObjectId(value->constvalue));
		if (SearchSysCacheExists1(RELOID, ObjectIdGetDatum(object.objectId)))
			add_exact_object_address(&object, wanted);
	}
	return expression_tree_walker(node, add_relations, wanted);
}

/*
 * Makes an index depend on its slot, and on the functions of the extension and the tables that
 * its trees name.  Otherwise DROP EXTENSION would leave a broken index.
 */
static void
record_dependencies(Oid indexrelid, int slot)
{
	HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(indexrelid));
	ObjectAddresses *wanted = new_object_addresses();
	ObjectAddress index;
	ObjectAddress object;
	TtlFunctions functions;
	List	   *trees;

	if (!HeapTupleIsValid(tuple))
		return;
	trees = list_make2(ttl_option_stored_tree(tuple, Anum_pg_index_indexprs),
					   ttl_option_stored_tree(tuple, Anum_pg_index_indpred));
	ReleaseSysCache(tuple);

	/* the functions, each of which may be called or not */
	ttl_option_functions(&functions);
	for (int i = 0; i < TTL_REMOVED_FUNCTIONS; i++)
	{
		TtlFunctions only = {.expire_after_seconds = ttl_option_function(&functions, i)};

		deleteDependencyRecordsForSpecific(RelationRelationId, indexrelid, DEPENDENCY_NORMAL,
										   ProcedureRelationId, only.expire_after_seconds);
		ObjectAddressSet(object, ProcedureRelationId, only.expire_after_seconds);
		if (ttl_option_is_within((Node *) trees, &only))
			add_exact_object_address(&object, wanted);
	}

	/* the tables, and the slot */
	deleteDependencyRecordsForClass(RelationRelationId, indexrelid, RelationRelationId,
									DEPENDENCY_NORMAL);
	(void) add_relations((Node *) trees, wanted);
	if (slot != 0)
	{
		ObjectAddressSubSet(object, RelationRelationId, own_relation("saved_options"), slot);
		add_exact_object_address(&object, wanted);
	}
	ObjectAddressSet(index, RelationRelationId, indexrelid);
	record_object_address_dependencies(&index, wanted, DEPENDENCY_NORMAL);
	free_object_addresses(wanted);
	CommandCounterIncrement();
}

/* Saves the option of an index, and makes its dependencies say what its predicate says. */
void
ttl_saved_option_write(Oid indexrelid, const TtlOption *option)
{
	Assert(!option->present || option->problem == NULL);
	record_dependencies(indexrelid, write_row(indexrelid, option));
}

/*
 * Writes the option into pg_index.indpred, with the index's filter, and saves it.  The caller
 * holds SHARE UPDATE EXCLUSIVE on the index and a lock on the table that prevents changes, and
 * guarantees that the folded predicate stays the same.
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
	 * If indcheckxmin is set, the planner compares the xmin of this row with
	 * its snapshot.  The new xmin would hide a usable index from older
	 * snapshots.
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
 * A copy that an interrupted REINDEX CONCURRENTLY has left still calls the option, but has
 * given its dependencies away.  DROP EXTENSION must not miss it.
 */
static void
record_copy(Oid indexrelid, void *arg)
{
	TtlOption	option;
	SavedRow	row;

	if (ttl_catalog_is_copy(indexrelid) && identify(indexrelid, &row) &&
		ttl_option_read(indexrelid, &option) && option.present)
		record_dependencies(indexrelid, row.slot);
}

/* Restores the option that REINDEX CONCURRENTLY has lost of a locked index, if it is saved. */
void
ttl_saved_option_restore(Oid indexrelid)
{
	TtlOption	option;

	if (!ttl_option_read(indexrelid, &option) || option.present ||
		!ttl_saved_option_apply(indexrelid, &option))
		return;
	ttl_saved_option_put(indexrelid, &option);
	ttl_catalog_each(ttl_catalog_table_indexes(IndexGetRelation(indexrelid, false)),
					 record_copy, NULL);
	ereport(LOG,
			(errmsg("restored expire_after_seconds(%d) of TTL index %s",
					option.seconds, ttl_name_index(indexrelid)),
			 errdetail("REINDEX CONCURRENTLY had lost it.")));
}

/* Repairs an index after REINDEX CONCURRENTLY, if the locks are free at once. */
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

/* Does an index need a repair?  This is cheap and takes no lock. */
bool
ttl_saved_option_needs_repair(Oid indexrelid)
{
	TtlOption	option;
	TtlOption	saved = {0};
	SavedRow	index;
	SavedRow   *row;

	if (!ttl_option_read(indexrelid, &option) || option.problem != NULL ||
		!identify(indexrelid, &index))
		return false;
	row = saved_row(&index);
	if (row != NULL && row->indexrelid == indexrelid)
		saved = row->option;
	index.option = option_to_save(indexrelid, &option);
	return !option.present || !ttl_option_same(&saved, &index.option);
}
