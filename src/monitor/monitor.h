/*-------------------------------------------------------------------------
 *
 * monitor.h
 *	  The processes of the monitor, and what they leave to be seen.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/monitor/monitor.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_MONITOR_H
#define TTL_MONITOR_H

#include "definition/definition.h"
#include "monitor/count.h"
#include "monitor/state_file.h"

/* A TTL index whose last error was not followed by a good visit. */
typedef struct TtlFailing
{
	Oid			root;
	TimestampTz at;				/* when that error was counted */
} TtlFailing;

/* What the log was told last of an index, a database or the server (see report.c). */
typedef struct TtlSaid
{
	uint32		reason;
	TimestampTz at;				/* 0: nothing, or it is over */
} TtlSaid;

/* Who visits the TTL indexes of this database. */
typedef struct TtlVisitor
{
	const char *status;			/* a word */
	const char *reason;			/* why the monitor does not, or NULL */
	const char *hint;
	List	   *roles;			/* whose run_pass() was not long ago */
	Oid			owner;			/* the last one that was asked about: */
	const char *owner_reason;	/* why a worker of it does not, or NULL */
} TtlVisitor;

/* launcher.c */
extern void ttl_launcher_register(void);
extern bool ttl_launcher_is_registered(void);

/* visitor.c */
#define TTL_SLOTS_HINT \
	"Consider increasing the configuration parameter \"max_worker_processes\" to at least three more than \"max_parallel_workers\": parallel queries take their workers from the same slots."

extern void ttl_visitor_find(TtlVisitor *visitor);
extern bool ttl_visitor_is_session(const TtlVisitor *visitor, Oid owner);
extern const char *ttl_visitor_why_no_monitor(Oid database, bool *enabled,
											  const char **hint);
extern const char *ttl_visitor_why_none(TtlVisitor *visitor, Oid owner);

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

/* hold.c */
extern int64 ttl_hold_machine_clock(void);
extern void ttl_hold_check_clock(TtlStateFile *file, TimestampTz wall, bool starts);
extern const char *ttl_hold_hint(const TtlHold *hold);
extern bool ttl_hold_is_held(const TtlStateFile *file, int elevel, TtlSaid *said);
extern char *ttl_hold_reason(const TtlHold *hold);

/* crash.c */
extern void ttl_crash_watch(int mark);
extern void ttl_crash_mark(Oid indexrelid);
extern bool ttl_crash_take_mark(TtlMark *mark);
extern List *ttl_crash_skipped(const TtlStateFile *file);
extern char *ttl_crash_reason(const List *skipped, Oid root);

/* state_file.c */
extern void ttl_state_file_read(TtlStateFile *file);
extern void ttl_state_file_create(TtlStateFile *file);
extern void ttl_state_file_write(TtlStateFile *file, size_t offset, size_t size,
								 bool durable);
extern int	ttl_state_file_read_crashes(TtlCrash **crashes);
extern void ttl_state_file_write_crash(int position, const TtlCrash *crash);

/* report.c */
extern bool ttl_report_is_news(TtlSaid *said, int sqlerrcode, const char *text);

/* shown_state.c */
extern void ttl_shown_state_complete(TtlIndex *index, TtlVisitor *visitor,
									 const TtlStateFile *file,
									 const List *crashed, const List *failing);

#endif							/* TTL_MONITOR_H */
