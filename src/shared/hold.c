/*-------------------------------------------------------------------------
 *
 * hold.c
 *	  Holding deletion in the whole server, until the clock has been checked.
 *
 * A clock that jumps ahead makes everything due at once.  So each sub-pass compares two
 * clocks with their first reading after the start of the server: the wall clock, and the
 * machine's own clock, which nobody can set.  If the wall clock is ahead by more than
 * max_clock_jump, deletion is held.  It is also held if the first reading after a start is
 * later than the last reading before the start by more than hold_after_downtime.  On a
 * standby, which has no launcher, the time of the last replayed transaction counts as a
 * reading.
 *
 * A hold is in the state file (state_file.c), so that all backends see it and a restart
 * does not release it.  ttl_index.resume() does.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <time.h>

#include "access/xlogrecovery.h"
#include "fmgr.h"
#include "utils/datetime.h"
#include "utils/timestamp.h"

#include "shared/kept.h"
#include "shared/state_file.h"
#include "ttl_index.h"

PG_FUNCTION_INFO_V1(ttl_resume);

/* CLOCK_BOOTTIME, if there is one, includes the time of a suspended machine. */
#ifdef CLOCK_BOOTTIME
#define MACHINE_CLOCK CLOCK_BOOTTIME
#else
#define MACHINE_CLOCK CLOCK_MONOTONIC
#endif

/* The last reading of the clock is written this often. */
#define NOTE_LOOK_AFTER (60 * USECS_PER_SEC)

/* Microseconds of a clock that nobody can set.  All processes have the same one. */
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
	return (TtlClocks) {.server_start = PgStartTime,.wall = wall,
		.uptime = ttl_hold_machine_clock()};
}

static void
set_hold(TtlStateFile *file, TtlHoldReason reason, TimestampTz expected, TimestampTz found)
{
	file->hold.reason = reason;
	file->hold.expected = expected;
	file->hold.found = found;
	ttl_state_file_write(file, TTL_STATE_FILE_PART(hold));
}

/*
 * Reads the state file, and holds deletion if this reading of the wall clock is too far
 * ahead, or if the server was down for too long before its start.  Called with each reading
 * before rows are deleted by it, and once a minute otherwise.  `starts`: the launcher starts,
 * which can be long after the start of the server, if a standby is promoted.
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

		/* without a last reading the server is new, or a restored dump */
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
		ttl_state_file_write(file, TTL_STATE_FILE_PART(clocks));
	}
	expected = file->clocks.wall + (now.uptime - file->clocks.uptime);
	if (ttl_max_clock_jump > 0 && wall - expected > ttl_max_clock_jump * USECS_PER_SEC)
		set_hold(file, TTL_HOLD_CLOCK_JUMP, expected, wall);
	else if (wall < file->last_look || wall - file->last_look >= NOTE_LOOK_AFTER)
	{
		file->last_look = wall;
		ttl_state_file_write(file, TTL_STATE_FILE_PART(last_look));
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

/* Is deletion held?  If so, reports it: always as an error, else if it is news. */
bool
ttl_hold_is_held(const TtlStateFile *file, int elevel, TtlReported *reported)
{
	char	   *reason = ttl_hold_reason(&file->hold);

	if (reason == NULL)
		return false;
	if (elevel >= ERROR ||
		ttl_kept_is_news(reported, ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE, reason))
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
