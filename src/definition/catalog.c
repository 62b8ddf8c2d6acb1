/*-------------------------------------------------------------------------
 *
 * catalog.c
 *	  Which TTL indexes there are, and whose option governs each.
 *
 * The TTL indexes of a database are found in pg_depend, because their predicates call the
 * option function.  Each is then described from its own catalog rows, because the dependency
 * alone does not prove that it is one.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <ctype.h>

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/partition.h"
#include "catalog/pg_index.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "definition/key.h"
#include "ttl_index.h"

/*
 * Calls a function for each of many indexes, each time in a memory context of its own: there
 * can be thousands of indexes, and describing one parses trees.
 */
void
ttl_catalog_each(List *indexes, void (*work) (Oid indexrelid, void *arg),
				 void *arg)
{
	MemoryContext caller = CurrentMemoryContext;
	MemoryContext own = AllocSetContextCreate(caller, "ttl_index each",
											  ALLOCSET_DEFAULT_SIZES);
	ListCell   *lc;

	foreach(lc, indexes)
	{
		CHECK_FOR_INTERRUPTS();
		MemoryContextSwitchTo(own);
		work(lfirst_oid(lc), arg);
		MemoryContextSwitchTo(caller);
		MemoryContextReset(own);
	}
	MemoryContextDelete(own);
}

/*
 * Lists all indexes that depend on an option function, also invalid ones and children.  They come
 * by table, as DDL locks: a partitioned one before its partitions.
 */
List *
ttl_catalog_dependents(void)
{
	TtlFunctions functions;
	StringInfoData oids;
	List	   *result = NIL;
	ListCell   *lc;

	if (!ttl_option_functions(&functions))
		return NIL;
	initStringInfo(&oids);
	for (int i = 0; i < TTL_OPTION_FUNCTIONS; i++)
		appendStringInfo(&oids, "%s%u", i > 0 ? ", " : "", ttl_option_function(&functions, i));
	foreach(lc, ttl_select_rows(psprintf("SELECT indexrelid FROM pg_index WHERE indexrelid IN ("
										 "SELECT objid FROM pg_depend WHERE classid = 'pg_class'::regclass "
										 "AND refclassid = 'pg_proc'::regclass AND refobjid IN (%s)) "
										 "ORDER BY indrelid, indexrelid", oids.data), 0))
		result = lappend_oid(result, atooid(*(char **) lfirst(lc)));
	return result;
}

/*
 * Finds the index whose option governs this one: its topmost ancestor that has an option, or
 * itself.  Reads that option; false if the index is gone.
 */
bool
ttl_catalog_governor(Oid indexrelid, Oid *governor, TtlOption *option)
{
	List	   *ancestors = NIL;

	if (get_rel_relispartition(indexrelid))
		ancestors = get_partition_ancestors(indexrelid);
	for (int i = list_length(ancestors) - 1; i >= 0; i--)
	{
		*governor = list_nth_oid(ancestors, i);
		if (ttl_option_read(*governor, option) && option->present)
			return true;
	}
	*governor = indexrelid;
	return ttl_option_read(indexrelid, option);
}

/* The index whose option governs this one, if it is a TTL index; else invalid. */
Oid
ttl_catalog_root(Oid indexrelid)
{
	Oid			governor;
	TtlOption	option;

	if (ttl_catalog_governor(indexrelid, &governor, &option) && option.present)
		return governor;
	return InvalidOid;
}

/* Lists what the view shows: the dependents, and all partitions of these. */
List *
ttl_catalog_shown(void)
{
	List	   *shown = NIL;
	ListCell   *lc;

	foreach(lc, ttl_catalog_dependents())
		shown = list_concat(shown, ttl_inherit_tree(lfirst_oid(lc)));
	list_sort(shown, list_oid_cmp);
	list_deduplicate_oid(shown);
	return shown;
}

/*
 * The indexes of a TTL index that hold rows: itself, or those of the leaf partitions in the
 * order of their bounds.
 */
List *
ttl_catalog_leaves(Oid root)
{
	List	   *leaves = NIL;
	ListCell   *lc;

	if (get_rel_relkind(root) != RELKIND_PARTITIONED_INDEX)
		return list_make1_oid(root);
	foreach(lc, ttl_bounds_read(root))
		leaves = list_concat(leaves, ttl_catalog_leaves(((TtlPartition *) lfirst(lc))->indexrelid));
	return leaves;
}

/* All indexes of a table, in the order of their OIDs, without a lock on it. */
List *
ttl_catalog_table_indexes(Oid relid)
{
	Relation	rel = table_open(IndexRelationId, AccessShareLock);
	List	   *indexes = NIL;
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;

	ScanKeyInit(&key, Anum_pg_index_indrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(relid));
	scan = systable_beginscan(rel, IndexIndrelidIndexId, true, NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
		indexes = lappend_oid(indexes,
							  ((Form_pg_index) GETSTRUCT(tuple))->indexrelid);
	systable_endscan(scan);
	table_close(rel, AccessShareLock);
	list_sort(indexes, list_oid_cmp);
	return indexes;
}

/* Copies the pg_class row of a relation; false, and zeros, if it is gone. */
bool
ttl_catalog_class(Oid relid, FormData_pg_class *form)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));

	memset(form, 0, sizeof(*form));
	if (!HeapTupleIsValid(tuple))
		return false;
	memcpy(form, GETSTRUCT(tuple), CLASS_TUPLE_SIZE);
	ReleaseSysCache(tuple);
	return true;
}

/* Does the index exist, and is it valid? */
bool
ttl_catalog_is_usable(Oid indexrelid)
{
	HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(indexrelid));
	Form_pg_index form;
	bool		usable;

	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_index) GETSTRUCT(tuple);
	usable = form->indisvalid && form->indisready && form->indislive;
	ReleaseSysCache(tuple);
	return usable;
}

/*
 * Was this index left by a failed build or REINDEX CONCURRENTLY?  An invalid index of a
 * partitioned table only waits for the indexes of its partitions.
 */
bool
ttl_catalog_is_leftover(Oid indexrelid)
{
	return get_rel_relkind(indexrelid) == RELKIND_INDEX &&
		!ttl_catalog_is_usable(indexrelid);
}

/*
 * Was it left by REINDEX CONCURRENTLY, by its name?  A plain REINDEX of the table, VACUUM FULL
 * and CLUSTER make such an index valid.
 */
bool
ttl_catalog_is_copy(Oid indexrelid)
{
	char	   *name = get_rel_name(indexrelid);
	int			length = name ? strlen(name) : 0;

	if (ttl_catalog_is_leftover(indexrelid))
		return true;
	while (length > 0 && isdigit((unsigned char) name[length - 1]))
		length--;
	return length > 6 && !get_rel_relispartition(indexrelid) &&
		(strncmp(name + length - 6, "_ccnew", 6) == 0 ||
		 strncmp(name + length - 6, "_ccold", 6) == 0);
}
