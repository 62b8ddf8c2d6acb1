/*-------------------------------------------------------------------------
 *
 * definition.h
 *	  What a TTL index is: its definition and its state.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_DEFINITION_H
#define TTL_DEFINITION_H

#include "catalog/pg_class.h"
#include "definition/option.h"

/* The states of an index, which src/state/ decides. */
typedef enum TtlState
{
	TTL_ACTIVE,
	/* wrong by definition: DDL refuses these */
	TTL_MALFORMED_OPTION,
	TTL_UNSUITABLE_INDEX,
	TTL_UNSUITABLE_TABLE,
	TTL_WRONG_TIME_ZONE,
	TTL_WRONG_UNIT,
	TTL_UNSUITABLE_PARTITIONS,
	TTL_ARCHIVE_MISMATCH,
	/* the index cannot be used now */
	TTL_NOT_VALID,
	TTL_OPTION_LOST,
	TTL_TABLE_LOCKED,
	TTL_NO_REPLICA_IDENTITY,
	TTL_OWNER_LACKS_PRIVILEGE,
	TTL_OLD_SNAPSHOTS,
	TTL_REPACK_COPY,
	TTL_SHARD_ELSEWHERE,
	TTL_OPTION_DIFFERS,
	/* added by server/shown_state.c */
	TTL_NO_MONITOR,
	TTL_CRASHED_SERVER,
	TTL_HELD,
	TTL_PAUSED,
	/* shown only: its rows expire all the same */
	TTL_FAILING,
	TTL_BUCKET_FAILING,
	TTL_BUCKET_MISSING
} TtlState;

#define TTL_STATE_IS_WRONG(state) \
	((state) >= TTL_MALFORMED_OPTION && (state) <= TTL_ARCHIVE_MISMATCH)

/* What a table is to Citus, which citus.c finds out. */
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

typedef struct TtlIndex
{
	Oid			indexrelid;
	Oid			relid;
	Oid			owner;
	Oid			governor;		/* the index whose option this is, maybe
								 * itself */
	char		relkind;		/* of the index: 'i' or 'I' */
	Oid			keytype;		/* see keytype.c */
	AttrNumber	keyattnum;		/* the column of the key, or invalid */
	TtlOption	option;			/* the governing one */
	TtlCitusTable citus;		/* what the table is to Citus */
	TtlCitusTable citus_governor;	/* and the governor's */
	TtlState	state;
	int			sqlerrcode;		/* of the error that DDL raises for the state */
	const char *reason;			/* of an active one: what it leaves out */
	const char *hint;			/* or NULL */
} TtlIndex;

/* catalog.c */
extern void ttl_catalog_each(List *indexes,
							 void (*work) (Oid indexrelid, void *arg),
							 void *arg);
extern List *ttl_catalog_dependents(void);
extern Oid	ttl_catalog_root(Oid indexrelid);
extern List *ttl_catalog_shown(void);
extern List *ttl_catalog_table_indexes(Oid relid);
extern List *ttl_catalog_leaves(Oid root);
extern bool ttl_catalog_governor(Oid indexrelid, Oid *governor, TtlOption *option);
extern bool ttl_catalog_class(Oid relid, FormData_pg_class *form);
extern bool ttl_catalog_is_usable(Oid indexrelid);
extern bool ttl_catalog_is_leftover(Oid indexrelid);
extern bool ttl_catalog_is_copy(Oid indexrelid);

#endif							/* TTL_DEFINITION_H */
