/*-------------------------------------------------------------------------
 *
 * state_file.h
 *	  The file that outlives a crash of the server: its layout and its users.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_STATEFILE_H
#define TTL_STATEFILE_H

#include "datatype/timestamp.h"
#include "pgstat.h"

/* relative to the data directory, which is where every backend is */
#define TTL_STATE_FILE PGSTAT_STAT_PERMANENT_DIRECTORY "/ttl_index.state"

struct TtlReported;

/* How many workers can have a mark, and how many crashing indexes are remembered. */
#define TTL_MARKS 16
#define TTL_CRASHES 128

typedef enum TtlHoldReason
{
	TTL_NOT_HELD,
	TTL_HOLD_CLOCK_JUMP,
	TTL_HOLD_DOWNTIME,
	TTL_HOLD_DAMAGED_FILE,
	TTL_HOLD_UNUSABLE_FILE		/* never written: until it can be used again */
} TtlHoldReason;

/* Why nothing is deleted in the whole server. */
typedef struct TtlHold
{
	int32		reason;			/* a TtlHoldReason */
	int32		error;			/* errno, of an unusable file */
	TimestampTz expected;		/* by the machine's clock; or the last look
								 * before a downtime */
	TimestampTz found;			/* the wall clock when this was noticed */
} TtlHold;

/* Two clocks at one moment. */
typedef struct TtlClocks
{
	TimestampTz server_start;	/* of the postmaster that the readings are of */
	TimestampTz wall;
	int64		uptime;			/* the machine's clock, in microseconds */
} TtlClocks;

/* The index at which a worker is. */
typedef struct TtlMark
{
	TimestampTz server_start;	/* of its postmaster */
	int32		pid;
	int32		unused;			/* alignment */
	Oid			database;
	Oid			indexrelid;		/* invalid for none */
	TimestampTz begun;
} TtlMark;

/* An index whose visits crashed the workers of one postmaster. */
typedef struct TtlCrash
{
	TimestampTz server_start;	/* an entry of another postmaster is free */
	Oid			database;
	Oid			indexrelid;
	int64		count;
	TimestampTz last;			/* when the last of these visits began */
} TtlCrash;

/* Each part has one kind of writer: */
typedef struct TtlStateFile
{
	uint32		magic;
	uint32		unused;			/* alignment */
	TtlHold		hold;			/* whoever notices the cause, and resume() */
	TtlClocks	clocks;			/* the first process to look, and resume() */
	TimestampTz last_look;		/* whoever looks at the clock, and resume() */
	TtlMark		marks[TTL_MARKS];	/* one worker each */
	TtlCrash	crashes[TTL_CRASHES];	/* the launcher when it starts */
} TtlStateFile;

#define TTL_STATE_FILE_PART(part) \
	offsetof(TtlStateFile, part), sizeof(((TtlStateFile *) NULL)->part)

/* crash.c */
extern void ttl_crash_watch(int mark);
extern void ttl_crash_mark(Oid indexrelid);
extern bool ttl_crash_take_mark(TtlMark *mark);
extern char *ttl_crash_reason(const TtlStateFile *file, Oid root);

/* hold.c */
extern int64 ttl_hold_machine_clock(void);
extern void ttl_hold_check_clock(TtlStateFile *file, TimestampTz wall, bool starts);
extern const char *ttl_hold_hint(const TtlHold *hold);
extern bool ttl_hold_is_held(const TtlStateFile *file, int elevel,
							 struct TtlReported *reported);
extern char *ttl_hold_reason(const TtlHold *hold);

/* state_file.c */
extern void ttl_state_file_read(TtlStateFile *file);
extern void ttl_state_file_create(TtlStateFile *file);
extern void ttl_state_file_write(TtlStateFile *file, size_t offset, size_t size);

#endif							/* TTL_STATEFILE_H */
