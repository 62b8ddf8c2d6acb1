/*-------------------------------------------------------------------------
 *
 * ttl_index.h
 *	  What all files share, and a map of the folders.
 *
 *	document/		dates and times to live inside jsonb documents
 *	definition/		what an index says: its option and its key
 *	state/			whether an index can be used, now and with its table
 *	expire/			deleting the rows of one index (see its README)
 *	partition/		partitions that are dropped, kept and made as a whole
 *	due/			how much is due, and when
 *	stats/			counters, history, and what a worker does now
 *	shared/			what the processes of the monitor share
 *	pass/			what a worker does for its owner
 *	server/			launcher, survey, workers, and the views of them
 *	ddl/			declaring, changing and removing TTL indexes
 *
 * A folder uses only the folders above it in this list (test 051_layout).  At the top:
 *
 *	settings.c		start of the library, settings
 *	owner.c			ownership checks
 *	name.c			names of relations
 *	inherit.c		children and parents of a relation, without a lock
 *	lock.c			strong locks that hardly delay others
 *	args.c			arguments of SQL functions
 *	error.c			catching errors
 *	compat.h		the differences between the major versions
 *
 * The name of a function begins with that of its file: ttl_owner_of() is in
 * owner.c.  doc/how-it-works.md follows one row through the files.
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

/* The limits for schedule.c, from the settings. */
typedef struct TtlLimits
{
	int64		sub_pass_time;	/* milliseconds here and below; 0 = none */
	int64		index_docs;
	int64		index_time;
	int64		failure_time;	/* for the search for a row that fails */
	int			batch_docs;
	int64		batch_time;
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

/* settings.c */
extern PGDLLIMPORT bool ttl_monitor_enabled;
extern PGDLLIMPORT int ttl_monitor_sleep;
extern PGDLLIMPORT int ttl_max_workers;
extern PGDLLIMPORT int ttl_batch_timeout;
extern PGDLLIMPORT int ttl_log_min_duration;
extern PGDLLIMPORT int ttl_max_clock_jump;
extern PGDLLIMPORT int ttl_hold_after_downtime;
extern PGDLLIMPORT int ttl_delete_rate_limit;
extern PGDLLIMPORT int ttl_max_replication_lag;
extern PGDLLIMPORT int ttl_max_retained_wal;
extern PGDLLIMPORT int ttl_max_lag_pause;
extern PGDLLIMPORT int ttl_bucket_lock_timeout;
extern PGDLLIMPORT bool ttl_count_dropped_documents;
extern PGDLLIMPORT bool ttl_logical_messages;
extern PGDLLIMPORT int ttl_history_retention;
extern TtlLimits ttl_settings_limits(void);
extern dsa_pointer ttl_settings_store(dsa_area *area);
extern void ttl_settings_load(const char *values);
extern void ttl_settings_force(const char *name, const char *value);
extern void ttl_settings_set(const char *name, const char *value);

#endif							/* TTL_INDEX_H */
