/*-------------------------------------------------------------------------
 *
 * select.c
 *	  Queries of catalogs, also of those of other extensions.
 *
 * Citus and TimescaleDB describe their tables in catalogs of their own, which everybody may
 * read.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/catalog.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"

#include "definition/definition.h"
#include "ttl_index.h"

/*
 * The rows of a query, up to so many (0 for all): arrays of its values as text, or NULL.  The
 * search_path is pg_catalog.
 */
List *
ttl_select_rows(const char *query, int limit)
{
	MemoryContext caller = CurrentMemoryContext;
	List	   *rows = NIL;
	int			level = NewGUCNestLevel();

	ttl_settings_set("search_path", "pg_catalog, pg_temp");
	SPI_connect();
	if (SPI_execute(query, false, limit) != SPI_OK_SELECT)
		elog(ERROR, "could not run: %s", query);
	MemoryContextSwitchTo(caller);
	for (int i = 0; i < SPI_processed; i++)
	{
		TupleDesc	desc = SPI_tuptable->tupdesc;
		char	  **values = palloc(sizeof(char *) * desc->natts);

		for (int j = 0; j < desc->natts; j++)
			values[j] = SPI_getvalue(SPI_tuptable->vals[i], desc, j + 1);
		rows = lappend(rows, values);
	}
	SPI_finish();
	AtEOXact_GUC(false, level);
	return rows;
}

/* The first value that a query returns, or NULL. */
char *
ttl_select_value(const char *query)
{
	List	   *rows = ttl_select_rows(query, 1);

	return rows != NIL ? *(char **) linitial(rows) : NULL;
}

/*
 * Is this catalog of another extension in the database?  It must be a superuser's table, except
 * in pg_catalog, where only a superuser can create one.
 */
bool
ttl_select_has_catalog(const char *schema, const char *name)
{
	Oid			namespace = get_namespace_oid(schema, true);
	Oid			relid = OidIsValid(namespace) ? get_relname_relid(name, namespace) : InvalidOid;
	FormData_pg_class form;

	return OidIsValid(relid) && ttl_catalog_class(relid, &form) &&
		form.relkind == RELKIND_RELATION &&
		(IsCatalogNamespace(namespace) || superuser_arg(form.relowner));
}
