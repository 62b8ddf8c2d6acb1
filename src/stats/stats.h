/*-------------------------------------------------------------------------
 *
 * stats.h
 *	  The counters of TTL indexes, and their totals by hour and day.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/stats/stats.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_STATS_H
#define TTL_STATS_H

#include "definition/definition.h"
#include "stats/count.h"

/* A TTL index whose last error was not followed by a good visit. */
typedef struct TtlFailing
{
	Oid			root;
	TimestampTz at;				/* when that error was counted */
} TtlFailing;

/* counters.c */
#define TTL_COUNTERS_LOCKED "table \"" TTL_SCHEMA ".counters\" is locked by others"
#define TTL_COUNTERS_LOCKED_HINT \
	"See who holds or awaits the lock: SELECT * FROM pg_locks WHERE relation = '" TTL_SCHEMA ".counters'::regclass."

extern void ttl_counters_check(void);
extern bool ttl_counters_lock(bool wait);
extern bool ttl_counters_are_locked(void);
extern void ttl_counters_add(const TtlCount *count);
extern List *ttl_counters_roles_since(TimestampTz since);
extern List *ttl_counters_failing(void);
extern bool ttl_counters_fold(int64 rows, bool new_hour, bool move);

/* history.c */
extern TimestampTz ttl_history_hour(TimestampTz at);
extern void ttl_history_check(void);
extern bool ttl_history_lock(LOCKMODE lockmode);
extern void ttl_history_add(const TtlCount *sum, TimestampTz now);
extern void ttl_history_trim(TimestampTz now);

#endif							/* TTL_STATS_H */
