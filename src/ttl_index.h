/*-------------------------------------------------------------------------
 *
 * ttl_index.h
 *	  What all files share.
 *
 * The name of a function begins with that of its file: ttl_owner_of() is in
 * owner.c.  doc/how-it-works.md follows one row through the files, and has a map of the folders.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_INDEX_H
#define TTL_INDEX_H

#include "fmgr.h"
#include "nodes/parsenodes.h"
#include "storage/lockdefs.h"
#include "utils/dsa.h"
#include "utils/relcache.h"

#define TTL_EXTENSION "ttl_index"
#define TTL_SCHEMA "ttl_index"
#define TTL_WORKER_TYPE "ttl_index worker"
#define TTL_SURVEY_TYPE "ttl_index survey"

/* The settings that limit batches and visits; 0 stands for no limit. */
typedef struct TtlLimits
{
	int			sub_pass_time;	/* seconds */
	int			index_docs;
	int			index_time;		/* milliseconds, also below */
	int			batch_docs;
	int			batch_time;
	int			batch_timeout;
} TtlLimits;

/* args.c */
extern void ttl_args_require(FunctionCallInfo fcinfo, int count, const char *const *names);
extern char *ttl_args_text(FunctionCallInfo fcinfo, int i);
extern const bool *ttl_args_bool(FunctionCallInfo fcinfo, int i);
extern const Oid *ttl_args_oid(FunctionCallInfo fcinfo, int i);
extern void ttl_args_check_columns(TupleDesc desc, int expected, const char *name);

/* error.c */
extern ErrorData *ttl_error_catch(void (*work) (void *), void *arg, bool keep);
extern bool ttl_error_is_interrupt(const ErrorData *edata, int sqlerrcode);
extern bool ttl_error_is_of_lock(const ErrorData *edata);

/* inherit.c */
extern List *ttl_inherit_children(Oid relid);
extern List *ttl_inherit_tree(Oid relid);
extern List *ttl_inherit_foreign_tables(Oid relid);
extern Oid	ttl_inherit_parent(Oid relid, bool *detaching);
extern Oid	ttl_inherit_top(Oid relid);

/* lock.c */
extern void ttl_lock_limit_waits(void);
extern bool ttl_lock_now(Oid relid, LOCKMODE lockmode);
extern bool ttl_lock_soon(Oid relid, LOCKMODE lockmode);
extern bool ttl_lock_tree(Oid relid, LOCKMODE lockmode);

/* name.c */
extern char *ttl_name_find(Oid relid);
extern char *ttl_name_qualified(Oid relid);
extern char *ttl_name_index(Oid indexrelid);

/* owner.c */
extern Oid	ttl_owner_of(Oid relid);
extern bool ttl_owner_lock(Oid relid, LOCKMODE lockmode);
extern Relation ttl_owner_open(Oid relid, LOCKMODE lockmode);
extern void ttl_owner_check_tree(Oid relid, Oid owner);

/* select.c */
extern List *ttl_select_rows(const char *query, int limit);
extern char *ttl_select_value(const char *query);
extern bool ttl_select_has_catalog(const char *schema, const char *name);

/* settings.c */
extern PGDLLIMPORT bool ttl_monitor_enabled;
extern PGDLLIMPORT int ttl_monitor_sleep;
extern PGDLLIMPORT int ttl_max_workers;
extern PGDLLIMPORT TtlLimits ttl_limits;
extern PGDLLIMPORT int ttl_log_min_duration;
extern PGDLLIMPORT int ttl_max_clock_jump;
extern PGDLLIMPORT int ttl_hold_after_downtime;
extern PGDLLIMPORT double ttl_max_due_fraction;
extern PGDLLIMPORT int ttl_delete_rate_limit;
extern PGDLLIMPORT int ttl_max_replication_lag;
extern PGDLLIMPORT int ttl_max_retained_wal;
extern PGDLLIMPORT int ttl_max_lag_pause;
extern PGDLLIMPORT int ttl_bucket_lock_timeout;
extern PGDLLIMPORT bool ttl_count_dropped_documents;
extern PGDLLIMPORT bool ttl_logical_messages;
extern PGDLLIMPORT int ttl_history_retention;
extern dsa_pointer ttl_settings_store(dsa_area *area);
extern void ttl_settings_load(const char *values);
extern void ttl_settings_force(const char *name, const char *value);
extern void ttl_settings_set(const char *name, const char *value);

#endif							/* TTL_INDEX_H */
