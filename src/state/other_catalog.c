/*-------------------------------------------------------------------------
 *
 * other_catalog.c
 *	  Rows in the catalogs of other extensions.
 *
 * Citus and TimescaleDB describe their tables in catalogs of their own.  They are read without
 * linking to these extensions and without waiting for a lock.  Each look takes a new snapshot,
 * so that it sees what another session has just committed.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/state/other_catalog.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/catalog.h"
#include "catalog/namespace.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_index.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include "definition/definition.h"
#include "definition/key.h"
#include "state/state.h"

/*
 * The catalog of another extension, or invalid if it is not installed.  A table that somebody
 * else made does not count, except in pg_catalog, where only a superuser can make one.
 */
Oid
ttl_other_catalog_find(const char *schema, const char *name)
{
	Oid			namespace = get_namespace_oid(schema, true);
	Oid			relid = OidIsValid(namespace) ? get_relname_relid(name, namespace) : InvalidOid;
	FormData_pg_class form;

	if (!OidIsValid(relid) || !ttl_catalog_class(relid, &form) ||
		form.relkind != RELKIND_RELATION ||
		!(IsCatalogNamespace(namespace) || superuser_arg(form.relowner)))
		return InvalidOid;
	return relid;
}

/* Can each row be found by an index?  Another kind than a btree has other strategies. */
static bool
is_whole_btree(Oid indexrelid)
{
	HeapTuple	index = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(indexrelid));
	FormData_pg_class class;
	bool		result;

	if (!HeapTupleIsValid(index))
		return false;
	result = ttl_catalog_class(indexrelid, &class) && class.relam == BTREE_AM_OID &&
		heap_attisnull(index, Anum_pg_index_indpred, NULL);
	ReleaseSysCache(index);
	return result;
}

/* The btree index of a catalog on one column, or invalid. */
static Oid
find_index(Relation rel, AttrNumber attnum)
{
	ListCell   *lc;

	foreach(lc, RelationGetIndexList(rel))
	{
		AttrNumber	key;
		Node	   *expression;

		if (is_whole_btree(lfirst_oid(lc)) && ttl_catalog_is_usable(lfirst_oid(lc)) &&
			ttl_key_read(lfirst_oid(lc), &key, &expression) && key == attnum)
			return lfirst_oid(lc);
	}
	return InvalidOid;
}

/* Finds the numbers of the columns; false if one is missing, or of another type. */
static bool
find_columns(Relation rel, const TtlOtherColumn *columns, int count, AttrNumber *attnums)
{
	for (int i = 0; i < count; i++)
	{
		attnums[i] = get_attnum(RelationGetRelid(rel), columns[i].name);
		if (attnums[i] <= 0 ||
			get_atttype(RelationGetRelid(rel), attnums[i]) != columns[i].type)
			return false;
	}
	return true;
}

/* Reads the rows of an open catalog. */
static TtlOtherFound
read_rows(Relation rel, TtlOtherColumn *columns, int count, TtlOtherRow row, void *arg)
{
	ScanKeyData keys[TTL_OTHER_MAX_COLUMNS];
	AttrNumber	attnums[TTL_OTHER_MAX_COLUMNS];
	Oid			index = InvalidOid;
	int			nkeys = 0;
	TtlOtherFound found = TTL_OTHER_NONE;
	SysScanDesc scan;
	HeapTuple	tuple;
	bool		over = false;

	Assert(count <= TTL_OTHER_MAX_COLUMNS);
	if (!find_columns(rel, columns, count, attnums))
		return TTL_OTHER_UNCLEAR;
	while (nkeys < count && OidIsValid(columns[nkeys].equals))
	{
		ScanKeyInit(&keys[nkeys], attnums[nkeys], BTEqualStrategyNumber,
					columns[nkeys].equals, columns[nkeys].value);
		nkeys++;
	}
	if (nkeys == 1)
		index = find_index(rel, attnums[0]);
	scan = systable_beginscan(rel, index, OidIsValid(index), NULL, nkeys, keys);
	while (!over && HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		found = TTL_OTHER_FOUND;
		for (int i = nkeys; i < count; i++)
		{
			bool		isnull;

			columns[i].value = heap_getattr(tuple, attnums[i], RelationGetDescr(rel),
											&isnull);
			if (isnull)
				found = TTL_OTHER_UNCLEAR;
		}
		over = found == TTL_OTHER_UNCLEAR || row == NULL || row(columns, arg);
	}
	systable_endscan(scan);
	return found;
}

/*
 * Reads the rows in which the first columns, which have an operator, have the given values.
 * The others are set for each row, or without a function of the first row.  All types are by
 * value.
 */
TtlOtherFound
ttl_other_catalog_read(const char *schema, const char *name,
					   TtlOtherColumn *columns, int count, TtlOtherRow row, void *arg)
{
	Oid			relid = ttl_other_catalog_find(schema, name);
	Relation	rel;
	TtlOtherFound found = TTL_OTHER_NONE;

	if (!OidIsValid(relid))
		return TTL_OTHER_NONE;
	/* it is locked while its extension is being updated */
	if (!ConditionalLockRelationOid(relid, AccessShareLock))
		return TTL_OTHER_UNCLEAR;
	rel = try_table_open(relid, NoLock);
	if (rel != NULL)
	{
		found = read_rows(rel, columns, count, row, arg);
		table_close(rel, NoLock);
	}
	UnlockRelationOid(relid, AccessShareLock);
	return found;
}
