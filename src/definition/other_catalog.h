/*-------------------------------------------------------------------------
 *
 * other_catalog.h
 *	  Rows in the catalogs of other extensions.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/definition/other_catalog.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_OTHER_CATALOG_H
#define TTL_OTHER_CATALOG_H

#include "postgres_ext.h"

/* A column of a catalog that is read, or looked for by its value. */
typedef struct TtlOtherColumn
{
	const char *name;
	Oid			type;
	RegProcedure equals;		/* invalid: it is only read */
	Datum		value;			/* looked for, or read */
} TtlOtherColumn;

typedef enum TtlOtherFound
{
	TTL_OTHER_NONE,				/* no such row, or no such catalog */
	TTL_OTHER_FOUND,
	TTL_OTHER_UNCLEAR			/* it has another layout than is known, or is
								 * locked */
} TtlOtherFound;

#define TTL_OTHER_MAX_COLUMNS 4

/* Called with each row that is found; true ends the search. */
typedef bool (*TtlOtherRow) (const TtlOtherColumn *columns, void *arg);

extern Oid	ttl_other_catalog_find(const char *schema, const char *name);
extern TtlOtherFound ttl_other_catalog_read(const char *schema, const char *name,
											TtlOtherColumn *columns, int count,
											TtlOtherRow row, void *arg);

#endif							/* TTL_OTHER_CATALOG_H */
