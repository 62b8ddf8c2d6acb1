/*-------------------------------------------------------------------------
 *
 * definition.h
 *	  What a TTL index is: its definition and its state.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/definition/definition.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_DEFINITION_H
#define TTL_DEFINITION_H

#include "catalog/pg_attribute.h"
#include "catalog/pg_class.h"
#include "definition/citus.h"
#include "definition/option.h"

/* The states of an index: catalog.c decides them, state.c has names and texts. */
typedef enum TtlState
{
	TTL_ACTIVE,
	/* wrong by definition: DDL refuses these */
	TTL_MALFORMED_OPTION,
	TTL_NOT_BTREE,
	TTL_CONSTRAINT_INDEX,
	TTL_UNIQUE_INDEX,
	TTL_COMPOUND_KEY,
	TTL_LONG_DEFINITION,
	TTL_ID_KEY,
	TTL_KEY_TYPE,
	TTL_OPERATOR_CLASS,
	TTL_TIME_ZONE_MISSING,
	TTL_TIME_ZONE_INVALID,
	TTL_TIME_ZONE_UNUSED,
	TTL_TEMPORARY_TABLE,
	TTL_MATERIALIZED_VIEW,
	TTL_HYPERTABLE,
	TTL_TABLE_ACCESS_METHOD,
	TTL_INSTEAD_RULE,
	TTL_NOT_PARTITIONED_BY_KEY,
	TTL_FILTERED_BUCKETS,
	TTL_ARCHIVE_MISMATCH,
	/* the index cannot be used now, or not with this table */
	TTL_NOT_VALID,
	TTL_OPTION_REMEMBERED,
	TTL_OPTION_LOST,
	TTL_TABLE_LOCKED,
	TTL_NO_REPLICA_IDENTITY,
	TTL_OWNER_LACKS_PRIVILEGE,
	TTL_OLD_SNAPSHOTS,
	TTL_REPACK_COPY,
	TTL_SHARD_ELSEWHERE,
	TTL_OPTION_DIFFERS,
	/* what the monitor adds for the view (see server/shown_state.c) */
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

typedef struct TtlIndex
{
	Oid			indexrelid;
	Oid			relid;
	Oid			owner;
	Oid			parent;			/* immediate parent index, or invalid */
	Oid			governor;		/* the index whose option this is, maybe
								 * itself */
	Oid			root;			/* the governor, or the main index of its pair */
	char		relkind;		/* of the index: 'i' or 'I' */
	Oid			keytype;		/* timestamptz, timestamp or date */
	AttrNumber	keyattnum;		/* the column of the key, or invalid */
	TtlOption	option;			/* the governing one */
	TtlCitusTable citus;		/* what the table is to Citus */
	TtlCitusTable citus_governor;	/* and the governor's */
	TtlState	state;
	char	   *detail;			/* for the text of the state, or NULL */
	char	   *mend;			/* what ends the state, for its hint, or NULL */
	char	   *left_out;		/* shown of an active one, see reach.c */
} TtlIndex;

/* state.c */
extern const char *ttl_state_name(TtlState state);
extern char *ttl_state_reason(const TtlIndex *index);
extern const char *ttl_state_hint(const TtlIndex *index);
extern void ttl_state_raise(const TtlIndex *index);
extern void ttl_state_raise_altered(const TtlIndex *index);
extern void ttl_state_raise_argument(const TtlIndex *index);
extern void ttl_state_check_is_index(Oid relid);
extern bool ttl_state_is_usable(Oid indexrelid);
extern bool ttl_state_is_leftover(Oid indexrelid);
extern bool ttl_state_is_copy(Oid indexrelid);
extern void ttl_state_check_usable(Oid indexrelid);
extern const int32 *ttl_state_read_seconds(FunctionCallInfo fcinfo, int i);
extern void ttl_state_check_seconds(int32 seconds, bool may_be_never);

/* catalog.c */
extern bool ttl_catalog_sorted_oids_have(const List *sorted, Oid oid);
extern void ttl_catalog_each(List *indexes,
							 void (*work) (Oid indexrelid, void *arg),
							 void *arg);
extern List *ttl_catalog_dependents(void);
extern Oid	ttl_catalog_root(Oid indexrelid);
extern List *ttl_catalog_shown(void);
extern List *ttl_catalog_table_indexes(Oid relid);
extern List *ttl_catalog_leaves(Oid root);
extern bool ttl_catalog_governor(Oid indexrelid, Oid *parent, Oid *governor,
								 TtlOption *option);
extern bool ttl_catalog_owners_above(TtlIndex *index);
extern bool ttl_catalog_describe(Oid indexrelid, bool definition_only,
								 TtlIndex *index);
extern void ttl_catalog_check_table(Oid relid);
extern void ttl_catalog_check_key(Oid relid, AttrNumber attnum, Oid type,
								  const char *time_zone);
extern bool ttl_catalog_key_type_ok(Oid type);
extern bool ttl_catalog_class(Oid relid, FormData_pg_class *form);
extern bool ttl_catalog_has_rule(Oid relid, CmdType event, bool instead);

/* citus.c, beside what is in citus.h */
extern TtlState ttl_citus_state(const TtlIndex *index);

/* archive.c */
extern TtlState ttl_archive_state(TtlIndex *index);
extern TtlState ttl_archive_rights(TtlIndex *index);
extern TtlState ttl_archive_state_now(TtlIndex *index);
extern void ttl_archive_check(TtlIndex *index);
extern char *ttl_archive_name(Oid target);
extern Oid	ttl_archive_of(Oid indexrelid, Oid *governor);
extern bool ttl_archive_is_attachable(const TtlIndex *index);
extern char *ttl_archive_column_type(const FormData_pg_attribute *column);

/* reach.c */
extern TtlState ttl_reach_state(Oid relid, TtlCitusTable *citus);
extern bool ttl_reach_is_repack_copy(Oid relid);
extern char *ttl_reach_left_out(const TtlIndex *index);
extern void ttl_reach_report_left_out(Oid indexrelid);

#endif							/* TTL_DEFINITION_H */
