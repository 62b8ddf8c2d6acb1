/*-------------------------------------------------------------------------
 *
 * state_file.h
 *	  The layout of the file that outlives a crash (state_file.c), for those who
 *	  keep a part of it: hold.c and crash.c.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/monitor/state_file.h
 *
 *-------------------------------------------------------------------------
 */
#ifndef TTL_STATEFILE_H
#define TTL_STATEFILE_H

#include "datatype/timestamp.h"
#include "pgstat.h"

#include "ttl_index.h"

/* relative to the data directory, which is where every backend is */
#define TTL_STATE_FILE PGSTAT_STAT_PERMANENT_DIRECTORY "/ttl_index.state"

/* Of more indexes, the one that crashed longest ago is tried again. */
#define TTL_MAX_CRASHES 64

typedef enum TtlHoldReason
{
	TTL_NOT_HELD,
	TTL_HOLD_CLOCK_JUMP,
	TTL_HOLD_DOWNTIME,
	TTL_HOLD_DAMAGED_FILE
} TtlHoldReason;

/* Why nothing is deleted in the whole server. */
typedef struct TtlHold
{
	int32		reason;			/* a TtlHoldReason */
	int32		unused;
	TimestampTz expected;		/* by the other clock, or the last look */
	TimestampTz found;			/* the wall clock when it was noticed */
} TtlHold;

/* Two clocks at one moment. */
typedef struct TtlClocks
{
	TimestampTz server_start;	/* comparable while this server runs */
	TimestampTz wall;
	int64		uptime;			/* microseconds, of the machine */
} TtlClocks;

/* What a worker is at. */
typedef struct TtlMark
{
	TimestampTz server_start;	/* of its postmaster */
	Oid			database;
	Oid			indexrelid;		/* invalid: at none */
	TimestampTz begun;
} TtlMark;

/* An index whose visits crashed the workers of one postmaster. */
typedef struct TtlCrash
{
	TimestampTz server_start;	/* the entry of another one is free */
	Oid			database;
	Oid			indexrelid;
	int64		count;
	TimestampTz last;			/* when the last of them began */
} TtlCrash;

typedef struct TtlStateFile
{
	uint32		magic;
	uint32		unused;
	TtlHold		hold;			/* by whoever notices, and resume() */
	TtlClocks	clocks;			/* by the first one to look, and resume() */
	TimestampTz last_look;		/* by whoever looks at the clock, and resume() */
	TtlMark		mark;			/* by the worker, of which there is one */
	TtlCrash	crashes[TTL_MAX_CRASHES];	/* by the launcher when it starts,
											 * and resume() */
} TtlStateFile;

#define TTL_STATE_FILE_PART(part) \
	offsetof(TtlStateFile, part), sizeof(((TtlStateFile *) NULL)->part)

#endif							/* TTL_STATEFILE_H */
