/*-------------------------------------------------------------------------
 *
 * hold.c
 *	  Holding deletion in the whole server, until somebody has looked at the clock.
 *
 * A clock that jumps ahead makes everything due at once.  So each sub-pass compares how far
 * the wall clock has come since the first look at it, when the server started, with how far
 * the machine's own clock has, which nobody can set.  If it is ahead by more than
 * ttl_index.max_clock_jump, deletion is held.
 *
 * The launcher notes each look at the clock, about once a minute.  If the first one after a
 * start is later than the last one by more than ttl_index.hold_after_downtime, deletion is
 * held as well.  On a standby, where there is no launcher, the time of the last replayed
 * transaction counts as a look.
 *
 * A hold is in the state file (state_file.c), so that all backends see it and a restart
 * does not release it.  ttl_index.resume() does.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/shared/hold.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <time.h>

#include "access/xlogrecovery.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/datetime.h"
#include "utils/timestamp.h"

#include "shared/reported.h"
#include "shared/state_file.h"
#include "ttl_index.h"

PG_FUNCTION_INFO_V1(ttl_resume);

/* If the system has such a clock, it goes on while the machine is suspended. */
#ifdef CLOCK_BOOTTIME
#define MACHINE_CLOCK CLOCK_BOOTTIME
#else
#define MACHINE_CLOCK CLOCK_MONOTONIC
#endif

/* A look at the clock is not noted again before this time has passed. */
#define NOTE_LOOK_AFTER (60 * USECS_PER_SEC)

/* Microseconds by a clock that nobody can set, the same one in all processes. */
int64
ttl_hold_machine_clock(void)
{
	struct timespec now;

	if (clock_gettime(MACHINE_CLOCK, &now) != 0)
		elog(ERROR, "could not read the machine's clock: %m");
	return now.tv_sec * USECS_PER_SEC + now.tv_nsec / 1000;
}

static TtlClocks
read_clocks(TimestampTz wall)
{
	TtlClocks	clocks = {.server_start = PgStartTime,.wall = wall,
	.uptime = ttl_hold_machine_clock()};

	return clocks;
}

static void
set_hold(TtlStateFile *file, TtlHoldReason reason, TimestampTz expected, TimestampTz found)
{
	file->hold.reason = reason;
	file->hold.expected = expected;
	file->hold.found = found;
	ttl_state_file_write(file, TTL_STATE_FILE_PART(hold), true);
}

/*
 * Reads the state file, and holds deletion if this reading of the wall clock is too far
 * ahead, or after a start, if the server was down for too long.  To be called with each
 * reading before rows are deleted by it, and once a minute otherwise.  The launcher says
 * when it starts, because a standby that was promoted had started before.
 */
void
ttl_hold_check_clock(TtlStateFile *file, TimestampTz wall, bool starts)
{
	TtlClocks	now = read_clocks(wall);
	TimestampTz expected;

	ttl_state_file_read(file);
	if (file->hold.reason != TTL_NOT_HELD)
		return;
	if (starts || file->clocks.server_start != PgStartTime)
	{
		TimestampTz last_look = Max(file->last_look, GetLatestXTime());

		/* a server on which nobody ever looked is new, or a restored dump */
		if (last_look != 0 && ttl_hold_after_downtime > 0 &&
			wall - last_look > ttl_hold_after_downtime * USECS_PER_SEC)
		{
			set_hold(file, TTL_HOLD_DOWNTIME, last_look, wall);
			return;
		}
	}
	if (file->clocks.server_start != PgStartTime)
	{
		file->clocks = now;
		ttl_state_file_write(file, TTL_STATE_FILE_PART(clocks), true);
	}
	expected = file->clocks.wall + (now.uptime - file->clocks.uptime);
	if (ttl_max_clock_jump > 0 && wall - expected > ttl_max_clock_jump * USECS_PER_SEC)
		set_hold(file, TTL_HOLD_CLOCK_JUMP, expected, wall);
	else if (wall < file->last_look || wall - file->last_look >= NOTE_LOOK_AFTER)
	{
		file->last_look = wall;
		ttl_state_file_write(file, TTL_STATE_FILE_PART(last_look), false);
	}
}

/* Says in one line why deletion is held; NULL if it is not. */
char *
ttl_hold_reason(const TtlHold *hold)
{
	char		expected[MAXDATELEN + 1];

	strlcpy(expected, timestamptz_to_str(hold->expected), sizeof(expected));
	switch ((TtlHoldReason) hold->reason)
	{
		case TTL_NOT_HELD:
			return NULL;
		case TTL_HOLD_CLOCK_JUMP:
			return psprintf("the clock jumped ahead from %s to %s",
							expected, timestamptz_to_str(hold->found));
		case TTL_HOLD_DOWNTIME:
			return psprintf("the server was down from %s to %s",
							expected, timestamptz_to_str(hold->found));
		case TTL_HOLD_UNUSABLE_FILE:
			return psprintf("file \"%s\" cannot be read and written: %s",
							TTL_STATE_FILE, strerror(hold->error));
		case TTL_HOLD_DAMAGED_FILE:
			break;
	}
	return psprintf("file \"%s\" is damaged", TTL_STATE_FILE);
}

/* Says what to do about a hold. */
const char *
ttl_hold_hint(const TtlHold *hold)
{
	if (hold->reason == TTL_HOLD_UNUSABLE_FILE)
		return "Let the server read and write that file again, and deletion goes on.";
	return "Check the clock and what is due, then SELECT ttl_index.resume().";
}

/* Is deletion held?  If so, reports it, as an error or now and then. */
bool
ttl_hold_is_held(const TtlStateFile *file, int elevel, TtlReported *reported)
{
	char	   *reason = ttl_hold_reason(&file->hold);

	if (reason == NULL)
		return false;
	if (elevel >= ERROR ||
		ttl_reported_is_news(reported, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, reason))
		ereport(elevel,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("ttl_index deletes nothing on this server"),
				 errdetail("It is held: %s.", reason),
				 errhint("%s", ttl_hold_hint(&file->hold))));
	pfree(reason);
	return true;
}

/* resume() returns void */
Datum
ttl_resume(PG_FUNCTION_ARGS)
{
	TtlStateFile file = {0};

	file.last_look = GetCurrentTimestamp();
	file.clocks = read_clocks(file.last_look);
	ttl_state_file_create(&file);
	ereport(LOG, (errmsg("ttl_index was told to resume")));
	PG_RETURN_VOID();
}
