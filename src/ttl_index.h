/*-------------------------------------------------------------------------
 *
 * ttl_index.h
 *	  The map: what the files share, by the file that defines it.
 *
 *	ttl_index.c		start: settings, launcher, hook
 *	guc.c			the settings
 *	option.c		the option in an index predicate: read, write, save
 *	catalog.c		which TTL indexes there are, and the state of each
 *	reach.c			rows that no TTL index reaches: other extensions', foreign ones
 *	timezone.c		keys that name no instant by themselves
 *	bounds.c		the buckets of a time series: partitions and their bounds
 *	bucket.c		dropping a bucket that is due
 *	series.c		create_time_series, and making buckets ahead of the clock
 *	lock.c			strong locks that stand in nobody's way
 *	owner.c			becoming the owner of a table
 *	name.c			names that stay what they are while SQL text uses them
 *	query.c			queries over one table that are trees, not text
 *	args.c			arguments of SQL functions, and what else SQL declares
 *	create.c		create_index and drop_index
 *	coll_mod.c		coll_mod and remove_ttl
 *	key.c			from a key's name to what is indexed, and to indexes
 *	parse.c			from the text of an expression to its tree
 *	pair.c			documents with a TTL of their own
 *	beside.c		several TTL indexes on one table
 *	notice.c		how many rows are due, for whoever declares
 *	event.c			DDL by others: event triggers and the REINDEX hook
 *	walk.c			the entries of an index, oldest first, from any place on
 *	expire.c		one batch of one index: collect, check, delete
 *	pass.c			the scheduler: bookkeeping that is told the time
 *	resume.c		where an index goes on, also from pass to pass
 *	kept.c			what is kept of a database from turn to turn
 *	throttle.c		how long deletion has to wait
 *	run.c			one sub-pass in this database
 *	stats.c			the counters
 *	progress.c		what a process is at
 *	rfc3339.c		from an RFC 3339 date-time to an instant
 *	document_date.c	the earliest date at a path of a jsonb document
 *	document_ttl.c	the time to live that a document brings along
 *	last_modified.c	the column with the time of a row's last change
 *	statefile.c		what the whole server must know, and after a crash
 *	hold.c			deleting nothing until somebody has looked
 *	crash.c			indexes whose visit takes the server down
 *	launcher.c		the cluster-wide process
 *	worker.c		the process of one database's turn
 *	funcs.c			run_pass, due_count and the functions behind the views
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/ttl_index.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_INDEX_H
#define TTL_INDEX_H

#include "access/skey.h"
#include "access/xlogdefs.h"
#include "access/xlogdefs.h"
#include "datatype/timestamp.h"
#include "fmgr.h"
#include "nodes/parsenodes.h"
#include "nodes/params.h"
#include "nodes/parsenodes.h"
#include "nodes/pg_list.h"
#include "storage/itemptr.h"
#include "storage/lockdefs.h"
#include "tcop/dest.h"
#include "utils/dsa.h"
#include "utils/jsonb.h"
#include "utils/relcache.h"

#define TTL_EXTENSION "ttl_index"
#define TTL_SCHEMA "ttl_index"
#define TTL_LAUNCHER_TYPE "ttl_index launcher"
#define TTL_WORKER_TYPE "ttl_index worker"

#define TTL_SECONDS_RANGE "expire_after_seconds must be between 0 and 2147483647"
#define TTL_MIN_BUCKET_SECONDS 60
#define TTL_MAX_BUCKET_SECONDS 31536000
#define TTL_BUCKET_SECONDS_RANGE "bucket_max_span_seconds must be between 60 and 31536000"
#define TTL_SECONDS_OR_NEVER TTL_SECONDS_RANGE ", or -1 for never"

/* The functions that predicates and keys are read by. */
typedef struct TtlFunctions
{
	Oid			expire_after_seconds;
	Oid			time_zone;
	Oid			drop_expired_partitions;
	Oid			bucket_max_span_seconds;
	Oid			document_ttl;	/* of jsonb */
	Oid			column_ttl;		/* of an integer */
	Oid			expire_at;
	Oid			document_date;
	Oid			earliest;
} TtlFunctions;

#define TTL_OPTION_FUNCTIONS 4	/* the first of these, see option.c */

/* What the predicate of one index says. */
typedef struct TtlOption
{
	bool		present;		/* an option function occurs in it */
	const char *problem;		/* why it is malformed, or NULL */
	int32		seconds;
	char	   *time_zone;		/* NULL where the option is not given */
	bool		drop_partitions;	/* partitions that are due go as a whole */
	bool		boundary_rows;	/* and rows of the others one by one */
	int32		bucket_seconds; /* span of the partitions to be made, or 0 */
	List	   *filter;			/* the other AND members, not folded */
	List	   *stored;			/* all of them, as they were read */
} TtlOption;

/* A closed list; catalog.c has the names and the texts. */
typedef enum TtlState
{
	TTL_ACTIVE,
	/* wrong by definition: DDL refuses these */
	TTL_MALFORMED_OPTION,
	TTL_NOT_BTREE,
	TTL_CONSTRAINT_INDEX,
	TTL_UNIQUE_INDEX,
	TTL_COMPOUND_KEY,
	TTL_ID_KEY,
	TTL_KEY_TYPE,
	TTL_OPERATOR_CLASS,
	TTL_TIME_ZONE_MISSING,
	TTL_TIME_ZONE_INVALID,
	TTL_TIME_ZONE_UNUSED,
	TTL_TEMPORARY_TABLE,
	TTL_MATERIALIZED_VIEW,
	TTL_DISTRIBUTED_TABLE,
	TTL_HYPERTABLE,
	TTL_TABLE_ACCESS_METHOD,
	TTL_INSTEAD_RULE,
	TTL_NOT_PARTITIONED_BY_KEY,
	TTL_FILTERED_BUCKETS,
	/* not now, or not with this table */
	TTL_NOT_VALID,
	TTL_OPTION_REMEMBERED,
	TTL_OPTION_LOST,
	TTL_TABLE_LOCKED,
	TTL_NO_REPLICA_IDENTITY,
	TTL_OWNER_LACKS_PRIVILEGE,
	TTL_OPTION_NOT_EXECUTABLE,
	TTL_OLD_SNAPSHOTS,
	/* shown, for those that are active otherwise */
	TTL_CRASHED_SERVER,
	TTL_HELD,
	/* shown only: the rows expire all the same (see bucket.c and series.c) */
	TTL_BUCKET_HAS_DEPENDENTS,
	TTL_BUCKET_FAILING,
	TTL_BUCKET_MISSING
} TtlState;

#define TTL_STATE_IS_WRONG(state) \
	((state) >= TTL_MALFORMED_OPTION && (state) <= TTL_FILTERED_BUCKETS)

typedef struct TtlIndex
{
	Oid			indexrelid;
	Oid			relid;
	Oid			owner;
	Oid			parent;			/* immediate parent index, or invalid */
	Oid			governor;		/* whose option it is; itself where alone */
	Oid			root;			/* the governor, or the main one of its pair */
	char		relkind;		/* of the index: 'i' or 'I' */
	Oid			keytype;		/* timestamptz, timestamp or date */
	TtlOption	option;			/* the governing one */
	TtlState	state;
	char	   *detail;			/* for the text of the state, or NULL */
	char	   *left_out;		/* shown of an active one, see reach.c */
} TtlIndex;

/* An entry of a TTL index: the key's datum, and where the row is. */
typedef struct TtlEntry
{
	int64		key;
	ItemPointerData tid;
} TtlEntry;

/* A place between two entries: behind this one, or before all. */
typedef struct TtlPlace
{
	int64		key;
	ItemPointerData tid;
	bool		set;			/* else it is before all */
} TtlPlace;

/* Keys from one to another. */
typedef struct TtlRange
{
	bool		set;			/* else it is empty */
	int64		first;
	int64		last;
} TtlRange;

/* A walk over the entries of a TTL index. */
typedef struct TtlWalk
{
	Relation	heap;
	Relation	index;
	Oid			keytype;
	int64		bound;			/* the greatest key of interest */
	bool		backward;		/* the index is descending */
	bool		nulls_come_first;
	TtlPlace	after;			/* the last entry that was returned */
	BlockNumber block;			/* the leaf that was read last */
	BlockNumber next_block;
	bool		over;			/* no leaf after that one */
	XLogRecPtr	since;			/* skip leaves that have not changed since */
	TtlRange	again;			/* but for those that hold one of these keys */
	int64		pages;			/* leaves that were read */
	int64		max_pages;
	TtlEntry   *entries;		/* of that leaf */
	int			count;
	int			position;
} TtlWalk;

/*
 * A partition of a time series, from one key to another; the upper one is
 * exclusive.  Keys are in microseconds, a date's too.
 */
typedef struct TtlBucket
{
	Oid			relid;			/* invalid: it is to be made */
	bool		is_default;
	bool		has_lower;
	bool		has_upper;
	int64		lower;
	int64		upper;
} TtlBucket;

/* So many rows that could not be deleted are remembered. */
#define TTL_KNOWN_FAILURES 16

/* The beginning of a look at an index: what came later is not in it. */
typedef struct TtlHorizon
{
	bool		set;
	XLogRecPtr	lsn;			/* of changed pages; invalid where they have
								 * none */
	TransactionId xmin;			/* of rows: all before that had ended */
} TtlHorizon;

/* What an index is at (see resume.c). */
typedef enum TtlPhase
{
	TTL_FORWARD,
	TTL_BLOCK_ORDER,
	TTL_CATCH_UP
} TtlPhase;

/* Where the next batch of an index goes on (see resume.c). */
typedef struct TtlResume
{
	Oid			indexrelid;
	Oid			filenode;		/* in another file no place means anything */
	TtlPhase	phase;
	bool		keep;			/* it is worth it, in the next pass too */
	/* FORWARD, and in BLOCK ORDER at.tid; at.key was due when that began */
	TtlPlace	at;
	int64		walked;			/* entries that were looked at in this pass */
	bool		order_decided;	/* or not, for this pass */
	bool		exhausted;		/* in this visit nothing more is due */
	bool		caught_up;		/* and that was done, or has to rest */
	/* CATCH UP */
	TtlHorizon	seen;			/* all before `at` has been looked at since */
	TtlHorizon	round;			/* the same, at the end of this round */
	TtlPlace	left;			/* how far it is */
	TtlRange	again;			/* to be looked at, changed or not */
	TtlRange	left_over;		/* the same in the next round */
	bool		thorough;		/* it looks at all */
	bool		found;			/* it has deleted something */
	int64		pages;			/* it has read */
	int64		steps;			/* and entries */
	TimestampTz rest_until;
	/* rows that could not be deleted, or that a trigger kept */
	bool		rows_left;
	int			nfailures;
	ItemPointerData failures[TTL_KNOWN_FAILURES];	/* the first of them */
	TimestampTz retry_at;		/* by a round that is thorough */
	int			delay;			/* minutes between that and the last time */
} TtlResume;

/* The bound of a scan, and what is left to check key by key. */
typedef struct TtlCutoff
{
	TimestampTz instant;		/* due is what is not later */
	Oid			keytype;
	struct pg_tz *zone;			/* NULL for timestamptz */
	int64		bound;			/* greatest key that can be due */
	int64		sure;			/* keys up to here are due without a check */
} TtlCutoff;

/* What a batch did. */
typedef struct TtlBatch
{
	bool		busy;			/* table or index locked by others */
	bool		exhausted;		/* nothing more up to the cutoff */
	bool		past_pass;		/* what may be left was not due at the pass's
								 * beginning */
	int64		candidates;		/* entries that were looked at */
	int64		live;			/* rows that were found */
	int64		deleted;
	int64		buckets;		/* dropped */
	int64		skipped_locked;
	int64		pages;			/* leaves of the index that were read */
	TtlHorizon	horizon;		/* of its look */
	TtlResume	resume;			/* where to go on */
} TtlBatch;

/* Saved by ttl_become_owner. */
typedef struct TtlUser
{
	Oid			userid;
	int			sec_context;
	int			guc_level;
} TtlUser;

/* What one transaction adds to the counters. */
typedef struct TtlCount
{
	Oid			indexrelid;
	Oid			relid;
	int64		visits;
	int64		batches;
	int64		deleted_documents;
	int64		deleted_buckets;
	int64		skipped_locked;
	int64		skipped_failed;
	int64		errors;
	double		delete_time;	/* milliseconds */
	TimestampTz last_deleted;	/* 0 where there is none, also below */
	const char *last_error;
	const char *last_error_sqlstate;
	TimestampTz last_error_time;
	int64		passes;
	int64		sub_passes;
	TimestampTz last_pass_start;
	TimestampTz last_pass_end;
	TimestampTz last_cutoff;
	TimestampTz stats_reset;
	int64		lag_pauses;
} TtlCount;

/* What the counters say of each index, once it is asked for. */
typedef struct TtlCounts
{
	MemoryContext context;		/* for the list */
	bool		read;
	List	   *list;			/* of TtlCount */
} TtlCounts;

/* What deletion waits for; its names are in progress.c, in this order. */
typedef enum TtlWait
{
	TTL_WAIT_NONE,
	TTL_WAIT_RATE,
	TTL_WAIT_REPLICATION,
	TTL_WAIT_LOCKS
} TtlWait;

/* The limits of pass.c, from the settings. */
typedef struct TtlLimits
{
	int64		sub_pass_time;	/* milliseconds here and below; 0 = none */
	int64		index_docs;
	int64		index_time;
	int64		failure_time;	/* to find the rows that fail */
	int			batch_docs;
	int64		batch_time;
} TtlLimits;

typedef struct TtlSubPass
{
	TtlLimits	limits;
	TimestampTz started;
	const Oid  *indexes;
	int			count;
	int			next;			/* position of the next visit */
	int			left;			/* visits not yet begun */
	bool		more;			/* due at the pass's beginning, not done */
	bool		busy;			/* likewise, for want of a lock */
	Oid			resume_at;		/* the index that a cut sub-pass did not reach */
} TtlSubPass;

typedef struct TtlVisit
{
	TtlLimits	limits;
	TimestampTz begun;
	TimestampTz started;		/* at the first candidate; 0 before */
	int64		deleted;
	int			batch_size;
	int64		larger_rows;	/* an earlier batch, to compare with */
	int64		larger_us;
	int64		fixed_us;		/* what a batch takes without its rows */
	double		row_us;			/* and for each row, if that is so */
	int			batches;
	int			failures;
	bool		narrowing;		/* a batch failed, its row is not found yet */
	bool		aside;			/* no use in this pass */
	bool		counted;		/* has rows in the counters */
	bool		busy;			/* something was locked by others */
	bool		over;			/* nothing more here */
	bool		more;			/* ended by a limit */
} TtlVisit;

#define TTL_UNFOLDED_UNKNOWN (PG_INT64_MAX / 2)

/*
 * How long deletion has to wait.  One for all databases, as the rate and the standbys
 * are.  Its times are of the machine's clock (see ttl_machine_clock()).
 */
typedef struct TtlThrottle
{
	int64		batch_begun;
	int64		next_batch_at;	/* by the rate limit */
	int64		lag_since;		/* deletion has paused for replication; or 0 */
	XLogRecPtr	not_awaited;	/* what has not got here was awaited in vain */
} TtlThrottle;

/* What is kept of an index, or of a partition that goes whole (see kept.c). */
typedef struct TtlKeptIndex
{
	Oid			relid;
	/* in this pass */
	bool		failed;			/* an error of it was reported */
	bool		aside;			/* not to be visited again */
	bool		busy;			/* it was locked, and that is counted */
	/* from pass to pass */
	int			first_docs;		/* a visit begins with such a batch; 0: any */
	int			delay;			/* minutes to wait after it was canceled, or 0 */
	TimestampTz retry_at;
	TtlResume	resume;
} TtlKeptIndex;

/* What is kept of a database from turn to turn (see kept.c). */
typedef struct TtlKept
{
	TimestampTz pass_at;		/* the first clock reading; 0: read it */
	TimestampTz last_flush;		/* of idle passes */
	Oid			resume_at;		/* index to begin with */
	int64		idle_passes;	/* not yet written */
	int64		idle_sub_passes;
	int64		lag_pauses;
	bool		counted;		/* this pass wrote something */
	bool		said_read_only;
	int64		unfolded_rows;	/* of the counters, since they were folded */
	int64		nindexes;		/* that follow, where it is packed */
	struct HTAB *indexes;		/* where it is not */
} TtlKept;

/*
 * One turn of a database: what the launcher tells its worker and what it hears
 * back, in shared memory; run_pass() uses one in its own.
 */
typedef struct TtlTurn
{
	/* the launcher asks */
	int			launcher_pid;
	int64		pass;			/* number, for pg_stat_activity */
	bool		begins;			/* the pass does, for this database */
	Oid			died_at;		/* where the worker before this one died */
	bool		died_in_crash;	/* and took the server down */
	bool		died_canceled;	/* it did not let itself be canceled there */
	/* kept for the server, from turn to turn */
	TtlThrottle throttle;
	/* the worker answers */
	bool		answered;
	bool		held;			/* nothing more in any database */
	bool		more;
	bool		canceled;		/* current_index did not let itself be */
	Oid			current_index;	/* being visited, should the worker die */
	int64		lag_pauses;		/* in this turn */
	/* kept for the database, packed; in shared memory only */
	dsa_pointer kept;
} TtlTurn;

/* The argument of a worker, beside the handle of the shared memory. */
typedef struct TtlWorkerExtra
{
	Oid			database;
	dsa_pointer turn;
} TtlWorkerExtra;

/* How a driver of run.c ends a transaction and begins the next. */
typedef struct TtlDriver
{
	void		(*begin) (void);
	void		(*commit) (void);
	bool		is_worker;
	Oid			role;			/* visit what this role may delete as owner */
} TtlDriver;

/* guc.c */
extern PGDLLIMPORT bool ttl_monitor_enabled;
extern PGDLLIMPORT int ttl_monitor_sleep;
extern PGDLLIMPORT int ttl_sub_pass_target_time;
extern PGDLLIMPORT int ttl_index_delete_target_docs;
extern PGDLLIMPORT int ttl_index_delete_target_time;
extern PGDLLIMPORT int ttl_batch_target_docs;
extern PGDLLIMPORT int ttl_batch_target_time;
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
extern void ttl_guc_init(void);
extern TtlLimits ttl_guc_limits(void);

/* option.c */
extern uint64 ttl_definitions_version(void);
extern bool ttl_functions(TtlFunctions *functions);
extern List *ttl_arguments(const FuncExpr *call);
extern bool ttl_option_read(Oid indexrelid, TtlOption *option);
extern List *ttl_option_members(const TtlOption *option);
extern TtlOption ttl_option_of_part(const TtlOption *whole, List *filter);
extern bool ttl_is_dependent(Oid indexrelid);
extern bool ttl_filters_exclude(Oid relid, List *a, List *b);
extern bool ttl_same_filter(Oid relid, List *a, List *b);
extern Oid	ttl_option_function(const TtlFunctions *functions, int i);
extern bool ttl_saved_option_apply(Oid indexrelid, TtlOption *option);
extern void ttl_saved_option_write(Oid indexrelid, const TtlOption *option);
extern void ttl_dependencies_complete(void);
extern void ttl_saved_option_restore(Oid indexrelid);
extern void ttl_option_write(Oid indexrelid, const TtlOption *option);
extern bool ttl_lock_for_repair(Oid indexrelid);
extern bool ttl_option_is_amiss(Oid indexrelid);
extern void ttl_option_restore(Oid indexrelid);
extern void ttl_options_restore(void);

/* catalog.c */
extern bool ttl_sorted_oids_have(const List *sorted, Oid oid);
extern Oid	ttl_catalog_find(List *indexes,
							 bool (*is_it) (Oid indexrelid, void *arg),
							 void *arg);
extern void ttl_catalog_each(List *indexes,
							 void (*work) (Oid indexrelid, void *arg),
							 void *arg);
extern List *ttl_catalog_dependents(void);
extern Oid	ttl_catalog_root(Oid indexrelid);
extern List *ttl_catalog_roots(void);
extern List *ttl_catalog_shown(void);
extern List *ttl_catalog_table_indexes(Oid relid);
extern List *ttl_catalog_leaves(Oid root);
extern bool ttl_catalog_governor(Oid indexrelid, Oid *parent, Oid *governor,
								 TtlOption *option);
extern bool ttl_catalog_describe(Oid indexrelid, bool definition_only,
								 TtlIndex *index);
extern const char *ttl_state_name(TtlState state);
extern char *ttl_state_reason(const TtlIndex *index);
extern void ttl_state_raise(const TtlIndex *index);
extern void ttl_check_table(Oid relid);
extern void ttl_check_is_index(Oid relid);
extern bool ttl_index_is_usable(Oid indexrelid);
extern bool ttl_index_is_leftover(Oid indexrelid);
extern void ttl_check_usable(Oid indexrelid);
extern char *ttl_name_with_suffix(const char *name, const char *suffix);
extern void ttl_check_seconds(int32 seconds, bool may_be_never);
extern void ttl_check_key(Oid type, const char *time_zone);
extern bool ttl_key_type_ok(Oid type);

/* reach.c */
extern Oid	ttl_inherits_from(Oid relid, bool *detaching);
extern TtlState ttl_reach_state(Oid relid);
extern char *ttl_left_out(const TtlIndex *index);
extern void ttl_report_left_out(Oid indexrelid);

/* timezone.c */
extern bool ttl_time_zone_is_ambiguous(const char *name);
extern bool ttl_time_zone_ok(const char *name);
extern int32 ttl_time_zone_hash(const char *name);
extern char *ttl_time_zone_by_hash(int32 hash);
extern void ttl_cutoff_init(TtlCutoff *cutoff, const TtlIndex *index,
							TimestampTz at);
extern bool ttl_key_due(const TtlCutoff *cutoff, int64 key);
extern TimestampTz ttl_key_instant(const TtlCutoff *cutoff, int64 key);
extern int64 ttl_key_clock(const TtlIndex *index, TimestampTz at);

/* bounds.c */
extern TtlState ttl_buckets_possible(Oid relid, AttrNumber attnum,
									 Oid keytype, bool filtered);
extern TtlState ttl_buckets_defined(const TtlIndex *index);
extern List *ttl_buckets_read(Oid relid);
extern bool ttl_bucket_due(const TtlBucket *bucket, const TtlCutoff *cutoff);
extern void ttl_bucket_read(Oid relid, TtlBucket *bucket);
extern bool ttl_bucket_by_row(const TtlBucket *bucket, const TtlOption *option);
extern Oid	ttl_bucket_index(Oid root, Oid relid);
extern List *ttl_buckets_row_leaves(Oid root);
extern List *ttl_buckets_due_leaves(const TtlIndex *index, TimestampTz at);

/* bucket.c */
extern List *ttl_buckets_due(const TtlIndex *root, TimestampTz at);
extern char *ttl_bucket_dependent(Oid relid);
extern void ttl_bucket_drop(Oid root, Oid relid, TimestampTz at,
							TtlBatch *batch);

/* series.c */
extern List *ttl_buckets_wanted(const TtlIndex *root, TimestampTz at);
extern void ttl_bucket_make(Oid root, const TtlBucket *bucket,
							TtlBatch *batch);
extern void ttl_series_show(TtlIndex *index, TtlCounts *counts);

/* lock.c */
extern void ttl_lock_limit_waits(void);
extern bool ttl_lock_soon(Oid relid, LOCKMODE lockmode);
extern bool ttl_lock_below(Oid relid, LOCKMODE lockmode);

/* owner.c */
extern Oid	ttl_table_owner(Oid relid);
extern void ttl_become_owner(Oid owner, TtlUser *saved);
extern void ttl_read_as_owner(Oid owner, TtlUser *saved);
extern void ttl_restore_user(const TtlUser *saved);
extern bool ttl_lock_owned(Oid relid, LOCKMODE lockmode);
extern Relation ttl_open_table(Oid relid, LOCKMODE lockmode);
extern int64 ttl_count_rows(Oid relid, const char *condition, int64 max);

/* name.c */
extern char *ttl_qualified_name(Oid relid);
extern bool ttl_lock_name(Oid relid, bool wait);
extern void ttl_keep_name(Oid relid);

/* query.c */
extern Node *ttl_query_key(Oid indexrelid, Relation rel, Oid keytype);
extern Query *ttl_query_make(CmdType command, Relation rel, List *conditions);
extern int64 ttl_query_run(Query *query, ParamListInfo params,
						   const char *name, DestReceiver *dest);

/* args.c */
extern void ttl_require_arguments(FunctionCallInfo fcinfo, int count,
								  const char *const *names);
extern char *ttl_text_argument(FunctionCallInfo fcinfo, int i);
extern void ttl_check_columns(TupleDesc desc, int expected, const char *name);

/* key.c */
typedef struct TtlKey
{
	AttrNumber	attnum;
	char	   *column;
	char	   *sql;			/* as an index element of CREATE INDEX */
	Node	   *expression;		/* NULL for the column itself */
	Oid			type;			/* of the key that is indexed */
} TtlKey;

extern void ttl_key_resolve(Relation rel, const char *name, TtlKey *key);
extern bool ttl_index_key(Oid indexrelid, AttrNumber *attnum,
						  Node **expression);
extern char *ttl_key_path_text(Node *expression, Oid relid);
extern bool ttl_key_is_id(Oid indexrelid, Oid relid);
extern List *ttl_key_indexes(Relation rel, const char *name);
extern Oid	ttl_key_index(Oid relid, const char *key, bool only_ttl);

/* create.c */
typedef struct TtlCreate
{
	Oid			relid;
	char	   *key;
	int32		seconds;
	char	   *filter;			/* SQL text, or NULL */
	char	   *time_zone;
	char	   *ttl_field;		/* document_ttl_field */
	char	   *name;
	bool		drop_partitions;
	bool		boundary_rows;
	int32		bucket_seconds;
} TtlCreate;

extern Oid	ttl_create(const TtlCreate *args);
extern void ttl_check_boundary_rows(bool drop_partitions, bool boundary_rows);

/* parse.c */
extern IndexStmt * ttl_parse_create_index(Oid relid, const char *command);
extern Node *ttl_parse_expression(Relation rel, const char *text,
								  bool is_filter, const char *name);

/* The date in the key of an index. */
typedef struct TtlDate
{
	AttrNumber	attnum;			/* of the column, or invalid */
	Node	   *expression;		/* NULL for a column */
	bool		own_ttl_added;	/* the key is that plus a document's own TTL */
} TtlDate;

/* pair.c */
extern bool ttl_pair_date(Oid indexrelid, TtlDate *date);
extern Node *ttl_pair_document_ttl(List *members);
extern List *ttl_pair_plain_filter(List *members);
extern Oid	ttl_pair_find(Oid relid, AttrNumber attnum, Node *expression,
						  Node *ttl, List *plain_filter);
extern bool ttl_pair_has(Oid indexrelid);
extern Oid	ttl_pair_main(Oid indexrelid);
extern Oid	ttl_pair_other(Oid main);
extern char *ttl_pair_field_name(Node *call, Oid relid);
extern char *ttl_pair_field_sql(Relation rel, const char *name);

/* beside.c */
extern void ttl_beside_check_new(Oid relid, const TtlKey *key, List *filter);
extern void ttl_beside_check(Oid indexrelid);
extern void ttl_beside_report(Oid indexrelid);

/* notice.c */
extern void ttl_report_due(Oid indexrelid);

/* event.c */
extern void ttl_event_init(void);
extern void ttl_children_follow(Oid root);

/* walk.c */
extern Datum ttl_key_datum(Oid keytype, int64 key);
extern int64 ttl_datum_key(Oid keytype, Datum datum);
extern int64 ttl_least_key(Oid keytype);
extern void ttl_walk_begin(TtlWalk *walk, Relation heap, Relation index,
						   Oid keytype, int64 bound, const TtlPlace *after);
extern const TtlEntry *ttl_walk_next(TtlWalk *walk);
extern bool ttl_walk_is_over(const TtlWalk *walk);
extern void ttl_walk_end(TtlWalk *walk);

/* expire.c */
extern bool ttl_expire_lock(Oid relid, Oid indexrelid);
extern void ttl_expire_batch(const TtlIndex *index, const TtlCutoff *cutoff,
							 const TtlCutoff *pass_cutoff,
							 const TtlResume *resume, int max_docs,
							 TtlBatch *batch);
extern int64 ttl_expire_count(const TtlIndex *index, TimestampTz at,
							  TimestampTz *oldest);

/* pass.c */
extern void ttl_sub_pass_begin(TtlSubPass *sub, const TtlLimits *limits,
							   const Oid *indexes, int count, Oid resume_at,
							   TimestampTz now);
extern bool ttl_sub_pass_next(TtlSubPass *sub, TimestampTz now, Oid *index);
extern void ttl_visit_begin(TtlVisit *visit, const TtlLimits *limits,
							int first_docs, TimestampTz now);
extern int	ttl_visit_first_docs(const TtlVisit *visit);
extern int	ttl_visit_batch_size(const TtlVisit *visit, TimestampTz now);
extern void ttl_visit_batch_done(TtlVisit *visit, const TtlBatch *batch,
								 int size, bool over, TimestampTz begun,
								 TimestampTz now);
extern void ttl_visit_batch_failed(TtlVisit *visit, int size, bool can_narrow,
								   TimestampTz begun);
extern void ttl_visit_end(TtlVisit *visit);
extern void ttl_sub_pass_visited(TtlSubPass *sub, const TtlVisit *visit);

/* resume.c */
extern void ttl_resume_init(TtlResume *resume, Oid indexrelid, Oid filenode);
extern void ttl_range_add(TtlRange *range, int64 key);
extern void ttl_resume_pull_back(TtlResume *resume, int64 key);
extern bool ttl_resume_begin_pass(TtlResume *resume, TimestampTz now);
extern void ttl_resume_begin_visit(TtlResume *resume);
extern bool ttl_resume_has_failed(const TtlResume *resume, ItemPointer tid);
extern bool ttl_resume_goes_by_age(const TtlResume *resume);
extern bool ttl_resume_batch_done(TtlResume *resume, TtlBatch *batch,
								  TimestampTz now);
extern void ttl_resume_row_failed(TtlResume *resume, const TtlBatch *batch,
								  TimestampTz now);

/* kept.c */
extern void ttl_kept_init(TtlKept *kept);
extern TtlKeptIndex *ttl_kept_find(const TtlKept *kept, Oid relid);
extern TtlKeptIndex *ttl_kept_index(TtlKept *kept, Oid relid);
extern void ttl_kept_begin_pass(TtlKept *kept, TimestampTz now);
extern void ttl_kept_canceled(TtlKeptIndex *index, TimestampTz now);
extern Size ttl_kept_size(const TtlKept *kept);
extern void ttl_kept_pack(const TtlKept *kept, void *packed);
extern void ttl_kept_unpack(TtlKept *kept, const void *packed);

/* throttle.c */
extern void ttl_throttle_deleted(TtlThrottle *throttle, int64 rows);
extern int	ttl_throttle_batch_size(int size);
extern TtlWait ttl_throttle_wait(TtlTurn *turn, long *milliseconds);

/* run.c */
extern bool ttl_run_is_canceled(void);
extern void ttl_run_turn(const TtlDriver *driver, TtlTurn *turn,
						 TtlKept *kept);
extern void ttl_run_cancel(void);

/* stats.c */
extern void ttl_stats_check(void);
extern bool ttl_stats_lock(bool wait);
extern void ttl_stats_add(const TtlCount *count);
extern List *ttl_stats_read(void);
extern bool ttl_stats_fold(int64 rows);

/* progress.c */
extern void ttl_progress_pass(TimestampTz begun);
extern void ttl_progress_visit(const TtlIndex *index, TimestampTz cutoff,
							   TimestampTz begun, int64 deleted);
extern void ttl_progress_wait(TtlWait wait, long milliseconds);
extern void ttl_progress_end(void);

/* document_date.c */
extern bool ttl_document_date_find(Jsonb *document, ArrayType *path,
								   TimestampTz *date);
extern bool ttl_document_integer(const JsonbValue *value, int64 *integer);

/* crash.c */
extern void ttl_crash_watch(void);
extern void ttl_crash_mark(Oid indexrelid);
extern Oid	ttl_crash_take_mark(Oid *database);

/* hold.c */
extern int64 ttl_machine_clock(void);

/* launcher.c */
extern void ttl_launcher_register(void);

#endif							/* TTL_INDEX_H */
