/*-------------------------------------------------------------------------
 *
 * citus.h
 *	  What a table is to Citus, and rows in the catalogs of other extensions.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/state/citus.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_CITUS_H
#define TTL_CITUS_H

#include "definition/definition.h"

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

/* citus.c */
extern void ttl_citus_look(Oid relid, TtlCitusTable *table);
extern TtlCitusKind ttl_citus_kind(Oid relid);
extern Oid	ttl_citus_shell_index(Oid indexrelid, const TtlCitusTable *table);
extern bool ttl_citus_keeps_partitions(const TtlCitusTable *table);
extern bool ttl_citus_goes_by_value(const TtlCitusTable *table);
extern bool ttl_citus_goes_elsewhere(const TtlCitusTable *table);
extern int64 ttl_citus_lock(Oid relid);
extern void ttl_citus_lock_copies(Oid relid);
extern void ttl_citus_run_command(const char *command);

/* other_catalog.c */
extern Oid	ttl_other_catalog_find(const char *schema, const char *name);
extern TtlOtherFound ttl_other_catalog_read(const char *schema, const char *name,
											TtlOtherColumn *columns, int count,
											TtlOtherRow row, void *arg);

#endif							/* TTL_CITUS_H */
