/*-------------------------------------------------------------------------
 *
 * progress.h
 *	  What a process shows of its work.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_PROGRESS_H
#define TTL_PROGRESS_H

#include "definition/definition.h"
#include "expire/expire.h"

/* What deletion waits for; progress.c has the names in the same order. */
typedef enum TtlWait
{
	TTL_WAIT_NONE,
	TTL_WAIT_RATE,
	TTL_WAIT_REPLICATION
} TtlWait;

/* How far a pass is, in all and by the index that is visited; -1: not known. */
typedef struct TtlProgress
{
	TimestampTz begun;
	int64		deleted;		/* rows, one by one */
	int64		left;
	int64		time_left;		/* microseconds */
	int64		index_deleted;
	int64		index_left;
} TtlProgress;

/* What the monitor has done in a database, and how it has found its TTL indexes. */
typedef struct TtlSurvey
{
	TimestampTz pass_start;		/* of the last pass; 0 for none */
	TimestampTz pass_end;		/* of the last pass that has ended, likewise */
	int64		left;			/* about so many rows, of a pass that goes on;
								 * -1: not known, or there is none */
	int64		time_left;		/* for these, in microseconds; -1: likewise */
	TimestampTz at;				/* when the following were found; 0: never */
	int32		indexes;
	int32		not_active;		/* of these, by the view ttl_index.indexes */
	int32		failing;
	int32		paused;
	int64		worst_lag;		/* microseconds; -1: unknown of all */
} TtlSurvey;

/* What the launcher knows of a database (overview.c). */
typedef struct TtlKnownDatabase
{
	Oid			oid;
	TtlSurvey	survey;
} TtlKnownDatabase;

/*
 * What is shown in the progress fields, an array of int64, begins with this.  It tells it from
 * what core's commands show, and from what a process that has ended left in the slot.
 */
typedef struct TtlShownHeader
{
	int64		magic;
	int64		pid;
} TtlShownHeader;

/* What the launcher shows of itself; an int64 each, like those of TtlProgress. */
typedef struct TtlLauncher
{
	TtlShownHeader header;		/* set by progress.c */
	int64		enabled;		/* ttl_index.monitor_enabled, in the launcher */
	int64		read_only;		/* default_transaction_read_only, likewise */
	int64		no_slot;		/* the last worker found no slot */
	int64		area;			/* the dsa_handle of its shared memory, and in it: */
	int64		common;			/* a dsa_pointer to TtlCommon */
} TtlLauncher;

/* progress.c */
extern void ttl_progress_pass(const TtlProgress *progress, TimestampTz begun);
extern void ttl_progress_visit(const TtlIndex *index, const TtlCursor *cursor,
							   TimestampTz begun, const TtlProgress *progress);
extern void ttl_progress_wait(TtlWait wait, long milliseconds);
extern Datum ttl_progress_interval(int64 time_left, bool *isnull);
extern bool ttl_progress_position(Oid indexrelid, TtlScanPosition *position);
extern void ttl_progress_launcher(TtlLauncher *launcher);
extern bool ttl_progress_find_launcher(TtlLauncher *launcher);

#endif							/* TTL_PROGRESS_H */
