/*-------------------------------------------------------------------------
 *
 * saved_option.c
 *	  The option that is saved beside an index, and its repair.
 *
 * REINDEX CONCURRENTLY copies a predicate only where the folded one is not empty, so
 * it loses an option that stands alone.  But it hands the pg_depend rows of the old
 * index to the new one.  So the option is saved as dependencies, which follow the
 * identity of the index, as a name or an OID would not, and disappear with it.  A
 * table of settings would need hooks to follow, and be wrong where they are missing.
 *
 * What an index can depend on in place of a number are the columns of a composite
 * type of the extension, saved_option, one for each value of each digit: an index
 * depends on six columns for its seconds, and on six more for the hash of its time
 * zone's name.  These are ordinary addresses of objects, which all functions of
 * PostgreSQL can describe.  Six digits to the base of 36 hold every number of 31
 * bits, so that is the least base for six rows an index; with five, the type would
 * need 740 columns.  A number counts only where each of its digits is there once.
 * The table of archive_to() is a dependency by itself, which PostgreSQL has recorded.
 *
 * An option is put back as soon as possible: at the end of the command (reindex.c), else
 * in the next pass.  Where nothing is saved, the index has the state option_lost: expiry
 * stops visibly, and never goes on with another value.
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
#include "access/xlog.h"
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
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "definition/definition.h"
#include "definition/key.h"
#include "definition/option.h"
#include "ttl_index.h"

/* How many digits there are in saved_option, and how many columns for each. */
#define DIGITS 6
#define BASE 36

/* The numbers of a saved option: the columns of one come after those of the other. */
typedef enum SavedNumber
{
	SAVED_SECONDS,
	SAVED_TIME_ZONE
} SavedNumber;

#define SAVED_NUMBERS 2

/* What is saved of an option. */
typedef struct SavedOption
{
	bool		present;
	int32		seconds;
	bool		has_time_zone;
	int32		time_zone_hash;
	bool		paused;			/* the index depends on paused() */
	Oid			archive_to;		/* the table, or invalid */
} SavedOption;

/* What pg_depend says of an index. */
typedef struct Dependencies
{
	bool		on_function[TTL_REMOVED_FUNCTIONS];
	/* how many columns of saved_option, and the sum of what they stand for */
	int			count[SAVED_NUMBERS];
	int			digits[SAVED_NUMBERS][DIGITS];	/* how many of each digit */
	int64		sum[SAVED_NUMBERS];
	List	   *relations;		/* what it names as '...'::regclass */
} Dependencies;

/* The type, as a relation; invalid where the library is newer than the objects. */
static Oid
saved_option_type(void)
{
	return get_relname_relid("saved_option",
							 get_namespace_oid(TTL_SCHEMA, true));
}

/* The value of one digit, the first digit being the greatest. */
static int64
digit_value(int place, int digit)
{
	int64		value = digit;

	while (++place < DIGITS)
		value *= BASE;
	return value;
}

/* Notes a column of saved_option. */
static void
read_digit(AttrNumber attnum, Dependencies *found)
{
	int			number = (attnum - 1) / (DIGITS * BASE);
	int			place = (attnum - 1) / BASE % DIGITS;

	if (attnum < 1 || number >= SAVED_NUMBERS)
		return;
	found->count[number]++;
	found->digits[number][place]++;
	found->sum[number] += digit_value(place, (attnum - 1) % BASE);
}

/* Reads the pg_depend rows of an index that are about options. */
static void
read_dependencies(Oid indexrelid, const TtlFunctions *functions,
				  Dependencies *found)
{
	Oid			type = saved_option_type();
	Relation	depend = table_open(DependRelationId, AccessShareLock);
	ScanKeyData key[2];
	SysScanDesc scan;
	HeapTuple	tuple;

	memset(found, 0, sizeof(*found));
	ScanKeyInit(&key[0], Anum_pg_depend_classid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(RelationRelationId));
	ScanKeyInit(&key[1], Anum_pg_depend_objid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(indexrelid));
	scan = systable_beginscan(depend, DependDependerIndexId, true, NULL, 2,
							  key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_depend row = (Form_pg_depend) GETSTRUCT(tuple);

		if (row->refclassid == RelationRelationId && row->refobjid == type)
			read_digit(row->refobjsubid, found);
		else if (row->refclassid == RelationRelationId && row->refobjsubid == 0 &&
				 row->deptype == DEPENDENCY_NORMAL)
			found->relations = lappend_oid(found->relations, row->refobjid);
		else if (row->refclassid == ProcedureRelationId)
		{
			for (int i = 0; i < TTL_REMOVED_FUNCTIONS; i++)
			{
				if (row->refobjid == ttl_function_option(functions, i))
					found->on_function[i] = true;
			}
		}
	}
	systable_endscan(scan);
	table_close(depend, AccessShareLock);
}

/* Reads a number; false unless each of its digits is there once. */
static bool
read_number(const Dependencies *found, SavedNumber number, int32 *value)
{
	for (int i = 0; i < DIGITS; i++)
	{
		if (found->digits[number][i] != 1)
			return false;
	}
	*value = (int32) found->sum[number];
	return found->sum[number] <= PG_INT32_MAX;
}

/* Reads trees of an index, a list; NIL where it is gone. */
static List *
stored_trees(Oid indexrelid)
{
	HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(indexrelid));
	List	   *trees;

	if (!HeapTupleIsValid(tuple))
		return NIL;
	trees = list_make2(ttl_option_stored_tree(tuple, Anum_pg_index_indexprs),
					   ttl_option_stored_tree(tuple, Anum_pg_index_indpred));
	ReleaseSysCache(tuple);
	return trees;
}

/*
 * Finds the table of archive_to(), which the index depends on: what it names but for what
 * is in its key and its filter.  Invalid unless there is one such table.
 */
static Oid
saved_archive(Oid indexrelid, const Dependencies *found)
{
	TtlOption	option;
	List	   *trees = stored_trees(indexrelid);
	List	   *left;

	if (trees == NIL || !ttl_option_read(indexrelid, &option))
		return InvalidOid;
	trees = lappend(option.filter, linitial(trees));
	left = list_difference_oid(found->relations,
							   ttl_option_named_relations((Node *) trees));
	return list_length(left) == 1 ? linitial_oid(left) : InvalidOid;
}

/*
 * Returns the saved option, or none unless all of it is there: an index that has lost
 * where its rows are to be moved must not delete them.
 */
static SavedOption
saved_option(Oid indexrelid, const Dependencies *found)
{
	SavedOption none = {0};
	SavedOption saved = {0};

	saved.present = read_number(found, SAVED_SECONDS, &saved.seconds);
	saved.paused = found->on_function[TTL_PAUSED_FUNCTION];
	saved.has_time_zone = found->count[SAVED_TIME_ZONE] > 0;
	if (saved.has_time_zone &&
		!read_number(found, SAVED_TIME_ZONE, &saved.time_zone_hash))
		return none;
	if (saved.present && found->on_function[TTL_ARCHIVE_FUNCTION])
	{
		saved.archive_to = saved_archive(indexrelid, found);
		if (!OidIsValid(saved.archive_to))
			return none;
	}
	return saved.present ? saved : none;
}

/* Does the index depend on an option function, whatever its predicate says? */
bool
ttl_saved_option_is_dependent(Oid indexrelid)
{
	TtlFunctions functions;
	Dependencies found;

	if (!ttl_function_lookup(&functions))
		return false;
	read_dependencies(indexrelid, &functions, &found);
	for (int i = 0; i < TTL_OPTION_FUNCTIONS; i++)
	{
		if (found.on_function[i])
			return true;
	}
	return false;
}

/* What is saved for an index. */
static SavedOption
read_saved_option(Oid indexrelid)
{
	TtlFunctions functions;
	SavedOption none = {0};
	Dependencies found;

	if (!ttl_function_lookup(&functions))
		return none;
	read_dependencies(indexrelid, &functions, &found);
	return saved_option(indexrelid, &found);
}

/* Gives a lost option the values that were saved; false if nothing was saved. */
bool
ttl_saved_option_apply(Oid indexrelid, TtlOption *option)
{
	SavedOption saved = read_saved_option(indexrelid);
	char	   *time_zone = NULL;

	if (saved.has_time_zone)
		time_zone = ttl_time_zone_by_hash(saved.time_zone_hash);
	if (!saved.present || (saved.has_time_zone && time_zone == NULL))
		return false;
	option->present = true;
	option->seconds = saved.seconds;
	option->time_zone = time_zone;
	option->paused = saved.paused;
	option->archive_to = saved.archive_to;
	return true;
}

/*
 * Makes an index depend on the tables that it names, and on no others: archive_to() may
 * name another one than before.
 */
static void
follow_relations(Oid indexrelid, List *trees, const Dependencies *found)
{
	List	   *named = ttl_option_named_relations((Node *) trees);
	ObjectAddress index;
	ListCell   *lc;

	ObjectAddressSet(index, RelationRelationId, indexrelid);
	foreach(lc, list_difference_oid(found->relations, named))
		deleteDependencyRecordsForSpecific(RelationRelationId, indexrelid,
										   DEPENDENCY_NORMAL,
										   RelationRelationId, lfirst_oid(lc));
	foreach(lc, list_difference_oid(named, found->relations))
	{
		ObjectAddress target;

		ObjectAddressSet(target, RelationRelationId, lfirst_oid(lc));
		if (SearchSysCacheExists1(RELOID, ObjectIdGetDatum(lfirst_oid(lc))))
			recordDependencyOn(&index, &target, DEPENDENCY_NORMAL);
	}
}

/*
 * Makes an index depend on the option functions, and seconds(), where they occur in it.
 * One that occurs elsewhere than as an option has its dependency, too: without it,
 * DROP EXTENSION would leave an index behind that nobody can open.
 */
static void
follow_functions(Oid indexrelid, List *trees, const TtlFunctions *functions,
				 const Dependencies *found)
{
	for (int i = 0; i < TTL_REMOVED_FUNCTIONS; i++)
	{
		TtlFunctions only = {0};
		Oid			function = ttl_function_option(functions, i);
		ObjectAddress index;
		ObjectAddress target;
		bool		occurs;

		/* look for this one alone */
		only.expire_after_seconds = function;
		occurs = ttl_option_is_within((Node *) trees, &only);
		ObjectAddressSet(index, RelationRelationId, indexrelid);
		ObjectAddressSet(target, ProcedureRelationId, function);
		if (occurs && !found->on_function[i])
			recordDependencyOn(&index, &target, DEPENDENCY_NORMAL);
		else if (!occurs && found->on_function[i])
			deleteDependencyRecordsForSpecific(RelationRelationId, indexrelid,
											   DEPENDENCY_NORMAL,
											   ProcedureRelationId, function);
	}
}

/* Makes an index depend on what occurs in it, as CREATE INDEX would. */
static void
follow_trees(Oid indexrelid, const TtlFunctions *functions, const Dependencies *found)
{
	List	   *trees = stored_trees(indexrelid);

	if (trees == NIL)
		return;
	follow_functions(indexrelid, trees, functions, found);
	follow_relations(indexrelid, trees, found);
}

/* Appends the columns that stand for a number. */
static int
number_columns(Oid type, SavedNumber number, int32 value, ObjectAddress *columns)
{
	for (int place = DIGITS - 1; place >= 0; place--)
	{
		ObjectAddressSubSet(columns[place], RelationRelationId, type,
							1 + (number * DIGITS + place) * BASE + value % BASE);
		value /= BASE;
	}
	return DIGITS;
}

/* Replaces what is saved for an index. */
static void
save_option(Oid indexrelid, const SavedOption *saved)
{
	Oid			type = saved_option_type();
	ObjectAddress index;
	ObjectAddress columns[SAVED_NUMBERS * DIGITS];
	int			count = 0;

	if (!OidIsValid(type))
		return;
	deleteDependencyRecordsForSpecific(RelationRelationId, indexrelid,
									   DEPENDENCY_NORMAL, RelationRelationId,
									   type);
	ObjectAddressSet(index, RelationRelationId, indexrelid);
	if (saved->present)
		count += number_columns(type, SAVED_SECONDS, saved->seconds, columns);
	if (saved->present && saved->has_time_zone)
		count += number_columns(type, SAVED_TIME_ZONE, saved->time_zone_hash,
								columns + count);
	recordMultipleDependencies(&index, columns, count, DEPENDENCY_NORMAL);
}

/*
 * What is to be saved of an option.  -1 seconds need nothing: the filter beside
 * them is never folded away, and a time series has them in its partitioned index
 * alone.
 */
static SavedOption
to_be_saved(const TtlOption *option)
{
	SavedOption saved = {0};

	saved.present = option->present && option->seconds >= 0;
	if (!saved.present)
		return saved;
	saved.seconds = option->seconds;
	saved.paused = option->paused;
	saved.archive_to = option->archive_to;
	saved.has_time_zone = option->time_zone != NULL;
	if (saved.has_time_zone)
		saved.time_zone_hash = ttl_time_zone_hash(option->time_zone);
	return saved;
}

static bool
same_saved_option(const SavedOption *a, const SavedOption *b)
{
	return a->present == b->present && a->seconds == b->seconds &&
		a->has_time_zone == b->has_time_zone &&
		a->time_zone_hash == b->time_zone_hash &&
		a->paused == b->paused && a->archive_to == b->archive_to;
}

/*
 * Makes the dependencies of an index say what its predicate says, and saves its
 * option.  Writes nothing where they do already.
 */
void
ttl_saved_option_write(Oid indexrelid, const TtlOption *option)
{
	TtlFunctions functions;
	Dependencies found;
	SavedOption old;
	SavedOption new = to_be_saved(option);

	Assert(!option->present || option->problem == NULL);
	if (!ttl_function_lookup(&functions))
		return;
	read_dependencies(indexrelid, &functions, &found);
	follow_trees(indexrelid, &functions, &found);
	old = saved_option(indexrelid, &found);
	if (!same_saved_option(&old, &new) ||
		found.count[SAVED_SECONDS] != (new.present ? DIGITS : 0) ||
		found.count[SAVED_TIME_ZONE] != (new.has_time_zone ? DIGITS : 0))
		save_option(indexrelid, &new);
	CommandCounterIncrement();
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

/* Makes an index depend on the option functions that occur in it. */
static void
complete_dependencies(Oid indexrelid, void *arg)
{
	TtlFunctions functions;
	TtlOption	option;
	Dependencies found;

	if (!ttl_function_lookup(&functions) ||
		!ttl_option_read(indexrelid, &option) || !option.present)
		return;
	read_dependencies(indexrelid, &functions, &found);
	follow_trees(indexrelid, &functions, &found);
}

/*
 * REINDEX CONCURRENTLY hands on the dependencies of the old index, which still
 * calls the option.  If it is interrupted before it drops that one, nothing would
 * keep DROP EXTENSION from leaving an index behind that nobody can open.
 */
static void
keep_leftovers(Oid indexrelid)
{
	ttl_catalog_each(ttl_catalog_table_indexes(IndexGetRelation(indexrelid, false)),
					 complete_dependencies, NULL);
}

/*
 * Makes all indexes of the database depend on the option functions that occur in them,
 * also leftovers whose new index is gone.
 */
void
ttl_saved_option_complete_dependencies(void)
{
	Relation	rel = table_open(IndexRelationId, AccessShareLock);
	SysScanDesc scan = systable_beginscan(rel, InvalidOid, false, NULL, 0, NULL);
	List	   *indexes = NIL;
	HeapTuple	tuple;

	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		if (!heap_attisnull(tuple, Anum_pg_index_indpred, NULL) ||
			!heap_attisnull(tuple, Anum_pg_index_indexprs, NULL))
			indexes = lappend_oid(indexes,
								  ((Form_pg_index) GETSTRUCT(tuple))->indexrelid);
	}
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	ttl_catalog_each(indexes, complete_dependencies, NULL);
	CommandCounterIncrement();
}

/*
 * Puts the option back that REINDEX CONCURRENTLY has lost of a locked index, if it
 * is saved.
 */
void
ttl_saved_option_restore(Oid indexrelid)
{
	TtlOption	option;

	if (!ttl_option_read(indexrelid, &option) || option.present ||
		!ttl_saved_option_apply(indexrelid, &option))
		return;
	ttl_saved_option_put(indexrelid, &option);
	keep_leftovers(indexrelid);
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
	TtlOption	option;
	SavedOption saved;
	SavedOption wanted;

	if (!ttl_option_read(indexrelid, &option) || option.problem != NULL)
		return false;
	saved = read_saved_option(indexrelid);
	wanted = to_be_saved(&option);
	return !option.present || !same_saved_option(&saved, &wanted);
}
