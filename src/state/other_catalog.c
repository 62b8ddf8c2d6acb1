/*-------------------------------------------------------------------------
 *
 * other_catalog.c
 *	  Rows in the catalogs of other extensions.
 *
 * Citus and TimescaleDB describe their tables in catalogs of their own.  They are read without
 * linking to these extensions and without waiting for a lock.  Each read takes a new snapshot,
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
#include "state/state.h"

/*
 * The catalog of another extension, or invalid if the extension is not installed.  The table
 * must be a superuser's, except in pg_catalog, where only a superuser can create one.
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

/* The btree index of a catalog that finds all rows by one column, or invalid. */
static Oid
find_index(Relation rel, AttrNumber attnum)
{
	Oid			found = InvalidOid;
	ListCell   *lc;

	foreach(lc, RelationGetIndexList(rel))
	{
		HeapTuple	tuple = SearchSysCache1(INDEXRELID, ObjectIdGetDatum(lfirst_oid(lc)));
		FormData_pg_class class;

		if (!HeapTupleIsValid(tuple))
			continue;
		if (((Form_pg_index) GETSTRUCT(tuple))->indkey.values[0] == attnum &&
			heap_attisnull(tuple, Anum_pg_index_indpred, NULL) &&
			ttl_catalog_class(lfirst_oid(lc), &class) && class.relam == BTREE_AM_OID &&
			ttl_catalog_is_usable(lfirst_oid(lc)))
			found = lfirst_oid(lc);
		ReleaseSysCache(tuple);
	}
	return found;
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
	for (int i = 0; i < count; i++)
	{
		attnums[i] = get_attnum(RelationGetRelid(rel), columns[i].name);
		if (attnums[i] <= 0 || get_atttype(RelationGetRelid(rel), attnums[i]) != columns[i].type)
			return TTL_OTHER_UNCLEAR;
	}
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
 * Reads the rows whose first columns, those with an equality operator, have the given values.
 * Sets the other columns for each row and calls the function, or stops at the first row if
 * there is no function.  All types are passed by value.
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
	/* the catalog is locked while its extension is being updated */
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
