/*-------------------------------------------------------------------------
 *
 * stats.h
 *	  The counters of TTL indexes, and their totals by hour.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_STATS_H
#define TTL_STATS_H

#include "access/htup.h"
#include "access/tupdesc.h"
#include "datatype/timestamp.h"
#include "storage/lockdefs.h"
#include "utils/hsearch.h"
#include "utils/relcache.h"

/* A row of ttl_index.counters: what one transaction adds, or a sum; also in past_hours. */
typedef struct TtlCount
{
	Oid			indexrelid;
	Oid			relid;
	TimestampTz hour;			/* in which it was done, or 0 */
	const char *schemaname;
	const char *relname;
	const char *indexrelname;
	int64		visits;
	int64		batches;
	int64		deleted_documents;
	int64		deleted_buckets;
	int64		estimated_documents;	/* of these, where they were not counted */
	int64		archived_documents; /* of the deleted ones, likewise below */
	int64		archived_buckets;
	int64		skipped_locked;
	int64		skipped_failed;
	int64		skipped_kept;	/* by a trigger that returned NULL */
	int64		errors;
	double		delete_time;	/* milliseconds */
	TimestampTz last_deleted;	/* 0 for none, like the other times */
	const char *last_error;
	const char *last_error_sqlstate;
	Oid			last_error_role;	/* as whom it was raised; invalid: the survey */
	TimestampTz last_error_time;
	int64		passes;
	int64		sub_passes;
	TimestampTz last_pass_start;
	TimestampTz last_pass_end;
	TimestampTz last_cutoff;
	TimestampTz stats_reset;
	int64		lag_pauses;
	TimestampTz last_call;		/* of run_pass(), by the role in relid */
	TimestampTz recovered;		/* when a visit was good again after an error */
	TimestampTz last_kept;		/* when a trigger last kept a row */
	TimestampTz approved;		/* when its first deletion was */
	TimestampTz shortened;		/* when its seconds last were */
} TtlCount;

/* What the counters say of a TTL index now. */
typedef struct TtlFailing
{
	Oid			root;
	TimestampTz at;				/* of an error that no good visit has followed, or 0 */
	char	   *held;			/* that error, if its first deletion is held */
	bool		approved;		/* its first deletion is not held */
	bool		keeps;			/* a trigger has kept the rows of the last visit */
} TtlFailing;

/* count.c */
#define TTL_COUNTERS_COLUMNS 35
#define TTL_COUNT_ATTNUM_HOUR 3

extern Oid	ttl_count_relid(const char *name);
extern Relation ttl_count_open(const char *name, LOCKMODE lockmode);
extern void ttl_count_insert(Relation rel, const TtlCount *count);
extern void ttl_count_read(HeapTuple tuple, TupleDesc desc, TtlCount *count);
extern void ttl_count_add(TtlCount *sum, const TtlCount *row, TimestampTz now);

/* counters.c */
#define TTL_COUNTERS_LOCKED "table \"" TTL_SCHEMA ".counters\" is locked by others"
#define TTL_COUNTERS_LOCKED_HINT \
	"See who holds or awaits the lock: SELECT * FROM pg_locks WHERE relation = '" TTL_SCHEMA ".counters'::regclass."

extern void ttl_counters_check(void);
extern bool ttl_counters_lock(bool wait);
extern bool ttl_counters_are_locked(void);
extern bool ttl_counters_add(const TtlCount *count);
extern List *ttl_counters_roles_since(TimestampTz since);
extern HTAB *ttl_counters_failing(void);
extern bool ttl_counters_note(Oid indexrelid, bool approved);
extern void ttl_counters_fold(int64 *rows, TimestampTz *folded_hour);
extern void ttl_counters_trim(void *unused);

#endif							/* TTL_STATS_H */
