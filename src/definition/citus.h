/*-------------------------------------------------------------------------
 *
 * citus.h
 *	  What a table is to Citus.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/definition/citus.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_CITUS_H
#define TTL_CITUS_H

#include "postgres_ext.h"

typedef enum TtlCitusKind
{
	TTL_CITUS_NONE,				/* a table of which Citus knows nothing */
	TTL_CITUS_SHELL,			/* a table of Citus: its rows are in shards */
	TTL_CITUS_SHARD,			/* a shard that is on this node and no other */
	TTL_CITUS_ELSEWHERE,		/* a shard that is not, as far as is known
								 * here */
	TTL_CITUS_REPLICATED		/* a shard that is on more nodes, or may be:
								 * one of its copies */
} TtlCitusKind;

typedef struct TtlCitusTable
{
	TtlCitusKind kind;
	bool		replicated;		/* a shell: its shards are on more nodes each */
	Oid			shell;			/* of a shard, or invalid if that is not known */
	int64		shard;			/* its number, or 0 */
} TtlCitusTable;

extern bool ttl_citus_is_here(void);
extern bool ttl_citus_is_coordinator(void);
extern void ttl_citus_look(Oid relid, TtlCitusTable *table);
extern TtlCitusKind ttl_citus_kind(Oid relid);
extern Oid	ttl_citus_shell_index(Oid indexrelid, const TtlCitusTable *table);
extern bool ttl_citus_keeps_partitions(const TtlCitusTable *table);
extern bool ttl_citus_goes_by_value(const TtlCitusTable *table);
extern bool ttl_citus_goes_elsewhere(const TtlCitusTable *table);
extern int64 ttl_citus_lock(Oid relid);
extern void ttl_citus_lock_copies(Oid relid);
extern void ttl_citus_run_command(const char *command);

#endif							/* TTL_CITUS_H */
