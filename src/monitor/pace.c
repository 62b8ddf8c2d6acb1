/*-------------------------------------------------------------------------
 *
 * pace.c
 *	  How fast rows go, and so when a pass will be over.
 *
 * The rate changes while a pass goes on: cached pages come first, autovacuum starts, others
 * begin to work.  So the last rows say more about the next ones than the first do.  A
 * window of fixed length fits neither a pass of half a minute nor one of a day.  Here a row
 * counts by the time since the pass began: at an even rate, the last half of the time makes
 * up three quarters of the sum.
 *
 * Copyright (c) 2026, ttl_index contributors
 *
 * IDENTIFICATION
 *	  src/monitor/pace.c
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "monitor/progress.h"

/* The rate counts after the first seconds, or the first tenth of the rows. */
#define FIRST_US INT64CONST(5000000)
#define FIRST_PART 10

/* Adds rows that have just been deleted, so many microseconds after the pass began. */
void
ttl_pace_add(TtlPace *pace, int64 rows, int64 took)
{
	pace->rows += rows;
	pace->weighted += (double) rows * took;
}

/* How many rows would be deleted by now if they had always gone as fast as lately? */
int64
ttl_pace_rows(const TtlPace *pace, int64 took)
{
	/* the clock may have gone back */
	if (took <= 0)
		return pace->rows;
	return (int64) rint(2 * pace->weighted / took);
}

/*
 * The time in microseconds for the rows that are left of a pass, at the rate of so many
 * others (paced) in the time since it began; -1 if it is not known.
 */
int64
ttl_pace_time_left(int64 left, int64 deleted, int64 paced, int64 took)
{
	double		time;

	if (left < 0 || paced <= 0 || took <= 0 ||
		(took < FIRST_US && deleted < (deleted + left) / FIRST_PART))
		return -1;
	time = (double) left / paced * took;
	return time < (double) PG_INT64_MAX / 2 ? (int64) rint(time) : -1;
}
