/*-------------------------------------------------------------------------
 *
 * state.h
 *	  Whether a TTL index can be used.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_STATE_H
#define TTL_STATE_H

#include "catalog/pg_attribute.h"
#include "definition/definition.h"

/* A foreign key to a table (see references.c). */
typedef struct TtlReference
{
	Oid			constraint;
	Oid			relid;			/* the table that references */
	char		action;			/* ON DELETE, as in pg_constraint.confdeltype */
	char	   *missing_index;	/* the command that creates it; NULL if there is one */
} TtlReference;

/* state.c */
extern const char *ttl_state_name(TtlState state);
extern TtlState ttl_state_set(TtlIndex *index, TtlState state, int sqlerrcode,
							  const char *reason, const char *hint);
extern void ttl_state_raise(const TtlIndex *index);
extern void ttl_state_check_is_index(Oid relid);
extern void ttl_state_check_is_ttl(const TtlIndex *index);
extern void ttl_state_check_usable(Oid indexrelid);
extern const int32 *ttl_state_read_seconds(FunctionCallInfo fcinfo, int i);
extern void ttl_state_check_seconds(int32 seconds, bool may_be_never);
extern bool ttl_state_describe(Oid indexrelid, bool definition_only, TtlIndex *index);
extern void ttl_state_check_table(Oid relid);
extern void ttl_state_check_option(TtlIndex *index);
extern bool ttl_state_owners_above(TtlIndex *index);
extern bool ttl_state_has_rule(Oid relid, CmdType event, bool instead);

/* citus.c */
extern TtlState ttl_citus_state(TtlIndex *index);
extern void ttl_citus_look(Oid relid, TtlCitusTable *table);
extern TtlCitusKind ttl_citus_kind(Oid relid);
extern Oid	ttl_citus_shell_index(Oid indexrelid, const TtlCitusTable *table);
extern bool ttl_citus_keeps_partitions(const TtlCitusTable *table);
extern bool ttl_citus_deletes_elsewhere(const TtlCitusTable *table);
extern int64 ttl_citus_lock(Oid relid);
extern void ttl_citus_lock_copies(Oid relid);
extern void ttl_citus_run_command(const char *command);

/* archive.c */
extern TtlState ttl_archive_state(TtlIndex *index);
extern TtlState ttl_archive_rights(TtlIndex *index);
extern TtlState ttl_archive_state_now(TtlIndex *index);
extern char *ttl_archive_name(Oid target);
extern char *ttl_archive_column_type(const FormData_pg_attribute *column);

/* references.c */
extern List *ttl_references_to(Oid relid);
extern const TtlReference *ttl_references_slow(Oid relid);

#endif							/* TTL_STATE_H */
